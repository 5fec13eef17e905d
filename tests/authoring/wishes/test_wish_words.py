"""Wishes are found by their words. Words that no phrase has are an error, never a guess."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.authoring.wishes import WISHES
from comity.authoring.wishes.matching import find_wish
from comity.authoring.wishes.wish import Wish
from comity.policies import PolicyError

EXAMPLES = {"seconds": "5", "words": "20", "days": "14", "crawlers": "GPTBot and CCBot"}


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: str(wish.name))
def test_a_wish_is_found_by_its_name_its_title_and_its_phrases(wish: Wish) -> None:
    assert find_wish(wish.name) == (wish, {})
    assert find_wish(f"  {wish.title.upper().replace(' X', ' X')}! ") == (wish, {})
    for phrase in wish.phrases:
        found, values = find_wish(phrase.format(**EXAMPLES))
        assert found is wish, phrase
        names = re.findall(r"{(\w+)}", phrase)
        assert values == {name: EXAMPLES[name].replace(" and", ",") for name in names}


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("no training", "no-training", {}),
        ("Please do not train on my content.", "no-training", {}),
        ("Don’t train!", "no-training", {}),
        ("training, but no search", "no-search-but-training", {}),
        ("snippets of at most 50 words", "short-snippets", {"words": "50"}),
        ("one request every 10 s", "slower", {"seconds": "10"}),
        ("nobody but googlebot", "nobody-but", {"crawlers": "googlebot"}),
        ("everyone except GPTBot, CCBot", "everybody-but", {"crawlers": "GPTBot, CCBot"}),
        ("keep at most 1 day", "limited-copies", {"days": "1"}),
        ("text yes, pictures no", "text-but-no-images", {}),
        ("API for research only", "api-for-research", {}),
        ("archive yes, training no", "archives-but-no-training", {}),
        ("everything for everyone", "everything", {}),
    ],
)
def test_plain_words_find_a_wish(text: str, name: str, values: dict[str, str]) -> None:
    wish, found = find_wish(text)
    assert (wish.name, found) == (name, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no tranning", "did you mean `No training`?"),
        ("no trainng but search", "`No training, but search`"),
        ("nobdy but Googlebot", "`Nobody but X`"),
        ("zebra", "`comity new` lists the wishes"),
        ("", "`comity new` lists the wishes"),
        ("training", "no wish is known by the words `training`"),  # permitted or refused?
        ("no training no search", "no wish is known by the words"),
        ("no training on images", "no wish is known by the words"),
        ("one request each two seconds", "no wish is known by the words"),
        ("one request each 10 minutes", "no wish is known by the words"),
        ("only search", "`search` is no known crawler"),
        ("block AI", "`AI` is no known crawler"),
        ("\x1b[31m", "no wish is known by the words"),
    ],
)
def test_other_words_are_an_error_with_the_nearest_wishes(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        find_wish(text)


def test_no_words_mean_two_wishes() -> None:
    phrases = [
        " ".join(phrase.lower().replace(",", "").split())
        for wish in WISHES
        for phrase in {wish.title.lower().replace(",", ""), *wish.phrases}
    ]
    assert sorted(phrases) == sorted({*phrases})


@given(st.text())
def test_any_text_is_a_wish_or_an_error(text: str) -> None:
    try:
        wish, _ = find_wish(text)
    except PolicyError as error:
        message = str(error)
    else:
        message = ""
        assert wish in WISHES
    assert "\n" not in message
