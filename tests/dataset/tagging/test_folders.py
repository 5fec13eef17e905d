"""Datasets of others in folders and stores, on every executor: the outcome is that of one process
and of single files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from comity.dataset import manifest
from comity.dataset.captures.captures import PolicyCaptures
from comity.dataset.captures.sources import sources_in
from comity.dataset.execution.executors import PROCESSES
from comity.dataset.files.folders import open_dataset
from comity.dataset.job import JobOptions
from comity.dataset.records import DatasetError
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from tests.dataset.tagging.archives import NOW, THEN, page, write
from tests.dataset.tagging.test_tagging import (
    ALLOWED,
    DATE,
    OWN,
    SITES,
    URLS,
    allowed,
    jsonl,
    judge,
    lines,
    parquet,
    read,
)
from tests.dataset.test_executors import ENGINES, snapshot


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two tables, and a line that is none."""
    folder = tmp_path / "rows"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.jsonl", "deep/b.jsonl"):
        jsonl(
            folder / name, [{"url": f"{url}?{name}", "date": DATE, "text": "Hello"} for url in URLS]
        )
    with (folder / "a.jsonl").open("a") as file:
        file.write("no record\n")
    return folder


@pytest.mark.requirement("TAG-1")
def test_each_file_has_what_it_would_have_by_itself(tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "out"
    tagged = tag_folder([rows], out, judge(missing="keep-apart"))
    assert sorted(snapshot(out)) == ["a.jsonl", "deep/b.jsonl"]
    assert (tagged.read, tagged.counts.kept, tagged.apart, tagged.counts.unreadable) == (
        17,
        14,
        2,
        1,
    )
    for name in snapshot(out):
        tag_dataset([rows / name], tmp_path / "one.jsonl", judge(missing="keep-apart"))
        assert (out / name).read_bytes() == (tmp_path / "one.jsonl").read_bytes()
        apart = tmp_path / "out.no-policies" / f"{name}.jsonl"
        assert apart.read_bytes() == (tmp_path / "one.jsonl.no-policies.jsonl").read_bytes()
    assert [one["why"] for one in lines(tmp_path / "out.unreadable" / "a.jsonl.jsonl")] != []
    described = manifest.read(out)
    assert described is not None
    assert [one["name"] for one in described["distribution"][1:]] == ["a.jsonl", "deep/b.jsonl"]
    assert described["comity:counts"]["tagged"] == 14
    assert described["comity:tagged"]["missing"] == "keep-apart"


def test_what_is_kept_beside_a_file_is_none_of_a_dataset(tmp_path: Path) -> None:
    folder = tmp_path / "tagged"
    folder.mkdir()
    source = jsonl(tmp_path / "in.jsonl", [{"url": url, "date": DATE} for url in URLS])
    tag_dataset([source], folder / "a.jsonl", judge(missing="keep-apart"))
    assert (folder / "a.jsonl.no-policies.jsonl").exists()
    assert [file.name for file in open_dataset(folder).files] == ["a.jsonl"]


def test_nothing_is_written_into_what_is_read(tmp_path: Path, rows: Path) -> None:
    """The next pass would count its records twice."""
    before = snapshot(tmp_path)
    for output in (rows / "out.jsonl", rows / "deep" / "out.parquet"):
        with pytest.raises(DatasetError, match=r"would be a part of .*rows, which is read from"):
            tag_dataset([rows], output, judge())
    assert snapshot(tmp_path) == before


def test_captures_become_lines(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    for name in ("a.warc.gz", "b.warc.gz"):
        write(tmp_path / "pages" / name, *(page(url=f"{url}?{name}") for url in URLS[:5]))
    tagged = tag_folder([tmp_path / "pages"], tmp_path / "lines", judge())
    assert (tagged.counts.kept, sorted(snapshot(tmp_path / "lines"))) == (
        10,
        ["a.jsonl.gz", "b.jsonl.gz"],
    )
    tag_folder([tmp_path / "pages"], tmp_path / "tables", judge(), ending=".parquet")
    assert sorted(snapshot(tmp_path / "tables")) == ["a.parquet", "b.parquet"]
    assert allowed(read(tmp_path / "tables" / "a.parquet")) == [
        f"{url}?a.warc.gz" for url in ALLOWED[:3]
    ]


def test_an_error_leaves_what_was_there(tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "out"
    tag_folder([rows], out, judge())
    before = snapshot(tmp_path)
    (rows / "z.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(DatasetError, match="damaged"):
        tag_folder([rows], out, judge())
    (rows / "z.jsonl.gz").unlink()
    assert snapshot(tmp_path) == before
    with pytest.raises(DatasetError, match="is read from"):
        tag_folder([out], out, judge())
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(DatasetError, match=r"holds thesis\.txt"):
        tag_folder([rows], out, judge())


@pytest.fixture
def captures(tmp_path: Path) -> Iterator[PolicyCaptures]:
    """The policies of the sites, in an index that all processes of the machine can read."""
    from tests.dataset.captures.archives import Answered, write_warc

    answers = [
        Answered(origin + path, text.encode(), at=THEN - timedelta(hours=1))
        for origin, files in SITES.items()
        for path, text in {"/robots.txt": "User-agent: *\nAllow: /\n", **files}.items()
    ]
    path = write_warc(tmp_path / "robots.warc.gz", answers)
    with PolicyCaptures.open(
        sources_in(path), agent=OWN, index=tmp_path / "index.sqlite"
    ) as captures:
        yield captures


@pytest.mark.requirement("REACH-5", "TAG-1")
@pytest.mark.parametrize(
    "started", [pytest.param(PROCESSES, marks=pytest.mark.slow), *ENGINES], indirect=True
)
def test_the_outcome_is_that_of_one_process(
    tmp_path: Path, started: str, rows: Path, captures: PolicyCaptures
) -> None:
    """One test for all: some engines take long to start."""
    tables = tmp_path / "tables"
    tables.mkdir()
    for number in range(3):
        parquet(
            tables / f"{number}.parquet",
            [{"url": f"{url}?{number}", "date": "2024-05-20", "text": "x"} for url in URLS],
        )
    asked = Judge(Question.of(OWN, now=NOW, missing="keep-apart"), captures)
    found: dict[str, Any] = {}
    for name, options in (("alone", JobOptions(1)), ("shared", JobOptions(2, executor=started))):
        (tmp_path / name).mkdir()
        of_folder = tag_folder(
            [rows, tables], tmp_path / name / "out", asked, options=options, ending=".jsonl"
        )
        of_file = tag_dataset([tables], tmp_path / name / "out.parquet", asked, options=options)
        found[name] = [
            (one.read, one.counts.kept, one.apart, dict(one.verdicts))
            for one in (of_folder, of_file)
        ]
    assert found["shared"] == found["alone"]
    assert snapshot(tmp_path / "shared") == snapshot(tmp_path / "alone")
    assert allowed(read(tmp_path / "shared" / "out.parquet")) == [
        f"{url}?{number}" for number in range(3) for url in ALLOWED
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.requirement("REACH-5")
def test_in_a_store(
    tmp_path: Path, store: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tagged into it, and from it: rows, and captures in WARC files."""
    # the workers find the policies of this test there
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    warc = write(tmp_path / "pages.warc.gz", *(page(url=url) for url in URLS))
    (store / "in" / "pages.warc.gz").write_bytes(warc.read_bytes())
    for name, octets in snapshot(rows).items():
        (store / "rows" / name).write_bytes(octets)
    for options in (JobOptions(1), JobOptions(2)):
        for sources, suffix in (([store / "rows"], "rows"), ([store / "in"], "pages")):
            local = [rows] if suffix == "rows" else [warc]
            tag_folder(
                sources, store / f"out-{suffix}", judge(missing="keep-apart"), options=options
            )
            tag_folder(local, tmp_path / f"out-{suffix}", judge(missing="keep-apart"))
            assert snapshot(store / f"out-{suffix}") == snapshot(tmp_path / f"out-{suffix}")
            assert manifest.read(store / f"out-{suffix}") == manifest.read(
                tmp_path / f"out-{suffix}"
            )
    tag_dataset([store / "in" / "pages.warc.gz"], store / "out.parquet", judge())
    assert allowed(read(store / "out.parquet")) == ALLOWED[:4]
    assert (
        json.loads(manifest.path_of(store / "out.parquet").read_bytes())["comity:counts"]["tagged"]
        == 7
    )
