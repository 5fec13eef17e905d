"""The guard reads the pages that its application sends, asked over real connections."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.guard import Answer, ASGIMiddleware, Guard, Incoming, Pass, WSGIMiddleware, pages
from comity.guard.agents import MAX_WORDS
from comity.guard.pages import (
    MAX_AT_ONCE,
    MAX_PAGE,
    MAX_SITEMAP,
    HeldPage,
    readable_codings,
)
from comity.policies import PolicyError, Site
from comity.policies.document import html
from comity.policies.document.html.tinyhtml5_tree import MAX_CHARACTERS
from tests.guard.paged import EVENT, NO_PURPOSE, PAGES, annotated
from tests.guard.paged import MAX_PAGE as SITE_MAX_PAGE
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.guard.conftest import Client, Got, Servers

HERE = Path(__file__).parent

# The quick tests take the first of each half.
THREADED = [
    "uvicorn-h11",
    "uvicorn-httptools",
    "hypercorn",
    "gunicorn-uvicorn",
    "gunicorn-threads",
    "werkzeug",
    "waitress",
    "wsgiref",
]


@pytest.fixture(scope="module", params=one_in(4, THREADED))
def origin(request: pytest.FixtureRequest, servers: Servers) -> Iterator[str]:
    with servers.serving(
        request.param, f"paged:{servers.SERVERS[request.param].kind}", HERE
    ) as origin:
        yield origin


def named(origin: str, servers: Servers, user_agent: str, **fields: str) -> Client:
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return servers.Client(origin, fields={"User-Agent": user_agent} | fields)


@pytest.fixture
def robot(origin: str, servers: Servers) -> Client:
    return named(origin, servers, "testbot/1.0")


def is_refused(got: Got, rule: str, status: int = 403) -> bool:
    """Whether it is the guard's answer, with its own length, and nothing of the page."""
    assert b"secret text" not in got.body
    if got.status != status:
        return False
    assert int(got.headers["content-length"]) == len(got.body)
    assert "etag" not in got.headers
    assert got.headers["cache-control"] == "no-store"
    return bool(got.problem["rule"] == rule)


@pytest.mark.requirement("GUARD-2", "AUTX-11")
def test_a_page_that_refuses_the_request_is_not_sent(origin: str, robot: Client) -> None:
    for how in ("sent", "parts", "gzip", "whole", "file"):
        refused = robot.ask(f"/{how}/none", Accept_Encoding="gzip, br")
        assert is_refused(refused, "automation.purpose")
        source = refused.problem["source"]
        assert (source["url"], source["line"]) == (f"{origin}/{how}/none", 2)
        assert source["text"].startswith('{"@type": "AutomationPolicyAnnotation"')
        passed = robot.ask(f"/{how}/plain", Accept_Encoding="gzip, br")
        body = gzip.decompress(passed.body) if how == "gzip" else passed.body
        assert (passed.status, body) == (206 if how == "whole" else 200, PAGES["plain"][1])
        assert passed.headers["etag"] == '"plain"'
        if "content-length" in passed.headers:
            assert int(passed.headers["content-length"]) == len(passed.body)


@pytest.mark.requirement("GUARD-2")
def test_the_requests_of_people_are_not_read(origin: str, servers: Servers) -> None:
    person = servers.person(origin)
    for name in ("none", "broken", "long", "late", "tagged"):
        got = person.ask(f"/sent/{name}")
        assert (got.status, got.body) == (200, PAGES[name][1])
    assert person.ask("/br/none", Accept_Encoding="br").status == 200
    seen = json.loads(person.ask("/seen", Accept_Encoding="br, zstd").body)
    assert seen["encodings"][-1] == "br, zstd"


@pytest.mark.requirement("GUARD-2", "AUTX-11", "AUTX-13")
def test_each_annotation_refuses_those_whom_it_means(
    origin: str, robot: Client, servers: Servers
) -> None:
    assert is_refused(robot.ask("/sent/search"), "automation.purpose")
    assert robot.ask("/sent/search", Automation_Purpose="search").status == 200
    assert is_refused(
        robot.ask("/sent/search", Automation_Purpose="search, train"), "automation.purpose"
    )
    assert is_refused(robot.ask("/sent/session"), "automation.session", 401)
    assert robot.ask("/sent/headless").status == 200

    browsing = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) %s/120.0"
    headless = named(origin, servers, browsing % "HeadlessChrome")
    assert is_refused(headless.ask("/sent/none"), "automation.purpose")

    assert robot.ask("/sent/named").status == 200
    for user_agent in ("PageBot/2", "Mozilla/5.0 (compatible; pagebot/2.1; +https://a.example)"):
        client = named(origin, servers, user_agent)
        assert is_refused(client.ask("/sent/named"), "automation.purpose")


