"""Qualifiers: the permissions that take them, their values, and malformed ones.

See ACAP 1.0 section-2.5 and section-3.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from comity.policies import Verdict
from comity.policies.answers.qualifiers import Extract, Resource
from comity.policies.formats.acap import parse
from comity.policies.formats.acap.usages import NONE, USAGES, FieldQualifiers
from tests.selection import one_in

PRESENTING = frozenset(
    (
        "present",
        "present-original",
        "present-currentcopy",
        "present-oldcopy",
        "present-snippet",
        "present-thumbnail",
        "present-oldsnippet",
        "present-oldthumbnail",
        "present-link",
    )
)
COPIES = frozenset(("present-original", "present-currentcopy", "present-oldcopy"))

# section-2.5.1, section-2.5.2, section-2.5.6: no options
NOTHING_ELSE = (
    "crawl",
    "follow",
    "other",
)


def read(usage: str, qualifiers: str) -> tuple[FieldQualifiers, str, list[tuple[str, int, int]]]:
    """Return a permission's qualifiers, the section by which it is unusable, and findings."""
    text = f"ACAP-crawler: *\nACAP-allow-{usage}: / {qualifiers}"
    acap = parse(text.encode())
    (field,) = acap.records[0].fields
    assert (field.usage, field.verdict, field.pattern, field.line) == (usage, Verdict.ALLOW, "/", 2)
    return (
        field.qualifiers,
        field.unusable,
        [(finding.rule, finding.line, finding.column) for finding in acap.findings],
    )


def refuses(usage: str, qualifiers: str, quoted: str) -> None:
    """The permission grants nothing and keeps its place, and the finding has its quotation."""
    stated, unusable, findings = read(usage, qualifiers)
    assert stated == NONE
    assert unusable.startswith("ACAP 1.0 section-")
    name = f"ACAP-allow-{usage}: / "
    assert findings == [
        ("acap.qualifier", 2, len(name) + qualifiers.lower().index(quoted.lower()) + 1)
    ]


# Usages: section-2.5


@pytest.mark.requirement("ACAP-30", "ACAP-48")
@pytest.mark.parametrize("usage", one_in(2, USAGES))
def test_usage_is_known_and_unrestricted_without_a_qualifier(usage: str) -> None:
    assert read(usage, "") == (NONE, "", [])
    assert not NONE.restrictions()


@pytest.mark.requirement("ACAP-30")
def test_there_are_fourteen_usages() -> None:
    assert {"crawl", "follow", "index", "preserve", "other"} | PRESENTING == set(USAGES)


UNKNOWN_USAGES = [
    "",
    "read",
    "crawls",
    "present-",
    "present-copy",
    "index-snippet",
    "present_link",
    "()",
    "(index",
    "(-x)",
]


@pytest.mark.requirement("ACAP-30")
@pytest.mark.parametrize("usage", one_in(2, UNKNOWN_USAGES))
def test_unknown_usage_states_nothing(usage: str) -> None:
    for start in ("ACAP-allow-", "ACAP-disallow-"):
        acap = parse(f"ACAP-crawler: *\n{start}{usage}: /{usage}\nACAP-allow-index: /".encode())
        assert [field.usage for field in acap.records[0].fields] == ["index"], start
        (finding,) = acap.findings
        assert (finding.rule, finding.line, finding.column) == (
            "acap.unknown-usage",
            2,
            len(start) + 1 if usage else 0,
        ), start


# The qualifiers of each usage: section-2.5.3 to section-2.5.5

QUALIFIERS = [
    ("time-limit=3-days", PRESENTING | {"index", "preserve"}, ("ACAP-32",)),
    ("must-use-resource=/x", PRESENTING | {"index"}, ("ACAP-33",)),
    ("max-length=3-words", {"present-snippet", "present-oldsnippet"}, ("ACAP-34",)),
    ("prohibited-modification=any", COPIES | {"present"}, ("ACAP-35",)),
    ("must-include-resource=/x", PRESENTING, ("ACAP-36",)),
    ("prohibited-context=within-user-frame", COPIES, ("ACAP-37",)),
    ("required-context=within-original-frame", COPIES, ("ACAP-37",)),
]


