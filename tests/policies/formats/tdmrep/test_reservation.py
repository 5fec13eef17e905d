"""The TDM Reservation Protocol (W3C TDMRep).

These are the tests of the file, the response fields, the markup, and the metadata of EPUB and PDF.
"""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.document.document import Content
from comity.policies.formats.tdmrep import metadata as tdmrep_metadata
from comity.policies.formats.tdmrep import replay
from comity.policies.formats.tdmrep import reservation as tdmrep
from comity.policies.formats.tdmrep.reservation import Reservation, TdmRep
from comity.policies.syntax.lines import MAX_BYTES, MAX_FINDINGS
from comity.policies.vocabulary.statement import Location
from tests.selection import one_in

URL = "https://example.com/.well-known/tdmrep.json"
PAGE = "https://example.com/a/page.html"
POLICY = "https://example.com/policies/policy.json"


def read(rules: object, *, cut: bool = False) -> TdmRep:
    return tdmrep.read(
        rules.encode() if isinstance(rules, str) else json.dumps(rules).encode(), URL, cut=cut
    )


def rule(location: object, reserved: object, policy: str = "") -> dict[str, object]:
    return {"location": location, "tdm-reservation": reserved} | (
        {"tdm-policy": policy} if policy else {}
    )


def describe(reservation: Reservation | None) -> str:
    if reservation is None:
        return "-"
    return {True: "1", False: "0", None: "?"}[reservation.reserved] + (
        f" {reservation.policy}" if reservation.policy else ""
    )


def describe_findings(findings: tuple[Finding, ...]) -> str:
    return "; ".join(
        f"{finding.rule.removeprefix('tdmrep.')} {finding.line}" for finding in findings
    )


# sec-tdm-file

DIRECTORIES = [
    rule("/directory-a/", 1),
    rule("/directory-b/html/", 1, POLICY),
    rule("/directory-b/images/*.jpg", 0),
]
CASES: list[tuple[str, list[Any], str, str]] = [
    ("all", [rule("/", 1)], "/a/page.html", "1"),
    ("example-first", DIRECTORIES, "/directory-a/1.pdf", "1"),
    ("example-second", DIRECTORIES, "/directory-b/html/1.html", f"1 {POLICY}"),
    ("example-third", DIRECTORIES, "/directory-b/images/1.jpg", "0"),
    ("example-none", DIRECTORIES, "/about", "-"),
    # "The most specific match is the first in sequence."
    ("first-before-longer", [rule("/", 1), rule("/open/", 0)], "/open/1", "1"),
    ("first-is-longer", [rule("/open/", 0), rule("/", 1)], "/open/1", "0"),
    ("first-misses", [rule("/open/", 0), rule("/", 1)], "/other", "1"),
    # after sample regenstudio-ordered: two wildcards before the whole site
    (
        "ordered-wildcard",
        [rule("/paper-*", 1, POLICY), rule("/", 0, POLICY)],
        "/paper-7",
        f"1 {POLICY}",
    ),
    ("ordered-rest", [rule("/paper-*", 1, POLICY), rule("/", 0, POLICY)], "/blog", f"0 {POLICY}"),
    # after sample xlr8harder.github.io
    ("star", [rule("/*", 0)], "/any?thing", "0"),
    ("case-sensitive", [rule("/Private/", 1)], "/private/", "-"),
    ("end", [rule("/this/path/exactly$", 1)], "/this/path/exactly", "1"),
    ("end-missed", [rule("/this/path/exactly$", 1)], "/this/path/exactly/not", "-"),
    ("within", [rule("/this/*/then", 1)], "/this/and/that/then/on", "1"),
    ("query", [rule("/*?print=1", 1)], "/a?print=1", "1"),
    ("escaped-dollar", [rule("/path/foo-%24", 1)], "/path/foo-$", "1"),
    ("escaped-dollar-is-no-end", [rule("/path/foo-%24", 1)], "/path/foo-", "-"),
    ("escaped-star", [rule("/a%2Ab", 1)], "/a*b", "1"),
    ("escaped-star-is-literal", [rule("/a%2Ab", 1)], "/a-b", "-"),
    ("unreserved-decoded", [rule("/%7Euser/%61", 1)], "/~user/a", "1"),
    ("unreserved-decoded-there", [rule("/~user/a", 1)], "/%7euser/%61", "1"),
    ("reserved-not-decoded", [rule("/a%2Fb", 1)], "/a/b", "-"),
    ("beyond-ascii", [rule("/é/", 1)], "/%c3%A9/1", "1"),
    # "Other values are considered protocol errors": not set. Then a later rule can reserve, and
    # cannot give up.
    ("value-2", [rule("/", 2)], "/", "-"),
    ("value-minus", [rule("/", -1)], "/", "-"),
    ("value-true", [rule("/", reserved=True)], "/", "-"),
    ("value-false", [rule("/", reserved=False)], "/", "-"),
    ("value-word", [rule("/", "yes")], "/", "-"),
    ("value-null", [rule("/", None)], "/", "-"),
    ("value-list", [rule("/", [1])], "/", "-"),
    ("value-missing", [{"location": "/"}], "/", "-"),
    ("value-as-text", [rule("/", "1")], "/", "1"),
    ("value-as-text-0", [rule("/", " 0 ")], "/", "0"),
    ("value-as-float", [rule("/", 1.0)], "/", "1"),
    ("value-as-float-0", [rule("/", 0.0)], "/", "0"),
    ("unset-then-reserved", [rule("/a", "x"), rule("/", 1)], "/a", "1"),
    ("unset-then-given-up", [rule("/a", "x"), rule("/", 0)], "/a", "-"),
    ("unset-elsewhere", [rule("/a", "x"), rule("/", 0)], "/b", "0"),
    # A rule that departs from the specification can reserve, but not give up.
    ("no-location", [{"tdm-reservation": 1}], "/a", "1"),
    ("no-location-0", [{"tdm-reservation": 0}], "/a", "-"),
    ("empty-location", [rule("", 1)], "/a", "1"),
    ("location-no-text", [rule(7, 1)], "/a", "1"),
    ("relative-location", [rule("papers/", 1)], "/papers/1", "1"),
    ("relative-location-0", [rule("papers/", 0)], "/papers/1", "-"),
    ("relative-location-dot", [rule("./papers/", 1)], "/papers/1", "1"),
    ("relative-location-here", [rule(".", 1)], "/papers/1", "1"),
    ("network-location", [rule("//example.com/papers/", 0)], "/papers/1", "0"),
    ("network-location-1", [rule("//example.com/papers/", 1)], "/papers/1", "1"),
    ("network-location-elsewhere", [rule("//example.org/papers/", 0)], "/papers/1", "-"),
    ("fragment", [rule("/papers/1#top", 1)], "/papers/1", "1"),
    ("fragment-0", [rule("/papers/1#top", 0)], "/papers/1", "-"),
    ("absolute-location", [rule("https://example.com/papers/", 0)], "/papers/1", "0"),
    ("absolute-location-elsewhere", [rule("https://example.org/papers/", 0)], "/papers/1", "-"),
    ("absolute-location-of-nothing", [rule("http://[/papers/", 0)], "/papers/1", "-"),
    ("absolute-location-elsewhere-1", [rule("https://example.org/papers/", 1)], "/papers/1", "1"),
    ("unseen", [rule("\u200b/papers/\ufeff", 1)], "/papers/1", "1"),
    ("unseen-url", [rule("\ufeffhttps://example.com/papers/\u200b", 1)], "/papers/1", "1"),
    ("unseen-within", [rule("/a\u200cb", 1)], "/ab", "-"),
    ("value-as-text-with-unseen", [rule("/", "1\u200b")], "/", "1"),
    ("value-as-text-0-with-unseen", [rule("/", "0\u200b")], "/", "-"),
    (
        "url-within-a-path",
        [rule("/go?u=https://example.org/", 0), rule("/", 1)],
        "/go?u=https://example.org/",
        "0",
    ),
    ("url-within-a-path-1", [rule("/web/*/http://e.org/", 1)], "/web/2026/http://e.org/a", "1"),
    ("url-behind-a-star", [rule("*://example.org/", 0)], "/a://example.org/", "-"),
    ("any-scheme", [rule("*://example.com/papers/", 1)], "/papers/1", "1"),
    ("part-of-a-scheme", [rule("http*://example.com/papers/", 1)], "/papers/1", "1"),
    ("any-scheme-0", [rule("*://example.com/papers/", 0)], "/papers/1", "-"),
    # The policy
    ("star-alone", [rule("*", 0)], "/papers/1", "0"),
    ("policy-relative", [rule("/", 1, "/policies/policy.json")], "/", f"1 {POLICY}"),
    ("policy-fragment", [rule("/", 1, POLICY + "#uid")], "/", f"1 {POLICY}#uid"),
    ("policy-fragment-beyond-ascii", [rule("/", 1, POLICY + "#\u00e9")], "/", f"1 {POLICY}"),
    ("policy-fragment-unprintable", [rule("/", 1, POLICY + "#a\x01")], "/", f"1 {POLICY}"),
    (
        "policy-longest",
        [rule("/", 1, POLICY.ljust(2000, "x"))],
        "/",
        f"1 {POLICY.ljust(2000, 'x')}",
    ),
    ("policy-none", [rule("/", 1, "mailto:rights@example.com")], "/", "1"),
    ("policy-long", [rule("/", 1, POLICY + "x" * 2000)], "/", "1"),
]


