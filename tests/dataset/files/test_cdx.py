"""CDX indexes: each line becomes a row of the columnar index."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.files.warc.cdx import Reader
from comity.dataset.records import DatasetError, Unreadable
from comity.dataset.tagging.tagging import tag_dataset
from tests.dataset.tagging.test_tagging import judge, lines

PLACE = {"warc_filename": "a.warc.gz", "warc_record_offset": 771, "warc_record_length": 1219}
ROW: dict[str, Any] = {
    "url_surtkey": "test,a)/",
    "fetch_time": "20240518015810",
    "url": "https://a.test/",
    "content_mime_type": "text/html",
    "fetch_status": 200,
    "content_digest": "G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK",
    **PLACE,
}
# As cdxj-indexer and pywb write them
CDXJ = (
    'test,a)/ 20240518015810 {"url": "https://a.test/", "mime": "text/html", "status": "200",'
    ' "digest": "G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1219", "offset": "771",'
    ' "filename": "a.warc.gz"}'
)
ELEVEN = (
    "test,a)/ 20240518015810 https://a.test/ text/html 200 G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK"
    " - - 1219 771 a.warc.gz"
)
# As https://index.commoncrawl.org answers with output=json
API = (
    '{"urlkey": "test,a)/", "timestamp": "20240518015810", "url": "https://a.test/",'
    ' "mime": "text/html", "mime-detected": "text/html", "status": "200",'
    ' "digest": "G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1219", "offset": "771",'
    ' "filename": "a.warc.gz", "languages": "eng", "encoding": "UTF-8"}'
)
MORE = {"content_mime_detected": "text/html", "content_languages": "eng", "encoding": "UTF-8"}


def read(path: Path) -> list[Any]:
    reader = open_reader(path)
    parts = [*reader.parts()]
    assert sum(part.octets for part in parts) == path.stat().st_size
    return [one for part in parts for batch in reader.read(part) for one in batch]


@pytest.mark.parametrize("name", ["a.cdxj", "a.cdxj.gz", "a.cdx", "a.cdx.gz", "A.CDXJ"])
@pytest.mark.parametrize(
    ("line", "row"),
    [
        (CDXJ, ROW),
        (f" CDX N b a m s k r M S V g\n{ELEVEN}", ROW),
        (ELEVEN, ROW),
        (API, ROW | MORE),
        (f'!meta 0 {{"format": "cdxj-gzip-1.0"}}\r\n\n{CDXJ}\r', ROW),
        (CDXJ.replace("20240518015810", "20240518015810123"), ROW),
    ],
)
def test_a_line_is_a_row_of_the_columnar_index(
    tmp_path: Path, name: str, line: str, row: dict[str, Any]
) -> None:
    path = tmp_path / name
    octets = f"{line}\n".encode()
    # Compressed indexes have a gzip member for each 3,000 lines or so.
    path.write_bytes(gzip.compress(octets) * 2 if name.endswith("gz") else octets * 2)
    assert read(path) == [row, row]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("test,a)/ 20240518015810 {", "is no JSON: "),
        ("test,a)/ 20240518015810 https://a.test/", "is neither CDXJ nor JSON nor CDX with 11"),
        ("[" * 100_000, "is neither"),
        ('{"url": ' + "[" * 100_000, "is no JSON: "),
        (f"{ELEVEN} more", "is neither"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, line: str, error: str) -> None:
    (path := tmp_path / "a.cdxj").write_text(f"{CDXJ}\n{line}\n{CDXJ}\n", encoding="utf-8")
    first, bad, last = read(path)
    assert first == last == ROW
    assert isinstance(bad, Unreadable)
    assert (bad.position, bad.octets) == ("line 2", line.encode())
    assert bad.error.startswith(error)


def test_other_fields_of_cdx_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (path := tmp_path / "a.cdx").write_text(f" CDX N b a m s k r V g\n{ELEVEN}\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"a\.cdx: CDX with other fields .* convert it to CDXJ"):
        read(path)


def test_an_index_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.cdx.gz"
    path.write_bytes(gzip.compress(f"{CDXJ}\n".encode())[:-9])
    with pytest.raises(DatasetError, match="damaged, or cut off"):
        read(path)


def test_it_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"a\.cdxj: "):
        open_writer(tmp_path / "a.cdxj")


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.tuples(st.just(CDXJ.encode()), st.integers(0, 200), st.binary(max_size=3)).map(
        lambda one: one[0][: one[1]] + one[2] + one[0][one[1] :]
    )
)
def test_any_line_is_a_row_or_named(line: bytes) -> None:
    reader = Reader(Path("a.cdxj"))
    try:
        row = reader.record(line, 1)
    except DatasetError as error:
        assert "convert it to CDXJ" in str(error)  # noqa: PT017
        return
    assert row is None or isinstance(row, dict | Unreadable)
    assert row is not None or line.lstrip().startswith((b"CDX ", b"!"))


@pytest.mark.requirement("TAG-1")
def test_rows_that_are_not_pages_are_left_out_and_counted(tmp_path: Path) -> None:
    changes: list[dict[str, str]] = [
        {},
        {"status": "301", "redirect": "https://a.test/b"},
        {"status": "404"},
        {"mime": "warc/revisit"},
        {"mime": "warc/revisit", "status": "-"},
        {"url": "https://a.test/robots.txt"},
        {"url": "https://a.test/robots.txt", "status": "404"},
        {"url": "urn:text:https://a.test/", "status": "200"},
        {"status": "206"},
        {"status": "-"},
    ]
    rows = [{**json.loads(API), **change} for change in changes]
    path = tmp_path / "a.cdxj"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    tagged = tag_dataset([path], tmp_path / "out.jsonl", judge())
    assert dict(tagged.left_out) == {
        "status 301": 1,
        "status 404": 1,
        "revisit": 2,
        "policy file": 2,
    }
    found = lines(tmp_path / "out.jsonl")
    assert [one["permissions"]["uses"]["train"]["verdict"] for one in found] == [
        "allow",
        "deny",
        "deny",
        "deny",
    ]
    assert {name: found[0][name] for name in PLACE} == PLACE
    assert found[0]["fetched_at"] == "2024-05-18T01:58:10+00:00"
