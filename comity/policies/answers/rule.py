"""Rules: what a decision or a finding may name as its reason, with its specification.

Formats bring their rules (`Format.rules`); those of comity's own stand here. The tests hold that every rule is documented in
docs/rules.md and proved by a test."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


class Effect(enum.Enum):
    """The effect on a request, or a use, of having the rule among its reasons."""

    ALLOWS = "allows"
    REFUSES = "refuses"
    LIMITS = "limits"  # it may be done, but not now, or not without restrictions
    SILENT = "silent"  # nothing is stated
    FINDING = "finding"  # the author of a policy should know; no verdict changes


ALLOWS: Final = Effect.ALLOWS
REFUSES: Final = Effect.REFUSES
LIMITS: Final = Effect.LIMITS
SILENT: Final = Effect.SILENT
FINDING: Final = Effect.FINDING


class Severity(enum.Enum):
    """The weight of a finding for who writes the file."""

    ERROR = "error"  # it is outside the grammar, or states something else than is plainly meant
    WARNING = "warning"  # it states what it says, but is probably not what is meant, or not to every reader
    INFO = "info"  # nothing changes without it


ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING
INFO: Final = Severity.INFO


@dataclass(frozen=True, slots=True)
class Rule:
    effect: Effect
    spec: str  # "RFC 9309 section-2.2.2"
    summary: str
    status: int = 403  # HTTP status with which a server refuses by it
    depends_on_request: bool = False  # how a request is made, or what comes back, decides: no tag can say whether it holds today
    names_licence: bool = False  # its source is a licence
    is_unreachable: bool = False  # a policy file cannot be had: nobody knows what it states
    is_missing_resource: bool = False  # what a permission asks to use, or to include, is not there
    is_of_purpose: bool = False  # what the request is made for decides, as the operator declares it
    severity: Severity = Severity.WARNING  # of a finding


RULES: dict[str, Rule] = {}  # those of all formats, and our own; filled by `declare`


def declare(rules: Mapping[str, Rule]) -> None:
    """Add rules to RULES. ValueError where an id is there already."""
    if duplicates := RULES.keys() & rules:
        raise ValueError(f"rule `{min(duplicates)}` is declared twice")
    RULES.update(rules)


def is_silent(rule: str) -> bool:
    """Return whether nothing is stated where this is the reason."""
    return rule in RULES and RULES[rule].effect is SILENT


def refuses(rule: str) -> bool:
    """Return whether a reason by this rule refuses. Of a rule that nobody knows nothing better is known."""
    return rule not in RULES or RULES[rule].effect in (REFUSES, FINDING)


def depends_on_request(rule: str) -> bool:
    """Return whether a refusal by this rule may have been none for the request that was made: no tag tells how that was."""
    return rule in RULES and RULES[rule].depends_on_request


def of_missing_resource(rule: str) -> str:
    """Return the rule that refuses where what a permission by `rule` asks for is not there: that of its format, if it has one."""
    rules = [name for name, candidate in RULES.items() if candidate.is_missing_resource]
    return next(
        (name for name in rules if name.partition(".")[0] == rule.partition(".")[0]), rules[0]
    )


# Ours
declare(
    {
        "comity.arrangement": Rule(
            ALLOWS,
            "comity, docs/uses.md",
            "the operator has arranged it with the site",
            names_licence=True,
        ),
        "comity.more-findings": Rule(
            FINDING, "comity, docs/rules.md", "the file has more findings than are listed"
        ),
        "comity.default": Rule(
            SILENT,
            "comity, docs/uses.md",
            "no source speaks of this use: the operator's default decides",
        ),
        "comity.modification": Rule(
            REFUSES,
            "comity, docs/uses.md",
            "the use is a modification that the page, or a permission to show it, prohibits",
        ),
        "comity.unreachable": Rule(
            REFUSES,
            "comity, docs/uses.md",
            "a policy file that could refuse the use cannot be fetched, and may be there",
            is_unreachable=True,
        ),
        "comity.no-page": Rule(
            REFUSES,
            "comity, docs/uses.md",
            "the item came from no page: no source can speak for it",
        ),
        "comity.no-policies": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "no copy of the site's policies is at hand: nobody knows what they state",
        ),
        "comity.no-date": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "nobody knows when the page was captured, so not by which policies",
        ),
        "comity.no-url": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "the record has no http or https URL: no site can speak for it",
        ),
        "comity.unread": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "the capture of the page is cut off, or cannot be read: nobody knows what it states",
        ),
        "comity.scheme": Rule(
            REFUSES, "comity, docs/rules.md", "only http and https have policies that can be asked"
        ),
        "comity.no-site": Rule(
            ALLOWS,
            "comity, docs/rules.md",
            "data:, file: and s3: name data of the operator's own: no site to ask",
        ),
        "comity.declaration": Rule(
            REFUSES,
            "comity, docs/automation.md",
            "what is declared of the request cannot be understood, or another request would go out than was judged",
        ),
        "comity.changed": Rule(
            REFUSES,
            "comity, docs/scheduler.md",
            "a downloader middleware has changed the URL of a request in its place, to another site's: nobody has judged it",
        ),
        "comity.session": Rule(
            ALLOWS,
            "comity, docs/automation.md",
            "the request goes out without the session that is declared for its host",
        ),
        "comity.browser": Rule(
            REFUSES,
            "comity, docs/browsers.md",
            "the crawl ended before the request of the browser was judged",
        ),
        "comity.part": Rule(
            ALLOWS,
            "comity, docs/browsers.md",
            "a page needs it to be shown, and the page's own decision holds for it: COMITY_BROWSER",
        ),
        "comity.rate": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the client asks more often than the site's files permit",
            status=429,
        ),
        "comity.concurrent": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the client has more requests in flight than the site's files permit",
            status=429,
        ),
        "comity.uncounted": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the requests of the client cannot be counted: nobody knows how often it asked",
            status=503,
        ),
        "comity.long-target": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the target is longer than the guard looks at",
            status=414,
        ),
        "comity.long-fields": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "header fields that decide are longer, or have more values, than the guard looks at",
            status=431,
        ),
        "comity.inner-address": Rule(
            REFUSES,
            "comity, docs/fetching.md",
            "a site leads to a server at an inner address, which the operator has not asked for",
        ),
        "comity.format": Rule(
            REFUSES,
            "comity, docs/formats.md",
            "a format of another package fails: nobody knows what the policy states",
        ),
        "comity.file-status": Rule(
            FINDING,
            "RFC 9309 section-2.3.1",
            "a policy file is answered with a status by which all is refused, or nothing stated",
            severity=ERROR,
        ),
        "comity.file-type": Rule(
            FINDING,
            "RFC 9309 section-2.3",
            "a policy file is served with another media type than it has",
        ),
        "comity.file-encoding": Rule(
            FINDING, "RFC 9309 section-2.3", "a policy file is not in UTF-8, or not served as such"
        ),
        "comity.file-place": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "a policy file is where no crawler asks for it",
            severity=ERROR,
        ),
        "comity.file-moved": Rule(
            FINDING,
            "RFC 9309 section-2.3.1.2",
            "a policy file is redirected: not every crawler follows, and none everywhere",
        ),
        "comity.file-size": Rule(
            FINDING, "RFC 9309 section-2.5", "a policy file is longer than crawlers have to read"
        ),
        "comity.agent-misspelled": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "no crawler is known by this name, and one by nearly the same",
        ),
        "comity.agent-retired": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "a crawler that is not in use any more",
            severity=INFO,
        ),
        "comity.agent-unknown": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "a crawler that is not in the list of known ones",
            severity=INFO,
        ),
        "comity.contradiction": Rule(
            FINDING,
            "comity, docs/uses.md",
            "one file or page permits what another one refuses: it is refused",
        ),
        "comity.other-readers": Rule(
            FINDING,
            "comity, docs/policy-command.md",
            "by this line another reader of robots.txt decides otherwise",
            severity=INFO,
        ),
        "comity.unmatched-element": Rule(
            FINDING,
            "ai.txt paper section-3.2",
            "an element stands in none of the sample pages",
            severity=INFO,
        ),
        "comity.max-delay": Rule(
            REFUSES,
            "comity, docs/settings.md",
            "the wait that the site asks for is longer than COMITY_MAX_DELAY",
        ),
    }
)
