"""Addresses of the shared state, and how its keys are spread."""

from __future__ import annotations

from collections import Counter

import pytest

from comity.cluster.address import SHARDS, pace_key, shard_of
from comity.cluster.redis.address import StateAddress
from comity.policies import PolicyError


@pytest.mark.parametrize(
    ("url", "shown", "options"),
    [
        (
            "redis://a.example",
            "redis://a.example:6379/0",
            {"host": "a.example", "port": 6379, "db": 0, "ssl": False},
        ),
        (
            "rediss://a.example:7000/3",
            "rediss://a.example:7000/3",
            {"port": 7000, "db": 3, "ssl": True},
        ),
        ("redis://[::1]:7000/", "redis://[::1]:7000/0", {"host": "::1"}),
        ("redis+cluster://a.example:7000", "redis+cluster://a.example:7000", {"ssl": False}),
        ("rediss+cluster://a.example:7000/0", "rediss+cluster://a.example:7000", {"ssl": True}),
        (
            "redis://crawler:s%3Acret@a.example",
            "redis://a.example:6379/0",
            {"username": "crawler", "password": "s:cret"},
        ),
        (
            "redis://:s3cret@a.example",
            "redis://a.example:6379/0",
            {"username": None, "password": "s3cret"},
        ),
    ],
)
def test_addresses_are_read_and_shown_without_secrets(
    url: str, shown: str, options: dict[str, object]
) -> None:
    address = StateAddress.parse(url, "news-2026", {})
    assert str(address) == shown
    assert "cret" not in repr(address)
    assert "crawler" not in repr(address)
    found = address.client_options(1.0)
    assert {name: found[name] for name in options} == options
    assert ("db" in found) is not address.is_cluster


def test_the_password_may_come_from_the_environment() -> None:
    environ = {"COMITY_STATE_PASSWORD": "s3cret"}
    assert StateAddress.parse("redis://user@a.example", "news", environ).password == "s3cret"
    assert StateAddress.parse("redis://user:other@a.example", "news", environ).password == "other"


@pytest.mark.parametrize(
    ("url", "crawl", "message"),
    [
        ("http://:s3cret@a.example", "news", "its scheme is not one of redis, rediss, redis"),
        ("redis://:s3cret@", "news", "it names no host: write redis://HOST:PORT/DB"),
        ("redis://:s3cret@a.example:x/0", "news", "this is not a URL"),
        ("redis://:s3cret@a.example:0/0", "news", "it names no host"),
        ("redis://:s3cret@a exa/0", "news", "it names no host"),
        ("redis://:s3cret@[::1", "news", "this is not a URL"),
        ("redis://:s3cret@a.example/one", "news", "its path is not the number"),
        ("redis://:s3cret@a.example/0?x=y", "news", "remove everything after"),
        ("redis+cluster://:s3cret@a.example/1", "news", "a Cluster has only database 0"),
        (
            "redis://:s3cret@a.example",
            "a b",
            "`a b` is not the name of a crawl: write 1 to 64 letters",
        ),
        ("redis://:s3cret@a.example", "", "is not the name of a crawl"),
        ("redis://:s3cret@a.example", "a" * 65, "is not the name of a crawl"),
        ("redis://:s3cret@a.example", "a\n", "is not the name of a crawl"),
    ],
)
def test_mistakes_are_told_without_the_secret(url: str, crawl: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as raised:
        StateAddress.parse(url, crawl, {})
    assert "s3cret" not in str(raised.value)


def test_keys_of_a_shard_have_one_tag_and_hosts_are_spread() -> None:
    address = StateAddress.parse("redis://a.example", "news", {})
    assert address.shard_key(5) == "comity:{news:5}"
    assert address.prefix == "comity:{news}"
    assert pace_key("a.example").startswith("comity:pace:{")
    counts = Counter(shard_of(f"{number}.example", SHARDS) for number in range(6400))
    assert len(counts) == SHARDS
    assert max(counts.values()) < 200
    shard_of("\udcff", SHARDS)
