-- give_back(token): the claim, if it is still that of this token. KEYS[1] is the key of the claim.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
