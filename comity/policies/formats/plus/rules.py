"""The rules of the PLUS property Data Mining."""

from comity.policies.answers.rule import ALLOWS, REFUSES, Rule

RULES = {
    "plus.allowed": Rule(
        ALLOWS, "PLUS LDF XMP, Data Mining", "the file says that it may be mined (DMI-ALLOWED)"
    ),
    "plus.prohibited": Rule(
        REFUSES,
        "PLUS LDF XMP, Data Mining",
        "the file prohibits data mining, or the training of models (DMI-PROHIBITED)",
    ),
    "plus.unread": Rule(
        REFUSES,
        "comity, docs/plus.md",
        "the file has a value of Data Mining, or metadata, that cannot be read",
    ),
}
