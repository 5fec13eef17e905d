"""Wishes in other formats: drafts lead to the decisions of the file, and change nothing else."""

from __future__ import annotations

import pytest

from comity.authoring.lint import kind_of
from comity.authoring.stated_wishes import RECOGNISED, DraftedWish, drafts, path_of, stated_wishes
from comity.authoring.wishes.wish import Form, Wish
from comity.policies import Agent, Site, Verdict
from tests.selection import one_in

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/a/page.html"
SITEMAP = f"Sitemap: {ORIGIN}/sitemap.xml\n"
AIPREF = "User-agent: *\nContent-Usage: train-ai=n\nDisallow:\n"


def wish_names(path: str, text: str) -> list[str]:
    kind = kind_of(path, text.encode())
    assert kind is not None
    return [stated_wish.wish.name for stated_wish in stated_wishes(kind, text)]


def drafts_for(path: str, texts: dict[str, str]) -> dict[str, DraftedWish]:
    """Return the drafts for the file at a path, by wish and format."""
    kind = kind_of(path, texts[path].encode())
    assert kind is not None
    return {
        f"{stated_wish.wish.name} {draft.form.format}": draft
        for stated_wish in stated_wishes(kind, texts[path])
        for draft in drafts(stated_wish, path_of(kind), texts)
    }


def verdicts(texts: dict[str, str], *uses: str, token: str = "somebot") -> dict[str, Verdict]:
    site = Site.from_files(ORIGIN, {path: text.encode() for path, text in texts.items()})
    page = site.page(
        Agent(token),
        URL,
        headers=[(b"Content-Type", b"text/html")],
        body=b"<!DOCTYPE html><html><body><p>Text",
    )
    return {use: page.uses[use].verdict for use in uses if page.uses[use].stated}


FORMS = [
    pytest.param(wish, form, id=f"{wish.name}-{form.format}-{number}")
    for wish in RECOGNISED
    for number, form in enumerate(wish.forms)
    if all(artefact.location.startswith("/") for artefact in form.artefacts)
]

# `make test-all` runs the others: each needs a hundred samples for each possible format.
SOME_FORMS = [
    pytest.param(*form.values, id=form.id, marks=[pytest.mark.slow] * (number % 6 > 0))
    for number, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("wish", "form"), SOME_FORMS)
def test_each_form_is_found_to_say_its_wish(wish: Wish, form: Form) -> None:
    artefact = form.artefacts[-1]
    names = wish_names(artefact.location, artefact.text(wish.values()))
    same_words = wish.name == "no-training-but-search" and form.format in ("robots.txt", "ACAP")
    assert names == ["no-training" if same_words else wish.name]


