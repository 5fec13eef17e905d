"""Signed requests of crawls, clients and browsers, by what the servers saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

if TYPE_CHECKING:
    from comity.signatures.message import Signature
    from tests.conftest import Crawled, Loopback, Seen, Serve

pytestmark = pytest.mark.requirement("BOT-1")

AGENT = "https://bot.example.org"
FIELDS = ("signature", "signature-agent", "signature-input")
ROBOTS = "User-agent: *\nDisallow:\n"


class Urls(Spider):
    """Asks for URLs, and says which fields its requests and responses have then."""

    name = "urls"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url, errback=self.failed, dont_filter=True)

    def parse(self, response: Response) -> Any:
        assert response.request
        yield {"url": response.url, "fields": sorted(response.request.headers.to_unicode_dict())}

    def failed(self, failure: Any) -> Any:
        yield {"failed": failure.request.url, "why": str(failure.value)}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    from comity.signatures.keys import create_private_key

    create_private_key(tmp_path / "key.pem")
    return tmp_path / "key.pem"


@pytest.fixture
def verified(key: Path) -> Callable[[Seen, Loopback], Signature]:
    """`verified(seen, server)`: the one signature of a request, verified for that server."""
    import time

    from comity.signatures.keys import read_private_key, thumbprint
    from comity.signatures.message import KeyAnswer, Outcome, SignedRequest
    from comity.signatures.verifier import verify

    public = read_private_key("KEY", key).public_key()

    def check(seen: Seen, server: Loopback) -> Signature:
        request = SignedRequest(seen.method, server.url(seen.path), seen.headers)
        [signature] = verify(request, lambda url, keyid: KeyAnswer(public), time.time())
        assert signature.outcome is Outcome.VERIFIED, (seen, signature)
        assert signature.keyid == thumbprint(public)
        assert signature.url == f"{AGENT}/.well-known/http-message-signatures-directory"
        assert seen.headers["signature-agent"] == f'sig1="{AGENT}"'
        assert seen.headers["signature-input"].startswith(
            'sig1=("@authority" "signature-agent";key="sig1");created='
        )
        for parameter in (";expires=", ";nonce=", ';alg="ed25519"', ';tag="web-bot-auth"'):
            assert parameter in seen.headers["signature-input"]
        return signature

    return check


Verified = Callable[["Seen", "Loopback"], "Signature"]


def check_all(servers: Iterable[Loopback], verified: Verified) -> None:
    """Check that all requests are signed for their server, each with a nonce of its own."""
    signatures = [verified(seen, server) for server in servers for seen in server.seen]
    assert len({signature.nonce for signature in signatures}) == len(signatures) > 0


def two_sites(serve: Serve) -> tuple[Loopback, Loopback]:
    """Two servers. `/away` of the first leads to the second, `/near` to a page of its own."""
    other = serve({"/robots.txt": ROBOTS, "/page": "<p>page</p>"}, host="127.0.0.2")
    site = serve(
        {
            "/robots.txt": serve.Answer("", status=302, headers={"Location": "/rules.txt"}),
            "/rules.txt": ROBOTS,
            "/page": "<p>page</p>",
            "/near": serve.Answer("", status=302, headers={"Location": "/page"}),
            "/away": serve.Answer("", status=302, headers={"Location": other.url("/page")}),
        }
    )
    return site, other


@pytest.mark.parametrize("handler", [False, True], ids=["scrapy", "comity"])
def test_each_request_of_a_crawl_is_signed_for_its_server(
    serve: Serve, crawl: Callable[..., Crawled], key: Path, verified: Verified, handler: bool
) -> None:
    servers = site, other = two_sites(serve)
    settings = {
        "COMITY_KEY": str(key),
        "COMITY_SIGNATURE_AGENT": AGENT,
        "COMITY_DOWNLOAD_HANDLER": handler,
    }
    crawled = crawl(Urls, settings, urls=[site.url("/page"), site.url("/near"), site.url("/away")])
    check_all(servers, verified)
    assert {"/robots.txt", "/rules.txt", "/page", "/near", "/away"} == set(site.paths)
    assert set(other.paths) == {"/robots.txt", "/page"}
    assert len(crawled.items) == 3
    # Nothing that a spider, a cache or a queue could keep has the signature.
    assert not [item for item in crawled.items if "Signature" in str(item)]


def test_without_a_key_nothing_is_signed(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    site = serve({"/robots.txt": ROBOTS, "/page": "<p>page</p>"})
    crawl(Urls, {}, urls=[site.url("/page")])
    assert site.paths == ["/robots.txt", "/page"]
    assert not [seen for seen in site.seen if set(FIELDS) & set(seen.headers)]


@pytest.mark.slow
def test_a_retry_is_signed_anew(
    serve: Serve, crawl: Callable[..., Crawled], key: Path, verified: Verified
) -> None:
    site = serve({"/robots.txt": ROBOTS, "/page": serve.Answer("broken", status=500)})
    settings = {"COMITY_KEY": str(key), "COMITY_SIGNATURE_AGENT": AGENT, "RETRY_TIMES": 2}
    crawl(Urls, settings, urls=[site.url("/page")])
    assert site.paths == ["/robots.txt", *["/page"] * 3]
    check_all([site], verified)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"COMITY_KEY": "nowhere.pem"}, "COMITY_SIGNATURE_AGENT is not: set it to the address"),
        ({"COMITY_SIGNATURE_AGENT": AGENT}, "COMITY_KEY is not: set it to the path"),
        (
            {"COMITY_KEY": "nowhere.pem", "COMITY_SIGNATURE_AGENT": AGENT},
            "COMITY_KEY `nowhere.pem` cannot be read: No such file or directory:",
        ),
        (
            {"COMITY_KEY": "x", "COMITY_SIGNATURE_AGENT": "http://bot.example.org"},
            "COMITY_SIGNATURE_AGENT `http://bot.example.org` is not an https URL: write",
        ),
        (
            {"COMITY_KEY": "x", "COMITY_SIGNATURE_AGENT": 'https://a/"b'},
            'COMITY_SIGNATURE_AGENT `https://a/"b` is not an https URL: write',
        ),
    ],
)
def test_a_mistake_ends_the_program_before_the_crawl(
    serve: Serve, settings: dict[str, Any], complaint: str
) -> None:
    from scrapy.settings import Settings

    from comity.gate.options import Options, SettingsError

    with pytest.raises(SettingsError) as error:
        Options.checked(Settings({"COMITY_AGENT": "testbot", **settings}))
    assert str(error.value).startswith("comity: COMITY_")
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.requirement("WEB-1")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_each_request_of_a_browser_is_signed_for_its_server(
    serve: Serve,
    key: Path,
    verified: Verified,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
) -> None:
    from playwright.async_api import async_playwright

    from comity.browser import guard
    from comity.client import Client
    from tests.live.test_browsers import launch_options

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    secured = certificate if scheme == "https" else None
    free = {"Access-Control-Allow-Origin": "*"}
    other = serve(
        {"/robots.txt": ROBOTS, "/data": serve.Answer("data", headers=free)},
        host="127.0.0.2",
        certificate=secured,
    )
    page = f"""<link rel=icon href=data:,><img src=/near>
        <script>done = fetch("{other.url("/data")}").then(answer => answer.text())</script>"""
    site = serve(
        {
            "/robots.txt": ROBOTS,
            "/start": serve.Answer("", status=302, headers={"Location": "/page"}),
            "/page": page,
            "/near": serve.Answer("", status=302, headers={"Location": other.url("/image")}),
        },
        certificate=secured,
    )

    async def browse() -> str:
        client = Client(
            "testbot", store=None, min_delay=0, key=str(key), signature_agent=AGENT, inner="allow"
        )
        async with async_playwright() as playwright, client, guard(client) as guarded:
            browser = await guarded.launch(playwright.chromium, **launch_options())
            opened = await browser.new_page()
            await opened.goto(site.url("/start"), timeout=0)
            text: str = await opened.evaluate("done")
            await browser.close()
            return text

    assert asyncio.run(browse()) == "data"  # a simple request, which the fields do not change
    check_all([site, other], verified)
    assert {"/start", "/page", "/near"} <= set(site.paths)
    assert {"/data", "/image"} <= set(other.paths)
    assert {seen.method for seen in (*site.seen, *other.seen)} == {"GET"}
