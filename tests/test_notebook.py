"""The values show themselves in notebooks, and nothing that a site wrote becomes markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html  # type: ignore[import-untyped]
from nbclient import NotebookClient

from comity import notebook
from comity.policies import Agent, Page, Site, Verdict
from comity.policies.tag import read_tag
from comity.report.value import NamedCount, Ranking, Report, ReportedRefusal, ReportedUse

EXAMPLE = Path(__file__).parent.parent / "examples/notebook/decisions.ipynb"
AGENT = Agent("examplebot", uses=("train",))
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
HOSTILE = Site.from_files(
    "https://example.com",
    {
        "/robots.txt": f"User-agent: *\nDisallow: /{SCRIPT}\nDisallow: {SCRIPT}\n"
        f"Content-Signal: {SCRIPT}=yes, ai-train=no\n".encode()
    },
)
ELEMENTS = {"b", "div", "p", "table", "tbody", "td", "th", "thead", "tr"}


def shown(value: Any) -> list[list[str]]:
    """Return the cells of the rows that a value shows. Check that its HTML is harmless."""
    text = value._repr_html_()
    tree = html.fromstring(f"<div>{text}</div>")
    for element in tree.iter():
        assert element.tag in ELEMENTS
        assert not element.attrib
    assert "\u202e" not in text
    return [[str(cell.text_content()) for cell in row] for row in tree.iter("tr")]


def page_of(site: Site) -> Page:
    return site.page(AGENT, "https://example.com/news")


def test_a_decision_shows_its_reasons() -> None:
    site = Site.from_files("https://example.com", {"/robots.txt": b"User-agent: *\nDisallow: /a\n"})
    decision = site.access(AGENT, "https://example.com/a")
    assert "<b>deny</b>" in decision._repr_html_()
    assert shown(decision) == [
        ["rule", "specification", "where", "line"],
        [
            "robots.disallow",
            "RFC 9309 section-2.2.2",
            "https://example.com/robots.txt:2",
            "Disallow: /a",
        ],
    ]
    use = page_of(site).uses["train"]
    assert "<b>deny (not stated)</b>" in use._repr_html_()
    assert shown(use)[1][0] == "comity.default"


def test_a_page_and_its_tag_show_each_use() -> None:
    robots = b"ACAP-crawler: *\nACAP-allow-present-snippet: / max-length=5-words\n"
    page = page_of(Site.from_files("https://example.com", {"/robots.txt": robots}))
    rows = shown(page)
    assert "https://example.com/news for examplebot" in page._repr_html_()
    assert {row[0]: row[1] for row in rows[1:]} == {
        use: decision.verdict.value + ("" if decision.stated else " (not stated)")
        for use, decision in page.uses.items()
    }
    assert [
        "present-snippet",
        "allow",
        "max_words: 5",
        "acap.allow",
        "https://example.com/robots.txt:2",
        "ACAP-allow-present-snippet: / max-length=5-words",
    ] in rows
    tag = read_tag(page.permissions)
    assert shown(tag) == rows
    assert "<b>Permissions for examplebot</b>" in tag._repr_html_()


def test_a_site_shows_its_files_and_findings() -> None:
    site = Site.from_files("https://example.com", {"/robots.txt": b"Disallow: /\n"})
    rows = shown(site)
    assert ["https://example.com/ai.txt", "404", ""] in rows
    assert rows[1][:2] == ["https://example.com/robots.txt", "200"]
    assert [finding.message for finding in site.findings] == [row[2] for row in rows[-1:]]


def test_a_report_shows_refusals_and_uses() -> None:
    refusal = ReportedRefusal(
        rule="robots.disallow",
        spec="",
        summary=SCRIPT,
        count=3,
        hosts=Ranking([NamedCount("a", 3)]),
    )
    report = Report(
        source="crawl", title=SCRIPT, refusals=[refusal], uses=[ReportedUse(use="train", deny=2)]
    )
    rows = shown(report)
    assert rows[1][:2] == ["robots.disallow", "3"]
    assert rows[-1] == ["train", "0", "2", "0", "0"]


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize(
    "value",
    [
        HOSTILE,
        HOSTILE.access(AGENT, f"https://example.com/{SCRIPT}"),
        page_of(HOSTILE),
        page_of(HOSTILE).uses["train"],
        read_tag(page_of(HOSTILE).permissions),
    ],
    ids=["site", "decision", "page", "use", "tag"],
)
def test_lines_of_a_site_are_text(value: Any) -> None:
    shown(value)
    assert "&lt;script&gt;" in value._repr_html_()


def test_the_hostile_site_refuses() -> None:
    """So its lines are those that the other test shows."""
    decision = HOSTILE.access(AGENT, f"https://example.com/{SCRIPT}")
    assert decision.verdict is Verdict.DENY
    assert page_of(HOSTILE).uses["train"].stated


@given(st.lists(st.lists(st.text(), min_size=1, max_size=3), max_size=3), st.text())
def test_any_text_is_shown_as_text(rows: list[list[str]], title: str) -> None:
    text = notebook.table(title, ["<b>"], rows)
    assert all(char.isprintable() for char in text)
    tree = html.fromstring(f"<div>{text}</div>")
    assert {element.tag for element in tree.iter()} <= ELEMENTS
    cells = [str(cell.text_content()) for cell in tree.iter("td")]
    for cell, value in zip(cells, (value for row in rows for value in row), strict=True):
        assert cell == value or not value.isprintable()


def test_long_texts_and_long_tables_are_cut() -> None:
    text = notebook.table("title", ["a"], [["x" * 10_000]] * 10_000)
    assert f"<p>{10_000 - notebook.MAX_ROWS} more rows</p>" in text
    assert len(text) < notebook.MAX_ROWS * (notebook.MAX_TEXT + 30) + 1000


def example() -> Any:
    return nbformat.read(EXAMPLE, as_version=4)  # type: ignore[no-untyped-call]


@pytest.mark.slow
def test_the_example_notebook_runs() -> None:
    book = example()
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    codes = [cell for cell in book.cells if cell.cell_type == "code"]
    pages = [output["data"]["text/html"] for cell in codes for output in cell.outputs]
    assert len(pages) == len(codes)
    for text, word in zip(
        pages,
        ("robots.txt", "Disallow: /private/", "max_words: 20", "ai-train=no", "max_words: 20"),
        strict=True,
    ):
        assert word in text


def test_the_example_notebook_has_no_output() -> None:
    """Outputs would be out of date after the next change, and hide what a reader's own run shows."""
    book = example()
    assert not [cell for cell in book.cells if cell.get("outputs") or cell.get("execution_count")]
