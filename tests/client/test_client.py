"""Admissions, their times and the counts of a client, checked by the requests at servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from threading import Event
from time import time
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from scrapy.settings import BaseSettings

from comity.client import Admission, Client, ClosedError, RefusedError, Session
from comity.gate.fetching.fetcher import Sites
from comity.gate.options import Options
from comity.policies import PolicyError, Verdict

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = "User-agent: *\nDisallow: /no\n"
FILE = "/automation-preferences.txt"


def alone(**options: Any) -> Client:
    """Return a client with a store of its own."""
    return Client("testbot", **{"store": None, "min_delay": 0, **options})


def rule(refused: pytest.ExceptionInfo[RefusedError]) -> str:
    return refused.value.decision.reasons[0].rule


@pytest.mark.requirement("WEB-3", "WHY-2")
def test_a_refusal_names_the_line(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with alone() as client:
            with pytest.raises(RefusedError) as refused:
                await client.admit(server.url("/no"), method="POST")
            assert refused.value.decision.verdict is Verdict.DENY
            assert str(refused.value) == (
                f"POST {server.url('/no')}: deny: robots.disallow (RFC 9309 section-2.2.2)"
                f" at {server.url('/robots.txt')}:2: 'Disallow: /no'"
            )
            (await client.admit(server.url("/yes"))).ended()
            assert (client.counts.asked, client.counts.refused) == (1, {"robots.disallow": 1})
            assert client.counts["comity/policies/fetched"] > 0

    asyncio.run(run())


@pytest.mark.requirement("WEB-3")
def test_policies_are_asked_for_once_by_many_tasks(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with alone() as client:
            admissions = await asyncio.gather(
                *(ended(client, server.url(f"/{number}")) for number in range(50))
            )
            assert len(admissions) == client.counts.asked == 50

    asyncio.run(run())
    assert server.paths.count("/robots.txt") == 1


async def ended(client: Client, url: str) -> Admission:
    admission = await client.admit(url)
    admission.answered(200)
    return admission


@pytest.mark.requirement("WEB-3", "RFC-7")
@pytest.mark.parametrize("status", [500, 503, 429])
def test_without_robots_txt_nothing_is_let_out(serve: Serve, status: int) -> None:
    server = serve({"/robots.txt": serve.Answer(status=status)})

    async def run() -> None:
        async with alone() as client:
            with pytest.raises(RefusedError) as refused:
                await client.admit(server.url("/"))
            assert rule(refused).startswith("robots.unreachable")

    asyncio.run(run())


READ_ONLY = "scope: /\nallowed-methods: GET, POST\nallow-xhr: read-only\n"


@pytest.mark.requirement("WEB-3", "AUTO-7", "AUTX-4")
@pytest.mark.parametrize(
    ("preferences", "arguments", "expected"),
    [
        ("scope: /\nallowed-methods: GET\n", {"method": "HEAD"}, "automation.method"),
        ("scope: /\nallowed-methods: GET\n", {"method": "POST"}, "automation.method"),
        ("scope: /\nallowed-methods: GET\n", {}, ""),
        (READ_ONLY, {"kind": "xhr", "referer": "https://a.test/"}, ""),
        (
            READ_ONLY,
            {"kind": "xhr", "method": "POST", "referer": "https://a.test/"},
            "automation.xhr",
        ),
        (READ_ONLY, {"kind": ("document", "xhr"), "method": "POST"}, "automation.xhr"),
        (READ_ONLY, {"headers": {"X-Requested-With": "x"}, "method": "POST"}, "automation.xhr"),
        (READ_ONLY, {"kind": "api"}, "automation.api"),
        (READ_ONLY, {"kind": "document", "headers": {"Accept": "application/json"}}, ""),
        (
            READ_ONLY,
            {"kind": "resource", "headers": [("Accept", "application/json")]},
            "automation.api",
        ),
        (READ_ONLY, {"kind": "resource", "headers": [(b"Accept", b"image/*")]}, ""),
        (READ_ONLY, {"automations": ("cdp", "headless")}, "automation.mechanism"),
        (
            f"{READ_ONLY}allowed-automations: cdp, headless\n",
            {"automations": ("cdp", "headless")},
            "",
        ),
        (f"{READ_ONLY}api-automation: with-key-only\n", {"kind": "api"}, "automation.key"),
        (
            f"{READ_ONLY}api-automation: with-key-only\n",
            {"kind": "api", "headers": {"Authorization": "Bearer x"}},
            "",
        ),
        (f"{READ_ONLY}allowed-purposes: search\n", {}, "automation.purpose"),
        (f"{READ_ONLY}allowed-purposes: search\n", {"purposes": ["search"]}, ""),
        (
            f"{READ_ONLY}require-human-initiated-session: true\n",
            {"headers": {"Cookie": "sid=1"}},
            "automation.session",
        ),
        (
            f"{READ_ONLY}require-human-initiated-session: true\n",
            {"session": Session(human_initiated=True)},
            "",
        ),
        (
            f"{READ_ONLY}require-human-initiated-session: true\nsession-validation: cookie-based\n",
            {"session": Session(human_initiated=True)},
            "automation.session-validation",
        ),
        (
            f"{READ_ONLY}require-human-initiated-session: true\nsession-validation: cookie-based\n",
            {"session": Session(human_initiated=True, carries=frozenset(("cookie",)))},
            "",
        ),
    ],
)
def test_a_request_is_judged_by_its_facts(
    serve: Serve, preferences: str, arguments: Any, expected: str
) -> None:
    server = serve({"/robots.txt": ROBOTS, FILE: preferences})

    async def run() -> str:
        async with alone(purposes=("news",)) as client:
            try:
                (await client.admit(server.url("/"), **arguments)).ended()
            except RefusedError as refused:
                return refused.decision.reasons[0].rule
            return ""

    assert asyncio.run(run()) == expected


@pytest.mark.requirement("WEB-3")
def test_lists_may_be_texts(serve: Serve) -> None:
    server = serve(
        {
            "/robots.txt": ROBOTS,
            FILE: f"{READ_ONLY}allowed-automations: cdp, headless\nallowed-purposes: news\n",
        }
    )

    async def run() -> None:
        async with alone(uses="search,train-ai", purposes="news, ads") as client:
            assert (client.agent.uses, client.agent.purposes) == (
                ("search", "train-ai"),
                ("news", "ads"),
            )
            said: dict[str, Any] = {"automations": "cdp,headless", "purposes": "news"}
            assert (await client.admit(server.url("/"), **said)).fields == {
                "Automation-Purpose": "news"
            }

    asyncio.run(run())


@pytest.mark.requirement("WEB-3")
def test_purposes_go_out(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with alone(purposes=("news", "research")) as client:
            assert (await client.admit(server.url("/1"))).fields == {
                "Automation-Purpose": "news, research"
            }
            assert (await client.admit(server.url("/2"), purposes=["a"])).fields == {
                "Automation-Purpose": "a"
            }
            assert (await client.admit(server.url("/3"), purposes=[])).fields == {}
        async with alone(purposes=("news",), purpose_header="") as client:
            assert (await client.admit(server.url("/"))).fields == {}

    asyncio.run(run())


# The pace


@pytest.mark.requirement("WEB-3", "RATE-1")
def test_a_start_counts_from_the_headers_of_its_answer(serve: Serve) -> None:
    """The length of its body does not matter. A failed request counts from its failure."""
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with alone(min_delay=20, max_delay=30) as client:
            admission = await client.admit(server.url("/"))
            assert client._parts
            host = client._parts.pace.host(server.origin)
            assert host.last == float("-inf")
            admission.answered(200, body_follows=True)
            settled = host.last
            assert settled > float("-inf")
            admission.ended()
            assert host.last == settled
            waiting = asyncio.create_task(client.admit(server.url("/")))
            assert not await done_soon(waiting)
            waiting.cancel()
        async with alone(min_delay=20, max_delay=30) as client:
            (await client.admit(server.url("/"))).failed()
            assert client._parts
            assert client._parts.pace.host(server.origin).last > float("-inf")

    asyncio.run(run())


@pytest.mark.requirement("WEB-3")
def test_the_store_is_that_of_all_crawls_or_is_dropped(tmp_path: Path) -> None:
    assert Client("testbot")._options.store == Options.from_settings(BaseSettings()).store
    assert (
        Client("testbot", store=str(tmp_path / "a.sqlite"))._options.store == tmp_path / "a.sqlite"
    )

    async def run() -> None:
        async with alone() as client:
            folder = client._options.store.parent
            assert sorted(path.name for path in folder.glob("*.sqlite")) == [
                "pace.sqlite",
                "policies.sqlite",
            ]
        assert not folder.exists()

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "RATE-1", "RATE-2")
def test_tasks_and_clients_with_one_store_keep_the_pace_together(
    serve: Serve, tmp_path: Path
) -> None:
    """Two clients share only files, like two processes."""
    server = serve({"/robots.txt": "User-agent: *\nCrawl-delay: 0.2\n"})
    starts: list[float] = []

    async def ask(client: Client, number: int) -> None:
        admission = await client.admit(server.url(f"/{number}"))
        # The delay counts from the answer, which comes later.
        starts.append(asyncio.get_running_loop().time())
        admission.answered(200)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            options: dict[str, Any] = {"store": tmp_path / "policies.sqlite", "min_delay": 0}
            clients = [
                await stack.enter_async_context(Client("testbot", **options)) for _ in range(2)
            ]
            await asyncio.gather(
                *(ask(client, number) for client in clients for number in range(3))
            )

    asyncio.run(run())
    assert all(later - earlier >= 0.199 for earlier, later in pairwise(starts))
    assert len(starts) == 6


@pytest.mark.requirement("WEB-3", "RATE-1")
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_holds_the_host_for_every_client(
    serve: Serve, tmp_path: Path, status: int
) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        store = tmp_path / "policies.sqlite"
        async with Client("testbot", store=store, min_delay=0) as client:
            admission = await client.admit(server.url("/"))
            assert admission.answered(status, {"Retry-After": "3600"}) is None
            await refused_until(client)
        # The pause outlives the client that got the answer.
        async with Client("testbot", store=store, min_delay=0) as client:
            await refused_until(client)

    async def refused_until(client: Client) -> None:
        with pytest.raises(RefusedError) as refused:
            await client.admit(server.url("/other"))
        assert rule(refused) == "comity.max-delay"
        not_before = refused.value.decision.not_before
        assert not_before
        assert abs((not_before - datetime.now(UTC)).total_seconds() - 3600) < 60

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "RFC-11")
def test_outside_of_visiting_hours_the_moment_is_named(serve: Serve) -> None:
    now = datetime.now(UTC)
    hours = [f"{(now + timedelta(hours=ahead)):%H%M}" for ahead in (6, 7)]
    server = serve({"/robots.txt": f"User-agent: *\nVisit-time: {'-'.join(hours)}\n"})

    async def run() -> None:
        async with alone() as client:
            with pytest.raises(RefusedError) as refused:
                await client.admit(server.url("/"))
            decision = refused.value.decision
            assert [reason.rule for reason in decision.reasons] == [
                "comity.max-delay",
                "robots.visit-time",
            ]
            assert decision.not_before
            assert f"{decision.not_before:%H%M}" == hours[0]
            assert f"{server.url('/robots.txt')}:2: 'Visit-time" in str(refused.value)

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "RATE-1")
def test_a_request_behind_an_unfinished_answer_does_not_wait_for_ever(serve: Serve) -> None:
    """The task that reads the answer may be the one that waits."""
    server = serve({"/robots.txt": "User-agent: *\nCrawl-delay: 0.05\n"})

    async def run() -> None:
        async with alone(max_delay=0.1) as client:
            streamed = await client.admit(server.url("/"))
            assert streamed.answered(200, body_follows=True) is None
            with pytest.raises(RefusedError) as refused:
                await client.admit(server.url("/within"))
            assert rule(refused) == "comity.max-delay"
            streamed.ended()
            (await client.admit(server.url("/after"))).failed()

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "RATE-1")
def test_no_more_are_out_at_a_time_than_may_be(serve: Serve) -> None:
    server = serve(
        {"/robots.txt": ROBOTS, FILE: "scope: /two\nallowed-methods: GET\nconcurrent-limit: 2\n"}
    )

    async def run() -> None:
        async with alone(per_host=3) as client:
            for path, most in (("/", 3), ("/two", 2)):
                out = [await client.admit(server.url(path)) for _ in range(most)]
                assert [admission.answered(200, body_follows=True) for admission in out] == [
                    None
                ] * most
                waiting = asyncio.create_task(client.admit(server.url(path)))
                assert not await done_soon(waiting)
                out[0].ended()
                (await waiting).failed()
                for admission in out[1:]:
                    admission.ended()

    asyncio.run(run())


async def done_soon(task: asyncio.Task[Any]) -> bool:
    """Return True if the task ends as soon as the loop is idle and the store has answered."""
    await asyncio.wait([task], timeout=0.05)
    return task.done()


@pytest.mark.requirement("WEB-3")
def test_a_cancelled_request_gives_its_turn_back(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        async with alone(per_host=1) as client:
            first = await client.admit(server.url("/1"))
            waiting = asyncio.create_task(client.admit(server.url("/2")))
            last = asyncio.create_task(client.admit(server.url("/3")))
            assert not await done_soon(waiting)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            first.answered(200)
            (await last).failed()
            (await client.admit(server.url("/4"))).ended()

    asyncio.run(run())


@pytest.mark.requirement("WEB-3")
def test_a_request_cancelled_after_a_long_wait_gives_its_turn_back(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a long wait the policies are asked again, when the request already has its turn."""
    server = serve({"/robots.txt": ROBOTS})
    monkeypatch.setattr("comity.gate.pace.gate.TICK", 0.0)

    async def run() -> None:
        async with alone(per_host=1) as client:
            (await client.admit(server.url("/1"))).ended()
            assert client._parts
            fetcher, for_url = client._parts.policies, client._parts.policies.for_url
            asked = 0

            async def stuck(*arguments: Any) -> Any:
                nonlocal asked
                asked += 1
                if asked == 2:
                    await asyncio.Event().wait()
                return await for_url(*arguments)

            monkeypatch.setattr(fetcher, "for_url", stuck)
            waiting = asyncio.create_task(client.admit(server.url("/2")))
            assert not await done_soon(waiting)
            assert asked == 2
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            (await client.admit(server.url("/3"))).ended()

    asyncio.run(run())


