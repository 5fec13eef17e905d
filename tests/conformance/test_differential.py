"""Real robots.txt files, asked of comity, of Google's parser and of Protego: no difference without a reason.

The files stand beside a checkout of the developers; generated ones are asked everywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from comity.gate.second_opinion import READERS, Allows
from comity.policies import Verdict
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.lines import MAX_BYTES

CORPUS = Path(__file__).parents[3] / "shared/corpus/robots/files"
EOL = re.compile(rb"\r\n?|\n")


class Question(NamedTuple):
    body: bytes
    agent: str
    target: str
    line: robots.RuleLine | None  # that decided, by comity

    @property
    def allowed(self) -> bool:
        return (
            self.target == "/robots.txt" or self.line is None or self.line.verdict is Verdict.ALLOW
        )


def records(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The names and values of a file, as anyone would read them."""
    for line in EOL.split(body.removeprefix(b"\xef\xbb\xbf")):
        name, colon, value = line.partition(b"#")[0].partition(b":")
        if colon:
            yield name.strip(b" \t").lower(), value.strip(b" \t")


def questions(body: bytes, seed: str) -> Iterator[Question]:
    """Some of the file's own agents and paths, and others near them."""
    chance = random.Random(seed)
    agents = sorted(
        {
            match[0].decode()
            for name, value in records(body)
            if name == b"user-agent" and (match := TOKEN.match(value))
        }
    )
    paths = [
        value
        for name, value in records(body)
        if name in (b"allow", b"disallow") and value.startswith(b"/")
    ]
    targets = {"/"}
    for path in chance.sample(paths, min(10, len(paths))):
        target = path.decode("utf-8", "replace").replace("*", "x").rstrip("$")
        if re.fullmatch(r"[!-~]+", target):
            targets |= {target, target + "y"}
    parsed = robots.parse(body)
    for agent in ["examplebot", *chance.sample(agents, min(3, len(agents)))]:
        rules = parsed.for_agent(agent)
        for target in sorted(targets):
            yield Question(body, agent, target, rules.decide(target))


TOKEN = re.compile(rb"[A-Za-z_-]+(?![A-Za-z0-9_-])")


def real(*, in_full: bool) -> Iterator[Question]:
    """All files, or every eighth."""
    for file in sorted(CORPUS.iterdir())[:: 1 if in_full else 8]:
        yield from questions(file.read_bytes(), file.name)


def generated(files: int) -> Iterator[Question]:
    """Files of the grammar of RFC 9309 alone, on which all three should agree but for what is listed."""
    for seed in range(files):
        chance = random.Random(seed)
        lines = []
        for _ in range(chance.randint(1, 4)):
            lines += [
                f"User-agent: {chance.choice(['*', 'alpha', 'beta', 'ALPHA'])}"
                for _ in range(chance.randint(1, 2))
            ]
            for _ in range(chance.randint(1, 6)):
                path = "/" + "".join(
                    chance.choice(["a", "b", "/", "*", "%41", "c?d", "."])
                    for _ in range(chance.randint(0, 6))
                )
                lines.append(
                    f"{chance.choice(['Allow', 'Disallow'])}: {path}{chance.choice(['', '', '$'])}"
                )
        body = "\n".join(lines).encode()
        parsed = robots.parse(body)
        for agent in ("alpha", "beta", "gamma"):
            rules = parsed.for_agent(agent)
            for _ in range(10):
                target = "/" + "".join(
                    chance.choice("abA/c?d.") for _ in range(chance.randint(0, 8))
                )
                yield Question(body, agent, target, rules.decide(target))


_read: dict[
    str, tuple[bytes, Allows]
] = {}  # by module: the body that was read last, and what was made of it


def answer_of(module: str, question: Question) -> bool:
    """As the policy command asks the reader."""
    if module not in _read or _read[module][0] != question.body:  # the questions come file by file
        [reader] = [reader for reader in READERS if reader.module == module]
        _read[module] = question.body, reader.parse(import_module(module), question.body)
    return _read[module][1](question.agent, "https://example.com" + question.target)


def by_google(question: Question) -> bool:
    return answer_of("jwm.robotstxt.googlebot", question)


def by_protego(question: Question) -> bool:
    return answer_of("protego", question)


# Why another parser may answer differently. docs/robots.md explains each.


def is_oversized(question: Question) -> bool:
    """comity reads the first 512 KiB."""
    return len(question.body) > MAX_BYTES


def asks_for_robots_txt(question: Question) -> bool:
    """Google lets a file forbid itself; RFC 9309 section-2.2.2 always allows it."""
    return question.target == "/robots.txt"


def cuts_the_token(question: Question) -> bool:
    """Google ends a token before its first digit, so that another group, or none, is this agent's."""
    cut = {
        re.match(rb"[A-Za-z_-]*", value)[0].lower()  # type: ignore[index]  # it always matches
        for name, value in records(question.body)
        if name == b"user-agent"
    }
    return question.agent.lower().encode() in cut


