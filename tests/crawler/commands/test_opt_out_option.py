"""`--opt-out` of `scrapy dataset tag` and `scrapy policy`, as a user calls them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comity.policies.formats import WELL_KNOWN
from tests.crawler.commands.running import scrapy
from tests.dataset.tagging.archives import http, page, record, write
from tests.selection import one_in

pytestmark = pytest.mark.requirement("AUDIT-4")

PLAIN = (b"Content-Type", b"text/plain")
DATES = {"WARC_Date": "2024-05-18T02:00:00Z"}
SITES = ("https://a.example", "https://b.example")
WORK = b"<p>a work"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with pages of two sites that permit everything, and their policy files."""
    files = {"/robots.txt": b"User-agent: *\nAllow: /\n"}
    missing = [path for path in WELL_KNOWN if path not in files]
    write(
        tmp_path / "robots.warc.gz",
        *(
            record("response", http(body, PLAIN), site + path)
            for site in SITES
            for path, body in files.items()
        ),
        *(
            record("response", http(b"", PLAIN, status="404 Not Found"), site + path)
            for site in SITES
            for path in missing
        ),
    )
    write(
        tmp_path / "pages.warc.gz",
        *(page(b"<p>x", url=f"{site}/{name}", **DATES) for site in SITES for name in "xy"),
        page(WORK, url="https://b.example/work", **DATES),
    )
    return tmp_path


