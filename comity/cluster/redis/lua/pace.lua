-- The pace of the hosts of one shard. KEYS[1] is the prefix of the names of its keys, with the hash
-- tag of the shard. Times are in us.
--
--   t:LIMIT   zset     OWNER:TURN:KEEP -> when the start was settled; FLIES while it is in flight.
--                      KEEP: us for which it counts after that
--   beat      zset     owner -> its last sign of life
--   p:HOST    string   the penalty of the host: its begin, its end, and the last step whose length
--                      the host did not give; kept until another penalty would begin anew
--   run       hash     id (of the server's process), looked (when the id was last read), before
--                      (the id before), since (when the present id was first read after another
--                      one)
--
-- A start in flight counts as started now, as long as its owner gives signs of life. Then it counts
-- as started when the owner died: `ttl` after its last sign of life, because the request may have
-- been sent until then. The step that grants a start also gives a sign of life of its owner.
--
-- After the server was started anew, or a replica has taken its place, its last second may be
-- missing. Then no start is granted before a whole window is over. Each new connection checks for
-- another server, and turns check twice a second: in a Cluster a replica may take the place of a
-- node unnoticed, but not faster than that.
local base = KEYS[1]
local FLIES = 8e15
local SECOND = 1000000
local DAY = 86400 * SECOND

local function text(us)  -- Lua would write it with 14 digits
  return string.format('%.0f', us)
end

-- After a write, no command is refused for a full memory. This one writes nothing.
local goes_on = false
local function goes_on_when_full()
  if not goes_on then
    redis.call('DEL', base .. ':none')
    goes_on = true
  end
end

-- The begin and the end of the host's penalty, and its last step. A begin that is later than now is
-- from before the clock was set back.
local function penalty(host, now)
  local value = redis.call('GET', base .. ':p:' .. host)
  if not value then
    return 0, 0, 0
  end
  local began, until_us, step = string.match(value, '^(%d+) (%d+) (%d+)$')
  began, until_us, step = tonumber(began), tonumber(until_us), tonumber(step)
  if began > now + SECOND then
    began, until_us = now, now + until_us - began
  end
  return began, until_us, step
end

-- The key of a limit. `last` lets it last as long as its starts count: `keep` us at least.
local function limit_key(limit)
  return base .. ':t:' .. limit
end

local function last(key, keep)
  local ms = math.ceil(keep / 1000) + 1000
  if redis.call('PTTL', key) < ms then
    redis.call('PEXPIRE', key, text(2 * ms))  -- twice as long, to write it less often
  end
end

-- When the server's process was first seen, if an earlier process may have known more; else 0. And
-- its id. `known`: the id of the process that the caller saw last, or nil.
local function began(now, is_sure, known)
  local run = redis.call('HMGET', base .. ':run', 'id', 'looked', 'since', 'before')
  local since, before = tonumber(run[3] or 0), run[4] or ''
  -- The id was here when this worker connected: the data were erased, with their starts.
  if not run[1] and not known then
    since = now
  end
  if not is_sure and math.abs(now - tonumber(run[2] or 0)) < SECOND / 2 then
    return since
  end
  local id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  for _, other in ipairs({run[1] or '', known or ''}) do
    if other ~= '' and other ~= id and other ~= before then
      since, before = now, other
    end
  end
  goes_on_when_full()
  redis.call('HSET', base .. ':run', 'id', id, 'looked', text(now), 'since', text(since), 'before', before)
  return since, id
end
