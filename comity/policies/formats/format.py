"""The interface of a format to the rest of comity.

A site speaks to crawlers in many formats: robots.txt, ACAP, Content Signals, ... Each is a folder here that brings one `Format`;
FORMATS lists them, and nothing else of comity knows any by name. A format is asked in two steps, as far as it takes part in them:

1. What do the files of a site say? `read_site` gets all files that were had of an origin and makes a `SiteReading`, which gives
   an `AgentReading` for each agent that asks. That says which requests may be made (`access`), how often (`rates`, `limits`), and
   what may be done with a resource (`statements`, `sources`, `element_rules`).
2. What does one response say? `read_headers` and `read_document` make `Statements` of its header fields and its content;
   `read_documents` of what these refer to, as soon as it was had.

Answers of several formats meet in one way only: any refusal refuses (`comity.policies.answers.combining`). What a statement means
for a use is said by the table of vocabularies (`comity.policies.vocabulary`), to which a format may add its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from comity.policies.agent import Agent
from comity.policies.answers.decision import (
    ActionRequest,
    Condition,
    Decision,
    Finding,
    Reason,
    UseDecision,
)
from comity.policies.answers.element_rule import ElementRule
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.answers.rates import Rates
from comity.policies.answers.request import Facts
from comity.policies.answers.rule import Rule
from comity.policies.document.document import Content
from comity.policies.formats.authoring import Authoring
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.windows import Limits
from comity.policies.vocabulary.statement import Statement

VERSION = 1  # of what formats are asked; it rises when one that was written before would not do

Headers = Mapping[
    bytes, Sequence[bytes]
]  # name in lower case -> the values of its fields, in their order


def accept_all(fetched: Fetched) -> str:
    """Accept whatever came back, as most formats do."""
    return ""


class WellKnown(NamedTuple):
    """A file that is asked for of every origin."""

    path: str
    media_type: str = "text/plain; charset=utf-8"  # to serve it with
    restricts_access: bool = False  # it may refuse requests; else it is about uses alone
    has_element_rules: bool = False  # it may have rules for parts of pages
    unreachable: str = (
        "the uses that it could refuse are denied, unless COMITY_UNREACHABLE_USES says otherwise"
    )
    """What holds while it cannot be had, in words for the log."""
    rejection: Callable[[Fetched], str] = (
        accept_all  # why what came back counts as a file that cannot be had; "": it does not
    )
    refuses: tuple[str, ...] | None = None
    """The terms by which it may refuse uses, such as "tdmrep:reservation"; ALL: every use but crawl and
    follow. What they refuse is denied while the file cannot be fetched. None: all words of the format's
    own vocabularies."""
    unreachable_rule: str = "comity.unreachable"  # the rule by which these uses are denied


class Resource(NamedTuple):
    """A resource of a site: one path and query for which a server may take a URL."""

    url: str  # of its origin and `target`
    target: str
    is_disallowed: bool = False  # by a Disallow line of robots.txt
    is_fetched: bool = True


class Response(NamedTuple):
    """The circumstances in which a response is read."""

    agent: Agent
    url: str
    now: datetime | None  # aware; None: the clock


class Statements(NamedTuple):
    """The statements of one carrier (the site's files, header fields, a document) in one format about one resource."""

    statements: tuple[Statement, ...] = ()
    findings: tuple[Finding, ...] = ()
    documents: tuple[str, ...] = ()  # absolute URLs of what it takes to know the rest
    state: Any = None  # the format's own: see `Format.conclude` and `AgentReading.access`
    refused: tuple[Reason, ...] = ()  # why every use is refused: nobody knows what is stated


NO_STATEMENTS = Statements()


class Unanswered(NamedTuple):
    """A policy file that could not be fetched, and what it may refuse (MEET-8)."""

    terms: tuple[str, ...]  # as `WellKnown.refuses`
    reason: Reason


class UseSource(Protocol):
    """A source of decisions on the uses of a page."""

    @property
    def named_uses(self) -> Iterable[str]:
        """The uses that it names."""

    def decide(self, use: str) -> UseDecision | None:
        """Decide on a use. None: it does not speak of this use."""

    def limits(self, use: str) -> Iterable[tuple[Qualifiers, Reason]]:
        """The qualifiers that restrict the use, should anybody permit it, each with its reason."""


class PageSource(UseSource, Protocol):
    """A source that takes more than the page itself to be asked."""

    @property
    def required_resources(self) -> tuple[str, ...]:
        """Absolute URLs of the resources that permissions ask to use or to include, as is arranged with the site."""

    @property
    def dated(self) -> tuple[str, ...]:
        """The uses for which it counts when the page was first taken."""


class Capture(NamedTuple):
    """A page as it was fetched, and the circumstances."""

    url: str
    content: Content
    now: datetime
    first_seen: Mapping[str, datetime]  # use -> when the page was first taken for it
    resources: Mapping[str, Fetched]  # absolute URL -> what came back
    facts: Facts  # of the request for it


class ElementRuleSet(NamedTuple):
    """Rules for parts of a page, and how the reason for one is told."""

    rules: Sequence[ElementRule]
    reason_of: Callable[[ElementRule, str], Reason]  # the rule and the page's URL


class AgentReading:
    """The reading of one site's files in one format by one agent. A format overrides what it speaks of."""

    restricts_access = False  # `access` may have an answer
    depends_on_request = False  # `access` looks at more of a request than its URL
    depends_on_time = False  # `access` may have another answer later, the age of sessions apart
    references: tuple[
        str, ...
    ] = ()  # absolute URLs of files without which nobody knows what is stated
    documents: tuple[str, ...] = ()  # absolute URLs of licences: without them nothing is licensed
    rates: Rates | None = None

    def access(
        self, target: str, sent: str, facts: Facts, now: datetime | None, page: Any = None
    ) -> Decision | None:
        """May the request be made? None: nothing is said of it.

        `target`: path and query, one for which a server may take those that are `sent`. `page`: `Statements.state` of what came
        back, where that is known and says more than the files."""
        return None

    def disallows(self, target: str, facts: Facts) -> bool:
        """Return whether a Disallow line of robots.txt decides."""
        return False

    def considered(self, target: str, facts: Facts) -> Iterable[Reason]:
        """Every rule about access that matches, the deciding one first."""
        return ()

    def limits(self, target: str) -> Limits | None:
        """The limits, besides `rates`, to how often and how many at a time requests like that may be made."""
        return None

    def requests(self) -> Iterable[ActionRequest]:
        """The actions that the site asks the agent to take."""
        return ()

    def conditions(self) -> Iterable[Condition]:
        """Return the conditions on requests, for people. Those of one group of lines follow one another."""
        return ()

    def statements(self, resource: Resource) -> Statements:
        """The statements about the uses of one resource. Hashable: pages of which the same is said are told apart no further."""
        return NO_STATEMENTS

    def everywhere(self) -> tuple[Statement, ...]:
        """The refusals that hold for all resources of the site, and the permissions of any."""
        return ()

    def sources(self, targets: Iterable[str], capture: Capture) -> Sequence[PageSource]:
        """The uses of a page, one for each of the targets, where `statements` cannot say them."""
        return ()

    def site_sources(self, purposes: Iterable[str] | None) -> Sequence[UseSource]:
        """The uses that are refused of every resource of the site to requests for these purposes, where `everywhere` cannot say
        them. None: the purposes of the agent."""
        return ()

    def element_rules(self, target: str, content: Content) -> ElementRuleSet | None:
        """The rules about parts of the page."""
        return None

    def element_rules_everywhere(self) -> ElementRuleSet | None:
        """The rules about parts that hold for every page of the site."""
        return None

    @property
    def is_same_for_pages(self) -> bool:
        """True where nothing but `statements` and `access` tells what holds for a page."""
        reading = type(self)
        return (
            reading.sources is AgentReading.sources
            and reading.element_rules is AgentReading.element_rules
        )


class FileReference(NamedTuple):
    """A file of a site refers to another, which has to be known."""

    url: str  # absolute; "": nowhere that can be asked
    source: str  # URL and line


class SiteReading:
    """The reading of one site's files in one format, for any agent."""

    crawler_names: frozenset[str] = frozenset()  # whom they name, in lower case
    findings: tuple[Finding, ...] = ()  # what their authors should know
    sitemaps: tuple[str, ...] = ()  # absolute URLs
    referred_files: tuple[FileReference, ...] = ()
    element_rules: ElementRuleSet | None = None  # for parts of any page, whomever they bind

    def for_agent(self, agent: Agent) -> AgentReading | None:
        """Return the reading by an agent. None: nothing is said to it."""
        return None


def nothing_more(states: Sequence[Any]) -> Statements:
    """Conclude nothing, as most formats do: they have no state."""
    return NO_STATEMENTS


def quoted_whole(name: str, text: str) -> list[tuple[str, str]]:
    """Most reasons quote the whole value of the field or element."""
    return [(name, text)] if text else []


class Format(NamedTuple):
    """Everything that is to be known of a format. Only the name and the rules have to be given."""

    name: str
    rules: Mapping[str, Rule]  # id -> what it is; ids begin with a prefix of the format's own
    files: tuple[WellKnown, ...] = ()
    robots_lines: tuple[str, ...] = ()  # names of its lines in robots.txt, lower case
    header_fields: tuple[bytes, ...] = ()  # names, lower case
    vocabulary: str = (
        ""  # TOML: vocabularies of its own, and rows that say what their words mean for uses
    )
    read_site: Callable[[SiteFiles], SiteReading | None] | None = None
    read_headers: Callable[[Headers, Response], Statements] | None = (
        None  # of its own fields; some are there
    )
    read_document: Callable[[Content, Response], Statements] | None = None
    read_documents: Callable[[Iterable[str], Mapping[str, Fetched], str], Statements] | None = None
    """What documents say of a resource that refers to them: their URLs, what came back for them, the resource's URL."""
    page_elements: Callable[[Content, Agent], ElementRuleSet | None] | None = (
        None  # rules that a page has for its own elements
    )
    conclude: Callable[[Sequence[Any]], Statements] = nothing_more
    """What carriers say together that come one before the other: their states, files first, then fields, then the document."""
    document_overrides: bool = (
        False  # what a document says takes the place of what the files and fields do
    )
    overruling: tuple[tuple[bytes, bytes], ...] = ()
    """Header fields by which a page takes back what a file refuses, where no reason quotes it (dataset verify)."""
    of_images: Mapping[
        str, str
    ] = {}  # term that is about images alone -> the one that it means for an image
    lifetime: Callable[[str, Fetched], float] | None = (
        None  # seconds for which a file says itself that it may be used
    )
    replay: Callable[[str, str], list[tuple[str, str]]] = quoted_whole
    """How a quoted reason is said again: name and text of the field or element -> names and values; none where it cannot be."""
    authoring: Authoring = Authoring()  # for those who write in it
    version: int = (
        0  # VERSION, by which it is written; of another package it has to be given, as a number
    )
