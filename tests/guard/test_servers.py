"""The guard within real servers, asked over real connections: uvicorn (ASGI), and the one of the
standard library (WSGI)."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comity.guard import ASGIMiddleware, Guard, Incoming, Pass, WSGIMiddleware
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.guard.conftest import Client, Servers

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"


THREADED = [
    "uvicorn-h11",
    "uvicorn-httptools",
    "hypercorn",
    "gunicorn-threads",
    "gunicorn-uvicorn",
    "werkzeug",
    "waitress",
    "wsgiref",
]


@pytest.fixture(scope="module", params=THREADED)
def origin(request: pytest.FixtureRequest, servers: Servers) -> Iterator[str]:
    """Of servers that answer several requests at a time."""
    with servers.serving(
        request.param, f"holding:{servers.SERVERS[request.param].kind}", HERE
    ) as origin:
        yield origin


ADDRESSES = (f"127.0.1.{number}" for number in range(1, 255))


@pytest.fixture
def robot(origin: str, servers: Servers) -> Client:
    """A client that the server has not seen."""
    return servers.Client(origin, next(ADDRESSES))


@pytest.mark.requirement("GUARD-1", "AUTO-17", "AUTX-13")
def test_what_a_client_gets(origin: str, robot: Client, servers: Servers) -> None:
    passed = robot.ask("/pages/%C3%A9?q=1")
    assert (passed.status, json.loads(passed.body)["method"]) == (200, "GET")

    refused = robot.ask("/private/x")
    assert (refused.status, refused.problem["rule"]) == (403, "robots.disallow")
    assert refused.problem["source"] == {
        "url": f"{origin}/robots.txt",
        "line": 2,
        "text": "Disallow: /private/",
    }

    posted = robot.ask("/pages/", "POST", "x" * 1000, Content_Type="text/plain")
    assert (posted.status, posted.problem["rule"]) == (403, "automation.method")

    head = robot.ask("/private/x", "HEAD")
    assert (head.status, head.body) == (403, b"")

    without_key = robot.ask("/keyed/", Accept="application/json")
    assert (without_key.status, without_key.problem["rule"]) == (401, "automation.key")
    assert without_key.headers["www-authenticate"] == 'Bearer realm="automation"'
    assert robot.ask("/keyed/", Accept="application/json", X_API_Key="k").status == 200

    hourly = [robot.ask("/hourly/", method) for method in ("GET", "POST", "GET", "GET", "POST")]
    assert [got.status for got in hourly] == [200, 200, 200, 429, 429]
    assert hourly[3].problem["rule"] == "comity.rate"
    assert 3500 < int(hourly[3].headers["retry-after"]) <= 3600
    neighbour = servers.Client(origin, "127.0.0.2")
    assert neighbour.ask("/hourly/").status == 200

    assert servers.person(origin).ask("/private/x", "POST", "x").status == 200


@pytest.mark.requirement("GUARD-1")
def test_policy_files_are_cacheable(robot: Client) -> None:
    for path in ("/robots.txt", "/automation-preferences.txt"):
        first = robot.ask(path)
        assert (first.status, first.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert first.headers["cache-control"] == "max-age=3600"
        again = robot.ask(path, If_None_Match=first.headers["etag"])
        assert (again.status, again.body, again.headers["etag"]) == (
            304,
            b"",
            first.headers["etag"],
        )
        head = robot.ask(path, "HEAD")
        assert (head.status, head.body, int(head.headers["content-length"])) == (
            200,
            b"",
            len(first.body),
        )
        deleted = robot.ask(path, "DELETE")
        assert (deleted.status, deleted.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.requirement("GUARD-1", "AUTX-13", "AUTX-3")
def test_requests_in_flight_are_counted_until_they_are_answered(
    origin: str, robot: Client, servers: Servers
) -> None:
    person, neighbour = servers.person(origin), servers.Client(origin, "127.0.0.2")
    waiting = [robot.begin("/hold/1"), robot.begin("/hold/2")]
    person.ask("/held?2")
    refused = robot.ask("/hold/3")
    assert (refused.status, refused.problem["rule"], refused.headers["retry-after"]) == (
        429,
        "comity.concurrent",
        "1",
    )
    assert robot.ask("/elsewhere").status == 200
    waiting.append(neighbour.begin("/hold/4"))
    person.ask("/held?3")
    person.ask("/release")
    for connection in waiting:
        assert connection.getresponse().read() == b"done"
        connection.close()
    assert [robot.ask("/hold/5").status for _ in range(5)] == [200] * 5


@pytest.mark.requirement("GUARD-1")
def test_requests_that_fail_are_over(robot: Client) -> None:
    for _ in range(3):
        assert robot.ask("/boom/").status == 500


@pytest.mark.requirement("GUARD-1")
def test_one_after_the_other_is_never_two_at_a_time(robot: Client) -> None:
    assert {(got.status, got.body) for got in (robot.ask("/stream/") for _ in range(50))} == {
        (200, b"onetwothree")
    }


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    "server", ["uvicorn-h11", "uvicorn-httptools", "hypercorn", "gunicorn-uvicorn"]
)
def test_requests_whose_client_has_gone_are_over(server: str, servers: Servers) -> None:
    with servers.serving(server, "holding:asgi", HERE) as origin:
        robot, person = servers.Client(origin), servers.person(origin)
        waiting = [robot.begin("/hold/1"), robot.begin("/hold/2")]
        person.ask("/held?2")
        for connection in waiting:
            connection.close()
        person.ask("/held?0")
        waiting = [robot.begin("/hold/1"), robot.begin("/hold/2")]
        person.ask("/held?2")
        for connection in waiting:
            connection.close()


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    "server", one_in(2, ["gunicorn-threads", "werkzeug", "waitress", "wsgiref"])
)
def test_responses_whose_client_has_gone_are_over(server: str, servers: Servers) -> None:
    with servers.serving(server, "holding:wsgi", HERE) as origin:
        robot, endless = (
            servers.Client(origin),
            b"GET /endless/ HTTP/1.1\r\nHost: h\r\nUser-Agent: testbot\r\n\r\n",
        )
        for _ in range(3):  # one at a time, each abandoned by its client
            assert any(robot.opens(endless) == 200 for _ in range(10_000))


RAW = [
    b"GET /%s HTTP/1.1\r\nHost: x\r\n",
    b"GET //private/x HTTP/1.1\r\nHost: x\r\n",
    b"GET /a/%%2e%%2e/private/x HTTP/1.1\r\nHost: x\r\n",
    b"GET http://elsewhere.example/private/x HTTP/1.1\r\nHost: elsewhere.example\r\n",
    b"GET /private/x HTTP/1.0\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n",
    b"GET /private/x\0 HTTP/1.1\r\nHost: x\r\n",
    b"GET /private/\xc3\xa9\xff HTTP/1.1\r\nHost: x\r\n",
    b"GET /private/%%ff%%00%%zz HTTP/1.1\r\nHost: x\r\n",
    b"FROB /private/x HTTP/1.1\r\nHost: x\r\n",
    (
        b"GET /private/x HTTP/1.1\r\nHost: x\r\nUser-Agent: a\r\nUser-Agent: b\r\n"
        b"Cookie: a\r\nCookie: b\r\n"
    ),
    b"GET /private/x HTTP/1.1\r\nHost: x\r\nUser-Agent: " + b"a;(" * 10_000 + b"\r\n",
    b"GET /private/x HTTP/1.1\r\nHost: x\r\nAutomation-Purpose: " + b"," * 30_000 + b"\r\n",
]


@pytest.mark.requirement("GUARD-1", "SEC-1")
def test_odd_requests_get_through_nowhere_and_break_nothing(robot: Client) -> None:
    for request in RAW:
        answer = robot.raw(
            request.replace(b"%s", b"private/x").replace(b"%%", b"%") + b"Connection: close\r\n\r\n"
        )
        status = int(answer.split(b" ", 2)[1])
        assert status in (400, 403, 404, 405, 414, 431, 501), (request, answer)
    assert robot.ask("/pages/").status == 200


def web_socket(target: str, *fields: str) -> bytes:
    """The request that opens one."""
    lines = [
        f"GET {target} HTTP/1.1",
        "Host: example.com",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "User-Agent: testbot",
    ]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: c29tZSBvY3RldHMgb3JuZQ=="]
    return "\r\n".join([*lines, *fields, "", ""]).encode()


@pytest.mark.requirement("GUARD-1", "AUTX-13")
@pytest.mark.parametrize(
    "server", ["uvicorn-h11", "uvicorn-httptools", "hypercorn", "gunicorn-uvicorn"]
)
def test_web_sockets_are_refused_like_other_requests(server: str, servers: Servers) -> None:
    """By an HTTP response before they are opened (ASGI's extension "WebSocket Denial Response")."""
    with servers.serving(server, "attacked:asgi", HERE) as origin:
        robot, person = servers.Client(origin), servers.person(origin)
        for octets, status, rule, field in (
            (
                web_socket("/private/x"),
                403,
                "robots.disallow",
                b"content-type: application/problem+json",
            ),
            (web_socket("/a/../private/x"), 403, "robots.disallow", b"cache-control: no-store"),
            (
                web_socket("/keyed/", "Accept: application/json"),
                401,
                "automation.key",
                b"www-authenticate: bearer",
            ),
        ):
            head, _, body = robot.raw(octets).partition(b"\r\n\r\n")
            assert int(head.split()[1]) == status
            assert json.loads(body)["rule"] == rule
            assert field in head.lower()
        assert [robot.opens(web_socket("/minute/x")) for _ in range(4)] == [101, 101, 101, 429]
        head, _, body = robot.raw(web_socket("/minute/x")).partition(b"\r\n\r\n")
        assert b"retry-after: 60" in head.lower()
        assert json.loads(body)["rule"] == "comity.rate"
        assert json.loads(person.ask("/seen").body) == [["WEBSOCKET", "/minute/x", ""]] * 3


@pytest.mark.requirement("GUARD-1")
def test_web_sockets_without_http_responses_are_closed_with_a_code() -> None:
    opened: list[str] = []
    sent: list[MutableMapping[str, Any]] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        opened.append(scope["path"])

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    files = {
        "/robots.txt": b"User-agent: *\nDisallow: /private/\n",
        "/automation-preferences.txt": b"""scope: /
allowed-methods: GET

scope: /account/
allowed-methods: GET
require-human-initiated-session: true

scope: /minute/
allowed-methods: GET
request-limit: 1/minute
""",
    }
    app = ASGIMiddleware(site, Guard("https://example.com", files))
    for path in ("/private/", "/account/", "/minute/", "/minute/", "/" + "x" * 10_000, "/socket"):
        scope = {
            "type": "websocket",
            "path": path,
            "headers": [(b"User-Agent", b"testbot")],
            "extensions": None,
        }
        asyncio.run(app(scope, nothing, send))
    assert opened == ["/minute/", "/socket"]
    assert sent == [{"type": "websocket.close", "code": code} for code in (3003, 3000, 1013, 1008)]


ONE = {"/automation-preferences.txt": b"scope: /\nallowed-methods: GET\nconcurrent-limit: 1\n"}


@pytest.mark.requirement("GUARD-1", "AUTX-3")
def test_a_response_is_over_when_its_last_octet_goes_out() -> None:
    """The work of the application after it keeps no client from its next request."""
    guard = Guard("https://example.com", ONE)
    incoming = Incoming("GET", "/", {"user-agent": "testbot"})
    passed: list[bool] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"all", "more_body": True})
        passed.append(isinstance(guard.check(incoming), Pass))
        await send({"type": "http.response.body"})
        passed.append(isinstance(guard.check(incoming), Pass))

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"User-Agent", b"testbot")]}
    asyncio.run(ASGIMiddleware(site, guard)(scope, nothing, nothing))  # type: ignore[arg-type]
    assert passed == [False, True]


