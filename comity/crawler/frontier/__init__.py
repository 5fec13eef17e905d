"""The requests that wait: the scheduler, a queue for each host, and the journal in JOBDIR."""
