-- leave(worker): it gives no signs of life any more.
redis.call('HDEL', base .. ':worker', ARGV[1])
return 1
