-- put_back(worker, host, key...) -> how many wait again, in their old place. 0 where the worker does not have the host.
goes_on_when_full()
if redis.call('HGET', base .. ':owner', ARGV[2]) ~= ARGV[1] then
  return 0
end
local host, out = ARGV[2], 0
for i = 3, #ARGV do
  local score = redis.call('ZSCORE', base .. ':out:' .. host, ARGV[i])
  if score then
    redis.call('ZREM', base .. ':out:' .. host, ARGV[i])
    redis.call('ZADD', base .. ':q:' .. host, score, ARGV[i])
    out = out + 1
  end
end
count('out', -out)
return out
