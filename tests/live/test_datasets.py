"""From the site to the export: what its files refuse is in no file that comes out, and all else is.

What has to come out stands here, read off the sites' files by hand."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

from comity.crawler import demo, elements
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files.formats import open_reader
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.stats import stats
from tests.selection import one_in

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback, Serve

    Crawl = Callable[..., Crawled]

INPUTS = ("items.jsonl", "items.parquet", "pages.warc.gz")
SETTINGS = "from comity.crawler.settings import *\n"
HOW = JobOptions(workers=1)


def scrapy(
    folder: Path, *words: str, now: datetime | None = None
) -> subprocess.CompletedProcess[str]:
    """The command line, in a project; with the clock at `now`."""
    (folder / "dataset_settings.py").write_text(SETTINGS)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = ["-m", "scrapy"]
    if now:
        moved = f"import time_machine, scrapy.cmdline; time_machine.travel({now.timestamp()}).start(); scrapy.cmdline.execute()"
        program = ["-c", moved]
    return subprocess.run(
        [sys.executable, *program, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "SCRAPY_SETTINGS_MODULE": "dataset_settings",
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def lines(path: Path) -> list[dict[str, Any]]:
    octets = path.read_bytes()
    return [
        json.loads(line)
        for line in (gzip.decompress(octets) if path.suffix == ".gz" else octets).splitlines()
    ]


def read_back(path: Path) -> list[dict[str, Any]]:
    reader = open_reader(path)
    found = [record for part in reader.parts() for batch in reader.read(part) for record in batch]
    assert all(isinstance(record, dict) for record in found)
    return found  # type: ignore[return-value]


def feeds(folder: Path) -> dict[str, Any]:
    return {
        str(folder / name): {} if "warc" in name else {"format": name.rpartition(".")[2]}
        for name in INPUTS
    }


# The demonstration site

NAV = ("/", "/news/", "/about")
HOME = (
    *NAV,
    "/features/",
    "/private/diary.html",
    "/private/press.html",
    "/report.pdf",
    "/search?q=comity",
    "/old",
    "/shortcut",
    "/gone",
    "/archive/",
    "/forms/contact",
    "/research/notes.html",
    "/viewer/",
    "/account/",
)


class Shown(NamedTuple):
    """What an export has of a page of the site."""

    title: str
    text: str
    links: tuple[str, ...]


FREE = {  # what no file says anything of but that nothing is to be trained on
    "/": Shown(
        "The Loopback Gazette",
        "The Loopback Gazette\nEverything that this site publishes, it publishes on this machine.\n"
        "News\nFeatures\nThe editor's diary\nFor the press\nThe annual report\nSearch\nMoved\nA shortcut\nGone\nThe archive\n"
        "Write to us\nNotes for research\nFor browsers\nYour account",
        HOME,
    ),
    "/news/": Shown(
        "News", "News\nPacket arrives\nPort closes early", (*NAV, "/news/1.html", "/news/2.html")
    ),
    "/private/press.html": Shown(
        "For the press", "For the press\nAllowed, in the middle of what is not.", NAV
    ),
    "/features/": Shown(
        "Features",
        "Features\nThe keeper of the lamp\nAll stories, as data\nThe feed",
        (*NAV, "/features/lamp.html", "/features/stories.json", "/features/feed.xml"),
    ),
    "/features/stories.json": Shown("", "", ()),
    "/features/feed.xml": Shown("", "", ()),
    "/features/lamp.png": Shown("", "", ()),
    "/archive/": Shown(
        "The archive",
        "The archive\nAsk slowly.\nOne Two Letters",
        (*NAV, "/archive/1.html", "/archive/2.html", "/archive/letters.html"),
    ),
    "/archive/1.html": Shown("Volume one", "Volume one\nIt is not yet full.", NAV),
    "/archive/2.html": Shown("Volume two", "Volume two\nIt is not yet begun.", NAV),
    "/forms/contact": Shown("Write to us", "Write to us", NAV),
    "/viewer/": Shown("For browsers", "For browsers\nHeadless ones are welcome too.", NAV),
}
LAMP = (
    "The keeper of the lamp\nThere is one lamp on this machine, and one person who keeps it lit.\n"
)
QUOTE = "I light it at dusk. Nobody has asked me to.\n"
BY_HAND: dict[str, dict[str, Shown]] = {
    "train": {},  # Content-Signal: ai-train=no, of every page
    "index": {  # ACAP-disallow-index: /news/archive.html; ai.txt: aside, figure, and .comments .reply, which denies everything
        **FREE,
        "/news/1.html": Shown(
            "Packet arrives",
            "Packet arrives\nIt had been sent from the same machine, a moment earlier.",
            NAV,
        ),
        "/news/2.html": Shown(
            "Port closes early",
            "Port closes early\nThose who came late were refused.\nThey may try again.",
            NAV,
        ),
        "/about": Shown("About", "About\nA site to try crawlers on.", NAV),
        "/features/lamp.html": Shown(
            "The keeper of the lamp",
            f"{LAMP}{QUOTE}\nComments\nI have seen it.\nNobody has asked me to.\n",
            NAV,
        ),
    },
    "present-snippet": {  # of articles 12 words, links and all; of /about 50 characters; ai.txt: .comments deny Return
        **FREE,
        "/news/1.html": Shown(
            "Packet arrives", "Packet arrives\nIt had been sent from the same machine, a moment", ()
        ),
        "/news/2.html": Shown(
            "Port closes early",
            "Port closes early\nThose who came late were refused.\nThey may try",
            (),
        ),
        "/news/archive.html": Shown(
            "Archive", "Archive\nOnly the sitemap knows of this page.", NAV
        ),
        "/about": Shown("About", "About\nA site to try crawlers on.", ()),
        "/features/lamp.html": Shown(
            "The keeper of the lamp",
            f"{LAMP}{QUOTE}The lamp takes up one pixel.\n",
            (*NAV, "/features/lamp.png"),
        ),
    },
}
# A WARC file has the source of pages, too: of those of which no parts are refused, and as far as there may be so much text.
WITHOUT_SOURCE = {
    "index": {
        "/features/lamp.html",
        "/features/stories.json",
        "/features/feed.xml",
        "/features/lamp.png",
    },
    "present-snippet": {
        *(
            "/features/lamp.html",
            "/features/stories.json",
            "/features/feed.xml",
            "/features/lamp.png",
        ),
        *("/news/1.html", "/news/2.html", "/news/archive.html", "/about"),
    },
}


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A crawl of the demonstration site, as a user begins it: the folder with the datasets, and the site's origin."""
    folder = tmp_path_factory.mktemp("demonstration")
    with demo.running() as server:
        settings = {
            "COMITY_MIN_DELAY": 0,
            "COMITY_AGENT": "testbot",
            "COMITY_USES": "train,index,present-snippet",
        }
        words = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        outputs = [word for name in INPUTS for word in ("-O", name)]
        done = scrapy(folder, "crawl", "site", "-a", f"url={server.url}", *words, *outputs)
        assert done.returncode == 0, done.stderr
        return folder, server.url.rstrip("/")