@pytest.mark.parametrize(
    ("usage", "qualifier", "valid"),
    one_in(
        3,
        [
            pytest.param(
                usage,
                qualifier,
                usage in usages,
                id=f"{usage}-{qualifier}",
                marks=pytest.mark.requirement(
                    *rows, *(("ACAP-31",) if usage in NOTHING_ELSE else ()), "ACAP-38"
                ),
            )
            for qualifier, usages, rows in QUALIFIERS
            for usage in USAGES
        ],
    ),
)
def test_usage_and_qualifier(usage: str, qualifier: str, valid: bool) -> None:
    assert not (valid and usage in NOTHING_ELSE)
    if valid:
        stated, unusable, findings = read(usage, qualifier)
        assert (unusable, findings) == ("", [])
        assert stated != NONE
    else:
        refuses(usage, qualifier, qualifier.partition("=")[0])


# Values: section-2.5.3.1 to section-2.5.5.2.7


def until(year: int, month: int, day: int) -> FieldQualifiers:
    return FieldQualifiers(until=datetime(year, month, day, 23, 59, 59, tzinfo=UTC))


def extract(kind: str, name: str) -> Resource:
    return Resource(extract=Extract(kind=kind, name=name))


def at(uri: str) -> Resource:
    return Resource(uri=uri)


def inclusion(role: str, resource: Resource) -> FieldQualifiers:
    return FieldQualifiers(must_include=(replace(resource, role=role),))


def without_modifications(*modifications: str) -> FieldQualifiers:
    return FieldQualifiers(prohibited_modifications=frozenset(modifications))


USER_FRAME = FieldQualifiers(prohibited_contexts=frozenset({"within-user-frame"}))
ORIGINAL_FRAME = FieldQualifiers(required_contexts=frozenset({"within-original-frame"}))


