"""The interface between a policy format and the rest of comity.

A site speaks to crawlers in many formats: robots.txt, ACAP, Content Signals, ... Each format is a
folder here that provides one `Format`. FORMATS lists them, and no other part of comity knows a
format by name. comity asks a format in two steps. A format may take part in either step or in both:

1. What do the files of a site say? `read_site` gets all files that were fetched from an origin and
   makes a `SiteReading`. A `SiteReading` gives an `AgentReading` for each agent. The `AgentReading`
   says which requests the agent may make (`access`), how often (`rates`, `limits`), and how it may
   use a resource (`statements`, `sources`, `element_rules`).
2. What does one response say? `read_headers` and `read_document` make `Statements` of its header
   fields and its content. `read_documents` makes `Statements` of the documents that they refer to,
   once these are fetched.

Answers of several formats are combined in one way only: any refusal refuses
(`comity.policies.answers.combining`). The table of vocabularies (`comity.policies.vocabulary`) says
what a statement means for a use. A format may add its own words to this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

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

# The version of this interface. Each change that breaks existing formats increases it.
VERSION = 1

# Name of a header field in lower case -> the values of all fields with this name, in their order.
Headers = Mapping[bytes, Sequence[bytes]]


def accept_all(fetched: Fetched) -> str:
    """Return "", which accepts any response. Most formats use this for `WellKnown.rejection`."""
    return ""


class WellKnown(NamedTuple):
    """A policy file that comity fetches from every origin.

    Attributes:
        path: Its path, such as "/robots.txt".
        media_type: The Content-Type to serve it with.
        restricts_access: True if the file may refuse requests. False if it is about uses only.
        has_element_rules: True if the file may have rules for parts of pages.
        unreachable: The effect if the file cannot be fetched, for the log, such as "no requests but
            plain ones for pages are made".
        rejection: Returns the reason why a response counts as a file that cannot be fetched, or ""
            if the response is accepted.
        refuses: The terms by which the file may refuse uses, such as "tdmrep:reservation". The uses
            that these terms refuse are denied while the file cannot be fetched. The term ALL means
            every use except crawl and follow. None means all words of the format's own
            vocabularies.
        unreachable_rule: The rule that denies these uses.
    """

    path: str
    media_type: str = "text/plain; charset=utf-8"
    restricts_access: bool = False
    has_element_rules: bool = False
    unreachable: str = (
        "the uses that it could refuse are denied, unless COMITY_UNREACHABLE_USES says otherwise"
    )
    rejection: Callable[[Fetched], str] = accept_all
    refuses: tuple[str, ...] | None = None
    unreachable_rule: str = "comity.unreachable"


class Resource(NamedTuple):
    """A resource of a site: one path and query that a server may read a URL as.

    Attributes:
        url: The origin followed by `target`.
        target: Path and query.
        is_disallowed: True if a Disallow line of robots.txt refuses it.
        is_fetched: True if the content of the resource was fetched. False if only the URL is known.
    """

    url: str
    target: str
    is_disallowed: bool = False
    is_fetched: bool = True


class Response(NamedTuple):
    """The circumstances in which a response is read.

    Attributes:
        agent: The agent that reads the response.
        url: The absolute URL of the response.
        now: The time of the reading, timezone-aware. None means the current time.
    """

    agent: Agent
    url: str
    now: datetime | None


class Statements(NamedTuple):
    """The statements that one carrier makes about one resource in one format.

    The carriers are the site's files, the header fields and the document.

    Attributes:
        statements: The statements about uses.
        findings: Findings for the author.
        documents: Absolute URLs of documents that make further statements about the resource.
        state: Data of the format itself: see `Format.conclude` and `AgentReading.access`.
        refused: The reasons why every use is refused. () means that it is not. Uses are refused
            here if the statements exist and cannot be read.
    """

    statements: tuple[Statement, ...] = ()
    findings: tuple[Finding, ...] = ()
    documents: tuple[str, ...] = ()
    state: object = None
    refused: tuple[Reason, ...] = ()


NO_STATEMENTS = Statements()


class Unanswered(NamedTuple):
    """A policy file that could not be fetched, and the uses that it may refuse (MEET-8).

    Attributes:
        terms: As in `WellKnown.refuses`.
        reason: The reason of a refusal: the file, and why it could not be fetched.
    """

    terms: tuple[str, ...]
    reason: Reason


class UseSource(Protocol):
    """A source of decisions on the uses of a page."""

    @property
    def named_uses(self) -> Iterable[str]:
        """The uses that the source names."""

    def decide(self, use: str) -> UseDecision | None:
        """Return the decision on a use, or None if the source does not mention this use."""

    def limits(self, use: str) -> Iterable[tuple[Qualifiers, Reason]]:
        """Return the qualifiers that restrict the use, each with its reason.

        The restrictions apply even if the permission comes from another source.
        """


class PageSource(UseSource, Protocol):
    """A source that may need more than the page itself: other resources, or an earlier fetch."""

    @property
    def required_resources(self) -> tuple[str, ...]:
        """Absolute URLs of resources that a permitted use has to use or include.

        comity fetches these resources. A resource is left out if the operator has not arranged with
        the site that comity may use or include it.
        """

    @property
    def dated(self) -> tuple[str, ...]:
        """The permitted uses that may end a time after the page is first fetched for them."""


class Capture(NamedTuple):
    """A page as it was fetched, and the circumstances.

    Attributes:
        url: The absolute URL of the page.
        content: The content of the page.
        now: The time of the decision, timezone-aware.
        first_seen: Use -> the time when the page was first fetched for this use.
        resources: The responses for `PageSource.required_resources`: absolute URL -> response.
        facts: The facts of the request for the page.
    """

    url: str
    content: Content
    now: datetime
    first_seen: Mapping[str, datetime]
    resources: Mapping[str, Fetched]
    facts: Facts


class ElementRuleSet(NamedTuple):
    """Rules for parts of a page.

    Attributes:
        rules: The rules.
        reason_of: Returns the reason for a rule. The arguments are the rule and the page's URL.
    """

    rules: Sequence[ElementRule]
    reason_of: Callable[[ElementRule, str], Reason]


class AgentReading:
    """One agent's reading of one site's files in one format.

    A format overrides the methods and attributes that it has answers for.

    Attributes:
        restricts_access: True if `access` may return a decision.
        depends_on_request: True if `access` looks at more of a request than its URL.
        depends_on_time: True if the answer of `access` may change with time. The age of sessions
            does not count.
        references: Absolute URLs of files that the reading needs, because the site's files refer to
            them.
        documents: Absolute URLs of licences that the reading needs. Without them nothing is
            licensed.
        rates: The rates that robots.txt asks for. None means that there are none.
    """

    restricts_access = False
    depends_on_request = False
    depends_on_time = False
    references: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    rates: Rates | None = None

    def access(
        self, target: str, sent: str, facts: Facts, now: datetime | None, page: object = None
    ) -> Decision | None:
        """Return whether the request may be made, or None if the files do not mention it.

        `sent` is path and query as the request sends them. `target` is one of the paths and queries
        that a server may read from it: for `/a/../b` these are `/a/../b` and `/b`. `now` is
        timezone-aware, and None means the current time. `page` is the `Statements.state` of the
        response to this request. None means that there is no response yet, or that it says no more
        than the files.
        """
        return None

    def disallows(self, target: str, facts: Facts) -> bool:
        """Return True if a Disallow line of robots.txt refuses the request."""
        return False

    def considered(self, target: str, facts: Facts) -> Iterable[Reason]:
        """Return every matching rule about access, the deciding one first."""
        return ()

    def limits(self, target: str) -> Limits | None:
        """Return the limits on requests for a target: their rate, and how many run at a time.

        The limits apply in addition to `rates`. None means that there are no limits.
        """
        return None

    def requests(self) -> Iterable[ActionRequest]:
        """Return the actions that the site asks the agent to take."""
        return ()

    def conditions(self) -> Iterable[Condition]:
        """Return the conditions on requests, for people to read.

        Conditions from one group of lines are next to each other.
        """
        return ()

    def statements(self, resource: Resource) -> Statements:
        """Return the statements about the uses of one resource.

        The result must be hashable, because pages with equal statements share one cached answer.
        """
        return NO_STATEMENTS

    def everywhere(self) -> tuple[Statement, ...]:
        """Return the refusals that apply to every resource of the site, and all permissions.

        A permission counts even if it applies to one resource only: then a use is not refused for
        the whole site.
        """
        return ()

    def sources(self, targets: Iterable[str], capture: Capture) -> Sequence[PageSource]:
        """Return one source of decisions on the page's uses for each target.

        Formats use this if `statements` cannot express their answers.
        """
        return ()

    def site_sources(self, purposes: Iterable[str] | None) -> Sequence[UseSource]:
        """Return sources of refusals that apply to every resource of the site.

        Formats use this if `everywhere` cannot express these refusals. `purposes` are the purposes
        of the requests. None means the purposes of the agent.
        """
        return ()

    def element_rules(self, target: str, content: Content) -> ElementRuleSet | None:
        """Return the rules about parts of the page at a target, or None if there are none."""
        return None

    def element_rules_everywhere(self) -> ElementRuleSet | None:
        """Return the rules about parts that apply to every page of the site, or None."""
        return None

    @property
    def is_same_for_pages(self) -> bool:
        """True if `statements` and `access` are all that the format contributes to a page.

        Such a reading has no `sources` and no `element_rules`.
        """
        reading = type(self)
        return (
            reading.sources is AgentReading.sources
            and reading.element_rules is AgentReading.element_rules
        )


class FileReference(NamedTuple):
    """A reference from one file of a site to another file that comity needs to know.

    Attributes:
        url: The absolute URL of the other file. "" if the reference leads to no http or https URL.
        source: URL and line of the reference.
    """

    url: str
    source: str


class SiteReading:
    """The reading of one site's files in one format, for any agent.

    Attributes:
        crawler_names: The names of agents in the files, in lower case.
        findings: Findings for the authors of the files.
        sitemaps: Absolute URLs.
        referred_files: The files that the site's files refer to.
        element_rules: The rules about parts of pages, for all pages and agents.
    """

    crawler_names: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    sitemaps: tuple[str, ...] = ()
    referred_files: tuple[FileReference, ...] = ()
    element_rules: ElementRuleSet | None = None

    def for_agent(self, agent: Agent) -> AgentReading | None:
        """Return the reading of an agent, or None if the files do not address it."""
        return None

    def clean(self, target: str) -> str:
        """Return a target without the parts of its query that make no other page.

        Targets with equal results are one page: a crawl requests the first of them only. This
        permits nothing. `target` is path and query as a request sends them.
        """
        return target


def nothing_more(states: Sequence[object]) -> Statements:
    """Return no statements. Most formats use this for `conclude`, because they keep no state."""
    return NO_STATEMENTS


def quoted_whole(name: str, text: str) -> list[tuple[str, str]]:
    """Return the field or element as one name and value.

    Most formats use this for `replay`, because their reasons quote the whole value.
    """
    return [(name, text)] if text else []


class Format(NamedTuple):
    """Everything that comity needs to know about a format.

        FORMAT = Format(
            name="courtesy",
            rules=RULES,
            files=(WellKnown("/courtesy.txt", restricts_access=True),),
            read_site=CourtesySite,
        )

    Only the name and the rules are required.

    Attributes:
        name: Lower-case letters, digits and hyphens.
        rules: Rule id -> the rule. All ids begin with a prefix of this format, such as "courtesy.".
        title: The name that authors know, such as "robots.txt", for lists of formats.
        specification: The specification, such as "RFC 9309", for lists of formats.
        summary: The supported parts and their places, in Markdown, for lists of formats.
        files: The files that comity fetches from every origin for this format.
        robots_lines: The names of its lines in robots.txt, in lower case.
        header_fields: The names of its header fields, in lower case.
        vocabulary: A TOML text with the vocabularies of the format, and with rows that map their
            words to uses.
        read_site: Reads the files of a site. None is returned if the files do not use this format.
        read_headers: Reads the header fields of the format. Called only if the response has one of
            them.
        read_document: Reads a document.
        read_documents: Reads the documents that a resource refers to. The arguments are the URLs of
            the documents, the responses for them, and the URL of the resource.
        page_elements: Reads the rules that a page has for its own elements.
        conclude: Returns the statements of all carriers together, for formats in which one carrier
            overrides another. The argument is the `Statements.state` of each carrier: files first,
            then fields, then the document.
        document_overrides: True if the statements of a document replace those of the files and
            fields.
        overruling: Header fields, each with its value, by which a page withdraws a refusal of a
            file. No reason quotes them, so `comity dataset verify` adds them.
        of_images: Term about the images of a page -> the term for the page with this meaning. An
            image is judged by the second term.
        lifetime: Returns the number of seconds for which a file may be used, as the file says.
        replay: Rebuilds the fields or elements that a reason quotes. The arguments are the name and
            the text in the reason. It returns names and values that lead to the reason again, or an
            empty list if that is not possible.
        authoring: Help for the authors of policies in this format.
        version: The VERSION that the format is written for. Formats of other packages must give it,
            as a number.
    """

    name: str
    rules: Mapping[str, Rule]
    title: str = ""
    specification: str = ""
    summary: str = ""
    files: tuple[WellKnown, ...] = ()
    robots_lines: tuple[str, ...] = ()
    header_fields: tuple[bytes, ...] = ()
    vocabulary: str = ""
    read_site: Callable[[SiteFiles], SiteReading | None] | None = None
    read_headers: Callable[[Headers, Response], Statements] | None = None
    read_document: Callable[[Content, Response], Statements] | None = None
    read_documents: Callable[[Iterable[str], Mapping[str, Fetched], str], Statements] | None = None
    page_elements: Callable[[Content, Agent], ElementRuleSet | None] | None = None
    conclude: Callable[[Sequence[object]], Statements] = nothing_more
    document_overrides: bool = False
    overruling: tuple[tuple[bytes, bytes], ...] = ()
    of_images: Mapping[str, str] = {}
    lifetime: Callable[[str, Fetched], float] | None = None
    replay: Callable[[str, str], list[tuple[str, str]]] = quoted_whole
    authoring: Authoring = Authoring()
    version: int = 0
