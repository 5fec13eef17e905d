-- end(owner, turn, {limit, keep}...): unsettled starts were never sent, or have ended.
for i = 3, #ARGV, 2 do
  local key, member = limit_key(ARGV[i]), ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[i + 1]
  local score = redis.call('ZSCORE', key, member)
  if score and tonumber(score) >= FLIES then
    redis.call('ZREM', key, member)
  end
end
return 1
