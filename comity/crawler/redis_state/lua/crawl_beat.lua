-- beat(worker) -> the state of the crawl; nil where it was deleted. A sign of life.
local state = redis.call('HGET', meta, 'state')
if state then
  redis.call('DEL', base .. ':none')  -- what comes after a write is not refused where the memory is full
  redis.call('HSET', base .. ':worker', ARGV[1], now_ms())
end
return state
