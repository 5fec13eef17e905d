"""WARC files as records: items with their tags, responses without a tag, and damaged records."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator as WarcioIterator  # type: ignore[import-untyped]
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from comity.dataset.expire import expire
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.files.warc import reader as warc
from comity.dataset.files.warc.records import WarcRecord, records
from comity.dataset.records import DatasetError, Record, Unreadable
from tests.selection import examples, one_in

HTML = "text/html; charset=utf-8"
DATE = "2026-11-21T12:00:00.123456Z"


def tag(**more: Any) -> dict[str, Any]:
    uses = {"train": {"verdict": "allow", "stated": True, "because": [0]}}
    return {
        "schema": 1,
        "agent": "testbot",
        "uses": uses,
        "elements": [],
        "reasons": [],
        "policies": {},
        **more,
    }


class Archive:
    """Writes the records of a file, as comity and others do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ends = [0]
        self._file = path.open("wb")
        self._writer = WARCWriter(self._file, gzip=path.suffix == ".gz", warc_version="1.1")

    def write(
        self, kind: str, url: str, body: bytes, name: str = "", head: Any = None, **fields: str
    ) -> None:
        named = {key.replace("_", "-"): value for key, value in fields.items()} | {
            "WARC-Date": DATE
        }
        content_type = named.pop("Content-Type", "")
        if name:
            named["WARC-Record-ID"] = name
        record = self._writer.create_warc_record(
            url,
            kind,
            BytesIO(body),
            len(body),
            warc_content_type=content_type,
            warc_headers_dict=named,
            http_headers=head,
        )
        self._writer.write_record(record)
        self.ends.append(self._file.tell())

    def response(
        self,
        url: str,
        body: bytes,
        name: str = "",
        content_type: str = "text/html; charset=utf-8",
        **more: str,
    ) -> None:
        fields = [
            *({"Content-Type": content_type, "Content-Length": str(len(body))} | more).items()
        ]
        self.write(
            "response", url, body, name, StatusAndHeaders("200 OK", fields, protocol="HTTP/1.1")
        )

    def item(self, item: Record, refers_to: str = "", url: str = "http://a.test/") -> None:
        fields = {"WARC_Refers_To": refers_to} if refers_to else {}
        self.write(
            "metadata", url, json.dumps(item).encode(), Content_Type="application/json", **fields
        )

    def page(self, number: int, body: bytes, item: Record | None = None) -> None:
        name = f"<urn:uuid:{number}>"
        self.item(
            item or {"title": str(number), "permissions": tag()}, name, f"http://a.test/{number}"
        )
        self.response(f"http://a.test/{number}", body, name)
        self.write(
            "request",
            f"http://a.test/{number}",
            b"",
            head=StatusAndHeaders("GET / HTTP/1.1", [], is_http_request=True),
        )

    def close(self) -> Path:
        self._file.close()
        return self.path


