-- open(version, shards) -> the version, the shards, the state, the begin of the run, and {run,
-- emptied...} as `runs` returns them. A crawl that does not exist begins. Workers without a sign of
-- life for a day are forgotten.
redis.call('HSETNX', meta, 'version', ARGV[1])
if redis.call('HSETNX', meta, 'shards', ARGV[2]) == 1 then
  redis.call('HSET', meta, 'began', now_ms(), 'state', 'running', 'run', 1, 'swept', 0)
  redis.call('HSET', base .. ':runs', 1, now_ms())
end
local workers = redis.call('HGETALL', base .. ':worker')
for i = 1, #workers, 2 do
  if tonumber(workers[i + 1]) + 86400000 < now_ms() then
    forget(workers[i], 'died')
  end
end
local result = redis.call('HMGET', meta, 'version', 'shards', 'state', 'began')
result[5] = runs()
return result
