-- bury(worker) -> the number of its hosts: they are due now, and the requests that it had out wait
-- again. The worker is dead.
goes_on_when_full()
return bury(ARGV[1], now_ms())
