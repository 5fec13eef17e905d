"""The statements of docs/guard.md, against the code."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from comity.guard import Answer, ASGIMiddleware, Guard, Incoming, SharedClients, WSGIMiddleware
from comity.guard.agents import MAX_NAMED, MAX_PARSED, MAX_WORDS
from comity.guard.answers import RETRY
from comity.guard.clients import MAX_STAMPS
from comity.guard.guard import MAX_JUDGED, MAX_NAME, MAX_PURPOSES, MAX_REFERER, MAX_TARGET
from comity.guard.incoming import MAX_TARGETS
from comity.policies.answers.rule import RULES

PAGE = (Path(__file__).parent.parent.parent / "docs" / "guard.md").read_text("utf-8")
CODE = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def rows(header: str) -> list[list[str]]:
    """Cells of the table with that header."""
    table = PAGE.split(header, 1)[1].split("\n\n", 1)[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


@pytest.mark.requirement("GUARD-1")
def test_the_arguments_are_those_of_the_guard() -> None:
    named = [name for cells in rows("| argument |") for name in re.findall(r"`(\w+)`", cells[0])]
    assert sorted(named) == sorted(inspect.signature(Guard).parameters)


@pytest.mark.requirement("GUARD-1")
def test_the_statuses_are_those_of_the_rules() -> None:
    told = {int(status): (what, fields) for status, what, fields in rows("| status |")}
    statuses = {rule: entry.status for rule, entry in RULES.items()}
    assert set(told) == set(statuses.values())
    assert all(f"`{rule}`" in told[status][0] for rule, status in statuses.items() if status != 403)
    assert {status for status, (_, fields) in told.items() if "Retry-After" in fields} == set(RETRY)


@pytest.mark.requirement("GUARD-1")
def test_the_example_is_what_is_answered() -> None:
    [example] = [json.loads(text) for language, text in CODE if language == "json"]
    guard = Guard(
        "https://example.com",
        {"/automation-preferences.txt": b"scope: /\nallowed-methods: GET, HEAD\n"},
    )
    answer = guard.check(Incoming("POST", "/", {"user-agent": "testbot"}))
    assert isinstance(answer, Answer)
    assert json.loads(answer.body) == example


@pytest.mark.requirement("GUARD-1")
def test_the_figures_are_those_of_the_code() -> None:
    long, fields = (
        next(cells[1] for cells in rows("| status |") if cells[0] == status)
        for status in ("414", "431")
    )
    assert [int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*\d", long)] == [
        MAX_TARGET,
        MAX_TARGETS,
        MAX_JUDGED,
    ]
    figures = [int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*", fields)]
    assert figures == [MAX_PURPOSES, MAX_NAME, MAX_NAMED, MAX_REFERER, MAX_WORDS]
    assert f"In a field of more than\n{MAX_PARSED:,} characters" in PAGE
    assert f"A window for more than {MAX_STAMPS} requests" in PAGE
    defaults = {
        name: str(parameter.default)
        for name, parameter in inspect.signature(Guard).parameters.items()
    }
    for name, default, _ in rows("| argument |"):
        if default[:1].isdigit():
            assert default.replace(",", "").split()[0] == defaults[name.strip("`")]
    assert inspect.signature(SharedClients).parameters["max_clients"].default == 10_000


@pytest.mark.requirement("GUARD-1")
def test_the_code_is_that_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "robots.txt").write_bytes(b"User-agent: *\nDisallow:\n")
    names: dict[str, object] = {"app": None}
    for language, text in CODE:
        if language == "python":
            exec(text.replace("/var/lib/site", str(tmp_path)), names)  # that of our own page
    assert isinstance(names["app"], ASGIMiddleware)
    assert isinstance(names["guard"], Guard)
    for middleware, argument in ((ASGIMiddleware, "root_path"), (WSGIMiddleware, "script_name")):
        assert f'{middleware.__name__}(app, guard, {argument}="/app")' in PAGE
        assert argument in inspect.signature(middleware).parameters
