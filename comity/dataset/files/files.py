"""Files of records: which format a file has by its name, and what every format gives.

format_of(path)             one of FORMATS
open_reader(path)           a Reader
open_writer(path)           a Writer: its file stands there whole when all is written, and not at all before
open_rewriter(path)         the same for what stays of a file, where that is to be copied
Replacement(path)           how a Writer does that"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Protocol, Self

from comity.dataset.records import Batch, DatasetError, Record

# End of the name -> module of this package. Each has a `Reader(path)` and a `Writer(path)`, and may have a `Rewriter(path)`.
FORMATS = {
    ".jsonl": "jsonl",
    ".jl": "jsonl",
    ".jsonl.gz": "jsonl",
    ".jl.gz": "jsonl",
    ".parquet": "parquet",
    ".warc": "warc",
    ".warc.gz": "warc",
}
WRITABLE = tuple(ending for ending, module in FORMATS.items() if module != "warc")

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a write


class Part(NamedTuple):
    """Some records of a file, as many as are read at once: a few MB. Picklable."""

    place: Any  # where they stand; or, in a file that can only be read from its front, what stands there
    octets: int  # how much of the file that is: all parts together have the file's size


class Reader(Protocol):
    """A file of records. Picklable, and opens the file anew in every call: parts are read in several processes.

    DatasetError where the file as a whole cannot be read; what of it cannot be read is an Unreadable among the records."""

    path: Path
    size: int  # octets

    def parts(self) -> Iterator[Part]:
        """All of them in the order of the file, found while they are asked for."""

    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        """Whether a tag may have a key of this name in it, however deep: False where it is known that none has.

        `tags`: the fields that may hold one, TAG_FIELDS among them where that is not known."""

    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        """The records of a part. `fields`: others are not needed, and may be left out where that is faster."""


class Writer(Protocol):
    """A new file of records, in the place of what has its name now: at the end of `with`, or never where that raises.

    `encode` is picklable, pure, and does the greater part of the work: it runs in several processes, `write` in one."""

    path: Path
    encode: Callable[[Sequence[Record]], Any]

    def __enter__(self) -> Self: ...

    def write(self, encoded: Any) -> None:
        """What `encode` gave, in the order of the records."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Rewriter(Writer, Protocol):
    """What is left of a file: it copies the records that stay as they stand. They have to be Placed.

    `copy` comes last within `with`."""

    def leave_out(self, place: Any, *, keep_aside: bool) -> None:
        """The record does not stay. `keep_aside`: it is kept in another file."""

    def copy(self) -> None: ...


def format_of(path: Path, hint: Iterable[str] = FORMATS) -> str:
    """Name of the module that knows it. DatasetError, with the endings that could be used, where none does."""
    name = path.name.lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return FORMATS[ending]
    raise DatasetError(f"{path}: its name says no format of records: use {', '.join(hint)}")


def open_reader(path: Path) -> Reader:
    """DatasetError where there is no such file, or where what reads it is not installed."""
    module = _module(path)
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from None
    reader: Reader = module.Reader(path)
    return reader


def open_writer(path: Path, **options: Any) -> Writer:
    """`options`: of the format's Writer. DatasetError where the file cannot be written."""
    writer: Writer = _module(path, WRITABLE).Writer(path, **options)
    return writer


def open_rewriter(path: Path) -> Rewriter | None:
    """None where the format has none: its records are written anew."""
    module = _module(path)
    return module.Rewriter(path) if hasattr(module, "Rewriter") else None


def _module(path: Path, hint: Iterable[str] = FORMATS) -> Any:
    name = format_of(path, hint)
    try:
        return import_module(f"comity.dataset.files.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("comity"):
            raise
        raise DatasetError(f"{path}: {error.name} is not installed: pip install 'comity[{name}]'") from None


def open_beside(path: Path) -> IO[bytes]:
    """A file beside a dataset, to read and to write; it is made where it is not there. OSError.

    Nobody has named it, so it is no link to elsewhere, and no second name of another file: in a folder where others may write,
    they could have put it there. DatasetError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _foreign(path) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise _foreign(path)
    return os.fdopen(descriptor, "r+b")


def _foreign(path: Path) -> DatasetError:
    return DatasetError(f"{path} is a link, or no plain file: remove it, if it is not needed")


class Replacement:
    """A file that takes the place of another at once: whoever opens the name finds the one or the other, whole.

    It is written beside it, under the name `.NAME.part`; what a killed process left there is written over.

    with Replacement(path) as file:
        file.write(...)         a crash, or an error: nothing has changed"""

    def __init__(self, path: Path, *, is_named: bool = True) -> None:
        """`is_named`: the operator has named it. Then a link stays a link; else it is replaced, whoever put it there."""
        self.path = Path(os.path.realpath(path)) if is_named else path
        self.part = self.path.with_name(f".{self.path.name}.part")

    def __enter__(self) -> IO[bytes]:
        """DatasetError where the file cannot be written, or is being written."""
        if self.path.is_dir():
            raise DatasetError(f"{self.path} cannot be written: Is a directory")
        try:
            self._file = self._opened()
        except BlockingIOError:
            raise DatasetError(f"{self.path} is being written by another process") from None
        except OSError as error:
            raise self._unwritable(error) from None
        return self._file

    def _opened(self) -> IO[bytes]:
        while True:
            file = open_beside(self.part)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Whoever had the lock may have given the file its name by now: then it is no longer one to write.
                if self.part.exists() and os.path.samestat(self.part.stat(), os.fstat(file.fileno())):
                    file.truncate()
                    if self.path.exists():
                        os.fchmod(file.fileno(), self.path.stat().st_mode & 0o7777)
                    return file
            except BaseException:
                file.close()
                raise
            file.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """DatasetError where there is no room for it."""
        with suppress(OSError), self._file as file:  # closing it gives the lock back, and may try once more to write what is left
            if error is None:
                try:
                    file.flush()
                    os.fsync(file.fileno())
                    self.part.replace(self.path)
                except OSError as failed:
                    error = failed
            if error is not None:
                self.part.unlink(missing_ok=True)
        if isinstance(error, OSError) and (kind is None or error.errno in NO_ROOM):
            raise self._unwritable(error) from None
        if error is None:
            sync(self.path.parent)

    def _unwritable(self, error: OSError) -> DatasetError:
        return DatasetError(f"{self.path} cannot be written: {error.strerror}")


def sync(folder: Path) -> None:
    """Makes the names in the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
