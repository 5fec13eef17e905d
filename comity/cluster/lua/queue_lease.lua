-- lease(worker, hosts, per_host, ttl, unwanted) -> {host, how many more wait, key, priority, body, reads, ...}...
-- First what the owners of ended leases had out waits again, and what was set aside until now is due; then the hosts that are due
-- longest are leased, of those that have been due for `unwanted` ms.
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
    if #taken > 0 then  -- else somebody who had lost it said what was done meanwhile
      redis.call('ZADD', base .. ':leased', now + ttl, host)
      redis.call('HSET', base .. ':owner', host, worker)
      result[#result + 1] = {host, redis.call('ZCARD', base .. ':q:' .. host), unpack(taken)}
    elseif redis.call('EXISTS', base .. ':q:' .. host) == 1 then  -- what was taken is not to be read
      redis.call('ZADD', base .. ':due', now, host)
    end
  end
end
return result
