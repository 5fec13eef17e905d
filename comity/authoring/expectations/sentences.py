"""The sentences of expectations: their grammar, and their meanings as values.

parse("GPTBot must not fetch /x")     the meaning; SentenceError if there is none
write(Fetching("GPTBot", "/x", NO))   the sentence of a meaning
nearest_sentence("GPTBot may fech")   the sentence that was probably meant

`parse(write(meaning)) == meaning` for every meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product
from typing import NamedTuple

from comity.authoring.crawler_names import NAME, ONE_WORD
from comity.policies.vocabulary.known_crawlers import known_crawlers
from comity.policies.vocabulary.table import Vocabulary
from comity.policies.vocabulary.use_classes import CLASSES

EVERYBODY = "everybody"
EVERYBODY_ELSE = "everybody else"
TRAINING_CRAWLERS = "known training crawlers"
GROUPS = (EVERYBODY, EVERYBODY_ELSE, TRAINING_CRAWLERS)
# Words that people write for groups of crawlers. They are not names of crawlers.
_NOT_NAMES = frozenset(
    ("all", "any", "anybody", "anyone", "bots", "crawlers", "everyone", "no", "nobody", "none")
)
ANYWHERE = "/**"

# Whether a crawler may fetch a page.
YES, NO, LIMITED = "may", "must not", "may under conditions"
# Whether the files permit a use.
PERMITTED, REFUSED, OPEN = "permitted", "refused", "left open"
LEAST, MOST = "least", "most"

_USES = frozenset({*Vocabulary.shipped().uses, *(class_.use for class_ in CLASSES)})
# Noun in a sentence -> the use.
NOUNS = {class_.name: class_.use for class_ in CLASSES}
_NOUN_OF = {use: noun for noun, use in NOUNS.items()}
# Words after "may" and "must not" -> the use.
VERBS = {
    "follow links on": "follow",
    "show snippets of": "present-snippet",
    "train on": "train-ai",
    "answer from": "ai-input",
    "show": "present",
    "mine": "tdm",
}


class SentenceError(Exception):
    """A sentence that is not understood. The text says what to write instead."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """The crawlers may, or must not, fetch the paths.

    Attributes:
        subject: One of GROUPS, or the name of a crawler.
        path: A path, or a glob.
        answer: YES, NO or LIMITED.
    """

    subject: str
    path: str
    answer: str


@dataclass(frozen=True, slots=True)
class Using:
    """A use of the paths is permitted, refused, or left open.

    Attributes:
        subject: One of GROUPS, or the name of a crawler.
        use: The name of the use in the table of vocabularies.
        path: A path, or a glob.
        answer: PERMITTED, REFUSED or OPEN.
    """

    subject: str
    use: str
    path: str
    answer: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The files ask the crawlers to wait between two requests.

    Attributes:
        subject: One of GROUPS, or the name of a crawler.
        bound: LEAST or MOST.
        thousandths: The thousandths of a second between two requests, on average.
        path: A path, or a glob.
    """

    subject: str
    bound: str
    thousandths: int
    path: str = ANYWHERE


@dataclass(frozen=True, slots=True)
class Keeping:
    """The files let the crawlers keep copies for at most a number of days.

    Attributes:
        subject: One of GROUPS, or the name of a crawler.
        path: A path, or a glob.
        days: The number of days.
    """

    subject: str
    path: str
    days: int


@dataclass(frozen=True, slots=True)
class Showing:
    """The files let the crawlers show at most a number of words or characters.

    Attributes:
        subject: One of GROUPS, or the name of a crawler.
        path: A path, or a glob.
        number: The number of units.
        unit: "words" or "characters".
    """

    subject: str
    path: str
    number: int
    unit: str


Meaning = Fetching | Using | Waiting | Keeping | Showing


class Form(NamedTuple):
    """One form of sentences: a row of the table in docs/expectations.md.

    Attributes:
        pattern: The form, with the names of its parts in capitals.
        example: A sentence of this form.
        explanation: The condition under which such a sentence holds.
    """

    pattern: str
    example: str
    explanation: str


