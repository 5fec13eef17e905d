-- A crawl as a whole. KEYS[1] is what the names of its keys begin with.
--
--   meta     hash   version (of the data), shards, began (ms), state ("running", "paused" or "ended")
--   worker   hash   worker -> its last sign of life, in ms
local base = KEYS[1]
local meta = base .. ':meta'

