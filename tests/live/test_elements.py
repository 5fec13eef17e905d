"""Element rules of ai.txt on a real crawl: what they refuse for the declared use leaves it in no form, and nothing else is lost.

What is refused is written in letters that stand nowhere else, so that each character of it would be seen."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from parsel import Selector
from scrapy import Field, Item, Request, Spider, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Response, TextResponse

from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.spiders.site import SiteSpider

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback, Serve

    Crawl = Callable[..., Crawled]

LETTERS = frozenset("QXZ")
TRAIN = {"COMITY_USES": "train", "COMITY_DEFAULTS": "train:allow"}
REDACT = TRAIN | {"COMITY_ELEMENTS": "redact"}
STRIP = TRAIN | {"COMITY_ELEMENTS": "strip"}

AI = """User-agent: *
  Path: /page.html html
    Element: .refused
      Disallow: Train
    Element: .refused .inner, .quote
      Disallow: Translate
    Element: .note .quote
      Disallow: Train
      Guide: Train
        Lang: en
        Guideline: A guide lifts no prohibition.
    Element: meta[name=description], #data
      Disallow: *
    Element: .guided
      Guide: Train
    Element: article
      Disallow: Index Return
  Path: /title.html html
    Element: title
      Disallow: Train
  Path: /data.json json
    Element: author.email
      Disallow: Train
    Element: comments
      Disallow: Index
    Element: comments.text
      Disallow: Train
    Element: draft
      Disallow: *
  Path: /feed.xml xml
    Element: channel.item
      Disallow: Index
    Element: channel.item.description
      Disallow: Train
    Element: rss.channel.item.dc:creator
      Disallow: *
User-agent: otherbot
  Path: / html
    Element: p
      Disallow: Train
