"""Sites that state one preference by one carrier each: what the tags of their items say, and which are not crawled at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator
from scrapy import Spider
from scrapy.http import Request, Response

if TYPE_CHECKING:  # the worker that runs the spiders does not know the tests
    from tests.conftest import Crawled, Loopback
    from tests.conftest import Serve as Servers

Serve = Callable[..., "Loopback"]
Crawl = Callable[..., "Crawled"]

VALIDATOR = Draft202012Validator(
    json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
)

ROBOTS, LICENSE, TDMREP = "/robots.txt", "/license.xml", "/.well-known/tdmrep.json"
TRUST, TRUST_ELSEWHERE = "/trust.txt", "/.well-known/trust.txt"
RSL_TYPE = "application/rsl+xml"


def rsl(*terms: str) -> str:
    """The first of the terms stands in line 3."""
    return f"""<rsl xmlns="https://rslstandard.org/rsl">
<content url="/"><license>
{"".join(terms)}
</license></content></rsl>"""


PROHIBITS = '<prohibits type="usage">ai-train</prohibits>'
PERMITS = '<permits type="usage">ai-train</permits>'
RESERVED = '[\n{"location": "/", "tdm-reservation": 1, "tdm-policy": "/tdm.json"}\n]'
ANNOTATION = '{"@type": "AutomationPolicyAnnotation", "allowedPurposes": ["search"]}'


class Stating(NamedTuple):
    """A site with one page, `/page`, and what its tag says of uses beside `crawl`."""

    stated: str  # each use of which a source speaks, "+": it is permitted, "-": it is refused
    rule: str = ""  # by which `train` is decided
    path: str = "/page"  # where that stands
    part: str = "body"
    line: int = 0
    text: str = ""
    robots: str = ""  # lines of its group for everybody, from line 2 on
    files: dict[str, str] = {}  # noqa: RUF012  # never changed
    fields: dict[str, str] = {}  # noqa: RUF012
    markup: str = ""  # in line 3 of the page
    asked: tuple[str, ...] = ()  # what is fetched besides the page and the well-known policy files


def in_robots(line: str, stated: str, rule: str, *, text: str = "", **more: Any) -> Stating:
    name, _, value = line.partition(": ")
    return Stating(
        stated, rule, ROBOTS, line=2, text=text or f"{name.title()}: {value}", robots=line, **more
    )


def in_field(name: str, value: str, stated: str, rule: str = "", **more: Any) -> Stating:
    said = (
        {"path": "/page", "part": f"header {name}", "text": value} | more
        if rule
        else {"part": "setting"} | more
    )
    return Stating(stated, rule or "comity.default", fields={name: value}, **said)


def in_markup(markup: str, stated: str, rule: str = "", **more: Any) -> Stating:
    return Stating(
        stated,
        rule or "comity.default",
        markup=markup,
        **({"part": "setting"} if not rule else {}) | more,
    )


def meta(name: str, content: str, stated: str, rule: str = "", **more: Any) -> Stating:
    said = {"part": f"meta {name.lower()}", "line": 3, "text": content} if rule else {}
    return in_markup(f'<meta name="{name}" content="{content}">', stated, rule, **said | more)


LINK = f'</license.xml>; rel="license"; type="{RSL_TYPE}"'
LINKED = f'<link rel="license" type="{RSL_TYPE}" href="/license.xml">'
OF_ALL = "index- ai-index- ai-input- ai-train- ai-all- all- search- train-"

CARRIERS = {
    # Nobody says anything
    "silent": Stating("", "comity.default", "", "setting", text="no default for train"),
    # robots.txt
    "usage": in_robots("usage: ai=n", "ai- train-", "usage.disallow"),
    "usage-permits": in_robots("usage: ai=y", "ai+ train+", "usage.allow"),
    "usage-general": in_robots("Usage: tdm=n, ai=y", "tdm- index- ai+ train+", "usage.allow"),
    "usage-genai": in_robots(
        "usage: genai=n, tdm=y", "tdm+ genai- index+ train-", "usage.disallow"
    ),
    "usage-pref": in_robots("usage-pref: ai=n", "ai- train-", "usage.disallow"),
    "content-usage": in_robots(
        "content-usage: train-ai=n", "train-ai- train-", "content-usage.disallow"
    ),
    "content-usage-path": in_robots(
        "content-usage: /pa train-ai=n", "train-ai- train-", "content-usage.disallow"
    ),
    "content-usage-other-path": in_robots(
        "content-usage: /pages train-ai=n", "", "comity.default", text="no default for train"
    )._replace(path="", part="setting", line=0),
    "content-signal": in_robots(
        "content-signal: ai-train=no", "ai-train- train-", "content-signal.disallow"
    ),
    "content-signal-permits": in_robots(
        "content-signal: ai-train=yes", "ai-train+ train+", "content-signal.allow"
    ),
    "training-rules": in_robots(
        "DisallowAITraining: /",
        "train-",
        "training-rules.disallow",
        text="DisallowAITraining: /",
    ),
    "training-rules-permit": in_robots(
        "AllowAITraining: /",
        "train+",
        "training-rules.allow",
        text="AllowAITraining: /",
    ),
    "license": Stating(
        "ai-train- train-",
        "rsl.prohibits",
        LICENSE,
        line=3,
        text=PROHIBITS,
        robots="License: /license.xml",
        files={LICENSE: rsl(PROHIBITS)},
        asked=(LICENSE,),
    ),
    "license-permits": Stating(
        "ai-all- ai-index- ai-input- ai-train+ all- index- search- train+",
        "rsl.permits",
        LICENSE,
        line=3,
        text=PERMITS,
        robots="License: /license.xml",
        files={LICENSE: rsl(PERMITS)},
        asked=(LICENSE,),
    ),
    "license-not-there": Stating(
        OF_ALL,
        "rsl.unlicensed",
        LICENSE,
        text="it cannot be fetched",
        robots="License: /license.xml",
        asked=(LICENSE,),
    ),
    "acap": Stating(
        "other- follow- index- preserve- present- train-",
        "acap.disallow",
        ROBOTS,
        line=5,
        text="ACAP-disallow-other: /",
        robots="Allow: /\nACAP-crawler: *\nACAP-allow-crawl: /\nACAP-disallow-other: /",
    ),
    # The other files
    "tdmrep.json": Stating(
        "train-",
        "tdmrep.reserved",
        TDMREP,
        line=2,
        text='{"location": "/", "tdm-reservation": 1, "tdm-policy": "/tdm.json"}; tdm-policy: ORIGIN/tdm.json',
        files={TDMREP: RESERVED},
    ),
    "tdmrep.json-elsewhere": Stating(
        "",
        "comity.default",
        "",
        "setting",
        text="no default for train",
        files={TDMREP: '[{"location": "/news/", "tdm-reservation": 1}]'},
    ),
    "trust.txt": Stating(
        "train-",
        "trust-txt.disallow",
        TRUST,
        line=2,
        text="datatrainingallowed=no",
        files={TRUST: "member=https://a.example/\ndatatrainingallowed=no\n"},
    ),
    "trust.txt-well-known": Stating(
        "train+",
        "trust-txt.allow",
        TRUST_ELSEWHERE,
        line=1,
        text="datatrainingallowed=yes",
        files={TRUST_ELSEWHERE: "datatrainingallowed=yes\n"},
    ),
    # Header fields
    "Content-Usage": in_field(
        "Content-Usage", "train-ai=n", "train-ai- train-", "content-usage.disallow"
    ),
    "Content-Usage-permits": in_field(
        "Content-Usage", "train-ai=y", "train-ai+ train+", "content-usage.allow"
    ),
    "Usage-Pref": in_field("Usage-Pref", "ai=n", "ai- train-", "usage.disallow"),
    "Content-Signal": in_field(
        "Content-Signal", "ai-train=no", "ai-train- train-", "content-signal.disallow"
    ),
    "X-Robots-Tag": in_field(
        "X-Robots-Tag",
        "noarchive, noai",
        "present- preserve- train-",
        "robots-meta.disallow",
        text="noai",
    ),
    "X-Robots-Tag-ours": in_field(
        "X-Robots-Tag", "TestBot: noai", "train-", "robots-meta.disallow"
    ),
    "X-Robots-Tag-others": in_field(
        "X-Robots-Tag", "otherbot: noai", "", path="", text="no default for train"
    ),
    "tdm-reservation": in_field(
        "tdm-reservation", "1", "train-", "tdmrep.reserved", text="tdm-reservation: 1"
    ),
    "Link": Stating(
        "ai-train- train-",
        "rsl.prohibits",
        LICENSE,
        line=3,
        text=PROHIBITS,
        fields={"Link": LINK},
        files={LICENSE: rsl(PROHIBITS)},
        asked=(LICENSE,),
    ),
    "Link-not-there": Stating(
        OF_ALL,
        "rsl.unlicensed",
        LICENSE,
        text="ORIGIN/license.xml cannot be fetched",
        fields={"Link": LINK},
        asked=(LICENSE,),
    ),
    # Markup
    "meta-robots": meta("robots", "noai", "train-", "robots-meta.disallow"),
    "meta-agent": meta("TestBot", "noai", "train-", "robots-meta.disallow"),
    "meta-others": meta("otherbot", "noai", "", path="", text="no default for train"),
    "meta-noindex": meta(
        "robots", "noindex", "index- present-", path="", text="no default for train"
    ),
    "meta-nofollow": meta("robots", "nofollow", "follow-", path="", text="no default for train"),
    "meta-tdm": meta(
        "tdm-reservation", "1", "train-", "tdmrep.reserved", line=0, text="tdm-reservation: 1"
    ),
    "meta-property": in_markup(
        '<meta property="robots" content="noai">',
        "train-",
        "robots-meta.disallow",
        part="meta robots",
        line=3,
        text="noai",
    ),
    "meta-http-equiv": in_markup(
        '<meta http-equiv="X-Robots-Tag" content="noai">',
        "train-",
        "robots-meta.disallow",
        part="meta X-Robots-Tag",
        line=3,
        text="noai",
    ),
    "meta-http-equiv-permits": in_markup(
        '<meta http-equiv="Content-Usage" content="train-ai=y">',
        "",
        path="",
        text="no default for train",
    ),
    "link": in_markup(
        LINKED,
        "ai-train- train-",
        "rsl.prohibits",
        path=LICENSE,
        line=3,
        text=PROHIBITS,
        files={LICENSE: rsl(PROHIBITS)},
        asked=(LICENSE,),
    ),
    "link-that-may-not-be-fetched": in_markup(
        LINKED,
        OF_ALL,
        "rsl.unlicensed",
        path=LICENSE,
        text="ORIGIN/license.xml cannot be fetched",
        robots="Disallow: /license",
        files={LICENSE: rsl(PERMITS)},
    ),
    "script": in_markup(
        f'<script type="{RSL_TYPE}">{rsl(PROHIBITS)}</script>',
        "ai-train- train-",
        "rsl.prohibits",
        part=f"script {RSL_TYPE}",
        line=5,
        text=PROHIBITS,
    ),
    "annotation": in_markup(
        f'<script type="application/ld+json">{ANNOTATION}</script>',
        "follow- index- preserve- present- train-",
        "automation.purpose",
        part="JSON-LD",
        line=3,
        text=ANNOTATION,
    ),
    "annotation-broken": in_markup(
        f'<script type="application/ld+json">{ANNOTATION[:-1]}</script>',
        "follow- index- preserve- present- train-",
        "automation.json-ld",
        part="JSON-LD",
        line=3,
        text=ANNOTATION[:-1],
    ),
}


class Pages(Spider):
    """One item of every page."""

    name = "pages"
    urls: list[str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


def site(serve: Servers, stating: Stating, number: int) -> Loopback:
    page = (
        f"<!DOCTYPE html>\n<html><head>\n{stating.markup}\n</head><body><p>text</p></body></html>"
    )
    routes: dict[str, Any] = {
        ROBOTS: f"User-agent: *\n{stating.robots}\n",
        "/page": serve.Answer(page, content_type="text/html", headers=stating.fields),
    }
    types = {
        LICENSE: RSL_TYPE,
        TDMREP: "application/json",
        **dict.fromkeys((TRUST, TRUST_ELSEWHERE), "text/plain"),
    }
    routes |= {
        path: serve.Answer(body, content_type=types[path]) for path, body in stating.files.items()
    }
    return serve(routes, host=f"127.0.0.{number}")


def told(item: dict[str, Any]) -> Stating:
    """What its tag says."""
    origin = item["url"].removesuffix("/page")
    tag = item["permissions"]
    VALIDATOR.validate(tag)
    uses = {use: decision for use, decision in tag["uses"].items() if use != "crawl"}
    assert all(decision["because"] for decision in uses.values())
    stated = [
        f"{use}{'+' if one['verdict'] == 'allow' else '-'}"
        for use, one in uses.items()
        if one["stated"]
    ]
    because = tag["reasons"][uses["train"]["because"][0]]
    path = because["url"].removeprefix(origin) if because["url"].startswith("http") else ""
    text = because["text"].replace(origin, "ORIGIN")
    return Stating(
        " ".join(sorted(stated)),
        because["rule"],
        path,
        because.get("part", "body"),
        because["line"],
        text,
    )


@pytest.mark.requirement(
    "USE-9",
    "USE-11",
    "USE-12",
    "PREF-2",
    "SIG-1",
    "META-1",
    "META-3",
    "META-5",
    "TDM-1",
    "TDM-2",
    "RSL-1",
    "WHY-2",
)
def test_every_carrier_is_in_the_tag(serve: Servers, crawl: Crawl) -> None:
    """What the files of a site, the fields of a response and a page say, as far as it is one word of one carrier."""
    servers = {
        name: site(serve, stating, number)
        for number, (name, stating) in enumerate(CARRIERS.items(), 1)
    }
    settings = {
        "COMITY_USES": "train",
        "COMITY_DROP_UNUSABLE": False,
        "COMITY_SKIP_UNUSABLE": False,
        "CONCURRENT_REQUESTS": 32,
    }
    crawled = crawl(Pages, settings, urls=[server.url("/page") for server in servers.values()])
    by_origin = {item["url"].removesuffix("/page"): told(item) for item in crawled.items}
    assert len(crawled.items) == len(by_origin) == len(servers)
    for name, server in servers.items():
        wanted = CARRIERS[name]
        assert by_origin[server.origin] == Stating(
            " ".join(sorted(wanted.stated.split())), *wanted[1:6]
        ), name
        well_known = [
            path for path in (ROBOTS, TDMREP, TRUST, TRUST_ELSEWHERE) if path in server.routes
        ]
        assert sorted(server.paths) == sorted([*well_known, *wanted.asked, "/page"]), name
    assert "Traceback" not in crawled.log


# What they state holds for every page of the site, whatever the page says.
EVERYWHERE = frozenset(
    (
        "usage",
        "usage-genai",
        "usage-pref",
        "content-usage",
        "content-signal",
        "training-rules",
        "license",
        "license-not-there",
        "acap",
        "tdmrep.json",
        "trust.txt",
    )
)


class Follows(Pages):
    """Asks for two pages of a site, and would follow whatever stands in them."""

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)
            yield Request(f"{url}s")

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}
        yield response.follow("/page/next")


@pytest.mark.requirement("USE-14", "MEET-3")
def test_who_refuses_every_declared_use_everywhere_is_asked_for_policy_files_alone(
    serve: Servers, crawl: Crawl
) -> None:
    """What a host has arranged is crawled, whatever it states; what refuses for a page alone costs an item alone."""
    servers = {
        name: site(serve, stating, number)
        for number, (name, stating) in enumerate(CARRIERS.items(), 1)
    }
    arranged = site(serve, CARRIERS["usage"], 200)
    settings = {
        "COMITY_USES": "train",
        "COMITY_DEFAULTS": "train:allow",
        "COMITY_ARRANGEMENTS": json.dumps(
            {arranged.host: {"uses": ["train"], "reference": "contract 7"}}
        ),
        "CONCURRENT_REQUESTS": 32,
    }
    crawled = crawl(
        Follows, settings, urls=[server.url("/page") for server in (*servers.values(), arranged)]
    )
    wanted = {
        server.url("/page")
        for name, server in servers.items()
        if "train-" not in CARRIERS[name].stated.split()
    }
    assert {item["url"] for item in crawled.items if item["url"].endswith("/page")} == {
        *wanted,
        arranged.url("/page"),
    }
    refusing = {
        name
        for name, server in servers.items()
        if not set(server.paths) & {"/page", "/pages", "/page/next"}
    }
    assert refusing == EVERYWHERE
    assert {path for name in refusing for path in servers[name].paths} == {
        ROBOTS,
        TDMREP,
        LICENSE,
        TRUST,
    }
    assert crawled.stats["comity/sites/unusable"] == len(EVERYWHERE)
    first = next(
        item["permissions"] for item in crawled.items if item["url"] == arranged.url("/page")
    )
    because = [first["reasons"][place] for place in first["uses"]["train"]["because"]]
    assert [(reason["rule"], reason["text"]) for reason in because] == [
        ("comity.arrangement", f"{arranged.host}: train, contract 7"),
        ("usage.disallow", "Usage: ai=n"),
    ]
    assert "Traceback" not in crawled.log
