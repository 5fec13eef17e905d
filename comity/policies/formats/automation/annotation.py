"""The annotations of a page: JSON-LD of the type AutomationPolicyAnnotation.

    annotations_in(content, token)  the annotations that bind the agent
    merge(annotations)              the directives of all these annotations

They are specified in draft-liao-aipref-autoctl-ext section-3.5. A page is parsed only if it
contains the name of the type. JSON-LD is read as plain JSON: a `@context` is not resolved, and only
the last part of names written as IRIs counts. If a script names the type and cannot be read, or
exceeds a limit, it refuses every use of the page (`unread`).
"""

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

MAX_SCRIPT = 64 * 1024  # maximum characters of a script
MAX_DEPTH = 32  # maximum depth of nested JSON objects and arrays
MAX_NODES = 10_000  # maximum JSON objects and arrays of a script
MAX_SCRIPTS = 32  # maximum scripts of a page that name the type
MAX_ANNOTATIONS = 100  # maximum annotations of a page

JSON_LD = "application/ld+json"
TYPE = "AutomationPolicyAnnotation"

_TYPE_KEYS = ("@type", "type")  # the context of schema.org makes "type" an alias of "@type"
_WRAPPERS = ("@value", "@list", "@set")  # JSON-LD 1.1 section-4.2.1, section-4.3

_NAME = TYPE.lower().encode()
# JSON escapes, in lower case, of U+0040 to U+007F. The ASCII letters are among these.
_ESCAPED = re.compile(rb"\\u00([4-7][0-9a-f])")
_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_BRACKET_OR_STRING = re.compile(rf"[\[\]{{}}]|{_STRING}", re.DOTALL)
# LENIENT: three things are skipped. A comma after the last item is in the example of section-3.5.
# CDATA marks are around scripts in XHTML. Parsers may ignore a BOM (RFC 8259 section-8.1).
_SKIPPED = re.compile(rf"({_STRING})|,(?=\s*[\]}}])|<!\[CDATA\[|\]\]>|\ufeff", re.DOTALL)


class Annotation(NamedTuple):
    """One annotation.

    Attributes:
        directives: The directives. The `offset` of each value is the number of this annotation,
            from 0, among the annotations that bind the agent.
        line: The line of the page's octets, from 1. 0 means unknown.
        text: The annotation as written, on one line and printable.
    """

    directives: Directives
    line: int
    text: str


class Unread(NamedTuple):
    """A script that names the type and cannot be read.

    Attributes:
        line: As in `Annotation`.
        text: The text that cannot be read.
    """

    line: int
    text: str


class AnnotationReading(NamedTuple):
    """The annotations of a page that bind an agent, and the scripts that cannot be read.

    Attributes:
        annotations: The annotations that are for the agent.
        findings: Findings for the author.
        unread: The parts that cannot be read.
    """

    annotations: tuple[Annotation, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread: tuple[Unread, ...] = ()


class _Object(NamedTuple):
    """A JSON object.

    Attributes:
        pairs: Names and values as written. A name may occur twice.
        start: The position of the object's first character in the script.
        end: The position after its last character.
    """

    pairs: list[tuple[str, Any]]
    start: int
    end: int

    def properties(self) -> Iterator[tuple[str, Any]]:
        """Yield the pairs of the object, and those of objects in its `@nest` properties.

        See "nested properties" in JSON-LD 1.1.
        """
        for key, value in self.pairs:
            nested = (value if isinstance(value, list) else [value]) if key == "@nest" else ()
            yield from chain.from_iterable(
                item.properties() for item in nested if isinstance(item, _Object)
            )
            yield key, value


def annotations_in(content: Content, token: str) -> AnnotationReading:
    """Return the annotations of a page for the agent with this product token, in document order.

    Never raises.
    """
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
    number = 0  # annotations read so far, for any agent
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
                        Annotation(directives, node_line, _one_line(script[node.start : node.end]))
                    )
        except ValueError as error:
            message = "An annotation cannot be read, so every use of the page is refused: {}"
            findings.report("automation.json-ld", message, _octets(str(error)), line=line)
            unread.append(Unread(line, _one_line(script)))
    return AnnotationReading(tuple(addressed), tuple(findings), tuple(unread))


def _one_line(script: str) -> str:
    """Return a part of a script on one line, printable."""
    return printable(_octets(" ".join(script[: MAX_SHOWN * 4].split())))


_annotations = Remembered(_read, most=MAX_REMEMBERED)


