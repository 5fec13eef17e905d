"""An expiry leaves all other records of a WARC file as they were, octet for octet."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from comity.dataset.expire import expire
from comity.dataset.files.formats import open_reader
from comity.dataset.files.warc import reader as warc
from comity.dataset.files.warc import rewriting as warc_rewriting
from comity.dataset.files.warc.items import POLICY
from comity.dataset.job import JobOptions
from comity.dataset.records import DatasetError

NOW = datetime(2026, 11, 22, tzinfo=UTC)
OVER = {"until": "2026-11-21T23:59:59Z"}
DATE = "2026-11-21T12:00:00Z"

MakeRecord = Callable[..., dict[str, Any]]


class Archive:
    """A file as a crawl writes it. `octets` has its records by their names."""

    def __init__(self, path: Path, make_record: MakeRecord) -> None:
        self.path = path
        self.octets: dict[str, bytes] = {}
        self._make_record = make_record
        path.write_bytes(b"")

    def write(
        self,
        name: str,
        kind: str,
        url: str,
        body: bytes,
        *,
        head: Any = None,
        media_type: str = "",
        **fields: str,
    ) -> None:
        file = BytesIO()
        writer = WARCWriter(file, gzip=self.path.suffix == ".gz", warc_version="1.1")
        named = {key.replace("_", "-"): value for key, value in fields.items()}
        named |= {"WARC-Date": DATE, "WARC-Record-ID": f"<urn:{name}>"}
        record = writer.create_warc_record(
            url,
            kind,
            BytesIO(body),
            len(body),
            warc_content_type=media_type,
            warc_headers_dict=named,
            http_headers=head,
        )
        writer.write_record(record)
        self.octets[name] = file.getvalue()
        self.add(file.getvalue())

    def add(self, octets: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(octets)

    def info(self) -> None:
        self.write(
            "info", "warcinfo", "", b"software: comity\r\n", media_type="application/warc-fields"
        )
        self.write(
            "policy",
            "resource",
            "http://a.test/robots.txt",
            b"User-agent: *\n",
            media_type="text/plain",
            **{POLICY: "ab"},
        )

    def item(
        self, name: str, page: str = "", *, fields: dict[str, Any] | None = None, **uses: Any
    ) -> None:
        made = self._make_record(**uses)
        item = {"title": name, **(fields or {}), "permissions": made["permissions"]}
        about = {"WARC_Refers_To": f"<urn:{page}>"} if page else {}
        self.write(
            name,
            "metadata",
            _url(page),
            json.dumps(item).encode(),
            media_type="application/json",
            **about,
        )

    def answer(self, page: str, body: bytes = b"<p>text</p>") -> None:
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        self.write(page, "response", _url(page), body, head=head)
        asked = StatusAndHeaders("GET / HTTP/1.1", [], is_http_request=True)
        self.write(
            f"{page}?", "request", _url(page), b"", head=asked, WARC_Concurrent_To=f"<urn:{page}>"
        )

    def page(self, page: str, **uses: Any) -> None:
        self.item(f"item {page}", page, **uses)
        self.answer(page)

    def expire(self, *taken_down: str, **options: Any) -> list[str]:
        """Why records went."""
        before = self.path.read_bytes()
        counts = expire([self.path], NOW, taken_down, **options)
        whys = sorted(f"{why} {number}" for why, number in counts.causes.items())
        if not whys and not counts.unreadable:
            assert self.path.read_bytes() == before
        return whys

    def is_of(self, *names: str) -> bool:
        return self.path.read_bytes() == self._of(names)

    @property
    def aside(self) -> Path:
        return self.path.with_name(
            f"{self.path.name}.unreadable.warc{'.gz' if self.path.suffix == '.gz' else ''}"
        )

    def has_aside(self, *names: str) -> bool:
        return self.aside.read_bytes() == self._of(names)

    def _of(self, names: tuple[str, ...]) -> bytes:
        for path in (self.path, self.aside):
            if path.exists():
                assert set(_others_read(path)) <= {f"<urn:{name}>" for name in self.octets}
        return b"".join(self.octets[name] for name in names)

    def lines(self, what: str) -> list[dict[str, Any]]:
        path = self.path.with_name(f"{self.path.name}.{what}.jsonl")
        return (
            [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        )


def _url(page: str) -> str:
    return f"http://a.test/{page}"


def _others_read(path: Path) -> list[str]:
    """Ids of the records. Digests are checked."""
    with path.open("rb") as file:
        found = []
        for record in ArchiveIterator(file, parse_http=False):
            assert record.verify_block_digest()
            found.append(str(record.record_id))
        return found


@pytest.fixture(params=["pages.warc", "pages.warc.gz"])
def archive(request: pytest.FixtureRequest, tmp_path: Path, make_record: MakeRecord) -> Archive:
    return Archive(tmp_path / request.param, make_record)


@pytest.mark.requirement("ACAP-32")
def test_what_has_expired_goes_with_its_answer_and_its_request(archive: Archive) -> None:
    archive.info()
    archive.page("1", train={})
    archive.page("2", train=OVER)
    archive.page("3", train={})
    archive.item("of none", train=OVER)
    assert archive.expire() == ["expired:train 2"]
    assert archive.is_of("info", "policy", "item 1", "1", "1?", "item 3", "3", "3?")
    gone, _ = archive.lines("expired")
    assert (gone["url"], gone["why"], gone["when"]) == (
        _url("2"),
        "expired:train",
        "2026-11-22T00:00:00+00:00",
    )
    assert set(gone) == {"url", "why", "because", "when"}
    assert archive.expire() == []
    assert not archive.aside.exists()


@pytest.mark.requirement("ACAP-32")
def test_a_dry_run_changes_nothing(archive: Archive) -> None:
    archive.page("1", train=OVER)
    archive.answer("2")
    seen: list[dict[str, Any]] = []
    options = JobOptions(removed=lambda note: seen.append(dict(note)))
    assert archive.expire(dry_run=True, options=options) == ["expired:train 1", "no-tag 1"]
    assert archive.is_of("item 1", "1", "1?", "2", "2?")
    assert [path.name for path in archive.path.parent.iterdir()] == [archive.path.name]
    assert [set(note) for note in seen] == [{"url", "why", "because"}] * 2


@pytest.mark.requirement("ACAP-43")
def test_what_is_taken_down_goes_with_all_its_items(archive: Archive) -> None:
    archive.page("1", train={})
    archive.item("late", "1", train={})
    archive.page("2", train={})
    assert archive.expire(_url("1")) == ["taken-down 2"]
    assert archive.is_of("item 2", "2", "2?")


@pytest.mark.requirement("ACAP-43")
def test_what_is_taken_down_is_not_set_aside(archive: Archive) -> None:
    archive.answer("other")
    assert archive.expire(_url("other")) == ["taken-down 1"]
    assert archive.is_of()
    assert not archive.aside.exists()
    assert archive.expire() == []


@pytest.mark.requirement("ACAP-32")
def test_what_was_fetched_again_goes(archive: Archive) -> None:
    again = {"url": _url("1"), "fetched_at": "2026-11-21T13:00:00Z"}
    archive.page("1", train={"until_recrawled": True})
    archive.item("again", "2", train={"until_recrawled": True}, fields=again)
    archive.answer("2")
    assert archive.expire() == ["superseded:train 1"]
    assert archive.is_of("again", "2", "2?")


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("abc", []),
        ("a", ["b", "1", "1?", "item 2", "2", "2?", "c"]),
        ("ab", ["c", "1", "1?", "item 2", "2", "2?"]),
        ("b", ["a", "1", "1?", "item 2", "2", "2?", "c"]),
        ("bc", ["a", "1", "1?", "item 2", "2", "2?"]),
    ],
)
def test_an_answer_stays_with_the_items_that_stay(
    archive: Archive, gone: str, left: list[str]
) -> None:
    """The first of them stands before it."""
    archive.item("a", "1", train={}, fields={"url": _url("a")})
    archive.answer("1")
    archive.item("b", "1", train={}, fields={"url": _url("b")})
    archive.page("2", train={})
    archive.item("c", "1", train={}, fields={"url": _url("c")})
    assert archive.expire(*map(_url, gone)) == [f"taken-down {len(gone)}"]
    assert archive.is_of(*(left or ["item 2", "2", "2?"]))
    assert archive.expire() == []


# Records without a tag, and unreadable ones


def test_what_has_no_tag_is_set_aside_as_it_is(archive: Archive) -> None:
    """Files of other programs have such records, and their requests may precede the responses."""
    archive.info()
    archive.write("before", "request", _url("other"), b"", WARC_Concurrent_To="<urn:other>")
    archive.answer("other")
    archive.write("about", "metadata", _url("other"), b"a: b\r\n", WARC_Refers_To="<urn:other>")
    archive.write(
        "json",
        "metadata",
        _url("other"),
        b'{"a": 1}',
        media_type="application/json",
        WARC_Refers_To="<urn:other>",
    )
    archive.write("pages", "metadata", "", b'{"pages": 1}', media_type="application/json")
    archive.page("1", train={})
    archive.item("bad", "2", train={"until": "soon"})
    archive.answer("2")
    assert archive.expire() == ["invalid-tag:uses 1", "no-tag 1"]
    assert archive.is_of("info", "policy", "pages", "item 1", "1", "1?")
    first = ["before", "other", "other?", "about", "json", "bad", "2", "2?"]
    assert archive.has_aside(*first)
    assert not archive.lines("unreadable")
    archive.answer("more")
    assert archive.expire() == ["no-tag 1"]
    assert archive.has_aside(*first, "more", "more?")


def test_what_is_set_aside_is_there_before_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, archive: Archive
) -> None:
    archive.answer("other")
    there: list[Path] = []
    replace = Path.replace

    def seen(self: Path, target: Path) -> Path:
        there.append(target)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", seen)
    archive.expire()
    assert there == [archive.aside, archive.path]
    assert [path.name for path in archive.path.parent.iterdir() if path.name.startswith(".")] == []


def test_what_is_aside_in_another_form_is_not_mixed_with_it(archive: Archive) -> None:
    archive.answer("other")
    archive.aside.write_bytes(b"WARC/1.1\r\n" if archive.path.suffix == ".gz" else b"\x1f\x8b\x08")
    before = archive.aside.read_bytes()
    with pytest.raises(DatasetError, match="one is compressed"):
        archive.expire()
    assert archive.path.read_bytes() == archive.octets["other"] + archive.octets["other?"]
    assert archive.aside.read_bytes() == before
    assert len(list(archive.path.parent.iterdir())) == 2


@pytest.mark.requirement("SEC-6")
def test_an_item_that_cannot_be_read_is_kept_as_it_is(archive: Archive) -> None:
    archive.page("1", train={})
    archive.write(
        "bad",
        "metadata",
        _url("1"),
        b'{"perm',
        media_type="application/json",
        WARC_Refers_To="<urn:1>",
    )
    archive.expire()
    assert archive.is_of("item 1", "1", "1?")
    assert b"".join(_kept(archive)) == archive.octets["bad"]
    archive.expire()
    assert len(archive.lines("unreadable")) == 1


def _kept(archive: Archive) -> Iterator[bytes]:
    for line in archive.lines("unreadable"):
        yield line["text"].encode() if "text" in line else b64decode(line["base64"])


@pytest.mark.requirement("SEC-6")
def test_of_a_file_that_was_cut_off_nothing_is_lost(archive: Archive, *, in_full: bool) -> None:
    for page, uses in {"1": {}, "2": OVER, "3": {}}.items():
        archive.page(page, train=uses)
    whole = archive.path.read_bytes()
    places = list(archive.octets)
    ends = [
        sum(len(archive.octets[name]) for name in places[: number + 1])
        for number in range(len(places))
    ]
    for end in range(1, len(whole), 37 if in_full else 149):
        for path in archive.path.parent.iterdir():
            path.unlink()
        archive.path.write_bytes(whole[:end])
        archive.expire()
        there = [name for name, place in zip(places, ends, strict=True) if place <= end]
        rest = whole[max((place for place in ends if place <= end), default=0) : end]
        assert archive.is_of(*(name for name in there if "2" not in name))
        assert b"".join(_kept(archive)) == rest


@pytest.mark.requirement("SEC-6")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    where=st.floats(0, 1, exclude_max=True),
    bits=st.integers(1, 255),
    ending=st.sampled_from([".warc", ".warc.gz"]),
)
def test_whatever_is_damaged_what_does_not_go_is_somewhere(
    where: float, bits: int, ending: str, tmp_path: Path, make_record: MakeRecord
) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    archive = Archive(tmp_path / f"pages{ending}", make_record)
    for page, uses in {"1": {}, "2": OVER, "3": {}}.items():
        archive.page(page, train=uses)
    octets = bytearray(archive.path.read_bytes())
    place = int(where * len(octets))
    octets[place] ^= bits
    archive.path.write_bytes(octets)
    archive.expire()
    aside = archive.aside.read_bytes() if archive.aside.exists() else b""
    left = archive.path.read_bytes() + aside + b"".join(_kept(archive))
    at = 0
    for name, record in archive.octets.items():
        found = bytes(octets[at : at + len(record)])
        at += len(record)
        assert found in left or "2" in name
    whys = archive.expire()
    assert [why for why in whys if not why.startswith("no-tag")] == []


# Large files


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 1])
def test_in_many_parts(monkeypatch: pytest.MonkeyPatch, archive: Archive, workers: int) -> None:
    monkeypatch.setattr(warc, "PART", 2000)
    monkeypatch.setattr(warc_rewriting, "CHUNK", 100)
    for number in range(40):
        archive.page(str(number), train=OVER if number % 3 else {})
    archive.item("late", "1", train={})
    assert len(list(open_reader(archive.path).parts())) > 5
    assert archive.expire(options=JobOptions(workers)) == ["expired:train 26"]
    left = [
        name for number in range(0, 40, 3) for name in (f"item {number}", f"{number}", f"{number}?")
    ]
    assert archive.is_of(*left[:3], "late", "1", "1?", *left[3:])


@pytest.mark.requirement("ACAP-43")
def test_of_an_answer_long_past_the_item_has_its_url(
    monkeypatch: pytest.MonkeyPatch, archive: Archive
) -> None:
    monkeypatch.setattr(warc, "MAX_REMEMBERED", 1)
    monkeypatch.setattr(warc, "PART", 1)
    for number in range(4):
        archive.page(str(number), train={})
    archive.item("late", "0", train={})
    assert archive.expire(_url("0")) == ["taken-down 2"]
    assert archive.is_of(
        *(name for number in (1, 2, 3) for name in (f"item {number}", f"{number}", f"{number}?"))
    )


def test_a_file_that_grows_meanwhile_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, archive: Archive
) -> None:
    archive.page("1", train=OVER)
    copy = warc_rewriting.Rewriter.copy

    def late(self: warc_rewriting.Rewriter) -> None:
        archive.page("2", train={})
        copy(self)

    monkeypatch.setattr(warc_rewriting.Rewriter, "copy", late)
    with pytest.raises(DatasetError, match="was written to meanwhile"):
        archive.expire()
    assert archive.is_of("item 1", "1", "1?", "item 2", "2", "2?")
    assert [path.name for path in archive.path.parent.iterdir()] == [archive.path.name]


def test_where_there_is_no_room_the_file_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, archive: Archive
) -> None:
    archive.page("1", train=OVER)
    archive.answer("other")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(warc_rewriting, "_copy", full)
    with pytest.raises((DatasetError, OSError), match="No space left"):
        archive.expire()
    assert archive.is_of("item 1", "1", "1?", "other", "other?")
    assert [path.name for path in archive.path.parent.iterdir()] == [archive.path.name]
