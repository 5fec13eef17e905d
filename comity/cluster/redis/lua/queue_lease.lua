-- lease(worker, hosts, per_host, ttl, unwanted) -> {host, how many more wait, key, priority, body,
-- reads, ...}... First the requests that owners of ended leases had out wait again, and hosts that
-- were set aside until now are due. Then the hosts that are due longest are leased, if they are due
-- for `unwanted` ms.
goes_on_when_full()
local worker, hosts, per_host, ttl = ARGV[1], tonumber(ARGV[2]), math.max(1, tonumber(ARGV[3])), tonumber(ARGV[4])
local now = now_ms()
local due_before = now - tonumber(ARGV[5])
for _, host in ipairs(redis.call('ZRANGEBYSCORE', base .. ':leased', '-inf', now, 'LIMIT', 0, 64)) do
  all_back(host, true)
  free(host, 'due', now)
end
recall(now, 64, now)
local result = {}
while #result < hosts do
  local due = redis.call('ZRANGEBYSCORE', base .. ':due', '-inf', due_before, 'LIMIT', 0, hosts - #result)
  if #due == 0 then
    break
  end
  for _, host in ipairs(due) do
    redis.call('ZREM', base .. ':due', host)
    local taken = take(host, per_host)
    if #taken > 0 then  -- else a worker without the lease has acknowledged all
      redis.call('ZADD', base .. ':leased', now + ttl, host)
      redis.call('HSET', base .. ':owner', host, worker)
      result[#result + 1] = {host, redis.call('ZCARD', base .. ':q:' .. host), unpack(taken)}
    elseif redis.call('EXISTS', base .. ':q:' .. host) == 1 then  -- given up; others wait
      redis.call('ZADD', base .. ':due', now, host)
    end
  end
end
return result
