"""Files that a robots.txt refers to (ACAP 1.0 section-2.3.2), in both modes of Scrapy, against real servers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from aiohappyeyeballs import AddrInfoType
from scrapy import Spider

from comity.crawler.crawl import Crawl
from comity.crawler.scrapy_internals import ScrapyRun
from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.fetcher import PolicyFetcher
from comity.gate.fetching.files import PolicyFiles
from comity.gate.fetching.network import Network
from comity.gate.fetching.reach import IPAddress, Reach
from comity.gate.fetching.store import PolicyStore
from comity.policies.formats.file import MAX_REFERENCES

if TYPE_CHECKING:
    from tests.conftest import Crawled, Serve

MORE = "ACAP-crawler: *\nACAP-disallow-crawl: /private\n"
HOUR = 3600
DAY = 24 * HOUR


def refers(*locators: str, crawler: str = "*") -> str:
    """A robots.txt that permits to crawl everything, but for what these files say."""
    return f"ACAP-crawler: {crawler}\n" + "".join(
        f"ACAP-permissions-reference: {locator}\n" for locator in locators
    )


class Asks(Spider):
    """Asks for the policies of some URLs, one after the other, and may move the clock between two of them.

    `steps`: JSON, [[seconds since the start, URL], ...]; items: what the policies say of each URL."""

    name = "asks"
    steps = "[]"
    custom_settings: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Scrapy reads it from the class only
        "ADDONS": {},
    }
    network = Network
    # Far from the real time, so that no test depends on it.
    start_at = 2_000_000_000.0

    async def start(self) -> AsyncIterator[dict[str, Any]]:
        crawl = Crawl.of(self.crawler)
        now = self.start_at
        await crawl.policies.close()
        client = PolicyClient(crawl.options.client, self.network)
        store, timeout = PolicyStore(crawl.options.store), crawl.options.policy_timeout
        files = PolicyFiles(store, client, timeout=timeout, clock=lambda: now)
        crawl.policies = PolicyFetcher(ScrapyRun(self.crawler), files, crawl.agent)
        for seconds, url in json.loads(self.steps):
            now = self.start_at + seconds
            policies = await crawl.policies.get("/".join(url.split("/")[:3]))
            decision = policies.site.access(crawl.agent, url)
            yield {
                "verdict": decision.verdict.value,
                "rule": decision.reasons[0].rule,
                "unreachable": policies.unreachable,
                "why": policies.error,
                "wait": policies.fresh_until - now,
                "stands_in": [
                    url for url, file in policies.site.files.items() if file.unreachable_since
                ],
            }


def steps(*urls: str) -> str:
    return json.dumps([[0, url] for url in urls])


def moments(url: str, *seconds: float) -> str:
    return json.dumps([[moment, url] for moment in seconds])


@pytest.mark.requirement("ACAP-12")
def test_a_file_on_the_same_server(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    site = serve({"/robots.txt": refers("/more.txt"), "/more.txt": MORE})
    items = crawl(Asks, steps=steps(site.url("/private"), site.url("/public"))).items
    assert [item["verdict"] for item in items] == ["deny", "allow"]
    assert items[0]["rule"] == "acap.disallow"
    assert site.paths == ["/robots.txt", "/more.txt"]


@pytest.mark.requirement("ACAP-12")
def test_a_file_on_another_server(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    """It states what holds on the site that refers to it, not on its own."""
    other = serve({"/more.txt": MORE}, host="127.0.0.2")
    site = serve({"/robots.txt": refers(other.url("/more.txt#part"))})
    crawled = crawl(
        Asks, {"USER_AGENT": "asking/1"}, steps=steps(site.url("/private"), other.url("/private"))
    )
    assert [item["verdict"] for item in crawled.items] == ["deny", "allow"]
    assert site.paths == ["/robots.txt"]
    assert other.paths == ["/more.txt", "/robots.txt"]
    assert other.seen[0].headers["user-agent"] == "asking/1"
    assert other.seen[0].headers["accept-encoding"] == "identity"
    assert not {"cookie", "authorization", "referer"} & set(other.seen[0].headers)


@pytest.mark.requirement("ACAP-12")
def test_only_what_addresses_the_agent_is_asked_for(
    serve: Serve, crawl: Callable[..., Crawled]
) -> None:
    """One level deep, each file once, and robots.txt not again."""
    robots = (
        refers("/theirs.txt", crawler="otherbot")
        + "\n"
        + refers("/more.txt", "/more.txt", "/robots.txt")
    )
    site = serve(
        {"/robots.txt": robots, "/more.txt": MORE + "ACAP-permissions-reference: /deeper.txt\n"}
    )
    assert [item["rule"] for item in crawl(Asks, steps=steps(site.url("/private"))).items] == [
        "acap.disallow"
    ]
    assert site.paths == ["/robots.txt", "/more.txt"]


@pytest.mark.requirement("ACAP-14")
@pytest.mark.parametrize(
    "status", [404, *(pytest.param(status, marks=pytest.mark.slow) for status in (410, 403))]
)
def test_a_file_that_is_not_there_says_nothing(
    serve: Serve, crawl: Callable[..., Crawled], status: int
) -> None:
    site = serve({"/robots.txt": refers("/more.txt"), "/more.txt": serve.Answer(MORE, status)})
    (item,) = crawl(Asks, steps=steps(site.url("/private"))).items
    assert (item["verdict"], item["unreachable"]) == ("allow", False)
    assert site.paths == ["/robots.txt", "/more.txt"]


@pytest.mark.requirement("ACAP-14")
def test_a_file_that_cannot_be_had_refuses_everything(
    serve: Serve, crawl: Callable[..., Crawled]
) -> None:
    """It alone is asked for again, with the waits of robots.txt, and nothing is refused any more when it is had."""
    site = serve(
        {
            "/robots.txt": refers("/more.txt"),
            "/more.txt": in_turn(*[serve.Answer(status=500)] * 2, serve.Answer(MORE)),
        }
    )
    crawled = crawl(Asks, steps=moments(site.url("/public"), 0, 4, 5, 14, 15))
    assert [item["verdict"] for item in crawled.items] == ["deny"] * 4 + ["allow"]
    assert [item["rule"] for item in crawled.items][:4] == ["acap.reference-unreachable"] * 4
    assert [item["unreachable"] for item in crawled.items] == [True] * 4 + [False]
    assert [item["wait"] for item in crawled.items] == [5, 1, 10, 1, DAY - 15]
    assert [item["why"] for item in crawled.items] == ["HTTP status 500"] * 4 + [""]
    assert f"Cannot fetch {site.url('/more.txt')}: HTTP status 500" in crawled.log
    assert site.paths == ["/robots.txt"] + ["/more.txt"] * 3


@pytest.mark.requirement("ACAP-14")
def test_one_file_of_several_that_cannot_be_had_is_enough(
    serve: Serve, crawl: Callable[..., Crawled]
) -> None:
    locators = ["/a.txt", "http://127.0.0.1:1/b.txt", "/c.txt"]
    site = serve({"/robots.txt": refers(*locators), "/a.txt": MORE, "/c.txt": MORE})
    items = crawl(Asks, steps=steps(site.url("/public"), site.url("/robots.txt"))).items
    assert [item["verdict"] for item in items] == ["deny", "allow"]
    assert sorted(site.paths) == ["/a.txt", "/c.txt", "/robots.txt"]


@pytest.mark.requirement("ACAP-14")
def test_the_last_good_copy_of_it_stands_in(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    """For 30 days since it was confirmed, like that of robots.txt. That there was none is no permission."""
    had = serve(
        {
            "/robots.txt": refers("/more.txt"),
            "/more.txt": in_turn(serve.Answer(MORE), serve.Answer(status=503)),
        }
    )
    items = crawl(Asks, steps=moments(had.url("/public"), 0, DAY, 31 * DAY)).items
    assert [item["verdict"] for item in items] == ["allow", "allow", "deny"]
    assert [item["stands_in"] for item in items] == [[], [had.url("/more.txt")], []]
    never = serve(
        {
            "/robots.txt": refers("/more.txt"),
            "/more.txt": in_turn(serve.Answer(status=404), serve.Answer(status=503)),
        }
    )
    items = crawl(Asks, steps=moments(never.url("/public"), 0, DAY)).items
    assert [item["verdict"] for item in items] == ["allow", "deny"]


@pytest.mark.requirement("ACAP-12", "RFC-8")
def test_the_next_crawl_finds_it_in_the_store(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    other = serve({"/more.txt": MORE}, host="127.0.0.2")
    site = serve({"/robots.txt": refers("/more.txt", other.url("/more.txt")), "/more.txt": MORE})
    runs = [crawl(Asks, steps=steps(site.url("/private"))) for _ in range(2)]
    assert [item["rule"] for run in runs for item in run.items] == ["acap.disallow"] * 2
    assert [run.stats.get("comity/policies/from_store") for run in runs] == [None, 1]
    assert (site.paths, other.paths) == (["/robots.txt", "/more.txt"], ["/more.txt"])


@pytest.mark.requirement("ACAP-12", "RFC-8")
def test_it_is_renewed_by_itself(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    """When its own lifetime ends, on the condition that it has changed."""

    def route(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers["If-None-Match"] == '"1"':
            undated(handler, "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=7200\r\n\r\n")
        else:
            undated(
                handler,
                f'HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nETag: "1"\r\n\r\n{MORE}',
            )

    other = serve({"/more.txt": route}, host="127.0.0.2")
    site = serve({"/robots.txt": refers(other.url("/more.txt"))})
    # A crawl of its own for each moment: what one learns, the next has from the store.
    items = [
        crawl(Asks, steps=moments(site.url("/private"), at)).items[0]
        for at in (0, HOUR - 1, HOUR, 3 * HOUR - 1)
    ]
    assert [item["verdict"] for item in items] == ["deny"] * 4
    assert [item["wait"] for item in items] == [HOUR, 1, 2 * HOUR, 1]
    assert site.paths == ["/robots.txt"]
    assert [seen.headers.get("if-none-match") for seen in other.seen] == [None, '"1"']


@pytest.mark.requirement("ACAP-12", "RFC-8")
def test_what_is_no_longer_named_is_no_longer_asked_for(
    serve: Serve, crawl: Callable[..., Crawled]
) -> None:
    robots = in_turn(serve.Answer(refers("/more.txt")), serve.Answer(refers("/less.txt")))
    site = serve(
        {
            "/robots.txt": robots,
            "/more.txt": MORE,
            "/less.txt": "ACAP-crawler: *\nACAP-disallow-crawl: /public\n",
        }
    )
    items = crawl(Asks, steps=moments(site.url("/private"), 0, DAY, 2 * DAY)).items
    assert [item["verdict"] for item in items] == ["deny", "allow", "allow"]
    assert site.paths == [
        "/robots.txt",
        "/more.txt",
        "/robots.txt",
        "/less.txt",
        "/robots.txt",
        "/less.txt",
    ]


@pytest.mark.requirement("ACAP-12", "SEC-2")
def test_its_redirects_are_followed(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    last = serve({"/rules.txt": MORE}, host="127.0.0.3")
    other = serve({"/more.txt": found(serve, last.url("/rules.txt"))}, host="127.0.0.2")
    site = serve(
        {
            "/robots.txt": refers("/more.txt", other.url("/more.txt")),
            "/more.txt": found(serve, "/moved.txt"),
        }
    )
    site.routes["/moved.txt"] = "ACAP-crawler: *\nACAP-disallow-crawl: /secret\n"
    items = crawl(
        Asks, steps=steps(site.url("/private"), site.url("/secret"), site.url("/public"))
    ).items
    assert [item["verdict"] for item in items] == ["deny", "deny", "allow"]
    assert (site.paths[0], sorted(site.paths[1:])) == ("/robots.txt", ["/more.txt", "/moved.txt"])
    assert (other.paths, last.paths) == (["/more.txt"], ["/rules.txt"])


@pytest.mark.requirement("ACAP-14", "SEC-3")
def test_no_more_than_five_are_had(serve: Serve, crawl: Callable[..., Crawled]) -> None:
    """A site that refers to more of them is refused."""
    assert MAX_REFERENCES == 5
    files: dict[str, Any] = {f"/{number}.txt": MORE for number in range(7)}
    five = serve({"/robots.txt": refers(*list(files)[:5])} | files)
    seven = serve({"/robots.txt": refers(*files)} | files)
    items = crawl(Asks, steps=steps(five.url("/public"), seven.url("/public"))).items
    assert [item["verdict"] for item in items] == ["allow", "deny"]
    assert items[1]["rule"] == "acap.reference-unreachable"
    assert items[1]["unreachable"] is False  # to ask again would not help
    assert (
        sorted(five.paths)
        == sorted(seven.paths)
        == [f"/{number}.txt" for number in range(5)] + ["/robots.txt"]
    )


@pytest.mark.slow
@pytest.mark.requirement("ACAP-14", "SEC-3")
def test_a_file_that_never_comes_ends_at_the_deadline(
    serve: Serve, crawl: Callable[..., Crawled]
) -> None:
    """The others are had meanwhile."""
    release = threading.Event()
    gave_up = []

    def route(handler: BaseHTTPRequestHandler) -> None:
        gave_up.append(release.wait(30))

    site = serve(
        {"/robots.txt": refers("/hangs.txt", "/more.txt"), "/hangs.txt": route, "/more.txt": MORE}
    )
    (item,) = crawl(Asks, {"COMITY_POLICY_TIMEOUT": 3}, steps=steps(site.url("/public"))).items
    assert gave_up == []
    release.set()
    assert (item["rule"], item["unreachable"]) == ("acap.reference-unreachable", True)
    assert "no answer within 3 seconds" in item["why"]
    assert sorted(site.paths) == ["/hangs.txt", "/more.txt", "/robots.txt"]


def undated(handler: BaseHTTPRequestHandler, answer: str) -> None:
    """Without the real time, from which the spider's is far away."""
    handler.wfile.write(answer.encode())


