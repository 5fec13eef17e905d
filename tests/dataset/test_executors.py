"""All executors give the same results in the same order, and a killed process changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comity.dataset.execution.executors import EXECUTORS, PROCESSES, in_order
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.export.folder_export import export_folder
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.stats import stats

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TRAIN = Terms.of(["train"], now=NOW)
ENGINES = [
    pytest.param(name, marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore")])
    for name in ("dask", "ray", "spark")
]


@pytest.fixture
def crawled(tmp_path: Path, make_record: MakeRecord) -> Path:
    """Every third of the records refuses train, and every fifth permits it until yesterday; some
    lines are none."""
    folder = tmp_path / "crawled"
    folder.mkdir()
    for place in range(4):
        with (folder / f"{place}.jsonl").open("w") as file:
            for number in range(place * 50, place * 50 + 50):
                until = {"until": "2026-11-21T23:59:59Z"} if number % 5 == 0 else {}
                url = f"https://example.com/{number}"
                fields = {"url": url, "final_url": url, "number": number}
                file.write(
                    json.dumps(make_record(train=None if number % 3 == 0 else until, fields=fields))
                    + "\n"
                )
            file.write("no record\n")
    return folder


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.requirement("REACH-5")
@pytest.mark.parametrize("started", [PROCESSES, *ENGINES], indirect=True)
@pytest.mark.usefixtures("processes")
def test_the_outcome_is_that_of_one_process(
    tmp_path: Path, tasks: Any, crawled: Path, started: str
) -> None:
    """One test for all: some engines take long to start."""
    # Of a process that is killed another one does the task.
    assert list(in_order(tasks.KilledOnce(str(tmp_path)), range(6), started, 2)) == [
        0,
        1,
        4,
        9,
        16,
        25,
    ]
    assert (tmp_path / "killed").exists()
    with pytest.raises(DatasetError, match=r"^0 cannot be used$"):
        list(in_order(tasks.fails, range(6), started, 2))

    alone, shared = JobOptions(1), JobOptions(2, executor=started)
    for name, options in (("alone", alone), ("shared", shared)):
        (tmp_path / name).mkdir()
        exported = export_folder([crawled], tmp_path / name / "out", TRAIN, options)
        assert (exported.counts.kept, exported.counts.unreadable) == (107, 4)
        export([crawled], tmp_path / name / "out.jsonl", TRAIN, options)
        later = tmp_path / name / "later"
        export_folder(
            [crawled], later, Terms.of(["train"], now=datetime(2026, 11, 21, tzinfo=UTC)), options
        )
        went: list[Any] = []
        expire([later], NOW, options=options._replace(removed=went.append))
        assert len(went) == 26
    assert snapshot(tmp_path / "shared") == snapshot(tmp_path / "alone")
    assert stats([crawled], NOW, shared).as_json() == stats([crawled], NOW, alone).as_json()


@pytest.mark.parametrize("executor", sorted({*EXECUTORS} - {PROCESSES}))
def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, executor: str) -> None:
    for module in ("ray", "distributed", "pyspark"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        DatasetError,
        match=rf'--executor {executor} needs .*: pip install "comity\[{executor}\]"',
    ):
        next(in_order(abs, [1], executor))


@pytest.mark.usefixtures("processes")
def test_answers_come_in_order_and_few_are_ahead() -> None:
    given: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(-40, 0):
            given.append(number)
            yield number

    for taken, answer in enumerate(in_order(abs, tasks(), PROCESSES, 2), 1):
        assert answer == 41 - taken
        assert len(given) <= taken + 3
