"""Explain from the statistics of a crawl why it fetched no page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REFUSED = "comity/access/deny/"
STOPPED = "comity/access/stopped/"
ERRORS = "httperror/response_ignored_status_count/"


def nothing_came(stats: Mapping[str, Any], first_refused: str) -> str:
    """Return the reason why no page came; "" if pages came or none were asked for.

    `stats`: the statistics of the crawl. `first_refused`: URL of the first refused request; "":
    no request was refused."""
    came = stats.get("response_received_count", 0)
    refused, stopped, errors = (_counts(stats, kind) for kind in (REFUSED, STOPPED, ERRORS))
    if came > _total(stopped) + _total(errors) or not (refused or stopped or errors):
        return ""
    causes = (
        [f"{_total(refused)} requests were refused ({_join_counts(refused)})"] if refused else []
    )
    if stopped:
        causes.append(
            f"{_total(stopped)} answers were refused by their status or header fields"
            f" ({_join_counts(stopped)})"
        )
    if errors:
        causes.append(f"{_total(errors)} answers were errors (HTTP status {_join_counts(errors)})")
    remedy = (
        f" `comity policy {first_refused}` shows the line that refuses." if first_refused else ""
    )
    return f"No page came: {', '.join(causes)}.{remedy}"


def _counts(stats: Mapping[str, Any], kind: str) -> dict[str, int]:
    return {
        name.removeprefix(kind): count for name, count in stats.items() if name.startswith(kind)
    }


def _total(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
