"""The second opinion: what other readers of robots.txt would do about a URL, and why it is not what comity does.

    READERS                                      one row for each reader; none whose time a site can make exponential
    second_opinions(site, agent, url, decision)  what each that is installed would do
    differing(site, tokens)                      which of them decide otherwise of URLs that its lines speak of
    unread_uses(agent, page, decision)           which refusals of uses none of them reads
    sentences(opinions, uses)                    both for people, where there is a difference

A reader is asked by its own code, about the file as it was fetched and under the product token. Why it differs is tried out: the
file is written anew, in steps that say the same to comity (REWRITINGS), and the first one after which the reader agrees is what
it reads otherwise. Which of the site's lines it goes by is tried out as well, by leaving lines out."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from w3lib.url import safe_url_string

from comity.policies import Agent, Decision, Fetched, Page, Site, Verdict
from comity.policies.answers.fetched import Availability, availability
from comity.policies.answers.markup import is_marked_up
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.lines import EOL, MAX_BYTES, text_of
from comity.policies.syntax.path_patterns import normal_pattern, normal_target
from comity.policies.syntax.printable import printable
from comity.policies.syntax.records import Kind, read_record
from comity.policies.syntax.urls import spellings, target_of

# Octets of a file times those of the target: about what matching may cost at each try. Beyond it only the verdicts are given.
MAX_EXPLAINED = 16 * 1024 * 1024

Allows = Callable[[str, str], bool]  # (product token, absolute URL)


class Outcome(NamedTuple):
    """The decision of a reader that reads no file."""

    allowed: bool | None  # None: it raises, or nobody knows
    cause: str


class Reader(NamedTuple):
    module: str  # that is imported when the reader is asked
    subject: str  # of a sentence
    parse: Callable[
        [Any, bytes], Allows
    ]  # the module and a body; raises whatever the reader raises
    outcome: Callable[[Fetched], Outcome | None]  # None: it reads the body


class Opinion(NamedTuple):
    """The decision of one reader about a URL."""

    reader: str  # the name of its module
    verdict: Verdict | None  # ALLOW or DENY; None: it raises, or nobody knows; `cause` says so
    agrees: bool | None  # with comity; None as above
    cause: str  # why it differs: a verb and its objects; "" where it agrees, and where the cause was not found
    line: int  # of robots.txt, 1-based, that it goes by, or that it reads otherwise; 0: none that could be told
    text: str  # that line as written, printable

    @property
    def as_json(self) -> dict[str, Any]:
        return {
            "reader": self.reader,
            "verdict": self.verdict.value if self.verdict else None,
            "agrees": self.agrees,
            "why": self.cause,
            "line": self.line,
            "text": self.text,
        }


# What each reader does with a body.


def _protego(module: Any, body: bytes) -> Allows:
    """Decode the body as scrapy.robotstxt.ProtegoRobotParser, Scrapy's default, does."""
    parsed = module.Protego.parse(body.decode("utf-8-sig", "ignore"))
    return lambda token, url: bool(parsed.can_fetch(url, token))


def _robotparser(module: Any, body: bytes) -> Allows:
    """Call its own `read`, whose decoding differs between versions of Python: a data URL needs no network."""
    parser = module.RobotFileParser(f"data:text/plain;base64,{base64.b64encode(body).decode()}")
    parser.read()
    return lambda token, url: bool(parser.can_fetch(token, url))


def _google(module: Any, body: bytes) -> Allows:
    return lambda token, url: bool(module.RobotsMatcher().OneAgentAllowedByRobots(body, token, url))


# What each reader does with what came back, besides a body.

_UNKNOWN_TARGET = Outcome(
    None, "follows redirects by rules of its own: what they lead to is not known"
)


