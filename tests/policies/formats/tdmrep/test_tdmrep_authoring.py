"""Checks of TDMRep beyond its syntax."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Fetched
from comity.policies.document.document import Content
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.tdmrep import FORMAT as TDMREP
from comity.policies.formats.tdmrep.checks import check_document, check_site, members
from comity.policies.formats.tdmrep.reservation import WELL_KNOWN, read
from tests.policies.formats.mending import apply_fixes, findings_of

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/.well-known/tdmrep.json"


def rules_in(text: str) -> list[tuple[str, int]]:
    files = SiteFiles(ORIGIN, {URL: Fetched(status=200, body=text.encode())})
    return sorted((finding.rule, finding.line) for finding in check_site(files))


def rules(*each: dict[str, Any]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, each)) + "\n]"


def tdm(location: str, reservation: Any = 1, **others: Any) -> dict[str, Any]:
    return {"location": location, "tdm-reservation": reservation, **others}


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (rules(tdm("/", "1")), [("tdmrep.text", 2)]),
        (rules({"location": "/", "tdm_reservation": 1}), [("tdmrep.member", 2)]),
        (rules({"location": "/", "reservation": 1}), [("tdmrep.member", 2)]),
        (rules(tdm("/", policy="https://example.com/p")), [("tdmrep.member", 2)]),
        ('{"tdm-reservation": 0, "policy": "https://example.com/p"}', [("tdmrep.member", 1)]),
        (rules(tdm("/", **{"tdm-policy": "/p"})), [("tdmrep.policy", 2)]),
        (
            rules(tdm("/", 0, **{"tdm-policy": "https://example.com/p"})),
            [("tdmrep.unused-policy", 2)],
        ),
        (rules(tdm("/a b")), [("tdmrep.pattern", 2)]),
        (rules(tdm("/", noai=True)), [("tdmrep.unread", 2)]),
        (rules(tdm("/(a|b)")), [("tdmrep.pattern", 2)]),
        (rules(tdm("/"), tdm("/a", 0)), [("tdmrep.overruled", 3)]),
        (rules(tdm("/*"), tdm("/a/*.pdf$", 0)), [("tdmrep.overruled", 3)]),
        (rules(tdm("/a$"), tdm("/a$", 0)), [("tdmrep.overruled", 3)]),
        (rules(tdm("/"), tdm("/a")), [("tdmrep.duplicate", 3)]),
        (
            '{"location": "/",\n"tdm-reservation": 1,\n"tdm-reservation": 0}',
            [("tdmrep.repeated", 3)],
        ),
    ],
)
def test_what_cannot_be_meant_is_found_with_its_line(
    text: str, findings: list[tuple[str, int]]
) -> None:
    assert rules_in(text) == findings


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        rules(tdm("/a", 0), tdm("/")),
        rules(tdm("/a$"), tdm("/a", 0)),
        rules(tdm("/*.pdf$"), tdm("/*.pdf", 0)),
        rules(
            tdm(
                "/wiki/A_(b)?x=[1]",
                **{"tdm-policy": "https://example.com/p", "comment": "ours", "@id": {"policy": 1}},
            )
        ),
        '{"@context": "http://www.w3.org/ns/tdmrep#", "type": "Reservation"}',
    ],
)
def test_what_can_be_meant_is_left_alone(text: str) -> None:
    assert rules_in(text) == []


def test_members_have_their_places() -> None:
    text = '[\n  {"ä": "b", "c":\n 1, "d": {"e": 2}, "f": [3]}, {"g": "h"}]'
    assert [
        (each.name, each.value, each.line, each.column, each.value_column, each.number)
        for each in members(text)
    ] == [
        ("ä", '"b"', 2, 4, 10, 0),
        ("c", "1", 2, 15, 0, 0),
        ("d", "", 3, 5, 0, 0),
        ("f", "", 3, 20, 0, 0),
        ("g", '"h"', 3, 32, 37, 1),
    ]


@pytest.mark.requirement("META-5")
@pytest.mark.parametrize("attribute", ["property", "http-equiv"])
def test_another_attribute_than_name_is_told(attribute: str) -> None:
    page = (
        f'<!doctype html>\n<meta {attribute}="tdm-reservation" content="1"><meta '
        f'{attribute}="description" content="1">'
    )
    (finding,) = check_document(Content([(b"Content-Type", b"text/html")], page.encode()), ORIGIN)
    assert (finding.rule, finding.line) == ("tdmrep.attribute", 2)
    assert (
        finding.message == f'Few crawlers read `{attribute}` here. Write `name="tdm-reservation"`.'
    )


@pytest.mark.parametrize(
    ("headers", "page", "line"),
    [
        ([(b"TDM-Policy", b"https://example.com/p")], "", 0),
        ([], '<meta name="tdm-policy" content="https://example.com/p">', 2),
        (
            [],
            '<meta name="tdm-policy" content="/p"><meta name="tdm-reservation" content="1">',
            None,
        ),
        ([], "<p>tdm-policy", None),
    ],
)
def test_a_policy_by_itself_is_found_in_pages(
    headers: list[tuple[bytes, bytes]], page: str, line: int | None
) -> None:
    content = Content(
        [*headers, (b"Content-Type", b"text/html")], f"<!doctype html>\n{page}".encode()
    )
    findings = [(finding.rule, finding.line) for finding in check_document(content, ORIGIN)]
    assert findings == ([] if line is None else [("tdmrep.policy-alone", line)])


@given(st.text(alphabet='[]{},:"\\\n ab1tdm-reservation', max_size=200))
def test_nothing_raises(text: str) -> None:
    rules_in(text)


def test_what_stands_in_a_comment_is_no_member() -> None:
    assert rules_in('[{"location": "/", "tdm-reservation": 1} // {"reservation": "1"}\n]') == []


# Fixes

RULE, FREE = (
    '{"location": "/", "tdm-reservation": 1}',
    '{"location": "/ä//b", "tdm-reservation": 0}',
)
# As written, and as strict JSON.
LENIENT = [
    (f"[{RULE},]", f"[{RULE}]"),
    (
        '[{"location": "/", "tdm-reservation": 1,\n},\n]\n',
        '[{"location": "/", "tdm-reservation": 1\n}\n]\n',
    ),
    (f"// ours\n[\n  {FREE}, // free\n  # the rest\n  {RULE}\n]\n", f"[\n  {FREE},\n  {RULE}\n]\n"),
    (
        '[{"location": "/", /* all */ "tdm-reservation": 1}]',
        '[{"location": "/", "tdm-reservation": 1}]',
    ),
    (f"[,{FREE},,{FREE} {RULE}]", f"[{FREE},{FREE}, {RULE}]"),
    (f"\ufeff[{RULE},]", f"[{RULE}]"),
    (f"\ufeff[{RULE}]", f"[{RULE}]"),
    ('{"tdm-reservation": 1,}', '{"tdm-reservation": 1}'),
]


@pytest.mark.requirement("TDM-3")
@pytest.mark.parametrize(("written", "strict"), LENIENT)
def test_strict_json_is_written(written: str, strict: str) -> None:
    assert apply_fixes(TDMREP, WELL_KNOWN, written.encode()).decode() == strict
    json.loads(strict)
    assert "tdmrep.strict" not in [
        finding.rule for finding in findings_of(TDMREP, WELL_KNOWN, strict.encode())
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[{"location": "/" oops},]',
        '[{"tdm-reservation": 1 "location": "/"},]',
        "[NaN,]",
        '[{"tdm-reservation": 1}, /* x',
    ],
)
def test_what_is_no_json_is_not_mended(text: str) -> None:
    assert apply_fixes(TDMREP, WELL_KNOWN, text.encode()) == text.encode()


PIECES = st.sampled_from(
    [
        '{"location": "/a", "tdm-reservation": 1}',
        '{"location": "/a//b", "tdm-reservation": 0,}',
        "// c\n",
        "/* [ */",
        "# ]\n",
        ",",
        ", ",
        "\n",
        '"x"',
        "[1,]",
        "é",
    ]
)


@pytest.mark.requirement("TDM-3")
@given(st.lists(PIECES, max_size=10))
def test_strict_json_means_the_same(pieces: list[str]) -> None:
    body = f"[{''.join(pieces)}]".encode()
    once = apply_fixes(TDMREP, WELL_KNOWN, body)
    before, after = (
        [rule._replace(text="", line=0) for rule in read(of, URL).rules] for of in (body, once)
    )
    assert before == after
    if once != body:
        json.loads(once)
    assert apply_fixes(TDMREP, WELL_KNOWN, once) == once


WRITTEN = st.sampled_from(['"1"', '"0"', "1", "0", '" 1"', "true", '"2"', "null"])


@given(
    st.lists(st.tuples(st.sampled_from(["/", "/ä", "/a b"]), WRITTEN), max_size=4),
    st.sampled_from(["\n", " "]),
)
def test_a_number_is_written_for_a_text_and_no_truth_value(
    each: list[tuple[str, str]], between: str
) -> None:
    objects = (
        f'{{"location": "{location}",{between}"tdm-reservation": {written}}}'
        for location, written in each
    )
    body = f"[{f',{between}'.join(objects)}]".encode()
    once = apply_fixes(TDMREP, WELL_KNOWN, body)
    before, after = (read(of, URL).rules for of in (body, once))
    assert [rule._replace(text="") for rule in before] == [rule._replace(text="") for rule in after]
    assert not any(
        finding.rule == "tdmrep.text" for finding in findings_of(TDMREP, WELL_KNOWN, once)
    )
    assert b"true" in once or b"true" not in body
    assert apply_fixes(TDMREP, WELL_KNOWN, once) == once
