"""The operator's settings of the client for policy files."""

from __future__ import annotations

import logging
import os
import ssl
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from comity.gate.fetching.proxies import Proxies
from comity.gate.settings import Settings
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

if TYPE_CHECKING:
    from comity.signatures.signer import Signer

logger = logging.getLogger(__name__)

TLS_VERSIONS = {
    "TLSv1.0": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TLS:
    """The requirements on TLS connections, by the settings of Scrapy.

    Attributes:
        is_verified: DOWNLOAD_VERIFY_CERTIFICATES.
        least: DOWNLOAD_TLS_MIN_VERSION; None for Python's default.
        most: DOWNLOAD_TLS_MAX_VERSION; None for Python's default.
        ciphers: DOWNLOADER_CLIENT_TLS_CIPHERS; None for Python's default.
    """

    is_verified: bool = True
    least: str | None = None
    most: str | None = None
    ciphers: str | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context for connections that meet these requirements."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.is_verified:
            context.load_default_certs()
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.least:
            context.minimum_version = TLS_VERSIONS[self.least]
        if self.most:
            context.maximum_version = TLS_VERSIONS[self.most]
        if self.ciphers:
            context.set_ciphers(self.ciphers)
        context.set_alpn_protocols(["http/1.1"])
        _log_keys(context)
        return context


def _log_keys(context: ssl.SSLContext) -> None:
    """Write the keys of TLS sessions into the file that SSLKEYLOGFILE names, if it is set."""
    path = os.environ.get("SSLKEYLOGFILE")
    if not path or sys.flags.ignore_environment:
        return
    try:
        context.keylog_filename = path
    except OSError as error:
        logger.warning(
            "Cannot write TLS session keys to %(path)s: %(error)s. Set the environment variable"
            " SSLKEYLOGFILE to a path that can be written, or unset it",
            {"path": path, "error": error.strerror},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The options of the client. Crawls with equal options may share the fetched files.

    Attributes:
        user_agent: The value of User-Agent.
        proxies: The proxies.
        tls: The requirements on TLS connections.
        bind_address: The own host and port that connections come from; None for any.
        signer: The signer of all requests; None if they are not signed.
    """

    user_agent: str
    proxies: Proxies
    tls: TLS
    bind_address: tuple[str, int] | None
    signer: Signer | None = None

    def signed_fields(self, url: str) -> dict[str, str]:
        """Return the header fields that sign one request to the URL; {} without a signer."""
        return self.signer.fields(url) if self.signer is not None else {}

    @classmethod
    def from_settings(
        cls, settings: Settings, *, user_agent: str, proxy: str, signer: Signer | None = None
    ) -> Self:
        """Read the options. `proxy`: the value of COMITY_PROXY.

        PolicyError: a setting is invalid; the message says what to write instead.
        """
        if not user_agent.isprintable():
            shown = printable(user_agent.encode(errors="replace"))
            raise PolicyError(f"USER_AGENT `{shown}` cannot be sent: write one line")
        return cls(
            user_agent=user_agent,
            proxies=Proxies.read(
                proxy,
                is_environment_read=settings.getbool("HTTPPROXY_ENABLED"),
                encoding=settings.get("HTTPPROXY_AUTH_ENCODING") or "latin-1",
            ),
            tls=TLS(
                is_verified=settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"),
                least=_tls_version(settings, "DOWNLOAD_TLS_MIN_VERSION"),
                most=_tls_version(settings, "DOWNLOAD_TLS_MAX_VERSION"),
                ciphers=settings.get("DOWNLOADER_CLIENT_TLS_CIPHERS"),
            ),
            bind_address=bind_address(
                "DOWNLOAD_BIND_ADDRESS", settings.get("DOWNLOAD_BIND_ADDRESS")
            ),
            signer=signer,
        )


def _tls_version(settings: Settings, name: str) -> str | None:
    value: str | None = settings.get(name)
    if value is not None and value not in TLS_VERSIONS:
        shown = printable(str(value).encode())
        raise PolicyError(
            f"{name} `{shown}` is not a version of TLS: write {', '.join(TLS_VERSIONS)}"
        )
    return value


def bind_address(name: str, setting: Any) -> tuple[str, int] | None:
    """Return the own host and port; None if the setting is empty.

    `setting`: a host, "host:port" or (host, port). PolicyError: it is invalid; `name` is its name,
    for the message.
    """
    if not setting:
        return None
    try:
        if isinstance(setting, str):
            host, _, port = setting.partition(":") if setting.count(":") == 1 else (setting, "", "")
            return host, int(port or 0)
        return str(setting[0]), int(setting[1])
    except (ValueError, TypeError, IndexError):
        raise PolicyError(
            f"{name} `{setting}` is not an address: write a host, or host:port"
        ) from None
