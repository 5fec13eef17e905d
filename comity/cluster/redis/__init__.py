"""The shared state of a crawl on a Redis or Valkey server, or in a Cluster of these.

address.py        the address of the server, and the names of its keys
check.py          the check that the server loses nothing
connection.py     a batch of calls as one pipeline
scripts.py, lua/  a script for each step; lua/*.lua begin with the relations of keys
store.py          policy files
state.py          the state that a worker opens"""
