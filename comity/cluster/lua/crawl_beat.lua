-- beat(worker, ttl) -> the state of the crawl, and the server's maxmemory-policy. It is a sign of
-- life.
if redis.call('EXISTS', meta) == 0 then
  return false
end
redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
redis.call('HSET', base .. ':worker', ARGV[1], now_ms())
local result = told(tonumber(ARGV[2]))
result[6] = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:([%w-]+)') or ''
return result