FORMS = (
    Form(
        "CRAWLER may fetch PATH",
        "everybody may fetch /",
        "the files permit a plain GET request",
    ),
    Form(
        "CRAWLER must not fetch PATH",
        "GPTBot must not fetch /x",
        "the files refuse every request",
    ),
    Form(
        "CRAWLER may fetch PATH under conditions",
        "everybody may fetch /api/** under conditions",
        "the files permit some requests only: for a purpose, at some hours, with a key",
    ),
    Form(
        "CRAWLER may USE PATH",
        "Googlebot may show snippets of /news/**",
        "the files permit the use by name, and do not refuse the request",
    ),
    Form(
        "CRAWLER must not USE PATH",
        "GPTBot must not train on /**",
        "the files refuse the use. A refusal of requests alone is no refusal of a use",
    ),
    Form(
        "USE is permitted|refused|left open [to CRAWLER] on PATH",
        "training is refused on /**",
        "as the two forms above; `left open`: the files state nothing about the use",
    ),
    Form(
        "CRAWLER waits at least|most N s [on PATH]",
        "ExampleBot waits at least 5 s",
        "the strictest rate in the files is one request in N seconds, or slower; or faster",
    ),
    Form(
        "CRAWLER keeps PATH at most N days",
        "everybody keeps /news/** at most 30 days",
        "the files limit copies (use `preserve`) to N days or less, or refuse them",
    ),
    Form(
        "CRAWLER shows at most N words|characters of PATH",
        "everybody shows at most 50 words of /**",
        "the files limit snippets (use `present-snippet`) to N or less, or refuse them",
    ),
)

# Names of several words are in quotes.
_SUBJECT = (
    r"(?P<subject>everybody else|known training crawlers|"
    rf"{ONE_WORD.pattern}|\"{NAME.pattern}\"|'{NAME.pattern}')"
)
_AT_PATH = r"(?P<path>/\S*)"
_USE = rf"(?P<use>{'|'.join(sorted((*VERBS, *NOUNS), key=len, reverse=True))}|[A-Za-z][\w-]*)"
_NUMBER = r"(?P<number>[0-9]{1,9})"


def parse(sentence: str, default: str = EVERYBODY) -> Meaning:
    """Return the meaning of a sentence.

    `default`: the crawlers in sentences that name none, e.g. "training is refused on /".
    SentenceError: the sentence is not understood."""
    words = " ".join(sentence.split())
    for pattern, make in _FORMS:
        if match := pattern.fullmatch(words):
            parts = {name: part for name, part in match.groupdict().items() if part is not None}
            if parts.get("subject", "").lower() in _NOT_NAMES:
                break
            parts["subject"] = _subject(parts.get("subject", default))
            parts["path"] = _path(parts.get("path", ANYWHERE))
            return make(parts)
    raise SentenceError(
        f"`{sentence}` is not understood: write `{nearest_sentence(words)}`, "
        "or another form of `comity check --help`"
    )


def _subject(text: str) -> str:
    name = text.strip("\"'")
    return name.lower() if name.lower() in GROUPS else name


def is_subject(text: str) -> bool:
    """Return True if a sentence can be about these crawlers."""
    is_name = NAME.fullmatch(text) is not None and text.lower() not in _NOT_NAMES
    return is_name or text.lower() in GROUPS


def _path(path: str) -> str:
    if "#" in path:
        raise SentenceError(f"`{path}` has a fragment: leave out `#` and the text after it")
    if "***" in path:
        raise SentenceError(f"`{path}` has three asterisks: write `*` or `**`")
    return path


def _use(name: str) -> str:
    use = VERBS.get(name.lower()) or NOUNS.get(name.lower()) or name.lower()
    if use not in _USES:
        names = sorted({*NOUNS, *_USES})
        close = max(names, key=lambda known: SequenceMatcher(None, known, use).ratio())
        raise SentenceError(
            f"`{name}` is no use: write `{close}`, or another of {', '.join(NOUNS)}"
        )
    return use


def _fetching(parts: dict[str, str]) -> Fetching:
    answer = LIMITED if parts.get("conditions") else parts["modal"].lower()
    return Fetching(parts["subject"], parts["path"], answer)


def _using(parts: dict[str, str]) -> Using:
    answer = (
        parts.get("answer", "").lower() or {YES: PERMITTED, NO: REFUSED}[parts["modal"].lower()]
    )
    return Using(parts["subject"], _use(parts["use"]), parts["path"], answer)


def _waiting(parts: dict[str, str]) -> Waiting:
    whole, _, fraction = parts["seconds"].partition(".")
    thousandths = int(whole) * 1000 + int(fraction.ljust(3, "0") or 0)
    return Waiting(parts["subject"], parts["bound"].lower(), thousandths, parts["path"])


def _keeping(parts: dict[str, str]) -> Keeping:
    return Keeping(parts["subject"], parts["path"], int(parts["number"]))