def tag(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    settings = ("-s", "COMITY_DEFAULTS=train:allow", "-s", "COMITY_STORE=policies.sqlite")
    common = ("--for", "train", "--policies", "robots.warc.gz")
    return scrapy(folder, "dataset", "tag", *settings, *words, *common)


def verdicts(path: Path) -> dict[str, str]:
    tags = {}
    for line in path.read_bytes().splitlines():
        one = json.loads(line)
        tags[one["url"].removeprefix("https://")] = one["permissions"]["uses"]["train"]["verdict"]
    return tags


def test_records_of_entries_are_refused(folder: Path) -> None:
    """A domain, a URL and a work in two registries; the manifest has their hashes."""
    csv = "domain,source,date\na.example,https://reg.example/,2026-01-05\n"
    (folder / "one.csv").write_text(csv)
    (folder / "two.txt").write_text(f"https://b.example/x\n{hashlib.sha256(WORK).hexdigest()}\n")
    done = tag(
        folder, "pages.warc.gz", "-o", "o.jsonl", "--opt-out", "one.csv", "--opt-out", "two.txt"
    )
    assert done.returncode == 0, done.stderr
    assert verdicts(folder / "o.jsonl") == {
        "a.example/x": "deny",
        "a.example/y": "deny",
        "b.example/x": "deny",
        "b.example/y": "allow",
        "b.example/work": "deny",
    }
    assert "train: deny: registry.opt-out" in done.stdout
    first = json.loads((folder / "o.jsonl").read_bytes().splitlines()[0])["permissions"]
    reason = first["reasons"][first["uses"]["train"]["because"][0]]
    assert (reason["rule"], reason["url"], reason["line"], reason["text"]) == (
        "registry.opt-out",
        "one.csv",
        2,
        "a.example (https://reg.example/, 2026-01-05)",
    )
    described = json.loads((folder / "o.jsonl.croissant.json").read_bytes())
    assert described["comity:tagged"]["registries"] == [
        {"name": "one.csv", "sha256": hashlib.sha256(csv.encode()).hexdigest(), "entries": 1},
        {
            "name": "two.txt",
            "sha256": hashlib.sha256((folder / "two.txt").read_bytes()).hexdigest(),
            "entries": 2,
        },
    ]


def test_tables_are_looked_up_by_url_and_hash(folder: Path) -> None:
    """The hash is in the column `sha256`, or in the column that an option names."""
    (folder / "two.txt").write_text(f"https://b.example/x\n{hashlib.sha256(WORK).hexdigest()}\n")
    hashes = [hashlib.sha256(body).hexdigest() for body in (b"x", b"y", WORK, WORK)]
    urls = [f"https://b.example/{name}" for name in ("x", "y", "z", "z")]
    for option, column in (((), "sha256"), (("--sha256-field", "digest"), "digest")):
        table = pa.table({"url": urls, "date": ["2024-05-20"] * 4, column: hashes})
        pq.write_table(table, folder / "in.parquet")
        done = tag(folder, "in.parquet", "-o", "o.jsonl", "--opt-out", "two.txt", *option)
        assert done.returncode == 0, done.stderr
        assert verdicts(folder / "o.jsonl") == {
            "b.example/x": "deny",
            "b.example/y": "allow",
            "b.example/z": "deny",
        }
    rows = [
        {"url": url, "date": "2024-05-20", "sha256": hash_}
        for url, hash_ in zip(urls, hashes, strict=True)
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert tag(folder, "in.jsonl", "-o", "p.jsonl", "--opt-out", "two.txt").returncode == 0
    assert verdicts(folder / "p.jsonl") == verdicts(folder / "o.jsonl")


@pytest.mark.requirement("IMG-1")
def test_images_of_warc_files_are_tagged_by_their_metadata(folder: Path) -> None:
    files = Path(__file__).parents[2] / "policies" / "formats" / "plus" / "files"
    write(
        folder / "images.warc.gz",
        *(
            record(
                "response",
                http((files / name).read_bytes(), (b"Content-Type", b"image/jpeg")),
                f"https://a.example/{name}",
                **DATES,
            )
            for name in ("training.jpg", "allowed.jpg")
        ),
    )
    done = tag(folder, "images.warc.gz", "-o", "o.jsonl")
    assert done.returncode == 0, done.stderr
    assert verdicts(folder / "o.jsonl") == {
        "a.example/training.jpg": "deny",
        "a.example/allowed.jpg": "allow",
    }
    assert "train: deny: plus.prohibited" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    one_in(
        3,
        [
            ("a.example\ncom\n", "registry `list.txt`, line 2: `com` is a public suffix"),
            (None, "registry `list.txt` cannot be read: No such file or directory: name a file of"),
            ("", "registry `list.txt` has no entries: name another file, or leave it out"),
        ],
    ),
)
def test_nothing_is_tagged_with_a_registry_that_cannot_be_understood(
    folder: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (folder / "list.txt").write_text(text)
    (folder / "o.jsonl").write_text("{}\n")
    done = tag(folder, "pages.warc.gz", "-o", "o.jsonl", "--opt-out", "list.txt")
    assert done.returncode == 2
    assert message in done.stderr
    assert (folder / "o.jsonl").read_text() == "{}\n"
    assert not (folder / "o.jsonl.croissant.json").exists()


def test_policy_names_the_entry(tmp_path: Path) -> None:
    """The registries of the setting and of the option count together."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "robots.txt").write_text("User-agent: *\nAllow: /\n")
    (tmp_path / "one.txt").write_text("# list\na.example\n")
    (tmp_path / "two.jsonl").write_text('{"domain": "b.example", "uses": ["train"]}\n')
    words = ("-s", "COMITY_OPT_OUT=one.txt", "--opt-out", "two.jsonl", "--offline", "site")
    done = scrapy(tmp_path, "policy", *words, "https://www.a.example/")
    assert done.returncode == 1
    assert "one.txt:2: a.example" in done.stdout
    done = scrapy(tmp_path, "policy", *words, "--json", "--use", "train", "https://b.example/")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    train = told["uses"]["train"]
    assert (train["verdict"], train["reasons"][0]["rule"]) == ("deny", "registry.opt-out")
    octets = (tmp_path / "two.jsonl").read_bytes()
    assert train["reasons"][0]["sha256"] == hashlib.sha256(octets).hexdigest()
