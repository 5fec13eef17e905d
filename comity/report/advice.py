"""Advice on what to do next: the settings that would change most, worked out from the counts of a report.

Nothing here advises to get round what a site asks for. A setting is named where the operator has left something open that is the
operator's to say, or where less would be taken than sites permit."""

from __future__ import annotations

from collections.abc import Container, Iterator

from comity.gate.options import DEFAULT_AGENT, DEFAULTS
from comity.policies.answers.rule import RULES
from comity.report.value import Advice, Report

MOST = 3
BASIC = ("crawl", "follow")  # what was done to get the item, not what is done with it


def advice(report: Report) -> list[Advice]:
    """Return at most MOST, the one that concerns the greatest part of what there is first."""
    entries = [entry for kind in _KINDS for entry in kind(report) if entry.count > 0]
    return sorted(entries, key=lambda entry: (-entry.count / max(1, entry.total), -entry.count))[
        :MOST
    ]


def _decided(report: Report) -> int:
    return report.counts.get("allowed", 0) + report.counts.get("refused", 0)


def _refused(report: Report, rules: Container[str]) -> int:
    return sum(refusal.count for refusal in report.refusals if refusal.rule in rules)


def _name(report: Report) -> Iterator[Advice]:
    """Sites have to know who asks."""
    requests = report.counts.get("sent", 0) + report.counts.get("files", 0)
    if report.source != "crawl":
        return
    if report.agent == DEFAULT_AGENT:
        yield Advice(
            setting="COMITY_AGENT",
            example='COMITY_AGENT = "examplebot"\nUSER_AGENT = "examplebot/1.0 (+https://example.org/bot)"',
            why=f"all requests went out as `{DEFAULT_AGENT}`: no site can address you in its files, or reach you",
            count=requests,
            total=requests,
            of="request",
        )
    elif not any(contact in report.user_agent for contact in ("http://", "https://", "@")):
        yield Advice(
            setting="USER_AGENT",
            example=f'USER_AGENT = "{report.agent}/1.0 (+https://example.org/bot)"',
            why="no request said how to reach you: a site that is troubled can only block you",
            count=requests,
            total=requests,
            of="request",
        )


def _defaults(report: Report) -> Iterator[Advice]:
    """Uses that nobody speaks of, and for which the operator has said nothing either."""
    items = report.counts.get("items", 0)
    settled = {
        name.partition(":")[0].strip()
        for name in report.settings.get("COMITY_DEFAULTS", "").split(",")
    }
    uses = [use for use in report.uses if use.deny_default and use.use not in (*BASIC, *settled)]
    declared = [use for use in uses if use.use in report.uses_declared]
    if uses := declared or ([] if report.uses_declared else uses):
        names = ", ".join(use.use for use in uses[:5])
        yield Advice(
            setting="COMITY_DEFAULTS",
            example="\n".join(
                "COMITY_DEFAULTS = {"
                + ", ".join(f'"{use.use}": "{verdict}"' for use in uses[:5])
                + "}"
                + remark
                for verdict, remark in (("allow", ""), ("deny", "  # or so"))
            ),
            why=f"no source speaks of {names} on these items, and it is refused because you have not said what holds then. What"
            " sites refuse stays refused, whatever you say",
            count=max(use.deny_default for use in uses),
            total=items,
            of="item",
        )


def _elements(report: Report) -> Iterator[Advice]:
    elements = report.elements
    if (
        elements.items > elements.redacted
        and not elements.stripped
        and report.settings.get("COMITY_ELEMENTS", "tag") == "tag"
    ):
        yield Advice(
            setting="COMITY_ELEMENTS",
            example='COMITY_ELEMENTS = "redact"',
            why="these items hold elements that their site refuses for some use; they are named in the tag, and not cut out",
            count=elements.items - elements.redacted,
            total=report.counts.get("items", 0),
            of="item",
        )


