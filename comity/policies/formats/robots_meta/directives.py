"""The directives of a page about its use: robots meta elements and X-Robots-Tag fields.

    header(values, token)     the statements of the fields to the agent
    markup(content, token)    the statements of the elements to the agent

Elements named `robots` and elements with the agent's name are read. Directives refuse or limit
uses, and never permit any. There is no standard, so comity follows the documentation of search
engines. If a search engine would ignore an unreadable part, comity takes the more restrictive
reading (docs/robots-meta.md).
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

# The maximum number of characters that are read in the fields of a response, and in the elements of
# a page.
MAX_CHARS = 16 * 1024

DirectiveReading = tuple[tuple[Statement, ...], tuple[Finding, ...]]

EVERYBODY = ("robots", "*")  # names that mean any agent

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
# The words that are refused if the text is too long, because its unread rest could refuse them.
_REFUSED_UNREAD = (*_REFUSING, "max-image-preview", "max-video-preview", "unavailable_after")
_TRANSLATION = Qualifiers(prohibited_modifications=frozenset(("translation",)))

MEMBER = re.compile(
    # unavailable_after with a date that has a comma after the day of the week.
    r"[^,;]*?unavailable[\s_-]*after[^,;\d]{0,40}+,\s*+\d[^,;]*+"
    r"|[^,;]++",
    re.IGNORECASE,
)
_VERSION = r"(?:/(?:\d[\w.+-]*+)?+)?+"
_AGENT = re.compile(rf"([A-Za-z0-9_-]+){_VERSION}")
_NAME = re.compile(r"[^:= ]*+")
_NUMBER = re.compile(r"-1|\d{1,9}")
# LENIENT: characters that configurations and editors leave around directives and between them.
_SEPARATORS = f"|/\u3002{COMMAS}"
_MARKS = str.maketrans(
    {
        **dict.fromkeys(QUOTES + BRACKETS + _SEPARATORS, " "),
        **dict.fromkeys(UNSEEN, ""),
        **dict.fromkeys(HYPHENS, "-"),
    }
)
_AROUND = SPACES + QUOTES + BRACKETS + UNSEEN

# A date by RFC 822 section-5 or RFC 850 section-2.1.4. LENIENT: the month may be written in full.
# Time of day and zone may be missing.
_DATE = re.compile(
    r"(?:[a-z]+(?:,\s*|\s+))?(\d{1,2})[\s-]+([a-z]{3})[a-z]*[\s-]+(\d{4}|\d\d)(?:\s+(\d{1,2}:\d\d(?::\d\d)?))?\s*([a-z]{1,5}|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
# LENIENT: other names of the zone that ISO 8601 writes as Z.
_GREENWICH = re.compile(r"(?<=\d)\s*+(?:GMT|UTC?)$", re.IGNORECASE)
_UTC = ("GMT", "UT", "UTC", "Z", "+0000", "-0000")
_EARLIEST = timezone(timedelta(hours=14))  # the zone in which every day begins first


def header(
    values: Iterable[bytes], token: str, *, now: datetime | None = None, url: str = ""
) -> DirectiveReading:
    """Read the X-Robots-Tag fields of one response for the agent.

    `now` is timezone-aware. None means the current time. `url` is the URL of the page. The name of
    an agent, as in `examplebot: noindex, nofollow`, applies to all directives after it, up to the
    next name or the end of the field.
    """
    return _reading(
        [("", value.decode("utf-8", "replace"), 0) for value in values], token, now, url
    )


def markup(
    content: Content, token: str, *, now: datetime | None = None, url: str = ""
) -> DirectiveReading:
    """Read the meta elements of a page: those with a name, and those with a property and no name.

    The page is parsed only if its octets show an element for this agent or for all.
    """
    if not content.mentions(*_names_of(token)) or not _has_element(content, token):
        return (), ()
    metas = [
        (_own_name(name, token.lower()) or name, text, line)
        for attribute in ("name", "property")
        for name, text, line in content.metas_by_line(attribute)
        if _own_name(name, token.lower()) or is_for_others(name, text)
    ]
    return _reading(metas, token, now, url)


def _own_name(name: str, token: str) -> str:
    """Return the agent's token or "robots" if the name of an element contains it, else "".

    `token` is in lower case. LENIENT: the element may have several names, and names may have a
    version, as in `examplebot/2.0, otherbot`.
    """
    if name in (token, "robots"):
        return name
    names = name.translate(_MARKS).replace(",", " ").replace(";", " ").split()
    return next((own_name for own_name in (token, "robots") if own_name in names), "")


# Name of the element or "" for a field, text of the directives, and line.
_Passage = tuple[str, str, int]


def _reading(
    passages: list[_Passage], token: str, now: datetime | None, url: str
) -> DirectiveReading:
    is_dated = any(_DATED in _normalize(text) for _, text, _ in passages)
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


# The normalized name of the only directive that depends on the time.
_DATED = "unavailableafter"
_undated = Remembered(partial(_read, datetime.max.replace(tzinfo=UTC)), most=MAX_REMEMBERED)


@cache
def _names_of(token: str) -> tuple[bytes, bytes]:
    """Return the names of which the octets of an element for the agent have one."""
    return b"robots", token.lower().encode()


def _has_element(content: Content, token: str) -> bool:
    """Return True if the octets of a page show an element for the agent or for all."""
    if content.has_written_letters:
        return True
    by_name, by_property = _meta_patterns(token.lower())
    octets = content.octets
    return by_name.search(octets) is not None or by_property.search(octets) is not None


@cache
def _meta_patterns(token: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the patterns of elements with `name` and with `property`.

    One pattern for both would have no first letter, and so be searched ten times slower."""
    value = (
        rb"\s*+=[\"'\s]*+[^\"'<>=]{0,100}?(?<![a-z0-9_-])(?:robots|%s)(?![a-z0-9_-])"
        % re.escape(token.encode())
    )
    return re.compile(b"name" + value), re.compile(b"property" + value)


