"""What the policy command says of Scrapy by itself is what Scrapy by itself does (docs/policy-command.md)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.http import Request, Response

from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Serve

BARE = {
    "ADDONS": {},
    "ROBOTSTXT_OBEY": True,
    "ROBOTSTXT_USER_AGENT": "testbot",
    "RETRY_ENABLED": False,
    "LOG_LEVEL": "CRITICAL",
}


class Bare(Spider):
    """Asks for one page."""

    name = "bare"
    origin: str

    async def start(self) -> AsyncIterator[Request]:
        yield Request(f"{self.origin}/a")

    def parse(self, response: Response) -> Any:
        pass


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """No answer."""


@pytest.mark.requirement("WHY-1")
@pytest.mark.parametrize(
    ("robots", "comity", "scrapy_alone"),
    one_in(
        2,
        [
            (
                (
                    200,
                    "User-agent: testbot\nContent-Usage: train-ai=n\nUser-agent: x\nDisallow: /a\n",
                    "text/plain",
                ),
                "deny",
                "allow",
            ),
            ((200, "<html>\nUser-agent *\nDisallow: /a\n</html>\n", "text/html"), "allow", "deny"),
            ((200, "<html>\nUser-agent: *\nDisallow: /a\n</html>\n", "text/html"), "deny", "deny"),
            (None, "deny", "allow"),
            *(
                pytest.param(*case, marks=pytest.mark.slow)
                for case in (
                    ((206, "User-agent: *\nDisallow: /b\n", "text/plain"), "deny", "allow"),
                    ((404, "not found", "text/plain"), "allow", "allow"),
                    ((503, "<html>down</html>", "text/html"), "deny", "allow"),
                )
            ),
        ],
    ),
    ids=["a line between agents", "HTML", "records in HTML", "no answer", "206", "404", "503"],
)
def test_scrapy_by_itself(
    serve: Serve,
    crawl: Callable[..., Crawled],
    policy: Callable[..., dict[str, Any]],
    robots: tuple[int, str, str] | None,
    comity: str,
    scrapy_alone: str,
) -> None:
    answer = (
        serve.Answer(robots[1], status=robots[0], content_type=robots[2]) if robots else hang_up
    )
    site = serve({"/robots.txt": answer, "/a": "page"})
    explanation = policy(site.url("/a"))
    assert "/a" not in site.paths
    [opinion] = [
        opinion for opinion in explanation["other_readers"] if opinion["reader"] == "protego"
    ]
    assert (explanation["verdict"], opinion["verdict"]) == (comity, scrapy_alone)
    assert opinion["agrees"] is (comity == scrapy_alone)
    crawl(Bare, BARE, origin=site.origin)
    assert ("/a" in site.paths) is (scrapy_alone == "allow")


@pytest.fixture
def policy(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """`scrapy policy --json URL`"""

    def run(url: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "scrapy", "policy", url, "--json", "--agent", "testbot"]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        return dict(json.loads(done.stdout))

    return run
