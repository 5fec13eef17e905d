"""The values of ai.txt, in both of its written forms, and the limits of a list of rules.

Values(findings)     reads the values of lines and attributes
RuleList(findings)   a list of rules within the limits
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from comity.policies.answers.decision import Verdict
from comity.policies.answers.element_rule import (
    ACTION_SPELLINGS,
    ACTIONS,
    ALL,
    EVERY_TYPE,
    ElementRule,
    is_dotted_name,
)
from comity.policies.document.document import FILE_TYPES
from comity.policies.syntax.lines import MAX_BYTES, MAX_LINE, Findings
from comity.policies.syntax.path_patterns import normal_pattern
from comity.policies.syntax.urls import target_of

MAX_RULES = 10_000  # maximum rules of a file
# Maximum characters of all rules of a file. A Disallow or Guide that several blocks share counts
# once for each block.
MAX_SIZE = 4 * MAX_BYTES
MAX_NAMES = 1000  # maximum agents of a block, and maximum actions of a line
MAX_PATH = 8 * 1024  # maximum characters of a path in normal form
MAX_LANG = 100  # maximum octets of a language tag

SELECTOR = "ait.selector"  # the id for findings about the element of a Disallow or Guide
UNDETERMINED = "und"  # RFC 5646 section-4.1
_OVERHEAD = 100  # characters that are added to the texts of a rule for MAX_SIZE

# LENIENT: NO-BREAK SPACE, ZERO WIDTH SPACE and a stray BOM are read as spaces.
_ODD_SPACE = re.compile(rb"\xc2\xa0|\xe2\x80\x8b|\xef\xbb\xbf")
_STRING_OR_NO_BREAK_SPACE = re.compile(
    rb"(\"(?:[^\"\\]|\\.)*+\"?|'(?:[^'\\]|\\.)*+'?|\\.)|\xc2\xa0", re.DOTALL
)

_URL = re.compile(rb"(?i:https?)://")
_WORD = re.compile(rb"[^ \t]++")
NAME = re.compile(rb"[^ \t,;]++")  # LENIENT: commas between names

# agent-name ::= [a-zA-Z0-9_]+
# LENIENT: `-` and `.`, which the tokens of real agents contain; any text after a token is ignored.
_AGENT = re.compile(r"[A-Za-z0-9_.-]+")

# A language code such as en-US (section-3.2). The grammar is that of RFC 5646 section-2.1, but
# subtags may be in any order.
_LANG = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")

# LENIENT: file types after a path in the notation of other languages, such as `*.html`, `(json)` or
# `text/html`. They count as every type.
_LIKE_TYPE = re.compile(
    rb"[(\[*.]*+(?:(?:text|application)/)?+(?:[a-z.-]++\+)?+(?:x?html|json|xml)(?:[,;|/&+](?:x?html|json|xml))*+[)\].]*+",
    re.IGNORECASE,
)
# LENIENT: separators between actions, and quotes, brackets and other marks around an action.
_PROHIBITED = re.compile(rb"[^ \t,;|/&+]++")
_AROUND_NAMES = "\"'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb()[]{}<>.:!-"

KNOWN_ACTIONS = frozenset(action.lower() for action in ACTIONS)

# Characters that XML 1.0 section-2.2 does not allow.
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_ENDS = re.compile(r"[\r\n]+")

_ODD_SPACES = "`{}` has spaces that are not ASCII. They are read as spaces."
_NO_TYPE = "`{}` is not a file type, so every type is meant. Write html, json or xml."


def _text(octets: bytes) -> str:
    """Return octets as one line of text that is valid both in the text form and in XML.

    Invalid UTF-8 and characters that XML does not allow become U+FFFD.
    """
    return _LINE_ENDS.sub(" ", _UNFIT.sub("\ufffd", octets.decode("utf-8", "replace")))


def replace_odd_spaces(value: bytes) -> bytes:
    """Return the value with ASCII spaces instead of odd spaces.

    Each octet of an odd space becomes one ASCII space, so offsets in the value stay valid.
    """
    return _ODD_SPACE.sub(lambda match: b" " * len(match[0]), value)


def strip_spaces(value: bytes) -> bytes:
    """Return the value without white space around it, odd spaces included."""
    plain = replace_odd_spaces(value)
    return value[len(plain) - len(plain.lstrip(b" \t")) : len(plain.rstrip(b" \t"))]


def are_known_actions(value: bytes) -> bool:
    """Return True if a value lists known actions and nothing else, such as `Train, Index`."""
    names = [_prohibited_name(word) for word in _PROHIBITED.findall(replace_odd_spaces(value))]
    return any(names) and all(
        name in ("", ALL) or name in KNOWN_ACTIONS or name in ACTION_SPELLINGS for name in names
    )


def _prohibited_name(word: bytes) -> str:
    """Return the action that a word of a Disallow means, in lower case.

    A word with a `*` in it means every action ("*"). A word of marks alone means no action ("").
    """
    name = _text(word).lower()
    return ALL if ALL in name else name.strip(_AROUND_NAMES)


class Path(NamedTuple):
    """A path and its file type.

    Attributes:
        pattern: The path in normal form.
        file_type: "html", "json" or "xml". EVERY_TYPE if no type, or more than one, is written.
    """

    pattern: str
    file_type: str


class Position(NamedTuple):
    """The line and column of a value's start.

    Attributes:
        line: From 1.
        column: From 1, in octets. 0 means that the column is unknown, as in XML.
    """

    line: int
    column: int = 0


class Values:
    """Reads the values of lines and attributes, and reports findings about them.

    The values are octets without white space around them.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def _report(
        self, rule: str, message: str, *quoted: bytes, position: Position, offset: int = 0
    ) -> None:
        column = position.column + offset if position.column else 0
        self._findings.report(rule, message, *quoted, line=position.line, column=column)

    def agents(self, value: bytes, position: Position) -> tuple[str, ...]:
        """Return the agents of a value without repetition.

        ("*",) means any agent. () means that the value names no agent.
        """
        names: dict[str, None] = {}
        if replace_odd_spaces(value) != value:
            self._report("ait.agent", _ODD_SPACES, value, position=position)
        for word in NAME.finditer(replace_odd_spaces(value)):
            name = word[0].decode("utf-8", "replace")
            match = _AGENT.match(name)
            token = ALL if ALL in name else match[0] if match else ""
            if token != name:
                message = (
                    "`{}` is read as `{}`"
                    if token
                    else "`{}` names no crawler. Write `*` for all crawlers, or one crawler's name."
                )
                self._report(
                    "ait.agent",
                    message,
                    word[0],
                    token.encode(),
                    position=position,
                    offset=word.start(),
                )
            if token:
                names[token] = None
        if not names:
            self._report(
                "ait.agent", "The line names no agent. Write a name or `*`.", position=position
            )
        return self.join_names(names, position)

    def join_names(self, names: Iterable[str], position: Position) -> tuple[str, ...]:
        """Return the names of one block, or ("*",) if there are too many or `*` is among them."""
        names = tuple(dict.fromkeys(names))
        if len(names) > MAX_NAMES or len(" ".join(names)) > MAX_LINE:
            self._report(
                "ait.limit",
                f"There are more than {MAX_NAMES} names or {MAX_LINE} octets, so any "
                "agent is meant.",
                position=position,
            )
            return (ALL,)
        if ALL in names and len(names) > 1:
            self._report(
                "ait.agent",
                "`*` is beside names, so any agent is meant. Delete the names or the `*`.",
                position=position,
            )
            return (ALL,)
        return names

    def path_and_type(self, value: bytes, position: Position) -> Path | None:
        """Return a path and the file type after it, or None if there is no path."""
        words = list(_WORD.finditer(replace_odd_spaces(value)))
        if not words or words[-1][0].rstrip(b",").decode("latin-1").lower() not in FILE_TYPES:
            words = list(_WORD.finditer(value))  # odd spaces can be part of the path
        types = set()
        while words and (word := words[-1][0].rstrip(b",").decode("latin-1").lower()) in FILE_TYPES:
            types.add(word)
            words.pop()
        if words and not types:
            unknown, offset = words[-1][0], words[-1].start()
            if len(words) > 1 and (
                unknown.isalnum() or unknown == b"*" or _LIKE_TYPE.fullmatch(unknown)
            ):
                self._report("ait.file-type", _NO_TYPE, unknown, position=position, offset=offset)
                words.pop()
            else:
                self._report(
                    "ait.file-type",
                    "The file type is missing, so every type is meant. Write html, json or xml.",
                    position=position,
                )
        if len(types) > 1:
            self._report(
                "ait.file-type",
                "There is more than one file type, so every type is meant. Write one.",
                position=position,
            )
        pattern = self.path(value[: words[-1].end()] if words else b"", position)
        return Path(pattern, types.pop() if len(types) == 1 else EVERY_TYPE) if pattern else None

    def path(self, value: bytes, position: Position) -> str:
        """Return a path in normal form, or "" if there is none.

        LENIENT: the value may be a URL, of which only the path is used. A `/` at the start may be
        missing. A query is left out. The wildcards of robots.txt are allowed, although the grammar
        does not have them.
        """
        path = strip_spaces(value)
        path = target_of(path.decode("latin-1")).encode("latin-1") if _URL.match(path) else path
        path = path.partition(b"?")[0]
        if path and path[:1] not in (b"/", b"*"):
            path = b"/" + path
        pattern = normal_pattern(path)
        if not pattern:
            self._report(
                "ait.path", "The line names no path. Write one, such as `/`.", position=position
            )
        elif path != value:
            self._report("ait.path", "`{}` is read as `{}`", value, path, position=position)
        elif b"*" in path or path.endswith(b"$"):
            self._report(
                "ait.path", "`{}` is read as a pattern of robots.txt", value, position=position
            )
        if len(pattern) > MAX_PATH:
            self._report(
                "ait.limit",
                f"The path has more than {MAX_PATH} characters, so it is cut and covers more.",
                position=position,
            )
            pattern = pattern[: pattern.rfind("/", 0, MAX_PATH) + 1] or "/"
        return pattern

    def file_type(self, value: bytes, position: Position) -> str:
        """Return the file type that an attribute names, or EVERY_TYPE if it names no known type."""
        word = value.decode("latin-1").lower()
        if word not in FILE_TYPES:
            self._report(
                "ait.file-type",
                _NO_TYPE
                if word
                else "The file type is missing, so every type is meant. Write html, json or xml.",
                value,
                position=position,
            )
        return word if word in FILE_TYPES else EVERY_TYPE

    def element(self, value: bytes, position: Position, file_types: Iterable[str] = ()) -> str:
        """Return a selector or name, or "*" if it cannot be read.

        `file_types` are the file types of the paths above the element. For json and xml the value
        is a dotted name such as `author.email`, otherwise a CSS selector.
        """
        file_types = {*file_types}
        is_name = bool(file_types) and {"json", "xml"}.issuperset(file_types)
        plain = strip_spaces(value)
        if not is_name:
            plain = _STRING_OR_NO_BREAK_SPACE.sub(lambda match: match[1] or b" ", plain)
        if plain != value:
            self._report(SELECTOR, _ODD_SPACES, value, position=position)
        element = _text(plain)
        if not element:
            self._report(
                "ait.empty",
                "No element is named, so the whole document is meant. Write a selector, or `*`.",
                position=position,
            )
        elif len(value) > MAX_LINE:
            self._report(
                "ait.limit",
                f"The element has more than {MAX_LINE} octets, so the whole document is meant.",
                position=position,
            )
        elif "\ufffd" in element:
            self._report(
                SELECTOR,
                "`{}` has invalid characters, so the whole document is meant.",
                value,
                position=position,
            )
        else:
            if element != ALL and is_name:
                self._check_name(element, value, position)
            return element
        return ALL

    def _check_name(self, name: str, value: bytes, position: Position) -> None:
        if not is_dotted_name(name):
            message = (
                "`{}` is not a dotted name such as `author.email`. Documents without this "
                "name are covered as a whole."
            )
            self._report(SELECTOR, message, value, position=position)
        elif any(part.isdecimal() for part in name.split(".")):
            message = (
                "`{}` has numbers, which are places in arrays. A name without numbers means "
                "every member."
            )
            self._report(SELECTOR, message, value, position=position)

    def actions(self, value: bytes, position: Position, *, are_prohibited: bool) -> frozenset[str]:
        """Return the actions of a Disallow or Guide in lower case. "*" means every action.

        Too many actions count as "*". The result is empty if the value names no action.

        `are_prohibited` is True for a Disallow. There, marks around a name are ignored, and a name
        with a `*` in it means every action, because this refuses more. A Guide is not read so,
        because it would permit more.
        """
        actions = set()
        if replace_odd_spaces(value) != value:
            self._report("ait.action", _ODD_SPACES, value, position=position)
        for word in (_PROHIBITED if are_prohibited else NAME).finditer(replace_odd_spaces(value)):
            spelling = _text(word[0]).lower()
            name = _prohibited_name(word[0]) if are_prohibited else spelling
            action = ACTION_SPELLINGS.get(name, name)
            if action != spelling:
                message = "`{}` is read as `{}`" if action else "`{}` names no action."
                self._report(
                    "ait.action",
                    message,
                    word[0],
                    action.encode(),
                    position=position,
                    offset=word.start(),
                )
            elif action != ALL and action not in KNOWN_ACTIONS:
                self._report(
                    "ait.action",
                    "The action `{}` is unknown.",
                    word[0],
                    position=position,
                    offset=word.start(),
                )
            actions.add(action)
        actions.discard("")
        if not actions:
            self._report(
                "ait.empty", "No action is named here. Write one, such as Train.", position=position
            )
        if len(actions) > MAX_NAMES or len(" ".join(actions).encode()) > MAX_LINE:
            self._report(
                "ait.limit",
                f"There are more than {MAX_NAMES} actions or {MAX_LINE} octets, so every "
                "action is meant.",
                position=position,
            )
            return frozenset((ALL,))
        return frozenset(actions)

    def lang(self, value: bytes, position: Position) -> str:
        """Return a language tag with hyphens for underscores, or "und" if the value is not one."""
        lang = _text(value[:MAX_LANG]).replace("_", "-")
        if not _LANG.fullmatch(lang):
            self._report(
                "ait.language",
                "`{}` is not a language tag. Write one such as `en`.",
                value,
                position=position,
            )
            return UNDETERMINED
        return lang

    def guideline(self, value: bytes, position: Position) -> str:
        """Return the text of a guideline, cut at MAX_LINE octets."""
        octets = _text(value).encode()
        if not octets:
            self._report("ait.empty", "The guideline is empty.", position=position)
        if len(octets) > MAX_LINE:
            self._report(
                "ait.limit", f"Only the first {MAX_LINE} octets are read.", position=position
            )
        return octets[:MAX_LINE].decode("utf-8", "ignore").rstrip(" \t")


