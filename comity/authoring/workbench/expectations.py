"""Expectations beside the editor: sentences that the files have to keep true.

check_sentences(state)    for each sentence, whether it holds
sentences_today(state)    the sentences that hold now
with_sentences(state, ...)    the state with these sentences added"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from comity.authoring.expectations.documents import (
    DEFAULT_FILE,
    replace_sentences,
    write_document,
)
from comity.authoring.expectations.judging import Judge
from comity.authoring.expectations.sentences import SentenceError, parse, write
from comity.authoring.expectations.today import sentences_of_today
from comity.authoring.explaining import Citation, unnamed_token
from comity.authoring.workbench.state import MAX_FIELD, State
from comity.policies import Agent, PolicyError

MAX_SENTENCES = 50  # the maximum number of sentences that are checked


class CheckedSentence(NamedTuple):
    """A sentence, and whether it holds.

    Attributes:
        text: The sentence as written.
        holds: True if it holds. None: it cannot be checked.
        why: If it does not hold, a sentence about the site that contradicts it. If it cannot be
            checked, the mistake in it.
        citation: The line that decides, with the URL of its file. None: no line decides.
    """

    text: str
    holds: bool | None
    why: str = ""
    citation: Citation | None = None


def check_sentences(state: State) -> tuple[CheckedSentence, ...]:
    """Check the first MAX_SENTENCES sentences of the choices."""
    sentences = tuple(islice(_sentences(state), MAX_SENTENCES))
    if not sentences:
        return ()
    judge = _judge(state)
    return tuple(_check(judge, sentence) for sentence in sentences)


def _check(judge: Judge, sentence: str) -> CheckedSentence:
    try:
        answer = judge.check(parse(sentence))
    except (SentenceError, PolicyError) as error:
        return CheckedSentence(sentence, None, str(error))
    return CheckedSentence(sentence, answer.holds, answer.why, answer.citation)


def sentences_today(state: State) -> str:
    """Return sentences that hold now, one per line, as many as one choice can contain."""
    text = ""
    for meaning in sentences_of_today(_judge(state))[:MAX_SENTENCES]:
        line = write(meaning) + "\n"
        if len(text) + len(line) > MAX_FIELD:
            break
        text += line
    return text


def with_sentences(state: State, today: str) -> tuple[State, str]:
    """Return the state with further sentences below its own, and a message for the user.

    `today`: the result of `sentences_today`. Sentences that the state has are not added again."""
    written = state.choices.expectations
    new = [line for line in today.splitlines() if line not in written.splitlines()]
    text = "\n".join([*([written.rstrip("\n")] if written.strip() else []), *new])
    most = f" {MAX_SENTENCES} are checked at most." * (len(new) >= MAX_SENTENCES)
    message = f"{len(new)} sentence{'s' * (len(new) != 1)} added.{most}"
    return state.with_choices(expectations=text), message


def expectations_file(state: State) -> str:
    """Return the sentences as a file for `comity check`, which belongs into the site's folder."""
    return write_document({"origin": state.origin}, _sentences(state))


def file_with_sentences(state: State, old: bytes | None) -> bytes:
    """Return the file `expectations.toml` with the sentences of the choices.

    `old`: the file on the disk, whose other keys stay. None: there is none.
    PolicyError: a sentence is not understood, or the old file is not TOML in UTF-8."""
    sentences = [*_sentences(state)]
    for sentence in sentences:
        try:
            parse(sentence)
        except SentenceError as error:
            raise PolicyError(str(error)) from None
    if old is None:
        return f"{expectations_file(state)}\n".encode()
    try:
        return replace_sentences(old.decode(), sentences).encode()
    except UnicodeDecodeError:
        raise PolicyError(f"{DEFAULT_FILE} is not UTF-8: save it as UTF-8") from None


def _sentences(state: State) -> Iterator[str]:
    lines = (line.strip() for line in state.choices.expectations.splitlines())
    return (line for line in lines if line)


def _judge(state: State) -> Judge:
    return Judge(state.source(), Agent(unnamed_token(state.site)))
