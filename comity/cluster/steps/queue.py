"""The requests of a crawl that wait or are out, and all its fingerprints, for all workers.

A host is leased to one worker at a time. Only this worker gets the host's requests. A lease that is
not renewed ends. Then another worker gets the host, and requests that were out go out once more.
Therefore no request is lost if its worker is killed. If its worker was only slow, it may go out
twice. Leases do not keep two workers from sending requests to one host at the same time: that is
the task of turns.py.

The server forgets a request when any worker acknowledges it. Put the requests found in its response
first: then a worker that is killed between the two calls loses no request. `put` can be repeated
after its answer was lost, and returns an equal answer."""

from __future__ import annotations

import asyncio
import json
import math
import random
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from struct import Struct
from time import monotonic, time_ns
from typing import Any, NamedTuple

from comity.cluster.address import SHARDS, name_as_key, owner_of, pace_key, pace_shard, shard_of
from comity.cluster.errors import StateError, StateLostError
from comity.cluster.queue import (
    PRIORITIES,
    STATES,
    HostStatus,
    Lease,
    LeasedRequest,
    QueuedRequest,
    Shard,
    Sums,
    UnreadableRequest,
)
from comity.cluster.steps.line import LineConnection
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import host_name

DATA_VERSION = 2  # the version of the data of a crawl; other versions are not read
KEEPS = "noeviction"  # the only maxmemory-policy that loses no keys
MOST_ROWS = 500  # rows that one step puts; more would hold up other callers for long
MOST_BYTES = 2**20  # octets of bodies that one step puts
MOST_TAKEN = 1000  # requests of a host that one step hands out
LAG = 10.0  # a replica that becomes the server may lack the requests of the last so many seconds
COMPARE_EACH = 8  # of so many renewals, one compares all leases of a shard
DIGEST = 12  # octets of a fingerprint's digest: two of 10^9 are equal once in 10^11 crawls
FORGOTTEN = 100  # buckets of fingerprints that one step looks through
_KEY = Struct(">QI")


class _Runs(NamedTuple):
    """The runs of the crawl.

    Attributes:
        run: The number of the run.
        emptied: The last run that began with an empty queue. Its number is in the names of keys.
        kept: The first run of which fingerprints count as seen.
        swept: The data of so many runs is deleted.
        forgotten: The fingerprints of earlier runs than this one are deleted.
        put_before: Requests that were put before the run began, of those that the keys count.
        done_before: Requests that were done before the run began.
        filtered_before: Requests that were filtered before the run began.
    """

    run: int = 1
    emptied: int = 1
    kept: int = 1
    swept: int = 0
    forgotten: int = 0
    put_before: int = 0
    done_before: int = 0
    filtered_before: int = 0

    @property
    def is_swept(self) -> bool:
        """Return True if no data of earlier runs is left that does not count."""
        return self.swept >= self.emptied - 1 and max(self.emptied, self.forgotten) >= self.kept


