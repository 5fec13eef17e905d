-- look(id) -> the id of the server's process. `id`: the id that this worker saw last, or "". Each
-- new connection begins with this call, because the server may be another one than before, even if
-- it has not noticed that itself.
goes_on_when_full()
local _, id = began(now_us(), true, ARGV[1])
return id