"""


def planted(text: str) -> str:
    """Each @ is a word of its own, written in the letters."""
    numbers = count(1)
    return re.sub(
        "@", lambda _: "Q" + f"{next(numbers):06b}".replace("0", "X").replace("1", "Z"), text
    )


PAGE = planted("""<!doctype html><html lang="en"><head><title>kepttitle</title>
<meta name="description" content="@"><meta name="author" content="keptauthor">
<script id="data" type="application/ld+json">{"name": "@"}</script><script>var keptscript = 1;</script></head>
<body><!-- keptcomment --><nav class="refused"><a href="/keptlink/@">@</a></nav>
<main><h1>keptheading</h1>
<p>keptlead <em class="refused">@<!-- @ --></em> kepttail</p>
<div class="refused" title="@" data-note="@">@ <p>@ <b class="inner">@ @</b> @</p>
<script>var a = "@";</script><style>.a { content: "@" }</style><template><p>@</p></template><svg><text>@</text></svg>
<img src="/@.png" srcset="/@.png 2x" alt="@"><a href="/@.html" title="@">@</a><div class="refused"><i>@</i></div> @
<!-- @ <p>@</p> --><iframe src="/@"></iframe><form action="/@"><input value="@"><textarea>@</textarea></form></div>keptafter
<blockquote class="quote" cite="/keptcite">keptquote</blockquote>
<section class="note">keptnote <q class="quote" cite="/@">@ <b class="inner">@</b></q> keptnotetail</section>
<p class="guided">keptguided</p>
<article data-id="keptdata"><p>keptarticle <span class=refused>@</span> <span>keptspan</span></p>
<a href="/keptlink">keptanchor</a></article>
<table><tr class=refused><td>@<tr><td>keptcell</table>
<ul><li class=refused>@<li>keptitem</ul><p>keptp<p class=refused>@<p>keptlast
</main></body></html>""")
TITLE = planted("<!doctype html><title>@</title><h1>keptname</h1><p>keptpara")
DATA = planted("""[
{"title": "keptone", "author": {"name": "keptname", "email": "@"}, "n": 12345, "link": "http://127.0.0.1/keptlink",
 "comments": [{"by": "keptby", "text": "http://127.0.0.1/@"}, [{"by": "keptdeep", "text": {"a": ["@", "@"]}}]],
 "draft": {"@": ["@", {"b": "@"}]}},
{"title": "kepttwo", "author": [{"email": ["@"], "name": "keptsecond"}], "comments": [], "draft": "@", "tags": ["kepttag"]}
]""")
FEED = planted("""<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>keptfeed</title><!-- keptcomment -->
<description>keptdescription</description>
<item id="keptid"><title>keptitem</title><description kind="@">@ <b href="/@">@</b> @ <!-- @ --><![CDATA[<p>@</p>]]></description>
kepttail<dc:creator>@</dc:creator><summary>keptsummary</summary></item></channel></rss>""")

DOCUMENTS = {"/page.html": PAGE, "/title.html": TITLE, "/data.json": DATA, "/feed.xml": FEED}
TYPES = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "xml": "application/rss+xml",
}
START = "<!doctype html><title>keptstart</title>" + "".join(
    f'<a href="{path}">to</a>' for path in DOCUMENTS
)


@pytest.fixture
def site(serve: Serve) -> Loopback:
    documents = {
        path: serve.Answer(text, content_type=TYPES[path.rpartition(".")[2]])
        for path, text in DOCUMENTS.items()
    }
    return serve({"/ai.txt": AI, "/": START, **documents})


def kept(text: str) -> set[str]:
    return set(re.findall(r"kept[a-z]+", text))


def by_path(crawled: Crawled) -> dict[str, dict[str, Any]]:
    assert "Traceback" not in crawled.log
    return {"/" + item["url"].split("/", 3)[3]: item for item in crawled.items}


def assert_only_what_may_be_trained_on(items: dict[str, dict[str, Any]]) -> None:
    """By the items as they would be stored, their tags included."""
    assert items.keys() >= DOCUMENTS.keys()
    for path, text in DOCUMENTS.items():
        assert LETTERS & set(text)
        stored = json.dumps(items[path])
        assert not LETTERS & set(stored), path
        assert kept(stored) == kept(text), path
        assert items[path]["permissions"]["uses"]["train"]["verdict"] == "allow"


@pytest.mark.requirement("MEET-5", "AIT-5", "AIT-7", "AIT-9", "AIT-16")
def test_pages_are_redacted(site: Loopback, crawl: Crawl) -> None:
    items = by_path(crawl(SiteSpider, REDACT, url=site.url("/"), html="1"))
    assert_only_what_may_be_trained_on(items)
    page = items["/page.html"]
    assert page["text"].split() == re.findall(
        r"kept\w+", "keptheading keptlead kepttail keptafter keptquote keptnote keptnotetail keptguided keptarticle keptspan"
        " keptanchor keptcell keptitem keptp keptlast"
    )  # fmt: skip
    assert page["links"] == [site.url("/keptlink")]
    assert (page["title"], items["/title.html"]["title"]) == ("kepttitle", "")
    for item in items.values():
        assert (item["status"], len(item["sha256"]), item["content_type"] != "") == (200, 64, True)
        assert item["fetched_at"].startswith("20")
        assert item["url"] == item["final_url"]


@pytest.mark.requirement("MEET-5", "AIT-9")
def test_what_is_refused_for_another_use_stays(site: Loopback, crawl: Crawl) -> None:
    items = by_path(
        crawl(
            SiteSpider,
            REDACT | {"COMITY_USES": "index", "COMITY_DEFAULTS": "index:allow"},
            url=site.url("/"),
            html="1",
        )
    )
    stored = json.dumps(items["/page.html"])
    assert LETTERS & set(stored)
    assert kept(PAGE) - kept(stored) == {"keptarticle", "keptspan", "keptanchor", "keptdata"}
    assert f'"{site.url("/keptlink")}"' not in stored


@pytest.mark.requirement("MEET-5", "AIT-5")
def test_spans_of_a_tag_name_exactly_what_is_covered(site: Loopback, crawl: Crawl) -> None:
    items = by_path(crawl(SiteSpider, TRAIN, url=site.url("/"), html="1"))
    page = items["/page.html"]
    assert (page["html"], items["/data.json"]["html"], items["/feed.xml"]["html"]) == (
        PAGE,
        DATA,
        FEED,
    )
    elements = {element["selector"]: element for element in page["permissions"]["elements"]}
    covered = {
        selector: [_named(page, span) for span in one["spans"] if span[0] != "html"]
        for selector, one in elements.items()
    }
    outside = [word for word in page["text"].split() if not LETTERS & set(word)]
    refused = covered[".refused"] + covered[".note .quote"]
    left = page["text"]
    for text in sorted(
        (one for one in refused if not one.startswith("http")), key=len, reverse=True
    ):
        assert not kept(text)
        assert text == text.strip()
        left = left.replace(text, "")
    assert left.split() == outside
    assert [one for one in refused if one.startswith("http")] == [
        link for link in page["links"] if LETTERS & set(link)
    ]
    quotes = covered[".refused .inner, .quote"]
    assert (len(quotes), quotes[1:]) == (3, ["keptquote", *covered[".note .quote"]])
    assert covered[".guided"] == ["keptguided"]
    assert covered["meta[name=description], #data"] == []
    assert all(["html"] in one["spans"] for one in elements.values())
    assert elements[".refused"]["deny"] == ["train"]
    assert [guide["guidelines"] for guide in elements[".note .quote"]["guide"]] == [
        [{"lang": "en", "text": "A guide lifts no prohibition."}]
    ]


def _named(item: dict[str, Any], span: list[Any]) -> Any:
    """What a span is about."""
    field, *places = span
    value = item[field]
    return value[places[0]] if len(places) == 1 else value[slice(*places)] if places else value


def texts_of(selector: Selector) -> list[str]:
    return [text.strip() for text in selector.xpath("//text()").getall() if text.strip()]


def leaves(value: Any) -> Iterator[Any]:
    """Every text and number of a JSON document."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from leaves(member)
    else:
        yield value


