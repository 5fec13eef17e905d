-- The pace of the hosts of one shard. KEYS[1] is what the names of its keys begin with; all have its hash tag. Times are in us.
--
--   t:LIMIT   zset     OWNER:TURN:KEEP -> when the start was settled; FLIES while it is in flight. KEEP: us that it counts then
--   beat      zset     owner -> its last sign of life
--   p:HOST    string   the penalty of the host: when it began, until when it lasts, and the last step, whose length the host did
--                      not say; kept until another one would begin anew
--   run       hash     id (of the server's process), looked (when that was last seen), before (the id of the one before it), since
--                      (when this one was first seen after that)
--
-- A start in flight counts as started now, as long as its owner gives signs of life, and then as started when the owner died: its
-- request may have gone out after its last sign of life, so that is `ttl` after it. Who is granted a start gives its sign of life
-- in the same step.
--
-- After the server was started anew, or a replica has taken its place, its last second may be missing: then nothing is granted
-- before a whole window is over. Who connects looks whether it is another one, and turns do twice a second: in a Cluster a replica
-- may take the place of a node unnoticed, but not as fast.
local base = KEYS[1]
local FLIES = 8e15
local SECOND = 1000000
local DAY = 86400 * SECOND

local function text(us)  -- Lua would write it with 14 digits
  return string.format('%.0f', us)
end

local function goes_on_when_full()  -- what comes after a write is not refused where the memory is full; this writes nothing
  redis.call('DEL', base .. ':none')
end

-- When the penalty of the host began, until when it lasts, and its last step. What began later than now began before the clock was
-- set back.
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

-- The key of a limit, and that it lasts as long as anything in it counts: `keep` us at least.
local function limit_key(limit)
  return base .. ':t:' .. limit
end

local function last(key, keep)
  local ms = math.ceil(keep / 1000) + 1000
  if redis.call('PTTL', key) < ms then
    redis.call('PEXPIRE', key, text(2 * ms))  -- twice, so that it is not written each time
  end
end

-- When the server's process was seen first, where one before it may have known more; 0 where none did. And its id. `known`: that
-- of the process that somebody saw last, if any.
local function began(now, is_sure, known)
  local run = redis.call('HMGET', base .. ':run', 'id', 'looked', 'since', 'before')
  local since, before = tonumber(run[3] or 0), run[4] or ''
  if not run[1] and not known then  -- it was here when this worker connected: the data were erased, and starts with them
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