def _showing(parts: dict[str, str]) -> Showing:
    return Showing(parts["subject"], parts["path"], int(parts["number"]), parts["unit"].lower())


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[dict[str, str]], Meaning]], ...] = (
    (_compile(rf"{_SUBJECT} may fetch {_AT_PATH} (?P<conditions>under conditions)"), _fetching),
    (_compile(rf"{_SUBJECT} (?P<modal>may|must not) fetch {_AT_PATH}"), _fetching),
    (_compile(rf"{_SUBJECT} (?P<modal>may|must not) {_USE} {_AT_PATH}"), _using),
    (
        _compile(
            rf"{_USE} (?:is|are) (?P<answer>permitted|refused|left open)"
            rf"(?: to {_SUBJECT})? on {_AT_PATH}"
        ),
        _using,
    ),
    (
        _compile(
            rf"{_SUBJECT} waits? at (?P<bound>least|most)"
            rf" (?P<seconds>[0-9]{{1,9}}(?:\.[0-9]{{1,3}})?) (?:s|seconds?)(?: on {_AT_PATH})?"
        ),
        _waiting,
    ),
    (_compile(rf"{_SUBJECT} keeps? {_AT_PATH} at most {_NUMBER} days?"), _keeping),
    (
        _compile(rf"{_SUBJECT} shows? at most {_NUMBER} (?P<unit>words|characters) of {_AT_PATH}"),
        _showing,
    ),
)


def write(meaning: Meaning) -> str:
    """Return the sentence of a meaning."""
    subject, path = _written(meaning.subject), meaning.path
    match meaning:
        case Fetching(answer=answer):
            modal = YES if answer == LIMITED else answer
            conditions = " under conditions" if answer == LIMITED else ""
            return f"{subject} {modal} fetch {path}{conditions}"
        case Using(use=use, answer=answer):
            noun = _NOUN_OF.get(use, use)
            verb = "are" if noun in ("snippets", "copies", "answers") else "is"
            return f"{noun} {verb} {answer} to {subject} on {path}"
        case Waiting(bound=bound, thousandths=thousandths):
            seconds = f"{thousandths // 1000}.{thousandths % 1000:03}".rstrip("0").rstrip(".")
            place = "" if path == ANYWHERE else f" on {path}"
            return f"{subject} {_verb('wait', subject)} at {bound} {seconds} s{place}"
        case Keeping(days=days):
            return f"{subject} {_verb('keep', subject)} {path} at most {days} days"
        case Showing(number=number, unit=unit):
            return f"{subject} {_verb('show', subject)} at most {number} {unit} of {path}"


def _written(subject: str) -> str:
    return f'"{subject}"' if " " in subject and subject not in GROUPS else subject


def _verb(verb: str, subject: str) -> str:
    return verb if subject == TRAINING_CRAWLERS else f"{verb}s"


_REFUSING = re.compile(
    r"\b(?:not|never|no|nobody|cannot|forb|den[iy]|disallow|block|prohibit|refus)|n't\b",
    re.IGNORECASE,
)
_AT_MOST = re.compile(r"\b(?:most|max|up to|less|faster)", re.IGNORECASE)


def nearest_sentence(sentence: str) -> str:
    """Return the sentence that resembles a text most, with the text's own path and number.

    A text that refuses gets a sentence that refuses."""
    refuses = _REFUSING.search(sentence) is not None
    bound = MOST if _AT_MOST.search(sentence) else LEAST
    return max(
        _possible_sentences(sentence, refuses=refuses, bound=bound),
        key=lambda possible: SequenceMatcher(None, possible.lower(), sentence.lower()).ratio(),
    )


def _possible_sentences(sentence: str, *, refuses: bool, bound: str) -> Iterator[str]:
    """Yield sentences of every form, with the crawler, the path and the number of a text."""
    words = sentence.split()
    path = next((word for word in words if word.startswith("/")), "")
    if not path and (url := re.search(r"https?://[^/\s]+(/\S*)?", sentence)):
        path = url[1] or "/"
    path = path.partition("#")[0].replace("***", "**") or "/"
    number = next(iter(re.findall(r"[0-9]{1,9}", sentence.replace(path, " "))), "5")
    groups = [group for group in GROUPS if sentence.lower().startswith(group)]
    groups += [
        _written(crawler.token)
        for crawler in known_crawlers()
        if " " in crawler.token and crawler.token.lower() in sentence.lower()
    ]
    named = [word for word in words[:1] if is_subject(word)]
    others = [word for word in words[1:] if is_subject(word) and word[0].isupper()]
    modal, answers = (NO, (REFUSED,)) if refuses else (YES, (PERMITTED, OPEN))
    for subject in dict.fromkeys((*groups, *named, *others, EVERYBODY)):
        yield f"{subject} {modal} fetch {path}"
        yield from (f"{subject} {modal} {verb} {path}" for verb in (*VERBS, "index", "preserve"))
        if not refuses:
            yield f"{subject} may fetch {path} under conditions"
        yield f"{subject} keeps {path} at most {number} days"
        yield f"{subject} waits at {bound} {number} s"
        for unit in ("words", "characters"):
            yield f"{subject} shows at most {number} {unit} of {path}"
    for noun, answer in product((*NOUNS, "follow", "preserve"), answers):
        yield f"{noun} is {answer} on {path}"
        yield from (f"{noun} is {answer} to {subject} on {path}" for subject in others)