PREFIXED = """User-agent: *
Disallow: /app/private/
Disallow: /app/a%3Fb
Disallow: /app/café
Disallow: /app/*?$
Disallow: /app/*?*bad
""".encode()
ALL_BUT_APP = b"User-agent: *\nDisallow: /\nAllow: /app/\nDisallow: /app/private/\n"


def wsgi_refuses(robots: bytes, environ: dict[str, str], script_name: str | None = None) -> bool:
    answered: list[str] = []

    def site(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return []

    app = WSGIMiddleware(
        site, Guard("https://example.com", {"/robots.txt": robots}), script_name=script_name
    )
    app(environ, lambda status, headers, exc_info=None: answered.append(status))  # type: ignore[arg-type]
    assert answered in (["200 OK"], ["403 Forbidden"])
    return answered == ["403 Forbidden"]


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    ("environ", "is_refused"),
    [
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "/private/x"}, True),
        ({"SCRIPT_NAME": "", "PATH_INFO": "/private/x"}, False),
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "/a", "RAW_URI": "/app/private/x"}, True),
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "/a", "REQUEST_URI": "/app/private/x"}, True),
        ({"PATH_INFO": "/app/private/x", "RAW_URI": "/a"}, True),
        ({"SCRIPT_NAME": "/x", "PATH_INFO": "/app/private/x", "RAW_URI": "/x/app/private/x"}, True),
        # as it was decoded: the name has a percent sign
        (
            {"PATH_INFO": "/app/priv%61te/x"},
            False,
        ),
        ({"PATH_INFO": "/app/a?b=1"}, True),
        ({"PATH_INFO": "/app/a", "QUERY_STRING": "b=1"}, False),
        ({"PATH_INFO": "/app/caf\xc3\xa9"}, True),
        ({"PATH_INFO": "/app/x", "QUERY_STRING": "", "RAW_URI": "/app/x?"}, True),
        ({"PATH_INFO": "/app/x", "QUERY_STRING": "a=1&bad=2"}, True),
        ({"PATH_INFO": "/app/x", "QUERY_STRING": "bad", "RAW_URI": "/app/x"}, True),
        ({"PATH_INFO": "app/private/x"}, True),
        ({}, False),
    ],
)
def test_wsgi_targets_are_put_together_again(environ: dict[str, str], is_refused: bool) -> None:
    assert wsgi_refuses(PREFIXED, environ) is is_refused


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("script_name", ["/app", "/app/"])
@pytest.mark.parametrize(
    ("environ", "is_refused"),
    [
        # The server knows it
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "/x", "RAW_URI": "/app/x"}, False),
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "/private/x", "RAW_URI": "/app/private/x"}, True),
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "", "RAW_URI": "/app"}, True),
        ({"SCRIPT_NAME": "/app", "PATH_INFO": "/", "RAW_URI": "/app/?x"}, False),
        # A proxy took it away
        ({"SCRIPT_NAME": "", "PATH_INFO": "/x", "RAW_URI": "/x"}, False),
        ({"SCRIPT_NAME": "", "PATH_INFO": "/private/x", "RAW_URI": "/private/x"}, True),
        # A client says something else
        ({"SCRIPT_NAME": "/y", "PATH_INFO": "/private/x", "RAW_URI": "/y/private/x"}, True),
        ({"SCRIPT_NAME": "/app/y", "PATH_INFO": "/private/x", "RAW_URI": "/app/y/private/x"}, True),
        ({"SCRIPT_NAME": "/y", "PATH_INFO": "/x", "RAW_URI": "/y/x"}, False),
    ],
)
def test_an_application_that_clients_know_under_a_path(
    script_name: str, environ: dict[str, str], is_refused: bool
) -> None:
    assert wsgi_refuses(ALL_BUT_APP, environ, script_name) is is_refused


