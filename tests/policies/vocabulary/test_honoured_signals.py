"""The list of signals that crawlers honour, as their operators say."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime

import pytest

from comity.policies.formats import FORMATS, INSTALLED
from comity.policies.vocabulary.honoured_signals import (
    ANSWERS,
    HONOURS,
    IGNORES,
    WHOLE,
    HonourStatement,
    search_day,
    statements,
    statements_by,
    statements_on,
)
from comity.policies.vocabulary.known_crawlers import known

BY_NAME = {format_.name: format_ for format_ in FORMATS}
TITLES = [f"{one.who} {one.format} {'-'.join(one.directives)}" for one in statements()]


@pytest.mark.parametrize("statement", statements(), ids=TITLES)
def test_each_statement_has_a_source_and_a_date(statement: HonourStatement) -> None:
    assert statement.who
    assert statement.answer in ANSWERS
    assert re.fullmatch(r"https?://[^\s]+", statement.source)
    assert re.fullmatch(r"(https?://[^\s]+)?", statement.quoted_by)
    assert type(statement.date) is date
    assert statement.date <= datetime.now(UTC).date()


@pytest.mark.parametrize("statement", statements(), ids=TITLES)
def test_each_statement_is_about_directives_of_a_format(statement: HonourStatement) -> None:
    format_ = BY_NAME[statement.format]
    names = {
        one.name for one in format_.authoring.directives if one.spec.startswith(statement.spec)
    }
    assert statement.directives == (WHOLE,) or {*statement.directives} <= names
    assert len({*statement.directives}) == len(statement.directives) > 0


@pytest.mark.parametrize("statement", statements(), ids=TITLES)
def test_the_crawlers_of_a_statement_are_in_the_list_of_known_crawlers(
    statement: HonourStatement,
) -> None:
    crawlers = [known(token) for token in statement.crawlers]
    assert [crawler.token for crawler in crawlers if crawler] == [*statement.crawlers]
    assert not any(crawler.retired for crawler in crawlers if crawler)


def test_each_format_was_searched_for() -> None:
    """A new format needs its day in [searched], so that no statement means that none was found."""
    missing = [one.name for one in FORMATS if one not in INSTALLED and not search_day(one.name)]
    assert missing == []
    assert search_day("nosuch") is None


def test_no_crawler_has_two_answers_about_a_directive() -> None:
    answers = Counter(
        (token, one.format, directive)
        for one in statements()
        for token in one.crawlers
        for directive in one.directives
        if directive not in ("robots", "X-Robots-Tag")  # the carriers of directives
    )
    assert [entry for entry, count in answers.items() if count > 1] == []


def test_what_is_not_in_the_list_is_unknown() -> None:
    assert statements_on("rsl", "License") == ()
    assert statements_on("robots", "nosuch") == ()
    assert statements_by("Bytespider") == ()


def test_statements_are_found_by_signal_and_by_crawler_in_any_case() -> None:
    delay = {one.who: one.answer for one in statements_on("robots", "crawl-delay")}
    assert delay["Microsoft"] == HONOURS
    assert delay["Yandex"] == IGNORES
    assert [one.who for one in statements_on("c2pa", "c2pa.training-mining")] == ["Adobe Firefly"]
    assert {one.format for one in statements_by("BINGBOT")} == {"robots", "robots-meta"}


def test_statements_on_one_of_two_specifications_are_kept_apart() -> None:
    spawning, paper = "Spawning's ai.txt (docs/ai-txt.md)", "ai.txt paper section-3.2"
    assert [one.who for one in statements_on("ai-txt", "Disallow", spawning)] == ["Spawning"]
    assert statements_on("ai-txt", "Disallow", paper) == ()
