"""The rules of usage preferences."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

RULES = {
    "usage.allow": Rule(
        ALLOWS, "draft-thomson-aipref-sup section-3.3", "a short usage preference string says `y`"
    ),
    "usage.disallow": Rule(
        REFUSES, "draft-thomson-aipref-sup section-3.3", "a short usage preference string says `n`"
    ),
    "content-usage.allow": Rule(
        ALLOWS, "draft-ietf-aipref-attach-05 robots", "a Content-Usage rule or field says `y`"
    ),
    "content-usage.disallow": Rule(
        REFUSES, "draft-ietf-aipref-attach-05 robots", "a Content-Usage rule or field says `n`"
    ),
    "usage.late": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-6.1",
        "a usage line is below the rules of its group: it counts anyway",
        severity=INFO,
    ),
    "usage.ignored": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-3.1",
        "a member is no preference: it is ignored",
        severity=ERROR,
    ),
    "usage.length": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-5.3",
        "an expression is longer than readers must support, or has too many labels",
    ),
    "usage.outside": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-6.1",
        "a usage line is outside of all groups: it can refuse, and permits nothing",
        severity=ERROR,
    ),
    "content-usage.syntax": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a value is no dictionary: it states nothing",
        severity=ERROR,
    ),
    "content-usage.path": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "the text before the preferences is no path",
        severity=ERROR,
    ),
    "content-usage.label": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 section-4",
        "a word of another vocabulary",
        severity=ERROR,
    ),
    "content-usage.value": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 y-or-n",
        "a value is neither `y` nor `n`: it states nothing",
        severity=ERROR,
    ),
    "content-usage.length": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a line or field exceeds the limit: it permits nothing",
        severity=ERROR,
    ),
    "content-usage.outside": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a rule is outside of all groups: it can refuse, and permits nothing",
        severity=ERROR,
    ),
    "usage.contradiction": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-5.4",
        "a label is permitted and refused for the same agents: it is refused",
    ),
    "usage.label": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-4",
        "a word of another vocabulary, or similar to a label: it has no effect",
    ),
    "content-usage.contradiction": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a label is permitted and refused for the same path and agents: it is refused",
    ),
    "content-usage.repeated": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 section-5",
        "a dictionary has a label twice: the last one counts",
    ),
    "content-usage.unknown": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 section-4",
        "a word of another vocabulary, or similar to a label: it has no effect",
    ),
}