def has_more_behind_any(question: Question) -> bool:
    """Google takes `*` for everybody where nothing but white space stands behind it, such as no no-break space."""
    return any(
        name == b"user-agent" and re.match(rb"\*[^\s\w*-]", value) is not None
        for name, value in records(question.body)
    )


def decoded(match: re.Match[bytes]) -> bytes:
    octet = bytes.fromhex(match[1].decode())
    return octet if re.fullmatch(rb"[A-Za-z0-9._~-]", octet) else match[0].upper()


def compares_escapes_as_written(question: Question) -> bool:
    """Google compares escapes as they are written; RFC 9309 section-2.2.2 decodes them before. Then it agrees."""
    escape = re.compile(rb"%([0-9A-Fa-f]{2})")
    target = escape.sub(decoded, question.target.encode()).decode()
    return (
        by_google(question._replace(body=escape.sub(decoded, question.body), target=target))
        == question.allowed
    )


def names_more_than_a_token(question: Question) -> bool:
    """Protego takes the whole value for the token: `examplebot/1.0` or `examplebot crawler` names nobody there."""
    agent = question.agent.lower().encode()
    return any(
        name == b"user-agent" and value.lower() != agent and agent in value.lower()
        for name, value in records(question.body)
    )


def matches_part_of_a_token(question: Question) -> bool:
    """Protego gives an agent the group of a token that its name begins with."""
    agent = question.agent.lower().encode()
    values = {value.lower() for name, value in records(question.body) if name == b"user-agent"}
    return any(value and agent.startswith(value) and agent != value for value in values)


def ends_the_agents_early(question: Question) -> bool:
    """Any line between two User-agent lines ends the list for Protego; for RFC 9309 only a rule does."""
    naming = other = False
    for name, _ in records(question.body):
        if name == b"user-agent":
            if naming and other:
                return True
            naming, other = True, False
        elif name in (b"allow", b"disallow"):
            naming = False
        else:
            other = True
    return False


def is_no_utf8(question: Question) -> bool:
    """Octets that are not UTF-8 are lost to Protego."""
    return _text(question.body).encode() != question.body.removeprefix(b"\xef\xbb\xbf")


def adds_the_end_twice(question: Question) -> bool:
    """Protego adds a rule that ends in `$` a second time, with a literal `$`."""
    return question.line is not None and question.line.path_pattern.endswith("$")


def _text(octets: bytes) -> str:
    return octets.decode("utf-8-sig", "ignore")


GOOGLE: list[Callable[[Question], bool]] = [
    is_oversized,
    asks_for_robots_txt,
    cuts_the_token,
    has_more_behind_any,
    compares_escapes_as_written,
]
PROTEGO: list[Callable[[Question], bool]] = [
    is_oversized,
    names_more_than_a_token,
    matches_part_of_a_token,
    ends_the_agents_early,
    is_no_utf8,
    adds_the_end_twice,
]


def differing(
    asked: Iterator[Question], answer: Callable[[Question], bool]
) -> tuple[int, list[Question]]:
    """How many questions there were, and those that are answered differently."""
    questions_asked = list(asked)
    return len(questions_asked), [
        question for question in questions_asked if answer(question) != question.allowed
    ]


def unexplained(found: list[Question], reasons: list[Callable[[Question], bool]]) -> list[str]:
    without = [question for question in found if not any(reason(question) for reason in reasons)]
    return [f"{question.agent} {question.target}: {question.line}" for question in without]


@pytest.mark.skipif(not CORPUS.exists(), reason="the real files are not here")
@pytest.mark.requirement("RFC-2", "RFC-3", "RFC-12")
@pytest.mark.parametrize(
    ("answer", "reasons"), [(by_google, GOOGLE), (by_protego, PROTEGO)], ids=["google", "protego"]
)
def test_real_files(
    answer: Callable[[Question], bool], reasons: list[Callable[[Question], bool]], *, in_full: bool
) -> None:
    count, found = differing(real(in_full=in_full), answer)
    assert count > (15_000 if in_full else 1_500)
    assert unexplained(found, reasons) == []
    if not in_full:
        return
    unneeded = [reason.__name__ for reason in reasons if not any(map(reason, found))]
    assert unneeded == []


@pytest.mark.requirement("RFC-2", "RFC-3")
@pytest.mark.parametrize(
    ("answer", "reasons"),
    [(by_google, [compares_escapes_as_written]), (by_protego, [adds_the_end_twice])],
    ids=["google", "protego"],
)
def test_generated_files(
    answer: Callable[[Question], bool], reasons: list[Callable[[Question], bool]], *, in_full: bool
) -> None:
    files = 400 if in_full else 100
    count, found = differing(generated(files), answer)
    assert count == 30 * files
    assert unexplained(found, reasons) == []
