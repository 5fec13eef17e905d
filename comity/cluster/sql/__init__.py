"""The shared state of a crawl in a database: PostgreSQL for any machines, SQLite for one.

    address.py      the address of the database
    check.py        the check that the database loses nothing
    schema.py       the tables
    database.py     what the steps use of a connection
    postgresql.py   the connection of PostgreSQL: its locks, its clock and its errors
    sqlite.py       the connection of SQLite
    connection.py   the calls of one turn of the loop, as one transaction in a thread
    work.py         a transaction: the rows that it has locked, and what it has changed
    steps/          the steps of the calls
    store.py        policy files
    state.py        what a worker opens

Only the clock of the database counts. A transaction happens as a whole or not at all. Between
transactions a worker, the server or the network may fail. Therefore every call can be repeated,
with the ids that workers make."""
