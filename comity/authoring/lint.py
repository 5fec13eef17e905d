"""Lint: find the problems in the files of a site.

    lint_file(kind, name, body)    check one file by itself, after each key in an editor
    lint_site(source)              check all files of a site, by themselves and together
    site_folder(file, kind)        the folder of the site that contains a file

Formats find the problems in their own files (`SiteReading.findings`, `Format.authoring`). CHECKS
find problems between files of several formats."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from itertools import chain
from pathlib import Path
from posixpath import basename
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from comity.authoring.checks import CHECKS
from comity.authoring.checks.named_readers import check_named_readers
from comity.authoring.checks.samples import check_samples
from comity.authoring.checks.serving import check_served
from comity.authoring.ignoring import RULE, Configuration
from comity.authoring.problems import Problem, problems_of
from comity.authoring.sites import PAGE_SUFFIXES
from comity.authoring.source import DEFAULT_ORIGIN, SiteSource, SourceFile
from comity.policies import Agent, Fetched, Finding, Site
from comity.policies.answers.fetched import Availability, availability
from comity.policies.document.document import Content
from comity.policies.formats import FILES, FORMATS, ROBOTS_LINES, WELL_KNOWN
from comity.policies.formats.authoring import Draft, FileKind
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.urls import origin_of

PAGE = "page.html"
_AGENT = Agent("comitybot")  # the agent that reads pages


class LintKind(NamedTuple):
    """A kind of file.

    Attributes:
        name: The value of `--as` for this kind.
        path: The path at which sites publish such a file: "/robots.txt". "" means any path.
        file_kind: The kind in a format's `authoring`. None for files with a path, and for pages.
    """

    name: str
    path: str = ""
    file_kind: FileKind | None = None


KINDS = {
    kind.name: kind
    for kind in (
        # Of two places of a file, the first one has precedence.
        *(LintKind(basename(file.path), file.path) for file in reversed(FILES)),
        *(
            LintKind(kind.name, file_kind=kind)
            for format_ in FORMATS
            for kind in format_.authoring.kinds
        ),
        LintKind(PAGE),
    )
}


# The kinds of files below /.well-known/, by their names.
_HIDDEN = {
    basename(file.path): LintKind(basename(file.path), file.path)
    for file in FILES
    if file.path.startswith("/.well-known/")
}


def kind_of(name: str, body: bytes) -> LintKind | None:
    """Return the kind of a file, by its name and content. None means that it is no policy file.

    `name`: a path or URL."""
    path = (urlsplit(name).path if "://" in name else name.replace("\\", "/")).lower()
    last = basename(path)
    if last in KINDS and KINDS[last].path:
        is_hidden = path.endswith(f"/.well-known/{last}") or path == f".well-known/{last}"
        return _HIDDEN.get(last, KINDS[last]) if is_hidden else KINDS[last]
    for kind in KINDS.values():
        if kind.file_kind and kind.file_kind.is_meant(last, body):
            return kind
    return KINDS[PAGE] if last.endswith(PAGE_SUFFIXES) else None


def site_folder(file: Path, kind: LintKind) -> Path | None:
    """Return the folder of the site that contains a file. None means that it is not known.

    A policy file with a fixed path gives the folder: `/srv/site/.well-known/tdmrep.json` is in the
    site `/srv/site`. It gives none if it is in a wrong place. For pages and files without a fixed
    path, it is the nearest folder above with a policy file in the right place. A home folder and
    the root of a disk are never a site's folder."""
    file = Path(os.path.normpath(file.absolute()))  # `absolute` keeps `..`
    folder: Path | None
    if kind.path:
        folder = None if right_place(file, kind) else file.parents[kind.path.count("/") - 1]
    else:
        sites = (
            parent
            for parent in file.parents
            if any((parent / path.lstrip("/")).is_file() for path in WELL_KNOWN)
        )
        folder = next(sites, None)
    return None if folder in (None, Path(file.anchor), Path.home()) else folder


def right_place(file: Path, kind: LintKind) -> str:
    """Return the path to which a file in a wrong place belongs: ".well-known/tdmrep.json".

    The path is relative to the folder of the site. "" means that the file is in the right place, or
    may be anywhere."""
    file = Path(os.path.normpath(file.absolute()))
    is_there = not kind.path or file.as_posix().endswith(kind.path)
    is_hidden = (
        kind.path.count("/") == 1 and file.parent.name == ".well-known" and kind.name not in _HIDDEN
    )
    return "" if is_there and not is_hidden else kind.path[1:]


