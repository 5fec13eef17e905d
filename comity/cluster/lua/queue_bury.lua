-- bury(worker) -> how many hosts it had: they are due now, and what it had out waits again. The worker is dead.
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
