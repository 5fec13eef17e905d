"""A worker that is told to leave the crawl, by what the servers saw."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Answer
from tests.live.test_jobdir import Project, Running, asked, links, numbered, tree
from tests.live.test_one_crawl import held
from tests.live.test_reach import Workers, mode, project, state, workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Serve

__all__ = ["mode", "project", "state", "workers"]  # fixtures


@pytest.fixture
def free() -> Iterator[threading.Event]:
    """Set it, and the slow page is answered. At the end of the test it is set in any case."""
    event = threading.Event()
    yield event
    event.set()


def slow_site(serve: Serve, free: threading.Event, host: str = "127.0.0.2") -> Any:
    """A server whose first page is answered when `free` is set, and leads to all others."""
    server = serve(tree(6), host=host)
    page = Answer(links(*numbered(6)), content_type="text/html")
    server.routes["/0"] = held(free, page)
    return server


def leave(running: Running, number: signal.Signals = signal.SIGTERM) -> None:
    running._process.send_signal(number)
    running.until(lambda: f"Received {number.name}" in running.log)


def items_of(project: Project) -> set[str]:
    return {item["url"] for item in project.items}


@pytest.mark.requirement("STATE-4")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_worker_that_leaves_waits_for_its_slow_page_and_asks_for_no_other(
    serve: Serve, workers: Workers, free: threading.Event, number: signal.Signals
) -> None:
    server = slow_site(serve, free)
    leaving = workers.begin(1, urls=server.url("/0"))
    leaving.until_asked(server, 1)
    leave(leaving, number)
    assert not leaving.has_ended
    free.set()
    assert leaving.end() == 0, leaving.log
    assert "'finish_reason': 'shutdown'" in leaving.log
    assert asked(server) == ["/0"]
    assert items_of(workers.project) == {server.url("/0")}
    status = workers.status()
    assert (status["done"], status["out"], status["waiting"]) == (1, 0, 5)
    assert (status["workers_left"], status["workers_died"]) == (1, 0)
    workers._running.clear()
    workers.begin(2, urls=server.url("/0"))
    workers.end()
    assert sorted(asked(server)) == numbered(6)
    assert items_of(workers.project) == {server.url(path) for path in numbered(6)}


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_worker_that_leaves_gives_up_a_page_after_the_time_for_downloads(
    serve: Serve, workers: Workers, free: threading.Event
) -> None:
    server = slow_site(serve, free)
    leaving = workers.begin(1, {"DOWNLOAD_TIMEOUT": 3}, urls=server.url("/0"))
    leaving.until_asked(server, 1)
    leave(leaving)
    assert leaving.end() == 0, leaving.log  # the page is never answered
    assert "'finish_reason': 'shutdown'" in leaving.log
    assert asked(server) == ["/0"]
    status = workers.status()
    assert (status["out"], status["waiting"], status["state"]) == (0, 1, "running")
    free.set()
    workers._running.clear()
    workers.begin(1, urls=server.url("/0"))
    workers.end()
    assert Counter(asked(server)) == Counter([*numbered(6), "/0"])
    assert items_of(workers.project) == {server.url(path) for path in numbered(6)}


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_a_second_signal_ends_a_worker_at_once_and_its_page_is_asked_for_again(
    serve: Serve, workers: Workers, free: threading.Event
) -> None:
    server = slow_site(serve, free)
    other = serve(tree(6, "User-agent: *\nCrawl-delay: 0.2\n"), host="127.0.0.3")
    urls = f"{server.url('/0')} {other.url('/0')}"
    leaving = workers.begin(1, urls=urls)
    leaving.until_asked(server, 1)
    leave(leaving)
    leaving._process.send_signal(signal.SIGTERM)
    leaving.end()  # the page is never answered
    assert "forcing unclean shutdown" in leaving.log
    assert asked(server) == ["/0"]
    free.set()
    workers._running.clear()
    workers.begin(2, urls=urls)
    workers.end()
    assert set(asked(server)) == set(asked(other)) == set(numbered(6))
    assert Counter(asked(server)) == Counter([*numbered(6), "/0"])
    expected = {at.url(path) for at in (server, other) for path in numbered(6)}
    assert items_of(workers.project) == expected
