"""The effect of each prohibited action of ai.txt on an export of a page with the element
(section-3.3 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.policies.answers.element_rule import ACTIONS

MakeRecord = Callable[..., dict[str, Any]]

USES = (
    "train",
    "train-ai",
    "genai",
    "index",
    "search",
    "present",
    "present-snippet",
    "present-link",
    "ai-input",
    "preserve",
)
OWN = tuple(action.lower() for action in ACTIONS)

# The uses of USES whose exports lack the element, besides the use with the name of the action.
CUT = {
    "Analyze": "genai",
    "Cite": "",
    "Clip": "",
    "Describe": "genai",
    "Evaluate": "genai",
    "Extract": "genai",
    "Index": "index search",
    "Manipulate": "genai",
    "Rephrase": "genai ai-input",
    "Return": "genai ai-input present present-snippet",
    "Summarize": "genai ai-input",
    "Train": "train train-ai genai",
    "Transcribe": "genai",
    "Translate": "genai",
}


@pytest.mark.requirement("AIT-16", "MEET-5")
@pytest.mark.parametrize("action", ACTIONS)
def test_each_action(make_record: MakeRecord, action: str) -> None:
    allowed: dict[str, Any] = {use.replace("-", "_"): {} for use in (*USES, *OWN)}
    elements = [{"deny": [action.lower()], "spans": [["text", 4, 11], ["links", 0]]}]
    fields = {
        "text": "one covered two",
        "links": ["https://example.com/covered", "https://example.com/free"],
    }
    record = make_record(**allowed, fields=fields, elements=elements)
    for use in (*USES, *OWN):
        exported = apply_terms(
            record, Terms.of([use], now=datetime(2026, 11, 21, tzinfo=UTC))
        ).record
        assert exported
        is_cut = use == action.lower() or use in CUT[action].split()
        assert exported["text"] == ("one  two" if is_cut else "one covered two"), use
        assert exported["links"] == fields["links"][1 if is_cut else 0 :]
        assert exported["permissions"]["elements"][0]["deny"] == [action.lower()]  # it travels on


@pytest.mark.requirement("MEET-5")
def test_files_that_were_stored_from_within_it(make_record: MakeRecord) -> None:
    """Media pipelines say so after the tag was written."""
    inside, outside = (
        {"url": f"https://example.com/{name}.png", "path": f"full/{name}.png"}
        for name in ("in", "out")
    )
    elements = [{"deny": ["train"], "urls": [inside["url"]]}]
    record = make_record(
        train={},
        index={},
        fields={"images": [inside, outside], "files": [inside]},
        elements=elements,
    )
    now = datetime(2026, 11, 21, tzinfo=UTC)
    trained, indexed = (
        apply_terms(record, Terms.of([use], now=now)).record for use in ("train", "index")
    )
    assert trained
    assert (trained["images"], trained["files"]) == ([outside], [])
    assert indexed == record


@pytest.mark.requirement("AIT-16", "MEET-5")
def test_all_of_them_are_in_the_table() -> None:
    assert tuple(CUT) == ACTIONS


@pytest.mark.requirement("AIT-16")
def test_what_is_not_to_be_clipped_is_whole_or_not_there(make_record: MakeRecord) -> None:
    """It may be shown at its full length."""
    elements = [{"deny": ["clip"], "spans": [["text", 4, 11]]}]
    now = datetime(2026, 11, 21, tzinfo=UTC)
    for words, text in ((9, "one covered two"), (2, "one covered"), (1, "one")):
        record = make_record(
            present_snippet={"max_words": words},
            fields={"text": "one covered two"},
            elements=elements,
        )
        exported = apply_terms(record, Terms.of(["present-snippet"], now=now)).record
        assert exported
        assert exported["text"] == text
    record = make_record(
        present_snippet={"max_words": 2},
        fields={"text": "one two and three"},
        elements=[elements[0] | {"spans": [["text", 4, 17]]}],
    )
    assert apply_terms(record, Terms.of(["present-snippet"], now=now)).cause == "clip"