def of_json(response: TextResponse) -> Selector:
    """Up to Scrapy 2.17 the selector of a response never reads JSON."""
    selector = response.selector
    return selector if selector.type == "json" else Selector(text=response.text, type="json")


class Plain(Spider):
    """Takes what it can by the means of Scrapy, and knows of no rules."""

    name = "plain"
    urls: list[str]

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        taken: dict[str, Any] = {"url": response.url, "source": response.text}
        if response.url.endswith("json"):
            found = response.json()
            texts = list(leaves(found))
            taken |= {"document": found, "titles": of_json(response).jmespath("[].title").getall()}
        else:
            texts = texts_of(response.selector)
            taken |= {
                "attributes": response.xpath("//@*").getall(),
                "comments": [comment.root.text for comment in response.xpath("//comment()")],
                "links": [
                    response.urljoin(link) for link in response.css("a::attr(href)").getall()
                ],
                "document": response.css(":root").get(),
                "by_element": {
                    element.root.tag: element.get() for element in response.xpath("//*")
                },
            }
        joined = " ".join(map(str, texts))
        yield taken | {
            "texts": texts,
            "joined": joined,
            "nested": {"deep": [texts]},
            "altered": f"{joined[::-1]} {joined[::2]}",
        }


def original_texts(path: str) -> list[Any]:
    if path.endswith("json"):
        return list(leaves(json.loads(DOCUMENTS[path])))
    is_xml = path.endswith("xml")
    body = DOCUMENTS[path].partition("?>")[2] if is_xml else DOCUMENTS[path]
    return texts_of(Selector(body, type="xml" if is_xml else "html"))


@pytest.mark.requirement("MEET-5", "AIT-5", "AIT-7", "AIT-16")
def test_items_of_any_spider_are_redacted(site: Loopback, crawl: Crawl) -> None:
    items = by_path(crawl(Plain, REDACT, urls=[site.url(path) for path in DOCUMENTS]))
    assert_only_what_may_be_trained_on(items)
    for path, item in items.items():
        assert item["texts"] == [
            text for text in original_texts(path) if not LETTERS & set(str(text))
        ]
        assert not item["altered"], path
    assert items["/page.html"]["links"] == [site.url("/keptlink")]
    assert items["/data.json"]["titles"] == ["keptone", "kepttwo"]
    assert [comment.strip() for comment in items["/page.html"]["comments"]] == ["keptcomment"]


@pytest.mark.requirement("MEET-5", "AIT-5", "AIT-7", "AIT-16")
def test_a_spider_does_not_see_what_is_stripped(site: Loopback, crawl: Crawl) -> None:
    items = by_path(crawl(Plain, STRIP, urls=[site.url(path) for path in DOCUMENTS]))
    assert_only_what_may_be_trained_on(items)
    for path, item in items.items():
        words = [
            word
            for text in original_texts(path)
            if not LETTERS & set(str(text))
            for word in str(text).split()
        ]
        assert item["joined"].split() == words
        assert kept(item["joined"]) == kept(item["altered"][: len(item["joined"])][::-1])
        assert item["document"]
    assert items["/page.html"]["links"] == [site.url("/keptlink")]
    assert set(items["/data.json"]["document"][0]) == {"title", "author", "n", "link", "comments"}


