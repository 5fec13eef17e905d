"""The packages of the extra `report`: checked before a crawl begins rather than at its end."""

from __future__ import annotations

from importlib.util import find_spec

from comity.report.value import ReportError

PAGE = ("jinja2", "pygal")
METRICS = ("prometheus_client",)
INSTALL = "pip install 'comity[report]'"


def check(subject: str, names: tuple[str, ...]) -> None:
    """ReportError: one of the packages is missing. `subject`: the feature that needs them."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ReportError(f"{subject} needs {' and '.join(missing)}: {INSTALL}")
