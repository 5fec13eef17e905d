-- delete(most) -> 1 if the shard is deleted; else call it again. It deletes some thousand keys at a
-- time.
local most = tonumber(ARGV[1])
local places = {':due', ':aside'}
for _, worker in ipairs(redis.call('ZRANGE', base .. ':alive', 0, -1)) do
  places[#places + 1] = ':of:' .. worker
end
for _, place in ipairs(places) do
  for _, host in ipairs(redis.call('ZRANGE', base .. place, 0, most - 1)) do
    redis.call('UNLINK', base .. ':q:' .. host, base .. ':out:' .. host, base .. ':body:' .. host, base .. ':reads:' .. host)
    redis.call('ZREM', base .. place, host)
    most = most - 1
  end
end
local buckets = tonumber(redis.call('HGET', counts, 'buckets') or 1)
while most > 0 and buckets > 0 do
  buckets = buckets - 1
  redis.call('UNLINK', base .. ':seen:' .. buckets)
  most = most - 1
end
if buckets > 0 then
  redis.call('HSET', counts, 'buckets', buckets)
end
if most <= 0 then
  return 0
end
redis.call('UNLINK', base .. ':due', base .. ':aside', base .. ':alive', base .. ':owner', base .. ':tries', base .. ':unreadable', counts)
return 1
