"""Jobs that write nothing: their files stay readable, and Python prints no traceback of an open
file."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files.columns import parquet
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import Record
from comity.dataset.stats import stats
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent
from tests.dataset.tagging.archives import Policies
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TRAIN = Terms.of(["train"], now=NOW)
OVER = {"until": "2026-11-21T23:59:59Z"}
ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".warc", ".warc.gz")
OUTPUTS = ("out.jsonl", "out.jsonl.gz", "out.jsonl.zst", "out.parquet")
JUDGE = Judge(Question.of(Agent("testbot", uses=("train",)), now=NOW), Policies({}))
EACH = 3 * 2  # records: three row groups


@pytest.fixture
def ignored(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return the errors of deleted objects so far, which Python prints and ignores.

    Parquet files get a row group every two records."""
    errors: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: errors.append(repr(error.exc_value)))
    monkeypatch.setattr(parquet, "GROUP_ROWS", 2)

    def collected() -> list[str]:
        gc.collect()
        return errors

    return collected


def dataset(path: Path, records: list[Record]) -> Path:
    if ".warc" not in path.name:
        with open_writer(path) as writer:
            for start in range(0, len(records), 2):
                writer.write(writer.encode(records[start : start + 2]))
        return path
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=path.suffix == ".gz")
        for record in records:
            body = json.dumps(record).encode()
            media_type = "application/json"
            writer.write_record(
                writer.create_warc_record(
                    record["url"],
                    "metadata",
                    BytesIO(body),
                    len(body),
                    warc_content_type=media_type,
                )
            )
    return path


def read(path: Path) -> list[Any]:
    reader = open_reader(path)
    return [record for part in reader.parts() for batch in reader.read(part) for record in batch]


@pytest.mark.parametrize(
    ("ending", "number", "goes"),
    one_in(
        8,
        [
            (ending, *case)
            for ending in ENDINGS
            for case in ((EACH, False), (EACH, True), (0, False))
        ],
    ),
)
def test_expire(
    tmp_path: Path,
    make_record: MakeRecord,
    ignored: Callable[[], list[str]],
    ending: str,
    number: int,
    goes: bool,
) -> None:
    path = dataset(tmp_path / f"d{ending}", [make_record(train=OVER if goes else {})] * number)
    before = path.read_bytes()
    counts = expire([path], NOW)
    assert (counts.records, counts.kept) == (number, 0 if goes else number)
    assert (path.read_bytes() == before) is not goes
    assert len(read(path)) == counts.kept
    assert ignored() == []
    assert (stats([path], NOW).records, expire([path], NOW).causes) == (counts.kept, {})


@pytest.mark.parametrize(
    ("ending", "number"),
    one_in(6, [(ending, number) for ending in ENDINGS for number in (0, EACH)]),
)
def test_export(
    tmp_path: Path,
    make_record: MakeRecord,
    ignored: Callable[[], list[str]],
    ending: str,
    number: int,
) -> None:
    path = dataset(tmp_path / f"d{ending}", [make_record(train=None)] * number)
    for output in OUTPUTS:
        assert export([path], tmp_path / output, TRAIN).counts.records == number
        assert read(tmp_path / output) == []
    assert ignored() == []


@pytest.mark.parametrize("ending", one_in(6, ENDINGS))
def test_tag(tmp_path: Path, ignored: Callable[[], list[str]], ending: str) -> None:
    path = dataset(tmp_path / f"d{ending}", [])
    for output in OUTPUTS:
        assert tag_dataset([path], tmp_path / output, JUDGE).read == 0
        assert read(tmp_path / output) == []
    assert ignored() == []


def test_a_table_of_others_without_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"other": pa.array([], pa.int64())}), tmp_path / "d.parquet")
    assert tag_dataset([tmp_path / "d.parquet"], tmp_path / "out.parquet", JUDGE).read == 0


@pytest.mark.parametrize("output", one_in(6, OUTPUTS))
def test_ctrl_c_while_records_are_written(
    tmp_path: Path, make_record: MakeRecord, ignored: Callable[[], list[str]], output: str
) -> None:
    inputs = [
        dataset(tmp_path / f"{place}.jsonl", [make_record(train={})] * EACH) for place in range(3)
    ]

    def interrupt(_: int) -> None:
        if (part := tmp_path / f".{output}.part").exists():
            written.append(part)
            raise KeyboardInterrupt

    written: list[Path] = []
    with pytest.raises(KeyboardInterrupt):
        export(inputs, tmp_path / output, TRAIN, JobOptions(1, interrupt))
    assert written
    assert not (tmp_path / output).exists()
    assert not written[0].exists()
    assert ignored() == []
