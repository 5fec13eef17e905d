"""Datasets of several files: a folder of files in one format, which may be in subfolders.

    open_dataset(path)              the files of a dataset, which may be one file or a folder
    FolderReplacement(path)         replaces a folder as a whole

Some files in a folder do not belong to the dataset: files with names that begin with a dot or an
underscore, as in other programs, side files (`a.jsonl.expired.jsonl` beside `a.jsonl`), tables of
img2dataset (`00000.parquet` beside the shard `00000.tar`), and files with other endings than those
of the formats."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from comity.dataset.files.formats import FORMATS, OTHERS, ending_of, format_of
from comity.dataset.files.locks import lock
from comity.dataset.files.places import copy_stored, is_local
from comity.dataset.files.replacement import IS_WINDOWS, sync
from comity.dataset.records import DatasetError

APART = "no-policies"  # kind of side file: records of sites without copies of policies
# Endings of evidence files, after the name of a dataset (see comity.dataset.evidence).
POLICIES = ".policies.parquet"
REFUSED = ".refused.parquet"
KEPT = ".policies.warc.gz"
EVIDENCE = (POLICIES, REFUSED, KEPT)
# Endings of side files, after the name of a dataset.
SIDE_ENDINGS = (
    *(".unreadable.jsonl", ".unreadable.warc", ".unreadable.warc.gz", ".expired.jsonl"),
    f".{APART}.jsonl",
    *EVIDENCE,
)
SIDE_FOLDERS = (".unreadable", ".expired", f".{APART}")


def evidence_path(output: Path, ending: str) -> Path:
    """Return the path of an evidence file of a dataset. `ending`: one of EVIDENCE."""
    return output.with_name(f"{output.name}{ending}")


class Dataset(NamedTuple):
    """A file of records, or a folder of files of records."""

    path: Path
    """The path of the file or folder."""
    files: tuple[Path, ...]
    """The files, sorted by name."""
    is_folder: bool
    """True if `path` is a folder."""

    def name_of(self, file: Path) -> str:
        """Return the path of a file within the folder, e.g. "a/b.jsonl". For one file, its name."""
        return file.relative_to(self.path).as_posix() if self.is_folder else file.name


def open_dataset(path: Path) -> Dataset:
    """Return the dataset at a path.

    DatasetError: a folder has no files of records, or files in several formats."""
    if not path.is_dir():
        return Dataset(path, (path,), is_folder=False)
    path = nameable_folder(path)
    files = tuple(sorted(files_in(path), key=str))
    forms = {FORMATS[ending_of(file.name)]: file for file in files}
    if not files:
        for file in sorted(path.rglob("*"), key=str):
            names = file.relative_to(path).parts
            if ending_of(file.name, OTHERS) and not any(map(_is_hidden, names)):
                format_of(file)  # the error has the remedy
        raise DatasetError(f"{path}: there are no files of records in this folder")
    if len(forms) > 1:
        raise DatasetError(
            f"{path}: its files have several formats, and must have one:"
            f" {' and '.join(sorted(file.name for file in forms.values()))}"
        )
    return Dataset(path, files, is_folder=True)


def nameable_folder(folder: Path) -> Path:
    """Return the folder as a path that ends with its name: `.` becomes `/srv/data`.

    The names of the manifest and of the side files begin with the name of the folder.
    DatasetError: the folder has no name, because it is a root folder."""
    folder = folder.resolve() if folder.name in ("", "..") else folder
    if not folder.name:
        raise DatasetError(
            f"{folder}: name a folder in it: the manifest of a dataset is beside the dataset"
        )
    return folder


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of records in a folder and its subfolders, in no particular order."""
    names = {entry.name: entry for entry in folder.iterdir() if not _is_hidden(entry.name)}
    for name, entry in names.items():
        is_folder = entry.is_dir()
        if any(
            name.endswith(end) and name.removesuffix(end) in names
            for end in (SIDE_FOLDERS if is_folder else SIDE_ENDINGS)
        ):
            continue
        if is_folder:
            yield from files_in(entry)
        elif name.startswith("cache-") and "state.json" in names:
            continue  # `datasets` keeps results of earlier work beside a saved dataset
        elif ending_of(name) and f"{name.removesuffix('.parquet')}.tar" not in names:
            yield entry