@pytest.mark.requirement("WEB-3")
def test_closing_the_client_ends_waiting_requests(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting request is told at once, not at its next check."""
    monkeypatch.setattr("comity.gate.pace.pace.TICK", 120.0)
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        client = alone(per_host=1)
        async with client:
            admission = await client.admit(server.url("/1"))
            waiting = asyncio.create_task(client.admit(server.url("/2")))
            assert not await done_soon(waiting)
        with pytest.raises(ClosedError):
            await asyncio.wait_for(waiting, 60)
        admission.answered(200)  # too late, so it has no effect
        with pytest.raises(ClosedError):
            await client.admit(server.url("/3"))
        with pytest.raises(ClosedError):
            await client.__aenter__()
        await client.aclose()

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "RATE-2")
def test_an_admitted_request_does_not_go_out_after_the_client_was_closed(serve: Serve) -> None:
    """Its turn is over, so another process may send a request to the host at once."""
    server = serve({"/robots.txt": ROBOTS})

    async def run() -> None:
        begun, may_go = asyncio.Event(), asyncio.Event()

        async def send() -> None:
            begun.set()
            await may_go.wait()  # like a wait for a connection
            await asyncio.to_thread(urlopen, server.url("/sent"))

        async with alone() as client:
            late, sending = (
                await client.admit(server.url("/1")),
                await client.admit(server.url("/2")),
            )
            task = asyncio.create_task(sending.sent(send))
            await begun.wait()
        with pytest.raises(ClosedError, match="the client was closed"):
            await asyncio.wait_for(task, 60)
        assert not task.cancelled()
        may_go.set()
        with pytest.raises(ClosedError):
            await late.sent(send)

    asyncio.run(run())
    assert "/sent" not in server.paths


@pytest.mark.requirement("WEB-3")
def test_closing_the_client_ends_requests_that_wait_for_policies(serve: Serve) -> None:
    came, may_go = Event(), Event()

    def slow(handler: BaseHTTPRequestHandler) -> None:
        came.set()
        may_go.wait(30)

    server = serve({"/robots.txt": slow})

    async def run() -> None:
        async with alone() as client:
            waiting = asyncio.create_task(client.admit(server.url("/")))
            await asyncio.to_thread(came.wait, 30)
        with pytest.raises(ClosedError):
            await waiting

    try:
        asyncio.run(run())
    finally:
        may_go.set()


@pytest.mark.requirement("WEB-3")
def test_a_request_refused_after_a_long_wait_gives_its_turn_back(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site has changed its policies during the wait."""
    server = serve({"/robots.txt": ROBOTS})
    monkeypatch.setattr("comity.gate.pace.gate.TICK", 0.0)

    async def run() -> None:
        async with alone(per_host=1) as client:
            (await client.admit(server.url("/1"))).ended()
            assert client._parts
            fetcher = client._parts.policies
            policies = [await fetcher.get(server.origin)]
            server.routes["/robots.txt"] = "User-agent: *\nDisallow: /\n"
            fetcher.renew_before = time() + 1
            monkeypatch.setattr(fetcher, "_sites", Sites())
            policies.append(await fetcher.get(server.origin))
            answers = iter([policies[0], policies[1], policies[1]])

            async def renewed(*arguments: Any) -> Any:
                return next(answers)

            monkeypatch.setattr(fetcher, "for_url", renewed)
            with pytest.raises(RefusedError):
                await client.admit(server.url("/2"))
            assert next(answers, None) is None
            assert client._parts.pace._flights == {}

    asyncio.run(run())


# Where it leads


@pytest.mark.requirement("WEB-3", "SEC-7")
def test_a_public_site_does_not_lead_to_an_inner_address(
    serve: Serve, outside: Callable[..., Any]
) -> None:
    inner, site = serve({"/robots.txt": ROBOTS}), serve({"/robots.txt": ROBOTS}, "127.0.0.2")

    async def run() -> None:
        async with outside() as client:
            led_from = await client.admit(site.url("/"))
            # The address from which the page came is not known yet.
            with pytest.raises(RefusedError) as refused:
                await client.admit(inner.url("/1"), led_by=led_from)
            assert rule(refused) == "comity.inner-address"
            led_from.answered(200)
            with pytest.raises(RefusedError) as refused:
                await client.admit(inner.url("/2"), led_by=led_from)
            assert rule(refused) == "comity.inner-address"
            assert inner.seen == []
            (await client.admit(site.url("/3"), led_by=led_from)).ended()
            (await client.admit(inner.url("/4"))).ended()  # the operator may ask there
            # Now the site may lead there too, because the operator has asked for this origin.
            (await client.admit(inner.url("/5"), led_by=led_from)).ended()

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "SEC-7")
def test_where_the_answer_came_from_counts(serve: Serve, outside: Callable[..., Any]) -> None:
    """A name may point to another address than at its first lookup."""
    site = serve({"/robots.txt": ROBOTS}, "127.0.0.2")
    other = serve({"/robots.txt": ROBOTS}, "127.0.0.2")

    async def run() -> None:
        async with outside() as client:
            led_from = await client.admit(site.url("/"))
            led_from.answered(200, address="127.0.0.2")
            for address, refused in (
                ("127.0.0.2", False),
                ("127.0.0.1", True),
                ("::1", True),
                ("nonsense", False),
                (None, False),
            ):
                admission = await client.admit(
                    f"http://outside.test:{other.port}/", led_by=led_from
                )
                assert (admission.answered(200, address=address) is not None) is refused
            assert client.counts.refused == {"comity.inner-address": 2}

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "SEC-7")
def test_the_address_of_a_proxy_is_not_that_of_the_server(serve: Serve) -> None:
    proxy = serve({f"http://{name}.test/robots.txt": ROBOTS for name in ("site", "other")})

    async def run() -> None:
        async with alone(proxy=proxy.origin) as client:
            led_from = await client.admit("http://site.test/")
            assert led_from.answered(200, address=proxy.host) is None
            assert (await client.admit("http://other.test/", led_by=led_from)).answered(
                200, address=proxy.host
            ) is None

    asyncio.run(run())
    assert [path for path in proxy.paths if path.endswith("/robots.txt")] == [*proxy.routes]


