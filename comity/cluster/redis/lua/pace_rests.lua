-- rests(host...) -> for each, us until it may be asked again; 0: now.
local now, result = now_us(), {}
for i, host in ipairs(ARGV) do
  local _, until_us = penalty(host, now)
  result[i] = math.max(until_us - now, 0)
end
return result
