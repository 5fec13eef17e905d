"""The list of known crawlers, and misspelt names."""

from __future__ import annotations

import re

import pytest

from comity.authoring.wishes.wish import TRAINING_CRAWLERS
from comity.policies.vocabulary.known_crawlers import (
    known,
    known_crawlers,
    nearest,
    training_crawlers,
)


def test_every_entry_has_an_operator_a_purpose_and_a_source() -> None:
    crawlers = known_crawlers()
    assert len(crawlers) >= 150
    assert [crawler for crawler in crawlers if not (crawler.operator and crawler.purpose)] == []
    assert [
        crawler for crawler in crawlers if not re.fullmatch(r"https?://[^\s]+", crawler.source)
    ] == []


def test_what_replaces_a_retired_name_is_known_and_in_use() -> None:
    replaced = {
        crawler.token: known(crawler.replaced_by)
        for crawler in known_crawlers()
        if crawler.replaced_by
    }
    assert "anthropic-ai" in replaced
    assert [
        token for token, crawler in replaced.items() if crawler is None or crawler.retired
    ] == []
    assert [
        crawler.token for crawler in known_crawlers() if crawler.replaced_by and not crawler.retired
    ] == []


def test_training_crawlers_are_those_that_sites_name_to_refuse_training() -> None:
    """The files of `comity new` name all of them, and no crawler for search only."""
    tokens = {crawler.token for crawler in training_crawlers()}
    assert set(TRAINING_CRAWLERS) == tokens
    assert "Amazonbot" in tokens  # its operator says that it fetches for training too
    assert "anthropic-ai" not in tokens  # retired, but still in files
    retired = {crawler.token for crawler in training_crawlers(with_retired=True)} - tokens
    assert retired == {"anthropic-ai"}
    assert not tokens & {"Googlebot", "OAI-SearchBot", "ChatGPT-User", "Applebot"}
    assert [
        crawler for crawler in training_crawlers() if "not for training" in crawler.purpose
    ] == []


@pytest.mark.parametrize(
    ("token", "operator", "retired", "replaced_by"),
    [
        ("GPTBot", "OpenAI", False, ""),
        ("gptbot", "OpenAI", False, ""),
        (" Googlebot ", "Google", False, ""),
        ("anthropic-ai", "Anthropic", True, "ClaudeBot"),
        ("MSNBOT", "Microsoft", True, "bingbot"),
        ("archive.org_bot", "Internet Archive", False, ""),
    ],
)
def test_names_are_known_in_any_case(
    token: str, operator: str, *, retired: bool, replaced_by: str
) -> None:
    crawler = known(token)
    assert crawler
    assert (crawler.operator, crawler.retired, crawler.replaced_by) == (
        operator,
        retired,
        replaced_by,
    )


@pytest.mark.parametrize("token", ["", "*", "examplebot", "googlebot2"])
def test_others_are_not_known(token: str) -> None:
    assert known(token) is None


@pytest.mark.parametrize(
    ("token", "meant"),
    [
        ("GTPBot", "GPTBot"),  # two swapped letters
        ("ClaudBot", "ClaudeBot"),
        ("Googelbot", "Googlebot"),
        ("AhrefsBBot", "AhrefsBot"),  # a doubled letter
        ("Googlebot_News", "Googlebot-News"),
        ("Bytespyder", "Bytespider"),
        ("Google-Extnded", "Google-Extended"),
        ("bing-bot", "bingbot"),
        ("PerplexityBott", "PerplexityBot"),
    ],
)
def test_misspelt_names_are_recognised(token: str, meant: str) -> None:
    crawler = nearest(token)
    assert crawler
    assert crawler.token == meant


@pytest.mark.parametrize(
    "token",
    [
        "GPTBot",  # known
        "anthropic-ai",  # known
        "CCBo",  # too short
        "",
        "*",
        "MyBot",
        "testbot",
        "otherbot",
        "examplebot",
        "AI3Bot",  # perhaps another generation of AI2Bot
        "360Spider2",
        "GPBto",  # two mistakes
        # Other crawlers in robots.txt files, each one letter away from a known one.
        "NPBot",
        "aipbot",
        "EasouSpider",
        "roverbot",
        "YourBot",
        "msrbot",
    ],
)
def test_names_that_may_be_anything_are_left_alone(token: str) -> None:
    assert nearest(token) is None


def test_long_names_are_left_alone_in_no_time() -> None:
    assert nearest("a" * 100_000) is None
