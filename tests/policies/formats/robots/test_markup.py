"""A robots.txt is recognised by its content.

Text is read with any media type, and only the refusals of markup are read (docs/robots.md).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.answers.fetched import Availability, availability

ORIGIN = "https://example.com"
TYPES = (
    b"text/html; charset=utf-8",
    b"application/xhtml+xml",
    b"application/octet-stream",
    b"TEXT/HTML",
    b"nonsense",
)
RULES = (
    b"User-agent: *\nDisallow: /private\nAllow: /private/open\n"
    b"Sitemap: https://example.com/map.xml\n"
)
USES = ("train", "search", "index", "preserve")
AGENT = Agent("examplebot", uses=USES, defaults=dict.fromkeys(USES, Verdict.ALLOW))


def site(body: bytes, media_type: bytes = b"text/html", **files: bytes) -> Site:
    robots = Fetched(status=200, body=body, headers=((b"Content-Type", media_type),))
    return Site.from_files(
        ORIGIN, {"/robots.txt": robots} | {f"/{name}.txt": text for name, text in files.items()}
    )


def decide(found: Site, path: str, agent: Agent = AGENT) -> tuple[str, str, int, str]:
    """Return verdict, rule, line and text of the deciding reason."""
    decision = found.access(agent, ORIGIN + path)
    reason = decision.reasons[0]
    return decision.verdict.value, reason.rule, reason.source.line, reason.source.text


def uses(found: Site, path: str = "/page") -> dict[str, tuple[str, bool]]:
    page = found.page(AGENT, ORIGIN + path, body=None)
    return {use: (page.uses[use].verdict.value, page.uses[use].stated) for use in USES}


SILENT = dict.fromkeys(USES, ("allow", False))

# (1) Text


@pytest.mark.requirement("RFC-10")
@pytest.mark.parametrize("media_type", TYPES)
def test_text_is_read_whatever_its_label(media_type: bytes) -> None:
    found = site(RULES, media_type)
    assert decide(found, "/private/1") == ("deny", "robots.disallow", 2, "Disallow: /private")
    assert decide(found, "/private/open") == ("allow", "robots.allow", 3, "Allow: /private/open")
    assert found.sitemaps == ("https://example.com/map.xml",)
    assert [(finding.rule, finding.line) for finding in found.findings] == [
        ("robots.media-type", 0)
    ]


@pytest.mark.requirement("RFC-10")
@pytest.mark.parametrize("media_type", [b"", b"text/plain", b"Text/Plain;charset=x"])
def test_a_label_that_is_right_or_missing_is_no_finding(media_type: bytes) -> None:
    assert site(RULES, media_type).findings == ()


@pytest.mark.requirement("RFC-10")
def test_a_comment_at_the_beginning_is_no_markup() -> None:
    found = site(b"<!-- ours -->\n" + RULES)
    assert decide(found, "/private/open")[:2] == ("allow", "robots.allow")


# (2) Pages

PAGES = [
    b"<!DOCTYPE html><title>Not found</title><p>There is no such page.",
    b"\xef\xbb\xbf \n<html><body>User agents: all\nDisallow: /private\n</body></html>",
    b"<!-- v1 --><HTML lang=en>\nDisallow: /private\n",
    b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x"><html '
    b'xmlns="http://www.w3.org/1999/xhtml"><p>Disallow: /private</html>',
    b"<p>Hello</p>\nDisallow: /private\n",
    b"</div>\nDisallow: /private\n",
    b"<html>the line User-agent: *\nDisallow: /private\n",
    b"<html>\nUser-agent strings\nDisallow: /private\n",
]


@pytest.mark.requirement("RFC-10")
@pytest.mark.parametrize("body", PAGES)
@pytest.mark.parametrize("media_type", [b"text/html", b"text/plain"])
def test_a_page_is_no_file(body: bytes, media_type: bytes) -> None:
    found = site(body, media_type)
    assert decide(found, "/private/1") == ("allow", "robots.unavailable", 0, "an HTML page")
    assert availability(found.files[f"{ORIGIN}/robots.txt"]) is Availability.ABSENT
    assert found.findings == ()


# (3) Markup with records

# The body; the line that counts as that of `Disallow: /private`.
MARKED_UP: list[tuple[bytes, int]] = [
    (b"<pre>" + RULES + b"</pre>", 2),
    (
        b"<!DOCTYPE html>\n<html><head><title>robots</title></head>\n<body>\n<pre>\n"
        + RULES
        + b"</pre></body></html>",
        6,
    ),
    (b"<html><head></head><body><pre style='a'>" + RULES + b"</pre></body></html>", 2),
    (b"<html><title>robots.txt</title><p>" + RULES, 3),
    (b"<p>User-agent: *<br />\nDisallow: /private<br />\nAllow: /private/open</p>", 2),
    (b"<p>User-agent: *</p>\r\n<p>Disallow: /private</p>\r\n<p>Allow: /private/open</p>", 2),
    (b"<p>User-agent: *<br>Disallow: /private<br>Allow: /private/open</p>", 2),
    (
        b"<div\n class=a\n>User-agent: *\n"
        b"<span>Disallow</span>: <a href='/private'>/private</a>\nAllow: /private/open</div>",
        4,
    ),
    (b"<p><strong>User-agent:</strong>&nbsp;*<br>\nDisallow:&nbsp;/private\n", 2),
    (b"<!-- ours --><html>\nUser-agent: *\nDisallow: /private\n", 3),
    # no tag at the beginning, and a tag that breaks the line of a record
    (b"User-agent: *<br>\nDisallow: /private<br>\nAllow: /private/open<br>\n", 2),
    (b"User-agent: *<br/>Disallow: /private<br/>Allow: /private/open", 2),
]


@pytest.mark.requirement("RFC-10", "WHY-1")
@pytest.mark.parametrize(("body", "line"), MARKED_UP)
@pytest.mark.parametrize("media_type", [b"text/html", b"text/plain"])
def test_of_markup_with_records_the_refusals_count(
    body: bytes, line: int, media_type: bytes
) -> None:
    found = site(body, media_type)
    verdict, rule, decided_line, text = decide(found, "/private/1")
    assert (verdict, rule, decided_line) == ("deny", "robots.disallow", line)
    assert text.replace("\xa0", " ") == "Disallow: /private"
    assert decide(found, "/private/open")[:2] == ("deny", "robots.disallow")
    assert decide(found, "/other")[:2] == ("allow", "robots.no-match")
    assert found.sitemaps == ()
    assert availability(found.files[f"{ORIGIN}/robots.txt"]) is Availability.PRESENT
    assert "robots.markup" in [finding.rule for finding in found.findings]


def marked_up(*lines: str) -> bytes:
    return "\n".join(("<html><body><pre>", *lines, "</pre></body></html>")).encode()


@pytest.mark.requirement("RFC-10")
def test_an_escaped_character_is_read_as_the_character() -> None:
    found = site(
        marked_up(
            "User-agent: *",
            "Disallow: /a?b=1&amp;c=2",
            "Disallow: /x&#10;Allow: /x/y",
            "Disallow: /&lt;z",
        )
    )
    assert decide(found, "/a?b=1&c=2")[:3] == ("deny", "robots.disallow", 3)
    assert decide(found, "/x&#10;Allow: /x/y")[0] == "deny"
    assert decide(found, "/%3Cz")[0] == "deny"


@pytest.mark.requirement("RFC-10", "RFC-2")
def test_a_crawler_obeys_the_group_that_names_it() -> None:
    found = site(
        marked_up(
            "User-agent: *",
            "Disallow: /",
            "",
            "User-agent: examplebot",
            "Disallow: /mine",
            "Crawl-delay: 1",
        )
    )
    assert decide(found, "/mine")[:3] == ("deny", "robots.disallow", 6)
    assert decide(found, "/other")[0] == "allow"
    rates = found.rates(AGENT)
    assert rates is not None
    assert rates.crawl_delay == 1
    other = site(marked_up("User-agent: *", "Disallow: /a", "User-agent: otherbot", "Disallow: /"))
    assert decide(other, "/b")[0] == "allow"


@pytest.mark.requirement("RFC-10")
def test_an_allow_line_ends_a_list_of_agents() -> None:
    found = site(
        marked_up("User-agent: examplebot", "Allow: /", "User-agent: otherbot", "Disallow: /")
    )
    assert decide(found, "/b")[0] == "allow"


@pytest.mark.requirement("RFC-10")
@pytest.mark.parametrize(
    ("permission", "refusal", "use"),
    [
        ("Content-Signal: ai-train=yes", "Content-Signal: ai-train=no", "train"),
        ("Content-Usage: train-ai=y", "Content-Usage: train-ai=n", "train"),
        ("License: https://example.com/rsl.xml", "License: /missing.xml", "train"),
        (
            "ACAP-crawler: *\nACAP-allow-index: /",
            "ACAP-crawler: *\nACAP-disallow-index: /",
            "index",
        ),
    ],
)
def test_no_line_of_another_format_permits(permission: str, refusal: str, use: str) -> None:
    content = b'<content url="/"><license><permits type="usage">all</permits></license></content>'
    licence = b'<rsl xmlns="https://rslstandard.org/rsl">%s</rsl>' % content

    def uses_with(line: str, *, is_markup: bool) -> dict[str, tuple[str, bool]]:
        lines = ("User-agent: *", "Allow: /", *line.split("\n"))
        body = marked_up(*lines) if is_markup else "\n".join(lines).encode()
        return uses(Site.from_files(ORIGIN, {"/robots.txt": body, "/rsl.xml": licence}))

    assert uses_with(permission, is_markup=False)[use] == ("allow", True)
    assert uses_with(permission, is_markup=True) == SILENT
    assert uses_with(refusal, is_markup=True)[use] == ("deny", True)


@pytest.mark.requirement("RFC-10")
def test_no_longer_path_of_a_usage_line_permits() -> None:
    found = site(
        marked_up("User-agent: *", "Content-Usage: /a train-ai=n", "Content-Usage: /a/b train-ai=y")
    )
    assert uses(found, "/a/b")["train"] == ("deny", True)


@pytest.mark.requirement("RFC-10", "ACAP-7", "ACAP-14")
def test_no_record_of_acap_permits() -> None:
    lines = (
        "User-agent: *",
        "Disallow: /",
        "ACAP-crawler: *",
        "ACAP-allow-crawl: /",
        "ACAP-disallow-crawl: /private",
    )
    assert decide(site(marked_up(*lines)), "/x")[:2] == ("deny", "robots.disallow")
    ignoring = ("ACAP-ignore-conventional-records", *lines)
    assert decide(site(marked_up(*ignoring)), "/x")[:2] == ("deny", "robots.disallow")
    referring = (
        "User-agent: *",
        "Disallow: /",
        "ACAP-crawler: *",
        "ACAP-permissions-reference: /more.txt",
    )
    permitting = b"ACAP-allow-crawl: /\nACAP-disallow-crawl: /private\n"
    found = site(marked_up(*referring), more=permitting)
    assert decide(found, "/x")[:2] == ("deny", "robots.disallow")


# Referenced files

REFERRING = b"User-agent: *\nAllow: /\nACAP-crawler: *\nACAP-permissions-reference: /more.txt\n"


@pytest.mark.requirement("RFC-10", "ACAP-14")
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (b"ACAP-disallow-crawl: /private\n", "deny"),
        (b"<html>Not found", "allow"),
        (b"<pre>\nUser-agent: *\nDisallow: /private\n</pre>", "deny"),
    ],
)
def test_a_referenced_file_is_known_by_its_content(body: bytes, verdict: str) -> None:
    more = Fetched(status=200, body=body, headers=((b"Content-Type", b"text/html"),))
    found = Site.from_files(ORIGIN, {"/robots.txt": REFERRING, "/more.txt": more})
    assert decide(found, "/private/1")[0] == verdict


# Limits


@pytest.mark.requirement("RFC-10", "RFC-9")
def test_what_is_cut_off_is_read_up_to_its_last_line() -> None:
    body = b"<pre>\nUser-agent: *\nDisallow: /a\nDisallow: /b"
    found = Site.from_files(ORIGIN, {"/robots.txt": Fetched(status=200, body=body, oversized=True)})
    assert [decide(found, path)[0] for path in ("/a", "/b")] == ["deny", "allow"]


LINES = st.sampled_from(
    [
        "User-agent: *",
        "User-agent: examplebot",
        "User-agent: otherbot",
        "Disallow: /",
        "Disallow: /a",
        "Allow: /a",
        "Allow: /",
        "Disallow:",
        "",
        "Crawl-delay: 1",
        "Content-Usage: train-ai=n",
        "Content-Usage: /a train-ai=y",
        "Usage: ai=n",
        "Content-Signal: search=no, ai-train=yes",
        "ACAP-crawler: *",
        "ACAP-crawler: examplebot",
        "ACAP-disallow-crawl: /a",
        "ACAP-allow-crawl: /",
        "ACAP-disallow-index: /",
        "ACAP-ignore-conventional-records",
    ]
)


@pytest.mark.requirement("RFC-10")
@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n", "<br>", "</p>\n<p>"]))
def test_markup_permits_nothing_that_the_text_refuses(lines: list[str], end: str) -> None:
    lines = ["User-agent: otherbot", "Disallow:", *lines]
    text, markup = site("\n".join(lines).encode()), site(("<p>" + end.join(lines)).encode())
    for path in ("/", "/a", "/b"):
        assert decide(text, path)[0] == "allow" or decide(markup, path)[0] == "deny"
        if decide(markup, path)[0] == "deny":
            continue  # some formats state nothing about a page that is not fetched
        as_text, as_markup = uses(text, path), uses(markup, path)
        assert {use for use in USES if as_text[use][0] == "deny"} <= {
            use for use in USES if as_markup[use][0] == "deny"
        }
        assert all(as_markup[use] != ("allow", True) for use in USES)
