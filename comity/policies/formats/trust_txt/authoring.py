"""Help for authors of trust.txt files."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.trust_txt.checks import NAMES, check_site
from comity.policies.formats.trust_txt.fixes import FIXES
from comity.policies.formats.trust_txt.grammar import NAME
from comity.policies.formats.trust_txt.rules import SPEC

_KINDS = {NAME: "permission", "contact": "text"}

AUTHORING = Authoring(
    directives=tuple(
        Directive(name, SPEC, summary, _KINDS.get(name, "url")) for name, summary in NAMES.items()
    ),
    values={
        "permission": {
            "no": "models may not be trained with the content",
            "yes": "models may be trained with the content",
        }
    },
    separator="=",
    check_site=check_site,
    fixes=FIXES,
)
