"""Checks of training rules beyond their syntax. No crawler runs them."""

from __future__ import annotations

from collections.abc import Iterator

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Remarks
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.training_rules.lines import NAMES

# Lines in robots.txt that more crawlers read.
_KNOWN = frozenset(("content-signal", "content-signals", "content-usage"))


def check(site: SiteFiles) -> Iterator[Finding]:
    """Yield a finding if the file states its wishes about training in training rules only."""
    file = robots_of(site)
    lines = lines_of(site)
    first = next((line for line in lines if line.name in NAMES), None)
    if first and not file.is_marked_up and not any(line.name in _KNOWN for line in lines):
        remarks = Remarks(file.url)
        remarks.report(
            "training-rules.rare",
            "Few crawlers know `{}`. Add `Content-Signal: ai-train=no` to the group.",
            NAMES[first.name].encode(),
            line=first.line,
        )
        yield from remarks.findings
