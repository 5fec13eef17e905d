"""Uses are read one by one, and remembered: the same tags are understood as by their shape as a
whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.records import Record
from comity.policies.tag import BASIC_USES, TAG, TagError, Use, read_conditions, read_tag

REASON = {
    "rule": "robots.allow",
    "spec": "RFC 9309",
    "url": "https://a.example/robots.txt",
    "line": 2,
    "text": "Allow: /",
}
USES = st.fixed_dictionaries(
    {"verdict": st.sampled_from(["allow", "deny", "allow", "perhaps"]), "stated": st.booleans()},
    optional={
        "because": st.lists(st.sampled_from([0, 1, 0, 1, 2, -1, True]), max_size=2),
        "until": st.sampled_from(
            ["2026-12-01T12:00:00Z", "2026-12-01T12:00:00", "2026-12-02T12:00:00+01:00", 5]
        ),
        "max_words": st.sampled_from([0, 0.0, False, 7]),
        "required_contexts": st.lists(st.sampled_from("ab"), max_size=2),
    },
)
NAMES = st.sampled_from([*BASIC_USES, "train", "train", "Train", "", "a b"])
VALID = {"verdict": "allow", "stated": True, "because": [0]}
DECISIONS = st.dictionaries(NAMES, USES | st.just(VALID) | st.none(), max_size=3)


@pytest.mark.requirement("MEET-3")
@given(DECISIONS, st.none() | DECISIONS, st.booleans())
def test_they_are_what_the_shape_says(
    decisions: Record, embedded: Record | None, is_whole: bool
) -> None:
    uses = (dict.fromkeys(BASIC_USES, VALID) if is_whole else {}) | decisions
    raw: dict[str, Any] = {
        "schema": 1,
        "agent": "a",
        "uses": uses,
        "elements": [],
        "reasons": [REASON] * 2,
        "policies": {},
    }
    if embedded is not None:
        raw["embedded"] = embedded
    parts = [raw[name] for name in ("uses", "embedded") if name in raw]
    for _ in range(2):  # remembered the second time
        if not TAG.is_valid(raw) or any(
            max(use["because"]) > 1 for part in parts for use in part.values()
        ):
            with pytest.raises(TagError, match=r"^invalid-tag:(uses|embedded|because)$"):
                read_tag(raw)
        else:
            tag = read_tag(raw)
            for part, understood in zip(parts, (tag.uses, tag.embedded), strict=False):
                assert dict(understood) == {
                    name: Use(
                        use["verdict"] == "allow", tuple(use["because"]), read_conditions(use)
                    )
                    for name, use in part.items()
                }