@pytest.fixture(params=["pages.warc", "pages.warc.gz"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path / request.param)
    yield made
    made.close()


def read(path: Path, fields: list[str] | None = None) -> list[Record | Unreadable]:
    reader = open_reader(path)
    parts = list(reader.parts())
    assert sum(part.octets for part in parts) == path.stat().st_size
    return [record for part in parts for batch in reader.read(part, fields) for record in batch]


def titles(found: list[Record | Unreadable]) -> list[str]:
    return [record["title"] for record in found if isinstance(record, dict)]


@pytest.mark.requirement("MEET-3")
def test_an_item_has_its_tag_and_what_its_response_says(archive: Archive) -> None:
    archive.write("warcinfo", "", b"software: comity\r\n")
    archive.write(
        "resource",
        "http://a.test/robots.txt",
        b"User-agent: *\n",
        Comity_Policy_SHA256="ab",
        Content_Type="text/plain",
    )
    archive.page(1, "<p>Schön</p>".encode())
    (record,) = read(archive.close())
    assert record == {
        "url": "http://a.test/1",
        "final_url": "http://a.test/1",
        "fetched_at": DATE,
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "title": "1",
        "permissions": tag(),
        "html": "<p>Schön</p>",
    }


@pytest.mark.requirement("MEET-3")
def test_what_the_item_says_itself_stays(archive: Archive) -> None:
    said = {"url": "http://asked.test/", "html": "<p>own</p>", "status": None, "permissions": tag()}
    archive.page(1, b"<p>of the response</p>", said)
    (record,) = read(archive.close())
    assert isinstance(record, dict)
    assert said.items() <= record.items()


@pytest.mark.requirement("ACAP-43")
@pytest.mark.parametrize("nothing", [None, ""])
def test_a_field_with_nothing_in_it_does_not_tell_which_page_it_is(
    archive: Archive, nothing: Any
) -> None:
    """Those of a class have it where a callback does not set them."""
    names = ("url", "final_url", "fetched_at")
    archive.page(
        1, b"<p>1</p>", {**dict.fromkeys(names, nothing), "status": nothing, "permissions": tag()}
    )
    (record,) = read(archive.close())
    assert isinstance(record, dict)
    assert [record[name] for name in (*names, "status")] == [
        "http://a.test/1",
        "http://a.test/1",
        DATE,
        nothing,
    ]
    assert expire([archive.path], datetime.now(UTC), ["http://a.test/1"], dry_run=True).causes == {
        "taken-down": 1
    }


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("as_text", [False, True])
def test_the_source_is_left_out_where_any_tag_prohibits_parts_of_it(
    archive: Archive, *, as_text: bool
) -> None:
    """Which of them counts `--tag` says later: the one that is found without it may permit all."""
    refusing: Any = tag(elements=[{"selector": "p", "deny": ["train"], "spans": [["text", 0, 3]]}])
    rights = json.dumps(refusing) if as_text else refusing
    archive.page(1, b"<p>MARK</p>", {"text": "...", "permissions": tag(), "rights": rights})
    assert "MARK" not in json.dumps(read(archive.close()))


@pytest.mark.requirement("MEET-3")
def test_several_items_of_a_response_and_items_of_none(archive: Archive) -> None:
    archive.page(1, b"<p>one</p>")
    archive.page(2, b"<p>two</p>")
    archive.item({"title": "late", "permissions": tag()}, "<urn:uuid:1>")
    archive.item({"title": "of none", "permissions": tag()})
    archive.item({"title": "of one that is not here", "permissions": tag()}, "<urn:uuid:9>")
    found = read(archive.close())
    assert titles(found) == ["1", "2", "late", "of none", "of one that is not here"]
    assert [record.get("html") for record in found if isinstance(record, dict)] == [
        "<p>one</p>",
        "<p>two</p>",
        "<p>one</p>",
        None,
        None,
    ]


@pytest.mark.requirement("MEET-3")
def test_other_files_have_records_without_a_tag(archive: Archive) -> None:
    archive.write("warcinfo", "", b"software: another\r\n")
    archive.response("http://a.test/1", b"<p>one</p>")
    archive.write(
        "request",
        "http://a.test/1",
        b"",
        head=StatusAndHeaders("GET / HTTP/1.1", [], is_http_request=True),
    )
    archive.write("metadata", "http://a.test/1", b"fetchTimeMs: 12\r\n")
    archive.write("metadata", "http://a.test/1", b'{"pages": 1}', Content_Type="application/json")
    archive.write("resource", "file:///a.txt", b"text", Content_Type="text/plain")
    archive.write("conversion", "http://a.test/1", b"text", Content_Type="text/plain")
    archive.write("dns:a.test", "dns:a.test", b"...")
    found = read(archive.close())
    assert [
        (record["url"], record["content_type"]) for record in found if isinstance(record, dict)
    ] == [
        ("http://a.test/1", "text/html; charset=utf-8"),
        ("file:///a.txt", "text/plain"),
        ("http://a.test/1", "text/plain"),
    ]
    assert not any("permissions" in record or "html" in record for record in found)


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("elements", "has_html"),
    [
        ([], True),
        ([{"selector": "p", "deny": [], "guide": [], "spans": [["text", 0, 3]]}], True),
        # `uses` says so too
        (
            [{"selector": "*", "deny": ["train"], "whole": True, "spans": []}],
            True,
        ),
        ([{"selector": "p", "deny": ["train"], "spans": [["text", 0, 3]]}], False),
        ([{"selector": "img", "deny": ["*"], "spans": [], "urls": ["http://a.test/i.png"]}], False),
        ([{"selector": "p", "spans": []}], False),
        (["p"], False),
        (None, False),
    ],
)
def test_the_source_is_left_out_where_parts_of_it_are_prohibited(
    elements: Any, has_html: bool, archive: Archive
) -> None:
    archive.page(1, b"<p>MARK</p>", {"text": "...", "permissions": tag(elements=elements)})
    (record,) = read(archive.close())
    assert isinstance(record, dict)
    assert ("MARK" in json.dumps(record)) == has_html
    assert record["permissions"]["elements"] == elements


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    ("body", "content_type", "fields", "html"),
    [
        ("<p>\u00e9</p>".encode("latin-1"), "text/html; charset=iso-8859-1", {}, "<p>\u00e9</p>"),
        (b'{"a": 1}', "application/json", {}, '{"a": 1}'),
        (b"<a/>", "application/atom+xml", {}, "<a/>"),
        (b"\xff\xfe", "application/json", {}, None),
        (b"%PDF-1.7", "application/pdf", {}, None),
        (b"\x28\xb5\x2f\xfd", "text/html", {"Content-Encoding": "zstd"}, None),
        (b"", "text/html", {}, None),
    ],
)
def test_only_text_becomes_text(
    body: bytes, content_type: str, fields: dict[str, str], html: str | None, archive: Archive
) -> None:
    archive.item({"permissions": tag()}, "<urn:uuid:1>")
    archive.response("http://a.test/", body, "<urn:uuid:1>", content_type, **fields)
    (record,) = read(archive.close())
    assert isinstance(record, dict)
    assert record.get("html") == html


