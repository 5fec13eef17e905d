"""The annotations of a page: JSON-LD of the type AutomationPolicyAnnotation (draft-liao-aipref-autoctl-ext section-3.5).

    annotations_in(content, token)  those that are addressed to the agent
    merged(annotations)             what they state together

A page is parsed only where the type's name stands in it. JSON-LD is read as plain JSON: a `@context` is not resolved, and of
names written as IRIs the last part counts. A script that names the type and cannot be read, or is more than is read, refuses
every use of the page (`unread`)."""

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

_NAME = TYPE.lower().encode()
_ESCAPED = re.compile(rb"\\u00([4-7][0-9a-f])")  # the letters, among others; in lower case
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


class Unread(NamedTuple):
    """A script that names the type and cannot be read."""

    line: int  # as of Annotation
    text: str


class AnnotationReading(NamedTuple):
    """All that a page states."""

    annotations: tuple[Annotation, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread: tuple[Unread, ...] = ()


class _Object(NamedTuple):
    """A JSON object."""

    pairs: list[tuple[str, Any]]  # as written: a name may stand twice
    start: int  # in the script
    end: int

    def properties(self) -> Iterator[tuple[str, Any]]:
        """Yield its pairs, with those that stand in an object for the sake of order alone (JSON-LD 1.1, nested properties)."""
        for key, value in self.pairs:
            nested = (value if isinstance(value, list) else [value]) if key == "@nest" else ()
            yield from chain.from_iterable(
                item.properties() for item in nested if isinstance(item, _Object)
            )
            yield key, value


def annotations_in(content: Content, token: str) -> AnnotationReading:
    """Return every annotation in a page that is addressed to the agent with this product token, in document order.

    Never raises."""
    if not content.is_markup or not (_has_name(content.octets) or content.has_written_letters):
        return AnnotationReading()
    scripts = islice(
        (script for script in content.scripts(JSON_LD) if _has_name(_octets(script[0]).lower())),
        MAX_SCRIPTS + 1,
    )
    return _annotations((list(scripts), token.lower()))


def _read(page: tuple[list[tuple[str, int]], str]) -> AnnotationReading:
    scripts, token = page
    findings = Findings("")
    addressed: list[Annotation] = []
    unread: list[Unread] = []
    number = 0  # of annotations
    for script_number, (script, line) in enumerate(scripts):
        try:
            if script_number == MAX_SCRIPTS:
                raise ValueError(f"there are more than {MAX_SCRIPTS} scripts with annotations")
            for node in _nodes(script):
                number += 1
                if number > MAX_ANNOTATIONS:
                    raise ValueError(f"there are more than {MAX_ANNOTATIONS} annotations")
                node_line = line and line + script.count("\n", 0, node.start)
                if _is_addressed(node, token, findings, node_line):
                    directives = _directives(
                        node, DirectiveValue(None, node_line, len(addressed)), findings
                    )
                    addressed.append(
                        Annotation(directives, node_line, _shown(script[node.start : node.end]))
                    )
        except ValueError as error:
            message = "an annotation cannot be read, so every use of the page is refused: {}"
            findings.report("automation.json-ld", message, _octets(str(error)), line=line)
            unread.append(Unread(line, _shown(script)))
    return AnnotationReading(tuple(addressed), tuple(findings), tuple(unread))


def _shown(script: str) -> str:
    """Return a part of a script on one line, printable."""
    return printable(_octets(" ".join(script[: MAX_SHOWN * 4].split())))


_annotations = Remembered(_read, most=MAX_REMEMBERED)


def merged(annotations: Iterable[Annotation]) -> Directives:
    """The directives of all annotations together: all of them hold."""
    columns = zip(*(annotation.directives for annotation in annotations), strict=True)
    return Directives(*(tuple(chain.from_iterable(column)) for column in columns))


def _has_name(octets: bytes) -> bool:
    """Look for the type's name in octets of lower case, with or without JSON's escapes."""
    if _NAME in octets:
        return True
    if b"\\" not in octets:  # one octet is found soonest
        return False
    if _ESCAPED.search(octets) is None:
        return False
    return _NAME in _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), octets).lower()


def _nodes(script: str) -> Iterator[_Object]:
    """Yield the JSON objects of the type. ValueError where the JSON is broken, or more than is read.

    A type in other letters of upper and lower case is none: ValueError too."""
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
            names = {
                name
                for key, written in value.pairs
                if key in _TYPE_KEYS
                for name in _type_names(written)
            }
            if TYPE in names:
                yield value
            elif odd := next((name for name in names if name.lower() == TYPE.lower()), ""):
                raise ValueError(f"the type `{odd}` is written `{TYPE}`")
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
                raise ValueError(
                    f"it has more than {MAX_DEPTH} levels, or {MAX_NODES} objects and arrays"
                )
        elif opened and match[0] in ("}", "]"):
            start = opened.pop()
            if match[0] == "}":
                spans.append((start, match.end()))
    return spans


def _type_names(written: Any) -> Iterator[str]:
    names = written if isinstance(written, list) else [written]
    return (_last_part(name) for name in names if isinstance(name, str))


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
        agents = [
            trimmed(agent).decode()
            for value in user_agents
            for agent in _text_value(value).split(b",")
        ]
    except (TypeError, ValueError):
        findings.report(
            "automation.agent",
            "a userAgent that cannot be read: the annotation binds every agent",
            line=line,
        )
        return True
    tokens = [PRODUCT_TOKEN.match(agent) for agent in agents]
    return (
        not user_agents
        or "*" in agents
        or any(match[0].lower() == token for match in tokens if match)
    )


def _directives(node: _Object, source: DirectiveValue[None], findings: Findings) -> Directives:
    """The directives of the annotation. `source`: the place of the annotation, without a value."""
    by_field: dict[str, list[DirectiveValue[Any]]] = {}
    for key, value in node.properties():
        name, quoted = _name(key), _octets(key)
        if name in WITHOUT_EFFECT:
            findings.report(
                "automation.annotation",
                "`{}` has no effect in an annotation",
                quoted,
                line=source.line,
            )
        elif name in _DIRECTIVES:
            directive = _DIRECTIVES[name]
            values = by_field.setdefault(directive.field, [])
            if values:
                findings.report(
                    "automation.repeated",
                    "`{}` stands more than once: all hold together",
                    quoted,
                    line=source.line,
                )
            odd: bytes | None = b""
            try:
                parsed, odd = (
                    directive.parse(_text_value(value))
                    if len(values) < MAX_REPEATED
                    else (directive.strictest, b"")
                )
            except (TypeError, ValueError):
                parsed = directive.strictest
            if odd is not None:
                message = (
                    f"`{{}}` in `{{}}` {directive.otherwise}"
                    if odd
                    else f"a value of `{{}}` {directive.otherwise}"
                )
                findings.report(
                    "automation.value", message, *filter(None, (odd, quoted)), line=source.line
                )
            if len(values) <= MAX_REPEATED:
                values.append(source._replace(value=parsed))
    return Directives(**{field: tuple(values) for field, values in by_field.items()})
