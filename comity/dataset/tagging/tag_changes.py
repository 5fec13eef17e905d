"""Changes of a whole tag, by the statements for other crawlers or of another date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comity.policies import Agent
from comity.policies.answers.decision import Reason
from comity.policies.tag import join_tags

Tag = dict[str, Any]


def bound_by_crawl(tag: Tag) -> Tag:
    """Return the tag without permissions if the page may not be fetched.

    Our own crawl would not have the page then. A use stays permitted if the operator has an
    arrangement with the site."""
    crawl = tag["uses"]["crawl"]
    if crawl["verdict"] == "allow":
        return tag
    for part in ("uses", "embedded"):
        for name, use in tag.get(part, {}).items():
            if (
                use["verdict"] == "allow"
                and tag["reasons"][use["because"][0]]["rule"] != "comity.arrangement"
            ):
                tag[part][name] = {"verdict": "deny", "stated": True, "because": crawl["because"]}
    return tag


def with_refusals(agent: Agent, tag: Tag, other: Tag, token: str) -> Tag:
    """Return the tag with the refusals and restrictions of another crawler added.

    `other`: the tag for that crawler. `token`: its product token."""
    own_reasons, reasons = tag["reasons"], [*other["reasons"], *tag["reasons"]]
    shift = len(other["reasons"])
    for number, reason in enumerate(other["reasons"]):
        if reason not in own_reasons:
            reasons[number] = reason | {"agent": token}

    def restricting(part: str) -> Tag:
        uses = {}
        for name, use in other.get(part, {}).items():
            agent_use = tag.get(part, {}).get(name) or tag["uses"].get(name)
            is_refused = use["verdict"] == "deny" and use["stated"]
            if agent_use is None and not is_refused:
                continue
            if is_refused:
                uses[name] = use
            elif agent_use is not None and len(use) > len(("verdict", "stated", "because")):
                uses[name] = use | {"verdict": agent_use["verdict"], "stated": agent_use["stated"]}
        for name, agent_use in tag.get(part, {}).items():
            uses.setdefault(
                name, agent_use | {"because": [shift + number for number in agent_use["because"]]}
            )
        return uses

    parts = {
        part: restricting(part) for part in ("uses", "embedded") if part in other or part in tag
    }
    restrictions = (
        {key: value for key, value in other.items() if key != "embedded"}
        | parts
        | {"reasons": reasons}
    )
    if not restrictions.get("embedded", True):
        del restrictions["embedded"]
    return join_tags(agent, tag, restrictions | {"elements": []})


def join_dates(agent: Agent, tag: Tag, earlier: Tag) -> Tag:
    """Return the tag by the policies of two dates. `earlier`: the tag of the first date."""
    for part in (tag, earlier):
        other = earlier if part is tag else tag
        for reason in part["reasons"]:
            copy = part["policies"].get(reason["url"])
            if (
                copy
                and copy["fetched_at"]
                and _content(other["policies"].get(reason["url"], copy)) != _content(copy)
            ):
                reason["fetched_at"] = copy["fetched_at"]
    joined = join_tags(agent, tag, earlier)
    for url, copy in tag["policies"].items():
        before = earlier["policies"].get(url, copy)
        if before != copy:
            joined["policies"][url] = copy | {"earlier": [before]}
    return joined


def _content(copy: Mapping[str, Any]) -> tuple[Any, ...]:
    return copy["status"], copy["sha256"]


def without_repetitions(tag: Tag) -> Tag:
    """Return the tag with repeated elements removed."""
    elements: list[Any] = []
    for element in tag["elements"]:
        if element not in elements:
            elements.append(element)
    return tag | {"elements": elements}


def without_policies(tag: Tag, missing: Reason) -> Tag:
    """Return the tag with `missing` as a further reason for each use.

    The site's policies are unknown, and the operator has chosen to treat the site as one without
    policies (ALLOW)."""
    source = missing.source
    reason = {
        "rule": missing.rule,
        "spec": missing.spec,
        "url": source.url,
        "part": source.part,
        "line": 0,
        "text": source.text,
    }
    number = len(tag["reasons"])
    for part in ("uses", "embedded"):
        for use in tag.get(part, {}).values():
            use["because"] = [*use["because"], number]
    return tag | {"reasons": [*tag["reasons"], reason]}
