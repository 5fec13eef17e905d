-- save(ttl, most, {path, record}...): save all of them. Records that were written longer ago than
-- `ttl` ms are dropped. Of the files that other files refer to, only the `most` that were written
-- last stay.
local ttl, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = now_ms()
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], string.format('%.0f', now) .. '\n' .. ARGV[i + 1])
end
local named = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local written = tonumber(string.match(all[i + 1], '^%d+') or 0)
  if written + ttl < now then
    redis.call('HDEL', KEYS[1], all[i])
  elseif string.sub(all[i], 1, 1) ~= '/' then
    named[#named + 1] = {written, all[i]}
  end
end
table.sort(named, function(one, other)
  return one[1] > other[1] or one[1] == other[1] and one[2] < other[2]
end)
for i = most + 1, #named do
  redis.call('HDEL', KEYS[1], named[i][2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
