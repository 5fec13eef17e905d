"""The hook of pre-commit, and the action of GitHub: their steps run in a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.release.distributions import run_module
from tests.sources import ROOT


def read(name: str) -> Any:
    return YAML(typ="safe").load(ROOT / name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "robots.txt").write_text("User-agent: *\nDisallow: /x\n", "utf-8")
    write_expectations(tmp_path, "everybody must not fetch /x")
    return tmp_path


def write_expectations(folder: Path, sentence: str) -> None:
    text = f'folder = "public"\nexpectations = ["{sentence}"]\n'
    (folder / "expectations.toml").write_text(text, "utf-8")


def run_shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does, with the commands of this environment."""
    programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=os.environ | {"PATH": programs} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def run_action(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    action = read("action.yml")
    values = {name: entry["default"] for name, entry in action["inputs"].items()} | inputs
    install, step = action["runs"]["steps"]
    assert install["run"] == 'python3 -m pip install "$GITHUB_ACTION_PATH"'
    variables = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: values[match[1]], value)
        for name, value in step["env"].items()
    }
    return run_shell(step["run"], folder, **variables)


def test_the_action_follows_its_schema() -> None:
    schema = ["--builtin-schema", "vendor.github-actions"]
    checked = run_module("check_jsonschema", *schema, str(ROOT / "action.yml"), check=False)
    assert checked.returncode == 0


@pytest.mark.slow
def test_the_action_shows_sentences_at_their_lines(folder: Path) -> None:
    done = run_action(folder)
    assert (done.returncode, done.stdout) == (0, "1 sentence holds, 0 fail.\n")
    write_expectations(folder, "everybody may fetch /x")
    done = run_action(folder)
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=expectations.toml,line=2,")


@pytest.mark.slow
def test_the_action_writes_a_file_about_another_folder(folder: Path) -> None:
    (folder / "an other").mkdir()
    (folder / "an other" / "robots.txt").write_text("User-agent: *\nDisallow:\n", "utf-8")
    done = run_action(folder, site="an other", format="sarif", output="a result.sarif")
    assert (done.returncode, done.stdout) == (1, "")
    [run] = json.loads((folder / "a result.sarif").read_text("utf-8"))["runs"]
    assert len(run["results"]) == 1


def test_the_hook_checks_the_file_at_the_root(folder: Path) -> None:
    [hook] = [hook for hook in read(".pre-commit-hooks.yaml") if hook["id"] == "comity-check"]
    assert hook["pass_filenames"] is False
    names = ("expectations.toml", "public/robots.txt", "a/.well-known/tdmrep.json", "a.html")
    assert all(re.search(hook["files"], name) for name in names)
    assert re.search(hook["files"], "README.md") is None
    assert run_shell(hook["entry"], folder).returncode == 0
    write_expectations(folder, "everybody may fetch /x")
    assert run_shell(hook["entry"], folder).returncode == 1
