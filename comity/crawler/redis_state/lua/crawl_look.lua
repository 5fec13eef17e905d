-- look() -> version, shards, state, ms since it began, {worker, ms since its last sign of life}...; nil where there is no such crawl.
local values = redis.call('HMGET', meta, 'version', 'shards', 'state', 'began')
if not values[1] then
  return false
end
local now = now_ms()
local result = {values[1], values[2], values[3], now - tonumber(values[4] or now)}
local workers = redis.call('HGETALL', base .. ':worker')
for i = 1, #workers, 2 do
  result[#result + 1] = {workers[i], now - tonumber(workers[i + 1])}
end
return result
