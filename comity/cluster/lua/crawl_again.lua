-- again(run, version) -> 1 if the crawl begins again, because this was its run; 0 if another worker
-- was faster. `version`: of the data from now on, since older workers know no runs.
if redis.call('EXISTS', meta) == 0 or tonumber(redis.call('HGET', meta, 'run') or 1) ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', meta, 'run', ARGV[1] + 1, 'began', now_ms(), 'version', ARGV[2])
redis.call('HDEL', meta, 'finished', 'put')
return 1
