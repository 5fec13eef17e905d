"""Fixes for training rules. They may change decisions."""

from __future__ import annotations

from collections.abc import Mapping

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.fixes import Mend, open_group, write
from comity.policies.syntax.suspicions import right_path

_YES = (b"yes", b"true", b"1")  # they probably mean the whole site


def _write_path(draft: Draft, finding: Finding) -> Fix | None:
    span = draft.mendable_quotation(finding)
    if span is None:
        return None
    value = draft.line(finding.line)[slice(*span)]
    return write(draft, finding, b"/" if value.lower() in _YES else right_path(value), span)


FIXES: Mapping[str, Mend] = {
    "training-rules.outside": open_group,
    "training-rules.path": _write_path,
}
