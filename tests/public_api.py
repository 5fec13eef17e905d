"""The public names of comity (docs/stability.md), one a line: tests/public_api.txt.

    python -m tests.public_api      writes the file; `make docs` does it too

tests/test_generated.py compares the file with the code. So a review of a change sees each public
name that comes, goes or changes."""

from __future__ import annotations

import ast
import inspect
import re
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from comity.cluster.redis.scripts import SHARED_VERSION
from comity.cluster.steps.queue import DATA_VERSION
from comity.completion import full_parser, subparsers
from comity.crawler.feeds.policy_archive import JOURNAL
from comity.crawler.frontier.journal import KIND as QUEUE
from comity.gate.fetching.store import KIND as STORE
from comity.gate.options.declared import SETTINGS
from comity.gate.pace.ledger import KIND as PACE
from comity.policies.answers.rule import RULES
from comity.policies.tag import schema
from comity.report.value import SCHEMA as REPORT
from comity.report.value import Report
from tests.sources import ROOT, source_files

RECORDED = ROOT / "tests" / "public_api.txt"
# Scrapy's own commands: comity adds no option to them.
OF_SCRAPY = ("crawl", "runspider")
# Modules of packages that the tests do not need: their names are recorded without parameters.
NOT_IMPORTED = ("comity.dataset.datatrove",)


def public_api() -> str:
    """Return the lines of tests/public_api.txt."""
    lines = {*schemas(), *entry_points(), *settings(), *rules(), *stats(), *python(), *commands()}
    return "\n".join(sorted(lines)) + "\n"


def settings() -> Iterator[str]:
    return (f"setting {one.name}: {one.kind.unit}" for one in SETTINGS)


def rules() -> Iterator[str]:
    return (f"rule {rule}" for rule in RULES)


def schemas() -> Iterator[str]:
    """Yield the versions of all formats of files."""
    for kind in (STORE, PACE, QUEUE, JOURNAL):
        yield f"version of the {kind.name}: {kind.version}"
    yield f"version of the report: {REPORT}"
    yield f"version of the data of a crawl on a Redis server: {DATA_VERSION}"
    yield f"version of pace and policies on a Redis server: {SHARED_VERSION}"
    tag = schema()["properties"]
    yield f"version of the tag: {tag['schema']['const']}"
    yield from (f"key of the tag: {name}" for name in tag)
    yield from (f"key of the report: {one.name}" for one in fields(Report))


def entry_points() -> Iterator[str]:
    """Yield the groups in which other packages can add something, and comity's own entry points."""
    yield "entry points of others: comity.formats"
    yield "entry points of others: comity.state"
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    for group, lines in setup["options.entry_points"].items():
        yield from (f"entry point {group}: {line.split()[0]}" for line in lines.split("\n") if line)
    yield from (f"extra {name}" for name in setup["options.extras_require"])


def stats() -> Iterator[str]:
    """Yield the names of statistics. `<>`: a part that differs from crawl to crawl."""
    for path in (ROOT / "comity").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            name = "".join(
                part.value
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
                else "<>"
                for part in parts
            )
            if re.fullmatch(r"comity/[a-z-]+/[a-z0-9<>./-]+[a-z0-9<>]", name):
                yield f"stat {name}"


# Commands


def commands() -> Iterator[str]:
    """Yield the commands and their options, from their parsers.

    `scrapy NAME` has the options of `comity NAME` (tests/test_commands.py)."""
    parsers = subparsers(full_parser())
    for name, parser in parsers.items():
        yield from _command(f"comity {name}", None if name in OF_SCRAPY else parser)
    for line in entry_points():
        group, _, name = line.removeprefix("entry point ").partition(": ")
        if group == "scrapy.commands":
            yield from _command(f"scrapy {name}", None if name in OF_SCRAPY else parsers[name])


