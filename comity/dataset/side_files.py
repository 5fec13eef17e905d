"""The files beside a dataset: NAME.unreadable.jsonl has what cannot be read, NAME.expired.jsonl what went, and
NAME.no-policies.jsonl what is kept of sites whose policies cannot be had.

Those of a folder stand in the folders FOLDER.unreadable and FOLDER.expired, under the names that its files have: whoever reads
all files of a folder reads records, and each can be written by a process of its own.

side_files(dataset)         all that is written with it
beside(file, kind, folder)  one of them
PendingLines(path)          lines for one of them, which go there when it is known that they are true
UnreadLines(dataset)        the lines of what could not be read"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from comity.dataset import manifest
from comity.dataset.files.folders import SIDE_ENDINGS, SIDE_FOLDERS
from comity.dataset.files.jsonl import encoded
from comity.dataset.files.places import is_local
from comity.dataset.files.replacement import Replacement, open_beside, sync
from comity.dataset.passes import Unread


def side_files(dataset: Path) -> list[Path]:
    """All files that are written with a dataset."""
    names = (f"{dataset.name}{ending}" for ending in SIDE_ENDINGS)
    manifests = (manifest.path_of, manifest.before, manifest.replaced, manifest.announced)
    return [*map(dataset.with_name, names), *(place(dataset) for place in manifests)]


def side_folders(folder: Path) -> list[Path]:
    """All folders that are written with a folder."""
    return [folder.with_name(f"{folder.name}{ending}") for ending in SIDE_FOLDERS]


def side_folder(folder: Path, kind: str) -> Path:
    return folder.with_name(f"{folder.name}.{kind}")


def beside(path: Path, kind: str, folder: Path | None = None) -> Path:
    """Return the path of what is kept beside a file. `folder`: the dataset that the file is of; None: itself."""
    if folder is None:
        return path.with_name(f"{path.name}.{kind}.jsonl")
    name = path.relative_to(folder)
    return side_folder(folder, kind) / name.with_name(f"{name.name}.jsonl")


class PendingLines:
    """Lines for a file beside a dataset. They go there when it is known that they are true."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0

    def __enter__(self) -> Self:
        folder = self.path.parent
        while (
            is_local(folder) and not folder.exists()
        ):  # one beside a folder is made where there is something to put there
            folder = folder.parent
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(
            2**20, dir=str(folder) if is_local(folder) else None
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def put(self, line: Mapping[str, Any]) -> None:
        self._spool.write(encoded(dict(line)))
        self.number += 1

    def append(self) -> None:
        """Append the lines to what stands there, on the disk."""
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
                if file.read(1) != b"\n":  # a killed process has left half a line
                    file.write(b"\n")
            self._copy(file)
            file.flush()
            os.fsync(file.fileno())
        sync(self.path.parent)

    def replace(self) -> None:
        """Replace what stands there; where there are no lines, nothing stands there."""
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
    """Lines of what could not be read of a dataset."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.records = 0  # of the lines
        self.unkept = ""  # the first place of which no octets are at hand, and why; ""

    def add(self, unread: Unread) -> None:
        """UTF-8 as text, anything else in base64."""
        position, octets, error = unread.unreadable
        try:
            content = {"text": octets.decode()}
        except UnicodeDecodeError:
            content = {"base64": base64.b64encode(octets).decode("ascii")}
        self.records += 1
        if not octets:
            self.unkept = self.unkept or f"{position} cannot be read: {error}"
        self.put({"file": str(unread.reader.path), "place": position, "why": error, **content})
