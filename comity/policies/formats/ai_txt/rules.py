"""The rules of ai.txt."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

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
    "ait.action": Rule(FINDING, "ai.txt paper section-3.3", "an action is unknown or misspelled"),
    "ait.agent": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "the value of a User-agent line is empty, or more than names",
    ),
    "ait.comment": Rule(
        FINDING, "ai.txt paper section-3.2", "a comment is behind a value: it is ignored"
    ),
    "ait.empty": Rule(
        FINDING, "ai.txt paper figure-11", "a line has no value, or a block is empty"
    ),
    "ait.file-type": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "the file type is missing or unknown: every type is meant",
    ),
    "ait.format": Rule(
        FINDING, "ai.txt paper figure-11", "the file is in another format", severity=INFO
    ),
    "ait.indentation": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "the indentation of a line does not fit its keyword: the keyword counts",
    ),
    "ait.keyword": Rule(FINDING, "ai.txt paper figure-11", "a keyword is unknown or misspelled"),
    "ait.language": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a guideline has no language, or a language tag is invalid",
    ),
    "ait.limit": Rule(
        FINDING,
        "comity, docs/ai-txt.md",
        "the file exceeds a limit: it may prohibit more, and permits nothing",
        severity=ERROR,
    ),
    "ait.orphan": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a line does not belong to any block above it",
        severity=ERROR,
    ),
    "ait.path": Rule(
        FINDING, "ai.txt paper section-3.2", "a path is missing, or written in another form"
    ),
    "spawning.pattern": Rule(
        FINDING,
        "Spawning's ai.txt (docs/ai-txt.md)",
        "a value is not a single path or file type",
        severity=ERROR,
    ),
    # Found for authors alone
    "ait.contradiction": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a Guide permits an action that a Disallow prohibits: the Disallow counts",
    ),
    "ait.duplicate": Rule(
        FINDING, "ai.txt paper section-3.2", "a line repeats another one", severity=INFO
    ),
    "ait.element-part": Rule(
        FINDING, "ai.txt paper section-3.2", "a part of a selector is ignored: more is meant"
    ),
    "ait.extension": Rule(
        FINDING, "ai.txt paper section-3.2", "the extension of a path does not fit its file type"
    ),
    "ait.grammar": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a name or path has a character that the paper's grammar lacks: strict readers "
        "may ignore the line",
        severity=INFO,
    ),
    "ait.language-tag": Rule(FINDING, "RFC 5646 section-2.2", "a language tag does not exist"),
    "ait.mixture": Rule(
        FINDING,
        "Spawning's ai.txt (docs/ai-txt.md)",
        "a line in Spawning's form is among rules for elements",
    ),
    "ait.no-element": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "an element is no selector or name: the whole document is meant",
        severity=ERROR,
    ),
    "ait.overruled": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a Disallow of a part has no effect: the whole document is disallowed",
        severity=INFO,
    ),
    "ait.path-characters": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a path probably matches nothing because of its characters",
    ),
    "ait.repeated-agent": Rule(
        FINDING, "ai.txt paper section-3.2", "a line names an agent twice", severity=INFO
    ),
    "ait.unread": Rule(FINDING, "ai.txt paper figure-11", "the file has no rule"),
    "ait.unused-language": Rule(FINDING, "ai.txt paper section-3.2", "a language has no guideline"),
}