@pytest.fixture
def outside() -> Callable[..., Any]:
    """Return a class of clients that treat 127.0.0.2 as a public address."""
    from tests.live.test_inner_addresses import Outside

    @asynccontextmanager
    async def opened() -> AsyncIterator[Client]:
        async with alone() as client:
            assert client._parts
            client._parts.client.network = Outside(client._parts.options.client)
            yield client

    return opened


# Pages of responses


@pytest.mark.requirement("WEB-3")
def test_the_page_has_the_permissions(serve: Serve) -> None:
    server = serve({"/robots.txt": f"{ROBOTS}Content-Signal: search=yes\n"})

    async def run() -> None:
        async with alone(uses=("search", "train-ai")) as client:
            admission = await client.admit(server.url("/"))
            headers = [
                ("Content-Type", "text/html"),
                ("X-Robots-Tag", "noai"),
                ("X-Robots-Tag", "nofollow"),
            ]
            admission.answered(200, headers)
            page = await client.page(admission, 200, headers, b"<p>text</p>")
            assert [page.uses[use].verdict for use in ("search", "train-ai")] == [
                Verdict.ALLOW,
                Verdict.DENY,
            ]
            assert page.follow.verdict is Verdict.DENY
            # The page of a response that came without the client.
            same = await client.page(server.url("/"), 200, headers, b"<p>text</p>")
            assert same.uses["train-ai"].verdict is Verdict.DENY
            with pytest.raises(PolicyError, match="does not belong to a site"):
                await client.page("data:,x", 200, {}, b"")

    asyncio.run(run())


