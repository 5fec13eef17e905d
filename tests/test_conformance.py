"""Which requirement is proved by which tests: docs/conformance.md, which `make docs` writes from here."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "conformance.md"

# The rows that comity is built to, in short. The tests name them by their ids: @pytest.mark.requirement("RFC-3").
ROWS = {
    "RFC-1": "one robots.txt for each scheme, host and port; UTF-8 with or without BOM; LF, CRLF and CR end a line",
    "RFC-2": "groups that name the product token are merged; else the groups for `*`; else no rules",
    "RFC-3": "the longest match wins, counted in octets after percent-normalising; on a tie Allow",
    "RFC-4": "`*`, `$` and `#` are special; /robots.txt itself is always allowed",
    "RFC-5": "five redirects are followed, across hosts; the rules bind the host that was asked first",
    "RFC-6": "status 400-499: no restriction; but 429 counts as RFC-7, and its Retry-After holds",
    "RFC-7": "5xx, network error, timeout, truncated body: nothing may be fetched, unless an older copy is at hand",
    "RFC-8": "a copy is used for 24 hours at most, by RFC 9111 and with conditional requests",
    "RFC-9": "512 KiB are read; what lies past that is ignored at a line boundary, with a finding",
    "RFC-10": "an HTML page under the name of a policy file is no policy file",
    "RFC-11": "Sitemap lines belong to no group; Crawl-delay, Request-rate and Visit-time are honoured",
    "RFC-12": "open points of the RFC have one reading each, the one that lets less through (docs/robots.md)",
    "RFC-13": "control octets end no line; UTF-16 with a BOM is decoded; other octets stay distinct",
    "RATE-1": "the slowest of the site's rates, its Retry-After and the operator's floor applies, for each host",
    "RATE-3": "waiting for one host holds up no other",
    "RATE-4": "a wait longer than COMITY_MAX_DELAY is refused with that reason, never dropped in silence",
    "SEC-1": "no input makes a parser raise, or take more than linear time and bounded memory",
    "SEC-2": "redirects of policy files lead from a public site to public addresses only, judged when connecting",
    "SEC-3": "slow, endless and compressed policy files meet a deadline and a limit of bytes",
    "SEC-4": "nothing from a site is shown with its control, bidi or escape characters",
    "SIG-4": "two groups for `*`, one put before the other by somebody else, are merged",
    "SEC-6": "the policy store survives `kill -9`, and no policy is forgotten into permission",
    "WHY-1": "a decision carries rule, section, URL, line, text, hash and fetch time; the losing rules on request",
    "WHY-2": "the same decision is printed, logged, counted and written into the item's tag",
}


class Collected:
    """A plugin of pytest that keeps which tests there are."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.proofs: dict[str, set[str]] = {}  # requirement -> the tests that name it

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            self.files.add(item.path.relative_to(ROOT).as_posix())
            for marker in item.iter_markers("requirement"):
                for requirement in marker.args:
                    self.proofs.setdefault(requirement, set()).add(item.nodeid.partition("[")[0])


def collect() -> Collected:
    """What a plain `pytest` in the checkout finds."""
    collected = Collected()
    with redirect_stdout(sys.stderr):
        status = pytest.main(["--collect-only", "-qq"], plugins=[collected])
    if status:
        raise SystemExit(status)
    return collected


def page(proofs: dict[str, set[str]]) -> str:
    lines = [
        "# What is required, and which tests prove it",
        "",
        "Written by `make docs` from the markers in the tests. RFC: RFC 9309, with a reading of each of its open points",
        "([robots.md](robots.md)); RATE: how often; SEC: hostile sites; WHY: explanations.",
    ]
    for requirement, text in ROWS.items():
        lines += ["", f"**{requirement}**: {text}", "", *(f"- {test}" for test in sorted(proofs.get(requirement, ())))]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def collected() -> Collected:
    """In a process of its own, for all tests count, however few of them run now."""
    command = [sys.executable, __file__, "--print"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = Collected()
    files, proofs = json.loads(done.stdout)
    found.files.update(files)
    found.proofs.update((requirement, set(tests)) for requirement, tests in proofs.items())
    return found


def test_every_file_of_tests_is_found(collected: Collected) -> None:
    assert collected.files == {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}


def test_every_requirement_is_proved_and_every_marker_names_one(collected: Collected) -> None:
    assert sorted(collected.proofs) == sorted(ROWS)


def test_the_page_is_current(collected: Collected) -> None:
    assert PAGE.read_text("utf-8") == page(collected.proofs), "run `make docs`"


if __name__ == "__main__":
    found = collect()
    if "--print" in sys.argv:
        sys.stdout.write(
            json.dumps([sorted(found.files), {requirement: sorted(tests) for requirement, tests in found.proofs.items()}])
        )
    else:
        PAGE.write_text(page(found.proofs), "utf-8")
