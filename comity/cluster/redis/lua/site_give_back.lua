-- give_back(token): end the claim if it still belongs to this token. KEYS[1] is the key of the
-- claim.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
