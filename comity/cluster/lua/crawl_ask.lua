-- ask(ttl) -> what is told of the crawl.
return told(tonumber(ARGV[1]))