@pytest.mark.requirement("TDM-1")
@pytest.mark.parametrize(
    ("rules", "target", "want"),
    one_in(3, [case[1:] for case in CASES]),
    ids=[case[0] for case in CASES],
)
def test_first_rule_that_matches(rules: list[Any], target: str, want: str) -> None:
    assert describe(read(rules).reservation(target)) == want


@pytest.mark.requirement("TDM-1", "TDM-2")
def test_reason_shows_line_and_policy() -> None:
    rules = [
        '{"location": "/a/",\n "tdm-reservation": 0}',
        '{\n "location": "/",\n "tdm-reservation": 1,\n "tdm-policy": "%s"}',
    ]
    text = "[\n" + ",\n".join(rules) + "]"
    written = f'{{ "location": "/", "tdm-reservation": 1, "tdm-policy": "{POLICY}"}}'
    for line_end in ("\n", "\r\n", "\r"):
        (statement,) = tdmrep.statements(
            [read((text % POLICY).replace("\n", line_end)).reservation("/b")]
        )
        source = Location("body", 4, written, URL)
        assert statement == (
            "tdmrep:reservation",
            Verdict.DENY,
            "tdmrep.reserved",
            source,
            statement[4],
        )


# TDM-3

MALFORMED: list[tuple[str, str, str, str]] = [
    # after sample MALFORMED-object-not-array: an object that would give the right up
    (
        "object-0",
        '{"tdm-reservation": 0, "policy": "https://example.com/terms.txt"}',
        "-",
        "syntax 1",
    ),
    (
        "object-1",
        '\n{"tdm-reservation": 1, "tdm-policy": "/terms"}',
        "1 https://example.com/terms",
        "syntax 2",
    ),
    ("object-1-elsewhere", '{"location": "/x/", "tdm-reservation": 1}', "1", "syntax 1"),
    # after sample MALFORMED-invented-schema: nothing of the protocol in it
    (
        "invented",
        '{"@context": "http://www.w3.org/ns/tdmrep#", "type": "Reservation", "policy": "x"}',
        "-",
        "syntax 1",
    ),
    # after sample w3c-context: the context of policies served as the file
    (
        "context",
        '{"@context": {"tdm": "http://www.w3.org/ns/tdmrep#", "mine": "tdm:mine"}}',
        "-",
        "syntax 1",
    ),
    ("empty", "", "-", "syntax 1"),
    ("prose", "All rights reserved", "-", "syntax 1"),
    ("number", "1", "-", "syntax 1"),
    (
        "no-rule",
        '[7, "x", null, {}, {"a": 1}, {"location": "/", "tdm-reservation": 1}]',
        "1",
        "; ".join(["syntax 1"] * 5),
    ),
    ("trailing-comma", '[{"location": "/", "tdm-reservation": 1},]', "1", "strict 1"),
    (
        "trailing-comma-within",
        '[{"location": "/x", "tdm-reservation": 0,},\n{"location": "/", "tdm-reservation": 1, }]',
        "1",
        "strict 1",
    ),
    (
        "comma-too-many",
        '[,{"location": "/x", "tdm-reservation": 0},\n,{"location": "/", "tdm-reservation": 1}]',
        "1",
        "strict 1",
    ),
    (
        "comma-missing",
        '[{"location": "/x", "tdm-reservation": 0}\n{"location": "/", "tdm-reservation": 1}]',
        "1",
        "strict 2",
    ),
    (
        "comment",
        '[\n// ours\n{"location": "/x", "tdm-reservation": 0}, // free\n'
        '{"location": "/", "tdm-reservation": 1}]',
        "1",
        "strict 2",
    ),
    (
        "comment-between",
        '[{"location": /* all\n */ "/", "tdm-reservation": /* yes */ 1}]',
        "1",
        "strict 1",
    ),
    (
        "comment-of-a-shell",
        '# ours\n[{"location": "/", # all\n"tdm-reservation": 1}]\n# end',
        "1",
        "strict 1",
    ),
    (
        "comment-with-a-rule",
        '[{"location": "/page", "tdm-reservation": 0},\n'
        '// {"location": "/", "tdm-reservation": 1}\n]',
        "0",
        "strict 1",
    ),
    (
        "no-comment",
        '[{"location": "/*//page", "tdm-reservation": 1}, {"location": "/", "tdm-reservation": 0}]',
        "0",
        "",
    ),
    # behind a real syntax error any reservation reserves the rest
    (
        "error-then-reserved",
        '[{"location": "/other", "tdm-reservation": 0}; {"location": "/x", "tdm-reservation": 1}]',
        "1",
        "syntax 1",
    ),
    (
        "error-then-not-reserved",
        '[{"location": "/other", "tdm-reservation": 1} oops {"location": "/", '
        '"tdm-reservation": 0}]',
        "-",
        "syntax 1",
    ),
    ("error-in-the-rule", '[{"location": "/x" "tdm-reservation": 1}]', "1", "syntax 1"),
    ("error-of-quotes", "[{'location': '/x', 'tdm-reservation': '1'}]", "1", "syntax 1"),
    ("error-of-names", '[{location: "/x", tdm-reservation: 1}]', "1", "syntax 1"),
    ("error-of-braces", '[{"location": "/x", "tdm-reservation": 1', "1", "syntax 1"),
    ("error-of-an-object", '{"location": "/x", "tdm-reservation": 1', "1", "syntax 1"),
    (
        "error-of-a-comment",
        '[{"location": "/x", "tdm-reservation": 0} /* ours {"tdm-reservation": 1}]',
        "1",
        "syntax 1",
    ),
    (
        "error-of-an-address",
        '[{"tdm-policy": https://example.com/p, "location": "/x", "tdm-reservation": 1}]',
        "1",
        "syntax 1",
    ),
    (
        "error-behind-a-rule",
        '[{"location": "/page", "tdm-reservation": 0}, oops {"tdm-reservation": 1}]',
        "0",
        "syntax 1",
    ),
    (
        "error-then-ten",
        '[oops {"location": "/", "tdm-reservation": 10}, {"tdm-reservation": 1.5}, '
        '{"tdm-reservation": true}]',
        "-",
        "syntax 1",
    ),
    ("error-then-one", '[oops {"location": "/", "tdm-reservation" : 1.0 }]', "1", "syntax 1"),
    (
        "text-after-with-a-rule",
        '[{"location": "/x", "tdm-reservation": 0}]\n[{"location": "/y", "tdm-reservation": 1}]',
        "1",
        "syntax 1",
    ),
    ("object-of-rules", '{"rules": [{"location": "/x", "tdm-reservation": 1}]}', "1", "syntax 1"),
    (
        "objects",
        '{"location": "/x", "tdm-reservation": 0}\n{"location": "/y", "tdm-reservation": 1}',
        "1",
        "syntax 1",
    ),
    ("array-of-arrays", '[[{"location": "/x", "tdm-reservation": 1}]]', "1", "syntax 1"),
    ("unclosed", '[{"location": "/", "tdm-reservation": 1}', "1", "syntax 1"),
    (
        "error-after",
        '[{"location": "/", "tdm-reservation": 1},\n{"location": "/a" oops}]',
        "1",
        "syntax 2",
    ),
    (
        "error-before",
        '[{"location": "/a" oops},\n{"location": "/", "tdm-reservation": 1}]',
        "1",
        "syntax 1",
    ),
    ("text-after", '[{"location": "/", "tdm-reservation": 1}]\nmore', "1", "syntax 1"),
    ("twice", '[{"location": "/", "tdm-reservation": 1, "tdm-reservation": 0}]', "1", ""),
    (
        "twice-location",
        '[{"location": "/", "location": "/x", "tdm-reservation": 1}]',
        "1",
        "syntax 1",
    ),
    (
        "twice-location-0",
        '[{"location": "/x", "location": "/", "tdm-reservation": 0}]',
        "-",
        "syntax 1",
    ),
    (
        "twice-not-reserved",
        '[{"location": "/", "tdm-reservation": 0, "tdm-reservation": 0, "x": 1, "x": 2}]',
        "0",
        "",
    ),
    ("twice-else", '[{"location": "/", "tdm-reservation": 0, "x": 1, "x": 2}]', "0", ""),
    ("bom", '\ufeff[{"location": "/", "tdm-reservation": 1}]', "1", ""),
    ("space-before", '\n [{"location": "/", "tdm-reservation": 1}]', "1", ""),
    ("one-character-after", '[{"location": "/", "tdm-reservation": 1}]x', "1", "syntax 1"),
    (
        "text-after-the-last-line",
        '[{"location": "/", "tdm-reservation": 1}\n]more',
        "1",
        "syntax 2",
    ),
    ("error-within", '[{"location": "/a",\n oops}]', "-", "syntax 2"),
    ("no-reservation", '[\n{"location": "/"}]', "-", "syntax 2"),
    ("odd-location", '[\n{"location": "page", "tdm-reservation": 1}]', "1", "syntax 2"),
    (
        "odd-location-surrogate",
        '[\n{"location": "page\\ud800", "tdm-reservation": 1}]',
        "-",
        "syntax 2",
    ),
    ("object-odd", '\n{"tdm-reservation": "x"}', "-", "syntax 2; value 2"),
    ("object-odd-policy", '\n\n{"tdm-reservation": 1, "tdm-policy": 7}', "1", "syntax 3; value 3"),
    ("twice-odd", '[{"location": "/", "tdm-reservation": 1, "tdm-reservation": "x"}]', "1", ""),
    ("not-a-number", '[{"location": "/", "tdm-reservation": NaN}]', "-", "value 1; strict 1"),
    (
        "surrogate",
        '[{"location": "/\\ud800", "tdm-reservation": "\\udc00", "tdm-policy": "\\ud800"}]',
        "-",
        "value 1; value 1",
    ),
]


