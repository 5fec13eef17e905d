"""Lint: everything that is known to be wrong with the files of a site.

lint_file(kind, name, url, body)    one file, for itself: what a language server asks for at each key
lint_site(source)                   all files of a site, and what they say together"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from posixpath import basename
from typing import NamedTuple
from urllib.parse import urlsplit

from comity.authoring.problems import Problem, problems_of
from comity.policies import Agent, Fetched, Finding, Site
from comity.policies.document.document import Content
from comity.policies.formats import FILES, FORMATS, ROBOTS_LINES
from comity.policies.formats.authoring import Draft, FileKind
from comity.policies.formats.file import SiteFiles
from comity.policies.syntax.urls import origin_of

ORIGIN = "https://example.com"  # of files that are on no site yet
PAGE = "page.html"
_PAGES = (".html", ".htm", ".xhtml")
_AGENT = Agent("comitybot")  # who reads pages: findings are the same for all, but for directives to single agents


class Kind(NamedTuple):
    """What a file is read as."""

    name: str  # by which `--as` calls it
    path: str = ""  # where a site has it; "": anywhere
    file_kind: FileKind | None = None  # of a format's own; None with no path: a page


KINDS = {
    kind.name: kind
    for kind in (
        *(Kind(basename(file.path), file.path) for file in FILES),
        *(Kind(kind.name, file_kind=kind) for format_ in FORMATS for kind in format_.authoring.kinds),
        Kind(PAGE),
    )
}


def kind_of(name: str, body: bytes) -> Kind | None:
    """Return what a file is by its name, or by what stands in it. None: no policy. `name`: a path or URL."""
    last = basename(urlsplit(name).path if "://" in name else name.replace("\\", "/")).lower()
    if last in KINDS and last != PAGE:
        return KINDS[last]
    for kind in KINDS.values():
        if kind.file_kind and kind.file_kind.is_meant(last, body):
            return kind
    return KINDS[PAGE] if last.endswith(_PAGES) else None


def lint_file(kind: Kind, name: str, body: bytes, *, origin: str = ORIGIN) -> list[Problem]:
    """Return the problems of one file. `name`: what its user calls it."""
    url = origin + (kind.path or f"/{basename(name)}")
    return problems_of(Draft(url, body), _findings(kind, url, Fetched(status=200, body=body)), name)


def _findings(kind: Kind, url: str, fetched: Fetched) -> Iterator[Finding]:
    if kind.file_kind:
        yield from kind.file_kind.findings(fetched.body, url)
    elif kind.path:
        yield from site_findings(SiteFiles(origin_of(url), {url: fetched}, robots_lines=ROBOTS_LINES))
    else:
        yield from _page_findings(url, fetched)


def site_findings(files: SiteFiles) -> Iterator[Finding]:
    """The findings of every format in the policy files of a site."""
    for format_ in FORMATS:
        reading = format_.read_site(files) if format_.read_site else None
        yield from reading.findings if reading else ()
        yield from format_.authoring.check_site(files) if format_.authoring.check_site else ()


def _page_findings(url: str, fetched: Fetched) -> Iterator[Finding]:
    site = Site.from_files(origin_of(url), {})
    yield from site.page(_AGENT, url, headers=fetched.headers, body=fetched.body).findings
    content = Content(fetched.headers, fetched.body)
    for format_ in FORMATS:
        yield from format_.authoring.check_document(content, url) if format_.authoring.check_document else ()
