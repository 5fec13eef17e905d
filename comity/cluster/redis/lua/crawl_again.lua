-- again(run, since, put, done, filtered) -> 1 if the crawl begins again, because this was its run; 0
-- if another worker was faster. `since`: "" to begin with an empty queue, and to count no
-- fingerprint as seen; or ms: the queue stays, and fingerprints of runs that began since then count.
-- The other arguments are the counts of the shards. The next worker that agrees gives the new run
-- its settings.
local run, emptied, kept = unpack(runs())
if run ~= tonumber(ARGV[1]) then
  return 0
end
local since, now = tonumber(ARGV[2]), now_ms()
local began = redis.call('HGETALL', base .. ':runs')
local begins = {}
for i = 1, #began, 2 do
  begins[tonumber(began[i])] = tonumber(began[i + 1])
end
local first = run + 1
while since and first > kept and (begins[first - 1] or 0) >= since do
  first = first - 1
end
if not since then
  emptied = run + 1
end
redis.call('HSET', meta, 'run', run + 1, 'emptied', emptied, 'kept', first, 'began', now, 'state', 'running', 'put_before', ARGV[3], 'done_before', ARGV[4], 'filtered_before', ARGV[5])
redis.call('HSET', base .. ':runs', run + 1, now)
redis.call('HDEL', meta, 'finished', 'put', 'settings', 'reason', 'ended', 'left', 'died')
redis.call('UNLINK', base .. ':shards')
forget_counts()
return 1
