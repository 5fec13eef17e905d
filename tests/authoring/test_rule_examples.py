"""Each finding has a reason, a remedy and an example, and lint finds in the example what it shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from comity.authoring.lint import lint_site
from comity.authoring.rules import files_of
from comity.authoring.source import DEFAULT_ORIGIN, SiteSource, SourceFile
from comity.cli import main
from comity.policies import Fetched, Site
from comity.policies.answers.rule import RULES, Effect
from comity.policies.formats import WELL_KNOWN
from tests.selection import one_in

RESPONSE = "HTTP/1.1 "


def response(text: str, url: str = "") -> Fetched:
    """Read the response of an example. `url`: the address to which a redirect led."""
    head, _, content = text.partition("\n\n")
    status, *lines = head.split("\n")
    fields = dict(line.split(": ", 1) for line in lines)
    if "Location" in fields:
        return response(content, fields["Location"])
    headers = tuple((name.encode(), value.encode()) for name, value in fields.items())
    return Fetched(
        status=int(status.split(" ")[1]), headers=headers, body=content.encode(), url=url
    )


def served(files: Mapping[str, str]) -> SiteSource:
    """Return a site whose server answers with the responses of an example."""
    fetched = {f"{DEFAULT_ORIGIN}/{path}": response(text) for path, text in files.items()}
    policies = {
        url: file for url, file in fetched.items() if url[len(DEFAULT_ORIGIN) :] in WELL_KNOWN
    }
    sources = {url: SourceFile(url, url, file) for url, file in fetched.items()}
    return SiteSource(
        DEFAULT_ORIGIN,
        Site.from_files(DEFAULT_ORIGIN, policies),
        tuple(source for url, source in sources.items() if url in policies),
        tuple(source for url, source in sources.items() if url not in policies),
    )


def severities(
    files: Mapping[str, str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """Return the severity of each rule that lint reports: in responses, or in a folder."""
    if all(text.startswith(RESPONSE) for text in files.values()):
        return {problem.rule: problem.severity.value for problem in lint_site(served(files))}
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="")
    main(["lint", str(folder), "--format", "json", "--readers", "google,lighthouse"])
    problems = json.loads(capsys.readouterr().out)["problems"]
    return {problem["rule"]: problem["severity"] for problem in problems}


@pytest.mark.parametrize(
    "rule", one_in(4, [rule for rule, entry in RULES.items() if entry.effect is Effect.FINDING])
)
def test_a_finding_has_its_reason_its_remedy_and_an_example_that_lint_confirms(
    rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = RULES[rule]
    example = entry.example
    assert entry.why
    assert entry.fix
    assert example
    bad = files_of(rule, example.bad)
    if example.repeated:
        assert sum(text.count(example.repeated) for text in bad.values()) == 1
        repetition = example.repeated * example.times
        bad = {path: text.replace(example.repeated, repetition) for path, text in bad.items()}
    assert rule in severities(bad, tmp_path / "bad", capsys)
    good = severities(files_of(rule, example.good), tmp_path / "good", capsys)
    assert rule not in good
    assert "error" not in good.values()