def in_turn(*answers: Any) -> Any:
    """One answer after the other, the last one for ever."""
    waiting = list(answers)
    return lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def found(serve: Serve, location: str) -> Any:
    return serve.Answer(status=302, headers={"Location": location})


class Outside(Network):
    """Takes 127.0.0.1 for a public address, and knows some names."""

    NAMES: ClassVar = {
        "outside.test": ["127.0.0.1"],
        "inside.test": ["127.0.0.2"],
        "both.test": ["127.0.0.2", "127.0.0.1"],
    }

    def reach(self, address: IPAddress) -> Reach:
        return Reach.PUBLIC if str(address) == "127.0.0.1" else super().reach(address)

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        if host not in self.NAMES:
            return await super().resolve(host, port)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))
            for address in self.NAMES[host]
        ]


class AsksOutside(Asks):
    name = "asks-outside"
    network = Outside


def confirmed(serve: Serve, body: str) -> Any:
    """An answer that is confirmed when it is asked for again."""

    def route(handler: BaseHTTPRequestHandler) -> Any:
        if handler.headers["If-None-Match"]:
            return serve.Answer(status=304)
        return serve.Answer(body, headers={"ETag": '"1"'})

    return route


@pytest.mark.requirement("ACAP-14", "SEC-2")
@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.2", "inside.test"),
        *(
            pytest.param(host, marks=pytest.mark.slow)
            for host in ("2130706434", "0x7f.2", "[::ffff:127.0.0.2]", "0.0.0.0")
        ),
    ],
)
def test_a_public_site_refers_to_no_inner_address(
    serve: Serve, crawl: Callable[..., Crawled], host: str
) -> None:
    """Its crawl is refused, and no connection is made: not at first, not when its robots.txt comes from the store, and not when
    that is confirmed."""
    inside = serve({"/more.txt": MORE}, host="127.0.0.2")
    site = serve({"/robots.txt": confirmed(serve, refers(f"http://{host}:{inside.port}/more.txt"))})
    for at in (0, HOUR, 2 * DAY):
        (item,) = crawl(AsksOutside, steps=moments(site.url("/public"), at)).items
        assert (item["verdict"], item["rule"], item["unreachable"]) == (
            "deny",
            "acap.reference-unreachable",
            True,
        )
        assert item["why"].startswith("led to ")
    assert site.paths == ["/robots.txt"] * 2
    assert inside.seen == []


