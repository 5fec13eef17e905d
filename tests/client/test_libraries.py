"""httpx and aiohttp through the client, checked by the requests that servers saw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from socket import SHUT_WR
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from yarl import URL

from comity.client import Client, RefusedError, Session
from comity.policies import PolicyError, Verdict
from comity.policies.document.offer import MAX_DOCUMENT
from tests.live.test_inner_addresses import Outside
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.client.conftest import Library
    from tests.conftest import Loopback, Serve

ROBOTS = "User-agent: *\nDisallow: /no\n"
FILE = "/automation-preferences.txt"
pytestmark = pytest.mark.requirement("WEB-3")


def alone(**options: Any) -> Client:
    return Client("testbot", **{"store": None, "min_delay": 0, **options})


def pages(server: Loopback) -> list[tuple[str, str]]:
    """Return method and path of all requests except those for policy files."""
    return [(seen.method, seen.path) for seen in server.seen if not seen.path.endswith(".txt")]


def redirect(serve: Serve, url: str, status: int = 302) -> Any:
    return serve.Answer("there", status=status, headers={"Location": url})


async def rule(library: Library, asking: Any) -> str:
    """Return the rule that refuses the request; "": it is allowed."""
    refused = None
    try:
        await asking
    except RefusedError as error:
        refused = error
    if refused is None:
        return ""
    deciding = refused.decision.reasons[0].rule
    assert isinstance(refused, library.error)
    assert deciding in str(refused)
    return deciding


@pytest.mark.parametrize("status", one_in(2, [301, 302, 303, 307, 308]))
def test_refused_requests_arrive_on_no_hop(serve: Serve, library: Library, status: int) -> None:
    """Redirects may go to a refused path, or to a host with a robots.txt that is not known yet."""
    other = serve({"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/open": "<p>open</p>"})
    site = serve(
        {
            "/robots.txt": ROBOTS,
            "/in": redirect(serve, "/no/page", status),
            "/out": redirect(serve, other.url("/closed"), status),
            "/over": redirect(serve, "/out", status),
            "/away": redirect(serve, other.url("/open"), status),
        }
    )

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            assert await rule(library, ask("GET", site.url("/no"))) == "robots.disallow"
            for path in ("/in", "/out", "/over"):
                assert await rule(library, ask("GET", site.url(path))) == "robots.disallow"
            got = await ask("GET", site.url("/away"))
            assert (got.status, got.url, got.body) == (200, other.url("/open"), b"<p>open</p>")
            assert client.counts.refused == {"robots.disallow": 4}
            assert client.counts.asked == 6

    asyncio.run(run())
    assert pages(site) == [("GET", path) for path in ("/in", "/out", "/over", "/out", "/away")]
    assert pages(other) == [("GET", "/open")]
    assert other.paths.count("/robots.txt") == 1


def test_hops_that_are_not_followed_are_judged_when_they_are(
    serve: Serve, library: Library
) -> None:
    site = serve({"/robots.txt": ROBOTS, "/in": redirect(serve, "/no")})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            assert (await ask("GET", site.url("/in"), follows=False)).status == 302
            assert await rule(library, ask("GET", site.url("/no"))) == "robots.disallow"

    asyncio.run(run())
    assert pages(site) == [("GET", "/in")]


@pytest.mark.requirement("REACH-3")
def test_a_request_is_not_sent_after_its_turn(serve: Serve, library: Library) -> None:
    """This process was stopped for so long that other processes may use the host."""
    site = serve({"/robots.txt": ROBOTS, "/late": "late", "/again": "again"})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            assert client._parts
            client._parts.pace.stood_still = lambda request: True  # type: ignore[method-assign]
            with pytest.raises(
                library.error, match="was not sent in its turn: this process stood still"
            ):
                await ask("GET", site.url("/late"))
            del client._parts.pace.stood_still
            assert (await ask("GET", site.url("/again"))).status == 200

    asyncio.run(run())
    assert set(pages(site)) == {("GET", "/again")}


READ_ONLY = "scope: /\nallowed-methods: GET, POST\nallow-xhr: read-only\n"


@pytest.mark.parametrize(
    ("preferences", "method", "arguments", "expected"),
    one_in(
        4,
        [
            ("scope: /\nallowed-methods: GET\n", "GET", {}, ""),
            ("scope: /\nallowed-methods: GET\n", "HEAD", {}, "automation.method"),
            ("scope: /\nallowed-methods: GET\n", "POST", {"data": {"a": "b"}}, "automation.method"),
            (READ_ONLY, "POST", {"data": {"a": "b"}}, ""),
            (READ_ONLY, "POST", {"json": {"a": "b"}}, "automation.api"),
            (READ_ONLY, "GET", {"headers": {"Accept": "application/json"}}, "automation.api"),
            (READ_ONLY, "GET", {"said": {"kind": "xhr", "referer": "http://a.test/"}}, ""),
            (READ_ONLY, "POST", {"said": {"kind": "xhr"}}, "automation.xhr"),
            (READ_ONLY, "POST", {"headers": {"X-Requested-With": "x"}}, "automation.xhr"),
            (
                f"{READ_ONLY}disallow-fetch-from: /cart\n",
                "GET",
                {"said": {"kind": "xhr"}},
                "automation.fetch-from",
            ),
            (
                f"{READ_ONLY}disallow-fetch-from: /cart\n",
                "GET",
                {"headers": {"X-Requested-With": "x", "Referer": "{origin}/cart"}},
                "automation.fetch-from",
            ),
            (
                f"{READ_ONLY}disallow-fetch-from: /cart\n",
                "GET",
                {"headers": {"X-Requested-With": "x", "Referer": "{origin}/"}},
                "",
            ),
            (
                f"{READ_ONLY}api-automation: with-key-only\n",
                "GET",
                {"said": {"kind": "api"}},
                "automation.key",
            ),
            (
                f"{READ_ONLY}api-automation: with-key-only\n",
                "GET",
                {"said": {"kind": "api"}, "headers": {"Authorization": "Bearer x"}},
                "",
            ),
            (
                f"{READ_ONLY}api-automation: with-key-only\n",
                "GET",
                {"said": {"kind": "api"}, "headers": {"X-API-Key": "x"}},
                "",
            ),
            (
                f"{READ_ONLY}require-human-initiated-session: true\n",
                "GET",
                {"headers": {"Cookie": "sid=1"}},
                "automation.session",
            ),
            (
                f"{READ_ONLY}require-human-initiated-session: true\n",
                "GET",
                {
                    "headers": {"Cookie": "sid=1"},
                    "said": {"session": Session(human_initiated=True)},
                },
                "",
            ),
            (READ_ONLY, "GET", {"said": {"automations": ["cdp"]}}, "automation.mechanism"),
            (
                f"{READ_ONLY}allowed-purposes: search\n",
                "GET",
                {"said": {"purposes": ["search"]}},
                "",
            ),
        ],
    ),
)
def test_a_request_is_judged_as_it_goes_out(
    serve: Serve, library: Library, preferences: str, method: str, arguments: Any, expected: str
) -> None:
    server = serve({"/robots.txt": ROBOTS, FILE: preferences, "/": "<p>page</p>"})
    headers = {
        name: value.format(origin=server.origin)
        for name, value in arguments.get("headers", {}).items()
    }

    async def run() -> str:
        async with alone() as client, library.opened(client) as ask:
            return await rule(
                library, ask(method, server.url("/"), **{**arguments, "headers": headers})
            )

    assert asyncio.run(run()) == expected
    assert pages(server) == ([] if expected else [(method, "/")])


def test_a_session_is_that_of_one_host(serve: Serve, library: Library) -> None:
    """The libraries remove credentials if a redirect goes to another origin."""
    wants = {
        "/robots.txt": ROBOTS,
        FILE: f"{READ_ONLY}require-human-initiated-session: true\n",
        "/": "<p>page</p>",
    }
    other = serve(dict(wants))
    site = serve(
        {**wants, "/here": redirect(serve, "/"), "/there": redirect(serve, other.url("/"))}
    )

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            said = {"session": Session(human_initiated=True)}
            assert await rule(library, ask("GET", site.url("/here"), said=said)) == ""
            assert (
                await rule(library, ask("GET", site.url("/there"), said=said))
                == "automation.session"
            )

    asyncio.run(run())
    assert pages(other) == []


def test_a_session_does_not_come_back_on_the_way(serve: Serve, library: Library) -> None:
    """A second hop at the other origin has no session either."""
    wants = f"{READ_ONLY.replace('/', '/closed', 1)}require-human-initiated-session: true\n"
    other = serve(
        {
            "/robots.txt": ROBOTS,
            FILE: wants,
            "/open": redirect(serve, "/closed"),
            "/closed": "<p>page</p>",
        }
    )
    site = serve({"/robots.txt": ROBOTS, "/": redirect(serve, other.url("/open"))})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            said = {"session": Session(human_initiated=True)}
            assert await rule(library, ask("GET", site.url("/"), said=said)) == "automation.session"

    asyncio.run(run())
    assert pages(other) == [("GET", "/open")]


@pytest.mark.parametrize("host", ["other.test", "127.0.0.1", "127.0.0.1:1", ""])
def test_the_host_field_names_the_host_of_the_url(
    serve: Serve, library: Library, host: str
) -> None:
    """A Host field selects another site of the server, to which other policies apply.

    RFC 9110 section-7.2."""
    server = serve({"/robots.txt": ROBOTS, "/": "<p>page</p>"})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            with pytest.raises(PolicyError, match="names another site than the URL"):
                await ask("GET", server.url("/"), headers={"Host": host})
            assert (
                await ask(
                    "GET", server.url("/"), headers={"host": server.url("/").split("/")[2].upper()}
                )
            ).status == 200
            with pytest.raises(PolicyError, match="names another site than the URL"):
                await client.admit(server.url("/"), headers={"host": host})

    asyncio.run(run())
    assert pages(server) == [("GET", "/")]


@pytest.mark.parametrize("target", one_in(2, ["/a?", "/a[", "/a?q='", "/a|", "/a\\b", "/é|", "/?"]))
def test_the_url_that_goes_out_is_judged(serve: Serve, library: Library, target: str) -> None:
    """Scrapy would normalise the URL. But `Disallow: /*?` applies to an empty query too."""
    server = serve({"/robots.txt": f"User-agent: *\nDisallow: {target}\n"})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            is_httpx = library.name == "httpx"
            url: Any = (
                server.origin + target if is_httpx else URL(server.origin + target, encoded=True)
            )
            goes_out = not is_httpx and target.endswith("?")  # aiohttp drops an empty query
            assert await rule(library, ask("GET", url)) == ("" if goes_out else "robots.disallow")
            await ask("GET", server.url("/b?"))

    asyncio.run(run())
    assert {path.rstrip("?") for _, path in pages(server)} <= {"/a", "/b", "/"}
    assert target not in [path for _, path in pages(server)]


def test_the_server_is_told_the_agent_and_its_purposes(serve: Serve, library: Library) -> None:
    server = serve({"/robots.txt": ROBOTS, "/1": redirect(serve, "/2"), "/2": "<p>page</p>"})
    name = "testbot/1.0 (+https://example.org/bot)"

    async def run() -> None:
        async with (
            alone(user_agent=name, purposes=("news",)) as client,
            library.opened(client) as ask,
        ):
            await ask("GET", server.url("/1"))
            await ask(
                "GET",
                server.url("/2"),
                headers={"User-Agent": "Mozilla/5.0 (compatible; TestBot/2)"},
                said={"purposes": []},
            )
            await ask(
                "GET",
                server.url("/2"),
                headers={"Automation-Purpose": "ads"},
                said={"purposes": []},
            )
            for other in ("Mozilla/5.0", "testbots/1.0", "nottestbot"):
                with pytest.raises(
                    PolicyError, match=f"User-Agent `{other}` does not name `testbot`"
                ):
                    await ask("GET", server.url("/2"), headers={"User-Agent": other})

    asyncio.run(run())
    sent = [
        (seen.headers["user-agent"], seen.headers.get("automation-purpose")) for seen in server.seen
    ]
    assert sent == [
        (name, None),
        (name, "news"),
        (name, "news"),
        ("Mozilla/5.0 (compatible; TestBot/2)", None),
        (name, None),
    ]


def test_without_robots_txt_nothing_is_asked_for(serve: Serve, library: Library) -> None:
    server = serve({"/robots.txt": serve.Answer(status=500)})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            assert (await rule(library, ask("GET", server.url("/")))).startswith(
                "robots.unreachable"
            )

    asyncio.run(run())
    assert pages(server) == []


# The pace


def test_the_server_sees_the_pace(serve: Serve, library: Library, tmp_path: Path) -> None:
    """The pace holds across tasks, clients with one store, and the hops of a redirect."""
    routes = {f"/{number}": "<p>page</p>" for number in range(3)}
    server = serve(
        {"/robots.txt": "User-agent: *\nCrawl-delay: 0.2\n", **routes, "/3": redirect(serve, "/0")}
    )

    async def asks() -> None:
        async with (
            Client("testbot", store=tmp_path / "policies.sqlite", min_delay=0) as client,
            library.opened(client) as ask,
        ):
            await asyncio.gather(*(ask("GET", server.url(f"/{number}")) for number in range(4)))

    async def run() -> None:
        await asyncio.gather(asks(), asks())

    asyncio.run(run())
    times = sorted(seen.at for seen in server.seen if seen.path != "/robots.txt")
    assert len(times) == 10
    assert all(later - earlier >= 0.199 for earlier, later in pairwise(times))


def test_a_host_that_is_asked_too_often_is_left_alone(serve: Serve, library: Library) -> None:
    server = serve(
        {
            "/robots.txt": ROBOTS,
            "/busy": serve.Answer(status=429, headers={"Retry-After": "3600"}),
            "/": "<p>page</p>",
        }
    )

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            assert (await ask("GET", server.url("/busy"))).status == 429
            assert await rule(library, ask("GET", server.url("/"))) == "comity.max-delay"

    asyncio.run(run())
    assert pages(server) == [("GET", "/busy")]


def test_a_request_takes_its_place_until_its_body_is_through(
    serve: Serve, library: Library
) -> None:
    """The place is free again if the body fails, is cancelled, or is closed unread."""
    may_end = Event()

    def slow(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nhe")
        handler.wfile.flush()
        may_end.wait(30)
        handler.wfile.write(b"re")

    def breaks(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nhe")

    server = serve({"/robots.txt": ROBOTS, "/slow": slow, "/breaks": breaks, "/": "<p>page</p>"})

    async def run() -> None:
        async with alone(per_host=1) as client, library.opened(client) as ask:
            first = asyncio.create_task(ask("GET", server.url("/slow")))
            second = asyncio.create_task(ask("GET", server.url("/")))
            await asyncio.wait([second], timeout=0.1)
            assert not second.done()
            may_end.set()
            assert [(await task).body for task in (first, second)] == [b"here", b"<p>page</p>"]
            with pytest.raises(library.error):
                await ask("GET", server.url("/breaks"))
            may_end.clear()
            cancelled = asyncio.create_task(ask("GET", server.url("/slow")))
            await asyncio.wait([cancelled], timeout=0.1)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert (await ask("GET", server.url("/"))).status == 200

    try:
        asyncio.run(run())
    finally:
        may_end.set()


def test_a_server_that_is_gone_takes_no_place(
    serve: Serve, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with alone(per_host=1) as client, library.opened(client) as ask:
            (await client.admit(server.url("/"))).ended()
            server.close()
            for _ in range(2):
                with pytest.raises(library.error):
                    await ask("GET", server.url("/"))

    monkeypatch.setattr(serve, "close", lambda: None)
    asyncio.run(run())


# Where it leads


@pytest.fixture
def outside(library: Library) -> Callable[..., Any]:
    """Return clients that treat 127.0.0.2 as a public address, with the library over them."""

    @asynccontextmanager
    async def opened() -> Any:
        async with alone() as client:
            assert client._parts
            client._parts.client.network = Outside(client._parts.options.client)
            async with library.opened(client) as ask:
                yield client, ask

    return opened


@pytest.mark.requirement("SEC-7")
def test_no_public_site_leads_to_an_inner_one(
    serve: Serve, library: Library, outside: Callable[..., Any]
) -> None:
    inner = serve({"/robots.txt": ROBOTS, "/": "<p>inner</p>"})
    other = serve({"/robots.txt": ROBOTS, "/": redirect(serve, inner.url("/"))}, "127.0.0.2")
    site = serve(
        {
            "/robots.txt": ROBOTS,
            "/in": redirect(serve, inner.url("/")),
            "/over": redirect(serve, other.url("/")),
            "/page": "<p>page</p>",
        },
        "127.0.0.2",
    )

    async def run() -> None:
        async with outside() as (client, ask):
            assert await rule(library, ask("GET", site.url("/in"))) == "comity.inner-address"
            assert await rule(library, ask("GET", site.url("/over"))) == "comity.inner-address"
            assert (await ask("GET", site.url("/in"), follows=False)).status == 302
            page = await ask("GET", site.url("/page"))
            said = {"led_by": page.response}
            assert (
                await rule(library, ask("GET", inner.url("/"), said=said)) == "comity.inner-address"
            )
            assert inner.seen == []
            assert (
                await rule(library, ask("GET", inner.url("/"))) == ""
            )  # the operator may ask there
            # Now the site may lead there too, because the operator has asked for this origin.
            assert (await ask("GET", site.url("/in"))).body == b"<p>inner</p>"
            assert client.counts.refused == {"comity.inner-address": 3}

    asyncio.run(run())


@pytest.mark.requirement("SEC-7")
@pytest.mark.parametrize("body", ["", "<p>inner</p>", "x" * 1_000_000])
def test_a_name_that_has_moved_inside_is_not_read(
    serve: Serve, library: Library, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    """`localhost` has a public address for comity, and the loopback address for the library."""
    inner = serve({"/": body})
    files = serve({"/robots.txt": ROBOTS}, "127.0.0.2", inner.port)
    site = serve(
        {"/robots.txt": ROBOTS, "/": redirect(serve, f"http://localhost:{inner.port}/")},
        "127.0.0.2",
    )
    monkeypatch.setattr(Outside, "NAMES", {"localhost": "127.0.0.2"})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            assert client._parts
            client._parts.client.network = Outside(client._parts.options.client)
            assert await rule(library, ask("GET", site.url("/"))) == "comity.inner-address"
            assert client._parts.pace._flights == {}

    asyncio.run(run())
    assert pages(inner) == [("GET", "/")]
    assert files.paths == ["/robots.txt"]


@pytest.mark.requirement("SEC-7")
def test_a_second_try_is_led_to_as_the_first_was(
    serve: Serve, library: Library, outside: Callable[..., Any]
) -> None:
    """aiohttp and transports of httpx repeat a request if a kept connection ends."""
    hits: Iterator[int] = iter(range(10))

    def drops(handler: BaseHTTPRequestHandler) -> Any:
        return redirect(serve, inner.url("/")) if next(hits) else None

    inner = serve({"/robots.txt": ROBOTS})
    other = serve({"/robots.txt": ROBOTS, "/": drops}, "127.0.0.2")
    site = serve({"/robots.txt": ROBOTS, "/": redirect(serve, other.url("/"))}, "127.0.0.2")

    async def run() -> None:
        async with outside() as (client, ask):
            if library.name == "httpx":
                with pytest.raises(library.error):
                    await ask("GET", site.url("/"))
            assert await rule(library, ask("GET", site.url("/"))) == "comity.inner-address"
            # The operator has never asked for this origin.
            assert other.origin not in client._parts.referrals._origins

    asyncio.run(run())
    assert inner.seen == []


# Declarations


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"kind": "image"}, "`image` is no kind of request"),
        ({"kinds": "xhr"}, "`kinds` is unknown: write some of kind, automations"),
        ({"led_by": "http://a.test/"}, "this response did not come through comity"),
    ],
)
def test_an_invalid_declaration_stops_the_request(
    serve: Serve, library: Library, said: Any, message: str
) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            with pytest.raises(PolicyError, match=message):
                await ask("GET", server.url("/"), said=said)

    asyncio.run(run())
    assert pages(server) == []


def test_the_page_has_the_tag(serve: Serve, library: Library) -> None:
    server = serve(
        {
            "/robots.txt": f"{ROBOTS}Content-Signal: search=yes\n",
            "/": "<meta name='robots' content='noai'><p>page</p>",
        }
    )

    async def run() -> None:
        async with alone(uses=("search", "train-ai")) as client, library.opened(client) as ask:
            page = (await ask("GET", server.url("/"))).page
            assert [page.uses[use].verdict for use in ("search", "train-ai")] == [
                Verdict.ALLOW,
                Verdict.DENY,
            ]
            assert server.url("/robots.txt") in page.permissions["policies"]

    asyncio.run(run())


@pytest.mark.parametrize("more", [{}, {"Location": "/there"}], ids=["plain", "location"])
def test_an_answer_that_refuses_every_use_is_not_read(
    serve: Serve, library: Library, more: dict[str, str]
) -> None:
    """A Location makes a redirect only with the statuses of redirects."""
    server = serve(
        {
            "/robots.txt": ROBOTS,
            "/": serve.Answer("<p>page</p>", headers={"X-Robots-Tag": "noai", **more}),
        }
    )

    async def run() -> None:
        async with alone(uses=("train-ai",), per_host=1) as client, library.opened(client) as ask:
            for _ in range(2):
                assert await rule(library, ask("GET", server.url("/"))) == "robots-meta.disallow"
            assert client.counts.refused == {"robots-meta.disallow": 2}

    asyncio.run(run())


@pytest.mark.requirement("RATE-2")
def test_a_library_that_asks_again_waits_for_another_turn(serve: Serve, library: Library) -> None:
    """aiohttp repeats a request if a reused connection ends without an answer. httpx does not."""

    def answers_once(handler: BaseHTTPRequestHandler) -> Any:
        vars(handler)["pages"] = vars(handler).get("pages", 0) + 1
        return "page" if vars(handler)["pages"] == 1 else None

    paths = [f"/{number}" for number in range(5)]
    site = serve(
        {"/robots.txt": "User-agent: *\nCrawl-delay: 0.2\n", **dict.fromkeys(paths, answers_once)}
    )

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            for path in paths:
                with suppress(library.error):
                    await ask("GET", site.url(path))

    asyncio.run(run())
    times = [seen.at for seen in site.seen if seen.path in paths]
    assert len(times) >= len(paths)
    assert all(after - before > 0.19 for before, after in pairwise(times))


@pytest.mark.requirement("PAY-1")
def test_no_request_of_a_client_offers_money(serve: Serve, library: Library) -> None:
    server = serve({"/robots.txt": ROBOTS, "/a": "a"})

    async def run() -> None:
        async with alone() as client, library.opened(client) as ask:
            own = [("crawler-max-price", "USD 9"), ("Crawler-Exact-Price", "USD 9")]
            assert (await ask("GET", server.url("/a"), headers=own * 2)).status == 200

    asyncio.run(run())
    assert not any("price" in name.lower() for seen in server.seen for name in seen.headers)


@pytest.mark.requirement("PAY-1", "RSL-4")
def test_an_offer_is_a_refusal(serve: Serve, library: Library) -> None:
    """With its price, from the header fields or from the body, and no payment and no second try."""
    x402 = '{"x402Version": 1, "accepts": [{"amount": "9", "asset": "A", "network": "N"}]}'
    coded = {"Content-Encoding": "gzip"}
    server = serve(
        {
            "/robots.txt": ROBOTS,
            "/price": serve.Answer("pay", status=402, headers={"crawler-price": "USD 0.01"}),
            "/x402": serve.Answer(x402, status=402),
            "/coded": serve.Answer(b"\x1f\x8b", status=402, headers=coded),
            "/token": serve.Answer(status=401, headers={"WWW-Authenticate": "License"}),
            "/basic": serve.Answer("who?", status=401, headers={"WWW-Authenticate": "Basic"}),
        }
    )

    async def run() -> dict[str, str]:
        offers = {}
        async with alone() as client, library.opened(client) as ask:
            for path in ("/price", "/x402", "/coded", "/token"):
                with pytest.raises(RefusedError) as refusal:
                    await ask("GET", server.url(path))
                assert isinstance(refusal.value, library.error)
                assert refusal.value.offer is not None
                offers[path] = str(refusal.value.offer)
                if path == "/price":
                    assert str(refusal.value.offer.price) == "USD 0.01"
            assert (await ask("GET", server.url("/basic"))).status == 401
            assert client.counts.refused == {"comity.payment": 3, "comity.license": 1}
            assert client.counts["comity/offers/402/USD 0.01"] == 1
        return offers

    assert asyncio.run(run()) == {
        "/price": "402, crawler-price: USD 0.01",
        "/x402": "402, x402: 9 units of A on N",
        "/coded": "402",
        "/token": "401, WWW-Authenticate: License",
    }
    assert len(pages(server)) == 5


@pytest.mark.requirement("PAY-1", "REACH-3")
def test_an_offer_with_a_body_that_does_not_end_frees_its_place(
    serve: Serve, library: Library
) -> None:
    """The body is cut off, is too large, or stalls until the request is cancelled."""
    head = b"HTTP/1.1 402 Payment Required\r\nContent-Length: 9000000\r\n\r\n"
    octets = {"/cut": b"x", "/large": b"x" * 10 * MAX_DOCUMENT, "/stalled": b"x"}
    closed = {path: Event() for path in octets}

    def begins(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):
            handler.wfile.write(head + octets[handler.path])
            handler.wfile.flush()
            if handler.path == "/cut":
                handler.connection.shutdown(SHUT_WR)
            handler.connection.recv(1)  # until the client closes the connection
        closed[handler.path].set()

    server = serve({"/robots.txt": ROBOTS, **dict.fromkeys(octets, begins), "/": "<p>page</p>"})

    async def run() -> None:
        async with alone(per_host=1) as client, library.opened(client) as ask:
            for path in octets:
                task = asyncio.create_task(ask("GET", server.url(path)))
                if path == "/stalled":
                    await asyncio.wait([task], timeout=0.1)
                    task.cancel()
                with pytest.raises(asyncio.CancelledError if task.cancelling() else RefusedError):
                    await task
                assert await asyncio.to_thread(closed[path].wait, 10), path
                async with asyncio.timeout(10):
                    assert (await ask("GET", server.url("/"))).status == 200
            assert client._parts
            assert client._parts.pace._flights == {}

    asyncio.run(run())
