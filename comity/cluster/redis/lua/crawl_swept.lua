-- swept(runs): so many runs are deleted.
if redis.call('EXISTS', meta) == 1 then
  redis.call('HSET', meta, 'swept', ARGV[1])
end
return 1
