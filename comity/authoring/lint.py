"""Lint: everything that is known to be wrong with the files of a site.

    lint_file(kind, name, body)    one file by itself: what an editor asks for at each key
    lint_site(source)              all files of a site, and what they say together
    site_folder(file, kind)        the folder of the site that a file is in

Formats say what is wrong in them (`SiteReading.findings`, `Format.authoring`); what no format can see by itself is in CHECKS."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from itertools import chain
from pathlib import Path
from posixpath import basename
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from comity.authoring.checks import CHECKS
from comity.authoring.checks.serving import check_served
from comity.authoring.problems import Problem, problems_of
from comity.authoring.sites import PAGE_SUFFIXES
from comity.authoring.source import DEFAULT_ORIGIN, Source, SourceFile
from comity.policies import Agent, Fetched, Finding, Site
from comity.policies.answers.fetched import Availability, availability
from comity.policies.document.document import Content
from comity.policies.formats import FILES, FORMATS, ROBOTS_LINES, WELL_KNOWN
from comity.policies.formats.authoring import Draft, FileKind
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.urls import origin_of

PAGE = "page.html"
_AGENT = Agent("comitybot")  # who reads pages


class Kind(NamedTuple):
    """A kind of file: what one is read as."""

    name: str  # by which `--as` calls it
    path: str = ""  # where a site has it; "": anywhere
    file_kind: FileKind | None = None  # of a format's own; None with no path: a page


KINDS = {
    kind.name: kind
    for kind in (
        *(Kind(basename(file.path), file.path) for file in FILES),
        *(
            Kind(kind.name, file_kind=kind)
            for format_ in FORMATS
            for kind in format_.authoring.kinds
        ),
        Kind(PAGE),
    )
}


def kind_of(name: str, body: bytes) -> Kind | None:
    """Return what a file is by its name, or by what stands in it. None: no policy. `name`: a path or URL."""
    last = basename(urlsplit(name).path if "://" in name else name.replace("\\", "/")).lower()
    if last in KINDS and KINDS[last].path:
        return KINDS[last]
    for kind in KINDS.values():
        if kind.file_kind and kind.file_kind.is_meant(last, body):
            return kind
    return KINDS[PAGE] if last.endswith(PAGE_SUFFIXES) else None


def site_folder(file: Path, kind: Kind) -> Path | None:
    """Return the folder of the site that a file is in; None: no such folder is known.

    A policy file is at its place in it. A page or another file is below a folder that has a policy file at its place. Neither
    a home folder nor the root of a disk is a site's folder."""
    file = file.absolute()
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


def right_place(file: Path, kind: Kind) -> str:
    """Return the path in the folder of a site at which crawlers ask for a file; "" where it is there, or may be anywhere."""
    is_there = not kind.path or file.absolute().as_posix().endswith(kind.path)
    is_hidden = kind.path.count("/") == 1 and file.absolute().parent.name == ".well-known"
    return "" if is_there and not is_hidden else kind.path[1:]


def misplaced(name: str, place: str) -> Problem:
    """Return the problem of a file that no crawler asks for where it is."""
    message = f"No crawler asks for this file here. Put it at {place} in the folder of the site."
    return problems_of(
        Draft(name, b""), [Finding(rule="comity.file-place", message=message, url=name)], name
    )[0]


def lint_file(kind: Kind, name: str, body: bytes, *, origin: str = DEFAULT_ORIGIN) -> list[Problem]:
    """Return the problems of one file by itself. `name`: what its user calls it."""
    url = origin + (kind.path or f"/{quote(os.fsencode(basename(name)))}")
    findings: Iterable[Finding]
    if kind.file_kind:
        findings = kind.file_kind.findings(body, url)
    elif kind.path:
        file = Fetched(status=200, body=body)
        findings = chain(
            _of_site(SiteFiles(origin, {url: file}, robots_lines=ROBOTS_LINES)),
            check_served(url, file),
        )
    else:
        findings = _of_page(SourceFile(name, url, Fetched(status=200, body=body)))
    return problems_of(Draft(url, body), findings, name)


def lint_site(
    source: Source, samples: Iterable[SourceFile] = (), *, only: Container[str] | None = None
) -> list[Problem]:
    """Return the problems of a site's files, each by itself and all together: file by file, in the order of their lines.

    `samples`: pages to which the rules for single elements apply. The site's own pages are samples of the rules about their
    paths. `only`: the URLs of the files and pages whose problems are returned; None: of all."""
    fetched = {file.url: file.fetched for file in source.files}
    findings = [*_of_site(SiteFiles(source.origin, fetched, robots_lines=ROBOTS_LINES))]
    for page in source.pages:
        findings += _of_page(page) if only is None or page.url in only else ()
    for check in CHECKS:
        findings += check(source, tuple(samples))
    problems = []
    by_url: dict[str, list[Finding]] = {}
    for finding in findings:
        if only is None or finding.url in only:
            by_url.setdefault(finding.url, []).append(finding)
    for file in (*source.files, *source.pages):
        problems += problems_of(
            Draft(file.url, file.fetched.body), by_url.pop(file.url, ()), file.name
        )
    for url, others in by_url.items():
        problems += problems_of(Draft(url, b""), others, url)
    return problems


def _of_site(files: SiteFiles) -> Iterator[Finding]:
    """The findings of every format in the policy files of a site."""
    for format_ in FORMATS:
        reading = format_.read_site(files) if format_.read_site else None
        yield from reading.findings if reading else ()
        yield from format_.authoring.check_site(files) if format_.authoring.check_site else ()


def _of_page(page: SourceFile) -> Iterator[Finding]:
    """The findings of every format in the fields and the content of a page."""
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