@pytest.mark.requirement("GUARD-2", "AUTX-12")
def test_a_page_that_cannot_be_read_is_not_sent(origin: str, robot: Client) -> None:
    assert is_refused(robot.ask("/sent/broken"), "automation.json-ld")
    assert is_refused(robot.ask("/br/plain"), "comity.unread")
    too_long = robot.ask("/sent/long")
    assert is_refused(too_long, "comity.unread")
    assert too_long.problem["source"]["text"] == f"at most {SITE_MAX_PAGE} octets"
    assert is_refused(robot.ask("/gzip/long"), "comity.unread")
    assert is_refused(robot.ask("/sent/late"), "automation.purpose")
    part = robot.ask("/part/none")
    assert is_refused(part, "comity.unread")
    assert "ask for all of it" in part.problem["source"]["text"]
    assert is_refused(robot.ask("/part/plain"), "comity.unread")


@pytest.mark.requirement("GUARD-2")
def test_only_html_waits(origin: str, robot: Client) -> None:
    assert is_refused(robot.ask("/sent/untyped"), "automation.purpose")
    assert is_refused(robot.ask("/sent/xhtml"), "automation.purpose")
    for how in ("sent", "parts", "part", "br", "file"):
        got = robot.ask(f"/{how}/text")
        body = PAGES["text"][1]
        assert got.body == (body[:40] if how == "part" else body)
    head = robot.ask("/sent/none", "HEAD")
    assert (head.status, head.body) == (200, b"")


@pytest.mark.requirement("GUARD-2")
def test_the_application_is_asked_for_codings_that_can_be_read(
    robot: Client, origin: str, servers: Servers
) -> None:
    for sent, received in (
        ("gzip, deflate, br, zstd", "gzip, deflate"),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", "gzip;q=0.8"),
        ("br", "identity"),
        ("*", "identity"),
    ):
        robot.ask("/sent/plain", Accept_Encoding=sent)
        assert json.loads(servers.person(origin).ask("/seen").body)["encodings"][-2] == received


@pytest.mark.requirement("GUARD-2")
def test_what_is_not_html_goes_on_in_parts(origin: str, robot: Client, servers: Servers) -> None:
    """The first event comes before the application has made the second one."""
    connection = robot.begin("/events/")
    response = connection.getresponse()
    assert (response.status, response.read(len(EVENT))) == (200, EVENT)
    servers.person(origin).ask("/release")
    assert response.read() == EVENT
    connection.close()


@pytest.mark.requirement("GUARD-2", "SEC-1")
def test_an_endless_page_is_refused_and_its_application_stops(
    origin: str, robot: Client, servers: Servers
) -> None:
    for _ in range(3):
        assert is_refused(robot.ask("/endless/"), "comity.unread")
    seen = json.loads(servers.person(origin).ask("/seen").body)
    assert SITE_MAX_PAGE // 7000 < seen["endless"] <= SITE_MAX_PAGE // 7000 + 2


@pytest.mark.requirement("GUARD-2")
def test_an_application_that_fails_within_a_page_sends_nothing_of_it(
    origin: str, robot: Client
) -> None:
    got = robot.ask("/fails/")
    assert (got.status, b"secret" in got.body) == (500, False)


@pytest.mark.requirement("GUARD-2", "META-3", "TDM-1", "META-5")
def test_a_page_is_refused_to_requests_whose_every_use_it_refuses(
    origin: str, robot: Client, servers: Servers
) -> None:
    trainer = named(origin, servers, "TrainBot/1.0")
    for name, rule in (
        ("noai", "robots-meta.noai"),
        ("reserved", "tdmrep.reserved"),
        ("equivalent", "usage.disallow"),
        ("tagged", "robots-meta.noai"),
        ("picture", "robots-meta.noai"),
    ):
        for how in ("sent", "parts"):
            refused = trainer.ask(f"/{how}/{name}")
            assert refused.status == 403
            assert is_refused(refused, refused.problem["rule"]), (name, rule)
        assert robot.ask(f"/sent/{name}").body == PAGES[name][1]
    for name in ("plain", "noindex"):
        assert trainer.ask(f"/sent/{name}").status == 200