@cache
def _own_names(token: str) -> re.Pattern[str]:
    """Return the pattern that matches the agent's name, `robots` or `*` with a colon after it.

    Before the name there must be a separator or white space.
    """
    before, behind = re.escape(_AROUND + _SEPARATORS), re.escape(_AROUND)
    return re.compile(
        rf"(?<=[{before}])(?:{re.escape(token)}|robots|\*){_VERSION}[{behind}]*+:", re.IGNORECASE
    )


class _Directive(NamedTuple):
    """A directive.

    Attributes:
        name: The result of `_normalize`. "" means that the text is not a known directive.
        value: The text after the name. "" if there is none.
        text: The directive as written.
    """

    name: str
    value: str
    text: str


class _Reader:
    """Reads the directives of one response for one agent."""

    def __init__(self, token: str, now: datetime) -> None:
        """Store the agent's token, in lower case, and the time of the reading."""
        self._token = token
        self._now = now
        self._findings = Findings("")
        # Part of the source and term -> the most restrictive statement.
        self._statements: dict[tuple[str, str], Statement] = {}
        self._embedded: list[Location] = []  # the locations of `indexifembedded`
        self._chars_left = MAX_CHARS

    def reading(self) -> DirectiveReading:
        for source in self._embedded[:1]:
            if any(
                statement.term == "robots-meta:noindex" for statement in self._statements.values()
            ):
                self._limit("indexifembedded", source)
            else:
                message = "`indexifembedded` has an effect only together with `noindex`."
                self._findings.report("robots-meta.value", message, line=source.line)
        return tuple(self._statements.values()), tuple(self._findings)

    def field(self, text: str) -> None:
        """Read the value of one X-Robots-Tag field."""
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
                "robots-meta.agent",
                "`{}` is for the named crawler only.",
                _octets(", ".join(members)),
            )

    def meta(self, name: str, text: str, line: int) -> None:
        """Read one element."""
        if name in (self._token, "robots"):
            source = Location(part=f"meta {name}", line=line)
            if not self._is_too_much(text, source):
                for member in MEMBER.findall(text):
                    self._member(member, source, member.strip())
        else:
            self._findings.report(
                "robots-meta.agent",
                "`{}: {}` is for the named crawler only.",
                _octets(name),
                _octets(text),
                line=line,
            )

    def _is_too_much(self, text: str, source: Location) -> bool:
        """Count the characters of a text, and return True if there are now more than MAX_CHARS.

        The text is then not read. Since it could contain any refusal, all _REFUSED_UNREAD are
        refused.
        """
        before = self._chars_left
        self._chars_left -= len(text)
        if self._chars_left < 0 <= before:
            self._report(
                "robots-meta.unread",
                f"There are more than {MAX_CHARS} characters, so from `{{}}` on "
                "everything is refused.",
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
                "`{}` is read without its marks. Other readers keep them, so delete them.",
                member,
                source,
            )
        for directive in directives:
            if directive.name in _PLAIN:
                for word in _PLAIN[directive.name]:
                    self._refuse(word, source, member)
                if directive.value:
                    self._report(
                        "robots-meta.unknown", "`{}` is not a directive.", directive.value, source
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
                        "`{}` has no value, so it has no effect.",
                        directive.text,
                        source,
                    )
            else:
                self._report(
                    "robots-meta.unknown", "`{}` is not a directive.", directive.text, source
                )

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
                self._report(
                    "robots-meta.value",
                    "`{}` is not a size, so it is read as `none`.",
                    directive.value,
                    source,
                )

    def _max_video_preview(self, directive: _Directive, source: Location, member: str) -> None:
        number = self._number(directive, source)
        if number == 0:
            self._refuse("max-video-preview", source, member)
        elif number > 0:
            self._limit("max-video-preview", _passage(source, member))

    def _number(self, directive: _Directive, source: Location) -> int:
        """Return the value of a directive as a number. -1 means no limit.

        A value that cannot be read counts as 0, which refuses.
        """
        if _NUMBER.fullmatch(directive.value):
            return int(directive.value)
        self._report(
            "robots-meta.value",
            "`{}` is not a number, so it is read as 0.",
            directive.value,
            source,
        )
        return 0

    def _unavailable_after(self, directive: _Directive, source: Location, member: str) -> None:
        until = date(directive.value)
        if until is None:
            self._report(
                "robots-meta.value",
                "`{}` is not a date. It is read as a past date. Write one such as 2030-01-31.",
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
# Names of directives that are read as values after a colon, as in `max-snippet: none`. Directives
# that refuse, except `none`, are left out, so that their refusals are not lost.
_NAMES_AS_VALUES = frozenset(("none", *_SILENT))


def scope(member: str, token: str) -> tuple[list[str], str]:
    """Return the agents at the start of a member, and the rest of the member.

    For `examplebot: noindex` these are ["examplebot"] and ` noindex`. Another agent's name counts
    only if the agent's own name or a directive follows. Without these it may be an unknown
    directive.
    """
    parts = member.split(":")
    agents: list[str] = []
    for part, after in pairwise(parts):
        written_name = part.strip(_AROUND)
        match = _AGENT.fullmatch(written_name)
        name = match[1].lower() if match else written_name
        if _normalize(name) in DIRECTIVE_NAMES:
            break
        follows = _AGENT.match(after.strip(_AROUND))
        next_name = follows[1].lower() if follows else ""
        if (
            name == token
            or name in EVERYBODY
            or (match and (next_name == token or _normalize(next_name) in DIRECTIVE_NAMES))
        ):
            agents.append(name)
        else:
            break
    return agents, ":".join(parts[len(agents) :])


def directives_in(text: str) -> Iterator[_Directive]:
    """Yield the directives in one member of a list, even without commas between them."""
    words = _words(text)
    starts = [
        number for number, word in enumerate(words) if _normalize(_name(word)) in DIRECTIVE_NAMES
    ]
    ends = [*starts, len(words)]
    if ends[0]:
        yield _Directive("", "", " ".join(words[: ends[0]]))
    for start, end in pairwise(ends):
        name = _name(words[start])
        directive = " ".join(words[start:end])
        yield _Directive(_normalize(name), directive[len(name) :].strip(" :="), directive)


def _words(text: str) -> list[str]:
    """Return the words of a member.

    `no index` becomes one word. So does a name with its colon and its value: for
    `max-image-preview : none` there is one word, because `none` can be a value.
    """
    words: list[str] = []
    for marked_word in text.translate(_MARKS).split():
        word = marked_word.rstrip(".") or marked_word
        if words and (
            not word.strip(":=")
            or (_normalize(_name(word)) in _NAMES_AS_VALUES and _lacks_value(words[-1]))
        ):
            words[-1] += f" {word}"
        else:
            words.append(word)
    for number in reversed(range(len(words) - 1)):
        if words[number].lower() == "no" and _normalize("no" + _name(words[number + 1])) in _PLAIN:
            words[number : number + 2] = [f"no{words[number + 1]}"]
    return words


def _lacks_value(word: str) -> bool:
    name = word.rstrip(":= ")
    return name != word and _normalize(name) in _VALUED


def is_for_others(name: str, text: str) -> bool:
    """Return True if the name and text of an element look like directives for another agent."""
    return (
        len(text) <= MAX_SHOWN and _AGENT.fullmatch(name) is not None and _is_all_directives(text)
    )


def _is_all_directives(text: str) -> bool:
    """Return True if the text consists of directives, and one of them has an effect."""
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


def _normalize(name: str) -> str:
    """Return a name for comparison: in lower case, without `-` and `_`."""
    return name.lower().replace("-", "").replace("_", "")


def _octets(text: str) -> bytes:
    """Return the beginning of the text in octets, for a quotation."""
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
    """Return the time of a date by RFC 822, RFC 850 or ISO 8601, in UTC. None if it is no date.

    A date without a time of day means the beginning of the day. A date without a known zone means
    UTC+14, where each day begins first, so that the directive takes effect early.
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
        offset = parsed[9] or 0  # 0 also stands for an unknown zone
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
