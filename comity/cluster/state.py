"""The state that the workers of a crawl share: the Protocols of a store, and how it is found.

    state = open_state("redis://localhost:6379/0", "news", ttl=10.0)
    queue, ledger, store = state.queue(), state.ledger(), state.store()

A store is a class of the entry-point group `comity.state`, whose entries are the schemes of URLs.
The class takes the URL, the name of the crawl and `ttl`, and returns a `SharedState`. It connects
later, and never shows the password of the URL or that of COMITY_STATE_PASSWORD.

A store keeps these promises, which comity.cluster.conformance tests:

- A call that fails with StateError may have happened or not. The caller repeats it with the same
  arguments, and then it counts once. A call whose answer has arrived has happened.
- A confirmed change is kept when a worker or the server is killed. After a fail-over, the latest
  changes may be missing: see `CrawlQueue.on_change`. Reserved amounts of `books` never are.
- A call does all or nothing at one host. A call about several hosts may do a part of them before it
  fails. The repeated call does the others.
- Only the clock of the store counts. Callers give and get durations in seconds. The clock may be
  set forward or back: then hosts may wait longer, but are never asked sooner than their pace
  permits.
- A full store refuses `put` with StateFullError. All other calls go on, so that the crawl can be
  finished."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, cast

from comity.cluster.neighbours import Neighbours
from comity.cluster.queue import (
    HostStatus,
    Lease,
    QueuedRequest,
    Shard,
    Sums,
    UnreadableRequest,
)
from comity.gate.fetching.store import Store
from comity.gate.pace.ledger import Ledger
from comity.gate.request.books import Books
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

GROUP = "comity.state"


class Address(Protocol):
    """The address of a store. As a text it has no user and no password."""

    @property
    def crawl(self) -> str:
        """The name of the crawl."""


class CrawlQueue(Protocol):
    """The requests of a crawl that wait or are out, and all its fingerprints, for one worker.

    A host is leased to one worker at a time, and only this worker gets the host's requests. A lease
    that is not renewed ends, and the requests that were out go out once more. Therefore no request
    is lost if its worker is killed.

    Calls may raise StateError, or StateLostError: the store has lost requests of the crawl.

    Attributes:
        worker: The unique name of this worker.
        ttl: Seconds until a lease ends that is not renewed. It counts from the next call if it is
            changed.
        is_outdated: True if another worker has begun the crawl again. `open` takes over that run.
        is_swept: True if no data of earlier runs is left.
        state: One of STATES, at the last sign of life.
        is_redeployed: True if the settings of the crawl were replaced since the last `agree`.
        total: Requests that were ever put in this run, at the last look.
        left: Requests of them that wait or are out.
        aside: Requests of them that wait for a host which is set aside.
        unreadable: Requests that no worker is to read.
        share: The number of hosts divided by the number of workers, rounded up, at the last look.
    """

    worker: str
    ttl: float
    is_outdated: bool
    is_swept: bool
    state: str
    is_redeployed: bool
    total: int
    left: int
    aside: int
    unreadable: int
    share: int

    @property
    def address(self) -> Address:
        """The address, for messages."""

    @property
    def run(self) -> int:
        """The number of the run: 1 at first, one more each time the crawl begins again."""

    # The crawl

    def on_change(self, changed: Callable[[], object]) -> None:
        """Have `changed` called when another server takes over, or the server was started anew.

        After that, the latest requests may be missing, and so may the acknowledgements of the
        requests done last. These requests go out again, and their responses lead to the missing
        ones. A store that never loses a confirmed change need not call it."""

    async def open(self) -> None:
        """Begin or join the crawl.

        Workers that call this at once begin one crawl. PolicyError: the crawl has data of another
        version, and is not changed."""

    async def agree(self, settings: bytes) -> bytes:
        """Return the settings of the crawl. A crawl without settings takes those of this worker.

        The first of several calls counts. StateLostError: the crawl is gone."""

    async def settings(self) -> bytes:
        """Return the settings of the crawl. StateError: there is no crawl, or it has none."""

    async def deploy(self, settings: bytes) -> bytes:
        """Replace the settings of the crawl, and return the earlier ones; b"": it had none.

        Workers learn of it with their next sign of life. StateError: there is no such crawl."""

    async def finish(self) -> float | None:
        """Record that the crawl is finished. Call it if `is_finished` returned True.

        Return the seconds since it was first recorded for the present number of requests. None:
        another worker has begun the crawl again. Then this call has opened that run."""

    async def begin_again(self, since: float | None = None) -> bool:
        """Begin a new run of a finished or ended crawl, and join it.

        Return True if this call began it, and False if another worker had begun it already. The
        run has no counts and the state "running". Policies, pace and the spider's state stay known.
        Data of earlier runs that does not count is left for `sweep`.

        `since`: None: the new run has an empty queue, and no request counts as seen. A moment, in
        seconds since the epoch: the requests that a run has put count as seen if this run began at
        that moment or later, and all requests that wait stay in the queue. Start requests of
        earlier runs never count as seen."""

    async def sweep(self) -> None:
        """Delete the data of earlier runs, but keep the seen requests that count.

        A call that was interrupted is repeated."""

    async def set_state(self, state: str, reason: str = "") -> None:
        """Set the state, one of STATES. Workers learn it with their next sign of life.

        `reason`: the finish reason of an ended crawl; the first reason stays. StateError: there is
        no such crawl."""

    async def exchange(self, values: Mapping[str, bytes]) -> dict[str, bytes]:
        """Store values of the spider's state, and return all that have changed since the last call.

        The state belongs to the crawl: all workers and all runs have it. The last value of a key
        counts. b"" is the value of a deleted key. The first call returns the whole state, as does
        the first one after `on_change`."""

    async def delete(self) -> None:
        """Delete the crawl, with the data of all runs. Pace and policies stay.

        StateError: there is no such crawl, or workers have given signs of life within `ttl`."""

    # Requests

    def new_key(self) -> bytes:
        """Return a key for a request that is put, without asking the store.

        No other worker ever makes an equal key. The keys of one worker are in order, as octets."""

    async def put(self, rows: Sequence[QueuedRequest]) -> list[bool]:
        """Put requests. Return True for each new one, and False for each that was seen before.

        A request is seen if one with an equal fingerprint was put in this run at an equal host. A
        repeated call with the same keys returns an equal answer, even if another worker has done
        the requests meanwhile, and counts once. If the worker is killed during the call, any part
        of the requests may have been put.

        A new request of a host that is leased waits for `more`. StateFullError: there is no room
        for all of them, and the call can be repeated later."""

    async def lease(
        self,
        hosts: int,
        per_host: int,
        *,
        unwanted: float = 0.0,
        shards: Sequence[Shard] | None = None,
    ) -> list[Lease]:
        """Lease free hosts for this worker. Return [] while the crawl is paused or ended.

        A host is free if requests of it wait and it is due, or if its lease has ended. The requests
        of an ended lease that were out wait again. They come first, in the order of their priority
        and key, with their `reads` counted from 0.

        If the answer is lost, the hosts stay leased to this worker. It renews only the hosts that
        it knows, so these leases end after `ttl`.

        Args:
            hosts: greatest number of hosts.
            per_host: greatest number of requests that each host comes with.
            unwanted: least number of seconds for which a host has been free.
            shards: result of the last `look`. None: look now."""

    async def more(self, host: str, number: int) -> Lease | None:
        """Get more requests of a host. None if this worker has lost the host's lease.

        If the answer is lost, these requests are out until the host is released."""

    async def ack(self, host: str, keys: Sequence[bytes]) -> None:
        """Acknowledge requests: they are done, and are forgotten.

        Any worker may say so, also for requests that wait again, and more than once. Before this
        call, `put` the requests that were found in the responses."""

    async def read(self, host: str, keys: Sequence[bytes], *, is_done: bool) -> None:
        """Note that this worker begins to read requests, which may kill it.

        `is_done`: True to note that it has read them and lives. If workers die again and again
        between the two calls, `lease` hands the request out no more, and it is unreadable."""

    async def give_up(self, host: str, whys: Mapping[bytes, str]) -> None:
        """Set requests aside that this worker cannot read. `whys`: key -> reason.

        Requests that wait or are out count. Unknown keys do not."""

    async def unreadable_requests(self, most: int) -> list[UnreadableRequest]:
        """Return at most so many of the requests that no worker is to read."""

    async def retry(self) -> int:
        """Let requests wait again that no worker was to read. Return their number."""

    async def set_aside(self, host: str, wait: float) -> None:
        """Release the host, and let the crawl not wait for it for so many seconds.

        If only requests of such hosts are left, the crawl is finished. Requests of the host that
        are out wait again. A worker without the lease changes nothing."""

    async def recall(self) -> None:
        """Make all hosts due that were set aside."""

    async def release(self, hosts: str | Iterable[str], wait: float = 0.0) -> None:
        """Let other workers lease the hosts after so many seconds, if requests wait for them.

        Requests that are out wait again. A worker without the lease changes nothing."""

    async def tries(self, origin: str, since: float, due: float) -> int:
        """Count a failed try to fetch the policies of an origin, and return the tries in a row.

        `since`: when the origin failed first. `due`: when to try next. Both are seconds since the
        epoch by the clock of a worker, and only compared. Calls with equal values count once."""

    # Workers

    async def renew(self, hosts: Iterable[str]) -> set[str]:
        """Renew all leases of this worker, and return those of the hosts that it has lost.

        `hosts`: all hosts that the worker knows to have. A lease that has ended is renewed if no
        other worker has the host. Call it three times in `ttl`, even without hosts: it is the
        worker's sign of life, and updates `state`, `is_outdated` and `is_redeployed`. It does not
        wait for other calls of this worker."""

    async def bury(self, worker: str) -> None:
        """Release all hosts of another worker, which is dead and sends nothing any more.

        Its requests in flight count as started now, for the pace of their hosts."""

    async def close(self, hosts: Iterable[str] = ()) -> None:
        """Leave the crawl: release these hosts, and give no more signs of life."""

    # Counts of the crawl

    def tell(self, counts: Mapping[str, int]) -> Awaitable[Any]:
        """Send counts of this worker in this run, by their names. Each replaces its earlier value.

        If the call is made before `ack`, the store has the counts before the requests are done.
        The counts of workers that left or died still count. A worker gives a sign of life before it
        calls this first."""

    async def sums(self, names: Sequence[str] = ()) -> Sums:
        """Return these counts of the whole crawl. StateError: there is no such crawl."""

    async def pauses(self, hosts: Sequence[str]) -> list[float]:
        """Return the seconds between two requests to each host, by its pace now; 0.0: unknown."""

    # All hosts

    async def look(self, *, age: float = 0.0) -> list[Shard]:
        """Look at the crawl, and at each part of the queue; update `total` to `share`.

        `age`: counts that another worker has got at most so many seconds ago are good enough.

        A shard is a part that the store looks at alone. A store may have a single one. Workers use
        the sum of `ready`, and hand the result to `lease`."""

    async def is_finished(self) -> bool:
        """Return True if no request of the crawl waits or is out, except for hosts set aside.

        It is never True while a request is out at a worker, even if its answer is on the way."""

    async def status(self) -> dict[str, Any]:
        """Return figures of the whole crawl, as JSON values.

        StateError: there is no such crawl. PolicyError: it has data of another version.

        The crawl need not be open. The call reads which run it is. The keys: crawl, run, state
        ("finished" too), finish_reason, seconds, finished_seconds, hosts, leased, waiting,
        set_aside, out, done, put, filtered, seen, unreadable, done_per_second, next_due, workers
        (name -> seconds since the last sign of life), workers_left, workers_died, counts."""

    async def hosts(self, most: int) -> list[HostStatus]:
        """Return the hosts with the most requests that wait or are out, at most so many."""


class SharedState(Protocol):
    """One worker's access to a store, or that of a command."""

    @property
    def address(self) -> Address:
        """The address, for messages."""

    @property
    def neighbours(self) -> Neighbours:
        """The workers of the crawl on this machine."""

    def check(self, *, is_dry: bool = False) -> list[str]:
        """Check that a crawl can rely on the store, and return remarks. It blocks.

        `is_dry`: True to make and change nothing. PolicyError: a crawl cannot rely on it. The
        message contains all faults, each with its remedy."""

    def queue(self) -> CrawlQueue:
        """Return the queue of the crawl. Call it inside the running loop."""

    def ledger(self) -> Ledger:
        """Return the pace of hosts, shared by all crawls in the store.

        It is remote. It repeats lost messages until they arrive. A grant is checked and recorded as
        one step under all its limits. It is given back if it is not used within half of `ttl`,
        since by then others may consider this worker dead. A start counts from the moment when the
        store learns that the headers came. A request in flight of a dead worker counts as started
        when the worker was last able to send it. If the store may have lost the latest starts, each
        host waits for a whole window."""

    def store(self) -> Store:
        """Return the policy files, shared by all crawls in the store.

        It blocks, and is used in a thread of its own. Of several workers one fetches an origin:
        `claims_fetch` returns True for one of them, until the claim ends or is given back. A claim
        that is lost with its worker ends after its seconds."""

    def books(self) -> Books | None:
        """Return the books of the crawl's payments. All its workers and runs share them.

        None: the store may lose an amount after `reserve` has returned True, so that a crawl might
        pay more than its sum. Then a crawl with payments does not start. A store without this
        method has no books. The books repeat calls by themselves: a key has one amount."""

    async def close(self) -> None:
        """Close the connection. Close the queue, the ledger and the store before you call this."""


