"""Help for authors of Content Signals."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.content_signals.checks import check
from comity.policies.formats.content_signals.fixes import FIXES

_DRAFT = "draft-romm-aipref-contentsignals"

# Key -> the uses that it covers.
LABELS = {
    "search": "an index, and results with links and short excerpts",
    "ai-input": "input of a model: retrieval, grounding, generated answers",
    "ai-train": "training and fine-tuning of models",
}
LEVELS = {
    "immediate": "nothing is kept or used again",
    "reference": "it may be indexed, quoted and linked to, no more",
    "full": "it may also be summarised and reproduced",
}

AUTHORING = Authoring(
    directives=(
        Directive(
            "Content-Signal",
            f"{_DRAFT} section-4",
            "The permitted uses of the content of the site, or of URLs that begin with the path",
            "path signal",
            ("User-agent",),
        ),
        Directive(
            "Content-Signals",
            f"{_DRAFT} section-4",
            "The same as `Content-Signal`, as some sites spell it",
            "path signal",
            ("User-agent",),
        ),
    ),
    values={
        "path": {"/": "the whole site", "/*.pdf$": "URLs that end in .pdf"},
        "signal": {
            **{f"{label}=no": f"refused: {summary}" for label, summary in LABELS.items()},
            **{f"{label}=yes": f"permitted: {summary}" for label, summary in LABELS.items()},
            **{f"use={level}": summary for level, summary in LEVELS.items()},
        },
    },
    check_site=check,
    fixes=FIXES,
)
