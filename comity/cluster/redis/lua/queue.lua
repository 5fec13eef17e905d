-- The queue of one shard of a crawl. KEYS[1] is the prefix of the names of its keys, with the hash
-- tag of the shard.
--
--   due          zset   host -> when it may be leased, in ms; hosts with waiting requests and no
--                       owner
--   aside        zset   host -> when to look at it again; hosts for which the crawl does not wait
--   owner        hash   leased host -> worker
--   of:WORKER    zset   leased host -> when the worker leased it, in ms
--   alive        zset   worker with leases -> when all its leases end, in ms, unless it gives
--                       another sign of life
--   q:HOST       zset   key of a waiting request -> -priority. Keys of one priority go in order
--   out:HOST     zset   key -> -priority, of requests that the owner was given and that are not
--                       done
--   body:HOST    hash   key -> request, of waiting requests and of those that are out
--   seen:N       hash   digest of a fingerprint -> the run in which it was put last, in as many
--                       buckets as hold 64 each, so that they stay compact
--   reads:HOST   hash   key -> how many workers died while they read the request; only of requests
--                       that were out when their worker died
--   unreadable   hash   HOST, a line end and a key -> the reason why no worker is to read the
--                       request, its priority and the request, a line each
--   n            hash   counts: out, aside, put, done, filtered, unreadable; and of `seen`: seen,
--                       buckets. Requests that were put, and are not done or unreadable, are left
--   tries        hash   origin -> how often in a row its policies could not be fetched, since when,
--                       and when they are asked for again
--   put:WORKER   string the answer to the last put of this worker, for one hour: the put may be
--                       repeated
--
-- A host is in `due`, `aside` or `owner`, or in none of them if it has no waiting requests.
-- Requests in `out:HOST` belong to a leased host. The leases of a worker end together. They count
-- until another worker leases hosts here. Then the requests that were out wait again, in their old
-- places.
local base = KEYS[1]
local counts = base .. ':n'
local MOST_READS = 3  -- if so many workers die while they read a request, no other is to read it

-- In a full memory a script is refused at its first command that needs memory, but not after it has
-- written. Scripts that are needed to empty the memory begin with this command, which writes
-- nothing.
local function goes_on_when_full()
  redis.call('DEL', base .. ':none')
end

-- Lua can put only some thousand values on its stack.
local function each(values, first, size, f)
  for i = first, #values, size do
    f(unpack(values, i, math.min(i + size - 1, #values)))
  end
end

local function count(field, by)
  if by ~= 0 then
    redis.call('HINCRBY', counts, field, by)
  end
end

-- Let the requests that the owner of the host had out wait again, in their old places. `is_dead`:
-- the owner is dead, and one of the requests may be the cause. The deletion comes first, so that a
-- full memory gets no new keys.
local function all_back(host, is_dead)
  local out = redis.call('ZRANGE', base .. ':out:' .. host, 0, -1, 'WITHSCORES')
  if #out == 0 then
    return
  end
  redis.call('DEL', base .. ':out:' .. host)
  local entries = {}
  for i = 1, #out, 2 do
    entries[#entries + 1] = out[i + 1]
    entries[#entries + 1] = out[i]
    if is_dead then
      redis.call('HSETNX', base .. ':reads:' .. host, out[i], 0)
    end
  end
  each(entries, 1, 1000, function(...)
    redis.call('ZADD', base .. ':q:' .. host, ...)
  end)
  count('out', -#out / 2)
end

-- Let no worker read the request any more. It does not wait, and is not out.
local function give_up(host, key, priority, body, why)
  redis.call('HSET', base .. ':unreadable', host .. '\n' .. key, why .. '\n' .. priority .. '\n' .. body)
  redis.call('HDEL', base .. ':body:' .. host, key)
  redis.call('HDEL', base .. ':reads:' .. host, key)
  count('unreadable', 1)
end

-- Put the host into `place` (`due` or `aside`) until the moment, if it has waiting requests.
local function let_wait(host, place, moment)
  local waiting = redis.call('ZCARD', base .. ':q:' .. host)
  if waiting > 0 then
    redis.call('ZADD', base .. ':' .. place, moment, host)
    if place == 'aside' then
      count('aside', waiting)
    end
  end
end

-- Take the lease of the host away from the worker.
local function free(host, worker, place, moment)
  redis.call('HDEL', base .. ':owner', host)
  redis.call('ZREM', base .. ':of:' .. worker, host)
  if redis.call('EXISTS', base .. ':of:' .. worker) == 0 then
    redis.call('ZREM', base .. ':alive', worker)
  end
  let_wait(host, place, moment)
end

-- Make all hosts of a dead worker due, and return their number.
local function bury(worker, now)
  local hosts = redis.call('ZRANGE', base .. ':of:' .. worker, 0, -1)
  for _, host in ipairs(hosts) do
    all_back(host, true)
    free(host, worker, 'due', now)
  end
  return #hosts
end

-- Make the hosts due that were set aside until the moment; at most so many.
local function recall(moment, most, now)
  local hosts = redis.call('ZRANGEBYSCORE', base .. ':aside', '-inf', moment, 'LIMIT', 0, most)
  for _, host in ipairs(hosts) do
    redis.call('ZREM', base .. ':aside', host)
    count('aside', -redis.call('ZCARD', base .. ':q:' .. host))
    let_wait(host, 'due', now)
  end
  return #hosts
end

-- Give the next requests of the host to its owner: key, priority, body, how many workers died while
-- they read it (or -1 if its worker never died), ...; and how many more wait. The first command that
-- writes frees memory, so no other one is refused in a full memory.
local function take(host, most)
  local taken = redis.call('ZPOPMIN', base .. ':q:' .. host, most)
  if #taken == 0 then
    return {}, 0
  end
  local keys, bodies, reads, entries, result = {}, {}, {}, {}, {}
  for i = 1, #taken, 2 do
    keys[#keys + 1] = taken[i]
  end
  each(keys, 1, 1000, function(...)
    for _, body in ipairs(redis.call('HMGET', base .. ':body:' .. host, ...)) do
      bodies[#bodies + 1] = body or ''
    end
    for _, number in ipairs(redis.call('HMGET', base .. ':reads:' .. host, ...)) do
      reads[#reads + 1] = tonumber(number or -1)
    end
  end)
  for i, key in ipairs(keys) do
    if reads[i] >= MOST_READS then
      give_up(host, key, taken[2 * i], bodies[i], MOST_READS .. ' workers died while they read it')
    else
      entries[#entries + 1] = taken[2 * i]
      entries[#entries + 1] = key
      result[#result + 1] = key
      result[#result + 1] = taken[2 * i]
      result[#result + 1] = bodies[i]
      result[#result + 1] = reads[i]
    end
  end
  each(entries, 1, 1000, function(...)
    redis.call('ZADD', base .. ':out:' .. host, ...)
  end)
  count('out', #entries / 2)
  return result, #taken < 2 * most and 0 or redis.call('ZCARD', base .. ':q:' .. host)
end
