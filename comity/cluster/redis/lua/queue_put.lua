-- put(worker, is_first, {host, digest of its fingerprint or "", key, priority, body}...) -> "1" for
-- each new request, or "0" if it was seen. `is_first`: "1" if the worker had its answer to its last
-- put here; otherwise a repeated put gets its first answer again. With a full memory it is refused
-- as a whole: the first command that needs memory is refused, before anything is written.
local worker, is_first = ARGV[1], ARGV[2] == '1'
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
  for _, digest in ipairs(redis.call('HKEYS', base .. ':seen:' .. old)) do
    if struct.unpack('>I4', digest) % (2 * power) == new then
      moved[#moved + 1] = digest
    end
  end
  if #moved > 0 then
    each(moved, 1, 1000, function(...)
      redis.call('HDEL', base .. ':seen:' .. old, ...)
    end)
    local entries = {}
    for _, digest in ipairs(moved) do
      entries[#entries + 1] = digest
      entries[#entries + 1] = ''
    end
    each(entries, 1, 1000, function(...)
      redis.call('HSET', base .. ':seen:' .. new, ...)
    end)
  end
  power = low(buckets)
end

local function is_new(digest)
  if redis.call('HSETNX', base .. ':seen:' .. bucket_of(digest), digest, '') == 0 then
    return false
  end
  seen = seen + 1
  if seen > FULL * buckets then
    split()
  end
  return true
end

local result, hosts, put, filtered = {}, {}, tonumber(known[3] or 0), tonumber(known[4] or 0)
for i = 3, #ARGV, 5 do
  local host, digest, key, priority, body = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local answer = answered[key]
  if not answer then
    if digest ~= '' and not is_new(digest) then
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
