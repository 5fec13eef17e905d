"""Fixes for trust.txt files. They may change decisions, but for the form of a line."""

from __future__ import annotations

from collections.abc import Mapping

from comity.policies.formats.fixes import Mend, comment_out, write_proposed

FIXES: Mapping[str, Mend] = {
    "trust-txt.attribute": write_proposed,
    "trust-txt.line": comment_out,
    "trust-txt.name": write_proposed,
    "trust-txt.value": write_proposed,
}
