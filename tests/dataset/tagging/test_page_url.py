"""Tables of images: the site of the image and the site of the page that shows it both count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comity.dataset import tagger
from comity.dataset.export.export import export
from comity.dataset.files import jsonl
from comity.dataset.files.formats import open_reader
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.tagging.columns import Columns
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import KEEP_APART, Question
from comity.dataset.tagging.record_tagger import Making, RecordTagger
from comity.dataset.tagging.tagging import captures_reader, origins, tag_dataset
from tests.dataset.files.test_jsonl import everything
from tests.dataset.tagging.archives import NOW, Policies
from tests.dataset.tagging.test_tagging import DATE, OWN, SITES

A, B, PRIVATE, NO_TRAIN = (
    "https://a.test/1",
    "https://b.test/1",
    "https://b.test/private/1",
    "https://b.test/ai/1",
)
ELEMENTS, UNKNOWN = "https://c.test/1", "https://unknown.test/1"
ROBOTS_A, ROBOTS_B = "https://a.test/robots.txt", "https://b.test/robots.txt"
# Image, page -> may it be used to train, and the rules and files that decide about training.
CASES: list[tuple[Any, Any, bool, set[tuple[str, str]]]] = [
    (A, B, True, set()),
    (A, A, True, set()),
    (A, NO_TRAIN, False, {("content-usage.disallow", ROBOTS_B)}),
    (NO_TRAIN, A, False, {("content-usage.disallow", ROBOTS_B)}),
    (A, PRIVATE, False, {("robots.disallow", ROBOTS_B)}),
    (
        PRIVATE,
        NO_TRAIN,
        False,
        {("robots.disallow", ROBOTS_B), ("content-usage.disallow", ROBOTS_B)},
    ),
    (A, UNKNOWN, False, {("comity.no-policies", "https://unknown.test/robots.txt")}),
    (UNKNOWN, A, False, {("comity.no-policies", "https://unknown.test/robots.txt")}),
    (A, None, False, {("comity.no-url", "")}),
    (A, "no URL", False, {("comity.no-url", "")}),
    (None, A, False, {("comity.no-url", "")}),
]
ROWS = [
    {"URL": image, "page": page, "timestamp": DATE, "TEXT": "A cat", "key": number}
    for number, (image, page, *_) in enumerate(CASES * 2)
]
COLUMNS = Columns(page_url="page")


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_bytes(jsonl.encode(rows))
    return path


def tagged_rows(
    path: Path, output: Path, columns: Columns = COLUMNS, **fields: Any
) -> list[dict[str, Any]]:
    question = Question.of(OWN, now=NOW, **fields)
    tag_dataset([path], output, Judge(question, Policies(SITES)), Making(columns))
    return [one for one in everything(open_reader(output)) if isinstance(one, dict)]


@pytest.mark.parametrize("name", ["in.parquet", "in.jsonl"])
def test_both_sites_must_permit_a_use(tmp_path: Path, name: str) -> None:
    rows = tagged_rows(table(tmp_path / name, ROWS), tmp_path / "out.jsonl")
    assert [row["key"] for row in rows] == [*range(len(ROWS))]
    for row, (_, _, allowed, because) in zip(rows, CASES * 2, strict=True):
        tag = row["permissions"]
        use = tag["uses"]["train"]
        assert (use["verdict"] == "allow") == allowed, row
        reasons = [tag["reasons"][number] for number in use["because"]]
        assert {(reason["rule"], reason["url"]) for reason in reasons} >= because, row
        assert tag["is_unread"] is True
    assert {ROBOTS_A, ROBOTS_B} <= rows[0]["permissions"]["policies"].keys()
    export([tmp_path / "out.jsonl"], tmp_path / "train.jsonl", Terms.of(["train"], now=NOW))
    kept = everything(open_reader(tmp_path / "train.jsonl"))
    assert [one["key"] for one in kept if isinstance(one, dict)] == [0, 1, 11, 12]


def test_tables_lines_and_batches_have_the_same_tags(tmp_path: Path) -> None:
    tags = [
        [row["permissions"] for row in tagged_rows(table(tmp_path / name, ROWS), tmp_path / out)]
        for name, out in (("a.parquet", "b.parquet"), ("a.jsonl", "b.jsonl"))
    ]
    with tagger(Policies(SITES), OWN, ["train"], now=NOW, columns=COLUMNS) as tag:
        pq.write_table(tag(pa.Table.from_pylist(ROWS)), tmp_path / "c.parquet")
    batches = everything(open_reader(tmp_path / "c.parquet"))
    tags.append([one["permissions"] for one in batches if isinstance(one, dict)])
    assert tags[0] == tags[1] == tags[2]


def test_without_the_field_the_page_does_not_count(tmp_path: Path) -> None:
    path = table(tmp_path / "a.jsonl", [{"URL": A, "page": PRIVATE, "timestamp": DATE}])
    [row] = tagged_rows(path, tmp_path / "out.jsonl", Columns())
    assert row["permissions"]["uses"]["train"]["verdict"] == "allow"


def test_elements_of_the_page_may_be_in_the_text(tmp_path: Path) -> None:
    """The site of the page has rules about elements, and the page is not available."""
    path = table(
        tmp_path / "a.jsonl", [{"URL": A, "page": ELEMENTS, "timestamp": DATE, "TEXT": "t"}]
    )
    [row] = tagged_rows(path, tmp_path / "out.jsonl")
    assert ["text"] in [span for one in row["permissions"]["elements"] for span in one["spans"]]


def test_rows_without_policies_of_either_site_are_kept_apart(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", ROWS)
    rows = tagged_rows(path, tmp_path / "out.jsonl", missing=KEEP_APART)
    assert [row["key"] for row in rows] == [
        number for number, row in enumerate(ROWS) if UNKNOWN not in (row["URL"], row["page"])
    ]


def test_the_policies_of_both_sites_are_fetched(tmp_path: Path) -> None:
    reader = captures_reader(open_reader(table(tmp_path / "a.jsonl", ROWS[:3])))
    assert {*origins([reader], COLUMNS, lambda _: None)} == {"https://a.test", "https://b.test"}
    assert {*origins([reader], Columns(), lambda _: None)} == {"https://a.test"}


def test_a_field_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", ROWS)
    with pytest.raises(DatasetError, match="there is no field `pages`: it has URL, page"):
        tagged_rows(path, tmp_path / "out.jsonl", Columns(page_url="pages"))


def test_equal_pairs_of_sites_share_a_tag() -> None:
    judge = Judge(Question.of(OWN, now=NOW), Policies(SITES))
    record_tagger = RecordTagger(judge, Making(COLUMNS))
    tags = []
    for number in range(3):
        page, _ = record_tagger.page({"URL": f"https://a.test/{number}", "page": B, "date": DATE})
        assert page
        judged = judge.judge(page)
        assert judged
        tags.append(judged.tag({}))
    assert tags[0] is tags[1] is tags[2]
