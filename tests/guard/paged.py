"""A site behind the guard whose pages state something about themselves, for both kinds of servers.

/sent/NAME      the octets of PAGES, with its header fields, as a whole
/parts/NAME     the octets of PAGES in parts, without a length
/part/NAME      the first 40 octets of it, as a part (206); /whole/NAME: all octets, as a part
/gzip/NAME      compressed by gzip; /br/NAME: by something that the guard cannot read
/endless/       goes on until the server raises; /fails/ raises in the middle
/events/        an event, and the next one when /release was asked for
/file/NAME      a file, handed to the server if it takes files
/upload         what was written
/seen           the paths that the application was asked for, its Accept-Encoding, and the number of
                parts of the last endless response
/guard          what the guard counted"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from comity.guard import ASGIMiddleware, Guard, Incoming, WSGIMiddleware

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from comity.guard.asgi import Receive, Scope, Send

MAX_PAGE = 100_000

FILES = {
    "/robots.txt": b"User-agent: *\nDisallow: /private/\n",
    "/automation-preferences.txt": b"""scope: /
allowed-methods: GET, HEAD, POST, PUT, PATCH
allowed-automations: headless

scope: /sent/counted
allowed-methods: GET
concurrent-limit: 1
""",
}


def annotated(**directives: object) -> bytes:
    annotation = json.dumps({"@type": "AutomationPolicyAnnotation", **directives})
    return (
        b"<!doctype html><title>T</title><p>secret text</p>\n"
        b'<script type="application/ld+json">%s</script><p>more</p>' % annotation.encode()
    )


HTML = {"Content-Type": "text/html; charset=utf-8"}
NO_PURPOSE = annotated(allowedPurposes=[])
PAGES: dict[str, tuple[dict[str, str], bytes]] = {
    "plain": (HTML | {"ETag": '"plain"'}, b"<!doctype html><title>T</title><p>open text</p>"),
    "none": (HTML | {"ETag": '"none"'}, NO_PURPOSE),
    "counted": (HTML, NO_PURPOSE),
    "untyped": ({}, NO_PURPOSE),
    "xhtml": ({"Content-Type": "application/xhtml+xml"}, NO_PURPOSE),
    "text": ({"Content-Type": "text/plain"}, NO_PURPOSE),
    "search": (HTML, annotated(allowedPurposes=["search"])),
    "headless": (HTML, annotated(allowedAutomations=["headless"])),
    "session": (HTML, annotated(requireHumanInitiatedSession=True)),
    "named": (HTML, annotated(userAgent="PageBot", allowedPurposes=[])),
    "broken": (HTML, NO_PURPOSE.replace(b"}", b"")),
    "long": (HTML, b"<p>" + b"x" * MAX_PAGE),
    "late": (HTML, b"<p>" + b"x" * (MAX_PAGE - 1000) + NO_PURPOSE),
    "noai": (HTML, b'<meta name="robots" content="noai"><p>secret text</p>'),
    "reserved": (HTML, b'<meta name="tdm-reservation" content="1"><p>secret text</p>'),
    "equivalent": (HTML, b'<meta http-equiv="Content-Usage" content="tdm=n"><p>secret text</p>'),
    "tagged": (HTML | {"X-Robots-Tag": "noai"}, b"<p>secret text</p>"),
    "picture": ({"Content-Type": "image/png", "X-Robots-Tag": "noai"}, b"\x89PNG secret text"),
    "noindex": (HTML, b'<meta name="robots" content="noindex"><p>open text</p>'),
}


def uses(incoming: Incoming) -> tuple[str, ...]:
    return ("train",) if "trainbot" in incoming.field("user-agent").lower() else ()


def promises(incoming: Incoming) -> str:
    return "train-ai=n" if incoming.target.startswith("/upload") else ""


guard = Guard(
    os.environ.get("ORIGIN", "http://127.0.0.1:8000"),
    FILES,
    uses=uses,
    promises=promises,
    max_page=MAX_PAGE,
)
asked: list[str] = []
encodings: list[str] = []
endless: list[int] = [0]
RELEASED = threading.Event()
EVENT = b"data: one\n\n"
EVENTS = {"Content-Type": "text/event-stream"}
FOLDER = Path(tempfile.mkdtemp())


def answer(method: str, path: str) -> tuple[int, dict[str, str], Iterator[bytes], bool]:
    """The status, the fields, the parts of the body, and True if their length is to be sent."""
    if path == "/release":
        return 200, {"Content-Type": "text/plain"}, iter([b"released"]), True
    if path == "/seen":
        body = json.dumps({"asked": asked, "encodings": encodings, "endless": endless[0]}).encode()
        return 200, {"Content-Type": "application/json"}, iter([body]), True
    if path == "/guard":
        body = json.dumps({"passed": guard.passed, "refused": guard.refused}).encode()
        return 200, {"Content-Type": "application/json"}, iter([body]), True
    asked.append(f"{method} {path}")
    _, how, name = path.split("/", 2)
    if how == "upload":
        return 201, {"Content-Type": "text/plain"}, iter([b"written"]), True
    if how == "endless":
        return 200, dict(HTML), _endless(), False
    if how == "fails":
        return 200, dict(HTML), _failing(), False
    fields, body = PAGES[name]
    if how == "gzip":
        return 200, fields | {"Content-Encoding": "gzip"}, iter([gzip.compress(body)]), True
    if how == "br":
        return 200, fields | {"Content-Encoding": "br"}, iter([body]), True
    if how in ("part", "whole"):
        part = body[:40] if how == "part" else body
        ranged = {"Content-Range": f"bytes 0-{len(part) - 1}/{len(body)}"}
        return 206, fields | ranged, iter([part]), True
    if how == "parts":
        return 200, dict(fields), (body[at : at + 7] for at in range(0, len(body), 7)), False
    return 200, dict(fields), iter([body]), True


def _endless() -> Iterator[bytes]:
    for number in count(1):
        endless[0] = number
        yield b"secret " * 1000


def _failing() -> Iterator[bytes]:
    yield b"<p>secret text"
    raise RuntimeError("in the middle of a page")


async def site(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    given = dict(scope["headers"])
    encodings.append(given.get(b"accept-encoding", b"").decode())
    path = scope["path"]
    if path.startswith("/file/"):
        await _send_file(scope, send, path)
        return
    if path == "/release":
        RELEASED.set()
    if path == "/events/":
        events = [(name.lower().encode(), value.encode()) for name, value in EVENTS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": events})
        await send({"type": "http.response.body", "body": EVENT, "more_body": True})
        while not RELEASED.is_set():  # noqa: ASYNC110  # one Event for threads and for coroutines
            await asyncio.sleep(0.002)
        RELEASED.clear()
        await send({"type": "http.response.body", "body": EVENT})
        return
    status, fields, parts, has_length = answer(scope["method"], path)
    body = list(parts) if has_length else []
    if has_length:
        fields["Content-Length"] = str(sum(map(len, body)))
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for part in () if scope["method"] == "HEAD" else body if has_length else parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _send_file(scope: Scope, send: Send, path: str) -> None:
    fields, body = PAGES[path.rpartition("/")[2]]
    file = FOLDER / "page"
    file.write_bytes(body)
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if "http.response.pathsend" in (scope.get("extensions") or {}):
        await send({"type": "http.response.pathsend", "path": str(file)})
    else:
        await send({"type": "http.response.body", "body": body})


REASONS = {200: "200 OK", 201: "201 Created", 206: "206 Partial Content"}


def wsgi_site(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    encodings.append(environ.get("HTTP_ACCEPT_ENCODING", ""))
    path = environ["PATH_INFO"]
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    if path.startswith("/file/"):
        fields, body = PAGES[path.rpartition("/")[2]]
        file = FOLDER / "page"
        file.write_bytes(body)
        start_response("200 OK", list(fields.items()))
        wrapper = environ.get("wsgi.file_wrapper", lambda opened: iter(lambda: opened.read(8), b""))
        return wrapper(file.open("rb"))  # type: ignore[no-any-return]
    if path == "/release":
        RELEASED.set()
    if path == "/events/":
        start_response("200 OK", list(EVENTS.items()))
        return _events()
    if path.startswith("/written/"):  # by the `write` of the first servers
        fields, body = PAGES[path.rpartition("/")[2]]
        write = start_response("200 OK", list(fields.items()))
        write(body[:20])
        return [body[20:]]
    status, fields, parts, has_length = answer(environ["REQUEST_METHOD"], path)
    if environ["REQUEST_METHOD"] == "HEAD":
        start_response(REASONS[status], list(fields.items()))
        return []
    if has_length:
        body_parts = list(parts)
        length = {"Content-Length": str(sum(map(len, body_parts)))}
        start_response(REASONS[status], list((fields | length).items()))
        return body_parts
    return _generated(REASONS[status], fields, parts, start_response)


def _events() -> Iterator[bytes]:
    yield EVENT
    RELEASED.wait(300)
    RELEASED.clear()
    yield EVENT


def _generated(
    status: str, fields: dict[str, str], parts: Iterator[bytes], start_response: StartResponse
) -> Iterator[bytes]:
    """It starts its response with its first part, as generators do."""
    start_response(status, list(fields.items()))
    yield from parts


asgi = ASGIMiddleware(site, guard)
wsgi = WSGIMiddleware(wsgi_site, guard)
