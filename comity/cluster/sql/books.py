"""The books of a crawl's payments in a database of PostgreSQL or SQLite."""

from __future__ import annotations

from collections.abc import Iterable

from comity.cluster.errors import StateError
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.connection import database_class, open_database
from comity.cluster.steps.books import StepBooks
from comity.cluster.steps.line import LineConnection
from comity.gate.request.books import check_accounts
from comity.policies import PolicyError


class SqlBooks(StepBooks):
    """Books that all workers of a crawl share."""

    def __init__(self, address: SqlAddress, connection: LineConnection) -> None:
        super().__init__(connection)
        self._address = address

    def open(self, accounts: Iterable[str]) -> None:
        names = [*accounts]
        try:
            db = open_database(self._address)
            try:
                with db.transaction():
                    known = db.rows("SELECT account FROM account WHERE crawl = ?", (self._crawl,))
                    check_accounts(names, [name for (name,) in known])
                    for name in names:
                        db.rows(
                            "INSERT INTO account VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING",
                            (self._crawl, name),
                        )
            except database_class(self._address).failures as error:
                raise db.error(error, self._address) from error
            finally:
                db.close()
        except StateError as error:
            raise PolicyError(f"COMITY_STATE: the books of payments fail: {error}") from None