@pytest.mark.requirement("TDM-3", "SEC-1")
@pytest.mark.parametrize(
    ("text", "want", "findings"),
    one_in(3, [case[1:] for case in MALFORMED]),
    ids=[case[0] for case in MALFORMED],
)
def test_malformed_file(text: str, want: str, findings: str) -> None:
    file = read(text)
    assert describe(file.reservation("/page")) == want
    assert describe_findings(file.findings) == findings


@pytest.mark.requirement("TDM-3")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[{"location": "/", "tdm-reservation": true}]',
            "`true` is neither 0 nor 1, so the reservation is not set.",
        ),
        (
            '[{"location": "/", "tdm-reservation": null}]',
            "`null` is neither 0 nor 1, so the reservation is not set.",
        ),
        (
            '[{"location": "/", "tdm-reservation": 2}]',
            "`2` is neither 0 nor 1, so the reservation is not set.",
        ),
        (
            '[{"location": "/", "tdm-reservation": 1, "tdm-policy": "http://"}]',
            "`http://` is not the address of a policy. Write a URL.",
        ),
        (
            '[{"location": "/", "tdm-reservation": 1, "tdm-policy": 7}]',
            "`a value that is not text` is not the address of a policy. Write a URL.",
        ),
        (
            '[{"location": "a/", "tdm-reservation": 1}]',
            "The location `a/` is read with a leading `/`. The rule can only reserve.",
        ),
        (
            '[{"location": 7, "tdm-reservation": 1}]',
            "The location `` is not a pattern. The rule can only reserve, and it does so "
            "for everything.",
        ),
        (
            '[{"location": "/" 1}]',
            "This is not JSON: Expecting ',' delimiter. The rest of the file is not read.",
        ),
        (
            '[{"location": "/", "tdm-reservation": 1},]',
            "Strict readers refuse the whole file: JSON has no comma before `]` and `}`.",
        ),
        ("[// ours\n]", "Strict readers refuse the whole file: JSON has no comments."),
        (
            '[{"location": "/x", "tdm-reservation": 1} {"location": "/", "tdm-reservation": 1}]',
            "Strict readers refuse the whole file: Expecting ',' delimiter.",
        ),
    ],
)
def test_findings_quote_what_they_are_about(text: str, message: str) -> None:
    (finding,) = read(text).findings
    assert (finding.message, finding.url) == (message, URL)


