"""The counts of a survey: the sites that use a format, a line, a word or a crawler's name.

    counts = count(sites)

A site counts once for each word, however often it writes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from comity.authoring.checks import CHECKS
from comity.authoring.checks.contradictions import NOBODY, is_token
from comity.authoring.checks.readers import check_readers
from comity.authoring.lint import kind_of, lint_file
from comity.authoring.source import SiteSource, SourceFile
from comity.policies import Agent, Finding, Site, Verdict
from comity.policies.answers.fetched import Availability, availability
from comity.policies.answers.rule import RULES
from comity.policies.document.document import Content
from comity.policies.formats import FORMATS
from comity.policies.formats.format import Format, Response
from comity.policies.syntax.printable import printable
from tests.survey.samples import SampledSite

ROBOTS = "/robots.txt"
MAX_NAMED = 40  # the maximum number of crawlers of a site whose access is decided
_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9:_-]*)([^<>]*)>")
_ATTRIBUTE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)\s*=")
_MEMBER = re.compile(r'"([A-Za-z][A-Za-z0-9_-]*)"\s*:')
# Finding other parsers' readings takes a minute for a large file, and says nothing about the site.
_CHECKS = tuple(check for check in CHECKS if check is not check_readers)


@dataclass
class Counts:
    """The number of sites for each entry.

    Attributes:
        sites: All sites.
        formats: Name of a format -> the sites that use it.
        words: Name of a format and a directive -> the sites that write it.
        unknown: Name of a line in robots.txt that no format has -> the sites that write it.
        named: Product token in lower case -> the sites that name the crawler.
        refused: Product token -> the sites that refuse everything to it, and not to everybody.
        closed: The sites that refuse everything to everybody.
        rules: Rule -> the sites with a finding of it.
        contradicting: The sites that contradict themselves within a format or between two.
        faulty: The sites with an error or a warning.
    """

    sites: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    words: Counter[tuple[str, str]] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    closed: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    contradicting: int = 0
    between_formats: int = 0
    faulty: int = 0


def count(sites: Iterable[SampledSite]) -> Counts:
    """Count what sites say."""
    counts = Counts()
    for sampled in sites:
        counts.sites += 1
        _count_words(counts, sampled)
        _count_access(counts, sampled)
        _count_findings(counts, sampled)
    return counts


def _count_words(counts: Counts, sampled: SampledSite) -> None:
    words: set[tuple[str, str]] = set()
    formats: set[str] = set()
    for path, file in sampled.files.items():
        if availability(file) is not Availability.PRESENT:
            continue
        text = file.body.decode("utf-8", "replace").lstrip("\ufeff")
        if path == ROBOTS:
            names = {name for name in map(_line_name, _LINE_END.split(text)) if name}
            known = {(one.name, name) for name in names for one in _formats_of_line(name)}
            words |= known
            counts.unknown.update(names - {name for _, name in known})
        else:
            format_ = next(one for one in FORMATS if path in (file.path for file in one.files))
            formats.add(format_.name)
            words |= _words_in(format_, _names_in(text))
    for path, file in sampled.pages.items():
        names = {*_names_in(file.body.decode("utf-8", "replace"))}
        for format_ in FORMATS:
            if _is_in_page(format_, sampled, path):
                formats.add(format_.name)
                words |= _words_in(format_, names)
    counts.words.update(words)
    counts.formats.update(formats | {format_ for format_, _ in words})


def _line_name(line: str) -> str:
    """Return the name before the colon of a line, in lower case. "" if it has none."""
    name, colon, _ = line.partition("#")[0].partition(":")
    name = " ".join(name.split()).lower()
    return (
        printable(name[:40].encode()) if colon and _NAME.fullmatch(name.replace(" ", "-")) else ""
    )


def _formats_of_line(name: str) -> list[Format]:
    return [
        format_
        for format_ in FORMATS
        if name in format_.robots_lines or name in _lines_in_robots(format_)
    ]


def _lines_in_robots(format_: Format) -> set[str]:
    is_elsewhere = any(file.path != ROBOTS for file in format_.files)
    lines = (one.name.lower() for one in format_.authoring.directives if one.form == "line")
    return set() if is_elsewhere else {*lines}


def _names_in(text: str) -> Iterator[str]:
    """Yield the names in a file: before colons, of JSON members, or in markup."""
    start = text.lstrip()[:1]
    if start == "<":
        for match in _TAG.finditer(text):
            is_meta = match[1].lower() == "meta"
            yield match[1]
            yield from _NAME.findall(match[2]) if is_meta else _ATTRIBUTE.findall(match[2])
    elif start in ("{", "["):
        yield from _MEMBER.findall(text)
    else:
        yield from map(_line_name, _LINE_END.split(text))


def _words_in(format_: Format, names: Iterable[str]) -> set[tuple[str, str]]:
    spelled = {one.name.lower(): one.name for one in format_.authoring.directives}
    return {
        (format_.name, spelled[name.lower()].lower()) for name in names if name.lower() in spelled
    }


def _is_in_page(format_: Format, sampled: SampledSite, path: str) -> bool:
    """Return True if a format has statements in a page, or if the file is a document of it."""
    file = sampled.pages[path]
    kind = kind_of(path, file.body)
    if kind and kind.file_kind:
        return kind.file_kind in format_.authoring.kinds
    response = Response(Agent(NOBODY), sampled.origin + path, None)
    content = Content(file.headers, file.body)
    found = format_.read_document(content, response) if format_.read_document else None
    return bool(found and found.statements)


def _count_access(counts: Counts, sampled: SampledSite) -> None:
    """Count the names of crawlers, and the crawlers to which the whole site is closed."""
    if ROBOTS not in sampled.files:
        return
    site = Site.from_files(sampled.origin, sampled.files)
    names = sorted(site.crawler_names - {"*", ""})
    counts.named.update(printable(name.encode("utf-8", "replace")) for name in names)
    root = f"{sampled.origin}/"
    if site.access(Agent(NOBODY), root).verdict is Verdict.DENY:
        counts.closed += 1
        return
    counts.refused.update(
        name
        for name in list(filter(is_token, names))[:MAX_NAMED]
        if site.access(Agent(name), root).verdict is Verdict.DENY
    )


def _count_findings(counts: Counts, sampled: SampledSite) -> None:
    rules = {*_rules_of(sampled)}
    counts.rules.update(rules)
    counts.contradicting += any(rule.endswith(".contradiction") for rule in rules)
    counts.between_formats += "comity.contradiction" in rules
    counts.faulty += any(RULES[rule].severity.value in ("error", "warning") for rule in rules)


def _rules_of(sampled: SampledSite) -> Iterator[str]:
    """Yield the rules of all findings, those between files included."""
    for path, file in (*sampled.files.items(), *sampled.pages.items()):
        kind = kind_of(path, file.body)
        if kind and availability(file) is Availability.PRESENT:
            for problem in lint_file(kind, path, file.body, origin=sampled.origin):
                yield problem.rule
    for finding in _between(sampled):
        yield finding.rule


def _between(sampled: SampledSite) -> Iterator[Finding]:
    source = SiteSource(
        sampled.origin,
        Site.from_files(sampled.origin, sampled.files),
        tuple(
            SourceFile(path, sampled.origin + path, file) for path, file in sampled.files.items()
        ),
        tuple(
            SourceFile(path, sampled.origin + path, file)
            for path, file in sampled.pages.items()
            if (kind := kind_of(path, file.body)) and not kind.file_kind
        ),
    )
    for check in _CHECKS:
        yield from check(source)
