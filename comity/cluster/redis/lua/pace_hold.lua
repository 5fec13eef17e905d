-- hold(owner, ttl, {turn, limit, keep}...): these starts are still in flight, even if the server
-- has lost them, or considered the owner dead. It is a sign of life in the same step. Settled
-- starts stay settled.
goes_on_when_full()
redis.call('ZADD', base .. ':beat', text(now_us()), ARGV[1])
for i = 3, #ARGV, 3 do
  local key, keep = limit_key(ARGV[i + 1]), ARGV[i + 2]
  redis.call('ZADD', key, 'NX', text(FLIES), ARGV[1] .. ':' .. ARGV[i] .. ':' .. keep)
  last(key, tonumber(keep) + 2 * tonumber(ARGV[2]))
end
return 1