@pytest.mark.requirement("TDM-3", "WHY-1")
def test_the_reason_behind_a_syntax_error_is_the_line_that_reserves() -> None:
    file = read(
        '[{"location": "/a", "tdm-reservation": 0},\noops\n{"location": "/b",\n'
        '  "tdm-reservation": 1}]'
    )
    assert [describe(file.reservation(path)) for path in ("/a", "/b", "/c")] == ["0", "1", "1"]
    reservation = file.reservation("/c")
    assert reservation is not None
    assert reservation.source == Location("body", 4, '"tdm-reservation": 1', URL)
    (finding,) = file.findings
    assert finding.message == (
        "This is not JSON: Expecting value. The rest of the file is not read. As "
        "`tdm-reservation` is 1 in line 4, everything"
        " is reserved that no rule before it matches."
    )
    assert not file.everywhere()
    assert read('oops [{"location": "/b", "tdm-reservation": 1}]').everywhere()


@pytest.mark.requirement("TDM-3")
def test_reasons_of_what_is_no_array_and_of_what_is_not_read() -> None:
    whole = read('\n{"tdm-reservation":\n1}').reservation("/a")
    assert whole is not None
    assert whole.source == Location("body", 2, '{"tdm-reservation": 1}', URL)
    past = read("[", cut=True)
    reservation = past.reservation("/a")
    assert reservation is not None
    assert (describe(reservation), reservation.source.url) == ("1", URL)
    assert "longer than the limit" in reservation.source.text
    assert describe_findings(past.findings) == "limit 0; syntax 1"
    assert (
        describe_findings(read('[{"location": "/", "tdm-reservation": 1},\n', cut=True).findings)
        == "limit 0"
    )


@pytest.mark.requirement("TDM-3")
def test_utf_16_file_is_read() -> None:
    assert (
        describe(
            tdmrep.read('[{"location": "/", "tdm-reservation": 1}]'.encode("utf-16")).reservation(
                "/"
            )
        )
        == "1"
    )


@pytest.mark.requirement("TDM-1", "RFC-13")
def test_octets_that_are_no_utf_8_are_those_of_the_url() -> None:
    rules = tdmrep.read(b'[{"location": "/caf\xe9/", "tdm-reservation": 1}]', URL)
    assert [
        describe(rules.reservation(target)) for target in ("/caf%E9/", "/caf%e9/a", "/caf%C3%A9/")
    ] == ["1", "1", "-"]


