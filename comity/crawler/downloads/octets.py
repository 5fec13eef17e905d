"""A request of Scrapy as HTTP/1.1 (RFC 9112)."""

from __future__ import annotations

import re

from scrapy.exceptions import NotSupported
from scrapy.http import Request

from comity.gate.fetching.network import Route
from comity.policies.syntax.urls import target_of

# RFC 9110 section-8.6: methods for which the server expects a length, even of an empty body.
WITH_LENGTH = ("POST", "PUT", "PATCH")

# Fields that only this module writes.
_OWN = frozenset((b"Content-Length", b"Host", b"Proxy-Authorization", b"Transfer-Encoding"))

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# A head that can be read in one way only: one request line, and lines of one field each.
_HEAD = re.compile(rb"%s [!-~]+ HTTP/1\.1\r\n(?:%s: [\t -~\x80-\xff]*\r\n)+" % (_TOKEN, _TOKEN))


def octets_of(request: Request, route: Route, host: bytes) -> bytes:
    """Return the octets of the request. The URL is sent as it is, without its fragment.

    `host`: the value of Host, unless the request has one. NotSupported: the method, the URL or a
    field has characters that a request cannot have.
    """
    headers = request.headers
    target = target_of(request.url)
    lines = [
        b"%s: %s\r\n" % (name, value)
        for name, values in dict.items(headers)
        if name not in _OWN
        for value in values
    ]
    if request.body or request.method in WITH_LENGTH:
        lines.append(b"Content-Length: %d\r\n" % len(request.body))
    if route.proxy is not None and route.destination.scheme == "http":
        target = f"http://{host.decode()}{target}"
        if route.proxy.authorization:
            lines.append(
                b"Proxy-Authorization: %s\r\n" % route.proxy.authorization.encode("latin-1")
            )
    if own_host := dict.get(headers, b"Host"):
        host = own_host[-1]
    try:
        first = f"{request.method} {target} HTTP/1.1\r\n".encode("ascii")
    except UnicodeEncodeError:
        first = b""
    head = b"%sHost: %s\r\n%s" % (first, host, b"".join(lines))
    if not (_HEAD.fullmatch(head) and head.count(b"\n") == 2 + len(lines)):
        raise NotSupported(
            f"{request} cannot be sent: its method, its URL or one of its header fields has"
            " characters that HTTP does not permit"
        )
    return b"%s\r\n%s" % (head, request.body)
