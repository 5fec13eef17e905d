"""`scrapy dataset export|expire|stats`, as a user calls them."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from comity.dataset.sidecar import row
from comity.gate.fetching.store import PolicyStore
from comity.policies import Agent, Fetched, Site, Verdict
from tests.selection import one_in

AGENT = Agent("examplebot", uses=("train-ai",), defaults={"train-ai": Verdict.DENY})
ROBOTS = b"""User-agent: *
Content-Usage: train-ai=y
Content-Usage: /premium/ train-ai=n

ACAP-crawler: *
ACAP-allow-crawl: /
ACAP-allow-index: /brief/ time-limit=1-days
ACAP-allow-index: /news/ time-limit=20-days
"""
# The command as it is found by its entry point, whether the package was installed with it or before it had one.
# The processes that it starts load this file, too, and import nothing by it.
RUN = """
if __name__ == "__main__":
    from scrapy import cmdline
    from comity.crawler.commands.dataset.command import DatasetCommand

    found = cmdline._get_commands_dict
    cmdline._get_commands_dict = lambda *arguments: {**found(*arguments), "dataset": DatasetCommand()}
    cmdline.execute()
"""


# By itself, as `start_new_session` would do: thus it can be forked.
NEW_SESSION = """
if __name__ == "__main__":
    import os
    os.setsid()
