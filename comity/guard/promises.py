"""The preferences that a request states for its own content, and the promise of the site.

    conflict(requested, promised)     why the site cannot promise the preferences; "": it can

draft-thomson-aipref-sup section-6.2: "Servers SHOULD reject requests that include Content-Usage
unless the same or compatible preferences can be provided to entities that might obtain the included
content." A promise is compatible if it refuses each use that the request refuses, and refuses no
use that the request permits."""

from __future__ import annotations

from collections.abc import Mapping

from comity.policies.agent import CONTENT_USAGE, Agent
from comity.policies.answers.decision import UseDecision, Verdict
from comity.policies.formats.aipref import content_usage
from comity.policies.formats.aipref.short_strings import MAX_FIELD, MAX_LABELS
from comity.policies.site import Site
from comity.policies.syntax.lines import Findings

FIELD = "content-usage"
# Methods whose content a server does not keep (RFC 9110 section-9.2.1).
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))

_ORIGIN = "https://content.invalid"  # not shown: only verdicts are compared
_SITE = Site.from_files(_ORIGIN, {})
_AGENT = Agent("_")
_VERBS = {Verdict.ALLOW: "permits", Verdict.DENY: "refuses"}


def conflict(requested: str, promised: str) -> str:
    """Return why the site cannot promise the preferences of a request, as text. "": it can.

    `requested`: the Content-Usage field of the request. `promised`: the Content-Usage field with
    which the site sends the content to others. If preferences of a request cannot be read, or are
    too many, it is in conflict with all promises but an equal text. A value other than y and n
    cannot be read: it may have been meant as a refusal."""
    if requested.strip() == promised.strip():
        return ""
    findings = Findings("")
    labels = content_usage.read(requested, findings)
    if labels is None or findings or len(requested) > MAX_FIELD or len(labels) >= MAX_LABELS:
        return "it cannot be read"
    of_request, of_site = _uses(requested), _uses(promised)
    for use in _AGENT.vocabulary.uses:
        wanted, given = of_request[use], of_site[use]
        if wanted.stated and _is_conflict(wanted.verdict, given.verdict if given.stated else None):
            return f"it {_VERBS[wanted.verdict]} {use}"
    of_site_by_label = content_usage.read(promised) or {}
    for label, verdict in labels.items():
        is_known = any(_AGENT.vocabulary.has(f"{name}:{label}") for name in CONTENT_USAGE)
        if not is_known and _is_conflict(verdict, of_site_by_label.get(label)):
            return f"it {_VERBS[verdict]} {label}"
    return ""


def _is_conflict(wanted: Verdict, given: Verdict | None) -> bool:
    """Return True if a site that gives this verdict breaks a preference. None: it gives none."""
    if wanted is Verdict.DENY:
        return given is not Verdict.DENY
    return given is Verdict.DENY


def _uses(field: str) -> Mapping[str, UseDecision]:
    octets = field.encode("latin-1", "replace")
    return _SITE.page(_AGENT, _ORIGIN, headers=((b"Content-Usage", octets),)).uses
