"""Show where comity's English is hard to read: `make words`.

    python tests/words/run.py [FILES]

This is a mirror, not a gate: the exit status is always 0. It counts four habits that make a reader look twice:

- pronouns: *what, whatever, who, whoever, whom, whose, nobody* and *of which* in docstrings, comments and docs, in 100 words;
- participles as function names: `joined` or `fitted`, where a verb (`join`, `fit`) says what the function does;
- empty names: a name whose words all say nothing (`found`, `asked_for`), unless a specification uses the word;
- public class names that are defined in more than one module.

FILES are files or folders; the default is comity, docs and README.md. The table has a row for each folder and the sum. The list
below it has the hundred sentences with the most pronouns."""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = ("comity", "docs", "README.md")
SHOWN = 100  # sentences
SHORTEST = 8  # words; a shorter sentence counts as one of this length, or one pronoun would make it the worst

PRONOUNS = re.compile(
    r"\b(?:what|whatever|who|whoever|whom|whose|nobody|of which)\b", re.IGNORECASE
)
WORD = re.compile(r"[A-Za-z][\w'-]*")
CODE = re.compile(r"`[^`]*`")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*[-|*])")

# Words that stand for a noun, question words, prepositions, and participles of the things that any code does.
EMPTY = frozenset(
    """
    one ones it its this that these those such own both each every everything anything something nothing whoever whatever
    what which who whom whose why because how where whether then here there place places
    of at by to from for with in on about upon
    said told stated named called asked answered written read found known given taken held kept left made meant shown sought
    wanted put placed carried brought led gone got listed counted begun
    """.split()  # noqa: SIM905  # to be read as words
)
# Words that are verbs too, so a function may have them as its name.
VERBS = frozenset(
    (
        "read",
        "put",
        "run",
        "set",
        "cut",
        "split",
        "let",
        "hit",
        "shut",
        "embed",
        "feed",
        "need",
        "seed",
    )
)
PARTICIPLES = frozenset(
    """
    begun bound broken brought built chosen done drawn fed found given gone got held hidden kept known led left lent lost made
    meant met said seen sent shown sought spoken spread taken thrown told torn understood won written
    """.split()  # noqa: SIM905
)
# Names that are words of a specification, in the files that implement it.
SPECIFIED = {
    "comity/policies/answers/decision.py": {"stated": "comity/policies/permissions.schema.json"},
    "comity/policies/document/selectors.py": {
        "of": "Selectors Level 4, `:nth-child(An+B [of S]?)`"
    },
}

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Scope = tuple[str, ...]  # the classes and functions around a name


class Sentence(NamedTuple):
    """A sentence of prose, and where it begins."""

    file: str
    line: int
    text: str

    @property
    def pronouns(self) -> int:
        """The number of its pronouns."""
        return len(PRONOUNS.findall(self.text))

    @property
    def words(self) -> int:
        """The number of its words."""
        return len(WORD.findall(self.text))


