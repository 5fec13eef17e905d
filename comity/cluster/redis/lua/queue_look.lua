-- look() -> hosts that can be leased now, ms until the next one can (-1: there is none), leased
-- hosts, hosts that are set aside, all hosts, left, out, aside, put, done, filtered, seen,
-- unreadable.
local now = now_ms()
local function before(place)
  return redis.call('ZCOUNT', base .. place, '-inf', now)
end

local next = -1
for _, place in ipairs({':due', ':leased', ':aside'}) do
  local first = redis.call('ZRANGE', base .. place, 0, 0, 'WITHSCORES')[2]
  local wait = first and math.max(tonumber(first) - now, 0)
  if wait and (next < 0 or wait < next) then
    next = wait
  end
end
local ended = before(':leased')
local leased = redis.call('ZCARD', base .. ':leased')
local set_aside = redis.call('ZCARD', base .. ':aside')
local hosts = leased + redis.call('ZCARD', base .. ':due') + set_aside
local n = redis.call('HMGET', counts, 'left', 'out', 'aside', 'put', 'done', 'filtered', 'seen', 'unreadable')
for i = 1, 8 do
  n[i] = tonumber(n[i] or 0)
end
return {ended + before(':due') + before(':aside'), next, leased - ended, set_aside, hosts, unpack(n)}
