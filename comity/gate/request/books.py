"""The books of payments: how much of each sum of the operator is spent, or may be.

    key = new_key()
    if await books.reserve(key, "example.com USD", 10_000_000, 5_000_000_000):
        ...    # send the request, and read what was charged
        books.settle(key, "example.com USD", 10_000_000, charged)

An amount is reserved, and on the disk, before its request is sent. It is given back only once the
site has said that it charged less. If the process is killed in between, the amount stays reserved
for ever. So no kill makes a crawl spend more than its sum.

Amounts are whole numbers of billionth parts of a currency: SQLite would store others as floats."""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from comity.database import DatabaseKind, open_database, transaction
from comity.forks import call_in_forks, hold_in_forks
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

logger = logging.getLogger(__name__)

FILE = "payments.sqlite"  # in the folder of JOBDIR
MOST = 2**62  # of a charge; it is above all sums, and more would not fit into a column

SCHEMA = """
CREATE TABLE account (
    name TEXT PRIMARY KEY, taken INTEGER NOT NULL, charged INTEGER NOT NULL
) WITHOUT ROWID;
"""
NAMES = "SELECT name FROM account"
HAS = "SELECT 1 FROM account WHERE name = ?"
OPEN = "INSERT INTO account VALUES (?, 0, 0) ON CONFLICT DO NOTHING"
KIND = DatabaseKind(
    subject="JOBDIR: the books of payments",
    name="file with payments",
    remedy="restore this file. Without it the crawl does not know what it has spent. To begin"
    " another crawl, set JOBDIR to another folder",
    application_id=0x636F6D24,  # "com$"
    schema=SCHEMA,
    synchronous="FULL",  # money that was spent stays spent after a power cut
)


KIND_OF_CLIENTS = replace(
    KIND,
    subject="books: the books of payments",
    remedy="restore this file. Without it clients do not know what they have spent",
)


# SQLite keeps in the memory of each process which locks the process has, and a forked process has a
# copy of that. With an inherited connection, it would take no locks of its own. So each FileBooks
# closes its connection there. No thread uses a connection during the fork.
_lock = threading.Lock()
hold_in_forks(_lock)


class BooksError(Exception):
    """The books cannot be read or written. An amount that was to be reserved may be, for ever."""


class Account(NamedTuple):
    """The payments to one host in one currency.

    Attributes:
        name: Host and currency.
        taken: The amount that is spent or may be: `charged`, amounts of requests without an
            answer, and of requests whose process was killed.
        charged: The amount that the site has charged.
    """

    name: str
    taken: int
    charged: int

    @property
    def is_closed(self) -> bool:
        """True if the site has charged more than was offered. Nothing is ever reserved again."""
        return self.taken >= MOST


def new_key() -> str:
    """Return a key for an amount that is to be reserved. No other amount ever gets an equal key."""
    return secrets.token_hex(8)


class Books(Protocol):
    """The accounts of one crawl.

    Attributes:
        is_shared: True if other processes may reserve amounts too, and give them back.
    """

    is_shared: bool

    def open(self, accounts: Iterable[str]) -> None:
        """Open the accounts that the books do not have. It blocks: call it before the crawl begins.

        `accounts`: host and currency of each. PolicyError: one of them would begin a new sum for a
        host that has an account, or the books cannot be written."""

    async def reserve(self, key: str, account: str, amount: int, total: int) -> bool:
        """Reserve an amount. Return False if more than `total` would be taken.

        `key`: as `new_key` returned it, for this amount only. BooksError: it fails, or the books
        have no such account, because they were lost."""

    def settle(self, key: str, account: str, amount: int, charged: int) -> None:
        """Book the charge for the amount that was reserved with the key, and give the rest back.

        A second call with the key changes nothing.
        If the charge is higher, `taken` becomes MOST, and stays it: the account is closed.
        If it fails, the whole amount stays taken."""

    async def accounts(self) -> list[Account]:
        """Return all accounts; [] if they cannot be read."""

    def close(self) -> None:
        """Close the books. Amounts that are reserved stay reserved."""


