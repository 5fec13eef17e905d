"""Decide whether today's policies still permit a record.

    recheck(record, sites, today) -> Rechecked     the record's uses by its tag and today's files

The statements of the page itself still hold, as its tag quotes them. The policy files are read
anew. docs/datasets.md explains each case, and why the stricter answer counts."""

from __future__ import annotations

from comity.dataset.records import Record
from comity.dataset.verify.comparison import Comparison
from comity.dataset.verify.origins import URL_FIELDS, page_url
from comity.dataset.verify.policy_copies import newly_unreachable, other_page
from comity.dataset.verify.replay import Tag
from comity.dataset.verify.result import Cause, Rechecked
from comity.dataset.verify.shared_results import octets_of
from comity.dataset.verify.today import Sites, Today
from comity.policies.syntax.urls import origin_or_empty
from comity.policies.tag import TagError, read_tag


def recheck(record: Record, sites: Sites, today: Today) -> Rechecked:
    """Recheck one record. A doubt is not a permission."""
    url = page_url(record)
    result = Rechecked(url, origin_or_empty(url), "")
    site = sites(result.origin) if url else None
    try:
        raw_tag = today.tags.find(record)
        octets = octets_of(raw_tag.raw)
        if site and octets and (shared := today.alike.find(site, octets, url, today.now)):
            return shared._replace(url=url)
        uses = read_tag(raw_tag.raw).uses
    except TagError as error:
        return _unknown(result, Cause(str(error)))
    tag: Tag = raw_tag.raw
    result = result._replace(agent=tag["agent"])
    if not url:
        return _unknown(
            result,
            Cause("no-url", text=f"neither {' nor '.join(URL_FIELDS)} has an http or https URL"),
        )
    if site is None:
        return _unknown(
            result,
            Cause(
                "no-policies",
                result.origin,
                text="the policy store lacks some of its policy files",
            ),
        )
    if unreachable := newly_unreachable(tag, site):
        return _unknown(result, unreachable)
    if other := other_page(tag, site, sites):
        return _unknown(result, other)
    comparison = Comparison(record, tag, uses, url, site, today)
    result = comparison.complete(result)
    if comparison.is_by_files:
        today.alike.keep(site, octets, comparison.agent, url, today.now, result)
    return result


def _unknown(result: Rechecked, cause: Cause) -> Rechecked:
    return result._replace(refusals=(cause,), is_unknown=True)
