-- set(state, reason) -> its state before; nil if there is no such crawl. `reason`: why it is ended.
-- The first reason stays.
local before = redis.call('HGET', meta, 'state')
if before then
  redis.call('DEL', base .. ':none')  -- after a write, no command is refused for a full memory
  if ARGV[1] == 'ended' and before ~= 'ended' then
    redis.call('HSET', meta, 'reason', ARGV[2], 'ended', now_ms())
  elseif ARGV[1] ~= 'ended' then
    redis.call('HDEL', meta, 'reason', 'ended')
  end
  redis.call('HSET', meta, 'state', ARGV[1])
end
return before