def _scrapy_outcome(fetched: Fetched) -> Outcome | None:
    """scrapy.downloadermiddlewares.robotstxt: the body of any answer is parsed, and where none comes, everything is fetched."""
    if fetched.unreachable_since:
        return Outcome(True, "keeps no copy of a robots.txt that stands in while the server fails")
    if fetched.body:
        return None
    if fetched.error:
        return Outcome(True, "fetches everything where robots.txt cannot be had")
    match fetched.status // 100:
        case 2:
            return None
        case 3:
            return _UNKNOWN_TARGET
        case _:
            return Outcome(
                True,
                f"reads the answer with status {fetched.status} as a robots.txt, and finds no rules there",
            )


def _google_outcome(fetched: Fetched) -> Outcome | None:
    """Google's crawlers, by developers.google.com/search/docs/crawling-indexing/robots/robots_txt:
    429, 5xx and network errors count as a complete disallow, other answers 4xx and redirects after the fifth as no file."""
    if (
        fetched.status == 429
        or fetched.status >= 500
        or (fetched.error and fetched.status // 100 not in (2, 3))
    ):
        return Outcome(False, "stops crawling where robots.txt cannot be had, says Google")
    if fetched.status // 100 == 2:
        return None
    return Outcome(True, f"takes status {fetched.status} for no robots.txt, says Google")


def _robotparser_outcome(fetched: Fetched) -> Outcome | None:
    """urllib.robotparser.RobotFileParser.read"""
    if fetched.unreachable_since:
        return Outcome(None, "what the server answers now is not known")
    if fetched.status // 100 == 2:
        return None
    if fetched.status in (401, 403):
        return Outcome(
            False, f"takes status {fetched.status} of robots.txt for a refusal of everything"
        )
    match fetched.status // 100:
        case 4:
            return Outcome(True, f"takes status {fetched.status} for no robots.txt")
        case 5:
            return Outcome(False, f"refuses everything after status {fetched.status} of robots.txt")
        case 3:
            return _UNKNOWN_TARGET
        case _:
            return Outcome(None, "raises URLError where robots.txt cannot be had")


READERS = (
    Reader("protego", "Scrapy by itself", _protego, _scrapy_outcome),
    Reader("urllib.robotparser", "urllib.robotparser", _robotparser, _robotparser_outcome),
    Reader("jwm.robotstxt.googlebot", "Google's parser", _google, _google_outcome),
)


def second_opinions(site: Site, agent: Agent, url: str, decision: Decision) -> list[Opinion]:
    """The opinions of the readers that are installed about a plain request for the URL. `decision`: of comity. Never raises."""
    return [
        _opinion(reader, module, site, Question(b"", agent.token, safe_url_string(url)), decision)
        for reader in READERS
        if (module := _module(reader)) is not None
    ]


MAX_PROBES = 50  # URLs that are tried of a file


def differing(site: Site, tokens: Iterable[str]) -> Iterator[tuple[str, Agent, str]]:
    """The readers that are installed, the agents and the URLs of which robots.txt by itself says another thing to the reader.

    Tried are the first MAX_PROBES URLs that its rules speak of, as it is taken. Never raises."""
    fetched = site.files[f"{site.origin}/robots.txt"]
    if availability(fetched) is not Availability.PRESENT:
        return
    alone = Site.from_files(site.origin, {"/robots.txt": fetched})
    urls = [site.origin + target for target in islice(_probes(fetched.body), MAX_PROBES)]
    decisions = (
        (agent, url, alone.access(agent, url)) for agent in map(Agent, tokens) for url in urls
    )
    # Visit-time, and what ACAP says: no reader knows of it.
    decided = [
        row
        for row in decisions
        if row[2].reasons[0].rule.startswith("robots.") and row[2].verdict is not Verdict.DEFER
    ]
    for reader in READERS:
        module = _module(reader)
        allows = _parsed(reader, module, fetched.body) if module else None
        for agent, url, decision in decided:
            if allows and _ask(allows, agent.token, safe_url_string(url)) is (
                decision.verdict is not Verdict.ALLOW
            ):
                yield reader.module, agent, url


def _probes(body: bytes) -> Iterator[str]:
    """A target for each pattern of a rule that begins with a slash, which matches it."""
    lines = _lines(body)
    patterns = (
        normal_pattern(record.value) for record in _records(lines) if record.kind is not Kind.AGENT
    )
    targets = (pattern.removesuffix("$").replace("*", "x") for pattern in patterns)
    yield from dict.fromkeys(target for target in targets if target.startswith("/"))


def _parsed(reader: Reader, module: Any, body: bytes) -> Allows | None:
    try:
        return reader.parse(module, body)
    except Exception:  # code of others, about a file that anybody may have written
        return None


def _ask(allows: Allows, token: str, url: str) -> bool | None:
    try:
        return allows(token, url)
    except Exception:  # as above
        return None


def _module(reader: Reader) -> Any:
    """Import the reader; None where it is not installed, or cannot be imported."""
    try:
        return import_module(reader.module)
    except Exception:  # code of others, of which nothing depends here
        return None


class Question(NamedTuple):
    """A question to a reader."""

    body: bytes
    token: str
    url: str

    @property
    def target(self) -> str:
        return target_of(self.url)


def _opinion(
    reader: Reader, module: Any, site: Site, question: Question, decision: Decision
) -> Opinion:
    fetched = site.files[f"{site.origin}/robots.txt"]
    opinion = partial(Opinion, reader.module)
    question = question._replace(body=fetched.body)
    outcome = reader.outcome(fetched)
    if outcome is None:
        try:
            outcome = Outcome(reader.parse(module, question.body)(question.token, question.url), "")
        except Exception as error:  # code of others, about a file that anybody may have written
            outcome = Outcome(None, f"raises {type(error).__name__} when it reads robots.txt")
    if outcome.allowed is None:
        return opinion(None, None, outcome.cause, 0, "")
    verdict = Verdict.ALLOW if outcome.allowed else Verdict.DENY
    if outcome.allowed is (decision.verdict is Verdict.ALLOW):
        return opinion(verdict, True, "", 0, "")
    if outcome.cause:
        return opinion(verdict, False, outcome.cause, 0, "")
    asks = partial(_answer, reader, module)
    if len(question.body) * len(question.target) > MAX_EXPLAINED:
        return opinion(verdict, False, "", 0, "")
    cause = _cause_of_difference(asks, site, question, decision, allowed=outcome.allowed)
    line_of = _agent_line if cause == _NAMES else _rule_line
    return opinion(verdict, False, cause, *line_of(asks, question, allowed=outcome.allowed))


def _answer(reader: Reader, module: Any, question: Question) -> bool | None:
    """The reader's answer; None: it raises."""
    allows = _parsed(reader, module, question.body)
    return _ask(allows, question.token, question.url) if allows else None


Asks = Callable[[Question], bool | None]


def _cause_of_difference(
    asks: Asks, site: Site, question: Question, decision: Decision, *, allowed: bool
) -> str:
    reason = decision.reasons[0]
    form = reason.rule.partition(".")[0]
    path = urlsplit(reason.source.url).path
    if reason.source.url != f"{site.origin}/robots.txt":
        return f"reads robots.txt alone, and not {printable(path)}"
    if form != "robots":
        return f"reads User-agent, Allow and Disallow alone, and nothing of {form.upper()}"
    if reason.rule == "robots.visit-time":
        return "heeds no Visit-time"
    if reason.rule == "robots.self":
        return "lets a robots.txt forbid itself"
    if reason.rule in ("robots.unavailable", "robots.unreachable"):
        return _reads_as_robots_txt(site.files[reason.source.url])
    if is_marked_up(question.body):
        return "reads robots.txt with its tags, and what it permits between them"
    if _is_allowed(question) is allowed:
        if any(
            _is_allowed(question._replace(url=site.origin + target)) is not allowed
            for target in spellings(question.url)
        ):
            return "compares the path as it is sent, and none that servers may take it for"
        return "reads User-agent, Allow and Disallow alone, and nothing of ACAP"
    alone = ((cause, rewrite(question)) for cause, rewrite in REWRITINGS)
    for cause, rewritten in (*alone, *_one_after_the_other(question)):
        if rewritten != question and asks(rewritten) is not allowed and asks(rewritten) is not None:
            return cause
    return ""


def _reads_as_robots_txt(fetched: Fetched) -> str:
    if fetched.status == 206:
        return "reads a part of a robots.txt as the whole of it"
    answer = (
        "an HTML page" if fetched.status // 100 == 2 else f"the answer with status {fetched.status}"
    )
    return f"reads {answer} as a robots.txt"


def _one_after_the_other(question: Question) -> Iterator[tuple[str, Question]]:
    for cause, rewrite in REWRITINGS:
        question = rewrite(question)
        yield cause, question


# Lines that may permit or refuse, in any spelling that readers know, and wherever they take a line to begin.
_PERMITS = re.compile(rb"(?<![A-Za-z])(?i:allow)")
_REFUSES = re.compile(rb"(?i:di[a-z]+w)")


def _rule_line(asks: Asks, question: Question, *, allowed: bool) -> tuple[int, str]:
    """The line without which the reader would answer otherwise, the lines of its kind before it left out as well.

    A comment stands where the line was: a blank line ends groups for some."""
    kind = _PERMITS if allowed else _REFUSES
    lines = re.split(EOL, question.body)
    edits = {
        index: b"#" for index, line in enumerate(lines) if kind.search(line.partition(b"#")[0])
    }
    return _flipping(asks, question, edits, allowed=allowed)


def _agent_line(asks: Asks, question: Question, *, allowed: bool) -> tuple[int, str]:
    """The User-agent line that names for the reader somebody else than for comity."""
    lines = re.split(EOL, question.body)
    token = question.token.encode()
    edits = {}
    for record in _records(lines):
        if record.kind is Kind.AGENT and (addressee := _addressee(record, question.token)) != "*":
            edits[record.line_index] = b"User-agent: " + (
                token if addressee == _OURS else b"not-" + token
            )
    return _flipping(asks, question, edits, allowed=allowed)


def _flipping(
    asks: Asks, question: Question, edits: dict[int, bytes], *, allowed: bool
) -> tuple[int, str]:
    """Number and text of the line whose edit, after all edits before it, changes the reader's answer; 0 and "": none does.

    `edits`: index of a line -> what it becomes, in order."""
    parts = re.split(b"(%s)" % EOL, question.body)  # by turns lines and their ends

    def flips(number: int) -> bool:
        edited = parts.copy()
        for index, line in islice(edits.items(), number):
            edited[2 * index] = line
        return asks(question._replace(body=b"".join(edited))) is (not allowed)

    low, high = 0, len(edits)
    if not edits or not flips(high):
        return 0, ""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if flips(middle) else (middle, high)
    index = list(edits)[high - 1]
    return index + 1, printable(parts[2 * index].removeprefix(b"\xef\xbb\xbf"))


# The rewritings: each says the same to comity as the file before it.


class _Record(NamedTuple):
    line_index: int
    kind: Kind  # AGENT, ALLOW or DISALLOW
    value: bytes


_GROUPS = (Kind.AGENT, Kind.ALLOW, Kind.DISALLOW)


def _lines(body: bytes) -> list[bytes]:
    return re.split(EOL, text_of(body)[0])


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _records(lines: list[bytes]) -> Iterator[_Record]:
    """The records of groups, which have a User-agent line and are no ACAP record."""
    in_group = False
    for index, line in enumerate(lines):
        record = read_record(line)
        if record is None:
            continue
        if record.kind in (Kind.AGENT, Kind.ACAP_CRAWLER):
            in_group = record.kind is Kind.AGENT
        if (
            in_group
            and record.kind in _GROUPS
            and not (record.kind is Kind.ALLOW and record.overlong)
        ):
            yield _Record(index, record.kind, record.value)


def _rules(question: Question) -> robots.AgentRules:
    return robots.parse(question.body).for_agent(question.token)


def _is_allowed(question: Question) -> bool:
    """The answer by RFC 9309 alone."""
    rule = _rules(question).decide(question.target)
    return rule is None or rule.verdict is Verdict.ALLOW


def _own_lines(question: Question) -> list[bytes]:
    """The rules that bind the agent, in the order of the file."""
    lines = _lines(question.body)
    parsed = robots.parse(question.body)
    indices = {
        number - 1
        for group in parsed.groups_naming(question.token)
        for number in parsed.lines_of(group)[: len(lines)]  # the last group has no end
    }
    return [
        lines[record.line_index]
        for record in _records(lines)
        if record.line_index in indices and record.kind is not Kind.AGENT
    ]


def _matching_lines(question: Question) -> list[bytes]:
    """The rules that match, the deciding one first."""
    lines = _lines(question.body)
    return [lines[rule.line - 1] for rule in _rules(question).matching(question.target)]


def _of_everybody(question: Question, rules: Iterable[bytes]) -> Question:
    return question._replace(body=_joined([b"User-agent: *", *rules]))


def _in_utf8(question: Question) -> Question:
    return question._replace(body=text_of(question.body, limit=len(question.body))[0])


def _within_the_limit(question: Question) -> Question:
    return (
        question._replace(body=text_of(question.body)[0])
        if len(question.body) > MAX_BYTES
        else question
    )


# What str.splitlines takes for the end of a line, and RFC 9309 section-2.2 does not.
_NO_END = re.compile(rb"[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]")


def _escaped(octets: re.Match[bytes]) -> bytes:
    return b"".join(b"%%%02X" % octet for octet in octets[0])


def _in_lines(question: Question) -> Question:
    return question._replace(
        body=_joined(_NO_END.sub(_escaped, line) for line in _lines(question.body))
    )


def _in_ascii(question: Question) -> Question:
    return question._replace(
        body=_joined(re.sub(rb"[\x80-\xff]+", _escaped, line) for line in _lines(question.body))
    )


def _spelled_out(question: Question) -> Question:
    lines = _lines(question.body)
    for index, line in enumerate(lines):
        if (record := read_record(line)) is not None:
            lines[index] = record.kind.value + b": " + record.value
    return question._replace(body=_joined(lines))


def _groups_alone(question: Question) -> Question:
    lines = _lines(question.body)
    return question._replace(body=_joined(lines[record.line_index] for record in _records(lines)))


_OURS, _OTHERS = "ours", "theirs"  # neither is a part of the other


def _addressee(record: _Record, token: str) -> str:
    """The one whom a User-agent line names: _OURS, "*" or _OTHERS."""
    names = robots.parse(b"User-agent: " + record.value)
    return _OURS if names.names(token) else "*" if names.names("*") else _OTHERS


def _renamed(question: Question) -> Question:
    lines = _lines(question.body)
    for record in _records(lines):
        if record.kind is Kind.AGENT:
            lines[record.line_index] = f"User-agent: {_addressee(record, question.token)}".encode()
    return question._replace(body=_joined(lines), token=_OURS)


def _in_one_group(question: Question) -> Question:
    return _of_everybody(question, _own_lines(question))


def _by_rank(question: Question) -> Question:
    matching = _matching_lines(question)
    return _of_everybody(
        question, [*matching, *(line for line in _own_lines(question) if line not in matching)]
    )


def _in_normal_form(question: Question) -> Question:
    """Patterns and the URL, as `patterns` compares them."""
    lines = _lines(question.body)
    for record in _records(lines):
        if record.kind is not Kind.AGENT and record.value:
            lines[record.line_index] = (
                record.kind.value + b": " + normal_pattern(record.value).encode()
            )
    return question._replace(
        body=_joined(lines), url=_with_target(question, normal_target(question.target))
    )


def _with_target(question: Question, target: str) -> str:
    parts = urlsplit(question.url)
    return f"{parts.scheme}://{parts.netloc}{target}"


def _matching_alone(question: Question) -> Question:
    return _of_everybody(question, _matching_lines(question))


def _literally(question: Question) -> Question:
    """Put the target for the pattern of the deciding rule, where that has a `*` or `$`; of the others, keep those that have none
    and stay behind it."""
    rule = _rules(question).decide(question.target)
    deciding, *others = _matching_lines(question) or [b""]
    if rule is None or not _SPECIAL.search(_pattern(deciding)):
        return question
    target = normal_target(question.target)
    shorter = [
        line
        for line in others
        if not _SPECIAL.search(_pattern(line)) and len(_pattern(line)) < len(target)
    ]
    return _of_everybody(
        question._replace(url=_with_target(question, target)),
        [_rule(rule.verdict, target), *shorter],
    )


_SPECIAL = re.compile(r"[*$]")


def _pattern(line: bytes) -> str:
    record = read_record(line)
    return normal_pattern(record.value) if record else ""


def _deciding_alone(question: Question) -> Question:
    rule = _rules(question).decide(question.target)
    target = normal_target(question.target)
    line = _rule(rule.verdict if rule else Verdict.ALLOW, target)
    return _of_everybody(question._replace(url=_with_target(question, target)), [line])


def _rule(verdict: Verdict, pattern: str) -> bytes:
    return f"{'Allow' if verdict is Verdict.ALLOW else 'Disallow'}: {pattern}".encode()


_NAMES = "reads the names in User-agent lines otherwise"
REWRITINGS: tuple[tuple[str, Callable[[Question], Question]], ...] = (
    ("reads a byte order mark, or UTF-16, otherwise", _in_utf8),
    (f"reads on after the first {MAX_BYTES // 1024} KiB", _within_the_limit),
    ("ends lines elsewhere than at CR and LF", _in_lines),
    ("reads octets that are not ASCII otherwise", _in_ascii),
    ("reads misspelled names, or lines without a colon, otherwise", _spelled_out),
    ("ends a group, or its list of agents, at lines that are no rules", _groups_alone),
    (_NAMES, _renamed),
    ("does not put together all groups that name the agent", _in_one_group),
    ("goes by the first rule that matches, and not by the longest", _by_rank),
    ("compares escapes such as %2F as they are written", _in_normal_form),
    ("takes another rule to match the path", _matching_alone),
    ("reads `*` or `$` in a pattern otherwise", _literally),
    ("ranks the rules that match otherwise", _deciding_alone),
)


_SUBJECTS = {reader.module: reader.subject for reader in READERS}
_DOES = {
    "allow": "would fetch this",
    "deny": "would not fetch this",
    None: "may or may not fetch this",
}


def unread_uses(agent: Agent, page: Page, decision: Decision) -> list[str]:
    """The declared uses that the site refuses of a page which may be fetched: no reader of robots.txt knows of them."""
    if decision.verdict is not Verdict.ALLOW:
        return []
    return [
        use
        for use in agent.uses
        if (answer := page.uses[use]).stated and answer.verdict is Verdict.DENY
    ]


def sentences(opinions: Iterable[dict[str, Any]], uses: list[str]) -> list[str]:
    """One for each answer that is not comity's, and one for the uses: none where all agree.

    `opinions`: as `Opinion.as_json`. `uses`: as of `unread_uses`."""
    answers: dict[tuple[str, str, str], list[str]] = {}
    for opinion in opinions:
        if not opinion["agrees"]:
            line = f" (robots.txt:{opinion['line']}: {opinion['text']})" if opinion["line"] else ""
            answers.setdefault((_DOES[opinion["verdict"]], opinion["why"], line), []).append(
                _SUBJECTS[opinion["reader"]]
            )
    differing = [
        f"{_enumeration(names)} {does}{_clause(cause, len(names))}{line}"
        for (does, cause, line), names in answers.items()
    ]
    refused = (
        [f"Readers of robots.txt alone know nothing of this refusal: {', '.join(uses)}"]
        if uses
        else []
    )
    return differing + refused


def _enumeration(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _clause(cause: str, readers: int) -> str:
    return f": {'it' if readers == 1 else 'each'} {cause}" if cause else ""
