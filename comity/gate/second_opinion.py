"""The second opinion: other readers' decisions about a URL by robots.txt, and why they differ.

    READERS                                      one row for each reader. A reader is left out if a
                                                 site can make its time exponential
    second_opinions(site, agent, url, decision)  the decision of each installed reader
    differing(site, tokens)                      the readers that decide differently about URLs in
                                                 the rules of the file
    unread_uses(agent, page, decision)           the refused uses that no reader knows about
    sentences(opinions, uses)                    sentences for people, if there is a difference

A reader decides by its own code, with the file as it was fetched and the product token. Experiments
find the cause of a difference: the file is rewritten in steps that change nothing for comity
(REWRITINGS). The first step after which the reader agrees names the cause. The line that the reader
follows is found by experiments too, by leaving lines out."""

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
from comity.policies.syntax.records import RecordKind, read_record
from comity.policies.syntax.urls import spellings, target_of

# The maximum product of the octets of a file and the octets of the target, which is about the cost
# of one experiment. Beyond it, opinions have a verdict and no cause.
MAX_EXPLAINED = 16 * 1024 * 1024

Allows = Callable[[str, str], bool]  # (product token, absolute URL)


class ReaderOutcome(NamedTuple):
    """A decision of a reader, made with or without reading the body.

    Attributes:
        allowed: True if the reader allows the request. None means that the reader raises an
            exception, or that its decision is unknown.
        cause: The reason of the decision, as a verb and its objects: "treats status 404 as no
            robots.txt". "" if the rules in the body decide.
    """

    allowed: bool | None
    cause: str


class RobotsReader(NamedTuple):
    """Another reader of robots.txt.

    Attributes:
        module: The name of the reader's module, which is imported when it is needed.
        subject: The reader's name in sentences.
        parse: Called with the module and a body. It may raise any exception of the reader.
        outcome: Called with the answer for robots.txt. Returns the reader's decision if the status
            or an error decides. None means that the reader reads the body.
    """

    module: str
    subject: str
    parse: Callable[[Any, bytes], Allows]
    outcome: Callable[[Fetched], ReaderOutcome | None]


class Opinion(NamedTuple):
    """The decision of one reader about a URL.

    Attributes:
        reader: The name of the reader's module.
        verdict: ALLOW or DENY. None means that the reader raises an exception, or that its decision
            is unknown: see `cause`.
        agrees: True if the reader decides like comity. None means that `verdict` is None.
        cause: Why the reader differs, as a verb and its objects. "" means that the reader agrees,
            or that the cause was not found.
        line: Number of the line in robots.txt, counted from 1, that the reader follows or reads
            differently; 0: no line was found.
        text: This line as written, printable.
    """

    reader: str
    verdict: Verdict | None
    agrees: bool | None
    cause: str
    line: int
    text: str

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


# How each reader parses a body.


def _protego(module: Any, body: bytes) -> Allows:
    """Parse the body with Protego.

    The body is decoded as by scrapy.robotstxt.ProtegoRobotParser, the default of Scrapy."""
    parsed = module.Protego.parse(body.decode("utf-8-sig", "ignore"))
    return lambda token, url: bool(parsed.can_fetch(url, token))


def _robotparser(module: Any, body: bytes) -> Allows:
    """Parse the body with the reader's own `read`, through a data URL, which needs no network.

    The decoding in `read` differs between versions of Python."""
    parser = module.RobotFileParser(f"data:text/plain;base64,{base64.b64encode(body).decode()}")
    parser.read()
    return lambda token, url: bool(parser.can_fetch(token, url))


def _google(module: Any, body: bytes) -> Allows:
    return lambda token, url: bool(module.RobotsMatcher().OneAgentAllowedByRobots(body, token, url))


# How each reader treats status codes and errors.

_UNKNOWN_TARGET = ReaderOutcome(
    allowed=None,
    cause="follows redirects by rules of its own, so the file that it reads is not known",
)


