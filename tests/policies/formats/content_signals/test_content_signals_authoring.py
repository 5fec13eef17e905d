"""What helps those who write Content Signals: their words, and what is said of lines besides their syntax."""

from __future__ import annotations

from comity.policies.formats.content_signals import FORMAT
from comity.policies.formats.content_signals.authoring import AUTHORING
from comity.policies.formats.content_signals.signals import LABELS, LEVELS, field


def test_every_line_is_a_directive() -> None:
    assert {directive.name.lower() for directive in AUTHORING.directives} == set(FORMAT.robots_lines)
    assert all(directive.spec and directive.summary for directive in AUTHORING.directives)


def test_every_signal_is_offered_and_read() -> None:
    offered = AUTHORING.values["signal"]
    signals = {f"{label}={value}" for label in LABELS for value in ("yes", "no")}
    assert set(offered) == signals | {f"use={level}" for level in LEVELS}
    for signal in offered:
        statements, findings = field([signal.encode()])
        assert statements
        assert not findings
