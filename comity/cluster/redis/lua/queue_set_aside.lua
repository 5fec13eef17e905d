-- set_aside(worker, host, ms) -> 1 if the worker had the host: the crawl does not wait for its
-- requests for so long.
goes_on_when_full()
if redis.call('HGET', base .. ':owner', ARGV[2]) ~= ARGV[1] then
  return 0
end
all_back(ARGV[2])
free(ARGV[2], ARGV[1], 'aside', now_ms() + tonumber(ARGV[3]))
return 1
