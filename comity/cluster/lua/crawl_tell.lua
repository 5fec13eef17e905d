-- tell(worker, run, {name, count}...): the counts of a worker that have changed. Counts of an
-- earlier run are dropped.
redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
if redis.call('HGET', meta, 'run') == ARGV[2] then
  redis.call('HSET', base .. ':told:' .. ARGV[1], unpack(ARGV, 3))
end
return 1
