"""Diagnostics: the problems of a file, at their places."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol.types import CodeDescription, Diagnostic, DiagnosticSeverity, Position, Range

from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.words import href
from comity.authoring.lint import lint_file
from comity.authoring.problems import Problem
from comity.policies.answers.rule import ERROR, WARNING, Severity

SOURCE = "comity"
MAX_DIAGNOSTICS = 1000  # of one file

_SEVERITIES = {ERROR: DiagnosticSeverity.Error, WARNING: DiagnosticSeverity.Warning}


def severity_of(severity: Severity) -> DiagnosticSeverity:
    return _SEVERITIES.get(severity, DiagnosticSeverity.Information)


def problems_in(document: Document) -> list[Problem]:
    """What is wrong with the file, for itself."""
    kind = document.kind
    return lint_file(kind, document.path, document.body)[:MAX_DIAGNOSTICS] if kind else []


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