def _command(name: str, parser: ArgumentParser | None) -> Iterator[str]:
    """Yield a command, its options and its actions. None: its options are not comity's."""
    yield f"command {name}"
    if parser is None:
        return
    for group in parser._action_groups:
        for action in group._group_actions if group.title != "Global Options" else ():
            if action.help != SUPPRESS and action.dest != "help":
                yield from (f"command {name} {option}" for option in action.option_strings)
    for action_name, of_action in subparsers(parser).items():
        yield from _command(f"{name} {action_name}", of_action)


# Python


def python() -> Iterator[str]:
    """Yield the public names of modules, with their parameters and members."""
    shortest: dict[int, str] = {}
    for name, value in sorted(public_names().items(), key=lambda item: (len(item[0]), item[0])):
        first = shortest.setdefault(id(value), name) if callable(value) else name
        if first == name:
            yield from _describe(name, value)
        else:
            yield f"python {name}: {first}"


def public_names() -> dict[str, Any]:
    """Return the public names with their values.

    They are the names that README.md and docs/ write in full, and the names that their Python and
    examples/ import. If that is a module with `__all__`, the names in `__all__` are public."""
    names: set[str] = set()
    for path in source_files():
        place = path.relative_to(ROOT)
        if place.parts[0] == "examples" and path.suffix == ".py":
            names |= set(_imports(path.read_text("utf-8")))
        elif place.match("docs/*.md") or place == Path("README.md"):
            text = path.read_text("utf-8")
            names |= set(re.findall(r"\bcomity(?:\.\w+)+", text))
            for block in re.findall(r"(?ms)^```python.*?\n(.*?)^```", text):
                names |= set(_imports(block))
    public: dict[str, Any] = {}
    for name in names:
        value = _resolve(name)
        if isinstance(value, ModuleType):
            stated = getattr(value, "__all__", ())
            public |= {f"{name}.{attribute}": getattr(value, attribute) for attribute in stated}
        elif value is not None:
            public[name] = value
    return public


def _imports(source: str) -> Iterator[str]:
    """Yield the names that a source imports from comity."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for node in ast.walk(compile(source, "source", "exec", flags, dont_inherit=True)):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "comity":
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _resolve(name: str) -> Any:
    """Return the attribute of a module, or the module, that has a name. None: there is none."""
    module, _, attribute = name.rpartition(".")
    if module in NOT_IMPORTED:
        return name
    if name in NOT_IMPORTED:
        return None
    try:
        parent = import_module(module)
        # A module is an attribute of its parent only after its import.
        return getattr(parent, attribute) if hasattr(parent, attribute) else import_module(name)
    except ModuleNotFoundError as error:
        if f"{error.name}".startswith("comity"):
            return None
        raise


def _describe(name: str, value: Any) -> Iterator[str]:
    """Yield the lines of a public name: its parameters, and the members of a class."""
    if not inspect.isclass(value):
        yield f"python {name}{_parameters(value) if inspect.isfunction(value) else ''}"
        return
    own = [one for one in value.__mro__ if one.__module__.split(".")[0] == "comity"]
    is_made = any("__init__" in vars(one) or "_fields" in vars(one) for one in own)
    is_made = is_made and not getattr(value, "_is_protocol", False)
    yield f"python {name}{_parameters(value) if is_made else ''}"
    for one in own:
        for member, content in {**inspect.get_annotations(one), **vars(one)}.items():
            if not member.startswith("_"):
                function = getattr(content, "__func__", content)
                described = _parameters(function) if inspect.isfunction(function) else ""
                yield f"python {name}.{member}{described}"


def _parameters(function: Any) -> str:
    """Return the parameters of a function, with their default values, but without their types."""
    parameters = [
        one.replace(annotation=one.empty, default=_default(one.default))
        for one in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(parameters))


class _Other:
    """A default value with a text that may differ between versions of Python."""

    def __repr__(self) -> str:
        return "..."


def _default(value: Any) -> Any:
    is_simple = value is None or type(value) in (bool, int, float, str, bytes)
    return value if is_simple or value is inspect.Parameter.empty else _Other()


if __name__ == "__main__":
    RECORDED.write_text(public_api(), "utf-8")
