-- retry(most) -> how many requests wait again that no worker was to read. If it is `most`, there
-- may be more.
goes_on_when_full()
local most, now, retried = tonumber(ARGV[1]), now_ms(), 0
for _, field in ipairs(redis.call('HKEYS', base .. ':unreadable')) do
  if retried == most then
    break
  end
  local host, key = string.match(field, '^([^\n]*)\n(.*)$')
  local _, priority, body = string.match(redis.call('HGET', base .. ':unreadable', field), '^([^\n]*)\n([^\n]*)\n(.*)$')
  redis.call('HDEL', base .. ':unreadable', field)
  redis.call('HSET', base .. ':body:' .. host, key, body)
  redis.call('ZADD', base .. ':q:' .. host, priority, key)
  if redis.call('ZSCORE', base .. ':aside', host) then
    count('aside', 1)
  elseif redis.call('HEXISTS', base .. ':owner', host) == 0 then
    redis.call('ZADD', base .. ':due', 'NX', now, host)
  end
  retried = retried + 1
end
count('unreadable', -retried)
return retried
