"""`comity dataset repeat`, as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from comity.dataset.croissant import sha256_of
from tests.crawler.commands.running import scrapy
from tests.dataset.tagging.archives import http, page, record, write
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Serve

PLAIN = (b"Content-Type", b"text/plain")
ROBOTS = b"User-agent: *\nDisallow: /private\n"
URLS = [f"https://a.test/{path}" for path in ("1", "private/1", "2")]
MANIFEST = "out.jsonl.croissant.json"


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    """A folder with a tagged dataset, its input and its captures."""
    write(tmp_path / "in.warc.gz", *(page(b"<p>Hi", url=url) for url in URLS))
    capture = record("response", http(ROBOTS, PLAIN), "https://a.test/robots.txt")
    write(tmp_path / "robots.warc.gz", capture)
    done = scrapy(
        tmp_path,
        *("dataset", "tag", "in.warc.gz", "-o", "out.jsonl", "--for", "train"),
        *("--policies", "robots.warc.gz", "-s", "COMITY_DEFAULTS=train:allow"),
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


def manifest(folder: Path) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
    return described


def change(folder: Path, **members: Any) -> None:
    described = manifest(folder)
    described["comity:run"] |= members
    (folder / MANIFEST).write_text(json.dumps(described))


@pytest.mark.requirement("AUDIT-3")
def test_the_same_octets(tagged: Path, *, in_full: bool) -> None:
    """At another moment, with other settings, and with --all by other processes."""
    before = {file.name: file.read_bytes() for file in tagged.iterdir()}
    done = scrapy(
        tagged,
        *("dataset", "repeat", "-s", "COMITY_DEFAULTS=train:deny", "-s", "COMITY_AGENT=other"),
        *("--workers", "2" if in_full else "1", MANIFEST, "-o", "again.jsonl"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("out.jsonl is made again with the same octets\n")
    for ending in ("", ".policies.parquet", ".refused.parquet"):
        assert (tagged / f"again.jsonl{ending}").read_bytes() == before[f"out.jsonl{ending}"]
    assert {name: (tagged / name).read_bytes() for name in before} == before


@pytest.mark.requirement("AUDIT-3")
@pytest.mark.parametrize(
    ("words", "output"),
    one_in(
        4,
        [
            (("export", "out.jsonl", "-o", "train.parquet"), "train.parquet"),
            (("export", "out.jsonl", "-o", "train.jsonl", "--no-evidence"), "train.jsonl"),
            (("tag", "in", "-o", "tagged/", "--policies", "robots.warc.gz"), "tagged"),
            (
                (
                    "tag",
                    "in/a.warc.gz",
                    "-o",
                    "a.jsonl",
                    "--policies",
                    "robots.warc.gz",
                    "--no-evidence",
                ),
                "a.jsonl",
            ),
        ],
    ),
)
def test_exports_folders_and_sets_without_evidence(
    tagged: Path, words: tuple[str, ...], output: str
) -> None:
    (tagged / "in").mkdir()
    for name in ("a.warc.gz", "b.warc.gz"):
        (tagged / "in" / name).write_bytes((tagged / "in.warc.gz").read_bytes())
    done = scrapy(tagged, "dataset", *words, "--for", "train")
    assert done.returncode == 0, done.stderr
    done = scrapy(tagged, "dataset", "repeat", f"{output}.croissant.json")
    without = f"{output} has no evidence: only its records are compared\n"
    assert (done.returncode, done.stderr) == (0, without if "--no-evidence" in words else "")
    assert done.stdout.endswith(f"{output} is made again with the same octets\n")


@pytest.mark.slow
@pytest.mark.requirement("AUDIT-3")
def test_a_run_after_one_that_was_killed(tagged: Path) -> None:
    """The killed run leaves no output, the next one is complete, and it is repeated."""
    rows = (f'{{"url": "https://a.test/{n}", "date": "2024-06-01"}}\n' for n in range(30_000))
    (tagged / "rows.jsonl").write_text("".join(rows))
    command = ["dataset", "tag", "rows.jsonl", "-o", "rows.parquet", "--for", "train"]
    command += ["--policies", "robots.warc.gz"]
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", *command],
        cwd=tagged,
        env={**os.environ, "XDG_DATA_HOME": str(tagged / "home")},
    ) as victim:
        names = {path.name for path in tagged.iterdir()}
        while victim.poll() is None and {path.name for path in tagged.iterdir()} == names:
            time.sleep(0.002)  # between two looks for its temporary files
        victim.kill()
    assert victim.returncode == -signal.SIGKILL
    assert not [*tagged.glob("rows.parquet*")]
    assert scrapy(tagged, *command).returncode == 0
    done = scrapy(tagged, "dataset", "repeat", "rows.parquet.croissant.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("rows.parquet is made again with the same octets\n")


@pytest.mark.requirement("AUDIT-3")
def test_the_manifest_says_how_it_was_made(tagged: Path) -> None:
    run = manifest(tagged)["comity:run"]
    assert run["command"][:4] == ["scrapy", "dataset", "tag", "in.warc.gz"]
    assert run["settings"]["COMITY_DEFAULTS"] == "train:allow"
    for member, name in (("inputs", "in.warc.gz"), ("captures", "robots.warc.gz")):
        [fact] = run[member]
        assert Path(fact["name"]).name == name
        assert fact["sha256"] == sha256_of(tagged / name)


@pytest.mark.requirement("AUDIT-3")
@pytest.mark.parametrize(
    ("name", "octets", "said"),
    one_in(
        3,
        [
            ("in.warc.gz", b"other", "input in.warc.gz has changed: its SHA-256 was "),
            ("in.warc.gz", None, "input in.warc.gz is missing\n"),
            ("robots.warc.gz", None, "robots.warc.gz is missing\n"),
        ],
    ),
)
def test_a_file_that_differs(tagged: Path, name: str, octets: bytes | None, said: str) -> None:
    (tagged / name).unlink()
    if octets:
        (tagged / name).write_bytes(octets)
    done = scrapy(tagged, "dataset", "repeat", MANIFEST)
    assert (done.returncode, done.stderr) == (1, "")
    assert said in done.stdout
    assert done.stdout.count("\n") == 1


@pytest.mark.requirement("AUDIT-3")
def test_an_output_that_differs(tagged: Path) -> None:
    described = manifest(tagged)
    described["distribution"][0]["sha256"] = "0" * 64
    (tagged / MANIFEST).write_text(json.dumps(described))
    done = scrapy(tagged, "dataset", "repeat", MANIFEST)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"out.jsonl differs: its SHA-256 was {'0' * 64}, and is " in done.stdout


@pytest.mark.parametrize("mistake", one_in(3, ["cut", "no-run", "member", "moment", "missing"]))
def test_a_manifest_that_cannot_be_used(tagged: Path, mistake: str) -> None:
    path = tagged / MANIFEST
    if mistake == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    elif mistake == "no-run":
        path.write_text("{}")
    elif mistake == "missing":
        path.unlink()
    else:
        change(tagged, **({"inputs": "x"} if mistake == "member" else {"moment": "then"}))
    done = scrapy(tagged, "dataset", "repeat", MANIFEST)
    assert done.returncode == 2
    assert MANIFEST in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("AUDIT-2", "AUDIT-3")
@pytest.mark.parametrize("keeps", one_in(2, [True, False]))
def test_policies_that_were_fetched(serve: Serve, tmp_path: Path, *, keeps: bool) -> None:
    """They are not fetched again: they were kept, or the message says how to keep them."""
    site = serve({"/robots.txt": ROBOTS.decode()})
    write(tmp_path / "in.warc.gz", page(b"<p>Hi", url=site.url("/private/1")))
    settings = ("COMITY_MIN_DELAY=0", "COMITY_STORE=store.sqlite", "COMITY_DEFAULTS=train:allow")
    done = scrapy(
        tmp_path,
        *("dataset", "tag", "in.warc.gz", "-o", "out.jsonl", "--for", "train", "--refresh"),
        *(word for setting in settings for word in ("-s", setting)),
        *(["--keep-policies"] if keeps else []),
    )
    assert done.returncode == 0, done.stderr
    seen = len(site.seen)
    assert seen
    (tmp_path / "store.sqlite").unlink()
    done = scrapy(tmp_path, "dataset", "repeat", MANIFEST)
    if keeps:
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
    else:
        assert done.returncode == 2
        assert done.stderr.endswith("were not kept: tag it again with --keep-policies\n")
    assert len(site.seen) == seen
