"""Explanations of the files of a site: sentences, and the lines that decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.authoring.explaining import (
    MAX_CONDITIONS,
    ExplainedAnswer,
    Explanation,
    explain,
    spoken_of,
)
from comity.authoring.sites import load
from comity.authoring.source import SiteSource, SourceFile
from comity.policies import Agent, Fetched, PolicyError, Site
from comity.policies.vocabulary.table import Vocabulary
from comity.policies.vocabulary.use_classes import CLASSES

ORIGIN = "https://example.com"
COMITY = Agent("comitybot")


def source_of(files: dict[str, str | bytes | Fetched], **pages: str) -> SiteSource:
    """Return a site with these files and pages. Their paths are their names."""
    fetched = {
        path: Fetched(status=200, body=file.encode() if isinstance(file, str) else file)
        if not isinstance(file, Fetched)
        else file
        for path, file in files.items()
    }
    site = Site.from_files(ORIGIN, dict(fetched))
    had = tuple(SourceFile(path.lstrip("/"), ORIGIN + path, file) for path, file in fetched.items())
    bodies = (
        (f"{name}.html", Fetched(status=200, body=body.encode())) for name, body in pages.items()
    )
    return SiteSource(
        ORIGIN,
        site,
        had,
        tuple(SourceFile(name, f"{ORIGIN}/{name}", page) for name, page in bodies),
    )


def robots(*lines: str) -> SiteSource:
    return source_of({"/robots.txt": "".join(f"{line}\n" for line in lines)})


def answers(explanation: Explanation, *agents: str) -> dict[str, ExplainedAnswer]:
    """Return the answers for the group of exactly these agents, by topic."""
    [group] = [group for group in explanation.groups if set(group.agents) == set(agents)]
    return {answer.topic: answer for answer in group.answers}


def sentences(explanation: Explanation, *agents: str) -> dict[str, str]:
    return {topic: answer.sentence for topic, answer in answers(explanation, *agents).items()}


@pytest.mark.requirement("IDE-3")
def test_every_crawler_that_is_named_is_told_of_its_own() -> None:
    explanation = explain(
        robots(
            "User-agent: *",
            "Disallow: /private",
            "Disallow: /*.pdf$",
            "Allow: /private/open",
            "",
            "User-agent: gptbot",
            "User-agent: CCBot",
            "Disallow: /",
            "",
            "User-agent: otherbot",
            "Disallow: /",
            "Allow: /blog/",
        ),
        COMITY,
    )
    assert sentences(explanation)["access"] == (
        "Everybody else may fetch everything with 2 exceptions:"
        " `Disallow: /private` (robots.txt:2), `Disallow: /*.pdf$` (robots.txt:3)."
    )
    assert (
        sentences(explanation, "GPTBot", "CCBot")["access"]
        == "CCBot and GPTBot may fetch nothing (robots.txt:8)."
    )
    assert sentences(explanation, "otherbot")["access"] == (
        "otherbot may fetch nothing with one exception: `Allow: /blog/` (robots.txt:12);"
        " the rest is refused (robots.txt:11)."
    )


def test_what_decides_stands_in_the_answers_with_its_urls() -> None:
    access = answers(
        explain(robots("User-agent: *", "Disallow: /a", "Disallow: /b", "Allow: /b/c"), COMITY)
    )["access"]
    assert access.verdict == "allow"
    assert [
        (exception.verdict, exception.citations[0].line, exception.urls)
        for exception in access.exceptions
    ] == [
        ("deny", 2, (f"{ORIGIN}/a",)),
        ("deny", 3, (f"{ORIGIN}/b",)),
    ]
    citation = access.exceptions[0].citations[0]
    assert (citation.file, citation.line, citation.text, citation.rule) == (
        "robots.txt",
        2,
        "Disallow: /a",
        "robots.disallow",
    )
    assert citation.spec == "RFC 9309 section-2.2.2"


def test_who_is_treated_as_everybody_is_said_so() -> None:
    explanation = explain(
        robots("User-agent: *", "Disallow: /a", "", "User-agent: bingbot", "Disallow:"),
        COMITY,
        agents=["Googlebot", "bingbot"],
    )
    assert explanation.as_everybody == ("Googlebot",)
    assert sentences(explanation, "bingbot")["access"].startswith("bingbot may fetch everything")


def test_nobody_is_told_of_a_refusal_of_everybody() -> None:
    told = sentences(
        explain(
            robots("User-agent: *", "Content-Signal: search=yes, ai-train=no", "Disallow: /"),
            COMITY,
        )
    )
    assert told["access"] == "Nobody may fetch anything (robots.txt:3)."
    assert told["training"] == "Nobody may train AI with pages (robots.txt:2)."
    told = sentences(
        explain(robots("User-agent: *", "Content-Signal: search=yes, ai-train=no"), COMITY)
    )
    assert told["access"] == "Everybody may fetch everything: no line refuses a sample URL."
    assert told["search"] == "Everybody may show pages as results of a search (robots.txt:2)."


def test_what_nobody_speaks_of_is_one_sentence() -> None:
    [*_, silent] = explain(robots("User-agent: *", "Disallow:"), COMITY).groups[0].answers
    assert silent.verdict == "silent"
    assert silent.topic == ", ".join(class_.name for class_ in CLASSES)
    assert silent.sentence.startswith("Nothing says whether anybody may put pages into an index; ")


def test_a_path_for_which_something_else_is_said_is_an_exception() -> None:
    told = answers(
        explain(
            robots(
                "User-agent: *",
                "Content-Usage: train-ai=n",
                "Content-Usage: /open/ train-ai=y",
                "Disallow:",
            ),
            COMITY,
        )
    )
    assert told["training"].sentence == (
        "Nobody may train AI with pages (robots.txt:2); permitted by `Content-Usage: /open/ "
        "train-ai=y` (robots.txt:3)."
    )
    assert told["training"].exceptions[0].urls == (f"{ORIGIN}/open/",)


def test_a_page_that_says_something_else_is_an_exception() -> None:
    source = source_of(
        {"/robots.txt": "User-agent: *\nContent-Signal: ai-train=yes\nDisallow:\n"},
        shown='<meta name="robots" content="max-snippet:50">',
        hidden='<meta name="robots" content="noai, noarchive">',
    )
    told = sentences(explain(source, COMITY))
    assert told["training"] == (
        "Everybody may train AI with pages (robots.txt:2); refused by `noai` (hidden.html:1 "
        "(meta robots))."
    )
    assert "hidden.html:1" in told["archive"]
    assert "at most 50 characters of them (shown.html:1" in told["snippets"]


def test_limits_of_permissions_are_told() -> None:
    told = sentences(
        explain(
            robots(
                "ACAP-crawler: *",
                "ACAP-allow-present-snippet: / max-length=30-words time-limit=until-recrawled",
            ),
            COMITY,
        )
    )
    assert told["snippets"] == (
        "Everybody may show snippets of pages, until they are fetched again, at most 30 words of "
        "them (robots.txt:2)."
    )


def test_rates_are_told_with_the_lines_that_ask_for_them() -> None:
    explanation = explain(
        robots(
            "User-agent: *",
            "Crawl-delay: 5",
            "Crawl-delay: 2",
            "Disallow:",
            "",
            "User-agent: slowbot",
            "Request-rate: 1/60 0800-1230",
        ),
        COMITY,
    )
    assert (
        sentences(explanation)["rates"]
        == "Everybody else has to keep this pace: 5 s between requests (robots.txt:2)."
    )
    assert sentences(explanation, "slowbot")["rates"] == (
        "slowbot has to keep this pace: 1 request in 60 s from 08:00 to 12:30 UTC (robots.txt:7)."
    )
    preferences = source_of(
        {
            "/automation-preferences.txt": (
                "scope: /\nallowed-methods: GET\nrequest-limit: 6/minute\nconcurrent-limit: 2\n"
            )
        }
    )
    assert sentences(explain(preferences, COMITY))["rates"] == (
        "Everybody has to keep this pace: 6 requests in 60 s, 2 at a time"
        " (automation-preferences.txt:3, automation-preferences.txt:4)."
    )


@pytest.mark.requirement("AUTX-14", "WHY-1")
def test_a_limit_that_cannot_be_read_is_told_with_the_pace_that_applies_and_the_right_way() -> None:
    preferences = source_of(
        {
            "/automation-preferences.txt": (
                "scope: /\nallowed-methods: GET\nrequest-limit: 1/5s\nconcurrent-limit: two\n"
            )
        }
    )
    assert sentences(explain(preferences, COMITY))["rates"] == (
        "Everybody has to keep this pace: 1 request in 300 s, as `request-limit: 1/5s` cannot be "
        "read (write N/second, N/minute, N/hour or N/day, here `12/minute`), 1 at a time, as "
        "`concurrent-limit: two` cannot be read (write a whole number, such as `1`) "
        "(automation-preferences.txt:3, automation-preferences.txt:4)."
    )


def preferences(*lines: str) -> SiteSource:
    return source_of({"/automation-preferences.txt": "".join(f"{line}\n" for line in lines)})


PREFERENCES = "automation-preferences.txt"


@pytest.mark.requirement("IDE-3")
def test_conditions_on_requests_are_told_with_their_paths_and_values() -> None:
    explanation = explain(
        preferences(
            "scope: /",
            "allowed-methods: GET, HEAD",
            "",
            "scope: /api/",
            "allowed-methods: GET",
            "allowed-purposes: research",
        ),
        COMITY,
    )
    access = answers(explanation)["access"]
    assert (access.verdict, access.sentence) == (
        "allow",
        f"Everybody may fetch everything ({PREFERENCES}:2), under conditions by "
        f"`allowed-purposes: research` ({PREFERENCES}:6).",
    )
    told = [answer for answer in explanation.groups[0].answers if answer.topic == "conditions"]
    assert [answer.sentence for answer in told] == [
        f"Everywhere, only GET and HEAD requests ({PREFERENCES}:2), no requests with tools, no "
        f"API requests, no requests by scripts ({PREFERENCES}:1).",
        f"Under /api/, only requests for research ({PREFERENCES}:6), only GET requests "
        f"({PREFERENCES}:5), no requests with tools, no API requests, no requests by scripts "
        f"({PREFERENCES}:4).",
    ]
    assert [answer.verdict for answer in told] == ["limit", "limit"]
    assert [citation.line for citation in told[1].citations] == [6, 5, 4, 4, 4]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("allowed-purposes: search, research", "only requests for research or search"),
        ("allowed-methods: POST, GET", "only GET and POST requests"),
        (
            "allowed-automations: webdriver, headless",
            "with tools only requests by headless or webdriver",
        ),
        ("api-automation: with-key-only", "API requests only with a key"),
        ("allow-xhr: read-only", "requests by scripts only with GET"),
        ("disallow-fetch-from: /a/, /b", "no requests by scripts of /a/ or /b"),
        ("require-human-initiated-session: true", "only requests in a session that a person began"),
        ("session-validation: cookie-based", "in a session only requests with a cookie"),
        ("session-ttl: 2h", "in a session only requests until 7200 s after it began"),
        ("session-ttl: soon", "no requests in a session"),
        ("request-limit: 6/minute", "at most 6 requests in 60 s"),
        ("concurrent-limit: 2", "at most 2 requests at a time"),
    ],
)
@pytest.mark.parametrize("scope", ["/", "/api/"])
def test_every_directive_is_told_in_words(scope: str, line: str, words: str) -> None:
    explanation = explain(
        preferences(f"scope: {scope}", "allowed-methods: GET, HEAD, POST", line), COMITY
    )
    [told] = [
        answer.sentence for answer in explanation.groups[0].answers if answer.topic == "conditions"
    ]
    assert told.startswith("Everywhere, " if scope == "/" else "Under /api/, ")
    assert f"{words} ({PREFERENCES}:3)" in told


@pytest.mark.parametrize(
    ("lines", "verdict", "sentence"),
    [
        (
            ["allowed-purposes: research", "allowed-methods: GET"],
            "limit",
            "Everybody may fetch everything under conditions ({}:2).",
        ),
        (
            ["allowed-methods: POST"],
            "limit",
            "Everybody may fetch everything under conditions ({}:2).",
        ),
        (
            ["require-human-initiated-session: true", "allowed-methods: GET"],
            "limit",
            "under conditions ({}:2).",
        ),
        (
            ["allowed-purposes:", "allowed-methods: GET"],
            "deny",
            "Nobody may fetch anything ({}:2).",
        ),
        (["allowed-methods:"], "deny", "Nobody may fetch anything ({}:2)."),
        (
            ["request-limit: 0/day", "allowed-methods: GET"],
            "deny",
            "Nobody may fetch anything ({}:2).",
        ),
        (["api-automation: open"], "deny", "Nobody may fetch anything ({}:1)."),
    ],
)
def test_a_condition_that_some_request_meets_is_no_refusal(
    lines: list[str], verdict: str, sentence: str
) -> None:
    access = answers(explain(preferences("scope: /", *lines), COMITY))["access"]
    assert access.verdict == verdict
    assert access.sentence.endswith(sentence.format(PREFERENCES))


def test_conditions_are_those_of_the_groups_that_speak_to_the_crawler() -> None:
    source = preferences(
        "scope: /a/", "allowed-methods: GET", "allowed-purposes: search", "",
        "scope: /a/", "user-agent: onebot", "allowed-methods: GET", "allowed-purposes: research", "",
        "scope: /b/", "host: other.example", "allowed-methods: GET", "allowed-purposes: ads",
    )  # fmt: skip
    explanation = explain(source, COMITY)
    told = {
        group.agents: [
            answer.sentence.partition(" (")[0]
            for answer in group.answers
            if answer.topic == "conditions"
        ]
        for group in explanation.groups
    }
    assert told == {
        (): ["Under /a/, only requests for search"],
        ("onebot",): ["Under /a/, only requests for research"],
    }


def test_what_a_file_has_between_braces_is_told_as_it_stands() -> None:
    explanation = explain(
        preferences(
            "scope: /{subject}/", "allowed-methods: GET", "allowed-purposes: {subject}, `a`"
        ),
        COMITY,
    )
    [told] = [
        answer.sentence for answer in explanation.groups[0].answers if answer.topic == "conditions"
    ]
    assert told.startswith("Under /%7Bsubject%7D/, only requests for `'a'` or `{subject}` (")
    refused = sentences(explain(robots("User-agent: *", "Disallow: /{subject}"), COMITY))["access"]
    assert refused == (
        "Everybody may fetch everything with one exception: `Disallow: /{subject}` (robots.txt:2)."
    )


def test_conditions_beside_a_refusal_of_robots_txt_lift_nothing() -> None:
    source = source_of(
        {
            "/robots.txt": "User-agent: *\nDisallow: /\n",
            "/automation-preferences.txt": (
                "scope: /\nallowed-methods: GET\nallowed-purposes: research\n"
            ),
        }
    )
    assert answers(explain(source, COMITY))["access"].verdict == "deny"


def test_conditions_are_told_as_far_as_there_is_room() -> None:
    groups = "".join(
        f"scope: /{number}/\nallowed-methods: GET\n\n" for number in range(MAX_CONDITIONS + 5)
    )
    explanation = explain(source_of({"/automation-preferences.txt": groups}), COMITY, urls=["/"])
    assert (
        sum(answer.topic == "conditions" for answer in explanation.groups[0].answers)
        == MAX_CONDITIONS
    )
    scopes = "".join(f"scope: /{number}/\n" for number in range(30))
    told = sentences(
        explain(
            source_of({"/automation-preferences.txt": f"{scopes}allowed-methods: GET\n"}),
            COMITY,
            urls=["/"],
        )
    )
    assert told["conditions"].startswith(
        "Under /0/, /1/, /2/, /3/, /4/ and 25 more, only GET requests ("
    )


def test_parts_of_pages_are_told() -> None:
    ai_txt = "User-agent: *\n  Path: / html\n    Element: img.logo\n      Disallow: Train Index\n"
    told = sentences(explain(source_of({"/ai.txt": ai_txt}), COMITY))
    assert told["parts"] == "Nobody may use parts of pages: `img.logo` for Index, Train (ai.txt:4)."


def test_actions_that_a_site_asks_for_are_told() -> None:
    told = sentences(
        explain(robots("ACAP-crawler: *", "ACAP-request-take-down: /old.html"), COMITY)
    )
    assert (
        told["requests"]
        == f"Everybody is asked for: take-down of {ORIGIN}/old.html (robots.txt:2)."
    )


@pytest.mark.requirement("RFC-7")
def test_policies_that_cannot_be_had_are_said_so() -> None:
    explanation = explain(source_of({"/robots.txt": Fetched(status=503)}), COMITY)
    assert explanation.files == (("robots.txt", "cannot be fetched: HTTP status 503"),)
    access = answers(explanation)["access"]
    assert access.verdict == "deny"
    assert access.sentence.startswith(
        "Nobody may fetch anything, as robots.txt cannot be fetched: "
    )


@pytest.mark.requirement("MEET-8")
def test_uses_under_a_file_that_cannot_be_fetched_are_told() -> None:
    explanation = explain(
        source_of({"/robots.txt": "", "/.well-known/tdmrep.json": Fetched(status=503)}), COMITY
    )
    mining = answers(explanation)["mining"]
    assert mining.verdict == "deny"
    assert mining.sentence == (
        "Nobody may mine pages for text and data as long as .well-known/tdmrep.json cannot be "
        "fetched: HTTP status 503."
    )
    assert mining.citations[0].rule == "tdmrep.unreachable"
    assert "access" in answers(explanation)
    assert answers(explanation)["access"].verdict == "allow"


@pytest.mark.parametrize(
    ("fetched", "outcome"),
    [
        (Fetched(status=200, body=b"User-agent: *\n"), "read"),
        (
            Fetched(status=200, body=b"User-agent: *\n", oversized=True),
            "read up to the size limit",
        ),
        (Fetched(status=410), "states nothing: HTTP status 410"),
        (
            Fetched(status=200, body=b"<!doctype html>"),
            "states nothing: HTTP status 200, an HTML page",
        ),
        (
            Fetched(status=0, error="no answer within 15 seconds"),
            "cannot be fetched: no answer within 15 seconds",
        ),
    ],
)
def test_what_came_back_for_a_file_is_told(fetched: Fetched, outcome: str) -> None:
    assert explain(source_of({"/robots.txt": fetched}), COMITY).files == (("robots.txt", outcome),)


def test_a_crawler_with_a_name_of_several_words_is_asked_for_by_its_user_agent() -> None:
    explanation = explain(
        robots(
            "ACAP-crawler: My Big Crawler",
            "ACAP-disallow-index: /",
            "ACAP-crawler: *",
            "ACAP-allow-index: /",
        ),
        COMITY,
    )
    assert (
        sentences(explanation, "my big crawler")["index"]
        == "my big crawler may not put pages into an index (robots.txt:2)."
    )
    assert (
        sentences(explanation)["index"]
        == "Everybody else may put pages into an index (robots.txt:4)."
    )


def test_a_name_that_is_taken_is_not_everybody() -> None:
    explanation = explain(robots("User-agent: any-other-crawler", "Disallow: /"), COMITY)
    assert sentences(explanation)["access"].startswith("Everybody else may fetch everything")
    assert (
        sentences(explanation, "any-other-crawler")["access"]
        == "any-other-crawler may fetch nothing (robots.txt:2)."
    )


def test_more_crawlers_than_are_explained_are_counted() -> None:
    explanation = explain(
        robots(*(f"User-agent: bot{number}" for number in range(300)), "Disallow: /"), COMITY
    )
    assert explanation.notes == (
        "the files name 300 crawlers: only 100 are explained. Ask about others by name",
    )
    assert sum(len(group.agents) for group in explanation.groups) == 100


# ---- samples


@pytest.mark.parametrize(
    "path", ["/a", "/any", "/any-other-page", "/*-other", "/A", "/Any-Other-Page", "*/any"]
)
def test_what_is_said_of_one_path_is_not_said_of_everything(path: str) -> None:
    explanation = explain(robots("User-agent: *", f"Disallow: {path}"), COMITY)
    assert sentences(explanation)["access"].startswith("Everybody may fetch everything")


@pytest.mark.parametrize("path", ["/", "/*", "*"])
def test_what_is_said_of_everything_is_said_so(path: str) -> None:
    explanation = explain(robots("User-agent: *", f"Disallow: {path}", "Allow: /a"), COMITY)
    assert sentences(explanation)["access"].startswith(
        "Nobody may fetch anything with one exception: `Allow: /a`"
    )


def test_where_lines_begin_with_every_letter_a_path_is_left_all_the_same() -> None:
    letters = (chr(number) for number in range(ord("a"), ord("z") + 1))
    explanation = explain(
        robots("User-agent: *", *(f"Disallow: /{letter}" for letter in letters)), COMITY
    )
    assert sentences(explanation)["access"].startswith(
        "Everybody may fetch everything with 26 exceptions: `Disallow: /a`"
    )


def test_samples_are_the_paths_of_which_files_speak() -> None:
    source = source_of(
        {
            "/robots.txt": "User-agent: *\nDisallow: /a/*.pdf$ # not /this\nContent-Usage: /b?x=1 train-ai=n\nAllow: *.gif\n"
            "Sitemap: https://example.com/map.xml\n",
            "/.well-known/tdmrep.json": '[{"location": "/c/*", "tdm-reservation": 1}]',
            "/license.xml": (
                '<rsl xmlns="https://rslstandard.org/rsl"><content url="/d/"><license/>'
                "</content></rsl>"
            ),
            "/ai.txt": "User-agent: *\n  Path: /e/ html\n",
        }
    )
    assert spoken_of(source) == ["/", "/a/any.pdf", "/b?x=1", "/c/any", "/d/", "/e/"]


def test_sample_urls_can_be_given() -> None:
    source = robots("User-agent: *", "Disallow: /a", "Disallow: /b")
    explanation = explain(source, COMITY, urls=["/b/c", f"{ORIGIN}/d"])
    assert explanation.samples == (f"{ORIGIN}/b/c", f"{ORIGIN}/d")
    assert sentences(explanation)["access"] == (
        "Everybody may fetch everything with one exception: `Disallow: /b` (robots.txt:3)."
    )
    with pytest.raises(
        PolicyError, match=r"`https://example.org/` does not belong to https://example.com"
    ):
        explain(source, COMITY, urls=["https://example.org/"])


def test_the_classes_are_uses_that_the_table_has() -> None:
    assert [class_.use for class_ in CLASSES if class_.use not in Vocabulary.shipped().uses] == []


@given(
    st.lists(
        st.sampled_from(
            [
                *"/*$#:",
                "User-agent: *",
                "Disallow: ",
                "\n",
                "Crawl-delay: 1",
                "Usage: ai=n",
                "\x00",
                "é",
                "{",
                "<",
            ]
        )
    )
)
def test_any_file_has_a_meaning(pieces: list[str]) -> None:
    text = "".join(pieces).encode()
    explanation = explain(source_of({"/robots.txt": text, "/ai.txt": text}), COMITY)
    assert answers(explanation)["access"].sentence
    assert "{subject}" not in "".join(
        answer.sentence for group in explanation.groups for answer in group.answers
    )


def test_a_folder_is_explained_by_its_paths(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /\n", "utf-8")
    told = sentences(explain(load(str(tmp_path)), COMITY))
    assert told["access"] == f"Nobody may fetch anything ({tmp_path / 'robots.txt'}:2)."
