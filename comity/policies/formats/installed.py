"""Formats of other packages: entry points of the group `comity.formats`, each a `Format`.

comity trusts such a format no further than a policy. If it raises while it reads, the policy is
unknown, so the request or the use is refused (rule `comity.format`). A format that cannot be
loaded, or that claims a name of another format, ends the program at its start with one line that
names it: a crawl without it would obey fewer policies than the operator has installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points

from comity.policies.answers.errors import PolicyError
from comity.policies.answers.rule import Rule
from comity.policies.formats.distrusted import distrusted
from comity.policies.formats.format import VERSION, Format

GROUP = "comity.formats"

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_RULE = re.compile(r"[a-z-]+\.[a-z-]+")  # the same pattern as in permissions.schema.json


def load_installed() -> tuple[Format, ...]:
    """Return the formats of other packages, sorted by name.

    PolicyError: a format cannot be loaded, is written for another version, or has a mistake.
    """
    return tuple(
        distrusted(_load(point))
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)
    )


def _load(point: EntryPoint) -> Format:
    """Return the format of an entry point.

    PolicyError: the format cannot be loaded, is no `Format`, is written for another version, or has
    a mistake.
    """
    package = (
        f"the format `{point.name}` of {point.dist.name if point.dist else 'an unknown package'}"
    )
    try:
        loaded = point.load()
    except Exception as error:
        if getattr(
            getattr(sys.modules.get(point.module), "__spec__", None), "_initializing", False
        ):
            message = (
                f"cannot be loaded while `{point.module}` is imported: import "
                "comity.policies before it"
            )
            raise PolicyError(f"{package} {message}") from error
        raise PolicyError(
            f"{package} cannot be loaded ({type(error).__name__}: {error}): mend or uninstall it"
        ) from error
    if not isinstance(loaded, Format):
        raise PolicyError(
            f"{package} is not a comity.policies.formats.format.Format but {loaded!r}: "
            "mend or uninstall it"
        )
    if loaded.version != VERSION:
        version = (
            f"is written for version {loaded.version} of formats"
            if loaded.version
            else "does not say its version"
        )
        raise PolicyError(
            f"{package} {version}, and this is version {VERSION}: install a release for "
            "this version"
        )
    try:
        mistake = next(mistakes(loaded), "")
    except Exception as error:
        mistake = f"{type(error).__name__}: {error}"
    if mistake:
        raise PolicyError(f"{package} has a mistake ({mistake}): mend or uninstall it")
    return loaded


def mistakes(format_: Format) -> Iterator[str]:
    """Yield the mistakes that would keep parts of the format from being read."""
    if not _NAME.fullmatch(format_.name):
        yield f"its name is `{format_.name}`: write lower case, digits and hyphens"
    for rule, entry in format_.rules.items():
        if not _RULE.fullmatch(rule) or not isinstance(entry, Rule):
            yield f"`{rule}` is not a rule: write prefix.name in lower case and hyphens, and a Rule"
    for file in format_.files:
        if not re.fullmatch(r"/[!-~]+", file.path) or re.search(r"[?#]|//", file.path):
            yield f"the path `{file.path}` is invalid: write e.g. /courtesy.txt"
        if not (file.refuses is None or isinstance(file.refuses, tuple)):
            words = f"write ('{format_.name}:word',)"
            yield (
                f"`{file.refuses}` is not a tuple of the terms that {file.path} may refuse: {words}"
            )
    names = [*format_.robots_lines, *(name.decode("latin-1") for name in format_.header_fields)]
    for name in (
        name for name in names if not re.fullmatch(r"[!-9;-~]+", name) or name != name.lower()
    ):
        yield f"`{name}` is not the name of a line or field in lower case"
    if format_.header_fields and not format_.read_headers:
        yield "it has header fields, but no read_headers"


def check_claims(formats: Iterable[Format]) -> tuple[Format, ...]:
    """Return the formats unchanged, after a check that no two of them conflict.

    PolicyError: two formats claim the same name, prefix of rules, file, line or field, or a format
    claims the name `comity`.
    """
    formats = tuple(formats)
    claims: dict[str, Callable[[Format], Sequence[str]]] = {
        "name": lambda format_: (format_.name,),
        "prefix of rules": lambda format_: tuple(
            dict.fromkeys(rule.partition(".")[0] for rule in format_.rules)
        ),
        "file": lambda format_: tuple(file.path for file in format_.files),
        "line of robots.txt": lambda format_: format_.robots_lines,
        "header field": lambda format_: tuple(
            name.decode("latin-1") for name in format_.header_fields
        ),
    }
    for kind, names in claims.items():
        owners = {"comity": "comity"}
        if kind == "prefix of rules":
            owners["registry"] = "comity"  # comity has rules of its own with both prefixes
        for format_ in formats:
            for name in names(format_):
                if name in owners:
                    raise PolicyError(
                        f"the formats `{owners[name]}` and `{format_.name}` both have "
                        f"the {kind} `{name}`: uninstall one"
                    )
                owners[name] = format_.name
    return formats
