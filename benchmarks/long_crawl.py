"""The memory and the journal of a long crawl over many hosts, of comity and of Scrapy.

    python benchmarks/long_crawl.py --hosts 20000 --pages 200000
    python benchmarks/long_crawl.py --hosts 5000 --pages 50000 --crawlers comity tuned --jobdir yes

Each crawler fetches all pages of loopback hosts in a process of its own. "tuned" is Scrapy with the
garbage collection and the CONCURRENT_ITEMS of comity. A bare spider knows the links, so the crawler
alone is measured. At even intervals the program prints the memory that the process has, and the
size of its JOBDIR. The slope is that of a straight line through the values of the second half."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from crawl import SETTINGS, Bare, Case, crawled, served
from long_queue import resident

STEPS = 20  # intervals of a crawl


class Watched(Bare):
    """Takes memory and size of the JOBDIR after each interval."""

    name = "watched"

    def opened(self) -> None:
        super().opened()
        self.steps: list[tuple[int, float, float]] = []
        self.each = max(1, self.pages * len(self.urls) // STEPS)

    def count_page(self) -> None:
        super().count_page()
        if self.fetched % self.each == 0:
            self.steps.append((self.fetched, resident(), folder_size(self.settings["JOBDIR"])))


def folder_size(folder: str | None) -> float:
    """Return the MiB of all files in a folder; 0 without a folder."""
    if not folder:
        return 0.0
    total = 0
    for path in Path(folder).rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # Scrapy removes files of empty queues
            continue
    return total / 2**20


def crawl(job: dict[str, Any]) -> None:
    """Crawl in this process, and print the values as JSON."""
    from scrapy.crawler import AsyncCrawlerProcess

    process = AsyncCrawlerProcess({**job["settings"], "LOG_LEVEL": "WARNING"})
    crawler = process.create_crawler(Watched)
    process.crawl(crawler, urls=job["urls"], pages=job["pages"], links="chain")
    process.start()
    spider = crawler.spider
    assert isinstance(spider, Watched)
    told = {"cpu": spider.cpu, "wall": spider.wall, "steps": spider.steps, "pages": spider.fetched}
    print(json.dumps(told))


def measure(name: str, case: Case, urls: list[str], *, has_jobdir: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = SETTINGS[name] | {
            "COMITY_STORE": f"{folder}/policies.sqlite",
            "JOBDIR": f"{folder}/job" if has_jobdir else None,
        }
        job = {"settings": settings, "urls": urls, "pages": case.pages // case.hosts}
        told = crawled(__file__, name, case, job)
    steps = told["steps"]
    half = steps[len(steps) // 2 :]
    slope = statistics.linear_regression([step[0] for step in half], [step[1] for step in half])[0]
    print(
        f"{name}, {'with' if has_jobdir else 'without'} JOBDIR: {case.hosts:,} hosts,"
        f" {case.pages:,} pages, {told['cpu'] / case.pages * 1000:.2f} ms of CPU a page,"
        f" {told['wall']:.0f} s by the clock"
    )
    print("  MiB:   ", " ".join(f"{memory:.0f}" for _, memory, _ in steps))
    if has_jobdir:
        print("  JOBDIR:", " ".join(f"{size:.1f}" for _, _, size in steps))
    print(f"  second half: {slope * 10_000:.2f} MiB for 10,000 pages", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--hosts", type=int, default=5_000)
    parser.add_argument("--pages", type=int, default=50_000, help="of all hosts")
    parser.add_argument("--rules", type=int, default=20)
    parser.add_argument(
        "--crawlers", choices=tuple(SETTINGS), nargs="*", default=["comity", "tuned"]
    )
    parser.add_argument("--jobdir", choices=("yes", "no", "both"), default="both")
    options = parser.parse_args()
    # The server listens at each host, and Scrapy has a file open for each host.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if options.job:
        return crawl(json.load(sys.stdin))
    case = Case(
        bare=True,
        hosts=options.hosts,
        rules=options.rules,
        pages=options.pages,
        links="chain",
    )
    jobdirs = {"yes": [True], "no": [False], "both": [False, True]}[options.jobdir]
    with served(case) as urls:
        for has_jobdir, name in product(jobdirs, options.crawlers):
            measure(name, case, urls, has_jobdir=has_jobdir)
    return None


if __name__ == "__main__":
    main()