def _slow(report: Report) -> Iterator[Advice]:
    late = _refused(report, ["comity.max-delay"]) + report.counts.get("set_aside", 0)
    yield Advice(
        setting="COMITY_MAX_DELAY",
        example="COMITY_MAX_DELAY = 3600",
        why=f"their hosts ask for a longer wait than {report.settings.get('COMITY_MAX_DELAY', DEFAULTS['COMITY_MAX_DELAY'])} s;"
        " with more patience (and JOBDIR, which keeps such requests) they are crawled at the pace that is asked for",
        count=late,
        total=_decided(report) + report.counts.get("set_aside", 0),
        of="request",
    )


def _unfinished(report: Report) -> Iterator[Advice]:
    waiting = report.counts.get("left", 0)
    if report.state not in ("running", "") and not report.settings.get("JOBDIR"):
        yield Advice(
            setting="JOBDIR",
            example='JOBDIR = "crawl-1"',
            why="these requests were still waiting when the crawl ended; with a folder of its own it goes on where it ended",
            count=waiting,
            total=_decided(report) + waiting,
            of="request",
        )


def _timeouts(report: Report) -> Iterator[Advice]:
    late = sum(
        row.count
        for row in report.unreachable.reasons.rows
        if row.name.startswith("no answer within")
    )
    yield Advice(
        setting="COMITY_POLICY_TIMEOUT",
        example="COMITY_POLICY_TIMEOUT = 60",
        why="these sites did not send their policy files in time, and nothing of them is fetched before they do",
        count=late,
        total=report.counts.get("sites", 0),
        of="site",
    )


def _purposes(report: Report) -> Iterator[Advice]:
    if not report.settings.get("COMITY_PURPOSES"):
        yield Advice(
            setting="COMITY_PURPOSES",
            example='COMITY_PURPOSES = "search"',
            why="these requests were refused because sites permit some purposes only and you declared none. Declare what the"
            " crawl is really for",
            count=_refused(report, {name for name, rule in RULES.items() if rule.is_of_purpose}),
            total=_decided(report),
            of="request",
        )


def _arrangements(report: Report) -> Iterator[Advice]:
    yield Advice(
        setting="COMITY_ARRANGEMENTS",
        example='COMITY_ARRANGEMENTS = {"example.com": ["take-down", "re-crawl"]}',
        why="sites ask for these actions, and nothing is done as you have arranged none with them",
        count=report.actions.not_arranged,
        total=max(1, sum(report.actions.number.values())),
        of="action",
    )


def _unusable(report: Report) -> Iterator[Advice]:
    """Sites that refuse every declared use: only they can permit it."""
    unusable = report.counts.get("unusable", 0)
    yield Advice(
        setting="COMITY_ARRANGEMENTS",
        example='COMITY_ARRANGEMENTS = {"example.com": [{"uses": ["train"], "reference": "contract 7"}]}',
        why=f"these sites refuse all of your uses ({', '.join(report.uses_declared)}) and were not crawled. Ask them for a"
        " licence; what they grant goes here",
        count=unusable,
        total=report.counts.get("sites", 0),
        of="site",
    )


def _own_delay(report: Report) -> Iterator[Advice]:
    """A delay of the operator's own that is longer than the default."""
    delay = float(report.settings.get("COMITY_MIN_DELAY", DEFAULTS["COMITY_MIN_DELAY"]))
    requests = sum(
        host.gaps
        for host in report.hosts.listed
        if host.limit is not None and not host.limit.is_stated
    )
    if delay > DEFAULTS["COMITY_MIN_DELAY"]:
        yield Advice(
            setting="COMITY_MIN_DELAY",
            example=f"COMITY_MIN_DELAY = {DEFAULTS['COMITY_MIN_DELAY']}",
            why=f"these requests waited for your own delay of {delay:g} s, and not for one that their sites ask for",
            count=requests,
            total=report.counts.get("sent", 0),
            of="request",
        )


_KINDS = (
    _name,
    _defaults,
    _elements,
    _slow,
    _unfinished,
    _timeouts,
    _purposes,
    _arrangements,
    _unusable,
    _own_delay,
)
