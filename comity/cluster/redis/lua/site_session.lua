-- session(digest, moment, keep) -> when the host was first seen with the secret of this digest;
-- this moment if it never was. KEYS[1] is a hash: digest -> when it was first seen, and after a
-- blank when it was last seen, by the server's clock. Digests that were not seen for `keep` s are
-- forgotten.
local now, keep = math.floor(now_ms() / 1000), tonumber(ARGV[3])
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local last = tonumber(string.match(all[i + 1], ' (%d+)$'))
  if last + keep < now then
    redis.call('HDEL', KEYS[1], all[i])
  end
end
local first = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or ARGV[2], '^%S+')
redis.call('HSET', KEYS[1], ARGV[1], first .. ' ' .. now)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return first
