"""`scrapy policy` and `scrapy demo`, as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from comity.policies.formats import WELL_KNOWN
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = b"""User-agent: *
Disallow: /a
Allow: /a/b
Crawl-delay: 2
Request-rate: 9/9 0800-1230
Request-rate: 1/4
Sitemap: https://example.com/s.xml
Disalow: /typo

User-agent: otherbot
Disallow: /
"""


def scrapy(
    *arguments: str, folder: Path, program: tuple[str, str] = ("-m", "scrapy"), **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "robots.txt").write_bytes(ROBOTS)
    return folder


@pytest.mark.requirement("WHY-1", "WHY-2")
def test_json_has_everything(offline: Path, tmp_path: Path) -> None:
    done = scrapy(
        "policy",
        "https://example.com/a/b",
        "--offline",
        str(offline),
        "--json",
        "--use",
        "index",
        folder=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["verdict"] == "allow"
    [reason] = told["reasons"]
    assert (reason["rule"], reason["line"], reason["text"]) == ("robots.allow", 3, "Allow: /a/b")
    assert reason["spec"] == "RFC 9309 section-2.2.2"
    assert len(reason["sha256"]) == 64
    assert reason["fetched_at"]
    assert [(lost["rule"], lost["line"]) for lost in told["overruled"]] == [("robots.disallow", 2)]
    assert told["uses"]["index"]["stated"] is False
    assert told["rates"]["crawl_delay"] == 2
    assert told["rates"]["request_rates"] == [
        {"requests": 1, "seconds": 4, "hours": None},
        {"requests": 9, "seconds": 9, "hours": "08:00-12:30"},
    ]
    assert told["sitemaps"] == ["https://example.com/s.xml"]
    assert [(finding["rule"], finding["line"]) for finding in told["findings"]] == [
        ("robots.misspelled", 8)
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    one_in(
        3,
        [
            (
                ["https://example.com/a"],
                1,
                ["DENY", "robots.disallow", "/robots.txt:2: Disallow: /a"],
            ),
            (
                ["example.com/a/b"],
                0,
                [
                    "ALLOW",
                    "Allow: /a/b",
                    "Disallow: /a",
                    "2 s between requests",
                    "1 requests in 4 s",
                    "08:00-12:30 UTC",
                ],
            ),
            (
                ["https://example.com/a/b", "--agent", "otherbot"],
                1,
                ["DENY", "Disallow: /", "otherbot"],
            ),
        ],
    ),
)
def test_people_read_a_table(
    offline: Path, tmp_path: Path, arguments: list[str], status: int, words: list[str]
) -> None:
    done = scrapy("policy", *arguments, "--all", "--offline", str(offline), folder=tmp_path)
    assert done.returncode == status
    assert [word for word in words if word not in done.stdout] == []
    assert done.stderr == ""


ANSWERED = b"""User-agent: *
Content-Usage: train-ai=n
Crawl-delay: 2
ACAP-crawler: *
ACAP-allow-crawl: /a
ACAP-allow-index: / time-limit=until-recrawled
ACAP-allow-preserve: / time-limit=until-2999-12-31
ACAP-allow-present-snippet: / max-length=9-words
"""
FIRST_SCREEN = """
ALLOW  https://example.com/a  for comitybot
acap.allow (ACAP 1.0 section-2.4.1)
https://example.com/robots.txt:5: ACAP-allow-crawl: /a

