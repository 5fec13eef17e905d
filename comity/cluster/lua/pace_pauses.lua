-- pauses(host...) -> for each, us between two of its starts, by the starts that count; 0: not known.
local result = {}
for i, host in ipairs(ARGV) do
  local key = limit_key(host)
  local newest = redis.call('ZREVRANGE', key, 0, 0)[1]
  local settled = redis.call('ZCOUNT', key, '-inf', '(' .. text(FLIES))
  local keep = newest and tonumber(string.match(newest, '%d+$')) or 0
  result[i] = math.floor(keep / math.max(settled, 1))
end
return result
