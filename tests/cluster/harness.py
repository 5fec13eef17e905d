"""The servers that the conformance tests run on: Valkey, the oldest Redis, and a Cluster."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from hashlib import sha1
from pathlib import Path

from comity.cluster.conformance.harness import FaultNotMade, Harness
from comity.cluster.conformance.proxy import Proxy
from comity.cluster.redis import connection, store
from comity.cluster.redis.scripts import Script, script
from tests.redis_server import Cluster, Server, newest_program, oldest_program

CLOCK = "conformance:clock"
READ = "local time = redis.call('TIME')\n  return time[1] * 1000000 + time[2]"


def by_the_clock(script: Script) -> Script:
    """Return the script with a clock that is a key of the server, if there is one."""
    if READ not in script.text or CLOCK in script.text:
        return script
    text = script.text.replace(
        READ,
        f"local set = redis.call('GET', '{CLOCK}')\n  if set then return tonumber(set) end\n  {READ}",
    )
    return Script(script.name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


class OwnServer(Harness):
    """The newest server that there is here: each change that it confirms is on its disk."""

    program = staticmethod(newest_program)

    def __init__(self, url: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="comity-conformance-"))
        self.server = Server(self.folder / "server", self.program(), {"appendfsync": "always"})
        self.server.start()
        setattr(connection, "script", lambda step: by_the_clock(script(step)))  # noqa: B010
        for name, value in vars(store).copy().items():
            if isinstance(value, Script):
                setattr(store, name, by_the_clock(value))
        super().__init__(self.server.url)

    def close(self) -> None:
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self.server._process is not None
        os.kill(self.server._process.pid, number)

    def set_clock(self, now: float | None) -> None:
        client = self.server.client()
        if now is None:
            client.delete(CLOCK)
        else:
            client.set(CLOCK, f"{now * 1e6:.0f}")

    def fill(self) -> None:
        self.server.client().config_set("maxmemory", 1)

    def make_room(self) -> None:
        self.server.client().config_set("maxmemory", 2**29)


class OldServer(OwnServer):
    """The oldest server that there is here."""

    program = staticmethod(oldest_program)


class OwnCluster(Harness):
    """Three nodes, and a replica of the first one. Its clients know all nodes, so no proxy helps."""

    def __init__(self, url: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="comity-conformance-"))
        self.cluster = Cluster(self.folder)
        self.cluster.start()
        super().__init__(str(self.cluster.address()))

    def close(self) -> None:
        self.cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        for node in self.cluster.nodes:
            node.kill()

    def start(self) -> None:
        for node in self.cluster.nodes:
            node.start()
        self.cluster.wait()

    def fill(self) -> None:
        self._set_memory(1)

    def make_room(self) -> None:
        self._set_memory(2**29)

    def _set_memory(self, octets: int) -> None:
        for node in self.cluster.nodes:
            node.client().config_set("maxmemory", octets)

    def promote(self) -> None:
        """Let a new replica take the place of the first node. The address names the second then."""
        self.cluster.add_replica()
        first = self.cluster.nodes.pop(0)
        first.kill()
        self.url = str(self.cluster.address())

    def proxy(self) -> tuple[Proxy, str]:
        raise FaultNotMade("answer lost")
