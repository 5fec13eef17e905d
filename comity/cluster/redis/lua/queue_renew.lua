-- renew(worker, ttl, number) -> all hosts of the worker here, or nil if there are `number` of them.
-- It is a sign of life for all its leases here. `number`: how many it knows; -1 to get the hosts in
-- any case.
goes_on_when_full()
local hosts = base .. ':of:' .. ARGV[1]
local number = redis.call('ZCARD', hosts)
if number > 0 then
  redis.call('ZADD', base .. ':alive', now_ms() + tonumber(ARGV[2]), ARGV[1])
end
if number == tonumber(ARGV[3]) then
  return false
end
return redis.call('ZRANGE', hosts, 0, -1)
