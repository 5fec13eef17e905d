"""The checkout as a whole: links, imports, and that settings and rules are documented and tested."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from configparser import ConfigParser
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from comity.cluster.address import PASSWORD
from comity.gate.options import DEFAULTS
from comity.policies.answers.rule import RULES, without_page
from comity.policies.formats import FORMATS
from tests.sources import LINKS, ROOT, git, is_checkout, path_of, source_files

if TYPE_CHECKING:
    from tests.conftest import Serve


def test_no_folder_has_more_modules_than_one_look_takes_in() -> None:
    folders = Counter(
        path.parent for path in (ROOT / "comity").rglob("*.py") if path.name != "__init__.py"
    )
    assert {
        str(folder.relative_to(ROOT)): number for folder, number in folders.items() if number > 15
    } == {}


def test_every_rule_is_named_in_a_test() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [rule for rule in RULES if not re.search(rf"{re.escape(rule)}(?![\w-])", tests)] == []


def test_every_oldest_version_that_is_promised_is_tested() -> None:
    """`make floors` says with which versions `make test-oldest` tests."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    options = setup["options"]["install_requires"], *setup["options.extras_require"].values()
    done = subprocess.run(
        ["make", "--silent", "floors"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [
        re.split("[,;]", line)[0].replace(" >= ", " == ")
        for line in "\n".join(options).split("\n")
        if line and not line.startswith(("#", "comity["))
    ] == done.stdout.splitlines()


def test_every_minor_version_of_scrapy_that_is_promised_is_tested_and_listed() -> None:
    """`make test-scrapies` tests them, and docs/dependencies.md has a row for each."""
    [versions] = re.findall(
        "^SCRAPIES = (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    minors = versions.split()
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    assert f"scrapy >= {minors[0]}" in setup["options"]["install_requires"].split("\n")
    assert version("scrapy").rpartition(".")[0] in minors
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    assert re.findall(r"(?m)^\| `(2\.\d+)[.\d]*` \|", page) == minors


def texts(path: Path) -> set[str]:
    """The texts in a module, docstrings apart."""
    tree = ast.parse(path.read_bytes())
    nodes = [*ast.walk(tree)]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (
        node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings
    )
    return {node.value for node in constants if isinstance(node.value, str)}


def named_rules(paths: Iterable[Path]) -> set[tuple[str, str]]:
    """Each module, by its dotted name, with the rules of formats that it names in a text."""
    rules = {name for name in RULES if not name.startswith(("comity.", "registry."))}
    return {
        (".".join(path.relative_to(ROOT).with_suffix("").parts), name)
        for path in paths
        if not rules.isdisjoint(words(path.read_text("utf-8")))  # to parse a file takes longer
        for text in texts(path)
        for name in rules.intersection(words(text))
    }


def words(text: str) -> list[str]:
    return re.findall(r"[\w.-]+", text)


def test_no_module_outside_the_formats_names_a_rule_of_theirs() -> None:
    """But for those that are about one format by their nature: import-linter lists what they may import of it."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    allowed = set()
    for line in setup["importlinter:contract:formats"]["ignore_imports"].split("\n"):
        module, _, imported = line.partition(" -> ")
        about = (
            format_ for format_ in FORMATS if format_.name.replace("-", "_") in imported.split(".")
        )
        allowed |= {(module, rule) for format_ in about for rule in format_.rules}
    formats = ROOT / "comity" / "policies" / "formats"
    paths = [path for path in (ROOT / "comity").rglob("*.py") if not path.is_relative_to(formats)]
    assert len(paths) > 200
    assert named_rules(paths) - allowed == set()


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ('rule = "acap.resource"', ["acap.resource"]),
        ('rule = f"deny:acap.resource:{use}"', ["acap.resource"]),
        (
            '"""As acap.resource has it."""\n# acap.resource\nrule = "acap.resources", "comity.default"',
            [],
        ),
    ],
)
def test_a_rule_that_is_named_is_seen(
    source: str, named: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "some.py").write_text(source, "utf-8")
    assert named_rules([tmp_path / "some.py"]) == {("some", name) for name in named}


def test_links_are_links_in_git_and_missing_in_a_source_distribution() -> None:
    if not is_checkout():
        assert [name for name in LINKS if (ROOT / name).exists()] == []
        return
    staged = [
        line.split(maxsplit=3) for line in git("ls-files", "--stage", "--", *LINKS).splitlines()
    ]
    assert {path: mode for mode, _, _, path in staged} == dict.fromkeys(LINKS, "120000")
    assert {name: str((ROOT / name).readlink()) for name in LINKS} == LINKS


CRAWL = """
import atexit, sys
from scrapy.cmdline import execute

@atexit.register
def second_copies():
    names = {name.partition(".")[0] for name in sys.modules}
    print("copies:", sorted(names & {"crawler", "policies", "spiders"}), "comity" in names)

execute(["scrapy", "crawl", "site", "-a", sys.argv[1], "-s", sys.argv[2], "-s", "COMITY_MIN_DELAY=0"])
"""


@pytest.mark.usefixtures("new_processes")
@pytest.mark.slow
def test_a_crawl_in_the_checkout_loads_nothing_twice(serve: Serve, tmp_path: Path) -> None:
    site = serve({"/robots.txt": "User-agent: *\nDisallow:\n", "/": "<p>a page</p>"})
    command = [
        sys.executable,
        "-c",
        CRAWL,
        f"url={site.origin}/",
        f"COMITY_STORE={tmp_path / 'policies.sqlite'}",
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert "copies: [] True" in done.stdout, done.stderr
    assert "/" in site.paths


def test_tests_are_no_packages() -> None:
    """An __init__.py in tests/policies would make that folder the module `policies`."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_settings_that_are_named_exist() -> None:
    named = {
        name
        for path in source_files()
        for name in re.findall(rb"\bCOMITY_[A-Z_]*[A-Z]\b", path.read_bytes())
    }
    assert {name.decode() for name in named} == {
        *DEFAULTS,
        PASSWORD,
    }  # a variable of the environment


def test_pages_that_are_named_exist() -> None:
    named = {
        (ROOT / page.decode())
        for path in source_files()
        for page in re.findall(rb"\bdocs/[a-z-]+\.md\b", path.read_bytes())
    }
    linked = {
        path.parent / page
        for path in ROOT.glob("docs/*.md")
        for page in re.findall(r"\]\(([^):#]+)\)", path.read_text("utf-8"))
    }
    made = ROOT / "docs" / "conformance.md"  # by `make docs`
    assert sorted(str(page) for page in (named | linked) - {made} if not page.exists()) == []


def test_texts_for_users_name_no_page_of_the_docs() -> None:
    """A wheel has no docs/. Messages say it, or name a command. The citations of rules, which name
    pages, are shown without them (`comity.policies.answers.rule.without_page`)."""
    page = re.compile(r"\bdocs/[a-z-]+\.md\b")
    specs = {rule.spec for rule in RULES.values()}
    texts: list[tuple[str, str]] = []
    for path in (ROOT / "comity").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts += [
            (path.name, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and node.value not in specs
            and not re.fullmatch(r"comity, docs/[a-z-]+\.md", node.value)
        ]
    suffixes = ("*.html", "*.js", "*.tmpl")
    texts += [
        (path.name, path.read_text("utf-8"))
        for suffix in suffixes
        for path in (ROOT / "comity").rglob(suffix)
    ]
    assert [name_and_text for name_and_text in texts if page.search(name_and_text[1])] == []
    assert not [spec for spec in specs if page.search(without_page(spec))]
    assert without_page("comity, docs/uses.md") == "comity"
    assert without_page("robots meta (docs/robots-meta.md)") == "robots meta"


def test_source_files_that_the_docs_name_exist() -> None:
    """By their path from the top, through its links too."""
    path = re.compile(
        r"\b(?:comity|policies|crawler|spiders|tests|examples)/[\w/.-]*\.(?:py|toml|json|xsd)\b"
    )
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    named = {name for page in pages for name in path.findall(page.read_text("utf-8"))}
    assert "comity/policies/permissions.schema.json" in named
    assert sorted(name for name in named if not path_of(name).exists()) == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = {path.name for path in source_files() if path.match("docs/*.md")}
    assert [page for page in sorted(pages - {"README.md"}) if f"]({page})" not in index] == []


def test_no_file_names_a_path_of_one_machine() -> None:
    local = re.compile(rb"/(?:home|Users|root)/\w|[A-Z]:\\Users\\|" + re.escape(bytes(ROOT) + b"/"))
    assert [
        (str(path), hit.group())
        for path in source_files()
        if (hit := local.search(path.read_bytes()))
    ] == []
