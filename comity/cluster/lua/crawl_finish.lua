-- finish(run, put) -> ms since the crawl is finished; nil where another run has begun. `put`: how many requests were put into it:
-- where there were others by then, it is finished since now.
if redis.call('EXISTS', meta) == 0 or tonumber(redis.call('HGET', meta, 'run') or 1) ~= tonumber(ARGV[1]) then
  return false
end
redis.call('DEL', base .. ':none')  -- what comes after a write is not refused where the memory is full
local now = now_ms()
if redis.call('HGET', meta, 'put') ~= ARGV[2] then
  redis.call('HSET', meta, 'finished', now, 'put', ARGV[2])
end
return now - redis.call('HGET', meta, 'finished')
