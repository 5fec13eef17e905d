-- leave(worker, how): it gives no more signs of life. `how`: "left" or "died".
redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
forget(ARGV[1], ARGV[2])
return 1
