-- look(id) -> the id of the server's process. `id`: which one this worker saw last, or "". Called first over each new connection: it
-- may be another one than before, also where this one has seen nothing of that.
goes_on_when_full()
local _, id = began(now_us(), true, ARGV[1])
return id
