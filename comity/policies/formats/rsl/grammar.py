"""The syntax of an RSL document (RSL 1.0 section-3): its scopes, licenses and words.

Prohibitions are read leniently. Any other departure from the specification counts as a condition
that the operator has to arrange with the publisher.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from comity.policies.answers.decision import Finding
from comity.policies.syntax import xml_tree
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.path_patterns import normal_pattern, normal_target
from comity.policies.syntax.suspicions import trimmed
from comity.policies.syntax.urls import origin_of, target_of, without_scheme
from comity.policies.syntax.xml_tree import (
    XmlError,
    local_name,
    namespace,
    own_text,
    plain_attributes,
)

NAMESPACE = "https://rslstandard.org/rsl"  # section-2.2
DEFAULT_AGE = timedelta(days=30)  # section-3.2
MAX_AGE = timedelta(days=365)

MAX_SCOPES = 1000  # maximum scopes of a document
MAX_LICENSES = 1000  # maximum child elements in all `content` elements of a document

# section-3.4.1.1: the words for usages, each with the more general ones.
GENERAL: dict[str, tuple[str, ...]] = {
    "all": (),
    "ai-all": ("all",),
    "ai-train": ("ai-all", "all"),
    "ai-input": ("ai-all", "all"),
    "ai-index": ("ai-all", "all"),
    "search": ("all",),
}
# Word of a prohibition -> the usage that it prohibits. LENIENT: words that are not in the
# specification. A word that is not in this table counts as ai-all if it begins with "ai", else as
# all.
PROHIBITED = {word: word for word in GENERAL} | {
    "train-ai": "ai-train",
    "ai-training": "ai-train",
    "training": "ai-train",
    "train": "ai-train",
    "genai": "ai-all",
    "ai-summarize": "ai-input",
    "ai-inference": "ai-input",
    "inference": "ai-input",
}
# section-3.4.1.2
USERS = frozenset(("commercial", "non-commercial", "education", "government", "personal"))

# Element of RSL -> its children and attributes. Any other child or attribute might be a condition,
# so it counts as an unknown condition.
VOCABULARY: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    # LENIENT: the attribute `version`. The specification does not have it, but many documents do.
    "rsl": (frozenset(("content",)), frozenset(("max-age", "version"))),
    "content": (
        frozenset(("license", "alternate", "schema", "copyright", "terms")),
        frozenset(("url", "server", "encrypted", "lastmod")),
    ),
    "license": (
        frozenset(("permits", "prohibits", "prohibit", "payment", "reporting", "legal")),
        frozenset(),
    ),
    "permits": (frozenset(), frozenset(("type",))),
    "prohibits": (frozenset(), frozenset(("type",))),
    "prohibit": (frozenset(), frozenset(("type",))),
}
# section-3.13: statements of the publisher about itself.
LEGAL_TYPES = ("warranty", "disclaimer", "attestation", "contact", "proof")


class Party(NamedTuple):
    """A class of users or places that a license is for or is not for (section-3.5, section-3.6).

    Attributes:
        kind: "user" or "geo".
        words: Words for users such as "commercial", or for places such as "de", in lower case.
            "all" means every user or place.
        line: The line of the element in the document.
    """

    kind: str
    words: frozenset[str]
    line: int

    def has(self, users: Collection[str]) -> bool | None:
        """Return True if the class includes one of the users or places in `users`.

        None means that this is unknown, because `users` has no words of this kind.
        """
        if "all" in self.words:
            return True
        ours = [word.lower() for word in users if (word.lower() in USERS) == (self.kind == "user")]
        return any(word in self.words for word in ours) if ours else None


class License(NamedTuple):
    """One set of terms (section-3.4).

    Attributes:
        permits: The permitted usages, each with its line. None means that the license has no list
            of usages.
        prohibits: The prohibited usages, each with its line.
        condition: The line of a condition that must be arranged, such as payment, reporting, or an
            unknown element. 0 means that there is no condition.
        limits: The parties that the license is for. () means everybody.
        bars: The parties that the license is not for.
    """

    line: int
    permits: tuple[tuple[str, int], ...] | None
    prohibits: tuple[tuple[str, int], ...]
    condition: int
    limits: tuple[Party, ...]
    bars: tuple[Party, ...]

    def unmet(self, users: Collection[str]) -> int:
        """Return the line of the first condition that is not known to be met, or 0.

        Conditions are `condition` and `limits`. `users` are the users of the content.
        """
        return self.condition or next(
            (limit.line for limit in self.limits if not limit.has(users)), 0
        )


class Scope(NamedTuple):
    """One `content` (section-3.3), or one `alternate` of a content (section-3.14).

    Attributes:
        pattern: The path pattern in normal form, after the host if the document names one. ""
            matches every resource that refers to the document.
        octets: The number of octets of the path pattern. More octets are narrower.
    """

    pattern: str
    octets: int
    licenses: tuple[License, ...]


class RslDocument(NamedTuple):
    """One document.

    Attributes:
        scopes: Empty if the document is invalid.
        max_age: The time after which the document is fetched again, and so is the file or page that
            refers to it (section-3.2.1).
        problem: The line that makes the document invalid. 0 if the document is valid.
    """

    scopes: tuple[Scope, ...]
    max_age: timedelta
    problem: int
    findings: tuple[Finding, ...]


def host_of(url: str) -> str:
    """Return host and port without "www.", or "" if the URL has none.

    LENIENT: all schemes of one host are one site.
    """
    return full_host_of(url).removeprefix("www.")


def full_host_of(url: str) -> str:
    """Return host and port without a final dot of the host, or "" if the URL has none."""
    try:
        host, colon, port = origin_of(url).partition("://")[2].partition(":")
    except ValueError:
        return ""
    return host.removesuffix(".") + colon + port


_SEPARATOR = re.compile(r"[\s,;]+")


def parse(
    body: bytes, url: str = "", *, first: int = 1, cut: bool = False, everywhere: bool = False
) -> RslDocument:
    """Read an RSL document. Never raises. The time is linear in the octets.

    `first` is the number of the document's first line, for findings. 0 means that it is unknown.
    `cut` is True if the end of the document is missing. `everywhere` is True if the document is in
    a page: its contents are then about this page.
    """
    return _Reader(url, first, everywhere=everywhere).read(body, cut=cut)


@dataclass(slots=True)
class _Terms:
    """The terms of one license, while it is read.

    Attributes:
        condition: As in `License`.
        permits: Usage -> line. None until a list of usages is read.
        prohibits: Usage -> line.
        limits: Kind of party -> party.
        bars: Kind of party -> words.
        bars_at: Kind of party -> the line of the first bar.
        kinds: The types of the `permits` elements so far.
    """

    condition: int
    permits: dict[str, int] | None = None
    prohibits: dict[str, int] = field(default_factory=dict)
    limits: dict[str, Party] = field(default_factory=dict)
    bars: dict[str, set[str]] = field(default_factory=dict)
    bars_at: dict[str, int] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)


class _Reader:
    """The state of reading one document."""

    def __init__(self, url: str, first: int, *, everywhere: bool) -> None:
        self._first = first
        self._everywhere = everywhere
        self._findings = Findings(url)
        self._lines: Mapping[Any, int] = {}  # element -> line

    def read(self, body: bytes, *, cut: bool) -> RslDocument:
        scopes: tuple[Scope, ...] = ()
        age, problem = DEFAULT_AGE, 0
        try:
            root, self._lines = xml_tree.read(body, cut=cut)
            if local_name(root) != "rsl":
                raise XmlError(f"the document is {local_name(root)}, not rsl", self._lines[root])
            age = self._age(root)
            scopes = tuple(self._scopes(root))
            if not scopes:
                raise XmlError("the document has no content", self._lines[root])
        except XmlError as error:
            scopes, problem = (), error.line or 1
            self._findings.clear()  # an invalid document has only this finding
            self._report(
                "rsl.limit" if error.is_limit else "rsl.syntax",
                "The document licenses nothing: {}.",
                str(error),
                line=problem,
            )
        return RslDocument(scopes, age, problem, tuple(self._findings))

    def _report(self, rule: str, message: str, *quoted: str, line: int) -> None:
        line = self._first + line - 1 if self._first else 0
        self._findings.report(
            rule, message, *(text[:1000].encode(errors="replace") for text in quoted), line=line
        )

    def _age(self, root: Any) -> timedelta:
        max_age = root.get("max-age")
        if max_age is None:
            return DEFAULT_AGE
        if re.fullmatch(r"[0-9]{1,9}", max_age.strip()) and int(max_age):
            return min(timedelta(days=int(max_age)), MAX_AGE)
        self._report(
            "rsl.value",
            "max-age `{}` is not a number of days. It counts as one day.",
            max_age,
            line=self._lines[root],
        )
        return timedelta(days=1)

    def _scopes(self, root: Any) -> Iterator[Scope]:
        odd = self._find_unknown(root, root)  # the line of an unknown condition, or 0
        if namespace(root) != NAMESPACE:
            message = (
                "The namespace is `{}`, so nothing is permitted without an arrangement. "
                "Write `https://rslstandard.org/rsl`."
            )
            self._report("rsl.value", message, namespace(root), line=self._lines[root])
            odd = odd or self._lines[root]
        scopes_left, licenses_left = MAX_SCOPES, MAX_LICENSES
        for content in _children(root, root, "content"):
            licenses_left -= len(content)
            if licenses_left < 0:
                raise XmlError(
                    f"the contents have more than {MAX_LICENSES} elements",
                    self._lines[content],
                    is_limit=True,
                )
            for scope in self._scopes_of(content, root, odd):
                scopes_left -= 1
                if scopes_left < 0:
                    raise XmlError(
                        f"there are more than {MAX_SCOPES} scopes",
                        self._lines[content],
                        is_limit=True,
                    )
                yield scope

    def _scopes_of(self, content: Any, root: Any, odd: int) -> Iterator[Scope]:
        own = self._find_unknown(content, root)  # called even if `odd` is set, for the findings
        odd = odd or own
        for name, harmless in (("server", ""), ("encrypted", "false")):
            if content.get(name, harmless).strip() != harmless:
                odd = odd or self._lines[content]
        licenses = [
            self._license(child, root, odd) for child in _children(content, root, "license")
        ]
        if not licenses:
            self._report(
                "rsl.value",
                "The content has no license, so it licenses nothing. Add a `<license>`.",
                line=self._lines[content],
            )
            licenses = [License(self._lines[content], (), (), odd, (), ())]
        if self._everywhere:
            yield Scope("", 0, tuple(licenses))
            return
        url = content.get("url")
        pattern = _pattern(url)
        if pattern is None:
            message = (
                "url `{}` is neither a URL nor a path. Its prohibitions apply everywhere, "
                "its permissions nowhere."
            )
            self._report("rsl.value", message, url or "", line=self._lines[content])
            pattern, licenses = (
                ("", 0),
                [
                    child if child.permits is None else child._replace(permits=())
                    for child in licenses
                ],
            )
        yield Scope(*pattern, tuple(licenses))
        texts = (own_text(alternate).strip() for alternate in _children(content, root, "alternate"))
        alternates = (_pattern(text, exact=True) for text in texts if text)
        yield from (
            Scope(*pattern, tuple(licenses)) for pattern in dict.fromkeys(alternates) if pattern
        )

    def _find_unknown(self, element: Any, root: Any) -> int:
        """Return the line of the first unknown child or attribute of an element, or 0.

        All of them are reported. Children in other namespaces than RSL's are ignored (section-3).
        """
        children, attributes = VOCABULARY[local_name(element)]
        odd = 0
        for child in _children(element, root):
            if (name := local_name(child)) not in children:
                self._report(
                    "rsl.value",
                    "RSL has no element `{}` here. It counts as an unknown condition.",
                    name,
                    line=self._lines[child],
                )
                odd = odd or self._lines[child]
        for name in sorted(plain_attributes(element).keys() - attributes):
            self._report(
                "rsl.value",
                "RSL has no attribute `{}` here. It counts as an unknown condition.",
                name,
                line=self._lines[element],
            )
            odd = odd or self._lines[element]
        return odd

    def _license(self, license_: Any, root: Any, odd: int) -> License:
        own = self._find_unknown(license_, root)
        terms = _Terms(odd or own)
        for child in _children(license_, root):
            name, kind = local_name(child), child.get("type", "").strip().lower()
            if name == "permits":
                self._permits(terms, kind, child, root)
            elif name in ("prohibits", "prohibit"):
                self._prohibits(terms, kind, child, root)
            elif name == "payment":
                has_more = (
                    len(child)
                    or own_text(child).strip()
                    or plain_attributes(child).keys() - {"type"}
                )
                is_free = kind in ("", "free") and not has_more
                terms.condition = terms.condition or (0 if is_free else self._lines[child])
            elif name == "reporting" or (name == "legal" and kind not in LEGAL_TYPES):
                terms.condition = terms.condition or self._lines[child]
        permits = None if terms.permits is None else tuple(terms.permits.items())
        limits = tuple(terms.limits.values())
        bars = tuple(
            Party(kind, frozenset(words), terms.bars_at[kind]) for kind, words in terms.bars.items()
        )
        return License(
            self._lines[license_],
            permits,
            tuple(terms.prohibits.items()),
            terms.condition,
            limits,
            bars,
        )

    def _permits(self, terms: _Terms, kind: str, permits: Any, root: Any) -> None:
        odd = self._find_unknown(permits, root)
        words = _words(permits)
        if kind in terms.kinds:
            self._report(
                "rsl.value",
                "The license has two `permits` of type `{}`. Write one.",
                kind,
                line=self._lines[permits],
            )
            odd = odd or self._lines[permits]
        if words != own_text(permits).split():
            text = own_text(permits).strip()
            self._report(
                "rsl.value",
                "`{}` is not a list of words. Separate the words by spaces.",
                text,
                line=self._lines[permits],
            )
            odd = odd or self._lines[permits]
        terms.kinds.add(kind)
        if kind in ("user", "geo"):
            parties = frozenset(word.lower() for word in words)
            if "all" not in parties and not (kind == "user" and parties >= USERS):
                terms.limits.setdefault(kind, Party(kind, parties, self._lines[permits]))
        elif kind == "usage":
            terms.permits = terms.permits or {}
            for word in words:
                if self._is_usage(word, permits):
                    terms.permits.setdefault(word, self._lines[permits])
        elif words != ["all"]:
            self._report(
                "rsl.value",
                "The type `{}` of `permits` is unknown. Write usage, user or geo.",
                kind,
                line=self._lines[permits],
            )
            odd = odd or self._lines[permits]
        terms.condition = terms.condition or odd

    def _prohibits(self, terms: _Terms, kind: str, prohibits: Any, root: Any) -> None:
        terms.condition = terms.condition or self._find_unknown(prohibits, root)
        # section-3.4.1: words with a colon belong to other vocabularies.
        words = [word.lower() for word in _words(prohibits) if ":" not in word]
        if not kind and words:
            kind = "user" if USERS.issuperset(words) else "usage"
        if kind in ("user", "geo"):
            parties = frozenset(words)
            if kind == "user" and not parties <= USERS:
                parties = frozenset(("all",))  # an unknown word may mean any user
            if parties:
                terms.bars.setdefault(kind, set()).update(parties)
                terms.bars_at.setdefault(kind, self._lines[prohibits])
        elif kind == "usage":
            for word in words:
                terms.prohibits.setdefault(
                    self._prohibited_usage(word, prohibits), self._lines[prohibits]
                )
        elif words:
            self._report(
                "rsl.value",
                "The type `{}` of `prohibits` is unknown. Write usage, user or geo.",
                kind,
                line=self._lines[prohibits],
            )
            terms.condition = terms.condition or self._lines[prohibits]

    def _is_usage(self, word: str, permits: Any) -> bool:
        if word not in GENERAL:
            self._report(
                "rsl.value",
                "`{}` is not a usage of RSL. It permits nothing.",
                word,
                line=self._lines[permits],
            )
        return word in GENERAL

    def _prohibited_usage(self, word: str, prohibits: Any) -> str:
        usage = PROHIBITED.get(word, "ai-all" if word.startswith("ai") else "all")
        if usage != word:
            self._report(
                "rsl.value",
                f"`{{}}` is not a usage of RSL. It is read as a prohibition of {usage}.",
                word,
                line=self._lines[prohibits],
            )
        return usage


def _words(element: Any) -> list[str]:
    """Return the words of an element. LENIENT: commas may separate words, as in RSL 0.9."""
    return [word for word in _SEPARATOR.split(own_text(element)) if word]


def _children(element: Any, root: Any, name: str = "") -> Iterator[Any]:
    """Return the children of an element in RSL's namespace. `name` restricts them to one name."""
    return (
        child
        for child in element
        if namespace(child) == namespace(root) and name in ("", local_name(child))
    )


def _pattern(url: str | None, *, exact: bool = False) -> tuple[str, int] | None:
    """Return the pattern of a `url`, after its host, and the number of octets of its path.

    For `https://www.example.com/a` these are `example.com/a` and 2. If `exact` is True, the pattern
    ends with `$`, so it matches this path only. None means that `url` is neither a URL nor a path.
    The pattern "" is for every resource that refers to the document (section-4.6.1).
    """
    if url is None:
        return None
    url = trimmed(url.strip().encode("utf-8", "replace")).decode()
    host = ""
    if absolute := without_scheme(url):
        scheme, rest = absolute
        url = f"https://{rest}" if not scheme or "*" in scheme else url
        host = host_of(url)
        url = target_of(url) if host else "-"
    elif url.startswith("/"):
        url = url.partition("#")[0]
    if url and not url.startswith(("/", "*")):
        return None
    path = (
        normal_target(url) + "$"
        if exact
        else normal_pattern(url.rstrip("*").encode("utf-8", "replace"))
    )
    return host + path, len(path)
