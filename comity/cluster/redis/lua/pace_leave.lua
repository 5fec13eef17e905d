-- leave(owner): it gives no more signs of life. Its starts in flight count as started now.
return redis.call('ZREM', base .. ':beat', ARGV[1])
