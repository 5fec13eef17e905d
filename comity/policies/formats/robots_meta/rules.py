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
        "a robots meta element or an X-Robots-Tag field limits what is permitted elsewhere",
    ),
    "robots-meta.unread": Rule(
        REFUSES,
        "robots meta (docs/robots-meta.md)",
        "there is more than is read of robots meta elements or X-Robots-Tag fields: all "
        "is refused that they could refuse",
    ),
    "robots-meta.agent": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "directives for another agent: they have no effect here",
        severity=INFO,
    ),
    "robots-meta.unknown": Rule(
        FINDING, "robots meta (docs/robots-meta.md)", "a directive that nobody knows"
    ),
    "robots-meta.value": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive whose value cannot be read",
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
        "two directives say the opposite: the one that refuses counts",
    ),
    "robots-meta.duplicate": Rule(
        FINDING, "robots meta (docs/robots-meta.md)", "a directive stands twice", severity=INFO
    ),
    "robots-meta.informal": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive that few readers know",
        severity=INFO,
    ),
    "robots-meta.misspelled": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive, or the name of a crawler, that is nearly another one",
    ),
    "robots-meta.obsolete": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive that no search engine reads any more",
        severity=INFO,
    ),
}
