"""`comity dataset audit`, as a user calls it: the files, one website, mistakes."""

from __future__ import annotations

import html
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.commands.test_dataset import dataset
from tests.dataset.tagging.archives import page, write
from tests.selection import one_in

DATE = "2024-05-18T01:58:10Z"
ROBOTS = {
    "https://a.test": b"User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /no train-ai=n\n",
    "https://b.test": b"User-agent: *\nContent-Usage: train-ai=y\n",
}
PAGES = [
    *("https://a.test/1", "https://a.test/2", "https://a.test/no/1", "https://b.test/1"),
    *("https://b.test/2", "https://c.test/1"),
]


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    """A set of three websites, one of which has no captured policies."""
    rows = [{"url": url, "date": DATE, "text": url} for url in PAGES]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    plain = (b"Content-Type", b"text/plain")
    captures = [
        page(body, plain, url=f"{site}/robots.txt", WARC_Date=DATE) for site, body in ROBOTS.items()
    ]
    write(tmp_path / "robots.warc", *captures)
    words = ("--for", "train-ai", "--agent", "examplebot", "--policies", "robots.warc")
    done = dataset("tag", "in.jsonl", "-o", "set.jsonl", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "set.jsonl"


def allowed(path: Path) -> list[str]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        one["url"] for one in lines if one["permissions"]["uses"]["train-ai"]["verdict"] == "allow"
    ]


@pytest.mark.requirement("AUDIT-5")
def test_audit(tmp_path: Path, tagged: Path) -> None:
    agent = "COMITY_AGENT=examplebot"
    contact = "USER_AGENT=examplebot/1.0 (+https://bot.example/about)"
    words = ("audit", tagged.name, "-s", agent, "-s", contact)
    done = dataset(*words, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "https://bot.example/about" in text
    done = dataset(*words, "--json", "-", folder=tmp_path)
    audit = json.loads(done.stdout)
    assert audit["contact"] == "https://bot.example/about"
    assert "dataset tag in.jsonl -o set.jsonl --for train-ai" in audit["repeat"]["command"]
    assert audit["repeat"]["command"] in html.unescape(text)
    done = dataset(*shlex.split(audit["repeat"]["check"])[2:], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (audit["set"]["records"], audit["unknown"]["no_policies"]) == (6, 1)
    assert audit["uses"] == [{"use": "train-ai", "allowed": 4, "refused": 2}]
    done = dataset(*words, "--json", "a.json", "-o", "a.html", "--contact", "me", folder=tmp_path)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["a.html", "a.json"]
    assert json.loads((tmp_path / "a.json").read_text())["contact"] == "me"
    done = dataset("audit", tagged.name, "--json", "-", folder=tmp_path)
    assert json.loads(done.stdout)["contact"] == ""  # the address in Scrapy's default is Scrapy's


@pytest.mark.requirement("AUDIT-5")
def test_the_commands_take_out_one_website_and_nothing_else(tmp_path: Path, tagged: Path) -> None:
    words = ("audit", tagged.name, "--origin", "https://a.test/x", "--json", "-")
    done = dataset(*words, folder=tmp_path)
    one: dict[str, Any] = json.loads(done.stdout)["publisher"]
    assert (one["origin"], one["records"]) == ("https://a.test", 3)
    assert [page["url"] for page in one["pages"]] == PAGES[:3]
    echo, command = map(shlex.split, one["commands"])
    assert (echo[0], echo[2]) == ("echo", ">")
    (tmp_path / echo[3]).write_text(f"{echo[1]}\n")
    assert command[:3] == ["comity", "dataset", "expire"]
    done = dataset(*command[2:], "--dry-run", folder=tmp_path)
    assert (done.returncode, allowed(tagged)) == (1, [*PAGES[:2], *PAGES[3:5]])
    done = dataset(*command[2:], folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [f"opt-out\t{url}" for url in PAGES[:3]],
    )
    assert allowed(tagged) == PAGES[3:5]
    done = dataset(*words, folder=tmp_path)
    audit = json.loads(done.stdout)
    assert (audit["publisher"]["records"], audit["set"]["records"]) == (0, 3)


@pytest.mark.requirement("AUDIT-4")
def test_an_opt_out_for_some_uses_removes_nothing(tmp_path: Path, tagged: Path) -> None:
    lines = ["domain,url,uses", "a.test,,search", ",https://b.test/1,*", "nowhere.test,,"]
    (tmp_path / "societies.csv").write_text("\n".join(lines))
    done = dataset("expire", tagged.name, "--opt-out", "societies.csv", folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["opt-out\thttps://b.test/1"])
    before = tagged.read_bytes()
    done = dataset("expire", tagged.name, "--opt-out", "no.csv", folder=tmp_path)
    assert (done.returncode, tagged.read_bytes()) == (2, before)
    assert "no.csv" in done.stderr.splitlines()[-1]


@pytest.mark.requirement("AUDIT-5")
@pytest.mark.parametrize(
    ("words", "message"),
    one_in(
        2,
        [
            (["nowhere.jsonl"], "nowhere.jsonl does not exist"),
            (["in.jsonl"], "in.jsonl.croissant.json, the manifest, does not exist"),
            (["set.jsonl", "-o", "audit.pdf"], "write a name that ends in .html"),
            (["set.jsonl", "--json", "set.jsonl"], "give the audit another name"),
            (["set.jsonl", "--origin", "nothing at all"], "write it like https://example.org"),
        ],
    ),
)
def test_mistakes_in_audit(tmp_path: Path, tagged: Path, words: list[str], message: str) -> None:
    before = tagged.read_bytes()
    done = dataset("audit", *words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()[-1:]
    assert message in line
    assert tagged.read_bytes() == before
    assert not (tmp_path / "audit.html").exists()
