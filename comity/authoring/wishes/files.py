"""The files that state a wish: the forms in several formats, as one set of texts.

    files = write_files(wish, {"seconds": "5"}, ["robots.txt"])
    files.texts    path on the site -> text

Forms for one robots.txt become one file: lines for the same crawlers join one group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from comity.authoring.wishes.wish import FORMATS, ROBOTS, Form, Wish
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

_HEADS = ("user-agent", "acap-crawler")


class WishFiles(NamedTuple):
    """The files, fields and elements that state a wish.

    Attributes:
        wish: The wish.
        values: The values of its parameters.
        forms: The forms, one for each chosen format.
        texts: The texts of files: path on the site -> text.
        others: Pairs of FIELD or ELEMENT and the text.
    """

    wish: Wish
    values: Mapping[str, str]
    forms: tuple[Form, ...]
    texts: Mapping[str, str]
    others: tuple[tuple[str, str], ...]


def write_files(wish: Wish, values: Mapping[str, str], formats: Iterable[str] = ()) -> WishFiles:
    """Return the texts that state a wish.

    `values`: the values of parameters, by name.
    `formats`: names of formats, in any case. Without any, the defaults of the wish.
    PolicyError: a value or a format is unknown or does not fit, a required value is missing, or
    two formats need the same file."""
    forms = tuple(dict.fromkeys(_form(wish, name) for name in formats or wish.defaults))
    all_values = _values(wish, forms, values)
    texts: dict[str, list[str]] = {}
    others = []
    for artefact in (artefact for form in forms for artefact in form.artefacts):
        text = artefact.text(all_values)
        if artefact.location.startswith("/"):
            texts.setdefault(artefact.location, []).append(text)
        else:
            others.append((artefact.location, text))
    for path, parts in texts.items():
        if path != ROBOTS and len(parts) > 1:
            names = " and ".join(f"`{form.format}`" for form in forms if _writes(form, path))
            raise PolicyError(f"{names} need the same file {path}: choose one of them")
    joined = {path: _join(parts) if path == ROBOTS else parts[0] for path, parts in texts.items()}
    return WishFiles(wish, all_values, forms, joined, tuple(others))


def _form(wish: Wish, name: str) -> Form:
    format_ = next((known for known in FORMATS if known.lower() == name.strip().lower()), None)
    if format_ is None:
        raise PolicyError(f"`{printable(name)}` is no format: write one of {', '.join(FORMATS)}")
    if form := wish.form(format_):
        return form
    reason = next(unsaid.reason for unsaid in wish.unsaid if unsaid.format == format_)
    raise PolicyError(f"the format `{format_}` cannot say `{wish.title}`. {reason}")


def _values(wish: Wish, forms: Iterable[Form], values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of all parameters."""
    names = [parameter.name for parameter in wish.parameters]
    for name in values:
        if name not in names:
            raise PolicyError(f"`{wish.title}` has no {name}: leave out --{name}")
    for parameter in wish.parameters:
        if (
            parameter.is_required
            and parameter.name not in values
            and any(
                f"${parameter.name}" in artefact.template
                for form in forms
                for artefact in form.artefacts
            )
        ):
            raise PolicyError(
                f"the {parameter.summary} must be known: add --{parameter.name},"
                f" such as --{parameter.name} {parameter.default}"
            )
    return wish.values(**values)


def _writes(form: Form, path: str) -> bool:
    return any(artefact.location == path for artefact in form.artefacts)


def _join(texts: Iterable[str]) -> str:
    """Return several robots.txt as one, with one group for the same crawlers.

    Lines outside of groups come first. Rules about access come last in each group, since they end
    its list of crawlers for every reader."""
    groups: dict[tuple[str, ...], dict[str, None]] = {(): {}}
    for block in "\n".join(texts).split("\n\n"):
        lines = [line for line in block.splitlines() if line]
        head = tuple(line for line in lines if _name(line) in _HEADS)
        groups.setdefault(head, {}).update(dict.fromkeys(lines[len(head) :]))
    blocks = (
        [*head, *sorted(lines, key=lambda line: _name(line) in ("allow", "disallow"))]
        for head, lines in groups.items()
        if head or lines
    )
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _name(line: str) -> str:
    return line.partition(":")[0].lower()
