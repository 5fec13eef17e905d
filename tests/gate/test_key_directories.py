"""Key directories, fetched from a server on loopback that counts as public."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comity.gate import key_directories
from comity.gate.fetching.network import Network
from comity.gate.fetching.reach import IPAddress, Reach
from comity.gate.key_directories import (
    ASK_AGAIN,
    MAX_FETCHES,
    MAX_NEW,
    MAX_OCTETS,
    MAX_RETRY,
    MAX_STALE,
    MINUTE,
    RETRY,
    KeyDirectories,
)
from comity.guard import Guard, Incoming, Pass, Proofs
from comity.signatures import MEDIA_TYPE, WELL_KNOWN
from comity.signatures.directory import key_directory
from comity.signatures.keys import thumbprint
from tests.signatures.vectors import new_key, signer
from tests.test_forks import in_fork

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

pytestmark = pytest.mark.requirement("BOT-2")

KEYIDS = {number: thumbprint(new_key(number).public_key()) for number in (1, 2)}
Start = Callable[..., "Loopback"]


class Outside(Network):
    """Counts 127.0.0.1 as a public address."""

    def reach(self, address: IPAddress) -> Reach:
        return Reach.PUBLIC if str(address) == "127.0.0.1" else super().reach(address)


class Clock:
    """It begins now, because the server's Date field counts for the age of an answer."""

    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directories(clock: Clock) -> KeyDirectories:
    return KeyDirectories(network=Outside, clock=clock)


