"""trust.txt: one line of it says whether AI models may be trained with the content of a site.

The readings of open points are in docs/trust-txt.md.
"""

from comity.policies.agent import Agent
from comity.policies.answers.decision import Verdict
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    AgentReading,
    Format,
    Resource,
    SiteReading,
    Statements,
    WellKnown,
)
from comity.policies.formats.trust_txt.authoring import AUTHORING
from comity.policies.formats.trust_txt.file import PATHS, TERM, TrustFile, trust_files
from comity.policies.formats.trust_txt.rules import RULES
from comity.policies.vocabulary.statement import Statement


class TrainingReading(AgentReading):
    """The statement of a trust.txt, which is the same for all agents and resources."""

    def __init__(self, statement: Statement) -> None:
        self._statements = Statements((statement,))

    def statements(self, resource: Resource) -> Statements:
        return self._statements

    def everywhere(self) -> tuple[Statement, ...]:
        return self._statements.statements


class TrustSite(SiteReading):
    """The trust.txt files of a site. A refusal in either of them refuses."""

    def __init__(self, files: tuple[TrustFile, ...]) -> None:
        self.findings = tuple(finding for file in files for finding in file.findings)
        statements = [statement for file in files if (statement := file.statement)]
        # The first refusal, or the first permission.
        statements.sort(key=lambda statement: statement.verdict is not Verdict.DENY)
        self._reading = TrainingReading(statements[0]) if statements else None

    def for_agent(self, agent: Agent) -> TrainingReading | None:
        return self._reading


def read_site(site: SiteFiles) -> TrustSite | None:
    """Return the reading of a site's trust.txt files, or None if it has none."""
    files = trust_files(site)
    return TrustSite(files) if files else None


FORMAT = Format(
    name="trust-txt",
    rules=RULES,
    title="trust.txt",
    specification="draft-org-trust-relationship-protocol-01",
    summary="`datatrainingallowed`, in the file at either of its two places",
    files=tuple(
        WellKnown(path, refuses=(TERM,), unreachable_rule="trust-txt.unreachable") for path in PATHS
    ),
    read_site=read_site,
    authoring=AUTHORING,
)
