"""The packages of the extra `report`: checked before a crawl begins rather than at its end."""

from __future__ import annotations

from comity import extras
from comity.report.value import ReportError

PAGE = ("jinja2", "pygal")
METRICS = ("prometheus_client",)


def check(subject: str, names: tuple[str, ...]) -> None:
    """ReportError: one of the packages is missing. `subject`: the feature that needs them."""
    missing = [name for name in names if extras.is_missing(name)]
    if missing:
        raise ReportError(extras.needs(subject, " and ".join(missing), "report"))
