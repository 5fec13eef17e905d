-- set(state) -> its state before; nil if there is no such crawl.
local before = redis.call('HGET', meta, 'state')
if before then
  redis.call('HSET', meta, 'state', ARGV[1])
end
return before
