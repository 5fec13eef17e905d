"""The steps of the calls of a queue, of turns and of a crawl, in SQL.

    step.py    what a step is, and how calls are found
    queue.py   the requests of one run of a crawl
    crawl.py   a crawl as a whole
    pace.py    the pace of hosts
    books.py   the books of payments

A step takes the arguments of the script of its name in comity/cluster/redis/lua, and returns the
same answer. It can be repeated after its answer was lost."""
