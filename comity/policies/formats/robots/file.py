"""robots.txt as a file of a site, with the files that it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from comity.policies.answers.decision import Finding
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.markup import is_marked_up, without_tags
from comity.policies.formats.acap import grammar as acap
from comity.policies.formats.file import File, SiteFiles
from comity.policies.formats.robots import grammar as robots
from comity.policies.formats.robots.extension_lines import ExtensionLine, extension_lines
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import resolved

PATH = "/robots.txt"


class RobotsFile(File):
    """A robots.txt, or a file to which one refers: its conventional records and those of ACAP.

    Of a file in markup the refusals alone are read (RFC-10)."""

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
        """Read a file. `definitions`, `crawlers`, `refuses_only`: of the file that refers to it."""
        super().__init__(url, fetched)
        self._referred: dict[
            str, str
        ] = {}  # locator -> URL; a file may refer to another for each of many crawlers
        self.robots: robots.Robots | None = None
        self.acap: acap.Acap | None = None
        self.is_marked_up = self.is_present and is_marked_up(super()._read())
        self.refuses_only = refuses_only or self.is_marked_up
        if self.is_present:
            self.robots = robots.parse(
                self.text if self.refuses_only else fetched.body,
                url=url,
                oversized=fetched.oversized,
                refuses_only=self.refuses_only,
            )
            if b"acap" in self.text.lower():
                parsed = acap.parse(self.text, url=url, definitions=definitions, crawlers=crawlers)
                self.acap = acap.refusals(parsed) if self.refuses_only else parsed

    def _read(self) -> bytes:
        text = super()._read()
        text = without_tags(text) if self.is_marked_up else text
        return robots.refusals(text) if self.refuses_only else text

    def referred(self, reference: acap.Reference) -> str:
        """The absolute URL of the file that is referred to; "" for what is nowhere that can be asked."""
        locator = reference.locator
        if locator not in self._referred:
            try:
                self._referred[locator] = resolved(self.url, locator) if locator else ""
            except ValueError:
                self._referred[locator] = ""
        return self._referred[locator]

    @property
    def crawler_names(self) -> frozenset[str]:
        """The agents that a record names, in lower case: product tokens, and names in ACAP, which may have any form."""
        tokens = self.robots.product_tokens if self.robots else frozenset()
        records = self.acap.records if self.acap else ()
        return tokens | {crawler.lower() for record in records for crawler in record.crawlers} - {
            "*"
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings for the author. No line of a file in markup is looked at."""
        if not self.is_present:
            return ()
        of_file = []
        media_type = self.fetched.header(b"Content-Type").partition(b";")[0].strip()
        if media_type and media_type.lower() != b"text/plain":
            message = f"It is served as {printable(media_type)}, and some crawlers pass it over."
            message += " Serve it as text/plain."
            of_file.append(Finding(rule="robots.media-type", message=message, url=self.url))
        if self.is_marked_up:
            message = (
                "The records stand in markup: crawlers may pass them over, and comity reads only"
            )
            message += " refusals. Save the file as plain text, without tags."
            return (*of_file, Finding(rule="robots.markup", message=message, url=self.url))
        conventional = self.robots.findings if self.robots else ()
        of_acap = (*self.acap.findings, *self._odd_references(self.acap)) if self.acap else ()
        return (*of_file, *conventional, *of_acap)

    def _odd_references(self, parsed: acap.Acap) -> Iterator[Finding]:
        for reference in (
            reference for record in parsed.records for reference in record.references
        ):
            messages = {
                "": "it leads to no http or https URL: everything is refused",
                self.url: "the file refers to itself",
            }
            if message := messages.get(self.referred(reference)):
                yield Finding(
                    rule="acap.reference", message=message, url=self.url, line=reference.line
                )


def robots_of(site: SiteFiles) -> RobotsFile:
    """The site's robots.txt."""
    return site.once(RobotsFile, lambda: RobotsFile(site.origin + PATH, site.get(PATH)))


def lines_of(site: SiteFiles) -> tuple[ExtensionLine, ...]:
    """The lines by which other formats speak in it."""
    robots = robots_of(site).robots
    return site.once(
        ExtensionLine, lambda: extension_lines(robots, site.robots_lines) if robots else ()
    )
