"""The pictures of a report: SVG by pygal, without scripts and styles.

The style of the page sets their colours, by class."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import pygal
from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from markupsafe import Markup

from comity.policies.syntax.printable import printable
from comity.report.value import NamedCount, Series, Timeline

# pygal looks for maps of other packages with an import finder of a kind that Python has removed,
# and about which Python warns at every import.
sys.meta_path[:] = [
    finder
    for finder in sys.meta_path
    if not isinstance(finder, getattr(pygal, "PluginImportFixer", ()))
]

CLIPPED = 3.0  # times the limit; longer gaps are drawn here
_LONG = re.compile(r"(\d\.\d)\d+")  # numbers of a path, which need only one decimal
_DROPPED = ("script", "style", "desc", "defs", "title")  # elements
_NEEDLESS = ("tooltip-overlay", "background", "titles")  # classes of elements


def bars(numbers: Sequence[NamedCount], label: str, *, first_is_bad: bool = False) -> Markup:
    """Draw counts by name. `first_is_bad`: True if counts in the first bar are faults."""
    top = max((entry.count for entry in numbers), default=0)
    chart = pygal.Bar(
        **_OPTIONS,
        width=720,
        height=230,
        print_values=True,
        print_values_position="top",
        value_formatter=lambda value: f"{value:,.0f}",
    )
    chart.x_labels = [printable(entry.name) for entry in numbers]
    chart.y_labels = _ticks(top)
    chart.range = (0, max(1, top) * 1.12)
    chart.add("", [entry.count for entry in numbers])
    return _svg(chart, label, "bars first-is-bad" if first_is_bad else "bars")


def timeline(over_time: Timeline, label: str) -> Markup:
    """Draw the requests that were sent, and those that were refused, over time."""
    top = max([*over_time.sent, *over_time.refused], default=0)
    chart = pygal.XY(**_OPTIONS, width=720, height=200, show_dots=False)
    seconds = over_time.seconds
    end = max(1.0, len(over_time.sent) * seconds)
    chart.range, chart.xrange = (0, max(1, top) * 1.05), (0, end)
    chart.y_labels = _ticks(top)
    chart.x_labels = _moments(end)
    chart.add("sent", _steps(over_time.sent, seconds))
    chart.add("refused", _steps(over_time.refused, seconds))
    return _svg(chart, label, "timeline")


def pace(series: Series, end: float, label: str) -> Markup:
    """Draw the gaps of a host over time, as parts of its limit, and the limit."""
    chart = pygal.XY(**_OPTIONS, width=360, height=150, dots_size=2)
    chart.range, chart.xrange = (0, CLIPPED), (0, max(end, 1.0))
    chart.y_labels = [0, 1, 2, CLIPPED]
    chart.x_labels = _moments(max(end, 1.0), most=4)
    chart.add(
        "gaps", [(seconds, min(part, CLIPPED)) for seconds, part in series.points], stroke=False
    )
    chart.add("limit", [(0, 1), (max(end, 1.0), 1)], show_dots=False, fill=True)
    return _svg(chart, label, "pace")


def course(points: Sequence[float | None], label: str) -> Markup:
    """Draw the course of a figure as a small line, from 0 up. None interrupts the line."""
    top = max((point for point in points if point is not None), default=0) or 1
    chart = pygal.XY(
        **_OPTIONS,
        width=160,
        height=40,
        dots_size=2,
        show_x_labels=False,
        show_y_labels=False,
        show_x_guides=False,
        show_y_guides=False,
    )
    chart.range, chart.xrange = (0, top * 1.1), (0, max(1, len(points) - 1))
    chart.add("", list(enumerate(points)), allow_interruptions=True)
    return _svg(chart, label, "course")


_OPTIONS: dict[str, Any] = {
    "show_legend": False,
    "js": (),
    "no_prefix": True,
    "margin": 6,
    "pretty_print": False,
    "no_data_text": "",
    "title": None,
    "truncate_label": -1,
}


def _ticks(top: int) -> list[int]:
    """Return about four round numbers from 0 to the top."""
    if top <= 4:
        return list(range(top + 1)) or [0]
    step = 10 ** (len(str(top // 4)) - 1)
    step *= next(factor for factor in (1, 2, 5, 10) if top / (step * factor) <= 5)
    return list(range(0, top + 1, step))


def _moments(end: float, most: int = 8) -> list[dict[str, Any]]:
    """Return the labels of a time axis."""
    steps = (
        1,
        2,
        5,
        10,
        20,
        30,
        60,
        120,
        300,
        600,
        1200,
        1800,
        3600,
        7200,
        3 * 3600,
        6 * 3600,
        12 * 3600,
        86400,
    )
    step = next(
        (step for step in steps if end / step <= most), 86400 * max(1, int(end / 86400 / most))
    )
    return [{"value": value, "label": _duration(value)} for value in range(0, int(end) + 1, step)]


def _duration(seconds: int) -> str:
    if seconds < 60 or seconds % 60:
        return f"{seconds} s"
    if seconds < 3600 or seconds % 3600:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h"


def _steps(numbers: Sequence[int], width: float) -> list[tuple[float, int]]:
    points: list[tuple[float, int]] = []
    for index, number in enumerate(numbers):
        points += [(index * width, number), ((index + 1) * width, number)]
    return points


def _svg(chart: Any, label: str, kind: str) -> Markup:
    """Return the picture as markup for the page. `label`: the text for screen readers."""
    root = chart.render_tree()
    for comment in list(root.iter(etree.Comment)):
        _drop(comment)
    for name in _DROPPED:
        for element in list(root.iter(f"{{*}}{name}", name)):
            _drop(element)
    for element in list(root.iter()):
        classes = element.get("class", "").split()
        if any(name in _NEEDLESS for name in classes):
            _drop(element)
            continue
        for name in ("cx", "cy", "x", "y", "width", "height"):
            if name in element.attrib:
                element.set(name, f"{float(element.get(name)):.1f}".removesuffix(".0"))
        if "d" in element.attrib:
            element.set("d", _LONG.sub(r"\1", element.get("d")))
        if element.tag.rpartition("}")[2] == "circle":
            element.attrib.pop("class", None)
    del root.attrib["id"]
    root.set("class", f"picture {kind}")
    root.set("role", "img")
    root.set("aria-label", printable(label))
    etree.cleanup_namespaces(root)
    # lxml escapes every text.
    return Markup(etree.tostring(root, encoding="unicode"))  # noqa: S704


def _drop(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
