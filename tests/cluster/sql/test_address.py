"""The addresses of databases: a password is in no text, and a mistake has one clear message."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity.cluster.sql.address import SqlAddress
from comity.policies import PolicyError


def parse(url: str, **environ: str) -> SqlAddress:
    return SqlAddress.parse(url, "crawl", environ)


def test_an_address_of_a_server() -> None:
    address = parse("postgresql://me:se%20cret@db.example:5433/my%20crawls?sslmode=verify-full")
    assert address.client_options() == {
        "host": "db.example",
        "port": 5433,
        "dbname": "my crawls",
        "user": "me",
        "password": "se cret",
        "sslmode": "verify-full",
    }
    assert str(address) == "postgresql://db.example:5433/my crawls"
    assert "cret" not in repr(address)
    assert parse("postgres://db.example/x") == parse("postgresql://db.example:5432/x")


def test_a_password_may_be_in_the_environment() -> None:
    assert parse("postgresql://me@h/x", COMITY_STATE_PASSWORD="secret").password == "secret"
    assert parse("postgresql://me:other@h/x", COMITY_STATE_PASSWORD="secret").password == "other"


def test_a_server_may_be_at_a_socket_or_an_address() -> None:
    assert parse("postgresql:///x?host=/run/postgresql").host == "/run/postgresql"
    assert str(parse("postgresql://[::1]/x")) == "postgresql://[::1]:5432/x"


def test_a_path_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse("sqlite:///state.db").path == tmp_path / "state.db"
    assert parse("sqlite:////var/lib/my%20state.db").path == Path("/var/lib/my state.db")
    assert str(parse("sqlite:////var/state.db")) == "sqlite:////var/state.db"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://h/x", "its scheme is not postgresql or sqlite"),
        ("postgresql://h", "its path is not the name of a database"),
        ("postgresql://h/a/b", "its path is not the name of a database"),
        ("postgresql:///x", "it names no host"),
        ("postgresql://h:0/x", "it names no host"),
        ("postgresql://me:secret@h:port/x", "this is not a URL"),
        ("postgresql://h/x?sslmode", "this is not a URL"),
        ("postgresql://h/x?options=-c", "remove the parameter `options`"),
        ("sqlite://state.db", "this is not the path of a file"),
        ("sqlite:///", "this is not the path of a file"),
        ("sqlite:///:memory:", "this is not the path of a file"),
        ("sqlite:///x?mode=ro", "this is not the path of a file"),
    ],
)
def test_a_mistake_has_a_message_without_the_url(url: str, message: str) -> None:
    with pytest.raises(
        PolicyError, match=f"^COMITY_STATE: {message}.*: write|comity takes"
    ) as error:
        parse(url)
    assert "secret" not in str(error.value)


def test_a_crawl_has_a_name() -> None:
    with pytest.raises(PolicyError, match="COMITY_CRAWL: `a b` is not the name of a crawl"):
        SqlAddress.parse("sqlite:///x", "a b", {})
