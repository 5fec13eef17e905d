-- ack(host, key...) -> how many were not done before. Any worker may call it: a worker that has
-- lost the host has done the requests all the same.
local host, out, waiting, aside, given_up = ARGV[1], 0, 0, 0, 0
each(ARGV, 2, 1000, function(...)
  out = out + redis.call('ZREM', base .. ':out:' .. host, ...)
  waiting = waiting + redis.call('HDEL', base .. ':body:' .. host, ...)
  redis.call('HDEL', base .. ':reads:' .. host, ...)
end)
count('out', -out)
if out < #ARGV - 1 then  -- the worker counted as dead, or repeats the call
  each(ARGV, 2, 1000, function(...)
    aside = aside + redis.call('ZREM', base .. ':q:' .. host, ...)
  end)
  if aside > 0 and redis.call('ZSCORE', base .. ':aside', host) then
    count('aside', -aside)
  end
  if redis.call('EXISTS', base .. ':unreadable') == 1 then
    for i = 2, #ARGV do
      given_up = given_up + redis.call('HDEL', base .. ':unreadable', host .. '\n' .. ARGV[i])
    end
    count('unreadable', -given_up)
  end
end
count('done', waiting + given_up)
return waiting + given_up
