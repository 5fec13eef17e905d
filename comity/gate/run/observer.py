"""The place to which the parts of a crawl tell what they do, for its report and its metrics (comity.report).

Each part tells its Observer, at the place where it decides or counts. This one hears nothing; with COMITY_REPORT or
COMITY_METRICS a `report.collector.Collector` takes its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from comity.policies import ActionRequest, Decision
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.windows import StatedLimit, Window


class Paced(Protocol):
    """A limiter, as far as an observer looks at it."""

    name: str
    floor: tuple[Window, ...]  # the operator's own limits
    windows: tuple[Window, ...]  # all of them
    in_flight: int
    unread: tuple[StatedLimit, ...]  # limits whose values cannot be read


class Observer:
    """Hears everything and does nothing with it."""

    def decided(self, url: str, decision: Decision) -> None:
        """A request was decided on for the last time before it goes out or is refused."""

    def stopped(self, url: str, decision: Decision) -> None:
        """The response to a request that was allowed was refused by its header fields."""

    def starting(self, limiters: Sequence[Paced]) -> Any:
        """A request goes out under these limiters, its host's first. What is returned is given to `settled`."""

    def settled(self, limiters: Sequence[Paced], start: Any) -> None:
        """The headers of its answer came, or it failed."""

    def received(self, url: str, status: int) -> None:
        """A response came from the network."""

    def asked_for_files(self, origin: str, requests: int) -> None:
        """So many requests for policy files went to the origin."""

    def looked_up(self, origin: str, files: Mapping[str, Fetched], error: str) -> None:
        """The policies of an origin are known, by the URLs of their files. `error`: why it cannot be crawled; "": it can."""

    def backed_off(self, url: str, status: int) -> None:
        """The host of the URL answered that it is asked too often."""

    def tagged(self, tag: Mapping[str, Any]) -> None:
        """An item has got this tag."""

    def asked_to_act(self, request: ActionRequest) -> None:
        """A site asks for an action, for the first time by this copy of its file."""
