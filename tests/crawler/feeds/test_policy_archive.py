"""WARC files of policy files, and what a killed process leaves of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from comity.crawler.captures import open_captures
from comity.crawler.feeds import policy_archive
from comity.crawler.feeds.policy_archive import PolicyArchive
from comity.policies import Agent, Fetched, PolicyError, Site, Verdict
from comity.policies.formats import WELL_KNOWN

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
AGENT = Agent("examplebot")


def site(number: int) -> Site:
    robots = Fetched(
        status=200,
        body=b"User-agent: *\nDisallow: /x\n",
        fetched_at=NOON,
        headers=((b"Content-Type", b"text/plain"),),
    )
    gone = Fetched(status=404, fetched_at=NOON)
    others = dict.fromkeys(WELL_KNOWN[1:], gone) | {
        "/automation-preferences.txt": Fetched(status=0, error="no answer")
    }
    return Site.from_files(f"https://{number}.example", {"/robots.txt": robots, **others})


def origins(path: Path) -> list[str]:
    with path.open("rb") as file:
        return [
            record.rec_headers["WARC-Target-URI"].removesuffix("/robots.txt")
            for record in ArchiveIterator(file)
            if record.rec_type == "response"
            and record.rec_headers["WARC-Target-URI"].endswith("/robots.txt")
        ]


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_what_was_had_is_read_as_captures(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    archive = PolicyArchive(path)
    archive.begin("examplebot/1.0")
    archive.write(site(1))
    assert not path.exists()
    archive.finish()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    with open_captures([path], agent=AGENT) as captures:
        captured = captures.at("https://1.example", NOON)
        assert captured is not None
        assert captured.site.access(AGENT, "https://1.example/x").verdict is Verdict.DENY
        assert captured.absent == (
            "https://1.example/automation-preferences.txt",
        )  # there was no answer
        assert captures.unreadable == (0, [])


def test_a_killed_process_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, part = tmp_path / "a.warc.gz", tmp_path / ".a.warc.gz.part"
    monkeypatch.setattr(policy_archive, "SAVE_AFTER", -1.0)
    first = PolicyArchive(path)
    first.begin("examplebot/1.0")
    first.write(site(1))
    monkeypatch.setattr(policy_archive, "SAVE_AFTER", 1000.0)
    first._save()  # from now on, what is written is lost
    first.write(site(2))
    first._file.flush()
    octets = part.read_bytes()
    first._unsaved.clear()
    first._journal.close()  # as when it is killed
    first._file.close()
    part.write_bytes(octets[:-7])

    second = PolicyArchive(path)
    assert "https://1.example" in second
    assert "https://2.example" not in second
    second.begin("examplebot/1.0")
    for number in (1, 2, 3):
        second.write(site(number))
    second.finish()
    assert origins(path) == [f"https://{number}.example" for number in (1, 2, 3)]


def test_a_killed_process_is_gone_on_from_with_its_unreachable_origins(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    first = PolicyArchive(path)
    first.begin("examplebot/1.0")
    first.write(site(1), unreachable='{"origin": "https://1.example"}')
    first.write(site(2))
    first.close()
    second = PolicyArchive(path)
    assert list(second.unreachable()) == ['{"origin": "https://1.example"}']
    second.write(site(3), unreachable="{}")
    assert list(second.unreachable()) == ['{"origin": "https://1.example"}']  # of processes before
    second.close()


def test_what_a_power_cut_took_is_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    first = PolicyArchive(path)
    first.begin("examplebot/1.0")
    first.write(site(1))
    first.close()
    (tmp_path / ".a.warc.gz.part").write_bytes(b"")
    second = PolicyArchive(path)
    assert "https://1.example" not in second
    second.begin("examplebot/1.0")
    second.write(site(2))
    second.finish()
    assert origins(path) == ["https://2.example"]


def test_one_process_writes_an_archive(tmp_path: Path) -> None:
    first = PolicyArchive(tmp_path / "a.warc.gz")
    with pytest.raises(PolicyError, match="wait until that has ended"):
        PolicyArchive(tmp_path / "a.warc.gz")
    first.close()
    with pytest.raises(PolicyError, match="is a folder"):
        PolicyArchive(tmp_path)