"""


def arguments(folder: Path, *words: str) -> list[str]:
    script = folder / "scrapy"
    script.write_text(RUN)
    return [sys.executable, str(script), "dataset", *words]


def dataset(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments(folder, *words),
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "XDG_DATA_HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def record(path: str, fetched_at: datetime) -> dict[str, Any]:
    site = Site.from_files(
        "https://example.com",
        {"/robots.txt": Fetched(status=200, body=ROBOTS, fetched_at=fetched_at)},
    )
    url = f"https://example.com{path}"
    tag = site.page(AGENT, url, now=fetched_at).permissions
    return {
        "url": url,
        "final_url": url,
        "fetched_at": fetched_at.isoformat(),
        "text": f"marker{path}",
        "permissions": tag,
    }


def urls(path: Path) -> list[str]:
    return [
        json.loads(line)["url"].removeprefix("https://example.com")
        for line in path.read_bytes().splitlines()
    ]


@pytest.fixture
def crawled(tmp_path: Path) -> Path:
    """/brief/ was to be indexed for a day, and that is over; /news/ for twenty, which end within the month."""
    path, at = tmp_path / "crawled.jsonl", datetime.now(UTC) - timedelta(days=3)
    paths = ("/brief/1", "/news/1", "/premium/1", "/news/2")
    path.write_text("".join(json.dumps(record(one, at)) + "\n" for one in paths))
    return path


@pytest.mark.requirement("MEET-3")
@pytest.mark.usefixtures("new_processes_in_full")
def test_export(tmp_path: Path, crawled: Path) -> None:
    with crawled.open("a", encoding="utf-8") as file:
        file.write("no record\n")
    done = dataset(
        "export", "crawled.jsonl", "--for", "train-ai,index,", "-o", "out.jsonl", folder=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert urls(tmp_path / "out.jsonl") == ["/news/1", "/news/2"]
    assert "marker/premium" not in (tmp_path / "out.jsonl").read_text()
    words = " ".join(done.stdout.split())
    for said in (
        "2 of 4 records may be used for train-ai, index: out.jsonl",
        "out.jsonl.croissant.json",
        "expired:index 1",
        "1 cannot be read: they are kept in out.jsonl.unreadable.jsonl",
    ):
        assert said in words
    described = json.loads((tmp_path / "out.jsonl.croissant.json").read_bytes())
    assert described["comity:counts"]["exported"] == 2


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_from_and_to_parquet(tmp_path: Path, crawled: Path, workers: str) -> None:
    for source, output in (
        ("crawled.jsonl", "a.parquet"),
        ("a.parquet", "b.parquet"),
        ("b.parquet", "out.jsonl.gz"),
    ):
        done = dataset(
            "export",
            source,
            "--for",
            "train-ai",
            "-o",
            output,
            "--workers",
            workers,
            folder=tmp_path,
        )
        assert (done.returncode, done.stderr) == (0, "")
    done = dataset(
        "export",
        "out.jsonl.gz",
        "b.parquet",
        "--for",
        "train-ai",
        "-o",
        "out.jsonl",
        folder=tmp_path,
    )
    assert done.returncode == 0
    assert urls(tmp_path / "out.jsonl") == ["/brief/1", "/news/1", "/news/2"] * 2


@pytest.mark.requirement("STATE-2")
@pytest.mark.parametrize("ending", one_in(2, [".jsonl", ".parquet"]))
def test_export_of_the_last_fetch_has_no_doubles_of_a_killed_crawl(
    tmp_path: Path, ending: str
) -> None:
    """The killed process has left one of two items of a page; the next process fetched the page again."""
    at = datetime.now(UTC) - timedelta(hours=1)
    later = at + timedelta(milliseconds=1500)
    found = [
        record("/news/1", at),
        record("/news/2", at),
        record("/news/1", later),
        record("/news/1", later) | {"text": "more"},
    ]
    (tmp_path / "crawled.jsonl").write_text("".join(json.dumps(one) + "\n" for one in found))
    all_of_them = dataset(
        "export", "crawled.jsonl", "--for", "train-ai", "-o", f"all{ending}", folder=tmp_path
    )
    assert "4 of 4 records may be used" in all_of_them.stdout
    done = dataset(
        "export",
        f"all{ending}",
        "--for",
        "train-ai",
        "--last-fetch",
        "-o",
        "out.jsonl",
        folder=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert urls(tmp_path / "out.jsonl") == ["/news/2", "/news/1", "/news/1"]
    assert "superseded 1" in " ".join(done.stdout.split())
    done = dataset(
        "export",
        f"all{ending}",
        "--for",
        "train-ai",
        "--last-fetch",
        "-o",
        f"out{ending}",
        folder=tmp_path,
    )
    assert "3 of 4 records may be used" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    one_in(
        6,
        [
            ([], "required: tag|export|ranges|expire|stats|diff|audit|repeat|verify"),
            (["publish"], "invalid choice: 'publish'"),
            (["export", "crawled.jsonl", "-o", "out.jsonl"], "required: --for"),
            (["export", "crawled.jsonl", "--for", "index"], "required: -o"),
            (["export", "--for", "index", "-o", "out.jsonl"], "required: IN"),
            (
                ["export", "crawled.jsonl", "--for", "", "-o", "out.jsonl"],
                "is not the name of a use",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index,,", "-o", "out.jsonl"],
                "is not the name of a use",
            ),
            (
                ["export", "crawled.jsonl", "--for", " , ", "-o", "out.jsonl"],
                "is not the name of a use",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", ""],
                "the name of a dataset is empty: write a path or a URL",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "out"],
                "unknown format of records: write a name that ends in .jsonl",
            ),
            (["expire", ""], "the name of a dataset is empty: write a path or a URL"),
            (
                ["export", "crawled.jsonl", "./crawled.jsonl", "--for", "index", "-o", "out.jsonl"],
                "crawled.jsonl is given twice",
            ),
            (
                ["export", "crawled.jsonl", "--for", "in dex", "-o", "out.jsonl"],
                "`in dex` is not the name of a use",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "out.json"],
                "out.json: unknown format",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "out.warc"],
                "choose .jsonl or .parquet",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "no/out.jsonl"],
                "out.jsonl cannot be written: No such file",
            ),
            (["export", "crawled.jsonl", "--for", "index", "-o", "crawled.jsonl"], "is read from"),
            (
                ["export", "no.jsonl", "--for", "index", "-o", "out.jsonl"],
                "no.jsonl cannot be read: No such file",
            ),
            (
                ["export", ".", "--for", "index", "-o", "out.jsonl"],
                "several formats, and must have one: broken.parquet and crawled.jsonl",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "out.jsonl", "--workers", "0"],
                "not a number of processes: write 1",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "out.jsonl", "--fast"],
                "dataset export knows no `--fast`",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "o.jsonl", "--keep-policies"],
                "dataset export knows no `--keep-policies`: tags have the lines that decided, but not"
                " the policy files. Crawl with -O pages.warc.gz",
            ),
            (["export", "broken.parquet", "--for", "index", "-o", "out.jsonl"], "broken.parquet"),
            (
                ["expire", "crawled.jsonl", "--store", "no.sqlite"],
                "no.sqlite: there is no such file",
            ),
            (["expire", "crawled.jsonl", "--store", "crawled.jsonl"], "crawled.jsonl` "),
            (["stats"], "required: DATASET"),
            (["verify", "crawled.jsonl", "--for", ","], "is not a use"),
            (
                ["verify", "crawled.jsonl", "other.jsonl"],
                "knows no `other.jsonl`: remove it",
            ),
            (["verify", "crawled.jsonl", "--list", "crawled.jsonl"], "crawled.jsonl is read from"),
        ],
    ),
)
def test_wrong_usage(tmp_path: Path, crawled: Path, words: list[str], said: str) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing")
    before = {path.name for path in tmp_path.iterdir()}
    done = dataset(*words, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} - before <= {"scrapy"}


@pytest.mark.parametrize(
    ("use", "hint"), [("trian-ai", "did you mean `train-ai`?"), ("zzz", "COMITY_USES")]
)
def test_a_use_that_no_vocabulary_has(tmp_path: Path, crawled: Path, use: str, hint: str) -> None:
    done = dataset("export", "crawled.jsonl", "--for", use, "-o", "out.jsonl", folder=tmp_path)
    assert done.returncode == 0
    assert f"No vocabulary has a use `{use}`" in done.stderr
    assert hint in done.stderr
    assert urls(tmp_path / "out.jsonl") == []


def test_a_use_of_the_operators_own_vocabulary(tmp_path: Path, crawled: Path) -> None:
    (tmp_path / "own.toml").write_text(
        '[[relation]]\nuses = ["zzz"]\nterms = ["aipref:train-ai"]\nkind = "within"\n'
    )
    done = dataset(
        "export",
        "-s",
        "COMITY_VOCABULARY=own.toml",
        "crawled.jsonl",
        "--for",
        "zzz",
        "-o",
        "o.jl",
        folder=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("new_processes_in_full")
def test_expire(tmp_path: Path, crawled: Path) -> None:
    before = crawled.read_bytes()
    done = dataset("expire", "crawled.jsonl", "--dry-run", folder=tmp_path)
    assert (done.returncode, done.stdout) == (
        0,
        "",
    )  # what may not be indexed may still be trained on
    assert "0 of 4 records would go, 4 stay" in done.stderr
    without: list[dict[str, Any]] = [json.loads(line) for line in before.splitlines()]
    for one in without:
        one["permissions"]["uses"]["train-ai"]["verdict"] = "deny"
    crawled.write_text("".join(json.dumps(one) + "\n" for one in without), encoding="utf-8")
    done = dataset("expire", "crawled.jsonl", "--dry-run", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "expired:index\thttps://example.com/brief/1\n")
    assert len(urls(crawled)) == 4
    done = dataset("expire", "crawled.jsonl", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "expired:index\thttps://example.com/brief/1\n")
    assert urls(crawled) == ["/news/1", "/premium/1", "/news/2"]
    [gone] = map(json.loads, (tmp_path / "crawled.jsonl.expired.jsonl").read_bytes().splitlines())
    assert (gone["url"], gone["why"]) == ("https://example.com/brief/1", "expired:index")
    assert gone["because"][0]["text"] == "ACAP-allow-index: /brief/ time-limit=1-days"


@pytest.mark.requirement("ACAP-43")
def test_take_downs_are_done_when_they_are_gone_from_all_that_is_given(
    tmp_path: Path, crawled: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(crawled.read_bytes())
    path = tmp_path / "policies.sqlite"
    store, at = PolicyStore(path), datetime.now(UTC) - timedelta(hours=1)
    store.requests_action("https://example.com/news/1", "take-down", "aa", at)
    words = ("expire", "crawled.jsonl", "other.jsonl", "--store", "policies.sqlite")
    done = dataset(*words, "--dry-run", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "taken-down\thttps://example.com/news/1\n" * 2)
    assert len(store.take_downs()) == 1
    other.unlink()
    assert dataset(*words, folder=tmp_path).returncode == 2
    assert len(store.take_downs()) == 1
    other.write_bytes(crawled.read_bytes())
    assert dataset(*words, folder=tmp_path).returncode == 0
    assert "/news/1" not in [*urls(crawled), *urls(other)]
    assert store.take_downs() == []
    store.close()


@pytest.mark.requirement("ACAP-43")
def test_take_downs_of_the_store_of_the_crawls(tmp_path: Path, crawled: Path) -> None:
    done = dataset("expire", "crawled.jsonl", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[0] == "No policy store, no take-downs"
    assert not (tmp_path / ".scrapy").exists()
    path = tmp_path / ".scrapy" / "comity" / "policies.sqlite"
    path.parent.mkdir(parents=True)
    store, at = PolicyStore(path), datetime.now(UTC) - timedelta(hours=1)
    store.requests_action("https://example.com/news/1", "take-down", "aa", at)
    (tmp_path / "other.jsonl").write_bytes(crawled.read_bytes())
    for name in (
        "crawled.jsonl",
        "other.jsonl",
    ):  # the second one is known of by nobody when the first one is done
        done = dataset("expire", name, folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, "taken-down\thttps://example.com/news/1\n")
        assert (
            done.stderr.splitlines()[0]
            == "Take-downs that sites request: 1, by .scrapy/comity/policies.sqlite"
        )
        assert "/news/1" not in urls(tmp_path / name)
    PolicyStore(tmp_path / "empty.sqlite").close()
    for words in (["--store", "empty.sqlite"], ["-s", "COMITY_STORE=empty.sqlite"]):
        done = dataset("expire", "crawled.jsonl", *words, folder=tmp_path)
        assert done.stderr.splitlines()[0] == "Take-downs that sites request: 0, by empty.sqlite"
    store.close()


@pytest.mark.parametrize("times", one_in(2, [1, 3000]))
def test_whoever_reads_may_have_enough(tmp_path: Path, crawled: Path, times: int) -> None:
    """The end of the list is not the end of the work, whether it fits into a buffer or not."""
    one = json.loads(crawled.read_bytes().splitlines()[0])
    one["permissions"]["uses"]["train-ai"]["verdict"] = "deny"
    crawled.write_text(f"{json.dumps(one)}\n" * times, encoding="utf-8")
    process = subprocess.Popen(
        arguments(tmp_path, "expire", "crawled.jsonl"),
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=300) == 0
    assert said.splitlines()[-1] == f"{times} of {times} records went, 0 stay"
    assert "Broken pipe" not in said
    assert urls(crawled) == []


@pytest.mark.requirement("AUDIT-5")
def test_diff(tmp_path: Path, crawled: Path) -> None:
    later = [json.loads(line) for line in crawled.read_text(encoding="utf-8").splitlines()]
    closed = Fetched(status=200, body=ROBOTS.replace(b"train-ai=y", b"train-ai=n"))
    for one in later:
        site = Site.from_files("https://example.com", {"/robots.txt": closed})
        one["permissions"] = site.page(AGENT, one["url"]).permissions
    (tmp_path / "later.jsonl").write_text("".join(json.dumps(one) + "\n" for one in later))
    words = ("diff", "crawled.jsonl", "later.jsonl", "--for", "train-ai")
    done = dataset(*words, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[2].split() == ["train-ai", "0", "3", "0", "1"]
    robots = "https://example.com/robots.txt: 3 records, the file changed"
    assert robots in done.stdout.splitlines()
    assert (
        "    - content-usage.allow line 2 `Content-Usage: train-ai=y` -> content-usage.disallow"
        " line 2 `Content-Usage: train-ai=n`" in done.stdout.splitlines()
    )
    done = dataset(*words, "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    [file] = json.loads(done.stdout)["files"]
    assert (file["policy_url"], file["change"], file["records"]) == (
        "https://example.com/robots.txt",
        "changed",
        3,
    )
    done = dataset("diff", "crawled.jsonl", "crawled.jsonl", folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        "4 records compared, 0 gained or lost a use",
    )


@pytest.mark.requirement("AUDIT-5")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["crawled.jsonl"], "required: NEW"),
        (["crawled.jsonl", "nowhere.jsonl"], "nowhere.jsonl"),
        (["crawled.jsonl", "cut.parquet"], "cut.parquet"),
        (["crawled.jsonl", "crawled.jsonl", "--top", "0"], "write 1 or more"),
    ],
)
def test_mistakes_in_diff(tmp_path: Path, crawled: Path, words: list[str], message: str) -> None:
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no end")
    done = dataset("diff", *words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[-1]


def test_stats(tmp_path: Path, crawled: Path) -> None:
    done = dataset("stats", "crawled.jsonl", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["train-ai", "3", "1", "0"] in rows
    assert ["index", "2", "2", "2"] in rows
    [refusal] = [row for row in rows if row[:1] == ["content-usage.disallow"]]
    assert refusal[-1] == "1"
    [place] = [row for row in rows if row[:1] == ["https://example.com"]]
    assert place[1:3] == ["4", "3"]
    done = dataset("stats", "crawled.jsonl", "--json", folder=tmp_path)
    told = json.loads(done.stdout)
    assert (told["records"], told["origins"]) == (4, 1)
    assert {"use": "train-ai", "allowed": 3, "refused": 1, "expiring": 0} in told["rows"]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["crawled.jsonl", "scrapy"]


def test_stats_of_many_origins_are_short(tmp_path: Path) -> None:
    at, sites = datetime.now(UTC), [f"https://{number}.example" for number in range(30)]
    with (tmp_path / "crawled.jsonl").open("w") as file:
        for number, site in enumerate(sites):
            one = json.dumps(record("/news/1", at) | {"final_url": f"{site}/", "url": f"{site}/"})
            file.write(f"{one}\n" * (2 if number == 7 else 1))
    lines = dataset("stats", "crawled.jsonl", folder=tmp_path).stdout.splitlines()
    assert len(lines) < 40
    head = lines.index("The largest origins")
    assert lines[head + 2].split()[:2] == [sites[7], "2"]
    assert lines[head + 7] == "5 of 30 origins: --by origin shows more"
    words = ("stats", "crawled.jsonl", "--by", "origin", "--for", "index", "--top", "3")
    lines = dataset(*words, folder=tmp_path).stdout.splitlines()
    assert [line.split() for line in lines[1:5]] == [
        ["origin", "use", "may", "be", "used", "may", "not", "ends", "in", "30", "days"],
        [sites[7], "index", "2", "0", "2"],
        [sites[0], "index", "1", "0", "1"],
        [sites[1], "index", "1", "0", "1"],
    ]
    assert lines[5:] == [
        "3 of 30 origins: --top N shows more, -o FILE writes all",
        "31 records of 30 origins, 0 that cannot be read",
    ]
    for by, first in (("rule", "acap.allow"), ("month", f"{at:%Y-%m}")):
        lines = dataset(
            "stats", "crawled.jsonl", "--for", "index", "--by", by, folder=tmp_path
        ).stdout.splitlines()
        assert lines[2].split() == [first, "index", "31", "0", "31"]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.json"])
def test_stats_into_a_file(tmp_path: Path, crawled: Path, name: str) -> None:
    words = ("stats", "crawled.jsonl", "--by", "origin", "--for", "index,train-ai", "-o", name)
    done = dataset(*words, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    out = tmp_path / name
    if name.endswith(".parquet"):
        rows = pq.read_table(out).to_pylist()
    elif name.endswith(".csv"):
        with out.open(newline="") as file:
            rows = [
                {key: int(value) if value.isdigit() else value for key, value in row.items()}
                for row in csv.DictReader(file)
            ]
    else:
        rows = json.loads(out.read_bytes())["rows"]
    assert rows == [
        {
            "origin": "https://example.com",
            "use": "index",
            "allowed": 2,
            "refused": 2,
            "expiring": 2,
        },
        {
            "origin": "https://example.com",
            "use": "train-ai",
            "allowed": 3,
            "refused": 1,
            "expiring": 0,
        },
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    one_in(
        2,
        [
            (
                ["-o", "out.txt"],
                "out.txt: unknown format: write a name that ends in .parquet, .csv, .json",
            ),
            (["-o", "crawled.json"], "crawled.json is read from: give the counts another name"),
            (["-o", "gone/out.csv"], "gone/out.csv cannot be written: No such file or directory"),
            (["--by", "host"], "invalid choice: 'host'"),
            (["--top", "0"], "`0` is not a number of rows: write 1 or more"),
        ],
    ),
)
def test_mistakes_in_stats(tmp_path: Path, crawled: Path, words: list[str], message: str) -> None:
    (tmp_path / "crawled.json").symlink_to(crawled)
    before = crawled.read_bytes()
    done = dataset("stats", "crawled.jsonl", *words, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert crawled.read_bytes() == before


def test_what_is_hostile_is_shown_as_text(tmp_path: Path) -> None:
    one = record("/news/1", datetime.now(UTC))
    one["url"] = one["final_url"] = "https://[red]evil\x1b[2J.test/"
    (tmp_path / "a.jsonl").write_text(
        json.dumps(one) + "\n" + json.dumps({"url": one["url"]}) + "\n"
    )
    for words in (["stats", "a.jsonl"], ["expire", "a.jsonl"]):
        done = dataset(*words, folder=tmp_path)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_ctrl_c(tmp_path: Path, crawled: Path, workers: str) -> None:
    out, big = tmp_path / "out.jsonl", tmp_path / "big.jsonl.gz"
    out.write_text("old\n")
    big.write_bytes(
        gzip.compress(crawled.read_bytes() * 1000) * 30
    )  # what takes long to read takes no time to write
    words = ("export", "big.jsonl.gz", "--for", "train-ai", "-o", "out.jsonl", "--workers", workers)
    command = arguments(tmp_path, *words)
    (tmp_path / "scrapy").write_text(f"{NEW_SESSION}{RUN}")
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    give_up = time.monotonic() + 60
    part = tmp_path / ".out.jsonl.part"
    while not (part.exists() and part.stat().st_size):
        assert time.monotonic() < give_up
        assert process.poll() is None
        time.sleep(0.01)  # between two looks at another process
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of it
    stdout, stderr = process.communicate(timeout=300)  # which ends when all of them have
    assert (process.returncode, stdout, stderr) == (
        130,
        "",
        "Interrupted: the output files are as before.\n",
    )
    assert out.read_text() == "old\n"
    assert not part.exists()


def test_help_says_the_exit_statuses(tmp_path: Path) -> None:
    done = dataset("--help", folder=tmp_path)
    words = " ".join(done.stdout.split())
    for said in (
        "export",
        "expire",
        "stats",
        "diff",
        "verify",
        "Exit status: 0",
        "130 interrupted",
    ):
        assert said in words


# Where the tags are, and what to do where nobody refused


def moved(crawled: Path, field: str) -> None:
    """The tags into another field, and data of the items' own in their place."""
    records = [json.loads(line) for line in crawled.read_text(encoding="utf-8").splitlines()]
    lines = [json.dumps(one | {field: one["permissions"], "permissions": "rw-"}) for one in records]
    crawled.write_text("\n".join(lines), encoding="utf-8")


