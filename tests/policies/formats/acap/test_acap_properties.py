"""Properties of the grammar of ACAP for any octets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Verdict
from comity.policies.answers.rule import RULES
from comity.policies.formats.acap import Acap, parse
from comity.policies.formats.acap.grammar import WHOLE_SITE
from comity.policies.formats.acap.usages import NONE, USAGES, QualifierError, read_qualifiers
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.lines import MAX_FINDINGS

EOLS = [b"\n", b"\r", b"\r\n"]
LINE_END = re.compile(rb"\r\n?|\n")

# Lines, well-formed and malformed.
LINES = b"""##ACAP version=1.0
ACAP-ignore-conventional-records
ACAP-resource-set: s /x *.gif$
ACAP-resource-set: s /y
ACAP-resource-set: t
ACAP-qualified-usage: q index time-limit=3-days
ACAP-qualified-usage: q crawl
ACAP-qualified-usage: r preserve time-limit=never
ACAP-composite-usage: c crawl (q) present
ACAP-composite-usage: d (c) (d) (u)
ACAP-crawler: a
ACAP-crawler: b
ACAP-crawler: *
ACAP-crawler:
ACAP-crawler
ACAP-crawler a b
ACAP-usage-purpose: news
ACAP-usage-purpose: http://e.com/*
ACAP-usage-purpose:
ACAP-permissions-reference: /r.txt
ACAP-permissions-reference:
ACAP-request-take-down: /x
ACAP-request-re-crawl: x
ACAP-allow-crawl: /x
ACAP-allow-index: the-acap:resource-set:s must-use-resource=/x
ACAP-allow-present-snippet: /x max-length=3-words max-length=9-chars
ACAP-allow-(c): the-acap:resource-set:t
ACAP-allow-(q): /y time-limit=3-days
ACAP-allow-(u): /
ACAP-allow-read: /
ACAP-allow-crawl:
ACAP-allow-crawl /
ACAP-disallow-crawl: /x
ACAP-disallow-other: the-acap:resource-set:s
ACAP-disallow-(c): the-acap:resource-set:u x=y
ACAP-disallow-read: /
ACAP-
ACAP-: x
ACAP-x: y
User-agent: a
Disallow: /x
Allow: /
Sitemap: /s
prose""".split(b"\n")
lines = st.sampled_from(LINES)
files = st.lists(lines, max_size=15).map(b"\n".join)

# Octets that may confuse a reader, between and within lines.
TOKENS = [
    *(
        b"ACAP-",
        b"acap-",
        b"##ACAP version=",
        b"crawler",
        b"allow-",
        b"disallow-",
        b"usage-purpose",
        b"permissions-reference",
    ),
    *(
        b"qualified-usage",
        b"composite-usage",
        b"resource-set",
        b"request-",
        b"take-down",
        b"ignore-conventional-records",
    ),
    *(
        b"crawl",
        b"index",
        b"present",
        b"(c)",
        b"(",
        b")",
        b"the-acap:",
        b"resource-set:",
        b"extract:",
        b"time-limit",
        b"max-length",
    ),
    *(
        b":",
        b"=",
        b"*",
        b"$",
        b"/",
        b"#",
        b"%",
        b"%F",
        b"%FF",
        b"{}",
        b"{0}",
        b"-",
        b"1",
        b"a",
        b"user-agent",
    ),
    *(
        b" ",
        b"\t",
        b"\0",
        b"\x0b",
        b"\x0c",
        b"\x1c",
        b"\x85",
        b"\xff",
        "\u2028".encode(),
        "\u0130".encode(),
        b"\xed\xa0\x80",
    ),
    *(b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf"),
]
octets = st.lists(st.sampled_from(TOKENS), max_size=40).map(b"".join)
hostile = (
    st.binary(max_size=500)
    | octets
    | st.lists(lines | octets | st.binary(max_size=20), max_size=20).map(b"\n".join)
)


def statements_of(acap: Acap) -> tuple[object, ...]:
    """Return the statements of a file, without their places."""
    return (
        acap.version,
        acap.ignores_conventional > 0,
        acap.definitions,
        [
            (
                record.crawlers,
                [field[:6] for field in record.fields],
                [r[:-2] for r in (*record.requests, *record.references)],
            )
            for record in acap.records
        ],
    )


@pytest.mark.requirement("SEC-1", "ACAP-44")
@given(hostile, hostile, st.integers(0, 3), st.integers(0, 5))
def test_nothing_raises(body: bytes, referring: bytes, max_records: int, max_fields: int) -> None:
    definitions = parse(referring).definitions
    for acap in (
        parse(body),
        parse(body, definitions=definitions, crawlers=("a",)),
        parse(body, max_records=max_records, max_fields=max_fields),
    ):
        assert_sound(acap, body)


def assert_sound(acap: Acap, body: bytes) -> None:
    starts = [0, *(match.end() for match in LINE_END.finditer(body))]
    texts = LINE_END.split(body)
    assert len(acap.findings) <= MAX_FINDINGS + 1
    for finding in acap.findings:
        assert finding.rule in RULES
        assert finding.message.isprintable()
        assert 0 <= finding.line <= len(texts)
        assert 0 <= finding.column <= (len(texts[finding.line - 1]) if finding.line else 0)
    assert list(acap.findings) == sorted(
        acap.findings, key=lambda one: (one.line or len(texts) + 1, one.column)
    )
    for record in acap.records:
        assert record.crawlers
        places = [(one.line, one.offset) for one in record.fields]
        places += ((one.line, one.offset) for one in record.requests)
        places += ((one.line, one.offset) for one in record.references)
        assert all(starts[line - 1] == at for line, at in places)
        for field in record.fields:
            assert field.usage in USAGES
            assert field.pattern != WHOLE_SITE or field.verdict is Verdict.DENY or field.unusable
            assert field.verdict is Verdict.ALLOW or not (
                field.qualifiers.restrictions() or field.unusable
            )


@pytest.mark.requirement("SEC-1", "ACAP-38")
@given(
    st.text(max_size=60) | octets.map(lambda text: text.decode("utf-8", "replace")),
    st.sampled_from(USAGES),
)
def test_qualifiers_are_read_or_cannot_be_honoured(text: str, usage: str) -> None:
    try:
        found = read_qualifiers(text, usage)
    except QualifierError as error:
        problem = error
    else:
        assert bool(text.strip(" \t")) == (found != NONE)
        return
    assert problem.quoted.lower() in text.lower()
    assert problem.message.format("")


@pytest.mark.requirement("ACAP-1")
@given(files, st.sampled_from(EOLS), st.booleans())
def test_comments_blank_lines_and_line_ends_change_nothing(
    body: bytes, eol: bytes, indented: bool
) -> None:
    """They change only the finding about crawler lines that stand apart."""
    body = body.replace(b"##ACAP version=1.0", b"")
    plain = parse(body)
    gap = b" # x" + eol + eol + b"  # ACAP-allow-crawl: /" + eol + (b" \t" if indented else b"")
    dressed = parse(body.replace(b"\n", gap) + gap)
    assert statements_of(dressed) == statements_of(plain)
    assert [one.rule for one in dressed.findings if one.rule != "acap.fused"] == [
        one.rule for one in plain.findings if one.rule != "acap.fused"
    ]


@pytest.mark.requirement("ACAP-1")
@given(files, st.sampled_from(EOLS))
def test_line_ends_move_no_line(body: bytes, eol: bytes) -> None:
    plain, other = parse(body), parse(body.replace(b"\n", eol))
    assert other.findings == plain.findings
    for one, another in zip(plain.records, other.records, strict=True):
        assert [field[:-1] for field in one.fields] == [field[:-1] for field in another.fields]


@pytest.mark.requirement("ACAP-2")
@given(files)
def test_the_case_of_names_changes_nothing(body: bytes) -> None:
    """All names in the lines are in lower case."""
    lower = body.lower()
    upper = re.sub(rb"(?m)(?<=^ACAP-)[^:\n]+", lambda name: name[0].upper(), body)
    assert statements_of(parse(upper)) == statements_of(parse(body)) == statements_of(parse(lower))


@pytest.mark.requirement("ACAP-8")
@given(
    st.lists(
        st.sampled_from([line for line in LINES if line.startswith(b"ACAP-")]), max_size=15
    ).map(b"\n".join)
)
def test_conventional_records_before_do_not_notice(acap: bytes) -> None:
    group = b"User-agent: a\nDisallow: /x\nAllow: /x/y\n"
    for body in (group + acap, acap + b"\n" + group):
        rules = robots.parse(body).for_agent("a")
        for path in ("/", "/x", "/x/y"):
            alone, beside = robots.parse(group).for_agent("a").decide(path), rules.decide(path)
            assert (alone and alone[:2]) == (beside and beside[:2])


@pytest.mark.requirement("ACAP-8")
@given(files)
def test_conventional_rules_say_nothing_in_acap(body: bytes) -> None:
    without = re.sub(rb"(?m)^(Disallow|Allow|Sitemap|prose).*$", b"", body)
    assert statements_of(parse(without)) == statements_of(parse(body))


@pytest.mark.requirement("ACAP-9")
@given(files)
def test_both_parsers_see_the_same_records(body: bytes) -> None:
    """A conventional rule counts where no ACAP field would.

    That is after an agent line, until the next crawler line.
    """
    probe = body + b"\nDisallow: /probe\nACAP-disallow-crawl: /probe"
    conventional = robots.parse(probe)
    in_acap = any(
        field.pattern == "/probe" for record in parse(probe).records for field in record.fields
    )
    last = probe.count(b"\n")
    ignored = ("acap.conventional", last) in [(one.rule, one.line) for one in conventional.findings]
    # An unreadable crawler line begins a record of ACAP only: refusals on both sides stay.
    if not re.search(rb"(?m)^ACAP-crawler( a b)?$", body):
        assert in_acap == ignored


@pytest.mark.requirement("ACAP-3")
@given(files, files)
def test_a_record_that_has_ended_does_not_change(before: bytes, after: bytes) -> None:
    """Definitions and limits are excepted: they apply to the whole file."""
    before = (
        re.sub(rb"(?m)^ACAP-(resource-set|qualified-usage|composite-usage).*$", b"", before)
        + b"\nUser-agent: a"
    )
    after = re.sub(rb"(?m)^ACAP-(resource-set|qualified-usage|composite-usage).*$", b"", after)
    records = parse(before).records
    assert parse(before + b"\n" + after).records[: len(records)] == records
