"""Checks of an ai.txt beyond its syntax: lines without effect, and lines that repeat others.

    check_site(files)         the file of a site, in either of its formats
    check_xml(body, url)      the XML form: the findings of reading it, and the same checks
    keyword_lines(text)       the lines of the text form that are read

The time is linear in the octets, except for sorting the rules by their paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.element_rule import ALL, EVERY_TYPE, ElementRule, display_names
from comity.policies.document.document import FILE_TYPES
from comity.policies.document.selectors import SelectorError, compiled
from comity.policies.formats.ai_txt.file import AiFile, ai_txt_of
from comity.policies.formats.ai_txt.forms import MAX_XML, MAX_XML_ELEMENTS, from_xml
from comity.policies.formats.ai_txt.grammar import LINE, NOTHINGS, SPELLINGS, Keyword, is_line_of
from comity.policies.formats.ai_txt.reading import NAME
from comity.policies.formats.ai_txt.values import AiTxt, patterns_of
from comity.policies.formats.ai_txt.words import LANGUAGES
from comity.policies.formats.authoring import Remarks, literal
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax import xml_tree
from comity.policies.syntax.lines import Lines
from comity.policies.syntax.path_patterns import PatternIndex, covers, sample
from comity.policies.syntax.printable import printable
from comity.policies.syntax.suspicions import oddity
from comity.policies.syntax.xml_tree import XmlError, local_name

MAX_QUOTED = 100  # maximum octets of a value that a message quotes


class KeywordEntry(NamedTuple):
    """A keyword with its value, from a line or from an attribute in XML.

    Attributes:
        line: The number of the line, from 1.
        column: The column of the value, from 1, in octets. 0 means unknown, as in XML.
        file_type: The file type that a Path line has after its path. EVERY_TYPE for other lines.
        indentation: The white space before the keyword.
    """

    keyword: Keyword
    value: bytes
    line: int
    column: int
    file_type: str = EVERY_TYPE
    indentation: bytes = b""


def keyword_lines(text: bytes) -> Iterator[KeywordEntry]:
    """Yield the lines with a keyword. Their values have no comments."""
    lines = Lines(text)
    while True:
        lines.skip(NOTHINGS)
        line = lines.read()
        if not line:
            return
        match = LINE.match(line)
        if match and (match[3] or is_line_of(SPELLINGS[match[2].lower()], match[4])):
            keyword, value = SPELLINGS[match[2].lower()], match[4]
            if keyword not in (Keyword.ELEMENT, Keyword.GUIDELINE):
                value = value.partition(b"#")[0]
            file_type, value = EVERY_TYPE, value.rstrip(b" \t")
            if keyword is Keyword.PATH:
                value, file_type = _split_type(value)
            yield KeywordEntry(
                keyword, value, lines.number, match.start(4) + 1, file_type, match[1]
            )


def _split_type(value: bytes) -> tuple[bytes, str]:
    """Return a path without the file type after it, and the file type."""
    words = value.rsplit(None, 1)
    last = words[-1].lower().decode("latin-1") if len(words) > 1 else ""
    return (words[0], last) if last in FILE_TYPES else (value, EVERY_TYPE)


def check_site(files: SiteFiles) -> tuple[Finding, ...]:
    """Return findings about the ai.txt of a site, in addition to the findings of reading it."""
    file = ai_txt_of(files)
    if not file.elements:
        return ()
    remarks = Remarks(file.url)
    if file.elements.rules:
        _check(remarks, file.elements, keyword_lines(file.text))
        _check_mixture(remarks, file)
    elif file.elements.findings and not (file.spawning and file.spawning.patterns):
        remarks.report("ait.unread", "The file has no rule, so it has no effect.")
    return remarks.findings


def check_xml(body: bytes, url: str) -> tuple[Finding, ...]:
    """Return the findings of a document in the XML form, including those of reading it."""
    ai_txt = from_xml(body, url=url)
    remarks = Remarks(url)
    if ai_txt.rules:
        _check(remarks, ai_txt, _attributes(body))
    else:
        remarks.report(
            "ait.unread", "The document has no rule that can be read, so it has no effect."
        )
    return (*ai_txt.findings, *remarks.findings)


_XML_KEYWORDS = {
    "user-agent": (Keyword.USER_AGENT, "names"),
    "path": (Keyword.PATH, "value"),
    "element": (Keyword.ELEMENT, "name"),
    "guideline": (Keyword.LANG, "lang"),
}


def _attributes(body: bytes) -> Iterator[KeywordEntry]:
    try:
        tree = xml_tree.read(body, max_bytes=MAX_XML, max_elements=MAX_XML_ELEMENTS)
    except XmlError:
        return
    for element in tree.root.iter("*"):
        keyword, attribute = _XML_KEYWORDS.get(local_name(element), (None, ""))
        if keyword:
            value = element.get(attribute, "").strip(" \t\r\n").encode()
            yield KeywordEntry(
                keyword, value, tree.lines[element], 0, element.get("file-type", "").strip().lower()
            )
            if keyword is Keyword.LANG:
                yield KeywordEntry(Keyword.GUIDELINE, b"", tree.lines[element], 0)


def _check(remarks: Remarks, ai_txt: AiTxt, entries: Iterable[KeywordEntry]) -> None:
    lang: KeywordEntry | None = None  # a Lang without a guideline yet
    types: set[str] = set()  # file types of the open paths
    last: Keyword | None = None
    for entry in entries:
        if lang and entry.keyword is not Keyword.GUIDELINE:
            _report(remarks, "ait.unused-language", _UNUSED_LANGUAGE, lang)
        lang = entry if entry.keyword is Keyword.LANG else None
        match entry.keyword:
            case Keyword.USER_AGENT:
                _check_agents(remarks, entry)
            case Keyword.PATH:
                types = {*types, entry.file_type} if last is Keyword.PATH else {entry.file_type}
                _check_path(remarks, entry)
            case Keyword.ELEMENT:
                _check_element(remarks, entry, types)
            case Keyword.DISALLOW | Keyword.GUIDE:
                _check_actions(remarks, entry)
            case Keyword.LANG:
                _check_language(remarks, entry)
        last = entry.keyword
    if lang:
        _report(remarks, "ait.unused-language", _UNUSED_LANGUAGE, lang)
    _check_rules(remarks, ai_txt.rules)


_UNUSED_LANGUAGE = "This Lang has no Guideline below it, so it has no effect."


def _report(
    remarks: Remarks,
    rule: str,
    message: str,
    entry: KeywordEntry,
    *quoted: bytes,
    offset: int = 0,
    length: int = 0,
) -> None:
    column = entry.column + offset if entry.column else 0
    remarks.report(
        rule,
        message,
        *quoted,
        line=entry.line,
        column=column,
        length=(length or len(entry.value)) if column else 0,
    )


def _check_agents(remarks: Remarks, entry: KeywordEntry) -> None:
    names: set[bytes] = set()
    for word in NAME.finditer(entry.value):
        if word[0].lower() in names:
            message = "This line names `{}` twice. Delete one."
            _report(
                remarks,
                "ait.repeated-agent",
                message,
                entry,
                word[0],
                offset=word.start(),
                length=len(word[0]),
            )
        names.add(word[0].lower())
    if other := _OUTSIDE_NAMES.search(entry.value):
        message = (
            "`{}` in a name is outside the grammar of ai.txt: a strict reader may ignore "
            "the line. Keep it if it is a part of the crawler's name."
        )
        _report(remarks, "ait.grammar", message, entry, other[0], offset=other.start(), length=1)


def _check_actions(remarks: Remarks, entry: KeywordEntry) -> None:
    """Report commas between actions (section-3.2: "action names separated by whitespace")."""
    if comma := COMMA.search(entry.value):
        message = (
            "`,` between actions is outside the grammar of ai.txt: a strict reader may ignore the "
            "line. Write only a space."
        )
        _report(remarks, "ait.grammar", message, entry, offset=comma.start(), length=1)


COMMA = re.compile(rb"(?<=[A-Za-z])[ \t]*+,[ \t]*+(?=[A-Za-z])")
# Figure 11 of the paper: agent-name and path-segment. The figure prints a space where its source
# has `~`.
_OUTSIDE_NAMES = re.compile(rb"(?<=[A-Za-z0-9_])[.-](?=[A-Za-z0-9_])")
NOT_ASCII = re.compile(rb"[\x80-\xff]+")
# The wildcards of robots.txt are not reported.
_OUTSIDE_PATHS = re.compile(rb"[^A-Za-z0-9_.&%/~:@*$?\x80-\xff-]")


def _check_path(remarks: Remarks, entry: KeywordEntry) -> None:
    value = entry.value
    if entry.column and len(words := value.split()) > 1 and words[-1].isalnum():
        return  # `ait.file-type`
    if odd := oddity(value):
        _report(
            remarks,
            "ait.path-characters",
            f"`{{}}` probably matches nothing. {literal(odd)}",
            entry,
            value,
        )
    else:
        _check_grammar(remarks, entry)
    _check_extension(remarks, entry)


def _check_grammar(remarks: Remarks, entry: KeywordEntry) -> None:
    """Report characters that the paper's grammar lacks.

    For a reserved character there is no fix: its escape is another path (RFC 3986 section-2.2).
    """
    message = (
        "`{}` in a path is outside the grammar of ai.txt: a strict reader may ignore the line. "
    )
    if other := NOT_ASCII.search(entry.value):
        advice = "Write `{}`, which is the same path."
        quoted = other[0], percent_escape(other[0])
        _report(
            remarks,
            "ait.grammar",
            message + advice,
            entry,
            *quoted,
            offset=other.start(),
            length=len(other[0]),
        )
    if other := _OUTSIDE_PATHS.search(entry.value):
        advice = "Name the folder above it, which covers it."
        _report(
            remarks,
            "ait.grammar",
            message + advice,
            entry,
            other[0],
            offset=other.start(),
            length=1,
        )


def percent_escape(octets: bytes) -> bytes:
    """Return the percent-escapes of some octets."""
    return b"".join(b"%%%02X" % octet for octet in octets)


_EXTENSION = re.compile(rb"\.([a-z0-9]{1,8})\$?\Z", re.IGNORECASE)
_TYPES = {
    **dict.fromkeys((b"html", b"htm"), ("html",)),
    b"xhtml": ("html", "xml"),
    **dict.fromkeys((b"json", b"ndjson", b"jsonl", b"geojson"), ("json",)),
    **dict.fromkeys((b"xml", b"rss", b"atom", b"rdf"), ("xml",)),
    **dict.fromkeys(
        (
            b"jpg",
            b"jpeg",
            b"png",
            b"gif",
            b"webp",
            b"pdf",
            b"mp3",
            b"mp4",
            b"zip",
            b"css",
            b"js",
            b"csv",
        ),
        (),
    ),
}


def _check_extension(remarks: Remarks, entry: KeywordEntry) -> None:
    match = _EXTENSION.search(entry.value, max(0, len(entry.value) - 10))
    types = _TYPES.get(match[1].lower()) if match else None
    if entry.file_type and types is not None and entry.file_type not in types:
        advice = (
            f"write `{types[0]}`"
            if types
            else "rules for elements exist only for html, json and xml"
        )
        message = (
            f"The rule is for {entry.file_type}, but the extension of the path is of "
            f"another type: {advice}."
        )
        _report(remarks, "ait.extension", message, entry)


# RFC 5646 section-2.2.1: no language has a primary subtag of four letters or more.
_TAGS = {name.split(",")[0].lower(): tag for tag, name in reversed(LANGUAGES.items())} | {
    "deutsch": "de",
    "espanol": "es",
    "español": "es",
    "francais": "fr",
    "français": "fr",
    "italiano": "it",
    "mandarin": "zh",
    "portugues": "pt",
    "português": "pt",
}
_COUNTRIES = {"UK": "GB"}  # wrong code -> the code in ISO 3166
_COUNTRY_AS_LANGUAGE = {
    "jp": "ja",
    "cn": "zh",
    "cz": "cs",
    "dk": "da",
    "gr": "el",
    "ua": "uk",
    "kr": "ko",
    "us": "en-US",
}


def _check_language(remarks: Remarks, entry: KeywordEntry) -> None:
    text = entry.value.decode("utf-8", "replace")
    primary, *others = text.replace("_", "-").split("-")
    tag = (
        _TAGS.get(text.lower())
        or _TAGS.get(primary.lower())
        or ("" if others else _COUNTRY_AS_LANGUAGE.get(primary.lower()))
    )
    if tag:
        message = f"`{{}}` is not a language tag. Write `{tag}`."
    elif len(primary) > 3 and primary.isascii() and primary.isalpha():
        message = "`{}` is not a language tag. Write one such as `en` or `en-US`."
    elif others and others[-1].upper() in _COUNTRIES:
        right = f"{printable(primary)}-{_COUNTRIES[others[-1].upper()]}"
        message = f"No country has the code `{others[-1]}`. Write `{literal(right)}`."
    elif "_" in text:
        message = "`{}` has underscores. Write hyphens."
    else:
        return
    _report(
        remarks,
        "ait.language-tag",
        message,
        entry,
        *([entry.value] if message.startswith("`{}`") else ()),
    )


def _check_element(remarks: Remarks, entry: KeywordEntry, types: Iterable[str]) -> None:
    """Report an element that cannot be applied, or only in part.

    `types` are the file types of the paths above the element.
    """
    element = entry.value.decode("utf-8", "replace")
    if element in ("", ALL):
        return
    quoted = entry.value[:MAX_QUOTED]
    if any(file_type in ("json", "xml") for file_type in types) and not all(element.split(".")):
        message = (
            "`{}` is not a dotted name, because a part of it is empty. The whole document "
            "is meant. Write one such as `a.b`."
        )
        _report(remarks, "ait.no-element", message, entry, quoted)
    elif any(file_type in ("html", EVERY_TYPE) for file_type in types):
        try:
            unread = compiled(element).unread
        except SelectorError as error:
            message = (
                "`{}` cannot be applied ({}), so the whole document is meant. Write a CSS "
                "selector such as `article p`."
            )
            _report(
                remarks,
                "ait.no-element",
                message,
                entry,
                quoted,
                str(error).encode("utf-8", "replace"),
            )
        else:
            if unread:
                message = (
                    "`{}` is read without {}, which only a rendered page could answer. So "
                    "more is meant."
                )
                _report(
                    remarks,
                    "ait.element-part",
                    message,
                    entry,
                    quoted,
                    ", ".join(unread).encode("utf-8", "replace"),
                )


class _Wide:
    """The prohibitions of whole documents, for one set of agents and one file type."""

    def __init__(self) -> None:
        self._actions: dict[str, dict[str, int]] = {}  # path -> action -> line
        self._index: tuple[PatternIndex, list[str]] | None = None

    def add(self, rule: ElementRule) -> None:
        actions = self._actions.setdefault(rule.path, {})
        for action in rule.actions:
            actions.setdefault(action, rule.line)

    def lines(self, path: str, actions: frozenset[str], but: int) -> set[int]:
        """Return the lines that together prohibit all the actions wherever the path matches.

        The result is empty if an action is not prohibited. `but` is the number of the line that is
        being checked, which does not count. A later line counts only if it covers more paths.
        """
        if self._index is None:
            patterns = [(pattern, path) for path in self._actions for pattern in patterns_of(path)]
            self._index = (
                PatternIndex([pattern for pattern, _ in patterns]),
                [path for _, path in patterns],
            )
        index, paths = self._index
        covering = [
            {paths[number] for number in index.all(sample(pattern))}
            for pattern in patterns_of(path)
        ]
        remaining, lines = set(actions), set()
        for wide in covering[0].intersection(*covering[1:]):
            of_path = self._actions[wide]
            for action in tuple(remaining):
                line = of_path.get(ALL, 0) or of_path.get(action, 0)
                if line and line != but and (line < but or not _covers(path, wide)):
                    remaining.discard(action)
                    lines.add(line)
        return set() if remaining else lines


def _covers(path: str, other: str) -> bool:
    """Return True if a path covers every resource that another path covers."""
    return all(
        any(covers(pattern, sample(narrow)) for pattern in patterns_of(path))
        for narrow in patterns_of(other)
    )


_Key = tuple[frozenset[str], str]  # the agents in lower case, and the file type
_ANYBODY = frozenset((ALL,))


def _check_rules(remarks: Remarks, rules: tuple[ElementRule, ...]) -> None:
    """Report rules without effect.

    All rules that bind an agent apply together, and a Disallow overrides a Guide.
    """
    keys: dict[tuple[str, ...], frozenset[str]] = {}
    agents_of = [
        keys.setdefault(rule.agents, frozenset(map(str.lower, rule.agents))) for rule in rules
    ]
    wide: dict[_Key, _Wide] = {}
    # Agents, path, file type, element -> action -> line.
    same: dict[tuple[frozenset[str], str, str, str], dict[str, int]] = {}
    for rule, agents in zip(rules, agents_of, strict=True):
        if rule.verdict is Verdict.DENY:
            if rule.element == ALL:
                wide.setdefault((agents, rule.file_type), _Wide()).add(rule)
            actions = same.setdefault((agents, rule.path, rule.file_type, rule.element), {})
            for action in rule.actions:
                actions.setdefault(action, rule.line)
    guides: dict[Any, int] = {}
    # A line makes one rule for each of its paths and elements.
    by_line: dict[int, list[tuple[str, str] | None]] = {}
    for rule, agents in zip(rules, agents_of, strict=True):
        by_line.setdefault(rule.line, []).append(_find_overruling(rule, agents, wide, same, guides))
    for line, of_line in by_line.items():
        finding = next(
            (finding for finding in of_line if finding and finding[0] == "ait.contradiction"), None
        )
        if finding or (finding := of_line[0] if all(of_line) else None):
            remarks.report(*finding, line=line)


def _find_overruling(
    rule: ElementRule,
    agents: frozenset[str],
    wide: dict[_Key, _Wide],
    same: dict[tuple[frozenset[str], str, str, str], dict[str, int]],
    guides: dict[Any, int],
) -> tuple[str, str] | None:
    """Return the id and message of a finding if other lines make the rule ineffective, else None.

    `guides` are the Guides checked so far. The function adds to them.
    """
    binding = dict.fromkeys((agents, _ANYBODY))
    if rule.verdict is None:
        guide = agents, rule.path, rule.file_type, rule.element, rule.actions, rule.guidelines
        first = guides.setdefault(guide, rule.line)
        if first != rule.line:
            return "ait.duplicate", f"This line repeats line {first}. Delete it."
        prohibited = _prohibited_actions(rule, binding, same)
        if prohibited:
            action, line = min(prohibited.items(), key=lambda item: (item[1], item[0]))
            (name,) = display_names((action,))
            return (
                "ait.contradiction",
                f"This Guide has no effect for {_action_in_words(name)}: line {line} "
                "disallows it for the same element.",
            )
    else:
        lines = {
            same[agents, rule.path, rule.file_type, rule.element].get(action, 0)
            for action in rule.actions
        }
        if max(lines) < rule.line and 0 not in lines:
            return "ait.duplicate", f"This line repeats line {min(lines)}. Delete it."
    for key in (
        (bound, file_type)
        for bound in binding
        for file_type in dict.fromkeys((rule.file_type, EVERY_TYPE))
    ):
        if key in wide and (lines := wide[key].lines(rule.path, rule.actions, rule.line)):
            return _report_wider(rule, min(lines))
    return None


def _action_in_words(name: str) -> str:
    return "every action" if name == ALL else literal(printable(name.encode("utf-8", "replace")))


def _report_wider(rule: ElementRule, line: int) -> tuple[str, str]:
    """Return the id and message of the finding that line `line` prohibits the whole document."""
    if rule.verdict is None:
        return (
            "ait.contradiction",
            f"This Guide has no effect: line {line} disallows it for the whole document.",
        )
    return (
        "ait.overruled",
        f"This line has no effect: line {line} already disallows it for the whole document.",
    )


def _prohibited_actions(
    rule: ElementRule,
    binding: Iterable[frozenset[str]],
    same: dict[tuple[frozenset[str], str, str, str], dict[str, int]],
) -> dict[str, int]:
    """Return the actions of a Guide that a Disallow of the same element prohibits.

    Each action comes with the line of the Disallow.
    """
    prohibited: dict[str, int] = {}
    for agents in binding:
        for file_type in dict.fromkeys((rule.file_type, EVERY_TYPE)):
            actions = same.get((agents, rule.path, file_type, rule.element), {})
            for action in rule.actions:
                if line := actions.get(action, 0) or actions.get(ALL, 0):
                    prohibited.setdefault(action, line)
    return prohibited


def _check_mixture(remarks: Remarks, file: AiFile) -> None:
    """Report lines in Spawning's form among lines of the element-level language."""
    for pattern in file.spawning.patterns if file.spawning else ():
        verb = (
            "refuses only the training of AI,"
            if pattern.verdict is Verdict.DENY
            else "makes an exception for training"
        )
        message = (
            f"This line is in Spawning's form: it {verb} by the address only. Put rules for "
            "elements below a Path and an Element."
        )
        remarks.report("ait.mixture", message, line=pattern.source.line)
