"""The Python of README.md and docs/: the blocks, and the calls and names in the text.

Mypy checks each of them against the package. A block that needs nothing else is run. Settings are read as a project's."""

from __future__ import annotations

import ast
import builtins
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import time_machine
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from comity.gate.options import Options
from comity.policies.answers.rule import RULES

ROOT = Path(__file__).parent.parent
PAGES = {
    page: (ROOT / page).read_text("utf-8")
    for page in (
        "README.md",
        *(
            f"docs/{path.name}"
            for path in sorted(ROOT.glob("docs/*.md"))
            if path.name != "conformance.md"
        ),
    )
}
_FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_OURS = re.compile(r"comity(\.\w+)+")

SETTINGS = (
    "ADDONS",
    "COMITY_",
    "DOWNLOAD_HANDLERS",
    "EXTENSIONS",
    "FEED",
    "ITEM_PIPELINES",
    "SPIDER_MIDDLEWARES",
    "TWISTED_REACTOR",
    "USER_AGENT",
)
# Code in the text that is not Python's: functions of web pages; groups of entry points, a command of the language server, files.
NOT_PYTHON = {"fetch()", "fetchLater()", "importScripts()", "sendBeacon()", "url()"}
NOT_MODULES = {"comity.formats", "comity.state", "comity.otherForm", "comity.sqlite"}
BEGINNING = """
from __future__ import annotations
from collections.abc import Callable
from datetime import datetime
from typing import Any
from comity.policies import Page
from comity.policies.document.document import Content
from scrapy import Request, Spider
from scrapy.http import TextResponse
anything: Any
content: Content
page: Page
request: Request
start = Spider().start
url: str
"""
# The names that the code of a page takes as given.
GIVEN = {
    "docs/clients.md": """
        from comity.client.aiohttp import saying
        from comity.policies.answers.request import Session
        client: Client
        fetch: Any
        headers: dict[str, str]
        http: httpx.AsyncClient
        response: httpx.Response
        session: aiohttp.ClientSession
    """,
    "docs/dataset-clusters.md": """
        import dask.bag, ray
        from comity.dataset.batches import recrawled_in
        batches: Any
        frame: Any
        schema: Any
        usable: UsableBatches
        JsonlReader: Any
        JsonlWriter: Any
    """,
    "docs/datasets.md": "from comity.dataset.batches import Terms",
    # tests/test_deployment.py runs its scripts.
    "docs/deployment.md": "from scrapy.utils.project import get_project_settings",
    "docs/existing-data.md": """
        import duckdb, polars, pyarrow.parquet, ray
        dataset: Any
        frame: Any
    """,
    "docs/formats.md": """
        from comity.policies.answers.rule import Rule
        from comity.policies.formats.robots.file import lines_of
        from comity.policies.formats.format import Format, WellKnown
        from comity_courtesy import RULES, VOCABULARY, read_document, read_headers, read_site
    """,
    "docs/guard.md": """
        from comity.policies.answers.request import Session
        app: Any
        my_sessions: Any
        credentials: Any
    """,
    "docs/items.md": """
        import scrapy
        extract: Any
        response: TextResponse
        MyItem: Any
    """,
    "docs/notebooks.md": """
        item: dict[str, Any]
        text: str
    """,
    "docs/policy-captures.md": "moment: datetime",
    "docs/projects.md": """
        from scrapy.crawler import Crawler
        from scrapy.utils.test import get_crawler
        from_crawler: Callable[[Crawler], object]
    """,
    "docs/scheduler.md": """
        from comity.crawler.crawl import Crawl
        insert: Any
    """,
    "docs/state.md": "start_a_server: Any",
    # tests/test_site_pages.py runs its script.
    "docs/tutorial-publishing.md": "from comity.guard import Guard, Incoming",
}
# What mypy says of code that is right on a page: it leaves out annotations, and what to do where a value is None.
ALLOWED = {
    "import-not-found",
    "import-untyped",
    "misc",
    "no-any-return",
    "no-redef",
    "no-untyped-call",
    "no-untyped-def",
    "type-arg",
    "union-attr",
}


class Code(NamedTuple):
    """A piece of code on a page."""

    page: str
    line: int
    text: str

    @property
    def module(self) -> ast.Module:
        tree = compile(
            self.text, self.page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        assert isinstance(tree, ast.Module)
        return tree


def blocks() -> Iterator[Code]:
    for page, text in PAGES.items():
        for match in _FENCED.finditer(text):
            if match[1] == "python":
                yield Code(page, text.count("\n", 0, match.start()) + 2, match[2])


def quotations() -> Iterator[Code]:
    """Yield the calls of Python in the text, and the names of what the package has."""
    for page, text in PAGES.items():
        text = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)
        for match in _INLINE.finditer(text):
            code = Code(page, text.count("\n", 0, match.start()) + 1, match[1])
            try:
                expression = code.module.body[0]
            except (SyntaxError, IndexError):
                continue
            is_ours = _OURS.fullmatch(code.text) and code.text not in {*RULES, *NOT_MODULES}
            has_call = any(isinstance(node, ast.Call) for node in ast.walk(expression))
            if is_ours or (has_call and code.text not in NOT_PYTHON):
                yield code


def is_settings(code: Code) -> bool:
    """Return whether a block assigns settings of a project and does nothing else but import."""
    statements = [each for each in code.module.body if not isinstance(each, ast.ImportFrom)]
    return all(
        isinstance(each, ast.Assign) and ast.unparse(each).startswith(SETTINGS)
        for each in statements
    )


