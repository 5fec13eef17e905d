-- penalize(host, us or -1) -> us until the host may be asked again. -1: the host gave no time. Then
-- it is a minute, and each time twice as long, up to a day, and a minute again after the host was
-- quiet for as long as its last penalty. A running penalty never gets shorter.
goes_on_when_full()
local FIRST = 60 * SECOND
local now, host, wait = now_us(), ARGV[1], tonumber(ARGV[2])
local began, until_us, step = penalty(host, now)
if until_us > now then
  until_us = math.max(until_us, now + math.max(wait, 0))
else
  if now >= until_us + math.max(until_us - began, FIRST) then
    step = 0
  end
  if wait < 0 then
    step = step > 0 and math.min(2 * step, DAY) or FIRST
    wait = step
  end
  began, until_us = now, now + wait
end
local counts_for = until_us - now + math.max(until_us - began, FIRST)
redis.call('SET', base .. ':p:' .. host, text(began) .. ' ' .. text(until_us) .. ' ' .. text(step), 'PX', text(counts_for / 1000))
return until_us - now
