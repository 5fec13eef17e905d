"""The requests that wait here, in host queues, and the dates of these queues.

Modules:
    turns.py             which request goes out next
    waiting_requests.py  the requests in all queues, as the storage sees them
    host_queues.py       all queues and their dates
    host_queue.py        the queue of one origin, or of some of its scopes
    policy_fetches.py    the fetches of the policies that queues wait for
    wake_timer.py        the timer that wakes the engine when a queue is due
"""
