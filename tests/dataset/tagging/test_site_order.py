"""Rows of tables in any order: the rows of a site are judged together, and each row has the tag
that it has by itself."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comity.dataset.captures.captures import PolicyCaptures
from comity.dataset.captures.sources import sources_in
from comity.dataset.execution.sorted_runs import SortedRuns
from comity.dataset.files import jsonl as jsonl_files
from comity.dataset.files.formats import open_reader
from comity.dataset.job import JobOptions
from comity.dataset.records import DatasetError
from comity.dataset.tagging import folder_tagging, site_order, tagging
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.tagging import tag_dataset
from comity.dataset.tagging.verdicts import Verdicts
from comity.policies import Site, Verdict
from comity.policies.answers.fetched import Fetched
from tests.dataset.captures.archives import Answered, write_warc
from tests.dataset.tagging.archives import NOW, Policies
from tests.dataset.tagging.test_tagging import DATE, OWN, SITES, URLS, jsonl, lines, parquet
from tests.dataset.test_executors import snapshot
from tests.selection import one_in

ORIGINS = 16
FIRST = datetime(2024, 5, 10, tzinfo=UTC)
SECOND = FIRST + timedelta(days=5)  # the moments of the two copies of each site
FORMS: list[Any] = ["in.parquet", "in.jsonl", "in.jsonl.gz"]


def origin(number: int) -> str:
    return f"https://site-{number:03}.test"


def robots(number: int, moment: datetime) -> str:
    """Return a robots.txt that differs from site to site, and from copy to copy."""
    more = "Content-Usage: /news train-ai=n\n" if moment == SECOND else ""
    return f"User-agent: *\nDisallow: /{number % 7}\n{more}Allow: /{number}\n"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicyCaptures]:
    folder = tmp_path_factory.mktemp("captures")
    answers = [
        Answered(f"{origin(number)}/robots.txt", robots(number, at).encode(), at=at)
        for number in range(ORIGINS)
        for at in (FIRST, SECOND)
    ]
    path = write_warc(folder / "robots.warc.gz", answers)
    with PolicyCaptures.open(
        sources_in(path), agent=OWN, index=folder / "index.sqlite"
    ) as captures:
        yield captures


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many runs, stretches and parts for few rows."""
    monkeypatch.setattr(site_order, "RUN", 64)
    monkeypatch.setattr(site_order, "STRETCH", 20)
    monkeypatch.setattr(site_order, "PENDING", 5)
    monkeypatch.setattr(jsonl_files, "PART", 1_000)


def rows_in_random_order(count: int) -> list[dict[str, Any]]:
    """Return rows, some without a valid URL or date, some twice, and some that are not pages."""
    chance = random.Random(35)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        url = f"{origin(chance.randrange(ORIGINS))}/{chance.choice(['news', 'a', *range(8)])}"
        moment = FIRST + timedelta(hours=chance.randrange(1, 240))
        row = {"id": number, "url": url, "date": moment.isoformat(), "fetch_status": 200}
        match number % 12:
            case 3:
                row["url"] = chance.choice(["", "no URL", "ftp://a.test/", "https://[::1"])
            case 5:
                row["date"] = chance.choice(["", "yesterday", "2999-01-01T00:00:00Z"])
            case 7:
                row |= rows[chance.randrange(number)] | {"id": number}
            case 9:
                row["fetch_status"] = 404
        rows.append(row)
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        return parquet(path, rows)
    if path.suffix == ".gz":
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_bytes(jsonl_files.compress(".gz", text.encode()))
        return path
    return jsonl(path, rows)


