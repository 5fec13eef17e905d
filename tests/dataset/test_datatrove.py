"""A datatrove pipeline drops and cuts the same documents as an export."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset.export.export import export
from comity.dataset.permissions.terms import Terms

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
NOW = datetime(2026, 11, 22, tzinfo=UTC)
TRAIN = Terms.of(["train"], now=NOW)


@pytest.mark.requirement("REACH-5", "MEET-3")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_documents_are_what_an_export_has(
    tmp_path: Path, make_record: Callable[..., dict[str, Any]], form: str
) -> None:
    from datatrove.pipeline.readers import JsonlReader, ParquetReader

    from comity.dataset.datatrove import PermittedFilter

    covered = {"selector": "p", "deny": ["train"], "spans": [["text", 0, 5]]}
    kinds: list[dict[str, Any]] = [
        {},
        {"train": None},
        {"train": {"max_words": 2}},
        {"elements": [covered]},
    ]
    kinds.append({"train": {"until": "2026-12-21T23:59:59Z"}, "embedded": {"train": None}})
    made = [
        make_record(**({"train": {}} | kind), fields={"number": number})
        for number, kind in enumerate(kinds)
    ]
    source = tmp_path / "in" / "crawled.jsonl"
    source.parent.mkdir()
    source.write_text(
        "".join(json.dumps(record) + "\n" for record in made) + '{"text": "no tag"}\n'
    )
    exported = export([source], tmp_path / "out.jsonl", TRAIN)
    wanted = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    if form == "parquet":
        (tmp_path / "all").mkdir()
        export([source], tmp_path / "all" / "crawled.parquet", Terms.of(["follow"], now=NOW))
        reader = ParquetReader(str(tmp_path / "all"), glob_pattern="*.parquet")
    else:
        reader = JsonlReader(str(source.parent))
    step = PermittedFilter(TRAIN)
    documents = list(step.run(reader.run()))
    found = [
        {
            name: value
            for name, value in {**one.metadata, "text": one.text}.items()
            if name != "file_path"
        }
        for one in documents
    ]
    nothing: tuple[Any, ...] = (None, "", [])
    for record in (*found, *wanted):
        for name in [name for name, value in record.items() if value in nothing]:
            del record[name]
    assert found == wanted
    assert len(found) == exported.counts.kept == 4


def test_what_ends_when_a_page_is_fetched_again_is_refused(
    make_record: Callable[..., dict[str, Any]],
) -> None:
    from datatrove.data import Document

    from comity.dataset.datatrove import PermittedFilter

    record = make_record(train={"until_recrawled": True})
    document = Document(record.pop("text"), "1", metadata=record)
    assert PermittedFilter(TRAIN).filter(document) == (False, "undated:train")
