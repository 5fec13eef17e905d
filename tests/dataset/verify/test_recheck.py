"""Today's policies against records that were made under earlier ones: files are read again, the
statements of pages stay."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsel import Selector

from comity.crawler.commands.dataset import verify
from comity.dataset.counts import groups
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.dataset.verify.recheck import recheck
from comity.dataset.verify.report import Verify, VerifyReport
from comity.dataset.verify.result import GAINED, LOST, RESTRICTED, SAME, Cause, Rechecked
from comity.dataset.verify.today import Today
from comity.policies import Agent, Arrangement, Fetched, Page, Reason, Site, Verdict
from comity.policies.answers.element_rule import ElementRule
from comity.policies.answers.rule import REFUSES, RULES, Rule
from comity.policies.document.document import Content
from comity.policies.elements.redaction import redacted_fields
from comity.policies.formats import FORMATS
from comity.policies.formats.distrusted import distrusted
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    AgentReading,
    ElementRuleSet,
    Format,
    SiteReading,
    WellKnown,
)

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/1.html"
THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
AGENT = Agent(
    "examplebot", uses=("train", "index"), defaults={"train": Verdict.ALLOW, "index": Verdict.ALLOW}
)

ROBOTS = "/robots.txt"
TDMREP = "/.well-known/tdmrep.json"
AUTOMATION = "/automation-preferences.txt"

Files = Mapping[str, str | Fetched]


def site(files: Files, at: datetime = THEN) -> Site:
    fetched = {
        path: file
        if isinstance(file, Fetched)
        else Fetched(status=200, body=file.encode(), fetched_at=at)
        for path, file in {ROBOTS: "", **files}.items()
    }
    return Site.from_files(ORIGIN, fetched)


def record(
    files: Files,
    *,
    headers: Mapping[str, str] | None = None,
    body: str = "",
    agent: Agent = AGENT,
    url: str = URL,
    **more: Any,
) -> dict[str, Any]:
    """As a crawl under these files makes it."""
    fields = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    page: Page = site(files).page(agent, url, headers=fields, body=body.encode(), now=THEN, **more)
    return {"url": url, "text": "news", "permissions": json.loads(json.dumps(page.permissions))}


def today(
    made: dict[str, Any],
    files: Files,
    *,
    agent: Agent = AGENT,
    now: datetime = NOW,
    uses: tuple[str, ...] = (),
) -> Rechecked:
    before = copy.deepcopy(made)
    found = recheck(made, {ORIGIN: site(files, NOW)}.get, Today(agent, now, uses))
    assert made == before
    return found


def changes(found: Rechecked) -> dict[str, str]:
    return {use.use: use.change for use in found.uses if use.change != SAME}


def rules(found: Rechecked) -> list[str]:
    return [because.rule for because in found.refusals]


CLOSED = "User-agent: *\nDisallow: /news/\n"
NO_TRAINING = "User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n"
RESERVED = '[{"location": "/*", "tdm-reservation": 1}]'
FREE = '[{"location": "/*", "tdm-reservation": 0}]'


@pytest.mark.requirement("MEET-3", "WHY-1")
@pytest.mark.parametrize(
    ("then", "now", "changed", "refusing"),
    [
        ({}, {}, {}, []),
        ({}, {ROBOTS: CLOSED}, {"crawl": LOST}, ["robots.disallow"]),
        ({ROBOTS: CLOSED}, {}, {"crawl": GAINED}, []),
        ({}, {ROBOTS: NO_TRAINING}, {"train": LOST}, ["content-usage.disallow"]),
        ({ROBOTS: NO_TRAINING}, {}, {"train": GAINED}, []),
        ({ROBOTS: NO_TRAINING}, {ROBOTS: NO_TRAINING}, {}, []),
        ({}, {TDMREP: RESERVED}, {"train": LOST}, ["tdmrep.reserved"]),
        ({TDMREP: RESERVED}, {TDMREP: FREE}, {"train": GAINED}, []),
        (
            {},
            {AUTOMATION: "User-agent: *\nScope: /\nAllowed-Methods: POST\n"},
            {"crawl": LOST},
            ["automation.method"],
        ),
        (
            {},
            {ROBOTS: "ACAP-crawler: *\nACAP-disallow-index: /news/\n"},
            {"index": LOST},
            ["acap.disallow"],
        ),
        ({}, {ROBOTS: "ACAP-crawler: *\nACAP-disallow-follow: /news/\n"}, {"follow": LOST}, []),
        (
            {ROBOTS: "User-agent: *\nVisit-time: 0000-2359\nAllow: /\n"},
            {ROBOTS: "User-agent: *\nVisit-time: 0100-0200\nAllow: /\n"},
            {},
            [],
        ),
    ],
)
def test_what_files_say_is_asked_again(
    then: Files, now: Files, changed: dict[str, str], refusing: list[str]
) -> None:
    found = today(record(then), now)
    relevant = {
        use: change
        for use, change in changes(found).items()
        if use in ("crawl", "follow", "index", "train")
    }
    assert relevant == changed
    assert rules(found) == refusing
    assert not found.is_unknown


@pytest.mark.requirement("WHY-1")
def test_a_loss_names_the_file_and_the_line() -> None:
    found = today(record({}), {ROBOTS: f"# new\n{NO_TRAINING}"})
    assert found.refusals == (
        Cause(
            "content-usage.disallow",
            f"{ORIGIN}/robots.txt",
            line=3,
            text="Content-Usage: train-ai=n",
        ),
    )


INLINE = (
    '<script type="application/rsl+xml"><rsl '
    'xmlns="https://rslstandard.org/rsl"><content url="/"><license>'
    '<{} type="usage">{}</{}></license></content></rsl></script>'
)


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    "page",
    [
        {"headers": {"Content-Usage": "train-ai=n"}},
        {"headers": {"Usage-Pref": "ai=n"}},
        {"headers": {"Content-Signal": "ai-train=no"}},
        {"headers": {"X-Robots-Tag": "noai"}},
        {"headers": {"X-Robots-Tag": "examplebot: noai"}},
        {"headers": {"tdm-reservation": "1", "tdm-policy": "https://example.com/policy.json"}},
        {"body": '<meta name="robots" content="noai, nofollow">'},
        {"body": '<meta name="tdm-reservation" content="1">'},
        {"body": INLINE.format("prohibits", "ai-train", "prohibits")},
        {"headers": {"Link": '</license.xml>; rel="license"; type="application/rsl+xml"'}},
    ],
)
def test_what_the_page_refused_stays_refused(page: dict[str, Any]) -> None:
    """This holds for any files of today, and for any files of that time."""
    for then in ({}, {ROBOTS: NO_TRAINING}, {TDMREP: RESERVED}):
        made = record(then, **page)
        assert made["permissions"]["uses"]["train"]["verdict"] == "deny"
        for now in (
            {},
            {TDMREP: FREE},
            {ROBOTS: "User-agent: *\nContent-Usage: train-ai=y\nContent-Signal: ai-train=yes\n"},
        ):
            assert "train" not in changes(today(made, now)), (then, now)


TRANSLATING = replace(AGENT, uses=("translate",), defaults={"translate": Verdict.ALLOW})
SHOWN = "ACAP-crawler: *\nACAP-allow-present: /"


@pytest.mark.requirement("MEET-3", "ACAP-35")
@pytest.mark.parametrize(
    ("then", "now", "page", "changed", "refusing"),
    [
        (
            {},
            {ROBOTS: NO_TRAINING},
            {"body": '<meta name="robots" content="notranslate">'},
            {},
            ["comity.modification"],
        ),
        (
            {},
            {ROBOTS: NO_TRAINING},
            {"headers": {"X-Robots-Tag": "notranslate"}},
            {},
            ["comity.modification"],
        ),
        (
            {},
            {ROBOTS: f"{SHOWN} prohibited-modification=any"},
            {},
            {"translate": LOST},
            ["comity.modification"],
        ),
        (
            {ROBOTS: f"{SHOWN} prohibited-modification=any"},
            {ROBOTS: SHOWN},
            {},
            {"translate": GAINED},
            ["comity.default"],
        ),
    ],
)
def test_a_modification_that_the_page_or_a_file_prohibits_is_refused(
    then: Files, now: Files, page: dict[str, Any], changed: dict[str, str], refusing: list[str]
) -> None:
    found = today(
        record(then, agent=TRANSLATING, **page), now, agent=TRANSLATING, uses=("translate",)
    )
    assert changes(found) == changed
    assert rules(found) == refusing


@pytest.mark.requirement("MEET-3")
def test_a_tag_of_before_that_permits_a_prohibited_modification_loses_it() -> None:
    made = record({}, agent=TRANSLATING, body='<meta name="robots" content="notranslate">')
    tag = made["permissions"]
    refused = tag["uses"]["translate"]
    tag["uses"]["translate"] = {
        "verdict": "allow",
        "stated": False,
        "because": refused["because"][:0:-1],
    } | {"prohibited_modifications": ["translation"]}
    for now in ({}, {ROBOTS: NO_TRAINING}):
        found = today(made, now, agent=TRANSLATING, uses=("translate",))
        assert changes(found) == {"translate": LOST}
        assert rules(found) == ["comity.modification"]


REFUSING = {
    ROBOTS: (
        "User-agent: *\nContent-Usage: train-ai=n\nContent-Signal: ai-train=no\n"
        "Usage: tdm=n\nAllow: /\n"
    )
}


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    ("use", "page"),
    [
        ("train", {"headers": {"Content-Usage": "train-ai=y"}}),
        ("train", {"headers": {"Content-Signal": "ai-train=yes"}}),
        ("tdm", {"headers": {"tdm-reservation": "0"}}),
        ("tdm", {"body": '<meta name="tdm-reservation" content="0">'}),
        ("train", {"body": INLINE.format("permits", "ai-train", "permits")}),
    ],
)
def test_what_the_page_permitted_stays_permitted_unless_files_refuse(
    use: str, page: dict[str, Any]
) -> None:
    strict = Agent("examplebot", uses=(use,))
    made = record({}, agent=strict, **page)
    assert made["permissions"]["uses"][use]["verdict"] == "allow"
    assert changes(today(made, {}, agent=strict)) == {}
    assert changes(today(made, REFUSING, agent=strict))[use] == LOST


TDM_REFUSED = {ROBOTS: "User-agent: *\nUsage: tdm=n\nAllow: /\n"}


@pytest.mark.requirement("MEET-3", "TDM-1")
def test_a_page_that_came_before_a_file_comes_before_it_today() -> None:
    for field in ("header", "meta"):
        page: dict[str, Any] = (
            {"headers": {"tdm-reservation": "0"}}
            if field == "header"
            else {"body": '<meta name="tdm-reservation" content="0">'}
        )
        made = record({TDMREP: RESERVED}, **page)
        assert changes(today(made, {TDMREP: RESERVED})) == {}
        assert changes(today(record({}), {TDMREP: RESERVED})) == {"train": LOST}
    made = record(TDM_REFUSED, headers={"Usage-Pref": "ai=y"})
    assert made["permissions"]["uses"]["train"]["verdict"] == "allow"
    assert "train" not in changes(today(made, TDM_REFUSED))
    assert "train" not in changes(today(made, {ROBOTS: TDM_REFUSED[ROBOTS] + "# more\n"}))


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("field", ["tdm=n", f"tdm=n, x=({' '.join(map(str, range(100)))})"])
def test_a_refusal_of_the_page_that_a_file_outweighed_is_not_forgotten(field: str) -> None:
    """The page refused all mining of its data.

    The file permitted it for AI, which is the nearer word (USE-7). The file does so no more. The
    second field is longer than its quotation in the tag."""
    page: dict[str, Any] = {"headers": {"Usage-Pref": field}}
    files = {ROBOTS: "User-agent: *\nUsage: ai=y\nAllow: /\n"}
    made = record(files, **page)
    assert made["permissions"]["uses"]["train"]["verdict"] == "allow"
    assert "train" not in changes(today(made, files))
    assert changes(today(made, {}))["train"] == LOST


LIMITED = "ACAP-crawler: *\nACAP-allow-index: / time-limit={}\n"


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    ("limit", "end"),
    [
        ("until-2026-03-31", datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC)),
        ("30-days", THEN + timedelta(days=30)),
    ],
)
def test_time_limits_are_judged_now(limit: str, end: datetime) -> None:
    files = {ROBOTS: LIMITED.format(limit)}
    made = record(files, first_seen={"index": THEN})
    second = timedelta(seconds=1)
    assert changes(today(made, files, now=end - second)) == {}
    found = today(made, files, now=end + second)
    assert changes(found) == {"index": LOST}
    assert rules(found) == ["expired"]
    # A permission that has ended does not begin anew when the files do.
    assert changes(today(made, {}, now=end + second)) == {"index": LOST}


@pytest.mark.requirement("ACAP-32")
def test_days_count_from_when_the_page_was_taken() -> None:
    made = record({}, first_seen={"index": THEN})
    files = {ROBOTS: LIMITED.format("10-days")}
    assert changes(today(made, files, now=THEN + timedelta(days=9))) == {"index": RESTRICTED}
    found = today(made, files, now=THEN + timedelta(days=11))
    assert (changes(found), rules(found)) == ({"index": LOST}, ["acap.expired"])


@pytest.mark.requirement("MEET-3", "ACAP-34")
def test_stricter_conditions_are_a_loss_too() -> None:
    def snippets(words: int) -> Files:
        return {
            ROBOTS: f"ACAP-crawler: *\nACAP-allow-present-snippet: / max-length={words}-words\n"
        }

    made = record(snippets(30))
    assert changes(today(made, snippets(30))) == {}
    assert changes(today(made, snippets(50))) == {}
    found = today(made, snippets(20))
    assert changes(found) == {"present-snippet": RESTRICTED}
    assert found.refusals[0].line == 2
    assert "max_words" in found.refusals[0].text


@pytest.mark.requirement("ACAP-33", "ACAP-36")
def test_resources_that_the_tag_has_need_not_be_fetched() -> None:
    agent = Agent(
        "examplebot",
        arrangements=(
            Arrangement("example.com", frozenset(("must-use-resource", "must-include-resource"))),
        ),
    )
    robots = (
        "ACAP-crawler: *\n"
        "ACAP-allow-index: / must-use-resource=the-acap:extract:meta:description\n"
        "ACAP-allow-present: / must-include-resource=the-acap:credit:id:by "
        "must-use-resource=/summary.txt\n"
    )
    made = record(
        {ROBOTS: robots},
        agent=agent,
        headers={"Content-Type": "text/html"},
        body='<meta name="description" content="In &quot;short&quot;"><p id="by">A. Author</p>',
        resources={
            f"{ORIGIN}/summary.txt": Fetched(
                status=200, body=b"sum", headers=((b"Content-Type", b"text/plain"),)
            )
        },
    )
    assert {made["permissions"]["uses"][use]["verdict"] for use in ("index", "present")} == {
        "allow"
    }
    assert changes(today(made, {ROBOTS: robots}, agent=agent)) == {}
    # nothing is arranged any more
    assert changes(today(made, {ROBOTS: robots})) == {
        "index": LOST,
        "present": LOST,
    }


@pytest.mark.requirement("MEET-3")
def test_a_licence_that_has_ended_permits_nothing() -> None:
    licensed = Agent(
        "examplebot",
        uses=("train",),
        arrangements=(Arrangement("example.com", uses=frozenset(("train",))),),
    )
    plain = Agent("examplebot", uses=("train",))
    for files, page in (
        ({ROBOTS: NO_TRAINING}, {}),
        ({}, {"body": INLINE.format("prohibits", "ai-train", "prohibits")}),
        ({}, {"headers": {"X-Robots-Tag": "noai"}}),
        ({ROBOTS: NO_TRAINING}, {"body": INLINE.format("permits", "ai-train", "permits")}),
    ):
        made = record(files, agent=licensed, **page)
        assert made["permissions"]["uses"]["train"]["verdict"] == "allow"
        assert changes(today(made, files, agent=licensed)) == {}
        assert changes(today(made, files, agent=plain)) == {"train": LOST}


@pytest.mark.requirement("SEC-6")
def test_a_tag_of_another_agent_is_judged_by_its_name_and_by_nothing_that_we_arranged() -> None:
    other = Agent("otherbot", uses=("train",), defaults=AGENT.defaults)
    made = record({}, agent=other)
    licence = Arrangement("example.com", uses=frozenset(("train",)))
    ours = replace(AGENT, arrangements=(licence,))
    found = today(
        made,
        {
            ROBOTS: (
                "User-agent: examplebot\nAllow: /\n\nUser-agent: otherbot\n"
                "Content-Usage: train-ai=n\nDisallow: /\n"
            )
        },
        agent=ours,
    )
    assert found.agent == "otherbot"
    assert changes(found) == {"crawl": LOST, "train": LOST}


@pytest.mark.requirement("MEET-3")
def test_uses_that_are_asked_for_have_to_be_permitted() -> None:
    made = record({ROBOTS: NO_TRAINING})
    assert today(made, {ROBOTS: NO_TRAINING}).refusals == ()
    assert rules(today(made, {ROBOTS: NO_TRAINING}, uses=("train",))) == ["content-usage.disallow"]
    assert today(made, {ROBOTS: NO_TRAINING}, uses=("index",)).refusals == ()
    assert rules(today(made, {ROBOTS: CLOSED}, uses=("index",))) == ["robots.disallow"]
    assert rules(today(made, {}, uses=("search",))) == ["not-listed"]
    # A refusal in the tag stays until the page is fetched again.
    assert today(made, {}, uses=("train",)).refusals != ()


BROKEN = Fetched(status=503)


@pytest.mark.requirement("MEET-8")
def test_a_file_that_could_not_be_fetched_then_either_is_no_permission() -> None:
    failing = {TDMREP: Fetched(status=503)}
    trusting = replace(AGENT, denies_unreachable=False)
    permitted = record(failing, agent=trusting)
    assert changes(today(permitted, failing)) == {"train": LOST}
    assert changes(today(permitted, failing, agent=trusting)) == {}
    denied = record(failing)
    assert (changes(today(denied, failing)), changes(today(denied, {}))) == ({}, {"train": GAINED})
    assert changes(today(permitted, {})) == {}


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("then", "now", "rule"),
    [
        ({}, {ROBOTS: BROKEN}, "unreachable"),
        ({TDMREP: FREE}, {TDMREP: BROKEN}, "unreachable"),
        ({TDMREP: BROKEN}, {TDMREP: BROKEN}, ""),
        ({TDMREP: BROKEN}, {}, ""),
    ],
)
def test_what_cannot_be_had_any_more_is_unknown(then: Files, now: Files, rule: str) -> None:
    found = today(record(then), now)
    assert found.is_unknown == bool(rule)
    assert rules(found) == ([rule] if rule else [])


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(
    ("spoilt", "rule"),
    [
        ({"permissions": None}, "no-tag"),
        ({"permissions": {"schema": 2}}, "invalid-tag"),
        ({"url": "ftp://example.com/"}, "no-url"),
        ({"url": None}, "no-url"),
        ({"url": "https://elsewhere.example/"}, "no-policies"),
        ({"url": "https://[x/"}, "no-url"),
    ],
)
def test_what_nobody_knows_is_not_compliant(spoilt: dict[str, Any], rule: str) -> None:
    found = today(record({}) | spoilt, {})
    assert found.is_unknown
    assert [one.partition(":")[0] for one in rules(found)] == [rule]


AI = "/ai.txt"
NEWS = (
    "<!doctype html><title>t</title><p class=lead>lead</p><p class=quote>said</p><p>rest</p></html>"
)


def ai(*rules: str, path: str = "/", file_type: str = "html") -> dict[str, str]:
    """Each rule: selector, a colon, actions."""
    lines = [
        f"    Element: {element}\n      Disallow: {actions}\n"
        for element, _, actions in (one.rpartition(": ") for one in rules)
    ]
    return {AI: f"User-agent: *\n  Path: {path} {file_type}\n{''.join(lines)}"}


def item(
    files: Files,
    elements: str = "tag",
    *,
    agent: Agent = AGENT,
    html: bool = False,
    page: str = NEWS,
    url: str = URL,
) -> dict[str, Any]:
    """As a crawl with the ready spiders makes it. `elements`: COMITY_ELEMENTS."""
    headers = [(b"Content-Type", b"text/html; charset=utf-8")]
    of_site = site(files).page(agent, url, headers=headers, body=page.encode(), now=THEN)
    rules, refused = of_site.element_rules, of_site.refusable(agent.uses)
    if elements == "strip" and rules:
        of_site.is_cut, page = True, rules.redacted(refused).decode()
        rules = of_site.element_rules = rules.without(refused)
    fields: dict[str, Any] = {
        "url": url,
        "text": "".join(Selector(page).css("p::text").getall()),
    } | ({"html": page} if html else {})
    if rules is None:
        return fields | {"permissions": json.loads(json.dumps(of_site.permissions))}
    if elements == "redact":
        changed, _, traced = redacted_fields(rules, fields, {}, refused)
        fields, tag = fields | changed, of_site.tag_with(traced)
    else:
        tag = of_site.tag_of(fields, {})
    return fields | {"permissions": json.loads(json.dumps(tag))}


NO_QUOTES = ai(".quote: Train")
MODES = pytest.mark.parametrize("elements", ["tag", "redact", "strip"])


@pytest.mark.requirement("MEET-5", "AIT-7")
@MODES
def test_a_new_rule_for_an_element_is_a_loss(elements: str) -> None:
    """Without the page, the parts that it covers are unknown."""
    for then in (
        {},
        {AI: "User-Agent: *\n"},
        ai(".quote: Translate"),
        ai(".lead: Train"),
        ai(".quote: Train", path="/sports/"),
    ):
        made = item(then, elements)
        found = today(made, NO_QUOTES)
        assert changes(found) == {"train": LOST}, then
        [loss] = found.refusals
        assert (loss.rule, loss.url, loss.line, loss.text) == (
            "ait.disallow",
            f"{ORIGIN}/ai.txt",
            4,
            "Disallow: Train (.quote)",
        )
        assert today(made, NO_QUOTES, uses=("index",)).refusals == ()
        assert rules(today(made, NO_QUOTES, uses=("train", "index"))) == ["ait.disallow"]


@pytest.mark.requirement("MEET-5", "AIT-7")
@MODES
@pytest.mark.parametrize("html", [True, False])
def test_under_the_same_file_nothing_is_lost(elements: str, html: bool) -> None:
    for rule in (
        ".quote: Train",
        ".quote: *",
        "p + .quote, .missing: Train Index",
        "p:: Train",
        "*: Train",
        "html: Train",
    ):
        made = item(ai(rule), elements, html=html)
        found = today(made, ai(rule))
        assert (changes(found), found.refusals, found.gained_elements) == ({}, (), False), rule


@pytest.mark.requirement("MEET-5", "AIT-4")
@pytest.mark.parametrize(
    "now", [ai(".quote: Train", path="/sports/"), {AI: NO_QUOTES[AI].replace("*", "other")}]
)
def test_rules_about_other_pages_or_agents_take_nothing(now: Files) -> None:
    assert today(item({}), now).refusals == ()


@pytest.mark.requirement("MEET-5", "AIT-7")
@pytest.mark.parametrize("elements", ["tag", "redact"])
def test_what_the_tag_refuses_already_is_no_loss(elements: str) -> None:
    for then, now, lost in (
        (NO_QUOTES, NO_QUOTES[AI] + "# more\n", ""),
        (NO_QUOTES, ai(".quote: Train", path="/news/")[AI], ""),
        (ai(".quote: *"), NO_QUOTES[AI], ""),
        (NO_QUOTES, ai(".quote: *")[AI], "index"),
        (NO_QUOTES, ai(".quote: Train", file_type="")[AI], "train"),
    ):
        found = today(item(then, elements), {AI: now}, uses=("train", "index"))
        assert [
            use
            for use, change in changes(found).items()
            if change == LOST and use in ("train", "index")
        ] == ([lost] if lost else [])


@pytest.mark.requirement("MEET-5")
def test_rules_that_went_away_give_nothing_before_the_page_is_fetched_again() -> None:
    made = item(NO_QUOTES)
    for now in ({}, {AI: "User-agent: *\n"}, ai(".quote: Translate")):
        found = today(made, now)
        assert (changes(found), found.refusals, found.gained_elements) == ({}, (), True)
    assert not today(made, NO_QUOTES).gained_elements
    assert not today(item({}), {}).gained_elements
    report = VerifyReport()
    report.add(today(made, {}))
    assert report.as_json()["hosts"][ORIGIN]["gained_elements"] == 1


@pytest.mark.requirement("MEET-5", "AIT-13")
def test_rules_that_cover_whole_documents() -> None:
    for whole in ("*: Train", "p::: Train", "html: Train"):
        assert changes(today(item({}), ai(whole))) == {"train": LOST}, whole
        assert changes(today(item(ai(whole)), {})) == {"train": GAINED}, whole
        # An element that covered all of the page then does so today, in spite of other changes to
        # the file.
        changed = {AI: f"# new\n{ai(whole)[AI]}"}
        assert changes(today(item(ai(whole)), changed)) == {}, whole


@pytest.mark.requirement("MEET-5")
@MODES
def test_where_the_record_has_the_page_it_tells_what_rules_cover(elements: str) -> None:
    made = item(ai(".lead: Train"), elements, html=True)
    for element, is_lost in (
        (".quote", True),
        (".advert", False),
        ("p:first-child + p.advert", True),
        ("body", True),
    ):
        now = ai(".lead: Train", f"{element}: Train")
        # A page that was stripped may have had a `.lead` too, but the document has none.
        assert (changes(today(made, now)) == {"train": LOST}) == is_lost, element
    assert changes(today(item({}, html=True), ai("title + .advert: Train"))) == {}
    assert changes(today(item({}, html=True), ai("title ~ p, .advert: Train"))) == {}
    assert changes(today(item({}, html=True), ai("p + .quote: Train"))) == {"train": LOST}
    assert changes(today(item({}, html=True), ai("data.quote: *", file_type="json"))) == {}
    for cut in (made["html"][:-1], f"<div>{made['html']}", "", None, b"x"):
        assert changes(today(made | {"html": cut}, ai(".advert: Train"))) == {"train": LOST}


@pytest.mark.requirement("MEET-5")
@MODES
def test_licences_lift_what_elements_are_refused(elements: str) -> None:
    plain = Agent("examplebot", uses=("train",), defaults=AGENT.defaults)
    licensed = replace(
        plain, arrangements=(Arrangement("example.com", uses=frozenset(("train",))),)
    )
    assert changes(today(item({}, elements, agent=plain), NO_QUOTES, agent=licensed)) == {}
    made = item(NO_QUOTES, elements, agent=licensed)
    assert changes(today(made, NO_QUOTES, agent=licensed)) == {}
    # Nothing was left out of it, for all that the tag says.
    found = today(made, NO_QUOTES, agent=plain)
    assert (changes(found), rules(found)) == ({"train": LOST}, ["ait.disallow"])
    assert changes(today(made, {}, agent=plain)) == {}
    # An element that was cut out for another use is missing for this one too.
    searching = replace(licensed, uses=("train", "index"))
    cut = item(ai(".quote: Train Index"), elements, agent=searching)
    lost = {"train": LOST} if elements == "tag" else {}
    assert (
        changes(
            today(cut, ai(".quote: Train Index"), agent=replace(plain, uses=("train", "index")))
        )
        == lost
    )
    # An element that is not in the item cannot be lost.
    absent = item(NO_QUOTES, elements, agent=licensed, page=NEWS.replace("quote", "other"))
    assert changes(today(absent, NO_QUOTES, agent=plain)) == {}


@pytest.mark.requirement("SPAWN-1")
def test_spawnings_statements_are_asked_again() -> None:
    images = {AI: "User-Agent: *\nDisallow: *.jpg\n"}
    made = item({}, url=f"{ORIGIN}/news/1.jpg")
    found = today(made, images)
    assert (changes(found), rules(found)) == ({"train": LOST}, ["spawning.disallow"])
    assert changes(today(item(images, url=f"{ORIGIN}/news/1.jpg"), {})) == {"train": GAINED}
    assert changes(today(item({}), images)) == {}


@pytest.mark.requirement("MEET-5")
def test_tags_from_before_ai_txt_was_asked_for() -> None:
    made = item({})
    del made["permissions"]["policies"][f"{ORIGIN}/ai.txt"]
    assert today(made, {}).refusals == ()
    assert changes(today(made, NO_QUOTES)) == {"train": LOST}
    assert today(made, {AI: Fetched(status=503)}).is_unknown


ELEMENT_RULES = st.lists(
    st.builds(
        "{}: {}".format,
        st.sampled_from((".lead", ".quote", ".advert", "p", "p + p", "p:::", "*")),
        st.sampled_from(("Train", "Index", "*", "Translate", "Train Index")),
    ),
    max_size=3,
)


@pytest.mark.requirement("MEET-5")
@given(
    then=ELEMENT_RULES,
    now=ELEMENT_RULES,
    elements=st.sampled_from(("tag", "redact", "strip")),
    html=st.booleans(),
    other=st.booleans(),
)
def test_no_character_is_left_in_use_that_a_crawl_today_would_cut(
    then: list[str], now: list[str], elements: str, html: bool, other: bool
) -> None:
    """The trainable part of a compliant record is no larger than that of the page if it were
    fetched today."""
    made = item(ai(*then), elements, html=html)
    files = {AI: f"# new\n{ai(*now)[AI]}"} if other else ai(*now)
    one = next(use for use in today(made, files).uses if use.use == "train")
    if one.verdict is not Verdict.ALLOW or one.change == GAINED:
        return
    ours = apply_terms(made, Terms.of(("train",), now=NOW, vocabulary=AGENT.vocabulary)).record
    headers = [(b"Content-Type", b"text/html")]
    crawled = (
        site(files)
        .page(AGENT, URL, headers=headers, body=NEWS.encode(), now=NOW)
        .redacted(("train",))
        .decode()
    )
    assert ours is not None
    for text in ("lead</p>", "said</p>", "rest</p>"):
        assert text in crawled or text[:4] not in ours["text"]


@pytest.mark.requirement("MEET-3")
def test_of_an_item_of_pages_of_several_sites_the_others_must_not_have_changed() -> None:
    made = record({})
    other = Site.from_files("https://other.example", {ROBOTS: b"# as it was"})
    made["permissions"]["policies"] |= json.loads(json.dumps(other.policies))
    for body, known in ((b"# as it was", True), (b"# new", False)):
        sites = {
            ORIGIN: site({}),
            "https://other.example": Site.from_files("https://other.example", {ROBOTS: body}),
        }
        found = recheck(made, sites.get, Today(AGENT, NOW))
        assert (not found.is_unknown, rules(found)) == (known, [] if known else ["another-page"])


WORDS = st.sampled_from(("ai", "ai-use", "all", "bots", "genai", "search", "tdm", "train-ai"))
SIGNALS = st.sampled_from(
    ("ai-train=yes", "ai-train=no", "search=yes", "ai-input=no", "use=reference")
)
PREFERENCES = st.builds("{}={}".format, WORDS, st.sampled_from("yn"))
LINES = st.lists(
    st.one_of(
        st.builds("Content-Usage: {}".format, PREFERENCES),
        st.builds("Usage: {}".format, PREFERENCES),
        st.builds("Content-Signal: {}".format, SIGNALS),
        st.builds(
            "ACAP-{}".format,
            st.sampled_from(("allow-index: /", "disallow-index: /", "disallow-other: /")),
        ),
    ),
    max_size=3,
)
RESERVATIONS = st.sampled_from((None, RESERVED, FREE))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "Content-Usage": st.lists(PREFERENCES, min_size=1, max_size=3).map(", ".join),
        "Usage-Pref": PREFERENCES,
        "Content-Signal": SIGNALS,
        "X-Robots-Tag": st.sampled_from(
            (
                "noindex",
                "noai, max-snippet:20",
                "examplebot: nosnippet",
                "unavailable_after: 2026-03-20",
            )
        ),
        "tdm-reservation": st.sampled_from("01"),
    },
)
CUT = f"x=({' '.join(map(str, range(100)))})"  # longer than the quotation in the tag


@pytest.mark.requirement("MEET-3")
@given(
    then=st.tuples(LINES, RESERVATIONS),
    now=st.tuples(LINES, RESERVATIONS),
    fields=FIELDS,
    default=st.booleans(),
    is_cut=st.booleans(),
)
def test_nothing_is_permitted_that_a_crawl_today_would_refuse(
    then: tuple[list[str], str | None],
    now: tuple[list[str], str | None],
    fields: dict[str, str],
    default: bool,
    is_cut: bool,
) -> None:
    """With the same files, nothing has changed, except that permissions have ended."""
    agent = Agent(
        "examplebot",
        uses=("train", "index", "ai"),
        defaults={"train": Verdict.ALLOW} if default else {},
    )
    if is_cut and "Content-Usage" in fields:
        fields = fields | {"Content-Usage": f"{fields['Content-Usage']}, {CUT}"}

    def files(lines: list[str], reservations: str | None) -> Files:
        acap = [line for line in lines if line.startswith("ACAP")]
        group = "\n".join(
            ["User-agent: *", *(line for line in lines if line not in acap), "Allow: /"]
        )
        robots = "\n".join([*(["ACAP-crawler: *", *acap, ""] if acap else []), group])
        return {ROBOTS: robots} | ({TDMREP: reservations} if reservations else {})

    made = record(files(*then), agent=agent, headers=fields)
    same = today(made, files(*then), agent=agent)
    assert {use: change for use, change in changes(same).items() if change == GAINED} == {}
    assert {because.rule for because in same.refusals} <= {"expired"}
    fetched = [(name.encode(), value.encode()) for name, value in fields.items()]
    crawled = site(files(*now)).page(agent, URL, headers=fetched, now=NOW).uses
    for use in today(made, files(*now), agent=agent).uses:
        # the tag of a refused use lacks the limits of the page
        if use.verdict is Verdict.ALLOW and use.change != GAINED:
            assert crawled[use.use].verdict is Verdict.ALLOW, use


BY_PATH: dict[str, str] = {
    ROBOTS: (
        "User-agent: *\nDisallow: /news/2\nContent-Usage: /news/3 train-ai=n\n"
        "Content-Usage: /drafts train-ai=y\nAllow: /\n"
    ),
    TDMREP: '[{"location": "/news/4*", "tdm-reservation": 1}]',
    AI: "User-Agent: *\nDisallow: *.pdf\nDisallow: /news/5\n",
    AUTOMATION: "User-agent: *\nScope: /news/6\nAllowed-Methods: POST\n",
}


@pytest.mark.slow
@pytest.mark.requirement("MEET-3")
def test_what_was_found_out_of_one_record_is_taken_for_no_other(*, in_full: bool) -> None:
    """Each record is judged as if it were the only one, among any other records."""
    urls = [
        f"{ORIGIN}/{folder}/{number}{end}"
        for folder in ("news", "drafts")
        for number in range(8)
        for end in ("", "/x.pdf")
    ]
    licensed = replace(
        AGENT, arrangements=(Arrangement("example.com", uses=frozenset(("train",))),)
    )
    with_rules = BY_PATH | ai(".quote: Train", path="/news/1")
    with_acap = BY_PATH | {ROBOTS: "ACAP-crawler: *\nACAP-disallow-index: /news/7\n"}
    shared = Today(AGENT, NOW)
    for files in (BY_PATH, with_rules, with_acap):
        of_files = site(files, NOW)
        for then in ({}, BY_PATH, {ROBOTS: LIMITED.format("30-days")})[0 if in_full else 1 :]:
            for page in (
                {},
                {"headers": {"tdm-reservation": "0"}},
                {"headers": {"Content-Usage": "train-ai=y"}},
                {"agent": licensed},
            ):
                made = record(then, url=URL, **page)
                for one in (
                    *(record(then, url=url, **page) for url in urls),
                    *(made | {"url": url} for url in urls),
                ):
                    alone = recheck(one, {ORIGIN: of_files}.get, Today(AGENT, NOW))
                    assert recheck(one, {ORIGIN: of_files}.get, shared) == alone, (
                        one["url"],
                        then,
                        page,
                    )
    for now, is_unknown in (({}, False), ({TDMREP: BROKEN}, True), ({}, False)):
        assert recheck(record({}), {ORIGIN: site(now)}.get, shared).is_unknown == is_unknown


@pytest.mark.requirement("WHY-1")
def test_a_report_counts_by_host_and_can_be_merged_and_pickled() -> None:
    sites = {ORIGIN: site({ROBOTS: NO_TRAINING})}
    work = pickle.loads(pickle.dumps(Verify(sites.get, Today(AGENT, NOW))))
    records = [
        record({}),
        record({ROBOTS: NO_TRAINING}),
        record({}) | {"url": "https://elsewhere.example/"},
    ]
    outcome = work(records)
    assert [(note["url"], note["unknown"]) for note in outcome.notes] == [
        (URL, False),
        ("https://elsewhere.example/", True),
    ]
    assert outcome.notes[0]["why"] == [
        (
            "train: content-usage.disallow at https://example.com/robots.txt:2: "
            "Content-Usage: train-ai=n"
        )
    ]
    whole = VerifyReport()
    for _ in range(2):
        whole.merge(pickle.loads(pickle.dumps(outcome.result)))
    assert not whole.is_compliant
    told = whole.as_json()
    assert (told["records"], told["compliant"], told["refused"], told["unknown"]) == (6, 2, 2, 2)
    host = told["hosts"][ORIGIN]
    assert host["rights"]["train"] == {LOST: 2}
    [loss] = [one for one in host["losses"] if one["use"] == "train"]
    assert (loss["records"], loss["rule"], loss["line"]) == (2, "content-usage.disallow", 2)
    assert json.loads(json.dumps(told)) == told


@pytest.mark.requirement("AIT-8", "MEET-5")
@MODES
def test_a_guide_of_the_whole_page_permits_as_long_as_it_stands(elements: str) -> None:
    guide = {AI: "User-agent: *\n  Path: / html\n    Element: *\n      Guide: Summarize\n"}
    made = item(guide, elements)
    assert changes(today(made, guide)) == {}
    assert changes(today(made, {AI: guide[AI] + "      Disallow: Summarize\n"})) == {
        "summarize": LOST
    }
    assert changes(today(made, {})) == {"summarize": LOST}


@pytest.mark.requirement("MEET-5", "AIT-5")
def test_a_record_with_its_page_is_read_as_html_and_as_xhtml() -> None:
    """In HTML the section ends the paragraph, in XHTML it stands in it."""
    page = "<html><head><title>t</title></head><body><p>a<section>b</section></p></body></html>"
    for selector in ("p + section", "p > section"):
        found = today(item({}, page=page, html=True), ai(f"{selector}: Train"))
        assert changes(found) == {"train": LOST}
    assert changes(today(item({}, page=page, html=True), ai("p > p: Train"))) == {}


class OddReading(AgentReading):
    """A reading unlike those of comity's formats: a file other than ai.txt refuses elements."""

    def __init__(self, site: SiteFiles) -> None:
        self._file = site.file(f"{ORIGIN}/odd.txt")

    def element_rules(self, target: str, content: Content) -> ElementRuleSet | None:
        rules = tuple(rule for rule in self._rules if target.startswith(rule.path))
        return ElementRuleSet(rules, self._because) if rules else None

    @property
    def _rules(self) -> Iterator[ElementRule]:
        for line, text in enumerate(self._file.text.decode().splitlines() if self._file else (), 1):
            selector, _, path = text.partition(" ")
            yield ElementRule(
                agents=("*",),
                path=path,
                file_type="html",
                element=selector,
                verdict=Verdict.DENY,
                actions=frozenset(["train"]),
                line=line,
            )

    def _because(self, rule: ElementRule, url: str) -> Reason:
        assert self._file
        return self._file.reason("odd.no", line=rule.line, text=rule.element)


