"""Paths of datasets: on this machine, or in object stores (s3://, gs://, hf://, ...) by fsspec.

    path_of(text)       a Path, or for a URL an object with the methods of Path
    is_local(path)      False for a path in an object store

A file in a store appears only when it is complete, for all readers at once. A store cannot rename
folders, lock files or append to files. So only one job at a time may write to a path in a store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from comity.dataset.records import DatasetError
from comity.extras import install

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def path_of(text: str) -> Path:
    """Return the path of a dataset.

    DatasetError: the text is empty, or a package for its URL is not installed."""
    if not text:
        # Path("") would be this folder.
        raise DatasetError("the name of a dataset is empty: write a path or a URL")
    if not _SCHEME.match(text):
        return Path(text)
    try:
        from upath import UPath

        # No cache: other processes write to the store too.
        return cast(Path, UPath(text.rstrip("/"), use_listings_cache=False))
    except (ImportError, ValueError) as error:
        raise DatasetError(f"{text} cannot be opened: {error}: {install('cloud')}") from None


def is_local(path: Path) -> bool:
    """Return True if a path is on this machine."""
    return isinstance(path, Path)


def is_within(path: Path, folder: Path) -> bool:
    """Return True if a path is the folder or is in it, at any depth. Links are resolved first."""
    return is_local(path) is is_local(folder) and path.resolve().is_relative_to(folder.resolve())


def stored_version(path: Path) -> str:
    """Return a text that changes whenever a file in a store changes."""
    stored: Any = path
    return str(stored.fs.checksum(stored.path))


def copy_stored(source: Path, target: Path) -> None:
    """Copy a file within a store."""
    stored: Any = source
    stored.fs.copy(stored.path, cast(Any, target).path)
