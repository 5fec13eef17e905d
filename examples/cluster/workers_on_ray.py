"""Start the workers of a crawl on a Ray cluster, and restart those that die.

    python workers_on_ray.py 4 news -s COMITY_ITEMS=/shared/items

Ray only starts the workers. They share the state at COMITY_STATE: set this variable for this
program, and let every node reach the server that it names, and the folder of the items."""

from __future__ import annotations

import os
import subprocess
import sys

import ray


@ray.remote(max_restarts=-1, max_task_retries=-1)
class Worker:
    """One `scrapy crawl`. A node that dies takes it along: then Ray runs it again, elsewhere."""

    def crawl(self, arguments: list[str], environment: dict[str, str]) -> int:
        """To the end of the crawl; its exit status."""
        command = [sys.executable, "-m", "scrapy", "crawl", *arguments]
        while (
            status := subprocess.run(  # noqa: S603
                command, env={**os.environ, **environment}, check=False
            ).returncode
        ) < 0:
            pass  # a signal has ended it
        return status


def main(number: int, arguments: list[str]) -> int:
    environment = {
        name: value for name, value in os.environ.items() if name.startswith("COMITY_STATE")
    }
    settings = (
        ["-s", f"COMITY_STATE={os.environ['COMITY_STATE']}"] if "COMITY_STATE" in os.environ else []
    )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    ray.init(ignore_reinit_error=True)
    workers = [Worker.remote() for _ in range(number)]  # type: ignore[attr-defined]  # what @ray.remote makes
    crawls = [worker.crawl.remote([*arguments, *settings], environment) for worker in workers]
    statuses: list[int] = ray.get(crawls)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