@pytest.mark.requirement("WEB-3", "ACAP-32")
def test_days_from_the_first_taking_are_counted_in_the_store(serve: Serve, tmp_path: Path) -> None:
    robots = "ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-allow-index: / time-limit=30-days\n"
    server = serve({"/robots.txt": robots})

    async def until() -> datetime | None:
        async with Client(
            "testbot", uses=("index",), store=tmp_path / "policies.sqlite", min_delay=0
        ) as client:
            admission = await client.admit(server.url("/"))
            page = await client.page(admission, 200, {"Content-Type": "text/html"}, b"<p>text</p>")
            return page.uses["index"].until

    first = asyncio.run(until())
    assert first
    assert asyncio.run(until()) == first


@pytest.mark.requirement("WEB-3")
def test_a_site_that_refuses_every_use_is_not_asked(serve: Serve) -> None:
    server = serve({"/robots.txt": "User-agent: *\nDisallow:\nContent-Signal: ai-train=no\n"})

    async def run() -> None:
        async with alone(uses=("ai-train",)) as client:
            with pytest.raises(RefusedError):
                await client.admit(server.url("/"))
        async with alone(uses=("ai-train",), skip_unusable=False) as client:
            (await client.admit(server.url("/"))).ended()

    asyncio.run(run())


@pytest.mark.requirement("WEB-3")
def test_an_answer_that_refuses_every_use_is_not_to_be_read(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS})
    noai = {"X-Robots-Tag": "noai"}

    async def run() -> None:
        async with alone(uses=("train-ai",), per_host=1) as client:
            for method, status, headers, is_refused in (
                ("GET", 200, noai, True),
                ("HEAD", 200, noai, False),
                ("GET", 302, noai | {"Location": "/"}, False),
                ("GET", 302, noai, True),
                ("GET", 200, noai | {"Location": "/"}, True),
                ("POST", 201, noai | {"Location": "/new"}, True),
                ("GET", 200, {}, False),
            ):
                admission = await client.admit(server.url("/"), method=method)
                refusal = admission.answered(status, headers, body_follows=True)
                assert (refusal is not None) is is_refused
                if refusal is None:
                    admission.ended()

    asyncio.run(run())