def _scrapy_outcome(fetched: Fetched) -> ReaderOutcome | None:
    """Decide like scrapy.downloadermiddlewares.robotstxt.

    That middleware parses the body of any answer, and allows everything if there is no body."""
    if fetched.unreachable_since:
        return ReaderOutcome(
            allowed=True, cause="keeps no copy of robots.txt for the time while the server fails"
        )
    if fetched.body:
        return None
    if fetched.error:
        return ReaderOutcome(
            allowed=True, cause="fetches everything if robots.txt cannot be fetched"
        )
    match fetched.status // 100:
        case 2:
            return None
        case 3:
            return _UNKNOWN_TARGET
        case _:
            return ReaderOutcome(
                allowed=True,
                cause=f"reads the answer with status {fetched.status} as a robots.txt,"
                " and finds no rules there",
            )


def _google_outcome(fetched: Fetched) -> ReaderOutcome | None:
    """Decide like Google's crawlers.

    developers.google.com/search/docs/crawling-indexing/robots/robots_txt: 429, 5xx and network
    errors refuse everything. Other 4xx answers and redirects after the fifth count as no file."""
    if (
        fetched.status == 429
        or fetched.status >= 500
        or (fetched.error and fetched.status // 100 not in (2, 3))
    ):
        return ReaderOutcome(
            allowed=False, cause="stops crawling if robots.txt cannot be fetched, says Google"
        )
    if fetched.status // 100 == 2:
        return None
    return ReaderOutcome(
        allowed=True, cause=f"treats status {fetched.status} as no robots.txt, says Google"
    )


def _robotparser_outcome(fetched: Fetched) -> ReaderOutcome | None:
    """Decide like urllib.robotparser.RobotFileParser.read."""
    if fetched.unreachable_since:
        return ReaderOutcome(
            allowed=None, cause="depends on the server's answer now, which is not known"
        )
    if fetched.status // 100 == 2:
        return None
    if fetched.status in (401, 403):
        return ReaderOutcome(
            allowed=False,
            cause=f"treats status {fetched.status} of robots.txt as a refusal of everything",
        )
    match fetched.status // 100:
        case 4:
            return ReaderOutcome(
                allowed=True, cause=f"treats status {fetched.status} as no robots.txt"
            )
        case 5:
            return ReaderOutcome(
                allowed=False,
                cause=f"refuses everything after status {fetched.status} of robots.txt",
            )
        case 3:
            return _UNKNOWN_TARGET
        case _:
            return ReaderOutcome(
                allowed=None, cause="raises URLError if robots.txt cannot be fetched"
            )


READERS = (
    RobotsReader("protego", "Scrapy by itself", _protego, _scrapy_outcome),
    RobotsReader("urllib.robotparser", "urllib.robotparser", _robotparser, _robotparser_outcome),
    RobotsReader("jwm.robotstxt.googlebot", "Google's parser", _google, _google_outcome),
)


def second_opinions(site: Site, agent: Agent, url: str, decision: Decision) -> list[Opinion]:
    """Return the opinions of the installed readers about a plain request for the URL.

    `decision`: the decision of comity. Never raises."""
    return [
        _opinion(
            reader, module, site, ReaderQuestion(b"", agent.token, safe_url_string(url)), decision
        )
        for reader in READERS
        if (module := _module(reader)) is not None
    ]


MAX_PROBES = 50  # the maximum number of URLs that are tried for each file


def differing(site: Site, tokens: Iterable[str]) -> Iterator[tuple[str, Agent, str]]:
    """Yield each installed reader, agent and URL for which the reader decides differently.

    `tokens`: the product tokens of the agents. Only robots.txt counts. One URL is tried for each
    pattern in its rules, up to MAX_PROBES. Never raises."""
    fetched = site.files[f"{site.origin}/robots.txt"]
    if availability(fetched) is not Availability.PRESENT:
        return
    alone = Site.from_files(site.origin, {"/robots.txt": fetched})
    urls = [site.origin + target for target in islice(_probes(fetched.body), MAX_PROBES)]
    decisions = (
        (agent, url, alone.access(agent, url)) for agent in map(Agent, tokens) for url in urls
    )
    # Decisions by Visit-time and ACAP are left out, because no reader knows these.
    decided = [
        row
        for row in decisions
        if row[2].reasons[0].rule.startswith("robots.") and row[2].verdict is not Verdict.DEFER
    ]
    for reader in READERS:
        module = _module(reader)
        allows = _parse(reader, module, fetched.body) if module else None
        for agent, url, decision in decided:
            if allows and _ask(allows, agent.token, safe_url_string(url)) is (
                decision.verdict is not Verdict.ALLOW
            ):
                yield reader.module, agent, url


def _probes(body: bytes) -> Iterator[str]:
    """Yield a matching target for each rule with a pattern that begins with a slash."""
    lines = _lines(body)
    patterns = (
        normal_pattern(record.value)
        for record in _records(lines)
        if record.kind is not RecordKind.AGENT
    )
    targets = (pattern.removesuffix("$").replace("*", "x") for pattern in patterns)
    yield from dict.fromkeys(target for target in targets if target.startswith("/"))


def _parse(reader: RobotsReader, module: Any, body: bytes) -> Allows | None:
    """Return the parsed body; None if the reader raises an exception."""
    try:
        return reader.parse(module, body)
    except Exception:  # foreign code, and a file from anywhere
        return None


def _ask(allows: Allows, token: str, url: str) -> bool | None:
    """Return the decision of a parsed file; None if the reader raises an exception."""
    try:
        return allows(token, url)
    except Exception:  # foreign code, and a file from anywhere
        return None


def _module(reader: RobotsReader) -> Any:
    """Return the imported module of the reader; None if it cannot be imported."""
    try:
        return import_module(reader.module)
    except Exception:  # foreign code, which comity can do without
        return None


class ReaderQuestion(NamedTuple):
    """A question to a reader: may the agent with this token fetch the URL by this robots.txt?"""

    body: bytes
    token: str
    url: str

    @property
    def target(self) -> str:
        return target_of(self.url)


def _opinion(
    reader: RobotsReader, module: Any, site: Site, question: ReaderQuestion, decision: Decision
) -> Opinion:
    fetched = site.files[f"{site.origin}/robots.txt"]
    opinion = partial(Opinion, reader.module)
    question = question._replace(body=fetched.body)
    outcome = reader.outcome(fetched)
    if outcome is None:
        try:
            outcome = ReaderOutcome(
                reader.parse(module, question.body)(question.token, question.url), ""
            )
        except Exception as error:  # foreign code, and a file from anywhere
            outcome = ReaderOutcome(
                allowed=None, cause=f"raises {type(error).__name__} when it reads robots.txt"
            )
    if outcome.allowed is None:
        return opinion(None, agrees=None, cause=outcome.cause, line=0, text="")
    verdict = Verdict.ALLOW if outcome.allowed else Verdict.DENY
    if outcome.allowed is (decision.verdict is Verdict.ALLOW):
        return opinion(verdict, agrees=True, cause="", line=0, text="")
    if outcome.cause:
        return opinion(verdict, agrees=False, cause=outcome.cause, line=0, text="")
    asks = partial(_answer, reader, module)
    if len(question.body) * len(question.target) > MAX_EXPLAINED:
        return opinion(verdict, agrees=False, cause="", line=0, text="")
    cause = _cause_of_difference(asks, site, question, decision, allowed=outcome.allowed)
    line_of = _agent_line if cause == _NAMES else _rule_line
    line, text = line_of(asks, question, allowed=outcome.allowed)
    return opinion(verdict, agrees=False, cause=cause, line=line, text=text)


def _answer(reader: RobotsReader, module: Any, question: ReaderQuestion) -> bool | None:
    """Return the reader's answer; None if the reader raises an exception."""
    allows = _parse(reader, module, question.body)
    return _ask(allows, question.token, question.url) if allows else None


Asks = Callable[[ReaderQuestion], bool | None]


def _cause_of_difference(
    asks: Asks, site: Site, question: ReaderQuestion, decision: Decision, *, allowed: bool
) -> str:
    reason = decision.reasons[0]
    form = reason.rule.partition(".")[0]
    path = urlsplit(reason.source.url).path
    if reason.source.url != f"{site.origin}/robots.txt":
        return f"reads robots.txt only, and not {printable(path)}"
    if form != "robots":
        return f"reads User-agent, Allow and Disallow only, and ignores {form.upper()}"
    if reason.rule == "robots.visit-time":
        return "ignores Visit-time"
    if reason.rule == "robots.self":
        return "obeys rules that forbid robots.txt itself"
    if reason.rule in ("robots.unavailable", "robots.unreachable"):
        return _reads_as_robots_txt(site.files[reason.source.url])
    if is_marked_up(question.body):
        return "reads a robots.txt with HTML tags as it is, permissions included"
    if _is_allowed(question) is allowed:
        if any(
            _is_allowed(question._replace(url=site.origin + target)) is not allowed
            for target in spellings(question.url)
        ):
            return "compares the path as it is sent, and no other spelling of it"
        return "reads User-agent, Allow and Disallow only, and ignores ACAP"
    # Each rewriting alone, then all of them one after the other.
    single = ((cause, rewrite(question)) for cause, rewrite in REWRITINGS)
    for cause, rewritten in (*single, *_apply_in_order(question)):
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


def _apply_in_order(question: ReaderQuestion) -> Iterator[tuple[str, ReaderQuestion]]:
    """Yield each rewriting's cause, and the question after this and all earlier rewritings."""
    for cause, rewrite in REWRITINGS:
        question = rewrite(question)
        yield cause, question


# Lines that may permit or refuse, in all spellings that readers know. Readers disagree about where
# a line begins, so the words may be anywhere in it.
_PERMITS = re.compile(rb"(?<![A-Za-z])(?i:allow)")
_REFUSES = re.compile(rb"(?i:di[a-z]+w)")


def _rule_line(asks: Asks, question: ReaderQuestion, *, allowed: bool) -> tuple[int, str]:
    """Return number and text of the line that decides for the reader.

    Without this line and the lines of its kind before it, the reader would answer differently. A
    comment replaces each of them, because blank lines end groups for some readers."""
    kind = _PERMITS if allowed else _REFUSES
    lines = re.split(EOL, question.body)
    edits = {
        index: b"#" for index, line in enumerate(lines) if kind.search(line.partition(b"#")[0])
    }
    return _find_flip(asks, question, edits, allowed=allowed)


def _agent_line(asks: Asks, question: ReaderQuestion, *, allowed: bool) -> tuple[int, str]:
    """Return number and text of the User-agent line that the reader reads differently.

    The line addresses another agent for the reader than for comity."""
    lines = re.split(EOL, question.body)
    token = question.token.encode()
    edits = {}
    for record in _records(lines):
        if (
            record.kind is RecordKind.AGENT
            and (addressee := _addressee(record, question.token)) != "*"
        ):
            edits[record.line_index] = b"User-agent: " + (
                token if addressee == _OURS else b"not-" + token
            )
    return _find_flip(asks, question, edits, allowed=allowed)


def _find_flip(
    asks: Asks, question: ReaderQuestion, edits: dict[int, bytes], *, allowed: bool
) -> tuple[int, str]:
    """Return number and text of the line whose edit changes the reader's answer.

    All edits before it are made too. 0 and "": no edit changes the answer.
    `edits`: index of a line -> its new text, in order."""
    parts = re.split(b"(%s)" % EOL, question.body)  # lines and line ends alternate

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


# The rewritings. None of them changes comity's decision.


class _Record(NamedTuple):
    line_index: int  # from 0
    kind: RecordKind  # AGENT, ALLOW or DISALLOW
    value: bytes


_GROUPS = (RecordKind.AGENT, RecordKind.ALLOW, RecordKind.DISALLOW)


def _lines(body: bytes) -> list[bytes]:
    return re.split(EOL, text_of(body)[0])


def _join_lines(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _records(lines: list[bytes]) -> Iterator[_Record]:
    """Yield the records of groups with a User-agent line. ACAP records are left out."""
    in_group = False
    for index, line in enumerate(lines):
        record = read_record(line)
        if record is None:
            continue
        if record.kind in (RecordKind.AGENT, RecordKind.ACAP_CRAWLER):
            in_group = record.kind is RecordKind.AGENT
        if (
            in_group
            and record.kind in _GROUPS
            and not (record.kind is RecordKind.ALLOW and record.overlong)
        ):
            yield _Record(index, record.kind, record.value)


def _rules(question: ReaderQuestion) -> robots.AgentRules:
    return robots.parse(question.body).for_agent(question.token)


def _is_allowed(question: ReaderQuestion) -> bool:
    """Return comity's answer by RFC 9309 alone."""
    rule = _rules(question).decide(question.target)
    return rule is None or rule.verdict is Verdict.ALLOW


def _own_lines(question: ReaderQuestion) -> list[bytes]:
    """Return the lines of the rules that apply to the agent, in the order of the file."""
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
        if record.line_index in indices and record.kind is not RecordKind.AGENT
    ]


def _matching_lines(question: ReaderQuestion) -> list[bytes]:
    """Return the lines of the rules that match the target, the deciding one first."""
    lines = _lines(question.body)
    return [lines[rule.line - 1] for rule in _rules(question).matching(question.target)]


def _of_everybody(question: ReaderQuestion, rules: Iterable[bytes]) -> ReaderQuestion:
    """Ask about a file with one group, for all agents, with these rules."""
    return question._replace(body=_join_lines([b"User-agent: *", *rules]))


def _in_utf8(question: ReaderQuestion) -> ReaderQuestion:
    """Write the file in UTF-8 without a byte order mark."""
    return question._replace(body=text_of(question.body, limit=len(question.body))[0])


def _within_the_limit(question: ReaderQuestion) -> ReaderQuestion:
    """Cut the file at MAX_BYTES, as comity does."""
    return (
        question._replace(body=text_of(question.body)[0])
        if len(question.body) > MAX_BYTES
        else question
    )


# Ends of lines for str.splitlines, but not for RFC 9309 section-2.2.
_NO_END = re.compile(rb"[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]")


def _escape(octets: re.Match[bytes]) -> bytes:
    """Percent-encode the matched octets."""
    return b"".join(b"%%%02X" % octet for octet in octets[0])


def _in_lines(question: ReaderQuestion) -> ReaderQuestion:
    """End each line by LF, and percent-encode the characters that end lines for some readers."""
    return question._replace(
        body=_join_lines(_NO_END.sub(_escape, line) for line in _lines(question.body))
    )


def _in_ascii(question: ReaderQuestion) -> ReaderQuestion:
    """Percent-encode all octets that are not ASCII."""
    return question._replace(
        body=_join_lines(re.sub(rb"[\x80-\xff]+", _escape, line) for line in _lines(question.body))
    )


def _spell_out(question: ReaderQuestion) -> ReaderQuestion:
    """Write each record with the correct name, a colon and its value."""
    lines = _lines(question.body)
    for index, line in enumerate(lines):
        if (record := read_record(line)) is not None:
            lines[index] = record.kind.value + b": " + record.value
    return question._replace(body=_join_lines(lines))


def _groups_alone(question: ReaderQuestion) -> ReaderQuestion:
    """Leave out all lines except the records of groups."""
    lines = _lines(question.body)
    return question._replace(
        body=_join_lines(lines[record.line_index] for record in _records(lines))
    )


_OURS, _OTHERS = "ours", "theirs"  # neither word is a part of the other


def _addressee(record: _Record, token: str) -> str:
    """Return the agents that a User-agent line addresses: _OURS, "*" or _OTHERS."""
    names = robots.parse(b"User-agent: " + record.value)
    return _OURS if names.names(token) else "*" if names.names("*") else _OTHERS


def _rename_agents(question: ReaderQuestion) -> ReaderQuestion:
    """Replace the names in User-agent lines, and the token, by two plain words."""
    lines = _lines(question.body)
    for record in _records(lines):
        if record.kind is RecordKind.AGENT:
            lines[record.line_index] = f"User-agent: {_addressee(record, question.token)}".encode()
    return question._replace(body=_join_lines(lines), token=_OURS)


def _in_one_group(question: ReaderQuestion) -> ReaderQuestion:
    """Combine the rules that apply to the agent in one group."""
    return _of_everybody(question, _own_lines(question))


def _by_rank(question: ReaderQuestion) -> ReaderQuestion:
    """Put the matching rules first, in the order of their rank."""
    matching = _matching_lines(question)
    return _of_everybody(
        question, [*matching, *(line for line in _own_lines(question) if line not in matching)]
    )


def _in_normal_form(question: ReaderQuestion) -> ReaderQuestion:
    """Write patterns and the URL in the normal form in which comity compares them."""
    lines = _lines(question.body)
    for record in _records(lines):
        if record.kind is not RecordKind.AGENT and record.value:
            lines[record.line_index] = (
                record.kind.value + b": " + normal_pattern(record.value).encode()
            )
    return question._replace(
        body=_join_lines(lines), url=_with_target(question, normal_target(question.target))
    )


def _with_target(question: ReaderQuestion, target: str) -> str:
    parts = urlsplit(question.url)
    return f"{parts.scheme}://{parts.netloc}{target}"


def _matching_alone(question: ReaderQuestion) -> ReaderQuestion:
    """Leave out all rules that do not match the target."""
    return _of_everybody(question, _matching_lines(question))


def _literally(question: ReaderQuestion) -> ReaderQuestion:
    """Replace the deciding rule's pattern by the target if the pattern has a `*` or `$`.

    Of the other rules, keep only those without `*` and `$` that are shorter than the target: their
    rank stays lower than that of the deciding rule."""
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


def _deciding_alone(question: ReaderQuestion) -> ReaderQuestion:
    """Leave one rule: the deciding one, with the target as its pattern."""
    rule = _rules(question).decide(question.target)
    target = normal_target(question.target)
    line = _rule(rule.verdict if rule else Verdict.ALLOW, target)
    return _of_everybody(question._replace(url=_with_target(question, target)), [line])


def _rule(verdict: Verdict, pattern: str) -> bytes:
    return f"{'Allow' if verdict is Verdict.ALLOW else 'Disallow'}: {pattern}".encode()


_NAMES = "reads the names in User-agent lines differently"
REWRITINGS: tuple[tuple[str, Callable[[ReaderQuestion], ReaderQuestion]], ...] = (
    ("reads a byte order mark, or UTF-16, differently", _in_utf8),
    (f"reads on after the first {MAX_BYTES // 1024} KiB", _within_the_limit),
    ("ends lines elsewhere than at CR and LF", _in_lines),
    ("reads octets that are not ASCII differently", _in_ascii),
    ("reads misspelled names, or lines without a colon, differently", _spell_out),
    ("ends a group, or its list of agents, at lines that are not rules", _groups_alone),
    (_NAMES, _rename_agents),
    ("does not combine all groups that name the agent", _in_one_group),
    ("follows the first rule that matches, and not the longest", _by_rank),
    ("compares escapes such as %2F as they are written", _in_normal_form),
    ("finds that another rule matches the path", _matching_alone),
    ("reads `*` or `$` in a pattern differently", _literally),
    ("ranks the matching rules differently", _deciding_alone),
)


_SUBJECTS = {reader.module: reader.subject for reader in READERS}
_DOES = {
    "allow": "would fetch this",
    "deny": "would not fetch this",
    None: "may or may not fetch this",
}


def unread_uses(agent: Agent, page: Page, decision: Decision) -> list[str]:
    """Return the declared uses that the site's statements refuse.

    Other readers of robots.txt do not know these refusals. The list is empty if the page may not be
    fetched."""
    if decision.verdict is not Verdict.ALLOW:
        return []
    return [
        use
        for use in agent.uses
        if (answer := page.uses[use]).stated and answer.verdict is Verdict.DENY
    ]


def sentences(opinions: Iterable[dict[str, Any]], uses: list[str]) -> list[str]:
    """Return a sentence about each answer that differs from comity's or is unknown.

    Readers with equal answers share a sentence. A further sentence names the uses. The list is
    empty if all readers agree and there are no uses. `opinions`: values of `Opinion.as_json`.
    `uses`: the result of `unread_uses`."""
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
        [f"Readers of robots.txt alone do not know this refusal: {', '.join(uses)}"] if uses else []
    )
    return differing + refused


def _enumeration(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _clause(cause: str, readers: int) -> str:
    return f": {'it' if readers == 1 else 'each'} {cause}" if cause else ""
