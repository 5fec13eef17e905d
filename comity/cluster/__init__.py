"""The state that the processes of one crawl share, on any machines.

state.py          the Protocols of a store, and how the store of a URL is found
queue.py          the values that the queue takes and gives
errors.py         the errors of the state
address.py        the names in addresses and keys that all stores share
counts.py         the counts of a worker, and the limits of the crawl
plain_values.py   values as MessagePack
spider_state.py   the `state` of the spider, which all workers share
records.py        policy files as records
neighbours.py     the detection of dead workers on this machine
conformance/      the tests that every store has to pass
steps/            the queue and the pace, as steps that a store carries out
sql/              the state in a database of PostgreSQL or SQLite
redis/            the state on a Redis or Valkey server, or in a Cluster of these"""
