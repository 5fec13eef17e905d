"""Fixes, made as `comity lint --fix` makes them."""

from __future__ import annotations

from comity.policies import Fetched, Finding
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.authoring import Draft, Fix, apply
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import Format

ORIGIN = "https://example.com"


def site_of(path: str, body: bytes) -> SiteFiles:
    return SiteFiles(
        ORIGIN, {ORIGIN + path: Fetched(status=200, body=body)}, robots_lines=ROBOTS_LINES
    )


def findings_of(format_: Format, path: str, body: bytes) -> list[Finding]:
    files = site_of(path, body)
    reading = format_.read_site(files) if format_.read_site else None
    checked = format_.authoring.check_site(files) if format_.authoring.check_site else ()
    return [*(reading.findings if reading else ()), *checked]


def fixes_of(format_: Format, path: str, body: bytes) -> list[tuple[Finding, Fix]]:
    """Return the fixes that change no decision."""
    draft = Draft(ORIGIN + path, body)
    mended = []
    for finding in dict.fromkeys(findings_of(format_, path, body)):
        mend = format_.authoring.fixes.get(finding.rule)
        fix = mend(draft, finding) if mend and draft.has_places else None
        if fix and not fix.changes_decisions:
            mended.append((finding, fix))
    return mended


def apply_fixes(format_: Format, path: str, body: bytes) -> bytes:
    """Return the file with all of its fixes."""
    return apply(body, [fix for _, fix in fixes_of(format_, path, body)])[0]