@pytest.mark.requirement("GUARD-2")
def test_each_request_counts_once(origin: str, servers: Servers) -> None:
    person, robot = servers.person(origin), named(origin, servers, "testbot/1.0")

    def counts() -> tuple[int, int]:
        found = json.loads(person.ask("/guard").body)
        return sum(found["passed"].values()), sum(found["refused"].values())

    passed, refused = counts()
    for name in ("plain", "none", "plain", "broken", "text"):
        robot.ask(f"/sent/{name}")
    assert counts() == (passed + 3, refused + 2)


@pytest.mark.requirement("GUARD-2", "AUTX-3")
def test_a_refused_page_is_no_longer_in_flight(origin: str, robot: Client) -> None:
    for _ in range(4):
        assert is_refused(robot.ask("/sent/counted"), "automation.purpose")


@pytest.mark.requirement("GUARD-2")
def test_many_clients_at_a_time_get_nothing_that_is_refused(origin: str, servers: Servers) -> None:
    """Pages of all kinds, in parts and whole, by 8 clients: each gets its own answer."""
    wanted = {"plain": 200, "none": 403, "named": 403, "long": 403, "text": 200, "broken": 403}

    def ask(number: int) -> None:
        client = servers.Client(
            origin, f"127.0.3.{number + 1}", fields={"User-Agent": "PageBot/1.0"}
        )
        names = [*wanted] * 5
        for name in names[number % 6 :] + names[: number % 6]:
            how = ("sent", "parts", "gzip")[number % 3]
            got = client.ask(f"/{how}/{name}")
            assert got.status == wanted[name]
            body = gzip.decompress(got.body) if got.headers.get("content-encoding") else got.body
            assert (body == PAGES[name][1]) == (got.status == 200)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))


@pytest.mark.requirement("GUARD-3", "USE-11")
def test_a_write_whose_preferences_cannot_be_promised_is_refused(
    origin: str, robot: Client, servers: Servers
) -> None:
    person = servers.person(origin)
    for client in (robot, person):
        for method in ("PUT", "POST", "PATCH"):
            for field, status in (
                ("train-ai=n", 201),
                ("search=y", 201),
                ("tdm=n", 403),
                ("train-ai=y", 403),
                ("no dictionary(", 403),
                ("unheard=n", 403),
                ("train-ai=?0", 403),
            ):
                asked = len(json.loads(person.ask("/seen").body)["asked"])
                got = client.ask("/upload/a", method, "x" * 1000, Content_Usage=field)
                assert got.status == status, (method, field)
                if status == 403:
                    assert is_refused(got, "comity.promise")
                    assert got.problem["source"]["text"] == f"Content-Usage: {field}"
                reached = len(json.loads(person.ask("/seen").body)["asked"]) - asked
                assert reached == (status == 201)
    assert person.ask("/upload/a", "PUT", "x").status == 201
    assert is_refused(
        person.ask("/elsewhere/", "PUT", "x", Content_Usage="tdm=n"), "comity.promise"
    )
    assert person.ask("/sent/plain", Content_Usage="tdm=n").status == 200


GUARDED = {"/robots.txt": b"User-agent: *\nDisallow: /private/\n"}
ENCODINGS = ("utf-8", "utf-16-be", "utf-16-le", "utf-32-be", "utf-32-le")


@pytest.mark.requirement("GUARD-2", "AUTX-12")
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    "media_type",
    [
        "text/html",
        "text/html; charset=utf-8",
        "text/html; charset=utf-16",
        "text/html; charset=UTF-16BE",
        "text/html; charset=utf-16le",
        "text/html; charset=utf-32",
        "application/xhtml+xml",
        "application/xml",
    ],
)
def test_a_page_is_read_in_each_encoding_that_readers_guess(
    encoding: str, mark: str, media_type: str
) -> None:
    guard = Guard("https://example.com", GUARDED)
    refused = (mark + NO_PURPOSE.decode()).encode(encoding)
    status, body = sent_by(guard, [refused], media_type=media_type)
    assert (status, json.loads(body)["rule"]) == (403, "automation.purpose")
    plain = (mark + PAGES["plain"][1].decode()).encode(encoding)
    assert sent_by(guard, [plain], media_type=media_type) == (200, plain)


@pytest.mark.requirement("GUARD-2")
def test_octets_that_are_no_text_are_sent() -> None:
    guard = Guard("https://example.com", GUARDED)
    for octets in (bytes(range(256)) * 40, b"\0", b"\0\0\xfe\xff"[:3], b"%PDF-1.7\0\n"):
        assert sent_by(guard, [octets], media_type="") == (200, octets)


