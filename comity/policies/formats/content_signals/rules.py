"""The rules of Content Signals."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Example, Rule

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
        why="Readers may ignore a signal with a value other than `yes` and `no`, so the use that "
        "you refuse is not refused. comity reads another value as `no`, unless it means yes, "
        "such as `true`.",
        fix="Write `yes` or `no` for the value.",
        example=Example(
            bad="User-agent: *\nContent-Signal: search=yes, ai-train=never\nAllow: /\n",
            good="User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n",
        ),
    ),
    "content-signal.contradiction": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a signal permits a use, but another line refuses the use or the fetch",
        why="A refusal overrides a permission for the same crawlers. If `Disallow: /` closes the "
        "site, crawlers do not fetch its pages, so a permission to use them has no effect.",
        fix="Delete the line that you do not mean.",
        example=Example(
            bad="User-agent: *\nContent-Signal: search=yes\nDisallow: /\n",
            good="User-agent: *\nContent-Signal: search=yes\nAllow: /\n",
        ),
    ),
    "content-signal.elsewhere": Rule(
        FINDING,
        "comity, docs/content-signals.md",
        "a group for another agent refuses a permitted use: some readers apply this "
        "refusal to all agents",
        why="Some readers apply the signals of the whole file to every crawler. For them, a "
        "refusal in another group also refuses the use that you permit here.",
        fix="Write the same value in each group.",
        example=Example(
            bad="User-agent: *\n"
            "Content-Signal: ai-train=no\n"
            "Allow: /\n"
            "\n"
            "User-agent: GPTBot\n"
            "Content-Signal: ai-train=yes\n"
            "Allow: /\n",
            good="User-agent: *\n"
            "Content-Signal: ai-train=no\n"
            "Allow: /\n"
            "\n"
            "User-agent: GPTBot\n"
            "Content-Signal: ai-train=no\n"
            "Allow: /\n",
        ),
    ),
    "content-signal.label": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "a word of another vocabulary, or similar to a signal",
        why="Readers ignore a signal that they do not know, so the line neither refuses nor "
        "permits the use that you mean.",
        fix="Write `search`, `ai-input` or `ai-train`.",
        example=Example(
            bad="User-agent: *\nContent-Signal: train-ai=no\nAllow: /\n",
            good="User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n",
        ),
    ),
    "content-signal.outside": Rule(
        FINDING,
        "comity, docs/content-signals.md",
        "a line is outside of all groups: it is for any agent, or permits nothing",
        severity=INFO,
        why="A signal belongs to the User-agent lines above it. Without such a line, readers "
        "differ about the crawlers that it addresses.",
        fix="Write the line below `User-agent: *`.",
        example=Example(
            bad="Content-Signal: ai-train=no\nUser-agent: *\nAllow: /\n",
            good="User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n",
        ),
    ),
    "content-signal.spelling": Rule(
        FINDING,
        "draft-romm-aipref-contentsignals usage-category-labels",
        "not every reader understands this spelling of a signal",
        why="comity reads this spelling as the usual one. A strict reader may ignore the line, "
        "so the use that you refuse is not refused.",
        fix="Write `Content-Signal: search=yes, ai-train=no`, with hyphens, commas, and no quotes.",
        example=Example(
            bad="User-agent: *\nContent-Signal: search=yes; ai_train=no\nAllow: /\n",
            good="User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n",
        ),
    ),
}
