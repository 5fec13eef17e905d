-- reserve(key, account, amount, total) -> {1, replicas that must have it}; {0} if more than `total`
-- would be taken; {-1} if there is no such account.
local field = 't:' .. ARGV[2]
local before = redis.call('HGET', accounts, field)
if not before then
  return {-1}
end
goes_on_when_full()
if redis.call('HEXISTS', reserved, ARGV[1]) == 0 then
  redis.call('HINCRBY', accounts, field, ARGV[3])
  if not at_most(redis.call('HGET', accounts, field), ARGV[4]) then
    redis.call('HSET', accounts, field, before)
    return {0}
  end
  redis.call('HSET', reserved, ARGV[1], ARGV[3])
end
return {1, replicas()}