def place_problems(name: str, place: str) -> list[Problem]:
    """Return the problem of a file in a place where no crawler asks for it.

    The list is empty if the file is in the right place, or if `.comity.toml` ignores the problem.
    `place`: the right path in the folder of the site, or ""."""
    rule = "comity.file-place"
    if not place or rule in Configuration.of(name).ignored:
        return []
    message = f"No crawler asks for this file here. Put it at {place} in the folder of the site."
    return problems_of(Draft(name, b""), [Finding(rule=rule, message=message, url=name)], name)


def lint_file(
    kind: LintKind, name: str, body: bytes, *, origin: str = DEFAULT_ORIGIN
) -> list[Problem]:
    """Return the problems of one file by itself. `name`: the file's name, as its user writes it."""
    url = origin + (kind.path or f"/{quote(os.fsencode(basename(name)))}")
    findings: Iterable[Finding]
    if kind.file_kind:
        findings = kind.file_kind.findings(body, url)
    elif kind.path:
        file = Fetched(status=200, body=body)
        findings = chain(
            _site_findings(SiteFiles(origin, {url: file}, robots_lines=ROBOTS_LINES)),
            check_served(url, file),
        )
    else:
        findings = _page_findings(SourceFile(name, url, Fetched(status=200, body=body)))
    return _configured(problems_of(Draft(url, body), findings, name), url, name)


def lint_site(
    source: SiteSource,
    samples: Iterable[SourceFile] = (),
    *,
    only: Container[str] | None = None,
    readers: Iterable[str] = (),
) -> list[Problem]:
    """Return the problems of a site's files, file by file, in the order of their lines.

    Files are checked by themselves and together.
    `samples`: sample pages in addition to the site's own pages. All rules about single elements are
    tried on `samples`; on a page of the site, only the rules for its path are tried.
    `only`: the URLs of the files and pages to report. None means all.
    `readers`: keys of NAMED_READERS. Their readings of robots.txt are reported."""
    fetched = {file.url: file.fetched for file in source.files}
    findings = [*_site_findings(SiteFiles(source.origin, fetched, robots_lines=ROBOTS_LINES))]
    for page in source.pages:
        findings += _page_findings(page) if only is None or page.url in only else ()
    for check in CHECKS:
        findings += check(source)
    findings += check_samples(source, tuple(samples))
    findings += check_named_readers(source, readers)
    problems = []
    by_url: dict[str, list[Finding]] = {}
    for finding in findings:
        if only is None or finding.url in only:
            by_url.setdefault(finding.url, []).append(finding)
    for file in (*source.files, *source.pages):
        draft = Draft(file.url, file.fetched.body)
        if only is None or file.url in only:
            of_file = problems_of(draft, by_url.pop(file.url, ()), file.name)
            problems += _configured(of_file, file.url, file.name)
    for url, others in by_url.items():
        problems += problems_of(Draft(url, b""), others, url)
    return problems


def _configured(problems: list[Problem], url: str, name: str) -> list[Problem]:
    """Leave out the problems that `.comity.toml` ignores in a file, and add its own mistakes."""
    configuration = Configuration.of(name)
    mistakes = [Finding(rule=RULE, message=message, url=url) for message in configuration.mistakes]
    kept = [problem for problem in problems if problem.rule not in configuration.ignored]
    return problems_of(Draft(url, b""), mistakes, name) + kept


def _site_findings(files: SiteFiles) -> Iterator[Finding]:
    """Yield the findings of every format in the policy files of a site."""
    for format_ in FORMATS:
        reading = format_.read_site(files) if format_.read_site else None
        yield from reading.findings if reading else ()
        yield from format_.authoring.check_site(files) if format_.authoring.check_site else ()


def _page_findings(page: SourceFile) -> Iterator[Finding]:
    """Yield the findings of every format in the header fields and the content of a page."""
    if availability(page.fetched) is Availability.UNREACHABLE:
        return
    site = Site.from_files(origin_of(page.url), {})
    yield from site.page(
        _AGENT, page.url, headers=page.fetched.headers, body=page.fetched.body
    ).findings
    content = Content(page.fetched.headers, page.fetched.body)
    for format_ in FORMATS:
        yield from (
            format_.authoring.check_document(content, page.url)
            if format_.authoring.check_document
            else ()
        )