@pytest.mark.requirement("TDM-3", "SEC-1")
@pytest.mark.parametrize(
    "value",
    [
        "1" * 5000,
        "-" + "1" * 5000,
        "[" * 2000 + "]" * 2000,
        '{"a":' * 2000 + "1" + "}" * 2000,
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=[
        "number",
        "negative-number",
        "deep-array",
        "deep-object",
        "unclosed-arrays",
        "unclosed-objects",
    ],
)
def test_a_value_that_is_not_read_gives_nothing_up(value: str) -> None:
    """It is JSON, but the rest is not read."""
    rules = (
        '[{"location": "/a", "tdm-reservation": 0},\n'
        '{"location": "/b", "tdm-reservation": 0, "id": %s},\n{"location": "/c"}]'
    )
    file = read(rules % value)
    assert [describe(file.reservation(path)) for path in ("/a", "/b", "/c")] == ["0", "1", "1"]
    assert describe_findings(file.findings) == "limit 2"


@pytest.mark.requirement("TDM-3", "SEC-1")
def test_what_lies_past_a_limit_gives_nothing_up() -> None:
    many = read([rule(f"/{number}/", 0) for number in range(tdmrep.MAX_RULES + 1)])
    assert [
        describe(many.reservation(path)) for path in ("/0/", f"/{tdmrep.MAX_RULES}/", "/other")
    ] == ["0", "1", "1"]
    assert describe_findings(many.findings) == "limit 1"
    most = read(
        "[\n"
        + ",\n".join(json.dumps(rule(f"/{number}/", 0)) for number in range(tdmrep.MAX_RULES))
        + "]"
    )
    assert (len(most.rules), most.findings, most.reservation("/other")) == (
        tdmrep.MAX_RULES,
        (),
        None,
    )
    lines = read(
        "[\n" + ",\n".join(json.dumps(rule("/", 0)) for _ in range(tdmrep.MAX_RULES + 1)) + "]"
    )
    assert describe_findings(lines.findings) == f"limit {tdmrep.MAX_RULES + 2}"
    none = read([rule("/a", 0), *[0] * tdmrep.MAX_RULES, rule("/", 1)])
    assert [describe(none.reservation(path)) for path in ("/a", "/b")] == ["0", "1"]
    long = read(
        '[{"location": "/a", "tdm-reservation": 0},\n'
        + " " * MAX_BYTES
        + '{"location": "/", "tdm-reservation": 1}]'
    )
    assert [describe(long.reservation(path)) for path in ("/a", "/b")] == ["0", "1"]
    cut = read('[{"location": "/a", "tdm-reservation": 0},\n{"location": "/", "tdm-re', cut=True)
    assert [describe(cut.reservation(path)) for path in ("/a", "/b")] == ["0", "1"]
    one_line = read(
        '[{"location": "/a", "tdm-reservation": 0}, {"location": "'
        + "x" * MAX_BYTES
        + '", "tdm-reservation": 1}]'
    )
    assert [describe(one_line.reservation(path)) for path in ("/a", "/b")] == ["0", "1"]
    not_array = read('{"tdm-reservation": 0, "id": %s}' % ("1" * 5000))
    assert (describe(not_array.reservation("/")), describe_findings(not_array.findings)) == (
        "1",
        "limit 1",
    )
    assert not read("not an array", cut=False).everywhere()
    assert read("[", cut=True).everywhere()


@pytest.mark.requirement("SEC-1")
def test_findings_are_bounded() -> None:
    file = read([rule("{}", "{0}") for _ in range(1000)])
    assert len(file.findings) == MAX_FINDINGS + 1
    assert "`{0}`" in file.findings[0].message


EVERYWHERE: list[tuple[list[Any], bool]] = [
    ([rule("/", 1)], True),
    ([rule("/*", 1)], True),
    ([rule("*", 1)], True),
    ([rule("/a", 1), rule("/b", "x"), rule("/", 1)], True),
    ([rule("/a", 0), rule("/", 1)], False),
    ([rule("/", 1), rule("/a", 0)], True),
    ([rule("/", 0)], False),
    ([rule("/a", 1)], False),
    ([rule("/", "x")], False),
    ([], False),
]


@pytest.mark.requirement("TDM-1")
@pytest.mark.parametrize(("rules", "want"), one_in(2, EVERYWHERE))
def test_everywhere(rules: list[Any], want: bool) -> None:
    assert read(rules).everywhere() is want


# sec-tdm-header, sec-tdm-html-meta


def fields(*lines: tuple[str, str]) -> Reservation | None:
    return tdmrep.fields([(name.encode(), value.encode("latin-1")) for name, value in lines], PAGE)


FIELDS: list[tuple[list[tuple[str, str]], str]] = [
    ([], "-"),
    ([("Content-Type", "text/html")], "-"),
    ([("tdm-reservation", "1")], "1"),
    ([("TDM-Reservation", " 0 ")], "0"),
    ([("tdm-reservation", "1"), ("tdm-policy", POLICY)], f"1 {POLICY}"),
    ([("tdm-policy", "/policies/policy.json")], f"? {POLICY}"),
    ([("tdm-reservation", "0"), ("tdm-reservation", "1")], "1"),
    ([("tdm-reservation", "0, 1")], "1"),
    ([("tdm-reservation", "0, 0")], "0"),
    ([("tdm-reservation", "0, x")], "?"),
    ([("tdm-reservation", "1, x")], "1"),
    ([("tdm-reservation", "true")], "?"),
    ([("tdm-reservation", "")], "?"),
    ([("tdm-reservation", "01")], "?"),
    ([("tdm-reservation", '"1"')], "1"),
    ([("tdm-reservation", "'1'")], "1"),
    ([("tdm-reservation", '"0"')], "?"),
    ([("tdm-reservation", "\xff1")], "?"),
    ([("tdm-policy", "\xff")], "? https://example.com/a/%EF%BF%BD"),
    ([("tdm-reserved", "1")], "-"),
]


@pytest.mark.requirement("TDM-1")
@pytest.mark.parametrize(("lines", "want"), one_in(2, FIELDS))
def test_response_fields(lines: list[tuple[str, str]], want: str) -> None:
    assert describe(fields(*lines)) == want


def markup(
    text: str, media_type: bytes = b"text/html", encoding: str = "utf-8"
) -> Reservation | None:
    return tdmrep.markup(Content([(b"Content-Type", media_type)], text.encode(encoding)), PAGE)


MARKUP = [
    ('<meta name="tdm-reservation" content="1">', "1"),
    (
        f'<META NAME=TDM-Reservation CONTENT=" 1 "><meta name="tdm-policy" content="{POLICY}">',
        f"1 {POLICY}",
    ),
    ('<meta name="tdm-reservation" content="0"><meta name="tdm-reservation" content="1">', "1"),
    ('<meta name="tdm-reservation" content="yes">', "?"),
    ('<meta name="tdm-reservation" content="&quot;1&quot;">', "1"),
    ('<meta name="tdm-reservation" content="1&#8203;">', "1"),
    ('<meta name="tdm-reservation" content="&#xfeff;0">', "?"),
    ('<meta name="tdm-policy" content="../policies/policy.json">', f"? {POLICY}"),
    ('<base href="/policies/"><meta name="tdm-policy" content="policy.json">', f"? {POLICY}"),
    ('<base href="/policies/"><meta name="tdm-policy" content="http://[">', "?"),
    ("<p>tdm-reservation: 1</p>", "-"),
    ('<meta property="tdm-reservation" content="1">', "1"),
    ('<meta name="x" property="tdm-reservation" content="1">', "-"),
    ('<meta property="tdm-reservation" content="0">', "-"),
    (f'<meta property="tdm-policy" content="{POLICY}">', "-"),
    ('<meta name="robots" content="noai"><meta name="tdm-reservation" content="0">', "0"),
    ('<!-- <meta name="tdm-reservation" content="0"> -->', "-"),
]


@pytest.mark.requirement("TDM-1")
@pytest.mark.parametrize(("text", "want"), one_in(2, MARKUP))
def test_markup(text: str, want: str) -> None:
    assert describe(markup(f"<!doctype html><head>{text}</head>")) == want


@pytest.mark.requirement("TDM-1")
def test_a_reason_has_a_policy_as_the_url_of_the_page_tells_it() -> None:
    told = markup(
        '<base href="/policies/"><meta name="tdm-policy" content="policy.json"><meta '
        'name="tdm-reservation" content="1">'
    )
    assert told
    assert told.source.text == f"tdm-reservation: 1; tdm-policy: {POLICY}"
    assert describe(fields(*replay("tdm-reservation", told.source.text))) == describe(told)


@pytest.mark.requirement("TDM-1")
def test_markup_in_utf_16_and_no_markup() -> None:
    text = '<meta name="tdm-reservation" content="1">'
    assert describe(markup(text, encoding="utf-16")) == "1"
    assert markup(text, b"text/plain") is None


@pytest.mark.requirement("TDM-1")
def test_a_page_without_the_words_is_not_parsed() -> None:
    content = Content([(b"Content-Type", b"text/html")], b"<p>" * 10_000)
    assert tdmrep.markup(content, PAGE) is None
    assert "_selector" not in vars(content)


@pytest.mark.requirement("TDM-1")
def test_what_came_before_is_told_of_values_that_are_odd() -> None:
    one = fields(("tdm-reservation", "maybe\x1b"), ("tdm-policy", "http://"))
    assert one is not None
    assert describe_findings(one.findings) == "value 0; value 0"
    assert [finding.url for finding in one.findings] == [PAGE, PAGE]
    assert "\x1b" not in str(one)
    assert one.source == Location(
        "header tdm-reservation", text="tdm-reservation: maybe\ufffd; tdm-policy: http://"
    )
    element = markup(
        '<meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="/p">'
    )
    assert element is not None
    assert element.source == Location(
        "meta tdm-reservation", text="tdm-reservation: 1; tdm-policy: /p"
    )


# sec-processing-priority

R = Reservation(reserved=True, policy="https://example.com/1", source=Location(text="r"))
N = Reservation(reserved=False, policy="https://example.com/0", source=Location(text="n"))
NO_POLICY = Reservation(reserved=True, policy="", source=Location(text="bare"))
UNSET = Reservation(None, "", Location(text="odd"))
POLICY_ALONE = Reservation(None, "https://example.com/new", Location(text="policy"))

PRECEDENCE: list[tuple[list[Reservation | None], str]] = [
    ([], "-"),
    ([None, None], "-"),
    ([R], "1 https://example.com/1"),
    ([R, N], "0 https://example.com/0"),
    ([N, R], "1 https://example.com/1"),
    ([R, None, None], "1 https://example.com/1"),
    ([R, UNSET], "1 https://example.com/1"),
    ([N, UNSET], "0 https://example.com/0"),
    ([R, NO_POLICY], "1 https://example.com/1"),
    ([N, NO_POLICY], "1 https://example.com/0"),
    ([R, POLICY_ALONE], "1 https://example.com/new"),
    ([N, POLICY_ALONE], "0 https://example.com/new"),
    ([POLICY_ALONE], "? https://example.com/new"),
    ([POLICY_ALONE, NO_POLICY], "1 https://example.com/new"),
    ([UNSET], "?"),
    ([R, N, NO_POLICY], "1 https://example.com/0"),
]


@pytest.mark.requirement("TDM-1", "TDM-2", "TDM-4")
@pytest.mark.parametrize(("reservations", "want"), one_in(2, PRECEDENCE))
def test_later_sources_supersede_and_absence_resets_nothing(
    reservations: list[Reservation | None], want: str
) -> None:
    holds = tdmrep.effective(reservations)
    assert describe(holds) == want
    verdicts = [(one.verdict, one.rule) for one in tdmrep.statements(reservations)]
    reserved, given_up = (Verdict.DENY, "tdmrep.reserved"), (Verdict.ALLOW, "tdmrep.not-reserved")
    assert verdicts == {"-": [], "?": [], "1": [reserved], "0": [given_up]}[want[0]]
    assert (holds.licensing if holds else "") == (want[2:] if want[0] == "1" else "")


@pytest.mark.requirement("TDM-2", "TDM-4")
def test_the_policy_stands_in_the_reason_and_only_where_the_right_is_reserved() -> None:
    assert (
        tdmrep.statements([R, NO_POLICY])[0].location.text
        == "bare; tdm-policy: https://example.com/1"
    )
    assert tdmrep.statements([R, N])[0].location.text == "n"


@pytest.mark.requirement("TDM-1", "WHY-2")
@pytest.mark.parametrize(
    ("reservations", "text"),
    [
        ([R, N], "n"),
        ([R, UNSET], "r"),
        ([UNSET, N], "n"),
        ([N, POLICY_ALONE], "n"),
        ([UNSET, POLICY_ALONE], "policy"),
    ],
)
def test_the_place_is_that_of_who_sets_the_reservation(
    reservations: list[Reservation], text: str
) -> None:
    """The oddities of each source are reported."""
    odd = [
        one._replace(findings=(Finding(rule="tdmrep.value", message="odd", url=PAGE, line=number),))
        for number, one in enumerate(reservations)
    ]
    holds = tdmrep.effective(odd)
    assert holds is not None
    assert (holds.source.text, [finding.line for finding in holds.findings]) == (text, [0, 1])


@pytest.mark.requirement("TDM-1")
@given(
    st.lists(st.sampled_from([R, N, NO_POLICY, UNSET, POLICY_ALONE, None]), max_size=5),
    st.integers(0, 5),
)
def test_those_before_can_be_put_together_first(
    reservations: list[Reservation | None], first: int
) -> None:
    together = [tdmrep.effective(reservations[:first]), *reservations[first:]]
    assert tdmrep.statements(together) == tdmrep.statements(reservations)
    assert describe(tdmrep.effective(together)) == describe(tdmrep.effective(reservations))


@pytest.mark.requirement("TDM-1")
@given(st.lists(st.sampled_from([R, N, NO_POLICY, UNSET, POLICY_ALONE, None]), max_size=5))
def test_the_last_that_is_set_decides(reservations: list[Reservation | None]) -> None:
    values = [one.reserved for one in reservations if one is not None and one.reserved is not None]
    holds = tdmrep.effective(reservations)
    assert (None if holds is None else holds.reserved) == (values[-1] if values else None)


# sec-epub2, sec-epub3

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    "<rootfiles>%s</rootfiles></container>"
)
OPF = '<package xmlns="http://www.idpf.org/2007/opf" prefix="%s"><metadata>%s</metadata></package>'


