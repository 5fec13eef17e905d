"""The HTML by which decisions, pages, sites, tags and reports show themselves in a notebook.

Classes import this module in `_repr_html_`, so it costs nothing elsewhere. It imports no other
module of comity: it reads the attributes that it shows.

Texts of sites are escaped, shortened, and without characters that hide or turn others. The HTML has
no scripts, no links and no colours of its own, so it is readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

MAX_ROWS = 100
MAX_TEXT = 300  # characters of a cell

Row = Sequence[object]

_REASON_COLUMNS = ("rule", "specification", "where", "line")


def decision(decided: Any) -> str:
    """Return the HTML of a Decision or UseDecision: the verdict, and the reasons in their order."""
    until = getattr(decided, "not_before", None)
    stated = getattr(decided, "stated", True)
    title = decided.verdict.value + (f" until {until.isoformat()}" if until else "")
    rows = [
        (
            reason.rule,
            # As in `comity.policies.answers.rule.without_page`.
            reason.spec.partition(", docs/")[0].partition(" (docs/")[0],
            _place(reason.source.url, reason.source.line),
            reason.source.text,
        )
        for reason in decided.reasons
    ]
    return table(title if stated else f"{title} (not stated)", _REASON_COLUMNS, rows)


def tag(raw: Mapping[str, Any], title: str = "") -> str:
    """Return the HTML of a tag: a row for each use, with its conditions and deciding reason."""
    rows = []
    for use, statement in raw["uses"].items():
        reason = raw["reasons"][statement["because"][0]]
        verdict = statement["verdict"] + ("" if statement["stated"] else " (not stated)")
        conditions = [
            name if value is True else f"{name}: {value}"
            for name, value in statement.items()
            if name not in ("verdict", "stated", "because")
        ]
        place = _place(reason["url"], reason["line"])
        rows.append((use, verdict, ", ".join(conditions), reason["rule"], place, reason["text"]))
    columns = ("use", "verdict", "conditions", "rule", "where", "line")
    return table(title or f"Permissions for {raw['agent']}", columns, rows)


def site(shown: Any) -> str:
    """Return the HTML of a Site: its files, and the findings in them."""
    files = [
        (url, file["status"], (file["sha256"] or "")[:16]) for url, file in shown.policies.items()
    ]
    text = table(f"Policy files of {shown.origin}", ("file", "status", "sha256"), files)
    if not shown.findings:
        return text
    findings = [
        (finding.rule, _place(finding.url, finding.line), finding.message)
        for finding in shown.findings
    ]
    return text + table("Findings", ("rule", "where", "message"), findings)


def report(shown: Any) -> str:
    """Return the HTML of a Report: the refusals by rule, and the permissions of items by use."""
    refusals = [(refusal.rule, refusal.count, refusal.summary) for refusal in shown.refusals]
    uses = [
        (use.use, use.allow, use.deny, use.allow_default, use.deny_default) for use in shown.uses
    ]
    columns = ("use", "allow", "deny", "allow (not stated)", "deny (not stated)")
    return table(f"{shown.title}: refusals", ("rule", "requests", "meaning"), refusals) + table(
        f"{shown.title}: permissions of items", columns, uses
    )


def table(title: str, columns: Iterable[str], rows: Sequence[Row]) -> str:
    """Return a table as HTML, with the texts of MAX_ROWS rows."""
    head = "".join(f"<th>{_cell(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows[:MAX_ROWS]
    )
    rest = f"<p>{len(rows) - MAX_ROWS} more rows</p>" if len(rows) > MAX_ROWS else ""
    return (
        f"<p><b>{_cell(title)}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
    )


def _place(url: str, line: int) -> str:
    return f"{url}:{line}" if line else url


def _cell(value: object) -> str:
    """Return a text as HTML. Characters that cannot be seen become escapes such as \\u202e."""
    text = str(value)
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT - 1]}…"
    seen = (char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return escape("".join(seen))
