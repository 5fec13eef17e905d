-- accounts() -> {account, the amount that is taken, the amount that was charged}...
local result, values = {}, redis.call('HGETALL', accounts)
for i = 1, #values, 2 do
  local account = string.match(values[i], '^t:(.*)$')
  if account then
    result[#result + 1] = {account, values[i + 1], redis.call('HGET', accounts, 'c:' .. account)}
  end
end
return result
