"""Policy files on a server: the same comes back as from the file of one machine."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.cluster.records import ACTION, SESSION, TERM, YEAR
from comity.cluster.redis import store as store_module
from comity.cluster.redis.store import ACTIONS, BODY, LIFETIME, SALT, SITE, RedisStore
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore, Store
from comity.policies.answers.fetched import Fetched
from tests.gate.fetching.policy_files import answers, policy_files, utc
from tests.redis_server import Server

NOW = 1_800_000_000.0
ROBOTS = "/robots.txt"
ORIGIN = "https://a.test"


def had(body: bytes = b"User-agent: *\nDisallow: /\n") -> PolicyFile:
    return PolicyFile(
        due=NOW,
        copy=Fetched(status=200, body=body, url=f"{ORIGIN}/robots.txt", fetched_at=utc(NOW)),
    )


@pytest.fixture
def store(server: Server) -> Iterator[RedisStore]:
    store = RedisStore(server.address())
    yield store
    store.close()


@pytest.fixture
def other(server: Server) -> Iterator[RedisStore]:
    """That of another worker."""
    other = RedisStore(server.address("other"))
    yield other
    other.close()


files = policy_files(answers)


@pytest.mark.requirement("REACH-1")
def test_what_is_saved_is_loaded_as_from_the_file(store: RedisStore, tmp_path: Path) -> None:
    stores: list[Store] = [store, PolicyStore(tmp_path / "policies.sqlite")]
    origins = (f"https://{number}.test" for number in itertools.count())

    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from([ROBOTS, "/ai.txt", "https://b.test/license.xml"]), files
            ),
            max_size=3,
        )
    )
    def check(saved: list[dict[str, PolicyFile]]) -> None:
        origin, second = next(origins), next(origins)
        for of_origin in saved:
            for each in stores:
                each.save_sites({origin: of_origin, second: of_origin})
        ours, theirs = stores
        assert ours.load(origin) == theirs.load(origin) == ours.load(second)

    check()
    stores[1].close()


def test_a_body_is_kept_once_and_lasts_longer_than_what_names_it(
    store: RedisStore, server: Server
) -> None:
    store.save_sites({"https://a.test": {ROBOTS: had()}, "https://b.test": {ROBOTS: had()}})
    client = server.client()
    (body,) = client.scan_iter(BODY + b"*")
    assert zlib.decompress(client.get(body)) == had().copy.body  # type: ignore[union-attr, arg-type]
    assert client.pttl(body) > client.pttl(SITE + b"https://a.test") + LIFETIME / 2
    client.pexpire(body, 1000)
    store.save("https://a.test", {ROBOTS: had()})
    assert client.pttl(body) > LIFETIME
    client.delete(body)
    with pytest.raises(OSError, match="cannot be read: a body is not as it was written"):
        store.load("https://a.test")
    store.save("https://a.test", {ROBOTS: had()})
    assert store.load("https://a.test") == {ROBOTS: had()}


def test_what_was_written_long_ago_is_dropped(
    store: RedisStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(ORIGIN, {"/ai.txt": had(), ROBOTS: had()})
    monkeypatch.setattr(store_module, "LIFETIME", -1)
    store.save(ORIGIN, {})  # as if it were later
    assert store.load(ORIGIN) == {}


def test_what_is_taken_down_is_asked_for_no_more(store: RedisStore, other: RedisStore) -> None:
    a, b = "https://a.test/a", "https://a.test/b\n?"
    assert store.requests_action(a, "take-down", "1", utc(NOW))
    assert not other.requests_action(a, "take-down", "1", utc(NOW + 1))
    assert other.requests_action(a, "take-down", "2", utc(NOW + 2))
    assert other.requests_action(b, "take-down", "1", utc(NOW + 1))
    assert other.requests_action(b, "archive", "1", utc(NOW + 1))
    assert store.take_downs() == [(b, utc(NOW + 1)), (a, utc(NOW + 2))]
    other.took_down([a, b, "https://c.test/"], utc(NOW + 1.5))
    assert store.take_downs() == [(a, utc(NOW + 2))]
    store.took_down([a], utc(NOW + 2))
    assert other.take_downs() == []
    assert not other.requests_action(b, "take-down", "1", utc(NOW + 9))


def test_when_a_session_began_is_remembered_and_its_secret_is_not(
    store: RedisStore, other: RedisStore, server: Server
) -> None:
    assert store.session_began("a.test", b"s3cret", utc(NOW)) == utc(NOW)
    assert other.session_began("a.test", b"s3cret", utc(NOW + 5)) == utc(NOW)
    assert other.session_began("a.test", b"other", utc(NOW + 5)) == utc(NOW + 5)
    client = server.client()
    assert all(b"s3cret" not in (client.dump(key) or b"") for key in client.scan_iter())


def test_everything_that_is_remembered_has_an_end(store: RedisStore, server: Server) -> None:
    """The version of the data has none. A use of a key begins its time anew."""
    client = server.client()

    def remember() -> None:
        store.save(ORIGIN, {ROBOTS: had()})
        store.claims_fetch(ORIGIN, 60)
        store.first_taken(f"{ORIGIN}/x", ["search"], utc(NOW))
        store.requests_action(f"{ORIGIN}/x", "take-down", "1", utc(NOW))
        store.requests_action(f"{ORIGIN}/x", "re-crawl", "1", utc(NOW))
        store.session_began("a.test", b"s3cret", utc(NOW))

    remember()
    keys = {key: client.ttl(key) for key in client.scan_iter()}
    assert len(keys) == 8
    assert all(ttl > 0 for ttl in keys.values())
    lives = {
        SALT: SESSION + YEAR,
        f"comity:taken:{ORIGIN}/x": TERM,
        "comity:sessions:a.test": SESSION,
        ACTIONS: TERM,
    }
    for name, seconds in lives.items():
        assert keys[name.encode()] > seconds - 600
        client.expire(name, 60)
    remember()
    assert all(client.ttl(name) > seconds - 600 for name, seconds in lives.items())


def age(server: Server, key: str, seconds: int) -> None:
    """Let what is kept in a zset end sooner."""
    client: Any = server.client()
    for member, _ in client.zrange(key, 0, -1, withscores=True):
        client.zincrby(key, -seconds, member)


def test_an_action_that_no_site_asks_for_any_more_is_forgotten(
    store: RedisStore, server: Server
) -> None:
    """One that is to be taken down is remembered for longer."""
    client, keep = server.client(), f"{{{ACTIONS}}}:until"
    for url in ("a", "b"):
        assert store.requests_action(url, "re-crawl", "1", utc(NOW))
    assert store.requests_action("c", "take-down", "1", utc(NOW))
    age(server, keep, ACTION - 60)
    assert not store.requests_action("a", "re-crawl", "1", utc(NOW))
    age(server, keep, 120)
    assert not store.requests_action("a", "re-crawl", "1", utc(NOW))
    assert client.hlen(ACTIONS) == client.zcard(keep) == 2
    assert store.requests_action("b", "re-crawl", "1", utc(NOW))
    assert store.take_downs() == [("c", utc(NOW))]
    age(server, keep, TERM)
    assert store.requests_action("b", "re-crawl", "1", utc(NOW))
    assert store.take_downs() == []


def test_a_session_that_was_not_seen_for_long_is_forgotten(
    store: RedisStore, server: Server
) -> None:
    key = "comity:sessions:a.test"
    client: Any = server.client()
    assert store.session_began("a.test", b"one", utc(NOW)) == utc(NOW)
    (digest,) = client.hkeys(key)
    assert store.session_began("a.test", b"two", utc(NOW + 1)) == utc(NOW + 1)
    assert store.session_began("a.test", b"one", utc(NOW + 2)) == utc(NOW)
    first, last = client.hget(key, digest).split()
    client.hset(key, digest, b"%s %d" % (first, int(last) - SESSION - 60))
    assert store.session_began("a.test", b"two", utc(NOW + 3)) == utc(NOW + 1)
    assert client.hlen(key) == 1
    assert store.session_began("a.test", b"one", utc(NOW + 4)) == utc(NOW + 4)


@pytest.mark.parametrize("value", [b"no line", b"1\n{}", b"1\n[", b'1\n{"due": "x"}'])
def test_what_cannot_be_read_is_an_error_and_no_permission(
    store: RedisStore, server: Server, value: bytes
) -> None:
    server.client().hset(f"comity:site:{ORIGIN}", ROBOTS, value)
    with pytest.raises(OSError, match=r"redis://127.0.0.1:[0-9]+/0 cannot be read: "):
        store.load(ORIGIN)
