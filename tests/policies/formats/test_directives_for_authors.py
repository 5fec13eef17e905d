"""Formats list every word that they read for authors, each with its specification."""

from __future__ import annotations

import pytest

from comity.policies.formats import FORMATS
from comity.policies.formats.ai_txt.grammar import Keyword
from comity.policies.formats.automation.annotation import WITHOUT_EFFECT
from comity.policies.formats.automation.grammar import SELECTORS
from comity.policies.formats.automation.value_syntax import DIRECTIVES
from comity.policies.formats.format import Format
from comity.policies.formats.robots_meta.directives import DIRECTIVE_NAMES
from comity.policies.formats.rsl.grammar import VOCABULARY

BY_NAME = {format_.name: format_ for format_ in FORMATS}
HERE = [BY_NAME[name] for name in ("ai-txt", "automation", "tdmrep", "rsl", "robots-meta")]
FORMS = {"line", "element", "attribute", "member", "field", "meta", "word"}


def names(format_: str, form: str) -> set[str]:
    return {
        directive.name
        for directive in BY_NAME[format_].authoring.directives
        if directive.form == form
    }


@pytest.mark.parametrize("each", HERE, ids=lambda each: each.name)
def test_every_directive_has_a_specification_and_a_summary(each: Format) -> None:
    assert each.authoring.directives
    known = {directive.name for directive in each.authoring.directives}
    for directive in each.authoring.directives:
        assert directive.spec
        assert directive.summary[:1].isupper()
        assert not directive.summary.endswith(".")
        assert directive.form in FORMS
        assert known.issuperset(directive.within)
    for values in each.authoring.values.values():
        assert values
        assert all(values.values())


def test_every_word_of_ai_txt_is_a_directive() -> None:
    assert names("ai-txt", "line") == {*(keyword.value[0].decode() for keyword in Keyword), "Allow"}


def test_every_word_of_automation_preferences_is_a_directive() -> None:
    lines = {name.decode() for name in (*SELECTORS, *DIRECTIVES)}
    assert names("automation", "line") == lines
    members = {name.lower() for name in names("automation", "member")} - {
        "automationpolicyannotation"
    }
    assert members == {name.replace("-", "") for name in lines}.difference(WITHOUT_EFFECT)


def test_every_word_of_tdmrep_is_a_directive() -> None:
    assert names("tdmrep", "member") == {"location", "tdm-reservation", "tdm-policy"}
    assert names("tdmrep", "field") == names("tdmrep", "meta") == {"tdm-reservation", "tdm-policy"}


def test_every_word_of_rsl_is_a_directive() -> None:
    by_form: dict[str, set[str]] = {"element": {"rsl"}, "attribute": set()}
    for element, (children, attributes) in VOCABULARY.items():
        if element != "prohibit":  # a misspelling
            by_form["element"] |= children - {"prohibit"}
            by_form["attribute"] |= attributes - {"version"}  # of no version of RSL
    assert {form: names("rsl", form) for form in by_form} == by_form


def test_every_directive_of_robots_meta_is_one() -> None:
    words = {name.replace("-", "").replace("_", "") for name in names("robots-meta", "word")}
    assert words == DIRECTIVE_NAMES