ACTIONS = (
    ["stats"],
    ["export", "--for", "train-ai", "-o", "out.jsonl"],
    ["expire", "--dry-run"],
    ["verify"],
)


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("words", one_in(3, [["--tag", "rights"], ["-s", "COMITY_TAG=rights"], []]))
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action[0])
def test_tags_in_another_field(
    tmp_path: Path, crawled: Path, words: list[str], action: list[str]
) -> None:
    moved(crawled, "rights")
    done = dataset(*action[:1], "crawled.jsonl", *action[1:], *words, folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "no-tag" not in done.stdout + done.stderr
    wrong = dataset(
        *action[:1], "crawled.jsonl", *action[1:], "--tag", "elsewhere", folder=tmp_path
    )
    assert "no-tag" in wrong.stdout + wrong.stderr


@pytest.mark.parametrize("how", one_in(2, ["option", "setting"]))
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action[0])
def test_tags_in_a_file_of_their_own(
    tmp_path: Path, crawled: Path, how: str, action: list[str]
) -> None:
    records = [json.loads(line) for line in crawled.read_text(encoding="utf-8").splitlines()]
    tags = [(record.pop("permissions"), record) for record in records]
    (tmp_path / "tags.jsonl").write_bytes(
        b"".join(row(record, record["url"], tag) for tag, record in tags)
    )
    crawled.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    words = (
        ["--tag", "sidecar:tags.jsonl"]
        if how == "option"
        else ["-s", "COMITY_TAG=sidecar:tags.jsonl"]
    )
    done = dataset(*action[:1], "crawled.jsonl", *action[1:], *words, folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "no-tag" not in done.stdout + done.stderr
    without = dataset(*action[:1], "crawled.jsonl", *action[1:], folder=tmp_path)
    assert "no-tag" in without.stdout + without.stderr


@pytest.mark.parametrize(
    "words",
    one_in(
        2,
        [
            ["export", "crawled.jsonl", "--for", "index", "-o", "tags.jsonl"],
            ["export", "crawled.jsonl", "--for", "index", "-o", "link.jsonl"],
            ["export", "folder", "--for", "index", "-o", "out/"],
            ["verify", "crawled.jsonl", "--list", "tags.jsonl"],
            ["verify", "crawled.jsonl", "--list", "link.jsonl"],
        ],
    ),
)
def test_tags_in_a_file_of_their_own_are_not_written_over(
    tmp_path: Path, crawled: Path, words: list[str]
) -> None:
    record = json.loads(crawled.read_text(encoding="utf-8").splitlines()[0])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.jsonl").write_bytes(crawled.read_bytes())
    (tmp_path / "out").mkdir()
    sidecar = tmp_path / ("out/a.jsonl" if "folder" in words else "tags.jsonl")
    sidecar.write_bytes(row(record, record["url"], record.pop("permissions")))
    (tmp_path / "link.jsonl").symlink_to(sidecar)
    before = sidecar.read_bytes()
    done = dataset(*words, "--tag", f"sidecar:{sidecar}", folder=tmp_path)
    assert done.returncode == 2
    assert "is read from: give the" in done.stderr
    assert sidecar.read_bytes() == before


@pytest.mark.parametrize(
    ("tag", "said"),
    one_in(
        3,
        [
            ("off", "--tag `off` is not a place: without tags nothing is permitted"),
            ("a b", "--tag `a b` is not a place for the tag of an item: write the name of a field"),
            ("sidecar:", "names no file: write sidecar:permissions.jsonl"),
            ("sidecar:no.jsonl", "no.jsonl cannot be read: No such file"),
            (
                "sidecar:s3://bucket/tags.jsonl",
                "names no file on this machine: write --tag sidecar:FILE",
            ),
            ("sidecar:%(name)s.jsonl", "names no file on this machine: write --tag sidecar:FILE"),
        ],
    ),
)
@pytest.mark.parametrize("action", [ACTIONS[0], ACTIONS[3]], ids=lambda action: action[0])
def test_tags_nowhere(
    tmp_path: Path, crawled: Path, tag: str, said: str, action: list[str]
) -> None:
    done = dataset(*action, "crawled.jsonl", "--tag", tag, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.requirement("MEET-3")
def test_a_dataset_that_something_else_has_changed(tmp_path: Path, crawled: Path) -> None:
    dataset("export", "crawled.jsonl", "--for", "train", "-o", "out.jsonl", folder=tmp_path)
    with (tmp_path / "out.jsonl").open("ab") as file:
        file.write(b"\n")
    message = "out.jsonl differs from its manifest: another program has changed it"
    for words in (
        ["export", "out.jsonl", "--for", "train", "-o", "again.jsonl"],
        ["expire", "out.jsonl", "--dry-run"],
    ):
        assert message in dataset(*words, folder=tmp_path).stderr
    verified = dataset("verify", "out.jsonl", folder=tmp_path)
    assert verified.returncode == 1
    assert message in " ".join(verified.stdout.split())
    assert json.loads(dataset("verify", "out.jsonl", "--json", folder=tmp_path).stdout)[
        "altered"
    ] == ["out.jsonl"]


def test_a_dataset_without_tags_is_left_as_it_is(tmp_path: Path, crawled: Path) -> None:
    """Or a wrong --tag would empty it."""
    moved(crawled, "rights")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = dataset("expire", "crawled.jsonl", "--tag", "elsewhere", folder=tmp_path)
    assert done.returncode == 2
    assert (
        "no record has a tag, and all would go, so nothing has changed: name the place of the tags with --tag"
        in done.stderr
    )
    assert {
        path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before
    } == before
    assert {path.name for path in tmp_path.iterdir()} - {"scrapy"} == before.keys()


@pytest.mark.requirement("MEET-3")
def test_silence_is_judged_anew(tmp_path: Path, crawled: Path) -> None:
    """/premium/ and the others say nothing of `preserve`; of `train` no tag speaks, which is another thing."""
    refused = dataset(
        "export", "crawled.jsonl", "--for", "preserve,train-ai", "-o", "out.jsonl", folder=tmp_path
    )
    words = " ".join(refused.stdout.split())
    assert "0 of 4 records" in words
    assert "--default preserve:allow,train-ai:allow permits it now" in words
    done = dataset(
        *(
            "export",
            "crawled.jsonl",
            "--for",
            "preserve,train-ai",
            "-o",
            "out.jsonl",
            "--default",
            "preserve:allow",
        ),
        folder=tmp_path,
    )
    assert urls(tmp_path / "out.jsonl") == [
        "/brief/1",
        "/news/1",
        "/news/2",
    ]  # the refusal of /premium/ stands
    described = json.loads((tmp_path / "out.jsonl.croissant.json").read_bytes())
    assert described["comity:defaults"] == {"preserve": "allow"}
    assert "permits it now" not in done.stdout
    [tag, *_] = (
        json.loads(line)["permissions"]
        for line in (tmp_path / "out.jsonl").read_text().splitlines()
    )
    assert tag["uses"]["preserve"] == {
        "verdict": "allow",
        "stated": False,
        "because": [len(tag["reasons"]) - 1],
    }
    assert (tag["reasons"][-1]["url"], tag["reasons"][-1]["text"]) == (
        "--default",
        "preserve: allow",
    )
    for default in ("train:allow", "other:allow"):
        other = dataset(
            *(
                "export",
                "crawled.jsonl",
                "--for",
                default.partition(":")[0],
                "-o",
                "out.jsonl",
                "--default",
                default,
            ),
            folder=tmp_path,
        )
        assert "0 of 4 records" in other.stdout
        assert (
            f'no tag has this use; crawl with COMITY_USES = "{default.partition(":")[0]}"'
            in other.stdout
        )


@pytest.mark.parametrize(
    "default", ["index", "index:perhaps", "index:allow,index:deny", "in dex:allow"]
)
def test_defaults_that_make_no_sense(tmp_path: Path, crawled: Path, default: str) -> None:
    done = dataset(
        "export",
        "crawled.jsonl",
        "--for",
        "index",
        "-o",
        "out.jsonl",
        "--default",
        default,
        folder=tmp_path,
    )
    assert done.returncode == 2
    assert "--default `" in done.stderr


def test_a_row_of_a_table_is_a_line_for_programs(tmp_path: Path) -> None:
    """Whatever the terminal is that they were started from."""
    at, host = datetime.now(UTC), f"{'very-' * 30}long.example"
    one = record("/news/1", at)
    one["final_url"] = one["url"] = f"https://{host}/{'a' * 300}"
    (tmp_path / "crawled.jsonl").write_text(json.dumps(one) + "\n")
    words = ("stats", "crawled.jsonl", "--by", "origin")
    done = dataset(*words, folder=tmp_path, COLUMNS="40", FORCE_COLOR="1", TERM="xterm-256color")
    lines = done.stdout.splitlines()
    assert [line.split() for line in lines if host in line] == [
        [f"https://{host}", "crawl", "1", "0", "0"]
    ]
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in done.stdout
    output = f"{'b' * 150}.jsonl"
    done = dataset(
        "export", "crawled.jsonl", "--for", "train-ai", "-o", output, folder=tmp_path, COLUMNS="40"
    )
    assert f"1 of 1 records may be used for train-ai: {output}" in done.stdout.splitlines()


@pytest.mark.requirement("REACH-5")
def test_folders(tmp_path: Path, crawled: Path, *, in_full: bool) -> None:
    """From a folder to a folder, with --all by new processes; then all commands on what came out."""
    (tmp_path / "in").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "in" / name).write_bytes(crawled.read_bytes())
    workers = "2" if in_full else "1"
    words = ["--for", "train-ai", "--executor", "processes", "--workers", workers]
    done = dataset("export", "in", *words, "-o", "out/", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "6 of 8 records may be used for train-ai: out/" in said
    assert "Its manifest: out.croissant.json" in said
    for name in ("a.jsonl", "b.jsonl"):
        assert urls(tmp_path / "out" / name) == ["/brief/1", "/news/1", "/news/2"]
    counted = json.loads(dataset("stats", "out", "--json", folder=tmp_path).stdout)
    assert counted["records"] == 6
    expired = dataset("expire", "out", folder=tmp_path)
    assert expired.returncode == 0
    assert "0 of 6 records went, 6 stay" in " ".join(expired.stderr.split())
    verified = json.loads(dataset("verify", "out", "--json", folder=tmp_path).stdout)
    assert (verified["records"], verified["unknown"]) == (6, 6)


@pytest.mark.parametrize(
    ("words", "said"),
    one_in(
        2,
        [
            (
                [
                    "export",
                    "crawled.jsonl",
                    "--for",
                    "index",
                    "-o",
                    "o.jsonl",
                    "--ending",
                    ".parquet",
                ],
                "o.jsonl is one file",
            ),
            (
                ["export", "empty", "--for", "index", "-o", "o/"],
                "there are no files of records in this folder",
            ),
            (
                ["export", "crawled.jsonl", "--for", "index", "-o", "."],
                "is read from: give the output another name",
            ),
            (["stats", "nonsense://bucket/in"], "nonsense://bucket/in cannot be opened"),
            (["stats", "crawled.jsonl", "--executor", "hadoop"], "invalid choice"),
        ],
    ),
)
def test_folders_that_cannot_be(tmp_path: Path, crawled: Path, words: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    done = dataset(*words, folder=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
