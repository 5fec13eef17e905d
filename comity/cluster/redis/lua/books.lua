-- The books of a crawl's payments (gate/request/books.py). KEYS[1] is the prefix of the names of its
-- keys. Amounts are texts, because the numbers of Lua are exact up to 2^53 only.
--
--   accounts   hash   t:ACCOUNT -> the amount that is spent or may be; c:ACCOUNT -> the amount that
--                     was charged; replicas -> the greatest number of replicas that was seen
--   reserved   hash   key -> an amount that is reserved: its charge is not booked
local accounts, reserved = KEYS[1] .. ':accounts', KEYS[1] .. ':reserved'

local function at_most(amount, limit)
  return #amount < #limit or #amount == #limit and amount <= limit
end

-- After a write, no command is refused for a full memory. This one writes nothing.
local function goes_on_when_full()
  redis.call('DEL', KEYS[1] .. ':none')
end

-- The number of replicas that must have this change before it counts. A replica that is away now
-- would lack it if it took over. This writes even if nothing changes: WAIT waits for the last write of its
-- connection, and a repeated call may be the first one of another connection.
local function replicas()
  local _, online = string.gsub(redis.call('INFO', 'replication'), 'state=online', '')
  local most = math.max(online, tonumber(redis.call('HGET', accounts, 'replicas') or 0))
  redis.call('HSET', accounts, 'replicas', most)
  return most
end
