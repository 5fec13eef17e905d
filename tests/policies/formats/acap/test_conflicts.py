"""The field that decides if several are about one usage of one resource.

See section-2.4.5, section-2.5.5 and section-2.5.6.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, permutations
from typing import Any, NamedTuple
from urllib.parse import urljoin

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.formats.acap import AcapRules, UsageAnswer, checks, parse, resolution
from comity.policies.formats.acap.usages import FieldQualifiers
from comity.policies.formats.authoring import Remarks
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.path_patterns import foldings
from tests.selection import examples, one_in

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY

DEFINITIONS = """\
ACAP-resource-set: images *.gif *.jpg
ACAP-resource-set: both /a/ /b/
ACAP-resource-set: empty
ACAP-qualified-usage: brief present-snippet max-length=30-words
ACAP-composite-usage: basics crawl index present
"""
NEWS = "usage-purpose: news\nACAP-"
PICTURES = "usage-purpose: pictures\nACAP-"
SPORT = "usage-purpose: sport\nACAP-"  # none of the agent's


def decide(text: str, usage: str, target: str, agent: Agent) -> UsageAnswer | None:
    return AcapRules(agent, [parse(text.encode())]).for_purposes().matching(target).decide(usage)


# Pairs of fields


class Pair(NamedTuple):
    one: str
    other: str
    want: Verdict
    decides: int  # 1: the one, 2: the other, 3: both
    row: str
    usage: str = "index"
    target: str = "/a/b.gif"


def snippet(
    one: str, other: str, want: Verdict, decides: int, row: str, usage: str = "present-snippet"
) -> Pair:
    return Pair(one, other, want, decides, row, usage)


PAIRS = [
    # section-2.4.5: one runs out of characters, the other is narrower
    Pair("allow-index: /", "disallow-index: /a/", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a/", "disallow-index: /", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /a", "disallow-index: /a/", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a/b.gif", "disallow-index: /a/", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /a/b.gif$", "disallow-index: /a/b.gif", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /a/b.gif", "disallow-index: /a/b.gif$", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a/*.gif$", "disallow-index: /a/*.gif", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /a", "disallow-index: /a*", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a*", "disallow-index: /a", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: *", "disallow-index: *.gif", DENY, 2, "ACAP-24"),
    Pair("allow-index: **", "disallow-index: *", ALLOW, 1, "ACAP-24"),
    # one has `$`, the other is narrower
    Pair("allow-index: /a/b.gif$", "disallow-index: /a/b.gif*", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a/b.gif*", "disallow-index: /a/b.gif$", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /*$", "disallow-index: /*f", DENY, 2, "ACAP-24"),
    Pair("allow-index: /*f", "disallow-index: /*$", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /*$", "disallow-index: /**", DENY, 2, "ACAP-24"),
    # one has `*`, the other is narrower, however long the one is
    Pair("allow-index: /*", "disallow-index: /a", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a", "disallow-index: /*/b.gif$", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /*/b.gif$", "disallow-index: /a", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a*", "disallow-index: /a/", DENY, 2, "ACAP-24"),
    Pair("allow-index: /a/**.gif", "disallow-index: /a/*.gif", DENY, 2, "ACAP-24"),
    Pair("allow-index: *.gif", "disallow-index: /", DENY, 2, "ACAP-24"),
    Pair("allow-index: /", "disallow-index: *.gif", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /a/b*", "disallow-index: /*/b.gif", ALLOW, 1, "ACAP-24"),
    # undetermined: equal patterns, and two ordinary characters after equal starts
    Pair("allow-index: /a/", "disallow-index: /a/", DENY, 2, "ACAP-25"),
    Pair("allow-index: /*.gif", "disallow-index: /*b", DENY, 2, "ACAP-25"),
    Pair("allow-index: /*b", "disallow-index: /*.gif", DENY, 2, "ACAP-25"),
    Pair("allow-index: *.gif", "disallow-index: *gif", DENY, 2, "ACAP-25"),
    Pair("allow-index: /*/b.gif$", "disallow-index: /*a", DENY, 2, "ACAP-25"),
    Pair("allow-index: /*$b", "disallow-index: /*a", DENY, 2, "ACAP-25", target="/a$b"),
    # section-2.8: equal patterns, and matches
    Pair("allow-index: /A/", "disallow-index: /a/", DENY, 2, "ACAP-23"),
    Pair("allow-index: /", "disallow-index: /A/B.GIF", DENY, 2, "ACAP-23"),
    Pair("allow-index: /", "disallow-index: /a/", DENY, 2, "ACAP-23", target="/A/"),
    Pair("allow-index: /%61/", "disallow-index: /a/", DENY, 2, "ACAP-23"),
    Pair("allow-index: /%c3%a9", "disallow-index: /é", DENY, 2, "ACAP-23", target="/%C3%A9"),
    Pair("allow-index: a/", "disallow-index: /a/", DENY, 2, "ACAP-23"),
    Pair("allow-index: /a/", "disallow-index: a/b", DENY, 2, "ACAP-23"),
    Pair("allow-index: /", "disallow-index: /*from=", DENY, 2, "ACAP-23", target="/a?from=b"),
    Pair("allow-index: /", "disallow-index: /b", ALLOW, 1, "ACAP-23"),
    Pair("allow-index: /", "disallow-index: b.gif", ALLOW, 1, "ACAP-23"),
    Pair("allow-index: /", "disallow-index: /a/b$", ALLOW, 1, "ACAP-23"),
    Pair("allow-index: /", "disallow-index: /a$b", ALLOW, 1, "ACAP-23"),
    Pair("allow-index: /", "disallow-index: /a/*b*b", ALLOW, 1, "ACAP-23"),
    Pair("allow-index: /a", "disallow-index: /a$b", DENY, 2, "ACAP-23", target="/a$b"),
    # section-2.4.3, section-2.4.4: each pattern of a set is a field of its own
    Pair("allow-index: the-acap:resource-set:images", "disallow-index: /a/", DENY, 2, "ACAP-22"),
    Pair("allow-index: /a/", "disallow-index: the-acap:resource-set:images", ALLOW, 1, "ACAP-22"),
    Pair("allow-index: the-acap:resource-set:both", "disallow-index: /", ALLOW, 1, "ACAP-22"),
    Pair("allow-index: /", "disallow-index: the-acap:resource-set:both", DENY, 2, "ACAP-22"),
    Pair("allow-index: the-acap:resource-set:both", "disallow-index: /a/b", DENY, 2, "ACAP-22"),
    Pair(
        "allow-index: The-ACAP:Resource-Set:BOTH",
        "disallow-index: the-acap:resource-set:images",
        ALLOW,
        1,
        "ACAP-22",
    ),
    Pair("allow-index: the-acap:resource-set:images", "disallow-index: *.gif", DENY, 2, "ACAP-22"),
    Pair(
        "allow-index: /a/b.gif$", "disallow-index: the-acap:resource-set:none", DENY, 2, "ACAP-22"
    ),
    Pair(
        "allow-index: /a/b.gif$", "disallow-index: the-acap:resource-set:empty", DENY, 2, "ACAP-22"
    ),
    Pair("allow-index: /", "disallow-crawl: the-acap:resource-set:none", ALLOW, 1, "ACAP-22"),
    Pair("allow-index: /", "allow-index: the-acap:resource-set:none", ALLOW, 1, "ACAP-22"),
    Pair("disallow-other: /", "allow-index: the-acap:resource-set:none", DENY, 1, "ACAP-22"),
    Pair("disallow-other: /", "allow-index: the-acap:resource-set:empty", DENY, 1, "ACAP-22"),
    Pair("allow-index: /", "disallow-index:", ALLOW, 1, "ACAP-22"),
    Pair("disallow-other: /", "allow-index:", DENY, 1, "ACAP-22"),
    # section-2.4.5: qualifiers do not matter
    Pair("allow-index: /a/ time-limit=1-days", "disallow-index: /a/", DENY, 2, "ACAP-26"),
    Pair("allow-index: /a/ time-limit=1-days", "disallow-index: /", ALLOW, 1, "ACAP-26"),
    Pair("allow-index: / time-limit=1-days", "disallow-index: /a/", DENY, 2, "ACAP-26"),
    Pair("allow-index: /a/ time-limit=1-days", "allow-index: /", ALLOW, 1, "ACAP-47"),
    Pair("allow-index: / time-limit=1-days", "allow-index: /a/", ALLOW, 2, "ACAP-47"),
    Pair("allow-index: /*.gif time-limit=1-days", "allow-index: /*b", ALLOW, 3, "ACAP-47"),
    Pair("allow-index: /a/ time-limit=1-days", "allow-index: /a/", ALLOW, 3, "ACAP-47"),
    # a permission that cannot be honoured keeps its place
    Pair("allow-index: /", "allow-index: /a/ unknown=1", DENY, 2, "ACAP-38"),
    Pair("allow-index: /a/", "allow-index: / unknown=1", ALLOW, 1, "ACAP-38"),
    Pair("allow-index: /a/", "allow-index: /a/ time-limit=never", DENY, 2, "ACAP-38"),
    Pair("allow-index: /*.gif", "allow-index: /*b unknown", DENY, 2, "ACAP-38"),
    Pair("disallow-index: /a/", "allow-index: /a/b unknown=1", DENY, 2, "ACAP-38"),
    Pair("disallow-index: /a/", "allow-index: /a/ unknown=1", DENY, 3, "ACAP-38"),
    Pair("disallow-other: /a/b", "allow-index: / unknown=1", DENY, 2, "ACAP-38"),
    Pair("allow-crawl: /", "allow-crawl: /a/ time-limit=1-days", DENY, 2, "ACAP-38", usage="crawl"),
    snippet("allow-present-snippet: /", "allow-(brief): /a/ time-limit=1-days", DENY, 2, "ACAP-38"),
    snippet("allow-present-snippet: /", "allow-(nowhere): /a/", ALLOW, 1, "ACAP-38"),
    # section-2.4.2: a prohibition with qualifiers prohibits too
    Pair("allow-index: /", "disallow-index: /a/ time-limit=1-days", DENY, 2, "ACAP-20"),
    Pair("allow-index: /", "disallow-(basics): /a/", DENY, 2, "ACAP-20"),
    snippet("allow-present-snippet: /", "disallow-(brief): /a/", DENY, 2, "ACAP-20"),
    # section-2.7.2: each constituent is a permission
    Pair("allow-(basics): /a/", "disallow-index: /", ALLOW, 1, "ACAP-24"),
    Pair("allow-(basics): /", "disallow-index: /a/", DENY, 2, "ACAP-24"),
    snippet("allow-(basics): /a/", "disallow-present: /", ALLOW, 1, "ACAP-24", "present-link"),
    # another usage
    Pair("allow-index: /", "disallow-crawl: /a/", ALLOW, 1, "ACAP-24"),
    Pair("allow-index: /", "disallow-preserve: /a/", ALLOW, 1, "ACAP-24"),
    snippet("allow-present-snippet: /", "disallow-present-oldsnippet: /a/", ALLOW, 1, "ACAP-24"),
    snippet("allow-present: /", "disallow-present-snippet: /a/", ALLOW, 1, "ACAP-24", "present"),
    # section-2.5.5: derived usages
    snippet("allow-present: /", "disallow-present-snippet: /", DENY, 2, "ACAP-29"),
    snippet("allow-present: /a/b", "disallow-present-snippet: /", DENY, 2, "ACAP-29"),
    snippet("disallow-present: /", "allow-present-snippet: /", ALLOW, 2, "ACAP-29"),
    snippet(
        "disallow-present: /A%2f", "allow-present-snippet: /a%2F", ALLOW, 2, "ACAP-29"
    )._replace(target="/a%2f"),
    snippet("disallow-present: /", "allow-present-snippet: /a/", ALLOW, 2, "ACAP-29"),
    snippet("disallow-present: /a/", "allow-present-snippet: /", DENY, 1, "ACAP-29"),
    snippet("disallow-present: /*b", "allow-present-snippet: /*.gif", DENY, 1, "ACAP-29"),
    snippet("disallow-present: /*b", "allow-present-snippet: /a/", ALLOW, 2, "ACAP-29"),
    snippet("disallow-present: /a/", "allow-present-snippet: /*.gif", DENY, 1, "ACAP-29"),
    snippet(
        "disallow-present: the-acap:resource-set:none",
        "allow-present-snippet: /a/b.gif",
        DENY,
        1,
        "ACAP-29",
    ),
    snippet(
        "allow-present: /a/ max-length=9-words", "allow-present-snippet: /", DENY, 1, "ACAP-29"
    ),
    snippet(
        "allow-present: / max-length=9-words", "allow-present-snippet: /a/", ALLOW, 2, "ACAP-29"
    ),
    snippet(
        "allow-present: / time-limit=1-days", "disallow-present-thumbnail: /a/", ALLOW, 1, "ACAP-29"
    ),
    snippet("disallow-present: /", "allow-present-thumbnail: /a/", DENY, 1, "ACAP-29"),
    snippet("allow-present: /a/b", "allow-present-snippet: /", ALLOW, 2, "ACAP-29"),
    snippet("disallow-present: /a/b", "disallow-present-snippet: /", DENY, 2, "ACAP-29"),
    snippet(
        "disallow-present: /straße/", "allow-present-snippet: /strasse/", ALLOW, 2, "ACAP-29"
    )._replace(target="/strasse/a"),
    snippet(
        "disallow-present: /strasse/", "allow-present-snippet: /straße/", ALLOW, 2, "ACAP-29"
    )._replace(target="/straße/a"),
    snippet("disallow-present: /", "allow-present-snippet: /b/", DENY, 1, "ACAP-29"),
    # section-2.5.6: other usages
    Pair("disallow-other: /", "allow-index: /", ALLOW, 2, "ACAP-28"),
    Pair("disallow-other: /a/b.gif$", "allow-index: /", ALLOW, 2, "ACAP-28"),
    Pair("disallow-other: /", "allow-index: /b/", DENY, 1, "ACAP-28"),
    Pair("disallow-other: /", "allow-index: /", DENY, 1, "ACAP-28", usage="crawl"),
    Pair("disallow-other: /", "allow-crawl: /", DENY, 1, "ACAP-28", usage="follow"),
    Pair("allow-other: /a/b", "disallow-index: /", DENY, 2, "ACAP-28"),
    Pair("allow-other: /a/", "disallow-other: /", ALLOW, 1, "ACAP-28"),
    Pair("allow-other: /", "disallow-other: /a/", DENY, 2, "ACAP-28"),
    snippet("disallow-other: /a/", "allow-present: /", ALLOW, 2, "ACAP-28"),
    snippet("disallow-other: /a/", "allow-present-snippet: /", ALLOW, 2, "ACAP-28"),
    snippet("disallow-other: /", "allow-present-link: /a/", DENY, 1, "ACAP-28"),
    snippet("allow-other: /a/", "disallow-present: /", DENY, 2, "ACAP-28"),
    # section-2.3.3: for a purpose and for none
    Pair("allow-index: /", NEWS + "disallow-index: /", DENY, 2, "ACAP-16"),
    Pair("disallow-index: /", NEWS + "allow-index: /", ALLOW, 2, "ACAP-16"),
    Pair("disallow-index: /A/", NEWS + "allow-index: a/", ALLOW, 2, "ACAP-16"),
    Pair("disallow-index: /a/", NEWS + "allow-index: /", DENY, 1, "ACAP-16"),
    Pair("allow-index: /a/", NEWS + "disallow-index: /", ALLOW, 1, "ACAP-16"),
    Pair("disallow-index: /*b", NEWS + "allow-index: /*.gif", DENY, 1, "ACAP-16"),
    Pair("allow-index: /", NEWS + "allow-index: / unknown=1", DENY, 2, "ACAP-16"),
    Pair("allow-index: / unknown=1", NEWS + "allow-index: /", ALLOW, 2, "ACAP-16"),
    Pair(PICTURES + "disallow-index: /", NEWS + "allow-index: /", DENY, 1, "ACAP-16"),
    Pair(PICTURES + "disallow-index: /", NEWS + "allow-index: /a/", ALLOW, 2, "ACAP-16"),
    Pair("disallow-index: /", SPORT + "allow-index: /a/", DENY, 1, "ACAP-16"),
    Pair("allow-index: /", SPORT + "disallow-index: /a/", ALLOW, 1, "ACAP-16"),
]


def params(pairs: list[Pair]) -> Iterator[Any]:
    for pair in pairs:
        name = f"{pair.one} | {pair.other}".replace("\n", " ")
        yield pytest.param(pair, id=name, marks=pytest.mark.requirement(pair.row))


@pytest.mark.parametrize("pair", one_in(3, params(PAIRS)))
def test_pair(pair: Pair) -> None:
    fields = [f"ACAP-{pair.one}", f"ACAP-{pair.other}"]
    for written in (fields, fields[::-1]):
        text = DEFINITIONS + "".join(f"ACAP-crawler: *\n{field}\n" for field in written)
        answer = decide(text, pair.usage, pair.target, Agent("me", purposes=("news", "pictures")))
        assert answer, text
        deciding = {text.splitlines()[field.line - 1] for field in answer.fields}
        assert answer.verdict is pair.want, text
        assert deciding == {
            field.splitlines()[-1]
            for number, field in enumerate(fields, 1)
            if number & pair.decides
        }, text
        assert {answer.usage} == {field.usage for field in answer.fields}, text
        order = [(field.verdict is ALLOW, field.line) for field in answer.fields]
        assert order == sorted(order), text  # prohibitions first, then by line


CASES = [
    # section-2.8: letters of any script are equal in both cases, escaped or not
    ("disallow-index: /É/", "/é/a", DENY),
    ("disallow-index: /é/", "/%C3%89/a", DENY),
    ("disallow-index: /%c3%a9/", "/É/a", DENY),
    ("allow-index: /Ж/", "/ж/a", ALLOW),
    ("disallow-index: /*.ÉPS$", "/a.éps", DENY),
    ("disallow-index: /e/", "/é/a", None),
    ("disallow-index: /%C9/", "/%E9/a", None),
    # narrower by the same comparison: section-2.4.5
    ("disallow-index: /é/|allow-index: /É/a", "/é/a", ALLOW),
    ("allow-index: /É/|disallow-index: /é/", "/é/a", DENY),
    ("allow-index: /é/|disallow-index: /É", "/É/a", ALLOW),
    ("allow-index: /É*|disallow-index: /é/", "/é/a", DENY),
    # if one letter may stand for two, a prohibition means both, a permission only the spelling as
    # written
    ("disallow-index: /strasse/", "/straße/a", DENY),
    ("disallow-index: /straße/", "/STRASSE/a", DENY),
    ("disallow-index: /ß", "/ẞa", DENY),
    ("allow-index: /straße/", "/straße/a", ALLOW),
    ("allow-index: /straße/", "/STRAẞE/a", ALLOW),
    ("allow-index: /strasse/", "/straße/a", DENY),
    ("allow-index: /straße/", "/strasse/a", DENY),
    ("allow-index: /|allow-index: /strasse/", "/straße/a", DENY),
    ("allow-index: /|allow-index: /strasse/", "/strasse/a", ALLOW),
    ("disallow-index: /|allow-index: /straße/", "/strasse/a", DENY),
    ("disallow-index: /straße/|allow-index: /strasse/a", "/strasse/a", ALLOW),
    ("disallow-index: /straße/|allow-index: /strasse/a", "/straße/a", DENY),
    ("disallow-index: /strasse/|allow-index: /straße/", "/straße/a", DENY),
    ("allow-index: /straße/", "/other", None),
    ("disallow-index: /i", "/İ", DENY),
    ("allow-index: /i", "/İ", DENY),
    ("allow-index: /İ", "/İ", ALLOW),
]


@pytest.mark.requirement("ACAP-2", "ACAP-23", "ACAP-24", "ACAP-25")
@pytest.mark.parametrize(("fields", "target", "want"), one_in(3, CASES))
def test_letters_of_all_scripts(fields: str, target: str, want: Verdict | None) -> None:
    for crawler in ("*", "me"):
        text = f"ACAP-crawler: {crawler}\n" + "\n".join(
            f"ACAP-{field}" for field in fields.split("|")
        )
        answer = decide(text, "index", target, Agent("me"))
        assert (answer and answer.verdict) is want, crawler


@pytest.mark.requirement("ACAP-23")
def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    rules = AcapRules(
        Agent("me"), [parse("ACAP-crawler: *\nACAP-allow-index: /straße/".encode())]
    ).for_purposes()
    for _ in range(2):
        for target, want in (("/straße/", ALLOW), ("/strasse/", DENY), ("/STRAẞE/", ALLOW)):
            answer = rules.matching(target).decide("index")
            assert answer
            assert answer.verdict is want


@pytest.mark.requirement("ACAP-22", "ACAP-23", "RFC-13")
@pytest.mark.parametrize("crawler", ["*", "me"])
@pytest.mark.parametrize(
    "spec", [b"/caf\xe9/", b"caf\xe9", b"/*\xe9/$", b"/caf%E9/", b"the-acap:resource-set:cafes"]
)
def test_octets_that_are_no_utf_8_are_those_of_the_url(spec: bytes, crawler: str) -> None:
    text = (
        b"ACAP-resource-set: cafes /tea /caf\xe9/\nACAP-crawler: %s\nACAP-allow-index: /\n"
        b"ACAP-disallow-index: %s\n"
    )
    rules = AcapRules(Agent("me"), [parse(text % (crawler.encode(), spec))]).for_purposes()
    answers = [
        rules.matching(target).decide("index")
        for target in ("/caf%E9/", "/CAF%e9/", "/caf%C3%A9/", "/caf%E8/")
    ]
    assert [answer and answer.verdict for answer in answers] == [DENY, DENY, ALLOW, ALLOW]


@pytest.mark.requirement("RFC-3", "RFC-13")
def test_robots_txt_tells_cases_apart() -> None:
    rules = robots.parse("User-agent: *\nDisallow: /É/".encode()).for_agent("me")
    assert [
        rules.decide(target) is not None for target in ("/É/", "/%c3%89/", "/é/", "/%C3%A9/")
    ] == [True, True, False, False]


TRIPLES = [
    (("allow-index: /", "disallow-index: /a/", "allow-index: /a/b"), ALLOW, "ACAP-24"),
    (("disallow-index: /", "allow-index: /a/", "disallow-index: /a/b"), DENY, "ACAP-24"),
    (("allow-index: /*b", "disallow-index: /*a", "allow-index: /*a/"), ALLOW, "ACAP-24"),
    (("allow-index: /*b", "allow-index: /*a", "disallow-index: /*.gif"), DENY, "ACAP-25"),
    (("allow-index: /*b", "disallow-index: /*a", NEWS + "allow-index: /*a"), ALLOW, "ACAP-16"),
    (("allow-index: /*b", "allow-index: /*a", NEWS + "disallow-index: /*a"), DENY, "ACAP-16"),
    (("allow-index: /a/", "allow-index: /a/ unknown=1", NEWS + "allow-crawl: /x"), DENY, "ACAP-38"),
]


@pytest.mark.requirement(*sorted({row for *_, row in TRIPLES}))
@pytest.mark.parametrize(("fields", "want", "row"), TRIPLES)
def test_three_fields(fields: tuple[str, str, str], want: Verdict, row: str) -> None:
    """The order of the fields does not matter."""
    for mixed in permutations(fields):
        text = "".join(f"ACAP-crawler: *\nACAP-{field}\n" for field in mixed)
        answer = decide(text, "index", "/a/b.gif", Agent("me", purposes=("news",)))
        assert answer
        assert answer.verdict is want


# All match /a/b.gif, and no two can be compared.
UNDETERMINED = (
    "/*a/*b",
    "/*a/*g",
    "/*b.*g",
    "/*b.*f",
)


@pytest.mark.requirement("ACAP-25")
@pytest.mark.parametrize("refused", UNDETERMINED)
def test_any_of_four_that_tell_nothing_of_each_other_refuses(refused: str) -> None:
    text = "ACAP-crawler: *\n" + "".join(
        f"ACAP-{'disallow' if pattern == refused else 'allow'}-index: {pattern}\n"
        for pattern in UNDETERMINED
    )
    answer = decide(text, "index", "/a/b.gif", Agent("me"))
    assert answer
    assert (answer.verdict, [field.pattern for field in answer.fields]) == (DENY, [refused])
    assert resolution.narrowest((*UNDETERMINED, "/", "/*")) == set(UNDETERMINED)
    assert resolution.narrowest(()) == set()


@pytest.mark.requirement("WHY-1")
@pytest.mark.parametrize("field", ["allow-index: /a/", "disallow-index: /a/", "disallow-index: /"])
def test_a_field_that_stands_twice_is_named_once(field: str) -> None:
    answer = decide(f"ACAP-crawler: *\nACAP-{field}\nACAP-{field}\n", "index", "/a/b", Agent("me"))
    assert answer
    assert [field.line for field in answer.fields] == [2]


@pytest.mark.requirement("ACAP-24", "ACAP-45")
def test_of_what_any_crawler_is_told_beside_a_more_general_permission_the_narrowest_decides() -> (
    None
):
    text = (
        "ACAP-crawler: me\nACAP-allow-other: /\nACAP-crawler: *\nACAP-{}-index: /\n"
        "ACAP-{}-index: /a/\n"
    )
    for one, other, want in (("disallow", "allow", ALLOW), ("allow", "disallow", DENY)):
        answer = decide(text.format(one, other), "index", "/a/b", Agent("me"))
        assert answer
        assert answer.verdict is want


@pytest.mark.requirement("SEC-1")
def test_what_is_kept_of_targets_is_bounded() -> None:
    fields = "".join(
        f"ACAP-disallow-index: /{number}/\n" for number in range(resolution.MAX_MATCHED + 5)
    )
    view = AcapRules(Agent("me"), [parse(f"ACAP-crawler: *\n{fields}".encode())]).for_purposes()
    for number in range(resolution.MAX_MATCHED + 5):
        answer = view.matching(f"/{number}/").decide("index")
        assert answer
        assert [field.pattern for field in answer.fields] == [f"/{number}/"]
    assert len(view._matched) <= resolution.MAX_MATCHED


WORDS, CHARS, DAYS = "max-length=9-words", "max-length=9-chars", "time-limit=9-days"
QUALIFIED = [
    ("snippet: /a/", f"snippet: / {WORDS}", FieldQualifiers()),
    (f"snippet: /a/ {DAYS}", f"snippet: / {WORDS}", FieldQualifiers(days=9)),
    (f"snippet: /*b {DAYS}", f"snippet: /*.gif {WORDS}", FieldQualifiers(days=9, max_words=9)),
    (f"snippet: /*b {DAYS}", "snippet: /*.gif", FieldQualifiers(days=9)),
    (f"snippet: /a/ {CHARS}", f"snippet: /A/ {WORDS}", FieldQualifiers(max_chars=9, max_words=9)),
    (f"snippet: /a/ {WORDS}", "snippet: /a/ max-length=5-words", FieldQualifiers(max_words=5)),
    (f"snippet: /a/ {WORDS} {DAYS}", f"snippet: / {CHARS}", FieldQualifiers(days=9, max_words=9)),
]


@pytest.mark.requirement("ACAP-47", "ACAP-48")
@pytest.mark.parametrize(("one", "other", "want"), QUALIFIED)
def test_qualifiers_of_the_narrowest_hold_and_no_others(
    one: str, other: str, want: FieldQualifiers
) -> None:
    for first, second in ((one, other), (other, one)):
        text = (
            f"ACAP-crawler: *\nACAP-allow-present-{first}\nACAP-allow-present-{second}\n"
            "ACAP-allow-present: / time-limit=1-days"
        )
        answer = decide(text, "present-snippet", "/a/b.gif", Agent("me"))
        assert answer
        assert (answer.verdict, answer.qualifiers) == (ALLOW, want)


# Any fields, against a plain implementation of the rows

USAGES = ("crawl", "index", "present", "present-snippet", "present-link", "other")
PURPOSES = ("news", "pictures")


class Said(NamedTuple):
    """One field of a file."""

    crawler: str
    purposes: tuple[str, ...]
    usage: str
    allows: bool
    pattern: str
    qualifier: str

    @property
    def grants(self) -> bool:
        """Return True if the permission can be honoured (ACAP-31, ACAP-38)."""
        return self.allows and (
            not self.qualifier
            or (self.qualifier != "unknown=1" and self.usage not in ("crawl", "other"))
        )


def write_file(site: Sequence[Said]) -> bytes:
    """Write the fields. Fields with equal crawlers and purposes share a record and sub-record."""
    lines: list[str] = []
    crawler, purposes = "", tuple[str, ...]()
    for said in site:
        if said.crawler != crawler or (purposes and not said.purposes):
            lines.append(f"ACAP-crawler: {said.crawler}")
            crawler, purposes = said.crawler, ()
        if said.purposes != purposes:
            lines += (f"ACAP-usage-purpose: {purpose}" for purpose in said.purposes)
            purposes = said.purposes
        qualifier = said.qualifier if said.allows else ""
        lines.append(
            f"ACAP-{'allow' if said.allows else 'disallow'}-{said.usage}: {said.pattern} "
            f"{qualifier}"
        )
    return "\n".join(lines).encode()


class Heard(NamedTuple):
    """A field that binds the agent and matches the resource."""

    said: Said
    purposes: frozenset[str]  # of the agent

    @property
    def units(self) -> list[str]:
        return units(self.said.pattern)


class Outcome(NamedTuple):
    verdict: Verdict
    days: int | None
    deciding: list[Heard]


STAR, STOP, END = "any characters", "the path ends", "the pattern ends"


def units(pattern: str) -> list[str]:
    pattern = pattern.lower()
    if pattern[0] not in "/*":
        pattern = "/" + pattern
    found = [STAR if char == "*" else char for char in pattern]
    if found[-1] == "$":
        found[-1] = STOP
    return found


def matches(pattern: str, target: str) -> bool:
    known = {STAR: ".*", STOP: r"\Z"}
    return (
        re.match(
            "".join(known.get(unit) or re.escape(unit) for unit in units(pattern)), target.lower()
        )
        is not None
    )


def is_narrower(one: list[str], other: list[str]) -> bool | None:
    """Return whether a pattern is narrower, or None if that cannot be determined."""
    for place in count():
        mine = one[place] if place < len(one) else END
        its = other[place] if place < len(other) else END
        if mine != its:
            break
        if mine == END:
            return None
    for wide in (END, STOP, STAR):
        if wide in (mine, its):
            return its == wide
    return None


def together(fields: list[Heard]) -> Outcome:
    """Combine fields on one usage: ACAP-16, ACAP-24, ACAP-25, ACAP-38, ACAP-47."""
    left = [
        field
        for field in fields
        if not any(is_narrower(rival.units, field.units) for rival in fields)
    ]
    left = [
        field
        for field in left
        if field.purposes
        or not any(rival.purposes and rival.units == field.units for rival in left)
    ]
    refusing = [field for field in left if not field.said.grants]
    days = [
        int(field.said.qualifier[11:-5]) for field in left if field.said.qualifier.endswith("-days")
    ]
    return (
        Outcome(DENY, None, refusing) if refusing else Outcome(ALLOW, min(days, default=None), left)
    )


def general(usage: str) -> list[str]:
    """Return the usage and the more general ones that apply to it (ACAP-28, ACAP-29)."""
    return list(
        dict.fromkeys([usage, *(["present"] if usage.startswith("present-") else []), "other"])
    )


def of_pool(fields: list[Heard], usage: str) -> Outcome | None:
    speaking = {
        level: [field for field in fields if field.said.usage == level] for level in general(usage)
    }
    stated = [level for level in general(usage) if speaking[level]]
    if not stated:
        return None
    outcome = together(speaking[stated[0]])
    if stated[:2] == [usage, "present"] and outcome.verdict is ALLOW:  # ACAP-29
        for refusing in (
            field for field in together(speaking["present"]).deciding if not field.said.grants
        ):
            for own in outcome.deciding:
                if own.units != refusing.units and not is_narrower(own.units, refusing.units):
                    return Outcome(DENY, None, [refusing])
    return outcome


def expect(
    site: Sequence[Said], usage: str, target: str, purposes: frozenset[str]
) -> tuple[Verdict, int | None] | None:
    heard = [
        (said.crawler, Heard(said, purposes & set(said.purposes)))
        for said in site
        if matches(said.pattern, target) and (not said.purposes or purposes & set(said.purposes))
    ]
    named = [field for crawler, field in heard if crawler == "me"]
    anybody = [field for crawler, field in heard if crawler == "*"]
    mine = of_pool(named, usage)
    if mine is None or mine.verdict is DENY:
        outcome = mine or of_pool(anybody, usage)
        return outcome and outcome[:2]
    order = general(usage)

    def is_lifted(field: Heard) -> bool:  # ACAP-11, ACAP-45, ACAP-46
        if field.said.usage not in order:
            return False
        over = order[: order.index(field.said.usage) + 1]
        lifting = [its.purposes for its in named if its.said.grants and its.said.usage in over]
        return bool(lifting) and field.purposes <= frozenset[str]().union(*lifting)

    theirs = of_pool([field for field in anybody if not is_lifted(field)], usage)
    if theirs is None or theirs.verdict is DENY:
        return (theirs or mine)[:2]
    days = [days for days in (mine.days, theirs.days) if days is not None]
    return ALLOW, min(days, default=None)


# of /ab
PATTERNS = [
    "/",
    "*",
    "/a",
    "/A",
    "a",
    "/ab",
    "/*a",
    "/*b",
    "/a*",
    "/*a*",
    "/ab$",
    "/*$",
    "/**",
    "/*b$",
    "*b",
]
RELATED = [("index",), ("index", "other"), ("present-snippet", "present"), USAGES]
patterns = (
    st.sampled_from(PATTERNS)
    | st.sampled_from(PATTERNS)
    | st.text("/ab*$.", min_size=1, max_size=4)
)
targets = (
    st.just("/ab")
    | st.sampled_from(["/a", "/a/b", "/b.a"])
    | st.text("/abAB$.", max_size=5).map("/".__add__)
)
purposes = st.just(frozenset(PURPOSES)) | st.frozensets(st.sampled_from(PURPOSES))


@st.composite
def sites(draw: st.DrawFn, *, prohibitions: int = 0) -> list[Said]:
    """Draw fields, of which the first `prohibitions` are prohibitions.

    Patterns and usages are few, so that fields meet.
    """
    said = st.builds(
        Said,
        st.sampled_from(["me", "*", "me", "*", "else"] if draw(st.booleans()) else ["*"]),
        st.sampled_from(
            [(), ("news",), ("pictures",), PURPOSES, ("sport",)] if draw(st.booleans()) else [()]
        ),
        st.sampled_from(draw(st.sampled_from(RELATED))),
        st.booleans(),
        st.sampled_from(draw(st.lists(patterns, min_size=2, max_size=4))),
        st.sampled_from(["", "", "time-limit=1-days", "time-limit=2-days", "unknown=1"]),
    )
    found = draw(st.lists(said, min_size=4, max_size=8))
    return [field._replace(allows=False) for field in found[:prohibitions]] + found[prohibitions:]


def answers(
    site: Sequence[Said], target: str, purposes: frozenset[str]
) -> dict[str, tuple[Verdict, FieldQualifiers] | None]:
    return answers_of(
        AcapRules(Agent("me", purposes=tuple(purposes)), [parse(write_file(site))]), target
    )


def answers_of(rules: AcapRules, target: str) -> dict[str, tuple[Verdict, FieldQualifiers] | None]:
    matching = rules.for_purposes().matching(target)
    found = {usage: matching.decide(usage) for usage in USAGES}
    return {
        usage: answer
        and (answer.verdict, answer.qualifiers if answer.verdict is ALLOW else FieldQualifiers())
        for usage, answer in found.items()
    }


@pytest.mark.requirement(
    *(f"ACAP-{number}" for number in (11, 15, 16, 23, 24, 25, 26, 28, 29, 38, 45, 46, 47, 48, 49)),
)
@settings(max_examples=examples(1000))
@given(sites(), st.lists(targets, min_size=1, max_size=3), purposes)
def test_rules_are_the_rows(site: list[Said], targets: list[str], purposes: frozenset[str]) -> None:
    """Earlier questions do not change an answer."""
    rules = AcapRules(Agent("me", purposes=tuple(purposes)), [parse(write_file(site))])
    for target in targets:
        want = {usage: expect(site, usage, target, purposes) for usage in USAGES}
        assert answers_of(rules, target) == {
            usage: outcome and (outcome[0], FieldQualifiers(days=outcome[1]))
            for usage, outcome in want.items()
        }


@pytest.mark.requirement("ACAP-11", "ACAP-24", "ACAP-29", "ACAP-45", "ACAP-46")
@settings(max_examples=examples(1000))
@example(
    [
        Said("*", (), "present", allows=False, pattern="/*a", qualifier=""),
        Said("*", (), "present", allows=True, pattern="/*b", qualifier="unknown=1"),
        Said("*", (), "present-snippet", allows=True, pattern="/*ab", qualifier=""),
    ],
    "/ab",
    frozenset(),
    0,
)
@given(sites(prohibitions=1), targets, purposes, st.integers(0, 8))
def test_a_prohibition_more_refuses_or_changes_nothing(
    site: list[Said], target: str, purposes: frozenset[str], place: int
) -> None:
    """In any record and for any purpose: a refusal never turns into a permission."""
    prohibition, *before = site
    was = answers(before, target, purposes)
    for usage, answer in answers(
        [*before[:place], prohibition, *before[place:]], target, purposes
    ).items():
        assert answer == was[usage] or (answer and answer[0] is DENY)


@pytest.mark.requirement("ACAP-3", "ACAP-49")
@given(
    sites().flatmap(lambda site: st.tuples(st.just(site), st.permutations(site))), targets, purposes
)
def test_order_is_nothing(
    orders: tuple[list[Said], list[Said]], target: str, purposes: frozenset[str]
) -> None:
    """The order of records, sub-records and fields does not matter.

    It does not matter either which fields share a record.
    """
    site, mixed = orders
    assert answers(mixed, target, purposes) == answers(site, target, purposes)


@pytest.mark.requirement("ACAP-12", "ACAP-27")
@pytest.mark.parametrize("reference", ["/r.txt", "http://other.example/r.txt"])
def test_a_field_replaces_no_line_of_another_file(reference: str) -> None:
    """No line of one file lifts a refusal of another."""
    record = f"ACAP-crawler: *\nACAP-permissions-reference: {reference}\n"
    url = urljoin("https://example.com/", reference)
    conventional, allow, disallow = (
        "User-agent: *\nDisallow: /x/\n",
        "ACAP-allow-crawl: /x/\n",
        "ACAP-disallow-crawl: /x/\n",
    )

    def crawl(robots: str, referred: str) -> Verdict:
        files = {"https://example.com/robots.txt": robots.encode(), url: referred.encode()}
        fetched = {file: Fetched(status=200, body=body) for file, body in files.items()}
        return (
            Site("https://example.com", fetched)
            .access(Agent("examplebot"), "https://example.com/x/1")
            .verdict
        )

    assert crawl(f"{conventional}{record}", allow) is Verdict.DENY
    assert crawl(f"{record}{allow}", conventional) is Verdict.DENY
    assert crawl(f"{conventional}{record}{allow}", "") is Verdict.ALLOW
    assert crawl(record, f"{allow}{conventional}") is Verdict.ALLOW
    assert crawl(f"{record}{allow}", f"{allow}{conventional}") is Verdict.ALLOW  # each its own
    assert crawl(f"{conventional}{record}{allow}", f"{allow}{conventional}") is Verdict.ALLOW
    assert crawl(f"{conventional}{record}{allow}", disallow) is Verdict.DENY


class Sliced(str):
    """A pattern that counts how often it is sliced."""

    __slots__ = ()
    times = 0

    def __getitem__(self, key: Any) -> str:
        Sliced.times += 1
        return super().__getitem__(key)


@pytest.mark.requirement("ACAP-24", "ACAP-29", "SEC-1")
@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        ("a", "b", "ab"),
        ("a", "*", "a"),
        ("*", "$", "*"),
        ("$", "", "$"),
        ("*a", "*b*", ("*a", "*b*")),
    ],
)
def test_what_patterns_begin_with_in_common_costs_little(
    one: str, other: str, want: Sequence[str]
) -> None:
    """Thousands of pairs are compared for one usage, and each pattern may have 32 KB."""
    common, Sliced.times = "/" + 10_000 * "*", 0
    found = resolution.narrowest([Sliced(common + one), Sliced(common + other)])
    assert found == {common + end for end in want}
    assert Sliced.times < 50


@pytest.mark.requirement("ACAP-23", "ACAP-29", "SEC-1")
def test_a_pattern_is_folded_once_for_all_of_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of fields may share a pattern of 32 KB."""
    folded: list[str] = []

    def count_folding(normal: str) -> tuple[str, str]:
        folded.append(normal)
        return foldings(normal)

    for module in (resolution, checks):
        monkeypatch.setattr(module, "foldings", count_folding)
    limits = "".join(
        f"ACAP-qualified-usage: q{days} present-snippet time-limit={days}-days\n"
        for days in range(20)
    )
    refusals = "".join(
        f"ACAP-qualified-usage: r{days} present time-limit=x{days}\n" for days in range(20)
    )
    listed = " ".join(f"({name}{days})" for name in "qr" for days in range(20))
    fields = "ACAP-allow-(c): the-acap:resource-set:s\n" * 5
    definitions = (
        f"{limits}{refusals}ACAP-composite-usage: c {listed}\nACAP-resource-set: s /%C3%89 /a /É\n"
    )
    text = f"{definitions}ACAP-crawler: *\n{fields}".encode()
    acap = parse(text)
    answer = (
        AcapRules(Agent("me"), [acap])
        .for_purposes()
        .matching("/%C3%A9/x")
        .decide("present-snippet")
    )
    assert answer is not None
    assert answer.verdict is ALLOW
    # Once when it is compiled. When a refusal of `present` is compared with permissions by the same
    # pattern, once for each of the two.
    assert Counter(folded) == {"/%C3%89": 3, "/a": 1, "/%C3%A9/x": 1}
    folded.clear()
    checks.check(acap, text, Remarks("https://example.com/robots.txt"))
    assert Counter(folded) == {"/%C3%89": 1, "/a": 1}
