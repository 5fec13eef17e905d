"""The record of each request on its way through the crawler, its Passage.

    passage = passages[ref(request)]

A record belongs to one request object. A redirect, a retry and a copy are other objects, so they
begin with an empty record. If a middleware returns a request object to be made again, the object
keeps its record.

No record refers to its request, and `Passages` refers to requests weakly. So the record goes when
the engine, the queue and the callbacks have let the request go. Only these fields end earlier:
`flight` occupies limiters. `replaced_fields` exists only while credentials are on the request.
`awaited_by` and `stopped` apply to one response.

The fields, and the code that writes them:

    field            opened by                      changed by                  ended by
    session          Client.admit
    is_exempt        Access.exempt
    is_file          Access.expect_file
    answer, site     Access.decide                  each further decision
    checked_fields   check_target                   each further check
    outgoing         Access.admit                   refusal_if_changed (1)
    flight           Pace.start                     claim, settle_start,        cancel,
                                                    sends, lose_turn,           end_and_forget,
                                                    end_flight,                 forget_departed,
                                                    free_limiters, acquire (2)  claim (3)
    handling         Referrals.handle               handle, check_response
    awaited_by       Referrals.make                                             check_response
    replaced_fields  FieldsMiddleware                                           FieldsMiddleware
    pause            Crawl, at the answer to a                                  RateMiddleware
                     request that buys
    stopped          AccessMiddleware, at header                                AccessMiddleware
                     fields that refuse the body                                (4)
    stating_fields   ResponsePages.received         the next answer
    arrival          ItemResponses                  the next answer
    browsed          GuardedHandler                 the next answer
    whole_body       ResponsePages.stripped         the next answer

    (1) it admits the request again as it is now
    (2) of another request: it takes the turn of a request that is not sent in time
    (3) when the request comes a second time; `start`, too, if the request starts again
    (4) at the response, or when the request comes again

The ends of a request:

    end                      flight                          other fields
    answered                 settle_start at the headers,    replaced_fields are put back; the page
                             end_flight at the end of the    of the response needs the others while
                             body, then forget_departed      the response lives
    streamed (client)        settle_start at the headers,    as answered
                             end_and_forget at the end of
                             the body
    stopped at its headers   as answered                     `stopped` refuses the response
    failed                   end_flight settles the start    replaced_fields are put back
    no answer, sent again    lose_turn; `acquire` starts a   stay: it is the request that was
                             new flight                      admitted
    refused by comity        forget_departed; the client     `answer` has the reason
                             and the browser: cancel
    dropped or answered by   forget_departed                 stay until the request goes
    another middleware
    held by the scheduler    free_limiters; the next         stay; it is decided on again
    (429, visiting hours)    hand-out starts a new flight
    returned by another      start at the next hand-out,     stay; it is decided on again
    middleware               claim if it comes without one
    retried, redirected      as answered or failed; the      the other object has none of them, but
                             other object gets its own       its meta says which site led there
    spider closed            as above for requests that      stay until the requests go
                             are out; waiting ones get
                             ClosingError before a start
    process killed           other processes stop counting   none is stored; with JOBDIR or
                             it when the signs of life end   COMITY_STATE the request comes again
                             (Ledger.ttl)                    as another object
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import ref

from comity.bounded import ByObject
from comity.gate.fetching.reach import Reach
from comity.gate.http import Headers, Request
from comity.gate.request.sessions import DeclaredSession
from comity.gate.run.observer import Paced
from comity.policies import Decision, Site
from comity.policies.answers.request import Facts, Session
from comity.policies.page import Browsed


class Outgoing(NamedTuple):
    """A request as it was admitted, and the policies that apply to its response.

    Attributes:
        url: The URL at the time of the admission. The request object may change later.
        site: The policies by which the request was admitted.
        decision: The decision of those policies.
        facts: The facts of the request, with its session.
        session: The session that goes out with the request. None means no session.
        asks_facts: As in Answer.
    """

    url: str
    site: Site
    decision: Decision
    facts: Facts
    session: DeclaredSession | None
    asks_facts: bool


class Question(NamedTuple):
    """Everything that the answer about a request depends on, except the policies and the time.

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
        asks_facts: True if answers of the site may depend on facts of the request.
    """

    question: Question
    site: ref[Site] | None
    decision: Decision
    session: DeclaredSession | None = None
    passes: bool = False
    asks_facts: bool = True


class Handling:
    """The work on a request and its response, for example a callback. It may make more requests.

    The contexts of the tasks that do the work (`contextvars`) refer to it. They may outlive the
    request and the crawl, so it is an object of its own.

    Attributes:
        crawl: An object that only handlings of one crawl have.
        reach: The reach of the site that leads to the requests that this work makes. None means
            that the operator leads to them.
    """

    __slots__ = ("crawl", "reach")

    def __init__(self, crawl: object, reach: Reach | None) -> None:
        self.crawl = crawl
        self.reach = reach


L = TypeVar("L", bound=Paced)


@dataclass(slots=True, eq=False)
class Flight(Generic[L]):
    """The turn of a request, which begins when the pace lets the request out.

    Attributes:
        limiters: The limiters that the request occupies; () if it needs none, or when they are free
            again.
        handed_out: True if comity's scheduler handed out the request. A middleware may return such
            a request to the scheduler.
        in_downloader: True if the request goes through Scrapy's downloader, which reports its end.
            False if the caller reports its end (`end_and_forget`).
        claimed: True when the request has come to comity's middleware. Always True for a request
            that the scheduler did not hand out.
        grant: The request's number in the ledger; 0 if its limiters have no limits.
        is_settled: True when the header fields of the answer arrived, or the request failed.
        is_sent: True when the download of the request has begun.
        has_lost_turn: True if the turn was taken from the request. It needs another turn before it
            may be sent.
        started: The moment of its start, by the monotonic clock.
        observed: The value that `Observer.starting` returned; `Observer.settled` gets it back.
    """

    limiters: tuple[L, ...]
    handed_out: bool
    in_downloader: bool
    claimed: bool
    started: float
    grant: int = 0
    is_settled: bool = False
    is_sent: bool = False
    has_lost_turn: bool = False
    observed: Any = None


class Arrival(NamedTuple):
    """The facts of a response's arrival, which are lost when its items are exported.

    Attributes:
        received_at: The time of arrival.
        encodings: The values of Content-Encoding, as the server sent them.
    """

    received_at: datetime
    encodings: tuple[bytes, ...]


@dataclass(slots=True, eq=False)
class Passage:
    """The record of one request object.

    Attributes:
        session: The session of a script that the request belongs to. None means no such session.
        is_exempt: True if the request may go out even if the site permits no declared use.
        is_file: True if the response is a file of an item, so that no links are read from it.
        answer: The last answer about the request. None: it was not decided on yet.
        site: The policies by which the request was last judged to go out. None means that they are
            not a site's, or that the request was judged only while it waits in the queue.
        checked_fields: A copy of the header fields that passed the last check (`check_target`).
            None: they did not pass, or the check depends on more than the fields.
        outgoing: The request as it was admitted. None: it was not admitted.
        flight: The turn of the request. None: it was not let out, or its turn was forgotten.
        handling: The work on the request since it was handed out. None: it was not yet.
        awaited_by: The work on another request, if its code waits for this response. None: no code
            of a handled request waits for it.
        replaced_fields: The values of header fields before the session of the host replaced them.
            Name -> values. None: no session is on the request now.
        pause: The seconds for which the answer has paused the host, until RateMiddleware has the
            answer. None: it did not, or not yet.
        stopped: The refusal of the response, if its download was stopped before its body. None: it
            was not stopped.
        arrival: The arrival of the last response, if a feed needs it.
        stating_fields: The header fields of the last answer that state policies. None: none does.
        browsed: How a browser got the response. None: it came without a browser.
        whole_body: The body of the response before elements were removed from it. None: none were.
    """

    session: Session | None = None
    is_exempt: bool = False
    is_file: bool = False
    answer: Answer | None = None
    site: Site | None = None
    checked_fields: Mapping[bytes, list[bytes]] | None = None
    outgoing: Outgoing | None = None
    flight: Flight[Any] | None = None
    handling: Handling | None = None
    awaited_by: Handling | None = None
    replaced_fields: Mapping[str, list[bytes]] | None = None
    pause: float | None = None
    stopped: Decision | None = None
    arrival: Arrival | None = None
    stating_fields: Headers | None = None
    browsed: Browsed | None = None
    whole_body: bytes | None = None

    def outgoing_to(self, url: str) -> Outgoing | None:
        """Return the request as it was admitted; None if it was not, or for another URL."""
        outgoing = self.outgoing
        return outgoing if outgoing is not None and outgoing.url == url else None


class Passages(ByObject[Request, Passage]):
    """The records of the requests of one crawl or client: `passages[ref(request)]`.

    The first look-up makes the record. The length is the number of requests that have a record."""

    def __missing__(self, reference: ref[Request]) -> Passage:
        request = reference()
        assert request is not None
        passage = Passage()
        self.put(request, passage)
        return passage