class OddSite(SiteReading):
    def __init__(self, site: SiteFiles) -> None:
        self._reading = OddReading(site)

    def for_agent(self, agent: Agent) -> OddReading:
        return self._reading


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, as a format of another package is."""
    rules = {"odd.no": Rule(REFUSES, "Odd", "no")}
    odd = distrusted(
        Format(name="odd", rules=rules, files=(WellKnown("/odd.txt"),), read_site=OddSite)
    )
    monkeypatch.setattr("comity.policies.site.FORMATS", (*FORMATS, odd))
    monkeypatch.setitem(RULES, "odd.no", rules["odd.no"])


def odd_file(*rules: str) -> Files:
    return {"/odd.txt": "\n".join(rules)} if rules else {}


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize(
    ("then", "now", "lost", "gained"),
    [
        ([], ["p /"], ["odd.no"], False),
        (["p /"], ["p /"], [], False),
        (["p /"], ["p /", "#a /"], ["odd.no"], False),
        (["p /"], [], [], True),
        (["p /"], ["p /other"], [], True),
        (["p /", "em /"], ["em /"], [], True),
        ([], [], [], False),
    ],
    ids=[
        "first",
        "same",
        "another",
        "none any more",
        "not here any more",
        "one of two",
        "never any",
    ],
)
def test_elements_that_another_format_refuses_are_asked_again(
    then: list[str], now: list[str], lost: list[str], gained: bool
) -> None:
    page = "<p>news</p><em>more</em>"
    made = record(odd_file(*then), headers={"Content-Type": "text/html"}, body=page) | {
        "text": "newsmore"
    }
    assert len(made["permissions"]["elements"]) == len(then)
    found = today(made, odd_file(*now))
    assert (rules(found), found.gained_elements) == (lost, gained)


@pytest.mark.usefixtures("odd")
def test_elements_that_another_format_refuses_on_some_pages_are_those_of_no_other_page() -> None:
    files, asked = site(odd_file("p /news/2"), NOW), Today(AGENT, NOW)
    for number, lost in (("1", []), ("2", ["odd.no"])):
        made = record({}, url=f"{ORIGIN}/news/{number}")
        assert rules(recheck(made, {ORIGIN: files}.get, asked)) == lost


@pytest.mark.requirement("REACH-5")
def test_a_report_on_more_hosts_than_are_held_says_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Verify({ORIGIN: site({ROBOTS: NO_TRAINING})}.get, Today(AGENT, NOW))
    urls = [URL, *(f"https://host{number % 7}.example/" for number in range(20)), URL]
    parts = [work([record({}) | {"url": url}]).result for url in urls]
    all_held, spilled = VerifyReport(), VerifyReport()
    for part in parts:
        all_held.merge(part)
    monkeypatch.setattr(groups, "MAX_HELD", 2)
    for part in parts:
        spilled.merge(part)
    assert len(spilled.hosts.held) <= 2
    assert spilled.as_json() == pickle.loads(pickle.dumps(spilled)).as_json() == all_held.as_json()
    assert [name for name, _ in spilled.worst_hosts(3)] == [
        name for name, _ in all_held.worst_hosts(3)
    ]
    assert "\n".join(verify._json_lines(spilled)) == json.dumps(all_held.as_json(), indent=2)
    assert "\n".join(verify._json_lines(VerifyReport())) == json.dumps(
        VerifyReport().as_json(), indent=2
    )
