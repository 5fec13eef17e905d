"""The directives of a page about its use: `robots` meta elements, those with the agent's name, and
X-Robots-Tag fields.

    header(values, token)     what the fields say to the agent
    markup(content, token)    what the elements say to it
Directives refuse and limit; none permits anything. There is no standard: what search engines
document is read, and where they pass over what they cannot read, the more restrictive reading holds
(docs/robots-meta.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.document.document import Content
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.marks import BRACKETS, COMMAS, HYPHENS, QUOTES, SPACES, UNSEEN
from comity.policies.syntax.printable import MAX_SHOWN, printable
from comity.policies.syntax.remembered import MAX_REMEMBERED, Remembered
from comity.policies.vocabulary.statement import NO_QUALIFIERS, Location, Statement

SPEC = "https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag"

MAX_CHARS = 16 * 1024  # of directives: in the fields of a response, and in the elements of a page

DirectiveReading = tuple[tuple[Statement, ...], tuple[Finding, ...]]

EVERYBODY = ("robots", "*")  # as the name of an agent

# Directives without a value -> the words that they refuse. Names are compared without `-` and `_`.
_REFUSING = (
    "noindex",
    "nofollow",
    "noarchive",
    "nocache",
    "nosnippet",
    "noimageindex",
    "noai",
    "noimageai",
    "noml",
)
_SILENT = (
    "all",
    "index",
    "follow",
    "archive",
    "snippet",
    "imageindex",
    "noodp",
    "noydir",
    "noyaca",
    "nositelinkssearchbox",
)
_PLAIN: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in _REFUSING},
    **dict.fromkeys(_SILENT, ()),
    "none": ("noindex", "nofollow"),
}
# what the rest could refuse
_REFUSED_UNREAD = (
    *_REFUSING,
    "max-image-preview",
    "max-video-preview",
    "unavailable_after",
)
_TRANSLATION = Qualifiers(prohibited_modifications=frozenset(("translation",)))

MEMBER = re.compile(
    # a date with a comma after the day of the week
    r"[^,;]*?unavailable[\s_-]*after[^,;\d]{0,40}+,\s*+\d[^,;]*+"
    r"|[^,;]++",
    re.IGNORECASE,
)
_VERSION = r"(?:/(?:\d[\w.+-]*+)?+)?+"
_AGENT = re.compile(rf"([A-Za-z0-9_-]+){_VERSION}")
_NAME = re.compile(r"[^:= ]*+")
_NUMBER = re.compile(r"-1|\d{1,9}")
# LENIENT: what configurations and editors leave around directives and between them.
_SEPARATORS = f"|/\u3002{COMMAS}"
_MARKS = str.maketrans(
    {
        **dict.fromkeys(QUOTES + BRACKETS + _SEPARATORS, " "),
        **dict.fromkeys(UNSEEN, ""),
        **dict.fromkeys(HYPHENS, "-"),
    }
)
_AROUND = SPACES + QUOTES + BRACKETS + UNSEEN

# RFC 822 section-5, RFC 850 section-2.1.4. LENIENT: the name of the month in full, no time of day,
# no zone.
_DATE = re.compile(
    r"(?:[a-z]+(?:,\s*|\s+))?(\d{1,2})[\s-]+([a-z]{3})[a-z]*[\s-]+(\d{4}|\d\d)(?:\s+(\d{1,2}:\d\d(?::\d\d)?))?\s*([a-z]{1,5}|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
# LENIENT: what ISO 8601 writes as Z
_GREENWICH = re.compile(r"(?<=\d)\s*+(?:GMT|UTC?)$", re.IGNORECASE)
_UTC = ("GMT", "UT", "UTC", "Z", "+0000", "-0000")
_EARLIEST = timezone(timedelta(hours=14))  # where every day begins first


def header(
    values: Iterable[bytes], token: str, *, now: datetime | None = None, url: str = ""
) -> DirectiveReading:
    """Read the X-Robots-Tag fields of one response for the agent. `now`: aware, None = the clock;
    `url`: of the page.

    A scope holds until the next one or the end of its field.
    """
    return _reading(
        [("", value.decode("utf-8", "replace"), 0) for value in values], token, now, url
    )


def markup(
    content: Content, token: str, *, now: datetime | None = None, url: str = ""
) -> DirectiveReading:
    """Read the meta elements of a page: those with a name, and those with a property and no name.

    The page is parsed only if its octets show an element for this agent or for all."""
    if not content.is_markup or not _speaks(content, token):
        return (), ()
    metas = [
        (_own_name(name, token.lower()) or name, text, line)
        for attribute in ("name", "property")
        for name, text, line in content.metas_by_line(attribute)
        if _own_name(name, token.lower()) or is_for_others(name, text)
    ]
    return _reading(metas, token, now, url)


def _own_name(name: str, token: str) -> str:
    """The agent's name, or that of everybody, as the name of an element has it; "": it has neither.
    `token`: in lower case.

    LENIENT: among others, and with a version.
    """
    if name in (token, "robots"):
        return name
    names = name.translate(_MARKS).replace(",", " ").replace(";", " ").split()
    return next((own_name for own_name in (token, "robots") if own_name in names), "")


_Passage = tuple[str, str, int]  # name of the element, "" for a field; text; line


def _reading(
    passages: list[_Passage], token: str, now: datetime | None, url: str
) -> DirectiveReading:
    is_dated = any(_DATED in _compared(text) for _, text, _ in passages)
    read_passages = partial(_read, now or datetime.now(UTC)) if is_dated else _undated
    statements, findings = read_passages((token.lower(), passages))
    return statements, tuple(replace(finding, url=url) for finding in findings)


def _read(now: datetime, token_and_passages: tuple[str, list[_Passage]]) -> DirectiveReading:
    token, passages = token_and_passages
    reader = _Reader(token, now)
    for name, text, line in passages:
        if name:
            reader.meta(name, text, line)
        else:
            reader.field(text)
    return reader.reading()


# as it is compared; where it does not stand, no directive asks for the time
_DATED = "unavailableafter"
_undated = Remembered(partial(_read, datetime.max.replace(tzinfo=UTC)), most=MAX_REMEMBERED)


def _speaks(content: Content, token: str) -> bool:
    return (
        content.has_written_letters
        or _metas_pattern(token.lower()).search(content.octets) is not None
    )


@cache
def _metas_pattern(token: str) -> re.Pattern[bytes]:
    return re.compile(
        rb"(?:name|property)\s*+=[\"'\s]*+[^\"'<>=]{0,100}?(?<![a-z0-9_-])(?:robots|%s)(?![a-z0-9_-])"
        % re.escape(token.encode())
    )


@cache
def _own_names(token: str) -> re.Pattern[str]:
    """Pattern of the agent's name, and of those of everybody, that begin a scope behind what parts
    directives.
    """
    before, behind = re.escape(_AROUND + _SEPARATORS), re.escape(_AROUND)
    return re.compile(
        rf"(?<=[{before}])(?:{re.escape(token)}|robots|\*){_VERSION}[{behind}]*+:", re.IGNORECASE
    )


class _Directive(NamedTuple):
    """TODO _Directive

    Attributes:
        name: As it is compared.
        text: As written.
    """

    name: str
    value: str
    text: str


class _Reader:
    def __init__(self, token: str, now: datetime) -> None:
        """`token`: in lower case."""
        self._token = token
        self._now = now
        self._findings = Findings("")
        # one for each part and word, the most restrictive
        self._statements: dict[tuple[str, str], Statement] = {}
        self._embedded: list[Location] = []  # where indexifembedded stands
        self._chars_left = MAX_CHARS

    def reading(self) -> DirectiveReading:
        for source in self._embedded[:1]:
            if any(
                statement.term == "robots-meta:noindex" for statement in self._statements.values()
            ):
                self._limit("indexifembedded", source)
            else:
                message = "`indexifembedded` means something beside `noindex` only"
                self._findings.report("robots-meta.value", message, line=source.line)
        return tuple(self._statements.values()), tuple(self._findings)

    def field(self, text: str) -> None:
        """The value of one X-Robots-Tag field."""
        source = Location(part="header X-Robots-Tag")
        if self._is_too_much(text, source):
            return
        for_others: list[str] = []
        ours = True
        for member in MEMBER.findall(text):
            agents, rest = scope(member, self._token)
            if agents:
                self._report_others(for_others)
                ours = any(agent == self._token or agent in EVERYBODY for agent in agents)
                for_others = []
            if not ours and (
                own_name := _own_names(self._token).search(member, len(member) - len(rest))
            ):
                self._report_others([*for_others, member[: own_name.start()].strip()])
                member, rest = member[own_name.start() :], member[own_name.end() :]
                ours, for_others = True, []
            if ours:
                self._member(rest, source, member.strip())
            else:
                for_others.append(member.strip())
        self._report_others(for_others)

    def _report_others(self, members: list[str]) -> None:
        if members:
            self._findings.report(
                "robots-meta.agent", "`{}` is for another agent", _octets(", ".join(members))
            )

    def meta(self, name: str, text: str, line: int) -> None:
        """One element."""
        if name in (self._token, "robots"):
            source = Location(part=f"meta {name}", line=line)
            if not self._is_too_much(text, source):
                for member in MEMBER.findall(text):
                    self._member(member, source, member.strip())
        else:
            self._findings.report(
                "robots-meta.agent",
                "`{}: {}` is for another agent",
                _octets(name),
                _octets(text),
                line=line,
            )

    def _is_too_much(self, text: str, source: Location) -> bool:
        """True where there is more than is read. Nobody knows what the rest refuses: it refuses all
        that it could.
        """
        before = self._chars_left
        self._chars_left -= len(text)
        if self._chars_left < 0 <= before:
            self._report(
                "robots-meta.unread",
                f"there are more than {MAX_CHARS} characters: `{{}}` refuses everything",
                text,
                source,
            )
            for word in _REFUSED_UNREAD:
                self._add(
                    Statement(
                        f"robots-meta:{word}",
                        Verdict.DENY,
                        "robots-meta.unread",
                        _passage(source, text),
                    )
                )
        return self._chars_left < 0

    def _member(self, text: str, source: Location, member: str) -> None:
        directives = [*directives_in(text)]
        if text.translate(_MARKS) != text and any(directive.name for directive in directives):
            self._report(
                "robots-meta.value",
                "`{}` is read without its marks, which others don't do",
                member,
                source,
            )
        for directive in directives:
            if directive.name in _PLAIN:
                for word in _PLAIN[directive.name]:
                    self._refuse(word, source, member)
                if directive.value:
                    self._report(
                        "robots-meta.unknown", "`{}` is no directive", directive.value, source
                    )
            elif directive.name == "notranslate":
                self._limit("notranslate", _passage(source, member), _TRANSLATION)
            elif directive.name == "indexifembedded":
                self._embedded.append(_passage(source, member))
            elif directive.name in _VALUED:
                if directive.value:
                    _VALUED[directive.name](self, directive, source, member)
                else:
                    self._report(
                        "robots-meta.value",
                        "`{}` has no value: it says nothing",
                        directive.text,
                        source,
                    )
            else:
                self._report("robots-meta.unknown", "`{}` is no directive", directive.text, source)

    def _report(self, rule: str, message: str, quoted: str, source: Location) -> None:
        self._findings.report(rule, message, _octets(quoted), line=source.line)

    def _refuse(self, word: str, source: Location, member: str) -> None:
        self._add(
            Statement(
                f"robots-meta:{word}",
                Verdict.DENY,
                "robots-meta.disallow",
                _passage(source, member),
            )
        )

    def _limit(self, word: str, source: Location, qualifiers: Qualifiers = NO_QUALIFIERS) -> None:
        self._add(Statement(f"robots-meta:{word}", None, "robots-meta.limit", source, qualifiers))

    def _add(self, new: Statement) -> None:
        key = new.location.part, new.term
        old = self._statements.get(key)
        if old is None or (old.verdict is None and _restricts_more(new, old)):
            self._statements[key] = new

    def _max_snippet(self, directive: _Directive, source: Location, member: str) -> None:
        number = self._number(directive, source)
        if number == 0:
            self._refuse("nosnippet", source, member)
        elif number > 0:
            self._limit("max-snippet", _passage(source, member), Qualifiers(max_chars=number))

    def _max_image_preview(self, directive: _Directive, source: Location, member: str) -> None:
        size = directive.value.lower()
        if size == "standard":
            self._limit("max-image-preview", _passage(source, member))
        elif size != "large":
            self._refuse("max-image-preview", source, member)
            if size != "none":
                self._report("robots-meta.value", "`{}` is read as `none`", directive.value, source)

    def _max_video_preview(self, directive: _Directive, source: Location, member: str) -> None:
        number = self._number(directive, source)
        if number == 0:
            self._refuse("max-video-preview", source, member)
        elif number > 0:
            self._limit("max-video-preview", _passage(source, member))

    def _number(self, directive: _Directive, source: Location) -> int:
        """-1: no limit. What cannot be read is 0."""
        if _NUMBER.fullmatch(directive.value):
            return int(directive.value)
        self._report("robots-meta.value", "`{}` is read as 0", directive.value, source)
        return 0

    def _unavailable_after(self, directive: _Directive, source: Location, member: str) -> None:
        until = date(directive.value)
        if until is None:
            self._report(
                "robots-meta.value",
                "`{}` is no date: it is read as one that is past",
                directive.value,
                source,
            )
        if until is None or until <= self._now:
            self._refuse("unavailable_after", source, member)
        else:
            self._limit("unavailable_after", _passage(source, member), Qualifiers(until=until))


_VALUED: Mapping[str, Callable[[_Reader, _Directive, Location, str], None]] = {
    "maxsnippet": _Reader._max_snippet,
    "maximagepreview": _Reader._max_image_preview,
    "maxvideopreview": _Reader._max_video_preview,
    _DATED: _Reader._unavailable_after,
}
DIRECTIVE_NAMES = frozenset((*_PLAIN, *_VALUED, "notranslate", "indexifembedded"))
# behind a colon; what refuses by itself is lost in no value
_NAMES_AS_VALUES = frozenset(("none", *_SILENT))


def scope(member: str, token: str) -> tuple[list[str], str]:
    """The agents that the member is addressed to, none where it opens no scope, and what it says.

    A name that is not ours opens one where a directive stands after it: else it may be a directive
    that we do not know.
    """
    parts = member.split(":")
    agents: list[str] = []
    for part, after in pairwise(parts):
        written_name = part.strip(_AROUND)
        match = _AGENT.fullmatch(written_name)
        name = match[1].lower() if match else written_name
        if _compared(name) in DIRECTIVE_NAMES:
            break
        follows = _AGENT.match(after.strip(_AROUND))
        next_name = follows[1].lower() if follows else ""
        if (
            name == token
            or name in EVERYBODY
            or (match and (next_name == token or _compared(next_name) in DIRECTIVE_NAMES))
        ):
            agents.append(name)
        else:
            break
    return agents, ":".join(parts[len(agents) :])


def directives_in(text: str) -> Iterator[_Directive]:
    """The directives in one member of a list: the one it is, or all that stand in it without a
    comma.
    """
    words = _words(text)
    starts = [
        number for number, word in enumerate(words) if _compared(_name(word)) in DIRECTIVE_NAMES
    ]
    ends = [*starts, len(words)]
    if ends[0]:
        yield _Directive("", "", " ".join(words[: ends[0]]))
    for start, end in pairwise(ends):
        name = _name(words[start])
        directive = " ".join(words[start:end])
        yield _Directive(_compared(name), directive[len(name) :].strip(" :="), directive)


def _words(text: str) -> list[str]:
    """Return the words of a member. `no index` is `no-index`, as white space parts what a hyphen
    would join; a colon is one word with the name before it, and with the name of a directive behind
    it that is a value (`max-image-preview : none`).
    """
    words: list[str] = []
    for marked_word in text.translate(_MARKS).split():
        word = marked_word.rstrip(".") or marked_word
        if words and (
            not word.strip(":=")
            or (_compared(_name(word)) in _NAMES_AS_VALUES and _lacks_value(words[-1]))
        ):
            words[-1] += f" {word}"
        else:
            words.append(word)
    for number in reversed(range(len(words) - 1)):
        if words[number].lower() == "no" and _compared("no" + _name(words[number + 1])) in _PLAIN:
            words[number : number + 2] = [f"no{words[number + 1]}"]
    return words


def _lacks_value(word: str) -> bool:
    name = word.rstrip(":= ")
    return name != word and _compared(name) in _VALUED


def is_for_others(name: str, text: str) -> bool:
    """True where an element is written for another agent."""
    return (
        len(text) <= MAX_SHOWN and _AGENT.fullmatch(name) is not None and _is_all_directives(text)
    )


def _is_all_directives(text: str) -> bool:
    """True where the text is written for agents, and says something."""
    directives = [
        directive for member in MEMBER.findall(text) for directive in directives_in(member)
    ]
    if not all(
        directive.name and (directive.name in _VALUED or not directive.value)
        for directive in directives
    ):
        return False
    return any(_PLAIN.get(directive.name, True) for directive in directives)


def _name(word: str) -> str:
    match = _NAME.match(word)
    assert match
    return match[0]


def _compared(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _octets(text: str) -> bytes:
    """The first octets of the text, as many as are shown."""
    return text[: 2 * MAX_SHOWN].encode("utf-8", "replace")


def _passage(source: Location, member: str) -> Location:
    return source._replace(text=printable(_octets(member)))


def _restricts_more(new: Statement, old: Statement) -> bool:
    if new.verdict is Verdict.DENY:
        return True
    return (
        new.qualifiers != old.qualifiers
        and new.qualifiers.conjoined(old.qualifiers) == new.qualifiers
    )


def date(text: str) -> datetime | None:
    """The instant that a date by RFC 822, RFC 850 or ISO 8601 names; None where it is none.

    Without a time of day it is the beginning of the day; without a zone, or with one that is not
    known, the first instant at which anybody has that time (UTC+14).
    """
    try:
        moment = datetime.fromisoformat(_GREENWICH.sub("Z", text))
    except ValueError:
        match = _DATE.fullmatch(text)
        if match is None:
            return None
        day, month, year, time, zone = match.groups()
        parsed = parsedate_tz(
            f"{day} {month} {year} {time or '0:00'} {(zone or '').replace(':', '')}"
        )
        if parsed is None:
            return None
        offset = parsed[9] or 0  # of zones that it does not know too
        is_known_zone = offset or (zone or "").upper().replace(":", "") in _UTC
        try:
            moment = datetime(
                *parsed[:6], tzinfo=timezone(timedelta(seconds=offset)) if is_known_zone else None
            )
        except ValueError:
            return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=_EARLIEST)).astimezone(UTC)
    except OverflowError:
        return None