Answers
may comitybot              answer  for how long                limits       where          why
fetch it                   allow                                            /robots.txt:5  ACAP-allow-crawl: /a
follow its links           allow                                                           not stated: follow: allow
put it into an index       allow   until it is fetched again                /robots.txt:6  ACAP-allow-index: / time-limit=until-recrawled
show it in search results  deny                                                            not stated: no default for search
show snippets of it        allow                               max_words 9  /robots.txt:8  ACAP-allow-present-snippet: / max-length=9-words
show all of it to others   deny                                                            not stated: no default for present
train AI with it           deny                                             /robots.txt:2  Content-Usage: train-ai=n (content-usage.disallow)
have AI answer from it     deny                                                            not stated: no default for ai-input
keep it in an archive      allow   until 2999-12-31 23:59 UTC               /robots.txt:7  ACAP-allow-preserve: / time-limit=until-2999-12-31
mine it for text and data  deny                                             /robots.txt:2  Content-Usage: train-ai=n (content-usage.disallow)
use it for indexing        deny                                                            not stated: no default for indexing
How often
asked        value                 where  remark
Crawl-delay  2 s between requests
--all adds 8 uses by name, 6 files.
"""


@pytest.mark.requirement("WHY-1", "WHY-2")
def test_the_first_screen_answers(offline: Path, tmp_path: Path) -> None:
    (offline / "robots.txt").write_bytes(ANSWERED)
    words = ("policy", "https://example.com/a", "--offline", str(offline), "--use", "indexing")
    done = scrapy(*words, "--use", "index", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == FIRST_SCREEN.lstrip("\n")


@pytest.mark.requirement("WHY-1", "WHY-2")
def test_a_page_that_may_not_be_fetched_has_no_links_to_follow(
    offline: Path, tmp_path: Path
) -> None:
    done = scrapy("policy", "https://example.com/a", "--offline", str(offline), folder=tmp_path)
    assert "follow its links" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[3] == "The answers below `fetch it` are about copies of the page that others have."
    assert lines[6] == "may comitybot              answer  for how long  limits  where          why"
    assert lines[8].startswith("put it into an index ")


@pytest.mark.requirement("WHY-1", "WHY-2")
def test_a_refusal_by_a_line_that_allows_names_its_rule(offline: Path, tmp_path: Path) -> None:
    line = "ACAP-allow-index: / time-limit=3-days"
    (offline / "robots.txt").write_text(f"User-agent: *\nACAP-crawler: *\n{line} x=y\n")
    command = ("policy", "https://example.com/b", "--offline", str(offline))
    told = json.loads(scrapy(*command, "--json", folder=tmp_path).stdout)
    [answer] = [answer for answer in told["answers"] if answer["use"] == "index"]
    shown = scrapy(*command, folder=tmp_path).stdout
    [row] = [row for row in shown.splitlines() if row.startswith("put it into an index ")]
    assert answer["verdict"] == "deny"
    assert row.endswith(f"{line} x=y ({answer['reasons'][0]['rule']})")


@pytest.mark.requirement("WHY-1")
def test_other_readers_are_named_where_they_differ(offline: Path, tmp_path: Path) -> None:
    (offline / "robots.txt").write_bytes(
        b"User-agent: mybot\nContent-Usage: train-ai=n\nUser-agent: q\nDisallow: /a\n"
    )
    command = ("policy", "--agent", "mybot", "--offline", str(offline))
    differing = scrapy(*command, "https://example.com/a", folder=tmp_path)
    assert differing.stdout.splitlines()[3] == (
        "Scrapy by itself would fetch this: it ends a group, or its list of agents, at lines that are not rules"
    )
    agreeing = scrapy(*command, "https://example.com/b", folder=tmp_path)
    assert " fetch this" not in agreeing.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    one_in(
        3,
        [
            ([], "scrapy policy: write one URL: `scrapy policy https://example.com/`\n"),
            (["ftp://example.com/"], "is not an http or https URL"),
            (["https://example.com/", "--agent", "two words"], "is not a product token"),
            (["mailto:x@y.z"], "`mailto:x@y.z` is not an http or https URL: write `https://y.z`"),
            (["http//typo"], "`http//typo` is not an http or https URL: write `http://typo`"),
            (
                ["history", "http//typo", "--policies", "."],
                "`http//typo` is not an http or https URL: write `http://typo`",
            ),
            (["https://example.com/", "--method", "FETCH"], "is not an HTTP method"),
            (
                ["https://example.com/", "--offline", "nowhere"],
                "--offline `nowhere` is not a folder",
            ),
            (["https://example.com/", "--offline", ""], "--offline `` is not a folder"),
            (["https://example.com/", "--offline", "x" * 5000], "is not a folder"),
            (["--xml", "x" * 5000 + ".txt"], ".txt cannot be read: File name too long"),
            (["https://example.com/", "--ofline=x"], "policy has no option `--ofline=x`"),
            (
                ["https://example.com:99999/"],
                "`https://example.com:99999` is not an origin: Port out of range 0-65535",
            ),
            (["https://[::1/"], "`https://[::1/` is not an http or https URL: Invalid IPv6 URL"),
            (
                ["history"],
                "write one URL, and --policies with the place of captures: `scrapy policy",
            ),
            (
                ["https://example.com/", "--all", "--json"],
                "--json: not allowed with argument --all",
            ),
            (
                ["history", "https://example.com/", "--policies", ".", "--lang", "en"],
                "--lang cannot be used with the word history",
            ),
            (
                ["https://example.com/", "-s", "COMITY_MAX_DELAY=soon"],
                "COMITY_MAX_DELAY `soon` is not a number of seconds",
            ),
        ],
    ),
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = scrapy("policy", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.requirement("ACAP-12", "ACAP-14")
@pytest.mark.parametrize(("number", "status"), [(5, 0), (6, 2)])
def test_as_many_referenced_files_are_read_as_a_crawl_would_read(
    offline: Path, tmp_path: Path, number: int, status: int
) -> None:
    """It would refuse the site, so does the command, and both say why."""
    names = [f"{place}.txt" for place in range(number)]
    for name in names:
        (offline / name).write_bytes(b"ACAP-allow-crawl: /\n")
    text = "".join(f"ACAP-crawler: *\nACAP-permissions-reference: /{name}\n" for name in names)
    (offline / "robots.txt").write_text(text)
    done = scrapy(
        "policy", "https://example.com/a", "--offline", str(offline), "--json", folder=tmp_path
    )
    assert done.returncode == status
    told = json.loads(done.stdout)
    assert told["verdict"] == ("allow" if number == 5 else "deny")
    says = (
        "https://example.com refers to 6 policy files, but only 5 are read: everything is refused\n"
    )
    assert done.stderr == (says if number == 6 else "")
    if number == 6:
        assert [(reason["rule"], reason["line"]) for reason in told["reasons"]] == [
            ("acap.reference-unreachable", 12)
        ]


def test_a_file_that_is_not_at_its_place_is_told(offline: Path, tmp_path: Path) -> None:
    (offline / "tdmrep.json").write_text('[{"location": "/", "tdm-reservation": 1}]')
    done = scrapy("policy", "https://example.com/a", "--offline", str(offline), folder=tmp_path)
    assert (
        done.stderr
        == f"{offline / 'tdmrep.json'} is not read: crawlers ask for it at .well-known/tdmrep.json\n"
    )


def test_an_offline_site_without_files_restricts_nothing(tmp_path: Path) -> None:
    done = scrapy("policy", "https://example.com/", "--offline", ".", "--json", folder=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["reasons"][0]["rule"] == "robots.unavailable"


ACAP = b"""ACAP-crawler: *
ACAP-allow-index: /a/ time-limit=until-2999-12-31
ACAP-disallow-index: /
ACAP-allow-present: /a/ prohibited-modification=style prohibited-modification=format
ACAP-request-take-down: /gone
ACAP-crawler: *
ACAP-permissions-reference: /more.txt
ACAP-crawler: *
ACAP-permissions-reference: https://example.org/else.txt
"""


@pytest.mark.requirement("ACAP-12", "ACAP-43", "WHY-1")
def test_usages_have_their_qualifiers_lines_and_files(offline: Path, tmp_path: Path) -> None:
    (offline / "robots.txt").write_bytes(ACAP)
    (offline / "more.txt").write_bytes(b"ACAP-disallow-preserve: /a/\n")
    (offline / "example.org").mkdir()
    (offline / "example.org" / "else.txt").write_bytes(
        b"ACAP-allow-present-snippet: / max-length=9-words\n"
    )
    command = (
        "policy",
        "https://example.com/a/b",
        "--offline",
        str(offline),
        "--use",
        "present-snippet",
    )
    arranged = ("-s", "COMITY_ARRANGEMENTS=example.com:take-down")
    done = scrapy(*command, *arranged, "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    uses = told["uses"]
    assert (uses["index"]["until"], uses["index"]["reasons"][0]["line"]) == (
        "2999-12-31T23:59:59Z",
        2,
    )
    assert uses["present"]["prohibited_modifications"] == ["format", "style"]
    assert (uses["preserve"]["verdict"], uses["preserve"]["reasons"][0]["url"]) == (
        "deny",
        "https://example.com/more.txt",
    )
    assert (uses["present-snippet"]["max_words"], uses["present-snippet"]["reasons"][0]["url"]) == (
        9,
        "https://example.org/else.txt",
    )
    [request] = told["requests"]
    assert (request["action"], request["url"], request["arranged"]) == (
        "take-down",
        "https://example.com/gone",
        True,
    )
    assert set(told["policies"]) == {
        *("https://example.com" + path for path in WELL_KNOWN),
        "https://example.com/more.txt",
        "https://example.org/else.txt",
    }
    shown = scrapy(*command, "--all", folder=tmp_path, COLUMNS="200").stdout
    for words in (
        "until 2999-12-31 23:59 UTC",
        "until 2999-12-31T23:59:59Z",
        "/robots.txt:2",
        "format style",
        "/more.txt:1",
        "max_words 9",
        "take-down",
    ):
        assert words in shown


@pytest.mark.requirement("ACAP-14")
@pytest.mark.parametrize(
    "locator",
    one_in(2, ["/missing.txt", "/%2e%2e/outside.txt", "/sub", "/a%00b", "gopher://example.org/x"]),
)
def test_a_referenced_file_that_is_not_in_the_folder_cannot_be_had(
    offline: Path, tmp_path: Path, locator: str
) -> None:
    (tmp_path / "outside.txt").write_bytes(b"ACAP-allow-crawl: /\n")
    (offline / "sub").mkdir()
    (offline / "robots.txt").write_bytes(
        b"ACAP-crawler: *\nACAP-permissions-reference: " + locator.encode() + b"\n"
    )
    done = scrapy(
        "policy", "https://example.com/a", "--offline", str(offline), "--json", folder=tmp_path
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert json.loads(done.stdout)["reasons"][0]["rule"] == "acap.reference-unreachable"


@pytest.mark.parametrize("reactor", ["True", "False"])
def test_only_policy_files_are_fetched(serve: Serve, tmp_path: Path, reactor: str) -> None:
    site = serve({"/robots.txt": ROBOTS, "/a": "never"})
    done = scrapy(
        "policy",
        site.url("/a"),
        "--json",
        "-s",
        f"TWISTED_REACTOR_ENABLED={reactor}",
        folder=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["reasons"][0]["url"] == site.url("/robots.txt")
    assert site.paths == ["/robots.txt"]


def test_unreachable_is_told_by_the_exit_status(serve: Serve, tmp_path: Path) -> None:
    site = serve({"/robots.txt": serve.Answer(status=503)})
    done = scrapy("policy", site.url("/"), "--json", folder=tmp_path)
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert (told["verdict"], told["reasons"][0]["rule"]) == ("deny", "robots.unreachable")
    assert told["reasons"][0]["text"] == "HTTP status 503"


NO_NAMES = """import socket
def getaddrinfo(host, *args, found=socket.getaddrinfo, **kwargs):
    if str(host).endswith(".invalid"):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return found(host, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
"""


def test_a_host_that_does_not_exist_is_no_refusal(tmp_path: Path) -> None:
    program = ("-c", f"{NO_NAMES}from scrapy.cmdline import execute\nexecute()")
    store = ("-s", f"COMITY_STORE={tmp_path / 'policies.sqlite'}")
    for options in ([], ["--prompt", "Train"]):
        words = ["nosuch.invalid/a", *options, *store]
        done = scrapy("policy", *words, folder=tmp_path, program=program)
        expected = "NOT KNOWN: there is no host nosuch.invalid (check the spelling).\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, expected, "")
    words = ["nosuch.invalid", "--json", *store]
    done = scrapy("policy", *words, folder=tmp_path, program=program)
    [reason] = json.loads(done.stdout)["reasons"]
    assert (done.returncode, reason["rule"]) == (2, "robots.unreachable")
    assert reason["text"] == "there is no host nosuch.invalid (check the spelling)"


@pytest.mark.requirement("SEC-4")
def test_what_a_site_says_is_shown_and_not_done(offline: Path, tmp_path: Path) -> None:
    """Neither terminal escapes nor the table's own markup."""
    (offline / "robots.txt").write_bytes(
        b"User-agent: *\nDisallow: /a # \x1b[31m[bold]x[/bold]\xe2\x80\xae\n"
    )
    done = scrapy("policy", "https://example.com/a", "--offline", str(offline), folder=tmp_path)
    assert "\x1b[31m" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "[bold]x[/bold]" in done.stdout


@pytest.mark.parametrize("width", one_in(3, ["60", "72", "80"]))
def test_no_text_of_an_option_is_laid_out_as_a_heading(width: str, tmp_path: Path) -> None:
    """Each of them is broken behind `(default:` at one of these widths."""
    for command in ("demo", "lint", "policy", "report"):
        lines = scrapy(command, "--help", folder=tmp_path, COLUMNS=width).stdout.splitlines()
        headings = {
            heading for heading, below in pairwise(lines) if below and not below.strip("=-")
        }
        assert headings <= {"Usage", "Options", "Positional Arguments", "Global Options"}, command


def test_demo_takes_an_output_for_a_crawl_alone(tmp_path: Path) -> None:
    done = scrapy("demo", "--port", "0", "-O", "pages.jsonl", folder=tmp_path)
    assert done.returncode == 2
    assert "-O is the file for the items of --crawl: write both" in done.stderr


def test_demo_crawl_ends_with_items_and_a_summary(tmp_path: Path) -> None:
    done = scrapy("demo", "--crawl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert {item["final_url"].split("/", 3)[3] for item in items} == {
        "",
        "about",
        "archive/",
        "archive/1.html",
        "archive/2.html",
        "archive/letters.html",
        "features/",
        "features/feed.xml",
        "features/lamp.html",
        "features/lamp.png",
        "features/stories.json",
        "forms/contact",
        "news/",
        "news/1.html",
        "news/2.html",
        "news/archive.html",
        "private/press.html",
        "viewer/",
    }
    assert not [item for item in items if "REFUSED" in item["text"]]
    assert "robots.disallow" in done.stderr
    assert "Crawl finished" in done.stderr
    assert "automated requests pass and refused 0.\n" in done.stdout


@pytest.mark.slow
def test_demo_crawl_has_the_settings_of_the_command(tmp_path: Path) -> None:
    options = [
        "-O",
        "pages.jsonl",
        "-s",
        "COMITY_REPORT=report.json",
        "-s",
        "CLOSESPIDER_PAGECOUNT=1",
        "-L",
        "WARNING",
    ]
    done = scrapy("demo", "--crawl", *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["hosts"]
    assert (tmp_path / "pages.jsonl").read_text("utf-8")
    assert " INFO: " not in done.stderr


def test_demo_serves_until_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scrapy", "demo", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert "The demonstration site is at http://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 0


def test_demo_says_when_its_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = scrapy("demo", "--port", port, folder=tmp_path)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("spider", "arguments", "message"),
    one_in(
        3,
        [
            ("site", [], "comity crawl site: no site: add -a url=https://example.com"),
            ("site", ["-a", "url=ftp://x"], "is not an http or https URL"),
            (
                "site",
                ["-a", "url=example.com", "-a", "depth=x"],
                "depth `x` is not a whole number of at least 0",
            ),
            ("site", ["-a", "url=example.com", "-a", "deep=1"], "there is no argument `deep`"),
            ("urls", [], "no list: add -a file=urls.txt"),
            (
                "site",
                ["-a", "url=example.com", "-a", "text=all"],
                "text `all` is invalid: write main or trafilatura",
            ),
            (
                "urls",
                ["-a", "file=missing.txt"],
                "file `missing.txt` cannot be read: No such file or directory",
            ),
        ],
    ),
)
@pytest.mark.parametrize("reactor", ["True", pytest.param("False", marks=pytest.mark.slow)])
def test_spiders_say_what_is_wrong_in_one_line(
    tmp_path: Path, spider: str, arguments: list[str], message: str, reactor: str
) -> None:
    settings = ["-s", "LOG_ENABLED=False", "-s", f"TWISTED_REACTOR_ENABLED={reactor}"]
    done = scrapy(
        "crawl",
        spider,
        *arguments,
        *settings,
        folder=tmp_path,
        SCRAPY_SETTINGS_MODULE="comity.crawler.settings",
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


AUTOMATION = b"""scope: /
allowed-methods: GET, HEAD
request-limit: 60/minute

scope: /service/
allowed-methods: GET, POST
allowed-automations: headless
api-automation: with-key-only
concurrent-limit: 2
request-limit: soon
"""


@pytest.mark.parametrize(
    ("options", "code", "rules", "line"),
    one_in(
        2,
        [
            (["/page"], 0, ["automation.allow"], 2),
            (["/page", "--method", "post"], 1, ["automation.method"], 2),
            (["/service/x", "--method", "POST"], 0, ["automation.allow"], 6),
            (["/service/x", "--kind", "api"], 1, ["automation.key"], 8),
            (["/service/x", "--kind", "api", "--key"], 0, ["automation.allow"], 6),
            (["/service/x", "--automation", "headless"], 0, ["automation.allow"], 6),
            (
                ["/service/x", "--automation", "headless", "--automation", "cdp"],
                1,
                ["automation.mechanism"],
                7,
            ),
            (["/a", "--method", "POST"], 1, ["robots.disallow", "automation.method"], 2),
        ],
    ),
)
@pytest.mark.requirement("MEET-1", "AUTO-14", "WHY-1")
def test_every_file_that_speaks_is_named(
    offline: Path, tmp_path: Path, options: list[str], code: int, rules: list[str], line: int
) -> None:
    (offline / "automation-preferences.txt").write_bytes(AUTOMATION)
    command = [
        "policy",
        f"https://example.com{options[0]}",
        "--offline",
        str(offline),
        *options[1:],
    ]
    done = scrapy(*command, "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (code, "")
    told = json.loads(done.stdout)
    assert {reason["rule"] for reason in told["reasons"]} == set(rules)
    assert told["reasons"][-1]["line"] == line


def test_limits_of_the_scope_are_shown(offline: Path, tmp_path: Path) -> None:
    (offline / "automation-preferences.txt").write_bytes(AUTOMATION)
    words = ("policy", "https://example.com/", "--offline", str(offline), "--all")
    told = scrapy(*words, folder=tmp_path)
    assert "60 requests in 60 s" in told.stdout
    assert "automation-preferences.txt:10" in told.stdout  # the finding has its file
    scoped = scrapy(
        "policy",
        "https://example.com/service/",
        "--offline",
        str(offline),
        "--json",
        folder=tmp_path,
    )
    rates = json.loads(scoped.stdout)["rates"]
    slowest = {
        "requests": 1,
        "seconds": 300.0,
        "hours": None,
    }  # by COMITY_MAX_DELAY: `soon` cannot be read
    assert (rates["request_limits"], rates["concurrent_limit"]) == ([slowest], 2)
    url = "https://example.com/automation-preferences.txt"
    assert rates["limits"] == [
        {
            "name": "request-limit",
            "value": slowest,
            "url": url,
            "line": 10,
            "text": "request-limit: soon",
            "advice": "write N/second, N/minute, N/hour or N/day",
        },
        {
            "name": "concurrent-limit",
            "value": 2,
            "url": url,
            "line": 9,
            "text": "concurrent-limit: 2",
            "advice": "",
        },
    ]


@pytest.mark.requirement("AUTX-14")
@pytest.mark.parametrize(
    ("line", "rows"),
    one_in(
        2,
        [
            (
                "request-limit: 1/5s",
                [
                    "1 requests in 20.0 s",
                    ":3 ",
                    "`request-limit: 1/5s` cannot be read",
                    "or N/day, here `12/minute`",
                ],
            ),
            (
                "concurrent-limit: 2 requests",
                [
                    "concurrent-limit 1 ",
                    ":3 ",
                    "cannot be read",
                    "write a whole number, such as `2`",
                ],
            ),
            (
                "request-limit 60/minute",
                [
                    "1 requests in 20.0 s",
                    "write `request-limit:` and its value, with nothing but a space",
                ],
            ),
            ("request-limit: 60/minute", ["60 requests in 60 s", ":3"]),
        ],
    ),
)
def test_a_limit_that_cannot_be_read_is_shown_with_the_pace_that_applies(
    offline: Path, tmp_path: Path, line: str, rows: list[str]
) -> None:
    (offline / "automation-preferences.txt").write_text(f"scope: /\nallowed-methods: GET\n{line}\n")
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    command = [
        "policy",
        "https://example.com/",
        "--offline",
        str(offline),
        "-s",
        "COMITY_MAX_DELAY=20",
    ]
    told = " ".join(scrapy(*command, folder=tmp_path, COLUMNS="300").stdout.split())
    how_often = told.partition("How often")[2]
    for row in rows:
        assert row in how_often


def test_a_row_of_a_table_is_a_line_for_programs(offline: Path, tmp_path: Path) -> None:
    path = f"/a/{'long/' * 25}"
    (offline / "robots.txt").write_text(
        f"User-agent: *\nAllow: {path}\nDisallow: /\nContent-Signal: search=yes\n"
    )
    done = scrapy(
        "policy",
        f"https://example.com{path}",
        "--offline",
        str(offline),
        "--all",
        folder=tmp_path,
        COLUMNS="40",
    )
    lines = done.stdout.splitlines()
    assert lines[0] == f"ALLOW  https://example.com{path}  for comitybot"
    assert [line.split()[:3] for line in lines if line.startswith("index ")] == [
        ["index", "allow", "/robots.txt:4"]
    ]
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in done.stdout


@pytest.mark.requirement("PAY-1", "RSL-4")
def test_files_for_sale_are_shown_with_their_offers(serve: Serve, tmp_path: Path) -> None:
    price = serve.Answer("pay", status=402, headers={"crawler-price": "USD 0.01"})
    token = serve.Answer(status=401, headers={"WWW-Authenticate": "License"})
    server = serve({"/robots.txt": price, "/ai.txt": token})
    for _ in range(2):  # the second time from the store
        done = scrapy(
            "policy", server.url("/a"), "-s", "COMITY_STORE=store.sqlite", folder=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert "/robots.txt  402, crawler-price: USD 0.01" in done.stdout
        assert "/ai.txt      401, WWW-Authenticate: License" in done.stdout
