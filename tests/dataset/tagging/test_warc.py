"""Captures in WARC files of any program, whole and damaged.

Each gives a record, is left out, or is reported as unreadable."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.dataset.records import DatasetError, Unreadable
from comity.dataset.tagging import http_content, warc
from comity.dataset.tagging.captured import CapturedPage, CapturedRecord
from comity.policies.syntax.urls import origin_or_empty
from tests.dataset.tagging.archives import HTML, THEN, http, page, record, write
from tests.selection import examples

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BODY = b"<html><body><p>Hello</p></body></html>"
REAL = Path("/work/shared/corpus/warc/whirlwind.warc.gz")


def packed(octets: bytes) -> bytes:
    return gzip.compress(octets, mtime=0)


def read(path: Path) -> list[CapturedRecord | Unreadable]:
    reader = warc.Reader(path)
    parts = list(reader.parts())
    assert sum(part.octets for part in parts) == path.stat().st_size
    return [one for part in parts for batch in reader.read(part) for one in batch]  # type: ignore[misc]


def pages(path: Path) -> list[CapturedPage]:
    return [one.page for one in read(path) if isinstance(one, CapturedRecord) and one.page]


def only(path: Path) -> CapturedPage:
    [one] = pages(path)
    return one


def errors(path: Path) -> list[str]:
    return [one.error for one in read(path) if isinstance(one, Unreadable)]


@pytest.fixture(params=["a.warc", "a.warc.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name: str = request.param
    return tmp_path / name


def test_a_capture(path: Path) -> None:
    write(path, record("warcinfo", b"software: x\r\n"), page(BODY))
    assert only(path) == CapturedPage(
        "https://a.test/", THEN, ((b"content-type", HTML[1]),), BODY, 200
    )


def test_what_is_no_page_is_left_out_and_counted(path: Path) -> None:
    write(
        path,
        record("request", b"GET / HTTP/1.1\r\n\r\n"),
        record("metadata", b"x: y\r\n"),
        page(b"", url="https://a.test/robots.txt"),
        page(b"", url="https://a.test/.well-known/tdmrep.json"),
        record("response", http(b"gone", status="404 Not Found")),
        record("response", http(b"", (b"Location", b"/b"), status="301 Moved")),
        record("response", b"x", "dns:a.test"),
        record("resource", b"x", "urn:view:a"),
        page(BODY),
    )
    left_out = Counter(one.left_out for one in read(path) if isinstance(one, CapturedRecord))
    assert left_out == {
        "": 1,
        "policy file": 2,
        "status 404": 1,
        "status 301": 1,
        "scheme dns": 1,
        "scheme urn": 1,
    }


@pytest.mark.requirement("TAG-1", "TAG-3")
@pytest.mark.parametrize(
    "url",
    [
        "https://[x/",
        "https://refusing.test\\@a.test/",
        "http:///",
        "https://a.test:x/",
        "https://a%2Fb/",
    ],
)
@pytest.mark.parametrize("kind", ["response", "conversion"])
def test_pages_without_a_host_are_pages(path: Path, url: str, kind: str) -> None:
    """They are not records with another scheme, which nothing could use."""
    write(path, record(kind, http(BODY) if kind == "response" else b"text", url))
    [one] = pages(path)
    assert one.url == url
    assert origin_or_empty(url) == ""


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("gzip", packed(BODY)),
        ("x-gzip", packed(BODY[:9]) + packed(BODY[9:])),
        ("deflate", zlib.compress(BODY)),
        ("deflate", zlib.compress(BODY)[2:-4]),
        ("br", brotli.compress(BODY)),
        ("gzip, br", brotli.compress(packed(BODY))),
        ("gzip", BODY),  # the archive has taken it off, and left the field
        ("br", BODY),
        ("identity", BODY),
        ("zstd", zstd.compress(BODY)),
        ("zstd", zstd.compress(BODY[:9]) + zstd.compress(BODY[9:])),
        ("zstd", BODY),
    ],
)
def test_codings_are_taken_off(path: Path, coding: str, coded: bytes) -> None:
    write(path, page(coded, HTML, (b"Content-Encoding", coding.encode())))
    assert (only(path).body, only(path).unread) == (BODY, "")


@pytest.mark.parametrize("piece", [1, 2, 19, 20, 21, 4096])
def test_members_and_frames_wherever_they_are_cut(
    path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(http_content, "PIECE", piece)
    members = b"".join(packed(BODY[number : number + 1]) for number in range(len(BODY)))
    frames = b"".join(
        zstd.compress(BODY[number : number + 1]) + b"\x50\x2a\x4d\x18\1\0\0\0x"
        for number in range(len(BODY))
    )
    write(
        path,
        *(
            page(members + more, HTML, (b"Content-Encoding", b"gzip"))
            for more in (b"", b"\0" * 9, packed(b"more")[:-1])
        ),
        *(
            page(frames + more, HTML, (b"Content-Encoding", b"zstd"))
            for more in (b"", b"\0" * 9, zstd.compress(b"more")[:-1])
        ),
    )
    cut = "the compressed body is incomplete"
    assert [(one.body[: len(BODY)], one.unread) for one in pages(path) if one.body] == [
        (BODY, ""),
        (BODY, ""),
        (BODY, cut),
    ] * 2


def test_chunks(path: Path) -> None:
    chunked = (b"Transfer-Encoding", b"chunked")
    body = b"5\r\n<html\r\n%x;x=y\r\n%s\r\n0\r\n\r\n" % (len(BODY) - 5, BODY[5:])
    write(
        path, page(body, HTML, chunked), page(BODY, HTML, chunked), page(body[:20], HTML, chunked)
    )
    whole, taken_off, cut = pages(path)
    assert (whole.body, whole.unread, taken_off.body, taken_off.unread) == (BODY, "", BODY, "")
    assert cut.unread == "the chunked body is incomplete"


IDENTITY, CHUNKED = (b"Transfer-Encoding", b"identity"), (b"Transfer-Encoding", b"Chunked")
CHUNKS = b"5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (BODY[:5], len(BODY) - 5, BODY[5:])


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ([IDENTITY, CHUNKED], CHUNKS),
        ([(b"Transfer-Encoding", b"identity, chunked")], CHUNKS),
        ([CHUNKED], CHUNKS.replace(b"\r\n", b"\n")),
        ([CHUNKED], b"0" * 9 + CHUNKS),
        ([(b"Transfer-Encoding", b"binary")], BODY),
        # the archive has taken both off, and left the field
        (
            [(b"Transfer-Encoding", b"gzip, chunked")],
            BODY,
        ),
        ([IDENTITY], BODY),
    ],
)
def test_transfer_codings_are_taken_off(
    path: Path, fields: list[tuple[bytes, bytes]], body: bytes
) -> None:
    write(path, page(body, HTML, *fields))
    assert (only(path).body, only(path).unread) == (BODY, "")


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize(
    ("fields", "body"),
    [
        (
            [(b"Transfer-Encoding", b"gzip, chunked")],
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed(BODY)), packed(BODY)),
        ),
        ([(b"Transfer-Encoding", b"gzip"), CHUNKED], packed(BODY)),
        ([(b"Transfer-Encoding", b"gzip")], packed(BODY)),
    ],
)
def test_transfer_codings_that_cannot_be_taken_off(
    path: Path, fields: list[tuple[bytes, bytes]], body: bytes
) -> None:
    write(path, page(body, HTML, *fields))
    assert only(path).unread == "Transfer-Encoding gzip cannot be removed"


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize("kind", ["response", "original", "revisit"])
def test_a_part_of_a_page_is_unread(path: Path, kind: str) -> None:
    part = http(BODY, HTML, (b"Content-Range", b"bytes 500-526/2000"), status="206 Partial Content")
    if kind == "response":
        write(path, record("response", part))
    elif kind == "original":
        write(
            path,
            record("response", part, **ORIGINAL),
            record("revisit", b"", WARC_Refers_To="<urn:uuid:1>"),
        )
    else:
        write(path, page(BODY, **ORIGINAL), record("revisit", part, WARC_Refers_To="<urn:uuid:1>"))
    assert pages(path)[-1].unread == "a part of the page (HTTP status 206)"


@pytest.mark.parametrize(
    ("fields", "block"),
    [
        ({"WARC_Truncated": "length"}, http(BODY)),
        ({"WARC_Segment_Number": "1"}, http(BODY)),
        ({}, http(BODY, HTML, (b"Content-Length", b"100000"))),
        ({}, http(BODY, HTML, (b"Content-Length", b"100000, 100000"))),
        ({}, http(BODY, HTML, (b"Content-Length", b"5"), (b"Content-Length", b"100000"))),
        ({}, http(packed(BODY * 9)[:-12], HTML, (b"Content-Encoding", b"gzip"))),
        (
            {},
            http(
                zstd.compress(BODY * 9) + zstd.compress(BODY * 9)[:-3],
                HTML,
                (b"Content-Encoding", b"zstd"),
            ),
        ),
    ],
    ids=["truncated", "segment", "length", "length twice", "two lengths", "gzip", "zstd"],
)
def test_what_is_cut_off_says_so(path: Path, fields: dict[str, str], block: bytes) -> None:
    write(path, record("response", block, **fields))
    assert only(path).unread


def test_header_fields(path: Path) -> None:
    many = [(b"X-%d" % number, b"x") for number in range(10_000)]
    fields = [HTML, *many, (b"Content-Usage", b"search=y,\r\n  train-ai=n"), (b"X-\xff", b"\xfe")]
    write(
        path,
        page(BODY, *fields),
        record("response", http(BODY, HTML, (b"Content-Usage", b"train-ai=n"), end=b"\n")),
    )
    first, second = pages(path)
    assert len(first.fields) == 10_003
    assert dict(first.fields)[b"content-usage"] == b"search=y, train-ai=n"
    assert (dict(second.fields)[b"content-usage"], second.body) == (b"train-ai=n", BODY)


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize(
    "media_type", ["", "text/html", "application/octet-stream", "application/http;msgtype=request"]
)
def test_an_answer_of_http_is_one_by_its_beginning(path: Path, media_type: str) -> None:
    """The type of the record does not matter: refusals in its header fields count."""
    refusing, gone = (
        http(BODY, HTML, (b"Content-Usage", b"train-ai=n")),
        http(BODY, status="404 Not Found"),
    )
    write(path, *(record("response", block, Content_Type=media_type) for block in (refusing, gone)))
    assert only(path) == CapturedPage(
        "https://a.test/",
        THEN,
        ((b"content-type", HTML[1]), (b"content-usage", b"train-ai=n")),
        BODY,
        200,
    )
    assert [one.left_out for one in read(path) if isinstance(one, CapturedRecord)] == [
        "",
        "status 404",
    ]


@pytest.mark.requirement("TAG-1")
def test_a_response_without_its_header_fields_is_unread(path: Path) -> None:
    write(
        path,
        record("response", BODY, Content_Type="text/html"),
        record("resource", BODY, Content_Type="text/html"),
    )
    assert [(one.body, one.unread) for one in pages(path)] == [
        (BODY, "not an HTTP answer"),
        (BODY, ""),
    ]


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize("kind", ["Response", "RESOURCE", "Conversion"])
def test_types_of_records_in_any_case(path: Path, kind: str) -> None:
    block, media_type = (
        (http(BODY), "application/http") if kind == "Response" else (BODY, "text/html")
    )
    records = [record(name, block, Content_Type=media_type) for name in (kind, kind.lower())]
    write(path, *records, record("", block, Content_Type=media_type))
    first, second, untyped = read(path)
    assert isinstance(first, CapturedRecord)
    assert first == second
    assert first.page
    assert isinstance(untyped, Unreadable)
    assert untyped.error == "it has no WARC-Type"


# Revisits

ORIGINAL = {"WARC_Record_ID": "<urn:uuid:1>", "WARC_Payload_Digest": "sha1:AAAA"}
IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


@pytest.mark.parametrize(
    "fields",
    [
        {"WARC_Refers_To": "<urn:uuid:1>"},
        {
            "WARC_Refers_To_Target_URI": "https://a.test/",
            "WARC_Refers_To_Date": "2024-05-18T01:58:10Z",
        },
        {"WARC_Profile": IDENTICAL, "WARC_Payload_Digest": "sha1:AAAA"},
        {"WARC_Profile": NOT_MODIFIED, "WARC_Refers_To": "<urn:uuid:1>"},
    ],
)
@pytest.mark.parametrize("far", [False, True])
def test_a_revisit_has_the_body_of_its_original(
    path: Path, fields: dict[str, str], *, far: bool
) -> None:
    original = page(BODY, HTML, (b"X-Robots-Tag", b"noindex"), **ORIGINAL)
    status = "304 Not Modified" if fields.get("WARC_Profile") == NOT_MODIFIED else "200 OK"
    revisit = record(
        "revisit",
        http(b"", (b"Content-Usage", b"train-ai=n"), status=status),
        "https://a.test/again",
        Content_Type="application/http",
        **fields,
    )
    noise = [
        record("request", bytes(range(256)) * 8192)
        for _ in range(3 if path.suffix == ".warc" and far else 0)
    ]
    write(path, original, *noise, revisit)
    assert len(list(warc.Reader(path).parts())) == (2 if noise else 1)
    first, again = pages(path)
    assert (again.url, again.body, again.status) == ("https://a.test/again", BODY, 200)
    assert {b"content-usage", b"x-robots-tag"} <= dict(again.fields).keys()
    assert first.body == BODY


def test_a_revisit_without_its_original_is_named(path: Path) -> None:
    """Also one of itself, and one of each other."""
    revisits = [
        record("revisit", b"", WARC_Refers_To="<urn:uuid:9>"),
        record("revisit", b"", WARC_Record_ID="<urn:uuid:2>", WARC_Refers_To="<urn:uuid:2>"),
        record("revisit", b"", WARC_Record_ID="<urn:uuid:3>", WARC_Refers_To="<urn:uuid:4>"),
        record("revisit", b"", WARC_Record_ID="<urn:uuid:4>", WARC_Refers_To="<urn:uuid:3>"),
        record(
            "revisit",
            b"",
            WARC_Refers_To_Target_URI="https://a.test/",
            WARC_Refers_To_Date="2024-05-18T01:58:10Z",
        ),
    ]
    write(path, *revisits)
    assert errors(path) == ["a revisit whose original is not in this file"] * 5


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize(
    "block",
    [
        b"HTTP/1.1 200 OK\r\nContent-Usage: train-ai=n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Us",
        b"HTTP/1.1 200",
    ],
)
def test_a_revisit_whose_header_does_not_end_is_unread(path: Path, block: bytes) -> None:
    write(path, page(BODY, **ORIGINAL), record("revisit", block, WARC_Refers_To="<urn:uuid:1>"))
    first, again = pages(path)
    assert (first.unread, again.unread, again.body) == ("", "its header fields are cut off", BODY)


def test_texts_without_their_pages(path: Path) -> None:
    write(path, record("conversion", "Schön".encode(), Content_Type="text/plain"))
    [one] = read(path)
    assert isinstance(one, CapturedRecord)
    assert (one["text"], one["url"], one.page) == (
        "Schön",
        "https://a.test/",
        CapturedPage("https://a.test/", THEN),
    )


# The crawler


@pytest.mark.parametrize("behind", [False, True])
def test_the_crawler_of_requests(path: Path, *, behind: bool) -> None:
    request = record(
        "request", b"GET / HTTP/1.1\r\nHost: a.test\r\nUser-Agent: CCBot/2.0 (x)\r\n\r\n"
    )
    write(path, *([page(), request] if behind else [request, page()]))
    assert only(path).crawler == "CCBot/2.0 (x)"


def test_the_crawler_of_a_warcinfo(path: Path) -> None:
    """It is that of all that follows, also in later parts."""
    infos = [
        record("warcinfo", f"software: x\r\nhttp-header-user-agent: {name}/1\r\n".encode())
        for name in ("one", "two")
    ]
    noise = [record("metadata", bytes(range(256)) * 8192) for _ in range(3)]
    write(path, infos[0], page(), infos[1], page(), *noise, page())
    assert [one.crawler for one in pages(path)] == ["one/1", "two/1", "two/1"]


# Damage


@pytest.mark.parametrize(
    ("block", "error"),
    [
        (b"", "not an HTTP/1 answer"),
        (b"<html>", "not an HTTP/1 answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Usage: train-ai=n", "its header does not end"),
        (http(b"", status="2OO OK"), "it has no status"),
        (http(b"\x1f\x8b\x08rubbish", HTML, (b"Content-Encoding", b"gzip")), "cannot be removed"),
        (http(b"\xff" * 50, HTML, (b"Content-Encoding", b"br")), "cannot be removed"),
        (http(b"rubbish", HTML, (b"Content-Encoding", b"sdch")), "is not known"),
    ],
    ids=["empty", "no-http", "no-end", "status", "gzip", "br", "sdch"],
)
def test_what_cannot_be_read_is_named(path: Path, block: bytes, error: str) -> None:
    write(path, page(), record("response", block), page())
    [message] = errors(path)
    assert error in message
    assert len(pages(path)) == 2


@pytest.mark.requirement("TAG-1", "TAG-3")
@pytest.mark.parametrize("length", [len(BODY), 0])
def test_a_record_that_covers_another_is_named(path: Path, length: int) -> None:
    """The text of the other record is not a part of the page."""
    other = page(b"SECRET", HTML, (b"Content-Usage", b"train-ai=n"), url="https://refusing.test/")
    block = (
        http(BODY[:length], HTML, (b"Content-Length", b"%d" % length))
        + b"\r\n\r\n"
        + other.removesuffix(b"\r\n\r\n")
    )
    revisit = record("revisit", b"", WARC_Refers_To="<urn:uuid:1>")
    write(
        path,
        record("response", block, **ORIGINAL),
        revisit,
        page(BODY, HTML, (b"Content-Length", b"5")),
    )
    assert errors(path) == ["its length is wrong: another record begins within it"] * 2
    assert only(path).body == BODY


def test_bombs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (warc, http_content):
        monkeypatch.setattr(module, "MAX_BLOCK", 100_000)
    zeros = bytes(200_000)
    for coding, coded in (
        ("gzip", gzip.compress(zeros)),
        ("deflate", zlib.compress(zeros)),
        ("br", brotli.compress(zeros)),
        ("zstd", zstd.compress(zeros[:-1]) * 2),
    ):
        write(path, page(coded, HTML, (b"Content-Encoding", coding.encode())), page())
        assert "more than 100000 octets" in errors(path)[0]
        assert len(pages(path)) == 1
    write(path, page(zeros), page())
    assert errors(path) == ["it has more than 100000 octets"]


def test_a_file_that_is_packed_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(page() + page()))
    with pytest.raises(DatasetError, match="gunzip it first"):
        list(warc.Reader(path).parts())


@settings(max_examples=examples(60))
@given(data=st.data())
def test_no_damage_raises_and_none_changes_a_page(data: Any) -> None:
    """Each page in a damaged file is a page of the whole file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / data.draw(st.sampled_from(["a.warc", "a.warc.gz"]))
        write(
            path,
            *(page(BODY + b"%d" % number, url=f"https://a.test/{number}") for number in range(4)),
        )
        octets = path.read_bytes()
        start = data.draw(st.integers(0, len(octets)))
        end = data.draw(st.integers(start, len(octets)))
        path.write_bytes(octets[:start] + data.draw(st.binary(max_size=40)) + octets[end:])
        try:
            found = pages(path)
        except DatasetError:  # gzip members that became one
            return
        urls = {f"https://a.test/{number}": BODY + b"%d" % number for number in range(4)}
        for one in found:
            if path.suffix == ".gz":
                assert urls.get(one.url) == one.body


