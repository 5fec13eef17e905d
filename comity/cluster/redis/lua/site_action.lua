-- action(field, moment, keep, longest) -> 1 if the action was not requested before. KEYS[1] is a
-- hash of requested actions: action, file and URL, a line each -> when it was requested, and after
-- a blank when it was done. `keep`: s until it is forgotten, unless a site requests it again.
-- `longest`: the longest value of `keep`.
local MOST = 100  -- fields that are forgotten at a time
local keep_until = '{' .. KEYS[1] .. '}:until'  -- zset: field -> when it is forgotten
local now = math.floor(now_ms() / 1000)
for _, field in ipairs(redis.call('ZRANGEBYSCORE', keep_until, '-inf', now, 'LIMIT', 0, MOST)) do
  redis.call('HDEL', KEYS[1], field)
  redis.call('ZREM', keep_until, field)
end
local is_new = redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', keep_until, 'GT', now + ARGV[3], ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('EXPIRE', keep_until, ARGV[4])
return is_new
