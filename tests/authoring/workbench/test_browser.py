"""The workbench in a real Chromium: the user reads, types and saves."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

from comity.authoring.expectations.documents import read_document
from tests.authoring.workbench.workbench_process import (
    Workbench,
    started_browser,
    workbench,
)

pytestmark = [pytest.mark.slow, pytest.mark.requirement("IDE-1")]

ROBOTS = "User-agent: *\nDisallow: /private/\nAllow: /private/press/\n"
AI_TXT = (
    "User-agent: *\n  Path: / html\n    Element: blockquote\n      Disallow: Train\n"
    "    Element: q\n      Disallow: Index\n"
)
PAGE = "<!doctype html><title>A page</title><p>free</p><blockquote>quoted</blockquote><q>short</q>"
HOSTILE = """<!doctype html><script>alert(1)</script><img src=http://evil.example/a onerror=alert(2)>
<meta http-equiv=refresh content="0;url=http://evil.example/b">
<style>@import "http://evil.example/c"; * {display: none}</style>
<iframe src=http://evil.example/d></iframe><a href=http://evil.example/e target=_top>leave</a>
<svg onload=alert(3)></svg>
<form action=http://evil.example/f><button autofocus onfocus=alert(4)>send</button></form>
<blockquote hidden>quoted</blockquote>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=30_000)  # other programs run on this machine
    with started_browser() as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    site.mkdir()
    for name, content in {
        "robots.txt": ROBOTS,
        "ai.txt": AI_TXT,
        "a.html": PAGE,
        "hostile.html": HOSTILE,
    }.items():
        (site / name).write_text(content, "utf-8")
    return site


@pytest.fixture
def bench(folder: Path) -> Iterator[Workbench]:
    with workbench(str(folder), folder=folder.parent) as started:
        yield started