def open_state(url: str, crawl: str, ttl: float) -> SharedState:
    """Return the state of a crawl in the store that the URL names.

    `ttl`: a worker counts as dead after so many seconds without a sign of life. PolicyError: the
    URL or the name of the crawl is invalid, or the store cannot be loaded. The message never quotes
    the URL, which may hold a password."""
    points = entry_points(group=GROUP)
    of_scheme = [point for point in points if url.lower().startswith(f"{point.name}://")]
    if not of_scheme:
        schemes = ", ".join(sorted({point.name for point in points}))
        raise PolicyError(
            f"COMITY_STATE: its scheme is not one of {schemes}: write redis://HOST:PORT/DB, or the"
            " URL of another of these stores"
        )
    # A package cannot take a scheme of comity.
    make = _load(min(of_scheme, key=lambda point: (_package(point) != "comity", _package(point))))
    return cast(SharedState, make(url, crawl, ttl=ttl))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown package"


def _load(point: EntryPoint) -> Any:
    """Return the class of an entry point. PolicyError: it cannot be loaded."""
    try:
        return point.load()
    except PolicyError:  # an extra is missing
        raise
    except Exception as error:
        raise PolicyError(
            f"COMITY_STATE: the store `{point.name}` of {_package(point)} cannot be loaded"
            f" ({type(error).__name__}: {printable(str(error))}): mend or uninstall it"
        ) from error
