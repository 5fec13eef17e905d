-- settle(owner, turn, {limit, keep}...): the start counts from now on, even after `end`, as the two
-- may come in another order.
local MOST = 64  -- as MAX_STAMPS
goes_on_when_full()
local now = now_us()
for i = 3, #ARGV, 2 do
  local key, keep = limit_key(ARGV[i]), tonumber(ARGV[i + 1])
  local member = ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[i + 1]
  if keep == 0 then
    redis.call('ZREM', key, member)
  else
    redis.call('ZADD', key, text(now), member)
    while true do  -- drop starts that count no more, oldest first
      local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
      local counts_for = math.max(tonumber(string.match(oldest[1], '%d+$')), keep)
      if tonumber(oldest[2]) + counts_for > now then
        break
      end
      redis.call('ZREM', key, oldest[1])
    end
    local settled = redis.call('ZCOUNT', key, '-inf', '(' .. text(FLIES))
    if settled > MOST then
      redis.call('ZREMRANGEBYRANK', key, 0, settled - MOST - 1)
    end
    last(key, keep)
  end
end
return 1
