-- leave(owner): it gives no signs of life any more. What it has in flight counts as started now.
return redis.call('ZREM', base .. ':beat', ARGV[1])
