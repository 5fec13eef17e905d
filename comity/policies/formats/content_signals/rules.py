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
        "the value of a signal has no meaning",
        severity=ERROR,
    ),
    "content-signal.contradiction": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a signal permits a use, but another line refuses the use or the fetch",
    ),
    "content-signal.elsewhere": Rule(
        FINDING,
        "comity, docs/content-signals.md",
        "a group for another agent refuses a permitted use: some readers apply this "
        "refusal to all agents",
    ),
    "content-signal.label": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a word of another vocabulary, or similar to a signal",
    ),
    "content-signal.outside": Rule(
        FINDING,
        "comity, docs/content-signals.md",
        "a line is outside of all groups: it is for any agent, or permits nothing",
        severity=INFO,
    ),
    "content-signal.spelling": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "not every reader understands this spelling of a signal",
    ),
}
