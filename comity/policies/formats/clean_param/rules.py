"""The rules of Clean-param. All are findings: the lines permit and refuse nothing."""

from comity.policies.answers.rule import ERROR, FINDING, Example, Rule

SPEC = "Yandex, Clean-param"

RULES = {
    "clean-param.path": Rule(
        FINDING,
        SPEC,
        "a Clean-param line is not a list of parameters and a path",
        severity=ERROR,
        why="The line has the names of parameters, joined by `&`, and then a path. A second word "
        "that is no path makes the rule invalid: it has no effect.",
        fix="Join the names by `&`, and begin the path with `/` or `*`.",
        example=Example(
            bad="User-agent: *\nAllow: /\nClean-param: ref from\n",
            good="User-agent: *\nAllow: /\nClean-param: ref&from\n",
        ),
    ),
    "clean-param.names": Rule(
        FINDING,
        SPEC,
        "a Clean-param line without parameters",
        severity=ERROR,
        why="A rule without the name of a parameter has no effect.",
        fix="Write the names of the parameters, or delete the line.",
        example=Example(
            bad="User-agent: *\nAllow: /\nClean-param:\n",
            good="User-agent: *\nAllow: /\nClean-param: ref\n",
        ),
    ),
    "clean-param.length": Rule(
        FINDING,
        SPEC,
        "a Clean-param line is too long",
        severity=ERROR,
        why="Rules have at most 500 characters. Longer rules have no effect.",
        fix="Write several Clean-param lines.",
        example=Example(
            bad="User-agent: *\nAllow: /\nClean-param: ref&from&utm\n",
            good="User-agent: *\nAllow: /\nClean-param: ref\nClean-param: from\nClean-param: utm\n",
            repeated="&from",
            times=100,
        ),
    ),
}
