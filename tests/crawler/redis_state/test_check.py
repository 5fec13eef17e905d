"""A server that a crawl could not rely on is refused before the crawl begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity.crawler.redis_state.address import StateAddress
from comity.crawler.redis_state.check import VERSION, check_server
from comity.policies import PolicyError
from tests.redis_server import Server, free_port


def test_a_sound_server_is_taken(server: Server) -> None:
    assert check_server(server.address()) == []
    assert check_server(server.address()) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("maxmemory-policy", "allkeys-lru", "maxmemory-policy allkeys-lru.: set `maxmemory-policy noeviction`"),
        ("maxmemory", "0", "set `maxmemory`"),
        ("appendonly", "no", "writes no log, so a restart would lose requests: set `appendonly yes`"),
    ],
)
def test_a_server_that_would_lose_something_is_refused(own_server: Server, name: str, value: str, message: str) -> None:
    own_server.client().config_set(name, value)
    with pytest.raises(PolicyError, match=message):
        check_server(own_server.address())


def test_what_is_worth_a_remark_is_told(own_server: Server) -> None:
    client = own_server.client()
    client.config_set("appendfsync", "no")
    check_server(own_server.address())
    client.config_set("maxmemory", 1000)
    full, lazy = check_server(own_server.address())
    assert "of its memory in use" in full
    assert "set `appendfsync everysec`" in lazy


def test_a_server_that_hides_its_settings_is_judged_by_what_it_tells(own_server: Server) -> None:
    own_server.client().acl_setuser("crawler", enabled=True, passwords=["+s3cret"], keys=["*"], commands=["+@all", "-config"])
    address = StateAddress.parse(f"redis://crawler:s3cret@127.0.0.1:{own_server.port}", "crawl", {})
    assert check_server(address) == []
    own_server.client().config_set("maxmemory-policy", "volatile-ttl")
    with pytest.raises(PolicyError, match="volatile-ttl"):
        check_server(address)


def test_a_wrong_password_is_told_without_it(own_server: Server) -> None:
    own_server.client().acl_setuser("crawler", enabled=True, passwords=["+right"], keys=["*"], commands=["+@all"])
    address = StateAddress.parse(f"redis://crawler:s3cret@127.0.0.1:{own_server.port}", "crawl", {})
    with pytest.raises(
        PolicyError, match=r"refuses user or password .*: set the environment variable COMITY_STATE_PASSWORD"
    ) as raised:
        check_server(address)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "rediss"])
def test_a_server_that_is_not_there_is_told(scheme: str) -> None:
    address = StateAddress.parse(f"{scheme}://:s3cret@127.0.0.1:{free_port()}", "crawl", {})
    with pytest.raises(PolicyError, match=r"cannot be used .*: start the server, or write where it is") as raised:
        check_server(address)
    assert "s3cret" not in str(raised.value)


def test_data_of_another_version_is_refused(server: Server) -> None:
    server.client().set(VERSION, 7)
    with pytest.raises(PolicyError, match="has data of version 7, and this comity knows version 2"):
        check_server(server.address())


def test_an_old_server_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comity.crawler.redis_state.check.OLDEST", (99, 0))
    with pytest.raises(PolicyError, match=r"take Redis 6.2 or later, or Valkey"):
        check_server(server.address())


def test_a_test_does_not_take_the_server_of_another_one_for_its_own(own_server: Server, tmp_path: Path) -> None:
    other = Server(tmp_path, own_server.program)
    other.port = own_server.port
    with pytest.raises(ConnectionError, match=r"another server has taken port \d+"):
        other.start()
    other.stop()