@pytest.mark.requirement("MEET-3")
def test_what_is_not_needed_is_left_out(archive: Archive) -> None:
    archive.page(1, b"<p>one</p>")
    (record,) = read(archive.close(), ["url", "permissions"])
    assert isinstance(record, dict)
    assert "html" not in record
    assert record["permissions"] == tag()


@pytest.mark.requirement("MEET-3")
def test_an_answer_of_http_is_one_by_its_beginning(archive: Archive) -> None:
    """Its header is no part of the text."""
    block = b"HTTP/1.1 201 Made\r\nContent-Type: text/html\r\n\r\n<p>one</p>"
    archive.item({"permissions": tag()}, "<urn:uuid:1>")
    archive.write("response", "http://a.test/", block, "<urn:uuid:1>", Content_Type="text/html")
    (record,) = read(archive.close())
    assert isinstance(record, dict)
    assert (record["status"], record["content_type"], record["html"]) == (
        201,
        "text/html",
        "<p>one</p>",
    )


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("digits", [4, 9, 14, 15])
def test_a_record_that_is_longer_than_any_file(digits: int, tmp_path: Path) -> None:
    """The others are read all the same: no place is looked for that a file system does not have."""
    path = tmp_path / "pages.warc"
    whole = (
        b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.test/\r\n"
        b"Content-Length: 2\r\n\r\nhi\r\n\r\n"
    )
    path.write_bytes(whole + whole.replace(b"Length: 2", b"Length: " + b"9" * digits) + whole)
    first, damaged, last = read(path)
    assert first == last
    assert isinstance(damaged, Unreadable)
    assert (damaged.position, damaged.error) == (
        f"record at octet {len(whole)}",
        "the file ends within it",
    )


