"""Registries of opt-outs: which lines they may have, and which sites, URLs and works they cover."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Arrangement, PolicyError, Site, Verdict
from comity.policies import registry as registries
from comity.policies.registry import (
    CSV,
    FORMS,
    JSON_LINES,
    LINES,
    TSV,
    OptOuts,
    Registry,
    read_registry,
)
from comity.policies.syntax.urls import origin_of, spellings
from comity.policies.vocabulary.table import Vocabulary

pytestmark = pytest.mark.requirement("AUDIT-4")

SUFFIXES = ("com", "co.uk", "github.io", "xn--55qx5d.cn")
WORK = hashlib.sha256(b"a work").hexdigest()
ORIGIN = "https://www.example.com"
OPEN = {"/robots.txt": b"User-agent: *\nAllow: /\n"}
BOT = Agent("testbot", uses=("train",), defaults={"train": Verdict.ALLOW})


def read(text: str | bytes, form: str = LINES, name: str = "list.txt") -> Registry:
    octets = text.encode() if isinstance(text, str) else text
    return read_registry(name, form, io.BytesIO(octets), SUFFIXES.__contains__)


def covering(registry: Registry, url: str) -> list[int]:
    """Return the lines of the entries that cover the URL."""
    opt_outs, origin = OptOuts([registry]), origin_of(url)
    entries = (*opt_outs.of_site(origin), *opt_outs.of_targets(origin, spellings(url)))
    return sorted(entry.line for entry in entries)


@pytest.mark.parametrize(
    ("entry", "covered", "others"),
    [
        (
            "example.com",
            ("https://example.com/", "http://a.b.example.com:8080/x?y", "https://EXAMPLE.com./"),
            ("https://example.org/", "https://notexample.com/", "https://example.com.org/"),
        ),
        ("Example.COM.", ("https://www.example.com/",), ("https://com/",)),
        (
            "bücher.example",
            ("https://xn--bcher-kva.example/", "https://shop.bücher.example/"),
            ("https://bucher.example/",),
        ),
        ("straße.example", ("https://xn--strae-oqa.example/", "https://strasse.example/"), ()),
        ("127.0.0.1", ("http://127.0.0.1:8080/a",), ("http://1.127.0.0.1.example/",)),
        ("[::1]", ("http://[::1]:8080/a",), ("http://[::2]/",)),
        ("localhost", ("http://localhost:8080/a",), ("http://localhost.example/",)),
        ("my_shop.example", ("https://my_shop.example/",), ()),
        (
            "https://example.com/photos",
            (
                "https://example.com/photos",
                "http://example.com/photos/",
                "https://example.com/photos/a/b.jpg",
                "https://example.com/photos?size=2",
                "https://example.com./photos",
                "https://example.com/x/../photos/a",
                "https://example.com//photos/a",
                "https://example.com/%70hotos/a",
            ),
            (
                "https://example.com/photos-old",
                "https://example.com/Photos",
                "https://example.com/",
                "https://www.example.com/photos",
                "https://example.com:8443/photos",
                "https://example.com/a/photos",
            ),
        ),
        (
            "https://example.com/photos/",
            ("https://example.com/photos", "https://example.com/photos/a"),
            ("https://example.com/photosa",),
        ),
        (
            "https://example.com",
            ("https://example.com/", "https://example.com/a/b?c"),
            ("https://www.example.com/",),
        ),
        ("http://example.com:8080/", ("http://example.com:8080/a",), ("http://example.com/a",)),
        (
            "https://example.com/view?id=7",
            ("https://example.com/view?id=7",),
            ("https://example.com/view?id=8", "https://example.com/view"),
        ),
        ("https://example.com/ä#top", ("https://example.com/%C3%A4/b",), ()),
    ],
)
def test_entries_cover(entry: str, covered: tuple[str, ...], others: tuple[str, ...]) -> None:
    registry = read(f"# a comment\n\n{entry}\n")
    for url in covered:
        assert covering(registry, url) == [3], url
    for url in others:
        assert covering(registry, url) == [], url


def test_works_are_found_by_their_hash() -> None:
    registry = read(f"sha256:{WORK.upper()}\n{hashlib.sha256(b'other').hexdigest()}\n")
    opt_outs = OptOuts([registry])
    assert [entry.line for entry in opt_outs.of_work(WORK.upper())] == [1]
    assert opt_outs.of_work("") == opt_outs.of_work("0" * 64) == ()
    assert opt_outs.has_works
    assert not OptOuts([read("example.com\n")]).has_works


COLUMNS = {"domain": "example.com", "source": "https://reg.example/", "date": "2026-01-05"}


@pytest.mark.parametrize(
    ("form", "text", "line"),
    [
        (CSV, "Domain,note,SOURCE,date\nexample.com,x,https://reg.example/,2026-01-05\n", 2),
        (CSV, '\ufeffdomain,source,date\r\n\r\n"example.com","https://reg.example/",2026-01-05', 3),
        (TSV, "source\tdomain\tdate\nhttps://reg.example/\texample.com\t2026-01-05\n", 2),
        (JSON_LINES, "\n" + json.dumps(COLUMNS | {"url": None, "id": 7}) + "\n", 2),
    ],
)
def test_source_and_date_are_in_the_reason(form: str, text: str, line: int) -> None:
    registry = read(text, form, "list.csv")
    [entry] = OptOuts([registry]).of_site(ORIGIN)
    reason = entry.reason
    assert (reason.rule, reason.source.url, reason.source.line) == (
        "registry.opt-out",
        "list.csv",
        line,
    )
    assert reason.source.text == "example.com (https://reg.example/, 2026-01-05)"
    assert reason.source.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert (registry.entries, entry.uses) == (1, ())


def test_a_row_may_have_several_kinds() -> None:
    text = f"domain,url,sha256\n,https://a.example/x,{WORK}\nb.example,,\n"
    registry = read(text, CSV)
    assert covering(registry, "https://a.example/x/y") == [2]
    assert covering(registry, "https://b.example/") == [3]
    assert [entry.line for entry in registry.of_work(WORK)] == [2]


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        (LINES, "com\n", "line 1: `com` is a public suffix"),
        (LINES, "a.example\n公司.cn\n", "line 2: `公司.cn` is a public suffix"),
        (LINES, "github.io.\n", "write the domain of each site, such as example.github.io"),
        (LINES, "*.example.com\n", "write example.com, which covers those below"),
        (LINES, "example.com/photos\n", "write https://example.com/photos as a URL"),
        (LINES, "example\n", "line 1: `example` is not a domain: write a domain such as"),
        (LINES, "example.com:8080\n", "`example.com:8080` is not a domain"),
        (LINES, "a.example b.example\n", "is not a domain"),
        (LINES, "a.example\rb.example\n", "is not a domain"),
        (LINES, "10.0.0.300\n", "`10.0.0.300` is not a domain"),
        (LINES, "<!doctype html>\n", "`<!doctype html>` is not a domain"),
        (LINES, WORK[:63] + "\n", "is not a domain: write a domain such as example.com, a URL, or"),
        (LINES, "ftp://example.com/\n", "is not a URL: write https://example.com/path"),
        (LINES, "https://\n", "is not a URL"),
        (LINES, "https://me@example.com/\n", "has a user name: write the URL without it"),
        (LINES, "https://example.com/a/*\n", "has a wildcard: write the URL of a folder"),
        (LINES, "https://*.example.com/\n", "has a wildcard"),
        (LINES, b"a.example\n\xff.example\n", "line 2: it is not UTF-8: save it as UTF-8"),
        (LINES, b"\x1f\x8b\x08\x00\n", "line 1: it is not UTF-8: unpack it first"),
        (LINES, "", "has no entries: name another file, or leave it out"),
        (LINES, "# only a comment\n", "has no entries"),
        (CSV, "domain,source\n", "has no entries"),
        (CSV, "example.com\nexample.org\n", "line 1: it names no column domain, url or sha256"),
        (CSV, "domain,domain\n", "the column `domain` occurs twice: rename one"),
        (CSV, "domain,date\nexample.com\n", "line 2: it has 1 fields, and the first line 2"),
        (
            CSV,
            "url\nhttps://a.example/x,y\n",
            "put fields with commas or quotes into double quotes",
        ),
        (CSV, 'domain\n"example.com\nb.example\n', "it is not CSV (unexpected end of data)"),
        (
            CSV,
            'domain,source\na.example,"x\nb.example,y"\n',
            "line 3: a field in quotes has a line",
        ),
        (CSV, "domain,source\n,x\n", "line 2: it has no domain, url or sha256"),
        (CSV, "sha256\nabc\n", "`abc` is not a SHA-256: write its 64 hexadecimal digits"),
        (JSON_LINES, "example.com\n", "line 1: it is not JSON: write {"),
        (JSON_LINES, "[" * 100_000 + "\n", "it is not JSON: write {"),
        (JSON_LINES, '["example.com"]\n', "it is not a JSON object: write {"),
        (JSON_LINES, '{"domain": 7}\n', "`domain` is not a text: put it into double quotes"),
        (JSON_LINES, '{"domain": "a.example", "Domain": "b.example"}\n', "has `domain` twice"),
        (JSON_LINES, '{"source": "x"}\n', "it has no domain, url or sha256"),
        (JSON_LINES, '{"domain": "a.example", "uses": [1]}\n', "`uses` is not a text"),
    ],
)
def test_a_line_that_cannot_be_understood_is_an_error(
    form: str, text: str | bytes, message: str
) -> None:
    with pytest.raises(PolicyError) as error:
        read(text, form)
    assert str(error.value).startswith("registry `list.txt`")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("uses", "refused", "others"),
    [
        ("", ("crawl", "follow", "train", "search", "own-use"), ()),
        ("*", ("crawl", "train"), ()),
        ("all", ("crawl", "present"), ()),
        ("train", ("train", "ai-train", "tdm", "ai"), ("crawl", "follow", "search", "present")),
        ("tdm", ("tdm", "train", "search", "translate"), ("crawl", "present")),
        ("search; Index", ("search", "index"), ("train", "crawl")),
        ("crawl", ("crawl",), ("train", "follow")),
        ("follow", ("follow",), ("crawl", "train")),
    ],
)
def test_uses(uses: str, refused: tuple[str, ...], others: tuple[str, ...]) -> None:
    registry = read(f'domain,uses\nexample.com,"{uses}"\n', CSV)
    registry.check_uses(Vocabulary.shipped())
    [entry] = OptOuts([registry]).of_site(ORIGIN)
    for use in refused:
        assert entry.refuses(use, Vocabulary.shipped()), use
    for use in others:
        assert not entry.refuses(use, Vocabulary.shipped()), use


def test_an_unknown_use_is_an_error() -> None:
    registry = read("domain,uses\na.example,train\nb.example,trian\nc.example,trian\n", CSV)
    with pytest.raises(
        PolicyError, match="line 3: `trian` is not a use: write a use such as `train`"
    ):
        registry.check_uses(Vocabulary.shipped())
    words = "[vocabulary.own.terms]\ntrian = {}\n"
    registry.check_uses(Vocabulary.from_toml(words))


def agent(*registries: Registry) -> Agent:
    return replace(BOT, opt_outs=OptOuts(registries))


def test_an_entry_refuses_beside_the_site() -> None:
    """The registry refuses where robots.txt allows, and its reason is the first one."""
    site = Site.from_files(ORIGIN, OPEN)
    bot = agent(read("example.com\n"))
    assert site.access(BOT, f"{ORIGIN}/a").verdict is Verdict.ALLOW
    decision = site.access(bot, f"{ORIGIN}/a")
    assert decision.verdict is Verdict.DENY
    assert [reason.rule for reason in decision.reasons] == ["registry.opt-out"]
    page = site.page(bot, f"{ORIGIN}/a", body=b"text")
    assert {use.verdict for use in page.uses.values()} == {Verdict.DENY}
    assert all(use.stated for use in page.uses.values())
    [reason] = [one for one in page.permissions["reasons"] if one["rule"] == "registry.opt-out"]
    assert (reason["url"], reason["line"], reason["text"]) == ("list.txt", 1, "example.com")
    both = Site.from_files(ORIGIN, {"/robots.txt": b"User-agent: *\nDisallow: /\n"})
    assert [reason.rule for reason in both.access(bot, f"{ORIGIN}/a").reasons] == [
        "registry.opt-out",
        "robots.disallow",
    ]


def test_an_entry_without_crawl_leaves_requests() -> None:
    """The request may be made, and the use is refused; all pages of the site are not usable."""
    site = Site.from_files(ORIGIN, OPEN)
    bot = agent(read("domain,uses\nexample.com,train\n", CSV))
    assert site.access(bot, f"{ORIGIN}/a").verdict is Verdict.ALLOW
    uses = site.page(bot, f"{ORIGIN}/a", body=b"text").uses
    assert (uses["train"].verdict, uses["crawl"].verdict) == (Verdict.DENY, Verdict.ALLOW)
    unusable = site.unusable(bot)
    assert unusable is not None
    assert unusable.reasons[0].rule == "registry.opt-out"
    assert site.unusable(replace(bot, uses=("train", "present"))) is None
    assert site.unusable(agent(read("https://www.example.com/a\n"))) is None


def test_pages_of_one_site_are_told_apart() -> None:
    """Pages with equal statements share an answer, but not with pages that a registry lists."""
    site = Site.from_files(ORIGIN, OPEN)
    bot = agent(read("https://www.example.com/a\n"))
    for name in ("b", "a", "c", "a/b"):
        url = f"{ORIGIN}/{name}"
        verdict = Verdict.DENY if name.startswith("a") else Verdict.ALLOW
        assert site.page(bot, url, body=b"text").uses["train"].verdict is verdict, name
        assert site.access(bot, url).verdict is verdict
    keys = {site.statements_key(bot, f"{ORIGIN}/{name}", None) for name in "abc"}  # type: ignore[arg-type]  # the clock
    assert len(keys) == 2


def test_a_work_is_refused_at_any_url() -> None:
    site = Site.from_files(ORIGIN, OPEN)
    bot = agent(read(WORK + "\n"))
    assert site.access(bot, f"{ORIGIN}/a").verdict is Verdict.ALLOW
    other = site.page(bot, f"{ORIGIN}/a", body=b"another work")
    assert other.uses["train"].verdict is Verdict.ALLOW
    for page in (
        site.page(bot, f"{ORIGIN}/a", body=b"a work"),
        site.page(bot, f"{ORIGIN}/a", body=None, sha256=WORK),
    ):
        assert {page.uses[use].verdict for use in ("crawl", "train")} == {Verdict.DENY}
        assert page.uses["train"].reasons[0].rule == "registry.opt-out"


def test_a_licence_lifts_entries_about_the_site_but_not_about_works() -> None:
    site = Site.from_files(ORIGIN, OPEN)
    licensed = (Arrangement("www.example.com", uses=frozenset(["train"])),)
    for entry, verdict in (("example.com", Verdict.ALLOW), (WORK, Verdict.DENY)):
        registry = read(f"{'domain' if entry != WORK else 'sha256'},uses\n{entry},train\n", CSV)
        bot = replace(agent(registry), arrangements=licensed)
        page = site.page(bot, f"{ORIGIN}/a", body=b"a work")
        assert page.uses["train"].verdict is verdict, entry


def test_a_refusal_of_one_of_two_urls_counts() -> None:
    """After a redirect, the entry about the first URL refuses the page too."""
    site = Site.from_files(ORIGIN, OPEN)
    bot = agent(read("domain,uses\nwww.example.com,train\n", CSV))
    moved = Site.from_files("https://other.example", OPEN).page(
        bot, "https://other.example/a", body=b"text"
    )
    assert moved.uses["train"].verdict is Verdict.ALLOW
    first = site.page(bot, f"{ORIGIN}/a", body=b"text")
    assert moved.asked_as(first).uses["train"].verdict is Verdict.DENY


def test_registries_are_values() -> None:
    one, other = read("example.com\n", name="a"), read("example.org\n", name="b")
    assert OptOuts([one]) == OptOuts([read("example.com\n", name="a")]) != OptOuts([other])
    assert len({OptOuts([one]), OptOuts([read("example.com\n", name="a")])}) == 1
    kept = pickle.loads(pickle.dumps(OptOuts([one, other])))
    assert kept == OptOuts([one, other])
    assert [entry.registry for entry in kept.of_site(ORIGIN)] == ["a"]
    assert bool(kept)
    assert not OptOuts()
    with pytest.raises(PolicyError, match="two registries are called `a`"):
        OptOuts([one, read("example.net\n", name="a")])


def test_entries_with_many_different_notes_keep_their_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registries, "MAX_NOTES", 9)
    rows = "".join(f"d{n}.example,source {n},train\n" for n in range(11))
    registry = read(f"domain,source,uses\n{rows}", CSV)
    [first] = registry.of_site(["d0.example"])
    [last] = registry.of_site(["d10.example"])
    assert (first.source, first.uses) == ("source 0", ("train",))
    assert (last.source, last.uses, last.line) == ("", ("train",), 12)


@given(st.sampled_from(FORMS), st.binary(max_size=200))
def test_any_octets_are_a_registry_or_one_message(form: str, octets: bytes) -> None:
    message = ""
    try:
        assert read(octets, form).entries > 0
    except PolicyError as error:
        message = str(error)
    assert message.isprintable()


@given(
    st.lists(st.from_regex(r"[a-c]{1,2}(\.[a-c]{1,2}){1,2}", fullmatch=True), min_size=1),
    st.from_regex(r"[a-c]{1,2}(\.[a-c]{1,2}){1,4}", fullmatch=True),
)
def test_a_domain_covers_exactly_itself_and_those_below(names: list[str], host: str) -> None:
    names = [f"{name}.example" for name in names]
    lines = [
        number for number, name in enumerate(names, 1) if f".{host}.example".endswith(f".{name}")
    ]
    assert covering(read("\n".join(names)), f"https://{host}.example/") == lines


@given(
    st.lists(st.from_regex(r"(/[ab]{1,2}){0,3}/?", fullmatch=True), min_size=1),
    st.from_regex(r"(/[ab]{1,2}){0,5}/?", fullmatch=True),
)
def test_a_url_covers_exactly_its_path_and_those_below(paths: list[str], path: str) -> None:
    lines = [
        number
        for number, entry in enumerate(paths, 1)
        if (path.rstrip("/") + "/").startswith(entry.rstrip("/") + "/")
    ]
    registry = read("\n".join(f"https://x.example{entry}" for entry in paths))
    assert covering(registry, f"https://x.example{path or '/'}") == lines
