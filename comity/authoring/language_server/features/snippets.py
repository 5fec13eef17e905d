"""Snippets: the wishes of publishers, in the format of a file (comity.authoring.wishes)."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import splitext
from typing import NamedTuple

from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.statements import StatementForm
from comity.authoring.wishes import WISHES
from comity.authoring.wishes.wish import ELEMENT, Artefact, Wish
from comity.authoring.wishes.wish import Form as WrittenForm


class Snippet(NamedTuple):
    """A text to insert.

    Attributes:
        title: The wish and the format.
        format: The name of the format.
        summary: A sentence about the effect.
        text: The text, with the default values of its parameters.
        template: The text with placeholders, in the syntax of LSP.
    """

    title: str
    format: str
    summary: str
    text: str
    template: str


def snippets(outline: FileOutline) -> Iterator[Snippet]:
    """Yield the snippets for a file, one for each form of each wish that the file can have."""
    for wish in WISHES:
        for form in wish.forms:
            for artefact in form.artefacts:
                if _is_for(artefact, outline):
                    yield _snippet(wish, form, artefact)


def member_snippets(outline: FileOutline) -> Iterator[Snippet]:
    """Yield the snippets for a JSON array: the members of the arrays in snippets."""
    for snippet in snippets(outline):
        text, template = snippet.text.strip(), snippet.template.strip()
        if text.startswith("[") and text.endswith("]"):
            yield snippet._replace(text=text[1:-1].strip(), template=template[1:-1].strip())


def _is_for(artefact: Artefact, outline: FileOutline) -> bool:
    kind = outline.document.kind
    if kind is None:
        return False
    if outline.form is StatementForm.HTML:
        return artefact.location == ELEMENT
    if kind.path:
        return artefact.location == kind.path and _form(artefact) is outline.form
    root = kind.name.partition(".")[0]
    return (
        splitext(artefact.location)[1] == splitext(kind.name)[1] and f"<{root}" in artefact.template
    )


def _form(artefact: Artefact) -> StatementForm:
    start = artefact.template.lstrip()[:1]
    return (
        StatementForm.XML
        if start == "<"
        else StatementForm.JSON
        if start in ("{", "[")
        else StatementForm.LINES
    )


def _snippet(wish: Wish, form: WrittenForm, artefact: Artefact) -> Snippet:
    values = wish.values()
    # All texts are escaped. A parameter becomes a placeholder, with one number at all its places.
    marks = {name: f"\0{name}\0" for name in values}
    template = artefact.text(marks).replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")
    names = [parameter.name for parameter in wish.parameters]
    for name, value in values.items():
        escaped = value.replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")
        template = template.replace(
            marks[name], f"${{{names.index(name) + 1}:{escaped}}}" if name in names else escaped
        )
    return Snippet(
        f"{wish.title} ({form.format})", form.format, form.remark, artefact.text(values), template
    )
