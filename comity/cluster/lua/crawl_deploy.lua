-- deploy(settings) -> the settings that these replace, or ""; nil if there is no such crawl.
if redis.call('EXISTS', meta) == 0 then
  return false
end
local before = redis.call('HGET', meta, 'settings') or ''
redis.call('HSET', meta, 'settings', ARGV[1])
redis.call('HINCRBY', meta, 'deployed', 1)
return before
