"""Places of datasets: paths on this machine, and URLs of object stores (s3://, gs://, hf://, ...) by fsspec.

path_of(text)       what has the methods of a Path; one of a store differs by is_local
A file of a store is there whole or not at all, and when it is there it can be seen by all. A store has no folders to be renamed,
and nothing in it can be locked or added to: whoever writes there is to be the only one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from comity.dataset.records import DatasetError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def path_of(text: str) -> Path:
    """Return the path of a dataset. DatasetError where it is nothing, or a URL, and what opens it is not installed."""
    if not text:
        raise DatasetError(
            "an empty name is that of no dataset"
        )  # and not of this folder, as Path has it
    if not _SCHEME.match(text):
        return Path(text)
    try:
        from upath import UPath

        return cast(
            Path, UPath(text.rstrip("/"), use_listings_cache=False)
        )  # other processes write there too
    except (ImportError, ValueError) as error:
        raise DatasetError(
            f"{text} cannot be opened: {error}; pip install 'comity[cloud]'"
        ) from None


def is_local(path: Path) -> bool:
    return isinstance(path, Path)


def is_within(path: Path, folder: Path) -> bool:
    """Return whether a path is in the folder, however deep, by whatever names."""
    return is_local(path) is is_local(folder) and path.resolve().is_relative_to(folder.resolve())


def stored_version(path: Path) -> str:
    """Return a text that is another one when a file in a store has changed."""
    stored: Any = path
    return str(stored.fs.checksum(stored.path))


def copied(source: Path, target: Path) -> None:
    """Copy a file within a store."""
    stored: Any = source
    stored.fs.copy(stored.path, cast(Any, target).path)
