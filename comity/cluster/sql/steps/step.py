"""What a step is, and how the steps are found by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from comity.cluster.sql.work import Work, queue_id

NamedCall = tuple[str, str, Sequence[Any]]  # the name of the step, the key, and the arguments
Names = Callable[[Sequence[Any]], Iterable[bytes]]


def no_names(arguments: Sequence[Any]) -> Iterable[bytes]:
    return ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the database.

    Attributes:
        run: The function. It takes the work, the key of the call and its arguments.
        hosts: Returns the hosts whose rows the step changes.
        new_hosts: Returns the hosts whose rows the step makes.
        limits: Returns the limits whose rows the step changes.
        is_alone: True if no other call is in its transaction, because it locks rows of its own.
    """

    run: Callable[..., Any]
    hosts: Names
    new_hosts: Names
    limits: Names
    is_alone: bool


STEPS: dict[str, Step] = {}


def step(
    name: str,
    *,
    hosts: Names = no_names,
    new_hosts: Names = no_names,
    limits: Names = no_names,
    is_alone: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the step of this name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        STEPS[name] = Step(function, hosts, new_hosts, limits, is_alone)
        return function

    return register


def run_steps(work: Work, calls: Sequence[NamedCall]) -> list[Any]:
    """Carry out calls in a transaction, and return their answers."""
    hosts: dict[int, tuple[set[bytes], set[bytes]]] = {}
    limits: set[bytes] = set()
    for name, key, arguments in calls:
        one = STEPS[name]
        if one.hosts is not no_names or one.new_hosts is not no_names:
            known, new = hosts.setdefault(queue_id(key), (set(), set()))
            known.update(one.hosts(arguments))
            new.update(one.new_hosts(arguments))
        limits.update(one.limits(arguments))
    for queue, (known, new) in sorted(hosts.items()):
        work.lock_hosts(queue, known, new)
    if limits:
        work.lock_limits(limits)
    work.look_at_clock()
    answers = [STEPS[name].run(work, key, *arguments) for name, key, arguments in calls]
    work.flush()
    return answers
