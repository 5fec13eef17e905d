"""The evidence beside tagged datasets: it says what the tags say, for every record of the input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comity.dataset import manifest
from comity.dataset.croissant import sha256_of
from comity.dataset.evidence import tables
from comity.dataset.evidence.schema import policies_path, read, refused_path
from comity.dataset.files.folders import open_dataset
from comity.dataset.files.formats import open_reader
from comity.dataset.job import JobOptions
from comity.dataset.records import DatasetError, Unreadable
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent, Verdict
from tests.dataset.tagging.archives import HTML, NOW, Policies, page, write

AGENT = Agent("examplebot", uses=("train", "index"), defaults={"train": Verdict.ALLOW})
SITES = {
    "https://a.test": {"/robots.txt": "User-agent: *\nDisallow: /private\n"},
    "https://b.test": {
        "/robots.txt": "User-agent: *\nContent-Usage: /ai train-ai=n\nContent-Usage: / train-ai=y\n"
    },
}
ABSENT = [f"https://c.test{path}" for path in ("/robots.txt", "/ai.txt")]
URLS = [
    *("https://a.test/1", "https://a.test/private/1", "https://b.test/ai/1", "https://b.test/1"),
    *("https://c.test/1", "https://a.test/2", "https://b.test/ai/2", "not a URL"),
]
DATE = "2024-06-01T00:00:00+00:00"
LOST = 5  # the index of a record whose status is 404
FORMS = ("jsonl", "parquet", "warc")


def sources(copies: Sequence[tuple[str, datetime]]) -> list[str]:
    return [f"captures of {url}" for url, _ in copies]


def judge() -> Judge:
    policies = Policies(SITES | {"https://c.test": {}}, missing=ABSENT)
    return Judge(Question.of(AGENT, now=NOW, missing="deny"), policies)


def source(folder: Path, form: str, urls: Sequence[str] = URLS) -> Path:
    """A file of pages. One page has a header that refuses a use, another has status 404."""
    path = folder / f"in.{form}"
    if form == "warc":
        fields = {2: (b"X-Robots-Tag", b"noindex")}
        pages = [
            page(
                b"<p>Hi",
                *(HTML, *filter(None, [fields.get(number)])),
                url=url,
                WARC_Date=DATE.replace("+00:00", "Z"),
                WARC_Record_ID=f"<urn:test:{number}>",
            )
            for number, url in enumerate(urls)
        ]
        pages[LOST] = pages[LOST].replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 404 No")
        return write(path, *pages, b"WARC/1.1\r\ndamaged")
    rows = [
        {
            "url": url,
            "fetch_time": DATE,
            "fetch_status": 404 if number == LOST else 200,
            "headers": json.dumps({"X-Robots-Tag": "noindex"} if number == 2 else {}),
        }
        for number, url in enumerate(urls)
    ]
    if form == "jsonl":
        lines = [*map(json.dumps, rows), "no record"]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        pq.write_table(pa.table(columns), path, row_group_size=3)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for batch in read(path) for row in batch.to_pylist()]


def records(output: Path) -> list[dict[str, Any]]:
    files = open_dataset(output).files
    readers = map(open_reader, files)
    batches = (
        batch for reader in readers for part in reader.parts() for batch in reader.read(part)
    )
    return [one for batch in batches for one in batch if not isinstance(one, Unreadable)]


def refused_by_tags(output: Path) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for record in records(output):
        tag = record["permissions"]
        for use in AGENT.uses:
            if tag["uses"][use]["verdict"] == "deny":
                reason = tag["reasons"][tag["uses"][use]["because"][0]]
                copy = tag["policies"].get(reason["url"], {})
                agent = reason.get("agent", tag["agent"])
                found[
                    *(record["url"], use, reason["rule"], agent),
                    *(reason["url"], copy.get("sha256") or ""),
                ] += 1
    return found


@pytest.mark.requirement("AUDIT-1")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out"])
def test_it_says_what_the_tags_say(tmp_path: Path, form: str, name: str) -> None:
    path, output = source(tmp_path, form), tmp_path / name
    tag = tag_dataset if output.suffix else tag_folder
    tagged = tag([path], output, judge(), options=JobOptions(1, evidence=sources))
    refused, policies = rows(refused_path(output)), rows(policies_path(output))

    stays = [row for row in refused if not row["dropped"]]
    names = ("url", "use", "rule", "agent", "policy_url", "policy_sha256")
    assert Counter(tuple(row[name] or "" for name in names) for row in stays) == refused_by_tags(
        output
    )
    assert {row["rule"] for row in stays} >= {"robots.disallow", "content-usage.disallow"}
    [row] = [row for row in stays if row["url"] == URLS[1] and row["use"] == "train"]
    assert row["line"] == "line 2: Disallow: /private"
    assert row["record"] == ("<urn:test:1>" if form == "warc" else "2")
    assert (row["file"], row["captured_at"].isoformat()) == (str(path), DATE)
    assert row["policy_fetched_at"].isoformat() == "2024-05-18T01:58:10+00:00"
    [by_header] = [row for row in stays if row["rule"] == "robots-meta.disallow"]
    assert (by_header["use"], by_header["policy_sha256"]) == ("index", None)

    dropped = [row for row in refused if row["dropped"]]
    others = {"jsonl": ["unreadable"], "parquet": [], "warc": ["no URL", "unreadable"]}
    assert [row["rule"] for row in dropped] == ["status 404", *others[form]]
    assert dropped[0]["url"] == URLS[LOST]
    assert {row["use"] for row in dropped} == {""}
    assert tagged.read == len(records(output)) + len(dropped)

    by_url: dict[str, list[dict[str, Any]]] = {}
    for record in records(output):
        for url in record["permissions"]["policies"]:
            by_url.setdefault(url, []).append(record["permissions"])
    assert {row["url"]: row["records"] for row in policies} == {
        url: len(tags) for url, tags in by_url.items()
    }
    assert [row["url"] for row in policies] == sorted(by_url)
    for row in policies:
        [copy] = {json.dumps(tag["policies"][row["url"]]) for tag in by_url[row["url"]]}
        assert row["status"] == json.loads(copy)["status"]
        assert row["sha256"] == json.loads(copy)["sha256"]
        assert row["refused"] == sum(one["policy_url"] == row["url"] for one in refused)
        assert row["source"] == (row["fetched_at"] and f"captures of {row['url']}")
    robots = {row["url"]: row for row in policies}
    assert robots["https://b.test/robots.txt"]["verdicts"] == [
        {"use": "train", "verdict": "allow", "records": 1},
        {"use": "train", "verdict": "deny", "records": 2},
    ]
    described = manifest.read(output)
    assert described
    assert {file["name"]: file["sha256"] for file in described["comity:evidence"]} == {
        path.name: sha256_of(path) for path in (policies_path(output), refused_path(output))
    }


@pytest.mark.requirement("AUDIT-1")
@pytest.mark.parametrize("form", FORMS)
def test_a_refusal_of_another_crawler_names_it(tmp_path: Path, form: str) -> None:
    output = tmp_path / "out.jsonl"
    robots = "User-agent: GPTBot\nDisallow: /private\n"
    policies = Policies({site: {"/robots.txt": robots} for site in SITES})
    asked = Judge(Question.of(AGENT, now=NOW, also=["GPTBot"]), policies)
    passwords = "s3://me:a/secret@store/robots.warc.gz"
    tag_dataset(
        [source(tmp_path, form)],
        output,
        asked,
        options=JobOptions(1, evidence=lambda copies: [passwords for _ in copies]),
        sources=[passwords],
    )
    agents = {
        (row["rule"] == "robots.disallow", row["agent"])
        for row in rows(refused_path(output))
        if row["use"]
    }
    assert agents == {(True, "GPTBot"), (False, "examplebot")}
    shown = {row["source"] for row in rows(policies_path(output))} - {None}
    assert shown == {"s3://***@store/robots.warc.gz"}
    assert "secret" not in manifest.path_of(output).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.requirement("AUDIT-3")
@pytest.mark.parametrize("form", FORMS)
def test_the_bytes_do_not_depend_on_the_processes(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The workers find the policies of this test there.
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    path = source(tmp_path, form, URLS * 20)
    for workers in (1, 2):
        tag_dataset(
            [path],
            tmp_path / f"{workers}.jsonl",
            judge(),
            options=JobOptions(workers, evidence=sources),
        )
    for place in (policies_path, refused_path):
        one, two = (place(tmp_path / f"{workers}.jsonl").read_bytes() for workers in (1, 2))
        assert one == two


def test_a_run_without_evidence_leaves_none_of_the_last_run(tmp_path: Path) -> None:
    path, output = source(tmp_path, "jsonl"), tmp_path / "out.jsonl"
    tag_dataset([path], output, judge(), options=JobOptions(1, evidence=sources))
    assert refused_path(output).exists()
    tag_dataset([path], output, judge(), options=JobOptions(1))
    described = manifest.read(output)
    assert described
    assert "comity:evidence" not in described
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("in.jsonl", "out.jsonl", "out.jsonl.croissant.json", "out.jsonl.unreadable.jsonl")
    ]


def test_a_run_that_fails_keeps_the_evidence_of_the_last_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, output = source(tmp_path, "jsonl"), tmp_path / "out.jsonl"
    tag_dataset([path], output, judge(), options=JobOptions(1, evidence=sources))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    retract = manifest.retract

    def fail(*arguments: Any, **named: Any) -> None:
        retract(*arguments, **named)
        raise DatasetError("the disk is full")

    monkeypatch.setattr(manifest, "retract", fail)
    with pytest.raises(DatasetError):
        tag_dataset([path], output, judge(), options=JobOptions(1, evidence=sources))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_readers_of_folders_take_no_evidence_for_records(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    path, output = source(tmp_path, "parquet"), tmp_path / "set" / "out.parquet"
    tag_dataset([path], output, judge(), options=JobOptions(1, evidence=sources))
    assert open_dataset(tmp_path / "set").files == (output,)


@pytest.mark.requirement("AUDIT-1")
def test_any_number_of_copies_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs on the disk, whose chunks are small, and copies that are in several runs."""
    monkeypatch.setattr(tables, "PENDING", 40)
    monkeypatch.setattr(tables, "CHUNK", 7)
    expected: Counter[tuple[Any, ...]] = Counter()
    with tables.CopyCounts() as counts:
        for number in range(300):
            url = f"https://{number * 7 % 97}.test/robots.txt"
            status, sha256 = (200, "a" * 64) if number % 3 else (0, None)
            use, verdict = ("train", "deny") if number % 2 else (None, None)
            key = (url, status, sha256, NOW if sha256 else None, use, verdict)
            counts.add(tables.batch_of([(*key, 1, number % 2)] * 2, tables.COUNTS))
            expected[key] += 2
        sums = [*counts.sums()]
    found = [row for table in sums for row in table.to_pylist()]
    keys = [tuple(row[name] for name in tables.KEYS) for row in found]
    assert {key: row["records"] for key, row in zip(keys, found, strict=True)} == expected
    assert len(keys) == len(expected)
    assert len(sums) > 1
    urls = [row["url"] for row in found]
    assert urls == sorted(urls)
    batches = [tables.policies_of(table, sources) for table in sums]
    policies = [row for batch in batches for row in batch.to_pylist()]
    assert len(policies) == len({key[:4] for key in expected})
    for row in policies:
        copy = tuple(row[name] for name in tables.COPY)
        assert row["records"] == expected[*copy, None, None]
        denied = expected[*copy, "train", "deny"]
        assert [one["records"] for one in row["verdicts"]] == [denied] * bool(denied)


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_evidence_that_cannot_be_read(tmp_path: Path, damage: str) -> None:
    path, output = source(tmp_path, "parquet"), tmp_path / "out.parquet"
    tag_dataset([path], output, judge(), options=JobOptions(1, evidence=sources))
    evidence = policies_path(output)
    if damage == "missing":
        evidence.unlink()
    elif damage == "cut":
        evidence.write_bytes(evidence.read_bytes()[:-20])
    else:
        evidence.write_bytes(path.read_bytes())
    with pytest.raises(DatasetError, match=evidence.name) as error:
        [*read(evidence)]
    assert "\n" not in str(error.value)
