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
        "meant; or a part of it is left out",
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
        FINDING, "ai.txt paper section-3.3", "an action that nobody knows, or a misspelled one"
    ),
    "ait.agent": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "the value of a User-agent line is more than names, or none",
    ),
    "ait.comment": Rule(
        FINDING, "ai.txt paper section-3.2", "a comment stands behind a value: it is left out"
    ),
    "ait.empty": Rule(
        FINDING, "ai.txt paper figure-11", "a line without its value, or a block that holds nothing"
    ),
    "ait.file-type": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "no file type, or not one that is known: every type is meant",
    ),
    "ait.format": Rule(
        FINDING, "ai.txt paper figure-11", "the file is in another format", severity=INFO
    ),
    "ait.indentation": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a line is not indented as its keyword asks: the keyword counts",
    ),
    "ait.keyword": Rule(
        FINDING, "ai.txt paper figure-11", "a keyword that nobody knows, or a misspelled one"
    ),
    "ait.language": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a guideline without a language, or a language tag that is none",
    ),
    "ait.limit": Rule(
        FINDING,
        "comity, docs/ai-txt.md",
        "there is more than is read: it may prohibit more, and permits nothing",
        severity=ERROR,
    ),
    "ait.orphan": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a line has nothing above it to which it belongs",
        severity=ERROR,
    ),
    "ait.path": Rule(
        FINDING, "ai.txt paper section-3.2", "a path that is none, or is written in another way"
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
        "a Guide permits what a Disallow prohibits: Disallow counts",
    ),
    "ait.duplicate": Rule(
        FINDING, "ai.txt paper section-3.2", "a line says what another has said", severity=INFO
    ),
    "ait.element-part": Rule(
        FINDING, "ai.txt paper section-3.2", "a part of a selector is left out: more is meant"
    ),
    "ait.extension": Rule(
        FINDING, "ai.txt paper section-3.2", "a path ends as what is not of its file type"
    ),
    "ait.grammar": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a name or path has a character that the paper's grammar lacks: comity reads it, "
        "a strict reader may not",
        severity=INFO,
    ),
    "ait.language-tag": Rule(
        FINDING, "RFC 5646 section-2.2", "a language tag that no language has"
    ),
    "ait.mixture": Rule(
        FINDING,
        "Spawning's ai.txt (docs/ai-txt.md)",
        "a line in Spawning's form among rules for elements",
    ),
    "ait.no-element": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "an element that is no selector or name: the whole document is meant",
        severity=ERROR,
    ),
    "ait.overruled": Rule(
        FINDING,
        "ai.txt paper section-3.2",
        "a Disallow of a part adds nothing to one of the whole document",
        severity=INFO,
    ),
    "ait.path-characters": Rule(
        FINDING,
        "ai.txt paper figure-11",
        "a path has characters by which it probably matches nothing",
    ),
    "ait.repeated-agent": Rule(
        FINDING, "ai.txt paper section-3.2", "an agent is named twice in a line", severity=INFO
    ),
    "ait.unread": Rule(FINDING, "ai.txt paper figure-11", "nothing in the file is a rule"),
    "ait.unused-language": Rule(FINDING, "ai.txt paper section-3.2", "a language has no guideline"),
}
