"""The two parsers of HTML, side by side in one run: time, memory and import.

    python benchmarks/parsers.py

Each figure of a page is the CPU time of `Html(text)` with its statements and its tree of lxml.
Memory is the growth of the process while it reads the page, with the modules loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rounds import in_turns, peak

from comity.policies.document.html.tinyhtml5_tree import Tree as Tiny
from comity.policies.document.html.tree import HtmlTree
from comity.policies.document.html.turbohtml_tree import Tree as Turbo
from comity.policies.document.markup import Html

ROW = """<article id=n{0} class="story small"><h2><a href="/news/{0}.html">Story {0} &amp; more</a></h2>
<p>Some words of the story, with <b>bold</b> and <i>other</i> ones, and an <img src="/{0}.jpg">.
<ul><li>one<li>two</ul></article>
"""
SIZES = {"20 KiB": 20, "100 KiB": 100, "1 MiB": 1024}  # KiB
ROUNDS = 5
GROWTH = """
import sys
sys.path.insert(0, {folder!r})
from parsers import TREES, grown, page
print(grown(TREES[{name!r}], page({size})))
"""
TREES = {"turbohtml": Turbo, "tinyhtml5": Tiny}
IMPORT = "import sys; sys.path[:0] = {path!r}; import comity.policies.document.markup{module}"


def page(size: int) -> str:
    """Return a page of about `size` KiB."""
    rows = size * 1024 // len(ROW) + 1
    head = "<!doctype html><meta name=robots content=noindex>\n"
    return head + "".join(ROW.format(number) for number in range(rows))


def read(tree: type[Turbo | Tiny], text: str) -> Html:
    document = Html(text)
    parsed: HtmlTree = tree(document._text)
    document.__dict__["_tree"] = parsed
    assert any(tag.name == "meta" for tag in document.tags("meta", "link", "script"))
    assert len(document.root)
    return document


def grown(tree: type[Turbo | Tiny], text: str) -> int:
    """Return the KiB by which the process grows at most while it reads the page."""
    read(tree, page(1))
    before = peak()
    read(tree, text)
    return peak() - before


def cpu(program: str) -> float:
    """Return the least seconds of CPU of a new process, of some."""
    seconds = []
    for _ in range(ROUNDS):
        process = subprocess.Popen([sys.executable, "-c", program])
        _, status, usage = os.wait4(process.pid, 0)
        assert not os.waitstatus_to_exitcode(status)
        seconds.append(usage.ru_utime + usage.ru_stime)
    return min(seconds)


def memory(name: str, size: int) -> float:
    """Return the MiB by which a new process grows."""
    program = GROWTH.format(folder=str(Path(__file__).parent), name=name, size=size)
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return int(printed.stdout) / 1024


def main() -> None:
    table = Table("", *TREES, "tinyhtml5 / turbohtml")
    for name, size in SIZES.items():
        text = page(size)
        turbo, tiny = in_turns(lambda: read(Turbo, text), lambda: read(Tiny, text), rounds=ROUNDS)  # noqa: B023
        milliseconds = [took.least * 1e3 for took in (turbo, tiny)]
        ratio = f"{tiny.least / turbo.least:.0f}"
        table.add_row(f"{name}: ms", *(f"{figure:.1f}" for figure in milliseconds), ratio)
        grew = [memory(parser, size) for parser in TREES]
        table.add_row(f"{name}: MiB", *(f"{figure:.1f}" for figure in grew), "")
    without = cpu(IMPORT.format(path=sys.path, module=""))
    starts = [
        cpu(IMPORT.format(path=sys.path, module=f", comity.policies.document.html.{name}_tree"))
        - without
        for name in TREES
    ]
    table.add_row("import: ms", *(f"{seconds * 1e3:.0f}" for seconds in starts), "")
    Console(width=90).print(table)


if __name__ == "__main__":
    main()