@pytest.mark.requirement("MEET-3", "MEET-5")
def test_the_text_of_a_record_that_covers_another_is_left_out(archive: Archive) -> None:
    archive.item({"permissions": tag()}, "<urn:uuid:1>")
    body = b"<p>one</p>\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n<p>of another</p>"
    archive.response("http://a.test/", body, "<urn:uuid:1>", **{"Content-Length": "10"})
    (record,) = read(archive.close())
    assert isinstance(record, dict)
    assert "html" not in record


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("kind", ["RESOURCE", "Conversion", "Metadata", "mEtAdAtA"])
def test_types_of_records_in_any_case(kind: str, archive: Archive) -> None:
    plain = Archive(archive.path.with_name("lower.warc"))
    for each in (archive, plain):
        named = kind if each is archive else kind.lower()
        each.write(
            named,
            "http://a.test/",
            json.dumps({"permissions": tag()}).encode(),
            Content_Type="application/json",
        )
    assert read(archive.close()) == read(plain.close()) != []


@pytest.mark.requirement("MEET-3")
def test_a_record_without_a_type_is_named(tmp_path: Path) -> None:
    """It may be a record that a use would be made of."""
    path = tmp_path / "pages.warc"
    path.write_bytes(
        b"WARC/1.1\r\nWARC-Target-URI: http://a.test/\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n"
    )
    (damaged,) = read(path)
    assert isinstance(damaged, Unreadable)
    assert damaged.error == "it has no WARC-Type"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("MEET-3")
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tags=st.lists(JSON, max_size=5))
def test_every_tag_comes_through_to_json_lines(tags: list[Any], tmp_path: Path) -> None:
    archive = Archive(tmp_path / "pages.warc.gz")
    for number, said in enumerate(tags):
        archive.page(number, b"<p>", {"permissions": said})
    archive.close()
    with open_writer(tmp_path / "out.jsonl") as writer:
        writer.write(
            writer.encode([record for record in read(archive.path) if isinstance(record, dict)])
        )
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines()
    written = [json.dumps(json.loads(line)["permissions"], sort_keys=True) for line in lines]
    assert written == [json.dumps(said, sort_keys=True) for said in tags]


# Parts


class Written(NamedTuple):
    """A record of a file: an item of the numbered page, the page itself, or a response without a
    tag."""

    kind: str
    number: int


LAYOUTS = st.lists(
    st.builds(Written, st.sampled_from(["page", "item", "other", "request"]), st.integers(0, 4)),
    max_size=25,
)


def lay_out(path: Path, layout: list[Written]) -> Path:
    archive = Archive(path)
    known = set()
    for place, (kind, number) in enumerate(layout):
        if kind == "page" and number not in known:
            known.add(number)
            archive.page(number, f"<p>{number}</p>".encode() * 20)
        elif kind == "item":
            archive.item({"title": f"item {place}", "permissions": tag()}, f"<urn:uuid:{number}>")
        elif kind == "other":
            archive.response(
                f"http://other.test/{place}", b"<p>" * number, f"<urn:uuid:other-{place}>"
            )
        else:
            archive.write(
                "request",
                "http://a.test/",
                b"",
                head=StatusAndHeaders("GET / HTTP/1.1", [], is_http_request=True),
            )
    return archive.close()


@pytest.mark.requirement("MEET-3")
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layout=LAYOUTS, octets=st.integers(1, 2000), ending=st.sampled_from([".warc", ".warc.gz"]))
def test_parts_have_the_records_of_the_whole(
    layout: list[Written], octets: int, ending: str, tmp_path: Path
) -> None:
    path = lay_out(tmp_path / f"pages{ending}", layout)
    whole = read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warc, "PART", octets)
        assert read(path) == whole


@pytest.mark.requirement("MEET-3")
def test_a_large_file_has_many_parts(monkeypatch: pytest.MonkeyPatch, archive: Archive) -> None:
    monkeypatch.setattr(warc, "PART", 2000)
    for number in range(50):
        archive.page(number, b"<p>some text</p>")
    archive.item({"title": "late", "permissions": tag()}, "<urn:uuid:3>")
    path = archive.close()
    assert len(list(open_reader(path).parts())) > 5
    found = read(path)
    assert titles(found) == [*map(str, range(50)), "late"]
    assert all(
        isinstance(record, dict) and record["html"] == "<p>some text</p>" for record in found
    )


