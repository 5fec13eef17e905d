"""What helps those who write a robots.txt: its words, what is said of it besides its syntax, and what mends that."""

from __future__ import annotations

import pytest

from comity.policies.formats.robots.authoring import AUTHORING, DIRECTIVES
from comity.policies.formats.robots.grammar import parse
from comity.policies.syntax.records import Kind


def test_every_record_that_is_read_is_a_directive() -> None:
    assert {directive.name.lower().encode() for directive in DIRECTIVES} == {kind.value for kind in Kind} - {b"acap-crawler"}


@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: directive.name)
def test_every_directive_says_what_it_is(directive: object) -> None:
    assert directive in DIRECTIVES
    name, spec, summary, value, within = directive  # type: ignore[misc]
    assert spec
    assert summary[0].isupper()
    assert summary[-1] != "."
    assert set(within) <= {other.name for other in DIRECTIVES}
    for word in AUTHORING.values.get(value, {}):
        group = parse(f"User-agent: *\n{name}: {word}\n".encode()).for_agent("examplebot")
        assert group.has_group


def test_rates_that_are_offered_are_read() -> None:
    for value, read in (("seconds", "crawl_delay"), ("rate", "request_rates"), ("hours", "visit_time")):
        [name] = [directive.name for directive in DIRECTIVES if directive.value == value]
        for word in AUTHORING.values[value]:
            rates = parse(f"User-agent: *\n{name}: {word}\n".encode()).for_agent("examplebot").rates
            assert getattr(rates, read)
