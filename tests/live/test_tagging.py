"""Captures of one site by several programs get the tags that comity's own crawl of it writes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastwarc.warc import ArchiveIterator

from comity.crawler.captures import open_captures
from comity.dataset.export.export import export
from comity.dataset.permissions.terms import Terms
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent
from comity.spiders.site import SiteSpider

if TYPE_CHECKING:
    from tests.conftest import Crawled, Loopback, Serve

USES = ("train", "index", "tdm")
AGENT = Agent("testbot", uses=USES)
SETTINGS = {
    "COMITY_USES": ",".join(USES),
    "COMITY_DROP_UNUSABLE": False,
    "COMITY_SKIP_UNUSABLE": False,
}

ROBOTS = """User-agent: *
Disallow: /private
Content-Usage: /news train-ai=n
Content-Signal: search=yes
ACAP-crawler: *
ACAP-disallow-index: /noindex
ACAP-allow-index: /until time-limit=30-days
"""
AI = """User-agent: *
  Path: /quotes
    Element: p.quote
      Disallow: train
  Path: /
    Element: aside
      Disallow: index
"""
TDM = json.dumps([{"location": "/reserved", "tdm-reservation": 1}])
PATHS = [
    "/",
    "/news/1",
    "/noindex/1",
    "/until/1",
    "/quotes/1",
    "/reserved",
    "/meta",
    "/field",
    "/zipped",
    "/aside",
    "/plain.txt",
]


def body(text: str, head: str = "") -> str:
    links = "".join(
        f'<a href="{path}">{path}</a> ' for path in [*PATHS, "/private/1", "/gone", "/moved"]
    )
    content = f"<main><p>{text}</p></main><nav>{links}</nav>"
    return f"<!doctype html><html><head><title>T</title>{head}</head><body>{content}</body></html>"


@pytest.fixture
def site(serve: Serve) -> Loopback:
    import gzip

    answer = serve.Answer
    pages: dict[str, Any] = {path: body(f"Page {path}") for path in PATHS}
    pages |= {
        "/robots.txt": ROBOTS,
        "/ai.txt": AI,
        "/.well-known/tdmrep.json": answer(TDM, content_type="application/json"),
        "/quotes/1": body("Free</p><p class=quote>Quoted"),
        "/aside": body("Free <aside>Said aside</aside>"),
        "/meta": body("Meta", '<meta name="robots" content="noai, max-snippet:20">'),
        "/field": answer(
            body("Field"),
            content_type="text/html",
            headers={"X-Robots-Tag": "noindex", "Content-Usage": "train-ai=n"},
        ),
        "/zipped": answer(
            gzip.compress(body("Zipped").encode()),
            content_type="text/html",
            headers={"Content-Encoding": "gzip"},
        ),
        "/private/1": body("Private"),
        "/moved": answer(status=302, headers={"Location": "/meta"}),
    }
    return serve(pages)


def by_wget(site: Loopback, folder: Path) -> Path:
    """It ignores robots.txt."""
    done = subprocess.run(
        [
            "wget",
            "--quiet",
            "--recursive",
            "--execute",
            "robots=off",
            "--warc-file=wget",
            site.url("/"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 8), done.stderr
    return folder / "wget.warc.gz"


def by_warcio(site: Loopback, folder: Path) -> Path:
    """In a process of its own: it patches http.client."""
    path = folder / "warcio.warc"
    urls = [site.url(path) for path in [*PATHS, "/private/1", "/gone"]]
    program = (
        "import sys\nfrom warcio.capture_http import capture_http\nimport http.client\nfrom urllib.parse import urlsplit\n"
        "with capture_http(sys.argv[1], warc_version='1.1'):\n"
        "  for url in sys.argv[2:]:\n"
        "    parts = urlsplit(url); made = http.client.HTTPConnection(parts.netloc); made.request('GET', parts.path)\n"
        "    made.getresponse().read(); made.close()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path), *urls], check=True, timeout=300)
    return path


def by_fastwarc(path: Path, folder: Path) -> Path:
    """Another program's file, written anew."""
    written = folder / "fastwarc.warc"
    with path.open("rb") as source, written.open("wb") as target:
        for record in ArchiveIterator(source, parse_http=False):
            record.write(target)
    return written


def compared(tag: dict[str, Any]) -> dict[str, Any]:
    """A tag without when its policies were fetched, and at which second of the day a permission ends."""
    uses = {
        name: {key: value[:10] if key == "until" else value for key, value in use.items()}
        for name, use in tag["uses"].items()
    }
    policies = {url: {**copy, "fetched_at": ""} for url, copy in tag["policies"].items()}
    return {key: value for key, value in tag.items() if key != "as_of"} | {
        "policies": policies,
        "uses": uses,
    }


@pytest.mark.requirement("TAG-1")
def test_captures_get_the_tags_of_a_crawl(
    site: Loopback, crawl: Callable[..., Crawled], tmp_path: Path
) -> None:
    own = tmp_path / "own.warc.gz"
    items = tmp_path / "crawled.jsonl"
    feeds = {str(own): {}, str(items): {"format": "jsonlines"}}
    crawl(SiteSpider, {**SETTINGS, "FEEDS": feeds}, url=site.url("/"))
    crawled = {item["final_url"]: item for item in map(json.loads, items.read_text().splitlines())}
    assert len(crawled) == len(PATHS)
    captures = {"own": own, "warcio": by_warcio(site, tmp_path)}
    if shutil.which("wget"):  # apt-get install wget
        captures["wget"] = by_wget(site, tmp_path)
    captures["fastwarc"] = by_fastwarc(captures.get("wget", captures["warcio"]), tmp_path)
    now = datetime.now(UTC)
    terms = Terms.of(["train"], now=now)
    wanted = [item["final_url"] for item in lines(exported(items, terms))]
    with open_captures([tmp_path / "policies.sqlite"], agent=AGENT, now=now) as policies:
        for name, path in captures.items():
            as_of = "capture" if name == "own" else "today"  # others have dates to a second
            judge = Judge(Question.of(AGENT, now=now, as_of=as_of), policies)
            tagged = tag_dataset([path], tmp_path / f"{name}.jsonl", judge)
            assert tagged.counts.unreadable == 0
            records = {record["final_url"]: record for record in lines(tmp_path / f"{name}.jsonl")}
            private = records.pop(site.url("/private/1"), None)
            assert records.keys() == crawled.keys(), name
            for url, record in records.items():
                assert compared(record["permissions"]) == compared(crawled[url]["permissions"]), (
                    name,
                    url,
                )
                same = ("text", "title", "links", "sha256", "content_type", "status")
                assert {key: record[key] for key in same} == {
                    key: crawled[url][key] for key in same
                }, (name, url)
            if name != "own":
                assert private is not None
                assert {use["verdict"] for use in private["permissions"]["uses"].values()} == {
                    "deny"
                }
            kept = {
                record["final_url"] for record in lines(exported(tmp_path / f"{name}.jsonl", terms))
            }
            assert kept == set(wanted), name


def exported(path: Path, terms: Terms) -> Path:
    output = path.with_name(f"exported-{path.name}")
    export([path], output, terms)
    return output


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
