"""Shorten a text to the length that a permission allows."""

from __future__ import annotations

import re

from comity.policies.answers.decision import UseDecision, Verdict

_WORD = re.compile(r"\S+")


def snippet(text: str, use: UseDecision) -> str:
    """Return the start of the text, within `max_chars` and `max_words` of the permission.

    It ends after a whole word, or inside the first word if that alone is too long. "" if the use is
    refused. See ACAP 1.0 section-2.5.5.2.3."""
    if use.verdict is Verdict.DENY:
        return ""
    end = len(text)
    if use.max_words is not None:
        ends = [
            match.end()
            for _, match in zip(range(use.max_words), _WORD.finditer(text), strict=False)
        ]
        end = min(end, max(ends, default=0))
    if use.max_chars is not None and end > use.max_chars:
        cut = text[: use.max_chars]
        if text[use.max_chars].isspace() or cut[-1:].isspace():
            return cut.rstrip()
        words = list(_WORD.finditer(cut))
        return cut[: words[-2].end()] if len(words) > 1 else cut
    return text[:end]