@pytest.mark.requirement("GUARD-1")
def test_what_the_server_says_of_the_path_is_not_believed() -> None:
    environ = {"SCRIPT_NAME": "/app", "PATH_INFO": "/x", "RAW_URI": "/app/x"}
    assert wsgi_refuses(ALL_BUT_APP, environ)
    assert not wsgi_refuses(ALL_BUT_APP, environ, "/app")
    private = b"User-agent: *\nDisallow: /private/\n"
    # a header field, to gunicorn
    moved = {
        "SCRIPT_NAME": "/x",
        "PATH_INFO": "/private/y",
        "RAW_URI": "/x/private/y",
    }
    assert wsgi_refuses(private, moved)
    assert wsgi_refuses(private, moved, "")


async def nothing(*message: object) -> dict[str, object]:
    return {}


def asgi_refuses(robots: bytes, scope: dict[str, Any], root_path: str | None = None) -> bool:
    seen: list[str] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        seen.append(scope["path"])

    app = ASGIMiddleware(
        site, Guard("https://example.com", {"/robots.txt": robots}), root_path=root_path
    )
    asyncio.run(app({"type": "http", "method": "GET", "headers": []} | scope, nothing, nothing))  # type: ignore[arg-type]
    return not seen


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    ("scope", "is_refused"),
    [
        ({"path": "/app/private/x"}, True),
        ({"path": "/app/private/x", "raw_path": b"/open"}, True),
        ({"path": "/open", "raw_path": b"/app/private/x"}, True),
        ({"path": "/open", "raw_path": None}, False),
        ({"path": "/app/caf\u00e9"}, True),
        ({"path": "/app/\udcff"}, False),
        ({"path": "/app/priv%61te/x"}, False),
        ({"path": "/app/a?b=1"}, True),
        ({"path": "/app/a", "query_string": b"b=1"}, False),
        ({"path": "/app/private/x", "query_string": b"\xff#"}, True),
        ({"path": "/app/x", "query_string": b"a=1&bad=2"}, True),
        # uvicorn and Starlette
        ({"path": "/app/private/x", "raw_path": b"/app/private/x", "root_path": "/app"}, True),
        # hypercorn
        ({"path": "/private/x", "raw_path": b"/private/x", "root_path": "/app"}, True),
        ({"path": "/private/x", "raw_path": b"/private/x", "root_path": "/app/"}, True),
        ({"path": "/private/x", "raw_path": b"/private/x", "root_path": "/other"}, False),
        ({"path": "/apply/x", "raw_path": b"/apply/x", "root_path": "/app"}, False),
        # an older Starlette, below a Mount
        ({"path": "/private/x", "raw_path": b"/app/private/x", "root_path": "/app"}, True),
    ],
)
def test_asgi_targets_are_put_together_again(scope: dict[str, Any], is_refused: bool) -> None:
    assert asgi_refuses(PREFIXED, scope) is is_refused


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("root_path", ["/app", "/app/"])
@pytest.mark.parametrize(
    ("path", "said", "is_refused"),
    [
        # uvicorn and Starlette
        ("/app/x", "/app", False),
        ("/app/private/x", "/app", True),
        ("/app", "/app", True),
        # hypercorn
        ("/x", "/app", False),
        ("/private/x", "/app", True),
        # A proxy took it away, and the server does not know
        ("/x", "", False),
        ("/private/x", "", True),
        # A client says something else
        ("/y/private/x", "/y", True),
        ("/app/y/private/x", "/app/y", True),
        ("/y/x", "/y", False),
    ],
)
def test_an_asgi_application_that_clients_know_under_a_path(
    root_path: str, path: str, said: str, is_refused: bool
) -> None:
    for raw_path in (path.encode(), None):
        scope = {"path": path, "raw_path": raw_path, "root_path": said}
        assert asgi_refuses(ALL_BUT_APP, scope, root_path) is is_refused


