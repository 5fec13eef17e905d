"""One crawl of many processes, on any machines: what they share stands on a Redis or Valkey server, or in a Cluster of these.

    address.py        where that is, and how keys are named and spread
    check.py          whether the server is one that loses nothing
    connection.py     the calls of one turn of the loop, as one pipeline
    scripts.py, lua/  what a call does there, as one step; lua/*.lua begin with how the keys hang together
    queue.py          the requests that wait and are out, and the fingerprints of all there ever were
    turns.py          the pace of hosts
    neighbours.py     which workers on this machine are dead
    store.py          policy files

The server's clock counts, and no other. What it takes in one script it takes whole or not at all; between scripts a worker, the
server or the network may fail, and every call may be repeated: that is what the ids that workers make are for."""
