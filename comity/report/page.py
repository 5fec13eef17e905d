"""The report as one page: no script, nothing from elsewhere, and what sites have written is shown as text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

import comity
from comity.policies.syntax.printable import printable, unhidden
from comity.report import pictures
from comity.report.difference import Section
from comity.report.value import Report, ReportError, embedded

MAX_TEXT = 500  # characters of one text
SHOWN_HOSTS = 50
_CODE = re.compile(r"`([^`]*)`")
ROUND = 1000  # of a share: thousandths


class _Counts(dict[str, int]):
    """Counts by name. What was not counted is nothing."""

    def __missing__(self, name: str) -> int:
        return 0


def page_of(report: Report) -> str:
    """The page, with the report in it as data. ReportError where a report that was read has figures that none can have."""
    try:
        return _render(
            "report.html",
            report=replace(report, counts=_Counts(report.counts)),
            pictures=pictures,
            data=Markup(embedded(report)),  # noqa: S704  # it has no character that HTML would read
            shown_hosts=SHOWN_HOSTS,
            seconds=_duration(report),
        )
    except (ArithmeticError, ValueError) as error:
        raise ReportError(f"its figures cannot be shown: {printable(str(error))}") from None


def difference_page(sections: Sequence[Section], old: Report, new: Report) -> str:
    return _render("difference.html", sections=sections, old=old, new=new)


def _render(name: str, **values: Any) -> str:
    environment = _environment()
    style = _resource("report.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    values |= {"style": Markup(style), "policy": policy, "version": comity.__version__}  # noqa: S704  # our own
    return environment.get_template(name).render(values)


def _resource(name: str) -> str:
    return (files("comity.report") / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import FunctionLoader

    environment = Environment(
        autoescape=True,
        finalize=_finalized,
        loader=FunctionLoader(_resource),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _number,
        "share": _share,
        "limit": _limit,
        "part": _part,
        "count_of": _count_of,
        "marked": _marked,
    }
    return environment


def _finalized(value: Any) -> Any:
    """Each value as it is shown: no character that hides or turns others (SEC-4), and no text without end."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = unhidden(value[: MAX_TEXT + 1], keep="\n")  # it has as many characters as it is given
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _number(value: float) -> str:
    return f"{value:,}"


def _share(count: int, total: int) -> str:
    """The part of a whole, in per cent. Neither all nor none is said of what is nearly so."""
    if not total:
        return "–"
    share = 100 * count / total
    if 0 < share < 1:
        return "< 1 %"
    if 99 < share < 100:
        return "> 99 %"
    return f"{share:.0f} %"


def _limit(limit: Any) -> str:
    """A limit in words."""
    if limit is None:
        return "none"
    requests = "1 request" if limit.requests == 1 else f"{limit.requests:,} requests"
    return f"{requests} in {limit.seconds:g} s"


def _part(value: float | None) -> str:
    """A gap as a part of its limit. It is cut, not rounded: nothing below 1 shall look like 1."""
    return "–" if value is None else f"{int(value * ROUND) / ROUND:.3f}"


def _count_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _marked(text: str) -> Markup:
    """A sentence that begins with a capital letter, and code where it has backticks."""
    text = str(escape(_finalized(text[:1].upper() + text[1:])))
    return Markup(_CODE.sub(r"<code>\1</code>", text))  # noqa: S704  # nothing but what is escaped, and the tags here


def _duration(report: Report) -> float:
    """The seconds that its pictures of time cover."""
    return max([point[0] for series in report.pace.series for point in series.points], default=0.0)
