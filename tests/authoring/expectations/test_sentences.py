"""The grammar of sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.authoring.expectations.sentences import (
    FORMS,
    GROUPS,
    LEAST,
    LIMITED,
    MOST,
    NO,
    OPEN,
    PERMITTED,
    REFUSED,
    YES,
    Fetching,
    Form,
    Keeping,
    Meaning,
    SentenceError,
    Showing,
    Using,
    Waiting,
    is_subject,
    parse,
    write,
)
from comity.policies.vocabulary.table import Vocabulary

SUBJECTS = st.sampled_from(GROUPS) | st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True).filter(
    lambda name: is_subject(name) and name.lower() not in GROUPS
)
PATHS = st.from_regex(r"/[!-\"$-~äß]{0,20}", fullmatch=True).filter(lambda path: "***" not in path)
NUMBERS = st.integers(0, 999_999_999)
MEANINGS = (
    st.builds(Fetching, SUBJECTS, PATHS, st.sampled_from((YES, NO, LIMITED)))
    | st.builds(
        Using,
        SUBJECTS,
        st.sampled_from(Vocabulary.shipped().uses),
        PATHS,
        st.sampled_from((PERMITTED, REFUSED, OPEN)),
    )
    | st.builds(Waiting, SUBJECTS, st.sampled_from((LEAST, MOST)), NUMBERS, PATHS)
    | st.builds(Keeping, SUBJECTS, PATHS, NUMBERS)
    | st.builds(Showing, SUBJECTS, PATHS, NUMBERS, st.sampled_from(("words", "characters")))
)


@given(MEANINGS)
def test_every_meaning_has_a_sentence(meaning: Meaning) -> None:
    assert parse(write(meaning)) == meaning


@given(st.text())
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        meaning = parse(text)
    except SentenceError:
        return
    assert parse(write(meaning)) == meaning


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.pattern)
def test_every_form_has_an_example_that_is_understood(form: Form) -> None:
    assert parse(write(parse(form.example))) == parse(form.example)


@pytest.mark.parametrize(
    ("sentence", "meaning"),
    [
        ("Everybody  may fetch /", Fetching("everybody", "/", YES)),
        ("GPTBot must not train on /x", Using("GPTBot", "train-ai", "/x", REFUSED)),
        ("GPTBot may present-thumbnail /x", Using("GPTBot", "present-thumbnail", "/x", PERMITTED)),
        ("Training is refused on /**", Using("everybody", "train-ai", "/**", REFUSED)),
        ("snippets are left open to A on /", Using("A", "present-snippet", "/", OPEN)),
        ("A waits at most 0.5 seconds on /x", Waiting("A", MOST, 500, "/x")),
        ("known training crawlers wait at least 1 s", Waiting(GROUPS[2], LEAST, 1000)),
    ],
)
def test_sentences_have_meanings(sentence: str, meaning: Meaning) -> None:
    assert parse(sentence) == meaning


def test_a_sentence_without_a_crawler_is_about_the_default() -> None:
    assert parse("training is refused on /", "GPTBot").subject == "GPTBot"


@pytest.mark.parametrize(
    ("sentence", "remedy"),
    [
        ("GPTBot may not fetch /x", "write `GPTBot must not fetch /x`"),
        ("nobody may fetch /x", "write `everybody must not fetch /x`"),
        ("training is forbidden on /**", "write `training is refused on /**`"),
        ("GPTBot must not fetch https://example.com/y", "write `GPTBot must not fetch /y`"),
        ("ExampleBot waits 5 seconds", "write `ExampleBot waits at least 5 s`"),
        ("trainign is refused on /", "write `training`"),
        ("everybody may fetch /x#y", "leave out `#`"),
        ("everybody may fetch /***", "write `*` or `**`"),
    ],
)
def test_a_sentence_that_is_not_understood_names_the_nearest(sentence: str, remedy: str) -> None:
    with pytest.raises(SentenceError, match=r"write|leave out") as raised:
        parse(sentence)
    assert remedy in str(raised.value)
