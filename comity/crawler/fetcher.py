"""Fetches the policy files of an origin: one fetch in flight per origin, one deadline over all hops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy.http import Request

from comity.crawler.store import PolicyStore
from comity.policies import Site

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class ClosingError(Exception):
    """The crawl is ending: nothing more is fetched, and nothing was learnt about the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of an origin, and until when they may be used without asking again."""

    site: Site
    fresh_until: float  # seconds since the epoch; where `unreachable`, when it may be asked again
    unreachable: bool  # robots.txt could not be had and no copy stands in: everything is refused
    why: str = ""  # where `unreachable`: what happened


class PolicyFetcher:
    """`known` answers from memory; `get` asks the store and then the server."""

    def __init__(self, crawler: Crawler, store: PolicyStore, *, timeout: float) -> None:
        raise NotImplementedError

    def known(self, origin: str) -> Policies | None:
        """The policies where they are in memory and fresh."""
        raise NotImplementedError

    async def get(self, origin: str) -> Policies:
        """The policies, fetched where needed. Raises ClosingError when the crawl ends meanwhile, nothing else."""
        raise NotImplementedError

    def owns(self, request: Request) -> bool:
        """Whether the request is one of ours for a policy file (by identity: no meta key can claim it)."""
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError
