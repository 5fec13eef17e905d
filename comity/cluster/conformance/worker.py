"""A worker in a process of its own: `python -m comity.cluster.conformance.worker URL CRAWL TTL`.

It opens the crawl, and carries out the calls that it reads, one a line: the name of a method of the
queue, or `start`, and its arguments as JSON. It writes each answer as a line."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from comity.cluster.conformance.workers import Turns
from comity.cluster.state import open_state
from comity.gate.pace.ledger import PaceLimit
from comity.policies.syntax.windows import Window


async def _work(url: str, crawl: str, ttl: float) -> None:
    state = open_state(url, crawl, ttl)
    queue, turns = state.queue(), Turns(state.ledger())
    state.neighbours.appear()
    await queue.open()
    await queue.renew([])
    _say(queue.worker)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *arguments = json.loads(line)
        if name == "start":
            host, requests, seconds = arguments
            _say(await turns.start(PaceLimit(host, (Window(requests, seconds),))))
        else:
            answer: Any = await getattr(queue, name)(*arguments)
            _say(sorted(answer) if isinstance(answer, set) else None)


def _say(answer: Any) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], sys.argv[2], float(sys.argv[3])))
