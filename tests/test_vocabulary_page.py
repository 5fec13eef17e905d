"""The example in docs/vocabulary.md has the effect that the page states."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comity.policies.answers.decision import Reason, Source, Verdict
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Location, Statement
from comity.policies.vocabulary.table import Vocabulary

PAGE = Path(__file__).parent.parent / "docs" / "vocabulary.md"


@pytest.mark.requirement("MEET-4", "TDM-2")
def test_the_example_does_what_it_says() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    shipped, own = Vocabulary.shipped(), Vocabulary.from_toml(example)

    def verdict(vocabulary: Vocabulary, term: str, verdict: Verdict, use: str) -> Verdict | None:
        statement = Statement(term, verdict, "usage.allow", Location())
        reason = Reason(rule="usage.allow", source=Source(url=""))
        decision = Preferences(
            vocabulary, term.partition(":")[0], [statement], lambda _: reason
        ).decide(use)
        return None if decision is None else decision.verdict

    for term, said, use in (
        ("tdmrep:reservation", Verdict.DENY, "search"),
        ("tdmrep:reservation", Verdict.DENY, "index"),
        ("robots-meta:noarchive", Verdict.DENY, "train"),
        ("usage:x-audio", Verdict.DENY, "text-to-speech"),
        ("usage:x-audio", Verdict.ALLOW, "text-to-speech"),
    ):
        assert verdict(shipped, term, said, use) is None
        assert verdict(own, term, said, use) is said
    assert verdict(own, "tdmrep:reservation", Verdict.ALLOW, "search") is None
    assert verdict(own, "usage:ai", Verdict.DENY, "text-to-speech") is Verdict.DENY
