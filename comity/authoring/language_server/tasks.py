"""The tasks of the language server on one document.

Each task is a function of a `Snapshot`. Its arguments and its result can be sent to another process
(`work.Workers`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from lsprotocol import types as lsp

from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.features import (
    actions,
    completion,
    diagnostics,
    formatting,
    hints,
    hover,
    names,
    symbols,
    tokens,
)
from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.samples import Samples, samples, spread_evenly
from comity.authoring.problems import Problem


class Snapshot(NamedTuple):
    """A document at one moment, in values that another process can receive.

    Attributes:
        uri: The URI of the document.
        text: The text.
        encoding: The unit of columns in the editor, a `PositionEncodingKind`.
        folder: The folder of the site. "" means that it is not known.
    """

    uri: str
    text: str
    encoding: str
    folder: str = ""


Texts = tuple[tuple[str, str], ...]
"""Path on the site and text of several files."""
Kinds = tuple[str, ...] | None
"""The kinds of code actions that the editor wants. None means all."""


@lru_cache(maxsize=4)
def outline_of(snapshot: Snapshot) -> FileOutline:
    return FileOutline(Document(snapshot.uri, snapshot.text, encoding=snapshot.encoding))


def _samples_of(snapshot: Snapshot) -> Samples:
    return samples(Path(snapshot.folder) if snapshot.folder else None)


def find_problems(snapshot: Snapshot) -> list[Problem]:
    return diagnostics.problems_in(outline_of(snapshot).document)


def find_problems_in_folder(snapshot: Snapshot) -> list[Problem]:
    """Return the problems of a document together with the other files of its site."""
    folder = Path(snapshot.folder) if snapshot.folder else None
    return diagnostics.problems_in(outline_of(snapshot).document, folder)


def diagnostics_of(snapshot: Snapshot, problems: Sequence[Problem]) -> list[lsp.Diagnostic]:
    return diagnostics.diagnostics(outline_of(snapshot).document, problems)


def symbols_of(snapshot: Snapshot) -> list[lsp.DocumentSymbol]:
    return symbols.symbols(outline_of(snapshot))


def folding_of(snapshot: Snapshot) -> list[lsp.FoldingRange]:
    return symbols.folding(outline_of(snapshot))


def tokens_of(snapshot: Snapshot, first: int = 0, last: int | None = None) -> lsp.SemanticTokens:
    """Return the tokens of the lines from `first` to `last`. None means the last line."""
    return tokens.tokens(outline_of(snapshot), first, last)


def format_text(snapshot: Snapshot, *, tab_size: int, spaces: bool) -> list[lsp.TextEdit]:
    return formatting.formatting(outline_of(snapshot), tab_size=tab_size, spaces=spaces)


def hints_of(
    snapshot: Snapshot, problems: Sequence[Problem], first: int, last: int
) -> list[lsp.InlayHint]:
    return hints.hints(outline_of(snapshot), problems, first, last)


def lenses_of(snapshot: Snapshot) -> list[lsp.CodeLens]:
    targets = spread_evenly(_samples_of(snapshot).targets)
    return hints.lenses(outline_of(snapshot), targets)


def fixes_of(
    snapshot: Snapshot, problems: Sequence[Problem], selection: lsp.Range, only: Kinds
) -> list[lsp.CodeAction]:
    return actions.fixes(outline_of(snapshot).document, problems, selection, only)


def conversion_of(snapshot: Snapshot, only: Kinds) -> list[lsp.CodeAction]:
    return actions.conversion(outline_of(snapshot).document, only)


@lru_cache(maxsize=8)
def _other_formats(snapshot: Snapshot, others: Texts, only: Kinds) -> list[lsp.CodeAction]:
    folder = Path(snapshot.folder).as_uri()
    return actions.other_formats(outline_of(snapshot).document, folder, dict(others), only)


def other_formats_of(snapshot: Snapshot, others: Texts, only: Kinds) -> list[lsp.CodeAction]:
    """Return the actions that state the wishes of a document in other formats.

    The actions are cached, because editors ask for them after each move of the cursor.
    `others`: the other files of the site."""
    return _other_formats(snapshot, others, only)


def other_form_of(snapshot: Snapshot) -> tuple[str, str] | None:
    return actions.other_form(outline_of(snapshot).document)


def hover_at(
    snapshot: Snapshot, position: lsp.Position, problems: Sequence[Problem]
) -> lsp.Hover | None:
    return hover.hover(outline_of(snapshot), position, problems)


def locations_at(
    snapshot: Snapshot,
    position: lsp.Position,
    *,
    definitions_only: bool,
    with_definitions: bool = True,
) -> list[lsp.Location]:
    return names.locations(
        outline_of(snapshot),
        position,
        definitions_only=definitions_only,
        with_definitions=with_definitions,
    )


def rename_at(
    snapshot: Snapshot, position: lsp.Position, new_name: str
) -> lsp.WorkspaceEdit | None:
    return names.rename(outline_of(snapshot), position, new_name)


def name_range_at(snapshot: Snapshot, position: lsp.Position) -> lsp.Range | None:
    return names.name_range(outline_of(snapshot), position)


def complete_at(
    snapshot: Snapshot, position: lsp.Position, *, has_snippets: bool
) -> lsp.CompletionList:
    return completion.completion(
        outline_of(snapshot), position, _samples_of(snapshot), has_snippets=has_snippets
    )
