"""The page in a real Chromium: at three sizes, light and dark, and on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from comity.report.difference import difference
from comity.report.page import difference_page, page_of, trend_page
from comity.report.value import Report
from tests.authoring.workbench.workbench_process import started_browser
from tests.report.made_reports import HOSTILE, crawled

pytestmark = [pytest.mark.slow, pytest.mark.requirement("REPORT-1")]

SIZES = [(1440, 900), (768, 1024), (390, 844), (360, 740)]
SCHEMES = ["light", "dark"]
# Light, each size once; the other schemes at the sizes between which the layout changes most.
LOOKS = [
    *(("light", *size) for size in SIZES[:3]),
    *(("dark", *size) for size in (SIZES[0], SIZES[2])),
    ("print", *SIZES[0]),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        usual, large = crawled(patch=patch), crawled(400, 300, patch=patch)
        hostile = crawled(len(HOSTILE) * 2, 60, hostile=True, patch=patch)
    hostile.title = HOSTILE[0]
    texts = {
        "usual": page_of(usual),
        "large": page_of(large),
        "hostile": page_of(hostile),
        "empty": page_of(Report(source="crawl", title="nothing")),
        "difference": difference_page(difference(usual, large), usual, large),
        "trend": trend_page({"usual.html": usual, "large.html": large, "later.html": usual}),
    }
    paths = {name: folder / f"{name}.html" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text, "utf-8")
    return paths


def opened(
    browser: Browser, path: Path, wrong: list[str], *, is_axe: bool = False, **options: Any
) -> Page:
    """`is_axe`: a script is to be put into it, which its policy refuses."""
    page = browser.new_context(bypass_csp=is_axe, **options).new_page()
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    page.on(
        "request",
        lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None,
    )
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("name", ["usual", "large", "hostile", "empty", "difference", "trend"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_it_fits_and_nothing_is_wrong(
    browser: Browser, pages: dict[str, Path], name: str, scheme: str, width: int, height: int
) -> None:
    wrong: list[str] = []
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": height},
        "color_scheme": scheme,
    }
    page = opened(browser, pages[name], wrong, **options)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")
    page.context.close()
    assert wrong == []


@pytest.mark.parametrize("name", ["usual", "hostile", "empty", "difference", "trend"])
@pytest.mark.parametrize(("scheme", "width", "height"), LOOKS)
def test_everybody_can_use_it(
    browser: Browser, pages: dict[str, Path], name: str, scheme: str, width: int, height: int
) -> None:
    """axe finds no violation of any weight."""
    wrong: list[str] = []
    media = {"media": "print"} if scheme == "print" else {"color_scheme": scheme}
    options: dict[str, Any] = {"viewport": {"width": width, "height": height}}
    page = opened(browser, pages[name], wrong, is_axe=True, **options)
    page.emulate_media(**media)  # type: ignore[arg-type]  # its types are literals
    for details in page.locator("details:not([open]) > summary").all()[:10]:
        details.click()
    found = Axe().run(page)
    page.context.close()
    assert [
        (each["id"], each["impact"], each["nodes"][0]["html"])
        for each in found.response["violations"]
    ] == []
    assert wrong == []


def test_on_paper_all_of_it_is_there(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    wrong: list[str] = []
    page = opened(browser, pages["usual"], wrong, color_scheme="dark")
    page.emulate_media(media="print")
    closed = page.locator("details:not([open]) .lines li")
    assert closed.count() > 0
    assert all(each.bounding_box() for each in closed.all())  # what is folded on the screen
    pdf = page.pdf(path=str(tmp_path / "report.pdf"))
    assert pdf.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
    page.context.close()
    assert wrong == []


def test_the_pictures_show_what_was_measured(browser: Browser, pages: dict[str, Path]) -> None:
    wrong: list[str] = []
    page = opened(browser, pages["usual"], wrong)
    for picture in page.locator("svg.pace").all():
        path = picture.locator(".series.color-1 path").get_attribute("d")
        field = [float(number) for number in re.findall(r"[\d.]+", path or "")][1::2]
        dots = [float(dot.get_attribute("cy") or "nan") for dot in picture.locator("circle").all()]
        assert dots
        assert (
            max(dots) <= min(field) + 0.15 < max(field)
        )  # y grows downwards: all above the field under the limit
    page.context.close()


def test_rules_are_filtered_by_format(browser: Browser, pages: dict[str, Path]) -> None:
    wrong: list[str] = []
    page = opened(browser, pages["usual"], wrong)
    section = page.locator("#uses" if page.locator("#refused .filter").count() == 0 else "#refused")
    rules = section.locator("details")
    formats = [rule.get_attribute("data-format") for rule in rules.all()]
    assert len(set(formats)) > 1
    for chosen in sorted({str(name) for name in formats}):
        section.get_by_label(chosen, exact=True).check()
        seen = [rule.is_visible() for rule in rules.all()]
        assert seen == [name == chosen for name in formats]
    section.get_by_label("all", exact=True).check()
    assert all(rule.is_visible() for rule in rules.all())
    page.context.close()
    assert wrong == []


def test_a_link_opens_its_rule(browser: Browser, pages: dict[str, Path]) -> None:
    wrong: list[str] = []
    page = opened(browser, pages["usual"], wrong)
    rule = page.locator(".refusals details").first
    rule.locator("summary").click()
    lines = rule.locator("ul")
    lines.wait_for(state="hidden")
    page.evaluate("id => { location.hash = id }", lines.get_attribute("id"))
    lines.wait_for(state="visible")
    page.context.close()
    assert wrong == []


def test_it_is_read_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    wrong: list[str] = []
    page = opened(browser, pages["usual"], wrong)
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "#" in page.url
    page.locator("details").last.locator("summary").focus()
    before = page.locator("details[open]").count()
    page.keyboard.press("Enter")
    assert page.locator("details[open]").count() != before
    page.context.close()
    assert wrong == []
