-- A crawl as a whole. KEYS[1] is the prefix of the names of its keys.
--
--   meta     hash   version (of the data), shards, began (ms), state ("running", "paused" or
--                   "ended"); run (how often it was begun); emptied (the last run that began with
--                   an empty queue: the keys of the shards have its number), kept (the first run
--                   of which fingerprints count as seen); put_before, done_before, filtered_before
--                   (the counts of the shards when the run began); swept (the shards of so many
--                   runs are deleted), forgotten (the fingerprints of earlier runs than this one
--                   are deleted); finished (ms), and put (how many requests of the run had been put
--                   by then);
--                   settings (JSON, agreement.py), and deployed (how often they were replaced);
--                   reason and ended (ms): why and when the state became "ended"; left, died: how
--                   many workers have left the run, and how many were found dead
--   worker   hash   worker -> its last sign of life, in ms
--   shards   hash   counts: of all shards, as a worker noted them when it looked at them; asked (ms):
--                   when the last worker was asked to look
--   told:WORKER     hash   name -> count, as the worker told it last; since it began in this run
--   told     hash   name -> the sum of the counts of workers that are gone
--   runs     hash   run -> when it began, in ms
--   state    hash   key of the spider's state -> its value, packed; "" for a deleted key
--   changed  zset   key of the spider's state -> the number of its last change
--   accounts, reserved     the books of payments: see books.lua
local base = KEYS[1]
local meta = base .. ':meta'


-- {its state, its run, the begin of the run, the number of workers with a sign of life within `ttl`
-- ms, how often its settings were replaced}; nil if there is no such crawl. Without `ttl` workers are
-- not counted. The begin distinguishes the crawl from others of its name.
local function told(ttl)
  local values = redis.call('HMGET', meta, 'state', 'run', 'began', 'deployed')
  if not values[1] then
    return false
  end
  local alive, since = 0, now_ms() - (ttl or 0)
  for _, moment in ipairs(ttl and redis.call('HVALS', base .. ':worker') or {}) do
    if tonumber(moment) > since then
      alive = alive + 1
    end
  end
  return {values[1], tonumber(values[2]), values[3], alive, tonumber(values[4] or 0)}
end

-- {run, emptied, kept, swept, forgotten, put_before, done_before, filtered_before}
local function runs()
  local values = redis.call('HMGET', meta, 'run', 'emptied', 'kept', 'swept', 'forgotten', 'put_before', 'done_before', 'filtered_before')
  for i = 1, 3 do
    values[i] = tonumber(values[i] or values[1])
  end
  for i = 4, 8 do
    values[i] = tonumber(values[i] or 0)
  end
  return values
end

-- Forget a worker, and keep its counts. `how`: "left" or "died".
local function forget(worker, how)
  if redis.call('HDEL', base .. ':worker', worker) == 1 and redis.call('EXISTS', meta) == 1 then
    redis.call('HINCRBY', meta, how, 1)
  end
  local key = base .. ':told:' .. worker
  local counts = redis.call('HGETALL', key)
  for i = 1, #counts, 2 do
    redis.call('HINCRBY', base .. ':told', counts[i], counts[i + 1])
  end
  redis.call('UNLINK', key)
end

-- Delete the counts of all workers.
local function forget_counts()
  for _, worker in ipairs(redis.call('HKEYS', base .. ':worker')) do
    redis.call('UNLINK', base .. ':told:' .. worker)
  end
  redis.call('UNLINK', base .. ':told')
end
