"""The shared state of a crawl as steps that a store carries out.

    line.py           the calls of one turn of the loop, as one batch
    queue.py          the requests that wait or are out, and all fingerprints
    turns.py          the pace of hosts

A store is called with the name of a step, such as `queue put`, a key and arguments. Redis carries
out a script of this name (redis/lua), and a database a function (sql/steps). Only the clock of the
store counts. A step is carried out as a whole or not at all. Between steps a worker, the store or
the network may fail. Therefore every call can be repeated, with the ids that workers make."""
