"""The files of the wishes, read back: they mean the wish, and nothing else.

A table has the stated uses of each form. The decisions about all uses, three pages, an image, known
and unknown crawlers, and several purposes are compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.authoring.lint import lint_site
from comity.authoring.source import SiteSource, SourceFile
from comity.authoring.wishes import WISHES
from comity.authoring.wishes.files import write_files
from comity.authoring.wishes.readers import FORMATS_OF_WISHES, SOURCES, named_crawlers, readers_of
from comity.authoring.wishes.wish import (
    ELEMENT,
    FIELD,
    FORMATS,
    TRAINING_CRAWLERS,
    Form,
    Wish,
    request_limit,
)
from comity.policies import Agent, Fetched, Page, PolicyError, Site, Verdict
from comity.policies.answers.rates import RequestRate
from comity.policies.answers.rule import Severity
from comity.policies.vocabulary.known_crawlers import known
from comity.policies.vocabulary.table import ANY, Vocabulary
from tests.selection import examples, one_in

ORIGIN = "https://example.com"
IMAGE = "/pictures/lamp.jpg"
PATHS = ("/", "/a/page.html", "/api/items", IMAGE)
PURPOSES = (None, "search", "research", "train")
NAMED = ("GPTBot", "examplebot")  # the crawlers of wishes about crawlers
# Known crawlers of training, search and archives, and unknown ones.
TOKENS = ("somebot", "examplebot2", "Googlebot", "archive", *NAMED, "ClaudeBot")
BY_NAME = {wish.name: wish for wish in WISHES}

TRAIN = {"train", "train-ai", "ai-train", "train-genai"}
# Training is a part of each, so a refusal of training refuses them as a whole.
TRAINING = TRAIN | {"ai", "ai-all", "genai", "tdm", "all", "bots"}
# `ai-output` of AIPREF needs training too, but only ai.txt and its sibling refuse it for that.
TRAINING_TEXT = TRAINING | {"ai-output"}
READING = {"analyze", "describe", "evaluate", "extract", "transcribe", "translate"}
INPUT = {"ai-input", "ai-use", "inference", "rephrase", "summarize"}
QUOTING = {"cite", "clip", "manipulate", "return"}
AI_INDEX = {"ai-index"}
NO_AI = TRAINING_TEXT | READING | INPUT | QUOTING | AI_INDEX
SEARCH = {"search", "index"}
COPIES = {"present-currentcopy", "present-oldcopy", "present-original"}
SNIPPETS = {"present-snippet", "present-oldsnippet"}
THUMBNAILS = {"present-thumbnail", "present-oldthumbnail"}
SHOWN = {"present", "present-link"} | COPIES | SNIPPETS | THUMBNAILS
ACAP_USES = SHOWN | {"index", "follow", "preserve"}
EVERY_USE = NO_AI | SEARCH | SHOWN | {"follow", "preserve"}
# Uses that a permission of every use by the word of a format does not cover.
MINING = EVERY_USE - QUOTING - SHOWN - {"follow", "preserve"}
NO_SEARCH = SEARCH | AI_INDEX | {"tdm", "all", "bots"}

Stated = tuple[set[str], set[str]]  # the refused uses, and the permitted ones
NOTHING: Stated = (set(), set())
ACAP_OTHER: Stated = (NO_AI | {"search"}, ACAP_USES)
ROBOTS_META_SNIPPETS = {"ai", "ai-all", "genai", "ai-output", "clip", "return", "present"}
ABOUT_PAGES: dict[tuple[str, str], Stated] = {
    ("no-training", "robots.txt"): NOTHING,
    ("no-training", "ACAP"): ACAP_OTHER,
    ("no-training", "usage preference strings"): (NO_AI, set()),
    ("no-training", "Content-Usage"): (TRAINING, set()),
    ("no-training", "Content Signals"): (TRAINING, set()),
    ("no-training", "training rules"): (TRAINING, set()),
    ("no-training", "trust.txt"): (TRAINING, set()),
    ("no-training", "ai.txt"): (TRAINING_TEXT, set()),
    ("no-training", "ai.txt of Spawning"): (TRAINING_TEXT, set()),
    ("no-training", "robots meta"): (NO_AI, set()),
    ("no-training", "TDMRep"): (NO_AI, set()),
    ("no-training", "RSL"): (TRAINING, set()),
    ("no-training-but-search", "robots.txt"): NOTHING,
    ("no-training-but-search", "ACAP"): ACAP_OTHER,
    ("no-training-but-search", "automation-preferences.txt"): NOTHING,
    ("no-training-but-search", "usage preference strings"): (NO_AI, SEARCH),
    ("no-training-but-search", "Content-Usage"): (TRAINING, SEARCH),
    ("no-training-but-search", "Content Signals"): (TRAINING, SEARCH),
    ("no-training-but-search", "ai.txt"): (TRAINING_TEXT, {"index"}),
    ("no-training-but-search", "RSL"): (NO_AI, SEARCH),
    ("no-search-but-training", "ACAP"): (SEARCH | AI_INDEX, set()),
    ("no-search-but-training", "usage preference strings"): (
        NO_SEARCH,
        TRAIN | {"ai", "ai-all", "genai", "ai-output"} | READING | INPUT,
    ),
    ("no-search-but-training", "Content-Usage"): (NO_SEARCH, TRAIN),
    ("no-search-but-training", "Content Signals"): (NO_SEARCH, TRAIN),
    ("no-search-but-training", "ai.txt"): (NO_SEARCH | {"ai", "ai-all"}, set()),
    ("no-search-but-training", "robots meta"): (SEARCH | AI_INDEX | SHOWN, set()),
    ("no-search-but-training", "RSL"): ((NO_AI - TRAIN) | SEARCH, TRAIN),
    ("archives-but-no-training", "robots.txt"): NOTHING,
    ("archives-but-no-training", "ACAP"): ACAP_OTHER,
    ("archives-but-no-training", "Content-Usage"): (TRAINING, set()),
    ("archives-but-no-training", "Content Signals"): (TRAINING, set()),
    ("no-snippets", "ACAP"): (SNIPPETS, set()),
    ("no-snippets", "robots meta"): (SNIPPETS | ROBOTS_META_SNIPPETS | INPUT, set()),
    ("short-snippets", "ACAP"): (set(), SNIPPETS),
    ("short-snippets", "robots meta"): NOTHING,
    ("limited-copies", "ACAP"): (set(), {"preserve"}),
    ("text-but-no-images", "robots.txt"): NOTHING,
    ("text-but-no-images", "ACAP"): NOTHING,
    ("text-but-no-images", "automation-preferences.txt"): NOTHING,
    ("text-but-no-images", "ai.txt"): NOTHING,
    ("text-but-no-images", "ai.txt of Spawning"): NOTHING,
    ("text-but-no-images", "robots meta"): (THUMBNAILS, set()),
    ("slower", "robots.txt"): NOTHING,
    ("slower", "automation-preferences.txt"): NOTHING,
    ("nobody-but", "robots.txt"): NOTHING,
    ("nobody-but", "ACAP"): (EVERY_USE, set()),
    ("nobody-but", "automation-preferences.txt"): NOTHING,
    ("everybody-but", "robots.txt"): NOTHING,
    ("everybody-but", "ACAP"): NOTHING,
    ("everybody-but", "automation-preferences.txt"): NOTHING,
    ("api-for-research", "ACAP"): NOTHING,
    ("api-for-research", "automation-preferences.txt"): NOTHING,
    ("everything", "robots.txt"): NOTHING,
    ("everything", "ACAP"): (set(), ACAP_USES),
    ("everything", "usage preference strings"): (set(), MINING),
    ("everything", "Content-Usage"): (set(), TRAIN | SEARCH | (INPUT - {"inference"})),
    ("everything", "Content Signals"): (set(), TRAIN | SEARCH | {"ai-input"}),
    ("everything", "training rules"): (set(), TRAIN),
    ("everything", "trust.txt"): (set(), TRAIN),
    ("everything", "TDMRep"): (set(), {"tdm", "all", "bots"}),
    ("everything", "RSL"): (set(), MINING),
}
# The stated uses of an image, where they differ from those of a page.
ABOUT_IMAGES: dict[tuple[str, str], Stated] = {
    ("text-but-no-images", "ai.txt of Spawning"): (TRAINING_TEXT, set()),
    ("text-but-no-images", "robots meta"): (EVERY_USE - {"follow", "preserve"}, set()),
}
# The stated uses of the crawlers that the wish names.
ABOUT_NAMED: dict[tuple[str, str], Stated] = {
    ("nobody-but", "ACAP"): (set(), ACAP_USES),
    ("everybody-but", "ACAP"): (EVERY_USE, set()),
}
# The limits of a permission, by use.
SHOWN_CHARACTERS = {"max_chars": 180}
LIMITS: dict[tuple[str, str], Mapping[str, Mapping[str, Any]]] = {
    ("short-snippets", "ACAP"): {use: {"max_words": 30} for use in SNIPPETS},
}
FORMS = [
    pytest.param(wish, form, id=f"{wish.name}-{form.format}-{form.artefacts[0].location}-{number}")
    for wish in WISHES
    for number, form in enumerate(wish.forms)
]
NOW = datetime(2026, 11, 28, tzinfo=UTC)


class Published:
    """A site with texts at their places, and nothing else."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        """`texts`: pairs of a location (path, FIELD or ELEMENT) and a text."""
        self.files = {path: text.encode() for path, text in texts if path.startswith("/")}
        self.site = Site.from_files(ORIGIN, self.files)
        fields = [text.strip().partition(": ") for location, text in texts if location == FIELD]
        self._fields = [(name.encode(), value.encode()) for name, _, value in fields]
        head = "".join(text for location, text in texts if location == ELEMENT)
        self.body = (
            f"<!DOCTYPE html><html><head>{head}<title>A page</title></head>"
            '<body><p>Text</p><img src="a.jpg"></body></html>'
        ).encode()

    def page(self, token: str, path: str = PATHS[1]) -> Page:
        is_image = path == IMAGE
        return self.site.page(
            Agent(token),
            ORIGIN + path,
            headers=[(b"Content-Type", b"image/jpeg" if is_image else b"text/html"), *self._fields],
            body=b"\xff\xd8\xff\xe0" if is_image else self.body,
        )

    def is_refused(self, token: str, path: str = PATHS[1], purpose: str | None = None) -> bool:
        purposes = [purpose] if purpose else None
        decision = self.site.access(Agent(token), ORIGIN + path, purposes=purposes)
        return decision.verdict is not Verdict.ALLOW

    def stated(self, token: str, path: str = PATHS[1]) -> Stated:
        """Return the uses that a statement refuses, and the uses that one permits."""
        uses = self.page(token, path).uses
        stated = {use: uses[use].verdict for use in EVERY_USE if uses[use].stated}
        refused = {use for use, verdict in stated.items() if verdict is Verdict.DENY}
        return refused, stated.keys() - refused

    def source(self) -> SiteSource:
        """Return the site as `comity lint` sees it."""
        files = tuple(
            SourceFile(path, ORIGIN + path, Fetched(status=200, body=body))
            for path, body in self.files.items()
        )
        page = SourceFile("page.html", ORIGIN + "/page.html", Fetched(status=200, body=self.body))
        return SiteSource(ORIGIN, self.site, files, (page,))


def published(wish: Wish, form: Form, **values: str) -> Published:
    given_values = {"crawlers": ",".join(NAMED)} | values
    names = {parameter.name for parameter in wish.parameters}
    parameters = wish.values(**{name: given_values[name] for name in names & given_values.keys()})
    return Published([(part.location, part.text(parameters)) for part in form.artefacts])


def published_files(wish: Wish, formats: Sequence[str] = (), **values: str) -> Published:
    files = write_files(wish, values, formats)
    return Published([*files.texts.items(), *files.others])


def expected(wish: Wish, form: Form, token: str, path: str) -> Stated:
    """Return the stated uses by the tables."""
    key = wish.name, form.format
    location = form.artefacts[-1].location
    if token in NAMED and key in ABOUT_NAMED:
        return ABOUT_NAMED[key]
    if path == IMAGE:
        if location == ELEMENT or form.format == "ai.txt":
            return NOTHING
        return ABOUT_IMAGES.get(key, ABOUT_PAGES[key])
    return ABOUT_PAGES[key]


def refusal(wish: Wish, format_: str, token: str, path: str, purpose: str | None) -> bool:
    """Return whether a request should be refused."""
    match wish.name:
        case "no-training" | "no-training-but-search" | "archives-but-no-training":
            if format_ == "automation-preferences.txt":
                return purpose != "search"
            return format_ == "robots.txt" and token in TRAINING_CRAWLERS
        case "nobody-but":
            return token not in NAMED
        case "everybody-but":
            return token in NAMED
        case "text-but-no-images":
            by_path = ("robots.txt", "ACAP", "automation-preferences.txt")
            return format_ in by_path and path == IMAGE
        case "api-for-research":
            return path.startswith("/api/") and purpose != "research"
    return False


def test_the_groups_of_uses_are_all_uses_of_the_vocabularies() -> None:
    relations = Vocabulary.shipped().relations
    assert {use for relation in relations for use in relation.uses} - {ANY} == EVERY_USE


@pytest.mark.parametrize(("wish", "form"), one_in(3, FORMS))
def test_a_form_states_the_uses_of_the_table_and_no_others(wish: Wish, form: Form) -> None:
    site = published(wish, form)
    for token in TOKENS:
        for path in PATHS:
            assert site.stated(token, path) == expected(wish, form, token, path), (token, path)
            findings = {finding.rule for finding in site.page(token, path).findings}
            # This finding tells which of the two formats of that name is meant.
            assert findings == {"ait.format"} & findings
            assert ("ait.format" in findings) == (form.format == "ai.txt of Spawning")


@pytest.mark.parametrize(("wish", "form"), one_in(3, FORMS))
def test_a_form_refuses_the_requests_of_the_wish_and_no_others(wish: Wish, form: Form) -> None:
    site = published(wish, form)
    for token in (*TOKENS, *TRAINING_CRAWLERS):
        for path in PATHS:
            for purpose in PURPOSES:
                is_expected = refusal(wish, form.format, token, path, purpose)
                assert site.is_refused(token, path, purpose) == is_expected, (token, path, purpose)


@pytest.mark.parametrize(("wish", "form"), one_in(3, FORMS))
def test_a_form_sets_the_limits_of_the_wish_and_no_others(wish: Wish, form: Form) -> None:
    site = published(wish, form)
    for token in ("somebot", "GPTBot"):
        uses = site.page(token).uses
        limits = {use: found for use in EVERY_USE if (found := uses[use].restrictions())}
        if (wish.name, form.format) == ("short-snippets", "robots meta"):
            assert {"present-snippet", "present-oldsnippet"} <= limits.keys()
            # `vocabulary.md` says what the directive limits: snippets, answers, shown text.
            limited = SNIPPETS | ROBOTS_META_SNIPPETS | INPUT
            assert limits.keys() <= limited
            assert all(limit == SHOWN_CHARACTERS for limit in limits.values())
        elif wish.name == "limited-copies":
            assert limits.keys() == {"preserve"}
        else:
            assert limits == LIMITS.get((wish.name, form.format), {})
        if wish.name != "slower":
            assert not site.site.limits(Agent(token), ORIGIN + PATHS[1])
            rates = site.site.rates(Agent(token))
            assert rates is None or not (rates.crawl_delay or rates.request_rates)


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize(("wish", "form"), one_in(3, FORMS))
def test_lint_finds_neither_errors_nor_warnings_in_a_form(wish: Wish, form: Form) -> None:
    problems = lint_site(published(wish, form).source())
    assert [
        problem for problem in problems if problem.severity in (Severity.ERROR, Severity.WARNING)
    ] == []


COMBINATIONS = [
    pytest.param(wish, formats, id=f"{wish.name}-{'+'.join(formats)}")
    for wish in WISHES
    for formats in (
        wish.defaults,
        *combinations(dict.fromkeys(form.format for form in wish.forms), 2),
    )
    if {"ai.txt", "ai.txt of Spawning"} - {*formats}  # both need the same file
]


# One of the formats refuses a use that the other permits: its remark says so. `comity new` warns.
CONTRADICTIONS = {
    *(
        ("no-training-but-search", "ACAP", other)
        for other in ("usage preference strings", "Content-Usage", "Content Signals", "RSL")
    ),
    ("no-search-but-training", "usage preference strings", "ai.txt"),
    ("no-search-but-training", "usage preference strings", "RSL"),
}


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize(("wish", "formats"), one_in(6, COMBINATIONS))
def test_several_formats_mean_what_each_means_together(
    wish: Wish, formats: tuple[str, ...]
) -> None:
    names = {parameter.name for parameter in wish.parameters}
    values = {"crawlers": ",".join(NAMED), "origin": ORIGIN}
    site = published_files(
        wish, formats, **{name: value for name, value in values.items() if name in names}
    )
    forms = [form for name in formats if (form := wish.form(name))]
    for token in TOKENS:
        for path in PATHS:
            stated = [expected(wish, form, token, path) for form in forms]
            refused = set[str]().union(*(uses for uses, _ in stated))
            permitted = set[str]().union(*(uses for _, uses in stated)) - refused
            found = site.stated(token, path)
            if site.is_refused(token, path):  # then the permissions of preferences do not count
                assert found[0] <= refused, (token, path)
                assert found[1] <= permitted, (token, path)
            else:
                assert found == (refused, permitted), (token, path)
            for purpose in PURPOSES:
                assert site.is_refused(token, path, purpose) == any(
                    refusal(wish, form.format, token, path, purpose) for form in forms
                ), (token, path, purpose)
    problems = lint_site(site.source())
    found_rules = {problem.rule for problem in problems if problem.severity is not Severity.INFO}
    is_contradiction = (wish.name, *formats) in CONTRADICTIONS
    assert found_rules == ({"comity.contradiction"} if is_contradiction else set())


def test_each_default_is_a_format_that_can_state_the_wish() -> None:
    for wish in WISHES:
        assert wish.defaults
        assert all(wish.form(name) for name in wish.defaults)


# Parameters

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{3,12}[A-Za-z0-9]", fullmatch=True).filter(
    lambda name: name.lower() != "somebot"
)


@given(seconds=st.integers(1, 86400))
@settings(max_examples=examples(200))
def test_a_time_between_requests_is_that_of_the_files(seconds: int) -> None:
    wish = BY_NAME["slower"]
    delay, rate, automation = (
        published(wish, form, seconds=str(seconds)).site for form in wish.forms
    )
    for token in ("somebot", "Googlebot"):
        agent = Agent(token)
        assert (rates := delay.rates(agent))
        assert rates.crawl_delay == seconds
        assert not rates.request_rates
        assert (rates := rate.rates(agent))
        assert rates.request_rates == (RequestRate(1, seconds, None, None),)
        [limits] = automation.limits(agent, ORIGIN + PATHS[1])
        [window] = limits.windows
        assert window.seconds / window.requests >= seconds
        assert limits.concurrent == 1


@given(words=st.integers(1, 10_000))
@settings(max_examples=examples(100))
def test_a_number_of_words_is_that_of_the_files(words: int) -> None:
    wish = BY_NAME["short-snippets"]
    acap, element, field = (published(wish, form, words=str(words)) for form in wish.forms)
    for token in ("somebot", "Googlebot"):
        for use in sorted(SNIPPETS):
            assert acap.page(token).uses[use].restrictions() == {"max_words": words}
            assert element.page(token).uses[use].restrictions() == {"max_chars": 6 * words}
            assert field.page(token).uses[use].restrictions() == {"max_chars": 6 * words}


@given(days=st.integers(1, 3650))
@settings(max_examples=examples(100))
def test_a_number_of_days_is_that_of_the_files(days: int) -> None:
    site = published_files(BY_NAME["limited-copies"], days=str(days)).site
    for token in ("somebot", "Googlebot"):
        page = site.page(
            Agent(token), ORIGIN + PATHS[1], now=NOW, first_seen={"preserve": NOW}, body=b"Text"
        )
        assert page.uses["preserve"].restrictions() == {"until": NOW + timedelta(days=days)}


@given(names=st.lists(NAMES, min_size=1, max_size=5))
@settings(max_examples=examples(100))
def test_the_named_crawlers_are_those_of_the_files(names: list[str]) -> None:
    others = [
        name for name in ("somebot", "Googlebot") if name.lower() not in map(str.lower, names)
    ]
    for wish, is_only in ((BY_NAME["nobody-but"], True), (BY_NAME["everybody-but"], False)):
        for form in wish.forms:
            site = published(wish, form, crawlers=", ".join(names))
            for path in PATHS:
                assert {site.is_refused(name, path) for name in names} == {not is_only}
                assert {site.is_refused(name, path) for name in others} == {is_only}


@given(path=st.from_regex(r"/[A-Za-z0-9._~-]{1,8}(/[A-Za-z0-9._~-]{1,8}){0,2}/", fullmatch=True))
@settings(max_examples=examples(100))
def test_the_path_of_the_api_is_that_of_the_files(path: str) -> None:
    wish = BY_NAME["api-for-research"]
    for form in wish.forms:
        site = published(wish, form, path=path)
        for below in (path, path + "items"):
            assert not site.is_refused("somebot", below, "research")
            assert site.is_refused("somebot", below, "search")
            assert site.is_refused("somebot", below)
        assert not site.is_refused("somebot", "/")
        assert not site.is_refused("somebot", path[:-1] + "-not/x")


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("seconds", "0", "write 1 to 86400"),
        ("seconds", "86401", "write 1 to 86400"),
        ("seconds", "1.5", "write 1 to 86400"),
        ("seconds", "٣", "write 1 to 86400"),
        ("words", "0", "write 1 to 10000"),
        ("days", "9" * 5000, "write 1 to 3650"),
        ("crawlers", "", "write names"),
        ("crawlers", "*", "write names"),
        ("crawlers", "-bot", "write names"),
        ("crawlers", "a\nDisallow: /", "write names"),
        ("path", "api", "write it as /api/"),
        ("path", "/api/*", "write it as /api/"),
        ("path", "/a\nDisallow: /", "write it as /api/"),
        ("origin", "example.org", "write it as https://www.example.org"),
        ("origin", "https://example.org/a", "write it as https://www.example.org"),
        ("origin", 'https://example.org"/', "write it as https://www.example.org"),
    ],
)
def test_a_value_that_cannot_be_said_is_an_error(name: str, value: str, remedy: str) -> None:
    wish = next(
        wish for wish in WISHES if name in [parameter.name for parameter in wish.parameters]
    )
    with pytest.raises(PolicyError, match=remedy):
        wish.values(**{name: value})


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [
        (1, "1/second"),
        (2, "30/minute"),
        (10, "6/minute"),
        (40, "1/minute"),
        (61, "59/hour"),
        (3600, "1/hour"),
        (86400, "1/day"),
    ],
)
def test_a_time_between_requests_is_a_request_limit(seconds: int, limit: str) -> None:
    assert request_limit(seconds) == limit


@pytest.mark.parametrize("seconds", [0, -1, 86401])
def test_a_time_outside_of_the_limits_is_an_error(seconds: int) -> None:
    with pytest.raises(PolicyError, match="write 1 to 86400"):
        request_limit(seconds)


def test_an_unknown_parameter_is_an_error() -> None:
    with pytest.raises(KeyError, match="crawlers"):
        BY_NAME["slower"].values(crawlers="examplebot")


# The list


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: str(wish.name))
def test_each_format_says_a_wish_or_is_said_not_to(wish: Wish) -> None:
    said = {form.format for form in wish.forms}
    unsaid = [unsaid.format for unsaid in wish.unsaid]
    assert sorted([*said, *unsaid]) == sorted(FORMATS)
    assert all(form.remark for form in wish.forms)
    assert all(unsaid.reason for unsaid in wish.unsaid)


def test_names_and_titles_are_unique() -> None:
    assert len({wish.name for wish in WISHES}) == len(WISHES)
    assert len({wish.title for wish in WISHES}) == len(WISHES)


def test_each_form_has_statements_about_its_readers_with_sources() -> None:
    assert FORMATS_OF_WISHES.keys() >= {*FORMATS}
    for wish in WISHES:
        for form in wish.forms:
            for reader in readers_of(form):
                is_unknown = reader.statement.startswith(("No statement was found", "comity obeys"))
                is_list = SOURCES in reader.statement
                assert bool(reader.source) == (not is_unknown and not is_list)


def test_readers_are_those_of_the_line_and_of_the_crawlers_in_a_form() -> None:
    def statements(wish: str, format_: str, number: int = 0) -> list[str]:
        forms = [form for form in BY_NAME[wish].forms if form.format == format_]
        return [reader.statement for reader in readers_of(forms[number])]

    training = statements("no-training", "robots.txt")
    assert "RFC 9309 requests all crawlers to obey the file" in training
    assert any(one.startswith("GPTBot honours `Disallow`") for one in training)
    assert any("No statement was found" in one and "`Bytespider`" in one for one in training)
    assert "Googlebot ignores `Crawl-delay`" not in training
    slower = statements("slower", "robots.txt")
    assert "Google ignores `Crawl-delay`" in slower
    assert any(one.startswith("Microsoft honours `Crawl-delay`: one page") for one in slower)
    assert [one for one in statements("slower", "robots.txt", 1) if "Request-rate" in one]
    images = [*map(str, statements("text-but-no-images", "robots meta"))]
    assert not any(one.startswith("img2dataset") for one in images)  # it reads no elements
    assert any(
        one.startswith("img2dataset") for one in statements("text-but-no-images", "robots meta", 1)
    )


def test_the_robots_txt_against_training_names_known_crawlers_that_are_in_use() -> None:
    form = BY_NAME["no-training"].form("robots.txt")
    assert form
    assert [crawler.token for crawler in named_crawlers(form.artefacts[0])] == [*TRAINING_CRAWLERS]
    assert not any(crawler.retired for crawler in named_crawlers(form.artefacts[0]))
    assert all(known(token) for token in TRAINING_CRAWLERS)


def test_requests_of_the_api_are_permitted_for_research_by_the_methods_in_the_remark() -> None:
    wish = BY_NAME["api-for-research"]
    form = wish.form("automation-preferences.txt")
    assert form
    site = published(wish, form).site

    def verdict(method: str, purpose: str, **facts: Any) -> Verdict:
        return site.access(
            Agent("somebot"), ORIGIN + PATHS[2], method=method, purposes=[purpose], **facts
        ).verdict

    for method in ("GET", "HEAD", "POST"):
        assert verdict(method, "research", kind="api") is Verdict.ALLOW
        assert verdict(method, "search", kind="api") is Verdict.DENY
    assert verdict("DELETE", "research", kind="api") is Verdict.DENY
    assert verdict("GET", "research", automations=["headless"]) is Verdict.DENY


def test_images_in_a_page_are_covered_by_the_rule_for_elements() -> None:
    wish = BY_NAME["text-but-no-images"]
    form = wish.form("ai.txt")
    assert form
    [element] = published(wish, form).page("somebot").elements
    assert element.selector == "img, picture, svg"
