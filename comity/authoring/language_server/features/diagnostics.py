"""Diagnostics: the problems of a file, with their ranges."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsprotocol.types import CodeDescription, Diagnostic, DiagnosticSeverity, Position, Range

from comity.authoring.language_server.documents import Document
from comity.authoring.lint import lint_file, lint_site
from comity.authoring.problems import LineSpan, Problem
from comity.authoring.rules import href
from comity.authoring.sites import load
from comity.authoring.source import SiteSource, SourceFile
from comity.policies import Fetched, PolicyError, Site
from comity.policies.answers.rule import ERROR, RULES, WARNING, Severity, without_page

SOURCE = "comity"
MAX_DIAGNOSTICS = 1000  # the maximum number of problems of one file
# The maximum characters of a file that is checked with its folder. Larger files are checked by
# themselves, because the checks of a folder parse each file some hundred times.
MAX_IN_FOLDER = 128 * 1024

_SEVERITIES = {ERROR: DiagnosticSeverity.Error, WARNING: DiagnosticSeverity.Warning}


def severity_of(severity: Severity) -> DiagnosticSeverity:
    return _SEVERITIES.get(severity, DiagnosticSeverity.Information)


def problems_in(document: Document, folder: Path | None = None) -> list[Problem]:
    """Return the problems of a file.

    `folder`: the folder of the site. The other files of the site are read from the disk. None means
    that the file is checked by itself."""
    kind = document.kind
    if kind is None:
        return []
    if folder is None or not kind.path or len(document.text) > MAX_IN_FOLDER:
        return lint_file(kind, document.path, document.body)[:MAX_DIAGNOSTICS]
    try:
        source = _as_edited(load(str(folder)), kind.path, document)
    except (PolicyError, OSError):  # the folder cannot be read
        return problems_in(document)
    return lint_site(source, only=(source.origin + kind.path,))[:MAX_DIAGNOSTICS]


def _as_edited(source: SiteSource, path: str, document: Document) -> SiteSource:
    """Return the site with the document in place of the file on the disk."""
    edited = SourceFile(
        document.path, source.origin + path, Fetched(status=200, body=document.body)
    )
    files = (edited, *(file for file in source.files if file.url != edited.url))
    return source._replace(
        site=Site.from_files(source.origin, {**source.site.files, edited.url: edited.fetched}),
        files=files,
    )


def diagnostics(document: Document, problems: Iterable[Problem] | None = None) -> list[Diagnostic]:
    """Return the diagnostics of a file.

    `problems`: the problems of the file. None means that it is checked by itself now."""
    return [
        diagnostic(document, problem)
        for problem in (problems_in(document) if problems is None else problems)
    ]


def diagnostic(document: Document, problem: Problem) -> Diagnostic:
    """Return the diagnostic for a problem. Its data has the title of the fix.

    The message also says why the finding matters, and how to mend it."""
    address, rule = href(problem.spec), RULES[problem.rule]
    advice = f"\n{rule.why}\nFix: {rule.fix}" if rule.why else ""
    return Diagnostic(
        range=range_of(document, problem),
        message=f"{problem.message} ({without_page(problem.spec)}){advice}",
        severity=severity_of(problem.severity),
        code=problem.rule,
        code_description=CodeDescription(address) if address else None,
        source=SOURCE,
        data={"fix": problem.fix_title} if problem.fix else None,
    )


def range_of(document: Document, problem: Problem) -> Range:
    """Return the range of a problem. Problems of the file as a whole are at its beginning."""
    if problem.span is None:
        return Range(Position(0, 0), Position(0, 0))
    return document.range(*place_of(document, problem.span))


def place_of(document: Document, span: LineSpan) -> tuple[int, int, int]:
    """Return the line of a span, and its columns in characters. All count from 0."""
    line = span.line - 1
    mark = 1 if line == 0 and document.text.startswith("\ufeff") else 0
    return line, span.column - 1 + mark, span.end_column - 1 + mark
