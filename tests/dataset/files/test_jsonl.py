"""JSON Lines: everything that is read is written back, whole lines only, in parts of any size."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.dataset.files import jsonl
from comity.dataset.files.formats import Reader, open_reader, open_writer
from comity.dataset.records import DatasetError, Record, Unreadable
from tests.selection import one_in

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=20)


def everything(reader: Reader) -> list[Record | Unreadable]:
    reader = pickle.loads(pickle.dumps(reader))
    return [record for part in reader.parts() for batch in reader.read(part) for record in batch]


def write(path: Path, *batches: list[Record]) -> None:
    with open_writer(path) as writer:
        for batch in batches:
            writer.write(writer.encode(batch))


@pytest.mark.parametrize(
    "name", one_in(2, ["a.jsonl", "A.JL", "a.jsonl.gz", "a.jl.gz", "a.jsonl.zst", "A.JL.ZST"])
)
@settings(max_examples=min(40, settings().max_examples), deadline=None)  # each makes a file durable
@given(records=RECORDS, part=st.sampled_from([1, 7, 100, 10_000]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, part: int, records: list[Record]
) -> None:
    path = tmp_path_factory.mktemp("dataset") / name
    write(path, records[:3], records[3:], [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "PART", part)
        assert everything(open_reader(path)) == records


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_parts_are_the_whole_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    write(path, [{"number": number, "text": "x" * (number % 50)} for number in range(1000)])
    monkeypatch.setattr(jsonl, "PART", 1000)
    reader = open_reader(path)
    parts = list(reader.parts())
    assert len(parts) > 10
    assert sum(part.octets for part in parts) == reader.size == path.stat().st_size
    assert [
        record
        for part in reversed(parts)
        for batch in reader.read(part)
        for record in reversed(batch)
    ] == [{"number": number, "text": "x" * (number % 50)} for number in reversed(range(1000))]


UNREADABLE = [
    (b'{"a": 1', "is no JSON"),
    (b"[1]", "is no object"),
    (b'"text"', "is no object"),
    (b"null", "is no object"),
    (b'{"a": "\xff"}', "is no JSON"),
    (b'{"a": 1}{"a": 2}', "is no JSON"),
    (b"[" * 100_000, "is no JSON"),
    (b'{"a": ' + b"1" * 5_000 + b"}", "is no JSON"),
    (
        b'{"permissions": {"schema": 1, "uses": {}}, "permissions": {"schema": 1, "uses": {}}}',
        "is no JSON: `permissions` is repeated",
    ),
    (
        rb'{"a": "{\"schema\": 1, \"uses\": {}}", "a": "{\"schema\": 1, \"uses\": {}}"}',
        "is no JSON: `a` is repeated",
    ),
    (
        b'{"permissions": {"schema": 1, "uses": {}, "uses": {"a": 1}}}',
        "is no JSON: `uses` is repeated",
    ),
    (
        rb'{"permissions": {"schema": 1, "uses": {}, "\u0075ses": {"a": 1}}}',
        "is no JSON: `uses` is repeated",
    ),
    (
        b'{"permissions": {"schema": 1, "uses": {"train": {}, "train": {}}}}',
        "is no JSON: `train` is repeated",
    ),
    (
        b'{"rights": {"schema": 1, "uses": {"a": {"verdict": "deny", "verdict": "allow"}}}}',
        "is no JSON: `verdict` is repeated",
    ),
    (
        b'{"permissions": {"schema": 1, "uses": {}, "elements": [{}], "elements": []}}',
        "is no JSON: `elements` is repeated",
    ),
    (
        b'{"permissions": {"schema": 1, "uses": {}, "elements": [{"deny": 1, "deny": 2}]}}',
        "is no JSON: `deny` is repeated",
    ),
    ('{"a": "é"}'.encode("utf-16-be"), "is no JSON"),
    ('{"a": "é"}'.encode("utf-32-le"), "is no JSON"),
]


@pytest.mark.parametrize(("line", "why"), UNREADABLE)
@pytest.mark.parametrize("part", [1, 10, 1_000_000])
def test_what_is_no_record_is_kept_with_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: bytes, why: str, part: int
) -> None:
    monkeypatch.setattr(jsonl, "PART", part)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"first": 1}\n\n' + line + b'\n \r\n{"last": 1}\r\n')
    first, bad, last = everything(open_reader(path))
    assert (first, last) == ({"first": 1}, {"last": 1})
    assert isinstance(bad, Unreadable)
    assert (bad.position, bad.octets) == ("line 3", line)
    assert bad.error.startswith(why)


def test_names_that_have_nothing_to_do_with_tags_may_stand_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": {"uses": 1}, "b": {"uses": 2}, "c": 3, "c": 4}\n')
    assert everything(open_reader(path)) == [{"a": {"uses": 1}, "b": {"uses": 2}, "c": 4}]


def test_names_of_a_tag_that_was_read_before_stand_there_once(tmp_path: Path) -> None:
    """The cached result for a tag holds for all text before the tag too."""
    tag = '{"schema": 1, "uses": {"train": {"verdict": "deny"}}, "policies": {"%s": {}}}' % (
        "u" * 100
    )
    end = f'"permissions": {tag}}}'
    twice = tag.replace('"deny"', '"deny", "verdict": "allow"')
    before = [
        "{",
        f'{{"a": {tag}, ',
        f'{{"a": {twice}, ',
        f'{{"permissions": {tag}, ',
        '{"a": 1, "a": 2, ',
        '{"a": "\\u00e9", ',
    ]
    before += ['{"permissions" : "deny", ', '{"permissions" :null, ']
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{start}{end}\n" for start in (*before, *before)))
    records = everything(open_reader(path))
    assert [isinstance(record, Unreadable) for record in records] == 2 * [
        False,
        False,
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert records[4]["a"] == records[12]["a"] == 2  # type: ignore[call-overload]  # not a tag: the last value counts


def test_a_line_that_a_killed_crawl_left_half_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2, "te')
    whole, half = everything(open_reader(path))
    assert whole == {"a": 1}
    assert isinstance(half, Unreadable)
    assert (half.position, half.octets) == ("line 2", b'{"a": 2, "te')


def test_marks_that_text_can_have(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    separators = {"text": "line\u2028separator\u0085next\x1cfile\r\n\n"}
    write(path, [separators, {"half": "\ud800", "é": 1}])
    assert path.read_bytes().count(b"\n") == 2
    assert everything(open_reader(path)) == [separators, {"half": "\ud800", "é": 1}]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert everything(open_reader(path))[0] == separators


@pytest.mark.parametrize(
    ("ending", "compress"), [("gz", gzip.compress), ("zst", jsonl.CODECS[".zst"].member)]
)
def test_several_members_of_a_compressed_file(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"a.jsonl.{ending}"
    path.write_bytes(
        b"".join(compress(json.dumps({"number": number}).encode() + b"\n") for number in range(5))
    )
    assert everything(open_reader(path)) == [{"number": number} for number in range(5)]


@pytest.mark.parametrize("kept", [0, 20, -12, -1])
@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_compressed_file_that_is_cut_off_is_no_dataset(
    tmp_path: Path, ending: str, kept: int
) -> None:
    path = tmp_path / f"a.jsonl.{ending}"
    write(path, [{"text": os.urandom(50).hex()} for _ in range(50)])
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DatasetError, match=rf"a\.jsonl\.{ending} is damaged"):
        everything(open_reader(path))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_nothing_is_a_dataset_too(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path)
    assert everything(open_reader(path)) == []
    if name.endswith(".gz"):
        assert gzip.decompress(path.read_bytes()) == b""
    if name.endswith(".zst"):
        assert path.read_bytes() == jsonl.CODECS[".zst"].member(b"")


def test_a_compressed_file_in_which_an_octet_has_changed_is_no_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    write(path, [{"text": os.urandom(50).hex()} for _ in range(50)])
    octets = bytearray(path.read_bytes())
    octets[len(octets) // 2] ^= 1
    path.write_bytes(octets)
    with pytest.raises(DatasetError, match=r"a\.jsonl\.zst is damaged"):
        everything(open_reader(path))


def test_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jsonl, "PART", 100)
    monkeypatch.setattr(jsonl, "MAX_LINE", 1000)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 2000 + b'"}\n')
    with pytest.raises(DatasetError, match=r"a\.jsonl has a line of more than 1000 octets"):
        everything(open_reader(path))