@pytest.mark.requirement("MEET-3")
def test_of_a_response_long_past_the_item_alone_is_left(
    monkeypatch: pytest.MonkeyPatch, archive: Archive
) -> None:
    monkeypatch.setattr(warc, "MAX_REMEMBERED", 2)
    monkeypatch.setattr(warc, "PART", 1)
    for number in range(4):
        archive.page(number, b"<p>some text</p>")
    archive.item({"title": "late", "permissions": tag()}, "<urn:uuid:0>")
    archive.item({"title": "in time", "permissions": tag()}, "<urn:uuid:3>")
    late, in_time = read(archive.close())[-2:]
    # as its own record says
    about = {
        "url": "http://a.test/",
        "final_url": "http://a.test/",
        "fetched_at": DATE,
    }
    assert late == {**about, "title": "late", "permissions": tag()}
    assert isinstance(in_time, dict)
    assert in_time["html"] == "<p>some text</p>"


# Damage


@pytest.mark.requirement("SEC-6")
def test_a_file_that_was_cut_off_is_read_to_its_last_record(
    archive: Archive, tmp_path: Path, *, in_full: bool
) -> None:
    for number in range(3):
        archive.page(number, b"<p>some text</p>")
    whole = archive.close().read_bytes()
    items_end = archive.ends[1::3]
    for end in range(0, len(whole), 1 if in_full else 13):
        path = tmp_path / f"cut{archive.path.name}"
        path.write_bytes(whole[:end])
        found = read(path)
        assert titles(found) == [
            str(number) for number, place in enumerate(items_end) if place <= end
        ]
        broken = b"".join(record.octets for record in found if isinstance(record, Unreadable))
        assert broken == whole[max(place for place in archive.ends if place <= end) : end]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("ending", [".warc", ".warc.gz"])
def test_damage_at_the_end_of_a_record_costs_no_other_record(tmp_path: Path, ending: str) -> None:
    """This holds for damage to any octet, also to the last one, although the next record is
    recognised by it."""
    archive = Archive(tmp_path / f"pages{ending}")
    for number in range(3):
        archive.page(number, b"<p>some text</p>")
    whole = archive.close().read_bytes()
    for end in archive.ends[1:]:
        for place in range(end - 6, end):
            archive.path.write_bytes(
                whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :]
            )
            hit = next(number for number, other in enumerate(archive.ends[1:]) if place < other)
            expected = [str(number) for number in range(3) if number * 3 != hit]
            found = titles([record for record in read(archive.path) if "title" in record])
            assert [title for title in found if title in expected] == expected, (place, end)


@pytest.mark.requirement("SEC-6")
@settings(
    max_examples=3 * settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    where=st.floats(0, 1, exclude_max=True),
    bits=st.integers(1, 255),
    ending=st.sampled_from([".warc", ".warc.gz"]),
)
def test_what_is_damaged_costs_no_other_record(
    where: float, bits: int, ending: str, tmp_path: Path
) -> None:
    archive = Archive(tmp_path / f"pages{ending}")
    for number in range(4):
        archive.page(number, b"<p>some text</p>")
    octets = bytearray(archive.close().read_bytes())
    place = int(where * len(octets))
    octets[place] ^= bits
    archive.path.write_bytes(octets)
    found = read(archive.path)
    hit = next(number for number, end in enumerate(archive.ends[1:]) if place < end)
    whole = [str(number) for number in range(4) if number * 3 != hit]
    assert [
        title
        for title in titles([record for record in found if "title" in record])
        if title in whole
    ] == whole


