"""Advice for the next crawl: the settings that would change most, by the counts of a report.

Advice never suggests to ignore a site's request. It names a setting if the operator has left open a
question that is theirs to answer, or if the crawl takes less than sites permit."""

from __future__ import annotations

from collections.abc import Container, Iterator

from comity.gate.options import DEFAULTS
from comity.gate.settings import DEFAULT_AGENT
from comity.policies.answers.rule import RULES
from comity.report.value import Advice, Report

MOST = 3
BASIC = ("crawl", "follow")  # uses that fetched the item, not uses of the item


def advice(report: Report) -> list[Advice]:
    """Return at most MOST pieces of advice. The one that affects the greatest part is first."""
    entries = [entry for kind in _KINDS for entry in kind(report) if entry.count > 0]
    return sorted(entries, key=lambda entry: (-entry.count / max(1, entry.total), -entry.count))[
        :MOST
    ]


def _decision_count(report: Report) -> int:
    return report.counts.get("allowed", 0) + report.counts.get("refused", 0)


def _refusal_count(report: Report, rules: Container[str]) -> int:
    return sum(refusal.count for refusal in report.refusals if refusal.rule in rules)


def _name(report: Report) -> Iterator[Advice]:
    """Advise a name and an address, which sites need to know."""
    requests = report.counts.get("sent", 0) + report.counts.get("files", 0)
    if report.source != "crawl":
        return
    if report.agent == DEFAULT_AGENT:
        yield Advice(
            setting="COMITY_AGENT",
            example=(
                'COMITY_AGENT = "examplebot"\n'
                'USER_AGENT = "examplebot/1.0 (+https://example.org/bot)"'
            ),
            why=f"all requests went out as `{DEFAULT_AGENT}`: no site can address you in its files,"
            " or reach you",
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
    """Advise defaults for uses about which neither sites nor the operator state anything."""
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
            why=f"no source states anything about {names} on these items, and it is refused because"
            " you have set no default. Uses that sites refuse stay refused with any default",
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
            why="these items hold elements that their site refuses for some use; they are named in"
            " the tag, and not cut out",
            count=elements.items - elements.redacted,
            total=report.counts.get("items", 0),
            of="item",
        )


def _slow(report: Report) -> Iterator[Advice]:
    late = _refusal_count(report, ["comity.max-delay"]) + report.counts.get("set_aside", 0)
    delay = report.settings.get("COMITY_MAX_DELAY", DEFAULTS["COMITY_MAX_DELAY"])
    yield Advice(
        setting="COMITY_MAX_DELAY",
        example="COMITY_MAX_DELAY = 3600",
        why=f"their hosts ask for a longer wait than {delay} s; with more patience (and JOBDIR,"
        " which keeps such requests) they are crawled at the requested pace",
        count=late,
        total=_decision_count(report) + report.counts.get("set_aside", 0),
        of="request",
    )


def _waiting(report: Report) -> Iterator[Advice]:
    waiting = report.counts.get("left", 0)
    if report.state not in ("running", "") and not report.settings.get("JOBDIR"):
        yield Advice(
            setting="JOBDIR",
            example='JOBDIR = "crawl-1"',
            why="these requests were still waiting when the crawl ended; with a folder of its own"
            " it continues from there",
            count=waiting,
            total=_decision_count(report) + waiting,
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
        why="these sites did not send their policy files in time, and their pages are not fetched"
        " before they do",
        count=late,
        total=report.counts.get("sites", 0),
        of="site",
    )


def _purposes(report: Report) -> Iterator[Advice]:
    if not report.settings.get("COMITY_PURPOSES"):
        yield Advice(
            setting="COMITY_PURPOSES",
            example='COMITY_PURPOSES = "search"',
            why="these requests were refused because sites permit some purposes only and you"
            " declared none. Declare the real purpose of the crawl",
            count=_refusal_count(
                report, {name for name, rule in RULES.items() if rule.is_of_purpose}
            ),
            total=_decision_count(report),
            of="request",
        )


def _arrangements(report: Report) -> Iterator[Advice]:
    yield Advice(
        setting="COMITY_ARRANGEMENTS",
        example='COMITY_ARRANGEMENTS = {"example.com": ["take-down", "re-crawl"]}',
        why="sites request these actions, and nothing is done because you have arranged none with"
        " them",
        count=report.actions.not_arranged,
        total=max(1, sum(report.actions.number.values())),
        of="action",
    )


def _unusable(report: Report) -> Iterator[Advice]:
    """Advise arrangements with sites that refuse every declared use: only they can permit it."""
    unusable = report.counts.get("unusable", 0)
    yield Advice(
        setting="COMITY_ARRANGEMENTS",
        example=(
            'COMITY_ARRANGEMENTS = {"example.com":'
            ' [{"uses": ["train"], "reference": "contract 7"}]}'
        ),
        why=f"these sites refuse all of your uses ({', '.join(report.uses_declared)}) and were not"
        " crawled. Ask them for a licence, and write it here",
        count=unusable,
        total=report.counts.get("sites", 0),
        of="site",
    )


def _own_delay(report: Report) -> Iterator[Advice]:
    """Advise the default delay if the operator's own is longer."""
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
            why=f"these requests waited for your own delay of {delay:g} s, which their sites do not"
            " ask for",
            count=requests,
            total=report.counts.get("sent", 0),
            of="request",
        )


_KINDS = (
    _name,
    _defaults,
    _elements,
    _slow,
    _waiting,
    _timeouts,
    _purposes,
    _arrangements,
    _unusable,
    _own_delay,
)
