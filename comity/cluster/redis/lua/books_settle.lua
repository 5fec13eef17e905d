-- settle(key, account, amount, charged, most, is_first) -> 1. `most`: of a charge; an account with so
-- much is closed. `is_first`: "1" if the call is not repeated. Then a key without a reservation means
-- that the server has lost it, and the charge counts all the same.
local key, account, amount, charged, most, is_first = unpack(ARGV)
goes_on_when_full()
local was_reserved = redis.call('HDEL', reserved, key) == 1
local taken = redis.call('HGET', accounts, 't:' .. account)
if not taken or not was_reserved and is_first ~= '1' then
  return 1
end
local before = redis.call('HGET', accounts, 'c:' .. account)
if before ~= most then
  redis.call('HINCRBY', accounts, 'c:' .. account, charged)
end
if not at_most(redis.call('HGET', accounts, 'c:' .. account), most) then
  redis.call('HSET', accounts, 'c:' .. account, most)
end
if taken == most or not at_most(charged, amount) then
  redis.call('HSET', accounts, 't:' .. account, most)
  return 1
end
redis.call('HINCRBY', accounts, 't:' .. account, charged)
if was_reserved and amount ~= '0' then
  redis.call('HINCRBY', accounts, 't:' .. account, '-' .. amount)
end
return 1
