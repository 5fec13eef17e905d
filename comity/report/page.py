"""The report as one page, without scripts and without resources from elsewhere.

Texts of sites are shown as text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

import comity
from comity.policies.answers.rule import RULES, without_page
from comity.policies.syntax.printable import printable, unhidden
from comity.report import pictures
from comity.report.difference import Section
from comity.report.figures.trend import text_of, trend
from comity.report.items import SUMMARIES
from comity.report.value import Report, ReportError, embed

MAX_TEXT = 500  # characters of one text
SHOWN_HOSTS = 50
SHOWN_FILES = 50  # files of a dataset in an audit
SHOWN_PAGES = 1_000  # pages of a website in an audit
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9._-]")
_CODE = re.compile(r"`([^`]*)`")
ROUND = 1000  # shares are rounded to thousandths


class _Counts(dict[str, int]):
    """Counts by name. Missing counts are 0."""

    def __missing__(self, name: str) -> int:
        return 0


def page_of(report: Report) -> str:
    """Return the page, which also contains the report as data.

    ReportError: the report was read from a file, and has impossible figures."""
    try:
        return _render(
            "report.html",
            report=replace(report, counts=_Counts(report.counts)),
            pictures=pictures,
            data=Markup(embed(report)),  # noqa: S704  # it has no characters that HTML would read
            shown_hosts=SHOWN_HOSTS,
            seconds=_duration(report),
        )
    except (ArithmeticError, ValueError) as error:
        raise ReportError(f"its figures cannot be shown: {printable(str(error))}") from None


def difference_page(sections: Sequence[Section], old: Report, new: Report) -> str:
    return _render("difference.html", sections=sections, old=old, new=new)


def trend_page(reports: Mapping[str, Report]) -> str:
    """Return the page of a trend. `reports`: name of the file -> its report, in their order."""
    rows = trend([*reports.values()])
    return _render("trend.html", reports=reports, rows=rows, pictures=pictures)


def audit_page(audit: Mapping[str, Any]) -> str:
    """Return the page of an audit. `audit`: the result of comity.dataset.audit.audit.audit_of."""
    return _render("audit.html", audit=audit, shown_pages=SHOWN_PAGES, shown_files=SHOWN_FILES)


def _render(name: str, **values: Any) -> str:
    environment = _environment()
    style = _resource("report.css") + _filters()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    values |= {
        "style": Markup(style),  # noqa: S704  # comity's own
        "policy": policy,
        "version": comity.__version__,
    }
    return environment.get_template(name).render(values)


def _resource(name: str) -> str:
    return (files("comity.report") / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import FunctionLoader

    environment = Environment(
        autoescape=True,
        finalize=_finalize,
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
        "marked": _mark_up,
        "figure": text_of,
        "anchor": _anchor,
        "format_of": _format_of,
        "without_page": without_page,
    }
    return environment


def _anchor(name: str, prefix: str) -> str:
    """Return the id of a row. Different names have different ids."""
    return f"{prefix}-" + _NOT_IN_ID.sub(lambda match: f"~{ord(match[0]):x}~", name)


def _format_of(rule: str) -> str:
    """Return the format of a rule, e.g. "robots" of `robots.disallow`."""
    return rule.partition(".")[0]


@cache
def _filters() -> str:
    """Return the style that hides the rules of all formats but the chosen one."""
    formats = sorted({_format_of(rule) for rule in (*RULES, *SUMMARIES)})
    rules = (
        f'.refusals:has(input[value="{name}"]:checked) > details:not([data-format="{name}"])'
        for name in formats
    )
    return f"{', '.join(rules)} {{ display: none; }}\n"


def _finalize(value: Any) -> Any:
    """Return a value as the page shows it.

    Texts have no characters that hide or turn others (SEC-4), and are shortened."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = unhidden(value[: MAX_TEXT + 1], keep="\n")  # the number of characters stays the same
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _number(value: float) -> str:
    return f"{value:,}"


def _share(count: int, total: int) -> str:
    """Return a share in per cent. Only 0 is shown as 0 %, and only all as 100 %."""
    if not total:
        return "–"
    share = 100 * count / total
    if 0 < share < 1:
        return "< 1 %"
    if 99 < share < 100:
        return "> 99 %"
    return f"{share:.0f} %"


def _limit(limit: Any) -> str:
    """Return a limit in words."""
    if limit is None:
        return "none"
    requests = "1 request" if limit.requests == 1 else f"{limit.requests:,} requests"
    return f"{requests} in {limit.seconds:g} s"


def _part(value: float | None) -> str:
    """Return a gap as a part of its limit. It is cut: less than 1 must not look like 1."""
    return "–" if value is None else f"{int(value * ROUND) / ROUND:.3f}"


def _count_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _mark_up(text: str) -> Markup:
    """Return a sentence with a capital letter at its beginning, and backticks as code."""
    text = str(escape(_finalize(text[:1].upper() + text[1:])))
    # The text is escaped, and the tags are from here.
    return Markup(_CODE.sub(r"<code>\1</code>", text))  # noqa: S704


def _duration(report: Report) -> float:
    """Return the seconds that the pictures of pace cover."""
    return max([point[0] for series in report.pace.series for point in series.points], default=0.0)
