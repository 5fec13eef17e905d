-- swept(runs, forgotten): the shards of so many runs are deleted, and the fingerprints of the runs
-- before `forgotten`.
if redis.call('EXISTS', meta) == 1 then
  redis.call('HSET', meta, 'swept', ARGV[1], 'forgotten', ARGV[2])
end
return 1
