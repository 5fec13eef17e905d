"""Read the files of registries of opt-outs (docs/opt-outs.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from comity.gate.options.errors import invalid
from comity.policies import PolicyError
from comity.policies.registry import CSV, JSON_LINES, LINES, TSV, OptOuts, Registry, read_registry

# Ending of a file -> its form. All other files have one entry in each line.
ENDINGS = {".csv": CSV, ".tsv": TSV, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES}
# The number of files that are kept in memory, because settings are read several times.
MAX_KEPT = 16


def read_opt_outs(name: str, value: Any) -> OptOuts:
    """Read the registries in a list of paths.

    `value`: a list, or a text with commas between the paths. PolicyError: a file cannot be read, or
    has a line that cannot be understood."""
    try:
        paths = value.split(",") if isinstance(value, str) else list(map(os.fspath, value))
    except TypeError:
        remedy = "write them with commas between, or as a list"
        raise invalid(name, value, f"is not a list of paths: {remedy}") from None
    paths = [path.strip() for path in paths if path.strip()]
    return OptOuts(_read(name, path) for path in dict.fromkeys(paths))


def _read(name: str, path: str) -> Registry:
    try:
        stat = Path(path).stat()
        return _read_version(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except (OSError, ValueError) as error:
        if isinstance(error, PolicyError):
            raise
        cause = getattr(error, "strerror", "") or "the path is invalid"
        remedy = "name a file of domains, URLs or SHA-256"
        raise PolicyError(f"{name}: registry `{path}` cannot be read: {cause}: {remedy}") from None


@lru_cache(maxsize=MAX_KEPT)
def _read_version(path: str, inode: int, size: int, changed_at: int) -> Registry:
    """Read a file. The arguments besides the path tell the versions of the file apart."""
    form = ENDINGS.get(Path(path).suffix.lower(), LINES)
    with Path(path).open("rb") as lines:
        return read_registry(Path(path).name, form, lines, _public_suffixes())


@cache
def _public_suffixes() -> Callable[[str], bool]:
    """Return a function that tells whether a domain is in the public suffix list.

    Domains of companies that sell names below them, such as github.io, are in the list too."""
    # Imported here because only registries need the list in this place.
    from tldextract import TLDExtract

    extract = TLDExtract(suffix_list_urls=(), include_psl_private_domains=True)
    rules = [rule.encode("idna").decode("ascii") for rule in extract.tlds]
    names = frozenset(rules)
    wildcards = frozenset(rule.removeprefix("*.") for rule in rules if rule.startswith("*."))

    def is_public_suffix(domain: str) -> bool:
        # Most domains are neither a rule nor below a wildcard. The library is 20 times slower.
        if domain not in names and domain.partition(".")[2] not in wildcards:
            return False
        return not extract(domain).domain

    return is_public_suffix
