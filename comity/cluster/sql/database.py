"""A connection to a database: what the steps of both kinds of databases use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from comity.cluster.errors import StateError
from comity.cluster.sql.schema import DATA_VERSION

MOST_VALUES = 256  # values of one list, or rows, in a statement

Row = tuple[Any, ...]


class Process(NamedTuple):
    """The process of the server.

    Attributes:
        id: Differs if the server was started anew, or another one has taken its place.
        now: The moment by its clock, in microseconds.
        base: A number that belongs to the clock; see schema.py.
    """

    id: str
    now: int
    base: int = 0


class StateAwayError(StateError):
    """The connection is of no use any more."""


class Database(ABC):
    """A connection to a database. One thread uses it at a time.

    SQL has `?` for each parameter. Errors of calls are those of the driver: see `error`.

    Attributes:
        lock: Ends a SELECT so that the rows are locked until the end of the transaction.
        lock_free: The same for the rows that no other transaction has locked.
        lock_shared: The same so that no other transaction changes the rows.
        failures: The errors that the driver raises.
    """

    lock: ClassVar[str] = ""
    lock_free: ClassVar[str] = ""
    lock_shared: ClassVar[str] = ""
    types: ClassVar[dict[str, str]]
    failures: ClassVar[tuple[type[Exception], ...]]

    @abstractmethod
    def __init__(self, address: Any, patience: float) -> None:
        """Connect. `patience`: seconds that a call waits for another transaction."""

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run one statement, and return its rows; [] if it returns none."""

    @abstractmethod
    def be_durable(self) -> None:
        """Confirm no change from now on before it is on the disk, whatever the settings say."""

    @abstractmethod
    def process(self) -> Process:
        """Return the process of the server, and the moment by its clock."""

    @abstractmethod
    def has_tables(self) -> bool:
        """Return True if the tables of comity exist."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction. It may write."""

    @classmethod
    @abstractmethod
    def error(cls, error: Exception, place: object) -> StateError:
        """Return the error of the state for an error of the driver.

        `place`: the address, for the message."""

    @abstractmethod
    def is_worth_a_repeat(self, error: Exception) -> bool:
        """Return True if a transaction failed only because of another one at the same time."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """Return the first row, or None."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the context has changed, or nothing if it fails."""
        self.begin()
        try:
            yield
        except BaseException:
            self.roll_back()
            raise
        self.rows("COMMIT")

    def roll_back(self) -> None:
        """Roll back the transaction. A connection that is gone has rolled it back already."""
        with suppress(*self.failures):
            self.rows("ROLLBACK")

    def rows_in(
        self, sql: str, before: Sequence[Any], values: Sequence[Any], after: Sequence[Any] = ()
    ) -> list[Row]:
        """Run a statement for lists of values, `{list}` in it, and return all rows.

        `before` and `after`: the parameters before and after the list."""
        result: list[Row] = []
        for part in _parts(values):
            result += self.rows(_listed(sql, len(part), "?"), (*before, *part, *after))
        return result

    def with_rows(self, sql: str, rows: Sequence[Row], *, repeat: bool = True) -> list[Row]:
        """Run a statement with rows of values, `VALUES {list}` in it, and return all rows.

        `repeat`: False if a statement must not have a row twice, as INSERT … ON CONFLICT DO UPDATE.

        One statement is one message to the server, so that a client that is frozen between two
        messages is idle for the server. The server ends its transaction then."""
        result: list[Row] = []
        for part in _parts(rows) if repeat else _parts_without_repeats(rows):
            marks = f"({', '.join('?' * len(part[0]))})"
            result += self.rows(
                _listed(sql, len(part), marks), [value for row in part for value in row]
            )
        return result

    def prepare(self, tables: Sequence[str]) -> None:
        """Create the tables if they do not exist. Call it in a transaction."""
        if not self.has_tables():
            for sql in tables:
                self.rows(sql.format_map(self.types))
            self.rows("INSERT INTO version VALUES (?)", (DATA_VERSION,))

    def version(self) -> int | None:
        """Return the version of the tables; None: there are none."""
        if not self.has_tables():
            return None
        row = self.one("SELECT number FROM version")
        return None if row is None else int(row[0])


def _parts(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield lists of a power of two, so that few statements differ. The last value is repeated."""
    for begin in range(0, len(values), MOST_VALUES):
        part = list(values[begin : begin + MOST_VALUES])
        length = 1 << (len(part) - 1).bit_length()
        yield part + [part[-1]] * (length - len(part))


def _parts_without_repeats(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield lists of a power of two, the longest first."""
    begin = 0
    while left := len(values) - begin:
        length = min(MOST_VALUES, 1 << (left.bit_length() - 1))
        yield list(values[begin : begin + length])
        begin += length


@lru_cache(1000)
def _listed(sql: str, number: int, mark: str) -> str:
    return sql.replace("{list}", ", ".join([mark] * number))
