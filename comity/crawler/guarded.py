"""An HTTP request over a connection of its own, to none but the addresses that may be reached.

Neither a cached DNS answer nor an open connection of another request can lead anywhere else. Imported when the first such request
is made: most crawls never make one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import BaseSettings

from comity.crawler.addresses import IPAddress, literal
from comity.policies.lines import MAX_BYTES


class Resolver(AbstractResolver):
    """Names those addresses of a host that may be reached."""

    def __init__(self, resolver: AbstractResolver, may_be_reached: Callable[[IPAddress], bool]) -> None:
        self._resolver = resolver
        self._may_be_reached = may_be_reached
        self.answered: list[IPAddress] = []
        self.refused = ""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        found = [(answer, literal(answer["host"])) for answer in await self._resolver.resolve(host, port, family)]
        allowed = [(answer, address) for answer, address in found if address is not None and self._may_be_reached(address)]
        if not allowed:
            self.refused = f"led to {host}, which is at {', '.join(answer['host'] for answer, _ in found)}"
            raise OSError(self.refused)
        self.answered = [address for _, address in allowed]
        return [answer for answer, _ in allowed]

    async def close(self) -> None:
        await self._resolver.close()


async def get(request: Request, resolver: Resolver, settings: BaseSettings) -> Response:
    """The answer, with a body of little more than MAX_BYTES octets where there is more. No redirect is followed."""
    connector = aiohttp.TCPConnector(
        resolver=resolver,
        use_dns_cache=False,
        force_close=True,
        ssl=settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"),
        local_addr=_bind_address(settings),
    )
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        timeout=aiohttp.ClientTimeout(total=request.meta["download_timeout"]),
    )
    try:
        url = yarl.URL(request.url, encoded=True)
        async with session, session.get(url, headers=request.headers.to_tuple_list(), allow_redirects=False) as answer:
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > MAX_BYTES:
                    break
    finally:
        await resolver.close()
    return Response(request.url, status=answer.status, headers=list(answer.raw_headers), body=bytes(body), request=request)


def _bind_address(settings: BaseSettings) -> tuple[str, int] | None:
    """DOWNLOAD_BIND_ADDRESS: a host, "host:port" or (host, port)."""
    setting = settings.get("DOWNLOAD_BIND_ADDRESS")
    if not setting:
        return None
    if isinstance(setting, str):
        host, _, port = setting.partition(":") if setting.count(":") == 1 else (setting, "", "")
        return host, int(port or 0)
    return setting[0], int(setting[1])
