"""Documents for tests. The mark `|` is a position in them."""

from __future__ import annotations

from lsprotocol.types import CompletionItem, MarkupContent, Position

from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.features.completion import completion
from comity.authoring.language_server.features.hover import hover
from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.samples import NONE, Samples


def at(name: str, marked: str, *, encoding: str = "utf-16") -> tuple[FileOutline, Position]:
    """Return the document without its mark, and the position of the mark."""
    before, _, after = marked.partition("|")
    document = Document(f"file:///site/{name}", before + after, encoding=encoding)
    line = before.count("\n")
    return FileOutline(document), document.position(line, len(before.rpartition("\n")[2]))


def items(
    name: str, marked: str, samples: Samples = NONE, *, has_snippets: bool = False
) -> dict[str, CompletionItem]:
    outline, position = at(name, marked)
    return {
        item.label: item
        for item in completion(outline, position, samples, has_snippets=has_snippets).items
    }


def hover_text(name: str, marked: str) -> str:
    """Return the hover text, or "" if there is none."""
    shown = hover(*at(name, marked))
    if shown is None:
        return ""
    assert isinstance(shown.contents, MarkupContent)
    return shown.contents.value
