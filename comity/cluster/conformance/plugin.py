"""The options, the fixtures and the summary of the conformance tests."""

from __future__ import annotations

import importlib
import secrets
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from comity.cluster.conformance.harness import Harness

NO_FAULTS = "comity.cluster.conformance.harness:Harness"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("comity", "tests of stores for COMITY_STATE")
    group.addoption("--state", default="", metavar="URL", help="the store, as in COMITY_STATE")
    group.addoption(
        "--harness",
        default=NO_FAULTS,
        metavar="MODULE:CLASS",
        help="the faults of the server that can be made",
    )
    group.addoption(
        "--examples",
        type=int,
        default=100,
        metavar="NUMBER",
        help="the random sequences of steps that are compared with the model of the queue",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--harness") == NO_FAULTS and not config.getoption("--state"):
        raise pytest.UsageError("write the URL of the store: --state URL")


@contextmanager
def _open(config: pytest.Config) -> Iterator[Harness]:
    module, _, name = config.getoption("--harness").partition(":")
    harness: Harness = getattr(importlib.import_module(module), name)(config.getoption("--state"))
    try:
        yield harness
    finally:
        harness.close()


@pytest.fixture(scope="session")
def _harness(pytestconfig: pytest.Config) -> Iterator[Harness]:
    with _open(pytestconfig) as harness:
        yield harness


@pytest.fixture
def harness(_harness: Harness) -> Harness:
    """The store, and the faults of its server."""
    return _harness


@pytest.fixture
def own_harness(pytestconfig: pytest.Config) -> Iterator[Harness]:
    """A harness whose server may be ended. After that, hosts may wait for a whole window."""
    with _open(pytestconfig) as harness:
        yield harness


@pytest.fixture
def crawl() -> str:
    """The name of a crawl that no other test has."""
    return f"conformance-{secrets.token_hex(6)}"


@pytest.fixture
def host() -> str:
    """The name of a host that no other test has."""
    return f"{secrets.token_hex(6)}.example"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    not_made = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", ()):  # a FaultNotMade each
        fault = report.longrepr[2].rpartition(": ")[2]
        not_made[fault].append(report.nodeid.rpartition("::")[2])
    if not_made:
        terminalreporter.section("faults that were not made")
        for fault, tests in sorted(not_made.items()):
            terminalreporter.line(f"{fault}: {', '.join(sorted(tests))}")
