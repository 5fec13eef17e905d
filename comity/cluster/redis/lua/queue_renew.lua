-- renew(worker, ttl, host...) -> the hosts that the worker has lost.
goes_on_when_full()
local lost, until_ms = {}, now_ms() + tonumber(ARGV[2])
for i = 3, #ARGV do
  if redis.call('HGET', base .. ':owner', ARGV[i]) == ARGV[1] then
    redis.call('ZADD', base .. ':leased', until_ms, ARGV[i])
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
