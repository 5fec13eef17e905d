"""The state and the view of the workbench, without a browser."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lsprotocol.types import Position

from comity.authoring.problems import LineSpan
from comity.authoring.wishes import WISHES
from comity.authoring.wishes.copies import NO_SNIPPETS
from comity.authoring.wishes.everything import EVERYTHING
from comity.authoring.wishes.requests import NOBODY_BUT, SLOWER
from comity.authoring.wishes.training import NO_SEARCH_BUT_TRAINING, NO_TRAINING
from comity.authoring.wishes.wish import FORMATS, Wish
from comity.authoring.workbench import markup
from comity.authoring.workbench.desk import DEMO, desk_of
from comity.authoring.workbench.expectations import check_sentences
from comity.authoring.workbench.help import hover
from comity.authoring.workbench.state import (
    MAX_FIELD,
    MAX_FILE,
    MAX_URLS,
    Choices,
    State,
    hidden_in,
    text_of,
    view_of,
)
from comity.policies import Agent, Fetched, PolicyError, Verdict
from comity.policies.formats.authoring import Draft, Fix

ORIGIN = "https://example.com"
ROBOTS = ORIGIN + "/robots.txt"
AI = ORIGIN + "/ai.txt"


def state(files: dict[str, bytes], pages: dict[str, bytes] | None = None, **choices: str) -> State:
    fetched = {ORIGIN + path: Fetched(status=200, body=body) for path, body in files.items()}
    of_pages = {
        ORIGIN + path: Fetched(status=200, body=body) for path, body in (pages or {}).items()
    }
    return State(ORIGIN, fetched, of_pages, Choices()).with_choices(**choices)


def test_an_edit_changes_what_is_decided() -> None:
    before = state({"/robots.txt": b"User-agent: *\nDisallow: /a\n"}, urls="/a/1\n/b")
    after = before.with_file(ROBOTS, b"User-agent: *\nDisallow: /b\n")
    verdicts = [[answer["verdict"] for answer in view_of(each).answers] for each in (before, after)]
    assert verdicts == [["deny", "allow"], ["allow", "deny"]]


def test_the_reasons_name_the_lines_of_the_files() -> None:
    (answer,) = view_of(
        state({"/robots.txt": b"User-agent: *\nAllow: /\nDisallow: /a\n"}, urls="/a")
    ).answers
    assert [(reason["url"], reason["line"]) for reason in answer["reasons"]] == [(ROBOTS, 3)]


def test_the_agent_and_its_uses_are_those_that_are_chosen() -> None:
    files = {
        "/robots.txt": (
            b"User-agent: other\nDisallow: /\n\nUser-agent: *\nContent-Signal: ai-train=no\n"
        )
    }
    assert [a["verdict"] for a in view_of(state(files, urls="/", agent="other")).answers] == [
        "deny"
    ]
    (answer,) = view_of(state(files, urls="/", agent="comitybot", uses="ai-train, summary")).answers
    assert answer["verdict"] == "allow"
    assert {use: answer["uses"][use]["verdict"] for use in ("ai-train", "summary")} == {
        "ai-train": "deny",
        "summary": "deny",
    }
    assert (answer["uses"]["ai-train"]["stated"], answer["uses"]["summary"]["stated"]) == (
        True,
        False,
    )


NAMED = b"User-agent: GPTBot\nUser-agent: any-other-crawler\nDisallow: /\n"


def test_everybody_is_the_first_crawler_and_is_no_crawler_of_the_files() -> None:
    site = state({"/robots.txt": NAMED}, urls="/")
    assert [answer["verdict"] for answer in view_of(site).answers] == ["allow"]
    assert "<caption>Everybody on /</caption>" in markup.answers(site, view_of(site))
    chosen = [view_of(site.with_choices(agent=name)).answers for name in ("gptbot", "Everybody")]
    assert [answer["verdict"] for (answer,) in chosen] == ["deny", "allow"]


@pytest.mark.parametrize(
    ("agent", "chosen"),
    [
        ("", '<option value="" selected>Everybody</option>'),
        ("gptbot", '<option value="GPTBot" selected>GPTBot</option>'),
        ("CCBot", '<option value="CCBot" selected>CCBot</option>'),
        ("new<bot", '<option value="new&lt;bot" selected>new&lt;bot</option>'),
    ],
)
def test_the_menu_has_each_crawler_once_and_the_chosen_one(agent: str, chosen: str) -> None:
    menu = markup.crawlers(state({"/robots.txt": NAMED}, agent=agent))
    assert menu.startswith("<label for=agent>Crawler</label><select id=agent")
    assert chosen in menu
    assert (menu.count(" selected"), menu.count(">GPTBot<")) == (1, 1)
    assert menu.index("Everybody") < menu.index("In the files") < menu.index("Known: for training")


@pytest.mark.requirement("AUTX-14")
def test_a_limit_that_cannot_be_read_is_shown_with_its_line_and_the_right_way() -> None:
    preferences = b"scope: /\nallowed-methods: GET\nrequest-limit: 1/5s\nconcurrent-limit: 2\n"
    site = state({"/automation-preferences.txt": preferences}, urls="/a")
    shown = markup.answers(site, view_of(site))
    remark = "`request-limit: 1/5s` cannot be read, so the strictest value applies: "
    advice = "write N/second, N/minute, N/hour or N/day, here `12/minute`"
    assert f"<td>1 request in 300 s (line 3) {remark}{advice}; 2 at a time (line 4)</td>" in shown


def test_the_page_itself_decides_too() -> None:
    page = b'<!doctype html><meta name="robots" content="noindex"><p>x'
    (answer,) = view_of(state({}, {"/a.html": page}, urls="/a.html")).answers
    assert answer["uses"]["index"]["verdict"] == "deny"


@pytest.mark.parametrize(
    ("choices", "error"),
    [
        ({"agent": "two words"}, "product token"),
        ({"urls": "https://other.example/"}, "is not of https://example.com"),
        ({"urls": "http://[/"}, "["),
        (
            {"urls": "\n".join(f"/{number}" for number in range(MAX_URLS + 1))},
            f"write {MAX_URLS} at most",
        ),
    ],
)
def test_what_cannot_be_asked_is_said(choices: dict[str, str], error: str) -> None:
    view = view_of(state({}).with_choices(**choices))
    assert error in view.question_error
    assert view.answers == ()


def test_an_unknown_language_is_said() -> None:
    assert "not a language tag" in view_of(state({}, urls="/", lang="?")).prompt_error


@pytest.mark.requirement("IDE-4")
def test_problems_have_their_places() -> None:
    problems = state({"/robots.txt": b"User-agent: *\nDisallow: a\n"}).problems()[ROBOTS]
    assert [problem.span for problem in problems if problem.rule == "robots.path"] == [
        LineSpan(2, 11, 12)
    ]


def test_a_fix_is_made_in_the_file_and_offered_where_it_can_be() -> None:
    site = state({"/robots.txt": b"User-agent: *\nDisallow: a\n"})
    problem = site.problems()[ROBOTS][0]
    edit = Draft(ROBOTS, site.files[ROBOTS].body).replace_octets(2, 11, 0, b"/")
    mended = site.with_fixes(ROBOTS, [Fix("Write `/a`", (edit,))])
    assert mended.files[ROBOTS].body == b"User-agent: *\nDisallow: /a\n"
    assert "robots.path" not in [other.rule for other in mended.problems()[ROBOTS]]
    fixable = problem._replace(fix=Fix("Write `/a`", ()))
    assert "Fix: Write /a" in markup.problems([fixable], is_editable=True)
    advice = "the pages that the line should refuse. Begin the pattern with <code>/</code>,"
    assert advice in markup.problems([problem], is_editable=False)
    unmended = problem._replace(fix=None)
    assert "Fix:" not in markup.problems([fixable], is_editable=False) + markup.problems(
        [unmended], is_editable=True
    )


def test_a_file_that_is_no_policy_by_itself_has_no_problems() -> None:
    assert state({"/press.txt": b"anything"}).problems() == {ORIGIN + "/press.txt": []}


def test_files_that_are_not_there_can_be_added() -> None:
    site = state({"/robots.txt": b""})
    assert AI in site.missing
    assert ROBOTS not in site.missing
    assert AI not in site.with_file(AI, b"").missing


@pytest.mark.requirement("IDE-1")
def test_a_wish_adds_the_files_that_the_site_does_not_have() -> None:
    after, files, urls = state({}).with_wish(EVERYTHING, {})
    assert urls == (ROBOTS, ORIGIN + "/.well-known/tdmrep.json")
    assert {after.name(url): after.files[url].body.decode() for url in urls} == files.texts
    assert not files.others


def test_a_wish_adds_its_lines_below_those_of_a_file() -> None:
    before = state({"/robots.txt": b"User-agent: *\r\nDisallow: /private/\r\n"})
    after, _, urls = before.with_wish(SLOWER, {"seconds": "5"})
    assert urls == (ROBOTS,)
    assert after.files[ROBOTS].body == (
        b"User-agent: *\r\nDisallow: /private/\r\n\r\n"
        b"User-agent: *\r\nCrawl-delay: 5\r\nDisallow:\r\n"
    )
    agent = Agent("somebot")
    assert after.site.access(agent, ORIGIN + "/private/a").verdict is Verdict.DENY
    assert (rates := after.site.rates(agent))
    assert rates.crawl_delay == 5


@pytest.mark.parametrize(
    ("robots", "wish", "values"),
    [
        # An own group has none of the lines for everybody.
        (b"User-agent: GoodBot\nDisallow: /private/\n", NO_SEARCH_BUT_TRAINING, {}),
        # The new group of GPTBot would permit the private pages to it.
        (b"User-agent: *\nDisallow: /private/\n", NOBODY_BUT, {"crawlers": "GPTBot"}),
    ],
)
def test_lines_that_would_change_other_decisions_are_not_added(
    robots: bytes, wish: Wish, values: dict[str, str]
) -> None:
    with pytest.raises(PolicyError, match=r"/robots\.txt cannot take the lines for"):
        state({"/robots.txt": robots}).with_wish(wish, values)


def test_elements_are_told_and_no_file_is_changed() -> None:
    before = state({"/robots.txt": b"User-agent: *\nDisallow:\n"})
    after, files, urls = before.with_wish(NO_SNIPPETS, {})
    assert (after, urls) == (before, ())
    assert [text for _, text in files.others] == ['<meta name="robots" content="nosnippet">\n']
    assert "Add to the head of each page" in markup.others(files)


def test_a_wish_is_written_in_the_chosen_formats_for_the_origin_of_the_site() -> None:
    after, _, urls = state({}).with_wish(NO_TRAINING, {}, ["RSL"])
    assert urls == (ROBOTS, ORIGIN + "/license.xml")
    assert after.files[ROBOTS].body.startswith(f"License: {ORIGIN}/license.xml\n".encode())


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.name)
def test_each_wish_has_its_fields_and_formats(wish: Wish) -> None:
    shown = markup.wish(wish, ORIGIN)
    assert re.findall(r'value="([^"]*)" checked', shown) == [
        name for name in FORMATS if name in wish.defaults
    ]
    for parameter in wish.parameters:
        assert f'name="{parameter.name}"' in shown
    assert wish.summary in shown


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "write the names of the crawlers"), ({"crawlers": "a b/c"}, "is no list of crawlers")],
)
def test_values_that_are_missing_or_wrong_are_an_error(
    values: dict[str, str], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        state({}).with_wish(NOBODY_BUT, values)


# ---- texts


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_a_text_that_was_not_changed_has_the_same_octets(
    text: str, end: str, has_bom: bool
) -> None:
    body = (("\ufeff" if has_bom else "") + text.replace("\r", "").replace("\n", end)).encode()
    shown = text_of(body)
    assert shown.is_editable
    assert shown.octets(shown.text) == body


def test_line_ends_of_several_kinds_become_one_and_it_is_said() -> None:
    shown = text_of(b"a\r\nb\nc\r")
    assert (shown.text, shown.octets(shown.text)) == ("a\nb\nc\n", b"a\nb\nc\n")
    assert "all end with LF" in shown.note


@pytest.mark.parametrize("body", [b"\xff\xfea\0", b"a" * (MAX_FILE + 1)])
def test_what_would_not_come_back_as_it_was_is_not_edited(body: bytes) -> None:
    shown = text_of(body)
    assert not shown.is_editable
    assert "cannot be changed here" in shown.note


def test_hidden_characters_are_named() -> None:
    assert [*hidden_in("a\u202eb\U000e0041\tc\n\x00")] == [
        (1, "U+202E"),
        (3, "U+E0041"),
        (7, "U+0000"),
    ]
    assert hidden_in("plain\tand\n") == []


# ---- ai.txt


AI_TXT = b"User-agent: *\n  Path: / html\n    Element: q\n      Disallow: Train\n"


@pytest.mark.requirement("IDE-5")
def test_ai_txt_is_shown_as_xml_and_the_xml_as_text() -> None:
    view = view_of(state({"/ai.txt": AI_TXT}))
    assert "<" in view.other_form
    assert not view.is_other_text
    back = view_of(state({"/ai.txt": view.other_form.encode()}))
    assert back.is_other_text
    assert view_of(state({"/ai.txt": back.other_form.encode()})).other_form == view.other_form


def test_no_other_form_says_why() -> None:
    assert (
        view_of(state({})).form_notes == ("there is no ai.txt: status 404",)
        or "no ai.txt" in view_of(state({})).form_notes[0]
    )
    assert view_of(state({"/ai.txt": b"<no>"})).form_notes != ()


def test_the_prompt_is_of_the_action_and_the_sample_page() -> None:
    site = state(
        {"/ai.txt": AI_TXT}, {"/a.html": b"<q>x</q>"}, page=ORIGIN + "/a.html", action="Train"
    )
    assert '"q"' in view_of(site).prompt
    assert '"q"' not in view_of(site.with_choices(action="Cite")).prompt


# ---- input


@given(st.dictionaries(st.sampled_from(Choices._fields), st.text(max_size=50)))
def test_nothing_that_is_chosen_raises(choices: dict[str, str]) -> None:
    site = state(
        {"/robots.txt": b"User-agent: *\nDisallow: /a\n", "/ai.txt": AI_TXT},
        {"/a.html": b"<q>x</q>"},
    ).with_choices(**choices)
    _everything(site)


@example("/automation-preferences.txt", b"\0")  # by itself, the file decides nothing about access
@given(
    st.sampled_from(
        [
            "/robots.txt",
            "/ai.txt",
            "/automation-preferences.txt",
            "/.well-known/tdmrep.json",
            "/a.html",
        ]
    ),
    st.binary(),
)
def test_nothing_that_is_written_raises(path: str, body: bytes) -> None:
    site = state(
        {"/robots.txt": b"", "/ai.txt": AI_TXT},
        {"/a.html": b"<q>x</q>"},
        page=ORIGIN + "/a.html",
        urls="/\n/a.html",
    )
    _everything(site.with_file(ORIGIN + path, body))


def _everything(site: State) -> None:
    view = view_of(site)
    markup.files(site, view, ROBOTS, [])
    _forms(site)
    markup.answers(site, view)
    markup.elements(site, view)
    markup.other_form(view)
    markup.prompt(view)
    for found in view.problems.values():
        markup.problems(found, is_editable=True)


def _forms(site: State) -> str:
    """Return all fields about the choices."""
    forms = (
        *(markup.crawlers, markup.other_crawler, markup.form, markup.crawl_form),
        *(markup.page_form, markup.expectations_form),
    )
    return "".join(form(site) for form in forms)


def test_choices_are_cut() -> None:
    assert len(state({}, agent="a" * (MAX_FIELD + 1)).choices.agent) == MAX_FIELD


HOSTILE = '"><script>alert(1)</script>\u202e'


@pytest.mark.requirement("SEC-4")
def test_what_a_site_says_is_text_in_every_part_of_the_page() -> None:
    files = {
        "/robots.txt": (
            f"User-agent: {HOSTILE}\nDisallow: /a{HOSTILE}\nDisalow: {HOSTILE}\n"
        ).encode(),
        "/ai.txt": (
            f"User-agent: *\n  Path: / html\n    Element: {HOSTILE}\n      Disallow: Train\n"
        ).encode(),
    }
    page = f'<p title="{HOSTILE}">{HOSTILE}</p>'.encode()
    choices = {
        "agent": "x",
        "uses": HOSTILE,
        "purposes": HOSTILE,
        "urls": f"/a{HOSTILE}",
        "lang": HOSTILE,
        "expectations": f"{HOSTILE}\neverybody may fetch /a{HOSTILE}\neverybody may fetch /a",
    }
    site = state(files, {f"/{HOSTILE}": page}, page=f"{ORIGIN}/{HOSTILE}").with_choices(**choices)
    view = view_of(site)
    parts = [
        markup.files(site, view, ROBOTS, [ROBOTS]),
        _forms(site),
        markup.answers(site, view),
        markup.elements(site, view),
        markup.other_form(view),
        markup.prompt(view),
        markup.expectations(site, check_sentences(site)),
        *(hover(site, ROBOTS, Position(line, 13), site.problems()[ROBOTS]) for line in range(3)),
        *(
            markup.help_at_line(line, view.problems[ROBOTS], "", is_editable=True)
            for line in (2, 3)
        ),
        *(markup.problems(found, is_editable=True) for found in view.problems.values()),
    ]
    assert [part for part in parts if "<script" in part or "\u202e" in part] == []


# ---- the demonstration


def test_the_demonstration_site_has_something_of_everything() -> None:
    desk = desk_of(None)
    view = view_of(desk.state())
    assert [answer["verdict"] for answer in view.answers] == ["allow", "allow", "deny", "allow"]
    assert view.preview is not None
    assert [part.verdict for part in view.preview.parts] == ["deny", "", "deny", ""]
    assert view.other_form.startswith("<?xml")
    assert DEMO + "/press.txt" in desk.state().files
    assert json.dumps(view.answers)
    with pytest.raises(PolicyError, match="no folder"):
        desk.save(desk.state(), DEMO + "/robots.txt")
