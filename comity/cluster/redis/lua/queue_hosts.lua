-- hosts(most) -> {host, owner or "", ms until it is due or its lease ends, waiting, out, 1 if it is
-- set aside}..., leased hosts first.
local now, most, result = now_ms(), tonumber(ARGV[1]), {}

local function add(hosts, size, owner, moment, is_aside)
  for i = 1, #hosts, size do
    local host = hosts[i]
    result[#result + 1] = {
      host,
      owner,
      tonumber(moment or hosts[i + 1]) - now,
      redis.call('ZCARD', base .. ':q:' .. host),
      redis.call('ZCARD', base .. ':out:' .. host),
      is_aside,
    }
  end
end

local workers = redis.call('ZRANGE', base .. ':alive', 0, -1, 'WITHSCORES')
for i = 1, #workers, 2 do
  local hosts = redis.call('ZRANGE', base .. ':of:' .. workers[i], 0, most - #result - 1)
  add(hosts, 1, workers[i], workers[i + 1], 0)
  if #result >= most then
    return result
  end
end
for is_aside, place in pairs({[0] = ':due', [1] = ':aside'}) do
  if #result < most then
    add(redis.call('ZRANGE', base .. place, 0, most - #result - 1, 'WITHSCORES'), 2, '', nil, is_aside)
  end
end
return result
