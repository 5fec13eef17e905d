"""Help for authors of tdmrep.json files, and of the same properties in fields and pages."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive
from comity.policies.formats.tdmrep.checks import check_document, check_site
from comity.policies.formats.tdmrep.fixes import FIXES

_RESERVATION = "Whether the right to mine text and data is reserved: 1 if it is, 0 if it is not"
_POLICY = "The address of the policy by which a permission can be obtained"

AUTHORING = Authoring(
    directives=(
        Directive(
            "location",
            "W3C TDMRep sec-tdm-file",
            "The resources: a pattern of paths",
            "path",
            form="member",
        ),
        Directive(
            "tdm-reservation", "W3C TDMRep sec-tdm-file", _RESERVATION, "reservation", form="member"
        ),
        Directive("tdm-policy", "W3C TDMRep sec-tdm-file", _POLICY, "url", form="member"),
        Directive(
            "tdm-reservation",
            "W3C TDMRep sec-tdm-header",
            _RESERVATION,
            "reservation",
            form="field",
        ),
        Directive("tdm-policy", "W3C TDMRep sec-tdm-header", _POLICY, "url", form="field"),
        Directive(
            "tdm-reservation",
            "W3C TDMRep sec-tdm-html-meta",
            _RESERVATION,
            "reservation",
            form="meta",
        ),
        Directive("tdm-policy", "W3C TDMRep sec-tdm-html-meta", _POLICY, "url", form="meta"),
    ),
    values={"reservation": {"1": "the right is reserved", "0": "the right is not reserved"}},
    check_site=check_site,
    fixes=FIXES,
    check_document=check_document,
)
