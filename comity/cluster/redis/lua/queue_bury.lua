-- bury(worker) -> the number of its hosts: they are due now, and the requests that it had out wait
-- again. The worker is dead.
goes_on_when_full()
local now, released = now_ms(), 0
local owners = redis.call('HGETALL', base .. ':owner')
for i = 1, #owners, 2 do
  if owners[i + 1] == ARGV[1] then
    all_back(owners[i], true)
    free(owners[i], 'due', now)
    released = released + 1
  end
end
return released
