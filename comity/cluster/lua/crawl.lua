-- A crawl as a whole. KEYS[1] is what the names of its keys begin with.
--
--   meta     hash   version (of the data), shards, began (ms), state ("running", "paused" or "ended"); run (how often it was begun,
--                   where that is more than once), swept (of how many runs nothing is left); finished (ms), and put (how many
--                   requests had been put by then)
--   worker   hash   worker -> its last sign of life, in ms
local base = KEYS[1]
local meta = base .. ':meta'


-- {its state, its run, when that began: what tells it from another crawl of its name, how many workers have given a sign of life for
-- less than `ttl` ms}; nil where there is no such crawl.
local function told(ttl)
  local values = redis.call('HMGET', meta, 'state', 'run', 'began')
  if not values[1] then
    return false
  end
  local alive, since = 0, now_ms() - ttl
  for _, moment in ipairs(redis.call('HVALS', base .. ':worker')) do
    if tonumber(moment) > since then
      alive = alive + 1
    end
  end
  return {values[1], tonumber(values[2] or 1), values[3] or '', alive}
end
