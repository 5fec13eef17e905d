"""Start the workbench like a user."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

INSTALL = "it takes Chromium: apt-get install --no-install-recommends chromium"

_COMMAND = "import sys; from comity.cli import main; sys.exit(main())"


def chromium() -> str | None:
    """Return the path of Chromium on this machine, or None."""
    return next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


def launch_options() -> dict[str, Any]:
    """Return the options with which Playwright starts Chromium."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # root cannot use the sandbox
    return {"executable_path": chromium(), "args": arguments}


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start Chromium, and end it."""
    if chromium() is None:
        pytest.fail(INSTALL)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(**launch_options())
        yield started
        started.close()


class Workbench(NamedTuple):
    """A running workbench."""

    url: str  # with its token
    origin: str
    port: int
    token: str


@contextmanager
def workbench(*arguments: str, folder: Path) -> Iterator[Workbench]:
    """Start a workbench in a folder, and end it as Ctrl-C does."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        _COMMAND,
        "workbench",
        "--no-browser",
        "--port",
        "0",
        *arguments,
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "NICEGUI_"))
    }
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            url = re.search(r"http://\S+", line)
            assert url, line
            parts = urlsplit(url[0])
            assert parts.port
            yield Workbench(
                url[0],
                f"{parts.scheme}://{parts.netloc}",
                parts.port,
                parts.query.partition("=")[2],
            )
        finally:
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(300) == 130
            finally:
                process.kill()  # if it has not ended