@pytest.mark.parametrize(("wish", "form"), one_in(3, SOME_FORMS))
def test_what_is_offered_is_found_to_say_the_same(wish: Wish, form: Form) -> None:
    artefact = form.artefacts[-1]
    texts = {
        artefact.location: artefact.text(wish.values()),
        **({} if artefact.location == "/robots.txt" else {"/robots.txt": SITEMAP}),
    }
    for draft in drafts_for(artefact.location, texts).values():
        path = draft.form.artefacts[-1].location
        assert draft.form.format != form.format
        if path not in texts:
            names = wish_names(path, draft.added[path])
            assert names == [draft.stated_wish.wish.name] or draft.form.format in (
                "robots.txt",
                "ACAP",
            )
        for token in ("somebot", "GPTBot"):
            form_texts = {
                part.location: part.text(dict(draft.stated_wish.values))
                for part in draft.form.artefacts
            }
            alone = verdicts(form_texts, "train-ai", "search", token=token)
            added = {path: texts.get(path, "") + text for path, text in draft.added.items()}
            assert alone.items() <= verdicts({**texts, **added}, *alone, token=token).items()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/robots.txt", "User-agent: *\nDisallow:\n"),
        ("/robots.txt", ""),
        # Refuses more than the wish.
        (
            "/robots.txt",
            "User-agent: *\nDisallow: /\nContent-Usage: train-ai=n\n",
        ),
        # Refuses less than the wish.
        (
            "/robots.txt",
            "User-agent: *\nContent-Usage: /a train-ai=n\nDisallow:\n",
        ),
        ("/robots.txt", AIPREF + "\nUser-agent: x\nDisallow:\n"),  # is not about everybody
        ("/robots.txt", AIPREF + "Content-Signal: ai-train=yes, search=no\n"),
        ("/robots.txt", "User-agent: GPTBot\nDisallow: /\n"),  # refuses only one training crawler
        ("/ai.txt", "User-agent: *\n  Path: / html\n    Element: p\n      Disallow: Train\n"),
        ("/ai.txt", "User-agent: x\n  Path: / html\n    Element: *\n      Disallow: Train\n"),
        ("/.well-known/tdmrep.json", '[{"location": "/a", "tdm-reservation": 1}]'),
        ("/.well-known/tdmrep.json", "[{"),
        ("/automation-preferences.txt", "scope: /\nallowed-methods:\nrequest-limit: 6/minute\n"),
    ],
)
def test_nothing_is_found_where_a_file_says_something_else(path: str, text: str) -> None:
    assert wish_names(path, text) == []


@pytest.mark.slow
def test_two_wishes_of_one_file_are_both_found_whatever_else_it_says_of_paths() -> None:
    text = AIPREF + "Disallow: /private/\nCrawl-delay: 7\n"
    assert wish_names("/robots.txt", text) == ["no-training", "slower"]
    added = drafts_for("/robots.txt", {"/robots.txt": text})[
        "slower automation-preferences.txt"
    ].added
    assert "request-limit: 8/minute\n" in added["/automation-preferences.txt"]


def test_a_file_that_has_several_formats_is_offered_the_others() -> None:
    text = AIPREF + "Content-Signal: ai-train=no\n"
    formats = {name.partition(" ")[2] for name in drafts_for("/robots.txt", {"/robots.txt": text})}
    assert {"ai.txt", "TDMRep"} <= formats
    assert not {"Content-Usage", "Content Signals"} & formats


def test_lines_are_added_where_they_count_for_everybody_and_change_nothing_else() -> None:
    reserved = '[{"location": "/", "tdm-reservation": 1}]'
    of = "/.well-known/tdmrep.json"
    draft = drafts_for(of, {of: reserved, "/robots.txt": "User-agent: *\nDisallow: /private"})[
        "no-training Content-Usage"
    ]
    assert draft.added == {"/robots.txt": "\n\n" + AIPREF}
    own_group = {of: reserved, "/robots.txt": "User-agent: x\nDisallow: /private\n"}
    assert "no-training Content-Usage" not in drafts_for(of, own_group)
    # An added line would join the group of x.
    half = {of: reserved, "/robots.txt": "User-agent: x\n"}
    assert "no-training robots.txt" not in drafts_for(of, half)


def test_a_file_that_is_there_and_is_no_lines_stays_as_it_is() -> None:
    texts = {"/robots.txt": AIPREF, "/ai.txt": "User-agent: x\n", "/.well-known/tdmrep.json": "[]"}
    formats = {name.partition(" ")[2] for name in drafts_for("/robots.txt", texts)}
    assert not {"ai.txt", "ai.txt of Spawning", "TDMRep"} & formats


@pytest.mark.slow
def test_a_reference_is_written_where_the_site_is_known_alone() -> None:
    assert "no-training RSL" not in drafts_for("/robots.txt", {"/robots.txt": AIPREF})
    robots = AIPREF + SITEMAP.replace("example.com", "news.example")
    draft = drafts_for("/robots.txt", {"/robots.txt": robots})["no-training RSL"]
    assert list(draft.added) == ["/robots.txt", "/license.xml"]
    assert "License: https://news.example/license.xml\n" in draft.added["/robots.txt"]
