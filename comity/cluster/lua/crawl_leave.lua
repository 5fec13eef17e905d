-- leave(worker): it gives no more signs of life.
redis.call('HDEL', base .. ':worker', ARGV[1])
return 1
