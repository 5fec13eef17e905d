"""The guard in front of a WSGI application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from comity.guard.answers import Answer
from comity.guard.guard import Guard, Pass
from comity.guard.incoming import Incoming, target_from, target_of_path
from comity.guard.pages import HeldPage, has_body, has_several_ranges, readable_codings

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

MAX_DISCARDED = 64 * 1024  # the maximum number of octets to read of a refused request's body

ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class WSGIMiddleware:
    """Guards a WSGI application: `app = WSGIMiddleware(app, guard)`."""

    def __init__(
        self, app: WSGIApplication, guard: Guard, *, script_name: str | None = None
    ) -> None:
        """`script_name`: the path under which clients know the application, e.g. `/app`. "" is the
        root of the site. None: the server's SCRIPT_NAME is used. Some servers let any client set
        that value, so a request is then judged with and without it."""
        self._app = app
        self._guard = guard
        self._script_name = None if script_name is None else script_name.rstrip("/")

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        checked = self._guard.check(_incoming(environ, self._script_name))
        if isinstance(checked, Answer):
            _discard_body(environ)
            start_response(checked.status_line, list(checked.headers))
            return [checked.body]
        if checked.is_counted:
            start_response = _counting(checked, environ, start_response)
        try:
            body = (
                _PageBody(self._app, checked, environ, start_response).as_sent
                if checked.reads_pages
                else self._app(environ, start_response)
            )
        except BaseException:
            checked.end()
            raise
        return _CountedBody(body, checked) if checked.is_counted else body


def _incoming(environ: WSGIEnvironment, script_name: str | None) -> Incoming:
    fields = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            fields[name.replace("_", "-").lower()] = environ[name]
    target, *aliases = _targets(environ, script_name)
    root = environ.get("SCRIPT_NAME", "").rstrip("/") if script_name is None else script_name
    return Incoming(
        method=environ.get("REQUEST_METHOD", "GET"),
        target=target,
        fields=fields,
        peer=environ.get("REMOTE_ADDR", ""),
        aliases=tuple(aliases),
        root=target_of_path(_octets(root), b""),
    )


def _targets(environ: WSGIEnvironment, script_name: str | None) -> Iterator[str]:
    """Yield the targets that a client of the origin may mean.

    These are the target in the request line, if the server provides it (gunicorn, Werkzeug, uWSGI
    and waitress do), and the path in SCRIPT_NAME and PATH_INFO, which the application sees."""
    below, query = _octets(environ.get("PATH_INFO", "")), _octets(environ.get("QUERY_STRING", ""))
    for name in ("RAW_URI", "REQUEST_URI"):
        if environ.get(name):
            sent = _octets(environ[name])
            if script_name and sent.startswith(b"/") and not _is_within(sent, _octets(script_name)):
                sent = _octets(script_name) + sent  # a proxy has removed the script_name
            yield target_from(sent)
    if script_name is not None:
        # A server that accepts a SCRIPT_NAME from the client may remove the first slash of
        # PATH_INFO.
        slash = b"/" if below and not below.startswith(b"/") else b""
        yield target_of_path(_octets(script_name) + slash + below, query)
    else:
        yield target_of_path(_octets(environ.get("SCRIPT_NAME", "")) + below, query)
        yield target_of_path(below, query)


def _is_within(target: bytes, path: bytes) -> bool:
    return target.startswith(path) and target[len(path) : len(path) + 1] in (b"", b"/", b"?")


def _octets(text: str) -> bytes:
    """Return the octets of a native string (PEP 3333)."""
    return text.encode("latin-1", "replace")


def _discard_body(environ: WSGIEnvironment) -> None:
    """Read a small or chunked body of a refused request, up to MAX_DISCARDED octets.

    A server that closes a connection with an unread body resets it, and the answer is lost."""
    length = environ.get("CONTENT_LENGTH") or "0"
    if (
        length.isascii()
        and length.isdigit()
        and len(length) < 9
        and 0 < int(length) <= MAX_DISCARDED
    ):
        environ["wsgi.input"].read(int(length))
    elif environ.get("wsgi.input_terminated") and environ.get("HTTP_TRANSFER_ENCODING"):
        environ["wsgi.input"].read(MAX_DISCARDED)


def _counting(
    passed: Pass, environ: WSGIEnvironment, start_response: StartResponse
) -> StartResponse:
    """Wrap `start_response` to report the length of the response to the guard."""
    method = environ.get("REQUEST_METHOD", "")  # the application may write another one into it

    def counting_start_response(
        status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None, /
    ) -> Any:
        lengths = (value for name, value in headers if name.lower() == "content-length")
        passed.begins(next(lengths, None), has_body=has_body(method, status[:3]))
        write = (
            start_response(status, headers, exc_info)
            if exc_info
            else start_response(status, headers)
        )

        def counting_write(body: bytes) -> object:
            passed.sends(len(body))
            return write(body)

        return counting_write

    return counting_start_response


class _CountedBody:
    """The body of a response that counts as in flight."""

    def __init__(self, body: Iterable[bytes], passed: Pass) -> None:
        self._body = body
        self._passed = passed

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self._body:
                self._passed.sends(len(part))
                yield part
        finally:
            self._passed.end()  # before the server sends the end of the response

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close:
                close()
        finally:
            self._passed.end()


class _PageBody:
    """The body of a response that the guard may have to read, or of its answer in place of it."""

    def __init__(
        self,
        app: WSGIApplication,
        passed: Pass,
        environ: WSGIEnvironment,
        start_response: StartResponse,
    ) -> None:
        self._passed = passed
        self._method = environ.get("REQUEST_METHOD", "")
        self._start_response = start_response
        self._held: HeldPage | None = None
        self._held_start: tuple[str, list[tuple[str, str]]] = ("", [])
        self._is_started = False  # True if the server has the status and the header fields
        if "HTTP_ACCEPT_ENCODING" in environ:
            environ["HTTP_ACCEPT_ENCODING"] = readable_codings(environ["HTTP_ACCEPT_ENCODING"])
        if has_several_ranges(environ.get("HTTP_RANGE", "")):
            del environ["HTTP_RANGE"]
        self._body = app(environ, self._start)

    @property
    def as_sent(self) -> Iterable[bytes]:
        """The body to give to the server.

        It is the application's own object if the response need not wait, because servers recognise
        files by their type. It is a list if the application's own is: the servers send its length.
        """
        if self._is_started:
            return self._body
        return [b"".join(self)] if isinstance(self._body, (list, tuple)) else self

    def _start(
        self, status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None, /
    ) -> Any:
        """The `start_response` of the application."""
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        held = (
            None
            if self._is_started
            else self._passed.hold(
                int(status[:3]), fields, has_body=has_body(self._method, status[:3])
            )
        )
        if held is None:
            self._held, self._is_started = None, True
            return (
                self._start_response(status, headers, exc_info)
                if exc_info
                else self._start_response(status, headers)
            )
        self._held, self._held_start = held, (status, list(headers))
        return held.add

    def __iter__(self) -> Iterator[bytes]:
        for part in self._body:
            if self._held is None:
                yield part
            else:
                self._held.add(part)
                if self._held.answer is not None:
                    break
        if self._held is not None:
            held, self._held = self._held, None
            held.end()
            yield self._end(held)

    def _end(self, held: HeldPage) -> bytes:
        self._is_started = True
        if (answer := held.answer) is not None:
            self._start_response(answer.status_line, list(answer.headers))
            return answer.body
        self._start_response(*self._held_start)
        return held.body

    def close(self) -> None:
        close = getattr(self._body, "close", None)
        if close:
            close()
