"""The trust.txt of a site, at either of its two places."""

from __future__ import annotations

from dataclasses import replace

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.formats.file import File, ParsedBodies, SiteFiles
from comity.policies.formats.trust_txt.grammar import parse
from comity.policies.syntax.lines import text_of
from comity.policies.vocabulary.statement import Location, Statement

PATHS = ("/trust.txt", "/.well-known/trust.txt")
TERM = "trust-txt:data-training"
_RULES = {Verdict.ALLOW: "trust-txt.allow", Verdict.DENY: "trust-txt.disallow"}


class _Body:
    """The octets of a trust.txt, read without its URL."""

    def __init__(self, octets: bytes, *, oversized: bool) -> None:
        text, cut = text_of(octets, cut=oversized)
        self.trust = parse(text, cut=cut)


_bodies = ParsedBodies(_Body)


class TrustFile(File):
    """A trust.txt that exists.

    Attributes:
        trust: The reading of its lines.
    """

    def __init__(self, url: str, fetched: Fetched) -> None:
        super().__init__(url, fetched)
        self._body = _bodies.get(fetched.body, oversized=fetched.oversized)
        self.trust = self._body.trust

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(replace(finding, url=self.url) for finding in self.trust.findings)

    @property
    def statement(self) -> Statement | None:
        """The statement about training, for every resource of the site."""
        line = self.trust.training
        if line is None:
            return None
        location = Location(line=line.line, text=line.text, url=self.url)
        return Statement(TERM, line.verdict, _RULES[line.verdict], location)


def trust_files(site: SiteFiles) -> tuple[TrustFile, ...]:
    """Return the trust.txt files that the site has, in the order of PATHS."""
    # Most sites have none, so nothing of a missing file is kept.
    files = (File(site.origin + path, site.get(path)) for path in PATHS)
    return tuple(TrustFile(file.url, file.fetched) for file in files if file.is_present)
