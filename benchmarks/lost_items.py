"""Whether a crawl loses items when its processes are killed: 20 times with -9, for each format, with tags and without, with
JOBDIR and with COMITY_STATE.

The count compares the pages that the servers have served with the union of all files (tests/live/killed_crawls.py). "repeats"
are requests for pages that were served before, "doubles" the records that these have made."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random

sys.path.append(
    str(Path(__file__).parent.parent)
)  # the servers and the spider are those of the tests

from rich.console import Console
from rich.table import Table

from tests.conftest import Serve
from tests.live.killed_crawls import FEEDS, TAGS, KilledCrawl, Outcome
from tests.redis_server import Server

PLACES = ("JOBDIR", "COMITY_STATE")


def measure(feed: str, tag: str, place: str, kills: int, seed: int) -> Outcome:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        serve = Serve()
        stack.callback(serve.close)
        state = None
        if place == "COMITY_STATE":
            state = Server(folder / "state")
            state.start()
            stack.callback(state.stop)
        return KilledCrawl(folder, serve, feed, TAGS[tag], state).run(
            kills, Random(f"{seed} {feed} {tag} {place}")
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "feeds", nargs="*", choices=(*FEEDS, []), help="formats; all where none is named"
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    table = Table("feed", "tags", "queue", *(name for name in Outcome._fields))
    lost = 0
    for feed in options.feeds or FEEDS:
        for tag in TAGS:
            for place in PLACES:
                outcome = measure(feed, tag, place, options.kills, options.seed)
                lost += outcome.lost
                table.add_row(feed, tag, place, *map(str, outcome))
                print(feed, tag, place, outcome, file=sys.stderr, flush=True)
    Console(width=120).print(table)
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
