"""Code actions: fixes of problems, the other form of an ai.txt, and wishes in other formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from posixpath import basename

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    CreateFile,
    CreateFileOptions,
    Diagnostic,
    OptionalVersionedTextDocumentIdentifier,
    Position,
    Range,
    TextDocumentEdit,
    TextEdit,
    WorkspaceEdit,
)

from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.features.diagnostics import diagnostic
from comity.authoring.language_server.statements import StatementForm, form_of
from comity.authoring.problems import Problem
from comity.authoring.stated_wishes import drafts, path_of, stated_wishes
from comity.policies import PolicyError, ai_txt_from_xml, ai_txt_to_xml
from comity.policies.formats.authoring import Fix, apply

FIX_ALL = "source.fixAll.comity"
OTHER_FORM = "source.otherForm.comity"
OTHER_FORMAT = "source.otherFormat.comity"
_TEXT, _XML = "ai.txt", "ai.xml"


def edits_of(document: Document, fixes: Iterable[Fix]) -> list[TextEdit]:
    """Return the edits of all fixes that can be applied together."""
    _, applied = apply(document.body, fixes)
    edits = dict.fromkeys(edit for fix in applied for edit in fix.edits)
    return [
        TextEdit(document.range_of(edit), edit.text.decode("utf-8", "replace")) for edit in edits
    ]


def fixes(
    document: Document,
    problems: Sequence[Problem],
    selection: Range,
    only: Sequence[str] | None = None,
) -> list[CodeAction]:
    """Return an action for each problem in a selection, and one for all problems of the file.

    The action for all problems leaves out fixes that change decisions.
    `only`: the requested kinds of action. None means all."""
    actions: list[CodeAction] = []
    fixable = [problem for problem in problems if problem.fix]
    if _is_wanted(CodeActionKind.QuickFix, only):
        for problem in fixable:
            report: Diagnostic = diagnostic(document, problem)
            if (
                problem.fix
                and report.range.start.line <= selection.end.line
                and report.range.end.line >= selection.start.line
            ):
                edit = WorkspaceEdit(changes={document.uri: edits_of(document, [problem.fix])})
                action = CodeAction(
                    problem.fix_title,
                    kind=CodeActionKind.QuickFix,
                    diagnostics=[report],
                    edit=edit,
                    is_preferred=not problem.fix.changes_decisions,
                )
                actions.append(action)
    safe = [fix for problem in fixable if (fix := problem.fix) and not fix.changes_decisions]
    if safe and _is_wanted(FIX_ALL, only):
        edit = WorkspaceEdit(changes={document.uri: edits_of(document, safe)})
        actions.append(CodeAction("Fix all that comity can fix", kind=FIX_ALL, edit=edit))
    return actions


def _is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(kind == parent or kind.startswith(f"{parent}.") for parent in only)


def other_form(document: Document) -> tuple[str, str] | None:
    """Return an ai.txt as XML, or an ai.xml as text, and the name of the new file.

    None means that the document is neither, or cannot be converted."""
    kind = document.kind
    if kind is None or kind.name not in (_TEXT, _XML):
        return None
    try:
        if kind.name == _XML or form_of(kind, document.text) is StatementForm.XML:
            return ai_txt_from_xml(document.body).decode(), _TEXT
        return ai_txt_to_xml(document.body).decode(), _XML
    except PolicyError:
        return None


def conversion(document: Document, only: Sequence[str] | None = None) -> list[CodeAction]:
    """Return the action, if any, that writes the other form of an ai.txt into the same folder."""
    if not _is_wanted(OTHER_FORM, only):
        return []
    form = other_form(document)
    if form is None:
        return []
    text, name = form
    if basename(document.path) == name:
        return []
    uri = document.uri.rpartition("/")[0] + "/" + name
    edit = WorkspaceEdit(
        document_changes=[
            CreateFile(uri, options=CreateFileOptions(overwrite=True)),
            TextDocumentEdit(
                OptionalVersionedTextDocumentIdentifier(uri),
                [TextEdit(Range(Position(0, 0), Position(0, 0)), text)],
            ),
        ]
    )
    title = f"Generate XML ({name})" if name == _XML else f"Generate text ({name})"
    return [CodeAction(title, kind=OTHER_FORM, edit=edit)]


def other_formats(
    document: Document, folder: str, others: Mapping[str, str], only: Sequence[str] | None = None
) -> list[CodeAction]:
    """Return the actions that state the wishes of a document in other formats.

    `folder`: the URI of the site's folder.
    `others`: path on the site -> text, for the files of the site. The text of the document itself
    replaces its entry.
    `only`: the requested kinds of action. None means all."""
    kind = document.kind
    document_path = path_of(kind) if kind else ""
    if kind is None or not document_path or not _is_wanted(OTHER_FORMAT, only):
        return []
    texts = {**others, document_path: document.text}
    actions = []
    for stated_wish in stated_wishes(kind, document.text):
        for draft in drafts(stated_wish, document_path, texts):
            edits: list[CreateFile | TextDocumentEdit] = []
            for path, text in draft.added.items():
                uri = document.uri if path == document_path else folder.rstrip("/") + path
                # If the file exists by the time of the edit, the editor makes none of the edits.
                if path not in texts:
                    edits.append(
                        CreateFile(
                            uri, options=CreateFileOptions(overwrite=False, ignore_if_exists=False)
                        )
                    )
                end = Document(uri, texts.get(path, ""), encoding=document.encoding).end
                edit = TextEdit(Range(end, end), text)
                edits.append(TextDocumentEdit(OptionalVersionedTextDocumentIdentifier(uri), [edit]))
            names = " and ".join(basename(path) for path in draft.added)
            label = (
                draft.form.format
                if draft.form.format == names
                else f"{draft.form.format} ({names})"
            )
            title = f'Write "{stated_wish.wish.title}" as {label}'
            actions.append(
                CodeAction(title, kind=OTHER_FORMAT, edit=WorkspaceEdit(document_changes=edits))
            )
    return actions