@pytest.mark.requirement("GUARD-1")
def test_what_the_server_says_of_the_root_is_not_believed() -> None:
    """Daphne takes it from a header field."""
    scope = {"path": "/app/x", "raw_path": b"/app/x", "root_path": "/app"}
    assert asgi_refuses(ALL_BUT_APP, scope)
    assert not asgi_refuses(ALL_BUT_APP, scope, "/app")
    private = b"User-agent: *\nDisallow: /private/\n"
    for path in ("/x/private/y", "/private/y"):
        for root_path in (None, ""):
            assert asgi_refuses(
                private, {"path": path, "raw_path": path.encode(), "root_path": "/x"}, root_path
            )
    spaces = b"User-agent: *\nDisallow: /a%20b/c\n"
    assert asgi_refuses(
        spaces, {"path": "/a b/c", "raw_path": b"/a%20b/c", "root_path": "/a b"}, "/a b"
    )
    assert asgi_refuses(spaces, {"path": "/c", "raw_path": b"/c", "root_path": "/a b"}, "/a b")


@pytest.mark.requirement("GUARD-1")
def test_fields_of_one_name_count_together() -> None:
    headers = [(b"User-Agent", b"Mozilla/5.0 Gecko"), (b"x", b"y"), (b"user-agent", b"abot/1.0")]
    assert asgi_refuses(b"User-agent: abot\nDisallow: /\n", {"path": "/", "headers": headers})
    assert asgi_refuses(b"User-agent: abot\nDisallow: /\n", {"path": "/", "headers": headers[::-1]})


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("name", [b"X-Original-URL", b"x_original_url", b"X_Original-URL"])
def test_the_names_of_fields_are_as_an_application_may_see_them(name: bytes) -> None:
    """Django and adapters to WSGI make one name of `_` and `-`."""
    private = b"User-agent: *\nDisallow: /private/\n"
    assert asgi_refuses(private, {"path": "/x", "headers": [(name, b"/private/y")]})
    assert not asgi_refuses(private, {"path": "/x", "headers": [(name, b"/y")]})


