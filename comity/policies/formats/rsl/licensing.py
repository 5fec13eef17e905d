"""Really Simple Licensing (RSL) 1.0: the uses of resources that a site licenses.

    read(body)                   an RSL document -> Rsl
    inline(content)              the documents in a page
    Rsl.statements(url)          the statements of a document about one resource
    refuse_all(reference)        the statements for a document that cannot be fetched
    in_robots, in_fields, in_markup     the references to documents

Every reading of an open point is in docs/rsl.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple

from comity.bounded import Bounded
from comity.policies.answers.decision import Finding, Verdict
from comity.policies.document.document import Content
from comity.policies.formats.rsl.grammar import (
    GENERAL,
    License,
    RslDocument,
    full_host_of,
    host_of,
    parse,
)
from comity.policies.formats.rsl.references import (
    MEDIA_TYPE,
    References,
    in_fields,
    in_markup,
    in_robots,
)
from comity.policies.syntax.lines import line_ends, text_of
from comity.policies.syntax.path_patterns import PatternIndex, normal_target
from comity.policies.syntax.printable import printable
from comity.policies.syntax.remembered import Remembered
from comity.policies.syntax.urls import host_names, origin_of, target_of
from comity.policies.vocabulary.statement import Location, Statement

__all__ = [
    "References",
    "Rsl",
    "in_fields",
    "in_markup",
    "in_robots",
    "inline",
    "read",
    "refuse_all",
]

SPEC = "https://rslstandard.org/rsl"
TERMS = tuple(GENERAL)
MAX_INLINE = 5  # maximum documents in a page
MAX_KNOWN = 100  # maximum cached answers of a document
MAX_INLINE_KNOWN = 256  # maximum cached documents that pages contain

_MOST = 3  # a level that is higher than the level of any word


def refuse_all(reference: Location) -> tuple[Statement, ...]:
    """Return refusals of all usages, because a document is invalid or missing (section-4.3).

    `reference` is the location that the refusals quote, such as the reference to the document.
    """
    return tuple(
        Statement(f"rsl:{term}", Verdict.DENY, "rsl.unlicensed", reference) for term in TERMS
    )


class Rsl:
    """One RSL document."""

    def __init__(self, document: RslDocument, text: bytes, start: Location) -> None:
        """Index the document. `text` is its source. `start` is the location of the first line."""
        self.findings: tuple[Finding, ...] = document.findings
        # The time after which the document is fetched again, and so is the file or page that refers
        # to the document (section-3.2.1).
        self.max_age = document.max_age
        self.is_valid = bool(document.scopes)
        self._scopes = document.scopes
        self._problem = document.problem
        self._text = text
        self._start = start
        self._cache: Bounded[
            tuple[tuple[int, ...], bool, frozenset[str]], tuple[Statement, ...]
        ] = Bounded(MAX_KNOWN)
        self._index = PatternIndex([scope.pattern for scope in document.scopes])

    def statements(
        self, url: str, *, arranged: bool = False, users: Collection[str] = ()
    ) -> tuple[Statement, ...]:
        """Return the statements about the resource, or () if the document does not mention it.

        `arranged` is True if the operator has met the conditions of the licenses. `users` are the
        users of the content in the words of section-3.4.1.2 and section-3.5, such as "commercial",
        "DE" and "EU".
        """
        if not self.is_valid:
            return refuse_all(self._source(self._problem))
        matching = self._matching(url)
        key = (tuple(matching), arranged, frozenset(users))
        if key not in self._cache:  # most pages of a site have the same answer
            self._cache[key] = tuple(
                self._decide_terms(self._licenses(matching), users, arranged=arranged)
            )
        return self._cache[key]

    def everywhere(self, url: str = "") -> frozenset[str]:
        """Return the terms that are refused for every resource of a site.

        The operator has met no conditions, and no users are known. `url` is any URL of the site. ""
        means the site of the document.
        """
        if not self.is_valid:
            return frozenset(TERMS)
        try:
            root = origin_of(url or self._start.url) + "/"
        except ValueError:
            root = "/"
        broad = [
            (octets, license_)
            for octets, license_ in self._licenses(self._matching(root))
            if octets <= 1
        ]
        refused = {
            statement.term.partition(":")[2]
            for statement in self._decide_terms(broad, (), arranged=False)
            if statement.verdict is Verdict.DENY
        }
        narrow = [
            license_ for scope in self._scopes if scope.octets > 1 for license_ in scope.licenses
        ]
        permitted = {
            word
            for license_ in narrow
            if not license_.unmet(())
            for word, _ in license_.permits or ()
        }
        return frozenset(
            term for term in refused if not any(_covers(word, term) for word in permitted)
        )

    def _matching(self, url: str) -> list[int]:
        """Return the numbers of the scopes that contain the resource."""
        path = normal_target(target_of(url))
        hosts = {host_of(url), full_host_of(url)}  # `*.example.com` means www.example.com too
        targets = {path, *(name + path for host in hosts for name in host_names(host))}
        return sorted({number for target in targets for number in self._index.all(target)})

    def _licenses(self, matching: list[int]) -> list[tuple[int, License]]:
        """Return the licenses of the scopes with these numbers.

        Each license comes with the number of octets in the path of its scope.
        """
        scopes = [self._scopes[number] for number in matching]
        return [(scope.octets, license_) for scope in scopes for license_ in scope.licenses]

    def _decide_terms(
        self, licenses: list[tuple[int, License]], users: Collection[str], *, arranged: bool
    ) -> Iterator[Statement]:
        for term in TERMS:
            verdict, claim = _decide(term, licenses, users, arranged=arranged)
            if claim is not None:
                yield Statement(f"rsl:{term}", verdict, claim.rule, self._source(claim.line))

    def _source(self, line: int) -> Location:
        line_octets = self._lines[line - 1] if 0 < line <= len(self._lines) else b""
        first = self._start.line
        return self._start._replace(
            line=first + line - 1 if first else 0, text=printable(line_octets)
        )

    @cached_property
    def _lines(self) -> list[bytes]:
        return self._text.splitlines()


class _Claim(NamedTuple):
    """A refusal or a permission of one usage by one license.

    Attributes:
        octets: The number of octets in the path of the license's scope. More octets are narrower.
        level: The number of words that are more general than the word of the claim. A higher level
            is narrower.
        rule: The rule of the resulting statement.
        line: The line of the claim in the document.
    """

    octets: int
    level: int
    rule: str
    line: int


def _covers(word: str, term: str) -> bool:
    return word == term or word in GENERAL[term]


def _decide(
    term: str, licenses: list[tuple[int, License]], users: Collection[str], *, arranged: bool
) -> tuple[Verdict | None, _Claim | None]:
    """Return the verdict on a term and the deciding claim (section-3.1.1), or None and None.

    `licenses` are licenses with the octets of their scopes. Narrower scopes and words come before
    broader ones. A permission counts if no refusal has a narrower scope, no refusal has a narrower
    word, and no prohibition has both an equal scope and an equal word.
    """
    permissions: list[_Claim] = []
    refusals: list[_Claim] = []
    lists: dict[int, int] = {}  # octets -> line of the first license with a list of usages
    with_term: set[int] = set()  # octets of the licenses that list the term
    for octets, license_ in licenses:
        unmet = 0 if arranged else license_.unmet(users)
        words = [(word, line) for word, line in license_.permits or () if _covers(word, term)]
        if license_.permits is not None:
            lists.setdefault(octets, license_.line)
            with_term.update([octets] if words else [])
        elif unmet:
            words = [("all", unmet)]  # without a list, the conditions are for all usages
        for word, line in words:
            if unmet:
                refusals.append(_Claim(octets, len(GENERAL[word]), "rsl.unlicensed", unmet))
            else:
                permissions.append(_Claim(octets, len(GENERAL[word]), "rsl.permits", line))
        for word, line in license_.prohibits:
            if _covers(word, term):
                refusals.append(_Claim(octets, len(GENERAL[word]), "rsl.prohibits", line))
        barring = (party for party in license_.bars if party.has(users) is not False)
        refusals += (_Claim(octets, _MOST, "rsl.prohibits", party.line) for party in barring)
    # section-3.5: a list is exhaustive. Usages that no list of the scope names are refused.
    refusals += (
        _Claim(octets, 0, "rsl.unlicensed", line)
        for octets, line in lists.items()
        if octets not in with_term
    )
    if not refusals and not permissions:
        return None, None
    octets = max((refusal.octets for refusal in refusals), default=0)
    level = max((refusal.level for refusal in refusals), default=0)
    prohibited = {
        (refusal.octets, refusal.level) for refusal in refusals if refusal.rule == "rsl.prohibits"
    }
    for permission in sorted(permissions, reverse=True):
        if (
            permission.octets >= octets
            and permission.level >= level
            and permission[:2] not in prohibited
        ):
            return Verdict.ALLOW, permission
    return Verdict.DENY, max(
        refusals, key=lambda claim: (claim.rule == "rsl.prohibits", claim.octets, claim.level)
    )


def read(body: bytes, url: str = "", *, cut: bool = False) -> Rsl:
    """Read an RSL document. Never raises. The time is linear in the octets.

    `url` is the URL of the document. `cut` is True if the body is only the document's beginning.
    """
    return _read(body, url, Location(line=1, url=url), cut=cut)


def inline(content: Content) -> tuple[Rsl, ...]:
    """Return the documents in a page (section-4.6.2).

    The page is parsed only if it contains the media type of RSL. Findings of the documents have no
    URL, because many pages share equal documents. `Site.page` adds the URL of the page.
    """
    if not content.mentions(b"application/rsl"):
        return ()
    scripts = list(content.scripts(MEDIA_TYPE))
    # Too many documents count as one invalid document.
    texts = [("", 0)] if len(scripts) > MAX_INLINE else scripts
    return tuple(map(_inline, texts))


def _read_inline(script: tuple[str, int]) -> Rsl:
    text, line = script
    return _read(text.encode(errors="replace"), "", Location(f"script {MEDIA_TYPE}", line=line))


def _read(body: bytes, url: str, start: Location, *, cut: bool = False) -> Rsl:
    # LENIENT: empty lines may come before the XML declaration.
    text = body.lstrip(b" \t\r\n")
    if start.line:
        start = start._replace(line=start.line + line_ends(body, 0, len(body) - len(text)))
    document = parse(text, url, first=start.line, cut=cut, everywhere=start.part != "body")
    return Rsl(document, text_of(text)[0], start)


_inline = Remembered(_read_inline, most=MAX_INLINE_KNOWN)