@pytest.mark.requirement("SEC-6")
@settings(
    max_examples=3 * settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    octets=st.binary(max_size=200)
    | st.binary(max_size=100).map(
        lambda rest: b"WARC/1.1\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n" + rest
    )
    | st.binary(max_size=100).map(lambda rest: b"WARC/1.1\r\n" + rest)
    | st.binary(max_size=100).map(
        lambda rest: gzip.compress(b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n") + rest
    )
)
def test_whatever_stands_there_nothing_else_is_raised(octets: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pages.warc"
    path.write_bytes(octets)
    found = read(path)
    if octets and not octets.startswith((b"WARC", b"\x1f\x8b\x08")):
        assert any(isinstance(record, Unreadable) for record in found)


@pytest.mark.requirement("SEC-6")
def test_an_item_that_is_no_json_is_kept_as_unreadable(archive: Archive) -> None:
    archive.write("metadata", "http://a.test/", b'{"permissions"', Content_Type="application/json")
    archive.page(1, b"<p>")
    broken, record = read(archive.close())
    assert isinstance(broken, Unreadable)
    assert (broken.position, broken.octets) == (
        "record at octet 0",
        archive.path.read_bytes()[: archive.ends[1]],
    )
    assert titles([record]) == ["1"]


@pytest.mark.requirement("SEC-6")
def test_a_file_that_is_packed_as_a_whole_is_refused(tmp_path: Path) -> None:
    plain = Archive(tmp_path / "pages.warc")
    plain.page(1, b"<p>")
    path = tmp_path / "pages.warc.gz"
    path.write_bytes(gzip.compress(plain.close().read_bytes()))
    with pytest.raises(DatasetError, match="gunzip"):
        read(path)


def test_records_are_not_written_as_warc(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"\.jsonl or \.parquet"):
        open_writer(tmp_path / "out.warc.gz")


@pytest.mark.requirement("SEC-6")
def test_what_others_have_is_not_held(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "pages.warc.gz")
    archive.response("http://a.test/", bytes(16 * 2**20))
    path = archive.close()
    tracemalloc.start()
    found = read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 1
    assert peak < 8 * 2**20


# Beside other readers

BODIES = st.binary(max_size=300) | st.just(
    b"\r\n\r\nWARC/1.1\r\nContent-Length: 5\r\n\r\n12345\r\n\r\n" * 3
)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(BODIES, max_size=5), ending=st.sampled_from([".warc", ".warc.gz"]))
def test_others_find_the_same_records(bodies: list[bytes], ending: str, tmp_path: Path) -> None:
    archive = Archive(tmp_path / f"pages{ending}")
    for number, body in enumerate(bodies):
        archive.page(number, body)
    path = archive.close()
    with path.open("rb") as file:
        ours = list(records(file, 0, path.stat().st_size, lambda fields: 10**9))
    found = [
        (record.offset, record.fields["warc-record-id"], record.block)
        for record in ours
        if isinstance(record, WarcRecord)
    ]
    assert len(found) == len(ours)
    with path.open("rb") as file:
        assert found == [
            (one.stream_pos, one.record_id, one.reader.read())
            for one in ArchiveIterator(file, parse_http=False)
        ]
    with path.open("rb") as file:
        theirs = WarcioIterator(file, no_record_parse=True)
        names = [
            (theirs.get_record_offset(), one.rec_headers.get_header("WARC-Record-ID"))
            for one in theirs
        ]
    assert [one[:2] for one in found] == names


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize(
    "unit",
    one_in(
        5,
        [
            b"WARC/1.0\r\nx\n",
            b"\nWARC/",
            b"a: b\r\n",
            b"WARC/1.0\r\n\r\n",
            b"WARC/1.0\r\nContent-Length: 9\r\n\r\n",
        ],
    ),
)
def test_what_pretends_to_be_records_is_read_once(tmp_path: Path, unit: bytes) -> None:
    """Each beginning is looked at as far as the next one."""

    def octets_read(size: int) -> int:
        path = tmp_path / f"{size}.warc"
        path.write_bytes(b"WARC/1.0\r\n" + unit * (size // len(unit)))
        total = 0

        class Counting(io.BufferedReader):
            def read(self, size: int | None = -1, /) -> bytes:
                nonlocal total
                octets = super().read(size)
                total += len(octets)
                return octets

        with Counting(path.open("rb", buffering=0)) as file:
            assert sum(1 for _ in records(file, 0, path.stat().st_size)) < size
        return total

    once, twice = octets_read(30_000), octets_read(60_000)
    assert twice <= 2.4 * once
