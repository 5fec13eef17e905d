"""The values of ai.txt, in both of its written forms, and the limits of a list of rules.

Values(findings)     reads the values of lines and attributes
RuleList(findings)   a list of rules within the limits"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from comity.policies.answers.decision import Verdict
from comity.policies.document.document import FILE_TYPES
from comity.policies.formats.ai_txt.values import ACTIONS, ALL, EVERY_TYPE, Rule
from comity.policies.syntax.lines import MAX_BYTES, MAX_LINE, Findings
from comity.policies.syntax.path_patterns import normal_pattern
from comity.policies.syntax.urls import target_of

MAX_RULES = 10_000  # of a file
MAX_SIZE = 4 * MAX_BYTES  # characters of all rules; blocks that share a Disallow or Guide have it once each
MAX_NAMES = 1000  # agents of a block; actions of a line
MAX_PATH = 8 * 1024  # characters, in normal form
MAX_LANG = 100  # octets

UNDETERMINED = "und"  # RFC 5646 section-4.1
_OVERHEAD = 100  # characters that a rule counts for besides its texts

_URL = re.compile(rb"(?i:https?)://")
_WORD = re.compile(rb"[^ \t]++")
NAME = re.compile(rb"[^ \t,;]++")  # LENIENT: commas between names

# agent-name ::= [a-zA-Z0-9_]+
# LENIENT: `-` and `.`, as the tokens of real agents have them, and whatever follows a token.
_AGENT = re.compile(r"[A-Za-z0-9_.-]+")

# section-3.2 asks for language codes such as en-US; RFC 5646 section-2.1, without the order of its subtags.
_LANG = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")

KNOWN_ACTIONS = frozenset(action.lower() for action in ACTIONS)
ACTION_SPELLINGS = {"all": ALL, "analyse": "analyze", "summarise": "summarize"}  # LENIENT

_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0 section-2.2 has no such characters
_LINE_ENDS = re.compile(r"[\r\n]+")

_NO_TYPE = "`{}` is no file type: every type is meant"


# Forms of other languages: JSON Pointer (RFC 6901) and XPath, JSONPath (RFC 9535), and lists.
_OF_OTHERS = re.compile(r"^[/$@]|[\[\]*,]|\s\.|\.\s")


def is_dotted_name(name: str) -> bool:
    """Whether it has the form of a name of JSON or XML. What has another may be a name all the same."""
    return all(name.split(".")) and not _OF_OTHERS.search(name)


def _text(octets: bytes) -> str:
    """One line that can stand in either form."""
    return _LINE_ENDS.sub(" ", _UNFIT.sub("\ufffd", octets.decode("utf-8", "replace")))


class Path(NamedTuple):
    pattern: str
    file_type: str


class Position(NamedTuple):
    """Where a value begins."""

    line: int  # 1-based
    column: int = 0  # 1-based, in octets; 0: not known, as in XML


class Values:
    """Reads the values of lines and attributes: octets without white space around them."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def _report(self, rule: str, message: str, *quoted: bytes, at: Position, offset: int = 0) -> None:
        column = at.column + offset if at.column else 0
        self._findings.report(rule, message, *quoted, line=at.line, column=column)

    def agents(self, value: bytes, at: Position) -> tuple[str, ...]:
        """Names without repetition; ("*",) for any; () where nobody is named."""
        names: dict[str, None] = {}
        for word in NAME.finditer(value):
            name = word[0].decode("utf-8", "replace")
            read = _AGENT.match(name)
            known = ALL if ALL in name else read[0] if read else ""
            if known != name:
                message = "`{}` is read as `{}`" if known else "`{}` names nobody"
                self._report("ait.agent", message, word[0], known.encode(), at=at, offset=word.start())
            if known:
                names[known] = None
        if not names:
            self._report("ait.agent", "no agent is named", at=at)
        return self.together(names, at)

    def together(self, names: Iterable[str], at: Position) -> tuple[str, ...]:
        """The names of one block."""
        names = tuple(dict.fromkeys(names))
        if len(names) > MAX_NAMES or len(" ".join(names)) > MAX_LINE:
            self._report("ait.limit", f"more than {MAX_NAMES} names or {MAX_LINE} octets: any agent is meant", at=at)
            return (ALL,)
        if ALL in names and len(names) > 1:
            self._report("ait.agent", "`*` beside names: any agent is meant", at=at)
            return (ALL,)
        return names

    def typed_path(self, value: bytes, at: Position) -> Path | None:
        """A path and the file type after it; None for no path."""
        words = list(_WORD.finditer(value))
        types = set()
        while words and (word := words[-1][0].rstrip(b",").decode("latin-1").lower()) in FILE_TYPES:
            types.add(word)
            words.pop()
        if words and not types:
            unknown, offset = words[-1][0], words[-1].start()
            if len(words) > 1 and (unknown.isalnum() or unknown == b"*"):
                self._report("ait.file-type", _NO_TYPE, unknown, at=at, offset=offset)
                words.pop()
            else:
                self._report("ait.file-type", "no file type: every type is meant", at=at)
        if len(types) > 1:
            self._report("ait.file-type", "more than one file type: every type is meant", at=at)
        pattern = self.path(value[: words[-1].end()] if words else b"", at)
        return Path(pattern, types.pop() if len(types) == 1 else EVERY_TYPE) if pattern else None

    def path(self, value: bytes, at: Position) -> str:
        """A path in normal form; "" for none.

        LENIENT: URLs, which name the site needlessly; no `/` at the start; a query, which is left out; the wildcards of
        robots.txt, which the grammar has not."""
        path = target_of(value.decode("latin-1")).encode("latin-1") if _URL.match(value) else value
        path = path.partition(b"?")[0]
        if path and path[:1] not in (b"/", b"*"):
            path = b"/" + path
        pattern = normal_pattern(path)
        if not pattern:
            self._report("ait.path", "no path", at=at)
        elif path != value:
            self._report("ait.path", "`{}` is read as `{}`", value, path, at=at)
        elif b"*" in path or path.endswith(b"$"):
            self._report("ait.path", "`{}` is read as a pattern of robots.txt", value, at=at)
        if len(pattern) > MAX_PATH:
            self._report("ait.limit", f"a path of more than {MAX_PATH} characters: it is cut, and covers more", at=at)
            pattern = pattern[: pattern.rfind("/", 0, MAX_PATH) + 1] or "/"
        return pattern

    def file_type(self, value: bytes, at: Position) -> str:
        """Of an attribute; "" for every type."""
        word = value.decode("latin-1").lower()
        if word not in FILE_TYPES:
            self._report("ait.file-type", _NO_TYPE if word else "no file type: every type is meant", value, at=at)
        return word if word in FILE_TYPES else EVERY_TYPE

    def element(self, value: bytes, at: Position, file_types: Iterable[str] = ()) -> str:
        """A selector or name; "*" for what cannot be read. `file_types`: of the paths that it is for."""
        element = _text(value)
        if not element:
            self._report("ait.empty", "no element is named: the whole document is meant", at=at)
        elif len(value) > MAX_LINE:
            self._report("ait.limit", f"an element of more than {MAX_LINE} octets: the whole document is meant", at=at)
        elif "\ufffd" in element:
            self._report("ait.selector", "`{}` has odd characters: the whole document is meant", value, at=at)
        else:
            if element != ALL and {*file_types} and {"json", "xml"}.issuperset(file_types):
                self._check_name(element, value, at)
            return element
        return ALL

    def _check_name(self, name: str, value: bytes, at: Position) -> None:
        if not is_dotted_name(name):
            message = "`{}` is no dotted name, such as `author.email`: what has nothing of that name is covered as a whole"
            self._report("ait.selector", message, value, at=at)
        elif any(part.isdecimal() for part in name.split(".")):
            message = "`{}`: numbers are places in arrays; a name without them means every member"
            self._report("ait.selector", message, value, at=at)

    def actions(self, value: bytes, at: Position) -> frozenset[str]:
        """Lower case; "*" for every action, also where there are too many."""
        actions = set()
        for word in NAME.finditer(value):
            written = _text(word[0]).lower()
            action = ACTION_SPELLINGS.get(written, written)
            if action != written:
                self._report("ait.action", "`{}` is read as `{}`", word[0], action.encode(), at=at, offset=word.start())
            elif action != ALL and action not in KNOWN_ACTIONS:
                self._report("ait.action", "nobody knows the action `{}`", word[0], at=at, offset=word.start())
            actions.add(action)
        if not actions:
            self._report("ait.empty", "no action is named: it states nothing", at=at)
        if len(actions) > MAX_NAMES or len(" ".join(actions).encode()) > MAX_LINE:
            self._report("ait.limit", f"more than {MAX_NAMES} actions or {MAX_LINE} octets: every action is meant", at=at)
            return frozenset((ALL,))
        return frozenset(actions)

    def lang(self, value: bytes, at: Position) -> str:
        """A language tag; "und" for what is none."""
        lang = _text(value[:MAX_LANG]).replace("_", "-")
        if not _LANG.fullmatch(lang):
            self._report("ait.language", "`{}` is no language tag", value, at=at)
            return UNDETERMINED
        return lang

    def guideline(self, value: bytes, at: Position) -> str:
        octets = _text(value).encode()
        if not octets:
            self._report("ait.empty", "an empty guideline", at=at)
        if len(octets) > MAX_LINE:
            self._report("ait.limit", f"only the first {MAX_LINE} octets are read", at=at)
        return octets[:MAX_LINE].decode("utf-8", "ignore").rstrip(" \t")