@pytest.mark.slow
@pytest.mark.requirement("TAG-1", "TAG-2")
@pytest.mark.parametrize("form", FORMS)
def test_rows_in_random_order_agree_with_the_site_asked_directly(
    tmp_path: Path, captures: PolicyCaptures, form: str
) -> None:
    rows = rows_in_random_order(450)
    judge = Judge(Question.of(OWN, now=NOW), captures)
    tagged = tag_dataset([write(tmp_path / form, rows)], tmp_path / "out.jsonl", judge)
    pages = [row for row in rows if row["fetch_status"] == 200]
    records = lines(tmp_path / "out.jsonl")
    assert [record["id"] for record in records] == [row["id"] for row in pages]
    assert (tagged.read, tagged.counts.kept) == (len(rows), len(pages))
    assert sum(tagged.verdicts.values()) == len(pages)
    compared = 0
    for row, record in zip(pages, records, strict=True):
        use = record["permissions"]["uses"]["train"]
        try:
            at = datetime.fromisoformat(row["date"])
            number = int(row["url"].removeprefix("https://site-")[:3])
        except ValueError:
            assert use["verdict"] == "deny"
            continue
        if at > NOW:
            assert use["verdict"] == "deny"
            continue
        copied_at = SECOND if at >= SECOND else FIRST
        body = robots(number, copied_at).encode()
        robots_url = f"{origin(number)}/robots.txt"
        fetched = Fetched(status=200, body=body, fetched_at=copied_at)
        site = Site.from_files(origin(number), {"/robots.txt": fetched})
        may_fetch = site.access(OWN, row["url"]).verdict is Verdict.ALLOW
        expected = site.page(OWN, row["url"], body=None, now=at).tag_with(())["uses"]["train"]
        assert use["verdict"] == (expected["verdict"] if may_fetch else "deny"), row
        [copy] = [
            copy for url, copy in record["permissions"]["policies"].items() if url == robots_url
        ]
        assert copy["sha256"] == site.policies[robots_url]["sha256"]
        assert datetime.fromisoformat(copy["fetched_at"]) == copied_at
        compared += 1
    assert compared >= 300


