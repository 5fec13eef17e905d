"""The parts that requests and responses pass: policies, access, pace, and pages of responses."""

from __future__ import annotations

from collections.abc import Callable
from time import time

from comity.gate.fetching.fetcher import OriginPolicies, PolicyFetcher
from comity.gate.fetching.files import PolicyFiles
from comity.gate.fetching.freshness import TOO_MANY, Headers, retry_after
from comity.gate.http import Request
from comity.gate.options import Options
from comity.gate.pace.gate import Gate
from comity.gate.pace.ledger import Ledger
from comity.gate.pace.pace import Pace
from comity.gate.pace.standstill import Standstill
from comity.gate.pages.resources import Resources
from comity.gate.pages.responses import ResponsePages
from comity.gate.request.access import Access
from comity.gate.request.facts import RequestFacts
from comity.gate.request.passage import Passages
from comity.gate.request.referrals import Referrals
from comity.gate.request.sessions import Sessions
from comity.gate.run.observer import Observer
from comity.gate.run.surroundings import Run
from comity.gate.settings import Settings


class Parts:
    """The parts of one crawl, or of a client without Scrapy."""

    def __init__(
        self,
        run: Run,
        settings: Settings,
        options: Options,
        files: PolicyFiles,
        ledger: Ledger,
        *,
        looked_up: Callable[[OriginPolicies], None] = lambda policies: None,
        observer: Observer = Observer(),  # noqa: B008  # Observer has no state
    ) -> None:
        """Create the parts.

        `settings`: settings of Scrapy itself, such as DOWNLOAD_DELAY. They apply in addition to
        comity's `options`.
        `looked_up`: called with the policies of an origin after each look-up."""
        self.observer = observer
        self.options = options
        self.agent = options.agent
        self.client = files.client
        self.passages = Passages()
        self.pace = Pace(
            self.passages,
            run,
            ledger,
            settings,
            min_delay=options.min_delay,
            max_delay=options.max_delay,
            observer=observer,
        )
        self.policies = PolicyFetcher(
            run,
            files,
            self.agent,
            looked_up=looked_up,
            overloaded=self.pace.overloaded,
            observer=observer,
        )
        self.referrals = Referrals(
            self.passages, self.policies, self.client, is_inner_allowed=options.inner == "allow"
        )
        self.sessions = Sessions(options.sessions, files.store)
        self.access = Access(
            self.passages,
            run.stats,
            RequestFacts(settings, self.agent),
            self.agent,
            self.referrals,
            self.sessions,
            skip_unusable=options.skip_unusable,
            observer=observer,
        )
        self.standstill = Standstill(self.pace)
        self.gate = Gate(
            run,
            self.policies,
            self.access,
            self.referrals,
            self.pace,
            max_delay=options.max_delay,
            hold=self.hold,
        )
        self._resources = Resources(
            run,
            self.client,
            self.access,
            self.gate,
            self.pace,
            options=options,
            back_off=self.back_off,
            observer=observer,
        )
        self.responses = ResponsePages(
            self.passages,
            run.stats,
            self.agent,
            self.policies,
            self.referrals,
            self._resources,
            redacts=options.elements == "redact",
            obeys_rel_nofollow=options.rel_nofollow,
        )

    async def close(self) -> None:
        """End all fetches of policies and resources, and let all waiting requests end."""
        await self._resources.close()
        await self.policies.close()
        self.pace.close()
        self.standstill.close()

    def hold(self, request: Request, wait: float) -> bool:
        """Give the request back to comity's scheduler for `wait` seconds, if it came from there.

        Return False if the request was not given back. Here there is no scheduler; crawls with a
        scheduler override this method."""
        return False

    def back_off(self, url: str, status: int, headers: Headers) -> float | None:
        """Pause the host of the URL if the status of its answer is one of TOO_MANY.

        Return the pause in seconds. None means any other status: then the host is not paused."""
        return (
            self.pace.overloaded(url, status, retry_after(headers, time()))
            if status in TOO_MANY
            else None
        )