def request(method: str, url: str = "https://a.test/") -> bytes:
    return record("request", f"{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n".encode(), url)


B, C = "https://b.test/", "https://c.test/"
METHODS = {
    "none": ([page(), page()], ["GET", "GET"]),
    "before": ([request("POST"), page(), page()], ["POST", "GET"]),
    "behind": ([page(), request("POST"), page()], ["POST", "GET"]),
    "each before": ([request("POST"), page(), request("GET"), page()], ["POST", "GET"]),
    "each behind": ([page(), request("GET"), page(), request("POST")], ["GET", "POST"]),
    "before, with more between": (
        [request("POST"), record("metadata", b"a: b\r\n"), page()],
        ["POST"],
    ),
    "of other URLs": (
        [request("POST", B), page(), request("POST", C), page(url=B)],
        ["GET", "GET"],
    ),
    "no method": (
        [record("request", b""), page(), record("request", b"\xff\xff"), page()],
        ["GET", "GET"],
    ),
    "small letters": ([request("post"), page()], ["POST"]),
}


@pytest.mark.parametrize("size", [1, warc.PART], ids=["a part for each", "one part"])
@pytest.mark.parametrize("case", METHODS)
def test_the_method_is_that_of_the_request_beside_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, case: str, size: int
) -> None:
    monkeypatch.setattr(warc, "PART", size)
    records, methods = METHODS[case]
    write(path, *records)
    assert [one.method for one in pages(path)] == methods


@pytest.mark.skipif(not REAL.exists(), reason="the capture of Common Crawl is not at hand")
def test_a_capture_of_common_crawl() -> None:
    [one] = pages(REAL)
    assert (one.url, one.crawler) == (
        "https://an.wikipedia.org/wiki/Escopete",
        "CCBot/2.0 (https://commoncrawl.org/faq/)",
    )
    assert one.captured_at is not None
    assert (one.captured_at.isoformat(), len(one.body or b""), one.unread) == (
        "2024-05-18T01:58:10+00:00",
        72848,
        "",
    )
