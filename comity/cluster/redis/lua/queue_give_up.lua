-- give_up(host, {key, why}...): the worker cannot read the requests, and no other is to read them.
goes_on_when_full()
local host = ARGV[1]
for i = 2, #ARGV, 2 do
  local key, place = ARGV[i], 'out:'
  local priority = redis.call('ZSCORE', base .. ':out:' .. host, key)
  if not priority then  -- the worker has no longer the host
    place, priority = 'q:', redis.call('ZSCORE', base .. ':q:' .. host, key)
  end
  local body = redis.call('HGET', base .. ':body:' .. host, key)
  if priority and body then
    redis.call('ZREM', base .. ':' .. place .. host, key)
    if place == 'out:' then
      count('out', -1)
    elseif redis.call('ZSCORE', base .. ':aside', host) then
      count('aside', -1)
    end
    give_up(host, key, priority, body, ARGV[i + 1])
  end
end
return 1
