-- lease(worker, hosts, per_host, ttl, unwanted) -> {host, how many more wait, key, priority, body,
-- reads, ...}... First the hosts of workers whose leases have ended are due, and hosts that were set
-- aside until now. Then the hosts that are due longest are leased, if they are due for `unwanted`
-- ms. A lease is a sign of life for all leases of the worker here.
goes_on_when_full()
local worker, hosts, per_host, ttl = ARGV[1], tonumber(ARGV[2]), math.max(1, tonumber(ARGV[3])), tonumber(ARGV[4])
local now = now_ms()
local due_before = now - tonumber(ARGV[5])
for _, other in ipairs(redis.call('ZRANGEBYSCORE', base .. ':alive', '-inf', now)) do
  if other ~= worker then
    bury(other, now)
  end
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
    local taken, waiting = take(host, per_host)
    if #taken > 0 then  -- else a worker without the lease has acknowledged all
      redis.call('HSET', base .. ':owner', host, worker)
      redis.call('ZADD', base .. ':of:' .. worker, now, host)
      result[#result + 1] = {host, waiting, unpack(taken)}
    elseif waiting > 0 then  -- those were given up
      redis.call('ZADD', base .. ':due', now, host)
    end
  end
end
if #result > 0 then
  redis.call('ZADD', base .. ':alive', now + ttl, worker)
end
return result
