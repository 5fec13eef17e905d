"""The rules of the assertion Training and Data Mining in C2PA manifests."""

from comity.policies.answers.rule import REFUSES, Rule

RULES = {
    "cawg.not-allowed": Rule(
        REFUSES,
        "CAWG Training and Data Mining 1.1",
        "the manifest of the file does not allow the use (notAllowed, constrained)",
    ),
    "cawg.unread": Rule(
        REFUSES,
        "comity, docs/c2pa.md",
        "the manifest of the file has an assertion about the use that cannot be read",
    ),
}
