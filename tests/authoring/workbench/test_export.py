"""The workbench as static files: a real Chromium runs it by Pyodide, without a server of comity."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from axe_playwright_python.sync_playwright import Axe
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from playwright.sync_api import Browser, Page, expect

from comity.authoring.commands import workbench as command
from comity.authoring.workbench import markup
from comity.authoring.workbench.desk import Desk, desk_of
from comity.authoring.workbench.expectations import check_sentences
from comity.authoring.workbench.export import export, python_archive
from comity.authoring.workbench.in_browser import NEEDS_LXML, Bench, pack
from comity.authoring.workbench.link import fragment_of
from comity.authoring.workbench.lxml_etree import NeedsLxml, XMLParser, fromstring
from comity.authoring.workbench.state import (
    Choices,
    State,
    safe_fixes,
    view_of,
    wish_named,
)
from comity.policies import Fetched, PolicyError
from tests.authoring.workbench.workbench_process import started_browser

pytestmark = pytest.mark.requirement("IDE-1")

ORIGIN = "https://example.com"
ROBOTS = b"User-agent: *\nDisallow: /private/\nAllow: /private/press/\n"
TDMREP = "/.well-known/tdmrep.json"
PREFERENCES = "/automation-preferences.txt"
RSL = (
    b'<?xml version="1.0"?>\n<!-- ours -->\n<rsl xmlns="https://rslstandard.org/rsl">\n<content url="/">'
    b'<license><prohibits type="usage">ai-train</prohibits></license></content></rsl>'
)
AI_XML = (
    b"<ai-txt><user-agent name='*'><path value='/' type='html'><element value='p'>"
    b"<disallow>Train</disallow></element></path></user-agent></ai-txt>"
)

# Sites as an author types them, each with a further choice.
FILE_SETS: dict[str, tuple[dict[str, bytes], dict[str, str]]] = {
    "plain": ({"/robots.txt": ROBOTS}, {"urls": "/\n/private/a\n/private/press/b"}),
    "groups and pace": (
        {
            "/robots.txt": b"User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 5\n"
            b"Request-rate: 1/10\nVisit-time: 0600-0845\n"
        },
        {"agent": "GPTBot"},
    ),
    "content signals": (
        {"/robots.txt": b"User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"},
        {"uses": "train-ai, search"},
    ),
    "content usage": (
        {
            "/robots.txt": b"User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /a train-ai=y\n"
        },
        {"urls": "/\n/a"},
    ),
    "tdmrep": (
        {
            TDMREP: b'[{"location": "/a*", "tdm-reservation": 1, "tdm-policy": "https://p.example/"},]'
        },
        {"urls": "/\n/a1", "purposes": "research"},
    ),
    "ai.txt": (
        {
            "/ai.txt": b"User-agent: *\n  Path: / html\n    Element: p\n      Disallow: Train\n"
            b"      Guide: Summarize\n        Guideline: Name the source.\n"
        },
        {"action": "Summarize"},
    ),
    "automation preferences": (
        {PREFERENCES: b"User-agent: *\nDisallow: /checkout\n"},
        {"urls": "/checkout/1"},
    ),
    "mistakes": (
        {"/robots.txt": b"Dissallow: /a\nUser-agent: \nAllow\nDisallow: b\xe2\x80\xae\n"},
        {"urls": "/a\n/b", "agent": "no token"},
    ),
    "an HTML page in place of robots.txt": (
        {"/robots.txt": b"<!doctype html><title>Not found</title><p>Nothing here</p>\n"},
        {},
    ),
    "licence and ACAP": (
        {
            "/robots.txt": b"License: https://example.com/license.xml\nUser-agent: *\n"
            b"ACAP-crawler: *\nACAP-disallow-crawl: /a\nDisallow: /c # comity: ignore robots\n"
        },
        {"urls": "/a\n/b"},
    ),
}


def state_of(files: dict[str, bytes], choices: dict[str, str]) -> State:
    fetched = {ORIGIN + path: Fetched(status=200, body=body) for path, body in files.items()}
    return State(ORIGIN, fetched, {}, Choices()).with_choices(**choices)


def parts_of(state: State) -> dict[str, str]:
    """Return the parts of the page that the server of the workbench shows."""
    opened = next(iter(state.files), "")
    parts = markup.parts(state, view_of(state), opened, [], is_editable=True)
    del parts["files"]  # it marks the files that a link has changed
    return {**parts, **markup.forms(state), "wishes": markup.wishes(), "wish": ""}


def without_moments(parts: dict[str, str]) -> dict[str, str]:
    """Leave out the ends of temporary permissions, which begin with the moment of the answer."""
    return {part: re.sub(r"until \d[^ <]+", "", html) for part, html in parts.items()}


def asked(bench: Bench, **message: object) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(bench.handle(json.dumps(message)))
    return answer


@pytest.mark.parametrize("name", FILE_SETS)
def test_a_packed_site_has_the_parts_of_the_server(name: str) -> None:
    state = state_of(*FILE_SETS[name])
    answer = asked(Bench(pack("a site", state)), act="start", fragment="")
    expected = parts_of(state)
    assert {part: answer["parts"][part] for part in expected} == expected
    assert answer["editor"]["name"] == next(iter(FILE_SETS[name][0]))


def test_actions_change_the_files() -> None:
    bench = Bench(
        pack("a site", state_of({"/robots.txt": b"User-agent: *\r\nDissallow: /a\r\n"}, {}))
    )
    asked(bench, act="start", fragment="")
    fixed = asked(bench, act="fix", number="0")
    assert fixed["editor"]["text"] == "User-agent: *\nDisallow: /a\n"
    assert fixed["line"] == 2
    asked(bench, act="type", url=f"{ORIGIN}/robots.txt", text="User-agent: *\nDisallow: /\n")
    assert "Refused" in asked(bench, act="choose", name="agent", value="x")["parts"]["answers"]
    saved = asked(bench, act="download")["download"]
    assert saved == {"name": "robots.txt", "body": "VXNlci1hZ2VudDogKg0KRGlzYWxsb3c6IC8NCg=="}
    added = asked(bench, act="add", url=f"{ORIGIN}/ai.txt")
    assert added["editor"]["name"] == "/ai.txt"
    shown = asked(bench, act="show-wish", wish="slower")["parts"]["wish"]
    assert shown == markup.wish(wish_named("slower"), ORIGIN)  # type: ignore[arg-type]
    fields = {"wish": "slower", "seconds": "5"}
    wished = asked(bench, act="wish", fields=fields, formats=["robots.txt"])
    assert "the lines are in /robots.txt" in wished["say"]
    assert "Crawl-delay: 5" in wished["editor"]["text"]
    fragment = asked(bench, act="link")["fragment"]
    linked = asked(bench, act="start", fragment=f"#{fragment}")
    assert "/robots.txt" in linked["say"]
    invalid = asked(bench, act="start", fragment="#no link")
    assert invalid["say"]
    assert invalid["editor"]
    assert {"crawlers", "form", "wishes"} <= {*invalid["parts"]}


def test_all_fixes_that_change_no_decision_are_made_at_once() -> None:
    robots = b"User-agent: *\nDissallow: /a\nUser-agent: b\nDissallow: /c\n"
    site = state_of({"/robots.txt": robots}, {})
    problems = view_of(site).problems[f"{ORIGIN}/robots.txt"]
    bench = Bench(pack("a site", site))
    assert 'data-act="fix-all"' in asked(bench, act="start", fragment="")["parts"]["problems"]
    expected = site.with_fixes(f"{ORIGIN}/robots.txt", safe_fixes(problems))
    text = asked(bench, act="fix-all")["editor"]["text"]
    assert text.encode() == expected.files[f"{ORIGIN}/robots.txt"].body != robots


def test_the_menu_and_the_field_for_the_crawler_show_one_choice() -> None:
    bench = Bench(pack("a site", state_of({"/robots.txt": ROBOTS}, {})))
    first = asked(bench, act="start", fragment="")["parts"]
    assert "<caption>Everybody on /</caption>" in first["answers"]
    assert '<option value="" selected>Everybody' in first["crawlers"]
    typed = asked(bench, act="choose", name="other", value="examplebot")["parts"]
    assert '<option value="examplebot" selected>' in typed["crawlers"]
    assert "other-crawler" not in typed  # the field in use keeps its focus
    chosen = asked(bench, act="choose", name="agent", value="GPTBot")["parts"]
    assert 'value="GPTBot"' in chosen["other-crawler"]
    assert "<caption>GPTBot on /</caption>" in chosen["answers"]
    url = f"{ORIGIN}/robots.txt"
    named = asked(bench, act="type", url=url, text="User-agent: newbot\nDisallow: /\n")["parts"]
    assert 'value="newbot"' in named["crawlers"]


def test_sentences_are_checked_by_an_action_of_their_own() -> None:
    sentences = "everybody may fetch /private/a"
    site = state_of({"/robots.txt": ROBOTS}, {"expectations": sentences})
    bench = Bench(pack("a site", site))
    started = asked(bench, act="start", fragment="")["parts"]
    assert sentences in started["expectations-form"]
    assert "expectations" not in started
    checked = asked(bench, act="check")
    assert checked == {"parts": {"expectations": markup.expectations(site, check_sentences(site))}}
    assert "0 of 1 hold." in checked["parts"]["expectations"]
    written = asked(bench, act="today")
    assert "added" in written["say"]
    assert written["parts"]["expectations-form"].count(sentences) == 1


ISOLATED = """
import json, sys
sys.path[:] = [path for path in sys.path if "site-packages" not in path] + [sys.argv[1]]
from comity.authoring.workbench.in_browser import Bench
for line in sys.stdin:
    bench = Bench(json.loads(line))
    answer, checked = (
        json.loads(bench.handle(json.dumps({"act": act, "fragment": ""})))
        for act in ("start", "check")
    )
    answer["parts"] |= checked["parts"]
    print(json.dumps(answer))
