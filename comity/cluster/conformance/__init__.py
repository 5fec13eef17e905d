"""The tests that every store for COMITY_STATE has to pass.

    pip install pytest hypothesis
    pytest --pyargs comity.cluster.conformance --state redis://127.0.0.1:6379/0

They use the Protocols of comity/cluster/state.py and nothing else of a store. Each test has a crawl
and hosts of its own, so the store may hold other data.

    load.py           what pytest loads in every run: it loads plugin.py in a run of these tests
    plugin.py         the options, the fixtures, and the list of faults that were not made
    harness.py        the faults of a server, which the tests of a store supply
    proxy.py          a connection that loses answers
    worker.py         a worker in a process of its own, to be killed or frozen
    workers.py        workers in the process of the tests
    test_*.py         the promises of the queue, the ledger and the store"""
