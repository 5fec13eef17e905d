"""Reports for the tests and for the pictures of docs/report.md, made of what a collector is told."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from scrapy.settings import Settings

from comity.gate.options import Options
from comity.policies import ActionRequest, Decision, Reason, Source, Verdict
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.windows import StatedLimit, Window
from comity.report import collector as collector_module
from comity.report.collector import Collector
from comity.report.crawled import CrawlFacts, report_of
from comity.report.value import Report

# What a site may write, or be called, to do something in the page of who crawled it.
HOSTILE = (
    "</q></template></style><script>alert(1)</script>",
    '"><img src=http://evil.example/a onerror=alert(2)>',
    "javascript:alert(3)//",
    "<!--", "]]>", "&lt;script&gt;", "{{ 7 * 7 }}", "{% raw %}",
    "\u202etxt.stobor\u202c", "\u2066\u200b\ufeff\u0000\u001b[31m",
    "a" * 100_000,
    "\ud800",
)  # fmt: skip

ROBOTS = "User-agent: *"
RULES = (
    ("robots.disallow", "Disallow: /private/", 4),
    ("automation.purpose", "allowed-purposes: research", 31),
)


class Clock:
    """A clock that is put forward."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Limiter:
    """As the pace has it."""

    def __init__(self, name: str, *windows: Window, floor: tuple[Window, ...] = ()) -> None:
        self.name, self.windows, self.floor, self.in_flight = name, (*floor, *windows), floor, 0
        self.unread: tuple[StatedLimit, ...] = ()


def reason(rule: str, url: str, line: int, text: str, part: str = "body") -> Reason:
    return Reason(rule=rule, source=Source(url=url, line=line, text=text, part=part))


def tag(origin: str, number: int, text: str = "Content-Usage: train-ai=n") -> dict[str, Any]:
    uses = {
        "crawl": {"verdict": "allow", "stated": True, "because": [0]},
        "follow": {"verdict": "allow", "stated": False, "because": [1]},
        "index": {
            "verdict": "deny" if number % 15 == 5 else "allow",
            "stated": number % 3 > 0,
            "because": [0],
        },
        "search": {"verdict": "allow", "stated": True, "because": [3], "must_include": [CREDIT]},
        "train-ai": {"verdict": "deny", "stated": number % 4 > 0, "because": [2]},
    }
    reasons = [
        {
            "rule": "robots.allow",
            "spec": "",
            "url": f"{origin}/robots.txt",
            "line": 2,
            "text": "Allow: /",
        },
        {
            "rule": "comity.default",
            "spec": "",
            "url": "COMITY_DEFAULTS",
            "part": "setting",
            "line": 0,
            "text": "follow: allow",
        },
        {
            "rule": "content-usage.disallow",
            "spec": "",
            "url": f"{origin}/robots.txt",
            "line": 5,
            "text": text,
        },
        {
            "rule": "rsl.permits",
            "spec": "RSL 1.0",
            "url": f"{origin}/license.xml",
            "line": 3,
            "text": "<permits>search</permits>",
        },
        {
            "rule": "ait.disallow",
            "spec": "",
            "url": f"{origin}/ai.txt",
            "line": 5,
            "text": "Disallow: Train",
        },
    ]
    element = {
        "selector": "blockquote",
        "type": "html",
        "deny": ["train"],
        "guide": [],
        "spans": [],
        "because": [4],
    }
    return {
        "schema": 1,
        "agent": "examplebot",
        "uses": uses,
        "elements": [element] if number % 6 == 0 else [],
        "reasons": reasons,
        "policies": {},
    }


CREDIT = {"role": "credit", "extract": "", "url": "", "content": "Photographs: The Example Archive"}


def crawled(
    hosts: int = 12, seconds: int = 120, *, hostile: bool = False, seed: int = 1, patch: Any = None
) -> Report:
    """The report of a crawl of so many hosts. `patch`: a MonkeyPatch, by which its clock is ours."""
    chance, clock = random.Random(seed), Clock()  # the same each time
    patch.setattr(collector_module, "monotonic", clock)
    collector = Collector()
    collector.began_at, collector.began = 1_795_392_000.0, clock.now
    names = [f"{name}.example" for name in _names(hosts)]
    texts = dict(zip(names, HOSTILE * hosts, strict=False)) if hostile else {}
    due = dict.fromkeys(names, clock.now)
    delays = {name: 1.0 + number % 4 for number, name in enumerate(names)}
    for number, name in enumerate(names):
        origin, text = f"https://{name}", texts.get(name, "")
        is_lost = number % 6 == 5
        robots = Fetched(status=500 if is_lost else 200, body=ROBOTS.encode())
        collector.looked_up(
            origin, {f"{origin}/robots.txt": robots}, (text or "HTTP status 500") if is_lost else ""
        )
        collector.asked_for_files(origin, 4)
        if number % 7 == 3:
            why = reason(
                "acap.request", f"{origin}/robots.txt", 28, text or "ACAP-request-take-down: /gone"
            )
            collector.asked_to_act(
                ActionRequest(
                    action="take-down", url=f"{origin}/gone{text}", arranged=False, reason=why
                )
            )
    page = 0
    while (name := min(due, key=lambda host: due[host])) and due[name] < 1000.0 + seconds:
        clock.now = max(clock.now, due[name])
        origin, delay, text = f"https://{name}", delays[name], texts.get(name, "")
        due[name] = clock.now + 0.05 + delay + chance.expovariate(8) * delay
        page += 1
        if page % 9 == 0:
            rule, line, number = RULES[page % 2]
            refused = reason(
                rule, f"{origin}/robots.txt{text}", number, text or line, text or "body"
            )
            collector.decided(
                f"{origin}/private/{page}", Decision(verdict=Verdict.DENY, reasons=(refused,))
            )
            continue
        collector.decided(
            f"{origin}/{page}",
            Decision(verdict=Verdict.ALLOW, reasons=(reason("robots.no-match", origin, 0, ""),)),
        )
        limiters = [
            Limiter(name, *([Window(1, delay)] if delay > 1 else []), floor=(Window(1, 1.0),))
        ]
        if text:
            source = Source(url=f"{origin}/automation-preferences.txt{text}", line=3, text=text)
            limiters[0].unread = (
                StatedLimit("request-limit", Window(1, 300.0), None, source, text),
            )
        start = collector.starting(limiters)
        clock.now += 0.001  # less than what is left to an answer
        collector.settled(limiters, start)
        collector.received(f"{origin}/{page}", 200 if page % 17 else 404)
        collector.tagged(tag(origin, page, text or "Content-Usage: train-ai=n"), f"{origin}/{page}")
    options = Options.from_settings(
        Settings(
            {
                "COMITY_AGENT": "examplebot",
                "USER_AGENT": "examplebot/1.0 (+https://example.org/bot)",
                "COMITY_USES": "index,train-ai",
                "COMITY_DEFAULTS": "index:allow",
            }
        )
    )
    stats = {"comity/items/dropped": 3, "comity/scheduler/set-aside": 40}
    report = report_of(collector, CrawlFacts("news", "finished", options, "", stats, 0))
    report.began, report.until = "2026-11-23T06:00:00Z", "2026-11-23T06:02:00Z"
    return report


def _names(number: int) -> Iterator[str]:
    words = (
        "archive",
        "daily",
        "gazette",
        "herald",
        "journal",
        "ledger",
        "library",
        "museum",
        "observer",
        "post",
        "review",
        "times",
    )
    for index in range(number):
        yield (
            words[index]
            if index < len(words)
            else f"{words[index % len(words)]}-{index // len(words)}"
        )
