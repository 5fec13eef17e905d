-- took_down(moment, url...): requests until the moment are done. KEYS[1] is a hash of requested
-- actions: action, file and URL, a line each -> when it was requested, and after a blank when it
-- was done.
local urls = {}
for i = 2, #ARGV do
  urls[ARGV[i]] = true
end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local action, url = string.match(all[i], '^([^\n]*)\n[^\n]*\n(.*)$')
  local requested = string.match(all[i + 1], '^([%d.e+-]+)$')
  if action == 'take-down' and urls[url] and requested and tonumber(requested) <= tonumber(ARGV[1]) then
    redis.call('HSET', KEYS[1], all[i], requested .. ' ' .. ARGV[1])
  end
end
return 1