@pytest.mark.requirement("MEET-3", "MEET-5", "ACAP-34")
@pytest.mark.parametrize("use", BY_HAND)
@pytest.mark.parametrize("name", one_in(3, INPUTS))
def test_what_the_demonstration_site_permits(
    name: str, use: str, demonstration: tuple[Path, str], tmp_path: Path
) -> None:
    folder, origin = demonstration
    for output in (tmp_path / "out.jsonl", tmp_path / "out.parquet"):
        export([folder / name], output, Terms.of([use]), HOW)
        found = {record["url"].removeprefix(origin): record for record in read_back(output)}
        assert found.keys() == BY_HAND[use].keys()
        for path, expected in BY_HAND[use].items():
            record = found[path]
            links = tuple(link.removeprefix(origin) for link in record["links"])
            assert Shown(record["title"], record["text"], links) == expected, path
            has_source = "warc" in name and path not in WITHOUT_SOURCE[use]
            assert (record["html"] or None) == (demo.PAGES[path].body if has_source else None), path
            assert (record["status"], record["final_url"]) == (200, record["url"])


@pytest.mark.requirement("MEET-3")
def test_the_command_says_what_it_kept(demonstration: tuple[Path, str], tmp_path: Path) -> None:
    folder, origin = demonstration
    done = scrapy(
        tmp_path,
        "dataset",
        "export",
        str(folder / "pages.warc.gz"),
        "--for",
        "index",
        "-o",
        "out.parquet",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "16 of 17 records may be used for index: out.parquet" in done.stdout
    assert done.stdout.split()[-2:] == ["deny:acap.disallow", "1"]
    counted = scrapy(
        tmp_path, "dataset", "stats", "out.parquet", "--by", "origin", "--for", "index", "--json"
    )
    [row] = json.loads(counted.stdout)["rows"]
    assert (row["origin"], row["allowed"]) == (origin, 16)
    assert {
        record["url"].removeprefix(origin) for record in read_back(tmp_path / "out.parquet")
    } == BY_HAND["index"].keys()


@pytest.mark.requirement("MEET-3")
def test_records_whose_tags_say_nothing_are_counted(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text(
        '{"url": "http://127.0.0.1/"}\n{"permissions": {"schema": 2}}\nno record\n'
    )
    done = scrapy(tmp_path, "dataset", "stats", "items.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    told = [line.split() for line in done.stdout.splitlines()]
    assert ["no-tag", "1"] in told
    assert ["invalid-tag:keys", "1"] in told
    assert done.stdout.endswith("2 records of 0 origins, 1 that cannot be read\n")


@pytest.mark.requirement("MEET-3", "WHY-2")
def test_a_licence_permits_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    with demo.running() as server:
        settings = {
            "COMITY_MIN_DELAY": 0,
            "COMITY_AGENT": "testbot",
            "COMITY_USES": "train",
            "COMITY_ARRANGEMENTS": json.dumps(
                {"127.0.0.1": [{"uses": ["train"], "reference": "contract 2026/14"}]}
            ),
        }
        words = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        done = scrapy(
            tmp_path,
            "crawl",
            "site",
            "-a",
            f"url={server.url}features/",
            "-a",
            "depth=1",
            *words,
            "-O",
            "items.jsonl",
        )
        assert done.returncode == 0, done.stderr
        lamp = server.url + "features/lamp.html"
    texts = {}
    for uses in ("train", "index", "train,index"):
        export([tmp_path / "items.jsonl"], tmp_path / "out.jsonl", Terms.of(uses.split(",")), HOW)
        (found,) = (record for record in lines(tmp_path / "out.jsonl") if record["url"] == lamp)
        texts[uses] = found["text"]
        assert found.get("license") == (["contract 2026/14"] if "train" in uses else None)
    for uses, text in texts.items():
        assert QUOTE in text  # which the site lets nobody train on
        assert ("The lamp takes up one pixel." in text) == (uses == "train")


# Round trips of what was crawled


@pytest.mark.requirement("MEET-3")
def test_a_tag_is_the_same_text_after_every_way(
    demonstration: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = demonstration
    begun = lines(folder / "items.jsonl")
    terms = Terms.of(["crawl"])  # all that was fetched
    ways = {
        "through Parquet": ("items.jsonl", "a.parquet", "a.jsonl"),
        "from a Parquet feed": ("items.parquet", "b.jsonl"),
        "from WARC": ("pages.warc.gz", "c.jsonl"),
        "from WARC through Parquet": ("pages.warc.gz", "d.parquet", "d.jsonl.gz"),
    }
    for way, (source, *outputs) in ways.items():
        place = folder / source
        for output in outputs:
            export([place], tmp_path / output, terms, HOW)
            place = tmp_path / output
        found = lines(place)
        assert [record["url"] for record in found] == [record["url"] for record in begun], way
        for record, item in zip(found, begun, strict=True):
            assert json.dumps(record["permissions"], sort_keys=True) == json.dumps(
                item["permissions"], sort_keys=True
            ), way
            different = {
                key for key in record.keys() | item.keys() if record.get(key) != item.get(key)
            }
            assert different <= ({"html"} if "WARC" in way else set()), way


# What is refused stands in marks, which say for which uses: Zt1Z nobody may train on, Zip2Z is neither to be indexed nor to be
# shown in snippets, and Zk3Z is free.

MARK = re.compile("Z([tipk]+)[0-9]+Z")
USES = {"train": "t", "index": "i", "present-snippet": "p"}


_numbers = count(1)


def marked(text: str) -> str:
    """Each {LETTERS} is a mark of its own."""
    return re.sub(r"\{([tipk]+)\}", lambda match: f"Z{match[1]}{next(_numbers)}Z", text)


def marks(text: str) -> set[str]:
    return {match[0] for match in MARK.finditer(text)}


AI = """User-agent: *
  Path: /page.html html
    Element: .no-train
      Disallow: Train
    Element: .no-index, .no-index *
      Disallow: Index
    Element: .no-return
      Disallow: Return
    Element: .nothing
      Disallow: *
    Element: #head, script.data
      Disallow: Train Index
    Element: .free
      Guide: Train
  Path: /whole.html html
    Element: html
      Disallow: Train
  Path: /stories.json json
    Element: author.email
      Disallow: *
    Element: comments.text
      Disallow: Train
    Element: draft
      Disallow: Index Return
  Path: /feed.xml xml
    Element: rss.channel.item.description
      Disallow: Train Return
    Element: rss.channel.item.link
      Disallow: Index
"""
PAGE = marked("""<!doctype html><html lang="en"><head><title>{k}</title><meta id="head" name="description" content="{ti}">
<script class="data" type="application/ld+json">{"name": "{ti}"}</script><script>var a = "{k}";</script></head><body>
<!-- {k} --><main><h1>{k}</h1><p>{k} <em class="no-train">{t}<!-- {t} --></em> {k}</p>
<div class="no-train" title="{t}">{t} <p>{t} <b class="no-index" title="{ti}">{ti}</b> <a href="/{t}.html">{t}</a></p>
<script>var b = "{t}";</script><img src="/{t}.png" alt="{t}"><!-- {t} --></div>
<section class="no-index"><p>{i} <img src="/{i}.png" alt="{i}"> <a href="/{i}.html" title="{i}">{i}</a></p><!-- {i} -->
<i class="no-return">{ip}</i></section><aside class="no-return">{p} <a href="/{p}.html">{p}</a><!-- {p} -->
<q class="nothing" title="{tip}">{tip}<!-- {tip} --></q></aside>
<p class="free" title="{k}">{k} <a href="/{k}.html">{k}</a> <img src="/{k}.png" alt="{k}"></p><p>{k}
</main></body></html>""")
STORIES = marked("""[
{"title": "{k}", "author": {"name": "{k}", "email": "{tip}"},
 "comments": [{"by": "{k}", "text": "{t}"}, {"by": "{k}", "text": "{t}"}],
 "draft": {"of": ["{ip}", "{ip}"]}},
{"title": "{k}", "author": {"name": "{k}", "email": ["{tip}"]}, "comments": [], "draft": "{ip}"}]""")
FEED = marked("""<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>{k}</title>
<item><title>{k}</title><link>http://127.0.0.1/{i}</link>
<description kind="{tp}">{tp}<!-- {tp} --><b>{tp}</b></description></item>
<item><title>{k}</title><link>http://127.0.0.1/{i}</link><description>{tp}</description></item></channel></rss>""")


def whole(letters: str, head: str = "") -> str:
    mark = "{" + letters + "}"
    return marked(
        f'<!doctype html><title>{mark}</title>{head}<main><p title="{mark}">{mark} <a href="/{mark}">{mark}</a></main>'
    )


DOCUMENTS = {
    "/page.html": PAGE,
    "/stories.json": STORIES,
    "/feed.xml": FEED,
    "/free.html": whole("k"),
    "/whole.html": whole("t"),
    "/tdm/a.html": whole("t"),
    "/usage/a.html": whole("t"),
    "/acap/a.html": whole("p"),
    "/signal.html": whole("t"),
    "/field.html": whole("ip"),
    "/noai.html": whole("t", '<meta name="robots" content="noai">'),
    "/nosnippet.html": whole("p", '<meta name="testbot" content="nosnippet">'),
    "/noindex.html": whole("ip", '<meta name="robots" content="noindex">'),
    "/reserved.html": whole("t", '<meta name="tdm-reservation" content="1">'),
    "/refused/a.html": whole("tip"),
}
FIELDS = {
    "/signal.html": {"Content-Signal": "ai-train=no, search=yes"},
    "/field.html": {"X-Robots-Tag": "noindex"},
}
TYPES = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "xml": "application/rss+xml",
}
ROBOTS = """User-agent: *
Disallow: /refused/
Content-Usage: /usage/ train-ai=n

ACAP-crawler: *
ACAP-allow-crawl: /
ACAP-disallow-crawl: /refused/
ACAP-disallow-present-snippet: /acap/
"""


class Taking(Spider):
    """Takes what it can, piece by piece, and knows of no rules."""

    name = "taking"
    urls: list[str]

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        taken: dict[str, Any] = {"url": response.url, "html": response.text}
        if response.url.endswith("json"):
            for story in response.json():
                yield taken | {
                    "title": story["title"],
                    "name": story["author"]["name"],
                    "author": story["author"],
                    "comments": story["comments"],
                    "by": [comment["by"] for comment in story["comments"]],
                    "said": [comment["text"] for comment in story["comments"]],
                    "draft": story["draft"],
                }
            return
        taken |= {
            "attributes": response.xpath("//@*").getall(),
            "comments": [comment.root.text for comment in response.xpath("//comment()")],
            "texts": [text.strip() for text in response.xpath("//text()").getall() if text.strip()],
        }
        if response.url.endswith("html"):
            taken |= {
                "text": elements.text(response),
                "links": [
                    response.urljoin(link) for link in response.css("a::attr(href)").getall()
                ],
                "images": [
                    response.urljoin(link) for link in response.css("img::attr(src)").getall()
                ],
                "parts": response.css("p, div, aside").getall(),
            }
        yield taken


@pytest.fixture
def planted(serve: Serve) -> Loopback:
    answers = {
        path: serve.Answer(
            text, content_type=TYPES[path.rpartition(".")[2]], headers=FIELDS.get(path, {})
        )
        for path, text in DOCUMENTS.items()
    }
    tdm = serve.Answer(
        '[{"location": "/tdm/*", "tdm-reservation": 1}]', content_type="application/json"
    )
    return serve({"/robots.txt": ROBOTS, "/ai.txt": AI, "/.well-known/tdmrep.json": tdm, **answers})


def everything(path: Path) -> bytes:
    """What is in a file, unpacked, as programs read it. What compression leaves of a mark and a time may look like a mark."""
    import duckdb

    octets = path.read_bytes()
    if path.suffix == ".gz":
        octets = gzip.decompress(octets)
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        octets = json.dumps(table.to_pylist(), default=str).encode()
        octets += repr(table.schema.metadata).encode()
        with duckdb.connect() as db:
            octets += repr(
                db.execute(f"SELECT CAST(record AS VARCHAR) FROM '{path}' AS record").fetchall()
            ).encode()
            octets += repr(
                db.execute(
                    f"SELECT stats_min_value, stats_max_value FROM parquet_metadata('{path}')"
                ).fetchall()
            ).encode()
    return octets


@pytest.mark.slow
@pytest.mark.requirement("MEET-3", "MEET-5", "AIT-5", "AIT-7", "AIT-16")
def test_what_is_refused_is_in_no_file_that_comes_out(
    planted: Loopback, crawl: Crawl, tmp_path: Path, *, in_full: bool
) -> None:
    settings: dict[str, Any] = {"FEEDS": feeds(tmp_path), "COMITY_USES": ",".join(USES)}
    settings |= {"COMITY_DEFAULTS": ",".join(f"{use}:allow" for use in USES)}
    crawled = crawl(Taking, settings, urls=[planted.url(path) for path in DOCUMENTS])
    assert "Traceback" not in crawled.log
    assert "/refused/a.html" not in planted.paths
    fetched = {
        mark
        for path, text in DOCUMENTS.items()
        if path != "/refused/a.html"
        for mark in marks(text)
    }
    for asked in ("train", "index", "present-snippet", "train,index,present-snippet"):
        letters = {USES[use] for use in asked.split(",")}
        permitted = {mark for mark in fetched if not letters & set(mark)}
        for name in INPUTS:
            for form in ("jsonl", "parquet", "jsonl.gz") if in_full else ("jsonl", "parquet"):
                folder = tmp_path / f"{asked} {name} {form}"
                folder.mkdir()
                export([tmp_path / name], folder / f"out.{form}", Terms.of(asked.split(",")), HOW)
                written = {
                    path.name: everything(path).decode("utf-8", "replace")
                    for path in folder.iterdir()
                }
                assert written.keys() == {f"out.{form}", f"out.{form}.croissant.json"}
                for octets in written.values():
                    assert marks(octets) <= permitted, (asked, name, form)
                assert marks(written[f"out.{form}"]) == permitted, (asked, name, form)


# Limits of time


class Dated(Taking):
    """An item for every page, with the moment of its fetch."""

    name = "dated"

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {
            "url": response.url,
            "fetched_at": datetime.now(UTC).isoformat(),
            "text": elements.text(response),
        }


DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
LIMITED = (
    "/free.html",
    "/date.html",
    "/days.html",
    "/after.html",
    "/kept.html",
    "/recrawled.html",
    "/taken.html",
)
INDEX = {"COMITY_USES": "index", "COMITY_ARRANGEMENTS": "127.0.0.1:take-down"}


class Limits(NamedTuple):
    """A site whose pages may be indexed, and nothing else, each until another moment."""

    site: Loopback
    date: datetime  # of /date.html: the last second of its day
    after: datetime  # of /after.html

    @property
    def urls(self) -> list[str]:
        return [self.site.url(path) for path in LIMITED]

    def ask(self, *lines: str) -> None:
        """The file has these lines from now on."""
        self.site.routes["/robots.txt"] = "\n".join(
            [
                "ACAP-crawler: *",
                "ACAP-allow-crawl: /",
                "ACAP-allow-index: /",
                f"ACAP-allow-index: /date.html time-limit=until-{self.date:%Y-%m-%d}",
                "ACAP-allow-index: /days.html time-limit=10-days",
                "ACAP-allow-index: /recrawled.html time-limit=until-recrawled",
                "ACAP-allow-preserve: /kept.html time-limit=20-days",
                *lines,
            ]
        )

    def paths(self, *datasets: Path) -> list[str]:
        return [
            record["url"].removeprefix(self.site.origin)
            for path in datasets
            for record in read_back(path)
        ]


@pytest.fixture
def limits(serve: Serve) -> Limits:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    date, after = midnight + 6 * DAY - SECOND, midnight + 15 * DAY
    meta = f'<meta name="robots" content="unavailable_after: {after.isoformat()}">'
    pages: dict[str, Any] = {path: f"<title>{path}</title><p>Words of {path}" for path in LIMITED}
    made = Limits(serve(pages | {"/after.html": meta + pages["/after.html"]}), date, after)
    made.ask()
    return made


def exported(
    datasets: list[Path], now: datetime, limits: Limits, folder: Path, *forms: str
) -> list[str]:
    found = set()
    for name in (f"now.{form}" for form in forms or ("jsonl", "parquet")):
        export(datasets, folder / name, Terms.of(["index"], now=now), HOW)
        found.add(tuple(limits.paths(folder / name)))
    (paths,) = found
    return list(paths)


@pytest.mark.requirement("ACAP-32", "META-2", "MEET-3", "SEC-6")
def test_what_is_past_its_limit_goes_and_nothing_else(
    limits: Limits, crawl: Crawl, tmp_path: Path, *, in_full: bool
) -> None:
    forms = () if in_full else ("jsonl",)
    began = datetime.now(UTC)
    crawl(Dated, INDEX | {"FEEDS": feeds(tmp_path)}, urls=limits.urls)
    ended = datetime.now(UTC)
    datasets = [tmp_path / name for name in INPUTS]
    left = sorted(LIMITED)
    assert all(sorted(limits.paths(path)) == left for path in datasets)
    ends = {  # page -> the last moment at which it may be there, and one at which it may not
        "/date.html": (limits.date - SECOND, limits.date, "expired:index"),
        "/days.html": (began + 10 * DAY - SECOND, ended + 10 * DAY + SECOND, "expired:index"),
        "/after.html": (limits.after - SECOND, limits.after, "expired:index"),
        "/kept.html": (began + 20 * DAY - SECOND, ended + 20 * DAY + SECOND, "expired:preserve"),
    }
    for path, (before, behind, why) in ends.items():
        assert [sorted(exported([one], before, limits, tmp_path, *forms)) for one in datasets] == [
            left
        ] * 3
        unchanged = [one.read_bytes() for one in datasets]
        assert not expire(datasets, before, options=HOW).causes
        assert [one.read_bytes() for one in datasets] == unchanged

        left.remove(path)
        assert [sorted(exported([one], behind, limits, tmp_path, *forms)) for one in datasets] == [
            left
        ] * 3
        told: list[tuple[str, str]] = []
        options = JobOptions(
            workers=1,
            removed=lambda note, told=told: told.append((note["url"], note["why"])),  # type: ignore[misc]
        )
        assert expire(datasets, behind, dry_run=True, options=HOW).causes == {why: 3}
        assert [one.read_bytes() for one in datasets] == unchanged
        assert expire(datasets, behind, options=options).causes == {why: 3}
        assert told == [(limits.site.url(path), why)] * 3
        for one in datasets:
            assert sorted(limits.paths(one)) == left
            octets = everything(one)
            assert [page for page in LIMITED if f"Words of {page}".encode() in octets] == [
                page for page in LIMITED if page in left
            ]
            noted = lines(one.with_name(f"{one.name}.expired.jsonl"))[-1]
            assert (noted["url"], noted["why"]) == (limits.site.url(path), why)
            assert datetime.fromisoformat(noted["when"]) == behind.replace(microsecond=0)
    assert left == ["/free.html", "/recrawled.html", "/taken.html"]
    assert not expire(datasets, ended + 36500 * DAY, options=HOW).causes


@pytest.mark.requirement("ACAP-32", "ACAP-30")
def test_a_page_that_was_fetched_again_takes_the_place_of_the_older(
    limits: Limits, crawl: Crawl, tmp_path: Path
) -> None:
    """Of those whose permission lasts until then. Of others both stay, and both until the same moment."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        crawl(Dated, INDEX | {"FEEDS": feeds(folder)}, urls=limits.urls)
    now = datetime.now(UTC)
    for name in INPUTS:
        assert sorted(exported([first / name], now, limits, tmp_path)) == sorted(LIMITED)
        both = exported([first / name, second / name], now, limits, tmp_path)
        assert sorted(both) == sorted([*LIMITED, *LIMITED[:5], "/taken.html"])
        export(
            [second / name, first / name], tmp_path / "out.jsonl", Terms.of(["index"], now=now), HOW
        )
        (left,) = (
            record
            for record in lines(tmp_path / "out.jsonl")
            if record["url"].endswith("/recrawled.html")
        )
        (latest,) = (
            record
            for record in read_back(second / name)
            if record["url"].endswith("/recrawled.html")
        )
        assert left["fetched_at"] == latest["fetched_at"]
        ends = {
            record["permissions"]["uses"]["index"]["until"]
            for record in lines(tmp_path / "out.jsonl")
            if record["url"].endswith("/days.html")
        }
        assert len(ends) == 1  # counted from when the page was taken first
    for name in INPUTS:
        assert expire([second / name, first / name], now, options=HOW).causes == {
            "superseded:index": 1
        }
        assert sorted(limits.paths(first / name)) == sorted(set(LIMITED) - {"/recrawled.html"})
        assert sorted(limits.paths(second / name)) == sorted(LIMITED)


def actions(store: Path) -> list[tuple[str, bool]]:
    with closing(sqlite3.connect(store)) as db:
        return [
            (url, done is not None)
            for url, done in db.execute("SELECT url, done FROM action ORDER BY requested")
        ]


@pytest.mark.requirement("ACAP-43", "MEET-3")
@pytest.mark.parametrize(
    "mode", ["no-reactor"], indirect=True
)  # how it was crawled makes no difference to the command
@pytest.mark.slow
def test_what_a_site_has_taken_down_goes_once(limits: Limits, crawl: Crawl, tmp_path: Path) -> None:
    store = tmp_path / "policies.sqlite"
    settings = INDEX | {"FEEDS": feeds(tmp_path)}
    crawl(Dated, settings, urls=limits.urls)
    words = ("dataset", "expire", *INPUTS, "--store", "policies.sqlite")
    assert scrapy(tmp_path, *words).stdout == ""

    taken = limits.site.url("/taken.html")
    for number in (
        1,
        2,
    ):  # what is asked for again, by another copy of the file, is to be done again
        limits.ask("ACAP-request-take-down: /taken.html", f"# copy {number}")
        with closing(sqlite3.connect(store, isolation_level=None)) as db:
            db.execute("UPDATE file SET due = 0")
        for _ in range(2):
            crawl(Dated, INDEX, urls=[limits.site.url("/free.html")])
        assert actions(store) == [(taken, True)] * (number - 1) + [(taken, False)]
        gone = f"taken-down\t{taken}\n" * 3 if number == 1 else ""
        trial = scrapy(tmp_path, *words, "--dry-run")
        assert (trial.returncode, trial.stdout) == (1 if gone else 0, gone)
        assert actions(store)[-1] == (taken, False)
        done = scrapy(tmp_path, *words)
        assert (done.returncode, done.stdout) == (0, gone), done.stderr
        assert actions(store) == [(taken, True)] * number
        for name in INPUTS:
            assert sorted(limits.paths(tmp_path / name)) == sorted(set(LIMITED) - {"/taken.html"})
            assert b"Words of /taken.html" not in everything(tmp_path / name)
        again = scrapy(tmp_path, *words)
        assert (again.returncode, again.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.requirement("ACAP-32", "META-2")
@pytest.mark.parametrize(
    "mode", ["no-reactor"], indirect=True
)  # how it was crawled makes no difference to the command
def test_the_command_goes_by_the_clock(limits: Limits, crawl: Crawl, tmp_path: Path) -> None:
    crawl(Dated, INDEX | {"FEEDS": feeds(tmp_path)}, urls=limits.urls)
    went: list[str] = []
    for now in (limits.date - SECOND, limits.date, limits.after - SECOND, limits.after):
        out = scrapy(
            tmp_path,
            "dataset",
            "export",
            "pages.warc.gz",
            "--for",
            "index",
            "-o",
            "out.parquet",
            now=now,
        )
        done = scrapy(tmp_path, "dataset", "expire", "items.jsonl", now=now)
        assert (out.returncode, out.stderr, done.returncode) == (0, "", 0)
        went += done.stdout.replace(limits.site.origin, "").splitlines()
        assert sorted(limits.paths(tmp_path / "out.parquet")) == sorted(
            limits.paths(tmp_path / "items.jsonl")
        )
    assert went == [
        f"expired:index\t{path}" for path in ("/date.html", "/days.html", "/after.html")
    ]


# What is shown of it

SNIPPETS = """ACAP-crawler: *
ACAP-allow-crawl: /
ACAP-allow-present-snippet: /words.html max-length=5-words must-include-resource=the-acap:credit:/credit.txt
ACAP-allow-present-snippet: /chars.html max-length=12-chars
ACAP-allow-present-snippet: /instead.html must-use-resource=the-acap:extract:meta:description
ACAP-allow-present-snippet: /licensed.html
ACAP-disallow-present: /other.html

User-agent: *
License: /license.xml
"""
LICENSED = """<rsl xmlns="https://rslstandard.org/rsl"><content url="/licensed.html"><license>
<permits type="usage">ai-train</permits><payment type="free"/></license></content></rsl>"""
RESOURCES = "127.0.0.1:must-use-resource,127.0.0.1:must-include-resource"
INSTEAD = '<meta name="description" content="In short">'


def shown(folder: Path, name: str, use: str) -> dict[str, dict[str, Any]]:
    """By path, what an export has besides what says which page it is."""
    for form in ("jsonl", "parquet"):
        export([folder / name], folder / f"shown.{form}", Terms.of([use]), HOW)
    found = read_back(folder / "shown.jsonl")
    kept = [
        {key: value for key, value in record.items() if value is not None}
        for record in read_back(folder / "shown.parquet")
    ]
    assert sorted(kept, key=repr) == sorted(
        ({key: value for key, value in record.items() if value is not None} for record in found),
        key=repr,
    )
    beside = ("url", "fetched_at", "final_url", "status", "content_type", "permissions")
    return {
        "/" + record["url"].split("/", 3)[3]: {
            key: value for key, value in record.items() if value and key not in beside
        }
        for record in found
    }


@pytest.mark.requirement("ACAP-33", "ACAP-34", "ACAP-36", "MEET-3")
@pytest.mark.parametrize("arranged", one_in(2, [True, False]))
def test_snippets_are_as_long_as_is_permitted_and_say_whose_they_are(
    arranged: bool, serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    body = "<p>One two three four five six seven eight nine ten."
    paths = [f"/{name}.html" for name in ("words", "chars", "instead", "licensed", "other")]
    pages: dict[str, Any] = {path: (INSTEAD if "instead" in path else "") + body for path in paths}
    license_xml = serve.Answer(LICENSED, content_type="application/rsl+xml")
    site = serve(
        {
            "/robots.txt": SNIPPETS,
            "/credit.txt": "By A. Author",
            "/license.xml": license_xml,
            **pages,
        }
    )
    settings: dict[str, Any] = {
        "FEEDS": feeds(tmp_path),
        "COMITY_USES": "train,present-snippet",
        "COMITY_DROP_UNUSABLE": False,
    }
    crawl(
        Dated,
        settings | ({"COMITY_ARRANGEMENTS": RESOURCES} if arranged else {}),
        urls=[site.url(path) for path in paths],
    )
    credit = {
        "role": "credit",
        "extract": "",
        "url": site.url("/credit.txt"),
        "content": "By A. Author",
    }
    instead = {"role": "", "extract": "meta:description", "url": "", "content": "In short"}
    text = {"text": "One two three four five six seven eight nine ten."}
    for name in INPUTS:
        source = {"html": body} if "warc" in name else {}
        expected: dict[str, Any] = {
            "/chars.html": {"text": "One two"},
            "/licensed.html": text | source,
        }
        if arranged:
            expected["/words.html"] = {"text": "One two three four five", "attribution": [credit]}
            expected["/instead.html"] = {"must_use": [instead]}
        assert shown(tmp_path, name, "present-snippet") == expected
        assert shown(tmp_path, name, "train") == {
            "/licensed.html": text | source | {"license": [site.url("/license.xml")]}
        }
        counts = stats([tmp_path / name], datetime.now(UTC), HOW, by="origin")
        assert counts.groups[site.origin]["present-snippet"].allowed == len(expected)


@pytest.mark.slow
@pytest.mark.requirement("MEET-3", "ACAP-35")
def test_a_page_that_is_not_to_be_translated_is_in_no_export_for_translation(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    robots = "ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-allow-present: /acap.html prohibited-modification=translation\n"
    pages = {
        "/plain.html": "<p>plain",
        "/meta.html": '<meta name="robots" content="notranslate"><p>meta',
        "/acap.html": "<p>acap",
    }
    field = serve.Answer(
        "<p>field", content_type="text/html", headers={"X-Robots-Tag": "notranslate"}
    )
    site = serve({"/robots.txt": robots, "/field.html": field, **pages})
    settings = {
        "FEEDS": feeds(tmp_path),
        "COMITY_USES": "translate,train",
        "COMITY_DEFAULTS": "translate:allow,train:allow,present:allow",
    }
    crawl(Dated, settings, urls=[site.url(path) for path in ("/field.html", *pages)])
    for name in INPUTS:
        assert set(shown(tmp_path, name, "translate")) == {"/plain.html"}
        assert (
            set(shown(tmp_path, name, "train"))
            == set(shown(tmp_path, name, "present"))
            == {"/field.html", *pages}
        )