@pytest.mark.requirement("GUARD-2", "AUTX-12")
@pytest.mark.parametrize(
    "media_type",
    [
        'multipart/related; type="text/html"; boundary=x',
        "Multipart/Mixed; boundary=x",
        "multipart/x-mixed-replace;boundary=x",
        "message/rfc822",
        "text/plain, multipart/related",
    ],
)
def test_pages_within_a_response_of_several_parts_are_not_sent(media_type: str) -> None:
    guard = Guard("https://example.com", GUARDED)
    body = b"--x\r\nContent-Type: text/html\r\n\r\n" + NO_PURPOSE + b"\r\n--x--"
    status, answer = sent_by(guard, [body], media_type=media_type)
    assert (status, json.loads(answer)["rule"]) == (403, "comity.unread")
    person = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    assert sent_by(guard, [body], media_type=media_type, user_agent=person) == (200, body)


async def nothing() -> MutableMapping[str, Any]:
    return {"type": "http.disconnect"}


def sent_by(
    guard: Guard, parts: list[bytes], *, user_agent: str = "testbot", media_type: str = "text/html"
) -> tuple[int, bytes]:
    """The status and body that a client of an ASGI application gets."""
    return asyncio.run(asgi_sent_by(guard, parts, user_agent=user_agent, media_type=media_type))


async def asgi_sent_by(
    guard: Guard,
    parts: list[bytes],
    *,
    user_agent: str = "testbot",
    media_type: str = "text/html",
    fields: Sequence[tuple[bytes, bytes]] = (),
) -> tuple[int, bytes]:
    """The status and body that a client of an ASGI application gets, within an event loop."""
    sent: list[MutableMapping[str, Any]] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        headers = [(b"content-type", media_type.encode()), *fields]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/page",
        "headers": [(b"user-agent", user_agent.encode())],
    }
    await ASGIMiddleware(site, guard)(scope, nothing, send)
    start, *bodies = sent
    assert [message["type"] for message in sent[1:]] == ["http.response.body"] * len(bodies)
    assert [bool(message.get("more_body")) for message in bodies][-1:] == [False]
    return start["status"], b"".join(message.get("body", b"") for message in bodies)


XHTML = (
    b'<html xmlns="http://www.w3.org/1999/xhtml"><body>secret text<script '
    b'type="application/ld+json">{"@type": "AutomationPolicyAnnotation", "allowedPurposes": []}'
    b"</script></body></html>"
)


@pytest.mark.requirement("GUARD-2")
@pytest.mark.parametrize(
    ("media_type", "waits"),
    [
        ("", True),
        ("application/xml", True),
        ("TEXT/XML; charset=utf-8", True),
        ("image/svg+xml", True),
        ("application/rss+xml", True),
        ("unknown/unknown", True),
        ("application/unknown", True),
        ("*/*", True),
        ("html", True),
        ("text", True),
        ('"text/html"', True),
        ("text/x-server-parsed-html", True),
        ("text/plain, text/xml", True),
        ("text/xml, text/plain", True),
        ("text/plain", False),
        ("application/octet-stream", False),
        ("application/json", False),
        ("text/event-stream", False),
    ],
)
def test_types_that_crawlers_read_as_pages_wait(media_type: str, *, waits: bool) -> None:
    guard = Guard("https://example.com", GUARDED)
    for parts in ([XHTML], [XHTML[:9], XHTML[9:]]):
        for status, body in (
            sent_by(guard, parts, media_type=media_type),
            wsgi_sent_by(guard, parts, list, media_type=media_type),
        ):
            assert (status == 403) == waits
            assert (b"secret text" in body) != waits