@pytest.mark.requirement("GUARD-1")
def test_a_field_may_put_a_path_in_place_of_that_below_the_root() -> None:
    private = b"User-agent: *\nDisallow: /app/private/\n"
    for root_path, said in ((None, "/app/"), ("/app", ""), ("/app/", "/y")):
        for target, is_refused in (
            ("/private/y", True),
            ("https://example.com/private/y", True),
            ("/y", False),
        ):
            headers = [(b"x-original-url", target.encode())]
            assert (
                asgi_refuses(
                    private, {"path": "/app/x", "root_path": said, "headers": headers}, root_path
                )
                is is_refused
            )
            environ = {"SCRIPT_NAME": said, "PATH_INFO": "/x", "HTTP_X_ORIGINAL_URL": target}
            assert wsgi_refuses(private, environ, root_path) is is_refused
    # the header field of a proxy repeats the path that clients know
    below = b"User-agent: *\nDisallow: /app/app\n"
    for target in ("/app/y", "/app", "/app?y", "https://example.com/app/y"):
        headers = [(b"x-original-url", target.encode())]
        assert not asgi_refuses(
            below, {"path": "/app/x", "root_path": "/app", "headers": headers}, "/app"
        )
    headers = [(b"x-original-url", b"/apply")]
    assert asgi_refuses(below, {"path": "/app/x", "root_path": "/app", "headers": headers}, "/app")


