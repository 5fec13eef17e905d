"""Whatever a site, a dataset or a file of another program holds: nothing hidden in it reaches a terminal or a log (SEC-4)."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Loopback, Serve

# Escape sequences, C1, bidi, line ends of Unicode, rich's markup, and what divides keys of statistics.
EVIL = "e\x1b[31m\x9b1m\u202e\u2066\u2028\u0085[red]x[/red]/\u200b\x07"
IN_HOSTS = "a\x1bc\x9b1m\u202ex"  # that no parser of URLs refuses

PAGE = f"""<html><head><title>{EVIL}</title>
<meta name="robots" content="{EVIL}, noarchive, max-snippet:{EVIL}"><meta name="{EVIL}" content="noindex">
<meta name="tdm-reservation" content="{EVIL}"><meta name="tdm-policy" content="/{EVIL}">
<link rel="license" type="application/rsl+xml" href="/{EVIL}.xml">
<script type="application/ld+json">{{"@type": "AutomationPolicyAnnotation", "{EVIL}": "{EVIL}"}}</script></head>
<body><p class="quote">{EVIL}</p><a href="/{EVIL}">a</a><a href="http://{IN_HOSTS}/">b</a>
<a href="/moved">c</a><a href="/private/{EVIL}">d</a><a href="/{IN_HOSTS}">e</a></body></html>"""

ROBOTS = f"""User-agent: *
Disallow: /private/{EVIL}
Disallow: /private/
Usage: {EVIL}=n, ai=n
Content-Usage: {EVIL}
Content-Usage: /{EVIL} train-ai=n
Content-Signal: {EVIL}=no, ai-train=no
License: /{EVIL}.xml
Sitemap: /{EVIL}.xml
Sitemap: http://{IN_HOSTS}/
Crawl-delay: {EVIL}
{EVIL}: {EVIL}

ACAP-crawler: *
ACAP-qualified-usage: {EVIL} index time-limit=until-{EVIL}
ACAP-allow-({EVIL}): /{EVIL}
ACAP-allow-index: /{EVIL} must-include-resource=/{EVIL}
ACAP-allow-index: / must-include-resource=/credit{EVIL}
ACAP-allow-present-snippet: /{EVIL} max-length={EVIL}
ACAP-request-take-down: /{EVIL}
ACAP-permissions-reference: /{EVIL}
"""
AUTOMATION = f"""scope: /
allowed-methods: GET, {EVIL}
allowed-purposes: {EVIL}
{EVIL}: {EVIL}
"""
AI = f"""User-agent: *
  Path: / html
    Element: *
      Disallow: {EVIL} Train
    Element: p.quote {EVIL}
      Disallow: {EVIL}
      Guide: {EVIL} Summarize
        Lang: {EVIL}
        Guideline: {EVIL}
  {EVIL}: {EVIL}
"""
TDMREP = json.dumps(
    [
        {"location": f"/{EVIL}", "tdm-reservation": EVIL, "tdm-policy": f"/{EVIL}"},
        {"location": "/", "tdm-reservation": 1},
        EVIL,
    ]
)
LICENSE = f"""<rsl xmlns="https://rslstandard.org/rsl" {"a"}="1"><content url="{"/[red]"}&#x202E;&#x9B;"><license>
<permits type="usage">&#x202E;&#x9B;&#x2028; search</permits><x&#x9B;/></license></content></rsl>"""


def served(handler: Any) -> None:
    """A page with header fields that no library would write."""
    body = PAGE.encode()
    fields = [
        f"X-Robots-Tag: {EVIL}, noimageindex",
        f"Content-Usage: {EVIL}",
        f"Content-Signal: {EVIL}=no",
        f"tdm-reservation: {EVIL}",
    ]
    fields += [
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        f"Link: </{EVIL}>; rel=license",
    ]
    lines = (line.replace("\x85", "").replace("\u2028", "").encode() for line in fields)
    handler.wfile.write(
        b"HTTP/1.1 200 "
        + b"\x1b[31m\x9b\r\n"
        + b"".join(line + b"\r\n" for line in lines)
        + b"\r\n"
        + body
    )