class RuleList:
    """A list of rules of limited size (MAX_RULES and MAX_SIZE).

    Actions that rules beyond the limits prohibit are prohibited on all resources for any agent.
    """

    def __init__(self, findings: Findings) -> None:
        self._rules: list[ElementRule] = []
        self._findings = findings
        self._size_left = MAX_SIZE
        self._beyond: set[str] = set()  # actions that are prohibited beyond the limits
        # The line and offset of the first rule beyond the limits. None until there is one.
        self._is_full: tuple[int, int] | None = None

    def add(self, rules: Iterable[ElementRule]) -> None:
        """Add the rules of one Disallow or Guide, which differ only in path, type and element."""
        size = 0
        for rule in rules:
            guidelines = sum(
                len(guideline.text) + len(guideline.lang) for guideline in rule.guidelines
            )
            size = size or _OVERHEAD + sum(map(len, rule.actions)) + guidelines
            self._size_left -= size + len(rule.path) + len(rule.element)
            if self._is_full is None and (self._size_left < 0 or len(self._rules) == MAX_RULES):
                self._is_full = rule.line, rule.offset
                message = (
                    f"There are more than {MAX_RULES} rules or {MAX_SIZE} characters. "
                    "Actions that later rules prohibit are prohibited everywhere."
                )
                self._findings.report("ait.limit", message, line=rule.line)
            if self._is_full:
                if rule.verdict is Verdict.DENY and ALL not in self._beyond:
                    self._beyond |= rule.actions
                    if len(self._beyond) > MAX_NAMES:
                        self._beyond = {ALL}
                return
            self._rules.append(rule)

    def cut(self, line: int, offset: int) -> None:
        """Record that the text is cut at this line.

        The rest of the text may prohibit anything, so every action is prohibited everywhere.
        """
        self._findings.report(
            "ait.limit",
            "The file is longer than the limit, so every action is prohibited everywhere.",
            line=line,
        )
        self._is_full, self._beyond = (line, offset), {ALL}

    def close(self) -> tuple[ElementRule, ...]:
        """Return the rules.

        If rules beyond the limits prohibit actions, one more rule prohibits these everywhere.
        """
        if self._is_full and self._beyond:
            line, offset = self._is_full
            self._rules.append(everywhere(frozenset(self._beyond), line, offset))
            self._beyond = set()
        return tuple(self._rules)


def everywhere(actions: frozenset[str], line: int, offset: int) -> ElementRule:
    """Return a rule that prohibits the actions on every resource for any agent."""
    return ElementRule(
        agents=(ALL,),
        path="/",
        file_type=EVERY_TYPE,
        element=ALL,
        verdict=Verdict.DENY,
        actions=actions,
        line=line,
        offset=offset,
        finding=SELECTOR,
    )
