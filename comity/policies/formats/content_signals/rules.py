"""The rules of Content Signals."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

RULES = {
    "content-signal.allow": Rule(
        ALLOWS,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a Content Signal says `yes`",
    ),
    "content-signal.disallow": Rule(
        REFUSES,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a Content Signal says `no`",
    ),
    "content-signal.fallback": Rule(
        REFUSES,
        "comity, docs/content-signals.md",
        "a Content Signal for `*` says `no`, and the agent's own group has none",
    ),
    "content-signal.whole-file": Rule(
        REFUSES,
        "comity, docs/content-signals.md",
        "a Content Signal in the group of another agent says `no`",
    ),
    "content-signal.value": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a signal has a value that means nothing",
        severity=ERROR,
    ),
    "content-signal.contradiction": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a signal permits the use of what may not be fetched",
    ),
    "content-signal.elsewhere": Rule(
        FINDING,
        "comity, docs/content-signals.md",
        "what a group permits is refused in the group of another agent: not all readers "
        "know that it is another's",
    ),
    "content-signal.label": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a word of another vocabulary, or nearly a signal",
    ),
    "content-signal.outside": Rule(
        FINDING,
        "comity, docs/content-signals.md",
        "a line stands in no group: it speaks to everybody, or permits nothing",
        severity=INFO,
    ),
    "content-signal.spelling": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a signal is written otherwise than its specification has it, which not every "
        "reader understands",
    ),
}
