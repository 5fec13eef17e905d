"""The rules of ai.txt."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Example, Rule

RULES = {
    "ait.disallow": Rule(
        REFUSES,
        "ai.txt paper section-3.2",
        "a Disallow line prohibits the action on the element",
        depends_on_request=True,
    ),
    "ait.guide": Rule(
        ALLOWS,
        "ai.txt paper section-3.2",
        "a Guide line permits the action on the element, with instructions",
    ),
    "ait.selector": Rule(
        REFUSES,
        "ai.txt paper section-3.2",
        "a selector or name cannot be applied, or costs too much: the whole document is "
        "meant; or a part of it is ignored",
    ),
    "ait.unreachable": Rule(
        REFUSES,
        "comity, docs/ai-txt.md",
        "ai.txt cannot be fetched: it may prohibit every action",
        is_unreachable=True,
    ),
    "spawning.disallow": Rule(
        REFUSES, "Spawning's ai.txt (docs/ai-txt.md)", "a pattern refuses AI training"
    ),
    "ait.action": Rule(
        FINDING,
        "ai.txt paper section-3.3",
        "an action is unknown or misspelled",
        why="The ai.txt paper lists fourteen actions. Readers may ignore another word, so the "
        "action that you mean is not prohibited.",
        fix="Write an action of the list, such as `Train`, `Summarize` or `Translate`.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Learn\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.agent": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "the value of a User-agent line is empty, or more than names",
        why="A crawler compares each name in the line with its own. With other text beside the "
        "name, or without a name, the rules may apply to no crawler.",
        fix="Write only names of crawlers, or only `*` for all of them.",
        example=Example(
            bad="User-agent: GPTBot/1.1\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="User-agent: GPTBot\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.comment": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a comment is behind a value: it is ignored",
        why="comity ignores a comment behind a value. Other readers may take it for a part of "
        "the value, and then the rule matches nothing.",
        fix="Put the comment on a line of its own.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html  # our own texts\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="# our own texts\n"
            "User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.empty": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a line has no value, or a block is empty",
        why="A line without a value, or a block without rules, prohibits nothing. An empty block "
        "may also take over the rules of the next one.",
        fix="Write the missing value, or delete the line.",
        example=Example(
            bad="User-agent: *\n  Path: /news/ html\n    Element: article p\n      Disallow:\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.file-type": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "the file type is missing or unknown: every type is meant",
        why="The file type decides how the element is read: as a CSS selector in html, as a "
        "dotted name in json and xml. Without a known type the rule applies to files of "
        "every type.",
        fix="Write `html`, `json` or `xml` after the path.",
        example=Example(
            bad="User-agent: *\n  Path: /news/\n    Element: article p\n      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.format": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "the file is in another format",
        severity=INFO,
        why="Two formats share the name ai.txt, and many readers know only one of them. Text in "
        "neither format states nothing.",
        fix="Write blocks of `User-agent`, `Path`, `Element` and `Disallow` lines, unless you "
        "mean Spawning's format.",
        example=Example(
            bad="AI-Training: no\nContact: editor@example.com\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.indentation": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "the indentation of a line does not fit its keyword: the keyword counts",
        why="The indentation shows which block a line belongs to. A strict reader may put this "
        "line into another block, or ignore it.",
        fix="Indent each level by two spaces, four spaces or a tab, the same in the whole file.",
        example=Example(
            bad="User-agent: *\n  Path: /news/ html\n  Element: article p\n      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.keyword": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a keyword is unknown or misspelled",
        why="comity reads a misspelled keyword as the one that was meant, and ignores other "
        "words. Other readers may ignore the line in both cases, so it prohibits nothing.",
        fix="Write one of the keywords `User-agent`, `Path`, `Element`, `Disallow`, `Guide`, "
        "`Lang` and `Guideline`, with a colon.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Dissallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.language": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a guideline has no language, or a language tag is invalid",
        why="A reader chooses the guideline in its own language. A guideline without a language "
        "may not be chosen.",
        fix="Write a `Lang` line with a language tag, such as `en`, above the guideline.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Guide: Summarize\n"
            "        Guideline: Keep the first line of each paragraph.\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Guide: Summarize\n"
            "        Lang: en\n"
            "        Guideline: Keep the first line of each paragraph.\n",
        ),
    ),
    "ait.limit": Rule(
        FINDING,
        "comity, docs/ai-txt.md",
        "the file exceeds a limit: it may prohibit more, and permits nothing",
        severity=ERROR,
        why="Beyond its limits comity assumes a prohibition, which may cover more than you mean. "
        "Other readers may stop earlier and miss rules.",
        fix="Shorten the value or the file, for example with one rule for a whole folder.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article, .price\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article, .price\n"
            "      Disallow: Train\n",
            repeated=", .price",
            times=5000,
        ),
    ),
    "ait.orphan": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a line does not belong to any block above it",
        severity=ERROR,
        why="A rule needs an agent, a path and an element above it. Without an agent or a path "
        "it has no effect. Without an element it covers the whole document.",
        fix="Write the missing `User-agent`, `Path`, `Element` or `Guide` line above it.",
        example=Example(
            bad="User-agent: *\n    Element: article p\n      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.path": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a path is missing, or written in another form",
        why="In ai.txt a path is written as it is on your site, without wildcards, host or "
        "query. comity reads this value as another path, and for other readers it may match "
        "nothing.",
        fix="Write a path that begins with `/`, such as `/news/`.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "spawning.pattern": Rule(
        FINDING,
        "Spawning's ai.txt (docs/ai-txt.md)",
        "a value is not a single path or file type",
        severity=ERROR,
        why="A Disallow that is not a path or a file type refuses everything, and an Allow "
        "permits nothing. Other readers may take several patterns in a line for one.",
        fix="Write one path, such as `/drafts/`, or one file type, such as `*.jpg`, in each line.",
        example=Example(
            bad="User-Agent: *\nDisallow: jpg\n",
            good="User-Agent: *\nDisallow: *.jpg\n",
        ),
    ),
    # Found for authors alone
    "ait.contradiction": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a Guide permits an action that a Disallow prohibits: the Disallow counts",
        why="A Disallow always overrides a Guide. The action that you permit here stays "
        "prohibited, so your instructions have no effect.",
        fix="Delete the action from the Disallow or from the Guide.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Summarize\n"
            "      Guide: Summarize\n"
            "        Lang: en\n"
            "        Guideline: Name the author.\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Guide: Summarize\n"
            "        Lang: en\n"
            "        Guideline: Name the author.\n",
        ),
    ),
    "ait.duplicate": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a line repeats another one",
        severity=INFO,
        why="The line changes nothing. If you change only one of the two lines later, the other "
        "one still applies.",
        fix="Delete the line.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.element-part": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a part of a selector is ignored: more is meant",
        why="Only a browser can tell which elements a part such as `:hover` selects. Other "
        "readers leave the part out, so the rule covers more elements than you mean.",
        fix="Write a selector that depends on the document only, such as a class.",
        example=Example(
            bad="User-agent: *\n  Path: /news/ html\n    Element: a:hover\n      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: a.author\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.extension": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "the extension of a path does not fit its file type",
        why="The rule applies only to files of its type. The path leads to a file of another "
        "type, so the rule probably never applies.",
        fix="Write the file type of the path's extension.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /feed.json html\n"
            "    Element: items\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /feed.json json\n"
            "    Element: items\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.grammar": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a name, path or list has a character that the paper's grammar lacks: strict readers "
        "may ignore the line",
        severity=INFO,
        why="The grammar of ai.txt does not allow the character. comity reads it, but a strict "
        "reader may ignore the line.",
        fix="Write the character of a path as its percent-escapes, or name the folder above it. "
        "Write a space between actions.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /café/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /caf%C3%A9/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.language-tag": Rule(
        FINDING,
        "RFC 5646 section-2.2",
        "a language tag does not exist",
        why="A reader compares the tag with its own language, such as `en`. No reader has this "
        "tag, so the guideline may not be chosen.",
        fix="Write a language tag, such as `en` or `en-US`.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Guide: Summarize\n"
            "        Lang: english\n"
            "        Guideline: Name the author.\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Guide: Summarize\n"
            "        Lang: en\n"
            "        Guideline: Name the author.\n",
        ),
    ),
    "ait.mixture": Rule(
        FINDING,
        "Spawning's ai.txt (docs/ai-txt.md)",
        "a line in Spawning's form is among rules for elements",
        why="The file has lines of two formats. A reader that knows only one of them ignores the "
        "lines of the other, so it misses a part of your prohibitions.",
        fix="Write the prohibition as a `Disallow: Train` for an element, or keep the whole file "
        "in Spawning's form.",
        example=Example(
            bad="Disallow: *.jpg\n"
            "User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.no-element": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "an element is not a selector or name: the whole document is meant",
        severity=ERROR,
        why="A reader cannot apply the selector or name, so it cannot tell which part you mean. "
        "The rule then covers the whole document.",
        fix="Write a CSS selector for html, or a dotted name for json and xml. Write `*` for the "
        "whole document.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p[\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.overruled": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a Disallow of a part has no effect: the whole document is disallowed",
        severity=INFO,
        why="Another line already prohibits the action for the whole document, so this line adds "
        "nothing.",
        fix="Delete the line, or the rule for the whole document if you mean only a part.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: *\n"
            "      Disallow: Train\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="User-agent: *\n  Path: /news/ html\n    Element: *\n      Disallow: Train\n",
        ),
    ),
    "ait.path-characters": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a path probably matches nothing because of its characters",
        why="All characters of a path have to be in the URL, except `*`, and `$` at the end. "
        "This path probably matches no page, so the rule has no effect.",
        fix="Write the path as it is in your URLs.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /{section}/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.repeated-agent": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a line names an agent twice",
        severity=INFO,
        why="The second name changes nothing. Perhaps you meant another crawler.",
        fix="Delete one of the two names, or write the other crawler's name.",
        example=Example(
            bad="User-agent: GPTBot ClaudeBot GPTBot\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
            good="User-agent: GPTBot ClaudeBot\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.unread": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "the file has no rule",
        why="No line of the file is a rule, so the file neither prohibits nor permits anything.",
        fix="Write a block with `User-agent`, `Path`, `Element` and `Disallow` lines.",
        example=Example(
            bad="# Guidelines\n\nPlease ask us before you train on our texts.\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Disallow: Train\n",
        ),
    ),
    "ait.unused-language": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a language has no guideline",
        why="A language without a guideline below it has no effect. The guideline may be "
        "missing, or may be in the language of the line above.",
        fix="Write a `Guideline` line below it, or delete the line.",
        example=Example(
            bad="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Guide: Summarize\n"
            "        Lang: en\n"
            "        Guideline: Name the author.\n"
            "        Lang: de\n",
            good="User-agent: *\n"
            "  Path: /news/ html\n"
            "    Element: article p\n"
            "      Guide: Summarize\n"
            "        Lang: en\n"
            "        Guideline: Name the author.\n",
        ),
    ),
}
