"""The agent that asks: its token, its uses, and the operator's arrangements with sites."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from comity.policies.answers.decision import Reason, Source, UseDecision, Verdict
from comity.policies.answers.errors import PolicyError
from comity.policies.registry import NO_OPT_OUTS, OptOuts
from comity.policies.vocabulary.table import Vocabulary

# RFC 9309 section-2.2.1
#   product-token = identifier / "*"
#   identifier = 1*(%x2D / %x41-5A / %x5F / %x61-7A)
# LENIENT: digits are accepted, because the tokens of real crawlers contain them.
PRODUCT_TOKEN = re.compile(r"[A-Za-z0-9_-]+")

# Links may be followed unless a site objects. A refusal only drops the links (MEET-2).
_FOLLOW_DEFAULT = {"follow": Verdict.ALLOW}

# Features that need a prior arrangement (ACAP 1.0 section-2.5.3.2, section-2.5.5.2.5, section-2.6).
FEATURES = ("must-use-resource", "must-include-resource", "take-down", "re-crawl")

# The two drafts that define a Content-Usage field, each differently: draft-thomson-aipref-sup and
# draft-ietf-aipref-vocab.
CONTENT_USAGE = ("usage", "aipref")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An agreement between the operator and a site.

    Attributes:
        host: in lower case. "example.com" for all its ports, "example.com:8080" for one port, or
            `*.example.com` for all hosts below it.
        features: features that the site agreed to, of FEATURES.
        uses: licensed uses. The site's statements do not refuse them.
        reference: of the licence, shown in reasons. "": none.

    PolicyError: a feature is unknown."""

    host: str
    features: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    reference: str = ""

    def __post_init__(self) -> None:
        unknown = sorted(self.features.difference(FEATURES))
        if unknown:
            raise PolicyError(f"`{unknown[0]}` cannot be arranged: write {', '.join(FEATURES)}")

    def holds_for(self, url: str) -> bool:
        """Return True if the arrangement is with the URL's host."""
        parts = urlsplit(url)
        host, name = parts.netloc.rpartition("@")[2].lower(), parts.hostname or ""
        pattern = self.host.lower()
        if pattern.startswith("*."):
            return name.endswith(pattern[1:]) or host.endswith(pattern[1:])
        return pattern in (host, name)


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent that asks, and its uses.

        agent = Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW})
        page = Site.from_files("https://example.com", files).page(agent, url, body=body)
        page.uses["train"].verdict

    Attributes:
        token: product token. Each format matches it by its own rule.
        user_agent: value of the User-Agent header field. "": the token alone.
        purposes: purposes of its requests.
        uses: what the operator will do with the content.
        arrangements: the operator's agreements with sites.
        opt_outs: registries of opt-outs, which refuse beside the sites' own statements.
        defaults: use -> verdict if no source mentions the use. Uses that are missing here are
            refused.
        vocabulary: meaning of the terms of each vocabulary for each use.
        content_usage: drafts by which a Content-Usage field is read, of CONTENT_USAGE.
        key_header: name of the header field that carries a key, besides Authorization.
        automation_required: True to refuse a site completely if its
            automation-preferences.txt cannot be fetched.
        denies_unreachable: True to deny the uses that a policy file could refuse while the file
            cannot be fetched. False: the defaults decide.

    PolicyError: the token is not a product token."""

    token: str
    user_agent: str = field(default="", kw_only=True)
    purposes: tuple[str, ...] = field(default=(), kw_only=True)
    uses: tuple[str, ...] = field(default=(), kw_only=True)
    arrangements: tuple[Arrangement, ...] = field(default=(), kw_only=True)
    opt_outs: OptOuts = field(default=NO_OPT_OUTS, kw_only=True, repr=False)
    defaults: Mapping[str, Verdict] = field(default_factory=dict, kw_only=True, hash=False)
    vocabulary: Vocabulary = field(
        default_factory=Vocabulary.shipped, kw_only=True, hash=False, repr=False
    )
    content_usage: tuple[str, ...] = field(default=CONTENT_USAGE, kw_only=True)
    key_header: str = field(default="X-API-Key", kw_only=True)
    automation_required: bool = field(default=False, kw_only=True)
    denies_unreachable: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not PRODUCT_TOKEN.fullmatch(self.token):
            raise PolicyError(
                f"agent `{self.token}` is not a product token: use letters, digits, `_` and `-`"
                " only (RFC 9309 section-2.2.1)"
            )

    def has_arranged(self, url: str, feature: str) -> bool:
        """Return True if the operator has arranged the feature with the URL's host."""
        return any(
            feature in arranged.features and arranged.holds_for(url)
            for arranged in self.arrangements
        )

    def licence(self, url: str, use: str) -> Arrangement | None:
        """Return the operator's licence for the use from the URL's host; None: there is none."""
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
        """Return the decision by the operator's default.

        `is_asked` is False if no source was asked about the use."""
        default = (_FOLLOW_DEFAULT | dict(self.defaults)).get(use)
        text = f"{use}: {default.value}" if default else f"no default for {use}"
        part = "setting" if is_asked or default is Verdict.ALLOW else "item"
        return _default_decision(default or Verdict.DENY, part, text)


@lru_cache(maxsize=1024)  # each page asks for the defaults of the basic uses
def _default_decision(verdict: Verdict, part: str, text: str) -> UseDecision:
    source = Source(url="COMITY_DEFAULTS", part=part, text=text)
    reason = Reason(rule="comity.default", source=source)
    return UseDecision(verdict=verdict, stated=False, reasons=(reason,))
