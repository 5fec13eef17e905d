"""Diagnostics: the problems of a file, at their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from lsprotocol.types import CodeDescription, Diagnostic, DiagnosticSeverity, Position, Range

from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.words import href
from comity.authoring.lint import ORIGIN, lint_file, site_findings
from comity.authoring.problems import Problem, problems_of
from comity.policies import Fetched, Finding
from comity.policies.answers.rule import ERROR, WARNING, Severity
from comity.policies.formats import FILES, ROBOTS_LINES
from comity.policies.formats.authoring import Draft
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.lines import MAX_BYTES

SOURCE = "comity"
MAX_DIAGNOSTICS = 1000  # of one file

_SEVERITIES = {ERROR: DiagnosticSeverity.Error, WARNING: DiagnosticSeverity.Warning}


def severity_of(severity: Severity) -> DiagnosticSeverity:
    return _SEVERITIES.get(severity, DiagnosticSeverity.Information)


def problems_in(document: Document, folder: Path | None = None) -> list[Problem]:
    """What is wrong with the file. `folder`: the site's, whose other files are to be read too, as they are on the disk."""
    kind = document.kind
    if kind is None:
        return []
    problems = lint_file(kind, document.path, document.body)
    if folder and kind.path:
        found = (finding for finding in _of_site(kind.path, document.body, folder) if finding.url == ORIGIN + kind.path)
        known = {problem.finding for problem in problems}
        problems += [
            problem
            for problem in problems_of(Draft(ORIGIN + kind.path, document.body), found, document.path)
            if problem.finding not in known
        ]
    return problems[:MAX_DIAGNOSTICS]


def _of_site(path: str, body: bytes, folder: Path) -> Iterator[Finding]:
    """The findings of all formats in all files of the site together."""
    fetched = {ORIGIN + path: Fetched(status=200, body=body)}
    for file in FILES:
        place = folder / file.path.lstrip("/")
        if file.path != path and place.is_file():
            with suppress(OSError), place.open("rb") as opened:
                fetched[ORIGIN + file.path] = Fetched(status=200, body=opened.read(2 * MAX_BYTES))
    yield from site_findings(SiteFiles(ORIGIN, fetched, robots_lines=ROBOTS_LINES))


def diagnostics(document: Document, problems: Iterable[Problem] | None = None) -> list[Diagnostic]:
    """`problems`: those of the file that are known; None: those that it has for itself."""
    return [diagnostic(document, problem) for problem in (problems_in(document) if problems is None else problems)]


def diagnostic(document: Document, problem: Problem) -> Diagnostic:
    address = href(problem.spec)
    return Diagnostic(
        range=range_of(document, problem),
        message=f"{problem.message} ({problem.spec})",
        severity=severity_of(problem.severity),
        code=problem.rule,
        code_description=CodeDescription(address) if address else None,
        source=SOURCE,
        data={"fix": problem.fix.title} if problem.fix else None,
    )


def range_of(document: Document, problem: Problem) -> Range:
    """A file as a whole is meant by its beginning."""
    if problem.place is None:
        return Range(Position(0, 0), Position(0, 0))
    line = problem.place.line - 1
    mark = 1 if line == 0 and document.text.startswith("\ufeff") else 0
    return document.range(line, problem.place.column - 1 + mark, problem.place.end_column - 1 + mark)
