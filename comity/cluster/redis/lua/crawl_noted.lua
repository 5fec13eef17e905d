-- noted(age) -> {the state of the crawl, the counts of all shards}, if a worker was asked to look at
-- them at most `age` ms ago. Without counts, the caller is asked to look, and to note them.
local crawl, now = told(), now_ms()
local note = redis.call('HMGET', base .. ':shards', 'asked', 'counts')
if not crawl or note[2] and math.abs(now - tonumber(note[1])) <= tonumber(ARGV[1]) then
  return {crawl, note[2]}
end
redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
redis.call('HSET', base .. ':shards', 'asked', now)
return {crawl}