@pytest.mark.requirement("GUARD-1")
def test_what_is_no_request_is_none_of_the_guard_s_business() -> None:
    """An event with a path is a request, of any type."""
    seen: list[str] = []

    async def site(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    app = ASGIMiddleware(
        site, Guard("https://example.com", {"/robots.txt": b"User-agent: *\nDisallow: /\n"})
    )
    for scope in (
        {"type": "lifespan"},
        {"type": "channel"},
        {"type": "webtransport", "path": "/"},
        {"type": "HTTP", "path": "/"},
    ):
        asyncio.run(app(scope, nothing, nothing))  # type: ignore[arg-type]
    assert seen == ["lifespan", "channel"]


def test_the_body_of_a_refused_request_is_read_where_it_is_small() -> None:
    app = WSGIMiddleware(
        lambda *_: [],
        Guard("https://example.com", {"/robots.txt": b"User-agent: *\nDisallow: /\n"}),
    )
    for length, left in (
        ("5", b"more"),
        ("1000000000", b"12345more"),
        ("-1", b"12345more"),
        ("", b"12345more"),
    ):
        body = io.BytesIO(b"12345more")
        environ = {"PATH_INFO": "/", "CONTENT_LENGTH": length, "wsgi.input": body}
        app(environ, lambda *_: None)  # type: ignore[arg-type]
        assert body.read() == left


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    ("server", "app"), [("uvicorn-h11", "asgi_app:app"), ("wsgiref", "wsgi_app:app")]
)
def test_the_examples_work(server: str, app: str, servers: Servers) -> None:
    with servers.serving(server, app, EXAMPLES) as origin:
        robot = servers.Client(origin)
        assert b"request-limit" in robot.ask("/automation-preferences.txt").body
        assert robot.ask("/page").body == b"This is /page.\n"
        assert robot.ask("/private/").problem["rule"] == "robots.disallow"
        assert robot.ask("/page").problem["rule"] == "comity.rate"  # Crawl-delay
