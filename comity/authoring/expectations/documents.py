"""Read a file of expectations.

site = "https://example.com"
expectations = ["GPTBot must not fetch /x"]"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from comity.authoring.expectations.sentences import (
    EVERYBODY,
    GROUPS,
    Meaning,
    SentenceError,
    is_subject,
    parse,
)
from comity.authoring.sites import is_url
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

DEFAULT_FILE = "expectations.toml"
KEYS = {
    "site": "a URL: the files are fetched from this site",
    "folder": "the folder with the files of the site, from the folder of this file",
    "origin": "with `folder`: the origin at which the files are published",
    "agent": "the crawler in sentences that name none (default: everybody)",
    "date": "the day on which the sentences have to hold (default: now)",
    "expectations": "the sentences",
}


class Sentence(NamedTuple):
    """A sentence of a file.

    Attributes:
        text: The sentence as written.
        line: The line of the file, from 1.
        meaning: The meaning of the sentence.
    """

    text: str
    line: int
    meaning: Meaning


class Document(NamedTuple):
    """A file of expectations.

    Attributes:
        name: The path of the file, as its user writes it.
        target: The URL of the site, or the path of its folder.
        origin: The origin at which the files of the folder are published. None: the default.
        now: The time at which the sentences have to hold. None: now.
        sentences: The sentences, in the order of the file.
    """

    name: str
    target: str
    origin: str | None
    now: datetime | None
    sentences: tuple[Sentence, ...]


def read_document(path: Path) -> Document:
    """Read a file of expectations.

    PolicyError: the file cannot be read, or a part of it is not understood. The message has a line
    for each mistake."""
    name = str(path)
    try:
        text = path.read_text("utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise PolicyError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PolicyError(f"{name} is not UTF-8: save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{name} is not TOML: {error}") from None
    for key in table:
        if key not in KEYS:
            close = get_close_matches(key, KEYS, 1)
            remedy = f"write `{close[0]}`" if close else f"write one of {', '.join(KEYS)}"
            raise PolicyError(f"{name}: `{printable(key)}` has no meaning: {remedy}")
    agent = _text(name, table, "agent") or EVERYBODY
    if not is_subject(agent):
        raise PolicyError(
            f"{name}: agent `{printable(agent)}` is no crawler: write a product token, "
            f"or one of {', '.join(GROUPS)}"
        )
    return Document(
        name,
        _target(name, table, path.parent),
        _text(name, table, "origin"),
        _time(name, table.get("date")),
        tuple(_sentences(name, text, table.get("expectations"), agent)),
    )


def write_document(keys: Mapping[str, str], sentences: Iterable[str]) -> str:
    """Return the text of a file of expectations. `keys`: those of KEYS that come first."""
    lines = [f"{key} = {_toml(value)}" for key, value in keys.items()]
    lines += ["expectations = [", *(f"  {_toml(sentence)}," for sentence in sentences), "]"]
    return "\n".join(lines)


def replace_sentences(text: str, sentences: Iterable[str]) -> str:
    """Return the text of a file of expectations with other sentences.

    Keys and comments outside of the list stay. PolicyError: the file is not TOML, or has no list of
    sentences."""
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{DEFAULT_FILE} is not TOML: {error}") from None
    new = [*sentences]
    if start := _LIST.search(text):
        # A bracket may be in a sentence or a comment. Behind the right one, the file is as wanted.
        for end in _BRACKET.finditer(text, start.end()):
            replaced = text[: start.start()] + write_document({}, new) + text[end.end() :]
            with suppress(tomllib.TOMLDecodeError):
                if tomllib.loads(replaced) == before | {"expectations": new}:
                    return replaced
    raise PolicyError(f"{DEFAULT_FILE} has no list `expectations = [...]`: write one into it")


_LIST = re.compile(r"^[ \t]*expectations[ \t]*=[ \t]*\[", re.MULTILINE)
_BRACKET = re.compile(r"\]")


def _toml(text: str) -> str:
    """Return a text as TOML. Texts of JSON are texts of TOML, with the same escapes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _text(name: str, table: dict[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise PolicyError(f'{name}: `{key}` is not a text: write {key} = "..."')
    return value


def _target(name: str, table: dict[str, Any], parent: Path) -> str:
    site, folder = _text(name, table, "site"), _text(name, table, "folder")
    if site is not None and folder is not None:
        raise PolicyError(f"{name} has `site` and `folder`: leave one of them out")
    if site is None:
        return str(parent / (folder or "."))
    if not is_url(site):
        raise PolicyError(
            f"{name}: site `{printable(site)}` is not a URL: write https://example.com, "
            "or `folder` for a folder"
        )
    return site


def _time(name: str, value: object) -> datetime | None:
    """Return the time of `date`. A day begins at midnight, UTC."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise PolicyError(f"{name}: `date` is not a date: write date = 2026-12-31, without quotes")


def _sentences(name: str, text: str, written: object, agent: str) -> list[Sentence]:
    if not isinstance(written, list) or not all(isinstance(each, str) for each in written):
        raise PolicyError(
            f'{name}: `expectations` is not a list of sentences: write expectations = ["..."]'
        )
    if not written:
        raise PolicyError(
            f"{name} has no sentence: write expectations = "
            '["everybody may fetch /"]. `comity explain --as-expectations` writes some'
        )
    sentences, mistakes = [], []
    for sentence, line in zip(written, _lines_of(text, written), strict=True):
        try:
            sentences.append(Sentence(sentence, line, parse(sentence, agent)))
        except SentenceError as error:
            mistakes.append(f"{name}:{line}: {error}")
    if mistakes:
        raise PolicyError("\n".join(mistakes))
    return sentences


def _lines_of(text: str, sentences: Sequence[str]) -> list[int]:
    """Return the line of each sentence, from 1.

    A sentence that the file writes with escapes gets the line of the sentence before it."""
    lines = text.splitlines()
    start = next(
        (number for number, line in enumerate(lines) if line.lstrip().startswith("expectations")), 0
    )
    number, column, numbers = start, 0, []
    for sentence in sentences:
        for index in range(number, len(lines)):
            begin = column if index == number else 0
            position = lines[index].find(sentence, begin)
            if position >= 0 and not lines[index].lstrip().startswith("#"):
                number, column = index, position + len(sentence)
                break
        numbers.append(number + 1)
    return numbers
