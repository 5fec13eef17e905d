-- The queue of one shard of a crawl. KEYS[1] is what the names of its keys begin with; all have its hash tag.
--
--   due          zset   host -> when it may be leased, in ms; hosts where something waits and that nobody has
--   aside        zset   host -> when it is to be looked at again; hosts for whose requests nobody waits
--   leased       zset   host -> when its lease ends
--   owner        hash   host -> worker, of those
--   q:HOST       zset   key of a request -> -priority; those that wait. Keys of one priority go in order
--   out:HOST     zset   the same, of those that the owner of the host was given and that are not done
--   body:HOST    hash   key -> request, of both
--   seen:N       hash   digest of a fingerprint -> "", in as many buckets as hold 64 each, so that they stay compact
--   n            hash   counts: left, out, aside, put, done, filtered; and of `seen`: seen, buckets
--   tries        hash   origin -> how often in a row its policies could not be had, since when, and when it is asked again
--   put:WORKER   string what was answered to the last put of this worker, for one hour: it may be repeated
--
-- A host stands in `due`, `aside` or `leased`, or nowhere: then nothing waits for it. What is in `out:HOST` belongs to a host that is
-- leased. A lease that has ended counts until somebody else takes the host: then what was out waits again, where it was before.
local base = KEYS[1]
local counts = base .. ':n'

-- In a full memory a script is refused at its first command that needs some, but not after it has written. What does not fill the
-- memory, but is needed to empty it, begins with this, which writes nothing.
local function goes_on_when_full()
  redis.call('DEL', base .. ':none')
end

local function each(values, first, size, f)  -- Lua puts no more than some thousand values on its stack
  for i = first, #values, size do
    f(unpack(values, i, math.min(i + size - 1, #values)))
  end
end

local function count(field, by)
  if by ~= 0 then
    redis.call('HINCRBY', counts, field, by)
  end
end

-- What was out waits again, in its old place. No new keys come to be in a full memory: what is deleted goes first.
local function put_back(host, out)
  local key = base .. ':out:' .. host
  redis.call('DEL', key)
  local entries = {}
  for i = 1, #out, 2 do
    entries[#entries + 1] = out[i + 1]
    entries[#entries + 1] = out[i]
  end
  each(entries, 1, 1000, function(...)
    redis.call('ZADD', base .. ':q:' .. host, ...)
  end)
  count('out', -#out / 2)
end

local function all_back(host)
  local out = redis.call('ZRANGE', base .. ':out:' .. host, 0, -1, 'WITHSCORES')
  if #out > 0 then
    put_back(host, out)
  end
end

-- Nobody has the host any more. It stands in `place` (`due` or `aside`) until then, if something waits for it.
local function free(host, place, moment)
  redis.call('ZREM', base .. ':leased', host)
  redis.call('HDEL', base .. ':owner', host)
  local waiting = redis.call('ZCARD', base .. ':q:' .. host)
  if waiting > 0 then
    redis.call('ZADD', base .. ':' .. place, moment, host)
    if place == 'aside' then
      count('aside', waiting)
    end
  end
end

-- The hosts that were set aside until the moment are due; at most so many.
local function recall(moment, most, now)
  local hosts = redis.call('ZRANGEBYSCORE', base .. ':aside', '-inf', moment, 'LIMIT', 0, most)
  for _, host in ipairs(hosts) do
    redis.call('ZREM', base .. ':aside', host)
    count('aside', -redis.call('ZCARD', base .. ':q:' .. host))
    free(host, 'due', now)
  end
  return #hosts
end

-- The next requests of the host: key, priority, body, ... Its owner has them now.
local function take(host, most)
  local taken = redis.call('ZPOPMIN', base .. ':q:' .. host, most)
  if #taken == 0 then
    return {}
  end
  local keys, entries, result = {}, {}, {}
  for i = 1, #taken, 2 do
    keys[#keys + 1] = taken[i]
    entries[#entries + 1] = taken[i + 1]
    entries[#entries + 1] = taken[i]
  end
  each(entries, 1, 1000, function(...)
    redis.call('ZADD', base .. ':out:' .. host, ...)
  end)
  count('out', #keys)
  each(keys, 1, 1000, function(...)
    for _, body in ipairs(redis.call('HMGET', base .. ':body:' .. host, ...)) do
      local i = #result / 3
      result[#result + 1] = keys[i + 1]
      result[#result + 1] = taken[2 * i + 2]
      result[#result + 1] = body or ''
    end
  end)
  return result
end

