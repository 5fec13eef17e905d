"""docs/authoring.md, the intents of publishers. `make docs` writes its files from INTENTS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from comity.authoring.explaining import CLASSES
from comity.authoring.intents import ELEMENT, FIELD, FORMATS, INTENTS, Artefact, Form, Intent

PAGE = Path(__file__).parent.parent.parent / "docs" / "authoring.md"
LANGUAGES = {ELEMENT: "html", ".json": "json", ".xml": "xml"}


def page(written: str) -> str:
    """Return the page with new intents between `<!-- intents -->` and `<!-- end -->`."""
    before, mark, rest = written.partition("<!-- intents -->\n")
    lines = [line for intent in INTENTS for line in _of_intent(intent)]
    return (
        f"{before}{mark}\n"
        + "\n".join(lines)
        + "\n<!-- end -->"
        + rest.partition("<!-- end -->")[2]
    )


def _of_intent(intent: Intent) -> Iterator[str]:
    yield from (f"## {intent.title}", "", intent.summary, "")
    for parameter in intent.parameters:
        yield from (f"`{parameter.default}` stands for the {parameter.summary}.", "")
    for name in FORMATS:
        forms = [form for form in intent.forms if form.format == name]
        if forms:
            yield from (f"### {intent.title}: {name}", "")
        for form in forms:
            yield from _of_form(intent, form)
    yield from (
        f"### {intent.title}: formats that cannot say it",
        "",
        "| format | why |",
        "|---|---|",
    )
    yield from (f"| {unsaid.format} | {unsaid.reason} |" for unsaid in intent.unsaid)
    yield ""


def _of_form(intent: Intent, form: Form) -> Iterator[str]:
    yield from (form.remark, "")
    for artefact in form.artefacts:
        yield from (
            f"{_location(artefact)}:",
            "",
            f"```{_language(artefact)}",
            artefact.text(intent.values()).rstrip("\n"),
            "```",
            "",
        )


def _location(artefact: Artefact) -> str:
    return {FIELD: "As a response field", ELEMENT: "In the head of the page"}.get(
        artefact.location, f"`{artefact.location}`"
    )


def _language(artefact: Artefact) -> str:
    return next(
        (language for end, language in LANGUAGES.items() if artefact.location.endswith(end)), ""
    )


def test_the_page_is_what_the_intents_make_of_it() -> None:
    """If this test fails, run `make docs`."""
    assert PAGE.read_text("utf-8") == page(PAGE.read_text("utf-8"))


def test_the_page_begins_with_the_five_things_that_publishers_want() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert headings[:5] == [
        "No training",
        "No training, but search",
        "No snippets",
        "Slower",
        "Nobody but X",
    ]


def test_the_classes_of_use_are_those_of_explain() -> None:
    rows = re.findall(r"^\| ([a-z]+) \| `([a-z-]+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(class_.name, class_.use) for class_ in CLASSES]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