class Tab:
    """A tab of the browser, and all errors in it."""

    def __init__(self, browser: Browser, bench: Workbench, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.on("page", self._watch)
        self.wrong: list[str] = []
        self._origin = bench.origin
        self.page = self.opened(bench.url)

    def _watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith(
            (self._origin, self._origin.replace("http", "ws"), "data:", "about:", "blob:")
        ):
            self.wrong.append(f"request: {request.url}")

    def opened(self, url: str) -> Page:
        page = self.context.new_page()
        page.goto(url)
        expect(page.locator(".cm-content")).to_be_visible(timeout=30_000)
        expect(page.locator("table")).to_be_visible(timeout=30_000)
        return page


@pytest.fixture
def tab(browser: Browser, bench: Workbench) -> Iterator[Tab]:
    opened = Tab(browser, bench, viewport={"width": 1400, "height": 900})
    yield opened
    opened.context.close()
    assert opened.wrong == []


def decision(page: Page, path: str) -> str:
    return page.locator(".pages li", has_text=path).locator(".verdict").inner_text()


def write(page: Page, text: str) -> None:
    """Type at the end of the file, key by key."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)


def ask_about(page: Page, *paths: str) -> None:
    page.get_by_label("Pages, one path per line").fill("\n".join(paths))


def test_typing_changes_findings_and_decisions(tab: Tab) -> None:
    page = tab.page
    ask_about(page, "/new/1", "/private/x")
    expect(page.locator(".pages li")).to_have_text(
        [re.compile("/new/1 Allowed"), re.compile("/private/x Refused")]
    )
    write(page, "Disallow: /new/\nDisallow: other")
    expect(page.locator(".pages li").first).to_have_text(re.compile("/new/1 Refused"))
    expect(page.locator(".problems li", has_text="matches nothing")).to_contain_text(
        "Line 5, column 11"
    )
    expect(page.locator(".cm-line").nth(3)).to_have_class(re.compile("decides-deny"))
    expect(page.locator("nav button").first).to_contain_text(re.compile("finding.*, not saved"))


@pytest.mark.requirement("IDE-6")
def test_a_fix_is_made_by_its_button(tab: Tab) -> None:
    page = tab.page
    write(page, "Disalow: /new/\n")
    page.get_by_role("button", name="Fix: Write Disallow").click()
    expect(page.locator(".cm-line").nth(3)).to_have_text("Disallow: /new/")
    expect(page.get_by_role("button", name="Fix: Write Disallow")).to_have_count(0)
    expect(page.locator(".cm-content")).to_be_focused()


def test_a_reason_goes_to_its_file_and_line(tab: Tab) -> None:
    page = tab.page
    page.locator("nav button", has_text="/ai.txt").click()
    expect(page.locator(".editing h2").first).to_have_text("/ai.txt")
    ask_about(page, "/private/x")
    page.locator(".answer .reasons button", has_text="/robots.txt line 2").first.click()
    expect(page.locator(".editing h2").first).to_have_text("/robots.txt")
    expect(page.locator(".cm-line").nth(1)).to_have_class(re.compile("decides-deny"))
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.type("# here ")
    expect(page.locator(".cm-line").nth(1)).to_have_text("# here Disallow: /private/")


def test_agents_and_uses_are_chosen(tab: Tab) -> None:
    page = tab.page
    ask_about(page, "/a.html")
    expect(page.locator(".pages li")).to_have_count(1)
    write(page, "\nUser-agent: otherbot\nDisallow: /\n")
    page.get_by_label("Crawler", exact=True).select_option("otherbot")
    expect(page.locator(".pages .verdict")).to_have_text(["Refused"])
    page.get_by_text("Another crawler, its purposes and uses").click()
    expect(page.get_by_label("Another crawler")).to_have_value("otherbot")
    page.get_by_label("Uses of the content").fill("train-ai")
    expect(page.locator("tbody th", has_text="train-ai")).to_be_visible()
    page.get_by_label("Crawler", exact=True).select_option("Everybody")
    expect(page.locator(".pages .verdict")).to_have_text(["Allowed"])
    page.get_by_label("Another crawler").fill("no name")
    expect(page.locator("[role=alert]").first).to_contain_text("product token")
    page.get_by_label("Another crawler").fill("newbot")
    expect(page.get_by_label("Crawler", exact=True)).to_have_value("newbot")
    expect(page.locator("caption")).to_have_text("newbot on /a.html")


def test_the_answer_is_in_the_upper_half_of_the_first_screen(browser: Browser) -> None:
    """The demonstration site has four pages to ask about, and a long title."""
    with TemporaryDirectory() as folder, workbench(folder=Path(folder)) as started:
        opened = Tab(browser, started, viewport={"width": 1440, "height": 900})
        box = opened.page.locator("table.answer").bounding_box()
        opened.context.close()
    assert box
    assert box["y"] < 450


def test_what_is_saved_is_in_the_folder(tab: Tab, folder: Path) -> None:
    page = tab.page
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    write(page, "Disallow: /new/\n")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("/robots.txt is saved.")
    assert (folder / "robots.txt").read_text() == ROBOTS + "Disallow: /new/\n"
    write(page, "# more\n")
    expect(page.locator("nav button").first).to_contain_text("not saved")
    page.keyboard.press("Control+s")
    expect(page.locator("nav button").first).not_to_contain_text("not saved")
    assert (folder / "robots.txt").read_text().endswith("# more\n")


def test_a_file_that_has_changed_on_the_disk_is_not_written_over(tab: Tab, folder: Path) -> None:
    page = tab.page
    write(page, "# mine\n")
    (folder / "robots.txt").write_text("# theirs\n")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("has changed on the disk")
    assert (folder / "robots.txt").read_text() == "# theirs\n"
    page.get_by_role("button", name="Take what is on the disk").click()
    expect(page.locator(".cm-line").first).to_have_text("# theirs")
    write(page, "# mine\n")
    (folder / "robots.txt").write_text("# theirs again\n")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Save mine over it").click()
    expect(page.get_by_role("status")).to_have_text("/robots.txt is saved.")
    assert (folder / "robots.txt").read_text() == "# theirs\n# mine\n"


def test_a_file_that_is_not_there_is_added(tab: Tab, folder: Path) -> None:
    page = tab.page
    page.get_by_role("button", name="Add /automation-preferences.txt").click()
    expect(page.locator(".editing h2").first).to_have_text("/automation-preferences.txt")
    write(page, "scope: /\nallowed-methods: GET\n")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("/automation-preferences.txt is saved.")
    assert (folder / "automation-preferences.txt").read_text() == "scope: /\nallowed-methods: GET\n"


def test_a_wish_is_written_and_saved(tab: Tab, folder: Path) -> None:
    page = tab.page
    page.locator("#wish").select_option("Slower")
    page.get_by_label("Seconds between two requests").fill("7")
    page.get_by_role("button", name="Write it into the files").click()
    expect(page.get_by_role("status")).to_have_text(
        "Slower: the lines are in /robots.txt, not saved yet."
    )
    expect(page.locator(".cm-content")).to_contain_text("Crawl-delay: 7")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("/robots.txt is saved.")
    assert (folder / "robots.txt").read_text() == (
        f"{ROBOTS}\nUser-agent: *\nCrawl-delay: 7\nDisallow:\n"
    )


def test_a_wish_about_crawlers_needs_their_names(tab: Tab) -> None:
    page = tab.page
    wishes = page.locator("#wish")
    wishes.select_option("Everybody but X")
    page.get_by_role("button", name="Write it into the files").click()
    crawlers = page.get_by_label("Names of the crawlers")
    expect(crawlers).to_be_focused()  # the browser asks for the value
    crawlers.fill("a/b")
    page.get_by_role("button", name="Write it into the files").click()
    expect(page.get_by_role("status")).to_contain_text("Nothing is added: `a/b` is no list of")
    wishes.select_option("No snippets")
    page.get_by_role("button", name="Write it into the files").click()
    element = page.get_by_role("region", name="Add to the head of each page")
    expect(element).to_have_text('<meta name="robots" content="nosnippet">')


def test_a_link_brings_back_choices_and_what_is_not_saved(tab: Tab, folder: Path) -> None:
    page = tab.page
    write(page, "Disallow: /new/\n")
    ask_about(page, "/new/1", "/a.html")
    page.get_by_text("Another crawler, its purposes and uses").click()
    page.get_by_label("Another crawler").fill("otherbot")
    page.get_by_role("button", name="Link to this").click()
    expect(page).to_have_url(re.compile(r"/#1\."))
    again = tab.opened(page.url)
    expect(again.get_by_label("Crawler", exact=True)).to_have_value("otherbot")
    expect(again.get_by_label("Pages, one path per line")).to_have_value("/new/1\n/a.html")
    expect(again.locator(".cm-content")).to_contain_text("Disallow: /new/")
    expect(again.get_by_role("status")).to_contain_text("not saved: /robots.txt")
    expect(again.locator(".pages li").first).to_have_text(re.compile("/new/1 Refused"))
    assert (folder / "robots.txt").read_text() == ROBOTS
    broken = tab.opened(page.url[:-5])
    expect(broken.get_by_role("status")).to_contain_text("not a link of a workbench")
    expect(broken.locator(".cm-content")).not_to_contain_text("/new/")


def test_elements_are_outlined_by_action(tab: Tab) -> None:
    page = tab.page
    covered = page.frame_locator("iframe").locator("[data-part]")
    expect(covered).to_have_text(["quoted"])
    page.get_by_label("Action on elements").select_option("Index")
    expect(covered).to_have_text(["short"])
    expect(page.locator(".parts li.deny")).to_contain_text("No Index")
    page.locator("nav button", has_text="/ai.txt").click()
    write(page, "    Element: p\n      Disallow: *\n")
    expect(covered).to_have_text(["free", "short"])
    box = page.frame_locator("iframe").locator("q").bounding_box()
    assert box
    assert box["width"] > 0


@pytest.mark.requirement("SEC-4")
def test_a_hostile_page_does_nothing(tab: Tab) -> None:
    """`tab` notes each load and each script."""
    page = tab.page
    page.get_by_label("Sample page").select_option("/hostile.html")
    frame = page.frame_locator("iframe")
    expect(frame.locator("[data-part]")).to_have_text(["quoted"])
    frame.get_by_text("leave").click()
    frame.get_by_text("send").click()
    expect(frame.locator("[data-part]")).to_have_text(["quoted"])
    expect(page.locator("iframe")).to_have_attribute("sandbox", "")
    page.get_by_role("button", name="Edit this page").click()
    expect(page.locator(".cm-content")).to_contain_text("<script>alert(1)</script>")


def test_hidden_characters_are_seen(tab: Tab) -> None:
    page = tab.page
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("# a\u202eb\U000e0041\n")
    expect(page.locator(".cm-specialChar")).to_have_attribute(
        "aria-label", re.compile("right-to-left override|202e")
    )
    expect(page.locator(".hidden-character")).to_have_text(["U+E0041"])


@pytest.mark.requirement("IDE-5")
def test_the_xml_form_and_the_prompt(tab: Tab) -> None:
    page = tab.page
    page.get_by_text("ai.txt in its other form", exact=True).click()
    xml = page.get_by_role("region", name="ai.txt, in its other form")
    expect(xml).to_contain_text("<?xml")
    written = xml.inner_text()
    page.get_by_text("The prompt for a model").click()
    expect(page.get_by_role("region", name="Prompt")).to_contain_text("blockquote")
    page.locator("nav button", has_text="/ai.txt").click()
    expect(page.locator(".editing h2").first).to_have_text("/ai.txt")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(written)
    page.get_by_role("button", name="Put this into ai.txt").click()
    expect(page.locator(".cm-content")).to_contain_text("Element: blockquote")
    expect(xml).to_have_text(written, use_inner_text=True)


def test_by_the_keyboard_alone(tab: Tab, folder: Path) -> None:
    """Tab reaches and leaves each control, and the focus is visible."""
    page = tab.page
    _tab_to(page, "nav button[data-url$='/ai.txt']")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator(".editing h2").first).to_have_text("/ai.txt")
    _tab_to(page, ".cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type("# typed\n")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status")).to_have_text("/ai.txt is saved.")
    assert (folder / "ai.txt").read_text() == AI_TXT + "# typed\n"
    page.keyboard.press("Escape")
    _tab_to(page, "#agent")
    page.keyboard.type("GPTBot")
    expect(page.locator("caption")).to_contain_text("GPTBot on ")
    _tab_to(page, "#urls")
    page.keyboard.press("Control+a")
    page.keyboard.type("/private/x")
    expect(page.locator(".pages .verdict")).to_have_text(["Refused"])
    _tab_to(page, "#action")
    page.keyboard.type("Index")
    expect(page.frame_locator("iframe").locator("[data-part]")).to_have_text(["short"])
    _tab_to(page, ".reasons button[data-url$='/robots.txt']")
    page.keyboard.press("Enter")
    expect(page.locator(".editing h2").first).to_have_text("/robots.txt")
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Escape")
    _tab_to(page, ".meaning > details > summary")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="ai.txt, in its other form")).to_be_visible()


def _tab_to(page: Page, selector: str) -> None:
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not come to {selector}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 768, 390])
def test_nobody_is_left_out(browser: Browser, bench: Workbench, scheme: Any, width: int) -> None:
    """axe-core finds no problem, and no element is wider than the screen."""
    opened = Tab(browser, bench, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = opened.page
    write(page, "Disallow: other\n")
    page.get_by_label("Sentences, one per line").fill("everybody may fetch /\nGPTBot may eat /")
    page.locator("#wish").select_option("Short snippets")
    expect(page.locator(".problems li", has_text="matches nothing")).to_be_visible()
    expect(page.get_by_text("1 of 2 hold.")).to_be_visible()
    page.get_by_role("button", name="Explain the line of the cursor").click()
    expect(page.locator("#line-help")).to_be_focused()
    for summary in page.locator("summary").all():
        summary.click()
    found = Axe().run(page, options={"iframes": False}).response["violations"]
    problems = [(violation["id"], violation["nodes"][0]["html"]) for violation in found]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    wide = page.evaluate("document.documentElement.scrollWidth")
    opened.context.close()
    assert (problems, opened.wrong) == ([], [])
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 23, 27)"}[scheme]
    assert wide <= width


@pytest.mark.requirement("IDE-2")
def test_a_name_is_completed_and_enter_ends_a_path(tab: Tab) -> None:
    page = tab.page
    write(page, "Disa")
    completion = page.locator(".cm-tooltip-autocomplete li").first
    expect(completion).to_contain_text("Disallow")
    expect(page.locator(".cm-completionInfo")).to_contain_text("RFC 9309")
    completion.click()
    expect(page.locator(".cm-line").nth(3)).to_have_text("Disallow: ")
    page.keyboard.type("/a\nDisallow: /b")
    expect(page.locator(".cm-line").nth(3)).to_have_text("Disallow: /a")
    page.keyboard.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete")).to_have_count(0)
    page.keyboard.type("\nAllow: /a")
    page.keyboard.press("Control+Space")
    expect(completion).to_contain_text("/a.html")


@pytest.mark.requirement("IDE-3")
def test_a_word_is_explained_by_the_mouse_and_by_the_keyboard(tab: Tab) -> None:
    page = tab.page
    page.locator(".word-keyword", has_text="Disallow").hover()
    expect(page.locator(".cm-tooltip .help")).to_contain_text("RFC 9309")
    page.locator(".cm-content").focus()  # the explanation may cover the text
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+.")
    expect(page.locator("#line-help")).to_contain_text("User-agent")
    expect(page.locator("#line-help")).to_be_focused()


@pytest.mark.requirement("IDE-6")
def test_fixes_are_in_the_text_and_those_that_change_decisions_are_single(tab: Tab) -> None:
    page = tab.page
    write(page, "Disalow: /b\nDisalow: /c\nDisallow: new/\n")
    line = page.locator(".cm-line").nth(5)
    fix = page.locator(".cm-tooltip").get_by_role("button", name="Fix: Write /new/")
    expect(line.locator("[class*=problem-]").first).to_be_visible()  # all of the text is judged
    page.get_by_role("button", name="Fix the 2 that change no decision").click()
    expect(page.locator(".cm-line").nth(3)).to_have_text("Disallow: /b")
    expect(line).to_have_text("Disallow: new/")
    expect(page.get_by_role("button", name="that change no decision")).to_have_count(0)
    line.locator("[class*=problem-]").first.hover()
    expect(fix).to_contain_text("(changes decisions)")
    fix.click()
    expect(line).to_have_text("Disallow: /new/")


def test_expectations_are_checked_while_files_change(tab: Tab) -> None:
    page = tab.page
    page.get_by_role("button", name="Write what holds now").click()
    sentences = page.get_by_label("Sentences, one per line")
    expect(sentences).to_have_value(re.compile(r"everybody must not fetch /private/"))
    expect(page.get_by_text(re.compile(r"^(\d+) of \1 hold\.$"))).to_be_visible()
    sentences.fill("everybody may fetch /new/")
    expect(page.get_by_text("1 of 1 hold.")).to_be_visible()
    write(page, "Disallow: /new/\n")
    row = page.locator(".expectations > li")
    expect(row).to_contain_text("Does not hold: everybody may fetch /new/")
    row.get_by_role("button", name="/robots.txt line 4").click()
    expect(page.locator(".cm-content")).to_be_focused()


def test_print_has_the_answers_and_no_controls(tab: Tab) -> None:
    page = tab.page
    page.emulate_media(media="print")
    for name in ("#wish", "#target", "nav.files", "iframe", "#urls"):
        expect(page.locator(name)).not_to_be_visible()
    expect(page.locator("table.answer")).to_be_visible()
    expect(page.locator(".cm-content")).to_be_visible()


def test_two_tabs_do_not_disturb_each_other(tab: Tab, bench: Workbench) -> None:
    other = tab.opened(bench.url)
    write(tab.page, "Disallow: /new/\n")
    ask_about(tab.page, "/new/1")
    ask_about(other, "/new/1")
    expect(tab.page.locator(".pages .verdict")).to_have_text(["Refused"])
    expect(other.locator(".pages .verdict")).to_have_text(["Allowed"])


def open_site(page: Page, target: str) -> None:
    page.get_by_label("Open a folder or URL").fill(target)
    page.keyboard.press("Enter")


def test_sentences_are_saved_beside_the_files_and_read_at_the_start(
    tab: Tab, bench: Workbench, folder: Path
) -> None:
    page = tab.page
    sentences = page.get_by_label("Sentences, one per line")
    sentences.fill("everybody may fetch /about\nGPTBot may fetch /about")
    expect(page.locator("[data-unsaved=true]")).to_have_count(1)
    page.get_by_role("button", name="Save as expectations.toml").click()
    expect(page.get_by_role("status")).to_have_text("expectations.toml is saved.")
    expect(page.locator("[data-unsaved=true]")).to_have_count(0)
    document = read_document(folder / "expectations.toml")
    assert [sentence.text for sentence in document.sentences] == [
        "everybody may fetch /about",
        "GPTBot may fetch /about",
    ]
    (folder / "expectations.toml").write_text('expectations = ["GPTBot may fetch /"]')
    sentences.fill("everybody may fetch /x")
    page.get_by_role("button", name="Save as expectations.toml").click()
    page.get_by_role("button", name="Take what is on the disk").click()
    expect(sentences).to_have_value("GPTBot may fetch /")
    again = tab.opened(bench.url).get_by_label("Sentences, one per line")
    expect(again).to_have_value("GPTBot may fetch /")


def test_another_folder_is_opened_and_saved_to(tab: Tab, bench: Workbench, folder: Path) -> None:
    page = tab.page
    other = folder.parent / "other"
    other.mkdir()
    (other / "ai.txt").write_text(AI_TXT, "utf-8")
    open_site(page, "other")
    expect(page.get_by_role("status")).to_have_text(f"{other} is open.")
    expect(page).to_have_title(f"comity workbench: {other}")
    expect(page.locator(".editing h2").first).to_have_text("/ai.txt")
    write(page, "# typed\n")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status")).to_have_text("/ai.txt is saved.")
    assert (other / "ai.txt").read_text() == AI_TXT + "# typed\n"
    assert (folder / "ai.txt").read_text() == AI_TXT
    again = tab.opened(bench.url)
    expect(again.locator(".editing h2").first).to_have_text("/ai.txt")
    expect(again.locator("nav li", has_text="/robots.txt")).to_contain_text("Add")


def test_what_is_not_saved_stays_until_its_user_agrees(tab: Tab, folder: Path) -> None:
    page = tab.page
    other = folder.parent / "empty"
    other.mkdir()
    write(page, "# typed\n")
    open_site(page, str(other))
    expect(page.get_by_role("status")).to_have_text("Not saved: /robots.txt.")
    expect(page.locator(".cm-content")).to_contain_text("# typed")
    page.get_by_role("button", name="and lose that").click()
    expect(page.get_by_role("status")).to_have_text(f"{other} is open.")
    expect(page.locator(".cm-content")).to_have_count(0)
    page.get_by_role("button", name="Add /robots.txt").click()
    expect(page.locator(".editing h2").first).to_have_text("/robots.txt")
    assert (folder / "robots.txt").read_text() == ROBOTS


@pytest.mark.requirement("SEC-2")
def test_what_may_not_be_opened_is_told_and_not_asked(tab: Tab, folder: Path, serve: Any) -> None:
    page = tab.page
    server = serve({"/robots.txt": ROBOTS, "/": "<p>inside"})
    open_site(page, server.url("/"))
    expect(page.get_by_role("status")).to_contain_text("may not be asked")
    open_site(page, "/")
    expect(page.get_by_role("status")).to_contain_text("/ is not opened: `/` is not below")
    open_site(page, " ")
    expect(page.get_by_role("status")).to_contain_text("Write a folder")
    expect(page.locator(".editing h2").first).to_have_text("/robots.txt")
    assert server.seen == []


def test_another_site_is_opened(
    browser: Browser, folder: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    first = serve({"/robots.txt": ROBOTS, "/": PAGE})
    second = serve({"/robots.txt": "User-agent: *\nDisallow: /second/\n", "/": PAGE})
    with workbench(first.url("/"), folder=folder) as started:
        opened = Tab(browser, started)
        open_site(opened.page, second.url("/"))
        expect(opened.page.locator(".cm-content")).to_contain_text("/second/")
        expect(opened.page.locator(".pages .verdict")).to_have_text(["Allowed"])
        opened.context.close()
    assert opened.wrong == []
    assert second.paths[0] == "/robots.txt"


def test_the_end_does_not_wait_for_a_site_that_does_not_answer(
    browser: Browser, folder: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`workbench` waits half a minute for the end, but the site would take ten minutes."""
    store = f"COMITY_STORE = {str(folder / 'policies.sqlite')!r}\n"
    (folder / "patient.py").write_text(f"COMITY_POLICY_TIMEOUT = 600\n{store}", "utf-8")
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "patient")
    first = serve({"/robots.txt": ROBOTS, "/": PAGE})
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        ExitStack() as held,
        workbench(first.url("/"), folder=folder) as started,
    ):
        opened = Tab(browser, started)
        open_site(opened.page, f"http://127.0.0.1:{silent.getsockname()[1]}/")
        held.enter_context(silent.accept()[0])  # the workbench asks, and gets no answer
        opened.context.close()


def test_nothing_is_left_where_it_was_started(tab: Tab, folder: Path) -> None:
    write(tab.page, "# x")
    assert [path.name for path in folder.parent.iterdir()] == ["site"]
