-- beat(worker, ttl) -> what is told of the crawl. A sign of life.
if redis.call('EXISTS', meta) == 1 then
  redis.call('DEL', base .. ':none')  -- what comes after a write is not refused where the memory is full
  redis.call('HSET', base .. ':worker', ARGV[1], now_ms())
end
return told(tonumber(ARGV[2]))
