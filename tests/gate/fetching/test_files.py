"""The shared files of origins, from the store or from servers that follow a script."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import pytest

from comity.gate.fetching import files as module
from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.files import PolicyFiles, PolicyQuery
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from tests.gate.fetching.conftest import Peer, Server, answer, options, says

Serving = Callable[..., Server]


class Crawl:
    """A crawl that asks for files."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, name: str, number: int = 1, place: str = "") -> None:
        self.counts[name] += number


class SlowStore(PolicyStore):
    """A store that saves only after its release."""

    def __init__(self, path: Path, release: threading.Event) -> None:
        super().__init__(path)
        self._release = release

    def save_sites(self, sites: Mapping[str, Mapping[str, PolicyFile]]) -> None:
        self._release.wait(60)
        super().save_sites(sites)


def run(store: PolicyStore, work: Callable[[PolicyFiles], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        files = PolicyFiles(store, PolicyClient(options()), timeout=300)
        await work(files)
        await files.leave()

    asyncio.run(all_of_it())


def query(server: Server) -> PolicyQuery:
    return PolicyQuery(server.origin, ("/robots.txt",), None)


@pytest.mark.requirement("RFC-5")
def test_what_is_under_way_or_on_its_way_into_the_store_is_not_asked_for_again(
    serving: Serving, tmp_path: Path
) -> None:
    server = serving(says(answer(b"Disallow: /")))
    release = threading.Event()

    async def work(files: PolicyFiles) -> None:
        first, second, third = Crawl(), Crawl(), Crawl()
        together = await asyncio.gather(
            files.get(query(server), first), files.get(query(server), second)
        )
        later = await files.get(query(server), third)
        release.set()
        assert {found.files["/robots.txt"].copy for found in (*together, later)} == {
            together[0].files["/robots.txt"].copy
        }
        assert [crawl.counts["shared"] for crawl in (first, second, third)] == [0, 1, 1]
        assert [crawl.counts["fetched"] for crawl in (first, second, third)] == [1, 0, 0]

    run(SlowStore(tmp_path / "store", release), work)
    run(PolicyStore(tmp_path / "store"), lambda files: _expect_stored(files, server))
    assert [peer.paths for peer in server.peers] == [["/robots.txt"]]


class CountingStore(PolicyStore):
    """A store that counts its writes, and fails by a bug for the files of one origin."""

    def __init__(self, path: Path, poisoned: str = "") -> None:
        super().__init__(path)
        self.writes: list[tuple[str, ...]] = []
        self._poisoned = poisoned

    def save_sites(self, sites: Mapping[str, Mapping[str, PolicyFile]]) -> None:
        self.writes.append(tuple(sites))
        if self._poisoned in sites:
            raise ValueError("a mistake")
        super().save_sites(sites)


async def _have(files: PolicyFiles, servers: Iterable[Server]) -> None:
    await asyncio.gather(*(files.get(query(server), Crawl()) for server in servers))


@pytest.mark.requirement("RFC-5")
def test_what_is_learnt_in_a_moment_is_saved_together(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are saved at the latest when the last crawl leaves.

    Other queries find them before that.
    """
    monkeypatch.setattr(module, "SAVE_AFTER", 3600.0)
    servers = [serving(says(answer(b"Disallow: /"))) for _ in range(3)]
    store = CountingStore(tmp_path / "store")

    async def work(files: PolicyFiles) -> None:
        await _have(files, servers)
        other = query(servers[0])._replace(renew_before=1.0)
        found = await files.get(other, Crawl())
        assert not found.renewed
        assert found.files["/robots.txt"].copy
        assert not store.writes

    run(store, work)
    (written,) = store.writes
    assert sorted(written) == sorted(server.origin for server in servers)
    for server in servers:
        run(PolicyStore(tmp_path / "store"), partial(_expect_stored, server=server))
    assert [len(server.peers) for server in servers] == [1, 1, 1]


@pytest.mark.requirement("RFC-5")
def test_it_is_saved_while_crawls_go_on(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAVE_AFTER", 0.0)
    server = serving(says(answer(b"Disallow: /")))
    reader = PolicyStore(tmp_path / "store")

    async def work(files: PolicyFiles) -> None:
        await _have(files, [server])
        (look_up,) = files._look_ups.values()
        assert look_up.task
        await asyncio.wait([look_up.task], timeout=300)
        assert reader.load(server.origin)["/robots.txt"].copy

    run(PolicyStore(tmp_path / "store"), work)
    reader.close()


def test_what_cannot_be_saved_takes_nothing_else_with_it(
    serving: Serving, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    servers = [serving(says(answer(b"Disallow: /"))) for _ in range(3)]
    run(
        CountingStore(tmp_path / "store", poisoned=servers[1].origin),
        partial(_have, servers=servers),
    )
    reader = PolicyStore(tmp_path / "store")
    assert [bool(reader.load(server.origin)) for server in servers] == [True, False, True]
    assert caplog.messages.count(f"The policies of {servers[1].origin} cannot be kept") == 1
    reader.close()


async def _expect_stored(files: PolicyFiles, server: Server) -> None:
    found = await files.get(query(server), Crawl())
    assert not found.renewed
    assert found.files["/robots.txt"].copy


@pytest.mark.requirement("SEC-6")
def test_it_ends_when_nobody_waits_any_more(serving: Serving, tmp_path: Path) -> None:
    """The connection ends, and no file is stored."""
    is_asked, is_left = threading.Event(), threading.Event()

    def hangs(peer: Peer) -> None:
        peer.read()
        is_asked.set()
        peer.wait_for_the_end()
        is_left.set()

    server = serving(hangs, says(answer(b"Disallow: /")))

    async def work(files: PolicyFiles) -> None:
        waiting = [asyncio.create_task(files.get(query(server), Crawl())) for _ in range(2)]
        await asyncio.to_thread(is_asked.wait, 5)
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        assert not is_left.is_set()
        waiting[1].cancel()
        assert await asyncio.to_thread(is_left.wait, 5)
        # This starts a new look-up, and does not join the cancelled one.
        found = await files.get(query(server), Crawl())
        assert found.renewed == {"/robots.txt"}

    run(PolicyStore(tmp_path / "store"), work)
    assert len(server.peers) == 2


def test_no_more_origins_are_asked_at_a_time(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ORIGINS_AT_ONCE", 2)
    release = threading.Event()

    def waits(peer: Peer) -> None:
        peer.read()
        release.wait(60)
        peer.send(answer())
        peer.wait_for_the_end()

    servers = [serving(waits) for _ in range(3)]

    async def work(files: PolicyFiles) -> None:
        waiting = [asyncio.create_task(files.get(query(server), Crawl())) for server in servers]
        while sum(len(server.peers) for server in servers) < 2:  # noqa: ASYNC110  # servers are threads
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # time for the request that must not come
        assert [len(server.peers) for server in servers] == [1, 1, 0]
        release.set()
        assert len(await asyncio.gather(*waiting)) == 3

    run(PolicyStore(tmp_path / "store"), work)


@pytest.mark.requirement("RFC-5")
def test_who_joins_what(tmp_path: Path) -> None:
    """Crawls with the same store, client and timeout share; the last to leave closes the store."""

    async def work() -> None:
        first = PolicyFiles.joined(tmp_path / "one", options(), timeout=15)
        assert PolicyFiles.joined(tmp_path / "." / "one", options(), timeout=15) is first
        others = [
            PolicyFiles.joined(tmp_path / "two", options(), timeout=15),
            PolicyFiles.joined(tmp_path / "one", options(), timeout=16),
            PolicyFiles.joined(tmp_path / "one", options(verified=False), timeout=15),
        ]
        assert len({id(files) for files in (first, *others)}) == 4
        await first.leave()
        assert PolicyFiles.joined(tmp_path / "one", options(), timeout=15) is first
        for files in (first, first, *others):
            await files.leave()
        again = PolicyFiles.joined(tmp_path / "one", options(), timeout=15)
        assert again is not first
        await again.leave()

    asyncio.run(work())


def test_a_crawl_that_was_torn_off_with_its_loop_is_joined_by_none(
    serving: Serving, tmp_path: Path
) -> None:
    server = serving(says(answer()))

    async def torn_off() -> PolicyFiles:
        files = PolicyFiles.joined(tmp_path / "one", options(), timeout=15)
        await files.get(query(server), Crawl())
        return files

    async def next_one() -> PolicyFiles:
        files = PolicyFiles.joined(tmp_path / "one", options(), timeout=15)
        await files.leave()
        return files

    assert asyncio.run(torn_off()) is not asyncio.run(next_one())