# Invalid arguments


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": "my bot"}, "agent `my bot` is not a product token"),
        ({"per_host": 0}, "per_host `0` is not a number of requests"),
        ({"per_host": "many"}, "per_host `many` is not a number of requests"),
        ({"min_delay": -1}, "min_delay `-1` is not a number of seconds"),
        ({"uses": ("a b",)}, "uses `a b` is not a name"),
        ({"user_agent": "a\nb"}, "user_agent `.*` cannot be sent"),
        ({"store": "http://a.test/"}, "store `http://a.test/` is a URL"),
        ({"proxy": "ftp://a.test/"}, "proxy `ftp://a.test/` is not an HTTP proxy"),
    ],
)
def test_invalid_settings_are_named_by_their_keywords(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        Client(**{"agent": "testbot", **options})


@pytest.mark.requirement("WEB-3")
def test_unknown_keywords_are_named() -> None:
    with pytest.raises(TypeError, match="Client\\(\\) has no `delay`: write some of defaults"):
        Client("testbot", delay=1)


@pytest.mark.requirement("WEB-3")
def test_a_store_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "policies.sqlite").write_text("text")

    async def run() -> None:
        async with Client("testbot", store=tmp_path / "policies.sqlite"):
            pass

    with pytest.raises(PolicyError, match=r"store .*policies\.sqlite"):
        asyncio.run(run())


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "/relative"}, "`/relative` is not an absolute URL"),
        ({"kind": "image"}, "`image` is no kind of request"),
        ({"automations": ["a b"]}, "is not a list for `automations`"),
    ],
)
def test_a_request_that_makes_no_sense_is_no_request(
    arguments: dict[str, Any], message: str
) -> None:
    async def run() -> None:
        async with alone() as client:
            await client.admit(**{"url": "http://a.test/", **arguments})

    with pytest.raises(PolicyError, match=message):
        asyncio.run(run())


