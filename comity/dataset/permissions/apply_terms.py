"""Decide whether a record may be used in certain ways now, and which parts of it.

    apply_terms(record, terms) -> TermsApplied      the usable record, or the cause of its refusal

A tag that cannot be read permits no use. A tag permits no use that it does not list.
docs/datasets.md explains how the specifications are interpreted."""

from __future__ import annotations

from collections.abc import Mapping

from comity.dataset.permissions.expiry import EXPIRED, SUPERSEDED, UNDATED, cause_of_end
from comity.dataset.permissions.terms import (
    CURRENT,
    DEFAULT,
    RefusedError,
    Terms,
    TermsApplied,
    is_licensed,
)
from comity.dataset.permissions.usable_record import UsableRecord
from comity.dataset.records import Record
from comity.dataset.tags.sources import RawTag
from comity.policies.answers.decision import Verdict
from comity.policies.answers.qualifiers import MODIFIABLE
from comity.policies.tag import FREE, Tag, TagError, Use, read_tag


def apply_terms(record: Record, terms: Terms) -> TermsApplied:
    """Return the usable record, without refused parts. If a use is refused, return the cause."""
    try:
        raw_tag = terms.tags.find(record)
        tag = read_tag(raw_tag.raw)
    except TagError as error:
        return TermsApplied(None, str(error))
    try:
        if terms.defaults:
            tag = _by_defaults(tag, terms.defaults)
        uses = _require_uses(record, tag, terms)
        return _usable(record, raw_tag, tag, uses, terms)._replace(read=tag)
    except TagError as error:
        return TermsApplied(None, str(error))
    except RefusedError as refused:
        return TermsApplied(None, refused.cause, refused.reasons, read=tag)


def _by_defaults(tag: Tag, defaults: Mapping[str, Verdict]) -> Tag:
    """Return the tag that the crawl would have written with these defaults.

    Only the verdicts of uses that no site mentions are changed."""
    changed = [
        name for name in defaults if name in tag.uses and _is_silent(tag, name, defaults[name])
    ]
    if not changed:
        return tag
    raw = tag.raw | {"uses": dict(tag.raw["uses"]), "reasons": [*tag.raw["reasons"]]}
    for name in changed:
        spec = tag.reasons_of(tag.uses[name])[0]["spec"]
        text = f"{name}: {defaults[name].value}"
        raw["reasons"].append(
            {
                "rule": DEFAULT,
                "spec": spec,
                "url": "--default",
                "part": "setting",
                "line": 0,
                "text": text,
            }
        )
        use = raw["uses"][name]
        # Further reasons limit the use, and stay.
        indices = [len(raw["reasons"]) - 1, *use["because"][1:]]
        raw["uses"][name] = use | {"verdict": defaults[name].value, "because": indices}
    return read_tag(raw)


def _is_silent(tag: Tag, name: str, default: Verdict) -> bool:
    """Return True if no site mentions the use, and its verdict differs from `default`."""
    reason = tag.reasons_of(tag.uses[name])[0]
    is_by_setting = reason["rule"] == DEFAULT and reason.get("part") == "setting"
    return (
        is_by_setting
        and not tag.raw["uses"][name]["stated"]
        and tag.uses[name].is_allowed is not (default is Verdict.ALLOW)
    )


def _require_uses(record: Record, tag: Tag, terms: Terms) -> list[Use]:
    """Return the requested uses from the tag. RefusedError: one of them is not permitted."""
    if terms.last_fetch and terms.recrawled.is_earlier_fetch(record):
        raise RefusedError(SUPERSEDED)
    uses: list[Use] = []
    for name in terms.uses:
        use = tag.uses.get(name)
        if use is None:
            raise RefusedError(f"not-listed:{name}")
        if not use.is_allowed:
            reasons = tag.reasons_of(use)
            raise RefusedError(f"deny:{reasons[0]['rule']}", reasons)
        if name in CURRENT and terms.recrawled.supersedes(record):
            raise RefusedError(f"{SUPERSEDED}:{name}")
        if name in CURRENT and terms.recrawled.may_supersede(record):
            raise RefusedError(f"{UNDATED}:{name}")
        cause = cause_of_end(use, record, terms.now, terms.recrawled)
        if cause:
            raise RefusedError(f"{cause}:{name}", tag.reasons_of(use))
        uses.append(use)
    # A record that may no longer be kept may not be used either.
    preserve = tag.uses["preserve"]
    cause = (
        cause_of_end(preserve, record, terms.now, terms.recrawled) if preserve.is_allowed else ""
    )
    if cause in (EXPIRED, SUPERSEDED):
        raise RefusedError(f"{cause}:preserve", tag.reasons_of(preserve))
    for name, modifications in terms.modifications.items():
        prohibiting = [
            use
            for other in (name, *MODIFIABLE)
            if (use := tag.uses.get(other)) and _prohibits(use, modifications)
        ]
        if prohibiting and not is_licensed(tag, name):
            raise RefusedError(f"modification:{name}", tag.reasons_of(prohibiting[0]))
    return uses


def _prohibits(use: Use, modifications: frozenset[str]) -> bool:
    """Return True if the permission of a use prohibits one of these modifications."""
    return use.is_allowed and not modifications.isdisjoint(use.qualifiers.prohibited_modifications)


def _usable(
    record: Record, raw_tag: RawTag, tag: Tag, uses: list[Use], terms: Terms
) -> TermsApplied:
    """Return the record without refused or excessive parts, and with its required additions."""
    usable = UsableRecord(record, raw_tag, tag, uses, terms)
    if tag.elements:
        usable.cut_elements()
    if tag.embedded:
        usable.cut_files()
    if any(use.qualifiers is not FREE for use in uses):
        usable.use_instead()
        usable.attribute()
    usable.license()
    usable.cut_length()
    return usable.result()
