"""Policy files in a database: the same comes back as from the file of one machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from comity.cluster.records import ACTION, KEPT, SESSION, TERM
from comity.cluster.sql.connection import open_database
from comity.cluster.sql.database import Row
from comity.cluster.sql.store import SqlStore
from tests.cluster.sql.conftest import Clock
from tests.cluster.test_store import (
    NOW,
    ORIGIN,
    ROBOTS,
    had,
    test_what_is_saved_is_loaded_as_from_the_file,  # noqa: F401
    test_what_is_taken_down_is_asked_for_no_more,  # noqa: F401
)
from tests.gate.fetching.policy_files import utc
from tests.sql_server import PostgresServer, SqliteFile

Database = SqliteFile | PostgresServer


@pytest.fixture
def store(server: Database) -> Iterator[SqlStore]:
    store = SqlStore(server.address())
    yield store
    store.close()


@pytest.fixture
def other(server: Database) -> Iterator[SqlStore]:
    """That of another worker."""
    other = SqlStore(server.address("other"))
    yield other
    other.close()


def rows(server: Database, sql: str) -> list[Row]:
    db = open_database(server.address())
    try:
        return db.rows(sql)
    finally:
        db.close()


def test_a_body_is_kept_once_and_a_damaged_one_is_no_permission(
    store: SqlStore, server: Database
) -> None:
    store.save_sites({"https://a.test": {ROBOTS: had()}, "https://b.test": {ROBOTS: had()}})
    assert rows(server, "SELECT count(*) FROM body") == [(1,)]
    rows(server, "DELETE FROM body")
    with pytest.raises(OSError, match="cannot be read: a body is not as it was written"):
        store.load("https://a.test")
    store.save("https://a.test", {ROBOTS: had()})
    assert store.load("https://a.test") == {ROBOTS: had()}
    for record in ("[]", "{}", '{"due": "x"}', "no JSON"):
        rows(server, f"UPDATE site SET record = '{record}'")
        with pytest.raises(OSError, match="cannot be read"):
            store.load("https://a.test")


def test_everything_that_is_remembered_has_an_end(
    store: SqlStore, other: SqlStore, server: Database, clock: Clock
) -> None:
    store.save(ORIGIN, {ROBOTS: had()})
    store.first_taken(ORIGIN, ["train"], utc(NOW))
    assert store.requests_action(ORIGIN, "recrawl", "0" * 64, utc(NOW))
    assert not other.requests_action(ORIGIN, "recrawl", "0" * 64, utc(NOW))
    assert store.session_began("a.test", b"secret", utc(NOW)) == utc(NOW)
    clock.set(NOW + SESSION)
    assert other.session_began("a.test", b"secret", utc(NOW + 9)) == utc(NOW)
    assert other.session_began("a.test", b"another", utc(NOW + 9)) == utc(NOW + 9)
    clock.set(NOW + 2 * SESSION + 1)
    assert store.session_began("a.test", b"another", utc(NOW + 20)) == utc(NOW + 20)
    clock.set(clock.now + max(KEPT * 3, TERM) + 1)
    assert store.load(ORIGIN) == {}
    assert store.requests_action(ORIGIN, "recrawl", "0" * 64, utc(NOW))
    clock.set(clock.now + ACTION + 1)
    other.save("https://b.test", {})
    for table in ("site", "body", "taken", "action"):
        assert rows(server, f"SELECT * FROM {table}") == []
    assert b"another" not in b"".join(
        digest for (digest,) in rows(server, "SELECT digest FROM session")
    )


def test_one_worker_fetches_an_origin(store: SqlStore, other: SqlStore, clock: Clock) -> None:
    assert store.claims_fetch(ORIGIN, 10)
    assert store.claims_fetch(ORIGIN, 10)
    assert not other.claims_fetch(ORIGIN, 10)
    clock.set(NOW + 10)
    assert other.claims_fetch(ORIGIN, 10)
    store.gives_back(ORIGIN)  # it is the other's by now
    assert not store.claims_fetch(ORIGIN, 10)
    other.gives_back(ORIGIN)
    assert store.claims_fetch(ORIGIN, 10)


def test_a_server_that_is_away_is_an_error(own_server: PostgresServer) -> None:
    store = SqlStore(own_server.address())
    store.save(ORIGIN, {ROBOTS: had()})
    own_server.kill()
    with pytest.raises(OSError, match="cannot be read"):
        store.load(ORIGIN)
    own_server.start()
    assert store.load(ORIGIN) == {ROBOTS: had()}
    own_server.kill()
    own_server.start()
    assert store.load(ORIGIN) == {ROBOTS: had()}  # over a new connection
    store.close()
