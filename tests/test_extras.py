"""The extras in setup.cfg, in the documents, and in the messages about missing packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.selection import one_in

ROOT = Path(__file__).parent.parent
OF_ENGINES = {"dask", "playwright", "ray", "spark"}  # `all` leaves them out
_NAMED = re.compile(r"comity\[([a-z,-]+)\]")


def extras() -> dict[str, str]:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    return dict(setup["options.extras_require"].items())


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("editors/*/README.md")]


def test_all_is_the_union_of_the_extras_without_engines() -> None:
    found = extras()
    [union] = found["all"].split()
    match = _NAMED.fullmatch(union)
    assert match
    names = match[1].split(",")
    assert names == sorted(found.keys() - OF_ENGINES - {"all"})


def test_the_table_of_extras_has_each_of_them() -> None:
    page = (ROOT / "docs/dependencies.md").read_text("utf-8").partition("\n## Extras\n")[2]
    rows = re.findall(r"^\| `([a-z]+)` \|.*\| (yes|no)\b.*\|$", page, re.MULTILINE)
    assert {name for name, _ in rows} == extras().keys() - {"all"}
    assert {name for name, is_in_all in rows if is_in_all == "no"} == OF_ENGINES


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_documents_name_extras_that_exist_and_quote_them(page: Path) -> None:
    text = page.read_text("utf-8")
    for match in _NAMED.finditer(text):
        assert set(match[1].split(",")) <= extras().keys(), match[0]
    for command in re.findall(r"pip install [^\n`]*comity\[[^\n`]*", text):
        assert re.match(r'pip install "(?:\./)?comity\[[a-z,]+\]"', command), command


EXTRA_ARGUMENT = {"install": 0, "needs": 2, "required": 1}  # its position


def test_only_one_module_phrases_the_command() -> None:
    paths = [path for path in (ROOT / "comity").rglob("*.py") if path.name != "extras.py"]
    texts = {path: path.read_text("utf-8") for path in paths}
    assert [path for path, text in texts.items() if "comity[" in text] == []
    calling = [
        text for text in texts.values() if any(f"{name}(" in text for name in EXTRA_ARGUMENT)
    ]
    nodes = [node for text in calling for node in ast.walk(ast.parse(text))]
    named = set()
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        function = ast.unparse(call.func).removeprefix("extras.")
        if function in EXTRA_ARGUMENT:
            argument = call.args[EXTRA_ARGUMENT[function]]
            named.add(argument.value if isinstance(argument, ast.Constant) else "any")
    # Executors and the formats of files have the names of their extras.
    assert named == extras().keys() - {"all", "dask", "ray", "spark"} | {"any"}


@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize(
    ("module", "package", "extra"),
    one_in(
        2,
        [
            ("comity.browser", "playwright", "playwright"),
            ("comity.client.aiohttp", "aiohttp", "aiohttp"),
            ("comity.client.httpx", "httpx", "httpx"),
            ("comity.dataset.batches", "pyarrow", "parquet"),
            ("comity.dataset.tagged_batches", "pyarrow", "parquet"),
        ],
    ),
)
def test_a_module_whose_package_is_missing_names_the_extra(
    module: str, package: str, extra: str
) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.match(rf"ImportError: {re.escape(module)} needs {package}[\w.]*: pip install ", last)
    assert last.endswith(f': pip install "comity[{extra}]"')


def test_an_error_of_our_own_is_not_taken_for_a_missing_package() -> None:
    from comity.extras import required

    with (
        pytest.raises(ModuleNotFoundError, match=r"No module named 'comity\.nothing'"),
        required("this test", "report", ValueError),
    ):
        import comity.nothing  # type: ignore[import-not-found]  # noqa: F401
