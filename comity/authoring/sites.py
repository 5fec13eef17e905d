"""Read the policy files and pages of a folder on this machine, or of a site as crawlers see it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from comity.authoring.source import DEFAULT_ORIGIN, SiteSource, SourceFile, sort_robots_first
from comity.gate.fetching.reach import Reach
from comity.gate.folder import misplaced_files, path_in_folder, read_file, read_folder
from comity.gate.settings import DEFAULT_AGENT
from comity.policies import Agent, PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of, url_remedy

MAX_PAGES = 1000  # the maximum number of pages of a folder; a note says that more are left out
# The maximum number of files, in a folder and its subfolders, among which pages are searched.
MAX_NAMES = 50_000
PAGE_SUFFIXES = (".html", ".htm", ".xhtml")


def load(
    target: str, *, origin: str | None = None, referrer_reach: Reach | None = None
) -> SiteSource:
    """Read a folder, or fetch the files of a site.

    `target`: the path of a folder, or an http(s) URL.
    `origin`: the origin at which the files of a folder will be published. None means
    DEFAULT_ORIGIN.
    `referrer_reach`: ask only servers to which a site of this reach may lead. None means that all
    servers may be asked.
    PolicyError: the target is neither folder nor URL, or cannot be read or fetched.

    A site is fetched in an event loop of its own. Call this function in a thread if a loop is
    running."""
    if is_url(target):
        if origin is not None:
            raise PolicyError("a URL has its own origin: leave out --origin")
        from comity.authoring.live_site import fetch  # imports Scrapy, which folders do without

        return fetch(target, referrer_reach)
    folder = Path(target)
    try:
        is_file, is_folder = folder.is_file(), folder.is_dir()
    except OSError as error:
        raise PolicyError(
            f"`{printable(os.fsencode(target))}` cannot be read: {error.strerror}"
        ) from None
    if is_file:
        raise PolicyError(
            f"`{printable(os.fsencode(target))}` is a file: name the folder that it is in, or a URL"
        )
    if not is_folder:
        raise PolicyError(
            f"`{printable(os.fsencode(target))}` is not a folder or a URL: {remedy_for(target)}"
        )
    try:
        return _read(folder, origin_of(origin or DEFAULT_ORIGIN), agent_for(target))
    except ValueError as error:
        raise PolicyError(str(error)) from None


def is_url(target: str) -> bool:
    """Return True if a target is a URL, and no folder."""
    scheme, separator, _ = target.partition("://")
    return bool(separator) and scheme.lower() in ("http", "https")


def remedy_for(target: str) -> str:
    """Return what to write instead of a target that is neither a folder nor a URL."""
    return printable(
        (url_remedy(target) or "write https:// before a host").encode("utf-8", "replace")
    )


def agent_for(target: str) -> Agent:
    """Return the agent for which the files of a target are read.

    For a URL, it is the agent in the settings of the project. For a folder, it is DEFAULT_AGENT.

    PolicyError: the settings of the project cannot be used."""
    if not is_url(target):
        return Agent(DEFAULT_AGENT)
    from comity.authoring.live_site import project_agent  # imports Scrapy, which folders do without

    return project_agent()


def _read(folder: Path, origin: str, agent: Agent) -> SiteSource:
    site = read_folder(origin, folder, agent)
    names = {url: str(folder / path_in_folder(origin, url).lstrip("/")) for url in site.files}
    notes: list[str] = []
    pages: list[SourceFile] = []
    for path in _page_paths(folder, notes):
        if len(pages) == MAX_PAGES:
            notes.append(f"{folder} has more pages than {MAX_PAGES}: the others were not read")
            break
        if page := read_file(folder, path):
            pages.append(
                SourceFile(str(folder / path), f"{origin}/{quote(os.fsencode(path))}", page)
            )
    files = (
        SourceFile(names[url], url, fetched)
        for url, fetched in site.files.items()
        if fetched.status != 404
    )
    misplaced = tuple(
        (str(folder / path), place) for path, place in misplaced_files(folder).items()
    )
    return SiteSource(
        origin,
        site,
        sort_robots_first(origin, files),
        tuple(pages),
        tuple(notes),
        misplaced=misplaced,
    )


def _page_paths(folder: Path, notes: list[str]) -> Iterator[str]:
    """Yield the paths of pages in alphabetical order, with slashes.

    Names that begin with a dot are skipped, because servers do not publish such files.
    `notes`: gets a sentence if not all folders were searched."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(PAGE_SUFFIXES) and not name.startswith("."):
                yield (Path(root) / name).relative_to(folder).as_posix()
        count += len(names)
        if count > MAX_NAMES:
            notes.append(
                f"{folder} has more files than {MAX_NAMES}: "
                "the pages in some of its folders were not read"
            )
            return