def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge each row when it is tagged, as before rows were sorted."""
    for module in (tagging, folder_tagging):
        monkeypatch.setattr(
            module, "judged_readers", lambda readers, tagger, options, *_: (readers, options)
        )


TABLES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "random": lambda: rows_in_random_order(70),
    "sorted": lambda: sorted(rows_in_random_order(40), key=lambda row: str(row["url"])),
    "one row": lambda: rows_in_random_order(1),
    "one site": lambda: [
        {"id": number, "url": f"{origin(1)}/{number % 9}", "date": FIRST.isoformat()}
        for number in range(30)
    ],
    "equal rows": lambda: [{"id": 1, "url": f"{origin(1)}/1", "date": SECOND.isoformat()}] * 25,
    "elements": lambda: [
        {"url": url, "date": DATE, "text": "Hello", "headers": headers}
        for url in URLS
        for headers in ("", "X-Robots-Tag: noai", "Content-Type: text/html")
    ],
    "tags": lambda: [
        {"url": url, "date": DATE, "permissions": {"uses": {}} if number % 2 else None}
        for number, url in enumerate(URLS)
    ],
}


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize("table", one_in(8, TABLES))
@pytest.mark.parametrize("form", one_in(2, FORMS[:2]))
def test_each_row_has_the_tag_that_it_has_by_itself(
    tmp_path: Path,
    captures: PolicyCaptures,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    form: str,
) -> None:
    policies: Any = Policies(SITES) if table in ("elements", "tags") else captures
    rows = TABLES[table]()
    if form == "in.parquet" and table == "tags":
        rows = [{**row, "permissions": json.dumps(row["permissions"])} for row in rows]
    source = write(tmp_path / form, rows)
    found = []
    for name in ("sorted", "direct"):
        if name == "direct":
            direct(monkeypatch)
        (tmp_path / name).mkdir()
        judge = Judge(Question.of(OWN, now=NOW, missing="keep-apart"), policies)
        of_file = tag_dataset([source], tmp_path / name / "out.jsonl", judge)
        tag_dataset([source], tmp_path / name / "out.parquet", judge)
        of_folder = tag_folder([source], tmp_path / name / "out", judge)
        counts = [(one.read, one.apart, one.undated, one.verdicts) for one in (of_file, of_folder)]
        found.append((counts, snapshot(tmp_path / name)))
    assert found[0] == found[1]


@pytest.mark.parametrize("form", ["in.parquet", "in.jsonl"])
def test_a_table_without_rows(tmp_path: Path, captures: PolicyCaptures, form: str) -> None:
    source = tmp_path / form
    if form == "in.jsonl":
        source.touch()
    else:
        pq.write_table(pa.table({"url": pa.array([], pa.string())}), source)
    tagged = tag_dataset(
        [source], tmp_path / "out.jsonl", Judge(Question.of(OWN, now=NOW), captures)
    )
    assert tagged.read == 0
    assert lines(tmp_path / "out.jsonl") == []


class Asked:
    """Policies that note for which origins they are asked."""

    def __init__(self, policies: PolicyCaptures) -> None:
        self._policies = policies
        self.origins: list[str] = []

    def at(self, origin: str, moment: datetime) -> Any:
        self.origins.append(origin)
        return self._policies.at(origin, moment)

    def today(self, origin: str) -> Any:
        raise AssertionError(origin)


@pytest.mark.parametrize("form", one_in(3, FORMS))
def test_a_site_is_read_once_for_all_rows_of_all_files(
    tmp_path: Path, captures: PolicyCaptures, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(site_order, "RUN", 10_000)
    folder = tmp_path / "in"
    folder.mkdir()
    rows = rows_in_random_order(120)
    for number in range(3):
        write(folder / f"{number}{form}", rows[number::3])
    for tag, output in ((tag_folder, "out"), (tag_dataset, "out.jsonl")):
        asked = Asked(captures)
        tag([folder], tmp_path / output, Judge(Question.of(OWN, now=NOW), asked))
        visits = [site for site, _ in groupby(asked.origins)]
        assert visits == sorted(map(origin, range(ORIGINS)))
        assert len(asked.origins) > len(visits)


@pytest.mark.parametrize("form", one_in(3, FORMS))
def test_the_rows_in_memory_are_bounded(
    tmp_path: Path, captures: PolicyCaptures, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    rows = rows_in_random_order(240)
    source = write(tmp_path / form, rows)
    runs: list[int] = []
    add, judge_rows = SortedRuns.add, site_order.JudgeRows.__call__

    def added(self: SortedRuns[Any, Any], pairs: Iterable[Any]) -> None:
        run = list(pairs)
        runs.append(sum(len(value.rows) if isinstance(value, Verdicts) else 1 for _, value in run))
        add(self, run)

    def judged(self: site_order.JudgeRows, rows: Sequence[Any]) -> Any:
        runs.append(len(rows))
        return judge_rows(self, rows)

    monkeypatch.setattr(SortedRuns, "add", added)
    monkeypatch.setattr(site_order.JudgeRows, "__call__", judged)
    [reader], _ = site_order.judged_readers(
        [open_reader(source)],
        tagging.TagPass(Judge(Question.of(OWN, now=NOW), captures), Making()),
        JobOptions(1),
    )
    # A run ends with the part that fills it, and a part has up to 12 rows here.
    assert max(runs) < 64 + 12
    assert len(runs) > 240 // 64
    stretches = [part.position[2].rows for part in reader.parts()]
    assert max(map(len, stretches)) < 20 + 12
    assert len(stretches) > 240 // 40


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_changes_meanwhile_is_an_error(
    tmp_path: Path, captures: PolicyCaptures, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    source = write(tmp_path / form, rows_in_random_order(50))
    judged_readers = site_order.judged_readers

    def changed(*arguments: Any) -> Any:
        judged = judged_readers(*arguments)
        write(source, rows_in_random_order(90))
        return judged

    monkeypatch.setattr(tagging, "judged_readers", changed)
    with pytest.raises(DatasetError, match="has changed while it was read: run the command again"):
        tag_dataset([source], tmp_path / "out.jsonl", Judge(Question.of(OWN, now=NOW), captures))
    assert not (tmp_path / "out.jsonl").exists()
