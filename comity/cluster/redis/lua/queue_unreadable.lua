-- unreadable(most) -> {host, why, request}... of requests that no worker is to read.
local most, result = tonumber(ARGV[1]), {}
local cursor = '0'
repeat
  local answer = redis.call('HSCAN', base .. ':unreadable', cursor, 'COUNT', 100)
  cursor = answer[1]
  for i = 1, #answer[2], 2 do
    if #result < most then
      local why, body = string.match(answer[2][i + 1], '^([^\n]*)\n[^\n]*\n(.*)$')
      result[#result + 1] = {string.match(answer[2][i], '^[^\n]*'), why, body}
    end
  end
until cursor == '0' or #result >= most
return result
