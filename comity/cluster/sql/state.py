"""The state that the workers of a crawl share in a database of PostgreSQL or SQLite.

It consists of requests, the pace of hosts, and policy files."""

from __future__ import annotations

from comity.cluster.address import SETTING
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.books import SqlBooks
from comity.cluster.sql.check import check_database
from comity.cluster.sql.connection import SqlConnection, database_class
from comity.cluster.sql.store import SqlStore
from comity.cluster.steps.state import StepState
from comity.extras import required
from comity.policies import PolicyError


class SqlState(StepState):
    """A worker's access to the shared state, or that of a command: see `SharedState`."""

    def __init__(self, url: str, crawl: str, *, ttl: float) -> None:
        """Prepare the connection.

        `url` and `crawl`: see `SqlAddress.parse`. `ttl`: a worker counts as dead after so many
        seconds without a sign of life. PolicyError: the URL or the crawl's name is invalid, or the
        extra `postgresql` is missing."""
        self.address = SqlAddress.parse(url, crawl)
        with required(SETTING, "sqlite", PolicyError):
            import msgpack  # noqa: F401  # requests are packed with it
        with required(SETTING, "postgresql", PolicyError):
            database_class(self.address)
        self._sql = SqlConnection(self.address)
        super().__init__(self.address, self._sql, ttl)

    def check(self, *, is_dry: bool = False) -> list[str]:
        return check_database(self.address, is_dry=is_dry)

    def books(self) -> SqlBooks:
        self._sql.be_durable()
        return SqlBooks(self.address, self._sql)

    def store(self) -> SqlStore:
        return SqlStore(self.address)
