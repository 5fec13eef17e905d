"""The rules of robots meta elements and X-Robots-Tag."""

from comity.policies.answers.rule import ERROR, FINDING, INFO, LIMITS, REFUSES, Rule

RULES = {
    "robots-meta.disallow": Rule(
        REFUSES,
        "robots meta (docs/robots-meta.md)",
        "a robots meta element or an X-Robots-Tag field refuses",
    ),
    "robots-meta.limit": Rule(
        LIMITS,
        "robots meta (docs/robots-meta.md)",
        "a robots meta element or an X-Robots-Tag field limits uses that are permitted elsewhere",
    ),
    "robots-meta.unread": Rule(
        REFUSES,
        "robots meta (docs/robots-meta.md)",
        "robots meta elements or X-Robots-Tag fields exceed a limit: everything that "
        "they could refuse is refused",
    ),
    "robots-meta.agent": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "directives for another agent: they have no effect here",
        severity=INFO,
    ),
    "robots-meta.unknown": Rule(
        FINDING, "robots meta (docs/robots-meta.md)", "a directive is unknown"
    ),
    "robots-meta.value": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "the value of a directive cannot be read",
        severity=ERROR,
    ),
    # Found for authors alone
    "robots-meta.attribute": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "an element has `property` or `http-equiv` instead of `name`",
    ),
    "robots-meta.contradiction": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "two directives contradict each other: the refusal counts",
    ),
    "robots-meta.duplicate": Rule(
        FINDING, "robots meta (docs/robots-meta.md)", "a directive is repeated", severity=INFO
    ),
    "robots-meta.informal": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "few readers know the directive",
        severity=INFO,
    ),
    "robots-meta.misspelled": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive or the name of a crawler is misspelled",
    ),
    "robots-meta.obsolete": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "no search engine reads the directive any more",
        severity=INFO,
    ),
}
