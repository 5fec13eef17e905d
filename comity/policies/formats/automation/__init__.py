"""automation-preferences.txt, core and extension, and annotations in pages.

The specifications are draft-liao-aipref-autoctl-core and draft-liao-aipref-autoctl-ext. The
supported features and every reading of an open point are in docs/automation.md.
"""

from comity.policies.agent import Agent
from comity.policies.answers.decision import OF_PAGE, Reason, Source
from comity.policies.document.document import Content
from comity.policies.formats.automation.access import JSON_LD, Annotated, Automated
from comity.policies.formats.automation.annotation import annotations_in
from comity.policies.formats.automation.authoring import AUTHORING
from comity.policies.formats.automation.directives import PATH
from comity.policies.formats.automation.file import preferences_of
from comity.policies.formats.automation.grammar import rejection
from comity.policies.formats.automation.rules import RULES
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import Format, Response, SiteReading, Statements, WellKnown


class AutomationSite(SiteReading):
    """The reading of one automation-preferences.txt, for any agent."""

    def __init__(self, site: SiteFiles) -> None:
        self._origin = site.origin
        self._file = preferences_of(site)
        self.crawler_names = self._file.crawler_names
        self.findings = self._file.findings

    def for_agent(self, agent: Agent) -> Automated:
        return Automated(agent, self._file, self._origin)


def read_annotations(content: Content, response: Response) -> Statements:
    """Read the annotations of a page (extension section-3.5).

    For this page, the annotations override automation-preferences.txt.
    """
    annotations, findings, unread = annotations_in(content, response.agent.token)
    refused = (
        Reason(
            rule="automation.json-ld",
            source=Source(url=OF_PAGE, part=JSON_LD, line=line, text=text),
        )
        for line, text in unread
    )
    state = Annotated(response.url, annotations) if annotations else None
    return Statements(findings=findings, state=state, refused=tuple(refused))


FORMAT = Format(
    name="automation",
    rules=RULES,
    title="automation-preferences.txt",
    specification="draft-liao-aipref-autoctl-core-01 and its extension",
    summary="all of both, and JSON-LD in pages",
    files=(
        WellKnown(
            PATH,
            restricts_access=True,
            refuses=(),  # The file can refuse requests. It cannot refuse uses.
            unreachable="no requests but plain ones for pages are made",
            rejection=rejection,
        ),
    ),
    read_site=AutomationSite,
    read_document=read_annotations,
    authoring=AUTHORING,
)
