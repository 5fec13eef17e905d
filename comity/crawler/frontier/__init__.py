"""The frontier of the crawl: the requests that wait or are out.

Modules:
    scheduler.py         Scrapy's scheduler interface, which composes the others
    waiting/             the requests that wait here, and the dates of their queues
    book.py              the requests that are out, held or through
    writes.py            the writes of the book into the storage
    item_barrier.py      items are on the disk before their pages are done
    queue.py             the storage, as the scheduler sees it
    storages.py          which storage a crawl has, and its duplicate filter
    journal.py           the storage in JOBDIR
    scrapy_queues.py     taking over a JOBDIR of Scrapy's own scheduler
    shared_queue.py      the storage in COMITY_STATE
    leased_hosts.py      the hosts that this worker has leased
    host_share.py        the share of the hosts that this worker leases
    outbox.py            the news for the server
    request_bodies.py    requests as they are sent to other workers
    complaints.py        lines in the log about failures of a storage
    backlog.py           a bound for requests of another scheduler
"""
