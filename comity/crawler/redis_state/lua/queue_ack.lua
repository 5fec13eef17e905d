-- ack(host, key...) -> how many were not done before. Whoever says it: a worker that has lost the host has done it all the same.
local host, out, waiting = ARGV[1], 0, 0
each(ARGV, 2, 1000, function(...)
  out = out + redis.call('ZREM', base .. ':out:' .. host, ...)
  redis.call('ZREM', base .. ':q:' .. host, ...)
  waiting = waiting + redis.call('HDEL', base .. ':body:' .. host, ...)
end)
count('out', -out)
count('left', -waiting)
count('done', waiting)
return waiting
