-- delete() -> 1
forget_counts()
redis.call('UNLINK', meta, base .. ':worker', base .. ':shards', base .. ':runs', base .. ':state', base .. ':changed', base .. ':accounts', base .. ':reserved')
return 1
