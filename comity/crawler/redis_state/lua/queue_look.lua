-- look() -> hosts that can be leased now, ms until the next one can, hosts that are leased, hosts in all, left, out, put, done,
-- filtered, seen. "ms": -1 where there is none.
local now = now_ms()
local ended = redis.call('ZCOUNT', base .. ':leased', '-inf', now)
local ready = ended + redis.call('ZCOUNT', base .. ':due', '-inf', now)
local first = redis.call('ZRANGE', base .. ':due', 0, 0, 'WITHSCORES')[2]
local first_ended = redis.call('ZRANGE', base .. ':leased', 0, 0, 'WITHSCORES')[2]
local next = -1
if first or first_ended then
  next = math.max(math.min(tonumber(first or first_ended), tonumber(first_ended or first)) - now, 0)
end
local leased = redis.call('ZCARD', base .. ':leased')
local n = redis.call('HMGET', counts, 'left', 'out', 'put', 'done', 'filtered', 'seen')
for i = 1, 6 do
  n[i] = tonumber(n[i] or 0)
end
return {ready, next, leased - ended, leased + redis.call('ZCARD', base .. ':due'), unpack(n)}
