"""Links that share unsaved files."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.authoring.workbench.link import MAX_CONTENT, MAX_FRAGMENT, fragment_of, restore_state
from comity.authoring.workbench.state import MAX_FILE, Choices, State
from comity.policies import Fetched, PolicyError

ORIGIN = "https://example.com"
PAGE = ORIGIN + "/a.html"
FILES = {ORIGIN + "/robots.txt": Fetched(status=200, body=b"User-agent: *\n")}
PAGES = {PAGE: Fetched(status=200, body=b"<p>x")}
SAVED = State(ORIGIN, FILES, PAGES, Choices())


def pack(content: object) -> str:
    return "1." + base64.urlsafe_b64encode(
        zlib.compress(json.dumps(content).encode())
    ).decode().rstrip("=")


@given(
    st.binary(max_size=200),
    st.dictionaries(
        st.sampled_from(["agent", "purposes", "uses", "urls", "action", "lang"]),
        st.text(max_size=50),
    ),
)
def test_a_link_brings_back_what_was_shared(body: bytes, choices: dict[str, str]) -> None:
    shared = (
        SAVED.with_file(ORIGIN + "/robots.txt", body)
        .with_file(ORIGIN + "/ai.txt", b"x")
        .with_choices(**choices, page=PAGE)
    )
    state, changed = restore_state(SAVED, "#" + fragment_of(shared, SAVED.documents))
    assert (state.files, state.pages, state.choices) == (shared.files, shared.pages, shared.choices)
    assert set(changed) == {
        url
        for url in shared.documents
        if shared.documents[url].body != getattr(SAVED.documents.get(url), "body", 0)
    }


def test_only_what_is_not_saved_is_in_it() -> None:
    assert restore_state(SAVED, fragment_of(SAVED, SAVED.documents)) == (SAVED, ())


def test_a_link_of_another_origin_is_about_the_same_paths() -> None:
    shared = SAVED.with_file(PAGE, b"new").with_choices(page=PAGE, detail=ORIGIN + "/x")
    other = "http://other.example"
    mine = State(
        other,
        {other + "/robots.txt": FILES[ORIGIN + "/robots.txt"]},
        {other + "/a.html": PAGES[PAGE]},
        Choices(),
    )
    state, changed = restore_state(mine, fragment_of(shared, SAVED.documents))
    assert changed == (other + "/a.html",)
    assert (state.choices.page, state.choices.detail) == (other + "/a.html", other + "/x")


def test_what_is_too_long_is_not_shared() -> None:
    noise = base64.b85encode(
        b"".join(zlib.crc32(b"%d" % number).to_bytes(4, "big") for number in range(20_000))
    )
    with pytest.raises(PolicyError, match="too long for a link"):
        fragment_of(SAVED.with_file(PAGE, noise), SAVED.documents)


@pytest.mark.parametrize(
    "fragment",
    [
        "heading",
        "1.",
        "1.!!!!",
        "1.AAAA",
        "1.\u00e9",
        "2." + pack({})[2:],
        pack({})[:-3],
        pack([]),
        pack({"files": {"/robots.txt": "no base64!"}}),
        pack({"files": {"/robots.txt": "\u00e9"}}),
        pack({"files": {"/.git/hooks/pre-commit": ""}}),
        pack({"files": {"/../robots.txt": ""}}),
        pack({"files": {"https://other.example/robots.txt": ""}}),
        pack({"files": {"/ai.txt": base64.b64encode(b"a" * (MAX_FILE + 1)).decode()}}),
        pack({"agent": "a" * (MAX_CONTENT + 1)}),
        "1." + base64.urlsafe_b64encode(zlib.compress(b"[" * 100_000)).decode(),
        "1." + "A" * MAX_FRAGMENT,
    ],
)
@pytest.mark.requirement("SEC-1")
def test_a_link_that_is_none_of_this_site_changes_nothing(fragment: str) -> None:
    with pytest.raises(PolicyError):
        restore_state(SAVED, fragment)


def test_what_is_no_choice_is_left_out() -> None:
    content = {
        "choices": {"agent": 7, "unknown": "x", "page": "/none.html", "uses": "search"},
        "files": [],
        "more": 1,
    }
    assert restore_state(SAVED, pack(content)) == (SAVED.with_choices(uses="search"), ())
