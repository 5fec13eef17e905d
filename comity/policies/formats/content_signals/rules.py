"""The rules of Content Signals."""

from comity.policies.answers.rule import ALLOWS, FINDING, REFUSES, Rule

RULES = {
    "content-signal.allow": Rule(ALLOWS, "draft-romm-aipref-contentsignals usage-category-labels", "a Content Signal says `yes`"),
    "content-signal.disallow": Rule(
        REFUSES, "draft-romm-aipref-contentsignals usage-category-labels", "a Content Signal says `no`"
    ),
    "content-signal.fallback": Rule(
        REFUSES, "comity, docs/content-signals.md", "a Content Signal for `*` says `no`, and the agent's own group has none"
    ),
    "content-signal.whole-file": Rule(
        REFUSES, "comity, docs/content-signals.md", "a Content Signal in the group of another agent says `no`"
    ),
    "content-signal.value": Rule(
        FINDING, "draft-romm-aipref-contentsignals usage-category-labels", "a signal has a value that means nothing"
    ),
    "content-signal.contradiction": Rule(
        FINDING, "draft-romm-aipref-contentsignals usage-category-labels", "a signal permits the use of what may not be fetched"
    ),
}
