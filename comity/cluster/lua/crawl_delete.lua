-- delete() -> 1
forget_counts()
redis.call('UNLINK', meta, base .. ':worker')
return 1
