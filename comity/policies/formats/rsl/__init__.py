"""RSL 1.0, Really Simple Licensing: documents that license the uses of resources.

robots.txt, header fields and pages refer to them, and pages may contain them. The supported
features and every reading of an open point are in docs/rsl.md.
"""

from collections.abc import Iterable, Iterator, Mapping

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.document.document import Content
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    NO_STATEMENTS,
    Format,
    Headers,
    Resource,
    Response,
    Statements,
)
from comity.policies.formats.robots.extension_lines import in_ended_lists
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.robots.grammar import IN_ACAP
from comity.policies.formats.robots.line_site import LineReading, line_site_reader
from comity.policies.formats.rsl import references
from comity.policies.formats.rsl.authoring import AUTHORING
from comity.policies.formats.rsl.licensing import Rsl, inline, read, refuse_all
from comity.policies.formats.rsl.rules import RULES
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location, Statement

LINES = ("license",)
# The root element of a document begins within this number of octets. `lifetime` relies on it.
MAX_PROLOGUE = 2000


class Licenses(LineReading):
    """The documents that one robots.txt refers to for an agent. The token "*" means any agent.

    The robots.txt has two readings if its groups can be read in two ways, or if a License line is
    in an ACAP record, because this record may be for another agent. A document that either reading
    refers to can prohibit. Its licenses count only if both readings refer to it.
    """

    def __init__(self, site: SiteFiles, token: str) -> None:
        self._origin = site.origin
        readings = list(_readings(site, token))
        self.documents = tuple(dict.fromkeys(url for referred in readings for url in referred.urls))
        licensing = frozenset(self.documents).intersection(
            *(referred.urls for referred in readings)
        )
        self._rsl: list[tuple[Rsl, bool]] = []  # document, and whether its licenses count
        missing = []
        for url in self.documents:
            fetched = site.fetched.get(url)
            if fetched is not None and _is_present(fetched):
                self._rsl.append((document_of(url, fetched), url in licensing))
            else:
                missing.append(Location(url=url, text="it cannot be fetched"))
        unread = dict.fromkeys(reference for referred in readings for reference in referred.unread)
        self._unlicensed = _refuse_all((*unread, *missing))
        self.is_silent = not (self.documents or unread)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for document, _ in self._rsl for finding in document.findings)

    def statements(self, resource: Resource) -> Statements:
        by_documents = (
            statement
            for document, licenses in self._rsl
            for statement in document.statements(resource.url)
            if licenses or statement.verdict is Verdict.DENY
        )
        return Statements((*by_documents, *self._unlicensed))

    def everywhere(self) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for document, licenses in self._rsl:
            refused = {f"rsl:{term}" for term in document.everywhere(self._origin)}
            of_root = document.statements(f"{self._origin}/")
            statements += (
                statement
                if statement.term in refused
                else statement._replace(verdict=Verdict.ALLOW)
                for statement in of_root
                if licenses or statement.term in refused
            )
        return (*statements, *self._unlicensed)


def _readings(site: SiteFiles, token: str) -> Iterator[references.References]:
    """Yield the references for the agent, once for each of the one or two readings (RFC-12)."""
    file = robots_of(site)
    if file.robots:
        lines = tuple(line for line in lines_of(site) if line.name in LINES)
        ended, lines_in_ended = in_ended_lists(file.robots, lines)
        outside_acap = tuple(line for line in lines_in_ended if line.group != IN_ACAP)
        yield references.in_robots(
            lines, file.robots.groups_naming(token), file.robots.text, file.url
        )
        if ended is not file.robots or len(outside_acap) < len(lines):
            yield references.in_robots(
                outside_acap, ended.groups_naming(token), file.robots.text, file.url
            )


def document_of(url: str, fetched: Fetched) -> Rsl:
    """Return the RSL document in a response."""
    return read(fetched.body, url, cut=fetched.oversized)


def lifetime(url: str, fetched: Fetched) -> float:
    """Return the max-age of an RSL document in seconds (RSL-3), or infinity for any other file."""
    if (
        b"rsl" not in fetched.body[:MAX_PROLOGUE]
        or url.endswith(".txt")
        or not _is_present(fetched)
    ):
        return float("inf")
    return document_of(url, fetched).max_age.total_seconds()


def _is_present(fetched: Fetched) -> bool:
    return availability(fetched) is Availability.PRESENT


def _refuse_all(unread: Iterable[Location]) -> tuple[Statement, ...]:
    return tuple(statement for reference in unread for statement in refuse_all(reference))


def read_headers(headers: Headers, response: Response) -> Statements:
    """Read the Link fields of one response (section-4.5)."""
    fields = ((name, value) for name, values in headers.items() for value in values)
    referred = references.in_fields(fields, response.url)
    return Statements(_refuse_all(referred.unread), documents=referred.urls)


def read_document(content: Content, response: Response) -> Statements:
    """Read the links of a page, and the documents in it (section-4.6)."""
    if not content.mentions(*references.WORDS):
        return NO_STATEMENTS
    referred = references.in_markup(content, response.url)
    documents = inline(content)
    statements = tuple(
        statement for document in documents for statement in document.statements(response.url)
    )
    findings = tuple(finding for document in documents for finding in document.findings)
    return Statements((*statements, *_refuse_all(referred.unread)), findings, referred.urls)


def read_documents(urls: Iterable[str], fetched: Mapping[str, Fetched], url: str) -> Statements:
    """Return the statements that documents make about the resource that refers to them.

    `urls` are the URLs of the documents, `fetched` maps them to the responses, and `url` is the URL
    of the resource. A document that cannot be fetched refuses every use.
    """
    statements: list[Statement] = []
    findings: list[Finding] = []
    for address in urls:
        answer = fetched.get(address)
        if answer is not None and _is_present(answer):
            document = document_of(address, answer)
            statements += document.statements(url)
            findings += document.findings
        else:
            statements += refuse_all(
                Location(url=address, text=f"{printable(address)} cannot be fetched")
            )
    return Statements(tuple(statements), tuple(findings))


def replay(name: str, text: str) -> list[tuple[str, str]]:
    """Return an empty list: no reason of RSL can be repeated from its quotation.

    A reason quotes one link of a header field, or the URL of a document, not the whole value.
    """
    return []


FORMAT = Format(
    name="rsl",
    rules=RULES,
    title="RSL",
    specification="RSL 1.0",
    summary="documents, and the references to them in robots.txt, header fields and pages",
    robots_lines=LINES,
    header_fields=(b"link",),
    read_site=line_site_reader(LINES, Licenses),
    read_headers=read_headers,
    read_document=read_document,
    read_documents=read_documents,
    lifetime=lifetime,
    replay=replay,
    authoring=AUTHORING,
)
