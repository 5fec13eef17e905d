-- exchange(change, {key, value}...) -> the number of the last change, {key, value}... that were
-- changed after `change`. It stores these values of the spider's state first, if there is such a
-- crawl. A deleted key has the value "".
if redis.call('EXISTS', meta) == 0 then
  return {0}
end
redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
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
