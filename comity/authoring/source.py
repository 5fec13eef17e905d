"""The policy files and pages that a publisher names: a folder, or a site."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from comity.gate.fetching.reach import Reach
from comity.policies import Fetched, Site

DEFAULT_ORIGIN = "https://example.com"  # of a folder; RFC 2606 keeps it for examples


class SourceFile(NamedTuple):
    """A policy file or a page that was had."""

    name: str  # as it is shown to the user: the path on this machine, relative as given, or the URL
    url: str  # absolute, at which the site has it
    fetched: Fetched


class Source(NamedTuple):
    """The files and pages that were had of what a publisher named."""

    origin: str
    site: Site  # of all policy files that were had, with what they refer to
    files: tuple[
        SourceFile, ...
    ]  # policy files that are there, or came back with anything but 404; robots.txt first
    pages: tuple[SourceFile, ...]  # of a folder the HTML pages below it, of a URL that page
    notes: tuple[str, ...] = ()  # what could not be had, and why
    reach: Reach = Reach.PUBLIC  # of the site's server; of a folder it does not matter
    misplaced: tuple[
        tuple[str, str], ...
    ] = ()  # names of policy files that are not read, and their places in the folder

    @property
    def place_notes(self) -> tuple[str, ...]:
        """The notes on policy files that are not at their place."""
        return tuple(
            f"{name} is not read: crawlers ask for it at {place}" for name, place in self.misplaced
        )

    def name_of(self, url: str) -> str:
        """Return the name by which the user knows the file or page of this URL."""
        return next((file.name for file in (*self.files, *self.pages) if file.url == url), url)


def sorted_files(origin: str, files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    return tuple(sorted(files, key=lambda file: file.url != f"{origin}/robots.txt"))