VALUES = [
    ("index", "time-limit=until-recrawled", FieldQualifiers(until_recrawled=True), "ACAP-32"),
    # as in section-2.4.1.2
    ("preserve", "time-limit=until-recrawl", FieldQualifiers(until_recrawled=True), "ACAP-32"),
    ("preserve", "time-limit=until-2007-12-31", until(2007, 12, 31), "ACAP-32"),
    ("index", "time-limit=until-2008-02-29", until(2008, 2, 29), "ACAP-32"),
    ("present", "time-limit=until-9999-12-31", until(9999, 12, 31), "ACAP-32"),
    ("present-link", "time-limit=3-days", FieldQualifiers(days=3), "ACAP-32"),
    ("index", "time-limit=0-days", FieldQualifiers(days=0), "ACAP-32"),
    ("index", "time-limit=007-days", FieldQualifiers(days=7), "ACAP-32"),
    ("index", "time-limit=999999999-days", FieldQualifiers(days=999_999_999), "ACAP-32"),
    ("index", "must-use-resource=/index.txt", FieldQualifiers(must_use=(at("/index.txt"),)),
     "ACAP-33"),
    ("index", "must-use-resource=index.txt?a=b=c", FieldQualifiers(must_use=(at("index.txt?a=b=c"),
     )), "ACAP-33"),
    ("index", "must-use-resource=HTTPS://e.com/I", FieldQualifiers(must_use=(at("HTTPS://e.com/I"),
     )), "ACAP-33"),
    (
        "index",
        "must-use-resource=the-acap:extract:id:Abstract",
        FieldQualifiers(must_use=(extract("id", "Abstract"),)),
        "ACAP-33",
    ),
    ("present", "must-use-resource=the-acap:extract:class:a:b",
     FieldQualifiers(must_use=(extract("class", "a:b"),)), "ACAP-33"),
    (
        "present",
        "must-use-resource=the-acap:extract:meta:dc.title",
        FieldQualifiers(must_use=(extract("meta", "dc.title"),)),
        "ACAP-33",
    ),
    ("present-snippet", "max-length=250-chars", FieldQualifiers(max_chars=250), "ACAP-34"),
    ("present-oldsnippet", "max-length=30-words", FieldQualifiers(max_words=30), "ACAP-34"),
    ("present-snippet", "max-length=0-chars", FieldQualifiers(max_chars=0), "ACAP-34"),
    ("present", "prohibited-modification=any", without_modifications("any"), "ACAP-35"),
    ("present", "prohibited-modification=format", without_modifications("format"), "ACAP-35"),
    ("present-original", "prohibited-modification=style", without_modifications("style"),
     "ACAP-35"),
    ("present-currentcopy", "prohibited-modification=translation",
     without_modifications("translation"),
     "ACAP-35"),
    ("present-oldcopy", "prohibited-modification=annotation", without_modifications("annotation"),
     "ACAP-35"),
    ("present-oldcopy", "prohibited-modification=style prohibited-modification=format",
     without_modifications("format", "style"), "ACAP-35"),
    ("present", "prohibited-modification=style prohibited-modification=style",
     without_modifications("style"),
     "ACAP-35"),
    ("present", "must-include-resource=/terms.html", inclusion("", at("/terms.html")), "ACAP-36"),
    ("present", "must-include-resource=the-acap:credit:/credit.html", inclusion("credit",
     at("/credit.html")), "ACAP-36"),
    ("present", "must-include-resource=the-acap:link:http://e.com/a:b", inclusion("link",
     at("http://e.com/a:b")), "ACAP-36"),
    ("present", "must-include-resource=the-acap:credit:id", inclusion("credit", at("id")),
     "ACAP-36"),
    ("present", "must-include-resource=the-acap:credit:id:c", inclusion("credit", extract("id",
     "c")), "ACAP-36"),
    ("present", "must-include-resource=the-acap:link:class:c", inclusion("link", extract("class",
     "c")), "ACAP-36"),
    ("present", "must-include-resource=the-acap:credit:meta:c", inclusion("credit", extract("meta",
     "c")), "ACAP-36"),
    ("present-original", "prohibited-context=within-user-frame", USER_FRAME, "ACAP-37"),
    ("present-oldcopy", "required-context=within-original-frame", ORIGINAL_FRAME, "ACAP-37"),
    # Names are case-insensitive, and so are the values that are words of the specification.
    ("index", "Time-Limit=Until-Recrawled", FieldQualifiers(until_recrawled=True), "ACAP-2"),
    ("index", "TIME-LIMIT=3-DAYS", FieldQualifiers(days=3), "ACAP-2"),
    ("present-snippet", "Max-Length=3-Words", FieldQualifiers(max_words=3), "ACAP-2"),
    ("present", "PROHIBITED-MODIFICATION=Style", without_modifications("style"), "ACAP-2"),
    ("present", "must-use-resource=The-ACAP:Extract:ID:Case",
     FieldQualifiers(must_use=(extract("id", "Case"),)), "ACAP-2"),
    ("present", "must-include-resource=THE-ACAP:Credit:Meta:Case", inclusion("credit",
     extract("meta", "Case")), "ACAP-2"),
    # Escapes in values, and white space around the equals sign: section-3
    ("index", "time-limit=3%2ddays", FieldQualifiers(days=3), "ACAP-39"),
    ("present", "must-use-resource=the-acap%3Aextract:id:%61",
     FieldQualifiers(must_use=(extract("id", "a"),)), "ACAP-39"),
    ("index", "must-use-resource=/%23%22%27%25", FieldQualifiers(must_use=(at("/#\"'%"),)),
     "ACAP-39"),
    ("index", "must-use-resource=/%C3%A9", FieldQualifiers(must_use=(at("/é"),)), "ACAP-39"),
    ("index", "must-use-resource=/100%", FieldQualifiers(must_use=(at("/100%"),)), "ACAP-39"),
    ("index", "time-limit = 3-days", FieldQualifiers(days=3), "ACAP-39"),
    ("index", "time-limit\t=\t 3-days", FieldQualifiers(days=3), "ACAP-39"),
    ("index", "time-limit=3-days#time-limit=4-days", FieldQualifiers(days=3), "ACAP-39"),
    # Several: section-2.4.1.2
    ("present-snippet", "max-length=9-chars \t time-limit=2-days", FieldQualifiers(max_chars=9,
     days=2), "ACAP-20"),
    (
        "index",
        "must-use-resource=/x time-limit =until-recrawled",
        FieldQualifiers(must_use=(at("/x"),), until_recrawled=True),
        "ACAP-20",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "qualifiers", "want"),
    one_in(
        3,
        [
            pytest.param(
                usage,
                qualifiers,
                want,
                id=f"{usage} {qualifiers}",
                marks=pytest.mark.requirement(row),
            )
            for usage, qualifiers, want, row in VALUES
        ],
    ),
)
def test_value(usage: str, qualifiers: str, want: FieldQualifiers) -> None:
    assert read(usage, qualifiers) == (want, "", [])


