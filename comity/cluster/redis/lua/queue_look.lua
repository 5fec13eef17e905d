-- look() -> hosts that can be leased now, ms until the next one can (-1: there is none), leased
-- hosts, hosts that are set aside, all hosts, left, out, aside, put, done, filtered, seen,
-- unreadable.
local now, next, ready, ended = now_ms(), -1, 0, 0

-- True if an entry of the sorted set is due; `next` is when the first of all is.
local function is_due(place)
  local first = redis.call('ZRANGE', base .. place, 0, 0, 'WITHSCORES')[2]
  local wait = first and math.max(tonumber(first) - now, 0)
  if wait and (next < 0 or wait < next) then
    next = wait
  end
  return wait == 0
end

for _, place in ipairs({':due', ':aside'}) do
  if is_due(place) then
    ready = ready + redis.call('ZCOUNT', base .. place, '-inf', now)
  end
end
if is_due(':alive') then
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', base .. ':alive', '-inf', now)) do
    ended = ended + redis.call('ZCARD', base .. ':of:' .. worker)
  end
end
local leased = redis.call('HLEN', base .. ':owner')
local set_aside = redis.call('ZCARD', base .. ':aside')
local hosts = leased + redis.call('ZCARD', base .. ':due') + set_aside
local n = redis.call('HMGET', counts, 'out', 'aside', 'put', 'done', 'filtered', 'seen', 'unreadable')
for i = 1, 7 do
  n[i] = tonumber(n[i] or 0)
end
local left = n[3] - n[4] - n[7]
return {ready + ended, next, leased - ended, set_aside, hosts, left, unpack(n)}
