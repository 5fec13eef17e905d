"""DisallowAITraining and AllowAITraining, rules about AI training in robots.txt.

The readings of open points are in docs/training-rules.md.
"""

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import Format, Resource, Statements
from comity.policies.formats.robots.file import robots_of
from comity.policies.formats.robots.line_site import LineReading, groupings, line_site_reader
from comity.policies.formats.training_rules.authoring import AUTHORING
from comity.policies.formats.training_rules.lines import NAMES, TrainingRules
from comity.policies.formats.training_rules.rules import RULES
from comity.policies.syntax.path_patterns import normal_target
from comity.policies.vocabulary.statement import Statement


class TrainingLines(LineReading):
    """The training rules of one robots.txt for an agent. The token "*" means any agent.

    If the groups of the robots.txt can be read in two ways, a refusal by either reading counts, and
    a permission counts only if both readings have it.
    """

    def __init__(self, site: SiteFiles, token: str) -> None:
        self._readings = [
            TrainingRules(lines, robots, token, url=robots_of(site).url)
            for robots, lines in site.once(TrainingLines, lambda: groupings(site, NAMES))
        ]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self._readings[0].findings

    def statements(self, resource: Resource) -> Statements:
        target = normal_target(resource.target)
        return Statements(_strictest([reading.statement(target) for reading in self._readings]))

    def everywhere(self) -> tuple[Statement, ...]:
        return _strictest([reading.everywhere() for reading in self._readings])


def _strictest(statements: list[Statement | None]) -> tuple[Statement, ...]:
    """Return the first refusal, or the first permission if all readings permit."""
    stated = [statement for statement in statements if statement]
    refusals = [statement for statement in stated if statement.verdict is Verdict.DENY]
    if refusals:
        return tuple(refusals[:1])
    return tuple(stated[:1]) if len(stated) == len(statements) else ()


FORMAT = Format(
    name="training-rules",
    rules=RULES,
    title="Training rules in robots.txt",
    specification="draft-canel-robots-ai-control-00",
    summary="`DisallowAITraining` and `AllowAITraining` in the groups of robots.txt",
    robots_lines=tuple(NAMES),
    read_site=line_site_reader(NAMES, TrainingLines),
    authoring=AUTHORING,
)
