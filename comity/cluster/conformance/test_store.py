"""Policy files, and the entries that belong to them, as `PolicyStore` keeps them on one machine."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import pytest

from comity.cluster.conformance.harness import Harness
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import REFERENCES, Store
from comity.policies.answers.fetched import Fetched

NOW = 1_800_000_000.0
ROBOTS = "/robots.txt"


def utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def fetched(body: bytes = b"User-agent: *\nDisallow: /\n") -> PolicyFile:
    return PolicyFile(
        due=NOW,
        copy=Fetched(
            status=200,
            headers=((b"content-type", b"text/plain"), (b"x-odd", b"\xff\x00")),
            body=body,
            url="https://a.test/robots.txt",
            fetched_at=utc(NOW + 0.25),
        ),
    )


FILES = {
    ROBOTS: fetched(),
    "/ai.txt": fetched(bytes(range(256)) * 400),
    "/tdmrep.json": PolicyFile(
        due=NOW + 0.5,
        failure=Fetched(status=0, error="timed out", url="https://a.test/tdmrep.json"),
        failing_since=utc(NOW - 60),
        failures=3,
    ),
    "https://b.test/license.xml": PolicyFile(
        due=NOW, copy=Fetched(status=404, url="https://b.test/license.xml", oversized=True)
    ),
}


def store_of(harness: Harness) -> Store:
    return harness.state("conformance", 10.0).store()


@pytest.fixture
def store(harness: Harness) -> Iterator[Store]:
    with closing(store_of(harness)) as store:
        yield store


@pytest.fixture
def other(harness: Harness) -> Iterator[Store]:
    """The store of another worker."""
    with closing(store_of(harness)) as other:
        yield other


@pytest.fixture
def origin() -> str:
    return f"https://{secrets.token_hex(6)}.test"


def test_saved_files_are_loaded_by_every_worker(store: Store, other: Store, origin: str) -> None:
    assert store.is_shared
    assert store.load(origin) == {}
    second = f"{origin}:8443"
    store.save_sites({origin: FILES, second: {ROBOTS: FILES[ROBOTS]}})
    assert other.load(origin) == FILES
    assert other.load(second) == {ROBOTS: FILES[ROBOTS]}
    changed = fetched(b"User-agent: *\nAllow: /\n")
    other.save_sites({origin: {ROBOTS: changed}})
    assert store.load(origin) == FILES | {ROBOTS: changed}
    other.save_sites({})
    assert store.load(second) == {ROBOTS: FILES[ROBOTS]}


def test_a_site_that_names_other_files_every_day_does_not_fill_the_store(
    store: Store, origin: str
) -> None:
    for number in range(3 * REFERENCES):
        store.save_sites({origin: {ROBOTS: fetched(), f"https://b.test/{number:03}": fetched()}})
    paths = store.load(origin)
    assert ROBOTS in paths
    assert len(paths) == REFERENCES + 1
    assert f"https://b.test/{3 * REFERENCES - 1:03}" in paths


def test_the_first_moment_is_remembered(store: Store, other: Store, origin: str) -> None:
    url = f"{origin}/x"
    first = store.first_taken(url, ["train-ai", "search"], utc(NOW + 0.25))
    assert first == dict.fromkeys(["train-ai", "search"], utc(NOW + 0.25))
    again = other.first_taken(url, ["search", "other"], utc(NOW + 9))
    assert again == {"search": utc(NOW + 0.25), "other": utc(NOW + 9)}
    assert store.first_taken(url, [], utc(NOW)) == {}


def test_an_action_is_requested_once_by_each_file(store: Store, other: Store, origin: str) -> None:
    url = f"{origin}/a\n?"
    assert store.requests_action(url, "take-down", "1", utc(NOW))
    assert not other.requests_action(url, "take-down", "1", utc(NOW + 1))
    assert other.requests_action(url, "take-down", "2", utc(NOW + 2))
    assert other.requests_action(url, "archive", "1", utc(NOW + 1))
    assert other.requests_action(f"{url}b", "take-down", "1", utc(NOW + 1))


def test_the_begin_of_a_session_is_remembered(store: Store, other: Store, origin: str) -> None:
    assert store.session_began(origin, b"s3cret", utc(NOW)) == utc(NOW)
    assert other.session_began(origin, b"s3cret", utc(NOW + 5)) == utc(NOW)
    assert other.session_began(origin, b"other", utc(NOW + 5)) == utc(NOW + 5)


def test_one_worker_fetches_an_origin(harness: Harness, origin: str) -> None:
    with closing(store_of(harness)) as other:
        with closing(store_of(harness)) as store:
            assert store.claims_fetch(origin, 60)
            assert not other.claims_fetch(origin, 60)
            assert store.claims_fetch(origin, 60)  # it renews its claim
            other.gives_back(origin)  # it has no claim
            assert not other.claims_fetch(origin, 60)
            store.gives_back(origin)
            assert other.claims_fetch(origin, 60)
            store.gives_back(origin)
            assert not store.claims_fetch(origin, 60)
            other.gives_back(origin)
            assert store.claims_fetch(origin, 0.001)
            while not other.claims_fetch(origin, 60):  # until the claim has ended
                pass
            store.gives_back(origin)  # it is the claim of the other worker by now
            assert not store.claims_fetch(origin, 60)
            other.gives_back(origin)
            assert store.claims_fetch(origin, 60)
        assert other.claims_fetch(origin, 60)


def test_of_workers_that_claim_at_once_one_fetches(harness: Harness, origin: str) -> None:
    stores = [store_of(harness) for _ in range(8)]
    try:
        with ThreadPoolExecutor(len(stores)) as threads:
            claimed = list(threads.map(lambda each: each.claims_fetch(origin, 60), stores))
        assert sorted(claimed) == [False] * 7 + [True]
    finally:
        for each in stores:
            each.close()


def test_a_server_that_is_away_is_an_error_and_loses_no_files(
    own_harness: Harness, origin: str
) -> None:
    store = store_of(own_harness)
    store.save_sites({origin: FILES})
    own_harness.kill()
    try:
        with pytest.raises(OSError, match="cannot be read"):
            store.load(origin)
        with pytest.raises(OSError, match="cannot be written"):
            store.save_sites({origin: FILES})
        with pytest.raises(OSError, match="cannot be written"):
            store.claims_fetch(origin, 60)
    finally:
        own_harness.start()
    assert store.load(origin) == FILES
    store.close()
