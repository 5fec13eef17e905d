"""The proxy through which policy files are fetched.

COMITY_PROXY names it. Otherwise the environment does, as urllib and Scrapy read it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

DIRECT = "direct"  # the value of COMITY_PROXY for no proxy, even if the environment names one
REMEDY = f"write http://host:port, or COMITY_PROXY={DIRECT} to ask for policy files without one"


class Proxy(NamedTuple):
    """An HTTP proxy.

    Attributes:
        host: Its host.
        port: Its port.
        authorization: The value of Proxy-Authorization (RFC 9110 section-11.7.2); "" for none.
    """

    host: str
    port: int
    authorization: str = ""

    @classmethod
    def parse(cls, name: str, value: str, encoding: str, *, remedy: str = REMEDY) -> Self:
        """Read the URL of an HTTP proxy.

        `name`: the name of the setting or environment variable, for messages. `encoding`: the
        encoding of the user name and the password. PolicyError: the value is not such a URL, and
        the message ends with `remedy`; or the encoding does not exist.
        """
        try:
            parts = urlsplit(value if "://" in value else f"http://{value}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = None
        if (
            not host
            or parts.scheme != "http"
            or not (host.isascii() and host.isprintable() and " " not in host)
        ):
            scheme = value.partition("://")[0] if "://" in value else "http"
            redacted = printable(
                f"{scheme}://{value.rpartition('@')[2].rpartition('://')[2]}".encode(
                    errors="replace"
                )
            )
            raise PolicyError(f"{name} `{redacted}` is not an HTTP proxy: {remedy}")
        if parts.username is None:
            return cls(host, port or 80)
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        try:
            encoded = credentials.encode(encoding, "replace")
        except LookupError:
            raise PolicyError(
                f"HTTPPROXY_AUTH_ENCODING `{encoding}` is not an encoding: write utf-8 or latin-1"
            ) from None
        return cls(host, port or 80, "Basic " + base64.b64encode(encoded).decode())


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies for each scheme.

    Attributes:
        by_scheme: The scheme of a requested URL, and the proxy for it.
        may_bypass: True if hosts in the environment variable NO_PROXY are reached directly.
    """

    by_scheme: tuple[tuple[str, Proxy], ...] = ()
    may_bypass: bool = False

    @classmethod
    def read(cls, setting: str, *, is_environment_read: bool, encoding: str = "latin-1") -> Self:
        """Read the setting COMITY_PROXY, or the environment if the setting is empty.

        `is_environment_read`: False to ignore the environment. PolicyError: a value is not the URL
        of an HTTP proxy, or `encoding` does not exist.
        """
        if setting == DIRECT or not (setting or is_environment_read):
            return cls()
        if setting:
            proxy = Proxy.parse("COMITY_PROXY", setting, encoding)
            return cls((("http", proxy), ("https", proxy)))
        variables = getproxies()
        proxies = [
            (scheme, variables[scheme]) for scheme in ("http", "https") if variables.get(scheme)
        ]
        return cls(
            tuple(
                (scheme, Proxy.parse(f"{scheme}_proxy", value, encoding))
                for scheme, value in proxies
            ),
            may_bypass=True,
        )

    def select(self, scheme: str, host: str) -> Proxy | None:
        """Return the proxy for URLs with this scheme and host; None for a direct connection."""
        proxy = dict(self.by_scheme).get(scheme)
        return None if proxy is None or (self.may_bypass and proxy_bypass(host)) else proxy
