"""Ways round the guard, tried at real servers by octets as they are: none may show the application
what is refused.

Each server makes of a request line and of header fields what it likes, so every attack runs against
every server. That they are attacks is shown by a browser, which sends the same octets and gets
through at some of the servers."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, ResponseReceived, StreamReset

from tests.selection import one_in

if TYPE_CHECKING:
    from tests.guard.conftest import Client, Servers

HERE = Path(__file__).parent
SINGLE = [
    "uvicorn-h11",
    "uvicorn-httptools",
    "hypercorn",
    "gunicorn-sync",
    "gunicorn-threads",
    "gunicorn-uvicorn",
    "werkzeug",
    "waitress",
    "wsgiref",
]
WHO = b"WHO"
ROBOT = b"User-Agent: testbot/1.0"
BROWSER = b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


@pytest.fixture(scope="module", params=SINGLE)
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def origin(server: str, servers: Servers) -> Iterator[str]:
    with servers.serving(server, f"attacked:{servers.SERVERS[server].kind}", HERE) as origin:
        yield origin


class Answered(NamedTuple):
    statuses: list[int]
    seen: list[list[str]]
    """Method and path by which the application routes."""
    octets: bytes


def send(client: Client, octets: bytes) -> Answered:
    client.ask("/seen")
    answer = client.raw(octets)
    seen = [entry[:2] for entry in json.loads(client.ask("/seen").body)]
    return Answered([int(status) for status in STATUS.findall(answer)], seen, answer)


def get(
    target: bytes, *fields: bytes, method: bytes = b"GET", version: bytes = b"HTTP/1.1"
) -> bytes:
    """A request with WHO for its User-Agent."""
    return b"\r\n".join(
        [
            b"%s %s %s" % (method, target, version),
            b"Host: example.com",
            b"Connection: close",
            *fields,
            WHO,
            b"",
            b"",
        ]
    )


def with_body(body: bytes, *framing: bytes, method: bytes = b"POST") -> bytes:
    """A permitted request.

    By one way to read the framing this is its body, and another request follows. LENGTH stands
    for the length of the body."""
    length = b"%d" % len(body.replace(WHO, ROBOT))
    head = get(b"/open", *(field.replace(b"LENGTH", length) for field in framing), method=method)
    return head.replace(b"Connection: close\r\n", b"") + body + get(b"/open")


INNER = get(b"/private/x").replace(b"Connection: close\r\n", b"")
CHUNKED_INNER = b"%x\r\n%s\r\n0\r\n\r\n" % (len(INNER.replace(WHO, ROBOT)), INNER)

# Requests that lead to /private/ at some server, or may.
PRIVATE = {
    "as it is": get(b"/private/x"),
    "slashes": get(b"//private/x"),
    "more slashes": get(b"///private//x"),
    "dot": get(b"/./private/x"),
    "dots": get(b"/a/../private/x"),
    "dots beyond the root": get(b"/../../private/x"),
    "escaped dots": get(b"/a/%2e%2E/private/x"),
    "escaped slashes": get(b"/a%2F..%2fprivate/x"),
    "escaped slash": get(b"/private%2Fx"),
    "escaped letter": get(b"/%70rivate/x"),
    "dots to a policy file": get(b"/private/../ai.txt"),
    "escaped dots to a policy file": get(b"/private%2F..%2Fai.txt"),
    "dots to a policy file of the site": get(b"/private/../robots.txt"),
    "no slash": get(b"private/x"),
    "escaped, no slash": get(b"%2Fprivate/x"),
    "tab": get(b"/pri\tvate/x"),
    "leading tab": get(b"\t/private/x"),
    "carriage return": get(b"/pri\rvate/x"),
    "form feed": get(b"/pri\x0cvate/x"),
    "control before": get(b"\x01/private/x"),
    "no-break space": get(b"\xa0/private/x"),
    "NUL": get(b"/private/\x00x"),
    "escaped NUL": get(b"/private/%00x"),
    "fragment": get(b"/private/x#y"),
    "fragment of slashes": get(b"/private/x#/../../open"),
    "query": get(b"/private/x?/../open"),
    "parameter": get(b"/private/x;y=z"),
    "octets": get(b"/private/\xc3\xa9\xff"),
    "bad escapes": get(b"/private/%ff%zz%"),
    "absolute": get(b"http://example.com/private/x"),
    "absolute of another host": get(b"http://elsewhere.example/private/x"),
    "absolute, capitals": get(b"HTTPS://example.com/private/x"),
    "absolute, other scheme": get(b"a+b://h/private/x"),
    "absolute, no host": get(b"http:///private/x"),
    "absolute, one slash": get(b"http:/private/x"),
    "absolute, no slash": get(b"http:private/x"),
    "absolute, user": get(b"http://u:p@example.com/private/x"),
    "absolute, port": get(b"http://example.com:1/private/x"),
    "absolute, query for a path": get(b"http://example.com?/../private/x"),
    "absolute, dots": get(b"http://example.com/a/../private/x"),
    "absolute, backslash": get(b"http:\\\\example.com\\private/x"),
    "mailto": get(b"mailto:/private/x"),
    "file": get(b"file:///private/x"),
    "data": get(b"data:,/private/x"),
    "no version": b"GET /private/x\r\nWHO\r\n\r\n",
    "HTTP/1.0": get(b"/private/x", version=b"HTTP/1.0"),
    "HTTP/1.9": get(b"/private/x", version=b"HTTP/1.9"),
    "no host": b"GET /private/x HTTP/1.1\r\nConnection: close\r\nWHO\r\n\r\n",
    "two spaces": get(b" /private/x"),
    "line feeds": b"GET /private/x HTTP/1.1\nHost: h\nConnection: close\nWHO\n\n\r\n\r\n",
    "blank lines before": b"\r\n\r\n" + get(b"/private/x"),
    "small method": get(b"/private/x", method=b"get"),
    "another method": get(b"/private/x", method=b"FROB"),
    "long method": get(b"/private/x", method=b"GET" + b"X" * 1000),
    "HEAD": get(b"/private/x", method=b"HEAD"),
    "OPTIONS": get(b"/private/x", method=b"OPTIONS"),
    "TRACE": get(b"/private/x", method=b"TRACE"),
    "CONNECT": get(b"/private/x", method=b"CONNECT"),
    "CONNECT to a host": get(b"example.com:80", method=b"CONNECT"),
    "SCRIPT_NAME": get(b"/x/private/y", b"SCRIPT_NAME: /x"),
    "SCRIPT_NAME, escaped": get(b"/%78/private/y", b"SCRIPT_NAME: /%78"),
    "SCRIPT_NAME, part of a name": get(b"/x/private/y", b"SCRIPT_NAME: /x/"),
    "SCRIPT_NAME of all": get(b"/open/private/y", b"SCRIPT_NAME: /open", b"SCRIPT-NAME: /open"),
    "PATH_INFO": get(b"/open", b"PATH_INFO: /private/x", b"Path-Info: /private/x"),
    "RAW_URI": get(b"/private/x", b"RAW_URI: /open", b"Raw-Uri: /open", b"REQUEST_URI: /open"),
    "X-Original-URL": get(b"/open", b"X-Original-URL: /private/x"),
    "X-Rewrite-URL": get(b"/open", b"X-Rewrite-URL: https://example.com/private/x"),
    "X-Forwarded-Prefix": get(b"/private/x", b"X-Forwarded-Prefix: /open"),
    "another User-Agent before": get(b"/private/x", BROWSER),
    "another User_Agent": get(b"/private/x", BROWSER.replace(b"-", b"_", 1)),
    "folded field": get(b"/private/x", b"X-Folded: a\r\n b"),
    "space before the colon": get(b"/private/x", b"User-Agent : Firefox"),
    "no colon": get(b"/private/x", b"nothing"),
    "octets in fields": get(b"/private/x", b"X-Octets: \xff\xfe\x80"),
    "names in capitals": get(b"/private/x").replace(b"User-Agent", b"USER-AGENT"),
    "many fields": get(b"/private/x", *(b"X-%d: y" % number for number in range(90))),
    "chunked": get(b"/private/x", b"Transfer-Encoding: chunked", method=b"POST")
    + b"3\r\nabc\r\n0\r\n\r\n",
    "chunked twice": get(
        b"/private/x", b"Transfer-Encoding: chunked", b"Content-Length: 3", method=b"POST"
    )
    + b"0\r\n\r\n",
    "body": get(b"/private/x", b"Content-Length: 3", method=b"POST") + b"abc",
    "body that never comes": get(
        b"/private/x", b"Content-Length: 0", b"Content-Type: application/json", method=b"POST"
    ),
    "expects 100": get(b"/private/x", b"Expect: 100-continue", b"Content-Length: 3", method=b"POST")
    + b"abc",
    "after another": get(b"/open").replace(b"Connection: close\r\n", b"") + get(b"/private/x"),
    "after a body": get(b"/private/y", b"Content-Length: 3", method=b"POST").replace(
        b"Connection: close\r\n", b""
    )
    + b"abc"
    + get(b"/private/x"),
    "after chunks": get(b"/private/y", b"Transfer-Encoding: chunked", method=b"POST").replace(
        b"Connection: close\r\n", b""
    )
    + b"3\r\nabc\r\n0\r\n\r\n"
    + get(b"/private/x"),
    "length and chunks": with_body(
        b"0\r\n\r\n" + INNER, b"Content-Length: LENGTH", b"Transfer-Encoding: chunked"
    ),
    "chunks and length": with_body(
        CHUNKED_INNER, b"Transfer-Encoding: chunked", b"Content-Length: 4"
    ),
    "chunks after a space": with_body(
        b"0\r\n\r\n" + INNER, b"Transfer-Encoding : chunked", b"Content-Length: LENGTH"
    ),
    "chunks after a tab": with_body(
        b"0\r\n\r\n" + INNER, b"Transfer-Encoding:\tchunked", b"Content-Length: LENGTH"
    ),
    "chunks by another name": with_body(
        b"0\r\n\r\n" + INNER, b"Transfer_Encoding: chunked", b"Content-Length: LENGTH"
    ),
    "chunks that are none": with_body(
        b"0\r\n\r\n" + INNER, b"Transfer-Encoding: xchunked", b"Content-Length: LENGTH"
    ),
    "chunks, folded": with_body(
        b"0\r\n\r\n" + INNER, b"Transfer-Encoding:\r\n chunked", b"Content-Length: LENGTH"
    ),
    "chunks of two codings": with_body(CHUNKED_INNER, b"Transfer-Encoding: identity, chunked"),
    "chunks of two fields": with_body(
        CHUNKED_INNER, b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"
    ),
    "chunk extension": with_body(b"1;a=b\r\nx\r\n" + CHUNKED_INNER, b"Transfer-Encoding: chunked"),
    "two lengths": with_body(INNER, b"Content-Length: 0", b"Content-Length: LENGTH"),
    "two lengths the other way": with_body(INNER, b"Content-Length: LENGTH", b"Content-Length: 0"),
    "lengths in a list": with_body(INNER, b"Content-Length: LENGTH, LENGTH"),
    "length with a sign": with_body(INNER, b"Content-Length: +LENGTH"),
    "length by another name": with_body(INNER, b"Content_Length: 0", b"Content-Length: LENGTH"),
    "body of a GET": with_body(INNER, b"Content-Length: LENGTH", method=b"GET"),
    "body of a GET without length": with_body(INNER, method=b"GET"),
    "line ends in the target": get(b"/open%20HTTP/1.1%0d%0aHost:h%0d%0a%0d%0aGET%20/private/x"),
    "Connection takes User-Agent away": get(b"/private/x", b"Connection: close, User-Agent"),
    "folded User-Agent": get(b"/private/x").replace(WHO, BROWSER + b"\r\n " + WHO),
    "another User-Agent behind": get(b"/private/x").replace(WHO, WHO + b"\r\n" + BROWSER),
    "h2c": get(b"/private/x", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAARAAAAA").replace(
        b"close", b"Upgrade, HTTP2-Settings"
    )
    + get(b"/open"),
    "long": get(b"/private/" + b"x" * 5000),
    "longer than is looked at": get(b"/private/" + b"x" * 30_000),
    "long way there": get(b"/" + b"a/../" * 1500 + b"private/x"),
    "longer way there": get(b"/" + b"a/../" * 9000 + b"private/x"),
    "long query": get(b"/private/x?" + b"y" * 30_000),
}
REFUSED = {100, 101, 400, 403, 404, 405, 414, 431, 500, 501, 505}

# The requests with which browsers reach it, with the paths by which the application routes: so
# these are attacks.
REACHED = {
    "uvicorn-h11": {
        "as it is": "/private/x",
        "slashes": "//private/x",
        "escaped letter": "/private/x",
    },
    "uvicorn-httptools": {"dots": "/a/../private/x", "absolute": "/private/x"},
    "hypercorn": {
        "escaped slashes": "/a/../private/x",
        "absolute, other scheme": "a+b://h/private/x",
    },
    "gunicorn-sync": {"absolute, other scheme": "/private/x", "SCRIPT_NAME": "/private/y"},
    "gunicorn-threads": {
        "SCRIPT_NAME of all": "/private/y",
        "dots to a policy file": "/private/../ai.txt",
    },
    "gunicorn-uvicorn": {"absolute": "/private/x"},
    "werkzeug": {
        "control before": "/private/x",
        "mailto": "/private/x",
        "absolute, one slash": "/private/x",
    },
    "waitress": {"tab": "/private/x", "leading tab": "/private/x", "data": ",/private/x"},
    "wsgiref": {"escaped dots": "/a/../private/x", "no version": "/private/x"},
}


@pytest.mark.requirement("GUARD-1", "SEC-1")
@pytest.mark.parametrize("attack", one_in(5, PRIVATE))
def test_nothing_gets_to_what_is_refused(origin: str, servers: Servers, attack: str) -> None:
    person = servers.person(origin)
    answered = send(person, PRIVATE[attack].replace(WHO, ROBOT))
    assert not [path for _, path in answered.seen if path.lstrip("/").startswith("private/")], (
        answered
    )
    assert answered.statuses.count(200) == len(answered.seen), answered
    assert set(answered.statuses) <= REFUSED | {200}, answered
    # it serves on
    assert send(person, get(b"/open").replace(WHO, ROBOT)).seen == [["GET", "/open"]]


def test_people_get_there(origin: str, server: str, servers: Servers) -> None:
    person = servers.person(origin)
    for attack, path in REACHED[server].items():
        assert [seen[1] for seen in send(person, PRIVATE[attack].replace(WHO, BROWSER)).seen] == [
            path
        ]


@pytest.mark.requirement("GUARD-1", "AUTX-2")
def test_no_way_of_asking_gets_more_than_is_permitted(
    origin: str, server: str, servers: Servers
) -> None:
    """Three in a minute, by any method, under any name, one after the other or all at once."""
    addresses = iter(range(2, 9))

    def passed(*requests: bytes) -> int:
        person, robot = servers.person(origin), servers.Client(origin, f"127.0.2.{next(addresses)}")
        person.ask("/seen")
        for octets in requests:
            robot.raw(octets.replace(WHO, ROBOT))
        return len(json.loads(person.ask("/seen").body))

    one, last = get(b"/minute/x").replace(b"Connection: close\r\n", b""), get(b"/minute/x")
    assert passed(*[last] * 6) == 3
    assert passed(*[last, get(b"/minute/x", method=b"HEAD")] * 3) == 3
    assert (
        passed(*[last, get(b"/x/../minute/y"), get(b"/open/../minute/"), get(b"/%6dinute/z")] * 2)
        == 3
    )
    assert passed(*(last.replace(WHO, b"User-Agent: bot%d" % number) for number in range(6))) == 3
    assert (
        passed(*(get(b"/minute/x", version=version) for version in (b"HTTP/1.0", b"HTTP/1.1") * 3))
        == 3
    )
    assert passed(one * 5 + last) <= 3
    if "uvicorn" not in server:  # which believes it from this machine
        assert (
            passed(
                *(get(b"/minute/x", b"X-Forwarded-For: 192.0.2.%d" % number) for number in range(6))
            )
            == 3
        )


def over_http_2(
    client: Client, pseudo: list[tuple[bytes, bytes]], *fields: tuple[bytes, bytes]
) -> int:
    """The status of the answer; 0 where the server gives none and closes."""
    connection = H2Connection(
        H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
    )
    connection.initiate_connection()
    connection.send_headers(1, [*pseudo, *fields], end_stream=True)
    with socket.create_connection(
        urlsplit(client.origin).netloc.split(":"),  # type: ignore[arg-type]
        timeout=300,
    ) as channel:
        channel.sendall(connection.data_to_send())
        while octets := channel.recv(65536):
            for event in connection.receive_data(octets):
                if isinstance(event, ResponseReceived):
                    return int(dict(event.headers)[b":status"])
                if isinstance(event, StreamReset | ConnectionTerminated):
                    return 0
            channel.sendall(connection.data_to_send())
    return 0


PSEUDO = {
    b":method": b"GET",
    b":scheme": b"http",
    b":authority": b"example.com",
    b":path": b"/private/x",
}


@pytest.mark.requirement("GUARD-1", "SEC-1")
@pytest.mark.parametrize(
    "pseudo",
    one_in(
        2,
        [
            {},
            {b":path": b"//private/x"},
            {b":path": b"/a/../private/x"},
            {b":path": b"/a/%2e%2e/%70rivate/x"},
            {b":path": b"private/x"},
            {b":path": b"http://example.com/private/x"},
            {b":path": b"a+b://h/private/x"},
            {b":path": b"/private/../ai.txt"},
            {b":path": b"/pri\tvate/x"},
            {b":path": b"/private/\xff"},
            {b":path": b"/private/x#/open"},
            {b":path": b"/private/x y"},
            {b":authority": b"elsewhere.example"},
            {b":scheme": b"ftp"},
            {b":method": b"HEAD"},
            {b":method": b"get"},
            {b":method": b"CONNECT"},
            {b":method": b"CONNECT", b":protocol": b"websocket"},
        ],
    ),
)
def test_nothing_gets_there_by_http_2(
    hypercorn: str, servers: Servers, pseudo: dict[bytes, bytes]
) -> None:
    person = servers.person(hypercorn)
    person.ask("/seen")
    robot, browser = (b"user-agent", b"testbot"), (b"user-agent", BROWSER.partition(b": ")[2])
    status = over_http_2(person, list((PSEUDO | pseudo).items()), robot)
    assert status in REFUSED | {0}
    assert json.loads(person.ask("/seen").body) == []
    if not pseudo:
        assert over_http_2(person, list(PSEUDO.items()), browser) == 200
    twice = [*PSEUDO.items(), (b":path", b"/open")]
    assert over_http_2(person, twice, robot) in REFUSED | {0}
    assert over_http_2(person, list((PSEUDO | {b":path": b"/open"}).items()), robot) == 200


@pytest.fixture(scope="module")
def hypercorn(servers: Servers) -> Iterator[str]:
    with servers.serving("hypercorn", "attacked:asgi", HERE) as origin:
        yield origin
