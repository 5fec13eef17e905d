"""Arrow IPC: both forms are read in parts, with the columns of Parquet, and damage is named."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings

from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files.columns import ipc
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.manifest import path_of
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError, Unreadable
from comity.dataset.stats import stats
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from tests.dataset.files.test_jsonl import RECORDS, everything, write
from tests.dataset.tagging.archives import NOW, Policies
from tests.dataset.tagging.test_tagging import ALLOWED, DATE, OWN, SITES, URLS
from tests.selection import one_in

NAMES = ["a.arrow", "a.arrows", "a.feather"]
ROWS = [{"url": url, "date": DATE, "text": f"Text of {url}"} for url in URLS]
JUDGE = Judge(Question.of(OWN, now=NOW), Policies(SITES))


def batches(number: int = 5, *, dictionary: bool = False) -> list[pa.RecordBatch]:
    """Of 100 rows each."""
    texts = [[f"text {at - row % (7 + at)}" for row in range(100)] for at in range(number)]
    columns = [pa.array(column) for column in texts]
    rows = [pa.array(range(100 * at, 100 * at + 100)) for at in range(number)]
    return [
        pa.record_batch([row, column.dictionary_encode() if dictionary else column], ["n", "t"])
        for row, column in zip(rows, columns, strict=True)
    ]


def stream(
    path: Path, some: list[pa.RecordBatch], *, is_file: bool = False, **options: Any
) -> Path:
    new = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with new(path, some[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in some:
            writer.write_batch(batch)
    return path


@pytest.mark.parametrize("name", one_in(2, NAMES))
@settings(max_examples=min(30, settings().max_examples), deadline=None)
@given(records=RECORDS)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, records: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("dataset") / name
    write(path, records[:3], records[3:], [])
    assert everything(open_reader(path)) == records
    assert open_reader(path).is_stream == (name == "a.arrows")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("is_file", "dictionary", "options"),
    one_in(
        2,
        [
            (False, False, {}),
            (True, False, {}),
            (False, True, {}),
            (False, True, {"emit_dictionary_deltas": True}),
            (True, False, {"compression": "lz4"}),
            (False, False, {"compression": "zstd"}),
            (False, True, {"compression": "zstd"}),
            (False, False, {"metadata_version": pa.ipc.MetadataVersion.V4}),
            (False, False, {"use_legacy_format": True}),
        ],
    ),
)
@pytest.mark.parametrize("part", [1, 2000, 10**6])
def test_forms_of_other_programs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_file: bool,
    dictionary: bool,
    options: dict[str, Any],
    part: int,
) -> None:
    monkeypatch.setattr(ipc, "PART", part)
    monkeypatch.setattr(ipc, "ROWS", 30)
    some = batches(dictionary=dictionary)
    path = stream(tmp_path / "a.arrow", some, is_file=is_file, **options)
    reader: Any = open_reader(path)
    parts = [*reader.parts()]
    assert sum(part.octets for part in parts) == path.stat().st_size
    expected = [row for batch in some for row in batch.to_pylist()]
    assert everything(reader) == expected
    found = {row: batch for part in reversed(parts) for batch, row in reader.read_columns(part)}
    assert [row for at in sorted(found) for row in found[at].to_pylist()] == expected
    assert [*sorted(found)] == [at + 1 for at in range(500) if at % 100 in (0, 30, 60, 90)]
    narrow = [batch for part in parts for batch, _ in reader.read_columns(part, ["t", "none"])]
    assert [batch.schema.names for batch in narrow] == [["t"]] * len(found)
    none = [batch for part in parts for batch, _ in reader.read_columns(part, ["none"])]
    assert sum(batch.num_rows for batch in none) in (0, 500)


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("is_file", [False, True])
def test_a_file_that_is_cut_off_is_refused_with_the_octet(tmp_path: Path, is_file: bool) -> None:
    path = stream(tmp_path / "a.arrow", batches(2), is_file=is_file)
    octets = path.read_bytes()
    for length in sorted(
        {*range(20), *range(20, len(octets), 97), *range(len(octets) - 20, len(octets))}
    ):
        path.write_bytes(octets[:length])
        with pytest.raises(DatasetError, match=r"a\.arrow .*cut off while it was written.* octet"):
            everything(open_reader(path))


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}])
def test_damage_is_named_and_the_rest_is_read(tmp_path: Path, options: dict[str, Any]) -> None:
    some = batches(3)
    path = stream(tmp_path / "a.arrow", some, **options)
    octets = bytearray(path.read_bytes())
    reader: Any = open_reader(path)
    [part] = reader.parts()
    _, end = part.position.batches[1].place
    octets[end - 100 : end - 8] = b"\xff" * 92
    path.write_bytes(octets)
    found = everything(open_reader(path))
    unreadable = [one for one in found if isinstance(one, Unreadable)]
    assert unreadable
    assert all(
        "row 101" in one.position or 101 <= int(one.position[4:]) <= 200 for one in unreadable
    )
    assert found[:100] == some[0].to_pylist()
    assert found[-100:] == some[2].to_pylist()


@pytest.mark.requirement("SEC-6")
def test_a_buffer_that_states_a_terabyte_is_not_unpacked(tmp_path: Path) -> None:
    some = batches(2)
    path = stream(tmp_path / "a.arrow", some, compression="zstd")
    octets = path.read_bytes()
    stated = struct.pack("<q", 800)  # the numbers of 100 rows
    place = octets.index(stated, octets.index(b"\x28\xb5\x2f\xfd") - 8)
    path.write_bytes(octets[:place] + struct.pack("<q", 2**40) + octets[place + 8 :])
    bad, *good = everything(open_reader(path))
    assert isinstance(bad, Unreadable)
    assert bad.position.startswith("row 1 and the rest of record batch 0, at octet ")
    assert "when it is unpacked: write smaller record batches" in bad.error
    assert good == some[1].to_pylist()


@pytest.mark.requirement("SEC-6")
def test_rows_of_nothing_do_not_fill_the_memory(tmp_path: Path) -> None:
    path = stream(tmp_path / "a.arrow", [pa.record_batch([pa.nulls(77_777)], ["a"])])
    before, after = (struct.pack("<q", number) for number in (77_777, 10**12))
    path.write_bytes(path.read_bytes().replace(before, after))
    [bad] = everything(open_reader(path))
    assert isinstance(bad, Unreadable)
    assert bad.error == "it states 1000000000000 rows in 0 octets"


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("is_nested", [False, True])
def test_an_offset_outside_the_batch_is_not_followed(tmp_path: Path, is_nested: bool) -> None:
    """Reading it would read other memory, or end the process."""
    texts: Any = pa.array(["aa", "bb", "cc"])
    column = pa.array([{"t": ["aa", "bb", "cc"]}]) if is_nested else texts
    path = stream(tmp_path / "a.arrow", [pa.record_batch([column], ["a"])])
    before, after = struct.pack("<4i", 0, 2, 4, 6), struct.pack("<4i", 0, 2, 2**30, 6)
    path.write_bytes(path.read_bytes().replace(before, after))
    [bad] = everything(open_reader(path))
    assert isinstance(bad, Unreadable)
    assert "row 1 and the rest of record batch 0" in bad.position


@pytest.mark.requirement("SEC-6")
def test_a_text_that_is_not_utf8_is_one_unreadable_row(tmp_path: Path) -> None:
    path = stream(tmp_path / "a.arrow", [pa.record_batch([pa.array(["aa", "bb", "cc"])], ["a"])])
    path.write_bytes(path.read_bytes().replace(b"aabbcc", b"aa\xff\xffcc"))
    first, bad, last = everything(open_reader(path))
    assert (first, last) == ({"a": "aa"}, {"a": "cc"})
    assert isinstance(bad, Unreadable)
    assert bad.position == "row 2"


@pytest.mark.requirement("SEC-6")
def test_a_stream_without_a_schema_is_refused(tmp_path: Path) -> None:
    path = stream(tmp_path / "a.arrow", batches(1))
    reader: Any = open_reader(path)
    [part] = reader.parts()
    start, _ = part.position.batches[0].place
    for octets in (path.read_bytes()[start:], b"\xff\xff\xff\xff\0\0\0\0"):
        path.write_bytes(octets)
        with pytest.raises(DatasetError, match=r"a\.arrow is not Arrow IPC: it has no schema"):
            everything(open_reader(path))


def test_feather_1_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.feather"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pa.feather.write_feather(pa.table({"url": ["a"]}), path, version=1)
    with pytest.raises(DatasetError, match=r"a\.feather is Feather 1: write it with pyarrow"):
        everything(open_reader(path))


@pytest.mark.parametrize("is_file", [False, True])
def test_it_is_tagged_as_parquet_is(tmp_path: Path, is_file: bool) -> None:
    stream(tmp_path / "a.arrow", [pa.RecordBatch.from_pylist(ROWS)], is_file=is_file)
    write(tmp_path / "a.parquet", ROWS)
    for name, output in (("a.arrow", "b.arrow"), ("a.parquet", "b.parquet")):
        tag_dataset([tmp_path / name], tmp_path / output, JUDGE)
        export([tmp_path / output], tmp_path / f"train.{name[2:]}", Terms.of(["train"], now=NOW))
    tagged = everything(open_reader(tmp_path / "b.arrow"))
    assert tagged == everything(open_reader(tmp_path / "b.parquet"))
    kept = everything(open_reader(tmp_path / "train.arrow"))
    assert kept == everything(open_reader(tmp_path / "train.parquet"))
    assert [one["url"] for one in kept if isinstance(one, dict)] == ALLOWED
    assert stats([tmp_path / "b.arrow"], NOW).records == len(URLS)
    assert open_reader(tmp_path / "b.arrow").is_stream != is_file  # type: ignore[attr-defined]
    form = "file" if is_file else "stream"
    assert f"application/vnd.apache.arrow.{form}" in path_of(tmp_path / "b.arrow").read_text()


@pytest.mark.parametrize("is_file", [False, True])
def test_the_form_stays_when_records_expire(tmp_path: Path, is_file: bool) -> None:
    path = stream(tmp_path / "a.arrow", [pa.RecordBatch.from_pylist(ROWS)], is_file=is_file)
    tag_folder([path], tmp_path / "out", JUDGE)
    tagged = tmp_path / "out" / "a.arrow"
    counts = expire([tagged], NOW, [ALLOWED[0]])
    assert counts.records - counts.kept == 1
    reader: Any = open_reader(tagged)
    assert reader.is_stream != is_file
    assert ALLOWED[0] not in [one["url"] for one in everything(reader) if isinstance(one, dict)]


def test_dictionaries_become_plain_values(tmp_path: Path) -> None:
    """A file may have each dictionary once, and the batches here have different ones."""
    some = [
        pa.record_batch(
            [pa.array([row["url"]]), pa.array([row["date"]]).dictionary_encode()], ["url", "date"]
        )
        for row in ROWS
    ]
    path = stream(tmp_path / "a.arrows", some)
    tag_dataset([path], tmp_path / "out.feather", JUDGE)
    table = pa.feather.read_table(tmp_path / "out.feather")
    assert table.column("date").to_pylist() == [DATE] * len(ROWS)
    assert table.schema.field("date").type == pa.string()


def test_datasets_reads_and_writes_it(tmp_path: Path) -> None:
    import datasets

    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "saved")
    [path] = (tmp_path / "saved").glob("*.arrow")
    tag_dataset([path], tmp_path / "out.arrow", JUDGE)
    tagged = datasets.Dataset.from_file(str(tmp_path / "out.arrow"))
    assert tagged["url"][:] == URLS
    assert tagged.with_format("arrow")[:].column("permissions").null_count == 0


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_polars_reads_and_writes_it(tmp_path: Path, compression: Any) -> None:
    import polars

    frame = polars.DataFrame(ROWS).with_columns(polars.col("text").cast(polars.Categorical))
    frame.write_ipc(tmp_path / "a.feather", compression=compression)
    frame.write_ipc_stream(tmp_path / "a.arrows", compression=compression)
    for name in ("a.feather", "a.arrows"):
        tag_dataset([tmp_path / name], tmp_path / f"b{name[1:]}", JUDGE)
    tagged = polars.read_ipc(tmp_path / "b.feather")
    assert tagged["text"].to_list() == [row["text"] for row in ROWS]
    assert polars.read_ipc_stream(tmp_path / "b.arrows").equals(tagged)


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(b"old")

    def fail() -> None:
        with open_writer(path) as writer:
            writer.write(writer.encode([{"a": 1}]))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"old"