def check_accounts(wanted: Iterable[str], known: Iterable[str]) -> None:
    """Check that no account begins a new sum for a host that has an account in another form.

    PolicyError: one does: in another currency, or with its port."""
    known = {*known}
    for name in wanted:
        if name in known:
            continue
        host, port = _host_and_port(name)
        for other in sorted(known):
            other_host, other_port = _host_and_port(other)
            if other_host == host and (port == other_port or not (port and other_port)):
                raise PolicyError(
                    f"COMITY_ARRANGEMENTS: `{name}` would begin a new sum, and the books of"
                    f" payments have `{other}`: write this host and this currency, or begin other"
                    " books (another folder in JOBDIR, another name in COMITY_CRAWL, or another"
                    " file in `books` of a client)"
                )


def _host_and_port(account: str) -> tuple[str, str]:
    host = account.rpartition(" ")[0]
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
        return host, port[1:]
    if host.count(":") == 1:
        host, _, port = host.partition(":")
        return host, port
    return host, ""


class FileBooks:
    """Books in a file of SQLite: of a JOBDIR, which one crawl at a time has, or of clients.

    They are closed in a process that is forked later: it has to open the file itself."""

    def __init__(
        self, path: Path | None, *, kind: DatabaseKind = KIND, is_shared: bool = False
    ) -> None:
        """Open the file, or create it. None: the books end with the process, as its crawl does.

        `kind`: for messages. PolicyError: the file cannot be used."""
        self.is_shared = is_shared
        self._kind = kind
        self._keys: set[str] = set()  # of reserved amounts
        with _lock:
            if path is None:
                self._db = sqlite3.connect(
                    ":memory:", isolation_level=None, check_same_thread=False
                )
                self._db.executescript(SCHEMA)
            else:
                # Any thread may fork.
                self._db = open_database(path, kind, check_same_thread=False)
            call_in_forks(self.close)

    def open(self, accounts: Iterable[str]) -> None:
        names = [*accounts]
        try:
            with _lock, transaction(self._db):
                check_accounts(names, [name for (name,) in self._db.execute(NAMES)])
                for name in names:
                    self._db.execute(OPEN, (name,))
        except sqlite3.Error as error:
            raise PolicyError(f"{self._kind.subject} cannot be written: {error}") from None

    async def reserve(self, key: str, account: str, amount: int, total: int) -> bool:
        try:
            with _lock, transaction(self._db):
                if not self._db.execute(HAS, (account,)).fetchone():
                    raise BooksError(no_account(account))
                changed = self._db.execute(
                    "UPDATE account SET taken = taken + ?1 WHERE name = ?2 AND taken + ?1 <= ?3",
                    (amount, account, total),
                )
        except sqlite3.Error as error:
            raise BooksError(f"the books of payments for `{account}` fail: {error}") from None
        if is_reserved := changed.rowcount == 1:
            self._keys.add(key)
        return is_reserved

    def settle(self, key: str, account: str, amount: int, charged: int) -> None:
        if key not in self._keys:
            return
        self._keys.remove(key)
        try:
            with _lock:
                self._db.execute(
                    "UPDATE account SET"
                    " taken = CASE WHEN ?2 > ?1 OR taken >= ?3 THEN ?3 ELSE taken - ?1 + ?2 END,"
                    " charged = min(charged + ?2, ?3) WHERE name = ?4",
                    (amount, min(charged, MOST), MOST, account),
                )
        except sqlite3.Error as error:
            report_failure("The books of payments", account, error)

    async def accounts(self) -> list[Account]:
        try:
            with _lock:
                rows = self._db.execute("SELECT name, taken, charged FROM account ORDER BY name")
                return [Account(*row) for row in rows]
        except sqlite3.Error as error:
            report_failure("The books of payments", "all accounts", error)
            return []

    def close(self) -> None:
        with _lock:
            self._db.close()


def no_account(account: str) -> str:
    """Return the reason why nothing can be reserved in an account that does not exist."""
    return f"the books of payments have no account `{printable(account)}` any more: they were lost"


def report_failure(books: str, account: str, error: BaseException) -> None:
    """Log that an account of some books cannot be read or written."""
    logger.error(
        "%(books)s for `%(account)s` fail (%(error)s): the amount counts as spent",
        {"books": books, "account": printable(account), "error": error},
    )
