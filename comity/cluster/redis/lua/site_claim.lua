-- claim(token, ms) -> 1 if no other token has the claim: then it is this token's for so long.
-- KEYS[1] is the key of the claim.
local has = redis.call('GET', KEYS[1])
if has and has ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