@pytest.mark.requirement("MEET-5")
def test_pages_are_stripped(site: Loopback, crawl: Crawl) -> None:
    crawled = crawl(SiteSpider, STRIP, url=site.url("/"), html="1")
    items = by_path(crawled)
    assert_only_what_may_be_trained_on(items)
    assert items["/title.html"]["title"] == "keptname"
    assert not [
        path for path in site.paths if LETTERS & set(path)
    ]  # links that nobody saw are not followed


class Again(Spider):
    """Make the request object of the first response once more when the spider is idle."""

    name = "again"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        self.crawler.signals.connect(self.make_again, signals.spider_idle)
        self.made: list[Request] = []
        yield Request(self.url, dont_filter=True)

    def parse(self, response: Response) -> Any:
        assert response.request
        self.made.append(response.request)
        yield {"texts": response.css("p::text").getall()}

    def make_again(self) -> None:
        if len(self.made) == 1:
            assert self.crawler.engine
            self.crawler.engine.crawl(self.made[0])
            raise DontCloseSpider


@pytest.mark.requirement("MEET-5", "META-1")
def test_a_request_that_is_made_twice_has_two_pages(serve: Serve, crawl: Crawl) -> None:
    """Each response is stripped and tagged by its own body, though the request object is one."""
    bodies = [
        planted("<p>keptfirst</p><p class=refused>@</p>"),
        "<meta name=robots content=noai><p>keptsecond</p>",
    ]
    answers = iter(bodies)
    server = serve(
        {
            "/ai.txt": AI,
            "/page.html": lambda handler: serve.Answer(next(answers), content_type=TYPES["html"]),
        }
    )
    changed = STRIP | {"COMITY_DROP_UNUSABLE": False}
    items = crawl(Again, changed, url=server.url("/page.html")).items
    assert {
        item["texts"][0]: (item["texts"], item["permissions"]["uses"]["train"]["verdict"])
        for item in items
    } == {
        "keptfirst": (["keptfirst"], "allow"),
        "keptsecond": (["keptsecond"], "deny"),
    }


class Declared(Item):
    """Says of its fields where they come from."""

    url = Field(comity_css="")
    note = Field(comity_css=".note")
    heading = Field(comity_css="h1")
    parts = Field(comity_css="h1, em")
    made_up = Field(comity_css="")


class Declaring(Plain):
    name = "declaring"

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield Declared(
            url=response.url,
            note="words about it",
            heading="words about the heading",
            parts=response.css("h1, em").xpath("string()").getall(),
            made_up="words",
        )


@pytest.mark.requirement("MEET-5")
def test_fields_that_say_where_they_come_from(site: Loopback, crawl: Crawl) -> None:
    (item,) = crawl(Declaring, REDACT, urls=[site.url("/page.html")]).items
    del item["permissions"]
    assert item == {
        "url": site.url("/page.html"),
        "note": "",
        "heading": "words about the heading",
        "parts": ["keptheading"],
        "made_up": "words",
    }


class HeadingSpider(Spider):
    """Takes the names of its fields from the page."""

    name = "headings"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        pairs = dict(
            zip(response.css("dt::text").getall(), response.css("dd::text").getall(), strict=True)
        )
        yield {"url": response.url, **pairs, "body": response.text, "nested": pairs}


HEADINGS = "<!doctype html><dl><dt>Kept heading<dd>keptwords<dt class=refused>QXZ heading<dd>keptothers</dl>"


