-- tries(origin, since, due) -> how often in a row the workers of the crawl could not fetch the
-- policies of the origin. `since`: the time since when the origin fails; after a success another
-- series begins. `due`: the time of the next try. Each try has another one, and all workers that
-- learn of a try send the same one.
goes_on_when_full()
local key = base .. ':tries'
local times, since, due = string.match(redis.call('HGET', key, ARGV[1]) or '', '^(%d+) (%S+) (%S+)$')
times = since == ARGV[2] and tonumber(times) or 0
if times == 0 or due ~= ARGV[3] then
  times = times + 1
  redis.call('HSET', key, ARGV[1], times .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
end
return times
