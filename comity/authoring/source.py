"""The policy files and pages that a publisher names: a folder, or a site."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from comity.gate.fetching.reach import Reach
from comity.policies import Fetched, Site

# The origin of a folder for which the user names none. RFC 2606 reserves it for examples.
DEFAULT_ORIGIN = "https://example.com"


class SourceFile(NamedTuple):
    """A policy file or a page, as it was read or fetched.

    Attributes:
        name: The name that the user sees: the path on this machine, relative to the current folder
            if the user wrote it so, or the URL.
        url: The absolute URL at which the site publishes the file.
        fetched: The answer of the server, or the file on the disk.
    """

    name: str
    url: str
    fetched: Fetched


class SiteSource(NamedTuple):
    """The files and pages of a folder or site.

    Attributes:
        origin: The origin of the site.
        site: The site, from all policy files and the files that they refer to.
        files: The policy files that exist, robots.txt first. Answers with a status other than 404
            count as existing.
        pages: The HTML pages below a folder, or the page at a URL.
        notes: Sentences about files and pages that could not be read or fetched, with the cause.
        reach: The reach of the site's server. It has no meaning for a folder.
        misplaced: The names of policy files that are not read, and their right places in the
            folder.
    """

    origin: str
    site: Site
    files: tuple[SourceFile, ...]
    pages: tuple[SourceFile, ...]
    notes: tuple[str, ...] = ()
    reach: Reach = Reach.PUBLIC
    misplaced: tuple[tuple[str, str], ...] = ()

    @property
    def place_notes(self) -> tuple[str, ...]:
        """A sentence about each policy file that is in a wrong place."""
        return tuple(
            f"{name} is not read: crawlers ask for it at {place}" for name, place in self.misplaced
        )

    def name_of(self, url: str) -> str:
        """Return the name of the file or page at this URL, as the user sees it, or else the URL."""
        return next((file.name for file in (*self.files, *self.pages) if file.url == url), url)


def sort_robots_first(origin: str, files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    return tuple(sorted(files, key=lambda file: file.url != f"{origin}/robots.txt"))
