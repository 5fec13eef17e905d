-- again(run) -> 1 where the crawl begins again, as its run was this one; 0 where another worker was faster.
if redis.call('EXISTS', meta) == 0 or tonumber(redis.call('HGET', meta, 'run') or 1) ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', meta, 'run', ARGV[1] + 1, 'began', now_ms())
redis.call('HDEL', meta, 'finished', 'put')
return 1
