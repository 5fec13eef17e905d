"""The shared state of a crawl on a Redis or Valkey server, or in a Cluster of these.

    address.py        the address of the server, and how keys are named and spread
    check.py          the check that the server loses nothing
    connection.py     the calls of one turn of the loop, as one pipeline
    scripts.py, lua/  the steps of a call on the server; lua/*.lua begin with the relations of keys
    queue.py          the requests that wait or are out, and all fingerprints
    turns.py          the pace of hosts
    store.py          policy files

Only the server's clock counts. The server carries out a script as a whole or not at all. Between
scripts a worker, the server or the network may fail. Therefore every call can be repeated, with the
ids that workers make."""