def epub(
    metadata: str,
    *,
    prefix: str = "",
    container: str = "",
    method: int = zipfile.ZIP_DEFLATED,
    extra: dict[str, bytes] | None = None,
) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr(
            "META-INF/container.xml",
            container or CONTAINER % '<rootfile full-path="OEBPS/package.opf"/>',
        )
        archive.writestr("OEBPS/package.opf", OPF % (prefix, metadata))
        for name, octets in (extra or {}).items():
            archive.writestr(name, octets)
    return packed.getvalue()


def document(body: bytes, media_type: str = "application/octet-stream") -> Reservation | None:
    return tdmrep.document(Content([(b"Content-Type", media_type.encode())], body), PAGE)


EPUB = [
    ("", "", "-"),
    ('<meta name="tdm:reservation" content="1"/>', "", "1"),
    (
        f'<meta name="tdm:reservation" content="1"/><meta name="tdm:policy" content="{POLICY}"/>',
        "",
        f"1 {POLICY}",
    ),
    (
        f'<meta property="tdm:reservation"> 1 </meta><meta property="tdm:policy">{POLICY}</meta>',
        "tdm: http://www.w3.org/ns/tdmrep#",
        f"1 {POLICY}",
    ),
    (
        '<meta property="t:reservation">1</meta>',
        "dc: http://purl.org/dc/ t: http://www.w3.org/ns/tdmrep#",
        "1",
    ),
    ('<meta property="t:reservation">1</meta>', "t: http://www.w3.org/ns/other#", "-"),
    ('<meta property="tdm:reservation">0</meta>', "", "0"),
    ('<meta property="tdm:reservation">maybe</meta>', "", "?"),
    ('<meta property="dcterms:modified">1</meta>', "", "-"),
]


