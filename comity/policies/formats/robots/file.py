"""The robots.txt of a site, and the files that it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.markup import is_marked_up, without_tags
from comity.policies.formats.acap import grammar as acap
from comity.policies.formats.file import File, ParsedBodies, SiteFiles
from comity.policies.formats.robots import grammar as robots
from comity.policies.formats.robots.extension_lines import ExtensionLine, extension_lines
from comity.policies.syntax.lines import text_of
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import resolved

PATH = "/robots.txt"


class _Body:
    """The octets of a robots.txt, read without its URL. Sites with equal octets share one.

    Attributes:
        is_marked_up: True if the records are in markup.
        refuses_only: True if only the refusals are read.
        text: The part of the octets that is read, see `File.text`.
        robots: The conventional records.
        mentions_acap: True if the text may have ACAP records.
    """

    def __init__(self, octets: bytes, *, oversized: bool, refuses_only: bool) -> None:
        text, _ = text_of(octets, cut=oversized)
        self.is_marked_up = is_marked_up(text)
        self.refuses_only = refuses_only or self.is_marked_up
        text = without_tags(text) if self.is_marked_up else text
        self.text = robots.refusals(text) if self.refuses_only else text
        self.robots = robots.parse(
            self.text if self.refuses_only else octets,
            oversized=oversized,
            refuses_only=self.refuses_only,
        )
        self.mentions_acap = b"acap" in self.text.lower()
        self._lines: dict[frozenset[str], tuple[ExtensionLine, ...]] = {}

    def lines(self, names: frozenset[str]) -> tuple[ExtensionLine, ...]:
        """Return the lines with these names, which belong to other formats."""
        if names not in self._lines:
            self._lines[names] = extension_lines(self.robots, names)
        return self._lines[names]


_bodies = ParsedBodies(_Body)


class RobotsFile(File):
    """A robots.txt, or a file that a robots.txt refers to: its conventional and its ACAP records.

    If the file is in markup, only its refusals are read (RFC-10).
    """

    reads_markup = True

    def __init__(
        self,
        url: str,
        fetched: Fetched,
        *,
        definitions: acap.Definitions | None = None,
        crawlers: Iterable[str] = (),
        refuses_only: bool = False,
    ) -> None:
        """Read a response. `url` is the requested URL.

        The other arguments are for a file that another file refers to. `definitions` are the ACAP
        definitions of the referring file, and `crawlers` are the names in the referring record.
        `refuses_only` is True if only the refusals of the referring file are read.
        """
        super().__init__(url, fetched)
        # Locator -> URL: a cache, because many records may have the same reference.
        self._urls: dict[str, str] = {}
        self.robots: robots.Robots | None = None
        self.acap: acap.Acap | None = None
        self.is_marked_up, self.refuses_only = False, refuses_only
        self._body: _Body | None = None
        if not self.is_present:
            return
        body = self._body = _bodies.get(
            fetched.body, oversized=fetched.oversized, refuses_only=refuses_only
        )
        self.is_marked_up, self.refuses_only = body.is_marked_up, body.refuses_only
        self.robots = body.robots
        if body.mentions_acap:
            parsed = acap.parse(self.text, url=url, definitions=definitions, crawlers=crawlers)
            self.acap = acap.refusals(parsed) if self.refuses_only else parsed

    def _read(self) -> bytes:
        return self._body.text if self._body else super()._read()

    def lines(self, names: frozenset[str]) -> tuple[ExtensionLine, ...]:
        """Return the lines with these names, which belong to other formats."""
        return self._body.lines(names) if self._body else ()

    def resolve_reference(self, reference: acap.Reference) -> str:
        """Return the absolute URL that a reference leads to, or "" if it is not http or https."""
        locator = reference.locator
        if locator not in self._urls:
            try:
                self._urls[locator] = resolved(self.url, locator) if locator else ""
            except ValueError:
                self._urls[locator] = ""
        return self._urls[locator]

    @property
    def crawler_names(self) -> frozenset[str]:
        """The agents that records name, in lower case, without "*".

        Conventional records name product tokens, and ACAP records any names.
        """
        tokens = self.robots.product_tokens if self.robots else frozenset()
        records = self.acap.records if self.acap else ()
        return tokens | {crawler.lower() for record in records for crawler in record.crawlers} - {
            "*"
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings for the file's author. Lines of a file in markup are not checked."""
        if not self.is_present:
            return ()
        of_file = []
        media_type = self.fetched.header(b"Content-Type").partition(b";")[0].strip()
        if media_type and media_type.lower() != b"text/plain":
            message = f"The file is served as {printable(media_type)}, and some crawlers ignore it."
            message += " Serve it as text/plain."
            of_file.append(Finding(rule="robots.media-type", message=message, url=self.url))
        if self.is_marked_up:
            message = "The records are in markup: crawlers may ignore them, and comity reads only"
            message += " refusals. Save the file as plain text, without tags."
            return (*of_file, Finding(rule="robots.markup", message=message, url=self.url))
        found = self.robots.findings if self.robots else ()
        conventional = (replace(finding, url=self.url) for finding in found)
        of_acap = (*self.acap.findings, *self._odd_references(self.acap)) if self.acap else ()
        return (*of_file, *conventional, *of_acap)

    def _odd_references(self, parsed: acap.Acap) -> Iterator[Finding]:
        for reference in (
            reference for record in parsed.records for reference in record.references
        ):
            messages = {
                "": "The reference leads to no http or https URL, so everything is refused.",
                self.url: "The file refers to itself. Delete the reference.",
            }
            if message := messages.get(self.resolve_reference(reference)):
                yield Finding(
                    rule="acap.reference", message=message, url=self.url, line=reference.line
                )


def robots_of(site: SiteFiles) -> RobotsFile:
    """Return the site's robots.txt."""
    return site.once(RobotsFile, lambda: RobotsFile(site.origin + PATH, site.get(PATH)))


def lines_of(site: SiteFiles) -> tuple[ExtensionLine, ...]:
    """Return the lines of robots.txt that belong to other formats."""
    return robots_of(site).lines(site.robots_lines)
