"""Other readers' decisions that differ from comity's, and their causes (docs/policy-command.md)."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.gate.second_opinion import (
    READERS,
    REWRITINGS,
    ReaderQuestion,
    second_opinions,
    sentences,
    unread_uses,
)
from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.answers.request import Facts
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.lines import MAX_BYTES
from tests.selection import one_in

ORIGIN = "https://example.com"
CORPUS = Path(__file__).parents[3] / "shared/corpus/robots/files"
PROTEGO, PYTHON, GOOGLE = "protego", "urllib.robotparser", "jwm.robotstxt.googlebot"
ALL = (PROTEGO, PYTHON, GOOGLE)

Answer = tuple[str | None, str, int]  # verdict, cause, line

ENDS = "ends lines elsewhere than at CR and LF"
MARK = "reads a byte order mark, or UTF-16, differently"
RAISES = "raises UnicodeDecodeError when it reads robots.txt"
NOT_ASCII = "reads octets that are not ASCII differently"
FIRST = "follows the first rule that matches, and not the longest"
SPECIAL = "reads `*` or `$` in a pattern differently"
ANOTHER = "finds that another rule matches the path"
ESCAPES = "compares escapes such as %2F as they are written"
GROUP = "ends a group, or its list of agents, at lines that are not rules"
MERGED = "does not combine all groups that name the agent"
NAMES = "reads the names in User-agent lines differently"
SPELLED = "reads misspelled names, or lines without a colon, differently"
ITSELF = "obeys rules that forbid robots.txt itself"
LIMIT = "reads on after the first 512 KiB"
NO_ACAP = "reads User-agent, Allow and Disallow only, and ignores ACAP"
SENT = "compares the path as it is sent, and no other spelling of it"
HTML = "reads an HTML page as a robots.txt"
MARKUP = "reads a robots.txt with HTML tags as it is, permissions included"


def differing(
    site: Site, target: str, agent: Agent, facts: Facts | None = None, now: datetime | None = None
) -> dict[str, Answer]:
    """Return the answers of the readers that disagree: reader -> answer."""
    decision = site.judge(agent, ORIGIN + target, facts or Facts(), now)
    opinions = second_opinions(site, agent, ORIGIN + target, decision)
    # The tests need all readers installed.
    assert [opinion.reader for opinion in opinions] == list(ALL)
    for opinion in opinions:
        if opinion.agrees:
            assert (opinion.verdict is Verdict.ALLOW) is (decision.verdict is Verdict.ALLOW)
            assert (opinion.cause, opinion.line, opinion.text) == ("", 0, "")
    return {
        opinion.reader: (
            opinion.verdict.value if opinion.verdict else None,
            opinion.cause,
            opinion.line,
        )
        for opinion in opinions
        if not opinion.agrees
    }


def of_robots(body: bytes | Fetched, **files: bytes) -> Site:
    return Site.from_files(
        ORIGIN,
        {"/robots.txt": body}
        | {f"/{name.replace('_', '-')}.txt": text for name, text in files.items()},
    )


class Case(NamedTuple):
    id: str
    body: bytes
    target: str
    verdict: str  # comity's verdict
    answers: dict[str, Answer]  # the answers of the readers that differ
    token: str = "examplebot"


def allow(why: str, *readers: str, line: int = 0) -> dict[str, Answer]:
    return dict.fromkeys(readers, ("allow", why, line))


def deny(why: str, *readers: str, line: int = 0) -> dict[str, Answer]:
    return dict.fromkeys(readers, ("deny", why, line))


STAR = b"User-agent: *\n"
CASES = [
    # section-2.2: EOL
    Case("CR", b"User-agent: *\rDisallow: /a\r", "/a", "deny", {}),
    Case("CRLF", b"User-agent: *\r\nDisallow: /a\r\n", "/a", "deny", {}),
    Case(
        "form feed, then a permission",
        STAR + b"Disallow: /a\x0cAllow: /a\n",
        "/a",
        "allow",
        deny(ENDS, PYTHON, line=2),
    ),
    Case(
        "U+2028 in a path",
        STAR + b"Disallow: /\nAllow: /a\xe2\x80\xa8/b\n",
        "/a",
        "deny",
        allow(ENDS, PROTEGO, line=3),
    ),
    # RFC-13: encodings
    Case("BOM", b"\xef\xbb\xbf" + STAR + b"Disallow: /a\n", "/a", "deny", allow(MARK, PYTHON)),
    Case(
        "UTF-16",
        "\ufeffUser-agent: *\nDisallow: /a\n".encode("utf-16-le"),
        "/a",
        "deny",
        allow(MARK, PROTEGO, GOOGLE) | {PYTHON: (None, RAISES, 0)},
    ),
    Case(
        "Latin-1 in a path",
        STAR + b"Disallow: /caf\xe9\n",
        "/caf%E9",
        "deny",
        {PYTHON: (None, RAISES, 0)},
    ),
    Case(
        "octets that are lost",
        STAR + b"Disallow: /caf\xe9s\n",
        "/cafs",
        "allow",
        deny(NOT_ASCII, PROTEGO, line=2) | {PYTHON: (None, RAISES, 0)},
    ),
    Case(
        "Latin-1 in a comment",
        b"# \xff\n" + STAR + b"Disallow: /a\n",
        "/a",
        "deny",
        {PYTHON: (None, RAISES, 0)},
    ),
    # section-2.2.2: the longest rule, Allow on a tie
    Case("one rule", STAR + b"Disallow: /a\n", "/a", "deny", {}),
    Case("tie", STAR + b"Disallow: /a\nAllow: /a\n", "/a", "allow", deny(FIRST, PYTHON, line=2)),
    Case(
        "a longer Allow",
        STAR + b"Disallow: /a\nAllow: /a/b\n",
        "/a/b",
        "allow",
        deny(FIRST, PYTHON, line=2),
    ),
    Case(
        "a longer Disallow",
        STAR + b"Allow: /a\nDisallow: /a/b\n",
        "/a/b",
        "deny",
        allow(FIRST, PYTHON, line=2),
    ),
    Case(
        "one of many lines",
        STAR + b"Disallow: /x\n" * 3 + b"Disallow: /a\n" + b"Disallow: /y\n" * 9 + b"Allow: /a/b\n",
        "/a/b",
        "allow",
        deny(FIRST, PYTHON, line=5),
    ),
    Case(
        "index.html",
        STAR + b"Disallow: /\nAllow: /index.html\n",
        "/",
        "deny",
        allow(ANOTHER, PROTEGO, GOOGLE, line=3),
    ),
    Case("no slash", STAR + b"Disallow: a\n", "/a", "allow", {}),
    Case(
        "itself",
        STAR + b"Disallow: /\n",
        "/robots.txt",
        "allow",
        deny(ITSELF, PYTHON, GOOGLE, line=2),
    ),
    # section-2.2.3
    Case("* and $", STAR + b"Disallow: /*.pdf$\n", "/x.pdf", "deny", allow(SPECIAL, PYTHON)),
    Case(
        "a permission with *",
        STAR + b"Allow: /a*\nDisallow: /\n",
        "/a",
        "allow",
        deny(SPECIAL, PYTHON, line=3),
    ),
    Case(
        "a literal $",
        STAR + b"Allow: /a$\nDisallow: /\n",
        "/a$",
        "deny",
        allow(ANOTHER, PROTEGO, line=2) | allow(FIRST, PYTHON, line=2),
    ),
    Case("$ within", STAR + b"Disallow: /a$b\n", "/a$b", "deny", {}),
    # section-2.2.2: escapes
    Case("case of escapes", STAR + b"Disallow: /a%2fb\n", "/a%2Fb", "deny", {}),
    Case(
        "an escaped slash",
        STAR + b"Disallow: /a%2Fb\n",
        "/a/b",
        "allow",
        deny(ANOTHER, PYTHON, line=2),
    ),
    Case(
        "an escape without need",
        STAR + b"Disallow: /%7Eme\n",
        "/~me",
        "deny",
        allow(ESCAPES, GOOGLE),
    ),
    # section-2.2.1: groups
    Case("no group", b"Disallow: /a\n", "/a", "allow", {}),
    Case(
        "Crawl-delay between agents",
        b"User-agent: examplebot\nCrawl-delay: 3\nUser-agent: other\nDisallow: /a\n",
        "/a",
        "deny",
        allow(GROUP, PROTEGO, PYTHON),
    ),
    Case(
        "an unknown line between agents",
        b"User-agent: examplebot\nContent-Usage: train-ai=n\nUser-agent: other\nDisallow: /a\n",
        "/a",
        "deny",
        allow(GROUP, PROTEGO),
    ),
    Case(
        "a blank line between agents",
        b"User-agent: examplebot\n\nUser-agent: other\nDisallow: /a\n",
        "/a",
        "deny",
        allow(GROUP, PYTHON),
    ),
    Case(
        "two groups",
        b"User-agent: examplebot\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\n"
        b"User-agent: examplebot\nDisallow: /b\n",
        "/b",
        "deny",
        allow(MERGED, PYTHON),
    ),
    Case(
        "a version",
        b"User-agent: q\nUser-agent: examplebot/1.0\nDisallow: /a\n",
        "/a",
        "deny",
        allow(NAMES, PROTEGO, PYTHON, line=2),
    ),
    Case(
        "a prefix of the token",
        b"User-agent: q\nUser-agent: example\nDisallow: /a\n",
        "/a",
        "allow",
        deny(NAMES, PROTEGO, PYTHON, line=2),
    ),
    Case(
        "a part of the token",
        b"User-agent: bot\nDisallow: /a\n",
        "/a",
        "allow",
        deny(NAMES, PYTHON, line=1),
    ),
    Case(
        "a token with *",
        b"User-agent: example*\nDisallow: /a\n",
        "/a",
        "allow",
        deny(NAMES, PROTEGO, line=1),
    ),
    Case(
        "a token with digits",
        b"User-agent: MJ12bot\nDisallow: /a\n",
        "/a",
        "deny",
        allow(NAMES, GOOGLE),
        "MJ12bot",
    ),
    Case(
        "up to the digits",
        b"User-agent: MJ12bot\nDisallow: /a\n",
        "/a",
        "allow",
        deny(NAMES, GOOGLE, line=1),
        "MJ",
    ),
    # RFC-12: leniency
    Case("misspelled", STAR + b"Disalow: /a\n", "/a", "deny", allow(SPELLED, PYTHON)),
    Case("no colon", STAR + b"Disallow /a\n", "/a", "deny", allow(SPELLED, PYTHON)),
    # section-2.5
    Case(
        "after the limit",
        STAR + b"#" * MAX_BYTES + b"\nDisallow: /a\n",
        "/a",
        "allow",
        deny(LIMIT, *ALL, line=3),
    ),
    Case(
        "a large file",
        STAR + b"#" * MAX_BYTES + b"\nDisallow: /a\n",
        "/a" * 20,
        "allow",
        deny("", *ALL),
    ),
    # RFC-10
    Case(
        "an HTML page",
        b"<html>\nUser-agent *\nDisallow: /\n",
        "/a",
        "allow",
        deny(HTML, PROTEGO, GOOGLE, line=3),
    ),
    Case("records in HTML", b"<pre>\nUser-agent: *\nDisallow: /a\n", "/a", "deny", {}),
    Case(
        "a permission in HTML",
        b"<pre>\nUser-agent: *\nAllow: /a/b\nDisallow: /a\n",
        "/a/b",
        "deny",
        allow(MARKUP, *ALL, line=3),
    ),
    # Files that no other reader reads
    Case(
        "an ACAP refusal",
        STAR + b"ACAP-crawler: *\nACAP-disallow-crawl: /a\n",
        "/a",
        "deny",
        allow(NO_ACAP, *ALL),
    ),
    Case(
        "an ACAP permission",
        STAR + b"Disallow: /a\nACAP-crawler: *\nACAP-allow-crawl: /a\n",
        "/a",
        "allow",
        deny(NO_ACAP, *ALL, line=2),
    ),
    Case(
        "an ACAP file that is not there",
        b"ACAP-crawler: *\nACAP-permissions-reference: /p.txt all\n",
        "/a",
        "deny",
        allow(NO_ACAP, *ALL),
    ),
    # MEET-6: paths that servers treat as equal
    Case(
        "dot segments",
        STAR + b"Disallow: /closed/\n",
        "/open/../closed/a",
        "deny",
        allow(SENT, *ALL),
    ),
    Case("parameters", STAR + b"Disallow: /closed/\n", "/closed;x/a", "deny", allow(SENT, *ALL)),
]


@pytest.mark.requirement("WHY-1", "RFC-2", "RFC-3", "RFC-9", "RFC-10", "RFC-12", "RFC-13", "MEET-6")
@pytest.mark.parametrize("case", one_in(2, CASES), ids=[case.id for case in CASES])
def test_bodies(case: Case) -> None:
    agent = Agent(case.token)
    site = of_robots(case.body)
    assert site.access(agent, ORIGIN + case.target).verdict.value == case.verdict
    assert differing(site, case.target, agent) == case.answers


COPY = Fetched(
    status=200, body=STAR + b"Disallow: /a\n", unreachable_since=datetime(2026, 1, 1, tzinfo=UTC)
)
MOVED = "follows redirects by rules of its own, so the file that it reads is not known"
CUT = "reads a part of a robots.txt as the whole of it"


@pytest.mark.requirement("WHY-1", "RFC-5", "RFC-6", "RFC-7")
@pytest.mark.parametrize(
    ("fetched", "verdict", "answers"),
    [
        (Fetched(status=404), "allow", {}),
        (Fetched(status=410), "allow", {}),
        (
            Fetched(status=401),
            "allow",
            deny("treats status 401 of robots.txt as a refusal of everything", PYTHON),
        ),
        (
            Fetched(status=403),
            "allow",
            deny("treats status 403 of robots.txt as a refusal of everything", PYTHON),
        ),
        (
            Fetched(status=404, body=STAR + b"Disallow: /a\n"),
            "allow",
            deny("reads the answer with status 404 as a robots.txt", PROTEGO, line=2),
        ),
        (
            Fetched(status=429),
            "deny",
            allow(
                "reads the answer with status 429 as a robots.txt, and finds no rules there",
                PROTEGO,
            )
            | allow("treats status 429 as no robots.txt", PYTHON),
        ),
        (
            Fetched(status=503),
            "deny",
            allow(
                "reads the answer with status 503 as a robots.txt, and finds no rules there",
                PROTEGO,
            ),
        ),
        (
            Fetched(status=0, error="no answer within 20 seconds"),
            "deny",
            allow("fetches everything if robots.txt cannot be fetched", PROTEGO)
            | dict.fromkeys(
                (PYTHON,), (None, "raises URLError if robots.txt cannot be fetched", 0)
            ),
        ),
        (Fetched(status=302), "allow", dict.fromkeys((PROTEGO, PYTHON), (None, MOVED, 0))),
        (Fetched(status=206, body=STAR + b"Disallow: /b\n"), "deny", allow(CUT, *ALL)),
        (
            Fetched(
                status=200, url="https://www.example.com/robots.txt", body=STAR + b"Disallow: /a\n"
            ),
            "deny",
            {},
        ),
        (
            COPY,
            "deny",
            allow("keeps no copy of robots.txt for the time while the server fails", PROTEGO)
            | dict.fromkeys(
                (PYTHON,), (None, "depends on the server's answer now, which is not known", 0)
            ),
        ),
    ],
    ids=[
        "404",
        "410",
        "401",
        "403",
        "404 with rules",
        "429",
        "503",
        "no answer",
        "302",
        "206",
        "redirected",
        "copy",
    ],
)
def test_status_codes_and_errors(
    fetched: Fetched, verdict: str, answers: dict[str, Answer]
) -> None:
    site = of_robots(fetched)
    assert site.access(Agent("examplebot"), f"{ORIGIN}/a").verdict.value == verdict
    assert differing(site, "/a", Agent("examplebot")) == answers


@pytest.mark.requirement("WHY-1", "MEET-1")
def test_other_files_are_not_read() -> None:
    site = of_robots(
        STAR + b"Disallow: /b\n", automation_preferences=b"scope: /\nallowed-methods: GET\n"
    )
    answers = differing(site, "/a", Agent("examplebot"), Facts(method="POST"))
    assert answers == allow("reads robots.txt only, and not /automation-preferences.txt", *ALL)
    assert differing(site, "/a", Agent("examplebot")) == {}


@pytest.mark.requirement("WHY-1")
def test_visit_time_is_not_heeded() -> None:
    site = of_robots(STAR + b"Visit-time: 0100-0200\n")
    agent = Agent("examplebot")
    assert differing(site, "/a", agent, now=datetime(2026, 1, 1, 12, tzinfo=UTC)) == allow(
        "ignores Visit-time", *ALL
    )
    assert differing(site, "/a", agent, now=datetime(2026, 1, 1, 1, 30, tzinfo=UTC)) == {}


@pytest.mark.requirement("WHY-1")
def test_refusals_of_declared_uses_are_not_read() -> None:
    site = of_robots(STAR + b"Content-Usage: train-ai=n\nAllow: /\nDisallow: /closed\n")

    def unread(target: str, *uses: str) -> list[str]:
        agent = Agent("examplebot", uses=uses)
        page = site.page(agent, ORIGIN + target, body=None)
        return unread_uses(agent, page, site.access(agent, ORIGIN + target))

    assert unread("/a", "train", "index") == ["train"]
    assert unread("/a", "index") == []
    assert unread("/closed", "train") == []


def test_a_reader_that_raises_is_said_to_have_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(content: str) -> None:
        raise RecursionError

    monkeypatch.setattr("protego.Protego.parse", fails)
    answers = differing(of_robots(STAR + b"Disallow: /a\n"), "/a", Agent("examplebot"))
    assert answers == {PROTEGO: (None, "raises RecursionError when it reads robots.txt", 0)}


def test_a_reader_that_is_not_installed_has_no_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, GOOGLE, None)
    site, agent = of_robots(STAR + b"Disallow: /a\n"), Agent("examplebot")
    opinions = second_opinions(site, agent, f"{ORIGIN}/a", site.access(agent, f"{ORIGIN}/a"))
    assert [opinion.reader for opinion in opinions] == [PROTEGO, PYTHON]


def said(case: str, uses: list[str]) -> list[str]:
    [(body, target)] = [(each.body, each.target) for each in CASES if each.id == case]
    site, agent = of_robots(body), Agent("examplebot")
    opinions = second_opinions(site, agent, ORIGIN + target, site.access(agent, ORIGIN + target))
    as_json = json.loads(json.dumps([opinion.as_json for opinion in opinions]))
    assert all(
        list(opinion) == ["reader", "verdict", "agrees", "why", "line", "text"]
        for opinion in as_json
    )
    return sentences(as_json, uses)


@pytest.mark.parametrize(
    ("case", "uses", "lines"),
    [
        ("one rule", [], []),
        (
            "one rule",
            ["train", "ai"],
            ["Readers of robots.txt alone do not know this refusal: train, ai"],
        ),
        (
            "an unknown line between agents",
            [],
            [
                "Scrapy by itself would fetch this: it ends a group, or its list of agents, "
                "at lines that are not rules"
            ],
        ),
        (
            "dot segments",
            [],
            [
                "Scrapy by itself, urllib.robotparser and Google's parser would fetch this: "
                "each compares the path as it is sent, and no other spelling of it"
            ],
        ),
        (
            "a literal $",
            [],
            [
                "Scrapy by itself would fetch this: it finds that another rule matches the path "
                "(robots.txt:2: Allow: /a$)",
                "urllib.robotparser would fetch this: it follows the first rule that matches, "
                "and not the longest (robots.txt:2: Allow: /a$)",
            ],
        ),
        (
            "a longer Allow",
            [],
            [
                "urllib.robotparser would not fetch this: it follows the first rule that "
                "matches, and not the longest (robots.txt:2: Disallow: /a)"
            ],
        ),
        (
            "Latin-1 in a comment",
            [],
            [
                "urllib.robotparser may or may not fetch this: it raises UnicodeDecodeError "
                "when it reads robots.txt"
            ],
        ),
        (
            "a large file",
            [],
            ["Scrapy by itself, urllib.robotparser and Google's parser would not fetch this"],
        ),
    ],
)
def test_sentences(case: str, uses: list[str], lines: list[str]) -> None:
    assert said(case, uses) == lines


# Pieces of robots.txt from which test files are made.
PIECES = st.sampled_from(
    [
        *(
            b"User-agent: " + name
            for name in (b"*", b"examplebot", b"Examplebot/2", b"example", b"other", b"*bot", b"")
        ),
        *(
            rule + path
            for rule in (b"Allow: ", b"Disallow: ", b"Disalow /")
            for path in (b"", b"/", b"/a", b"/a*b$", b"/%61%2f", b"/\xe9", b"a")
        ),
        *(
            b"ACAP-crawler: *",
            b"Crawl-delay: 3",
            b"Content-Usage: train-ai=n",
            b"# \xff",
            b"\x0c",
            b"\xef\xbb\xbf",
            b"\xff\xfe\0",
            b"\xe2\x80\xa8",
        ),
        *(b"\n", b"\n", b"\n", b"\r", b"\r\n", b"\n\n"),
    ]
)
BODIES = st.lists(PIECES, max_size=30).map(b"".join) | st.binary(max_size=60)
TARGETS = st.sampled_from(
    ["/", "/a", "/a/b", "/aXb", "/a%2Fb", "/%C3%A9", "/a?b=$", "/*", "/open/../a", "/a%2fb$"]
)


@given(body=BODIES, target=TARGETS)
def test_rewritings_say_the_same_to_comity(body: bytes, target: str) -> None:
    """No rewriting alone and no sequence of them changes comity's answer, only a reader's."""
    question = ReaderQuestion(body, "examplebot", ORIGIN + target)
    first = stated(question)
    for why, rewrite in REWRITINGS:
        assert stated(rewrite(question)) is first, why
    for why, rewrite in REWRITINGS:
        question = rewrite(question)
        assert stated(question) is first, why


def stated(question: ReaderQuestion) -> bool:
    rule = robots.parse(question.body).for_agent(question.token).decide(question.target)
    return rule is None or rule.verdict is Verdict.ALLOW


@given(
    body=BODIES,
    target=TARGETS | st.text(max_size=20).map("/".__add__),
    status=st.sampled_from([200, 200, 200, 206, 404, 503]),
)
def test_never_raises(body: bytes, target: str, status: int) -> None:
    site, agent = of_robots(Fetched(status=status, body=body)), Agent("examplebot")
    opinions = second_opinions(site, agent, ORIGIN + target, site.access(agent, ORIGIN + target))
    assert len(opinions) == len(READERS)
    assert len(sentences([opinion.as_json for opinion in opinions], [])) <= len(READERS)


@pytest.mark.skipif(not CORPUS.exists(), reason="the real files are not here")
@pytest.mark.requirement("WHY-1")
@pytest.mark.slow
def test_real_files() -> None:
    """Every difference has a cause, and each reader differs in some file."""
    readers, causes = Counter[str](), Counter[str]()
    for file in sorted(CORPUS.iterdir()):
        body = file.read_bytes()
        site = of_robots(body)
        tokens = re.findall(rb"(?im)^user-agent:[ \t]*([a-z0-9_-]+)[ \t]*\r?$", body)
        paths = re.findall(rb"(?im)^(?:dis)?allow:[ \t]*(/[!-~]*)", body)
        own = [path.decode().replace("*", "x").rstrip("$") for path in paths[-1:]]
        for token, target in [
            ("examplebot", "/"),
            *((token.decode(), path) for token in tokens[-1:] for path in own),
        ]:
            agent = Agent(token)
            decision = site.access(agent, ORIGIN + target, now=datetime(2026, 1, 1, 12, tzinfo=UTC))
            for opinion in second_opinions(site, agent, ORIGIN + target, decision):
                if not opinion.agrees:
                    assert opinion.cause, (file.name, token, target, opinion)
                    readers[opinion.reader] += 1
                    causes[opinion.cause] += 1
    assert set(readers) == set(ALL)
    assert {FIRST, SPECIAL, NAMES, RAISES} <= set(causes)
