"""Counts names that tell a reader nothing, and docstrings that begin with a fragment: `make words`.

    python tests/words/run.py [--against FOLDER] [FILES]

A mirror and no gate: the exit status is 0 whatever it shows. There is a row for each file of comity that has any, and the sum;
of FILES (files or folders) each line is listed besides. `--against`: another tree, the sum of which is counted the same way.

A name is that of a class, function, parameter, variable or attribute, or an import's `as`. It counts once for the class or
function that it belongs to; `self`, `cls`, `_` and `__names__` are nobody's choice and do not count. It tells nothing where all
its words do: `found`, `_said`, `AskedFor`."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# Pronouns and words that stand for a noun like one, question words, prepositions, and participles of what any code does. Not
# those that other projects use as nouns (`rest`, `seen`, `done`), nor those of a domain (`parsed`, `refused`, `expired`).
EMPTY = frozenset(
    """
    one ones it its this that these those such own both each every everything anything something nothing whoever whatever
    what which who whom whose why because how where whether then here there place places
    of at by to from for with in on about upon
    said told stated named called asked answered written read found known given taken held kept left made meant shown sought
    wanted put placed carried brought led gone got listed counted begun
    """.split()  # noqa: SIM905  # to be read as words
)
VERBS = frozenset(("read", "put"))  # in the name of a function they say what to do

# Names that are words of a specification, in the files that implement it.
SPECIFIED = {
    "comity/policies/answers/decision.py": {"stated": "comity/policies/permissions.schema.json"},
    "comity/policies/document/selectors.py": {"of": "Selectors Level 4, `:nth-child(An+B [of S]?)`"},
}

# How neither a noun phrase ("The uses of one page.") nor a verb ("Return the next request.") begins.
FRAGMENTS = frozenset(
    """
    what which who whom whose why how where when whether whatever whichever whoever wherever whenever that those none
    of at by to from for with without in on as until
    """.split()  # noqa: SIM905
)

Scope = tuple[str, ...]  # the classes and functions around a name
Hit = tuple[int, str]  # line, text


class Words(NamedTuple):
    """The words of some source code."""

    names: int
    empty: list[Hit]
    docstrings: int
    fragments: list[Hit]

    @classmethod
    def of_source(cls, source: str, specified: Collection[str] = ()) -> Words:
        """Read the words of a module. `specified`: names that are words of its specification. SyntaxError, ValueError."""
        tree = ast.parse(source)
        names: dict[tuple[Scope, str], Hit] = {}
        for scope, name, node in _names(tree, (), ()):
            if name not in ("self", "cls") and name.strip("_") and not (name.startswith("__") and name.endswith("__")):
                is_empty = tells_nothing(name, is_function=isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
                hit = (getattr(node, "lineno", 0), name if is_empty and name.strip("_") not in specified else "")
                names.setdefault((scope, name), hit)
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)]
        docstrings = [(node.body[0].lineno, (ast.get_docstring(node) or "").partition("\n")[0]) for node in nodes]
        empty = [hit for hit in names.values() if hit[1]]
        return cls(len(names), empty, len(docstrings), [hit for hit in docstrings if is_fragment(hit[1])])

    @classmethod
    def in_sum(cls, parts: Collection[Words]) -> Words:
        """Add up the words of several files."""
        empty, fragments = [hit for part in parts for hit in part.empty], [hit for part in parts for hit in part.fragments]
        return cls(sum(part.names for part in parts), empty, sum(part.docstrings for part in parts), fragments)

    def row(self, title: str) -> str:
        """Return the words as a row of the table."""
        shares = [_percent(len(self.empty), self.names), _percent(len(self.fragments), self.docstrings)]
        common = ", ".join(f"{name} {count}" for name, count in Counter(name.strip("_") for _, name in self.empty).most_common(5))
        figures = f"{self.names:7}{len(self.empty):7}{shares[0]:>6}{self.docstrings:12}{len(self.fragments):11}{shares[1]:>6}"
        return f"{title:60}{figures}  {common}".rstrip()


def _names(node: ast.AST, scope: Scope, owner: Scope) -> Iterator[tuple[Scope, str, ast.AST]]:
    """Yield each name that is bound in a tree, with its scope. `owner`: the class around the node, which attributes belong to."""
    inner = scope
    match node:
        case ast.ClassDef(name=name):
            yield scope, name, node
            inner = owner = (*scope, name)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield scope, name, node
            inner = (*scope, f"{name}()")
        case ast.Lambda():
            inner = (*scope, f"lambda {node.lineno}:{node.col_offset}")
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield owner, name, node
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield scope, name, node
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
            yield scope, name, node
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield scope, name, node
    for child in ast.iter_child_nodes(node):
        yield from _names(child, inner, owner)


def tells_nothing(name: str, *, is_function: bool = False) -> bool:
    """Return whether no word of a name says what it stands for."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
    return bool(words) and EMPTY.issuperset(words) and not (is_function and words[0] in VERBS)


def is_fragment(docstring: str) -> bool:
    """Return whether a docstring begins with neither a noun phrase nor a verb."""
    begin = re.match(r"\w+", docstring)
    return begin is not None and begin[0].lower() in FRAGMENTS


def read(path: Path) -> dict[str, Words]:
    """Read the words of a file, or of each file in a folder that is Python."""
    words = {}
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        name = str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)
        try:
            words[name] = Words.of_source(file.read_text("utf-8"), SPECIFIED.get(name, ()))
        except (SyntaxError, ValueError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Counts names that tell nothing, and docstrings that begin with a fragment.")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another tree to count")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILES", help="files or folders, each line of which is listed")
    options = parser.parse_args(arguments)
    by_file = {name: words for path in options.files or [ROOT / "comity"] for name, words in read(path.resolve()).items()}
    if options.files:
        for name, words in by_file.items():
            print("".join(f"{name}:{line}: {text}\n" for line, text in sorted(words.empty + words.fragments)), end="")
    print(f"{'file':60}{'names':>7}{'empty':>7}{'%':>6}{'docstrings':>12}{'fragments':>11}{'%':>6}  the most common")
    for name, words in by_file.items():
        if words.empty or words.fragments:
            print(words.row(name))
    print(Words.in_sum(by_file.values()).row("in sum"))
    if options.against:
        print(Words.in_sum(read(options.against.resolve()).values()).row(str(options.against)))
    return 0


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


if __name__ == "__main__":
    sys.exit(main())
