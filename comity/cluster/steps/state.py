"""The state of a crawl in a store that carries out steps."""

from __future__ import annotations

import os
import secrets
import socket

from comity.cluster.address import owner_of
from comity.cluster.neighbours import Neighbours
from comity.cluster.steps.line import LineConnection, StepAddress
from comity.cluster.steps.queue import StepQueue
from comity.cluster.steps.turns import StepTurns


class StepState:
    """A worker's access to the shared state, or that of a command: see `SharedState`.

    Subclasses add `check`, `store` and `books`."""

    def __init__(self, address: StepAddress, connection: LineConnection, ttl: float) -> None:
        self._ttl = ttl
        self._connection = connection
        self._worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(5)}"
        self.neighbours = Neighbours(f"{address} {address.crawl}", self._worker)

    def queue(self) -> StepQueue:
        return StepQueue(self._connection, self._worker, self._ttl)

    def ledger(self) -> StepTurns:
        return StepTurns(self._connection, owner=owner_of(self._worker), owner_ttl=self._ttl)

    async def close(self) -> None:
        await self._connection.close()
        self.neighbours.vanish()
