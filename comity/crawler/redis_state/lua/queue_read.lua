-- read(host, by, key...): by 1: a worker begins to read the requests, and may die of it. by 0: it has read them.
goes_on_when_full()
for i = 3, #ARGV do
  if ARGV[2] == '0' then
    redis.call('HDEL', base .. ':reads:' .. ARGV[1], ARGV[i])
  elseif redis.call('HEXISTS', base .. ':body:' .. ARGV[1], ARGV[i]) == 1 then
    redis.call('HINCRBY', base .. ':reads:' .. ARGV[1], ARGV[i], 1)
  end
end
return 1
