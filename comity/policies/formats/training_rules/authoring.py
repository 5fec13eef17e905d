"""Help for authors of rules about AI training in robots.txt."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.training_rules.checks import check
from comity.policies.formats.training_rules.fixes import FIXES

_DRAFT = "draft-canel-robots-ai-control-00"

AUTHORING = Authoring(
    directives=(
        Directive(
            "DisallowAITraining",
            _DRAFT,
            "URLs that begin with the path may not be used to train AI models",
            "path",
            ("User-agent",),
        ),
        Directive(
            "AllowAITraining",
            _DRAFT,
            "URLs that begin with the path may be used to train AI models",
            "path",
            ("User-agent",),
        ),
    ),
    values={"path": {"/": "the whole site", "/*.pdf$": "URLs that end in .pdf"}},
    check_site=check,
    fixes=FIXES,
)
