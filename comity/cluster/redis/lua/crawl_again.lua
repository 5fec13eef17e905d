-- again(run) -> 1 if the crawl begins again, because this was its run; 0 if another worker was
-- faster. The next worker that agrees gives the new run its settings.
if redis.call('HGET', meta, 'run') ~= ARGV[1] then
  return 0
end
redis.call('HSET', meta, 'run', ARGV[1] + 1, 'began', now_ms(), 'state', 'running')
redis.call('HDEL', meta, 'finished', 'put', 'settings', 'reason', 'ended', 'left', 'died')
redis.call('UNLINK', base .. ':shards')
forget_counts()
return 1
