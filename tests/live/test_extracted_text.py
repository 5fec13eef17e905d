"""The text of pages as trafilatura finds it, on real servers in both modes: nothing in it that is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comity.spiders.site import SiteSpider
from comity.spiders.urls import UrlsSpider
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Crawled, Serve

    Crawl = Callable[..., Crawled]

AI = """User-agent: *
  Path: / html
    Element: .quote
      Disallow: Train
    Element: .listed
      Disallow: Index
"""
SENTENCE = "This sentence of an article has enough words in it that whoever looks for its text takes it for a part of that text."
PAGE = (
    "<!doctype html><title>Title</title><nav>menu</nav><article><h1>Heading</h1>"
    f"<p>FREE1 {SENTENCE}</p><p class=quote>MARK1 {SENTENCE}</p><p>FREE2 {SENTENCE} <b class=quote>MARK2 {SENTENCE}</b></p>"
    f"<div class=quote title=MARK3><p>MARK4 {SENTENCE}</p><!-- MARK5 --><script>MARK6</script></div>"
    f"<p class=listed>LISTED {SENTENCE}</p><p>FREE3 {SENTENCE}</p></article><footer>end</footer>"
)
FILES: dict[str, Any] = {"/robots.txt": "", "/ai.txt": AI, "/": PAGE}
USES = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow,index:allow"}


def _spans(item: Any, selector: str) -> list[Any]:
    elements = {element["selector"]: element for element in item["permissions"]["elements"]}
    return (
        [span for span in elements[selector]["spans"] if span[0] == "text"]
        if selector in elements
        else []
    )


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("elements", one_in(3, ["tag", "redact", "strip"]))
def test_what_is_refused_is_not_in_the_text(serve: Serve, crawl: Crawl, elements: str) -> None:
    site = serve(FILES)
    [item] = crawl(
        SiteSpider, USES | {"COMITY_ELEMENTS": elements}, url=site.url("/"), text="trafilatura"
    ).items
    assert "MARK" not in item["text"]
    assert all(mark in item["text"] for mark in ("FREE1", "FREE2", "LISTED", "FREE3"))
    assert "menu" not in item["text"]
    assert _spans(item, ".quote") == []
    assert [span[0] for span in _spans(item, ".listed")] == ["text"]
    assert item["permissions"]["uses"]["train"]["verdict"] == "allow"


@pytest.mark.requirement("MEET-5")
def test_other_uses_refuse_other_elements(serve: Serve, crawl: Crawl, tmp_path: Path) -> None:
    urls = tmp_path / "urls.txt"
    urls.write_text(serve(FILES).url("/"))
    [item] = crawl(
        UrlsSpider, USES | {"COMITY_USES": "index"}, file=str(urls), text="trafilatura"
    ).items
    assert "MARK1" in item["text"]
    assert "LISTED" not in item["text"]
    assert _spans(item, ".listed") == []
    assert [span[0] for span in _spans(item, ".quote")] == ["text"]


def test_a_page_without_rules_is_extracted_whole(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/": PAGE, "/robots.txt": ""})
    [item] = crawl(SiteSpider, USES, url=site.url("/"), text="trafilatura").items
    assert "MARK1" in item["text"]
    assert "menu" not in item["text"]


def test_the_text_is_that_of_main_unless_another_is_asked_for(serve: Serve, crawl: Crawl) -> None:
    site = serve(FILES)
    [default] = crawl(SiteSpider, USES, url=site.url("/")).items
    [named] = crawl(SiteSpider, USES, url=site.url("/"), text="main").items
    assert default["text"] == named["text"]
    assert [default["text"][start:end][:5] for _, start, end in _spans(default, ".quote")] == [
        "MARK1",
        "MARK2",
        "MARK4",
    ]


@pytest.mark.parametrize(
    "body", one_in(2, ["", "<", "<html></html>", "<p>", "\0" * 100, "<div>" * 3000 + "deep"])
)
def test_what_has_no_text_gives_none(serve: Serve, crawl: Crawl, body: str) -> None:
    site = serve(
        {"/robots.txt": "", "/ai.txt": AI, "/": serve.Answer(body, content_type="text/html")}
    )
    [item] = crawl(SiteSpider, USES, url=site.url("/"), text="trafilatura").items
    assert isinstance(item["text"], str)


WITHOUT_TRAFILATURA = (
    "import sys; sys.modules['trafilatura'] = None; from scrapy.cmdline import execute; execute()"
)


@pytest.mark.parametrize(
    ("spider", "argument"), [("site", "url=http://127.0.0.1:9/"), ("urls", "file=-")]
)
def test_where_it_is_not_installed_the_crawl_does_not_start(
    spider: str, argument: str, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-c",
        WITHOUT_TRAFILATURA,
        "crawl",
        spider,
        "-a",
        argument,
        "-a",
        "text=trafilatura",
    ]
    environment = os.environ | {
        "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings",
        "XDG_DATA_HOME": str(tmp_path),
    }
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    told = f'comity crawl {spider}: text=trafilatura needs trafilatura: pip install "comity[text]"'
    assert done.stderr.splitlines()[-1] == told
    assert "Traceback" not in done.stderr
