"""The parser of HTML, one for the whole process.

    choose("tinyhtml5")     use this parser from now on
    parse(text)             the tree of a text (tree)

turbohtml is written in C and reads every page. tinyhtml5 is written in Python and runs wherever
Python does. Either is imported with the first page."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

from comity.policies.answers.errors import PolicyError
from comity.policies.document.html.tree import HtmlTree

AUTO, TURBOHTML, TINYHTML5 = "auto", "turbohtml", "tinyhtml5"
# The setting, and the environment variable for commands and programs without settings.
SETTING = "COMITY_HTML_PARSER"

_chosen = [AUTO]


def choose(name: str) -> None:
    """Use the parser with this name from now on, in all threads. "auto": as chosen before.

    If no parser is chosen, it is the one that the environment variable names, else turbohtml if it
    is installed, else tinyhtml5. PolicyError: the parser is unknown or not installed."""
    name = _chosen[0] if name == AUTO else name
    _check(name)
    _chosen[0] = name


def parse(text: str) -> HtmlTree:
    """Return the tree of a text. PolicyError: the parser is unknown or not installed."""
    return _tree_of(_chosen[0])(text)


@cache
def _tree_of(name: str) -> Callable[[str], HtmlTree]:
    if _check(name) == TURBOHTML:
        from comity.policies.document.html import turbohtml_tree

        return turbohtml_tree.Tree
    from comity.policies.document.html import tinyhtml5_tree

    return tinyhtml5_tree.Tree


def _check(name: str) -> str:
    """Return the name of the parser that `name` stands for. PolicyError: it cannot be used."""
    if name == AUTO:
        name = os.environ.get(SETTING) or AUTO
    if name == AUTO:
        name = TURBOHTML if find_spec(TURBOHTML) else TINYHTML5
    if name not in (TURBOHTML, TINYHTML5):
        raise PolicyError(
            f"{SETTING} = {name!r} is no parser of HTML: write {AUTO}, {TURBOHTML} or {TINYHTML5}"
        )
    if not find_spec(name):
        raise PolicyError(f"{SETTING}: {name} is not installed. Install it, or write {AUTO}")
    return name
