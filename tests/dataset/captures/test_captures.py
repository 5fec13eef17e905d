"""The policies of a site at a moment, by captures of its policy files."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.crawler.captures import open_captures
from comity.dataset.captures import index
from comity.dataset.captures.captures import PolicyCaptures, SiteAtMoment
from comity.dataset.captures.index import IndexReader
from comity.dataset.captures.sources import sources_in
from comity.policies import Agent, PolicyError, Verdict
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.lines import MAX_BYTES
from tests.dataset.captures.archives import NOON, Answered, write_warc

SITE = "https://example.com"
ROBOTS = f"{SITE}/robots.txt"
CLOSED = b"User-agent: *\nDisallow: /x\n"
OPEN = b"User-agent: *\nDisallow:\n"
AGENT = Agent("examplebot", uses=("train",))
DAY = timedelta(days=1)


def captured(
    folder: Path,
    answers: Iterable[Answered],
    *,
    agent: Agent = AGENT,
    name: str = "a.warc.gz",
    max_age: timedelta = 30 * DAY,
) -> PolicyCaptures:
    path = write_warc(folder / name, answers)
    return PolicyCaptures.open(sources_in(path), agent=agent, max_age=max_age)


def verdict(site: SiteAtMoment | None, path: str = "/x", agent: Agent = AGENT) -> Verdict:
    assert site is not None
    return site.site.access(agent, site.site.origin + path).verdict


def why(site: SiteAtMoment | None) -> str:
    assert site is not None
    return site.site.access(AGENT, f"{site.site.origin}/x").reasons[0].source.text


@pytest.mark.requirement("TAG-2")
def test_the_nearest_copy_before_the_moment_counts_and_is_named(tmp_path: Path) -> None:
    answers = [
        Answered(ROBOTS, OPEN, at=NOON - 2 * DAY),
        Answered(ROBOTS, CLOSED),
        Answered(ROBOTS, OPEN, at=NOON + 2 * DAY),
    ]
    with captured(tmp_path, answers) as captures:
        assert captures.at(SITE, NOON - 3 * DAY) is None
        assert verdict(captures.at(SITE, NOON - DAY)) is Verdict.ALLOW
        assert verdict(captures.at(SITE, NOON)) is Verdict.DENY
        assert verdict(captures.at(SITE, NOON + DAY)) is Verdict.DENY
        assert verdict(captures.at(SITE, NOON + 3 * DAY)) is Verdict.ALLOW
        assert captures.at("http://example.com", NOON) is None  # RFC 9309: of one scheme
        site = captures.at(SITE, NOON + DAY)
        assert site is not None
        assert (site.copies[0].url, site.copies[0].fetched_at, site.copies[0].status) == (
            ROBOTS,
            NOON,
            200,
        )
        assert site.copies[0].sha256 == site.site.policies[ROBOTS]["sha256"]
        with Path(site.copies[0].source).open("rb") as file:
            file.seek(site.copies[0].offset)
            assert CLOSED in gzip.GzipFile(fileobj=file).read(2000)


def test_a_copy_counts_for_thirty_days_or_as_long_as_the_operator_says(tmp_path: Path) -> None:
    with captured(tmp_path, [Answered(ROBOTS, OPEN)]) as captures:
        assert captures.at(SITE, NOON + 30 * DAY - timedelta(seconds=1)) is not None
        assert captures.at(SITE, NOON + 30 * DAY) is None
    with captured(tmp_path, [Answered(ROBOTS, OPEN)], max_age=400 * DAY) as captures:
        assert verdict(captures.at(SITE, NOON + 399 * DAY)) is Verdict.ALLOW


def test_the_newest_copies_are_todays(tmp_path: Path) -> None:
    path = write_warc(
        tmp_path / "a.warc", [Answered(ROBOTS, OPEN, at=NOON - DAY), Answered(ROBOTS, CLOSED)]
    )
    with PolicyCaptures.open(sources_in(path), agent=AGENT, now=NOON + DAY) as captures:
        assert verdict(captures.today(SITE)) is Verdict.DENY
    with PolicyCaptures.open(sources_in(path), agent=AGENT) as captures:  # years later
        assert captures.today(SITE) is None


def test_equal_bodies_of_sites_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    body = IndexReader.body

    def noted(reader: IndexReader, number: int) -> bytes:
        read.append(number)
        return body(reader, number)

    monkeypatch.setattr(IndexReader, "body", noted)
    other = "https://www.example.org"
    answers = [Answered(ROBOTS, CLOSED), Answered(f"{other}/robots.txt", CLOSED)]
    with captured(tmp_path, answers) as captures:
        for origin in (SITE, other):
            assert verdict(captures.at(origin, NOON)) is Verdict.DENY
    assert len(read) == 1


def test_moments_with_equal_copies_have_one_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MAX_CAPTURES", 1)  # so each moment has a span of its own
    answers = [Answered(ROBOTS, OPEN, at=NOON - DAY), Answered(ROBOTS, CLOSED)]
    with captured(tmp_path, answers) as captures:
        first, second = (captures.at(SITE, NOON + days * DAY) for days in (1, 2))
        assert verdict(first) is Verdict.DENY
        assert first is second


FAILED = [
    pytest.param([OPEN], "503 Busy", 1, Verdict.ALLOW, id="a good copy stands in"),
    pytest.param([OPEN], "429 Slow", 1, Verdict.ALLOW, id="429 too"),
    pytest.param([OPEN], "503 Busy", 31, Verdict.DENY, id="thirty days"),
    pytest.param([], "503 Busy", 1, Verdict.DENY, id="nothing stands in"),
    pytest.param([OPEN], "404 Not Found", 1, Verdict.ALLOW, id="there is none"),
    pytest.param([CLOSED], "404 Not Found", 1, Verdict.ALLOW, id="there is none any more"),
]


@pytest.mark.requirement("RFC-6", "RFC-7", "TAG-3")
@pytest.mark.parametrize(("before", "status", "days", "expected"), FAILED)
def test_a_failing_site_is_read_as_by_a_crawl(
    tmp_path: Path, before: list[bytes], status: str, days: int, expected: Verdict
) -> None:
    answers = [
        *(Answered(ROBOTS, body, at=NOON - days * DAY) for body in before),
        Answered(ROBOTS, b"busy", status),
    ]
    with captured(tmp_path, answers, max_age=90 * DAY) as captures:
        assert verdict(captures.at(SITE, NOON)) is expected


def test_that_there_was_no_file_stands_in_for_nothing(tmp_path: Path) -> None:
    answers = [
        Answered(ROBOTS, b"", "404 Not Found", at=NOON - DAY),
        Answered(ROBOTS, b"", "500 Error"),
    ]
    with captured(tmp_path, answers) as captures:
        assert verdict(captures.at(SITE, NOON - DAY)) is Verdict.ALLOW
        assert verdict(captures.at(SITE, NOON)) is Verdict.DENY


def leads(url: str, to: str, at: datetime = NOON) -> Answered:
    return Answered(url, b"", "301 Moved", {"Location": to}, at)


@pytest.mark.requirement("RFC-5")
def test_redirects_are_followed_within_the_captures(tmp_path: Path) -> None:
    answers = [
        leads(ROBOTS, "https://www.example.com/robots.txt"),
        leads("https://www.example.com/robots.txt", "/deep/rules?a=b"),
        Answered("https://www.example.com/deep/rules?a=b", CLOSED),
        Answered("https://www.example.com/page", b"<html>"),
    ]
    with captured(tmp_path, answers) as captures:
        site = captures.at(SITE, NOON)
        assert verdict(site) is Verdict.DENY
        assert verdict(site, "/y") is Verdict.ALLOW
        assert site is not None
        assert site.site.files[ROBOTS].url == "https://www.example.com/deep/rules?a=b"


NOWHERE = [
    ([leads(ROBOTS, "https://other.example/robots.txt")], "and there is no copy of that"),
    ([leads(ROBOTS, ROBOTS)], "too many redirects"),
    ([leads(ROBOTS, f"{SITE}/a"), leads(f"{SITE}/a", ROBOTS)], "too many redirects"),
    (
        [
            leads(f"{SITE}/{a}", f"/{b}")
            for a, b in zip(["robots.txt", *"12345"], "123456", strict=True)
        ],
        "too many redirects",
    ),
    ([leads(ROBOTS, "ftp://other.example/robots.txt")], "no http or https URL"),
    ([Answered(ROBOTS, b"", "301 Moved")], "without a Location"),
]


@pytest.mark.requirement("RFC-5", "TAG-3")
@pytest.mark.parametrize(("answers", "reason"), NOWHERE)
def test_a_redirect_that_ends_nowhere_refuses(
    tmp_path: Path, answers: list[Answered], reason: str
) -> None:
    with captured(tmp_path, answers) as captures:
        site = captures.at(SITE, NOON)
        assert verdict(site) is Verdict.DENY
        assert reason in why(site)


def test_the_target_of_a_redirect_stands_in_for_itself(tmp_path: Path) -> None:
    target = "https://www.example.com/robots.txt"
    answers = [
        leads(ROBOTS, target),
        Answered(target, OPEN, at=NOON - DAY),
        Answered(target, b"", "503 Busy"),
    ]
    with captured(tmp_path, answers) as captures:
        assert verdict(captures.at(SITE, NOON)) is Verdict.ALLOW


@pytest.mark.requirement("TAG-3")
def test_files_that_were_never_captured_count_as_files_that_could_not_be_had(
    tmp_path: Path,
) -> None:
    with captured(tmp_path, [Answered(ROBOTS, OPEN)]) as captures:
        site = captures.at(SITE, NOON)
        assert site is not None
        assert site.absent == tuple(SITE + path for path in WELL_KNOWN if path != "/robots.txt")
        assert verdict(site) is Verdict.ALLOW
        # AUTO-20
        assert site.site.access(AGENT, f"{SITE}/x", method="POST").verdict is Verdict.DENY
        assert all(
            site.site.policies[url] == {"status": 0, "sha256": None, "fetched_at": None}
            for url in site.absent
        )
    strict = Agent("examplebot", automation_required=True)
    with captured(tmp_path, [Answered(ROBOTS, OPEN)], agent=strict) as captures:
        assert verdict(captures.at(SITE, NOON), agent=strict) is Verdict.DENY
    with captured(tmp_path, [Answered(f"{SITE}/ai.txt", b"User-Agent: *\nAllow: /\n")]) as captures:
        # there is no copy of its robots.txt
        assert verdict(captures.at(SITE, NOON)) is Verdict.DENY


@pytest.mark.parametrize("path", WELL_KNOWN)
def test_every_file_that_a_format_declares_is_found(tmp_path: Path, path: str) -> None:
    with captured(tmp_path, [Answered(SITE + path, b"{}", "404 Not Found")]) as captures:
        site = captures.at(SITE, NOON)
        assert site is not None
        assert SITE + path not in site.absent


REFERRING = b"ACAP-crawler: *\nACAP-permissions-reference: /more/rules.txt\n"
REFERRED = b"ACAP-crawler: *\nACAP-disallow-crawl: /x\nACAP-allow-crawl: /y\n"


@pytest.mark.requirement("ACAP-12", "ACAP-14", "TAG-3")
def test_files_that_robots_txt_refers_to_are_had_from_captures_or_refuse(tmp_path: Path) -> None:
    answers = [Answered(f"{SITE}/more/rules.txt", REFERRED), Answered(ROBOTS, REFERRING)]
    with captured(tmp_path, answers) as captures:
        assert verdict(captures.at(SITE, NOON), "/x") is Verdict.DENY
        assert verdict(captures.at(SITE, NOON), "/y") is Verdict.ALLOW
    with captured(tmp_path, answers[1:]) as captures:
        site = captures.at(SITE, NOON)
        assert verdict(site, "/y") is Verdict.DENY
        assert site is not None
        assert f"{SITE}/more/rules.txt" in site.absent


def test_no_more_references_are_read_than_by_a_crawl(tmp_path: Path) -> None:
    lines = b"".join(b"ACAP-permissions-reference: /%d.txt\n" % number for number in range(6))
    files = [
        Answered(f"{SITE}/{number}.txt", b"ACAP-crawler: *\nACAP-allow-crawl: /\n")
        for number in range(6)
    ]
    with captured(tmp_path, [*files, Answered(ROBOTS, b"ACAP-crawler: *\n" + lines)]) as captures:
        assert verdict(captures.at(SITE, NOON)) is Verdict.DENY


CHUNKED = {"Transfer-Encoding": "chunked", "Content-Length": ""}
READ = [
    pytest.param(
        Answered(ROBOTS, gzip.compress(CLOSED), headers={"Content-Encoding": "gzip"}), id="gzip"
    ),
    pytest.param(Answered(ROBOTS, gzip.compress(CLOSED)), id="gzip without its field"),
    pytest.param(Answered(ROBOTS, b"1b\r\n%s\r\n0\r\n\r\n" % CLOSED, headers=CHUNKED), id="chunks"),
    pytest.param(
        Answered(ROBOTS, b"00000001b\n%s\n0\n\n" % CLOSED, headers=CHUNKED),
        id="chunks with line feeds",
    ),
    pytest.param(Answered(ROBOTS, CLOSED, headers=CHUNKED), id="chunks that were taken away"),
    pytest.param(
        Answered(ROBOTS, CLOSED, kind="resource", fields={"Content-Type": "text/plain"}),
        id="resource",
    ),
    pytest.param(
        Answered(ROBOTS, CLOSED + b"#" * MAX_BYTES, fields={"WARC-Truncated": "length"}),
        id="cut behind what a crawl reads",
    ),
]


@pytest.mark.parametrize("answer", READ)
def test_bodies_are_read_as_archives_keep_them(tmp_path: Path, answer: Answered) -> None:
    with captured(tmp_path, [answer]) as captures:
        site = captures.at(SITE, NOON)
        assert verdict(site, "/x") is Verdict.DENY
        assert verdict(site, "/y") is Verdict.ALLOW


SAME = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
UNREAD = [
    pytest.param(
        Answered(ROBOTS, OPEN, fields={"WARC-Truncated": "length"}), "was cut after", id="truncated"
    ),
    pytest.param(
        Answered(ROBOTS, gzip.compress(OPEN)[:-9], headers={"Content-Encoding": "gzip"}),
        "breaks off",
        id="gzip",
    ),
    pytest.param(
        Answered(ROBOTS, OPEN, headers={"Content-Encoding": "br"}), "Content-Encoding br", id="br"
    ),
    pytest.param(
        Answered(ROBOTS, b"1b\r\nUser", headers=CHUNKED), "incomplete chunked body", id="chunks"
    ),
    pytest.param(
        Answered(ROBOTS, OPEN, headers={"Content-Length": "900"}), "incomplete body", id="short"
    ),
    pytest.param(
        Answered(ROBOTS, OPEN, headers={"Content-Length": "900, 900"}),
        "incomplete body",
        id="short, twice",
    ),
    pytest.param(
        Answered(ROBOTS, OPEN, headers={"Transfer-Encoding": "x"}),
        "Transfer-Encoding x",
        id="coding",
    ),
    pytest.param(Answered(ROBOTS, OPEN, kind="revisit"), "of another profile", id="revisit"),
    pytest.param(
        Answered(ROBOTS, kind="revisit", fields={"WARC-Profile": SAME}),
        "without a valid URL and date",
        id="revisit of nothing",
    ),
    pytest.param(
        Answered(
            ROBOTS,
            kind="revisit",
            fields={"WARC-Profile": SAME, "WARC-Refers-To-Date": "2024-01-01T00:00:00Z"},
        ),
        "there is no copy",
        id="revisit of what is not there",
    ),
    pytest.param(
        Answered(ROBOTS, OPEN, fields={"WARC-Segment-Number": "1"}), "segment", id="segment"
    ),
    pytest.param(
        Answered(
            ROBOTS,
            OPEN + b"\r\n\r\nWARC/1.0\r\n\r\n" + OPEN,
            headers={"Content-Length": str(len(OPEN))},
        ),
        "another record begins within it",
        id="another record",
    ),
    pytest.param(Answered(ROBOTS, OPEN, "206 Partial Content"), "206", id="a part"),
    pytest.param(Answered(ROBOTS, b"", "304 Not Modified"), "names no place", id="not modified"),
    pytest.param(Answered(ROBOTS, OPEN, "300 Multiple Choices"), "names no place", id="choices"),
]


@pytest.mark.requirement("RFC-7", "TAG-3")
@pytest.mark.parametrize(("answer", "reason"), UNREAD)
def test_what_cannot_be_understood_refuses(tmp_path: Path, answer: Answered, reason: str) -> None:
    with captured(tmp_path, [answer]) as captures:
        site = captures.at(SITE, NOON)
        assert verdict(site, "/y") is Verdict.DENY
        assert reason in why(site)


@pytest.mark.requirement("RFC-7", "TAG-3")
@pytest.mark.parametrize(("answer", "reason"), UNREAD)
def test_nothing_stands_in_for_an_answer_that_nobody_has_read(
    tmp_path: Path, answer: Answered, reason: str
) -> None:
    """A server that fails has not said anything new; this one has."""
    earlier = Answered(ROBOTS, OPEN, at=NOON - DAY)
    later = Answered(ROBOTS, b"busy", "503 Busy", at=NOON + DAY)
    with captured(tmp_path, [earlier, answer, later]) as captures:
        assert verdict(captures.at(SITE, NOON - DAY)) is Verdict.ALLOW
        assert verdict(captures.at(SITE, NOON)) is Verdict.DENY
        assert verdict(captures.at(SITE, NOON + DAY)) is Verdict.DENY
    with captured(
        tmp_path, [earlier, leads(ROBOTS, "https://other.example/robots.txt")]
    ) as captures:
        assert verdict(captures.at(SITE, NOON)) is Verdict.DENY


@pytest.mark.parametrize("target", [None, "https://www.example.com/robots.txt"])
def test_a_revisit_has_the_content_of_the_capture_that_it_repeats(
    tmp_path: Path, target: str | None
) -> None:
    then = NOON - 100 * DAY
    fields = {"WARC-Profile": SAME, "WARC-Refers-To-Date": then.strftime("%Y-%m-%dT%H:%M:%SZ")}
    fields |= {"WARC-Refers-To-Target-URI": target} if target else {}
    answers = [
        Answered(target or ROBOTS, CLOSED, at=then),
        Answered(ROBOTS, kind="revisit", fields=fields),
    ]
    with captured(tmp_path, answers) as captures:
        site = captures.at(SITE, NOON + DAY)
        assert verdict(site, "/x") is Verdict.DENY
        assert verdict(site, "/y") is Verdict.ALLOW
        assert site is not None
        assert site.copies[0].fetched_at == NOON


@pytest.mark.requirement("RFC-10")
@pytest.mark.parametrize(
    ("body", "want"),
    [
        (b"<!doctype html><p>Not found", Verdict.ALLOW),
        (b"<!doctype html><p>User-agent: *\nDisallow: /", Verdict.DENY),
        (b"User-agent: *\nDisallow: /", Verdict.DENY),
    ],
)
@pytest.mark.parametrize("media_type", ["text/html; charset=utf-8", "text/plain"])
def test_a_robots_txt_is_known_by_its_content(
    tmp_path: Path, body: bytes, want: Verdict, media_type: str
) -> None:
    answered = Answered(ROBOTS, body, headers={"Content-Type": media_type})
    with captured(tmp_path, [answered]) as captures:
        assert verdict(captures.at(SITE, NOON)) is want


TDMREP = f"{SITE}/.well-known/tdmrep.json"
MINING = Agent("examplebot", uses=("tdm",), defaults={"tdm": Verdict.ALLOW})


@pytest.mark.requirement("MEET-8")
@pytest.mark.parametrize(
    ("answers", "want"),
    [
        ([Answered(TDMREP, status="503 Unavailable")], ("deny", "tdmrep.unreachable")),
        (
            [Answered(TDMREP, b"[]", fields={"WARC-Truncated": "length"})],
            ("deny", "tdmrep.unreachable"),
        ),
        ([Answered(TDMREP, status="404 Not Found")], ("allow", "comity.default")),
        # A file that was not captured is no server that failed.
        ([], ("allow", "comity.default")),
        # A good copy of the 30 days before stands in.
        (
            [
                Answered(TDMREP, b'[{"location": "/", "tdm-reservation": 0}]', at=NOON - DAY),
                Answered(TDMREP, status="503 Unavailable"),
            ],
            ("allow", "tdmrep.not-reserved"),
        ),
    ],
    ids=["503", "cut off", "404", "not captured", "stands in"],
)
def test_uses_under_a_captured_file_that_could_not_be_fetched(
    tmp_path: Path, answers: list[Answered], want: tuple[str, str]
) -> None:
    with captured(
        tmp_path, [Answered(ROBOTS, b"User-agent: *\nAllow: /\n"), *answers], agent=MINING
    ) as captures:
        found = captures.at(SITE, NOON)
        assert found is not None
        use = found.site.page(MINING, f"{SITE}/x").uses["tdm"]
        assert (use.verdict.value, use.reasons[0].rule) == want


def test_damaged_records_are_counted_and_named_and_the_others_read(tmp_path: Path) -> None:
    other = "https://other.example"
    path = write_warc(
        tmp_path / "a.warc.gz", [Answered(ROBOTS, CLOSED), Answered(f"{other}/robots.txt", CLOSED)]
    )
    octets = bytearray(path.read_bytes())
    with PolicyCaptures.open(sources_in(path), agent=AGENT) as captures:
        whole = captures.at(SITE, NOON)
        assert whole is not None
        offset = whole.copies[0].offset
    octets[offset + 40 : offset + 60] = b"\xff" * 20
    path.write_bytes(octets)
    with PolicyCaptures.open(sources_in(path), agent=AGENT) as captures:
        count, [unreadable] = captures.unreadable
        assert (count, unreadable.source, unreadable.offset) == (1, str(path), offset)
        assert captures.at(SITE, NOON) is None
        assert verdict(captures.at(other, NOON)) is Verdict.DENY


def test_a_record_without_a_date_is_named(tmp_path: Path) -> None:
    answers = [
        Answered(ROBOTS, OPEN, fields={"WARC-Date": "yesterday"}),
        Answered("http:///robots.txt", OPEN),
    ]
    with captured(tmp_path, answers) as captures:
        count, unreadable = captures.unreadable
        assert count == 2
        assert [place.error for place in unreadable] == [
            "`yesterday` is not a date of a capture",
            "`http:///robots.txt` is no http or https URL",
        ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answers = [
        Answered(ROBOTS, CLOSED),
        leads("https://a.example/robots.txt", ROBOTS),
        Answered(f"{SITE}/ai.txt", OPEN),
    ]
    return write_warc(tmp_path_factory.mktemp("captures") / "a.warc", answers)


@given(st.data())
def test_no_damage_raises(whole: Path, data: st.DataObject) -> None:
    octets = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    damaged = whole.with_name("damaged.warc")
    damaged.write_bytes(octets[: data.draw(st.integers(0, len(octets)))])
    with PolicyCaptures.open(sources_in(damaged), agent=AGENT) as captures:
        for origin in (SITE, "https://a.example"):
            site = captures.at(origin, NOON)
            assert site is None or verdict(site) in Verdict


UNUSABLE = [
    ("nothing.warc", None, "No such file"),
    ("nothing", None, "there is no such file: name WARC files, folders or a policy store"),
    ("list.txt", b"https://example.com\n", "unknown format of captures"),
    ("packed.warc.gz", "packed", "it is packed as a whole: gunzip it first"),
    ("empty/", None, "no captures are in this folder"),
    ("folder/site/robots.txt", OPEN, "the name of this folder is not the host of its policy files"),
    ("site/robots.txt", OPEN, "the name of this folder is not the host of its policy files"),
]


@pytest.mark.parametrize(("name", "content", "error"), UNUSABLE)
def test_what_cannot_be_read_at_all_is_an_error_that_says_what_to_do(
    tmp_path: Path, name: str, content: bytes | str | None, error: str
) -> None:
    path = tmp_path / name
    if name.endswith("/"):
        path.mkdir()
    elif content == "packed":
        path.write_bytes(
            gzip.compress(write_warc(tmp_path / "a.warc", [Answered(ROBOTS, OPEN)]).read_bytes())
        )
    elif isinstance(content, bytes):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)
    path = path.parent if "/" in name.rstrip("/") else path
    with pytest.raises(PolicyError, match=re.escape(error)) as caught:
        PolicyCaptures.open(sources_in(path), agent=AGENT)
    assert str(path) in str(caught.value)


def test_folders_that_are_called_by_hosts_have_their_policy_files(tmp_path: Path) -> None:
    for name, body in {
        "example.com/robots.txt": b"ACAP-crawler: *\nACAP-permissions-reference: https://cdn.example/r.txt\n",
        "example.com/cdn.example/r.txt": REFERRED,
        "sub/www.example.com:8080/robots.txt": CLOSED,
        "sub/www.example.com:8080/.well-known/tdmrep.json": b"[]",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, (NOON.timestamp(),) * 2)
    write_warc(
        tmp_path / "sub" / "more.warc.gz", [Answered("https://more.example/robots.txt", CLOSED)]
    )
    with PolicyCaptures.open(sources_in(tmp_path), agent=AGENT) as captures:
        assert captures.at(SITE, NOON - DAY) is None
        for origin in (SITE, "http://example.com"):
            assert verdict(captures.at(origin, NOON)) is Verdict.DENY
            assert verdict(captures.at(origin, NOON), "/y") is Verdict.ALLOW
        site = captures.at("https://www.example.com:8080", NOON)
        assert verdict(site) is Verdict.DENY
        assert site is not None
        assert site.site.origin + "/.well-known/tdmrep.json" not in site.absent
        assert verdict(captures.at("https://more.example", NOON)) is Verdict.DENY
    with PolicyCaptures.open(sources_in(tmp_path / "example.com"), agent=AGENT) as captures:
        assert verdict(captures.at(SITE, NOON)) is Verdict.DENY


def test_a_link_in_the_folder_of_another_host_is_a_file_of_that(tmp_path: Path) -> None:
    for host in ("a.example", "b.example"):
        (tmp_path / host).mkdir()
    (tmp_path / "a.example" / "robots.txt").write_bytes(CLOSED)
    (tmp_path / "b.example" / "robots.txt").symlink_to(tmp_path / "a.example" / "robots.txt")
    with PolicyCaptures.open(sources_in(tmp_path), agent=AGENT) as captures:
        assert [verdict(captures.today(f"https://{host}.example")) for host in "ab"] == [
            Verdict.DENY
        ] * 2


class Counted:
    """A source that counts how often it is read, and fails where it is told to."""

    def __init__(self, path: Path) -> None:
        [self._source] = sources_in(path)
        self.name, self.size = self._source.name, self._source.size
        self.read, self.read_at = self._read, self._source.read_at
        self.starts: list[int] = []
        self.fails_after = 10**9

    @property
    def version(self) -> str:
        return self._source.version

    def _read(self, start: int):  # type: ignore[no-untyped-def]
        self.starts.append(start)
        for number, found in enumerate(self._source.read(start)):
            if number == self.fails_after:
                raise OSError(5, "Input/output error")
            yield found


def test_an_index_is_read_again_and_knows_what_has_changed(tmp_path: Path) -> None:
    index = tmp_path / "index.sqlite"
    first = Counted(write_warc(tmp_path / "a.warc", [Answered(ROBOTS, CLOSED)]))
    second = Counted(
        write_warc(tmp_path / "b.warc", [Answered("https://b.example/robots.txt", CLOSED)])
    )
    for _ in range(2):
        with PolicyCaptures.open([first, second], agent=AGENT, index=index) as captures:
            assert verdict(captures.at(SITE, NOON)) is Verdict.DENY
    assert (first.starts, second.starts) == ([0], [0])
    write_warc(tmp_path / "a.warc", [Answered(ROBOTS, OPEN + b"#")])
    with PolicyCaptures.open([first], agent=AGENT, index=index) as captures:
        assert verdict(captures.at(SITE, NOON)) is Verdict.ALLOW
        assert captures.at("https://b.example", NOON) is None  # that source is not given any more
    assert first.starts == [0, 0]


def test_an_index_goes_on_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comity.dataset.captures.index.SAVE_AFTER", -1.0)
    answers = [Answered(f"https://{number}.example/robots.txt", CLOSED) for number in range(10)]
    source, index = Counted(write_warc(tmp_path / "a.warc", answers)), tmp_path / "index.sqlite"
    source.fails_after = 6
    with pytest.raises(PolicyError, match="Input/output error"):
        PolicyCaptures.open([source], agent=AGENT, index=index)
    source.fails_after = 10**9
    read: list[int] = []
    with PolicyCaptures.open([source], agent=AGENT, index=index, progress=read.append) as captures:
        assert all(captures.at(f"https://{number}.example", NOON) for number in range(10))
        assert len(captures.moments("https://3.example")) == 1
    assert source.starts[1] > 0
    assert sum(read) == source.size


def test_a_damaged_index_refuses(tmp_path: Path) -> None:
    path, index = (
        write_warc(tmp_path / "a.warc", [Answered(ROBOTS, CLOSED)]),
        tmp_path / "index.sqlite",
    )
    PolicyCaptures.open(sources_in(path), agent=AGENT, index=index).close()
    with closing(sqlite3.connect(index, isolation_level=None)) as db:
        db.execute("UPDATE capture SET body = NULL")
    with PolicyCaptures(index, AGENT) as captures:
        site = captures.at(SITE, NOON)
        assert (verdict(site, "/y"), why(site)) == (
            Verdict.DENY,
            "the index of captures is damaged",
        )


def test_a_file_that_is_no_index_is_left_alone(tmp_path: Path) -> None:
    path = write_warc(tmp_path / "a.warc", [Answered(ROBOTS, CLOSED)])
    other = tmp_path / "other"
    other.write_text("of somebody else")
    with pytest.raises(PolicyError, match="--index"):
        PolicyCaptures.open(sources_in(path), agent=AGENT, index=other)
    with pytest.raises(PolicyError, match="cannot be read"):
        PolicyCaptures(other, AGENT).at(SITE, NOON)
    assert other.read_text() == "of somebody else"


def test_an_index_of_another_version_is_refused_in_each_process(tmp_path: Path) -> None:
    path = write_warc(tmp_path / "a.warc", [Answered(ROBOTS, CLOSED)])
    index, empty = tmp_path / "index.sqlite", tmp_path / "empty.sqlite"
    PolicyCaptures.open(sources_in(path), agent=AGENT, index=index).close()
    with closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA user_version = 2")
    empty.touch()
    with pytest.raises(PolicyError, match=r"its tables have version 2, .*: name another file"):
        PolicyCaptures(index, AGENT).at(SITE, NOON)
    with pytest.raises(PolicyError, match="is no index of captures: name another file"):
        PolicyCaptures(empty, AGENT).at(SITE, NOON)


def test_other_processes_read_the_same_index(tmp_path: Path) -> None:
    with captured(tmp_path, [Answered(ROBOTS, CLOSED)]) as captures:
        there = pickle.loads(pickle.dumps(captures))
        assert there.at(SITE, NOON).copies == captures.at(SITE, NOON).copies  # type: ignore[union-attr]
        assert there.now == captures.now
        # the same copies: the same site
        assert captures.at(SITE, NOON) is captures.at(SITE, NOON + timedelta(hours=1))
        index = captures.index
    assert not index.exists()


def test_a_forked_process_opens_the_index_for_itself(tmp_path: Path) -> None:
    with captured(tmp_path, [Answered(ROBOTS, CLOSED)]) as captures:
        assert captures.at(SITE, NOON) is not None
        reader = captures._index
        captures._process += 1  # as in a child
        assert captures._index is not reader
        assert captures._index is captures._index
        reader.close()


def test_moments_are_of_the_origin_alone(tmp_path: Path) -> None:
    answers = [
        Answered(ROBOTS, OPEN),
        Answered("https://example.com.other/robots.txt", OPEN, at=NOON + DAY),
    ]
    with captured(tmp_path, answers) as captures:
        assert captures.moments(SITE) == [NOON]
        assert captures.at(SITE, datetime.max.replace(tzinfo=UTC)) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.requirement("REACH-5")
def test_captures_in_a_store(tmp_path: Path, store: Path) -> None:
    path = write_warc(
        tmp_path / "a.warc.gz", [leads(ROBOTS, "/rules"), Answered(f"{SITE}/rules", CLOSED)]
    )
    (store / "archive" / "a.warc.gz").write_bytes(path.read_bytes())
    (store / "example.com" / "robots.txt").write_bytes(CLOSED)
    (store / "example.com" / "ai.txt").write_bytes(b"")
    arguments = [f"{store}/archive", f"{store}/archive/a.warc.gz", f"{store}/example.com"]
    for argument in arguments:
        now = datetime.now(UTC) if "example" in argument else NOON
        for _ in range(2):
            with open_captures(
                [argument], agent=AGENT, index=tmp_path / "index.sqlite", now=now + DAY
            ) as captures:
                site = captures.today(SITE)
                assert verdict(site) is Verdict.DENY
                assert site is not None
                assert site.copies[0].source.startswith("s3://bucket/data/")
    read: list[int] = []
    open_captures(
        [arguments[1]], agent=AGENT, index=tmp_path / "index.sqlite", progress=read.append
    ).close()
    assert sum(read) == path.stat().st_size
    (store / "archive" / "a.warc.gz").write_bytes(
        write_warc(tmp_path / "b.warc.gz", [Answered(ROBOTS, OPEN)]).read_bytes()
    )
    with open_captures(
        [arguments[1]], agent=AGENT, index=tmp_path / "index.sqlite", now=NOON
    ) as captures:
        assert verdict(captures.today(SITE)) is Verdict.ALLOW  # it has changed, and is read anew
    for argument in (f"{store}/none.warc.gz", f"{store}/archive/a.txt"):
        with pytest.raises(PolicyError, match=r"--policies s3://bucket/data/"):
            open_captures([argument], agent=AGENT)
