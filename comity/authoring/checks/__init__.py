"""Checks beyond single formats: how files are served, and whether names and rules are effective.

Each check gets the files and pages of a site. `check_samples` (samples.py) gets sample pages, too.
The findings name the file by its URL."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from comity.authoring.checks.addressees import check_addressees
from comity.authoring.checks.contradictions import check_contradictions
from comity.authoring.checks.exposed_paths import check_exposed_paths
from comity.authoring.checks.readers import check_readers
from comity.authoring.checks.serving import check_serving
from comity.authoring.source import SiteSource
from comity.policies import Finding

CHECKS: tuple[Callable[[SiteSource], Iterable[Finding]], ...] = (
    check_serving,
    check_addressees,
    check_contradictions,
    check_exposed_paths,
    check_readers,
)
