"""The way to the server of a request."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from scrapy.exceptions import NotSupported, UnsupportedURLSchemeError
from scrapy.http import Request
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached

from comity.gate.fetching.network import Destination, Route
from comity.gate.fetching.options import bind_address
from comity.gate.fetching.proxies import Proxy
from comity.policies import PolicyError
from comity.policies.syntax.urls import DEFAULT_PORTS


class Routes:
    """The routes of requests: their servers, and the meta keys `proxy` and `bindaddress`."""

    def __init__(self, settings: BaseSettings) -> None:
        self._encoding: str = settings.get("HTTPPROXY_AUTH_ENCODING") or "latin-1"

    def of(self, request: Request) -> tuple[Route, bytes]:
        """Return the route of the request, and the value of its Host field.

        UnsupportedURLSchemeError: the URL is not one of http or https. NotSupported: the proxy or
        the own address cannot be used.
        """
        parts = urlparse_cached(request)
        route, host = _server(parts.scheme, parts.netloc)
        meta = request.meta
        try:
            if proxy := meta.get("proxy"):
                route = route._replace(proxy=self._proxy(proxy, request))
            if address := meta.get("bindaddress"):
                route = route._replace(bind_address=bind_address("bindaddress", address))
        except PolicyError as error:
            raise NotSupported(str(error)) from None
        return route, host

    def _proxy(self, url: str, request: Request) -> Proxy:
        proxy = Proxy.parse("proxy", url, self._encoding, remedy="write http://host:port")
        # The middleware for proxies moves the credentials of their URL into this field.
        values = request.headers.getlist("Proxy-Authorization")
        return proxy._replace(authorization=values[-1].decode("latin-1")) if values else proxy


@lru_cache(maxsize=4096)
def _server(scheme: str, netloc: str) -> tuple[Route, bytes]:
    try:
        parts = urlsplit(f"{scheme}://{netloc}")
        name, port = parts.hostname, parts.port
    except ValueError:
        name = None
    if not name or not name.isascii() or scheme not in DEFAULT_PORTS:
        raise UnsupportedURLSchemeError(f"{scheme}://{netloc} is not a server of http or https")
    default = DEFAULT_PORTS[scheme]
    host = f"[{name}]" if ":" in name else name
    if port not in (None, default):
        host = f"{host}:{port}"
    return Route(Destination(scheme, name, port or default)), host.encode()
