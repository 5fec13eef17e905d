-- look() -> version, shards, state, {run, emptied...} as `runs` returns them, ms since it began, the
-- number of requests when it was finished and ms since then, its settings or "", {worker, ms since
-- its last sign of life}...; nil if there is no such crawl.
local values = redis.call('HMGET', meta, 'version', 'shards', 'state', 'began', 'put', 'finished', 'settings')
if not values[1] then
  return false
end
local now = now_ms()
local result = {values[1], values[2], values[3], runs(), now - tonumber(values[4] or now), values[5] or 0, now - tonumber(values[6] or now), values[7] or ''}
local workers = redis.call('HGETALL', base .. ':worker')
for i = 1, #workers, 2 do
  result[#result + 1] = {workers[i], now - tonumber(workers[i + 1])}
end
return result