def wsgi_sent_by(
    guard: Guard,
    parts: list[bytes],
    body_type: Callable[[list[bytes]], object],
    *,
    media_type: str = "text/html",
) -> tuple[int, bytes]:
    """The status and body that a client of a WSGI application gets."""
    started: list[str] = []

    def site(environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", media_type)])
        return body_type(parts)

    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/page", "HTTP_USER_AGENT": "testbot"}
    body = WSGIMiddleware(site, guard)(
        environ,
        lambda status, headers, exc_info=None: started.append(status),  # type: ignore[arg-type]
    )
    octets = b"".join(body)
    return int(started[0][:3]), octets


def cut(page: bytes, places: list[int]) -> list[bytes]:
    ends = sorted(place % (len(page) + 1) for place in places)
    return [page[start:end] for start, end in zip([0, *ends], [*ends, len(page)], strict=True)]


@pytest.mark.requirement("GUARD-2")
def test_middleware_sees_what_the_application_writes_into_the_scope() -> None:
    seen: list[object] = []
    read: list[tuple[object, object]] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        scope["route"] = "/page"
        read.append((list(scope["headers"]), dict(scope.get("extensions", {}))))
        fields = ([name, value] for name, value in [(b"content-type", b"text/html")])
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": b"<p>x"})

    async def send(message: MutableMapping[str, Any]) -> None:
        seen.append(scope.get("route"))

    fields = [(b"user-agent", b"testbot"), (b"accept-encoding", b"br, gzip")]
    readable = [(b"user-agent", b"testbot"), (b"accept-encoding", b"gzip")]
    guard = Guard("https://example.com", GUARDED)
    extensions: dict[str, Any]
    for extensions in ({}, {"extensions": {"http.response.pathsend": {}, "tls": {}}}):
        scope = {"type": "http", "method": "GET", "path": "/", "headers": fields, **extensions}
        given_scope = dict(scope)
        asyncio.run(ASGIMiddleware(site, guard)(scope, nothing, send))
        assert scope == given_scope | {"route": "/page"}
    assert seen == ["/page"] * 4
    assert read == [(readable, {}), (readable, {"tls": {}})]


@pytest.mark.requirement("GUARD-2")
@pytest.mark.parametrize(
    ("ranges", "is_kept"),
    [
        (["bytes=0-9"], True),
        (["bytes=-5"], True),
        (["bytes=0-9, 20-29"], False),
        (["bytes=0-9,-1"], False),
        (["bytes=0-9", "bytes=20-29"], False),
        (["bytes=0-9", "x"], False),
    ],
)
def test_applications_are_not_asked_for_several_ranges(ranges: list[str], *, is_kept: bool) -> None:
    guard = Guard("https://example.com", GUARDED)
    received: list[list[str]] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        received.append(
            [value.decode() for name, value in scope["headers"] if name.lower() == b"range"]
        )
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"<p>x"})

    async def send(message: MutableMapping[str, Any]) -> None:
        pass

    def wsgi_site(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        received.append([environ["HTTP_RANGE"]] if "HTTP_RANGE" in environ else [])
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<p>x"]

    browser = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    for user_agent, is_read in (("testbot", True), (browser, False)):
        sent = [(b"Range", value.encode()) for value in ranges]
        headers = [(b"user-agent", user_agent.encode()), *sent]
        scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
        asyncio.run(ASGIMiddleware(site, guard)(scope, nothing, send))
        assert scope["headers"] is headers
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/",
            "HTTP_USER_AGENT": user_agent,
            "HTTP_RANGE": ",".join(ranges),
        }
        list(WSGIMiddleware(wsgi_site, guard)(environ, lambda *_: None))  # type: ignore[arg-type]
        if is_kept or not is_read:
            assert received == [ranges, [",".join(ranges)]]
        else:
            assert received == [[], []]
        received.clear()


@pytest.mark.requirement("GUARD-2", "SEC-1")
def test_the_method_of_the_request_decides_whether_there_is_a_page() -> None:
    guard = Guard("https://example.com", GUARDED)
    statuses: list[int] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        scope["method"] = "HEAD"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": NO_PURPOSE})

    async def send(message: MutableMapping[str, Any]) -> None:
        statuses.append(message.get("status", 0))

    headers = [(b"user-agent", b"testbot")]
    scope = {"type": "http", "method": "GET", "path": "/page", "headers": headers}
    asyncio.run(ASGIMiddleware(site, guard)(scope, nothing, send))
    assert statuses == [403, 0]

    def wsgi_site(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        environ["REQUEST_METHOD"] = "HEAD"
        start_response("200 OK", [("Content-Type", "text/html")])
        return [NO_PURPOSE]

    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/page", "HTTP_USER_AGENT": "testbot"}
    started: list[str] = []
    middleware = WSGIMiddleware(wsgi_site, guard)
    list(middleware(environ, lambda status, *_: started.append(status)))  # type: ignore[arg-type]
    assert started == ["403 Forbidden"]


@pytest.mark.requirement("GUARD-2")
def test_octets_that_the_application_overwrites_are_kept() -> None:
    guard = Guard("https://example.com", GUARDED)
    page = b"<p>first<p>second"

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        buffer = bytearray(page[:8])
        await send({"type": "http.response.body", "body": buffer, "more_body": True})
        buffer[:] = page[8:]
        await send({"type": "http.response.body", "body": memoryview(buffer)})

    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    headers = [(b"user-agent", b"testbot")]
    scope = {"type": "http", "method": "GET", "path": "/page", "headers": headers}
    asyncio.run(ASGIMiddleware(site, guard)(scope, nothing, send))
    assert sent[1]["body"] == page

    def wsgi_parts(_: object) -> Iterator[bytes]:
        buffer = bytearray(page[:8])
        yield buffer  # type: ignore[misc]
        buffer[:] = page[8:]
        yield buffer  # type: ignore[misc]

    assert wsgi_sent_by(guard, [], wsgi_parts) == (200, page)


@pytest.mark.requirement("GUARD-2")
@given(
    st.sampled_from(sorted(PAGES)),
    st.lists(st.integers(0, 200_000), max_size=6),
    st.sampled_from([list, iter]),
)
def test_the_parts_of_a_page_do_not_matter(name: str, places: list[int], body_type: type) -> None:
    guard = Guard("https://example.com", GUARDED, max_page=SITE_MAX_PAGE)
    page = PAGES[name][1]
    outcomes = {
        sent_by(guard, cut(page, places)),
        sent_by(guard, [page]),
        wsgi_sent_by(guard, cut(page, places), body_type),
    }
    [(status, body)] = outcomes
    assert status in (200, 401, 403)
    assert (body == page) == (status == 200)
    assert (b"secret text" in body) == (status == 200 and b"secret text" in page)


@pytest.mark.requirement("GUARD-2", "SEC-1")
@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "gzip, gzip", "br", "GZIP"]))
def test_octets_in_a_coding_are_sent_or_refused(octets: bytes, coding: str) -> None:
    guard = Guard("https://example.com", GUARDED)
    passed = guard.check(Incoming("GET", "/page", {"user-agent": "testbot"}))
    assert isinstance(passed, Pass)
    fields = [(b"Content-Type", b"text/html"), (b"Content-Encoding", coding.encode())]
    held = passed.hold(200, fields, has_body=True)
    assert held is not None
    held.add(octets)
    held.end()
    try:
        is_gzip = coding.lower() == "gzip" and bool(gzip.decompress(octets))
    except (OSError, EOFError):
        is_gzip = False
    assert isinstance(held.answer, Answer) or is_gzip or coding == "deflate" or not octets
    assert held.answer is not None or held.body == octets


