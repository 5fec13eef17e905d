"""The copies of policies that decided, kept as WARC: tags by them alone are the same tags."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from comity.crawler.captures import open_captures
from comity.crawler.feeds.policy_archive import KeptPolicies
from comity.dataset.evidence.schema import kept_path, policies_path, read
from comity.dataset.job import JobOptions
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent, Verdict
from tests.dataset.tagging.archives import NOW, http, record, write

AGENT = Agent("examplebot", uses=("train", "index"), defaults={"train": Verdict.ALLOW})
PLAIN = (b"Content-Type", b"text/plain")
HTML = (b"Content-Type", b"text/html")
ROBOTS = b"User-agent: *\nDisallow: /%s\n"


def capture(host: str, block: bytes, path: str = "/robots.txt", **fields: str) -> bytes:
    return record("response", block, f"https://{host}.test{path}", **fields)


CAPTURES = [
    capture("a", http(ROBOTS % b"old", PLAIN), WARC_Date="2024-05-01T00:00:00Z"),
    capture("a", http(ROBOTS % b"a", PLAIN)),
    capture("a", http(b"", PLAIN, status="404 Not Found"), "/ai.txt"),
    capture("redirects", http(b"", (b"Location", b"/moved.txt"), status="301 Moved")),
    capture("redirects", http(ROBOTS % b"a", PLAIN), "/moved.txt"),
    capture("html", http(b"<!doctype html><p>Not here", HTML)),
    capture("fails", http(b"", PLAIN, status="503 Busy")),
    capture("damaged", http(ROBOTS % b"old", PLAIN), WARC_Date="2024-05-01T00:00:00Z"),
    capture("damaged", b"no HTTP at all"),
    capture("cut", http(ROBOTS % b"a", PLAIN), WARC_Truncated="length"),
    capture("unused", http(ROBOTS % b"a", PLAIN)),
]
HOSTS = ("a", "redirects", "html", "fails", "damaged", "cut", "never")


def tagged(folder: Path, captures: Path, name: str) -> Path:
    rows = [
        {"url": f"https://{host}.test/{path}", "date": f"2024-05-{day}T12:00:00Z"}
        for host in HOSTS
        for path in ("a", "old", "b")
        for day in (12, 20)
    ]
    source, output = folder / "in.jsonl", folder / name
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open_captures([captures], agent=AGENT, now=NOW) as policies:
        judge = Judge(Question.of(AGENT, now=NOW, missing="deny"), policies)
        options = JobOptions(
            1, evidence=policies.sources, keep=partial(KeptPolicies, policies.copy)
        )
        tag_dataset([source], output, judge, options=options)
    return output


@pytest.mark.requirement("AUDIT-2")
def test_tags_by_the_kept_copies_alone(tmp_path: Path) -> None:
    first = tagged(tmp_path, write(tmp_path / "captures.warc.gz", *CAPTURES), "one.jsonl")
    second = tagged(tmp_path, kept_path(first), "two.jsonl")
    tags = [json.loads(line)["permissions"] for line in first.read_bytes().splitlines()]
    assert {tag["uses"]["train"]["verdict"] for tag in tags} == {"allow", "deny"}
    assert first.read_bytes() == second.read_bytes()
    assert kept_path(first).read_bytes() == kept_path(second).read_bytes()


@pytest.mark.requirement("AUDIT-2")
def test_other_programs_read_each_copy_once(tmp_path: Path) -> None:
    from fastwarc.warc import ArchiveIterator

    output = tagged(tmp_path, write(tmp_path / "captures.warc.gz", *CAPTURES), "out.jsonl")
    with kept_path(output).open("rb") as file:
        found = [
            (one.headers["WARC-Target-URI"], one.headers["WARC-Date"])
            for one in ArchiveIterator(file, parse_http=False)
        ]
    copies = [
        (row["url"], row["fetched_at"].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        for batch in read(policies_path(output))
        for row in batch.to_pylist()
        if row["fetched_at"] is not None
    ]
    assert found == copies
    assert ("https://a.test/robots.txt", "2024-05-01T00:00:00.000000Z") in found
    assert not any("unused" in url for url, _ in found)


@pytest.mark.requirement("AUDIT-1")
def test_the_source_of_a_copy(tmp_path: Path) -> None:
    captures = write(tmp_path / "captures.warc.gz", *CAPTURES)
    with open_captures([captures], agent=AGENT, now=NOW) as policies:
        then = datetime(2024, 5, 18, 1, 58, 10, tzinfo=UTC)
        copies = [
            ("https://a.test/robots.txt", then),
            ("https://redirects.test/robots.txt", then),
            ("https://never.test/robots.txt", then),
            ("https://a.test/robots.txt", NOW),
        ]
        assert policies.sources(copies) == [str(captures), str(captures), None, None]