@pytest.mark.requirement("ACAP-12", "SEC-2")
@pytest.mark.parametrize("host", ["outside.test", "both.test"])
def test_a_public_site_refers_to_a_public_address(
    serve: Serve, crawl: Callable[..., Crawled], host: str
) -> None:
    """Of a name with both kinds of addresses, the public one is taken."""
    other = serve({"/more.txt": MORE})
    inside = serve({"/more.txt": ""}, host="127.0.0.2", port=other.port)
    site = serve({"/robots.txt": refers(f"http://{host}:{other.port}/more.txt")})
    (item,) = crawl(AsksOutside, steps=steps(site.url("/private"))).items
    assert item["rule"] == "acap.disallow"
    assert (other.paths, inside.paths) == (["/more.txt"], [])


@pytest.mark.requirement("ACAP-14", "SEC-2")
def test_redirects_of_a_file_lead_no_further_inward(
    serve: Serve, crawl: Callable[..., Crawled]
) -> None:
    """Wherever the public address stands on the way: the site itself, the file, or a redirect of robots.txt."""
    inside = serve({"/more.txt": MORE}, host="127.0.0.2")
    inward = found(serve, inside.url("/more.txt"))
    public = serve({"/more.txt": inward, "/robots.txt": refers(inside.url("/more.txt"))})
    site = serve({"/robots.txt": refers("/more.txt"), "/more.txt": inward})
    over_file = serve({"/robots.txt": refers(public.url("/more.txt"))}, host="127.0.0.3")
    over_robots = serve({"/robots.txt": found(serve, public.url("/robots.txt"))}, host="127.0.0.3")
    urls = [server.url("/public") for server in (site, over_file, over_robots)]
    items = crawl(AsksOutside, steps=steps(*urls)).items
    assert [(item["verdict"], item["unreachable"]) for item in items] == [("deny", True)] * 3
    assert all(
        item["why"].startswith("led to 127.0.0.2, which is a loopback address") for item in items
    )
    assert inside.seen == []


@pytest.mark.requirement("ACAP-12", "ACAP-14", "SEC-2")
@pytest.mark.parametrize("host", ["127.0.0.3", pytest.param("localhost", marks=pytest.mark.slow)])
def test_an_inner_site_refers_to_its_own_kind(
    serve: Serve, crawl: Callable[..., Crawled], host: str
) -> None:
    """Also when its robots.txt comes from the store or is confirmed: where it came from is kept with it."""
    inner = serve(
        {"/more.txt": serve.Answer(MORE, headers={"Cache-Control": "no-cache"})}, host="127.0.0.2"
    )
    robots = confirmed(serve, refers(inner.url("/more.txt")))
    site = serve({"/robots.txt": robots}, host="127.0.0.1" if host == "localhost" else host)
    url = f"http://{host}:{site.port}/private"
    items = [
        crawl(Asks, steps=moments(url, at)).items[0] for at in (0, HOUR, 2 * DAY, 2 * DAY + HOUR)
    ]
    assert [item["rule"] for item in items] == ["acap.disallow"] * 4
    assert (len(site.paths), len(inner.paths)) == (2, 4)
