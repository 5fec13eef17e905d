-- agree(settings) -> the settings of the crawl, and how often they were replaced; nil if there is no
-- such crawl. If the crawl has no settings, these become its settings.
if redis.call('EXISTS', meta) == 0 then
  return false
end
redis.call('HSETNX', meta, 'settings', ARGV[1])
return {redis.call('HGET', meta, 'settings'), tonumber(redis.call('HGET', meta, 'deployed') or 0)}
