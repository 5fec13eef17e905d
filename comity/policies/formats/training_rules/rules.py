"""The rules of DisallowAITraining and AllowAITraining."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Example, Rule

_DRAFT = "draft-canel-robots-ai-control-00"

RULES = {
    "training-rules.allow": Rule(ALLOWS, _DRAFT, "an AllowAITraining line matches the URL"),
    "training-rules.disallow": Rule(REFUSES, _DRAFT, "a DisallowAITraining line matches the URL"),
    "training-rules.path": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a path that matches no URL",
        severity=ERROR,
        why="Paths are compared with the path of a URL, which begins with `/`. Other paths match "
        "nothing, so the rule has no effect.",
        fix="Begin the path with `/` or `*`.",
        example=Example(
            bad="User-agent: *\nDisallowAITraining: drafts/\nAllow: /\n",
            good="User-agent: *\nDisallowAITraining: /drafts/\nAllow: /\n",
        ),
    ),
    "training-rules.outside": Rule(
        FINDING,
        "RFC 9309 section-2.1",
        "a rule about training that is in no group",
        severity=ERROR,
        why="Rules apply to the agents of their group. Most readers ignore a rule above the first "
        "User-agent line. comity reads it as a refusal for every agent, and takes no permission "
        "from it.",
        fix="Put a `User-agent` line above the rule.",
        example=Example(
            bad="DisallowAITraining: /\n\nUser-agent: *\nAllow: /\n",
            good="User-agent: *\nDisallowAITraining: /\nAllow: /\n",
        ),
    ),
    "training-rules.length": Rule(
        FINDING,
        "comity, docs/training-rules.md",
        "a path that is too long to be read as a whole",
        why="comity reads a limited number of octets of each line. The beginning of a path matches "
        "more URLs than the whole path.",
        fix="Write a shorter path, with `*` for a part of it.",
        example=Example(
            bad="User-agent: *\nDisallowAITraining: /drafts/2026\nAllow: /\n",
            good="User-agent: *\nDisallowAITraining: /drafts/*\nAllow: /\n",
            repeated="2026",
            times=40000,
        ),
    ),
    "training-rules.rare": Rule(
        FINDING,
        "comity, docs/training-rules.md",
        "few crawlers know rules about training",
        severity=INFO,
        why="Few crawlers read these rules. Many more read Content Signals and Content-Usage.",
        fix="Write a `Content-Signal` line into the group too. It applies to the whole site.",
        example=Example(
            bad="User-agent: *\nDisallowAITraining: /\nAllow: /\n",
            good="User-agent: *\nDisallowAITraining: /\nContent-Signal: ai-train=no\nAllow: /\n",
        ),
    ),
}
