"""The evidence beside exports: why each record is not in the export."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset.evidence.schema import policies_path, read, refused_path
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.files.formats import open_writer
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PAST = "2026-11-01T00:00:00Z"


def sources(copies: Sequence[tuple[str, datetime]]) -> list[None]:
    return [None for _ in copies]


def source(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    with open_writer(path) as writer:
        writer.write(writer.encode(records))
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for batch in read(path) for row in batch.to_pylist()]


@pytest.mark.requirement("AUDIT-1")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out"])
def test_why_records_are_dropped(
    tmp_path: Path, make_record: MakeRecord, form: str, name: str
) -> None:
    records = [
        make_record(train={}, search={}),
        make_record(train=None, search={}),
        make_record(train=None, search=None),
        make_record(train={"until": PAST}, search={}),
        make_record(train={}),
        make_record(train={}, search={}, elements=[{"spans": [["text", 0, 4]]}]),
        {"url": "https://example.com/untagged", "permissions": None},
    ]
    path, output = source(tmp_path / f"in.{form}", records), tmp_path / name
    write = export if output.suffix else export_folder
    terms = Terms.of(["train", "search"], now=NOW)
    exported = write([path], output, terms, JobOptions(1, evidence=sources))
    refused = rows(refused_path(output))
    assert [(row["record"], row["use"], row["rule"]) for row in refused] == [
        ("2", "train", "acap.disallow"),
        ("3", "train", "acap.disallow"),
        ("3", "search", "acap.disallow"),
        ("4", "train", "expired"),
        ("5", "search", "not-listed"),
        ("7", "", "no-tag"),
    ]
    assert {row["dropped"] for row in refused} == {True}
    assert refused[0]["line"] == "line 4: ACAP-disallow-other: /"
    assert refused[0]["policy_sha256"] == "0" * 64
    assert refused[0]["url"] == "https://example.com/a"
    assert refused[0]["captured_at"] == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert len({row["record"] for row in refused}) == sum(exported.counts.causes.values())
    [policy] = rows(policies_path(output))
    assert (policy["records"], policy["refused"], policy["source"]) == (2, 4, None)
    assert policy["verdicts"] == [
        {"use": use, "verdict": "allow", "records": 2} for use in ("search", "train")
    ]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_the_copy_of_the_date_that_refuses(
    tmp_path: Path, make_record: MakeRecord, form: str
) -> None:
    """A tag of two dates has two copies of a file, and the statement says which one it is from."""
    record = make_record(train=None)
    record["url"] = "https://example.com/\ud800" if form == "jsonl" else "https://example.com/"
    tag = record["permissions"]
    [(url, copy)] = tag["policies"].items()
    then = {"status": 200, "sha256": "1" * 64, "fetched_at": "2024-01-01T00:00:00+00:00"}
    tag["policies"] = {url: copy | {"earlier": [then]}}
    tag["reasons"][1] |= {"fetched_at": then["fetched_at"], "part": "body", "line": 0}
    assert json.dumps(record)
    path, output = source(tmp_path / f"in.{form}", [record]), tmp_path / "out.jsonl"
    export([path], output, Terms.of(["train"], now=NOW), JobOptions(1, evidence=sources))
    [row] = rows(refused_path(output))
    assert (row["policy_sha256"], row["line"]) == ("1" * 64, "body: ACAP-disallow-other: /")
    assert row["policy_fetched_at"] == datetime(2024, 1, 1, tzinfo=UTC)
    [policy] = rows(policies_path(output))
    assert (policy["sha256"], policy["records"], policy["refused"]) == ("1" * 64, 0, 1)
