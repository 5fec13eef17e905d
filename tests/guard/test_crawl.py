"""A crawl of the demonstration site behind its guard, under uvicorn: with the add-on the guard has
nothing to refuse."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest, Response

from comity.crawler.demo import PAGES

if TYPE_CHECKING:
    from tests.conftest import Crawled
    from tests.guard.conftest import Servers

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"

HEADLESS = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "HeadlessChrome/126.0.0.0 Safari/537.36"
)
JSON = {"Accept": "application/json"}
SCRIPT = {"X-Requested-With": "XMLHttpRequest"}


class Everything(Spider):
    """Asks for everything, whether it may or not: every directive of the site permits something of
    it or refuses something."""

    name = "everything"

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.origin = origin

    async def start(self) -> AsyncIterator[Request]:
        headless: dict[str, Any] = {
            "headers": {"User-Agent": HEADLESS},
            "meta": {"comity": {"automations": ["headless"]}},
        }
        requests = [
            *(
                Request(self.origin + path)
                for path in PAGES
                if path not in ("/api/articles", "/news/latest")
            ),
            FormRequest(f"{self.origin}/forms/contact", formdata={"message": "hello"}),
            FormRequest(f"{self.origin}/account/settings", formdata={"name": "x"}),
            FormRequest(f"{self.origin}/about", formdata={"message": "hello"}),
            Request(f"{self.origin}/about", method="DELETE"),
            Request(f"{self.origin}/api/articles", headers=JSON),
            Request(f"{self.origin}/api/articles", headers=JSON | {"X-API-Key": "k"}),
            JsonRequest(f"{self.origin}/forms/contact", data={"message": "hello"}),
            Request(
                f"{self.origin}/news/latest", headers=SCRIPT | {"Referer": f"{self.origin}/news/"}
            ),
            Request(
                f"{self.origin}/news/latest",
                headers=SCRIPT | {"Referer": f"{self.origin}/account/"},
            ),
            Request(f"{self.origin}/about", headers=SCRIPT | {"Referer": f"{self.origin}/"}),
            Request(f"{self.origin}/viewer/", **headless),
            Request(f"{self.origin}/news/", **headless),
            Request(
                f"{self.origin}/research/notes.html", meta={"comity": {"purposes": ["research"]}}
            ),
            *(Request(f"{self.origin}/archive/?page={number}") for number in range(4)),
        ]
        for request in requests:
            yield request.replace(dont_filter=True)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "status": response.status}


def counts(origin: str, servers: Servers) -> dict[str, dict[str, int]]:
    """Return the guard's own counts."""
    told: dict[str, dict[str, int]] = json.loads(servers.person(origin).ask("/guard").body)
    return told


@pytest.fixture
def demo(servers: Servers) -> Iterator[str]:
    with servers.serving("uvicorn-h11", "demo_asgi:app", EXAMPLES) as origin:
        yield origin


@pytest.mark.slow
@pytest.mark.requirement("GUARD-1", "AUTO-15", "AUTO-17", "AUTX-13")
def test_a_crawl_with_the_add_on_has_nothing_to_be_refused(
    crawl: Callable[..., Crawled], demo: str, servers: Servers
) -> None:
    crawled = crawl(Everything, {"HTTPERROR_ALLOW_ALL": True}, origin=demo)
    told = counts(demo, servers)
    assert told["refused"] == {}, crawled.log
    assert told["passed"]["automation.allow"] >= 20
    assert {item["status"] for item in crawled.items} == {200}
    refused = {
        key.rpartition("/")[2] for key in crawled.stats if key.startswith("comity/access/deny/")
    }
    assert refused >= {
        "robots.disallow",
        "automation.method",
        "automation.purpose",
        "automation.key",
        "automation.api",
        "automation.session",
        "automation.mechanism",
        "automation.xhr",
        "automation.fetch-from",
    }


@pytest.mark.requirement("GUARD-1", "AUTO-17", "AUTX-13")
def test_the_same_crawl_without_the_add_on_is_refused(
    crawl: Callable[..., Crawled], demo: str, servers: Servers
) -> None:
    without = {
        "ADDONS": {},
        "HTTPERROR_ALLOW_ALL": True,
        "RETRY_ENABLED": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    }
    crawled = crawl(Everything, without, origin=demo)
    told = counts(demo, servers)
    assert set(told["refused"]) >= {
        "robots.disallow",
        "automation.method",
        "automation.purpose",
        "automation.key",
        "automation.api",
        "automation.session",
        "automation.mechanism",
        "automation.xhr",
        "automation.fetch-from",
        "comity.rate",
    }
    assert {item["status"] for item in crawled.items} >= {401, 403, 429}


class Busy(Spider):
    """Asks for as much as it may have at once."""

    name = "busy"

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.origin = origin

    async def start(self) -> AsyncIterator[Request]:
        for number in range(60):
            yield Request(f"{self.origin}/busy/{number}")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "status": response.status}


@pytest.mark.requirement("GUARD-1", "AUTX-2", "AUTX-3")
def test_a_crawl_that_uses_up_the_limits_is_within_them(
    crawl: Callable[..., Crawled], servers: Servers
) -> None:
    """30 in a second and 2 at a time. The guard of this site knows no tolerance."""
    with servers.serving("uvicorn-h11", "holding:asgi", HERE) as origin:
        crawled = crawl(
            Busy, {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}, origin=origin
        )
        assert counts(origin, servers) == {"passed": {"automation.allow": 60}, "refused": {}}
        assert len(crawled.items) == 60


class Pages(Spider):
    """Asks for pages."""

    name = "pages"

    def __init__(self, urls: list[str]) -> None:
        super().__init__()
        self.urls = urls

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, meta={"handle_httpstatus_all": True})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "status": response.status}


@pytest.mark.requirement("BOT-1", "BOT-2")
def test_a_signed_crawl_proves_its_name(crawl: Callable[..., Crawled], tmp_path: Path) -> None:
    """A guard in this process, with the crawl's key: every request of the crawl is proved."""
    from threading import Thread
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    from comity.guard import Guard, Proof, Proofs, WSGIMiddleware
    from comity.signatures.keys import create_private_key
    from comity.signatures.message import KeyAnswer

    key = create_private_key(tmp_path / "key.pem")

    class OneDirectory:
        def expect(self, urls: object) -> None:
            pass

        def find(self, url: str, keyid: str, *, is_listed: bool) -> KeyAnswer:
            return KeyAnswer(key.public_key() if is_listed else None)

    class Silent(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", "4")])
        return [b"page"]

    server = make_server("127.0.0.1", 0, application, handler_class=Silent)
    origin = f"http://127.0.0.1:{server.server_port}"
    guard = Guard(
        origin,
        {"/robots.txt": b"User-agent: *\nDisallow:\n"},
        proofs=Proofs({"testbot": "https://bot.example.org"}, OneDirectory()),
    )
    server.set_app(WSGIMiddleware(application, guard))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    urls = [f"{origin}/{number}" for number in range(3)]
    signing = {
        "COMITY_KEY": str(tmp_path / "key.pem"),
        "COMITY_SIGNATURE_AGENT": "https://bot.example.org",
    }
    signed, plain = (
        {item["status"] for item in crawl(Pages, settings, urls=urls).items}
        for settings in (signing, {"COMITY_DROP_UNUSABLE": False})
    )
    server.shutdown()
    server.server_close()
    thread.join()
    assert (signed, plain) == ({200}, {403})
    assert {row.proof: number for row, number in guard.agents.items()} == {
        Proof.PROVED: 3,
        Proof.CLAIMED: 3,
    }
