"""Mistakes that somebody might make in a module: each is a text of the module in which one expression or statement of one
function is another. mutmut's operators make them, and a few of our own; what only changes texts for people is none.

Left out are tables, defaults of parameters, and whatever else is done when the module is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import MutationVisitor, OuterFunctionProvider
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

# mutmut leaves functions alone that are decorated, as properties are: their decorators are hidden from it.
_DECORATOR = re.compile(r"^( *)@(?!dataclass)", re.MULTILINE)
_HIDDEN = re.compile(r"^( *)#@", re.MULTILINE)
_FOR_PEOPLE = ("__str__", "__repr__")
_TEXTS = (
    m.FormattedString()
    | m.ConcatenatedString()
    | m.SimpleString(value=m.MatchIfTrue(lambda value: " " in value.strip()))
)
_TELLING = m.Call(
    func=m.Attribute(value=m.Name("logger"))
    | m.Name(
        m.MatchIfTrue(
            lambda name: name.endswith("Error") or name in ("cast", "Finding", "_finding", "warn")
        )
    )
)


class Fault(NamedTuple):
    function: str  # qualified name
    line: int  # 1-based
    before: str  # the lines that it changes, without what is around them
    after: str
    text: str  # of the module

    @property
    def key(self) -> str:
        return f"{self.function}: {self.before} -> {self.after}"


def faults(source: str) -> Iterator[Fault]:
    """Of a module with this source."""
    hidden = _DECORATOR.sub(r"\1#@", source)
    finder = _Finder()
    MetadataWrapper(cst.parse_module(hidden)).visit(finder)
    lines = hidden.splitlines(keepends=True)
    tree, seen = ast.parse(source), {source}
    for where, new in finder.edits:
        start, end = where.start, where.end
        changed = lines[start.line - 1][: start.column] + new + lines[end.line - 1][end.column :]
        before = "".join(lines[start.line - 1 : end.line])
        text = _HIDDEN.sub(r"\1@", "".join([*lines[: start.line - 1], changed, *lines[end.line :]]))
        if text not in seen:
            seen.add(text)
            yield Fault(
                _function_at(tree, start.line),
                start.line,
                _one_line(before),
                _one_line(changed),
                text,
            )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _function_at(tree: ast.AST, line: int) -> str:
    """The function, of a module or a class, that the line is in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(
            node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and node.lineno <= line <= (node.end_lineno or 0):
            return (
                f"{node.name}.{_function_at(node, line)}"
                if isinstance(node, ast.ClassDef)
                else node.name
            )
    return ""


class _Finder(MutationVisitor):
    """Collects which part of the source becomes which text."""

    METADATA_DEPENDENCIES = (PositionProvider, OuterFunctionProvider)

    def __init__(self) -> None:
        super().__init__(mutation_operators, IgnoredCode(set(), set(), set()))
        self.edits: list[tuple[CodeRange, str]] = []

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        is_told = m.matches(
            node,
            m.Assert()
            | _TELLING
            | m.Param()
            | m.FunctionDef(name=m.Name(m.MatchIfTrue(_FOR_PEOPLE.__contains__))),
        )
        return bool(is_told or super()._skip_node_and_children(node))

    def _create_mutations(self, node: cst.CSTNode) -> None:
        if not isinstance(self.get_metadata(OuterFunctionProvider, node, None), cst.FunctionDef):
            return
        if isinstance(node, cst.If | cst.CompIf):  # the opposite of a condition
            self._edit(node.test, f"not ({_code(node.test)})")
        elif isinstance(node, cst.For) and isinstance(node.iter, cst.Tuple):  # another order
            self._edit(node.iter, _code(node.iter.with_changes(elements=node.iter.elements[::-1])))
        elif m.matches(
            node, m.Expr(value=m.Call() | m.Await() | m.Yield()) | m.Raise() | m.Continue()
        ):
            self._edit(node, "pass")
        if isinstance(node, cst.BaseCompoundStatement) or m.matches(node, _TEXTS):
            return
        for kind, operator in self._operators:
            if isinstance(node, kind):
                for mutated in operator(node):
                    if not _is_noise(node, mutated):
                        self._edit(node, _code(mutated))

    def _edit(self, node: cst.CSTNode, text: str) -> None:
        self.edits.append((self.get_metadata(PositionProvider, node), text))


def _is_noise(node: cst.CSTNode, mutated: cst.CSTNode) -> bool:
    """Whether it makes no difference but to who reads: another case of letters, or an argument that is a text."""
    if isinstance(node, cst.SimpleString):
        return _code(node).lower() == _code(mutated).lower()
    if isinstance(node, cst.Assign | cst.AnnAssign) and m.matches(node.value, m.Name("False")):
        return True  # None is as false
    if isinstance(node, cst.Call) and isinstance(mutated, cst.Call):
        kept = [arg for arg in mutated.args if arg in node.args]
        return any(m.matches(arg.value, _TEXTS) for arg in node.args if arg not in kept)
    return False


def _code(node: cst.CSTNode) -> str:
    return str(cst.Module([]).code_for_node(node))
