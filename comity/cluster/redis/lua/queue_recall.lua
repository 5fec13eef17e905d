-- recall(most) -> how many hosts that were set aside are due now, before their time. If it is
-- `most`, there may be more.
goes_on_when_full()
return recall('+inf', tonumber(ARGV[1]), now_ms())
