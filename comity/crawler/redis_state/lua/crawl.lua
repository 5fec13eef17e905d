-- A crawl as a whole. KEYS[1] is what the names of its keys begin with.
--
--   meta     hash   version (of the data), shards, began (ms), state ("running", "paused" or "ended")
--   worker   hash   worker -> its last sign of life, in ms
local base = KEYS[1]
local meta = base .. ':meta'

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

