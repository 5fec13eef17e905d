"""The operator's settings of the client for policy files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any, Self

from comity.gate.fetching.proxies import Proxies
from comity.gate.settings import Settings
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

TLS_VERSIONS = {
    "TLSv1.0": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TLS:
    """Demands on servers, by the settings of Scrapy."""

    is_verified: bool = True  # DOWNLOAD_VERIFY_CERTIFICATES
    least: str | None = None  # DOWNLOAD_TLS_MIN_VERSION
    most: str | None = None  # DOWNLOAD_TLS_MAX_VERSION
    ciphers: str | None = None  # DOWNLOADER_CLIENT_TLS_CIPHERS

    def context(self) -> ssl.SSLContext:
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
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Crawls with the same ones may share what they fetch."""

    user_agent: str
    proxies: Proxies
    tls: TLS
    bind_address: tuple[str, int] | None

    @classmethod
    def from_settings(cls, settings: Settings, *, user_agent: str, proxy: str) -> Self:
        """`proxy`: COMITY_PROXY. PolicyError, with what to write instead, where a setting makes no sense."""
        if not user_agent.isprintable():
            raise PolicyError(
                f"USER_AGENT `{printable(user_agent.encode(errors='replace'))}` cannot be sent: write one line"
            )
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
            bind_address=_bind_address(settings.get("DOWNLOAD_BIND_ADDRESS")),
        )


def _tls_version(settings: Settings, name: str) -> str | None:
    value: str | None = settings.get(name)
    if value is not None and value not in TLS_VERSIONS:
        raise PolicyError(
            f"{name} `{printable(str(value).encode())}` is no version of TLS: write {', '.join(TLS_VERSIONS)}"
        )
    return value


def _bind_address(setting: Any) -> tuple[str, int] | None:
    """DOWNLOAD_BIND_ADDRESS: a host, "host:port" or (host, port)."""
    if not setting:
        return None
    try:
        if isinstance(setting, str):
            host, _, port = setting.partition(":") if setting.count(":") == 1 else (setting, "", "")
            return host, int(port or 0)
        return str(setting[0]), int(setting[1])
    except (ValueError, TypeError, IndexError):
        raise PolicyError(
            f"DOWNLOAD_BIND_ADDRESS `{setting}` is no address: write a host, or host:port"
        ) from None
