-- look(): whether the server is another one than before. Called first over each new connection.
goes_on_when_full()
began(now_us(), true)
return 1
