"""Objects with locks, in processes that are forked while another thread has the lock."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from comity import forks
from comity.database import transaction
from comity.forks import call_in_forks
from comity.gate.key_directories import KeyDirectories
from comity.guard import Answer, Guard, Incoming, Pass, Proofs, SharedClients, SharedNonces
from comity.guard.clients import ClientLimit
from comity.policies.syntax.windows import Window
from tests.signatures.vectors import NOW, signer

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

INNER = "https://127.0.0.1"  # no key directory is fetched from there


def in_child(check: Callable[[], bool]) -> int:
    """Fork a process, and return its number. It `is_well` if the function returns True in 10 s."""
    child = os.fork()
    if not child:
        code = 2
        try:
            signal.alarm(10)
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return child


def is_well(child: int) -> bool:
    """Wait for a forked process to end, and return True if its function returned True."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_fork(check: Callable[[], bool]) -> bool:
    """Return the result of a function in a forked process. False: it takes 10 s."""
    return is_well(in_child(check))


@pytest.mark.requirement("BOT-2", "GUARD-1")
@pytest.mark.parametrize("held", ["guard", "proofs", "directories"])
def test_a_forked_guard_waits_for_no_thread_of_the_other_process(held: str) -> None:
    directories = KeyDirectories(clock=lambda: NOW)
    proofs = Proofs({"testbot": INNER}, directories)
    guard = Guard("https://example.com", {"/robots.txt": b""}, proofs=proofs, clock=lambda: NOW)
    fields = signer(1, INNER, NOW).fields("https://example.com/")
    signed = {name.lower(): value for name, value in fields.items()}

    def check() -> bool:
        guard.check(Incoming("GET", "/", {"user-agent": "testbot/1", **signed}))
        return sum(guard.agents.values()) == 1

    holders: dict[str, Any] = {"guard": guard, "proofs": proofs, "directories": directories}
    with holders[held]._lock:
        assert in_fork(check)
        assert not in_fork(lambda: False)


@pytest.mark.requirement("GUARD-1", "AUTX-2")
def test_a_forked_guard_does_not_count_the_requests_of_the_other_process() -> None:
    files = {
        "/robots.txt": b"",
        "/automation-preferences.txt": b"allowed-methods: GET\nconcurrent-limit: 1\n",
    }
    guard = Guard("https://example.com", files)

    def ask() -> Pass | Answer:
        return guard.check(Incoming("GET", "/", {"user-agent": "testbot/1"}))

    passed = ask()
    assert isinstance(passed, Pass)
    assert isinstance(ask(), Answer)

    def check() -> bool:
        own = ask()
        passed.end()  # as the garbage collector may do with the copy of a request
        return isinstance(own, Pass) and isinstance(ask(), Answer)

    assert in_fork(check)
    assert isinstance(ask(), Answer)
    passed.end()
    assert isinstance(ask(), Pass)


LIMITS = [ClientLimit("*", "/robots.txt", (Window(3, 60),), None, 0)]
# What several processes share, and the use of one of three: True if it was not used before.
SHARED: list[Any] = [
    pytest.param(
        SharedNonces,
        lambda nonces, number: not nonces.use("pool", b"%d" % number, NOW + 10, NOW),
        id="nonces",
    ),
    pytest.param(
        SharedClients, lambda clients, _: clients.claim("c", LIMITS, NOW) is None, id="clients"
    ),
]


@pytest.mark.requirement("BOT-2", "GUARD-1")
@pytest.mark.parametrize(("kind", "use"), SHARED)
def test_a_fork_waits_for_a_transaction_of_another_thread(
    kind: Any, use: Callable[[Any, int], bool], tmp_path: Path
) -> None:
    shared = kind(tmp_path / "shared")
    has_begun, can_end = threading.Event(), threading.Event()

    def hold() -> None:
        with shared._lock, transaction(shared._connection()):
            has_begun.set()
            can_end.wait()

    thread, timer = threading.Thread(target=hold), threading.Timer(0.1, can_end.set)
    thread.start()
    has_begun.wait()
    timer.start()
    assert in_fork(lambda: can_end.is_set() and use(shared, 0))
    assert [use(shared, number) for number in range(3)].count(True) == 2
    thread.join()
    timer.join()


@pytest.mark.requirement("BOT-2", "GUARD-1")
@pytest.mark.parametrize(("kind", "use"), SHARED)
def test_what_a_forked_process_writes_is_kept_when_its_parent_closes_the_file(
    kind: Any, use: Callable[[Any, int], bool], tmp_path: Path
) -> None:
    shared = kind(tmp_path / "shared")
    assert use(shared, 0)
    may_go_on, go_on = os.pipe()
    told, tell = os.pipe()
    inherited = [shared]

    def check() -> bool:
        is_first = use(inherited[0], 1)
        os.write(tell, b"1")
        os.read(may_go_on, 1)
        return is_first and use(inherited[0], 2)

    child = in_child(check)
    os.read(told, 1)
    inherited.clear()
    shared = None
    gc.collect()
    os.write(go_on, b"1")
    assert is_well(child)
    for end in (may_go_on, go_on, told, tell):
        os.close(end)
    again = kind(tmp_path / "shared")
    assert not any(use(again, number) for number in range(3))


def test_a_program_with_a_guard_ends_without_a_word(tmp_path: Path) -> None:
    """The end of the interpreter calls back for the weak references of what it frees."""
    program = tmp_path / "program.py"
    program.write_text(
        "from comity.guard import ASGIMiddleware, Guard\n"
        'GUARD = Guard("https://example.com", {"/robots.txt": b""})\n'
        "async def app(*_): pass\n"
        "def guarded(): return ASGIMiddleware(app, GUARD)\n"
        "APP = guarded()\n"
    )
    # With an option, the interpreter is started anew, and not forked from one that stays.
    done = subprocess.run([sys.executable, "-E", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


class Owner:
    calls = 0

    def called(self) -> None:
        self.calls += 1


def test_a_method_is_called_in_the_forked_process_only() -> None:
    owner, other = Owner(), Owner()
    for each in (owner, other):
        call_in_forks(each.called)
    assert in_fork(lambda: (owner.calls, other.calls) == (1, 1))
    assert in_fork(lambda: in_fork(lambda: owner.calls == 2))
    assert owner.calls == 0


def test_objects_do_not_stay_in_memory() -> None:
    gc.collect()
    before = len(forks._methods)
    proofs = Proofs({"testbot": INNER}, KeyDirectories())
    guard = Guard("https://example.com", {"/robots.txt": b""}, proofs=proofs)
    assert len(forks._methods) == before + 4
    del guard, proofs
    gc.collect()
    assert len(forks._methods) == before
    assert in_fork(lambda: True)
