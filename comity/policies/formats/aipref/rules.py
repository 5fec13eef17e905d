"""The rules of usage preferences."""

from comity.policies.answers.rule import (
    ALLOWS,
    ERROR,
    FINDING,
    INFO,
    REFUSES,
    Example,
    Rule,
)

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
        why="The draft wants usage lines above the rules of their group. comity reads the line "
        "anyway. Other readers may ignore it.",
        fix="Move the line up, directly below the User-agent lines.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/\nUsage: ai=n\n",
            good="User-agent: *\nUsage: ai=n\nDisallow: /private/\n",
        ),
    ),
    "usage.ignored": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-3.1",
        "a member is no preference: it is ignored",
        severity=ERROR,
        why="A preference is a label, `=`, and `y` or `n`. Readers skip everything else, so this "
        "part refuses nothing and permits nothing.",
        fix="Write `n` to refuse and `y` to permit.",
        example=Example(
            bad="User-agent: *\nUsage: ai=no\nDisallow: /private/\n",
            good="User-agent: *\nUsage: ai=n\nDisallow: /private/\n",
        ),
    ),
    "usage.length": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-5.3",
        "an expression is longer than readers must support, or has too many labels",
        why="The specification requires readers to support 1,000 characters of an expression. "
        "Some may miss a refusal behind them. With more than 100 labels, comity reads "
        "the refusals only.",
        fix="Shorten the expression, or divide it into several lines.",
        example=Example(
            bad="User-agent: *\nUsage: tdm=n, ai=n\nDisallow: /private/\n",
            good="User-agent: *\nUsage: tdm=n, ai=n\nDisallow: /private/\n",
            repeated=", ai=n",
            times=200,
        ),
    ),
    "usage.outside": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-6.1",
        "a usage line is outside of all groups: it can refuse, and permits nothing",
        severity=ERROR,
        why="A usage line belongs to the User-agent lines above it. Outside of all groups comity "
        "reads its refusals only, and other readers may ignore the line.",
        fix="Move the line below a User-agent line.",
        example=Example(
            bad="Usage: ai=n\n\nUser-agent: *\nDisallow: /private/\n",
            good="User-agent: *\nUsage: ai=n\nDisallow: /private/\n",
        ),
    ),
    "content-usage.syntax": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a value is not a dictionary: it states nothing",
        severity=ERROR,
        why="Readers skip a value with any mistake in it. Its other preferences do not count "
        "either, so a use that you refuse is not refused.",
        fix="Write `label=y` or `label=n`, in lower case, without spaces around `=`, and with "
        "commas between them.",
        example=Example(
            bad="User-agent: *\nContent-Usage: search=y, Train AI=n\nAllow: /\n",
            good="User-agent: *\nContent-Usage: search=y, train-ai=n\nAllow: /\n",
        ),
    ),
    "content-usage.path": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "the text before the preferences is not a path",
        severity=ERROR,
        why="A path begins with `/`, and preferences follow it. Otherwise the line states no "
        "preference for any page.",
        fix="Write a path that begins with `/`, a space, and the preferences.",
        example=Example(
            bad="User-agent: *\nContent-Usage: *.pdf train-ai=n\nAllow: /\n",
            good="User-agent: *\nContent-Usage: /*.pdf train-ai=n\nAllow: /\n",
        ),
    ),
    "content-usage.label": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 section-4",
        "a label is a word of Content Signals",
        severity=ERROR,
        why="`ai-train` and `ai-input` are words of Content-Signal lines. Readers of "
        "Content-Usage ignore them, so the use is not refused.",
        fix="Write `train-ai` for the label, or write a Content-Signal line.",
        example=Example(
            bad="User-agent: *\nContent-Usage: ai-train=n\nAllow: /\n",
            good="User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n",
        ),
    ),
    "content-usage.value": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 y-or-n",
        "a value is neither `y` nor `n`: it states nothing",
        severity=ERROR,
        why="Only `y` and `n` state a preference. With another value, such as `no`, the use is "
        "not refused.",
        fix="Write `y` or `n`.",
        example=Example(
            bad="User-agent: *\nContent-Usage: train-ai=no\nAllow: /\n",
            good="User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n",
        ),
    ),
    "content-usage.length": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a line or field exceeds the limit: it permits nothing",
        severity=ERROR,
        why="Crawlers do not read lines of unlimited length. comity reads 32 KiB of a line and 8 "
        "KiB of a field. A longer one can refuse uses, but permits none.",
        fix="Shorten the value to a few labels, each written once.",
        example=Example(
            bad="User-agent: *\nContent-Usage: search=y, train-ai=n\nAllow: /\n",
            good="User-agent: *\nContent-Usage: search=y, train-ai=n\nAllow: /\n",
            repeated=", train-ai=n",
            times=3000,
        ),
    ),
    "content-usage.outside": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a rule is outside of all groups: it can refuse, and permits nothing",
        severity=ERROR,
        why="A preference belongs to the User-agent lines above it. Without such a line, other "
        "readers may ignore it, and comity takes only its refusals.",
        fix="Write the line below `User-agent: *`, or below the crawler that you mean.",
        example=Example(
            bad="Content-Usage: train-ai=n\nUser-agent: *\nAllow: /\n",
            good="User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n",
        ),
    ),
    "usage.contradiction": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-5.4",
        "a label is permitted and refused for the same agents: it is refused",
        why="If a label is permitted and refused for the same agents, the refusal counts. The "
        "permission has no effect.",
        fix="Delete the preference that you do not mean.",
        example=Example(
            bad="User-agent: *\nUsage: ai=y\nUsage: ai=n\nDisallow: /private/\n",
            good="User-agent: *\nUsage: ai=n\nDisallow: /private/\n",
        ),
    ),
    "usage.label": Rule(
        FINDING,
        "draft-thomson-aipref-sup section-4",
        "a word of another vocabulary, or similar to a label: it has no effect",
        why="Readers skip a label that the vocabulary does not have. The use that you mean is "
        "neither refused nor permitted.",
        fix="Write the label that the message proposes.",
        example=Example(
            bad="User-agent: *\nUsage: train-ai=n\nDisallow: /private/\n",
            good="User-agent: *\nUsage: ai=n\nDisallow: /private/\n",
        ),
    ),
    "content-usage.contradiction": Rule(
        FINDING,
        "draft-ietf-aipref-attach-05 robots",
        "a label is permitted and refused for the same path and agents: it is refused",
        why="If a label is permitted and refused for the same path, the refusal counts. The "
        "permission has no effect.",
        fix="Delete the preference that you do not mean.",
        example=Example(
            bad="User-agent: *\n"
            "Content-Usage: /news/ search=n\n"
            "Content-Usage: /news/ search=y\n"
            "Allow: /\n",
            good="User-agent: *\nContent-Usage: /news/ search=y\nAllow: /\n",
        ),
    ),
    "content-usage.parameter": Rule(
        FINDING,
        "draft-ietf-aipref-vocab section syntax",
        "a label is behind a semicolon, so it has no effect",
        why="A semicolon begins a parameter of the preference before it. Readers ignore "
        "parameters that they do not know.",
        fix="Write a comma between two preferences.",
        example=Example(
            bad="User-agent: *\nContent-Usage: train-ai=n; search=y\nAllow: /\n",
            good="User-agent: *\nContent-Usage: train-ai=n, search=y\nAllow: /\n",
        ),
    ),
    "content-usage.repeated": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 section-5",
        "a dictionary has a label twice: the last one counts",
        why="Of two values for one label, readers use the last. The first one has no effect, "
        "even if it refuses.",
        fix="Delete the value that you do not mean.",
        example=Example(
            bad="User-agent: *\nContent-Usage: train-ai=n, search=y, train-ai=y\nAllow: /\n",
            good="User-agent: *\nContent-Usage: train-ai=n, search=y\nAllow: /\n",
        ),
    ),
    "content-usage.unknown": Rule(
        FINDING,
        "draft-ietf-aipref-vocab-07 section-4",
        "a word of another vocabulary, or similar to a label: it has no effect",
        why="Readers ignore a label that they do not know, so the line neither refuses nor "
        "permits the use that you mean.",
        fix="Write a label of Content-Usage, such as `train-ai` or `search`.",
        example=Example(
            bad="User-agent: *\nContent-Usage: train_ai=n\nAllow: /\n",
            good="User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n",
        ),
    ),
}
