"""The site as an extension of Sphinx: its navigation, its links, and the checks of the pages.

Pages of docs/ are written for readers of the repository too, so they have no directives for the
navigation. The list in docs/README.md is the navigation of the site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from sphinx.application import Sphinx
from sphinx.highlighting import lexer_classes
from sphinx.util import logging

_RULE = re.compile(r"[a-z-]+\.[a-z-]+")
_ITEM = re.compile(r"^- \[([^\]]+)\]\(([a-z0-9/-]+)\.md\)", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(\.\./[^)#]+)")
# Attributes with the address of something that a browser loads by itself.
_LOADED = {("link", "href"), *((tag, "src") for tag in ("script", "img", "iframe", "source"))}
_LOADED_BY_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^)'\"]+)")
_NOT_LOADED = {"author", "canonical", "index", "next", "prev", "search"}

_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("repository", "", "env")
    lexer_classes["cron"] = lexer_classes["none"]
    app.connect("source-read", read)
    # Before Napoleon, which reads the sections of a docstring.
    app.connect("autodoc-process-docstring", mark_code, priority=400)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def slug(heading: str) -> str:
    """Return the name of a section in links. A rule keeps its dot; a file name loses it."""
    if _RULE.fullmatch(heading) and not heading.endswith(".txt"):
        return heading
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to a page, and lead its links to other files into the repository."""
    text = re.sub(r'^<a id="[^"]*"></a>\n', "", source[0], flags=re.MULTILINE)
    folder = (app.srcdir / page).parent
    text = _LINK.sub(lambda link: _outer(app, folder, link[1]), text)
    if page == app.config.root_doc:
        text += "".join(_trees(text))
    elif page == "rules":
        text += "\n```{toctree}\n:hidden:\n:glob:\n\nrules/*\n```\n"
    source[0] = text


def _outer(app: Sphinx, folder: Path, link: str) -> str:
    target = (folder / link).resolve()
    if target.is_relative_to(app.srcdir):
        return link
    path = target.relative_to(app.srcdir.parent).as_posix()
    return f"{app.config.repository}/{path}"


def _trees(text: str) -> Iterator[str]:
    """Yield a part of the navigation for each section of the list of pages."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        pages = _ITEM.findall(section)
        if pages:
            title = section.partition("\n")[0]
            lines = "\n".join(f"{name} <{page}>" for name, page in pages)
            yield f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n"


def mark_code(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Mark the examples of a docstring, which are indented paragraphs."""
    for number, line in reversed([*enumerate(lines)]):
        above = lines[number - 1] if number else ""
        opens = line.startswith("    ") and not above
        before = next((each for each in reversed(lines[:number]) if each), "")
        if opens and not before.startswith("    ") and not before.endswith(":"):
            lines[number:number] = [".. code-block:: python", ""]


# What axe-core finds in the pages of the theme, and its remedy.
_REPAIRS = {
    # The keyboard reaches blocks and tables that are wider than the screen.
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    # A heading without a level is none.
    '<p class="caption" role="heading">': '<p class="caption">',
    # Two parts of a page need two names.
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    # An empty cell in the head of a table is no heading.
    '<th class="head"><p></p></th>': "<td></td>",
    # The page of the search has no heading.
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}


def finish(app: Sphinx, error: Exception | None) -> None:
    """Repair the pages, check their links, and list the versions."""
    folder = Path(app.outdir)
    if error or app.builder.name != "html":
        return
    for path in folder.rglob("*.html"):
        text = path.read_text("utf-8")
        for wrong, right in _REPAIRS.items():
            text = text.replace(wrong, right)
        path.write_text(text, "utf-8")
    # The address of a folder leads to its index.html.
    home = folder / f"{app.config.root_doc}.html"
    (folder / "index.html").write_text(home.read_text("utf-8"), "utf-8")
    for problem in problems(folder):
        _log.warning(problem)
    if folder.name == app.config.release:
        (folder.parent / "index.html").write_text(versions(folder.parent), "utf-8")


def versions(folder: Path) -> str:
    """Return the page that lists the versions of the site in a folder, the newest first."""
    names = sorted(
        (each.parent.name for each in folder.glob("*/objects.inv")),
        key=lambda name: [int(part) for part in re.findall(r"\d+", name)],
        reverse=True,
    )
    items = "".join(
        f'<li><a href="{escape(name)}/index.html">comity {escape(name)}</a></li>' for name in names
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><title>comity</title></head>'
        f"<body><main><h1>The documentation of comity</h1><ul>{items}</ul></main></body></html>\n"
    )


class Page(NamedTuple):
    """The ids, the links and the loaded files of a page."""

    ids: set[str]
    links: list[str]
    loaded: list[str]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page(set(), [], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.page.ids.add(values["id"])
        is_loaded = not _NOT_LOADED & {*values.get("rel", "").split()}
        for name, value in values.items():
            if (tag, name) in _LOADED and is_loaded:
                self.page.loaded.append(value)
            elif name in ("href", "src"):
                self.page.links.append(value)


def problems(folder: Path) -> Iterator[str]:
    """Yield the broken inner links of all pages, and all files that another host would serve."""
    pages: dict[Path, Page] = {}
    for path in sorted(folder.rglob("*.html")):
        reader = _Reader()
        reader.feed(path.read_text("utf-8"))
        pages[path.resolve()] = reader.page
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        for address in (*page.links, *page.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded:
                    yield f"{name} loads {address}. Put the file into docs/site/static."
                continue
            target = Path(unquote(urlsplit(urljoin(path.as_uri(), address)).path))
            if target == folder.resolve().parent / "index.html":
                continue
            if not target.exists():
                yield f"{name}: the target of the link {address} does not exist."
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].ids
            ):
                yield f"{name}: the page of {address} has no such section."
    for path in sorted(folder.rglob("*.css")):
        for address in re.findall(
            r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", path.read_text("utf-8")
        ):
            yield f"{path.name} loads {address}. Put the file into docs/site/static."