class StepQueue:
    """The queue of one crawl, as one worker uses it: see `CrawlQueue` for all methods."""

    def __init__(self, connection: LineConnection, worker: str, ttl: float) -> None:
        """`worker`: its unique name. `ttl`: seconds until a lease ends that is not renewed."""
        self.address = connection.address
        self.worker = worker
        self.ttl = ttl
        self.shards = SHARDS
        self._runs = _Runs()
        self.is_outdated = False
        self.is_swept = True
        self.state = "running"
        self.is_redeployed = False
        self._deployed = 0  # how often the settings had been replaced at the last `agree`
        self.total = 0
        self.left = 0
        self.aside = 0
        self.unreadable = 0
        self.share = 1
        self._connection = connection
        connection.on_change(self._forget_latest)
        # An id that differs from that of another crawl with this name. None: `open` was not called,
        # so this is a command and not a worker.
        self._began: bytes | None = None
        self._known: list[int] = []  # requests that were put into each shard, at the last look
        self._older: list[int] = []  # `_known` as it was at least LAG seconds ago
        self._newer: list[int] = []  # the next value of `_older`
        self._aged_at = monotonic()
        self._change = 0  # the last change of the spider's state that this worker knows
        self._looked_at = -math.inf  # when this worker looked at all shards itself
        self._unsure: set[int] = set()  # shards whose last put was not answered
        self._number = random.SystemRandom().getrandbits(32)
        self._last_key = 0
        self._renewals = 0
        self._unknown: set[str] = set()  # leases at the last renewal that this worker did not know

    # The crawl

    def on_change(self, changed: Callable[[], object]) -> None:
        self._connection.on_change(changed)

    async def open(self, shards: int = SHARDS) -> None:
        """Begin or join the crawl. `shards`: the number of shards of a crawl that begins now.

        PolicyError: the crawl on the server has data of another version."""
        version, number, state, began, runs = await self._crawl("crawl open", DATA_VERSION, shards)
        self._check_version(version)
        self.shards, self.state, self._began = int(number), state.decode(), began or b""
        self._runs = _Runs(*runs)
        self.is_outdated, self.is_swept = False, self._runs.is_swept
        self._known = self._newer = self._older = []

    def _check_version(self, version: bytes) -> None:
        """PolicyError: the crawl on the server has data of another version."""
        if int(version) != DATA_VERSION:
            raise PolicyError(
                f"COMITY_STATE: crawl `{self.address.crawl}` at {self.address} has data of version"
                f" {int(version)}, and this comity knows version {DATA_VERSION}: continue with the"
                " comity that began it, or set COMITY_CRAWL to another name"
            )

    async def agree(self, settings: bytes) -> bytes:
        answer = await self._crawl("crawl agree", settings)
        if answer is None:
            raise StateLostError("the crawl is gone")
        of_crawl, self._deployed = answer
        self.is_redeployed = False
        return bytes(of_crawl)

    async def settings(self) -> bytes:
        answer = await self._crawl("crawl look")
        if answer is None:
            raise self._no_crawl()
        *_, settings = answer[:8]
        if not settings:
            raise StateError(
                f"{self.address}: no worker of this version has begun crawl `{self.address.crawl}`"
            )
        return bytes(settings)

    async def deploy(self, settings: bytes) -> bytes:
        before = await self._crawl("crawl deploy", settings)
        if before is None:
            raise self._no_crawl()
        return bytes(before)

    def _no_crawl(self) -> StateError:
        return StateError(f"{self.address}: there is no crawl `{self.address.crawl}`")

    async def finish(self) -> float | None:
        answer = await self._crawl("crawl finish", self.run, self.total)
        if answer is None:
            await self.open()
            return None
        return float(answer) / 1000

    async def begin_again(self, since: float | None = None) -> bool:
        put = done = filtered = 0
        if since is not None:
            shards = await self.look()
            put = sum(shard.put for shard in shards)
            done = sum(shard.done for shard in shards)
            filtered = sum(shard.filtered for shard in shards)
        moment = "" if since is None else _ms(since)
        has_begun = bool(await self._crawl("crawl again", self.run, moment, put, done, filtered))
        await self.open()
        return has_begun

    async def sweep(self) -> None:
        _, _, _, answer, *_ = await self._crawl("crawl look")
        runs = _Runs(*answer)
        for old in range(runs.swept + 1, runs.emptied):
            await self._delete_run(old)
            await self._crawl("crawl swept", old, runs.forgotten)
        if runs.kept > max(runs.emptied, runs.forgotten):
            await _all([self._forget(shard, runs) for shard in range(self.shards)])
        await self._crawl("crawl swept", runs.emptied - 1, runs.kept)
        self.is_swept = True

    async def _forget(self, shard: int, runs: _Runs) -> None:
        """Delete the fingerprints of a shard that no longer count."""
        key, bucket = self.address.shard_key(shard, runs.emptied), 0
        while bucket >= 0:
            bucket = await self._connection.call("queue forget", key, runs.kept, bucket, FORGOTTEN)

    def _forget_latest(self) -> None:
        """Go back to older counts, because another or restarted server may lack the latest puts."""
        self._known = self._newer = self._older
        self._change = 0

    def _check(self, shards: Sequence[Shard]) -> None:
        """Check that the shards have all requests that they had at the last look.

        StateLostError: some are gone."""
        if self._began is None or self.is_outdated:
            return
        lost = _lost(self._known, shards)
        if lost and self.address.is_cluster and not _lost(self._older, shards):
            self._forget_latest()  # a replica has replaced a node, and on_change was not called
        elif lost:
            raise StateLostError(f"of {sum(self._known)} requests that were put, {lost} are gone")
        if stray := sum(shard.left for shard in shards if shard.hosts == 0):
            raise StateLostError(f"the hosts of {stray} requests are gone")
        self._known = [shard.put for shard in shards]
        if monotonic() > self._aged_at + LAG:
            self._aged_at = monotonic()
            self._older, self._newer = self._newer, self._known

    def _crawl(self, step: str, *arguments: Any) -> asyncio.Future[Any]:
        return self._connection.call(step, self.address.prefix, *arguments)

    def _call(self, step: str, host: str, *arguments: Any) -> asyncio.Future[Any]:
        return self._connection.call(step, self._shard_key(host), *arguments)

    def _shard_key(self, host: str) -> str:
        return self._key(shard_of(host, self.shards))

    def _key(self, shard: int) -> str:
        return self.address.shard_key(shard, self._runs.emptied)

    @property
    def run(self) -> int:
        return self._runs.run

    # Requests

    def new_key(self) -> bytes:
        # The keys of several workers are in the order of their clocks.
        self._last_key = max(time_ns() // 1000, self._last_key + 1)
        return _KEY.pack(self._last_key, self._number)

    async def put(self, rows: Sequence[QueuedRequest]) -> list[bool]:
        by_shard: dict[int, list[int]] = {}
        for n, row in enumerate(rows):
            by_shard.setdefault(shard_of(row.host, self.shards), []).append(n)
        outcomes = await asyncio.gather(
            *(
                self._put_shard(shard, [rows[n] for n in numbers])
                for shard, numbers in by_shard.items()
            ),
            return_exceptions=True,
        )
        result = [False] * len(rows)
        for numbers, answers in zip(by_shard.values(), outcomes, strict=True):
            if isinstance(answers, BaseException):
                raise answers
            for n, is_new in zip(numbers, answers, strict=True):
                result[n] = is_new
        self.left += sum(result)
        return result

    async def _put_shard(self, shard: int, rows: list[QueuedRequest]) -> list[bool]:
        is_sure = shard not in self._unsure
        self._unsure.add(shard)  # until the call is answered
        calls = []
        for part in _parts(rows):
            first = (self.worker, "1" if is_sure else "0", self.run, self._runs.kept)
            arguments = [argument for row in part for argument in self._put_arguments(row)]
            calls.append(self._connection.call("queue put", self._key(shard), *first, *arguments))
            is_sure = False
        answers = b"".join(await _all(calls))
        self._unsure.discard(shard)
        return [answer == ord("1") for answer in answers]

    def _put_arguments(self, row: QueuedRequest) -> tuple[bytes | str | int, ...]:
        digest = b""
        if row.fingerprint is not None:
            digest = blake2b(row.fingerprint, digest_size=DIGEST).digest()
        first = self.run if row.is_start else ""
        score = -min(max(row.priority, PRIORITIES[0]), PRIORITIES[-1])
        return name_as_key(row.host), digest, first, row.key, score, row.body

    async def lease(
        self,
        hosts: int,
        per_host: int,
        *,
        unwanted: float = 0.0,
        shards: Sequence[Shard] | None = None,
    ) -> list[Lease]:
        if shards is None:
            shards = await self.look()
        if self.state != "running":
            return []
        ready = [(shard, look.ready) for shard, look in enumerate(shards) if look.ready]
        if not ready or hosts < 1 or per_host < 1:
            return []
        random.shuffle(ready)  # so that workers begin at different shards
        calls = []
        for shard, number in _shares(ready, hosts):
            arguments = (
                self.worker,
                number,
                min(per_host, MOST_TAKEN),
                _ms(self.ttl),
                _ms(unwanted),
            )
            calls.append(self._connection.call("queue lease", self._key(shard), *arguments))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        leases = [
            _lease(answer)
            for answers in outcomes
            if not isinstance(answers, BaseException)
            for answer in answers
        ]
        if not leases:  # if one shard fails, the leases of other shards are kept
            for answers in outcomes:
                if isinstance(answers, BaseException):
                    raise answers
        return await self._with_rests(leases)

    async def _with_rests(self, leases: list[Lease]) -> list[Lease]:
        """Return the leases with `rests` filled in from the pace of the hosts.

        A failure is ignored. Without `rests` the worker only asks for one turn in vain."""
        by_key: dict[str, list[Lease]] = {}
        for lease in leases:
            by_key.setdefault(pace_key(lease.host), []).append(lease)
        calls = {
            key: self._connection.call(
                "pace rests", key, *(name_as_key(lease.host) for lease in group)
            )
            for key, group in by_key.items()
        }
        rests: dict[str, float] = {}
        for key, group in by_key.items():
            try:
                rests.update(
                    (lease.host, wait / 1e6)
                    for lease, wait in zip(group, await calls[key], strict=True)
                )
            except StateError:
                continue
        return [replace(lease, rests=rests.get(lease.host, 0.0)) for lease in leases]

    async def more(self, host: str, number: int) -> Lease | None:
        answer = await self._call(
            "queue more", host, self.worker, name_as_key(host), min(number, MOST_TAKEN)
        )
        return None if answer is None else _lease(answer)

    async def ack(self, host: str, keys: Sequence[bytes]) -> None:
        if keys:
            await self._call("queue ack", host, name_as_key(host), *keys)

    async def read(self, host: str, keys: Sequence[bytes], *, is_done: bool) -> None:
        await self._call("queue read", host, name_as_key(host), int(is_done), *keys)

    async def give_up(self, host: str, whys: Mapping[bytes, str]) -> None:
        arguments = [
            argument for key, why in whys.items() for argument in (key, printable(why).encode())
        ]
        await self._call("queue give_up", host, name_as_key(host), *arguments)

    async def unreadable_requests(self, most: int) -> list[UnreadableRequest]:
        calls = [
            self._connection.call("queue unreadable", self._key(shard), most)
            for shard in range(self.shards)
        ]
        return [
            UnreadableRequest(printable(host), printable(why), body)
            for answer in await _all(calls)
            for host, why, body in answer
        ][:most]

    async def retry(self) -> int:
        retried, shards = 0, [*range(self.shards)]
        while shards:
            answers = await _all(
                [
                    self._connection.call("queue retry", self._key(shard), MOST_TAKEN)
                    for shard in shards
                ]
            )
            retried += sum(answers)
            shards = [
                shard for shard, number in zip(shards, answers, strict=True) if number == MOST_TAKEN
            ]
        return retried

    async def set_aside(self, host: str, wait: float) -> None:
        await self._call("queue set_aside", host, self.worker, name_as_key(host), _ms(wait))

    async def tries(self, origin: str, since: float, due: float) -> int:
        host = host_name(origin)
        return int(
            await self._call("queue tries", host, name_as_key(origin), repr(since), repr(due))
        )

    async def recall(self) -> None:
        shards = [*range(self.shards)]
        while shards:
            answers = await _all(
                [
                    self._connection.call("queue recall", self._key(shard), MOST_TAKEN)
                    for shard in shards
                ]
            )
            shards = [
                shard for shard, number in zip(shards, answers, strict=True) if number == MOST_TAKEN
            ]

    async def renew(self, hosts: Iterable[str]) -> set[str]:
        # If the store has another lease of this worker in two renewals in a row, then the answer to
        # `lease`, or the call of `release`, was lost. So it is released.
        by_shard = self._by_shard(hosts)
        beat = self._connection.beat("crawl beat", self.address.prefix, self.worker, _ms(self.ttl))
        self._renewals += 1
        calls = [
            self._connection.beat(
                "queue renew",
                key,
                self.worker,
                _ms(self.ttl),
                # Equal numbers may be of different hosts. So each shard is compared now and then.
                -1 if (n + self._renewals) % COMPARE_EACH == 0 else len(by_shard[key]),
            )
            for n, key in enumerate(by_shard)
        ]
        lost, unknown = set[str](), set[str]()
        for group, answer in zip(by_shard.values(), await _all(calls), strict=True):
            if answer is not None:
                owned = {name.decode() for name in answer}
                known = {name_as_key(host).decode(): host for host in group}
                lost.update(host for name, host in known.items() if name not in owned)
                unknown |= owned - known.keys()
        stale, self._unknown = unknown & self._unknown, unknown
        self._hear(await beat)
        await self.release(stale)
        return lost

    async def release(self, hosts: str | Iterable[str], wait: float = 0.0) -> None:
        await _all(self._releases([hosts] if isinstance(hosts, str) else hosts, wait))

    def _releases(self, hosts: Iterable[str], wait: float = 0.0) -> list[asyncio.Future[Any]]:
        calls = []
        for key, group in self._by_shard(hosts).items():
            arguments = [argument for host in group for argument in (name_as_key(host), _ms(wait))]
            calls.append(self._connection.call("queue release", key, self.worker, *arguments))
        return calls

    def _by_shard(self, hosts: Iterable[str]) -> dict[str, list[str]]:
        by_shard: dict[str, list[str]] = {}
        for host in hosts:
            by_shard.setdefault(self._shard_key(host), []).append(host)
        return by_shard

    def _hear(self, crawl: Sequence[Any] | None) -> int:
        """Update `state` from an answer of the server, and return the number of live workers.

        StateLostError: the crawl is gone, or the server evicts keys."""
        if crawl is None:
            if self._began is not None and self.state != "ended":
                raise StateLostError("the crawl is gone")
            self.state = "ended"
            return 1
        state, run, began, alive, deployed, *policy = crawl
        if self._began is not None and run > self.run:
            self.is_outdated = True
            self.state = "ended"
            return 1
        if self._began not in (None, began):
            raise StateLostError("another crawl of this name has taken its place")
        if policy and policy[0] != KEEPS.encode():
            raise StateLostError(
                f"its maxmemory-policy is `{printable(policy[0])}`: set `maxmemory-policy {KEEPS}`"
            )
        self.state = state.decode()
        self.is_redeployed = deployed != self._deployed
        return max(1, int(alive))

    async def close(self, hosts: Iterable[str] = ()) -> None:
        await self._connection.finish_beats()  # a later sign of life would undo the next call
        await _all([*self._releases(hosts), self._crawl("crawl leave", self.worker, "left")])

    async def bury(self, worker: str) -> None:
        keys = map(self._key, range(self.shards))
        await _all(
            [
                *(
                    self._connection.call("pace leave", pace_shard(shard), owner_of(worker))
                    for shard in range(SHARDS)
                ),
                *(self._connection.call("queue bury", key, worker) for key in keys),
                self._crawl("crawl leave", worker, "died"),
            ]
        )

    # Counts of the crawl

    def tell(self, counts: Mapping[str, int]) -> asyncio.Future[Any]:
        flat = [member for pair in counts.items() for member in pair]
        return self._crawl("crawl tell", self.worker, self.run, *flat)

    async def sums(self, names: Sequence[str] = ()) -> Sums:
        answer = await self._crawl("crawl sums", *names)
        if answer is None:
            raise self._no_crawl()
        state, reason, ended, began, *counts = answer
        return Sums(state.decode(), reason.decode(), ended / 1000, began / 1000, counts)

    async def pauses(self, hosts: Sequence[str]) -> list[float]:
        calls = [
            self._connection.call("pace pauses", pace_key(host), name_as_key(host))
            for host in hosts
        ]
        return [pause / 1e6 for (pause,) in await _all(calls)]

    # The spider's state

    async def exchange(self, values: Mapping[str, bytes]) -> dict[str, bytes]:
        flat = [member for pair in values.items() for member in pair]
        self._change, *members = await self._crawl("crawl exchange", self._change, *flat)
        pairs = zip(members[::2], members[1::2], strict=True)
        return {key.decode(errors="replace"): bytes(value) for key, value in pairs}

    # All shards

    async def look(self, *, age: float = 0.0) -> list[Shard]:
        # Each worker looks itself once in `ttl`, because only then it notices lost requests.
        if age and monotonic() < self._looked_at + self.ttl:
            crawl, *note = await self._crawl("crawl noted", _ms(age))
            self._hear(crawl)
            if crawl is not None and note:
                alive, *answers = json.loads(zlib.decompress(note[0]))
                return self._count(alive, answers)
        keys = map(self._key, range(self.shards))
        crawl, *answers = await _all(
            [
                self._crawl("crawl ask", _ms(self.ttl)),
                *(self._connection.call("queue look", key) for key in keys),
            ]
        )
        alive = self._hear(crawl)
        try:
            self._check([Shard.of(answer) for answer in answers])
        except StateLostError:
            self._hear(await self._crawl("crawl ask", _ms(self.ttl)))
            if not self.is_outdated:  # else the old run is being deleted
                raise
        self._looked_at = monotonic()
        if age:
            counts = json.dumps([alive, *answers], separators=(",", ":"))
            await self._crawl("crawl note", self.run, zlib.compress(counts.encode(), 1))
        return self._count(alive, answers)

    def _count(self, alive: int, answers: Sequence[Sequence[int]]) -> list[Shard]:
        """Return the shards of a look with so many live workers, and update the sums of them."""
        shards = [Shard.of(answer) for answer in answers]
        self.total = max(0, sum(shard.put for shard in shards) - self._runs.put_before)
        self.left = sum(shard.left for shard in shards)
        self.aside = sum(shard.aside for shard in shards)
        self.unreadable = sum(shard.unreadable for shard in shards)
        hosts = sum(shard.hosts - shard.hosts_aside for shard in shards)
        self.share = -(-hosts // alive)
        return shards

    async def is_finished(self) -> bool:
        # Shards are looked at one after the other. If each shard was empty in two looks, and no
        # request was put in between, then all were empty at the moment between the looks: a worker
        # that has no request out puts none.
        first = await self.look()
        if self.left > self.aside:
            return False
        second = await self.look()
        return self.left == self.aside and [shard.put for shard in first] == [
            shard.put for shard in second
        ]

    async def status(self) -> dict[str, Any]:
        answer = await self._crawl("crawl look")
        if answer is None:
            raise self._no_crawl()
        version, number, state, runs, age, put, finished, _, *workers = answer
        self._check_version(version)
        self.shards, self.state, self._runs = int(number), state.decode(), _Runs(*runs)
        shards, totals = await asyncio.gather(self.look(), self._crawl("crawl totals"))
        if totals is None:
            raise self._no_crawl()
        reason, left, died, *counts = totals
        if self.state == "running" and self.total and await self.is_finished():
            self.state = "finished"
            reason = b"finished"
        names = ("left", "out", "aside", "done", "filtered", "seen", "unreadable")
        total = {name: sum(getattr(shard, name) for shard in shards) for name in names}
        total["put"] = self.total
        total["done"] = max(0, total["done"] - self._runs.done_before)
        total["filtered"] = max(0, total["filtered"] - self._runs.filtered_before)
        wait = min(shard.wait for shard in shards)
        is_noted = self.state == "finished" and int(put) == self.total
        return {
            "crawl": self.address.crawl,
            "run": self.run,
            "state": self.state,
            "finish_reason": reason.decode() or None,
            "seconds": age / 1000,
            "finished_seconds": finished / 1000 if is_noted else None,
            "hosts": sum(shard.hosts for shard in shards),
            "leased": sum(shard.leased for shard in shards),
            "waiting": total["left"] - total["out"] - total["aside"],
            "set_aside": total["aside"],
            **{
                name: total[name]
                for name in ("out", "done", "put", "filtered", "seen", "unreadable")
            },
            "done_per_second": 1000 * total["done"] / max(1, age),
            "next_due": None if wait == float("inf") else wait,
            "workers": {printable(name): ms / 1000 for name, ms in sorted(workers)},
            "workers_left": left,
            "workers_died": died,
            "counts": {printable(name): int(number) for name, number in sorted(counts)},
        }

    async def hosts(self, most: int) -> list[HostStatus]:
        keys = map(self._key, range(self.shards))
        statuses = [
            HostStatus(printable(host), printable(owner), ms / 1000, waiting, out, bool(is_aside))
            for answer in await _all(
                [self._connection.call("queue hosts", key, most) for key in keys]
            )
            for host, owner, ms, waiting, out, is_aside in answer
        ]
        statuses.sort(key=lambda host: (-host.out - host.waiting, host.host))
        return statuses[:most]

    async def set_state(self, state: str, reason: str = "") -> None:
        assert state in STATES
        if await self._crawl("crawl set", state, reason) is None:
            raise self._no_crawl()
        self.state = state

    async def delete(self) -> None:
        alive = [
            name for name, seconds in (await self.status())["workers"].items() if seconds < self.ttl
        ]
        if alive:
            raise StateError(
                f"{self.address}: {', '.join(alive)} work at crawl `{self.address.crawl}`:"
                " end it first"
            )
        _, _, _, answer, *_ = await self._crawl("crawl look")
        runs = _Runs(*answer)
        for number in range(runs.swept + 1, runs.emptied + 1):
            await self._delete_run(number)
        await self._crawl("crawl delete")

    async def _delete_run(self, run: int) -> None:
        pending = {self.address.shard_key(shard, run) for shard in range(self.shards)}
        while pending:
            keys = sorted(pending)
            for key, answer in zip(
                keys,
                await _all([self._connection.call("queue delete", key, 1000) for key in keys]),
                strict=True,
            ):
                if answer:
                    pending.discard(key)


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _parts(rows: Sequence[QueuedRequest]) -> Iterable[list[QueuedRequest]]:
    """Yield the rows in parts that are small enough for one step."""
    part: list[QueuedRequest] = []
    size = 0
    for row in rows:
        if part and (len(part) >= MOST_ROWS or size + len(row.body) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(row)
        size += len(row.body)
    if part:
        yield part


def _lost(known: Sequence[int], shards: Sequence[Shard]) -> int:
    """Return how many of the known requests the shards lack."""
    return sum(max(0, number - shard.put) for number, shard in zip(known, shards, strict=False))


def _shares(ready: Sequence[tuple[int, int]], hosts: int) -> list[tuple[int, int]]:
    """Return how many hosts to lease of each shard, spread as evenly as possible."""
    shares = dict.fromkeys((shard for shard, _ in ready), 0)
    while hosts and any(shares[shard] < number for shard, number in ready):
        for shard, number in ready:
            if hosts and shares[shard] < number:
                shares[shard] += 1
                hosts -= 1
    return [(shard, number) for shard, number in shares.items() if number]


def _lease(answer: Sequence[Any]) -> Lease:
    name, waiting, *entries = answer
    requests = [
        LeasedRequest(entries[i], -int(entries[i + 1]), *entries[i + 2 : i + 4])
        for i in range(0, len(entries), 4)
    ]
    return Lease(name.decode(), requests, waiting)


async def _all(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """Wait for all answers, and return them. If calls failed, raise the first error instead."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