"""


NAMES = st.sampled_from(("a", "b:c", "xml:lang", "main"))
TEXTS = st.sampled_from(
    ("", "t", " &amp;&#10;\n", "<![CDATA[<]]>", "<!-- c -->", "<?p i?>", "\u00e9")
)
ELEMENTS = st.recursive(
    TEXTS,
    lambda inner: st.builds(
        lambda name, value, content: f"<{name} {name}='{value}'>{''.join(content)}</{name}>",
        NAMES.filter(lambda name: name != "xml:lang"),
        st.sampled_from(("", "v", "\t&lt;\n")),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


@given(
    before=TEXTS.filter(lambda text: text[:2] in ("", "<?") or text[:4] == "<!--"), content=ELEMENTS
)
def test_trees_are_as_lxml_builds_them(before: str, content: str) -> None:
    body = f"{before}<r xmlns:b='urn:b' xml:lang='en'>{content}</r>{before}".encode()
    ours = fromstring(body, XMLParser())
    theirs = etree.fromstring(body)
    assert [*ours.itertext()] == [*theirs.itertext()]
    for tree in (ours, theirs):
        assert [node.text for node in tree.itersiblings()] == [
            node.text for node in theirs.itersiblings(preceding=True)
        ]
    for node, twin in zip(ours.iter(), theirs.iter(), strict=True):
        assert (node.text or "", node.tail or "") == (twin.text or "", twin.tail or "")
        assert isinstance(node.tag, str) == isinstance(twin.tag, str)
        if isinstance(node.tag, str):
            assert (node.tag, node.items()) == (twin.tag, twin.items())
    for names in (("*",), ("{*}c",), ("{urn:b}*", "main"), ("a",)):
        assert [node.tag for node in ours.iter(*names)] == [
            node.tag for node in theirs.iter(*names)
        ]


@pytest.mark.slow
def test_without_lxml_everything_is_read_as_with_lxml_or_not_at_all(tmp_path: Path) -> None:
    """The Python of the export runs here as in the browser: without the packages of this machine."""
    with ZipFile(io.BytesIO(python_archive())) as archive:
        archive.extractall(tmp_path)
    demo = desk_of(None).state()
    demo = demo.with_choices(expectations="GPTBot must not fetch /a\neverybody may fetch /")
    states = [state_of(*files) for files in FILE_SETS.values()]
    # feed.xml is a page in XML, which tells lines as only libxml2 counts them.
    feed = f"{demo.origin}/features/feed.xml"
    states += [demo.with_choices(page=page, urls=page) for page in demo.pages if page != feed]
    states.append(demo.with_choices(page=""))
    states += [
        state_of({"/robots.txt": b"License: /license.xml\n", "/license.xml": RSL}, {}),
        state_of({"/ai.txt": AI_XML}, {}),
    ]
    unread = [demo.with_choices(page=feed, urls=feed)]
    unread += [
        state_of({"/ai.txt": body}, {})
        for body in (b"<ai-txt>", b"<a:b/>", b"<!DOCTYPE ai-txt SYSTEM 'a'><ai-txt/>", b"<a>" * 999)
    ]
    done = subprocess.run(
        [sys.executable, "-S", "-c", ISOLATED, str(tmp_path)],
        input="".join(f"{json.dumps(pack('', state))}\n" for state in (*states, *unread)),
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for state, answer in zip(states, answers, strict=False):
        expected = without_moments(parts_of(state))
        expected["expectations"] = markup.expectations(state, check_sentences(state))
        parts = without_moments(answer["parts"])
        assert {part: parts[part] for part in expected} == expected
        preview = view_of(state).preview
        assert answer["frame"] == (preview.html if preview else "")
    for answer in answers[len(states) :]:
        assert NEEDS_LXML in answer["parts"]["answers"]
        assert NEEDS_LXML in answer["parts"]["problems"]
        assert "verdict" not in answer["parts"]["answers"]


def test_whatever_needs_lxml_ends_with_an_error_that_no_reader_of_files_catches() -> None:
    with pytest.raises(NeedsLxml):
        _ = import_module("comity.authoring.workbench.lxml_etree").tostring
    with pytest.raises(NeedsLxml):
        _ = fromstring(b"<a/>", XMLParser()).xpath
    assert not issubclass(NeedsLxml, Exception)


def test_an_export_says_what_is_missing_or_in_the_way(tmp_path: Path) -> None:
    desk = Desk("a site", state_of({"/robots.txt": ROBOTS}, {}))
    with pytest.raises(PolicyError, match=r"has no pyodide\.mjs: run `npm install pyodide"):
        export(desk, tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()
    for name in (
        "pyodide.mjs",
        "pyodide.asm.mjs",
        "pyodide.asm.wasm",
        "python_stdlib.zip",
        "pyodide-lock.json",
    ):
        (tmp_path / name).touch()
    with pytest.raises(PolicyError, match="has other files: name a new folder"):
        export(desk, tmp_path, tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/site.json").touch()  # an older export
    assert export(desk, tmp_path / "out", tmp_path) > 100_000


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package `pyodide` of npm, as the docs install it."""
    assert shutil.which("npm"), "npm is missing: apt-get install npm"
    folder = tmp_path_factory.mktemp("npm")
    subprocess.run(
        [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--silent",
            f"pyodide@{command.PYODIDE_VERSION}",
        ],
        cwd=folder,
        check=True,
        timeout=300,
    )
    return folder / "node_modules/pyodide"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    arguments = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        address = re.search(r"http://\S+/", process.stdout.readline())
        assert address
        try:
            yield address[0]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


