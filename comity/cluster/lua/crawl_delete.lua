-- delete() -> 1
redis.call('UNLINK', meta, base .. ':worker')
return 1
