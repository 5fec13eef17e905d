"""The workflows of the public forge are those that its schema allows. No test runs them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.release.distributions import run_module
from tests.sources import ROOT, source_files

WORKFLOWS = [path for path in source_files() if path.parent == ROOT / ".github" / "workflows"]


def check(*paths: str) -> int:
    schema = ["--builtin-schema", "vendor.github-workflows"]
    return run_module("check_jsonschema", *schema, *paths, check=False).returncode


def test_the_workflows_follow_their_schema() -> None:
    assert {path.stem for path in WORKFLOWS} == {"audit", "release", "tests"}
    assert check(*map(str, WORKFLOWS)) == 0


def test_the_schema_finds_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    wrong.write_text(text.replace("runs-on:", "runs:"), "utf-8")
    assert check(str(wrong)) == 1


def test_only_the_job_that_publishes_has_more_than_the_right_to_read() -> None:
    for path in WORKFLOWS:
        rights = re.findall(r"(?m)^ *([a-z-]+): (?:write|read)\b", path.read_text("utf-8"))
        assert rights == ["contents", *(["id-token"] if path.stem == "release" else [])]
