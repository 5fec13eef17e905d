"""The documentation site, as `make site` builds it: its links, its checks, its pages in a browser."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.authoring.workbench.workbench_process import started_browser
from tests.public_api import NOT_IMPORTED, public_names
from tests.sources import ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
SIZES = [(1440, 900), (768, 1024), (390, 844)]
# Light, each size once; dark, the sizes between which the layout changes most.
LOOKS: list[tuple[Literal["light", "dark"], tuple[int, int]]] = [
    *(("light", size) for size in SIZES),
    *(("dark", size) for size in (SIZES[0], SIZES[2])),
]
# One page of each kind: the start, prose with pictures, tables, generated pages, Python, the search.
SHOWN = [
    "index",
    "start-crawling",
    "start-publishing",
    "start-cluster",
    "decisions",
    "schemas",
    "settings",
    "commands",
    "rules/robots",
    "api/policies",
    "search",
]


def build(docs: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    return subprocess.run(
        [*command, "-d", folder.parent / "doctrees", "-c", DOCS / "site", docs, folder],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. The first worker of pytest-xdist builds it for all."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site" / "1.0"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder.parent / "built").exists():
            done = build(DOCS, folder)
            assert (done.returncode, done.stderr) == (0, "")
            (folder.parent / "built").touch()
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


def opened(browser: Browser, path: Path, wrong: list[str], **options: Any) -> Page:
    """Open a page. `wrong` gets its errors, and its requests to a network."""
    page = browser.new_context(**options).new_page()
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on(
        "request",
        lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None,
    )
    page.goto(path.as_uri())
    return page


def test_every_page_is_in_the_navigation(site: Path) -> None:
    home = (site / "index.html").read_text("utf-8")
    tree = home.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    pages = {path.stem for path in DOCS.glob("*.md")} - {"README", "conformance"}
    assert pages == {*re.findall(r'href="([^"#/]+)\.html"', tree)} & pages


def test_the_pages_of_python_have_every_public_name(site: Path) -> None:
    compressed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    names = re.findall(r"^(\S+) py:", zlib.decompress(compressed).decode(), re.MULTILINE)
    described = {name.rpartition(".")[2] for name in names}
    public = [
        name
        for name in public_names()
        if name.startswith(("comity.client.", "comity.guard.", "comity.dataset."))
        or name.rpartition(".")[0] == "comity.policies"
    ]
    assert len(public) > 40
    missing = [name for name in public if name.rpartition(".")[2] not in described]
    assert [name for name in missing if not name.startswith(NOT_IMPORTED)] == []


@pytest.mark.parametrize("name", SHOWN)
def test_everybody_can_use_it(browser: Browser, site: Path, name: str) -> None:
    """axe finds nothing in any size and scheme, and no page is wider than the screen."""
    wrong: list[str] = []
    page = opened(browser, site / f"{name}.html", wrong)
    for scheme, (width, height) in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        wrong += (
            f"{scheme} {width}: {found['id']}: {found['nodes'][0]['html']}"
            for found in Axe().run(page).response["violations"]
        )
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wrong.append(f"{scheme} {width}: too wide")
    page.context.close()
    assert wrong == []


def test_everybody_can_use_every_other_page(browser: Browser, site: Path) -> None:
    """axe finds nothing in the other pages either, each in one size and one scheme."""
    wrong: list[str] = []
    shown = {site / f"{name}.html" for name in SHOWN}
    paths = sorted({*site.rglob("*.html")} - shown)
    assert len(paths) > 50
    page = opened(browser, paths[0], wrong)
    for path, (scheme, (width, height)) in zip(paths, cycle(LOOKS), strict=False):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.goto(path.as_uri())
        where = f"{path.relative_to(site)} {scheme} {width}"
        wrong += (
            f"{where}: {found['id']}: {found['nodes'][0]['html']}"
            for found in Axe().run(page).response["violations"]
        )
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wrong.append(f"{where}: too wide")
    page.context.close()
    assert wrong == []


def test_the_search_finds_a_page_without_a_server(browser: Browser, site: Path) -> None:
    wrong: list[str] = []
    page = opened(browser, site / "search.html", wrong)
    page.goto((site / "search.html").as_uri() + "?q=COMITY_MIN_DELAY")
    page.wait_for_selector("#search-results li a[href*='settings']")
    page.context.close()
    assert wrong == []


def test_the_pages_need_no_script(browser: Browser, site: Path) -> None:
    page = opened(browser, site / "index.html", [], java_script_enabled=False)
    page.locator("article a[href='start-crawling.html']").click()
    assert "I crawl" in page.inner_text("h1")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("label.nav-overlay-icon").click()
    page.locator(".sidebar-tree a[href='settings.html']").click()
    assert "COMITY_MIN_DELAY" in page.inner_text("article")
    page.context.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a page](missing.md)", "missing.md"),
        ("[a section](#missing)", "missing"),
        ("[a section](other.md#missing)", "missing"),
        ('<a href="missing.html">a page</a>', "missing.html does not exist"),
        ('<a href="other.html#missing">a section</a>', "other.html#missing has no such section"),
        ('<img alt="" src="https://example.com/a.png">', "loads https://example.com/a.png"),
        ('<script src="//example.com/a.js"></script>', "loads //example.com/a.js"),
    ],
)
def test_a_broken_link_and_a_file_of_another_host_are_errors(
    text: str, problem: str, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text(f"# Pages\n\n- [Other](other.md)\n\n{text}\n", "utf-8")
    (docs / "other.md").write_text("# Other\n", "utf-8")
    done = build(docs, tmp_path / "out")
    assert done.returncode == 1
    assert problem in done.stderr
