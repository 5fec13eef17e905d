"""Several answers to one question become one: the first sentences of docs/rules.md, and MEET-1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from comity.policies import Agent, Site, Verdict
from comity.policies.answers import combining
from comity.policies.answers.combining import most_restrictive, strictest
from comity.policies.answers.decision import Decision, Reason, Source, UseDecision
from comity.policies.answers.qualifiers import Resource

MORNING, EVENING = (datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in (8, 20))
ALLOW, DEFER, DENY = Verdict.ALLOW, Verdict.DEFER, Verdict.DENY


def reason(rule: str, line: int = 1) -> Reason:
    return Reason(rule=rule, source=Source(url="https://example.com/robots.txt", line=line))


def decision(verdict: Verdict, *rules: str, not_before: datetime | None = None) -> Decision:
    return Decision(verdict=verdict, reasons=tuple(map(reason, rules)), not_before=not_before)


ALLOWED = decision(ALLOW, "robots.allow")
DEFERRED = decision(DEFER, "robots.visit-time", not_before=MORNING)
DENIED = decision(DENY, "robots.disallow")
SILENT = decision(ALLOW, "robots.no-match")

# Decisions in any order; the verdict, the rules of the reasons, and the time.
COMBINATIONS: list[tuple[Sequence[Decision], Verdict, set[str], datetime | None]] = [
    ([ALLOWED], ALLOW, {"robots.allow"}, None),
    ([DEFERRED], DEFER, {"robots.visit-time"}, MORNING),
    ([DENIED], DENY, {"robots.disallow"}, None),
    ([SILENT], ALLOW, {"robots.no-match"}, None),
    # "Deny beats defer, and defer beats allow."
    ([DENIED, DEFERRED], DENY, {"robots.disallow"}, None),
    ([DENIED, ALLOWED], DENY, {"robots.disallow"}, None),
    ([DEFERRED, ALLOWED], DEFER, {"robots.visit-time"}, MORNING),
    ([DENIED, DEFERRED, ALLOWED], DENY, {"robots.disallow"}, None),
    # All reasons with the verdict are kept, each once.
    ([DENIED, decision(DENY, "acap.disallow")], DENY, {"robots.disallow", "acap.disallow"}, None),
    (
        [ALLOWED, decision(ALLOW, "acap.allow", "robots.allow")],
        ALLOW,
        {"robots.allow", "acap.allow"},
        None,
    ),
    # A request that has to wait for several times waits for the last of them.
    (
        [DEFERRED, decision(DEFER, "robots.visit-time", not_before=EVENING)],
        DEFER,
        {"robots.visit-time"},
        EVENING,
    ),
    # Silence is a reason only if nothing is stated.
    ([SILENT, ALLOWED], ALLOW, {"robots.allow"}, None),
    ([SILENT, DENIED], DENY, {"robots.disallow"}, None),
    ([SILENT, DEFERRED], DEFER, {"robots.visit-time"}, MORNING),
]


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize(("decisions", "verdict", "rules", "not_before"), COMBINATIONS)
def test_deny_beats_defer_and_defer_beats_allow(
    decisions: Sequence[Decision], verdict: Verdict, rules: set[str], not_before: datetime | None
) -> None:
    for ordered in permutations(decisions):
        both = strictest(ordered)
        assert (both.verdict, both.not_before) == (verdict, not_before)
        assert sorted(each.rule for each in both.reasons) == sorted(rules)


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize(
    "silence",
    ["robots.no-match", "robots.no-group", "robots.unavailable", "acap.ignore-conventional"],
)
def test_silence_counts_only_where_nothing_is_stated(silence: str) -> None:
    quiet, other = (
        decision(ALLOW, silence),
        decision(ALLOW, "robots.unavailable", "robots.no-group"),
    )
    assert strictest([quiet, ALLOWED]).reasons == ALLOWED.reasons
    assert strictest([quiet, other]).reasons == quiet.reasons


@pytest.mark.requirement("MEET-1")
def test_a_request_that_is_refused_does_not_wait() -> None:
    """Otherwise it would be asked for again at each opening."""
    robots = b"User-agent: *\nVisit-time: 0200-0500\n"
    site = Site.from_files(
        "https://example.com",
        {"/robots.txt": robots + b"ACAP-crawler: *\nACAP-disallow-crawl: /closed\n"},
    )
    agent, noon = Agent("testbot"), datetime(2026, 11, 21, 12, tzinfo=UTC)
    refused = site.access(agent, "https://example.com/closed", now=noon)
    assert (refused.verdict, refused.not_before) == (DENY, None)
    assert [each.rule for each in refused.reasons] == ["acap.disallow"]
    assert site.access(agent, "https://example.com/open", now=noon).not_before == noon + timedelta(
        hours=14
    )


def use(verdict: Verdict, *rules: str, max_words: int | None = None) -> UseDecision:
    return UseDecision(
        verdict=verdict, stated=True, reasons=tuple(map(reason, rules)), max_words=max_words
    )


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    ("decisions", "want"),
    [
        ([use(ALLOW, "usage.allow", max_words=5)], use(ALLOW, "usage.allow", max_words=5)),
        ([use(DENY, "usage.disallow")], use(DENY, "usage.disallow")),
        # Any refusal refuses, is the first reason, and has no conditions.
        (
            [
                use(ALLOW, "usage.allow", max_words=5),
                use(DENY, "tdmrep.reserved"),
                use(DENY, "usage.disallow"),
            ],
            use(DENY, "tdmrep.reserved", "usage.disallow", "usage.allow"),
        ),
        # Permissions have the conditions of all. Each reason is kept once.
        (
            [
                use(ALLOW, "usage.allow", max_words=9),
                use(ALLOW, "acap.allow", "usage.allow", max_words=5),
            ],
            use(ALLOW, "usage.allow", "acap.allow", max_words=5),
        ),
        (
            [use(ALLOW, "usage.allow", max_words=5), use(ALLOW, "acap.allow")],
            use(ALLOW, "usage.allow", "acap.allow", max_words=5),
        ),
        (
            [use(ALLOW, "usage.allow"), use(ALLOW, "acap.allow", max_words=5)],
            use(ALLOW, "usage.allow", "acap.allow", max_words=5),
        ),
    ],
)
def test_a_use_is_permitted_where_nobody_refuses_under_the_conditions_of_all(
    decisions: Sequence[UseDecision], want: UseDecision
) -> None:
    assert most_restrictive(decisions) == want


def test_a_decision_of_one_page_is_not_remembered() -> None:
    """It may hold a resource, and no other page asks for it."""
    without = UseDecision(verdict=ALLOW, stated=True, reasons=(reason("acap.allow"),))
    for of_page in (
        replace(without, until=EVENING),
        replace(without, must_use=(Resource(uri="https://example.com/r"),)),
    ):
        before = len(combining._COMBINED)
        assert most_restrictive((of_page, without)) is not most_restrictive((of_page, without))
        assert len(combining._COMBINED) == before
    assert most_restrictive((without, without)) is most_restrictive((without, without))
