"""Formats that come with other packages: entry points of the group `comity.formats`, each a `Format`.

What they do is not trusted further than a policy is: where one raises while it reads, nobody knows what the policy says, so the
request, or the use, is refused (rule `comity.format`). One that cannot be loaded, or that claims what another format has, ends
the program at its start, with its name: a crawl without it would obey less than the operator has installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points

from comity.policies.answers.errors import PolicyError
from comity.policies.formats.distrusted import distrusted
from comity.policies.formats.format import VERSION, Format

GROUP = "comity.formats"


def installed() -> tuple[Format, ...]:
    """In the order of their names. PolicyError where one cannot be loaded, or is of another version."""
    return tuple(distrusted(_loaded(point)) for point in sorted(entry_points(group=GROUP), key=lambda point: point.name))


def _loaded(point: EntryPoint) -> Format:
    package = f"the format `{point.name}` of {point.dist.name if point.dist else 'an unknown package'}"
    try:
        loaded = point.load()
    except Exception as error:
        raise PolicyError(f"{package} cannot be loaded ({type(error).__name__}: {error}): mend or uninstall it") from error
    if not isinstance(loaded, Format):
        raise PolicyError(f"{package} is no comity.policies.formats.format.Format but {loaded!r}: mend or uninstall it")
    if loaded.version != VERSION:
        message = f"is written for version {loaded.version} of formats, and this is version {VERSION}: install one that fits"
        raise PolicyError(f"{package} {message}")
    return loaded


def checked(formats: Iterable[Format]) -> tuple[Format, ...]:
    """The formats. PolicyError where two of them claim the same name, rule, file, line or field."""
    formats = tuple(formats)
    claims: dict[str, Callable[[Format], Sequence[str]]] = {
        "name": lambda each: (each.name,),
        "rule": lambda each: tuple(each.rules),
        "file": lambda each: tuple(file.path for file in each.files),
        "line of robots.txt": lambda each: each.robots_lines,
        "header field": lambda each: tuple(name.decode("latin-1") for name in each.header_fields),
    }
    for kind, names in claims.items():
        owners: dict[str, str] = {}
        for each in formats:
            for name in names(each):
                if name in owners:
                    raise PolicyError(
                        f"the formats `{owners[name]}` and `{each.name}` both have the {kind} `{name}`: uninstall one"
                    )
                owners[name] = each.name
    return formats
