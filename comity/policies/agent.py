"""The agent that asks: its token, its uses, and the operator's arrangements with sites."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from comity.policies.answers.decision import Reason, Source, UseDecision, Verdict
from comity.policies.answers.errors import PolicyError
from comity.policies.vocabulary.table import Vocabulary

# RFC 9309 section-2.2.1
#   product-token = identifier / "*"
#   identifier = 1*(%x2D / %x41-5A / %x5F / %x61-7A)
# LENIENT: digits are accepted, as the tokens of real crawlers have them.
PRODUCT_TOKEN = re.compile(r"[A-Za-z0-9_-]+")

_FOLLOW_DEFAULT = {
    "follow": Verdict.ALLOW
}  # no statement against following is none; MEET-2 drops links on refusal only

# ACAP 1.0 section-2.5.3.2, section-2.5.5.2.5, section-2.6: what is done by prior arrangement only.
FEATURES = ("must-use-resource", "must-include-resource", "take-down", "re-crawl")

# The drafts by which a Content-Usage field may be read, each in its own way: draft-thomson-aipref-sup, draft-ietf-aipref-vocab.
CONTENT_USAGE = ("usage", "aipref")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An arrangement of the operator with a site."""

    host: str  # "example.com" for all its ports, "example.com:8080", or "*.example.com" for all hosts below it; lower case
    features: frozenset[str] = frozenset()  # of FEATURES
    uses: frozenset[str] = frozenset()  # that are licensed, whatever the site states
    reference: str = ""  # of the licence; it is shown in reasons

    def __post_init__(self) -> None:
        unknown = sorted(self.features.difference(FEATURES))
        if unknown:
            raise PolicyError(f"`{unknown[0]}` cannot be arranged: write {', '.join(FEATURES)}")

    def holds_for(self, url: str) -> bool:
        """Return whether the arrangement is with the URL's host."""
        parts = urlsplit(url)
        host, name = parts.netloc.rpartition("@")[2].lower(), parts.hostname or ""
        pattern = self.host.lower()
        if pattern.startswith("*."):
            return name.endswith(pattern[1:]) or host.endswith(pattern[1:])
        return pattern in (host, name)


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent that asks, and its uses."""

    token: str  # product token; matched by every format's own rule
    user_agent: str = field(
        default="", kw_only=True
    )  # the User-Agent header as sent; "": the token alone
    purposes: tuple[str, ...] = field(default=(), kw_only=True)
    uses: tuple[str, ...] = field(default=(), kw_only=True)  # what will be done with the content
    arrangements: tuple[Arrangement, ...] = field(default=(), kw_only=True)
    # What holds for a use of which no source speaks. A use that is not listed is not permitted.
    defaults: Mapping[str, Verdict] = field(default_factory=dict, kw_only=True, hash=False)
    # What the words of each vocabulary say of each use.
    vocabulary: Vocabulary = field(
        default_factory=Vocabulary.shipped, kw_only=True, hash=False, repr=False
    )
    content_usage: tuple[str, ...] = field(default=CONTENT_USAGE, kw_only=True)
    key_header: str = field(
        default="X-API-Key", kw_only=True
    )  # the field that carries a key, beside Authorization
    # Whether a site is refused altogether where its automation-preferences.txt cannot be had.
    automation_required: bool = field(default=False, kw_only=True)
    # Whether the uses that a policy file could refuse are denied while the file cannot be fetched.
    # False: the defaults decide.
    denies_unreachable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not PRODUCT_TOKEN.fullmatch(self.token):
            raise PolicyError(
                f"agent `{self.token}` is not a product token: use letters, digits, `_` and `-` only (RFC 9309 section-2.2.1)"
            )

    def has_arranged(self, url: str, feature: str) -> bool:
        """Return whether the operator has arranged the feature with the URL's host."""
        return any(
            feature in arranged.features and arranged.holds_for(url)
            for arranged in self.arrangements
        )

    def licence(self, url: str, use: str) -> Arrangement | None:
        """Return the operator's arrangement with the URL's host about the use; None: there is none."""
        if not self.arrangements:
            return None
        return next(
            (
                arranged
                for arranged in self.arrangements
                if use in arranged.uses and arranged.holds_for(url)
            ),
            None,
        )

    def default_of(self, use: str, *, is_asked: bool = True) -> UseDecision:
        """The decision by the operator's default. `is_asked`: the sources were, and none speaks of the use."""
        default = (_FOLLOW_DEFAULT | dict(self.defaults)).get(use)
        text = f"{use}: {default.value}" if default else f"no default for {use}"
        part = "setting" if is_asked or default is Verdict.ALLOW else "item"
        source = Source(url="COMITY_DEFAULTS", part=part, text=text)
        return UseDecision(
            verdict=default or Verdict.DENY,
            stated=False,
            reasons=(Reason(rule="comity.default", source=source),),
        )
