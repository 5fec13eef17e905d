"""The course of the main figures over several reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from comity.report.figures.figures import MEANINGS, Figure, figures_of
from comity.report.value import Report


class Row(NamedTuple):
    """A figure in each report.

    Attributes:
        name: The name, a key of MEANINGS.
        meaning: The meaning of the figure.
        values: The figure in each report; None where a report does not have it.
    """

    name: str
    meaning: str
    values: tuple[Figure | None, ...]

    @property
    def points(self) -> tuple[float | None, ...]:
        """The heights of the line: the percentages, or the counts of a figure without them."""
        return tuple(
            None if value is None else value.number if value.total is None else value.percent
            for value in self.values
        )


def trend(reports: Sequence[Report]) -> list[Row]:
    """Return the figures that one of the reports has, in the order of MEANINGS.

    `reports`: the reports in the order of their columns."""
    found = [figures_of(report) for report in reports]
    return [
        Row(name, meaning, tuple(figures.get(name) for figures in found))
        for name, meaning in MEANINGS.items()
        if any(name in figures for figures in found)
    ]


def in_order(reports: Mapping[str, Report]) -> dict[str, Report]:
    """Return the reports in the order of their ends. Reports without an end keep their place."""
    if all(report.until for report in reports.values()):
        return dict(sorted(reports.items(), key=lambda item: item[1].until))
    return dict(reports)


def as_json(reports: Mapping[str, Report]) -> dict[str, Any]:
    """Return the trend as a JSON value. `reports`: name of the file -> its report."""
    rows = trend([*reports.values()])
    return {
        "schema": 1,
        "reports": [
            {"file": name, "title": report.title, "began": report.began, "until": report.until}
            for name, report in reports.items()
        ],
        "figures": {
            row.name: [None if value is None else value._asdict() for value in row.values]
            for row in rows
        },
    }


def text_of(value: Figure | None) -> str:
    """Return a figure in words, e.g. "5 (19.2 %)"."""
    if value is None:
        return "–"
    return f"{value.number:,}" + (f" ({value.percent:.3g} %)" if value.total else "")
