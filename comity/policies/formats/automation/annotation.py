"""The annotations of a page: JSON-LD of the type AutomationPolicyAnnotation (draft-liao-aipref-autoctl-ext section-3.5).

    annotations_in(content, token)  those that are addressed to the agent
    merged(annotations)             what they state together

A page is parsed only where the type's name stands in it. JSON-LD is read as plain JSON: a `@context` is not resolved, and of
names written as IRIs the last part counts. What is broken, or more than is read, states nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.answers.decision import Finding
from comity.policies.document.document import Content
from comity.policies.formats.automation.directives import Directives, DirectiveValue
from comity.policies.formats.automation.grammar import MAX_REPEATED, MAX_VALUES
from comity.policies.formats.automation.value_syntax import DIRECTIVES
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.printable import MAX_SHOWN, printable
from comity.policies.syntax.remembered import MAX_REMEMBERED, Remembered
from comity.policies.syntax.suspicions import trimmed

MAX_SCRIPT = 64 * 1024  # characters of a script
MAX_DEPTH = 32  # JSON objects and arrays in one another
MAX_NODES = 10_000  # JSON objects and arrays of a script
MAX_SCRIPTS = 32  # of a page, that name the type
MAX_ANNOTATIONS = 100  # of a page

JSON_LD = "application/ld+json"
TYPE = "AutomationPolicyAnnotation"

_TYPE_KEYS = ("@type", "type")  # schema.org's own context has the second for the first
_WRAPPERS = ("@value", "@list", "@set")  # JSON-LD 1.1 section-4.2.1, section-4.3

_ESCAPED = re.compile(rb"\\u00([4-7][0-9A-Fa-f])")  # the letters, among others
_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_BRACKET_OR_STRING = re.compile(rf"[\[\]{{}}]|{_STRING}", re.DOTALL)
# LENIENT: a comma after the last item, as the example of section-3.5 has it, XHTML's way to write a script, and a BOM, which
# parsers may ignore (RFC 8259 section-8.1).
_SKIPPED = re.compile(rf"({_STRING})|,(?=\s*[\]}}])|<!\[CDATA\[|\]\]>|\ufeff", re.DOTALL)


class Annotation(NamedTuple):
    """One annotation. `offset` in what it states is its place among the annotations of the page."""

    directives: Directives
    line: int  # in the octets of the page, 1-based; 0: nobody knows
    text: str  # as written, on one line, printable


class _Object(NamedTuple):
    """A JSON object."""

    pairs: list[tuple[str, Any]]  # as written: a name may stand twice
    start: int  # in the script
    end: int

    def properties(self) -> Iterator[tuple[str, Any]]:
        """Yield its pairs, with those that stand in an object for the sake of order alone (JSON-LD 1.1, nested properties)."""
        for key, value in self.pairs:
            nested = (value if isinstance(value, list) else [value]) if key == "@nest" else ()
            yield from chain.from_iterable(item.properties() for item in nested if isinstance(item, _Object))
            yield key, value


def annotations_in(content: Content, token: str) -> tuple[tuple[Annotation, ...], tuple[Finding, ...]]:
    """Every annotation in a page that is addressed to the agent with this product token, in document order. Never raises."""
    if not content.is_markup or not _names_type(content):
        return (), ()
    scripts = islice((script for script in content.scripts(JSON_LD) if _has_name(_octets(script[0]))), MAX_SCRIPTS + 1)
    return _annotations((list(scripts), token.lower()))


_Reading = tuple[tuple[Annotation, ...], tuple[Finding, ...]]


def _read(page: tuple[list[tuple[str, int]], str]) -> _Reading:
    scripts, token = page
    findings = Findings("")
    addressed: list[Annotation] = []
    for number, (script, line, node) in enumerate(_nodes_in(scripts, findings)):
        if number == MAX_ANNOTATIONS:
            findings.report("automation.json-ld", f"only the first {MAX_ANNOTATIONS} annotations are read", line=line)
            break
        node_line = line and line + script.count("\n", 0, node.start)
        if _is_addressed(node, token, findings, node_line):
            text = printable(_octets(" ".join(script[node.start : min(node.end, node.start + MAX_SHOWN * 4)].split())))
            directives = _directives(node, DirectiveValue(None, node_line, len(addressed)), findings)
            addressed.append(Annotation(directives, node_line, text))
    return tuple(addressed), tuple(findings)


_annotations = Remembered(_read, most=MAX_REMEMBERED)


def merged(annotations: Iterable[Annotation]) -> Directives:
    """The directives of all annotations together: all of them hold."""
    columns = zip(*(annotation.directives for annotation in annotations), strict=True)
    return Directives(*(tuple(chain.from_iterable(column)) for column in columns))


def _names_type(content: Content) -> bool:
    """True where there can be an annotation in the page, by a search of its octets."""
    octets = _octets(content.text) if b"\0" in content.body[:64] else content.body  # of UTF-16 the text
    return _has_name(octets) or content.has_written_letters


def _has_name(octets: bytes) -> bool:
    """Look for the type's name in the octets, with or without JSON's escapes."""
    name = TYPE.encode()
    if name in octets:
        return True
    if b"\\" not in octets:  # one octet is found soonest
        return False
    return _ESCAPED.search(octets) is not None and name in _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), octets)


def _nodes_in(scripts: Iterable[tuple[str, int]], findings: Findings) -> Iterator[tuple[str, int, _Object]]:
    """Every JSON object of the type, with its script and the line where that starts. `scripts`: those that name the type."""
    for number, (script, line) in enumerate(scripts):
        if number == MAX_SCRIPTS:
            findings.report("automation.json-ld", f"only the first {MAX_SCRIPTS} scripts with annotations are read", line=line)
            return
        try:
            yield from ((script, line, node) for node in _nodes(script))
        except ValueError as error:
            findings.report("automation.json-ld", "JSON-LD with an annotation states nothing: {}", _octets(str(error)), line=line)


def _nodes(script: str) -> Iterator[_Object]:
    """The JSON objects of the type. ValueError where the JSON is broken, or more than is read."""
    if len(script) > MAX_SCRIPT:
        raise ValueError(f"it is longer than {MAX_SCRIPT // 1024} KiB")
    script = _SKIPPED.sub(lambda match: match[1] or " " * len(match[0]), script)
    spans = iter(_spans(script))
    values = [
        json.loads(
            script,
            object_pairs_hook=lambda pairs: _Object(pairs, *next(spans)),
            parse_int=float,  # int() refuses long ones
            strict=False,  # LENIENT: line ends in strings; and NaN, which the parser knows
        )
    ]
    while values:
        value = values.pop()
        if isinstance(value, _Object):
            if any(key in _TYPE_KEYS and _is_type(type_names) for key, type_names in value.pairs):
                yield value
            values += [item for _, item in reversed(value.pairs)]
        elif isinstance(value, list):
            values += reversed(value)


def _spans(script: str) -> list[tuple[int, int]]:
    """The start and end of each JSON object, in the order of the ends, which is the one in which the parser makes them."""
    opened: list[int] = []
    spans = []
    nodes = 0
    for match in _BRACKET_OR_STRING.finditer(script):
        if match[0] in ("{", "["):
            nodes += 1
            opened.append(match.start())
            if len(opened) > MAX_DEPTH or nodes > MAX_NODES:
                raise ValueError(f"it has more than {MAX_DEPTH} levels, or {MAX_NODES} objects and arrays")
        elif opened and match[0] in ("}", "]"):
            start = opened.pop()
            if match[0] == "}":
                spans.append((start, match.end()))
    return spans


def _is_type(type_names: Any) -> bool:
    names = type_names if isinstance(type_names, list) else [type_names]
    return any(isinstance(name, str) and _last_part(name) == TYPE for name in names)


def _last_part(iri: str) -> str:
    """The name at the end of an IRI or a compact one, e.g. of `https://schema.org/name`, `schema:name`, `#name`."""
    return iri.rpartition("/")[2].rpartition("#")[2].rpartition(":")[2].strip()


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # JSON can escape half of a surrogate pair


def _values(value: Any) -> Iterator[Any]:
    """The values of a property: JSON-LD makes no difference between one, a list of one, and one in an object."""
    if isinstance(value, _Object):
        wrapped = [item for key, item in value.pairs if key in _WRAPPERS]
        if len(wrapped) != 1:
            raise ValueError("an object that is no value")
        yield from _values(wrapped[0])
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    else:
        yield value


def _text_value(value: Any) -> bytes:
    """The values as they would stand in the file. ValueError for what never stands there."""
    texts = [str(item).lower() if isinstance(item, bool) else item for item in _values(value)]
    octets = _octets(",".join(texts))  # TypeError for what is no text
    if octets.count(b",") >= MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES} values")
    return octets.strip()


def _name(key: str) -> str:
    """The name of a directive as it is compared. CamelCase is a SHOULD: hyphens and case do not count."""
    return _last_part(key).replace("-", "").lower()


_DIRECTIVES = {_name(name.decode()): directive for name, directive in DIRECTIVES.items()}
# They speak of endpoints and services, and an annotation of the page that it stands in.
WITHOUT_EFFECT = ("allowedmethods", "requestlimit", "concurrentlimit", "scope", "host")


def _is_addressed(node: _Object, token: str, findings: Findings, line: int) -> bool:
    """True where the annotation binds the agent: it names no user agent, or this one, or what it names cannot be read."""
    user_agents = [value for key, value in node.properties() if _name(key) == "useragent"]
    try:
        agents = [trimmed(agent).decode() for value in user_agents for agent in _text_value(value).split(b",")]
    except (TypeError, ValueError):
        findings.report("automation.agent", "a userAgent that cannot be read: the annotation binds every agent", line=line)
        return True
    tokens = [PRODUCT_TOKEN.match(agent) for agent in agents]
    return not user_agents or "*" in agents or any(match[0].lower() == token for match in tokens if match)


def _directives(node: _Object, source: DirectiveValue[None], findings: Findings) -> Directives:
    """The directives of the annotation. `source`: the place of the annotation, without a value."""
    by_field: dict[str, list[DirectiveValue[Any]]] = {}
    for key, value in node.properties():
        name, quoted = _name(key), _octets(key)
        if name in WITHOUT_EFFECT:
            findings.report("automation.annotation", "`{}` has no effect in an annotation", quoted, line=source.line)
        elif name in _DIRECTIVES:
            directive = _DIRECTIVES[name]
            values = by_field.setdefault(directive.field, [])
            if values:
                findings.report("automation.repeated", "`{}` stands more than once: all hold together", quoted, line=source.line)
            odd: bytes | None = b""
            try:
                parsed, odd = directive.parse(_text_value(value)) if len(values) < MAX_REPEATED else (directive.strictest, b"")
            except (TypeError, ValueError):
                parsed = directive.strictest
            if odd is not None:
                message = f"`{{}}` in `{{}}` {directive.otherwise}" if odd else f"a value of `{{}}` {directive.otherwise}"
                findings.report("automation.value", message, *filter(None, (odd, quoted)), line=source.line)
            if len(values) <= MAX_REPEATED:
                values.append(source._replace(value=parsed))
    return Directives(**{field: tuple(values) for field, values in by_field.items()})
