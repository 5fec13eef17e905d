"""The preferences of a request for its content, against the promise of a site."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.guard import Answer, Guard, Incoming
from comity.guard.promises import SAFE_METHODS, conflict
from comity.policies import Agent, Site, Verdict

LABELS = ("tdm", "ai", "genai", "search", "train-ai", "ai-use", "unheard")
FIELDS = st.dictionaries(st.sampled_from(LABELS), st.sampled_from("yn")).map(
    lambda preferences: ", ".join(f"{label}={value}" for label, value in preferences.items())
)


@pytest.mark.requirement("GUARD-3")
@pytest.mark.parametrize(
    ("requested", "promised", "problem"),
    [
        ("tdm=n", "tdm=n", ""),
        ("ai=n", "tdm=n", ""),
        ("train-ai=n", "ai=n, search=y", ""),
        ("tdm=n", "ai=n", "it refuses search"),
        ("tdm=n", "", "it refuses tdm"),
        ("tdm=n", "tdm=y", "it refuses tdm"),
        ("tdm=n", "tdm=n, search=y", "it refuses search"),
        # A permission needs no promise, but a refusal breaks it.
        ("tdm=y", "", ""),
        ("search=y", "tdm=n", "it permits search"),
        ("search=y", "ai=n", ""),
        # A label that nobody here knows has to be promised by its name.
        ("unheard=n", "tdm=n", "it refuses unheard"),
        ("unheard=n", "tdm=n, unheard=n", ""),
        ("unheard=y", "unheard=n", "it permits unheard"),
        ("", "", ""),
        # A value other than y and n may have been meant as a refusal.
        ("tdm", "", "it cannot be read"),
        ("tdm=?0", "", "it cannot be read"),
        ("tdm=N", "ai=n", "it cannot be read"),
        ('tdm="n"', "", "it cannot be read"),
        ("tdm=0", "", "it cannot be read"),
        ("tdm=no", "tdm=n", "it cannot be read"),
        ("tdm=(n)", "", "it cannot be read"),
        ("unheard=?0", "", "it cannot be read"),
        ("ai-train=no", "", "it cannot be read"),  # a word of Content Signals
        ("tdm=n, ai=?0", "tdm=n, ai=n, search=n", "it cannot be read"),
        ("tdm=no", "tdm=no", ""),
        # The older draft ignores members with parameters, and the newer one does not.
        ("tdm=n;x=1", "", "it refuses tdm"),
        ("tdm=n (", "tdm=n", "it cannot be read"),
        ("tdm=n (", "tdm=n (", ""),
        ("a=y, " * 2000 + "tdm=n", "", "it cannot be read"),
        (", ".join(f"a{number}=y" for number in range(100)), "tdm=n", "it cannot be read"),
        ("tdm=n", "no dictionary (", "it refuses tdm"),
    ],
)
def test_a_promise_keeps_a_preference_or_does_not(
    requested: str, promised: str, problem: str
) -> None:
    assert conflict(requested, promised) == problem


@pytest.mark.requirement("GUARD-3")
@given(FIELDS, FIELDS)
def test_readers_get_no_use_that_the_author_refuses(requested: str, promised: str) -> None:
    """Who reads the promised field, may do nothing that the author of the content refuses."""
    agent, site = Agent("examplebot"), Site.from_files("https://example.com", {})

    def uses(field: str) -> dict[str, tuple[Verdict, bool]]:
        page = site.page(
            agent, "https://example.com/", headers=[(b"Content-Usage", field.encode())]
        )
        return {
            use: (page.uses[use].verdict, page.uses[use].stated) for use in agent.vocabulary.uses
        }

    refused, permitted = (Verdict.DENY, True), (Verdict.ALLOW, True)
    of_author, of_readers = uses(requested), uses(promised)
    if not conflict(requested, promised):
        assert all(of_readers[use] == refused for use in of_author if of_author[use] == refused)
        assert not any(
            of_readers[use] == refused for use in of_author if of_author[use] == permitted
        )
    assert conflict(requested, requested) == ""


@pytest.mark.requirement("GUARD-3")
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_answered(requested: str, promised: str) -> None:
    assert isinstance(conflict(requested, promised), str)


@pytest.mark.requirement("GUARD-3")
def test_methods_that_write_nothing_need_no_promise() -> None:
    guard = Guard("https://example.com", {"/robots.txt": b"User-agent: *\nDisallow:\n"})
    for method in ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "POST", "PATCH", "DELETE", "FROB"):
        fields = {"user-agent": "testbot", "content-usage": "tdm=n"}
        answer = guard.check(Incoming(method, "/", fields))
        assert isinstance(answer, Answer) == (method not in SAFE_METHODS)
    overriding = {"content-usage": "tdm=n", "x-http-method-override": "PUT"}
    assert isinstance(guard.check(Incoming("GET", "/", overriding)), Answer)
    unread = {"user-agent": "testbot", "content-usage": "train-ai=?0"}
    assert isinstance(guard.check(Incoming("PUT", "/", unread)), Answer)
    assert guard.refused == {"comity.promise": 7}