def moved(handler: Any) -> None:
    handler.wfile.write(
        f"HTTP/1.1 302 {EVIL}\r\nLocation: http://{IN_HOSTS}/\r\nContent-Length: 0\r\n\r\n".encode()
    )


def late(handler: Any) -> None:
    handler.wfile.write(
        f"HTTP/1.1 503 {EVIL}\r\nRetry-After: {EVIL}\r\nContent-Length: 0\r\n\r\n".encode()
    )


@pytest.fixture
def site(serve: Serve) -> Loopback:
    policies = {
        "/robots.txt": ROBOTS,
        "/automation-preferences.txt": AUTOMATION.replace(f"allowed-purposes: {EVIL}\n", ""),
        "/ai.txt": AI,
        "/.well-known/tdmrep.json": TDMREP,
    }
    return serve({**policies, "/": served, "/moved": moved, "/late": late})


def hidden(octets: bytes) -> set[str]:
    """What of them should not be there. Lines of text have ends and tabs."""
    text = octets.decode()
    return {
        char
        for char in text
        if char not in "\r\n\t"
        and unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
    }


Run = Callable[..., tuple[int, bytes]]


@pytest.fixture(params=["pipe", "terminal"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """run("policy", ...): a command, with its exit status and whatever it shows."""

    def piped(command: list[str], environment: dict[str, str]) -> tuple[int, bytes]:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout

    def on_terminal(command: list[str], environment: dict[str, str]) -> tuple[int, bytes]:
        """One that obeys nothing, so that nothing is written to move its cursor or to change its colour."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment | {"TERM": "dumb"}, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = b""
        try:
            while octets := os.read(ours, 65536):
                shown += octets
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return process.wait(), shown

    def run(*words: str) -> tuple[int, bytes]:
        environment = {
            **os.environ,
            "SCRAPY_SETTINGS_MODULE": "comity.crawler.settings",
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        command = [
            sys.executable,
            "-m",
            "scrapy",
            *words,
            "-s",
            "COMITY_STORE=store.sqlite",
            "-s",
            "COMITY_MIN_DELAY=0",
        ]
        return (piped if request.param == "pipe" else on_terminal)(command, environment)

    return run


@pytest.mark.requirement("SEC-4", "USE-15")
@pytest.mark.parametrize(
    "words",
    one_in(
        6,
        [
            ((),),
            (("--json",),),
            (("--prompt", "Train"),),
            (("--prompt", "Summarize", "--lang", "en"),),
            (("--xml",),),
            (("--use", "train"),),
        ],
    ),
)
def test_what_policies_say(site: Loopback, run: Run, words: tuple[str, ...]) -> None:
    status, shown = run("policy", site.url(), *words)
    assert status in (0, 1, 2), (
        shown
    )  # 2: the file that robots.txt refers to by what is no URL cannot be had
    assert b"Traceback" not in shown
    assert len(shown) > 200
    assert hidden(shown) == set(), [line for line in shown.splitlines() if hidden(line)]


@pytest.mark.requirement("SEC-4")
def test_what_files_in_a_folder_say(run: Run, tmp_path: Path) -> None:
    robots = ROBOTS.partition("ACAP-permissions-reference")[0]
    for path, text in {
        "robots.txt": robots,
        "ai.txt": AI,
        "automation-preferences.txt": AUTOMATION,
    }.items():
        (tmp_path / path).write_text(text)
    for words in (["https://example.com/private/", "--offline", "."], ["--xml", "ai.txt"]):
        status, shown = run("policy", *words)
        assert status in (0, 1), shown
        assert hidden(shown) == set(), [line for line in shown.splitlines() if hidden(line)]


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize("level", one_in(2, ["INFO", "DEBUG"]))
def test_what_a_crawl_logs(site: Loopback, run: Run, level: str) -> None:
    status, shown = run(
        "crawl",
        "site",
        "-a",
        f"url={site.url()}",
        "-O",
        "items.jsonl",
        "-s",
        f"LOG_LEVEL={level}",
        "-s",
        "STATS_DUMP=1",
    )
    assert status == 0, shown
    assert b"Crawl finished" in shown
    assert b"Refused <GET " in shown
    assert hidden(shown) == set(), [line for line in shown.splitlines() if hidden(line)]


def dataset(path: Path) -> None:
    """Of somebody who means harm."""
    use = {"verdict": "allow", "stated": True, "because": [0]}
    reason = {
        "rule": "acap.allow",
        "spec": EVIL,
        "url": EVIL,
        "line": 1,
        "text": EVIL,
        "part": EVIL,
    }
    uses = dict.fromkeys(("crawl", "follow", "index", "preserve", "present"), use)
    element = {
        "selector": EVIL,
        "type": "html",
        "deny": [EVIL, "train"],
        "guide": [],
        "spans": [[EVIL]],
        "because": [0],
        "whole": True,
    }
    policies = {EVIL: {"status": 200, "sha256": None, "fetched_at": EVIL}}
    tag = {
        "schema": 1,
        "agent": "bot",
        "uses": uses,
        "elements": [element],
        "reasons": [reason],
        "policies": policies,
    }
    url = f"http://127.0.0.1:1/{EVIL}"
    parts: list[dict[str, Any]] = [
        {},
        {"uses": uses | {"index": {"verdict": "deny", "stated": True, "because": [0]}}},
        {"uses": uses | {EVIL: use}},
        {"agent": EVIL},
        {EVIL: EVIL},
        {"elements": []},
        {"reasons": [reason | {"rule": EVIL}]},
    ]
    records: list[Any] = [{"url": url, EVIL: EVIL, "permissions": tag | part} for part in parts]
    records += [
        {"url": f"http://{IN_HOSTS}/", "permissions": tag},
        {"url": EVIL, "final_url": EVIL},
        [EVIL],
        EVIL,
    ]
    match path.suffix:
        case ".jsonl":
            lines = [*map(json.dumps, records), EVIL, '{"' + EVIL]
            path.write_text("\n".join(line.replace("\x85", "") for line in lines), encoding="utf-8")
        case ".parquet":
            texts = [json.dumps(record) for record in records]
            pq.write_table(
                pa.table({"url": [EVIL] * len(texts), "permissions": texts, EVIL: texts}), path
            )
        case ".warc":
            octets = [
                warc("metadata", "application/json", json.dumps(record).encode())
                for record in records
            ]
            octets.append(
                warc(
                    "response",
                    "application/http",
                    f"HTTP/1.1 200 {EVIL}\r\nContent-Type: {EVIL}\r\n\r\nx".encode(),
                )
            )
            path.write_bytes(b"".join(octets) + EVIL.encode())


def warc(kind: str, content_type: str, block: bytes) -> bytes:
    """A record, with a field that no library would write."""
    uri = f"http://{IN_HOSTS}/{EVIL}"
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Type: {content_type}\r\nContent-Length: {len(block)}"
    return head.encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


COMMANDS = {
    "stats": ("stats", "{}"),
    "stats as JSON": ("stats", "{}", "--json"),
    "diff": ("diff", "{}", "{}"),
    "verify": ("verify", "{}", "--list", "listed.jsonl"),
    "verify as JSON": ("verify", "{}", "--json"),
    "refresh": ("verify", "{}", "--refresh"),
    "export": ("export", "{}", "--for", "index", "-o", "out.jsonl"),
    "expire": ("expire", "{}"),
    "expire, dry": ("expire", "{}", "--dry-run"),
}


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize(
    ("run", "name", "command"),
    one_in(
        6,
        [
            *(("pipe", "data.jsonl", command) for command in COMMANDS),
            *(
                ("pipe", name, command)
                for name in ("data.parquet", "data.warc")
                for command in ("stats", "verify", "export", "expire")
            ),
            *(
                ("terminal", "data.jsonl", command)
                for command in ("stats", "verify", "export", "expire")
            ),
        ],
    ),
    indirect=["run"],
)
def test_what_commands_say_of_datasets(run: Run, tmp_path: Path, command: str, name: str) -> None:
    dataset(tmp_path / name)
    status, shown = run("dataset", *(word.format(name) for word in COMMANDS[command]))
    assert status in (0, 1, 2), shown
    assert b"Traceback" not in shown
    assert shown
    assert hidden(shown) == set(), [line for line in shown.splitlines() if hidden(line)]
