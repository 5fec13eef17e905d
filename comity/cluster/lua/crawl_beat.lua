-- beat(worker, ttl) -> what is told of the crawl, and how the server's maxmemory-policy is. A sign of life.
if redis.call('EXISTS', meta) == 0 then
  return false
end
redis.call('DEL', base .. ':none')  -- what comes after a write is not refused where the memory is full
redis.call('HSET', base .. ':worker', ARGV[1], now_ms())
local result = told(tonumber(ARGV[2]))
result[5] = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:([%w-]+)') or ''
return result
