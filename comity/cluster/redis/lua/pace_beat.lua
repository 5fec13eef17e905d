-- beat(owner): a sign of life. Owners without one for a day are forgotten.
goes_on_when_full()
local now = now_us()
redis.call('ZADD', base .. ':beat', text(now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', base .. ':beat', '-inf', text(now - DAY))
return 1
