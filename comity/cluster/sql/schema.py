"""The tables of the shared state in a database of SQL.

A queue is the requests of one run of a crawl. Its id is a digest of the run's key. Moments are
microseconds by the clock of the database.

A request waits if it has a row in `request` and none in `out`. The lists of `host` say the same as
those rows: `waiting` and `out` are their numbers, `place` is one of PLACES."""

from __future__ import annotations

DATA_VERSION = 3  # the version of the tables; other versions are not read
NAME = "comity"  # the schema of the tables in PostgreSQL

NOWHERE, LEASED, DUE, ASIDE = PLACES = range(4)

# The columns of `count` after its key. Each connection adds to a row of its own, so that workers
# do not wait for each other. A count is the sum of the rows.
COUNTS = (
    "leased",
    "hosts_aside",
    "hosts",
    "waiting",
    "out",
    "aside",
    "put",
    "done",
    "filtered",
    "seen",
    "unreadable",
)

# {BYTES}: the type of octets. {KEYED}: ends a table that is stored in the order of its key.
TABLES = (
    "CREATE TABLE version (number BIGINT NOT NULL)",
    # The crawls. `emptied` to `filtered_before`: see `_Runs` of steps/queue.py. `ended`: the moment
    # of the end. `finished`: when it was finished with `put` requests. `deployed`: how often the
    # settings were replaced. `gone` and `died`: workers.
    """CREATE TABLE crawl (
    crawl TEXT PRIMARY KEY, run BIGINT NOT NULL, emptied BIGINT NOT NULL, kept BIGINT NOT NULL,
    swept BIGINT NOT NULL, forgotten BIGINT NOT NULL, put_before BIGINT NOT NULL,
    done_before BIGINT NOT NULL, filtered_before BIGINT NOT NULL, began BIGINT NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL, ended BIGINT, finished BIGINT, put BIGINT,
    settings {BYTES}, deployed BIGINT NOT NULL, gone BIGINT NOT NULL, died BIGINT NOT NULL)""",
    """CREATE TABLE run (
    crawl TEXT NOT NULL, run BIGINT NOT NULL, began BIGINT NOT NULL,
    PRIMARY KEY (crawl, run)){KEYED}""",
    # The state of the spider. `change`: the number of the last change of the value.
    """CREATE TABLE spider_state (
    crawl TEXT NOT NULL, key TEXT NOT NULL, change BIGINT NOT NULL, value {BYTES} NOT NULL,
    PRIMARY KEY (crawl, key)){KEYED}""",
    # `beat`: the last sign of life.
    """CREATE TABLE worker (
    crawl TEXT NOT NULL, worker TEXT NOT NULL, beat BIGINT NOT NULL,
    PRIMARY KEY (crawl, worker)){KEYED}""",
    # Counts of workers. Worker "": the sums of those that are gone.
    """CREATE TABLE told (
    crawl TEXT NOT NULL, worker TEXT NOT NULL, name TEXT NOT NULL, number BIGINT NOT NULL,
    PRIMARY KEY (crawl, worker, name)){KEYED}""",
    # `moment`: when the lease ends, or when the host is due. `owner`: the worker that leases it.
    """CREATE TABLE host (
    queue BIGINT NOT NULL, host {BYTES} NOT NULL, place INTEGER NOT NULL, moment BIGINT NOT NULL,
    owner TEXT NOT NULL, waiting BIGINT NOT NULL, out BIGINT NOT NULL,
    PRIMARY KEY (queue, host)){KEYED}""",
    "CREATE INDEX host_place ON host (queue, place, moment)",
    # `score`: the priority with the other sign.
    """CREATE TABLE request (
    queue BIGINT NOT NULL, host {BYTES} NOT NULL, score BIGINT NOT NULL, key {BYTES} NOT NULL,
    body {BYTES} NOT NULL, PRIMARY KEY (queue, host, score, key)){KEYED}""",
    # `reads`: see `suspect`; -1 without such a row.
    """CREATE TABLE out (
    queue BIGINT NOT NULL, host {BYTES} NOT NULL, key {BYTES} NOT NULL, score BIGINT NOT NULL,
    reads BIGINT NOT NULL, PRIMARY KEY (queue, host, key)){KEYED}""",
    # Requests that were out when their worker died. `reads`: workers that died while they read it.
    """CREATE TABLE suspect (
    queue BIGINT NOT NULL, host {BYTES} NOT NULL, key {BYTES} NOT NULL, reads BIGINT NOT NULL,
    PRIMARY KEY (queue, host, key)){KEYED}""",
    # Requests that no worker is to read.
    """CREATE TABLE unreadable (
    queue BIGINT NOT NULL, host {BYTES} NOT NULL, key {BYTES} NOT NULL, why {BYTES} NOT NULL,
    score BIGINT NOT NULL, body {BYTES} NOT NULL, PRIMARY KEY (queue, host, key)){KEYED}""",
    # Digests of fingerprints. `run`: the run in which a request with it was put last.
    """CREATE TABLE seen (
    queue BIGINT NOT NULL, digest {BYTES} NOT NULL, run BIGINT NOT NULL,
    PRIMARY KEY (queue, digest)){KEYED}""",
    f"""CREATE TABLE count (
    queue BIGINT NOT NULL, slot BIGINT NOT NULL,
    {", ".join(f"{name} BIGINT NOT NULL" for name in COUNTS)},
    PRIMARY KEY (queue, slot)){{KEYED}}""",
    # The answer to the last put of a worker, as JSON.
    """CREATE TABLE answer (
    queue BIGINT NOT NULL, worker TEXT NOT NULL, moment BIGINT NOT NULL, answers TEXT NOT NULL,
    PRIMARY KEY (queue, worker)){KEYED}""",
    # How often in a row the policies of an origin could not be fetched.
    """CREATE TABLE tries (
    queue BIGINT NOT NULL, origin {BYTES} NOT NULL, times BIGINT NOT NULL, since TEXT NOT NULL,
    due TEXT NOT NULL, PRIMARY KEY (queue, origin)){KEYED}""",
    # The pace of hosts, for all crawls. `starts`: see steps/pace.py. `until`: the row is needed
    # until then.
    """CREATE TABLE pace (
    name {BYTES} PRIMARY KEY, starts TEXT NOT NULL, until BIGINT NOT NULL){KEYED}""",
    "CREATE TABLE beat (owner TEXT PRIMARY KEY, moment BIGINT NOT NULL){KEYED}",
    """CREATE TABLE penalty (
    host {BYTES} PRIMARY KEY, began BIGINT NOT NULL, until BIGINT NOT NULL, step BIGINT NOT NULL
    ){KEYED}""",
    # Payments, in billionth parts of a currency: see gate/request/books.py.
    """CREATE TABLE account (
    crawl TEXT NOT NULL, account TEXT NOT NULL, taken BIGINT NOT NULL, charged BIGINT NOT NULL,
    PRIMARY KEY (crawl, account)){KEYED}""",
    # The keys of amounts that are reserved: their charges are not booked.
    """CREATE TABLE reserved (
    crawl TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (crawl, id)){KEYED}""",
    # The server's process. `since`: when another one than `before` was first seen. `base`: what
    # SQLite adds to the clock of the machine.
    """CREATE TABLE process (
    id TEXT NOT NULL, before TEXT NOT NULL, since BIGINT NOT NULL, base BIGINT NOT NULL)""",
    # Policy files, and the entries that belong to them: see store.py.
    """CREATE TABLE site (
    origin {BYTES} NOT NULL, path {BYTES} NOT NULL, written BIGINT NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (origin, path)){KEYED}""",
    """CREATE TABLE body (
    digest {BYTES} PRIMARY KEY, used BIGINT NOT NULL, deflated {BYTES} NOT NULL)""",
    """CREATE TABLE claim (
    origin {BYTES} PRIMARY KEY, token TEXT NOT NULL, until BIGINT NOT NULL){KEYED}""",
    """CREATE TABLE taken (
    url {BYTES} NOT NULL, uses TEXT NOT NULL, moment DOUBLE PRECISION NOT NULL,
    used BIGINT NOT NULL, PRIMARY KEY (url, uses)){KEYED}""",
    """CREATE TABLE action (
    url {BYTES} NOT NULL, action TEXT NOT NULL, file TEXT NOT NULL,
    requested DOUBLE PRECISION NOT NULL, done DOUBLE PRECISION, until BIGINT NOT NULL,
    PRIMARY KEY (url, action, file)){KEYED}""",
    "CREATE TABLE salt (salt {BYTES} NOT NULL, one BIGINT PRIMARY KEY)",
    """CREATE TABLE session (
    host {BYTES} NOT NULL, digest {BYTES} NOT NULL, first DOUBLE PRECISION NOT NULL,
    used BIGINT NOT NULL, PRIMARY KEY (host, digest)){KEYED}""",
)
