"""The check of a database before a crawl: what could lose requests is refused, with its remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from comity.cluster.sql import check as check_module
from comity.cluster.sql.address import SqlAddress
from comity.cluster.sql.check import check_database
from comity.cluster.sql.connection import open_database
from comity.cluster.sql.schema import DATA_VERSION
from comity.policies import PolicyError
from tests.redis_server import free_port
from tests.sql_server import PostgresServer, SqliteFile

Database = SqliteFile | PostgresServer


def test_a_sound_database_gets_its_tables(server: Database) -> None:
    address = server.address()
    assert check_database(address, is_dry=True) == []
    if isinstance(server, PostgresServer):
        assert server.execute("SELECT to_regclass('comity.version')") == [(None,)]
    else:
        assert not server.path.exists()
    assert check_database(address) == []
    assert check_database(address, is_dry=True) == []
    if isinstance(server, PostgresServer):
        assert server.execute("SELECT number FROM comity.version") == [(DATA_VERSION,)]
    else:
        assert server.path.stat().st_mode & 0o777 == 0o600


def test_data_of_another_version_are_not_touched(server: Database) -> None:
    check_database(server.address())
    change(server, "UPDATE version SET number = 99")
    with pytest.raises(PolicyError, match=r"It has data of version 99, .* knows version 3"):
        check_database(server.address())


def change(server: Database, sql: str) -> None:
    db = open_database(server.address())
    db.rows(sql)
    db.close()


def test_what_may_lose_requests_is_refused_or_told(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = own_server.address()
    own_server.execute("ALTER ROLE comity SET synchronous_commit = off")
    (remark,) = check_database(address)
    assert remark.endswith("set `synchronous_commit = on`")
    own_server.execute("ALTER ROLE comity SET default_transaction_read_only = on")
    monkeypatch.setattr(check_module, "OLDEST", 99)
    with pytest.raises(PolicyError) as error:
        check_database(address)
    lines = str(error.value).splitlines()
    assert lines[0] == f"COMITY_STATE: a crawl cannot rely on {address}:"
    assert lines[1].endswith("Use PostgreSQL 99 or later.")
    assert lines[2].startswith("- It takes no writes (default_transaction_read_only)")


def test_a_server_that_does_not_wait_for_its_disk_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    server = PostgresServer(
        tmp_path_factory.mktemp("postgresql"), {"fsync": "off", "full_page_writes": "off"}
    )
    server.start()
    try:
        with pytest.raises(PolicyError) as error:
            check_database(server.address())
        server.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
        with pytest.raises(PolicyError, match="Its encoding is LATIN1"):
            check_database(replace(server.address(), database="latin"))
    finally:
        server.stop()
    assert "Set `fsync = on`." in str(error.value)
    assert "`full_page_writes = on`." in str(error.value)


def test_a_server_that_cannot_be_used_is_told_with_the_remedy(postgres: PostgresServer) -> None:
    def message(url: str) -> str:
        with pytest.raises(PolicyError) as error:
            check_database(SqlAddress.parse(url, "crawl", {}))
        assert "\n" not in str(error.value)
        assert "secret" not in str(error.value)
        return str(error.value)

    place = f"127.0.0.1:{postgres.port}"
    assert message(f"postgresql://comity@{place}/nothing").endswith("CREATE DATABASE")
    assert message(f"postgresql://nobody:secret@{place}/postgres").endswith("a user of the server")
    assert message(f"postgresql://comity@127.0.0.1:{free_port()}/postgres").endswith(
        "start the server, or write its address"
    )


def test_a_file_that_cannot_be_used_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = SqlAddress.parse(f"sqlite:///{tmp_path}/nowhere/state", "crawl", {})
    with pytest.raises(PolicyError, match="write the path of a file in a folder"):
        check_database(address)
    (tmp_path / "text").write_text(
        "This is no database, and is long enough to be seen as such.\n" * 99
    )
    with pytest.raises(PolicyError, match="file is not a database"):
        check_database(SqlAddress.parse(f"sqlite:///{tmp_path}/text", "crawl", {}))
    monkeypatch.setattr(check_module, "OLDEST_SQLITE", (99, 0))
    with pytest.raises(PolicyError, match=r"is too old: use a Python with SQLite 99.0 or later"):
        check_database(address)


def test_a_file_of_another_machine_or_for_all_users_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = SqliteFile(tmp_path)
    check_database(server.address())
    server.path.chmod(0o644)
    monkeypatch.setattr(check_module, "_file_system", lambda path: "nfs4")
    remote, readable = check_database(server.address())
    assert "on a file system of another machine (nfs4)" in remote
    assert f"`chmod 600 {server.path}`" in readable
