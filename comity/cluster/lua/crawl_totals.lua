-- totals() -> {its reason or "", how many workers have left, how many were found dead, {name,
-- count}...}; nil if there is no such crawl.
local values = redis.call('HMGET', meta, 'state', 'reason', 'left', 'died')
if not values[1] then
  return false
end
local sums, result = {}, {values[2] or '', tonumber(values[3] or 0), tonumber(values[4] or 0)}
local keys = {base .. ':told'}
for _, worker in ipairs(redis.call('HKEYS', base .. ':worker')) do
  keys[#keys + 1] = base .. ':told:' .. worker
end
for _, key in ipairs(keys) do
  local counts = redis.call('HGETALL', key)
  for i = 1, #counts, 2 do
    sums[counts[i]] = (sums[counts[i]] or 0) + tonumber(counts[i + 1])
  end
end
for name, sum in pairs(sums) do
  result[#result + 1] = {name, sum}
end
return result
