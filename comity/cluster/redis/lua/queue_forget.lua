-- forget(kept, bucket, number) -> the next bucket, or -1 if this was the last one. The fingerprints
-- that were put last before the run `kept` are deleted from so many buckets of `seen`.
local kept, first = tonumber(ARGV[1]), tonumber(ARGV[2])
local buckets = tonumber(redis.call('HGET', counts, 'buckets') or 1)
local past = math.min(first + tonumber(ARGV[3]), buckets)
for bucket = first, past - 1 do
  local key, old = base .. ':seen:' .. bucket, {}
  local found = redis.call('HGETALL', key)
  for i = 1, #found, 2 do
    if (tonumber(found[i + 1]) or kept) < kept then
      old[#old + 1] = found[i]
    end
  end
  each(old, 1, 1000, function(...)
    redis.call('HDEL', key, ...)
  end)
  count('seen', -#old)
end
return past < buckets and past or -1
