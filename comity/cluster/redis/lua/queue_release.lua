-- release(worker, {host, ms until it is due}...) -> how many of them the worker had. Requests that
-- it had out wait again.
goes_on_when_full()
local now, released = now_ms(), 0
for i = 2, #ARGV, 2 do
  if redis.call('HGET', base .. ':owner', ARGV[i]) == ARGV[1] then
    all_back(ARGV[i])
    free(ARGV[i], ARGV[1], 'due', now + tonumber(ARGV[i + 1]))
    released = released + 1
  end
end
return released
