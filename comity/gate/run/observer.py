"""The hooks through which a crawl's report and metrics (comity.report) learn about events.

Each part of the crawl calls a method of its Observer at the place where it decides or counts. The
methods of this class do nothing. With COMITY_REPORT or COMITY_METRICS, the observer is a
`report.collector.Collector`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from comity.policies import ActionRequest, Decision
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.windows import StatedLimit, Window


class Paced(Protocol):
    """The attributes of a limiter that observers read.

    Attributes:
        name: The limited host name, or the limited scope of automation-preferences.txt.
        floor: The operator's own limits.
        windows: The floor, and every limit that origins ask for.
        in_flight: The number of requests under way.
        unread: Limits with unreadable values.
    """

    name: str
    floor: tuple[Window, ...]
    windows: tuple[Window, ...]
    in_flight: int
    unread: tuple[StatedLimit, ...]


class Observer:
    """An observer that ignores all events."""

    def decided(self, url: str, decision: Decision) -> None:
        """This is the final decision about a request: it goes out now, or is refused."""

    def stopped(self, url: str, decision: Decision) -> None:
        """A request was allowed and made, but the header fields of its response refuse it."""

    def starting(self, limiters: Sequence[Paced]) -> Any:
        """A request goes out under these limiters, its host's first.

        The returned value is passed to `settled`."""

    def settled(self, limiters: Sequence[Paced], start: Any) -> None:
        """The header fields of a request's answer came, or the request failed.

        `start`: the value that `starting` returned for this request."""

    def received(self, url: str, status: int) -> None:
        """A response came from the network."""

    def asked_for_files(self, origin: str, requests: int) -> None:
        """Requests for policy files went to the origin; `requests` is their number."""

    def looked_up(self, origin: str, files: Mapping[str, Fetched], error: str) -> None:
        """The policies of an origin are known.

        `files`: URL of each policy file -> its answer. `error`: the reason why the origin cannot be
        crawled. "" means that it can be crawled."""

    def backed_off(self, url: str, status: int) -> None:
        """The host of the URL answered that it gets too many requests."""

    def tagged(self, tag: Mapping[str, Any], url: str = "") -> None:
        """An item got this tag. `url`: of its page; "" if it has none."""

    def asked_to_act(self, request: ActionRequest) -> None:
        """A site asks for an action. Each copy of its file is reported once."""
