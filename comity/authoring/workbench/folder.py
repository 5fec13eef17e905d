"""The folder in which the workbench saves files.

Each file is replaced as a whole. No file outside the folder is read or written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from comity.dataset.files.replacement import Replacement
from comity.dataset.records import DatasetError
from comity.gate.folder import path_in_folder
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable


class ChangedError(PolicyError):
    """The file on the disk has changed since it was read."""


class Folder:
    """A folder of a site on this machine."""

    def __init__(self, root: Path, origin: str, names: Mapping[str, str] | None = None) -> None:
        """Take the folder and the origin of its site.

        `names`: absolute URL -> path of a file that was read. Other files have the path that
        `path_in_folder` gives."""
        self.root = root
        self._origin = origin
        self._names = dict(names or {})

    def path(self, url: str) -> Path:
        """Return the path of a file, with links resolved.

        PolicyError: it is not below the folder."""
        path = Path(
            self._names.get(url) or self.root / path_in_folder(self._origin, url).lstrip("/")
        )
        try:
            target, root = path.resolve(), self.root.resolve()
        except (OSError, ValueError, RuntimeError):
            raise _outside(path) from None
        if target == root or not target.is_relative_to(root):
            raise _outside(path)
        return target

    def read(self, url: str) -> bytes | None:
        """Return the file on the disk. None means that it does not exist.

        PolicyError: it cannot be read."""
        path = self.path(url)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise PolicyError(
                f"{_display_name(path)} cannot be read: {getattr(error, 'strerror', error)}"
            ) from None

    def save(self, url: str, body: bytes, *, expected: bytes | None, is_sure: bool = False) -> None:
        """Replace a file atomically.

        `expected`: the content that was read. None means that there was no file.
        `is_sure`: True writes the file even if the content on the disk differs from `expected`.
        ChangedError: the content on the disk differs from `expected`.
        PolicyError: the file cannot be written."""
        path = self.path(url)
        if not is_sure and self.read(url) != expected:
            raise ChangedError(f"{_display_name(path)} has changed on the disk since it was read")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with Replacement(path) as file:
                file.write(body)
        except (DatasetError, OSError) as error:
            raise PolicyError(str(error)) from None


def _display_name(path: Path) -> str:
    return printable(os.fsencode(path))


def _outside(path: Path) -> PolicyError:
    return PolicyError(f"{_display_name(path)} is not in the folder: it is not written")
