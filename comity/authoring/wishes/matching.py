"""Find a wish by its words. There is no guessing: words that no phrase has are an error.

find_wish("no training")                      NO_TRAINING, {}
find_wish("one request each 5 seconds")       SLOWER, {"seconds": "5"}
find_wish("everybody but GPTBot and CCBot")   EVERYBODY_BUT, {"crawlers": "GPTBot, CCBot"}"""

from __future__ import annotations

from difflib import get_close_matches

from comity.authoring.wishes import WISHES
from comity.authoring.wishes.wish import Wish
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.known_crawlers import known

# Words that change no wish.
_FILLERS = frozenset(
    (
        *("a", "an", "and", "the", "my", "our", "your", "of", "for"),
        *("please", "i", "we", "want", "to", "on", "with", "site", "content", "it"),
    )
)
_SAME = {
    "day": "days",
    "every": "each",
    "everyone": "everybody",
    "image": "images",
    "pictures": "images",
    "s": "seconds",
    "sec": "seconds",
    "second": "seconds",
    "word": "words",
    "don't": "do not",
    "noone": "nobody",
}

_PHRASES = sorted(
    (
        (phrase, wish)
        for wish in WISHES
        for phrase in (wish.title.replace(" X", " {crawlers}"), *wish.phrases)
    ),
    key=lambda pair: "{crawlers}" in pair[0],  # last, because a name may be any word
)


def find_wish(text: str) -> tuple[Wish, dict[str, str]]:
    """Return the wish with these words, and the values of parameters in them.

    PolicyError: no wish has these words; the message proposes the nearest wishes."""
    words = _words(text)
    for wish in WISHES:
        if text.strip().lower() == wish.name:
            return wish, {}
    for phrase, wish in _PHRASES:
        values = _values(_words(phrase), words)
        if values is not None:
            return wish, values
    raise PolicyError(f"no wish is known by the words `{printable(text)}`: {_remedy(words)}")


def _words(text: str) -> list[str]:
    """Return the words that matter. Letters keep their case, since they may be names."""
    words: list[str] = []
    for word in text.replace(",", " ").replace("’", "'").split():
        word = word.strip(".;:!?\"'")
        if word.lower() not in _FILLERS:
            words += _SAME.get(word.lower(), word).split()
    return [word for word in words if word]


def _values(phrase: list[str], words: list[str]) -> dict[str, str] | None:
    """Return the values in words that have the form of a phrase. None: they have another form."""
    values: dict[str, str] = {}
    rest = list(words)
    for expected in phrase:
        if not rest:
            return None
        if expected == "{crawlers}":  # the last word of each phrase that has it
            return values if rest == ["X"] else {"crawlers": _known_crawlers(rest)}
        word = rest.pop(0)
        if expected.startswith("{"):
            if not (word.isascii() and word.isdigit()):
                return None
            values[expected.strip("{}")] = word
        elif word.lower() != expected.lower():
            return None
    return None if rest else values


def _known_crawlers(names: list[str]) -> str:
    """Return known names, separated by commas.

    PolicyError: a name is not known. It could be a word of another wish, as in "only search"."""
    for name in names:
        if known(name) is None:
            raise PolicyError(
                f"`{printable(name)}` is no known crawler: `comity new` takes any name behind"
                " --crawlers"
            )
    return ", ".join(names)


def _remedy(words: list[str]) -> str:
    phrases = {" ".join(_words(phrase)).lower(): wish for phrase, wish in _PHRASES}
    near = get_close_matches(" ".join(words).lower(), phrases, 3, 0.6)
    titles = dict.fromkeys(f"`{phrases[phrase].title}`" for phrase in near)
    if titles:
        return f"did you mean {' or '.join(titles)}?"
    return "`comity new` lists the wishes"