@pytest.mark.requirement("GUARD-2", "SEC-3")
def test_a_small_body_that_unpacks_to_a_long_page_is_refused() -> None:
    held = hold(gzip.compress(b"x" * (MAX_PAGE + 1)), coding=b"gzip")
    assert held.answer is not None
    assert json.loads(held.answer.body)["rule"] == "comity.unread"
    assert hold(gzip.compress(b"x" * MAX_PAGE), coding=b"gzip").answer is None


@pytest.mark.requirement("GUARD-2", "SEC-3")
@pytest.mark.parametrize("coding", [b"", b"gzip"])
@pytest.mark.parametrize(
    ("root", "octets", "is_sent"),
    [
        (b"<?xml version='1.0'?>\n<urlset xmlns='x'>", MAX_PAGE, True),
        (b"\xef\xbb\xbf<!-- a --><s:sitemapindex >", MAX_PAGE, True),
        (b"<urlset>", 2 * MAX_PAGE, False),
        (b"<urlsets>", MAX_PAGE, False),
        (b"<html><urlset>", MAX_PAGE, False),
        (b" " * MAX_PAGE + b"<urlset>", 8, False),
    ],
)
def test_a_sitemap_may_be_as_long_as_its_protocol_permits(
    root: bytes, octets: int, is_sent: bool, coding: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_SITEMAP == 50 * 1024 * 1024
    monkeypatch.setattr(pages, "MAX_SITEMAP", 2 * MAX_PAGE)  # less to pack
    body = root + b" " * octets
    held = hold(gzip.compress(body, 1) if coding else body, coding=coding)
    assert (held.answer is None) == is_sent


@pytest.mark.requirement("GUARD-2")
def test_a_long_sitemap_is_judged_as_any_page() -> None:
    held = hold(b"<urlset>" + b" " * MAX_PAGE + NO_PURPOSE)
    assert held.answer is not None
    assert json.loads(held.answer.body)["rule"] != "comity.unread"


@pytest.mark.requirement("GUARD-2")
@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"gzip, br"])
def test_a_response_without_octets_has_nothing_to_decode(coding: bytes) -> None:
    held = hold(b"", coding=coding)
    assert (held.answer, held.body) == (None, b"")


@pytest.mark.requirement("GUARD-2")
def test_a_page_in_deflate_without_the_header_of_zlib_is_read() -> None:
    """Some servers send it so, and browsers read it (RFC 9110 section-8.4.1.2)."""
    for body in (PAGES["plain"][1], NO_PURPOSE):
        held = hold(zlib.compress(body, wbits=-zlib.MAX_WBITS), coding=b"deflate")
        assert (held.answer is None) == (body is not NO_PURPOSE)
        if held.answer:
            assert json.loads(held.answer.body)["rule"] == "automation.purpose"


