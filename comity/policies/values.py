"""What a policy says, as values: verdicts, reasons, decisions, findings, and who asks.

Nothing here reads a file, a clock or a socket. A decision always carries its reasons, the deciding one first."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from comity.policies.errors import PolicyError
from comity.policies.qualifiers import Qualifiers
from comity.policies.rules import RULES
from comity.policies.vocabulary import Vocabulary


class Verdict(enum.Enum):
    """The answer to "may this be done?". DEFER: not now, see `Decision.not_before`."""

    ALLOW = "allow"
    DEFER = "defer"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a statement was read."""

    url: str
    part: str = "body"  # "body", "status", "header X-Robots-Tag", ...; "setting" for the operator's own word
    line: int = 0  # 1-based, in the bytes as received; 0: no line, it follows from a status or from absence
    text: str = ""  # the statement as written, printable
    sha256: str = ""  # of the file's body, hexadecimal; "" where there is none
    fetched_at: datetime | None = None

    def __str__(self) -> str:
        place = f"{self.url}:{self.line}" if self.line else self.url
        return f"{place}: {self.text!r}" if self.text else place


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule that took part in a decision."""

    rule: str  # a key of `comity.policies.rules.RULES`
    source: Source
    citation: str = ""  # specification and section of the cause, where the rule has several; "": those of the rule

    @property
    def spec(self) -> str:
        """Specification and section, e.g. "RFC 9309 section-2.2.2"."""
        return self.citation or RULES[self.rule].spec

    def __hash__(self) -> int:
        """By what tells most reasons apart: they are put into sets by the dozen for every page."""
        return hash((self.rule, self.source.line, self.source.text))

    def __str__(self) -> str:
        return f"{self.rule} ({self.spec}) at {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """May this request be made? `reasons[0]` decided; `not_before` is set where the verdict is DEFER."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    not_before: datetime | None = None

    def __bool__(self) -> bool:
        raise TypeError("a Decision has no truth value; compare .verdict")

    def __str__(self) -> str:
        until = f" until {self.not_before.isoformat()}" if self.not_before else ""
        return f"{self.verdict.value}{until}: {self.reasons[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDecision(Qualifiers):
    """May the content be used in this way, and with which restrictions? The verdict is ALLOW or DENY."""

    verdict: Verdict
    stated: bool  # False: no source speaks of this use, the operator's default decided
    reasons: tuple[Reason, ...]

    def __bool__(self) -> bool:
        raise TypeError("a UseDecision has no truth value; compare .verdict")

    def __str__(self) -> str:
        return f"{self.verdict.value}: {self.reasons[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in a policy file that its author should know. It never changes a verdict."""

    rule: str  # a key of `comity.policies.rules.RULES`
    message: str
    url: str = ""
    line: int = 0  # 1-based; 0: the file as a whole
    column: int = 0  # 1-based, in octets; 0: the line as a whole

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.url, self.line, self.column) if part)
        return f"{place}: {self.rule}: {self.message}" if place else f"{self.rule}: {self.message}"


# RFC 9309 section-2.2.1
#   product-token = identifier / "*"
#   identifier = 1*(%x2D / %x41-5A / %x5F / %x61-7A)
# LENIENT: digits are accepted, as the tokens of real crawlers have them.
PRODUCT_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


# ACAP 1.0 section-2.5.3.2, section-2.5.5.2.5, section-2.6: what is done by prior arrangement only.
FEATURES = ("must-use-resource", "must-include-resource", "take-down", "re-crawl")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What the operator has arranged with a site."""

    host: str  # "example.com" for all its ports, "example.com:8080", or "*.example.com" for all hosts below it; lower case
    features: frozenset[str] = frozenset()  # of FEATURES
    uses: frozenset[str] = frozenset()  # that are licensed, whatever the site states
    reference: str = ""  # of the licence; it is shown in reasons

    def __post_init__(self) -> None:
        unknown = sorted(self.features.difference(FEATURES))
        if unknown:
            raise PolicyError(f"`{unknown[0]}` cannot be arranged: write {', '.join(FEATURES)}")

    def holds_for(self, url: str) -> bool:
        """Whether it has been arranged with the URL's host."""
        parts = urlsplit(url)
        host, name = parts.netloc.rpartition("@")[2].lower(), parts.hostname or ""
        own = self.host.lower()
        if own.startswith("*."):
            return name.endswith(own[1:]) or host.endswith(own[1:])
        return own in (host, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """A site asks for an action (ACAP 1.0 section-2.6)."""

    action: str  # "take-down" or "re-crawl"
    url: str  # of the resource
    arranged: bool  # False: nothing is done, it is only reported
    reason: Reason


@dataclass(frozen=True, slots=True)
class Agent:
    """Who asks, and what for."""

    token: str  # product token; matched by every format's own rule
    user_agent: str = field(default="", kw_only=True)  # the User-Agent header as sent; "": the token alone
    purposes: tuple[str, ...] = field(default=(), kw_only=True)
    uses: tuple[str, ...] = field(default=(), kw_only=True)  # what will be done with the content
    arrangements: tuple[Arrangement, ...] = field(default=(), kw_only=True)
    # What holds for a use of which no source speaks. A use that is not listed is not permitted.
    defaults: Mapping[str, Verdict] = field(default_factory=dict, kw_only=True, hash=False)
    # What the words of each vocabulary say of each use.
    vocabulary: Vocabulary = field(default_factory=Vocabulary.shipped, kw_only=True, hash=False, repr=False)
    # By which drafts a Content-Usage field is read: draft-thomson-aipref-sup ("usage"), draft-ietf-aipref-vocab ("aipref").
    content_usage: tuple[str, ...] = field(default=("usage", "aipref"), kw_only=True)
    key_header: str = field(default="X-API-Key", kw_only=True)  # the field that carries a key, beside Authorization
    # Whether a site is refused altogether where its automation-preferences.txt cannot be had.
    automation_required: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not PRODUCT_TOKEN.fullmatch(self.token):
            raise PolicyError(
                f"agent `{self.token}` is not a product token: use letters, digits, `_` and `-` only (RFC 9309 section-2.2.1)"
            )

    def has_arranged(self, url: str, feature: str) -> bool:
        """Whether the operator has arranged it with the URL's host."""
        return any(feature in arranged.features and arranged.holds_for(url) for arranged in self.arrangements)

    def licence(self, url: str, use: str) -> Arrangement | None:
        """What the operator has arranged with the URL's host about the use."""
        if not self.arrangements:
            return None
        return next((arranged for arranged in self.arrangements if use in arranged.uses and arranged.holds_for(url)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One policy file as it was had, or why it was not."""

    status: int  # HTTP status of the last hop; 0: no HTTP answer, see `error`
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""  # content decoded, transfer complete
    url: str = ""  # of the last hop; "": where it was asked for
    fetched_at: datetime | None = None  # aware; when the copy was last confirmed by the server
    error: str = ""  # why it could not be had; "" where it was
    oversized: bool = False  # the body was cut at the fetcher's limit
    unreachable_since: datetime | None = None  # set on a last good copy that stands in for a failing server

    def header(self, name: bytes) -> bytes:
        """The first field of that name, or b""."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), b"")
