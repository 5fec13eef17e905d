"""An export by columns is the export by records: the same records in the same order, the same
counts, the same manifest."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset import manifest
from comity.dataset.export.export import export
from comity.dataset.files.formats import open_reader
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import Record, Unreadable
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
LIMITS: list[dict[str, Any] | None] = [
    {},
    {},
    None,
    {"until": "2026-11-21T23:59:59Z"},
    {"until": "2027-11-21T23:59:59Z"},
    {"until_recrawled": True},
    {"max_words": 2},
    {"because": [3]},  # a licence
    {"because": [4]},  # an arrangement
]


@pytest.fixture(params=one_in(3, range(5)))
def crawled(request: pytest.FixtureRequest, tmp_path: Path, make_record: MakeRecord) -> Path:
    chance = random.Random(request.param)
    path = tmp_path / "crawled.jsonl"
    with path.open("w") as file:
        for number in range(200):
            url = f"https://example.com/{chance.randrange(150)}"
            at = f"2026-11-21T{chance.randrange(10, 20)}:00:00+00:00"
            fields: dict[str, Any] = {
                "url": url,
                "final_url": url,
                "fetched_at": at,
                "number": number,
            }
            if chance.random() < 0.1:
                fields["only some"] = chance.choice([1, "text", None])
            elements = [{"spans": [["text", 0, 4]]}] if chance.random() < 0.1 else []
            record = make_record(
                train=chance.choice(LIMITS),
                index=chance.choice(LIMITS),
                elements=elements,
                fields=fields,
            )
            tag = record["permissions"]
            tag["agent"] = chance.choice(["testbot", "otherbot"])
            [policy] = tag["policies"].values()
            policy["sha256"] = chance.choice(["0", "1", None]) and chance.choice(["a", "b"]) * 64
            policy["fetched_at"] = chance.choice([at, None])
            if chance.random() < 0.05:
                tag["schema"] = 2
            if chance.random() < 0.05:
                del record["permissions"]
            file.write(json.dumps(record) + "\n")
    return path


def records(path: Path) -> list[Record | Unreadable]:
    reader = open_reader(path)
    return [record for part in reader.parts() for batch in reader.read(part) for record in batch]


@pytest.mark.requirement("MEET-3", "MEET-5")
@pytest.mark.parametrize(
    "uses", one_in(4, [["train"], ["train", "index"], ["present-snippet"], ["nobody"]])
)
def test_it_is_the_same(tmp_path: Path, crawled: Path, uses: list[str]) -> None:
    terms = Terms.of(uses, now=NOW)
    columns, by_records, by_columns = (
        tmp_path / name for name in ("crawled.parquet", "records.jsonl", "columns.jsonl")
    )
    _as_parquet(crawled, columns)
    one = export([crawled], by_records, terms)
    other = export([columns], by_columns, terms)
    export([columns], tmp_path / "columns.parquet", terms)
    assert records(by_columns) == records(by_records) == records(tmp_path / "columns.parquet")
    assert vars(other.counts) == vars(one.counts)
    for name in ("comity:agents", "comity:policies", "comity:arrangements", "license"):
        assert _told(by_columns).get(name) == _told(by_records).get(name)
    fields = [
        {field["name"]: field.get("dataType") for field in _told(path)["recordSet"][0]["field"]}
        for path in (by_records, by_columns)
    ]
    # A column that has another value in one record has it in no column.
    assert {
        name: kind for name, kind in fields[0].items() if name not in ("html", "only some")
    }.items() <= fields[1].items()


def _as_parquet(source: Path, path: Path) -> None:
    from comity.dataset.files.formats import open_writer

    with open_writer(path) as writer:
        writer.write(
            writer.encode(
                [record for record in records(source) if not isinstance(record, Unreadable)]
            )
        )


def _told(path: Path) -> dict[str, Any]:
    described = manifest.read(path)
    assert described
    return described


@pytest.mark.parametrize("name", one_in(3, ["a.parquet", "a.jsonl", "a.jsonl.gz"]))
def test_whether_a_key_is_anywhere(tmp_path: Path, make_record: MakeRecord, name: str) -> None:
    """By which a pass over the whole file is spared where nothing depends on it."""
    from comity.dataset.files.formats import open_writer

    def may_mention(*made: Record) -> bool:
        with open_writer(tmp_path / name) as writer:
            writer.write(writer.encode([make_record(train={}), *made]))
        return open_reader(tmp_path / name).may_mention("until_recrawled")

    odd = make_record(train={"until_recrawled": True})
    odd["permissions"]["unknown"] = 1  # no column has it
    assert not may_mention()
    assert not may_mention(make_record(train={"until": "2027-11-21T23:59:59Z"}))
    assert may_mention(make_record(train={"until_recrawled": True}))
    assert may_mention(odd)
    assert may_mention(
        *[make_record(train={})] * 3_000, make_record(train={"until_recrawled": True})
    )


def test_a_key_that_is_escaped(tmp_path: Path, make_record: MakeRecord) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps(make_record(train={"until_recrawled": True})).replace("until_", "\\u0075ntil_")
    )
    assert open_reader(path).may_mention("until_recrawled")