@pytest.fixture
def start(serve: Serve, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """`start(*numbers)`: a server with the directory of these keys. Further: of its Answer."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    def run(*numbers: int, **answer: Any) -> Loopback:
        return serve({WELL_KNOWN: published(serve, *numbers, **answer)}, certificate=certificate)

    return run


def published(serve: Serve, *numbers: int, **answer: Any) -> Any:
    body = key_directory([new_key(number) for number in numbers])
    fields = {"body": body, "content_type": MEDIA_TYPE, **answer}
    return serve.Answer(**fields)


def hold(event: threading.Event) -> Callable[[Any], None]:
    """Return a route that gives no answer, and ends with the event."""

    def wait(handler: Any) -> None:
        event.wait(60)

    return wait


def settle() -> None:
    """Wait until all fetches are over."""
    for thread in threading.enumerate():
        if thread.name == "comity-key-directory":
            thread.join()


def find(directories: KeyDirectories, url: str, number: int = 1, *, listed: bool = True) -> Any:
    return directories.find(url, KEYIDS[number], is_listed=listed)


def fetched(directories: KeyDirectories, url: str, number: int = 1, *, listed: bool = True) -> Any:
    """Return the answer after the fetch that the question begins."""
    find(directories, url, number, listed=listed)
    settle()
    return find(directories, url, number, listed=listed)


def test_a_directory_is_fetched_once(start: Start, directories: KeyDirectories) -> None:
    server = start(1)
    url = server.url(WELL_KNOWN)
    first = find(directories, url)
    assert (first.key, first.wait) == (None, ASK_AGAIN)
    assert first.problem == f"key directory {url}: it is being fetched"
    settle()
    for _ in range(3):
        answer = find(directories, url)
        assert thumbprint(answer.key) == KEYIDS[1]
        assert (answer.problem, answer.wait) == ("", 0)
    [seen] = server.seen
    assert MEDIA_TYPE in seen.headers["accept"]
    assert seen.headers["user-agent"] == "comity-guard"


def test_an_expected_directory_is_there_before_the_first_question(
    start: Start, directories: KeyDirectories
) -> None:
    url = start(1).url(WELL_KNOWN)
    directories.expect([url])
    settle()
    assert thumbprint(find(directories, url).key) == KEYIDS[1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"status": 404}, "HTTP status 404"),
        ({"status": 503, "headers": {"Retry-After": "100"}}, "HTTP status 503"),
        ({"status": 302, "headers": {"Location": "/keys"}}, "HTTP status 302"),
        ({"content_type": "application/json"}, f"its media type is not {MEDIA_TYPE}"),
        ({"body": b"<html>"}, "it is not JSON"),
        ({"body": b" " * (MAX_OCTETS + 1)}, f"it has more than {MAX_OCTETS} octets"),
        ({"headers": {"Content-Encoding": "gzip"}}, "compressed content that cannot be decoded"),
    ],
)
def test_another_answer_is_no_directory(
    start: Start, directories: KeyDirectories, clock: Clock, answer: dict[str, Any], problem: str
) -> None:
    server = start(1, **answer)
    url = server.url(WELL_KNOWN)
    outcome = fetched(directories, url)
    assert outcome.key is None
    assert problem in outcome.problem
    assert outcome.wait == (100 if answer.get("status") == 503 else RETRY)
    assert server.paths == [WELL_KNOWN]  # no redirect is followed, nothing is asked again
    clock.now += outcome.wait
    assert 1 <= fetched(directories, url).wait <= MAX_RETRY
    assert server.paths == [WELL_KNOWN] * 2


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("moved", [True, False], ids=["private", "loopback"])
def test_inner_addresses_are_not_asked(
    start: Start, clock: Clock, listed: bool, moved: bool
) -> None:
    class Inside(Network):
        def reach(self, address: IPAddress) -> Reach:
            return Reach.PRIVATE if moved else super().reach(address)

    server = start(1)
    outcome = fetched(
        KeyDirectories(network=Inside, clock=clock), server.url(WELL_KNOWN), listed=listed
    )
    assert outcome.key is None
    assert "address" in outcome.problem
    assert server.seen == []


def test_a_directory_that_does_not_answer(
    start: Start, directories: KeyDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_directories, "TIMEOUT", 0.05)
    gone = threading.Event()
    server = start(1)
    server.routes[WELL_KNOWN] = hold(gone)
    outcome = fetched(directories, server.url(WELL_KNOWN))
    gone.set()
    assert "no answer within 0.05 seconds" in outcome.problem


def test_a_copy_is_used_for_its_lifetime(
    serve: Serve, start: Start, directories: KeyDirectories, clock: Clock
) -> None:
    server = start(1, headers={"Cache-Control": "max-age=600"})
    url = server.url(WELL_KNOWN)
    fetched(directories, url)
    clock.now += 599
    assert fetched(directories, url).key
    assert len(server.seen) == 1
    server.routes[WELL_KNOWN] = published(serve, 2)
    clock.now += 1
    # The old copy answers until the new one is there.
    assert find(directories, url).key
    settle()
    outcome = find(directories, url)
    assert (outcome.key, outcome.problem) == (None, "")  # a removed key proves nothing
    assert find(directories, url, 2).key
    assert len(server.seen) == 2


def test_a_new_key_is_looked_for(
    serve: Serve, start: Start, directories: KeyDirectories, clock: Clock
) -> None:
    server = start(1)
    url = server.url(WELL_KNOWN)
    fetched(directories, url)
    server.routes[WELL_KNOWN] = published(serve, 1, 2)
    outcome = find(directories, url, 2)
    assert (outcome.key, outcome.problem) == (None, "")  # it was fetched just now
    clock.now += RETRY
    outcome = find(directories, url, 2)
    assert (outcome.key, outcome.wait) == (None, ASK_AGAIN)
    assert find(directories, url, 1).key  # meanwhile the others go on
    settle()
    assert find(directories, url, 2).key
    assert len(server.seen) == 2


def test_a_failure_removes_no_key_for_two_days(
    serve: Serve, start: Start, directories: KeyDirectories, clock: Clock
) -> None:
    server = start(1, headers={"Cache-Control": "no-store"})
    url = server.url(WELL_KNOWN)
    fetched(directories, url)
    server.routes[WELL_KNOWN] = serve.Answer(status=500)
    for seconds in (MINUTE, MAX_RETRY, MAX_STALE - MINUTE - MAX_RETRY - 1):
        clock.now += seconds
        assert fetched(directories, url).key
    clock.now += 1
    outcome = fetched(directories, url)
    assert outcome.key is None
    assert "HTTP status 500" in outcome.problem


def test_a_key_is_used_from_nbf_to_exp(
    serve: Serve, start: Start, directories: KeyDirectories, clock: Clock
) -> None:
    key_set = json.loads(key_directory([new_key(1)]))
    key_set["keys"][0] |= {"nbf": clock.now + 10, "exp": clock.now + 20}
    url = start(body=json.dumps(key_set).encode()).url(WELL_KNOWN)
    used = []
    for _ in range(4):
        used.append(fetched(directories, url).key is not None)
        clock.now += 9
    assert used == [False, False, True, False]


def test_clients_name_few_new_directories(start: Start, clock: Clock) -> None:
    server = start(1)
    directories = KeyDirectories(network=Outside, clock=clock)
    for number in range(MAX_NEW + 10):
        find(directories, server.url(f"/{number}"), listed=False)
        settle()
    assert len(server.seen) == MAX_NEW
    assert "too many" in find(directories, server.url("/new"), listed=False).problem
    assert fetched(directories, server.url(WELL_KNOWN)).key  # the operator's own are fetched
    clock.now += MINUTE
    assert fetched(directories, server.url("/new"), listed=False).problem.endswith("status 404")


def test_few_directories_are_fetched_at_a_time(start: Start, directories: KeyDirectories) -> None:
    server, go_on = start(1), threading.Event()
    server.routes |= {f"/{number}": hold(go_on) for number in range(9)}
    for _ in range(3):
        for number in range(9):
            find(directories, server.url(f"/{number}"), listed=False)
    threads = [each for each in threading.enumerate() if each.name == "comity-key-directory"]
    assert len(threads) == MAX_FETCHES
    go_on.set()
    settle()


def test_without_a_thread_a_directory_fails_for_a_time(
    start: Start, directories: KeyDirectories, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    server = start(1)
    guard = Guard(
        "https://example.com",
        {"/robots.txt": b""},
        proofs=Proofs({"testbot": server.origin}, directories, discovers=True),
        clock=clock,
    )
    for agent_url in (server.origin, server.url(WELL_KNOWN + "/named")):
        fields = signer(1, agent_url, clock.now).fields("https://example.com/")
        signed = {name.lower(): value for name, value in fields.items()}
        with monkeypatch.context() as patch:
            patch.setattr(key_directories, "Thread", NoThread)
            for _ in range(MAX_FETCHES + 1):
                answer = guard.check(Incoming("GET", "/", {"user-agent": "testbot/1", **signed}))
                assert not isinstance(answer, Pass)
    for url, listed in ((server.url(WELL_KNOWN), True), (server.url(f"{WELL_KNOWN}/named"), False)):
        outcome = find(directories, url, listed=listed)
        assert outcome.problem.endswith("no thread can be started to fetch it")
        assert outcome.wait == RETRY
    assert server.seen == []
    clock.now += RETRY
    assert fetched(directories, server.url(WELL_KNOWN)).key
    assert fetched(directories, server.url(f"{WELL_KNOWN}/named"), listed=False).problem.endswith(
        "HTTP status 404"
    )


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_fetches_of_another_process_are_forgotten(
    start: Start, directories: KeyDirectories
) -> None:
    url = start(1).url(WELL_KNOWN)
    directory = directories._directory(url, 0, is_listed=True)
    assert directory is not None
    directory.is_underway, directories._underway = True, MAX_FETCHES
    assert in_fork(lambda: fetched(directories, url).key and directories._underway == 0)
    assert (directory.is_underway, directories._underway) == (True, MAX_FETCHES)


def test_a_guard_with_a_directory_of_the_network(
    start: Start, directories: KeyDirectories, clock: Clock
) -> None:
    server = start(1)
    proofs = Proofs({"testbot": server.origin}, directories)
    guard = Guard("https://example.com", {"/robots.txt": b""}, proofs=proofs, clock=clock)
    fields = signer(1, server.origin, clock.now).fields("https://example.com/")
    signed = {name.lower(): value for name, value in fields.items()}
    outcomes = []
    for own in ({}, signed, signed):  # the first request lets the directory be fetched
        outcomes.append(guard.check(Incoming("GET", "/", {"user-agent": "testbot/1", **own})))
        settle()
    assert [isinstance(outcome, Pass) for outcome in outcomes] == [False, True, False]
    assert server.paths == [WELL_KNOWN]
