"""The record of each request on its way through the crawler.

`Passages.of(request)` returns the record of a request, its Passage. All parts of the crawler keep
their notes about the request in this record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary, ref

from comity.gate.fetching.reach import Reach
from comity.gate.http import Request
from comity.gate.request.sessions import DeclaredSession
from comity.policies import Decision, Site
from comity.policies.answers.request import Facts, Session


class Outgoing(NamedTuple):
    """A request as it was admitted, and the policies that apply to its response.

    Attributes:
        url: The URL at the time of the admission. The request object may change later.
        site: The policies by which the request was admitted.
        decision: The decision of those policies.
        facts: The facts of the request, with its session.
        session: The session that goes out with the request. None means no session.
    """

    url: str
    site: Site
    decision: Decision
    facts: Facts
    session: DeclaredSession | None


class Question(NamedTuple):
    """Everything except the time that the answer about a request depends on.

    Attributes:
        url: The URL of the request.
        method: The method of the request.
        facts: Its facts without the session. PLAIN if the policies ask for no facts.
        session: The session that the request may carry.
    """

    url: str
    method: str
    facts: Facts
    session: DeclaredSession | None


class Answer(NamedTuple):
    """The last answer about a request.

    Attributes:
        question: The form of the request that the answer is about.
        site: The policies that were asked. The reference is weak, so that waiting requests keep no
            site in memory. None: the URL has no origin, or the referring site may not link to it.
        decision: The decision of those policies.
        session: The session that the request goes with.
        passes: True if the answer may change with time.
    """

    question: Question
    site: ref[Site] | None
    decision: Decision
    session: DeclaredSession | None = None
    passes: bool = False


class Handling:
    """The handling of a request or of its response, by tasks that may make more requests.

    Contexts refer to it, and may outlive the request and the crawl. So it is an object of its own.

    Attributes:
        crawl: Tells the crawl from others.
        reach: The reach of the site that leads to requests made meanwhile. None means that the
            operator leads to them.
    """

    __slots__ = ("crawl", "reach")

    def __init__(self, crawl: object, reach: Reach | None) -> None:
        self.crawl = crawl
        self.reach = reach


@dataclass(slots=True, eq=False)
class Passage:
    """The record of one request object.

    Attributes:
        session: The session of a script that the request belongs to. None means no such session.
        is_exempt: True if the request is not refused for lack of a permitted use.
        is_file: True if the response is a file of an item, so that no links are read from it.
        answer: The last answer about the request. None: it was not decided on yet.
        site: The policies by which the request was judged before it goes out. None means that no
            site judged the request, or that it still waits in the queue.
        outgoing: The request as it was admitted. None: it was not admitted.
        handling: The handling of the request since it was handed out. None: it was not yet.
        awaited_by: The handling of another request, whose code waits for the response. None: no
            code of a handled request waits.
    """

    session: Session | None = None
    is_exempt: bool = False
    is_file: bool = False
    answer: Answer | None = None
    site: Site | None = None
    outgoing: Outgoing | None = None
    handling: Handling | None = None
    awaited_by: Handling | None = None


class Passages(WeakKeyDictionary[Request, Passage]):
    """The records of the requests of one crawl. `get` returns None for a request without one."""

    def of(self, request: Request) -> Passage:
        """Return the record of the request. The first call makes it."""
        passage = self.get(request)
        if passage is None:
            passage = self[request] = Passage()
        return passage
