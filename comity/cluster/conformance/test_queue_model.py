"""The queue of a store against one in memory, over random steps of three workers."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.cluster.conformance.harness import Harness
from comity.cluster.queue import Lease, QueuedRequest
from comity.cluster.state import CrawlQueue

HOSTS = [f"{number}.example" for number in range(3)]


@dataclass
class Model:
    """The expected queue. A request is (-priority, key), which is the order of its going out."""

    waiting: dict[str, set[tuple[int, bytes]]] = field(
        default_factory=lambda: {host: set() for host in HOSTS}
    )
    out: dict[str, set[tuple[int, bytes]]] = field(
        default_factory=lambda: {host: set() for host in HOSTS}
    )
    owner: dict[str, int] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)  # leases
    aside: set[str] = field(default_factory=set)
    seen: set[bytes] = field(default_factory=set)

    def take(self, host: str, most: int) -> list[bytes]:
        taken = sorted(self.waiting[host])[:most]
        self.waiting[host].difference_update(taken)
        self.out[host].update(taken)
        return [key for _, key in taken]

    def free(self, host: str) -> None:
        self.waiting[host] |= self.out[host]
        self.out[host].clear()
        self.owner.pop(host, None)
        self.ended.discard(host)
        self.aside.discard(host)


workers, hosts = st.integers(0, 2), st.sampled_from(HOSTS)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            workers,
            st.lists(st.tuples(hosts, st.integers(0, 12), st.integers(-1, 1)), max_size=6),
        ),
        st.tuples(st.just("lease"), workers, st.integers(1, 3)),
        st.tuples(st.just("more"), workers, hosts),
        st.tuples(st.just("ack"), workers, hosts),
        st.tuples(st.just("set aside"), workers, hosts),
        st.tuples(st.just("recall"), workers, st.none()),
        st.tuples(st.just("release"), workers, hosts),
        st.tuples(st.just("renew"), workers, st.none()),
        st.tuples(st.just("freeze"), workers, st.none()),
    ),
    max_size=40,
)


def test_the_queue_is_as_its_model(
    harness: Harness, crawl: str, pytestconfig: pytest.Config
) -> None:
    crawls = map(str, itertools.count())

    @settings(deadline=None, database=None, max_examples=pytestconfig.getoption("--examples"))
    @given(steps)
    def check(steps: list[tuple[str, int, object]]) -> None:
        asyncio.run(compare(f"{crawl}-{next(crawls)}", steps))

    async def compare(crawl: str, steps: list[tuple[str, int, object]]) -> None:
        states = [harness.state(crawl, 1000) for _ in range(3)]
        queues = [state.queue() for state in states]
        for queue in queues:
            await queue.open()
        model, names = Model(), [queue.worker for queue in queues]
        got: dict[int, dict[str, list[bytes]]] = {
            number: {host: [] for host in HOSTS} for number in range(3)
        }

        def given_out(who: int, lease: Lease | None, expected: list[bytes]) -> None:
            assert lease is not None
            assert [entry.key for entry in lease.requests] == expected
            assert all(entry.body == entry.key for entry in lease.requests)
            assert lease.waiting == len(model.waiting[lease.host])
            got[who][lease.host] += expected

        for what, who, which in steps:
            queue = queues[who]
            if what == "put":
                assert isinstance(which, list)
                rows, expected = [], []
                for host, number, priority in which:
                    key = queue.new_key()
                    # 0: it has no fingerprint
                    fingerprint = f"{number}".encode() if number else None
                    rows.append(QueuedRequest(host, fingerprint, key, priority, key))
                    expected.append(
                        fingerprint is None or host.encode() + fingerprint not in model.seen
                    )
                    rows[-1] = rows[-1]._replace(
                        fingerprint=host.encode() + fingerprint if fingerprint else None
                    )
                    if rows[-1].fingerprint is not None:
                        model.seen.add(rows[-1].fingerprint)
                    if expected[-1]:
                        model.waiting[host].add((-priority, key))
                assert await queue.put(rows) == expected
            elif what == "lease":
                assert isinstance(which, int)
                leases = await queue.lease(which, 2)
                free = {
                    host for host in HOSTS if host not in model.owner or host in model.ended
                } - model.aside
                for host in HOSTS:  # an ended lease gives its requests back first
                    if host in model.ended and any(lease.host == host for lease in leases):
                        model.free(host)
                assert {lease.host for lease in leases} <= free
                for lease in leases:
                    model.owner[lease.host] = who
                    given_out(who, lease, model.take(lease.host, 2))
            elif what == "more":
                assert isinstance(which, str)
                lease_or_none = await queue.more(which, 2)
                if model.owner.get(which) == who:
                    given_out(who, lease_or_none, model.take(which, 2))
                else:
                    assert lease_or_none is None
            elif what == "ack":
                assert isinstance(which, str)
                done, got[who][which] = got[who][which][:2], got[who][which][2:]
                await queue.ack(which, done)
                for entries in (model.waiting[which], model.out[which]):
                    entries -= {entry for entry in entries if entry[1] in done}
            elif what == "set aside":
                assert isinstance(which, str)
                await queue.set_aside(which, 1000)
                if model.owner.get(which) == who:
                    model.free(which)
                    if model.waiting[which]:
                        model.aside.add(which)
            elif what == "recall":
                await queue.recall()
                model.aside.clear()
            elif what == "release":
                assert isinstance(which, str)
                await queue.release(which)
                if model.owner.get(which) == who:
                    model.free(which)
            elif what == "renew":
                held = {host for host in HOSTS if model.owner.get(host) == who}
                assert await queue.renew(HOSTS) == set(HOSTS) - held
                model.ended -= held
            elif what == "freeze":  # its leases end
                queue.ttl = 0
                await queue.renew([host for host in HOSTS if model.owner.get(host) == who])
                queue.ttl = 1000
                model.ended |= {host for host in HOSTS if model.owner.get(host) == who}
            await agree(queue, model, names)
        for state in states:
            await state.close()

    async def agree(queue: CrawlQueue, model: Model, names: list[str]) -> None:
        found = {host.host: (host.worker, host.waiting, host.out) for host in await queue.hosts(10)}
        # An ended lease goes back at a later lease. A host where nothing waits may be known or
        # not.
        for host in HOSTS:
            worker, waiting, out = found.get(host, ("", 0, 0))
            owner = names[model.owner[host]] if host in model.owner else ""
            if host not in model.ended:
                assert (worker, waiting, out) == (
                    owner,
                    len(model.waiting[host]),
                    len(model.out[host]),
                )
            assert waiting + out == len(model.waiting[host]) + len(model.out[host])
        left = sum(map(len, [*model.waiting.values(), *model.out.values()]))
        aside = sum(len(model.waiting[host]) for host in model.aside)
        shards = await queue.look()
        assert (sum(shard.left for shard in shards), sum(shard.aside for shard in shards)) == (
            left,
            aside,
        )
        assert await queue.is_finished() is (left == aside)

    check()
