"""Objects with locks, in processes that are forked while another thread has the lock."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from comity import forks
from comity.forks import call_in_forks
from comity.gate.key_directories import KeyDirectories
from comity.guard import Answer, Guard, Incoming, Pass, Proofs
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
