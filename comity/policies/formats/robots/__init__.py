"""robots.txt (RFC 9309) with the records that many sites add to it."""