def answers_of(page: Page) -> int:
    return int(page.locator("body").get_attribute("data-answered") or 0)


def wait_for_answer(page: Page, count: int) -> None:
    expect(page.locator("body")).to_have_attribute("data-answered", str(count), timeout=120_000)


@pytest.mark.slow
def test_the_export_answers_in_the_browser_alone_as_the_server_does(
    pyodide: Path, browser: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a.html").write_text("<!doctype html><p>free<p class=a>named", "utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "comity", "workbench", "site", "--origin", ORIGIN),
            *("--export", str(folder), "--pyodide", str(pyodide)),
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert str(folder) in done.stdout
    start = desk_of(str(tmp_path / "site"), origin=ORIGIN).state()
    start = replace(start, choices=Choices(page=f"{ORIGIN}/a.html"), names={})
    expect.set_options(timeout=30_000)  # other programs run on this machine
    with served(folder) as url:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.context.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((url, "data:", "blob:"))
                else wrong.append(request.url)
            ),
        )
        page.goto(url)
        wait_for_answer(page, 1)
        assert page.locator("#part-title").inner_text() == ORIGIN  # and not the path of the folder
        normal = "html => { const box = document.createElement('div'); box.innerHTML = html; return box.innerHTML; }"
        for count, (name, (files, choices)) in enumerate(FILE_SETS.items(), 2):
            state = replace(start, files=state_of(files, {}).files).with_choices(**choices)
            page.evaluate(
                "fragment => { location.hash = fragment; }", fragment_of(state, start.documents)
            )
            wait_for_answer(page, count)
            for part, expected in parts_of(state).items():
                assert page.locator(f"#part-{part}").inner_html() == page.evaluate(
                    normal, expected
                ), (
                    name,
                    part,
                )
            if name == "ai.txt":
                marked = page.frame_locator("#frame").locator("[data-part=guide]")
                expect(marked.first).to_contain_text("free")
        # The user types and asks.
        state = state_of({"/robots.txt": b"User-agent: *\n"}, {})
        page.evaluate(
            "fragment => { location.hash = fragment; }", fragment_of(state, start.documents)
        )
        expect(page.locator("#editor")).to_have_value("User-agent: *\n")
        expect(page.locator("#part-answers .verdict").first).to_have_text("Allowed")
        page.locator("#editor").focus()
        page.keyboard.press("Control+End")
        page.keyboard.type("Disallow: /")
        expect(page.locator("#part-answers .verdict").first).to_have_text("Refused", timeout=30_000)
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
        # The menus, the sentences and the wishes are those of the server.
        page.get_by_label("Crawler", exact=True).select_option("CCBot")
        expect(page.locator("caption")).to_have_text("CCBot on /")
        expect(page.get_by_label("Another crawler")).to_have_value("CCBot")
        page.get_by_label("Sentences, one per line").fill("everybody may fetch /")
        expect(page.locator("#part-expectations .verdict")).to_have_text("Does not hold:")
        page.get_by_role("button", name="Write what holds now").click()
        expect(page.locator("#status")).to_contain_text("added.")
        page.get_by_role("combobox", name="What do you want?").select_option("slower")
        page.get_by_label("Seconds between two requests").fill("7")
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
        page.get_by_role("button", name="Write it into the files").click()
        expect(page.locator("#status")).to_contain_text("Slower: the lines are in /robots.txt.")
        expect(page.locator("#editor")).to_have_value(re.compile("Crawl-delay: 7"))
        # What needs lxml ends with a sentence, and never with an answer.
        page.locator("#part-answers button[data-act=open]").first.click()
        page.get_by_role("button", name="Add /ai.txt").click()
        expect(page.locator("#name")).to_have_text("/ai.txt")
        page.locator("#editor").fill("<ai-txt>")
        expect(page.locator("#part-answers")).to_contain_text(NEEDS_LXML, timeout=30_000)
        expect(page.locator("#part-problems")).to_contain_text(NEEDS_LXML)
        expect(page.locator("#part-answers .verdict")).to_have_count(0)
        assert wrong == []
