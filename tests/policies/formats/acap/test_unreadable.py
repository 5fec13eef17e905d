"""Unreadable fields refuse, and nothing lifts their refusal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from comity.policies import Agent, Site, Verdict

NEWSBOT = Agent("newsbot", purposes=("news",))


def crawl(
    text: str, path: str, agent: Agent = NEWSBOT, files: Mapping[str, bytes] = MappingProxyType({})
) -> Verdict:
    site = Site.from_files(
        "https://example.com", {"/robots.txt": text.encode("utf-8", "surrogateescape"), **files}
    )
    return site.access(agent, f"https://example.com{path}").verdict


@pytest.mark.requirement("ACAP-3", "ACAP-10", "ACAP-45")
@pytest.mark.parametrize(
    "crawler", ["ACAP-crawler:", "ACAP-crawler", f"ACAP-crawler: {'x' * 40_000}"]
)
def test_a_record_for_nobody_knows_whom(crawler: str) -> None:
    """It refuses for a crawler that another record permits by name.

    Its permissions may be meant for others.
    """
    text = (
        f"ACAP-crawler: newsbot\nACAP-allow-crawl: /\n{crawler}\nACAP-disallow-crawl: /x\n"
        "ACAP-allow-crawl: /x/y\n"
    )
    assert crawl(text, "/x/y") is Verdict.DENY
    assert crawl(text, "/z") is Verdict.ALLOW
    # no record permits it
    assert crawl(f"{crawler}\nACAP-allow-crawl: /y\n", "/y") is Verdict.ALLOW


EXAMPLEBOT = Agent(
    "examplebot", user_agent="Mozilla/5.0 (compatible; examplebot/1.2; +https://example.org/)"
)


@pytest.mark.requirement("ACAP-3", "ACAP-10")
@pytest.mark.parametrize(
    "crawler",
    ["**", "***", "/", "(", ";", "*,", '"*"', "* (all)", "*\u00a0", "\u00a0*", "*\u200b", "*\x0b",
     '"examplebot"', "<examplebot>",
     "\u201cexamplebot\u201d", "examplebot\u00a0", "examplebot\u200b", "\ufeffexamplebot",
     "*\udca0", "examplebot\udca0"],
)  # fmt: skip
def test_a_name_that_cannot_be_read(crawler: str) -> None:
    """It may mean the crawler or any: its prohibitions apply, and its permission lifts nothing."""
    assert (
        crawl(f"ACAP-crawler: {crawler}\nACAP-disallow-crawl: /p/\n", "/p/1", EXAMPLEBOT)
        is Verdict.DENY
    )
    named = "User-agent: examplebot\nDisallow: /p/\n"
    general = "ACAP-crawler: *\nACAP-disallow-crawl: /p/\n"
    for other in (named, general):
        assert (
            crawl(f"{other}ACAP-crawler: {crawler}\nACAP-allow-crawl: /p/\n", "/p/1", EXAMPLEBOT)
            is Verdict.DENY
        )


@pytest.mark.requirement("ACAP-3", "ACAP-10")
@pytest.mark.parametrize(
    "crawler",
    ["+otherbot", "+otherbot/2.0;++https://example.net/",
     "(compatible; otherbot/3.5; https://example.net/~bot/)", "360bot",
     "otherbot\u00ae", "Der gro\u00dfe Bot", "\u0431\u043e\u0442", "H\udce4m\udce4bot", "_bot",
     "other\tbot",
     "other, bot", "bot!", "bot*"],
)  # fmt: skip
def test_a_name_of_another_that_the_grammar_does_not_have(crawler: str) -> None:
    """The name clearly means another crawler."""
    assert (
        crawl(f"ACAP-crawler: {crawler}\nACAP-disallow-crawl: /p/\n", "/p/1", EXAMPLEBOT)
        is Verdict.ALLOW
    )


@pytest.mark.requirement("ACAP-4", "ACAP-15", "ACAP-16")
@pytest.mark.parametrize(
    "purpose",
    [
        "news\u00a0",
        "news\u200b",
        "\ufeffnews",
        "news,ads",
        "ads;news",
        "news ads",
        "ads\tnews",
        '"news"',
        "<news>",
        "news\udca0",
    ],
)
def test_a_purpose_that_the_grammar_does_not_have(purpose: str) -> None:
    """It may mean the purpose of the request: the prohibition applies, the permission does not."""
    assert (
        crawl(f"ACAP-crawler: *\nACAP-usage-purpose: {purpose}\nACAP-disallow-crawl: /p/\n", "/p/1")
        is Verdict.DENY
    )
    text = (
        f"ACAP-crawler: *\nACAP-disallow-crawl: /p/\nACAP-usage-purpose: {purpose}\n"
        "ACAP-allow-crawl: /p/\n"
    )
    assert crawl(text, "/p/1") is Verdict.DENY


@pytest.mark.requirement("ACAP-4", "ACAP-15")
@pytest.mark.parametrize(
    "purpose",
    ["ads", "*ads", "ads$", "https://example.com/a,b;c/*", "k\u00fcnste", "text-and-data_mining.1"],
)
def test_a_purpose_of_another(purpose: str) -> None:
    assert (
        crawl(f"ACAP-crawler: *\nACAP-usage-purpose: {purpose}\nACAP-disallow-crawl: /p/\n", "/p/1")
        is Verdict.ALLOW
    )


@pytest.mark.requirement("ACAP-4", "ACAP-15", "ACAP-16")
def test_a_purpose_that_cannot_be_read() -> None:
    """A permission for a purpose overrides general prohibitions of its pattern, but not this
    one.
    """
    sub_records = (
        "ACAP-usage-purpose:\nACAP-disallow-crawl: /x\nACAP-usage-purpose: news\n"
        "ACAP-allow-crawl: /x\n"
    )
    assert crawl(f"ACAP-crawler: *\n{sub_records}", "/x") is Verdict.DENY
    assert crawl(f"ACAP-crawler: *\n{sub_records}", "/x", Agent("newsbot")) is Verdict.DENY
    general = "ACAP-disallow-crawl: /x\nACAP-usage-purpose: news\nACAP-allow-crawl: /x\n"
    assert crawl(f"ACAP-crawler: *\n{general}", "/x") is Verdict.ALLOW


@pytest.mark.requirement("ACAP-12", "ACAP-14")
@pytest.mark.parametrize(
    ("locator", "verdict", "findings"),
    [
        ("gopher://example.org/", Verdict.DENY, [2]),
        ("http://[", Verdict.DENY, [2]),
        ("/robots.txt", Verdict.ALLOW, [2]),
        ("https://EXAMPLE.com:443/robots.txt#a", Verdict.ALLOW, [2]),
    ],
)
def test_a_reference_that_leads_nowhere(
    locator: str, verdict: Verdict, findings: list[int]
) -> None:
    text = f"ACAP-crawler: newsbot\nACAP-permissions-reference: {locator}\n".encode()
    site = Site.from_files("https://example.com", {"/robots.txt": text})
    assert site.access(NEWSBOT, "https://example.com/").verdict is verdict
    assert [
        finding.line for finding in site.findings if finding.rule == "acap.reference"
    ] == findings
    assert site.references(NEWSBOT) == ()


@pytest.mark.requirement("ACAP-12", "ACAP-14")
@pytest.mark.parametrize(
    "locator",
    ['"/a.txt"', "/a.txt /b.txt", "/a.txt\u00a0", "/a.txt\udca0", "\\a.txt", "<a.txt>", "/{a}.txt",
     "/a\u200b.txt", "/\udce9.txt", "/a.txt\x0b"],
)  # fmt: skip
def test_a_reference_that_is_no_uri(locator: str) -> None:
    """comity would fetch another address, and a missing file states nothing."""
    text = f"ACAP-crawler: *\nACAP-permissions-reference: {locator}\n"
    for files in ({"/a.txt": b"ACAP-disallow-crawl: /\n"}, {}):
        assert crawl(text, "/p", NEWSBOT, files) is Verdict.DENY
    site = Site.from_files(
        "https://example.com", {"/robots.txt": text.encode("utf-8", "surrogateescape")}
    )
    assert site.references(NEWSBOT) == ()
    assert "acap.syntax" in {finding.rule for finding in site.findings if finding.line == 2}


@pytest.mark.requirement("ACAP-12")
def test_a_reference_with_all_that_a_uri_may_have() -> None:
    text = (
        b"ACAP-crawler: *\nACAP-permissions-reference: "
        b"http://a@[::1]:8/b;c=d,e/~f!$&'()*+-._%20?g=\xc3\xa9 # \xa0\n"
    )
    site = Site.from_files("https://example.com", {"/robots.txt": text})
    assert len(site.references(NEWSBOT)) == 1


@pytest.mark.requirement("ACAP-4", "ACAP-12", "ACAP-14")
def test_a_reference_in_a_sub_record() -> None:
    """The grammar has none there: the fields of the file would apply to any purpose."""
    text = (
        "ACAP-crawler: *\nACAP-disallow-crawl: /\nACAP-usage-purpose: news\n"
        "ACAP-permissions-reference: /news.txt\n"
    )
    files = {"/news.txt": b"ACAP-allow-crawl: /news/\n"}
    assert crawl(text, "/news/1", Agent("newsbot"), files) is Verdict.DENY
    assert crawl(text, "/news/1", NEWSBOT, files) is Verdict.DENY
    general = text.replace("ACAP-usage-purpose: news\n", "")
    assert crawl(general, "/news/1", Agent("newsbot"), files) is Verdict.ALLOW


CLOSED = "User-agent: *\nDisallow: /p/\n"
OPEN = "ACAP-crawler: *\nACAP-allow-index: /\n"


@pytest.mark.requirement("ACAP-7")
@pytest.mark.parametrize("value", [": no", ": false", ": 0", " are not ignored", ": yes"])
def test_a_field_that_ignores_conventional_records_has_no_value(value: str) -> None:
    text = f"{CLOSED}ACAP-ignore-conventional-records{value}\n{OPEN}"
    assert crawl(text, "/p/1") is Verdict.DENY
    site = Site.from_files("https://example.com", {"/robots.txt": text.encode()})
    assert [(finding.rule, finding.line) for finding in site.findings] == [("acap.ignored", 3)]
    for written in ("", ":", " \t: # as is meant"):
        assert (
            crawl(f"{CLOSED}ACAP-ignore-conventional-records{written}\n{OPEN}", "/p/1")
            is Verdict.ALLOW
        )


@pytest.mark.requirement("ACAP-7")
@pytest.mark.parametrize(
    ("record", "verdict"),
    [
        ("ACAP-crawler: *\n", Verdict.DENY),
        ("ACAP-crawler: *\nACAP-bogus: /x\n", Verdict.DENY),
        ("ACAP-crawler:\nACAP-disallow-crawl: /x\n", Verdict.DENY),
        ("ACAP-crawler: *\nACAP-usage-purpose: news\n", Verdict.DENY),
        ("ACAP-crawler: *\nACAP-allow-index:\n", Verdict.DENY),
        ("ACAP-crawler: *\nACAP-disallow-crawl: /x\n", Verdict.ALLOW),
        ("ACAP-crawler: otherbot\nACAP-request-re-crawl: /x\n", Verdict.ALLOW),
        ("ACAP-crawler: otherbot\nACAP-permissions-reference: /x.txt\n", Verdict.ALLOW),
    ],
)
def test_conventional_records_are_ignored_beside_a_record_only(
    record: str, verdict: Verdict
) -> None:
    """The record needs a field of its own, as the grammar demands."""
    assert crawl(f"{CLOSED}ACAP-ignore-conventional-records\n{record}", "/p/1") is verdict


SET = "the-acap:resource-set:"


@pytest.mark.requirement("ACAP-22", "ACAP-23")
@pytest.mark.parametrize(
    ("resource", "prohibited"),
    [
        ("https://example.com/private/", ["/private/x"]),
        ("HTTP://other.example:8080/private/*.html$", ["/private/x.html"]),
        ("http*://*.example.com/private/", ["/private/x"]),
        ("https://example.com", ["/", "/private/x"]),
        ("https://example.com?private", ["/?private"]),
        (f"{SET}s", ["/private/x", "/a/x"]),
        (f"{SET}t", ["/", "/private/x"]),
        (f"{SET}u", ["/private/x", "/b/x"]),
        ("the-acap:x", ["/"]),
        ("private:x", ["/"]),
        ("mailto:a@example.com", ["/"]),
        ("localhost:8080/private/", ["/"]),
    ],
)
def test_a_resource_that_is_no_path(resource: str, prohibited: list[str]) -> None:
    """A URL means its path, on any host. Anything else means the whole site."""
    sets = (
        "ACAP-resource-set: s /a/ https://example.com/private/\n"
        "ACAP-resource-set: t the-acap:resource-set:s /b/\n"
        "ACAP-resource-set: u http://example.com/private/ /b/\n"
    )
    text = f"{sets}ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-disallow-crawl: {resource}\n"
    for path in prohibited:
        assert crawl(text, path) is Verdict.DENY
    if "/" not in prohibited:
        assert crawl(text, "/elsewhere") is Verdict.ALLOW
    site = Site.from_files("https://example.com", {"/robots.txt": text.encode()})
    assert {finding.rule for finding in site.findings} <= {"acap.syntax", "acap.unknown-set"}
    assert site.findings


@pytest.mark.requirement("ACAP-22", "ACAP-23")
@pytest.mark.parametrize(
    "resource",
    ["/a:b", "/a/b:c/", "*Special:", "*.gif:x", "a/b:c", "?a:b", "/x?http://example.com/"],
)
def test_a_colon_that_begins_no_scheme(resource: str) -> None:
    site = Site.from_files(
        "https://example.com",
        {"/robots.txt": f"ACAP-crawler: *\nACAP-disallow-crawl: {resource}\n".encode()},
    )
    assert site.findings == ()
    assert site.access(NEWSBOT, "https://example.com/elsewhere").verdict is Verdict.ALLOW


@pytest.mark.requirement("ACAP-23", "ACAP-38")
@pytest.mark.parametrize("resource", ["https://example.com/news/", f"{SET}s"])
def test_a_permission_of_a_url(resource: str) -> None:
    """It keeps its place, and the wider one without its limit does not step in."""
    text = (
        f"ACAP-resource-set: s /x/ https://example.com/news/\nACAP-crawler: *\n"
        f"ACAP-allow-index: /\nACAP-allow-index: {resource} time-limit=1-days\n"
    )
    site = Site.from_files("https://example.com", {"/robots.txt": text.encode()})
    assert site.page(NEWSBOT, "https://example.com/news/1").uses["index"].verdict is Verdict.DENY
    assert site.page(NEWSBOT, "https://example.com/1").uses["index"].verdict is Verdict.ALLOW


@pytest.mark.requirement("ACAP-22", "ACAP-23")
def test_a_permission_of_what_cannot_be_read() -> None:
    """It grants nothing, and does not weaken others."""
    for resource in ("private:x", "the-acap:x"):
        text = (
            "ACAP-crawler: *\nACAP-allow-crawl: /a/\nACAP-disallow-crawl: /\n"
            f"ACAP-allow-crawl: {resource}\n"
        )
        assert crawl(text, "/a/1") is Verdict.ALLOW
        assert crawl(text, "/private:x") is Verdict.DENY


UNSEEN = ["\ufeff", "\u00a0", "\u200b", "\u3000", "\x0b", "\x0c", "\x00", "\udca0", " \ufeff\t"]


@pytest.mark.requirement("ACAP-1", "ACAP-3", "ACAP-10")
@pytest.mark.parametrize("unseen", UNSEEN)
def test_a_line_that_begins_with_what_cannot_be_seen(unseen: str) -> None:
    """It can prohibit and end a record.

    It permits nothing, and gives nothing to the record above.
    """
    text = (
        "ACAP-crawler: *\nACAP-disallow-crawl: /\nACAP-crawler: examplebot\nACAP-allow-crawl: /a/\n"
        f"{unseen}ACAP-crawler: otherbot\nACAP-allow-crawl: /p/\nACAP-disallow-crawl: /a/b/\n"
    )
    assert crawl(text, "/a/1", EXAMPLEBOT) is Verdict.ALLOW
    assert crawl(text, "/p/1", EXAMPLEBOT) is Verdict.DENY
    assert crawl(text, "/a/b/1", EXAMPLEBOT) is Verdict.DENY
    site = Site.from_files(
        "https://example.com", {"/robots.txt": text.encode("utf-8", "surrogateescape")}
    )
    assert [finding.line for finding in site.findings if finding.rule == "acap.syntax"] == [5]


@pytest.mark.requirement("ACAP-1", "ACAP-38")
@pytest.mark.parametrize(
    "field",
    [*(f"{unseen}ACAP-{{}}-crawl: /p/" for unseen in UNSEEN), "ACAP-{}-crawl\u00a0: /p/",
     "ACAP-{}-crawl\x0b: /p/",
     "ACAP-{}-crawl:: /p/", "ACAP-{}-crawl : : /p/", "ACAP-{}-crawl:\u200b/p/",
     "ACAP-{}-crawl\ufeff:\u00a0/p/"],
)  # fmt: skip
def test_a_field_with_what_cannot_be_seen(field: str) -> None:
    text = f"ACAP-crawler: *\n{field.format('disallow')}\n"
    assert crawl(text, "/p/1") is Verdict.DENY
    assert crawl(text, "/q/1") is Verdict.ALLOW
    site = Site.from_files(
        "https://example.com", {"/robots.txt": text.encode("utf-8", "surrogateescape")}
    )
    assert {(finding.rule, finding.line) for finding in site.findings} == {("acap.syntax", 2)}
    text = f"ACAP-crawler: *\nACAP-allow-crawl: /\n{field.format('allow')}\n"
    assert crawl(text, "/p/1") is Verdict.DENY
    assert crawl(text, "/q/1") is Verdict.ALLOW


@pytest.mark.requirement("ACAP-1", "ACAP-38")
def test_other_fields_with_what_cannot_be_seen() -> None:
    """They lift nothing, and narrow nothing."""
    closed = "ACAP-crawler: *\nACAP-disallow-crawl: /p/\n"
    assert crawl(f"{CLOSED}\ufeffACAP-ignore-conventional-records\n{OPEN}", "/p/1") is Verdict.DENY
    assert (
        crawl("ACAP-crawler: *\n\ufeffACAP-usage-purpose: ads\nACAP-disallow-crawl: /p/\n", "/p/1")
        is Verdict.DENY
    )
    assert (
        crawl(f"{closed}\ufeffACAP-usage-purpose: news\nACAP-allow-crawl: /p/\n", "/p/1")
        is Verdict.DENY
    )
    files = {"/r.txt": b"ACAP-allow-crawl: /p/\n"}
    assert (
        crawl(
            f"{closed}ACAP-crawler: newsbot\n\ufeffACAP-permissions-reference: /r.txt\n",
            "/p/1",
            NEWSBOT,
            files,
        )
        is Verdict.DENY
    )
    for verb, verdict in (("allow", Verdict.DENY), ("disallow", Verdict.DENY)):
        defined = (
            "#\n\ufeffACAP-resource-set: s /p/\nACAP-crawler: *\nACAP-allow-crawl: /\n"
            f"ACAP-{verb}-crawl: {SET}s\n"
        )
        assert crawl(defined, "/p/1") is verdict
        assert crawl(defined, "/q/1") is Verdict.ALLOW
    text = "ACAP-crawler: newsbot\n\ufeffACAP-request-take-down: /x\n"
    assert (
        Site.from_files("https://example.com", {"/robots.txt": text.encode()}).requests(NEWSBOT)
        == ()
    )


@pytest.mark.requirement("ACAP-1", "ACAP-38")
@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\x0b", "\u00a0 "])
def test_a_qualifier_after_a_space_that_is_none(space: str) -> None:
    """The permission keeps its place, and the wider one without its limit does not step in."""
    text = (
        f"ACAP-crawler: *\nACAP-allow-index: /\nACAP-allow-index: /news/{space}time-limit=3-days\n"
    )
    site = Site.from_files("https://example.com", {"/robots.txt": text.encode()})
    assert site.page(NEWSBOT, "https://example.com/news/1").uses["index"].verdict is Verdict.DENY
    assert site.page(NEWSBOT, "https://example.com/1").uses["index"].verdict is Verdict.ALLOW
    assert [(finding.rule, finding.line) for finding in site.findings] == [("acap.syntax", 3)]
