"""A server that a crawl could not rely on is refused before the crawl begins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.check import VERSION, check_server
from comity.policies import PolicyError
from tests.redis_server import Cluster, Server, free_port


def test_a_sound_server_is_taken(server: Server) -> None:
    assert check_server(server.address()) == []
    assert check_server(server.address()) == []


FAULTS = {
    "maxmemory-policy": (
        "allkeys-lru",
        r"It evicts requests .*maxmemory-policy: allkeys-lru.*Set `maxmemory-policy noeviction`",
    ),
    "maxmemory": (
        "0",
        r"It has no limit of memory.*Set `maxmemory \d+mb`: half of the machine's memory",
    ),
    "appendonly": ("no", r"It writes no log, so a restart loses requests\. Set `appendonly yes`\."),
}


def refusal(address: StateAddress) -> str:
    with pytest.raises(PolicyError) as raised:
        check_server(address)
    return str(raised.value)


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_would_lose_something_is_refused(own_server: Server, name: str) -> None:
    value, message = FAULTS[name]
    own_server.client().config_set(name, value)
    told = refusal(own_server.address())
    assert re.search(message, told)
    assert told.count("\n- ") == 1
    assert "start the server" not in told


def test_all_faults_of_a_server_are_told_at_once_with_what_mends_them(own_server: Server) -> None:
    client = own_server.client()
    for name, (value, _) in FAULTS.items():
        client.config_set(name, value)
    client.set(VERSION, 7)
    told = refusal(own_server.address())
    for _, message in FAULTS.values():
        assert re.search(message, told)
    assert "- It has data of version 7, and this comity knows version 1." in told
    assert "choose the eviction policy noeviction and persistence by AOF" in told
    commands = re.findall(
        rf"^    redis-cli -h 127.0.0.1 -p {own_server.port} CONFIG SET (.*)$", told, re.MULTILINE
    )
    assert [command.split()[0] for command in commands] == [*FAULTS]
    for command in commands:
        assert f"\n    {command}\n" in told  # as redis.conf has it
        client.config_set(*command.split())
    client.delete(VERSION)
    assert check_server(own_server.address()) == []


def test_the_faults_of_the_nodes_of_a_cluster_are_told_with_their_nodes(
    tmp_path: Path, server: Server
) -> None:
    cluster = Cluster(tmp_path, server.program)
    try:
        cluster.start()
        assert check_server(cluster.address()) == []
        first, second, _ = cluster.nodes
        first.client().config_set("appendonly", "no")
        for node in (first, second):
            node.client().config_set("maxmemory-policy", "allkeys-lru")
        told = refusal(cluster.address())
        assert f"- 127.0.0.1:{first.port}: It writes no log" in told
        for node in (first, second):
            assert (
                f"redis-cli -h 127.0.0.1 -p {node.port} CONFIG SET maxmemory-policy noeviction"
                in told
            )
        assert told.count("It evicts requests") == 1
        plain = StateAddress.parse(f"redis://127.0.0.1:{first.port}/0", "crawl", {})
        assert (
            "write redis+cluster:// or rediss+cluster://, as the server is a node of a Cluster"
            in refusal(plain)
        )
    finally:
        cluster.stop()


def test_a_replica_is_refused_with_the_address_of_its_primary(
    own_server: Server, tmp_path: Path
) -> None:
    replica = Server(tmp_path, own_server.program)
    replica.start()
    try:
        replica.client().replicaof("127.0.0.1", own_server.port)
        assert f"Write the address of its primary, 127.0.0.1:{own_server.port}." in refusal(
            replica.address()
        )
    finally:
        replica.stop()


def test_an_error_of_the_server_is_told_with_its_own_remedy(own_server: Server) -> None:
    client: Any = own_server.client()
    port = own_server.port
    for user, keys, commands in (("keys", "other*", "+@all"), ("commands", "*", "-@dangerous")):
        client.acl_setuser(
            user, enabled=True, passwords=["+s3cret"], keys=[keys], commands=["+@all", commands]
        )
        address = StateAddress.parse(f"redis://{user}:s3cret@127.0.0.1:{port}", "crawl", {})
        remedy = f"ACL SETUSER {user} resetkeys ~comity:* +@all -@admin"
        assert refusal(address).endswith(remedy)
        client.execute_command(*remedy.split())
        assert check_server(address) == []
    client.delete(VERSION)
    client.config_set("maxmemory", 1000)
    assert refusal(own_server.address()).endswith(
        "raise `maxmemory`, or delete a crawl with `comity frontier NAME --delete`"
    )
    for url, remedy in (
        (
            f"redis://127.0.0.1:{port}/99",
            "write a lower number of the database, or raise `databases` in redis.conf",
        ),
        (
            f"redis+cluster://127.0.0.1:{port}",
            "write redis:// or rediss://, as the server is not a Cluster",
        ),
        ("redis://no-such-host.invalid", "there is no such host: check its spelling"),
    ):
        assert refusal(StateAddress.parse(url, "crawl", {})).endswith(remedy)


def test_what_is_worth_a_remark_is_told(own_server: Server) -> None:
    client = own_server.client()
    client.config_set("appendfsync", "no")
    check_server(own_server.address())
    client.config_set("maxmemory", 1000)
    full, lazy = check_server(own_server.address())
    assert "of its memory in use" in full
    assert "set `appendfsync everysec`" in lazy


def test_a_server_that_hides_its_settings_is_judged_by_what_it_tells(own_server: Server) -> None:
    own_server.client().acl_setuser(
        "crawler", enabled=True, passwords=["+s3cret"], keys=["*"], commands=["+@all", "-config"]
    )
    address = StateAddress.parse(f"redis://crawler:s3cret@127.0.0.1:{own_server.port}", "crawl", {})
    assert check_server(address) == []
    own_server.client().config_set("maxmemory-policy", "volatile-ttl")
    with pytest.raises(PolicyError, match="volatile-ttl"):
        check_server(address)


def test_a_wrong_password_is_told_without_it(own_server: Server) -> None:
    own_server.client().acl_setuser(
        "crawler", enabled=True, passwords=["+right"], keys=["*"], commands=["+@all"]
    )
    address = StateAddress.parse(f"redis://crawler:s3cret@127.0.0.1:{own_server.port}", "crawl", {})
    with pytest.raises(
        PolicyError,
        match=r"refuses user or password .*: set the environment variable COMITY_STATE_PASSWORD",
    ) as raised:
        check_server(address)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "rediss"])
def test_a_server_that_is_not_there_is_told(scheme: str) -> None:
    address = StateAddress.parse(f"{scheme}://:s3cret@127.0.0.1:{free_port()}", "crawl", {})
    with pytest.raises(
        PolicyError, match=r"cannot be used .*: start the server, or write its address"
    ) as raised:
        check_server(address)
    assert "s3cret" not in str(raised.value)


def test_data_of_another_version_is_refused(server: Server) -> None:
    server.client().set(VERSION, 7)
    assert (
        "- It has data of version 7, and this comity knows version 1. Use one version"
        in refusal(server.address())
    )


def test_an_old_server_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comity.cluster.redis.check.OLDEST", (99, 0))
    with pytest.raises(PolicyError, match=r"Use Redis 6.2 or later, or Valkey"):
        check_server(server.address())


def test_a_test_does_not_take_the_server_of_another_one_for_its_own(
    own_server: Server, tmp_path: Path
) -> None:
    other = Server(tmp_path, own_server.program)
    other.port = own_server.port
    with pytest.raises(ConnectionError, match=r"another server has taken port \d+"):
        other.start()
    other.stop()