MALFORMED = [
    # usage, qualifiers, the quoted part of them ("" for all), row
    ("index", "time-limit=until-31-12-2007", "until-31-12-2007", "ACAP-32"),
    ("index", "time-limit=until-2007-02-29", "until-2007-02-29", "ACAP-32"),
    ("index", "time-limit=until-0000-01-01", "until-0000-01-01", "ACAP-32"),
    ("index", "time-limit=until-20071231", "until-20071231", "ACAP-32"),
    ("index", "time-limit=2007-12-31", "2007-12-31", "ACAP-32"),
    ("index", "time-limit=until-2007-12-31T00:00", "until-2007-12-31T00:00", "ACAP-32"),
    ("index", "time-limit=until-", "until-", "ACAP-32"),
    ("index", "time-limit=days", "days", "ACAP-32"),
    ("index", "time-limit=-3-days", "-3-days", "ACAP-32"),
    ("index", "time-limit=3", "3", "ACAP-32"),
    ("index", "time-limit=3-day", "3-day", "ACAP-32"),
    ("index", "time-limit=3-hours", "3-hours", "ACAP-32"),
    ("index", "time-limit=1.5-days", "1.5-days", "ACAP-32"),
    ("index", "time-limit=1000000000-days", "1000000000-days", "ACAP-32"),
    ("index", "time-limit=%D9%A3-days", "%D9%A3-days", "ACAP-32"),  # an Arabic digit
    ("index", "must-use-resource=the-acap:extract:id:", "the-acap:extract:id:", "ACAP-33"),
    ("index", "must-use-resource=the-acap:extract:tag:p", "the-acap:extract:tag:p", "ACAP-33"),
    ("index", "must-use-resource=the-acap:extract:id", "the-acap:extract:id", "ACAP-33"),
    ("index", "must-use-resource=the-acap:extract", "the-acap:extract", "ACAP-33"),
    ("index", "must-use-resource=the-acap:credit:id:x", "the-acap:credit:id:x", "ACAP-33"),
    ("index", "must-use-resource=the-acap:", "the-acap:", "ACAP-33"),
    ("present-snippet", "max-length=250", "250", "ACAP-34"),
    ("present-snippet", "max-length=250-days", "250-days", "ACAP-34"),
    ("present-snippet", "max-length=words", "words", "ACAP-34"),
    ("present-snippet", "max-length=3-swords", "3-swords", "ACAP-34"),
    ("present", "prohibited-modification=all", "all", "ACAP-35"),
    ("present", "prohibited-modification=style,format", "style,format", "ACAP-35"),
    ("present", "must-include-resource=the-acap:extract:id:x", "the-acap:extract:id:x", "ACAP-36"),
    ("present", "must-include-resource=the-acap:credit", "the-acap:credit", "ACAP-36"),
    ("present", "must-include-resource=the-acap:link:", "the-acap:link:", "ACAP-36"),
    ("present", "must-include-resource=the-acap:link:meta:", "the-acap:link:meta:", "ACAP-36"),
    ("present-original", "prohibited-context=within-original-frame", "within-original-frame",
     "ACAP-37"),
    ("present-original", "required-context=within-user-frame", "within-user-frame", "ACAP-37"),
    ("index", "expires=3-days", "expires", "ACAP-38"),
    ("index", "time_limit=3-days", "time_limit", "ACAP-38"),
    ("index", "time-limit", "", "ACAP-38"),
    ("index", "time-limit=", "", "ACAP-38"),
    ("index", "time-limit:3-days", "", "ACAP-38"),
    ("index", "=3-days", "", "ACAP-38"),
    ("index", "-time-limit=3-days", "", "ACAP-38"),
    ("index", "3-days", "", "ACAP-38"),
    ("index", "time-limit=3 days", "3", "ACAP-38"),
    ("index", "time-limit=3-days forever", "forever", "ACAP-38"),
    ("index", "time-limit=3-days, x", "3-days,", "ACAP-38"),
    ("index", "time-limit=3-days max-length=3-words", "max-length", "ACAP-38"),
    ("index", "time-limit=3-days time-limit=3-days", "time-limit", "ACAP-38"),
    ("index", "time-limit=3-days time-limit=until-recrawled", "time-limit", "ACAP-38"),
    ("index", "must-use-resource=/x must-use-resource=/y", "must-use-resource", "ACAP-33"),
    ("present", "must-include-resource=/x must-include-resource=/y", "must-include-resource",
     "ACAP-36"),
    ("present-snippet", "max-length=3-words MAX-LENGTH=9-chars", "max-length", "ACAP-34"),
    ("present-oldcopy", 2 * " prohibited-context=within-user-frame", "prohibited-context",
     "ACAP-37"),
    ("present-oldcopy", 2 * " required-context=within-original-frame", "required-context",
     "ACAP-37"),
    ("present", "prohibited-modification=any prohibited-modification=style",
     "prohibited-modification", "ACAP-35"),
    ("present", "prohibited-modification=style prohibited-modification=any",
     "prohibited-modification", "ACAP-35"),
    ("present", "prohibited-modification=any prohibited-modification=any",
     "prohibited-modification", "ACAP-35"),
    ("index", "time-limit='3-days'", "", "ACAP-39"),
    ("index", 'time-limit="3-days"', "", "ACAP-39"),
    ("index", "must-use-resource=/it's", "", "ACAP-39"),
    ("index", "must-use-resource=/é", "", "ACAP-39"),
    ("index", "must-use-resource=/%FF", "/%FF", "ACAP-39"),
    ("index", "time-limit=%33 -days", "%33", "ACAP-39"),
]  # fmt: skip


