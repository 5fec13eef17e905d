-- read(host, is_done, key...): a worker begins to read the requests, and may die of it; or, if
-- `is_done` is 1, it has read them.
goes_on_when_full()
for i = 3, #ARGV do
  if ARGV[2] == '1' then
    redis.call('HDEL', base .. ':reads:' .. ARGV[1], ARGV[i])
  elseif redis.call('HEXISTS', base .. ':body:' .. ARGV[1], ARGV[i]) == 1 then
    redis.call('HINCRBY', base .. ':reads:' .. ARGV[1], ARGV[i], 1)
  end
end
return 1