@pytest.mark.requirement("TDM-4")
@pytest.mark.parametrize(("metadata", "prefix", "want"), EPUB)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_epub(metadata: str, prefix: str, want: str, method: int) -> None:
    assert (
        describe(document(epub(metadata, prefix=prefix, method=method), "application/epub+zip"))
        == want
    )


@pytest.mark.requirement("TDM-4")
def test_epub_is_known_by_its_content_and_supersedes() -> None:
    told = document(epub('<meta name="tdm:reservation" content="0"/>'))
    assert describe(tdmrep.effective([R, None, told])) == "0 https://example.com/1"
    assert document(b"PK\x03\x04 some other archive", "application/zip") is None


@pytest.mark.requirement("TDM-4")
@pytest.mark.parametrize(
    ("doctype", "want"),
    [
        ("<!DOCTYPE package>", "1"),
        (
            """<!DOCTYPE package\nPUBLIC '+//ISBN 0-9673008-1-9//DTD OEB 1.2 Package//EN' "http://example.org/>[.dtd">\n""",
            "1",
        ),
        ('<!DOCTYPE package SYSTEM "a.dtd" [<!ENTITY a "b">]>', "?"),
    ],
)
def test_epub_with_a_document_type_that_declares_nothing(doctype: str, want: str) -> None:
    package = doctype + OPF % ("", '<meta name="tdm:reservation" content="1"/>')
    container = CONTAINER % '<rootfile full-path="b.opf"/>'
    assert (
        describe(document(epub("", container=container, extra={"b.opf": package.encode()}))) == want
    )


@pytest.mark.requirement("TDM-4")
def test_epub_with_several_package_documents() -> None:
    roots = '<rootfile full-path="a.opf"/><rootfile full-path="b.opf"/>'
    extra = {
        name: (OPF % ("", f'<meta name="tdm:reservation" content="{value}"/>')).encode()
        for name, value in (("a.opf", 0), ("b.opf", 1))
    }
    assert describe(document(epub("", container=CONTAINER % roots, extra=extra))) == "1"


@pytest.mark.requirement("TDM-4", "SEC-1")
def test_a_reservation_counts_after_however_many_others() -> None:
    start = (
        b'%PDF-1.7 <rdf:RDF xmlns:a="http://www.w3.org/ns/tdmrep" '
        b'xmlns:b="https://www.w3.org/ns/tdmrep/">'
    )
    for last, want in (
        (b"<b:reservation>1</b:reservation>", "1"),
        (b'<x b:reservation = "1">', "1"),
        (b"<c:reservation>1<", "0"),
    ):
        told = document(
            start + b"<a:reservation>0</a:reservation>" * 1000 + last, "application/pdf"
        )
        assert describe(told) == want


BOMB = '<meta name="tdm:reservation" content="1"/>' + " " * (20 * 1024 * 1024)
UNREADABLE_EPUB: list[tuple[str, Callable[[], bytes], str]] = [
    ("bomb", lambda: epub(BOMB), "limit 0"),
    ("bzip2", lambda: epub("", method=zipfile.ZIP_BZIP2), "syntax 0"),
    ("lzma", lambda: epub("", method=zipfile.ZIP_LZMA), "syntax 0"),
    (
        "no-container",
        lambda: epub("").replace(b"META-INF/container.xml", b"META-INF/container.xm_"),
        "syntax 0",
    ),
    (
        "entities",
        lambda: epub("", container='<!DOCTYPE x [<!ENTITY a "aaaa">]><container>&a;</container>'),
        "syntax 0",
    ),
    (
        "package-missing",
        lambda: epub("", container=CONTAINER % '<rootfile full-path="no.opf"/>'),
        "syntax 0",
    ),
    ("truncated", lambda: epub("")[:-40], "syntax 0"),
    (
        "large-index",
        lambda: epub("", extra={f"{number:05}" + "x" * 60_000: b"" for number in range(75)}),
        "limit 0",
    ),
]


@pytest.mark.requirement("TDM-4", "SEC-1")
@pytest.mark.parametrize(
    ("made", "findings"),
    [case[1:] for case in UNREADABLE_EPUB],
    ids=[case[0] for case in UNREADABLE_EPUB],
)
def test_epub_that_cannot_be_read_changes_nothing(made: Callable[[], bytes], findings: str) -> None:
    told = document(made(), "application/epub+zip")
    assert describe(told) == "?"
    assert told is not None
    assert describe_findings(told.findings) == findings
    assert describe(tdmrep.effective([R, told])) == "1 https://example.com/1"


@pytest.mark.requirement("TDM-4", "SEC-1")
def test_a_bomb_takes_no_memory() -> None:
    body = epub(BOMB)
    tracemalloc.start()
    try:
        document(body, "application/epub+zip")
        assert tracemalloc.get_traced_memory()[1] < len(BOMB) / 4
    finally:
        tracemalloc.stop()


# sec-pdf

RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">%s</rdf:RDF>'
DESCRIPTION = (
    '<rdf:Description rdf:about="" xmlns:tdm="http://www.w3.org/ns/tdmrep/">%s</rdf:Description>'
)


def pdf(xmp: str, *, compress: bool = False) -> bytes:
    octets = xmp.encode()
    packed = zlib.compress(octets) if compress else octets
    filtered = b"/Filter /FlateDecode " if compress else b""
    stream = b"<< /Type /Metadata /Subtype /XML %s/Length %d >>\nstream\r\n%s\nendstream" % (
        filtered,
        len(packed),
        packed,
    )
    return b"%%PDF-1.7\n%s1 0 obj\n%s\nendobj\n%%%%EOF" % (b"\xe2\xe3\xcf\xd3\n" * 100, stream)


