"""The side files of a dataset, for records that are not in the dataset.

    NAME.unreadable.jsonl       records that cannot be read
    NAME.expired.jsonl          records that were removed
    NAME.no-policies.jsonl      records of sites without copies of policies

The side files of a folder are in the folders FOLDER.unreadable and FOLDER.expired, under the names
of the folder's files. So the folder itself contains only records, and each process can write its
own side file.

    side_files(dataset)         all files that are written with a dataset
    beside(file, kind, folder)  one side file
    PendingLines(path)          lines for a side file, written by `append` or `replace`
    UnreadLines(path)           the lines for unreadable records"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from comity.dataset import manifest
from comity.dataset.files.folders import SIDE_ENDINGS, SIDE_FOLDERS
from comity.dataset.files.places import is_local
from comity.dataset.files.replacement import Replacement, open_beside, sync
from comity.dataset.passes import UnreadRecord
from comity.dataset.records import encode_line


def side_files(dataset: Path) -> list[Path]:
    """Return the paths of all files that may be written beside a dataset, with its manifests."""
    names = (f"{dataset.name}{ending}" for ending in SIDE_ENDINGS)
    manifests = (
        manifest.path_of,
        manifest.before_path,
        manifest.replaced_path,
        manifest.announced_path,
    )
    return [*map(dataset.with_name, names), *(place(dataset) for place in manifests)]


def side_folders(folder: Path) -> list[Path]:
    """Return the paths of all folders that may be written beside a folder."""
    return [folder.with_name(f"{folder.name}{ending}") for ending in SIDE_FOLDERS]


def side_folder(folder: Path, kind: str) -> Path:
    """Return the folder for side files of a kind."""
    return folder.with_name(f"{folder.name}.{kind}")


def beside(path: Path, kind: str, folder: Path | None = None) -> Path:
    """Return the path of the side file for a file.

    `folder`: the folder that is the dataset. None: the file is the dataset."""
    if folder is None:
        return path.with_name(f"{path.name}.{kind}.jsonl")
    name = path.relative_to(folder)
    return side_folder(folder, kind) / name.with_name(f"{name.name}.jsonl")


class PendingLines:
    """Lines for a side file. They are in a temporary file until `append` or `replace`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0

    def __enter__(self) -> Self:
        folder = self.path.parent
        # A side folder is created only when there are lines for it.
        while is_local(folder) and not folder.exists():
            folder = folder.parent
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(
            2**20, dir=str(folder) if is_local(folder) else None
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def put(self, line: Mapping[str, Any]) -> None:
        self._spool.write(encode_line(dict(line)))
        self.number += 1

    def append(self) -> None:
        """Append the lines to the side file, durably."""
        if not self.number:
            return
        if not is_local(self.path):
            old_lines = self.path.read_bytes() if self.path.exists() else b""
            with Replacement(self.path) as file:
                file.write(old_lines)
                self._copy(file)
            return
        self._make_folder()
        with open_beside(self.path) as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a killed process left half a line
                    file.write(b"\n")
            self._copy(file)
            file.flush()
            os.fsync(file.fileno())
        sync(self.path.parent)

    def replace(self) -> None:
        """Replace the side file. Without lines, remove it."""
        if self.number:
            self._make_folder()
            with Replacement(self.path, is_named=False) as file:
                self._copy(file)
        else:
            self.path.unlink(missing_ok=True)

    def _make_folder(self) -> None:
        if is_local(self.path) and not self.path.parent.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            sync(self.path.parent.parent)

    def _copy(self, file: IO[bytes]) -> None:
        self._spool.seek(0)
        while octets := self._spool.read(2**20):
            file.write(octets)


class UnreadLines(PendingLines):
    """The lines for the unreadable records of a dataset."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.records = 0  # unreadable records among the lines
        self.unkept = ""  # message about the first record without its octets, or ""

    def add(self, unread: UnreadRecord) -> None:
        """Add a line for an unreadable record. Its octets become text if they are UTF-8, or else
        base64."""
        position, octets, error = unread.unreadable
        try:
            content = {"text": octets.decode()}
        except UnicodeDecodeError:
            content = {"base64": base64.b64encode(octets).decode("ascii")}
        self.records += 1
        if not octets:
            self.unkept = self.unkept or f"{position} cannot be read: {error}"
        self.put({"file": str(unread.reader.path), "place": position, "why": error, **content})
