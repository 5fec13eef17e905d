-- finish(run, put) -> ms since the crawl is finished; nil if another run has begun. `put`: the
-- number of its requests. If the crawl was finished with another number before, it is finished
-- since now.
if redis.call('HGET', meta, 'run') ~= ARGV[1] then
  return false
end
redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
local now = now_ms()
if redis.call('HGET', meta, 'put') ~= ARGV[2] then
  redis.call('HSET', meta, 'finished', now, 'put', ARGV[2])
end
return now - redis.call('HGET', meta, 'finished')
