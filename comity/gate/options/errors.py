"""Errors in the operator's settings."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NoReturn

from comity.policies import PolicyError
from comity.policies.syntax.printable import printable


class SettingsError(SystemExit, PolicyError):
    """The settings are invalid, so the crawl must not start.

    If the error is not caught, the program ends with status 1 and prints one line, no traceback."""


def stop(message: str, *, program: str = "comity") -> NoReturn:
    """Raise SettingsError with the message.

    `program`: the name of the program, with which the message begins."""
    with suppress(RuntimeError):  # no event loop is running
        if task := asyncio.current_task():
            task.add_done_callback(_retrieve_exception)
    raise SettingsError(f"{program}: {message}")


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Mark the exception of the task as seen.

    Else asyncio prints a traceback too, although the exception has already ended the program."""
    if not task.cancelled():
        task.exception()


def invalid(name: str, value: object, problem: str) -> PolicyError:
    """Return the error about an invalid setting.

    `problem`: the part of the message behind the name and the value. It says what to write."""
    return PolicyError(f"{name} `{printable(str(value).encode('utf-8', 'replace'))}` {problem}")