def merge(annotations: Iterable[Annotation]) -> Directives:
    """Return the directives of all annotations together. All of them apply."""
    columns = zip(*(annotation.directives for annotation in annotations), strict=True)
    return Directives(*(tuple(chain.from_iterable(column)) for column in columns))


def _has_name(octets: bytes) -> bool:
    """Return True if octets in lower case contain the type's name, with or without JSON escapes."""
    if _NAME in octets:
        return True
    if b"\\" not in octets:  # most pages have no escapes, and this search is the fastest
        return False
    if _ESCAPED.search(octets) is None:
        return False
    return _NAME in _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), octets).lower()


def _nodes(script: str) -> Iterator[_Object]:
    """Yield the JSON objects of the type.

    ValueError: the JSON is broken or exceeds a limit, or the name of the type has the wrong case.
    """
    if len(script) > MAX_SCRIPT:
        raise ValueError(f"it is longer than {MAX_SCRIPT // 1024} KiB")
    script = _SKIPPED.sub(lambda match: match[1] or " " * len(match[0]), script)
    spans = iter(_spans(script))
    values = [
        json.loads(
            script,
            object_pairs_hook=lambda pairs: _Object(pairs, *next(spans)),
            parse_int=float,  # int() refuses long ones
            strict=False,  # LENIENT: line ends in strings. The parser accepts NaN too.
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
    """Return start and end of each JSON object, in the order of their ends.

    json.loads creates the objects in this order. ValueError: the JSON exceeds a limit.
    """
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
    """Return the name at the end of an IRI or compact IRI.

    Examples are `https://schema.org/name`, `schema:name` and `#name`.
    """
    return iri.rpartition("/")[2].rpartition("#")[2].rpartition(":")[2].strip()


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # JSON can escape one half of a surrogate pair


def _values(value: Any) -> Iterator[Any]:
    """Yield the values of a property.

    In JSON-LD `"a"`, `["a"]` and `{"@value": "a"}` are equal. ValueError: an object does not wrap
    one value.
    """
    if isinstance(value, _Object):
        wrapped = [item for key, item in value.pairs if key in _WRAPPERS]
        if len(wrapped) != 1:
            raise ValueError("an object is not a value")
        yield from _values(wrapped[0])
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    else:
        yield value


def _text_value(value: Any) -> bytes:
    """Return the values as automation-preferences.txt writes them: `["GET", "HEAD"]` is `GET,HEAD`.

    TypeError: a value is neither text nor a boolean. ValueError: an object is not a value, or there
    are too many values.
    """
    texts = [str(item).lower() if isinstance(item, bool) else item for item in _values(value)]
    octets = _octets(",".join(texts))  # TypeError: a value is neither text nor a boolean
    if octets.count(b",") >= MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES} values")
    return octets.strip()


def _name(key: str) -> str:
    """Return the name of a directive without hyphens and in lower case, for comparison.

    CamelCase is a SHOULD, so hyphens and case do not count.
    """
    return _last_part(key).replace("-", "").lower()


_DIRECTIVES = {_name(name.decode()): directive for name, directive in DIRECTIVES.items()}
# These directives are about endpoints and services. An annotation is about its page only.
WITHOUT_EFFECT = ("allowedmethods", "requestlimit", "concurrentlimit", "scope", "host")


def _is_addressed(node: _Object, token: str, findings: Findings, line: int) -> bool:
    """Return True if the annotation binds the agent.

    An annotation binds the agent if it has no userAgent, if its userAgent names the agent or `*`,
    or if its userAgent cannot be read.
    """
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
            "The userAgent cannot be read, so the annotation binds every agent. Write a "
            "name or `*`.",
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
    """Return the directives of an annotation.

    `source` has the line and offset for each value. Its own value is None.
    """
    by_field: dict[str, list[DirectiveValue[Any]]] = {}
    for key, value in node.properties():
        name, quoted = _name(key), _octets(key)
        if name in WITHOUT_EFFECT:
            findings.report(
                "automation.annotation",
                "`{}` has no effect in an annotation. Write it into automation-preferences.txt.",
                quoted,
                line=source.line,
            )
        elif name in _DIRECTIVES:
            directive = _DIRECTIVES[name]
            values = by_field.setdefault(directive.field, [])
            if values:
                findings.report(
                    "automation.repeated",
                    "`{}` is repeated. All values apply.",
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
                    else f"A value of `{{}}` {directive.otherwise}"
                )
                findings.report(
                    "automation.value", message, *filter(None, (odd, quoted)), line=source.line
                )
            if len(values) <= MAX_REPEATED:
                values.append(source._replace(value=parsed))
    return Directives(**{field: tuple(values) for field, values in by_field.items()})
