"""Help for authors of robots meta elements and X-Robots-Tag fields."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.robots_meta.checks import check_document
from comity.policies.formats.robots_meta.fixes import FIXES
from comity.policies.formats.robots_meta.words import SUMMARIES, VALUED

_SPEC = "robots meta (docs/robots-meta.md)"
_CARRIERS = ("robots", "X-Robots-Tag")
AUTHORING = Authoring(
    directives=(
        Directive(
            "robots",
            _SPEC,
            "Directives for any agent about the page",
            "robots-directive",
            form="meta",
        ),
        Directive(
            "X-Robots-Tag",
            _SPEC,
            "Directives for any agent, or for a named agent, about the response",
            "robots-directive",
            form="field",
        ),
        Directive(
            "data-nosnippet",
            _SPEC,
            "No text of the element may be shown in search, or be input of AI",
            form="attribute",
        ),
        *(
            Directive(name, _SPEC, summary, "", _CARRIERS, "word")
            for name, summary in SUMMARIES.items()
        ),
        *(
            Directive(name, _SPEC, summary, value, _CARRIERS, "word")
            for name, summary, value in VALUED
        ),
    ),
    values={
        "robots-directive": {**SUMMARIES, **{name: summary for name, summary, _ in VALUED}},
        "image-preview": {"none": "no images", "standard": "small ones", "large": "of any size"},
    },
    check_document=check_document,
    fixes=FIXES,
)