def _file_of(name: str) -> Path:
    """Return the file of the module that a dotted name begins with."""
    path = ROOT / name.replace(".", "/")
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in files if file.is_file()), None) or _file_of(
        name.rpartition(".")[0]
    )


def _module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _defined(text: str, *, with_imports: bool = True) -> set[str]:
    """Return the names that a module defines. `with_imports`: and those that it imports."""
    names: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if with_imports and isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            names |= {
                each.id
                for each in ast.walk(node)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
    return names


class _Anything(ast.NodeTransformer):
    """Puts a name in the place of `...`."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Name("anything") if node.value is ... else node


def _function(head: str, statements: list[ast.stmt]) -> str:
    return f"async def {head} -> None:\n" + textwrap.indent(
        ast.unparse(ast.Module(statements, [])) or "...", "    "
    )


def module_for_mypy(page: str) -> str:
    """Return the code of a page as a module. The function `line_N` has the code that stands in line N."""
    of_page = [code for code in blocks() if code.page == page and not is_settings(code)]
    functions = [_function(f"line_{code.line}()", code.module.body) for code in of_page]
    head = BEGINNING
    for statement in (each for code in of_page for each in code.module.body):
        if isinstance(statement, ast.Import | ast.ImportFrom) and not _defined(head) & _defined(
            ast.unparse(statement)
        ):
            head += f"{ast.unparse(statement)}\n"
    head += textwrap.dedent(GIVEN.get(page, ""))
    named = [code for code in quotations() if code.page == page]
    files = [_file_of(match[0]) for code in named if (match := _OURS.match(code.text))]
    modules = {
        _module_of(file): _defined(file.read_text("utf-8"), with_imports=False) for file in files
    }
    given = {*dir(builtins), "comity", *_defined(head)}
    for number, code in enumerate(named):
        tree = _Anything().visit(code.module)
        nodes = [*ast.walk(tree)]
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        values = [
            value
            for call in calls
            for value in (*call.args, *(keyword.value for keyword in call.keywords))
        ]
        arguments = {value.id for value in values if isinstance(value, ast.Name)} - given
        for name in {node.id for node in nodes if isinstance(node, ast.Name)} - arguments - given:
            module = next((each for each, names in modules.items() if name in names), "")
            head += f"\nfrom {module} import {name}" if module else f"\nimport {name}"
        parameters = ", ".join(f"{name}: Any" for name in sorted(arguments))
        functions.append(_function(f"line_{code.line}_{number}({parameters})", tree.body))
    return "\n".join([head, *(f"import {module}" for module in modules), *functions])


@pytest.mark.slow
def test_mypy_has_no_complaint_about_the_docs(tmp_path: Path) -> None:
    texts = {f"{re.sub(r'[^a-z]', '_', page.lower())}.py": module_for_mypy(page) for page in PAGES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--follow-imports=silent",
        "--no-error-summary",
        "--output=json",
    ]
    done = subprocess.run(
        [*command, *(tmp_path / name for name in texts)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    wrong = []
    for error in map(json.loads, done.stdout.splitlines()):
        is_ours = '"comity' in error["message"]
        if error["severity"] == "error" and (is_ours or error["code"] not in ALLOWED):
            name = Path(error["file"]).name
            before = texts[name].splitlines()[: error["line"]]
            head = next(
                (line for line in reversed(before) if line.startswith("async def line_")), ""
            )
            wrong.append((name, head, before[-1].strip(), error["message"]))
    assert wrong == [], "\n".join(" | ".join(each) for each in wrong)


def _is_complete(code: Code) -> bool:
    """Return whether a block needs no name that it does not import or assign itself, and no event loop."""
    nodes = [*ast.walk(code.module)]
    given = {*re.findall(r"\w+", GIVEN.get(code.page, ""))}
    stored = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    has_loop = any(isinstance(node, ast.AsyncWith | ast.Await) for node in nodes)
    return names - given == names <= stored | imported | {*dir(builtins)} and not has_loop


def place(code: Code) -> str:
    return f"{code.page}:{code.line}"


SETTINGS_BLOCKS = [code for code in blocks() if is_settings(code)]
COMPLETE_BLOCKS = [
    code
    for code in blocks()
    if _is_complete(code) and "comity" in code.text and not is_settings(code)
]


@pytest.mark.parametrize("code", COMPLETE_BLOCKS, ids=place)
def test_a_block_that_needs_nothing_else_runs(code: Code) -> None:
    exec(code.text, {})


@time_machine.travel("2027-02-01T12:00Z")
@pytest.mark.parametrize("code", SETTINGS_BLOCKS, ids=place)
def test_a_block_of_settings_is_read(
    code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "api-token").write_text("secret", "utf-8")
    for name in ("EXAMPLE_SID", "API_BEARER", "NEWS_TOKEN"):
        monkeypatch.setenv(name, "secret")
    names: dict[str, Any] = {}
    for statement in code.module.body:
        exec(
            ast.unparse(statement), names
        )  # one by one: a block may show several forms of one setting
        settings = {name: value for name, value in names.items() if name.startswith(SETTINGS)}
        Options.from_settings(Settings(settings))
        for component in re.findall(r"comity(?:\.\w+)+", repr(settings)):
            assert load_object(component)
