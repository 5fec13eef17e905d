-- sums(name...) -> {its state, its reason or "", ms since it ended, ms since it began, the sum of
-- each count over all workers...}; nil if there is no such crawl.
local values = redis.call('HMGET', meta, 'state', 'reason', 'ended', 'began')
if not values[1] then
  return false
end
local now = now_ms()
local ended, began = tonumber(values[3] or now), tonumber(values[4] or now)
local result = {values[1], values[2] or '', now - ended, now - began}
if #ARGV == 0 then
  return result
end
local keys = {base .. ':told'}
for _, worker in ipairs(redis.call('HKEYS', base .. ':worker')) do
  keys[#keys + 1] = base .. ':told:' .. worker
end
for i = 1, #ARGV do
  result[4 + i] = 0
end
for _, key in ipairs(keys) do
  for i, count in ipairs(redis.call('HMGET', key, unpack(ARGV))) do
    result[4 + i] = result[4 + i] + tonumber(count or 0)
  end
end
return result
