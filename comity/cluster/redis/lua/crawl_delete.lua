-- delete() -> 1
forget_counts()
redis.call('UNLINK', meta, base .. ':worker', base .. ':shards')
return 1
