"""What to do next."""

from __future__ import annotations

import pytest

from comity.report.advice import advice
from comity.report.value import (
    Hosts,
    NamedCount,
    Ranking,
    Report,
    ReportedActions,
    ReportedElements,
    ReportedHost,
    ReportedLimit,
    ReportedRefusal,
    ReportedUnreachable,
    ReportedUse,
)


def report(**members: object) -> Report:
    counts = {"allowed": 80, "refused": 20, "sent": 80, "files": 8, "items": 50, "sites": 10}
    named = {
        "agent": "examplebot",
        "user_agent": "examplebot (+https://example.org)",
        "counts": counts,
        "state": "finished",
    }
    return Report(source="crawl", title="a", **{**named, **members})  # type: ignore[arg-type]


def refusal(rule: str, count: int) -> ReportedRefusal:
    return ReportedRefusal(rule=rule, spec="", summary="", count=count)


@pytest.mark.parametrize(
    ("members", "setting", "figures"),
    [
        ({"agent": "comitybot"}, "COMITY_AGENT", (88, 88)),
        ({"user_agent": "examplebot/1.0"}, "USER_AGENT", (88, 88)),
        (
            {"uses": [ReportedUse(use="train", deny_default=40)], "uses_declared": ["train"]},
            "COMITY_DEFAULTS",
            (40, 50),
        ),
        ({"uses": [ReportedUse(use="train", deny_default=40)]}, "COMITY_DEFAULTS", (40, 50)),
        ({"uses": [ReportedUse(use="train", deny_default=40)], "uses_declared": ["index"]}, "", ()),
        (
            {
                "uses": [ReportedUse(use="train", deny_default=40)],
                "settings": {"COMITY_DEFAULTS": "index: allow, train: deny"},
            },
            "",
            (),
        ),
        ({"uses": [ReportedUse(use="train", deny=40)], "uses_declared": ["train"]}, "", ()),
        ({"uses": [ReportedUse(use="follow", deny_default=40)]}, "", ()),
        ({"elements": ReportedElements(items=5)}, "COMITY_ELEMENTS", (5, 50)),
        ({"elements": ReportedElements(items=5, redacted=5)}, "", ()),
        ({"refusals": [refusal("comity.max-delay", 7)]}, "COMITY_MAX_DELAY", (7, 100)),
        ({"refusals": [refusal("automation.purpose", 7)]}, "COMITY_PURPOSES", (7, 100)),
        (
            {
                "refusals": [refusal("automation.purpose", 7)],
                "settings": {"COMITY_PURPOSES": "news"},
            },
            "",
            (),
        ),
        (
            {"refusals": [refusal("robots.disallow", 20), refusal("comity.inner-address", 9)]},
            "",
            (),
        ),
        (
            {
                "unreachable": ReportedUnreachable(
                    number=4,
                    reasons=Ranking(
                        [NamedCount("no answer within 15 seconds", 3), NamedCount("x", 1)]
                    ),
                )
            },
            "COMITY_POLICY_TIMEOUT",
            (3, 10),
        ),
        (
            {"actions": ReportedActions(number={"take-down": 3}, not_arranged=2)},
            "COMITY_ARRANGEMENTS",
            (2, 3),
        ),
        (
            {
                "settings": {"COMITY_MIN_DELAY": "5"},
                "hosts": Hosts(
                    listed=[
                        ReportedHost(
                            host="a",
                            gaps=40,
                            limit=ReportedLimit(requests=1, seconds=5.0, is_stated=False),
                        )
                    ]
                ),
            },
            "COMITY_MIN_DELAY",
            (40, 80),
        ),
        (
            {
                "settings": {"COMITY_MIN_DELAY": "1"},
                "hosts": Hosts(
                    listed=[
                        ReportedHost(
                            host="a",
                            gaps=40,
                            limit=ReportedLimit(requests=1, seconds=1.0, is_stated=False),
                        )
                    ]
                ),
            },
            "",
            (),
        ),
    ],
)
def test_a_setting_is_named_where_its_counts_say_so(
    members: dict[str, object], setting: str, figures: tuple[int, ...]
) -> None:
    found = advice(report(**members))
    assert [entry.setting for entry in found] == ([setting] if setting else [])
    assert [(entry.count, entry.total) for entry in found] == ([figures] if setting else [])
    assert all(setting.split("_")[-1] in entry.example for entry in found)


def test_the_three_that_concern_most_are_named_the_first_first() -> None:
    members: dict[str, object] = {
        "agent": "comitybot",
        "uses": [ReportedUse(use="train", deny_default=40)],
        "elements": ReportedElements(items=5),
        "refusals": [refusal("automation.purpose", 7)],
        "actions": ReportedActions(number={"take-down": 100}, not_arranged=1),
    }
    assert [entry.setting for entry in advice(report(**members))] == [
        "COMITY_AGENT",
        "COMITY_DEFAULTS",
        "COMITY_ELEMENTS",
    ]


def test_what_is_left_and_sites_that_refuse_all_uses() -> None:
    counts = {"allowed": 80, "refused": 20, "left": 100, "unusable": 4, "sites": 10}
    assert [entry.setting for entry in advice(report(counts=counts))] == [
        "JOBDIR",
        "COMITY_ARRANGEMENTS",
    ]
    assert [entry.setting for entry in advice(report(counts=counts, settings={"JOBDIR": "a"}))] == [
        "COMITY_ARRANGEMENTS"
    ]


def test_of_items_alone_nothing_is_said_of_requests() -> None:
    assert advice(Report(source="items", title="a", agent="comitybot", counts={"items": 3})) == []
