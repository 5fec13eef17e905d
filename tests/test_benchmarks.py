"""The benchmarks run, and put their table into the page."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measurements.md"
BEGIN, END = (
    "<!-- python benchmarks --write: begin -->\n",
    "<!-- python benchmarks --write: end -->\n",
)


@pytest.mark.slow
def test_the_table_is_put_between_the_marks_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "measurements.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n\n{END}\nafter\n")
    command = [
        sys.executable,
        str(ROOT / "benchmarks"),
        "--rounds",
        "1",
        "--only",
        "cached site",
        "--write",
        str(page),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert not done.returncode, done.stderr
    written = page.read_text()
    assert written.startswith(f"before\n\n{BEGIN}\n| ")
    assert written.endswith(f"\n{END}\nafter\n")
    assert "old" not in written
    rows = [line.split(" | ") for line in written.splitlines() if line.startswith("| cached site")]
    assert [int(row[1].replace(",", "")) > 0 for row in rows] == [True]


@pytest.mark.slow
@pytest.mark.requirement("REACH-2", "REACH-3", "REACH-4")
def test_a_short_soak_loses_nothing_and_keeps_the_pace() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "soak.py"), "--minutes", "0.3"]
    command += ["--hosts", "20", "--delay", "1", "--kill", "4", "--timeout", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert not done.returncode, done.stdout + done.stderr
    for row in ("pages lost", "requests too soon", "items lost"):
        assert re.search(rf"{row} +│ 0 ", done.stdout), done.stdout
    for fault in ("kill", "freeze", "restart", "fail-over", "memory full"):
        assert f" s  {fault}" in done.stdout, done.stdout


@pytest.mark.requirement("AIT-11")
def test_the_cases_of_the_wording_agree_with_decisions() -> None:
    """And the answers of a model are counted."""
    wording = runpy.run_path(str(ROOT / "benchmarks" / "wording.py"))
    cases = wording["cases"]()
    assert [(case.name, case.decided) for case in cases] == [
        (case.name, case.answer) for case in cases
    ]
    assert {case.answer for case in cases} == {"yes", "no"}
    asks = f'{sys.executable} -c "import sys; print({{}}, sys.stdin.read()[-22:])"'
    prompt = cases[0].prompt
    assert wording["answer"](asks.format("'No, I may not.'"), prompt) == "no"
    assert wording["answer"](asks.format("'I know:'"), prompt) == "yes"  # the question's end
    assert wording["answer"](f"{sys.executable} -c print(1)", prompt) == "none"


def test_the_page_names_every_program_and_has_the_marks() -> None:
    page = PAGE.read_text()
    assert page.index(BEGIN) < page.index(END)
    listed = page.partition("## The single programs")[2]
    programs = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")} - {
        "archive",
        "rounds",
    }  # of several programs
    assert {program for program in programs if f"`{program}`" not in listed} == set()


@pytest.mark.slow
def test_the_load_by_workers_that_look_and_renew_is_measured() -> None:
    options = ["--requests", "2000", "--clients", "3", "--seconds", "0.5"]
    command = [sys.executable, str(ROOT / "benchmarks" / "reach.py"), "looks", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert not done.returncode, done.stderr
    for line in (
        r"100 hosts with 3 requests each: \d+ octets a request, \d+ a host",
        r"policies: \d+ octets an origin",
        r"2,000 requests on 200 hosts: [\d.]+ GB, \d+ octets a request",
        r"198 leases: \d+ octets each",
        r"renewing: [\d.]+ % of a core, [\d,]+ commands and [\d.]+ renewals a second, 0 leases lost",
        r"renewing and looking: [\d.]+ % .*, 0 leases lost",
    ):
        assert re.search(f"(?m)^{line}$", done.stdout), done.stdout
    assert "failed" not in done.stdout
