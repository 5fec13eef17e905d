"""Thresholds for the figures of a report: `refused>5%`, `unreadable>0`, `items<100`."""

from __future__ import annotations

import operator
import re
from typing import NamedTuple

from comity.report.figures.figures import MEANINGS, figures_of
from comity.report.value import Report, ReportError

_FORM = re.compile(r"(?P<name>[a-z-]+)(?P<sign>[<>])(?P<bound>\d+(\.\d+)?)(?P<unit>%?)")
_FAILS = {">": operator.gt, "<": operator.lt}


class Threshold(NamedTuple):
    """A condition under which a report fails.

    Attributes:
        name: A key of MEANINGS.
        sign: ">" or "<": the side of the bound that fails.
        bound: The bound, which itself passes.
        is_percent: True if the bound is a percentage of the figure's total.
    """

    name: str
    sign: str
    bound: float
    is_percent: bool

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.bound:g}{'%' * self.is_percent}"

    def failure(self, report: Report) -> str:
        """Return why the report fails, and by how much; "" if it passes.

        ReportError: the report does not have the figure, or the figure has no percentage."""
        figures = figures_of(report)
        if self.name not in figures:
            known = ", ".join(figures) or "none"
            raise ReportError(f"`{self}`: this report has no `{self.name}`. It has: {known}")
        figure = figures[self.name]
        if self.is_percent and figure.total is None:
            raise ReportError(f"`{self}`: `{self.name}` has no percentage: write a number")
        value = figure.percent if self.is_percent else figure.number
        if not _FAILS[self.sign](value, self.bound):
            return ""
        found = f"{figure.number:,}" + (f" of {figure.total:,}" if figure.total is not None else "")
        share = f", which is {figure.percent:.3g} %" if self.is_percent else ""
        beyond = abs(value - self.bound)
        excess = f"{beyond:.3g} points" if self.is_percent else f"{beyond:,.9g}"
        side = "above" if self.sign == ">" else "below"
        return f"{self}: {self.name} is {found}{share}: {excess} {side} the threshold"


def parse(text: str) -> Threshold:
    """Return the threshold that a text states. ReportError: the text states none."""
    match = _FORM.fullmatch(text.replace(" ", ""))
    if match is None or match["name"] not in MEANINGS:
        names = ", ".join(MEANINGS)
        raise ReportError(
            f"`{text}` is not a threshold: write NAME>NUMBER, NAME>NUMBER%, NAME<NUMBER or"
            f" NAME<NUMBER%. The names: {names}"
        )
    return Threshold(match["name"], match["sign"], float(match["bound"]), bool(match["unit"]))
