"""The guard behind a proxy, and before an application that is a part of another one.

The attacks of this folder were tried by hand behind nginx (docs/guard.md has the result)."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.guard.test_attacks import BROWSER, PRIVATE, ROBOT, WHO, get
from tests.listener import Listener, copy
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.guard.conftest import Client, Servers

HERE = Path(__file__).parent
FORWARDED = re.compile(rb"\r\nX-Forwarded-For:([^\r\n]*)", re.IGNORECASE)

# the head of a request, and the address of its client -> the head that goes on
Rewrite = Callable[[bytes, str], bytes]


class Proxy(Listener):
    """A proxy that changes the head of the first request of each connection, and passes on
    everything else."""

    def __init__(self, to: str, rewrite: Rewrite) -> None:
        self._to = urlsplit(to)
        self._rewrite = rewrite
        super().__init__()
        self.origin = f"http://127.0.0.1:{self.port}"

    def handle(self, sock: socket.socket, host: str) -> None:
        with (
            suppress(OSError),
            sock,
            socket.create_connection((self._to.hostname, self._to.port)) as onward,
        ):
            received = b""
            while b"\r\n\r\n" not in received and (octets := sock.recv(65536)):
                received += octets
            head, end, body = received.partition(b"\r\n\r\n")
            onward.sendall(self._rewrite(head, host) + end + body)
            there = threading.Thread(target=copy, args=(sock, onward), daemon=True)
            there.start()
            copy(onward, sock)
            there.join()


def like_nginx(head: bytes, address: str) -> bytes:
    """One field with all that the client wrote, before the other fields."""
    chain = b",".join([*FORWARDED.findall(head), b" " + address.encode()])
    line, _, fields = FORWARDED.sub(b"", head).partition(b"\r\n")
    return b"%s\r\nX-Forwarded-For:%s\r\n%s" % (line, chain, fields)


def like_haproxy(head: bytes, address: str) -> bytes:
    """A field behind all that the client wrote."""
    return b"%s\r\nX-Forwarded-For: %s" % (head, address.encode())


FORGED = {
    "one": [b"X-Forwarded-For: 192.0.2.%d"],
    "chain": [b"X-Forwarded-For: 192.0.2.%d, 198.51.100.7, 127.0.0.1"],
    "several fields": [b"X-Forwarded-For: 192.0.2.%d", b"x-forwarded-for: 198.51.100.%d"],
    "empty members": [b"X-Forwarded-For: 192.0.2.%d,,"],
    "underscores": [b"X_Forwarded_For: 192.0.2.%d"],
    "underscores and dashes": [b"X_Forwarded-For: 192.0.2.%d", b"X-Forwarded_For: 192.0.2.%d"],
    "Forwarded": [b"Forwarded: for=192.0.2.%d;by=127.0.0.1"],
    "other names": [
        b"X-Real-IP: 192.0.2.%d",
        b"True-Client-IP: 192.0.2.%d",
        b"X-Client-IP: 192.0.2.%d",
    ],
    "with a port": [b"X-Forwarded-For: 192.0.2.9:%d"],
}


@pytest.mark.requirement("GUARD-1", "AUTX-2")
@pytest.mark.parametrize("rewrite", one_in(2, [like_nginx, like_haproxy]))
@pytest.mark.parametrize(
    "server", one_in(2, ["uvicorn-h11", "hypercorn", "gunicorn-threads", "werkzeug"])
)
def test_no_forged_field_makes_a_client_another_one(
    servers: Servers, server: str, rewrite: Rewrite
) -> None:
    with servers.serving(server, f"proxied:{servers.SERVERS[server].kind}", HERE) as origin:
        proxy = Proxy(origin, rewrite)
        person = servers.person(origin)

        def passed(client: Client, fields: list[bytes]) -> int:
            person.ask("/seen")
            for number in range(1, 6):
                own = (field.replace(b"%d", b"%d" % number) for field in fields)
                client.raw(get(b"/minute/x", *own).replace(WHO, ROBOT))
            return len(json.loads(person.ask("/seen").body))

        for number, fields in enumerate(FORGED.values(), 2):
            assert passed(servers.Client(proxy.origin, f"127.0.3.{number}"), fields) == 3
        # A client that gets past the proxy is known by its own address, not by the proxy's.
        assert passed(servers.Client(origin, "127.0.3.99"), []) == 3
        proxy.close()


def below_app(octets: bytes, prefix: bytes) -> bytes:
    """The attack with its target below the prefix."""
    method, _, rest = octets.partition(b" ")
    scheme = re.match(rb"[A-Za-z+]+://[^/?\s]*", rest)
    start = scheme.end() if scheme else 0
    slash = b"" if rest[start : start + 1] in (b"/", b"%", b"?") else b"/"
    return b"%s %s%s%s%s" % (method, rest[:start], prefix, slash, rest[start:])


PREFIXES = (b"/app", b"//app", b"/%61pp", b"/x/../app", b"/app;x")
MOUNTED = [
    "uvicorn-h11 asgi_inner",
    "uvicorn-httptools asgi_told",
    "hypercorn asgi_nested",
    "hypercorn asgi_outer",
    "waitress wsgi_inner",
    "gunicorn-threads wsgi_told",
    "wsgiref wsgi_told",
    "werkzeug wsgi_outer",
    "uvicorn-h11 asgi_stripped",
    "waitress wsgi_stripped",
    "gunicorn-sync wsgi_stripped",
]


def taking_app_away(head: bytes, address: str) -> bytes:
    """Rewrite like `rewrite ^/app(/.*)$ $1` of a proxy that compares the target as it came, and
    decodes nothing."""
    return re.sub(rb"\A(\S+ (?:[A-Za-z+]+://[^/?\s]*)?)/app(?=/)", rb"\1", head)


@pytest.fixture(scope="module", params=one_in(3, MOUNTED))
def mounted(request: pytest.FixtureRequest, servers: Servers) -> Iterator[tuple[str, str]]:
    """The address for clients, and the address that tells which requests the application has
    seen."""
    server, name = request.param.split(" ")
    with servers.serving(server, f"mounted:{name}", HERE) as origin:
        if not name.endswith("stripped"):
            yield origin, f"{origin}/app"
            return
        proxy = Proxy(origin, taking_app_away)
        yield proxy.origin, origin
        proxy.close()


@pytest.mark.requirement("GUARD-1", "SEC-1")
@pytest.mark.parametrize("attack", one_in(18, PRIVATE))
def test_nothing_gets_to_what_is_refused_below_a_path(
    mounted: tuple[str, str], servers: Servers, attack: str
) -> None:
    front, origin = mounted
    client, person = servers.person(front), servers.person(origin)
    seen = urlsplit(origin).path + "/seen"
    for prefix in PREFIXES:
        person.ask(seen)
        client.raw(below_app(PRIVATE[attack], prefix).replace(WHO, ROBOT))
        paths = [path for _, path, _ in json.loads(person.ask(seen).body)]
        assert not [path for path in paths if path.lstrip("/").startswith("private/")], prefix


@pytest.mark.requirement("GUARD-1")
def test_people_and_what_is_permitted_get_below_a_path(
    mounted: tuple[str, str], servers: Servers
) -> None:
    front, origin = mounted
    client, person = servers.person(front), servers.person(origin)
    seen = urlsplit(origin).path + "/seen"
    person.ask(seen)
    client.raw(get(b"/app/private/x").replace(WHO, BROWSER))
    client.raw(get(b"/app/open").replace(WHO, ROBOT))
    assert [path for _, path, _ in json.loads(person.ask(seen).body)] == ["/private/x", "/open"]
