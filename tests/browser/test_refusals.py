"""The refused requests of a page, in the tag."""

from __future__ import annotations

from comity.browser.admission import refusal_of
from comity.browser.refusals import MAX_LISTED, PageRefusals, Refusal, Refusals
from comity.policies import Agent, Site
from comity.policies.tag import TAG, join_tags, read_tag


class Page:
    """A stand-in for a page, with an identity only."""


def test_the_list_is_bounded_and_says_so() -> None:
    refusals = PageRefusals()
    for number in range(MAX_LISTED):
        refusals.add(
            Refusal(
                f"http://a.example/{number}", "image", refusal_of("http://a.example/", "a test")
            )
        )
    # The same refusal again.
    refusals.add(Refusal("http://a.example/0", "image", refusal_of("http://a.example/", "a test")))
    assert "more_refused" not in refusals.tag("http://a.example/")
    refusals.add(
        Refusal("http://a.example/more", "image", refusal_of("http://a.example/", "a test"))
    )
    tag = refusals.tag("http://a.example/")
    assert (len(tag["refused"]), tag["more_refused"]) == (MAX_LISTED, True)
    assert TAG.members["browser"].shape.is_valid(tag)


def test_a_failed_request_tells_whose_a_refusal_is() -> None:
    refusals, page, other = Refusals(), Page(), Page()
    refusal = Refusal("http://a.example/a", "script", refusal_of("http://a.example/a", "a test"))
    refusals.note(refusal)
    refusals.note_failure("http://a.example/b", page)
    refusals.note_failure("http://a.example/a", page)
    assert list(refusals.for_page(page)) == [refusal]
    assert list(refusals.for_page(other)) == []


def test_control_characters_of_a_url_are_replaced() -> None:
    refusal = Refusal(
        "http://a.example/\x1b[2J", "image", refusal_of("http://a.example/", "a test")
    )
    assert "\x1b" not in refusal.tag["url"]


def test_the_tag_of_what_came_from_two_pages_has_the_refusals_of_both() -> None:
    agent, site = Agent("testbot"), Site.from_files("http://a.example", {"/robots.txt": b""})
    tags = []
    for name in "ab":
        page = site.page(agent, f"http://a.example/{name}", headers=[], body=b"")
        page.browsed = PageRefusals()
        page.browsed.add(
            Refusal(
                f"http://a.example/{name}.png", "image", refusal_of("http://a.example/", "a test")
            )
        )
        tags.append(page.permissions)
    joined = join_tags(agent, *tags)
    assert [refusal["url"] for refusal in joined["browser"]["refused"]] == [
        "http://a.example/a.png",
        "http://a.example/b.png",
    ]
    assert joined["browser"]["url"] == "http://a.example/a"
    assert read_tag(joined).raw is joined
    plain = site.page(agent, "http://a.example/c", headers=[], body=b"").permissions
    assert join_tags(agent, plain, tags[0])["browser"] == tags[0]["browser"]