@pytest.mark.requirement("WEB-3")
def test_a_client_has_to_be_opened() -> None:
    async def run() -> None:
        client = alone()
        for asking in (client.admit("http://a.test/"), client.page("http://a.test/", 200, {}, b"")):
            with pytest.raises(ClosedError, match="async with"):
                await asking

    asyncio.run(run())


WITHOUT_REACTOR = """
import asyncio, sys
from comity.client import Client

async def main():
    async with Client("testbot", store=None):
        pass

asyncio.run(main())
print("twisted.internet.reactor" in sys.modules, "httpx" in sys.modules)
"""


@pytest.mark.requirement("WEB-3")
@pytest.mark.slow
@pytest.mark.usefixtures("new_processes")
def test_it_needs_no_reactor() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_REACTOR], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False False\n"


def test_a_profile_sets_the_purposes_and_uses_of_a_client(serve: Serve) -> None:
    url = serve({FILE: "user-agent: *\nallowed-methods: GET\nallowed-purposes: training\n"}).url()

    async def run() -> None:
        async with alone(profile="training") as client:
            assert client.agent.uses == ("train",)
            (await client.admit(url)).ended()
            page = await client.page(url, 200, {}, b"")
            assert page.uses["train"].verdict is Verdict.DENY
        async with alone(profile="training", defaults="train:allow") as client:
            page = await client.page(url, 200, {}, b"")
            assert page.uses["train"].verdict is Verdict.ALLOW
        async with alone(profile="training", uses=(), purposes="search") as client:
            assert client.agent.uses == ()
            with pytest.raises(RefusedError) as refused:
                await client.admit(url)
            assert rule(refused) == "automation.purpose"

    asyncio.run(run())


def test_an_unknown_profile_of_a_client() -> None:
    with pytest.raises(PolicyError, match=r"^profile `research!` is not a profile: did you mean"):
        alone(profile="research!")
