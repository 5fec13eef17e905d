"""The rules of trust.txt."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Example, Rule

SPEC = "draft-org-trust-relationship-protocol-01"
_PAGE = "comity, docs/trust-txt.md"

RULES = {
    "trust-txt.allow": Rule(ALLOWS, SPEC, "trust.txt permits training (datatrainingallowed=yes)"),
    "trust-txt.disallow": Rule(
        REFUSES, SPEC, "trust.txt refuses training (datatrainingallowed=no)"
    ),
    "trust-txt.unreachable": Rule(
        REFUSES,
        _PAGE,
        "trust.txt cannot be fetched: it may refuse training",
        is_unreachable=True,
    ),
    "trust-txt.value": Rule(
        FINDING,
        SPEC,
        "the value of datatrainingallowed is neither yes nor no",
        severity=ERROR,
        why="The specification has the values `yes` and `no`. Some readers ignore any other value, "
        "and see no refusal. comity reads it as no.",
        fix="Write `yes` or `no`.",
        example=Example(
            bad="datatrainingallowed=never\nmember=https://example.org/\n",
            good="datatrainingallowed=no\nmember=https://example.org/\n",
            name="trust.txt",
        ),
    ),
    "trust-txt.name": Rule(
        FINDING,
        SPEC,
        "a line about training is not spelt as the specification spells it",
        severity=ERROR,
        why="Readers look for a line that begins with `datatrainingallowed=`. comity reads a "
        "refusal in other spellings too, but no permission.",
        fix="Write `datatrainingallowed=no` or `datatrainingallowed=yes`.",
        example=Example(
            bad="data-training-allowed: no\nmember=https://example.org/\n",
            good="datatrainingallowed=no\nmember=https://example.org/\n",
            name="trust.txt",
        ),
    ),
    "trust-txt.repeated": Rule(
        FINDING,
        SPEC,
        "several lines about training",
        severity=ERROR,
        why="A file has one such line. Readers may take the first one, the last one or none. "
        "comity reads several lines as a refusal.",
        fix="Keep one line.",
        example=Example(
            bad="datatrainingallowed=yes\ndatatrainingallowed=no\nmember=https://example.org/\n",
            good="datatrainingallowed=no\nmember=https://example.org/\n",
            name="trust.txt",
        ),
    ),
    "trust-txt.line": Rule(
        FINDING,
        SPEC,
        "a line that is neither `name=value` nor a comment",
        why="Readers skip such a line, or reject the file.",
        fix="Write `name=value`, or put `#` before a comment.",
        example=Example(
            bad="datatrainingallowed=no\nWe are members of the association\n",
            good="datatrainingallowed=no\n# We are members of the association\n",
            name="trust.txt",
        ),
    ),
    "trust-txt.attribute": Rule(
        FINDING,
        SPEC,
        "a name that the specification does not have",
        why="Readers look for the names of the specification only.",
        fix="Correct the name, or delete the line.",
        example=Example(
            bad="datatrainingallowed=no\nmembre=https://example.org/\n",
            good="datatrainingallowed=no\nmember=https://example.org/\n",
            name="trust.txt",
        ),
    ),
    "trust-txt.rare": Rule(
        FINDING,
        _PAGE,
        "few crawlers read trust.txt",
        severity=INFO,
        why="Few crawlers read this file. Many more read Content Signals in robots.txt.",
        fix="Write a `Content-Signal` line into robots.txt too.",
        example=Example(
            bad={
                "trust.txt": "datatrainingallowed=no\n",
                "robots.txt": "User-agent: *\nAllow: /\n",
            },
            good={
                "trust.txt": "datatrainingallowed=no\n",
                "robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n",
            },
        ),
    ),
}
