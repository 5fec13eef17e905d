"""The checkout as a whole: links, imports, and that settings and rules are documented and tested."""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import comity
from comity.crawler.options import DEFAULTS
from comity.policies.rules import RULES

ROOT = Path(__file__).parent.parent
LINKS = {name: f"comity/{name}" for name in ("crawler", "policies", "spiders")}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def rows(page: str) -> list[list[str]]:
    """The cells of each table row of a page in docs/ whose first cell is code."""
    lines = (ROOT / "docs" / page).read_text("utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]


def test_settings_are_documented_with_unit_and_default() -> None:
    documented = {name.strip("`"): (unit, default.strip("`")) for name, unit, default, _ in rows("settings.md")}
    assert {name: default for name, (_, default) in documented.items()} == {
        name: json.dumps(value) if isinstance(value, str) else repr(value) for name, value in DEFAULTS.items()
    }
    assert all(unit for unit, _ in documented.values())


def test_rules_are_documented_as_the_table_has_them() -> None:
    documented = {rule.strip("`"): (spec, summary) for rule, spec, summary in rows("rules.md")}
    assert documented == {rule: (entry.spec, entry.summary) for rule, entry in RULES.items()}


def test_every_rule_is_named_in_a_test() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [rule for rule in RULES if not re.search(rf"{re.escape(rule)}(?![\w-])", tests)] == []


def test_links_are_links_in_git() -> None:
    staged = [line.split(maxsplit=3) for line in git("ls-files", "--stage", "--", *LINKS).splitlines()]
    assert {path: mode for mode, _, _, path in staged} == dict.fromkeys(LINKS, "120000")
    assert {name: str((ROOT / name).readlink()) for name in LINKS} == LINKS


def test_no_module_is_loaded_by_a_link() -> None:
    """The second copy of a class would be equal to nothing of the first."""
    modules = [module.name for module in pkgutil.walk_packages(comity.__path__, "comity.")]
    code = f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert set(modules) <= set(loaded)
    assert [name for name in loaded if name.partition(".")[0] in LINKS] == []


def test_no_file_names_a_path_of_one_machine() -> None:
    local = re.compile(rb"/(?:home|Users|root)/\w|[A-Z]:\\Users\\|" + re.escape(bytes(ROOT)))
    found = []
    for name in git("ls-files", "-z").split("\0")[:-1]:
        path = ROOT / name
        if not path.is_symlink() and (hit := local.search(path.read_bytes())):
            found.append((name, hit.group()))
    assert found == []
