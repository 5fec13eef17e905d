-- exchange(change, {key, value}...) -> the number of the last change, {key, value}... that were
-- changed after `change`; nil if there is no such crawl. It stores these values of the spider's
-- state first. A deleted key has the value "".
if redis.call('EXISTS', meta) == 0 then
  return false
end
local state, changed = base .. ':state', base .. ':changed'
local last = redis.call('ZREVRANGE', changed, 0, 0, 'WITHSCORES')
local change = tonumber(last[2] or 0)
for i = 2, #ARGV, 2 do
  change = change + 1
  redis.call('HSET', state, ARGV[i], ARGV[i + 1])
  redis.call('ZADD', changed, change, ARGV[i])
end
local result = {change}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', changed, '(' .. ARGV[1], '+inf')) do
  result[#result + 1] = key
  result[#result + 1] = redis.call('HGET', state, key)
end
return result
