"""Reports out of files: items, a policy store, statistics, saved ones; and what is none."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest

from comity.dataset.job import JobOptions, open_readers
from comity.dataset.records import DatasetError
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from comity.policies.answers.fetched import Fetched
from comity.report.figures.figures import figures_of
from comity.report.items import ItemsPass
from comity.report.sources import of_items, report_from
from comity.report.value import Report, ReportError
from comity.report.writing import write
from tests.report.made_reports import crawled, tag


def items(path: Path, number: int) -> Path:
    tags = [tag("https://a.example", each) for each in range(number)]
    tags[1]["uses"]["crawl"]["until"] = "2020-01-01T00:00:00Z"
    for each in tags:
        each["uses"] |= {
            name: each["uses"]["crawl"] | {"until": "2999-01-01T00:00:00Z"}
            for name in ("preserve", "present")
        }
        each["policies"] = {}
        del each["uses"]["search"]["must_include"][0:0]
    records = [{"url": "https://a.example/", "permissions": each} for each in tags] + [
        {"url": "https://a.example/none"}
    ]
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in records) + "no record\n", encoding="utf-8"
    )
    return path


def test_of_items_uses_lines_licences_attributions_and_elements(tmp_path: Path) -> None:
    report = report_from([items(tmp_path / "items.jsonl", 12)])
    uses = {use.use: use for use in report.uses}
    assert (report.source, report.agent, report.counts["items"]) == ("items", "examplebot", 13)
    assert figures_of(report)["items"].number == 12  # one more has no tag
    assert (uses["crawl"].allow, uses["crawl"].deny) == (11, 1)
    assert (uses["train-ai"].deny, uses["train-ai"].deny_default) == (9, 3)
    refusals = {refusal.rule: refusal for refusal in report.use_refusals}
    assert refusals["content-usage.disallow"].count == 12
    assert refusals["content-usage.disallow"].lines[0].line == 5
    assert refusals["expired"].count == 1
    assert [(row.name, row.count) for row in report.licences.rows] == [
        ("https://a.example/license.xml", 12)
    ]
    assert [(row.name, row.count) for row in report.attributions.rows] == [
        ("Photographs: The Example Archive", 12)
    ]
    assert (report.elements.items, report.elements.listed[0].selector) == (2, "blockquote")
    assert report.notes == [
        "1 items permit nothing, because their tag is missing or unreadable: no-tag",
        "1 records cannot be read",
    ]


@pytest.mark.slow
def test_of_several_files_in_several_processes_the_counts_are_the_same(tmp_path: Path) -> None:
    paths = [items(tmp_path / f"{number}.jsonl", 12) for number in range(2)]
    alone, together = (of_items(paths, JobOptions(workers)) for workers in (1, 2))
    alone.until = together.until = ""
    assert alone == together
    assert alone.counts["items"] == 26


def test_another_process_could_do_it(tmp_path: Path) -> None:
    [reader] = open_readers([items(tmp_path / "items.jsonl", 12)])
    [batch] = [batch for part in reader.parts() for batch in reader.read(part)]
    records = [record for record in batch if isinstance(record, dict)]
    work = ItemsPass(datetime.now(UTC))
    here, there = (
        work(records),
        pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(work))(records))),
    )
    reports = [Report(source="items", title="") for _ in range(2)]
    for outcome, report in zip((here, there), reports, strict=True):
        outcome.result.fill(report)
    assert reports[0] == reports[1]
    assert reports[0].counts["items"] == 13


def test_of_a_store_sites_files_and_take_downs(tmp_path: Path) -> None:
    path, now = tmp_path / "policies.sqlite", datetime.now(UTC)
    store = PolicyStore(path)
    due = now.timestamp() + 3600
    had = PolicyFile(due=due, copy=Fetched(status=200, body=b"User-agent: *\n", fetched_at=now))
    none = PolicyFile(due=due, copy=Fetched(status=404, fetched_at=now))
    lost = PolicyFile(due=due, failure=Fetched(status=0, error="connection refused"), failures=1)
    store.save("https://a.example", {"/robots.txt": had, "/ai.txt": none})
    store.save("https://b.example", {"/robots.txt": lost})
    store.requests_action("https://a.example/gone", "take-down", "0" * 64, now)
    store.close()
    report = report_from([path])
    assert (report.source, report.counts["sites"], report.unreachable.number) == ("store", 2, 1)
    assert [(site.origin, site.why) for site in report.unreachable.listed] == [
        ("https://b.example", "connection refused")
    ]
    files = {file.name: (file.present, file.absent, file.unreachable) for file in report.files}
    assert files == {"/robots.txt": (1, 0, 1), "/ai.txt": (0, 1, 0)}
    assert [(action.action, action.url) for action in report.actions.listed] == [
        ("take-down", "https://a.example/gone")
    ]


def test_of_statistics_what_they_know(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    stats = {
        "comity/access/allow": 8,
        "comity/access/deny": 2,
        "comity/access/deny/robots.disallow": 2,
        "comity/items/use/train-ai/deny/not-stated": 5,
        "comity/items/use/train-ai/allow": 1,
        "comity/items/term/train-ai/train-ai": 6,
        "comity/items/term/train-ai/ai-train": 4,
        "comity/items/term/train-ai/train": 1,
        "comity/items/use/tdm/deny": 2,
        "comity/items/term/tdm/bots": 2,
        "comity/items/tagged": 6,
        "downloader/response_status_count/200": 8,
        "start_time": "2026-11-23",
        "elapsed_time_seconds": 3.5,
    }
    path.write_text(json.dumps(stats))
    report = report_from([path])
    assert (report.source, report.counts["allowed"], report.counts["refused"]) == ("stats", 8, 2)
    assert [(refusal.rule, refusal.count) for refusal in report.refusals] == [
        ("robots.disallow", 2)
    ]
    uses = [(use.use, use.words, use.allow, use.deny_default) for use in report.uses]
    assert uses == [("bots", [], 0, 0), ("train-ai", ["ai-train", "train"], 1, 5)]
    assert [(row.name, row.count) for row in report.statuses] == [("200", 8)]


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_a_saved_one_is_the_same(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = crawled(patch=monkeypatch)
    write(report, tmp_path / name)
    assert report_from([tmp_path / name]) == report


@pytest.mark.parametrize(
    ("name", "octets", "message"),
    [
        ("none.json", None, "none.json: there is no such file"),
        ("a.json", b"{}", "a.json: it is JSON, but not a report of comity"),
        ("a.json", b"\xff", "a.json: it is not a text in UTF-8"),
        ("a.html", b"<p>a page", "a.html: it is a page without a report of comity"),
        ("a.xyz", b"", "unknown format of records"),
    ],
)
def test_what_is_none_says_why_and_which(
    tmp_path: Path, name: str, octets: bytes | None, message: str
) -> None:
    if octets is not None:
        (tmp_path / name).write_bytes(octets)
    with pytest.raises((ReportError, DatasetError)) as caught:
        report_from([tmp_path / name])
    assert message in str(caught.value)