def hold(
    body: bytes, *, coding: bytes = b"", user_agent: str = "testbot", guard: Guard | None = None
) -> HeldPage:
    guard = guard or Guard("https://example.com", GUARDED)
    passed = guard.check(Incoming("GET", "/page", {"user-agent": user_agent}))
    assert isinstance(passed, Pass)
    fields = [(b"content-type", b"text/html"), (b"content-encoding", coding)]
    held = passed.hold(200, fields, has_body=True)
    assert held is not None
    held.add(body)
    held.end()
    return held


@pytest.mark.requirement("GUARD-2")
@pytest.mark.parametrize(
    ("content_range", "is_sent"),
    [
        (b"bytes 0-99/100", True),
        (b"bytes 0-98/100", False),
        (b"bytes 1-99/100", False),
        (b"bytes 0-99/*", False),
        (b"bytes */100", False),
        (b"", False),
    ],
)
def test_a_part_of_a_page_is_sent_if_it_is_the_whole(
    content_range: bytes, *, is_sent: bool
) -> None:
    guard = Guard("https://example.com", GUARDED)
    passed = guard.check(Incoming("GET", "/page", {"user-agent": "testbot"}))
    assert isinstance(passed, Pass)
    fields = [(b"Content-Type", b"text/html"), (b"Content-Range", content_range)]
    held = passed.hold(206, fields, has_body=True)
    assert held is not None
    held.add(b"x" * 100)
    held.end()
    assert (held.answer is None) == is_sent
    ranges = [(b"Content-Type", b"multipart/byteranges; boundary=x")]
    several = passed.hold(206, ranges, has_body=True)
    assert several is not None
    assert several.answer is not None


NAMES = [f"name{number}x" for number in range(MAX_WORDS + 1)]


@pytest.mark.requirement("GUARD-2")
def test_a_user_agent_with_too_many_names_gets_no_page_with_all_of_them() -> None:
    page = b"<p>" + " ".join(NAMES).encode()
    assert hold(page, user_agent=" ".join(NAMES[:MAX_WORDS])).answer is None
    answer = hold(page, user_agent=" ".join(NAMES)).answer
    assert answer is not None
    assert (answer.status, json.loads(answer.body)["rule"]) == (431, "comity.long-fields")


@pytest.mark.requirement("GUARD-2")
def test_names_that_a_page_does_not_have_are_not_too_many() -> None:
    sentence = " ".join(NAMES)
    assert hold(b"<p>name3x, Name16X &#39;x", user_agent=sentence).answer is None
    for named in ("name16x", "NAME16X", "*"):
        for page in (
            annotated(userAgent=named, allowedPurposes=[]),
            annotated(userAgent=named, allowedPurposes=[]).replace(b"16", b"\\u00316"),
            annotated(userAgent=named, allowedPurposes=[]).decode().encode("utf-16"),
            XHTML,
        ):
            assert hold(page, user_agent=sentence).answer is not None
    other = annotated(userAgent="otherbot", allowedPurposes=[])
    assert hold(other, user_agent=sentence).answer is None


@pytest.mark.requirement("GUARD-2", "META-3")
def test_a_page_and_its_fields_are_searched_for_names() -> None:
    guard = Guard("https://example.com", GUARDED, uses=lambda _: ("train",))
    sentence = " ".join(NAMES)
    for page, fields, is_sent in (
        (b"<p>x", [], True),
        (b"<meta name='n&#97;me16x' content='noai'>", [], False),
        (b"<p>x", [(b"X-Robots-Tag", b"name16x: noai")], False),
        (b"<p>x", [(b"X-Robots-Tag", b"otherbot: noai")], True),
        (b"<p>x", [(b"X-Robots-Tag", b"noai")], False),
        (b"<p>&#%s;" % (b"1" * 5000), [], False),  # nobody knows the character
    ):
        sent = asgi_sent_by(guard, [page], user_agent=sentence, fields=fields)
        assert (asyncio.run(sent)[0] == 200) == is_sent, page


