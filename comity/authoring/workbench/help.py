"""Help in the editor, by the functions of the language server: completion, hover and colours.

completions(state, url, position)    the words that may follow, for CodeMirror
hover(state, url, position, ...)     the meaning of the word at a position, as HTML
colours(state, url)                  the types of words, for syntax colours"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import islice
from posixpath import dirname
from typing import Any, NamedTuple

from lsprotocol.types import MarkupContent, Position, TextEdit

from comity.authoring.language_server import tasks
from comity.authoring.language_server.documents import UTF16, UTF32
from comity.authoring.language_server.features.completion import completion
from comity.authoring.language_server.features.tokens import TYPES
from comity.authoring.language_server.samples import Samples, selectors_in
from comity.authoring.language_server.tasks import Snapshot, outline_of
from comity.authoring.problems import Problem
from comity.authoring.workbench.state import State, text_of
from comity.policies.syntax.printable import unhidden

MAX_COLOURED = 64 * 1024  # the maximum characters of a file that gets colours
MAX_PAGES = 10  # the maximum number of pages that are searched for selectors

_MARKDOWN = re.compile(
    r"`(?P<code>[^`]*)`|\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^*]+)\*"
    r"|\[(?P<label>[^\]]+)\]\((?P<href>https?://[^)\s]+)\)|&lt;(?P<url>https?://\S+?)&gt;"
)


class Colour(NamedTuple):
    """The type of a word, one of `tokens.TYPES`. Lines and columns count characters from 0."""

    line: int
    start: int
    end: int
    type: str


def _snapshot(state: State, url: str, encoding: str) -> Snapshot:
    fetched = state.documents.get(url)
    return Snapshot(url, text_of(fetched.body).text if fetched else "", encoding)


def completions(state: State, url: str, position: Position) -> dict[str, Any] | None:
    """Return the words that may follow, with the place of the word that they replace.

    None: there are none. `position` counts UTF-16 units, as browsers do."""
    offered = completion(outline_of(_snapshot(state, url, UTF16)), position, _samples(state))
    options, start, end = [], position.character, position.character
    for item in offered.items:
        if isinstance(edit := item.text_edit, TextEdit):
            start, end = edit.range.start.character, edit.range.end.character
            info = item.documentation
            text = info.value if isinstance(info, MarkupContent) else ""
            option = {"label": item.label, "apply": edit.new_text, "info": html_of(text)}
            options.append({**option, "detail": item.detail or ""})
    return {"start": start, "end": end, "options": options} if options else None


def _samples(state: State) -> Samples:
    """Return the paths and selectors of the pages."""
    targets = tuple(state.name(url) for url in state.pages)
    folders = dict.fromkeys(f"{dirname(path).rstrip('/')}/" for path in targets)
    selectors: Counter[str] = Counter()
    for fetched in islice(state.pages.values(), MAX_PAGES):
        selectors.update(selectors_in(fetched.body.decode("utf-8", "replace")))
    return Samples(targets, tuple(folders), tuple(name for name, _ in selectors.most_common()))


def hover(state: State, url: str, position: Position, problems: Sequence[Problem]) -> str:
    """Return the meaning of the word at a position, and advice about its problems, as HTML.

    "": the word has no meaning of its own. `position` counts UTF-16 units."""
    answer = tasks.hover_at(_snapshot(state, url, UTF16), position, problems)
    contents = answer.contents if answer else None
    return html_of(contents.value) if isinstance(contents, MarkupContent) else ""


def colours(state: State, url: str) -> tuple[Colour, ...]:
    """Return the types of the words in a file. (): it is larger than MAX_COLOURED."""
    snapshot = _snapshot(state, url, UTF32)
    if len(snapshot.text) > MAX_COLOURED:
        return ()
    data = iter(tasks.tokens_of(snapshot).data)
    words, line, start = [], 0, 0
    for lines, columns, length, kind, _ in zip(*[data] * 5, strict=True):
        line, start = line + lines, columns if lines else start + columns
        words.append(Colour(line, start, start + length, TYPES[kind]))
    return tuple(words)


def html_of(markdown: str) -> str:
    """Return the Markdown of the language server as HTML. All texts are escaped."""
    paragraphs = (escape(unhidden(part, keep="\n")) for part in markdown.split("\n\n") if part)
    return "".join(f"<p>{_MARKDOWN.sub(_element, part)}</p>" for part in paragraphs)


def _element(mark: re.Match[str]) -> str:
    for name in ("code", "strong", "em"):
        if mark[name] is not None:
            return f"<{name}>{mark[name]}</{name}>"
    href = mark["href"] or mark["url"]
    return f'<a href="{href}" target=_blank rel=noreferrer>{mark["label"] or href}</a>'
