-- more(worker, host, most) -> {host, how many more wait, key, priority, body, reads, ...}; nil if
-- the worker does not have the host.
if redis.call('HGET', base .. ':owner', ARGV[2]) ~= ARGV[1] then
  return false
end
local taken, waiting = take(ARGV[2], tonumber(ARGV[3]))
return {ARGV[2], waiting, unpack(taken)}
