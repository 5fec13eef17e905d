"""Records for the tests of passes, engines that are there, and a store."""

from __future__ import annotations

import copy
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import pytest

from comity.dataset.execution import executors
from comity.dataset.files.places import path_of

MakeRecord = Callable[..., dict[str, Any]]

ALLOW: dict[str, Any] = {"verdict": "allow", "stated": True, "because": [0]}
DENY: dict[str, Any] = {"verdict": "deny", "stated": True, "because": [1]}
BASIC = {"crawl": ALLOW, "follow": ALLOW, "index": DENY, "preserve": DENY, "present": DENY}
ROBOTS = "https://example.com/robots.txt"
REASONS = [
    {
        "rule": "acap.allow",
        "spec": "ACAP 1.0 section-2.4.1",
        "url": ROBOTS,
        "line": 3,
        "text": "ACAP-allow-index: /",
    },
    {
        "rule": "acap.disallow",
        "spec": "ACAP 1.0 section-2.4.2",
        "url": ROBOTS,
        "line": 4,
        "text": "ACAP-disallow-other: /",
    },
    {
        "rule": "ait.disallow",
        "spec": "ai.txt paper section-3.2",
        "url": "https://example.com/ai.txt",
        "line": 4,
        "text": "Disallow",
    },
    {
        "rule": "rsl.permits",
        "spec": "RSL 1.0",
        "url": "https://example.com/license.xml",
        "line": 2,
        "text": "permits",
    },
    {
        "rule": "comity.arrangement",
        "spec": "comity, docs/uses.md",
        "url": "COMITY_ARRANGEMENTS",
        "part": "setting",
        "line": 0,
        "text": "example.com: train, contract 1",
    },
]


@pytest.fixture
def make_record() -> MakeRecord:
    """make_record(train={}, index={"until": ...}, elements=[{...}], fields={...}): uses that are
    named are allowed, under these conditions, or refused where they are None."""

    def make(
        *,
        elements: Sequence[dict[str, Any]] = (),
        embedded: dict[str, Any] | None = None,
        fields: dict[str, Any] | None = None,
        **uses: dict[str, Any] | None,
    ) -> dict[str, Any]:
        stated = {
            name.replace("_", "-"): DENY if use is None else ALLOW | use
            for name, use in uses.items()
        }
        element = {
            "selector": "p",
            "type": "html",
            "deny": ["train"],
            "guide": [],
            "spans": [],
            "because": [2],
        }
        tag = {
            "schema": 1,
            "agent": "testbot",
            "uses": BASIC | stated,
            **(
                {
                    "embedded": {
                        name: DENY if use is None else ALLOW | use for name, use in embedded.items()
                    }
                }
                if embedded
                else {}
            ),
            "elements": [element | one for one in elements],
            "reasons": REASONS,
            "policies": {
                ROBOTS: {
                    "status": 200,
                    "sha256": "0" * 64,
                    "fetched_at": "2026-11-21T03:00:00+00:00",
                }
            },
        }
        page = {
            "url": "https://example.com/a",
            "final_url": "https://example.com/a",
            "status": 200,
            "fetched_at": "2026-11-21T12:00:00+00:00",
            "content_type": "text/html",
            "title": "A title",
            "text": "Some words of the page.",
            "links": ["https://example.com/b"],
            "sha256": "0" * 64,
            "html": None,
        }
        return copy.deepcopy(page | (fields or {}) | {"permissions": tag})

    return make


# Processes


@pytest.fixture(scope="session")
def _forks() -> BaseContext:
    """A server that forks processes.

    It has the environment of all tests, and has imported the modules that all passes need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["comity.dataset.expire", "comity.dataset.export.folder_export", "comity.dataset.stats"]
    )
    forkserver.ensure_running()
    return context


@pytest.fixture
def processes(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, *, in_full: bool
) -> None:
    """The processes of a pass are forked, or new ones as ever. Both get all that they do pickled,
    and no memory of this one; but to import takes new ones longer than the work of most tests."""
    if not in_full:
        forks = request.getfixturevalue("_forks")
        monkeypatch.setattr(executors, "get_context", lambda _: forks)


# Engines

TASKS = """
import os
import signal
from pathlib import Path
from typing import NamedTuple

from comity.dataset.records import DatasetError


class KilledOnce(NamedTuple):
    folder: str

    def __call__(self, number):
        mark = Path(self.folder) / "killed"
        if number == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number


def fails(number):
    raise DatasetError(f"{number} cannot be used")
"""


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A module that all processes can import."""
    (tmp_path / "module").mkdir()
    (tmp_path / "module/executor_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path / "module")
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    monkeypatch.delitem(sys.modules, "executor_tasks", raising=False)
    import executor_tasks  # type: ignore[import-not-found]

    return executor_tasks


@pytest.fixture
def started(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tasks: Any
) -> Iterator[str]:
    """An engine that is there before the jobs are: they use it, and leave it."""
    name = request.param
    with ExitStack() as stack:
        if name == "ray":
            monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
            import ray

            ray.init(
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                _node_ip_address="127.0.0.1",
            )
            stack.callback(ray.shutdown)
        yield name
        assert name != "ray" or ray.is_initialized()


# A store


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in it, by the settings that every program takes from the environment."""
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem()
    if files.exists("bucket"):
        files.rm("bucket", recursive=True)
    files.mkdir("bucket")
    return path_of("s3://bucket/data")
