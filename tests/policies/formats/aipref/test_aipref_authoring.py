"""What helps those who write usage preferences: their words, and what is said of lines besides their syntax."""

from __future__ import annotations

import pytest

from comity.policies.formats.aipref import FORMAT, content_usage, short_strings
from comity.policies.formats.aipref.authoring import AUTHORING
from comity.policies.vocabulary.table import Vocabulary


def test_every_line_is_a_directive() -> None:
    assert {directive.name.lower() for directive in AUTHORING.directives} == set(FORMAT.robots_lines)
    assert all(directive.spec and directive.summary for directive in AUTHORING.directives)


@pytest.mark.parametrize(
    ("kind", "vocabulary", "read"),
    [("preference", "aipref", content_usage.read), ("short-preference", "usage", short_strings.read)],
)
def test_every_label_is_offered_both_ways(kind: str, vocabulary: str, read: object) -> None:
    assert any(kind in directive.value.split() for directive in AUTHORING.directives)
    offered = AUTHORING.values[kind]
    labels = Vocabulary.shipped().words[vocabulary].narrows
    assert set(offered) == {f"{label}={value}" for label in labels for value in "yn"}
    for word in offered:
        assert list(read(word)) == [word.partition("=")[0]]  # type: ignore[operator]
