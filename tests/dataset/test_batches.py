"""Batches of other machinery are judged as an export judges them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comity.dataset.batches import UsableBatches, recrawled_in
from comity.dataset.export.export import export
from comity.dataset.files.columns.arrow_schema import decode, encode
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TRAIN = Terms.of(["train"], now=NOW)


@pytest.fixture
def crawled(tmp_path: Path, make_record: MakeRecord) -> Path:
    """Some records are refused, of some a part is cut out, some have to be shown with something,
    one has no tag."""
    covered = {"selector": "p", "deny": ["train"], "spans": [["text", 0, 5]]}
    kinds: list[dict[str, Any]] = [
        {},
        {"train": None},
        {"train": {"max_words": 2}},
        {"elements": [covered]},
    ]
    path = tmp_path / "crawled.jsonl"
    with path.open("w") as file:
        for number in range(60):
            fields = {"url": f"https://example.com/{number}", "number": number}
            file.write(
                json.dumps(make_record(**({"train": {}} | kinds[number % 4]), fields=fields)) + "\n"
            )
        file.write('{"url": "https://example.com/", "number": 60}\n')
    return path


@pytest.fixture
def table(tmp_path: Path, crawled: Path) -> pa.Table:
    return pa.Table.from_batches(
        [encode([json.loads(line) for line in crawled.read_text(encoding="utf-8").splitlines()])]
    )


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.requirement("REACH-5", "MEET-3")
@pytest.mark.parametrize("rows", [7, 1000])
def test_batches_are_what_an_export_has(
    tmp_path: Path, crawled: Path, table: pa.Table, rows: int
) -> None:
    exported = export([crawled], tmp_path / "out.jsonl", TRAIN)
    usable = pickle.loads(pickle.dumps(UsableBatches(TRAIN)))
    found, kept = [], 0
    for batch in table.to_batches(max_chunksize=rows):
        judged, summary = usable.counted(batch)
        assert judged.schema == usable.schema(table.schema)
        found += decode(judged)
        kept += summary.counts.kept
    assert found == records(tmp_path / "out.jsonl")
    assert kept == exported.counts.kept == 45


def test_a_table_gives_a_table(tmp_path: Path, crawled: Path, table: pa.Table) -> None:
    """With its batches as they are."""
    usable = UsableBatches(TRAIN)
    whole = usable(table)
    assert isinstance(whole, pa.Table)
    assert whole.equals(pa.Table.from_batches([usable(batch) for batch in table.to_batches()]))
    assert usable(table.slice(0, 0)).num_rows == 0
    assert usable(table.to_batches()[0].slice(0, 0)).num_rows == 0


def test_what_ends_when_a_page_is_fetched_again(tmp_path: Path, make_record: MakeRecord) -> None:
    """A batch cannot tell it. The use is refused, unless `recrawled_in` was called."""
    made = [
        make_record(
            train={"until_recrawled": True},
            fields={"url": url, "final_url": url, "fetched_at": f"2026-11-{day}T12:00:00+00:00"},
        )
        for url, day in (
            ("https://example.com/a", 20),
            ("https://example.com/a", 21),
            ("https://example.com/b", 20),
        )
    ]
    path = tmp_path / "crawled.parquet"
    pq.write_table(pa.Table.from_batches([encode(made)]), path)
    batch = encode(made)
    judged, summary = UsableBatches(TRAIN).counted(batch)
    assert (judged.num_rows, summary.counts.causes) == (0, {"undated:train": 3})
    judged, summary = UsableBatches(TRAIN, recrawled_in([path], TRAIN)).counted(batch)
    assert (judged.num_rows, summary.counts.causes) == (2, {"superseded:train": 1})
    current = Terms.of(["present-snippet"], now=NOW)
    with pytest.raises(
        DatasetError, match=r"present-snippet means the most recent fetch.*recrawled_in"
    ):
        UsableBatches(current)
    UsableBatches(current, recrawled_in([str(path)], current))
    last = Terms.of(["train"], now=NOW, last_fetch=True)
    with pytest.raises(
        DatasetError, match=r"the last fetch of each page is asked for.*recrawled_in"
    ):
        UsableBatches(last)
    judged, summary = UsableBatches(last, recrawled_in([path], last)).counted(batch)
    assert (judged.num_rows, summary.counts.causes) == (2, {"superseded": 1})


def test_rows_that_cannot_be_read_are_left_out(make_record: MakeRecord) -> None:
    batch = encode([make_record(train={}, fields={"number": number}) for number in range(3)])
    texts = pa.array([b"fine", b"\xff\xfe", b"fine"], pa.binary())
    broken = pa.StringArray.from_buffers(3, texts.buffers()[1], texts.buffers()[2])
    names = batch.schema.names
    columns = [broken if name == "title" else batch.column(name) for name in names]
    judged, summary = UsableBatches(TRAIN).counted(pa.record_batch(columns, schema=batch.schema))
    assert [record["number"] for record in decode(judged)] == [0, 2]  # type: ignore[call-overload]
    assert summary.counts.unreadable == 1