XMP = [
    ("", "-"),
    ("<tdm:reservation>1</tdm:reservation>", "1"),
    (
        f"<tdm:reservation> 1 </tdm:reservation>\n<tdm:policy>{POLICY}?a&amp;b</tdm:policy>",
        f"1 {POLICY}?a&b",
    ),
    ('<tdm:reservation rdf:datatype="x">0</tdm:reservation>', "0"),
    ("<tdm:reservation>x</tdm:reservation>", "?"),
    ("<!-- <tdm:reservation>1</tdm:reservation> -->", "-"),
    ("<!-- <tdm:reservation>1</tdm:reservation>", "1"),
    ("<!-- <!-- --><tdm:reservation>1</tdm:reservation>", "1"),
    ("<other:reservation>1</other:reservation>", "-"),
]


@pytest.mark.requirement("TDM-4")
@pytest.mark.parametrize(("properties", "want"), XMP)
@pytest.mark.parametrize("compress", [False, True])
def test_pdf(properties: str, want: str, compress: bool) -> None:
    assert (
        describe(
            document(pdf(RDF % (DESCRIPTION % properties), compress=compress), "application/pdf")
        )
        == want
    )


@pytest.mark.requirement("TDM-4")
def test_pdf_with_other_spellings_of_the_same() -> None:
    attributes = (
        '<rdf:Description t:reservation = "1" t:policy="/p" '
        'xmlns:t="http://www.w3.org/ns/tdmrep/"/>'
    )
    assert describe(document(pdf(RDF % attributes))) == "1 https://example.com/p"
    # As in the example of the specification, which is not XML
    unquoted = RDF.replace('"', "") % (DESCRIPTION % "<tdm:reservation>1</tdm:reservation>")
    assert describe(document(pdf(unquoted))) == "1"
    twice = "".join(
        pdf(RDF % (DESCRIPTION % f"<tdm:reservation>{value}</tdm:reservation>")).decode("latin-1")
        for value in (1, 0)
    )
    assert describe(document(twice.encode("latin-1"))) == "1"
    assert document(b"<rdf:RDF/> but no PDF") is None


@pytest.mark.requirement("TDM-4")
def test_pdf_with_metadata_of_many_images() -> None:
    images = b"".join(pdf(RDF % f"<x>{number}</x>", compress=True) for number in range(100))
    assert (
        describe(
            document(
                images
                + pdf(RDF % (DESCRIPTION % "<tdm:reservation>1</tdm:reservation>"), compress=True)
            )
        )
        == "1"
    )


@pytest.mark.requirement("TDM-4", "SEC-1")
def test_pdf_that_is_hostile() -> None:
    bomb = pdf("<x>" + " " * 50_000_000, compress=True)
    told = document(bomb)
    assert told is not None
    assert (told.reserved, describe_findings(told.findings)) == (None, "limit 0")
    broken = b"%PDF-1.7 /Type /Metadata /Filter /FlateDecode >> stream\nnothing"
    told = document(broken)
    assert told is not None
    assert describe_findings(told.findings) == "syntax 0"
    many = document(
        b"%PDF-1.7 "
        + b"/Type /Metadata " * 100_000
        + (b"xmlns:a='http://www.w3.org/ns/tdmrep/'" + b"<" * 100) * 1000
    )
    assert describe(many) == "?"
    many = document(b"%PDF-1.7 " + (b"http://www.w3.org/ns/tdmrep/</rdf:RDF") * 1000)
    assert many is not None
    assert describe_findings(many.findings) == "limit 0"


# Any input


@pytest.mark.requirement("TDM-3", "SEC-1")
@given(st.binary(max_size=200), st.booleans(), st.text(max_size=20))
def test_never_raises(body: bytes, cut: bool, target: str) -> None:
    for octets in (body, b"[" + body, b'[{"location": "/", "tdm-reservation": 1}, ' + body):
        file = tdmrep.read(octets, URL, cut=cut)
        file.reservation("/" + target)
        file.everywhere()
    tdmrep.statements([tdmrep.fields([(b"tdm-reservation", body), (b"tdm-policy", body)], PAGE)])
    tdmrep.markup(Content([], b'<meta name="tdm-policy" content="' + body), PAGE)
    document(b"%PDF-1.7 xmlns:t=http://www.w3.org/ns/tdmrep/ <t:policy>" + body)
    document(b"PK" + body, "application/epub+zip")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["/", "*", "1", POLICY]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["location", "tdm-reservation", "tdm-policy"]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.requirement("TDM-3", "SEC-1")
@given(JSON)
def test_any_json_is_read(value: object) -> None:
    file = read(value)
    for path in ("/", "/a*b?c$"):
        tdmrep.statements([file.reservation(path)])


@pytest.mark.requirement("TDM-1")
@given(
    st.lists(
        st.tuples(st.sampled_from(["/", "/a", "/a*", "*b", "/b$"]), st.sampled_from([0, 1, 2])),
        max_size=6,
    )
)
def test_a_reservation_more_gives_nothing_up(rules: list[tuple[str, int]]) -> None:
    written = [rule(location, reserved) for location, reserved in rules]
    for path in ("/", "/a", "/ab", "/b"):
        before, after = (
            read([*written, *more]).reservation(path) for more in ([], [rule(path, 1)])
        )
        assert not (before and before.reserved) or (after and after.reserved)
        assert after is not None


@pytest.mark.requirement("TDM-4", "SEC-1")
@given(st.data())
def test_a_damaged_epub_never_raises(data: st.DataObject) -> None:
    body = bytearray(epub('<meta name="tdm:reservation" content="1"/>'))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    document(bytes(body), "application/epub+zip")
    sized = bytes(body[: data.draw(st.integers(0, len(body)))]) + struct.pack(
        "<I", data.draw(st.integers(0, 2**32 - 1))
    )
    document(sized, "application/epub+zip")


def test_limits_are_those_that_are_documented() -> None:
    assert (tdmrep.MAX_RULES, tdmrep_metadata.MAX_PACKAGE, tdmrep_metadata.MAX_PACKETS) == (
        5000,
        4 * 1024 * 1024,
        20,
    )


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"nothing", "tdmrep.syntax"),
        (b'[{"location": "/", "tdm-reservation": 2}]', "tdmrep.value"),
        (
            b"[" + b",".join([b'{"location": "/a", "tdm-reservation": 1}'] * 5001) + b"]",
            "tdmrep.limit",
        ),
    ],
)
@pytest.mark.requirement("TDM-3", "SEC-1")
def test_findings_have_rules(body: bytes, rule: str) -> None:
    assert rule in {finding.rule for finding in tdmrep.read(body).findings}
