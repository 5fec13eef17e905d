-- ask(ttl) -> the state of the crawl.
return told(tonumber(ARGV[1]))
