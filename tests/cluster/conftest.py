"""A real server for the tests of this folder: Valkey, and with --all the oldest Redis that is supported too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import Server, newest_program, oldest_program

PROGRAMS = {"newest": newest_program, "oldest": oldest_program}


@pytest.fixture(scope="session", params=["newest", pytest.param("oldest", marks=pytest.mark.slow)])
def _server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis"), PROGRAMS[request.param]())
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(_server: Server) -> Server:
    """A server without any data, which other tests use too."""
    _server.client().flushall()
    return _server


@pytest.fixture
def own_server(_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the test may kill. What it has answered is on its disk: with `everysec` a busy disk would decide the test."""
    server = Server(tmp_path_factory.mktemp("redis"), _server.program, {"appendfsync": "always"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def replica(own_server: Server, tmp_path: Path) -> Iterator[Server]:
    """A replica of `own_server`, which is behind it from the moment on when it is promoted."""
    replica = Server(tmp_path / "replica", own_server.program, own_server.options)
    replica.start()
    replica.client().replicaof("127.0.0.1", own_server.port)
    yield replica
    replica.stop()