class FolderReplacement:
    """A new folder that replaces the folder at `path` as a whole.

        with FolderReplacement(path, is_ours) as folder:
            (folder / "a.jsonl").write_bytes(...)       # a crash or an error changes nothing

    Other programs see the old folder or the new folder, or for a moment no folder. The new folder
    is filled beside the old one, under the name `.NAME.part`. Files that a killed process left in
    `.NAME.part` are removed first. If the new folder stays empty, there is no folder at the end. In
    an object store, the old files are removed at the end, and then the new files are copied to
    their names one by one."""

    def __init__(self, path: Path, is_ours: Callable[[str], bool]) -> None:
        """`is_ours`: a function that returns True for the name of a file in the old folder if that
        file may be removed. If there is another file, the folder is not replaced, because other
        programs may need it."""
        self.path = Path(os.path.realpath(path)) if is_local(path) else path
        self.part = self.path.with_name(f".{self.path.name}.part")
        self._before = self.path.with_name(f".{self.path.name}.before")
        self._is_ours = is_ours

    def __enter__(self) -> Path:
        """Return the path of the new folder, to be filled.

        DatasetError: the old folder cannot be written, another process is writing it, or it has
        files that are not ours."""
        if not is_local(self.path):
            self._check()
            _remove_stored(self.part)
            return self.part
        if self.path.exists() and not self.path.is_dir():
            raise DatasetError(f"{self.path} is a file: write the name of a folder")
        try:
            self._lock = self._lock_part()
        except BlockingIOError:
            raise DatasetError(f"{self.path} is being written by another process") from None
        except OSError as error:
            raise DatasetError(f"{self.path} cannot be written: {error.strerror}") from None
        try:
            # An earlier process was killed between the two renames.
            if self._before.exists() and not self.path.exists():
                self._before.rename(self.path)
            shutil.rmtree(self._before, ignore_errors=True)
            self._check()
            for entry in self.part.iterdir():
                shutil.rmtree(
                    entry
                ) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        except BaseException:
            shutil.rmtree(self.part, ignore_errors=True)
            os.close(self._lock)
            raise
        return self.part

    def _lock_part(self) -> int:
        while True:
            self.part.mkdir(exist_ok=True)
            if IS_WINDOWS:  # it locks no folders
                beside = self.path.with_name(f".{self.path.name}.lock")
                held = os.open(beside, os.O_RDWR | os.O_CREAT)
            else:
                held = os.open(self.part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                lock(held)
                # The last holder of the lock may have renamed the folder in the meantime. Then it
                # must not be written.
                if IS_WINDOWS or (
                    self.part.exists() and os.path.samestat(self.part.stat(), os.fstat(held))
                ):
                    return held
            except BaseException:
                os.close(held)
                raise
            os.close(held)

    def _check(self) -> None:
        if not self.path.exists():
            return
        for file in _all_files(self.path):
            name = file.relative_to(self.path).as_posix()
            if not self._is_ours(name):
                raise DatasetError(
                    f"{self.path} holds {name}, which comity has not written: name another folder"
                )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not is_local(self.path):
            if error is None:
                self._replace_stored()
            _remove_stored(self.part)
            return
        try:
            if error is not None:
                shutil.rmtree(self.part, ignore_errors=True)
                return
            for folder in {self.part, *(file.parent for file in _all_files(self.part))}:
                sync(folder)
            try:
                with suppress(FileNotFoundError):
                    self.path.rename(self._before)
                if any(self.part.iterdir()):
                    self.part.rename(self.path)
                else:
                    self.part.rmdir()
            except OSError as failed:
                raise DatasetError(f"{self.path} cannot be written: {failed.strerror}") from None
            sync(self.path.parent)
            shutil.rmtree(self._before, ignore_errors=True)
        finally:
            os.close(self._lock)

    def _replace_stored(self) -> None:
        """Replace the files of a folder in a store.

        The old files are removed before the first new one appears, so a killed process leaves no
        mixture."""
        _remove_stored(self.path)
        for file in _all_files(self.part):
            copy_stored(file, self.path / file.relative_to(self.part).as_posix())


def _remove_stored(folder: Path) -> None:
    for file in [*_all_files(folder)]:
        file.unlink()


def _all_files(folder: Path) -> Iterable[Path]:
    if not is_local(folder):
        return (entry for entry in folder.rglob("*") if entry.is_file()) if folder.exists() else ()
    return (entry for entry in folder.rglob("*") if entry.is_symlink() or not entry.is_dir())
