"""What helps those who write ACAP: its words, what is said of a file besides its syntax, and what mends that."""

from __future__ import annotations

import pytest

from comity.policies.formats.acap.authoring import AUTHORING, DIRECTIVES, VALUES
from comity.policies.formats.acap.grammar import parse
from comity.policies.formats.acap.usages import QUALIFIED, USAGES, read_qualifiers
from comity.policies.formats.authoring import Directive

NAMES = {directive.name for directive in DIRECTIVES}
DEFINITION = "ACAP-qualified-usage: teaser index time-limit=1-days\n"


@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: directive.name)
def test_every_directive_is_known_and_says_what_it_is(directive: Directive) -> None:
    assert directive.spec.startswith("ACAP 1.0 section-")
    assert directive.summary[0].isupper()
    assert directive.summary[-1] != "."
    assert set(directive.within) <= NAMES
    acap = parse(f"{DEFINITION}ACAP-crawler: *\n{directive.name}: /a\n".encode())
    assert "acap.unknown-field" not in {finding.rule for finding in acap.findings}
    assert "acap.unknown-usage" not in {finding.rule for finding in acap.findings}


def test_every_usage_can_be_permitted_and_prohibited() -> None:
    assert {f"ACAP-{verb}-{usage}" for verb in ("allow", "disallow") for usage in USAGES} <= NAMES
    assert tuple(VALUES["usage"]) == USAGES


@pytest.mark.parametrize("usage", USAGES)
def test_qualifiers_that_are_offered_are_read(usage: str) -> None:
    [directive] = [directive for directive in DIRECTIVES if directive.name == f"ACAP-allow-{usage}"]
    path, *qualifier = directive.value.split()
    assert path == "path"
    offered = AUTHORING.values[qualifier[0]] if qualifier else {}
    assert {word.partition("=")[0] for word in offered} == {name for name, usages in QUALIFIED.items() if usage in usages}
    for word in offered:
        assert read_qualifiers(word, usage).restrictions()
