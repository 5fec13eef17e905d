"""The crawlers that a record addresses, and the precedence of records by name.

See section-2.2 and section-2.3.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.formats.acap import AcapRules, UsageAnswer, parse, records_for
from tests.selection import one_in

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY


def decide(
    text: str, agent: Agent, usage: str = "index", target: str = "/a/b"
) -> UsageAnswer | None:
    return AcapRules(agent, [parse(text.encode())]).for_purposes().matching(target).decide(usage)


BROWSER = "Mozilla/5.0 (compatible; ExampleBot/2.1; +https://example.com/bot)"
ADDRESSED = [
    # the whole name, in any case
    ("ExampleBot", "ExampleBot", "", True),
    ("examplebot", "ExampleBot", "", True),
    ("EXAMPLEBOT", "examplebot", "", True),
    ("ExampleBot", "ExampleBot", BROWSER, True),
    ("otherbot", "ExampleBot", BROWSER, False),
    # a part of it that ends at the end of a token
    ("Example", "ExampleBot", "", False),
    ("Bot", "ExampleBot", "", False),
    ("Bot", "Example-Bot", "", False),
    ("Example", "Example-Bot", "", False),
    ("Example", "Example_Bot", "", False),
    ("Example", "Example2", "", False),
    ("Example.Bot", "ExampleXBot", "", False),
    # more than it
    ("ExampleBot-News", "ExampleBot", "", False),
    ("ExampleBot News", "ExampleBot", BROWSER, False),
    # the User-Agent, or words of it
    ("ExampleBot", "mybot", BROWSER, True),
    ("examplebot/2.1", "mybot", BROWSER, True),
    ("ExampleBot/2", "mybot", BROWSER, True),
    ("ExampleBot/", "mybot", BROWSER, True),
    ("ExampleBot/3.0", "mybot", BROWSER, False),
    ("compatible; ExampleBot", "mybot", BROWSER, True),
    ("Mozilla", "mybot", BROWSER, True),
    ("bot", "mybot", BROWSER, True),
    (BROWSER, "mybot", BROWSER, True),
    ("mybot", "mybot", BROWSER, True),
    # white space, any amount
    ("compatible;  ExampleBot", "mybot", BROWSER, True),
    ("Mozilla/5.0\t(compatible; \t ExampleBot*", "mybot", BROWSER, True),
    ("Two Words", "mybot", "Two  Words/1", True),
    ("TwoWords", "mybot", "Two  Words/1", False),
    # words, at any place
    ("bot", "xbot", "", False),
    ("bot", "other", "bot xbot", True),
    ("bot", "other", "xbot bot xbot", True),
    ("bot", "other", "xbot botx", False),
    # any
    ("*", "ExampleBot", "", True),
    ("ExampleBot*", "ExampleBot", "", True),
    ("Example*", "ExampleBot", "", True),
    ("Bot*", "ExampleBot", "", False),
    ("Ex*Bot", "ExampleBot", "", False),
]


@pytest.mark.requirement("ACAP-2", "ACAP-10")
@pytest.mark.parametrize(("crawler", "token", "user_agent", "want"), one_in(3, ADDRESSED))
def test_whom_a_name_addresses(crawler: str, token: str, user_agent: str, want: bool) -> None:
    answer = decide(
        f"ACAP-crawler: {crawler}\nACAP-disallow-index: /", Agent(token, user_agent=user_agent)
    )
    assert (answer is not None) is want


def steps(work: Callable[[], object]) -> int:
    """Return the number of calls of functions, including those of the interpreter."""
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


PARTS_OF_IT = [
    BROWSER[start:end] for start in range(len(BROWSER)) for end in range(start + 1, start + 12)
]
HOSTILE_NAMES = {
    "parts of it": [part.strip() for part in PARTS_OF_IT if part.strip() and "#" not in part],
    "parts that go on": [f"{part.strip()}*" for part in PARTS_OF_IT if part.strip()],
    "others": [f"examplebot{number}" for number in range(700)],
}


@pytest.mark.requirement("ACAP-10", "SEC-1")
@pytest.mark.parametrize("names", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES)
@pytest.mark.parametrize("between", ["", "ACAP-allow-crawl: /\n"], ids=["one record", "records"])
def test_names_cost_some_steps_each(names: list[str], between: str) -> None:
    """The steps depend on neither form nor number of names: no pattern is compiled for one."""
    agent = Agent("mybot", user_agent=BROWSER)

    def steps_for(number: int) -> int:
        lines = (f"ACAP-crawler: {names[place % len(names)]}\n{between}" for place in range(number))
        read = parse("".join(lines).encode() + b"ACAP-allow-crawl: /\n")
        return steps(lambda: records_for(agent, [read]))

    one, two = steps_for(500), steps_for(1_000)
    assert two <= 2.2 * one
    assert two <= 1_000 * 30


@pytest.mark.requirement("ACAP-10", "ACAP-12", "SEC-1")
def test_references_cost_some_steps_each() -> None:
    agent = Agent("examplebot")

    def steps_for(number: int) -> int:
        text = "".join(
            f"ACAP-crawler: examplebot\nACAP-permissions-reference: /{place}.txt\n"
            for place in range(number)
        )
        site = Site.from_files("https://example.com", {"/robots.txt": text.encode()})
        assert site.sitemaps == ()  # the first question reads the file
        return steps(lambda: site.references(agent))

    one, two = steps_for(500), steps_for(1_000)
    assert two <= 2.2 * one
    assert two <= 1_000 * 100


LISTS = [
    (["otherbot", "me"], [], DENY),
    (["me", "otherbot"], [], DENY),
    (["otherbot", "thirdbot"], [], None),
    (["*", "otherbot"], ["acap.crawlers"], DENY),
    (["otherbot", "*"], ["acap.crawlers"], DENY),
    (["me", "*"], ["acap.crawlers"], DENY),
]


@pytest.mark.requirement("ACAP-3", "ACAP-10")
@pytest.mark.parametrize(("crawlers", "findings", "want"), LISTS)
def test_several_crawlers(crawlers: list[str], findings: list[str], want: Verdict | None) -> None:
    file = parse(
        (
            "".join(f"ACAP-crawler: {crawler}\n" for crawler in crawlers) + "ACAP-disallow-index: /"
        ).encode()
    )
    answer = AcapRules(Agent("me"), [file]).for_purposes().matching("/").decide("index")
    assert (answer and answer.verdict, [finding.rule for finding in file.findings]) == (
        want,
        findings,
    )


@pytest.mark.requirement("ACAP-10", "ACAP-11")
@pytest.mark.parametrize("crawlers", ["*\nACAP-crawler: me", "me\nACAP-crawler: *"])
def test_a_name_beside_any_does_not_make_the_record_a_named_one(crawlers: str) -> None:
    named = "ACAP-crawler: me\nACAP-allow-index: /\n"
    answer = decide(f"{named}ACAP-crawler: {crawlers}\nACAP-disallow-index: /a/", Agent("me"))
    assert answer
    assert answer.verdict is ALLOW


MATCHING = [
    ("news", "news", True),
    ("NEWS", "news", True),
    ("news", "News", True),
    ("news", "newsletter", False),
    ("news", "old-news", False),
    ("newsletter", "news", False),
    ("news*", "newsletter", True),
    ("news*", "news", True),
    ("*news", "old-news", True),
    ("*news", "newsletter", False),
    ("n*s", "news", True),
    ("n*s", "newsy", False),
    ("*e*e*", "news-letter", True),
    ("*e*e*", "news", False),
    ("ne*ews", "news", False),
    ("*", "news", True),
    ("news$", "news", True),
    ("news$", "newsletter", False),
    ("n*$", "news", True),
    ("news.search", "news-search", False),
    ("http://news.search.*/*", "http://news.search.example/world", True),
    ("http://news.search.*/*", "HTTP://News.Search.example/", True),
    ("http://news.search.*/*", "http://news.search.example", False),
    ("http://news.search.*/", "http://news.search.example/world", False),
]


@pytest.mark.requirement("ACAP-2", "ACAP-15")
@pytest.mark.parametrize(("pattern", "purpose", "want"), one_in(3, MATCHING))
def test_which_purposes_a_pattern_matches(pattern: str, purpose: str, want: bool) -> None:
    text = f"ACAP-crawler: *\nACAP-usage-purpose: {pattern}\nACAP-disallow-index: /"
    assert (decide(text, Agent("me", purposes=(purpose,))) is not None) is want
    assert (decide(text, Agent("me", purposes=("other", purpose))) is not None) is want
    assert decide(text, Agent("me")) is None


@pytest.mark.requirement("ACAP-4", "ACAP-15")
def test_a_sub_record_is_for_each_of_its_purposes() -> None:
    text = (
        "ACAP-crawler: *\nACAP-usage-purpose: news\nACAP-usage-purpose: pictures\n"
        "ACAP-disallow-index: /"
    )
    assert [
        decide(text, Agent("me", purposes=(purpose,))) is not None
        for purpose in ("news", "pictures", "x")
    ] == [1, 1, 0]


NEWS, PICTURES = "usage-purpose: news\nACAP-", "usage-purpose: pictures\nACAP-"
BOTH = "usage-purpose: news\nACAP-usage-purpose: pictures\nACAP-"
NAMED = [
    # the record that names the crawler | those for any | of a snippet of /a/b: verdict | where it
    # stands section-2.2: for the same usage and resource, however narrow the patterns are
    ("allow-present-snippet: /", "disallow-present-snippet: /a/b", ALLOW, "named", "ACAP-11"),
    ("disallow-present-snippet: /", "allow-present-snippet: /a/b", DENY, "named", "ACAP-11"),
    ("disallow-present-snippet: /a/b$", "allow-present-snippet: /", DENY, "named", "ACAP-11"),
    ("allow-present-snippet: /*.gif", "disallow-present-snippet: /a", DENY, "any", "ACAP-11"),
    ("allow-present-snippet: /c", "disallow-present-snippet: /a", DENY, "any", "ACAP-11"),
    ("disallow-present-snippet: /c", "disallow-present-snippet: /a", DENY, "any", "ACAP-11"),
    ("disallow-present-snippet: /a/c", "disallow-present-snippet: /", DENY, "any", "ACAP-11"),
    ("allow-crawl: /", "disallow-present-snippet: /", DENY, "any", "ACAP-11"),
    ("disallow-index: /a/b", "disallow-present-snippet: /", DENY, "any", "ACAP-11"),
    ("allow-crawl: /", "allow-present-snippet: /", ALLOW, "any", "ACAP-11"),
    ("allow-present-snippet:", "disallow-present-snippet: /", DENY, "any", "ACAP-22"),
    ("allow-present-snippet: / unknown=1", "allow-present-snippet: /", DENY, "named", "ACAP-38"),
    ("allow-present-snippet: /", "allow-present-snippet: / unknown=1", ALLOW, "named", "ACAP-38"),
    (
        "allow-present-snippet: /",
        "disallow-present-snippet: the-acap:resource-set:none",
        ALLOW,
        "named",
        "ACAP-11",
    ),
    # a refusal in the named record is never lifted
    ("disallow-present: /", "allow-present-snippet: /a/b", DENY, "named", "ACAP-45"),
    ("disallow-other: /", "allow-present-snippet: /a/b", DENY, "named", "ACAP-45"),
    ("disallow-other: /", "allow-present: /a/b", DENY, "named", "ACAP-45"),
    ("allow-present: / unknown=1", "allow-present-snippet: /a/b", DENY, "named", "ACAP-45"),
    # a permission there lifts prohibitions of its usage type and of more general ones
    ("allow-present-snippet: /", "disallow-present: /a/b", ALLOW, "named", "ACAP-45"),
    ("allow-present-snippet: /", "disallow-other: /a/b", ALLOW, "named", "ACAP-45"),
    ("allow-present: /", "disallow-present: /a/b", ALLOW, "named", "ACAP-45"),
    ("allow-present: /", "disallow-other: /a/b", ALLOW, "named", "ACAP-45"),
    ("allow-other: /", "disallow-other: /a/b", ALLOW, "named", "ACAP-45"),
    # but not prohibitions of a more precise usage
    ("allow-present: /a/b", "disallow-present-snippet: /", DENY, "any", "ACAP-45"),
    ("allow-other: /a/b", "disallow-present-snippet: /", DENY, "any", "ACAP-45"),
    ("allow-other: /a/b", "disallow-present: /", DENY, "any", "ACAP-45"),
    ("allow-present: /a/b", "allow-present-snippet: / unknown=1", DENY, "any", "ACAP-45"),
    ("allow-present: /a/b", "disallow-present-thumbnail: /", ALLOW, "named", "ACAP-45"),
    ("allow-present: /", "allow-present-snippet: /", ALLOW, "both", "ACAP-45"),
    ("allow-other: /", "allow-present: /", ALLOW, "both", "ACAP-45"),
    # for a purpose: lifts those for the same purpose and for none
    (
        f"{NEWS}allow-present-snippet: /",
        f"{NEWS}disallow-present-snippet: /a/b",
        ALLOW,
        "named",
        "ACAP-46",
    ),
    (
        f"{NEWS}allow-present-snippet: /",
        "disallow-present-snippet: /a/b",
        ALLOW,
        "named",
        "ACAP-46",
    ),
    (f"{NEWS}allow-present-snippet: /", f"{NEWS}disallow-other: /a/b", ALLOW, "named", "ACAP-46"),
    (
        f"{NEWS}allow-present-snippet: /",
        f"{PICTURES}disallow-present-snippet: /",
        DENY,
        "any",
        "ACAP-46",
    ),
    (
        f"{NEWS}allow-present-snippet: /",
        f"{BOTH}disallow-present-snippet: /",
        DENY,
        "any",
        "ACAP-46",
    ),
    (
        f"{BOTH}allow-present-snippet: /",
        f"{PICTURES}disallow-present-snippet: /",
        ALLOW,
        "named",
        "ACAP-46",
    ),
    (
        f"{NEWS}disallow-present-snippet: /",
        f"{PICTURES}allow-present-snippet: /",
        DENY,
        "named",
        "ACAP-46",
    ),
    (f"{NEWS}disallow-present-snippet: /", "allow-present-snippet: /", DENY, "named", "ACAP-46"),
    # two purposes: each lifts those for its own
    (
        f"{NEWS}allow-present-snippet: /\nACAP-{PICTURES}allow-present-snippet: /",
        f"{NEWS}disallow-present-snippet: /",
        ALLOW,
        "named",
        "ACAP-46",
    ),
    # for none: lifts those for none only
    ("allow-present-snippet: /", "disallow-present-snippet: /a/b", ALLOW, "named", "ACAP-46"),
    ("allow-present-snippet: /a/b", f"{NEWS}disallow-present-snippet: /", DENY, "any", "ACAP-46"),
    ("allow-present-snippet: /a/b", f"{NEWS}disallow-present: /", DENY, "any", "ACAP-46"),
    ("allow-present-snippet: /a/b", f"{NEWS}disallow-other: /", DENY, "any", "ACAP-46"),
    ("allow-present-snippet: /", f"{NEWS}allow-present-snippet: /", ALLOW, "both", "ACAP-46"),
    ("disallow-present-snippet: /", f"{NEWS}allow-present-snippet: /", DENY, "named", "ACAP-46"),
    # general fields do not weaken the fields for the purpose
    (
        f"allow-present-snippet: /a/\nACAP-{NEWS}allow-present-snippet: /",
        f"{NEWS}disallow-present-snippet: /",
        ALLOW,
        "named",
        "ACAP-46",
    ),
    (
        f"allow-present: /\nACAP-{NEWS}allow-present-snippet: /",
        f"{NEWS}disallow-present: /",
        ALLOW,
        "named",
        "ACAP-46",
    ),
    # a prohibition that does not decide among the named fields lifts nothing
    (
        f"allow-present-snippet: /a/\nACAP-{NEWS}disallow-present-snippet: /",
        f"{NEWS}disallow-present-snippet: /",
        DENY,
        "any",
        "ACAP-46",
    ),
    (
        "allow-present: /\nACAP-disallow-other: /",
        "disallow-present-snippet: /",
        DENY,
        "any",
        "ACAP-45",
    ),
]


@pytest.mark.parametrize(
    ("named", "anybody", "want", "where"),
    one_in(3, [pytest.param(*case, marks=pytest.mark.requirement(row)) for *case, row in NAMED]),
)
def test_named_over_any(named: str, anybody: str, want: Verdict, where: str) -> None:
    records = [f"ACAP-crawler: me\nACAP-{named}\n", f"ACAP-crawler: *\nACAP-{anybody}\n"]
    for named_first in (True, False):
        text = "".join(records if named_first else reversed(records))
        answer = decide(text, Agent("me", purposes=("news", "pictures")), "present-snippet")
        assert answer, text
        last = text.splitlines().index(f"ACAP-crawler: {'*' if named_first else 'me'}")
        found = {
            "named" if (field.line <= last) is named_first else "any" for field in answer.fields
        }
        assert (answer.verdict, found) == (
            want,
            {"named", "any"} if where == "both" else {where},
        ), text


@pytest.mark.requirement("ACAP-11", "ACAP-47")
@pytest.mark.parametrize(
    ("named", "anybody", "days"),
    [
        ("allow-index: /", "allow-index: /a/b time-limit=1-days", None),
        ("allow-index: / time-limit=9-days", "allow-index: /a/b time-limit=1-days", 9),
        ("allow-index: / time-limit=9-days", f"{NEWS}allow-index: / time-limit=1-days", 1),
        ("allow-crawl: /", "allow-index: / time-limit=1-days", 1),
    ],
)
def test_qualifiers_of_what_is_overridden_are_so_too(
    named: str, anybody: str, days: int | None
) -> None:
    answer = decide(
        f"ACAP-crawler: me\nACAP-{named}\nACAP-crawler: *\nACAP-{anybody}",
        Agent("me", purposes=("news",)),
    )
    assert answer
    assert (answer.verdict, answer.qualifiers.days) == (ALLOW, days)


@pytest.mark.requirement("ACAP-49")
@pytest.mark.parametrize("crawler", ["me", "*"])
@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        ("allow-index: /", "disallow-index: /a/", DENY),
        ("allow-index: /a/", "disallow-index: /", ALLOW),
        ("allow-index: /", "disallow-index: /", DENY),
        ("disallow-other: /a/", "allow-index: /", ALLOW),
        ("disallow-index: /", f"{NEWS}allow-index: /", ALLOW),
    ],
)
def test_records_for_the_same_crawler_are_one(
    crawler: str, one: str, other: str, want: Verdict
) -> None:
    """They may be in two files, and name the crawler differently."""
    agent = Agent("me", user_agent="me/1.0", purposes=("news",))
    name = {"me": "ME/1.0", "*": "*"}[crawler]
    first, last = (
        f"ACAP-crawler: {crawler}\nACAP-{one}\n",
        f"ACAP-crawler: {name}\nACAP-{other}\n",
    )
    between = "ACAP-crawler: otherbot\nACAP-disallow-index: /a/b\n"
    for texts in (
        [first + between + last],
        [last + between + first],
        [first, between + last],
        [last, between, first],
    ):
        answer = (
            AcapRules(agent, [parse(text.encode()) for text in texts])
            .for_purposes()
            .matching("/a/b")
            .decide("index")
        )
        assert answer
        assert answer.verdict is want


@pytest.mark.requirement("ACAP-11")
def test_the_example_of_section_2_1() -> None:
    """A record by name lifts refusals for any crawler where it permits, and nowhere else."""
    text = (
        "ACAP-crawler: *\nACAP-disallow-crawl: /\n\nACAP-crawler: me\nACAP-allow-crawl: /public/\n"
    )
    found = {
        target: decide(text, Agent("me"), "crawl", target) for target in ("/public/x", "/private/x")
    }
    assert {target: answer and answer.verdict for target, answer in found.items()} == {
        "/public/x": ALLOW,
        "/private/x": DENY,
    }
