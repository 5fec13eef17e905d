"""Two tagged sets are compared record by record, and each difference names the file behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from comity.crawler.commands.dataset.diff import _json_lines
from comity.dataset.counts import groups
from comity.dataset.diff import difference as difference_module
from comity.dataset.diff.difference import GAINED, LOST, Difference, compare
from comity.dataset.files.formats import open_writer
from comity.dataset.job import JobOptions
from comity.policies import Agent, Fetched, Site, Verdict

AGENT = Agent("examplebot", uses=("train-ai",), defaults={"train-ai": Verdict.ALLOW})
MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = MAY + timedelta(days=31)
OPEN = b"User-agent: *\nContent-Usage: train-ai=y\n"
CLOSED = b"User-agent: *\nContent-Usage: train-ai=n\n"


def record(
    url: str,
    robots: bytes | None,
    at: datetime = MAY,
    headers: Iterable[tuple[bytes, bytes]] = (),
    agent: Agent = AGENT,
    **fields: Any,
) -> dict[str, Any]:
    """A record as a crawl writes it. `robots`: None if the site has no robots.txt."""
    origin = "/".join(url.split("/")[:3])
    file = Fetched(status=404 if robots is None else 200, body=robots or b"", fetched_at=at)
    site = Site.from_files(origin, {"/robots.txt": file})
    tag = site.page(agent, url, headers=tuple(headers), now=at).permissions
    return {"url": url, "fetched_at": at.isoformat(), **fields, "permissions": tag}


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    with open_writer(path) as writer:
        writer.write(writer.encode([dict(one) for one in records]))
    return path


def as_json(difference: Difference) -> dict[str, Any]:
    """The difference as `--json` prints it."""
    return json.loads("\n".join(_json_lines(difference)))  # type: ignore[no-any-return]


def differ(folder: Path, old: Any, new: Any, ending: str = "jsonl") -> Difference:
    paths = [
        write(folder / f"{name}.{ending}", set_) for name, set_ in (("old", old), ("new", new))
    ]
    return compare([paths[0]], [paths[1]], JobOptions(1), uses=["train-ai"])


@pytest.mark.requirement("AUDIT-5")
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_changed_file_is_named_with_its_lines_and_copies(tmp_path: Path, ending: str) -> None:
    urls = [f"https://example.com/{number}" for number in range(5)]
    old = [record(url, OPEN, sha256="a" * 64) for url in urls]
    new = [record(url, CLOSED, JUNE, sha256="b" * 64) for url in reversed(urls)]
    found = as_json(differ(tmp_path, old, new, ending))
    assert (found["compared"], found["changed"]) == (5, 5)
    [use] = found["uses"]
    assert (use["use"], use["gained"], use["lost"]) == ("train-ai", 0, 5)
    assert use["examples"] == {LOST: urls[:3]}
    [file] = found["files"]
    assert (file["policy_url"], file["change"]) == ("https://example.com/robots.txt", "changed")
    copies = [one["permissions"]["policies"][file["policy_url"]] for one in (old[0], new[0])]
    assert [file[side]["sha256"] for side in ("old", "new")] == [one["sha256"] for one in copies]
    assert [file[side]["first"][:10] for side in ("old", "new")] == ["2026-05-01", "2026-06-01"]
    [lines] = file["lines"]
    assert (lines["change"], lines["uses"]) == (LOST, 5)
    assert (lines["old"]["line"], lines["old"]["text"]) == (2, "Content-Usage: train-ai=y")
    assert (lines["new"]["rule"], lines["new"]["line"]) == ("content-usage.disallow", 2)
    assert file["examples"] == urls[:3]


@pytest.mark.requirement("AUDIT-5")
def test_each_kind_of_change(tmp_path: Path) -> None:
    """The site of a file that is gone gives uses back, because the default permits them."""
    sites = {
        "changed": (CLOSED, OPEN),
        "new": (None, CLOSED),
        "gone": (CLOSED, None),
        "unchanged": (b"User-agent: *\n", b"User-agent: *\n"),
    }
    closed_to_new = Agent("examplebot", uses=("train-ai",), defaults={"train-ai": Verdict.DENY})
    old = [record(f"https://{kind}.example/", files[0]) for kind, files in sites.items()]
    new = [
        record(
            f"https://{kind}.example/",
            files[1],
            JUNE,
            agent=closed_to_new if kind == "unchanged" else AGENT,
        )
        for kind, files in sites.items()
    ]
    found = as_json(differ(tmp_path, old, new))
    kinds = {file["policy_url"]: file["change"] for file in found["files"]}
    [unchanged] = [url for url in kinds if "://" not in url]
    assert kinds.pop(unchanged) == ""
    assert kinds == {
        f"https://{kind}.example/robots.txt": kind for kind in ("changed", "new", "gone")
    }
    [use] = found["uses"]
    assert (use["gained"], use["lost"]) == (2, 2)


@pytest.mark.requirement("AUDIT-5")
def test_statements_of_pages_are_one_source(tmp_path: Path) -> None:
    header = [(b"Content-Usage", b"train-ai=n")]
    urls = [f"https://{number}.example/" for number in range(4)]
    old = [record(url, b"") for url in urls]
    new = [record(url, b"", JUNE, header) for url in urls]
    [(change, changes)] = differ(tmp_path, old, new).largest_files(10)
    assert (change.url, change.is_file, changes.records) == ("", False, 4)
    assert "content-usage" in change.part.lower()


@pytest.mark.requirement("AUDIT-5")
def test_records_of_a_page_are_told_apart_by_their_content(tmp_path: Path) -> None:
    """Equal `sha256` or `id` first, then the rest of the page in any order."""
    url = "https://example.com/"
    old = [
        record(url, OPEN, sha256="a" * 64),
        record(url, CLOSED, sha256="b" * 64),
        record(url, OPEN, sha256="c" * 64),
    ]
    new = [
        record(url, CLOSED, sha256="b" * 64),
        record(url, OPEN, sha256="a" * 64),
        record(url, OPEN, sha256="d" * 64),
    ]
    found = differ(tmp_path, old, new)
    assert (found.compared, found.changed, found.is_loss) == (3, 0, False)
    by_id = [{**record(url, OPEN), "url": None, "id": number} for number in range(3)]
    changed = [{**record(url, CLOSED), "url": None, "id": number} for number in (1, 2, 3)]
    found = differ(tmp_path, by_id, changed)
    assert (found.compared, found.changed) == (2, 2)
    assert [side.only for side in found.sides] == [1, 1]


@pytest.mark.requirement("AUDIT-5")
def test_records_without_a_counterpart_or_a_tag(tmp_path: Path) -> None:
    old = [
        record("https://a.example/", OPEN),
        record("https://b.example/", OPEN),
        {"text": "neither URL nor id"},
    ]
    new = [
        {"url": "https://a.example/", "permissions": {"schema": 1, "uses": {}}},
        record("https://c.example/", OPEN),
    ]
    found = differ(tmp_path, old, new)
    assert (found.compared, found.changed) == (1, 1)
    assert [(side.only, side.unnamed) for side in found.sides] == [(1, 1), (1, 0)]
    [(change, changes)] = found.largest_files(10)
    # The lost use belongs to the file that permitted it, and the line names the damaged tag.
    [(_, before, after)] = changes.lines
    assert after.rule.startswith("invalid-tag:")
    assert (change.url, before.line) == ("https://a.example/robots.txt", 2)


@pytest.mark.requirement("AUDIT-5")
def test_a_set_larger_than_memory_gives_the_same_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"https://{number % 9}.example/{number}" for number in range(60)]
    old = [record(url, CLOSED if number % 3 else OPEN) for number, url in enumerate(urls)]
    new = [record(url, CLOSED if number % 4 else OPEN, JUNE) for number, url in enumerate(urls)]
    whole = as_json(differ(tmp_path, old, new))
    monkeypatch.setattr(difference_module, "MAX_HELD", 7)
    monkeypatch.setattr(groups, "MAX_HELD", 2)
    assert as_json(differ(tmp_path, old, new)) == whole
    expected = [
        (GAINED if not number % 4 else LOST)
        for number in range(60)
        if bool(number % 3) != bool(number % 4)
    ]
    [use] = whole["uses"]
    assert (use["gained"], use["lost"]) == (expected.count(GAINED), expected.count(LOST))
    assert sum(file["records"] for file in whole["files"]) == len(expected)