class RuleList:
    """A list of rules that stops growing at the limits: further prohibitions then hold for all resources and any agent."""

    def __init__(self, findings: Findings) -> None:
        self._rules: list[Rule] = []
        self._findings = findings
        self._left = MAX_SIZE
        self._beyond: set[str] = set()  # what is prohibited beyond the limits
        self._is_full: tuple[int, int] | None = None  # line, and where it starts

    def add(self, rules: Iterable[Rule]) -> None:
        """Rules that differ in path and element only."""
        size = 0
        for rule in rules:
            size = size or _OVERHEAD + sum(map(len, rule.actions)) + sum(len(one.text) + len(one.lang) for one in rule.guidelines)
            self._left -= size + len(rule.path) + len(rule.element)
            if self._is_full is None and (self._left < 0 or len(self._rules) == MAX_RULES):
                self._is_full = rule.line, rule.at
                message = f"there is more than {MAX_RULES} rules or {MAX_SIZE} characters: what is left is prohibited everywhere"
                self._findings.report("ait.limit", message, line=rule.line)
            if self._is_full:
                if rule.verdict is Verdict.DENY and ALL not in self._beyond:
                    self._beyond |= rule.actions
                    if len(self._beyond) > MAX_NAMES:
                        self._beyond = {ALL}
                return
            self._rules.append(rule)

    def cut(self, line: int, at: int) -> None:
        """The text ends here and is more: it may prohibit anything."""
        self._findings.report("ait.limit", "there is more than is read: every action is prohibited everywhere", line=line)
        self._is_full, self._beyond = (line, at), {ALL}

    def closed(self) -> tuple[Rule, ...]:
        if self._is_full and self._beyond:
            line, at = self._is_full
            self._rules.append(everywhere(frozenset(self._beyond), line, at))
            self._beyond = set()
        return tuple(self._rules)


def everywhere(actions: frozenset[str], line: int, at: int) -> Rule:
    """A prohibition for any agent on every resource."""
    return Rule(
        agents=(ALL,), path="/", file_type=EVERY_TYPE, element=ALL, verdict=Verdict.DENY, actions=actions, line=line, at=at
    )
