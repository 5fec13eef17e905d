"""TDMRep, the TDM Reservation Protocol: tdmrep.json, header fields, meta elements, EPUB and PDF.

The supported features and every reading of an open point are in docs/tdmrep.md.
"""

import re
from collections.abc import Sequence

from comity.policies.agent import Agent
from comity.policies.document.document import Content
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    AgentReading,
    Format,
    Headers,
    Resource,
    Response,
    SiteReading,
    Statements,
    WellKnown,
)
from comity.policies.formats.tdmrep.authoring import AUTHORING
from comity.policies.formats.tdmrep.reservation import (
    TERM,
    WELL_KNOWN,
    Reservation,
    TdmRep,
    document,
    fields,
    markup,
    statements,
    tdmrep_of,
)
from comity.policies.formats.tdmrep.rules import RULES
from comity.policies.vocabulary.statement import Statement


class Reservations(AgentReading):
    """The reading of one tdmrep.json, which is the same for all agents."""

    def __init__(self, file: TdmRep) -> None:
        self._file = file

    def statements(self, resource: Resource) -> Statements:
        return Statements(state=self._file.reservation(resource.target))

    def everywhere(self) -> tuple[Statement, ...]:
        return statements((self._file.reservation("/"),)) if self._file.everywhere() else ()


class TdmRepSite(SiteReading):
    """One tdmrep.json, for any agent."""

    def __init__(self, file: TdmRep) -> None:
        self.findings = file.findings
        self._reservations = Reservations(file)

    def for_agent(self, agent: Agent) -> Reservations:
        return self._reservations


def read_site(site: SiteFiles) -> TdmRepSite | None:
    """Return the reading of a site's tdmrep.json, or None if the file does not exist."""
    file = tdmrep_of(site)
    return TdmRepSite(file) if file else None


def read_headers(headers: Headers, response: Response) -> Statements:
    """Read the TDMRep fields of one response."""
    return _statements(
        fields(
            ((name, value) for name, values in headers.items() for value in values), response.url
        )
    )


def read_document(content: Content, response: Response) -> Statements:
    """Read the meta elements of a page, or the metadata of an EPUB or PDF file."""
    return _statements(markup(content, response.url) or document(content, response.url))


def _statements(reservation: Reservation | None) -> Statements:
    return Statements(findings=reservation.findings if reservation else (), state=reservation)


def conclude(states: Sequence[object]) -> Statements:
    """Return the statement of all carriers together (sec-processing-priority).

    Each property that a later carrier sets replaces the property of earlier carriers.
    """
    reservations = [
        state for state in states if state is not None and isinstance(state, Reservation)
    ]
    return Statements(statements(reservations))


_PROPERTY = re.compile(r"(tdm-reservation|tdm-policy): (.*?)(?=; tdm-(?:reservation|policy): |$)")


def replay(name: str, text: str) -> list[tuple[str, str]]:
    """Return the properties that a reason quotes, such as ("tdm-reservation", "1")."""
    return _PROPERTY.findall(text)


FORMAT = Format(
    name="tdmrep",
    rules=RULES,
    title="TDMRep",
    specification="W3C community report",
    summary="file, header fields, meta elements, EPUB and PDF",
    files=(
        WellKnown(
            WELL_KNOWN,
            media_type="application/json",
            refuses=(TERM,),
            unreachable_rule="tdmrep.unreachable",
        ),
    ),
    header_fields=(b"tdm-reservation", b"tdm-policy"),
    read_site=read_site,
    read_headers=read_headers,
    read_document=read_document,
    conclude=conclude,
    document_overrides=True,
    overruling=((b"tdm-reservation", b"0"),),
    replay=replay,
    authoring=AUTHORING,
)
