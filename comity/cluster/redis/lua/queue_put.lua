-- put(worker, is_first, run, kept, {host, digest of its fingerprint or "", first, key, priority,
-- body}...) -> "1" for each new request, or "0" if it was seen in the run `first` or later. `first`:
-- "" stands for `kept`. `is_first`: "1" if the worker had its answer to its last put here; otherwise
-- a repeated put gets its first answer again. With a full memory it is refused as a whole: the first
-- command that needs memory is refused, before anything is written.
local worker, is_first, run, kept = ARGV[1], ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local record = base .. ':put:' .. worker
local answered = {}
if not is_first then
  local before = redis.call('GET', record)
  if before then
    answered = cmsgpack.unpack(before)
  end
end

local known = redis.call('HMGET', counts, 'seen', 'buckets', 'put', 'filtered')
local seen, buckets = tonumber(known[1] or 0), tonumber(known[2] or 1)
local FULL = 64

local function low(of)  -- the greatest power of two up to `of`
  local power = 1
  while power * 2 <= of do
    power = power * 2
  end
  return power
end

-- Linear hashing: the last bits of the digest are the number of the bucket, or one bit less if that
-- bucket does not exist yet.
local power = low(buckets)
local function bucket_of(digest)
  local hash = struct.unpack('>I4', digest)
  local bucket = hash % (2 * power)
  if bucket >= buckets then
    bucket = hash % power
  end
  return bucket
end

local function split()
  local new = buckets
  local old = new - power
  buckets = buckets + 1
  local moved = {}
  local entries = {}
  local found = redis.call('HGETALL', base .. ':seen:' .. old)
  for i = 1, #found, 2 do
    if struct.unpack('>I4', found[i]) % (2 * power) == new then
      moved[#moved + 1] = found[i]
      entries[#entries + 1] = found[i]
      entries[#entries + 1] = found[i + 1]
    end
  end
  if #moved > 0 then
    each(moved, 1, 1000, function(...)
      redis.call('HDEL', base .. ':seen:' .. old, ...)
    end)
    each(entries, 1, 1000, function(...)
      redis.call('HSET', base .. ':seen:' .. new, ...)
    end)
  end
  power = low(buckets)
end

local function is_new(digest, first)
  local bucket = base .. ':seen:' .. bucket_of(digest)
  if redis.call('HSETNX', bucket, digest, run) == 0 then
    -- Digests of earlier versions have no run.
    if (tonumber(redis.call('HGET', bucket, digest)) or kept) >= first then
      return false
    end
    redis.call('HSET', bucket, digest, run)
    return true
  end
  seen = seen + 1
  if seen > FULL * buckets then
    split()
  end
  return true
end

local result, hosts, put, filtered = {}, {}, tonumber(known[3] or 0), tonumber(known[4] or 0)
for i = 5, #ARGV, 6 do
  local host, digest, first, key, priority, body = unpack(ARGV, i, i + 5)
  local answer = answered[key]
  if not answer then
    if digest ~= '' and not is_new(digest, tonumber(first) or kept) then
      answer = '0'
      filtered = filtered + 1
    else
      answer = '1'
      if redis.call('HSETNX', base .. ':body:' .. host, key, body) == 1 then
        redis.call('ZADD', base .. ':q:' .. host, priority, key)
        hosts[host] = (hosts[host] or 0) + 1
        put = put + 1
      end
    end
    answered[key] = answer
  end
  result[#result + 1] = answer
end
for host, number in pairs(hosts) do
  if redis.call('HEXISTS', base .. ':owner', host) == 0 then
    if redis.call('ZSCORE', base .. ':aside', host) then
      count('aside', number)
    else
      redis.call('ZADD', base .. ':due', 'NX', now_ms(), host)
    end
  end
end
redis.call('SET', record, cmsgpack.pack(answered), 'PX', 3600000)
redis.call('HSET', counts, 'seen', seen, 'buckets', buckets, 'put', put, 'filtered', filtered)
return table.concat(result)
