"""The extras of comity, and the packages that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

from comity.extras import install

PACKAGE = "comity"


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of comity.

    Attributes:
        name: The name of the extra. "" for the packages that comity always needs.
        missing: The packages that are missing, or are too old, each with its needed version.
    """

    name: str
    missing: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """Return the command that installs the packages."""
        return install(self.name) if self.name else "pip install comity"


def installed_extras() -> list[Extra]:
    """Return the packages that comity always needs, and each extra."""
    names = metadata.metadata(PACKAGE).get_all("Provides-Extra") or []
    requirements = [Requirement(text) for text in metadata.requires(PACKAGE) or ()]
    return [
        Extra(name, tuple(_missing(needed)))
        for name in ("", *sorted(names))
        if (needed := [each for each in requirements if _is_of(each, name)])
    ]


def _is_of(requirement: Requirement, extra: str) -> bool:
    """Return True if an extra adds this requirement. `extra`: "" for none."""
    if requirement.name == PACKAGE:  # an extra that names other extras
        return False
    marker = requirement.marker
    needed, always = (marker is None or marker.evaluate({"extra": name}) for name in (extra, ""))
    return needed and always == (not extra)


def _missing(requirements: list[Requirement]) -> Iterator[str]:
    for requirement in requirements:
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield f"{requirement.name}"
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            yield f"{requirement.name}{requirement.specifier} (version {version} is installed)"