@pytest.mark.requirement("GUARD-2", "SEC-1")
def test_a_page_that_its_parser_gives_up_is_refused_for_its_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its elements are unknown, so one of them may refuse."""
    monkeypatch.setattr(html, "_chosen", ["tinyhtml5"])
    page = b'<meta http-equiv="Content-Usage" content="tdm=n">' + b"a" * MAX_CHARACTERS
    guard = Guard("https://example.com", GUARDED, uses=lambda _: ("train",))
    assert sent_by(guard, [page])[0] == 403


@pytest.mark.requirement("GUARD-2", "SEC-3")
def test_other_requests_are_judged_while_a_page_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard("https://example.com", GUARDED)
    judged, read = Event(), Site.refused_by_response

    def slow(*arguments: Any) -> Any:
        assert judged.wait(10)
        return read(*arguments)

    monkeypatch.setattr(Site, "refused_by_response", slow)
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(hold, NO_PURPOSE, guard=guard)
        assert isinstance(
            guard.check(Incoming("GET", "/private/", {"user-agent": "otherbot"})), Answer
        )
        judged.set()
        assert page.result().answer is not None
    assert guard.refused == {"robots.disallow": 1, "automation.purpose": 1}


@pytest.mark.requirement("GUARD-2", "SEC-3")
@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (NO_PURPOSE + b"x" * MAX_AT_ONCE, b""),
        (gzip.compress(NO_PURPOSE), b"gzip"),
        (gzip.compress(NO_PURPOSE), b""),
    ],
)
def test_an_event_loop_goes_on_while_a_long_page_is_read(
    monkeypatch: pytest.MonkeyPatch, body: bytes, coding: bytes
) -> None:
    guard = Guard("https://example.com", GUARDED)
    went_on, read = Event(), Site.refused_by_response

    def slow(*arguments: Any) -> Any:
        assert went_on.wait(10)
        return read(*arguments)

    monkeypatch.setattr(Site, "refused_by_response", slow)

    async def ask() -> tuple[int, bytes]:
        asyncio.get_running_loop().call_later(0, went_on.set)
        return await asgi_sent_by(guard, [body], fields=[(b"content-encoding", coding)])

    assert asyncio.run(ask())[0] == 403


@pytest.mark.requirement("GUARD-2")
def test_a_long_page_is_read_without_asyncio() -> None:
    """Some servers have another event loop, e.g. hypercorn that of Trio."""
    guard = Guard("https://example.com", GUARDED)
    asking = asgi_sent_by(guard, [NO_PURPOSE + b"x" * MAX_AT_ONCE])
    with pytest.raises(StopIteration) as ended:
        asking.send(None)
    assert ended.value.value[0] == 403


@pytest.mark.requirement("GUARD-2")
def test_pages_are_judged_by_their_own_agents_in_many_threads() -> None:
    guard = Guard("https://example.com", GUARDED)
    names = [f"name{number}bot" for number in range(8)]
    pages = {name: annotated(userAgent=name, allowedPurposes=[]) for name in names}

    def is_refused_to(asking: str, name: str) -> bool:
        return hold(pages[name], guard=guard, user_agent=asking).answer is not None

    with ThreadPoolExecutor(8) as pool:
        pairs = [(asking, name) for asking in names for name in names] * 4
        refused = list(pool.map(lambda pair: is_refused_to(*pair), pairs))
    assert refused == [asking == name for asking, name in pairs]


@pytest.mark.requirement("GUARD-2")
def test_no_page_is_read_if_the_site_does_not_want_it() -> None:
    guard = Guard("https://example.com", GUARDED, max_page=0)
    page = PAGES["none"][1]
    assert sent_by(guard, [page]) == (200, page)
    with pytest.raises(PolicyError, match="max_page `-1` is negative: write octets, 0 or more"):
        Guard("https://example.com", GUARDED, max_page=-1)


@pytest.mark.requirement("GUARD-2", "RSL-2")
def test_a_licence_among_the_files_is_read() -> None:
    """A page that refers to a licence is licensed by what the licence permits."""
    page = b'<link rel="license" type="application/rsl+xml" href="/license.xml"><p>x'
    licence = (
        b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>'
        b'<permits type="usage">search</permits></license></content></rsl>'
    )
    for use, files, status in (
        ("search", GUARDED | {"/license.xml": licence}, 200),
        ("train", GUARDED | {"/license.xml": licence}, 403),
        ("search", GUARDED, 403),
    ):
        guard = Guard("https://example.com", files, uses=lambda _, use=use: (use,))  # type: ignore[misc]
        assert sent_by(guard, [page])[0] == status


@pytest.mark.requirement("GUARD-2")
@given(st.lists(st.sampled_from(["gzip", "br", "identity", "deflate;q=0.5", "*", "", "zstd;q=1"])))
def test_readable_codings_are_some_of_those_that_were_sent(codings: list[str]) -> None:
    readable = readable_codings(", ".join(codings)).split(", ")
    assert readable == ["identity"] or set(readable) <= set(codings) - {"br", "*", "", "zstd;q=1"}
