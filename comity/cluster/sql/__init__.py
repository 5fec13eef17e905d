"""The shared state of a crawl in a database: PostgreSQL for any machines, SQLite for one.

address.py      the address of the database
check.py        the check that the database loses nothing
schema.py       the tables
database.py     what the steps use of a connection
postgresql.py   the connection of PostgreSQL: its locks, its clock and its errors
sqlite.py       the connection of SQLite
connection.py   a batch of calls as one transaction in a thread
work.py         a transaction: the rows that it has locked, and what it has changed
steps/          a function for each step
store.py        policy files
state.py        the state that a worker opens"""