@pytest.mark.requirement("MEET-5")
def test_names_of_fields_are_redacted(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/ai.txt": AI, "/page.html": HEADINGS})
    (item,) = crawl(HeadingSpider, REDACT, url=site.url("/page.html")).items
    assert "QXZ" not in json.dumps(item)
    assert item.keys() == {"url", "Kept heading", "body", "nested", "permissions"}
    assert item["nested"] == {}
    (tagged,) = crawl(HeadingSpider, TRAIN, url=site.url("/page.html")).items
    assert tagged["QXZ heading"] == "keptothers"
    assert tagged["permissions"]["elements"][0]["names"] == ["QXZ heading"]


AS_BROWSERS = """User-agent: *
  Path: / html
    Element: article > section, p + section, p > b, body > aside, table > tbody > tr.a, .late
      Disallow: Train
    Element: h2
      Disallow: Train
"""
# In browsers paragraphs end before sections, rows have a tbody, and what stands behind `</html>` is there.
MISNESTED = planted("""<!doctype html><title>kepttitle</title><body>
<article><p>keptone<section>@</section></article>
<div><p>kepttwo<section class=x>@ <i>@</i></section>kepttail</div>
<p>keptthree<b>@<p>@</b>keptfour</p>
<div/><aside>keptinner</aside></div>
<table><tr class=a><td>@<tr><td>keptcell</table>
<h2>@<h2>@</h2>keptfive
<select><option>keptoption</select>
</body></html>
<p class=late>@ <a href="/@">@</a></p><p>keptlast</p>
""")


@pytest.mark.requirement("AIT-5", "MEET-5")
@pytest.mark.parametrize("elements", ["redact", "strip"])
def test_elements_are_those_of_browsers(serve: Serve, crawl: Crawl, elements: str) -> None:
    site = serve({"/ai.txt": AS_BROWSERS, "/": MISNESTED})
    settings = TRAIN | {"COMITY_ELEMENTS": elements}
    (item,) = crawl(SiteSpider, settings, url=site.url("/"), html="1").items
    stored = json.dumps({name: value for name, value in item.items() if name != "permissions"})
    assert not LETTERS & set(stored), stored
    assert sorted(set(re.findall(r"kept\w+", item["html"]))) == sorted(
        set(re.findall(r"kept\w+", MISNESTED))
    )


LATE = """<!doctype html><title>t</title><p>x</p></body></html>
<meta name="robots" content="noai">"""


@pytest.mark.requirement("META-1")
def test_what_stands_behind_the_end_of_a_page_counts(serve: Serve, crawl: Crawl) -> None:
    site = serve({"/": LATE})
    (item,) = crawl(SiteSpider, TRAIN | {"COMITY_DROP_UNUSABLE": False}, url=site.url("/")).items
    tag = item["permissions"]
    assert tag["uses"]["train"]["verdict"] == "deny"
    (reason,) = (reason for reason in tag["reasons"] if reason["rule"] == "robots-meta.disallow")
    assert (reason["part"], reason["line"]) == ("meta robots", 2)


class Entries(Spider):
    """An item for each entry of a list, with its file."""

    name = "entries"
    url: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        for entry in response.css("li"):
            yield {
                "title": entry.css("b::text").get(),
                "file_urls": [response.urljoin(entry.css("a").attrib["href"])],
            }


ENTRIES = 60


@pytest.mark.requirement("MEET-5")
def test_files_of_refused_elements_leave_exports(
    serve: Serve, crawl: Crawl, tmp_path: Path
) -> None:
    kinds = ["refused" if number % 2 else "free" for number in range(ENTRIES)]
    entries = (
        f"<li class={kind}><b>title {number}</b><a href='/{kind}/{number} é.txt'>x</a><a href=/more/{number}>more</a>"
        for number, kind in enumerate(kinds)
    )
    files = {f"/{kind}/{number}%20%C3%A9.txt": b"text" for number, kind in enumerate(kinds)}
    site = serve(
        {"/ai.txt": AI, "/page.html": f"<!doctype html><ul>{''.join(entries)}</ul>", **files}
    )
    pipelines = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
    }
    items = crawl(Entries, TRAIN | pipelines, url=site.url("/page.html")).items
    assert len(items) == ENTRIES
    assert all(len(item["files"]) == 1 for item in items)
    assert all(
        element["more_urls"] for item in items for element in item["permissions"]["elements"]
    )
    assert max(len(json.dumps(item)) for item in items) < 6000
    records = [apply_terms(item, Terms.of(["train"])).record for item in items]
    kept = [record["files"][0]["url"] for record in records if record and record["files"]]
    assert len(kept) == ENTRIES // 2
    assert all("/free/" in url for url in kept)
    assert "refused" not in json.dumps(
        [{**record, "permissions": ""} for record in records if record]
    )
