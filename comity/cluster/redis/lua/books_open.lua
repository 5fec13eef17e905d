-- open(account...) -> {1, replicas that must have it}. Accounts that exist stay as they are.
goes_on_when_full()
for _, account in ipairs(ARGV) do
  redis.call('HSETNX', accounts, 't:' .. account, 0)
  redis.call('HSETNX', accounts, 'c:' .. account, 0)
end
return {1, replicas()}
