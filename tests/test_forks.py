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
from comity.guard import Answer, Guard, Incoming, Pass, Proofs, SharedNonces
from comity.guard.nonces import USED
from tests.signatures.vectors import NOW, signer

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

INNER = "https://127.0.0.1"  # no key directory is fetched from there


def in_fork(check: Callable[[], bool]) -> bool:
    """Return the result of a function in a forked process. False: it takes 10 s."""
    child = os.fork()
    if not child:
        code = 2
        try:
            signal.alarm(10)
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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


@pytest.mark.requirement("BOT-2")
def test_a_fork_waits_for_a_transaction_of_another_thread(tmp_path: Path) -> None:
    nonces = SharedNonces(tmp_path / "nonces")
    has_begun, has_ended = threading.Event(), threading.Event()

    def hold() -> None:
        with nonces._lock, transaction(nonces._connection()):
            has_begun.set()
            can_end.wait()
        has_ended.set()

    can_end = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    has_begun.wait()
    timer = threading.Timer(0.1, can_end.set)
    timer.start()

    def check() -> bool:
        return can_end.is_set() and nonces.use("pool", b"1", NOW + 10, NOW) == ""

    assert in_fork(check)
    thread.join()
    timer.join()
    assert has_ended.is_set()
    assert nonces.use("pool", b"1", NOW + 10, NOW) == USED


@pytest.mark.requirement("BOT-2")
def test_what_a_forked_process_writes_is_kept_when_its_parent_closes_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "nonces"
    nonces = SharedNonces(path)
    assert nonces.use("pool", b"0", NOW + 10, NOW) == ""
    go_on, may_go_on = os.pipe()
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        code = 2
        try:
            signal.alarm(10)
            is_used = nonces.use("pool", b"1", NOW + 10, NOW) == ""
            os.write(tell, b"1")
            os.read(go_on, 1)
            code = 0 if is_used and nonces.use("pool", b"2", NOW + 10, NOW) == "" else 1
        finally:
            os._exit(code)
    os.read(told, 1)
    del nonces
    gc.collect()
    os.write(may_go_on, b"1")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for end in (go_on, may_go_on, told, tell):
        os.close(end)
    again = SharedNonces(path)
    assert [again.use("pool", key, NOW + 10, NOW) for key in (b"0", b"1", b"2")] == [USED] * 3


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
