-- note(run, counts): the counts of all shards, for other workers. Those of an earlier run are dropped.
redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
if redis.call('HGET', meta, 'run') == ARGV[1] then
  redis.call('HSET', base .. ':shards', 'asked', now_ms(), 'counts', ARGV[2])
end
return 1
