-- ack(host, key...) -> how many were not done before. Whoever says it: a worker that has lost the host has done it all the same.
local host, out, waiting, aside = ARGV[1], 0, 0, 0
each(ARGV, 2, 1000, function(...)
  out = out + redis.call('ZREM', base .. ':out:' .. host, ...)
  aside = aside + redis.call('ZREM', base .. ':q:' .. host, ...)
  waiting = waiting + redis.call('HDEL', base .. ':body:' .. host, ...)
end)
count('out', -out)
if aside > 0 and redis.call('ZSCORE', base .. ':aside', host) then
  count('aside', -aside)
end
count('left', -waiting)
count('done', waiting)
return waiting
