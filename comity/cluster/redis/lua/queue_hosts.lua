-- hosts(most) -> {host, owner or "", ms until it is due or its lease ends, waiting, out, 1 if it is
-- set aside}..., leased hosts first.
local now, most, result = now_ms(), tonumber(ARGV[1]), {}
for _, place in ipairs({':leased', ':due', ':aside'}) do
  local entries = redis.call('ZRANGE', base .. place, 0, most - #result - 1, 'WITHSCORES')
  for i = 1, #entries, 2 do
    local host = entries[i]
    result[#result + 1] = {
      host,
      redis.call('HGET', base .. ':owner', host) or '',
      tonumber(entries[i + 1]) - now,
      redis.call('ZCARD', base .. ':q:' .. host),
      redis.call('ZCARD', base .. ':out:' .. host),
      place == ':aside' and 1 or 0,
    }
  end
  if #result >= most then
    break
  end
end
return result
