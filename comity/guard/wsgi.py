"""The guard in front of a WSGI application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from comity.guard.answers import Answer
from comity.guard.guard import Guard, Pass
from comity.guard.incoming import Incoming, target_from

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

MAX_DISCARDED = 64 * 1024  # octets of a refused request's body that are read

ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class WSGIMiddleware:
    """`app = WSGIMiddleware(app, guard)`."""

    def __init__(self, app: WSGIApplication, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        checked = self._guard.check(_incoming(environ))
        if isinstance(checked, Answer):
            _discard_body(environ)
            start_response(checked.status_line, list(checked.headers))
            return [checked.body]
        if not checked.is_counted:
            return self._app(environ, start_response)
        try:
            return _Counted(self._app(environ, _counting(checked, environ, start_response)), checked)
        except BaseException:
            checked.end()
            raise


def _incoming(environ: WSGIEnvironment) -> Incoming:
    fields = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            fields[name.replace("_", "-").lower()] = environ[name]
    # As the request line had it, where the server says so (gunicorn; uWSGI, Werkzeug); else from what it decoded.
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if target:
        path, _, query = _octets(target).partition(b"?")
    else:
        path = _octets(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""))
        path, query = path.replace(b"%", b"%25").replace(b"?", b"%3F"), _octets(environ.get("QUERY_STRING", ""))
    return Incoming(
        method=environ.get("REQUEST_METHOD", "GET"),
        target=target_from(path, query),
        fields=fields,
        peer=environ.get("REMOTE_ADDR", ""),
    )


def _octets(text: str) -> bytes:
    """Of a native string (PEP 3333)."""
    return text.encode("latin-1", "replace")


def _discard_body(environ: WSGIEnvironment) -> None:
    """Reads a small body: a server that closes with some of it unread would reset the connection, and the answer be lost."""
    length = environ.get("CONTENT_LENGTH") or "0"
    if length.isascii() and length.isdigit() and len(length) < 9 and 0 < int(length) <= MAX_DISCARDED:
        environ["wsgi.input"].read(int(length))


def _counting(passed: Pass, environ: WSGIEnvironment, start_response: StartResponse) -> StartResponse:
    """`start_response`, with the length of the response told to the guard."""

    def counted(status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None, /) -> Any:
        lengths = (value for name, value in headers if name.lower() == "content-length")
        has_body = environ.get("REQUEST_METHOD") != "HEAD" and status[:3] not in ("204", "304")
        passed.begins(next(lengths, None), has_body=has_body)
        write = start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        def counted_write(body: bytes) -> object:
            passed.sends(len(body))
            return write(body)

        return counted_write

    return counted


class _Counted:
    """The body of a response that counts as in flight."""

    def __init__(self, body: Iterable[bytes], passed: Pass) -> None:
        self._body = body
        self._passed = passed

    def __iter__(self) -> Iterator[bytes]:
        for part in self._body:
            self._passed.sends(len(part))
            yield part

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close:
                close()
        finally:
            self._passed.end()
