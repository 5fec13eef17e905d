"""The rules of robots meta elements and X-Robots-Tag."""

from comity.policies.answers.rule import FINDING, LIMITS, REFUSES, Rule

RULES = {
    "robots-meta.disallow": Rule(
        REFUSES, "robots meta (docs/robots-meta.md)", "a robots meta element or an X-Robots-Tag field refuses"
    ),
    "robots-meta.limit": Rule(
        LIMITS,
        "robots meta (docs/robots-meta.md)",
        "a robots meta element or an X-Robots-Tag field limits what is permitted elsewhere",
    ),
    "robots-meta.unread": Rule(
        REFUSES,
        "robots meta (docs/robots-meta.md)",
        "there is more than is read of robots meta elements or X-Robots-Tag fields: all is refused that they could refuse",
    ),
    "robots-meta.agent": Rule(
        FINDING, "robots meta (docs/robots-meta.md)", "directives for another agent: they have no effect here"
    ),
    "robots-meta.unknown": Rule(FINDING, "robots meta (docs/robots-meta.md)", "a directive that nobody knows"),
    "robots-meta.value": Rule(FINDING, "robots meta (docs/robots-meta.md)", "a directive whose value cannot be read"),
}