@pytest.mark.requirement("ACAP-38")
@pytest.mark.parametrize(
    ("usage", "qualifiers", "quoted"),
    one_in(
        3,
        [
            pytest.param(
                usage,
                qualifiers,
                quoted,
                id=f"{usage} {qualifiers}",
                marks=pytest.mark.requirement(row),
            )
            for usage, qualifiers, quoted, row in MALFORMED
        ],
    ),
)
def test_malformed(usage: str, qualifiers: str, quoted: str) -> None:
    refuses(usage, qualifiers, quoted or qualifiers)


@pytest.mark.requirement("ACAP-39")
def test_a_hash_ends_the_value() -> None:
    refuses("index", "time-limit=#3-days", "time-limit=")
    assert read("index", "must-use-resource=/x#y")[0] == FieldQualifiers(must_use=(at("/x"),))


@pytest.mark.requirement("ACAP-38")
def test_the_finding_names_file_and_place_and_shows_nothing_hidden() -> None:
    text = "ACAP-crawler: *\r\n\r\n  ACAP-allow-index: /max-words max-words=\u202e1".encode()
    (finding,) = parse(text, url="https://example.com/robots.txt").findings
    assert str(finding).startswith(
        "https://example.com/robots.txt:3:32: acap.qualifier: `max-words=\ufffd1` is not "
        "a qualifier"
    )


# The same in definitions: section-2.7.1


@pytest.mark.requirement("ACAP-40")
@pytest.mark.parametrize(
    ("usage", "qualifiers", "want"),
    one_in(
        3,
        [
            pytest.param(usage, qualifiers, want, id=f"{usage} {qualifiers}")
            for usage, qualifiers, want, _ in VALUES
        ],
    ),
)
def test_a_qualified_usage_states_the_same(
    usage: str, qualifiers: str, want: FieldQualifiers
) -> None:
    acap = parse(
        f"ACAP-qualified-usage: mine {usage} {qualifiers}\nACAP-crawler: *\n"
        "ACAP-allow-(mine): /".encode()
    )
    (field,) = acap.records[0].fields
    assert (field.usage, field.qualifiers, field.unusable, acap.findings) == (usage, want, "", ())


@pytest.mark.requirement("ACAP-38", "ACAP-40")
@pytest.mark.parametrize(
    ("usage", "qualifiers"),
    one_in(
        3,
        [
            pytest.param(usage, qualifiers, id=f"{usage} {qualifiers}")
            for usage, qualifiers, _, _ in MALFORMED
        ],
    ),
)
def test_a_malformed_qualifier_of_a_qualified_usage(usage: str, qualifiers: str) -> None:
    """There is one finding at the definition, and the permission keeps its place in conflicts."""
    acap = parse(
        f"ACAP-qualified-usage: mine {usage} {qualifiers}\nACAP-crawler: *\n"
        "ACAP-allow-(mine): /".encode()
    )
    (field,) = acap.records[0].fields
    assert (field.usage, field.verdict, field.pattern, field.qualifiers) == (
        usage,
        Verdict.ALLOW,
        "/",
        NONE,
    )
    assert field.unusable
    assert [(finding.rule, finding.line) for finding in acap.findings] == [("acap.qualifier", 1)]