@dataclass(slots=True)
class Words:
    """The words of some files."""

    sentences: list[Sentence] = field(default_factory=list)
    functions: int = 0
    participles: Counter[str] = field(default_factory=Counter)
    names: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    classes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Public class name -> the files that define it."""

    def add(self, other: Words) -> None:
        """Add the words of other files."""
        self.sentences += other.sentences
        self.functions += other.functions
        self.participles += other.participles
        self.names += other.names
        self.empty += other.empty
        for name, files in other.classes.items():
            self.classes[name] |= files

    @property
    def repeated(self) -> list[tuple[str, int]]:
        """Public class names with the number of files that define them, where there are several."""
        counts = ((name, len(files)) for name, files in self.classes.items() if len(files) > 1)
        return sorted(counts, key=lambda item: (-item[1], item[0]))

    def row(self, title: str) -> str:
        """Return the counts as a row of the table."""
        words = sum(sentence.words for sentence in self.sentences)
        pronouns = sum(sentence.pronouns for sentence in self.sentences)
        participles, empty = self.participles.total(), self.empty.total()
        return (
            f"{title:44}{words:8}{pronouns:10}{_rate(pronouns, words):>7}{self.functions:11}{participles:12}"
            f"{_rate(participles, self.functions):>7}{self.names:8}{empty:7}{_rate(empty, self.names):>7}"
        )


def read_python(source: str, file: str = "", specified: Collection[str] = ()) -> Words:
    """Return the words of a module. SyntaxError or ValueError if it is not Python.

    `specified`: empty names that are words of the specification that the module implements."""
    words = Words()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            words.sentences += sentences_of(text, file, node.body[0].lineno)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            words.classes[node.name].add(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith(
            "__"
        ):
            words.functions += 1
            if is_participle(node.name):
                words.participles[node.name] += 1
    for line, comment in _comments(source):
        words.sentences += sentences_of(comment, file, line)
    names = {(scope, name): node for scope, name, node in _names(tree, (), ()) if _is_chosen(name)}
    words.names = len(names)
    for (_, name), node in names.items():
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_empty(name, is_function=is_function) and name.strip("_") not in specified:
            words.empty[name] += 1
    return words


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("# noqa", "# type:")):
            yield token.start[0], token.string.lstrip("#: ")


def _is_chosen(name: str) -> bool:
    """Return False for names that the language or a convention dictates."""
    return (
        name not in ("self", "cls")
        and bool(name.strip("_"))
        and not (name.startswith("__") and name.endswith("__"))
    )


def _names(node: ast.AST, scope: Scope, owner: Scope) -> Iterator[tuple[Scope, str, ast.AST]]:
    """Yield each name that a tree binds, with its scope. `owner`: the class around the node, to which attributes belong."""
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
        case (
            ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield scope, name, node
    for child in ast.iter_child_nodes(node):
        yield from _names(child, inner, owner)


def read_markdown(source: str, file: str = "") -> Words:
    """Return the words of a page, without its code blocks."""
    blank = FENCE.sub(lambda match: "\n" * match[0].count("\n"), source)
    return Words(sentences=list(sentences_of(blank, file, 1)))


def sentences_of(text: str, file: str, line: int) -> Iterator[Sentence]:
    """Yield the sentences of a text that begins in this line, without what stands in backticks."""
    position = 0
    for match in [*SENTENCE_END.finditer(text), None]:
        end = match.start() if match else len(text)
        part = text[position:end]
        indent = len(part) - len(part.lstrip())
        plain = " ".join(CODE.sub("`…`", part).split())
        if plain:
            yield Sentence(file, line + text.count("\n", 0, position + indent), plain)
        position = match.end() if match else end


def is_participle(name: str) -> bool:
    """Return True if the name of a function is a participle alone, such as `joined` or `_written`."""
    word = name.strip("_").lower()
    if word in VERBS or "_" in word:
        return False
    return word in PARTICIPLES or (word.endswith("ed") and len(word) > len("need"))


def is_empty(name: str, *, is_function: bool = False) -> bool:
    """Return True if no word of a name says anything."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
    return bool(words) and EMPTY.issuperset(words) and not (is_function and words[0] in VERBS)


def read(path: Path) -> Words:
    """Return the words of a Python or Markdown file. A file that is neither is reported and has none."""
    name = str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
    try:
        source = path.read_text("utf-8")
        if path.suffix == ".md":
            return read_markdown(source, name)
        return read_python(source, name, SPECIFIED.get(name, ()))
    except (OSError, SyntaxError, ValueError) as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return Words()


def worst(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Return the sentences with the most pronouns for their length, the worst first."""
    hits = [sentence for sentence in sentences if sentence.pronouns]
    return sorted(
        hits, key=lambda sentence: (-sentence.pronouns / max(SHORTEST, sentence.words), sentence)
    )[:SHOWN]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Show where the English of comity is hard to read."
    )
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILES", help="files or folders (default: all)"
    )
    options = parser.parse_args(arguments)
    by_folder: dict[str, Words] = {}
    for path in options.files or [ROOT / name for name in DEFAULT]:
        for file in sorted([*path.rglob("*.py"), *path.rglob("*.md")]) if path.is_dir() else [path]:
            folder = file.resolve().parent
            title = str(folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder)
            by_folder.setdefault(title, Words()).add(read(file.resolve()))
    everything = Words()
    print(
        f"{'folder':44}{'words':>8}{'pronouns':>10}{'in 100':>7}{'functions':>11}{'participles':>12}{'%':>7}"
        f"{'names':>8}{'empty':>7}{'%':>7}"
    )
    for title, words in by_folder.items():
        print(words.row(title))
        everything.add(words)
    print(everything.row("sum"))
    for title, counter in (
        ("Participles", everything.participles),
        ("Empty names", everything.empty),
    ):
        if counter:
            print(
                f"\n{title}: {', '.join(f'{name} {count}' for name, count in counter.most_common(40))}"
            )
    if repeated := everything.repeated:
        listed = ", ".join(f"{name} {count}" for name, count in repeated)
        print(f"\n{len(repeated)} public class names are defined more than once: {listed}")
    if sentences := worst(everything.sentences):
        print(f"\nThe {len(sentences)} sentences with the most pronouns")
        print(
            "\n".join(f"{sentence.file}:{sentence.line}: {sentence.text}" for sentence in sentences)
        )
    return 0


def _rate(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}" if whole else "-"


if __name__ == "__main__":
    sys.exit(main())
