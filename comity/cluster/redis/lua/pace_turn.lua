-- turn(owner, turn, ttl, host, limit...) -> {1}, or {0, us until it may be asked again, the number
-- of the limit that decides; 0 for the penalty of the host}. A limit is: name, keep, us until
-- starts in flight are asked about again, ":TURN:TURN:" of the owner's starts in flight under it,
-- the number of windows, and for each window: requests, us, begin and end in us of the day, or -1.
--
-- The turn is granted under all limits, or under none. If a turn is asked for again, its first
-- grant does not count.
local owner, turn, ttl, host = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now = now_us()
local beat = redis.call('ZSCORE', base .. ':beat', owner)
if not beat or math.abs(now - tonumber(beat)) > ttl / 8 then  -- not each time: writing is slower
  goes_on_when_full()
  redis.call('ZADD', base .. ':beat', text(now), owner)
end

local since = math.min(began(now, false), now)

-- These functions do the same as `Window.holds`, `Window.ends` and `earliest` in
-- comity/policies/syntax/windows.py.
local function holds(window, at)
  local length = (window.ends - window.begins) % DAY
  return window.begins < 0 or (at - window.begins) % DAY < (length == 0 and DAY or length)
end

local function ends(window, at)
  if window.begins < 0 or window.begins == window.ends then
    return math.huge
  end
  return at + DAY - (at - window.ends) % DAY
end

-- `stamps`: newest first.
local function earliest(windows, stamps, flying)
  local due, later = now, true
  while later and due < now + DAY do
    later = false
    for _, window in ipairs(windows) do
      local stamp = since
      if window.requests <= flying then
        stamp = now
      elseif stamps[window.requests - flying] then
        stamp = math.max(since, math.min(stamps[window.requests - flying], now))
      end
      local free = stamp + window.us
      if free > due and holds(window, due) then
        due, later = math.min(free, ends(window, due)), true
      end
    end
  end
  return due
end

local died = {}  -- owner -> when it died; false: it lives

local function death(other)
  if died[other] == nil then
    local beat = redis.call('ZSCORE', base .. ':beat', other)
    if not beat then
      died[other] = now
    elseif tonumber(beat) > now + SECOND then  -- the clock was set back
      goes_on_when_full()
      redis.call('ZADD', base .. ':beat', text(now), other)
      died[other] = false
    else
      local moment = tonumber(beat) + ttl
      died[other] = moment <= now and moment
    end
  end
  return died[other]
end

-- The number of starts in flight under a limit. Starts of dead owners are settled under another
-- name, because their owner may only have been slow.
local function in_flight(key, own)
  local flying = 0
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, text(FLIES), '+inf')) do
    local other, number, keep = string.match(member, '^(%w+):(%d+):(%d+)$')
    local moment
    if other ~= owner then
      moment = death(other)
    elseif number == turn then
      moment = nil
      flying = flying - 1  -- it is asked for again
    elseif not string.find(own, ':' .. number .. ':', 1, true) then
      moment = now
    end
    if moment then
      redis.call('ZREM', key, member)
      redis.call('ZADD', key, text(moment), other .. '-:' .. number .. ':' .. keep)
    else
      flying = flying + 1
    end
  end
  return flying
end

local due, latest, limits, i = now, 0, {}, 5
while ARGV[i] do
  local limit = {key = limit_key(ARGV[i]), keep = tonumber(ARGV[i + 1]), windows = {}}
  limits[#limits + 1] = limit
  local soon, own, most = tonumber(ARGV[i + 2]), ARGV[i + 3], 0
  local windows = tonumber(ARGV[i + 4])
  i = i + 5
  for n = 1, windows do
    limit.windows[n] = {
      requests = tonumber(ARGV[i]), us = tonumber(ARGV[i + 1]), begins = tonumber(ARGV[i + 2]), ends = tonumber(ARGV[i + 3]),
    }
    most = math.max(most, limit.windows[n].requests)
    i = i + 4
  end
  if windows > 0 then
    local flying = in_flight(limit.key, own)
    local stamps = {}
    local settled = {}
    if limit.keep > 0 then
      settled = redis.call('ZREVRANGEBYSCORE', limit.key, '(' .. text(FLIES), '-inf', 'WITHSCORES', 'LIMIT', 0, most)
    end
    for n = 1, #settled, 2 do
      local stamp = tonumber(settled[n + 1])
      if stamp > now + SECOND then  -- it was written before the clock was set back
        goes_on_when_full()
        redis.call('ZADD', limit.key, text(now), settled[n])
        stamp = now
      end
      stamps[#stamps + 1] = stamp
    end
    local free = earliest(limit.windows, stamps, flying)
    for _, window in ipairs(limit.windows) do
      if window.requests <= flying and holds(window, now) then
        -- The starts may be cancelled, or their owner may be dead.
        free = math.min(math.max(free, now + soon), now + ttl)
        break
      end
    end
    if free > due then
      due, latest = free, #limits
    end
  end
end

local _, until_us = penalty(host, now)
if until_us > due then
  due, latest = until_us, 0
end
if due > now then
  return {0, math.ceil(due - now), latest}
end
goes_on_when_full()
for _, limit in ipairs(limits) do
  if #limit.windows > 0 then
    redis.call('ZADD', limit.key, text(FLIES), owner .. ':' .. turn .. ':' .. text(limit.keep))
    last(limit.key, limit.keep + 2 * ttl)
  end
end
return {1}
