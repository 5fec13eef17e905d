"""Files of records: which format a file has by its name, and what every format gives.

format_of(path)             one of FORMATS
open_reader(path)           a Reader
open_writer(path)           a Writer: its file stands there whole when all is written, and not at all before
open_rewriter(path)         the same for what stays of a file, where that is to be copied
A Writer does that by comity.dataset.files.replacement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, cast

from comity.dataset.files.places import is_local
from comity.dataset.records import Batch, DatasetError, Record

# End of the name -> module of this package. Each has a `Reader(path)` and a `Writer(path)`, some a `Rewriter(path, aside)`.
FORMATS = {
    ".jsonl": "jsonl",
    ".jl": "jsonl",
    ".jsonl.gz": "jsonl",
    ".jl.gz": "jsonl",
    ".jsonl.zst": "jsonl",
    ".jl.zst": "jsonl",
    ".parquet": "parquet",
    ".warc": "warc",
    ".warc.gz": "warc",
}
WRITABLE = tuple(ending for ending, module in FORMATS.items() if module != "warc")


class Part(NamedTuple):
    """Some records of a file, as many as are read at once: a few MB. Picklable."""

    position: Any  # where they stand; or, in a file that can only be read from its front, what stands there
    octets: int  # how much of the file that is: all parts together have the file's size


class Reader(ABC):
    """A file of records. Picklable, and opens the file anew in every call: parts are read in several processes.

    DatasetError where the file as a whole cannot be read; what of it cannot be read is an Unreadable among the records."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def size(self) -> int:
        """Octets."""
        return self.path.stat().st_size

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Yield the parts in the order of the file, each found when it is asked for."""

    @abstractmethod
    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        """Tell if a tag may have a key of this name in it, however deep: False where it is certain that none has.

        `tags`: the fields that may hold one, TAG_FIELDS among them where that is not known."""

    @abstractmethod
    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        """The records of a part. `fields`: others are not needed, and may be left out where that is faster."""


class Writer(Protocol):
    """A new file of records, in the place of what has its name now: at the end of `with`, or never where that raises.

    `encode` is picklable, pure, and does the greater part of the work: it runs in several processes, `write` in one."""

    path: Path
    encode: Callable[[Sequence[Record]], Any]

    def __enter__(self) -> Self: ...

    def write(self, encoded: Any) -> None:
        """Write what `encode` gave, in the order of the records."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Rewriter(Writer, Protocol):
    """The remainder of a file: it copies the records that stay as they stand. They have to be Placed.

    `copy` comes last within `with`."""

    def leave_out(self, position: Any, *, keep_aside: bool) -> None:
        """The record does not stay. `keep_aside`: it is kept in another file."""

    def copy(self) -> None: ...


def format_of(path: Path, hint: Iterable[str] = FORMATS) -> str:
    """Name of the module that knows it. DatasetError, with the endings that could be used, where none does."""
    ending = ending_of(path.name)
    if not ending:
        raise DatasetError(f"{path}: its name says no format of records: use {', '.join(hint)}")
    return FORMATS[ending]


def ending_of(name: str) -> str:
    """The one of FORMATS with which the name of a file ends; "" where it is none of them."""
    return next(
        (
            ending
            for ending in sorted(FORMATS, key=len, reverse=True)
            if name.lower().endswith(ending)
        ),
        "",
    )


def open_reader(path: Path) -> Reader:
    """Return a reader of a file. DatasetError where there is no such file, or where what reads it is not installed."""
    module = _module(path)
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:
        if is_local(path):
            raise
        raise DatasetError(
            f"{path} cannot be read: {error}"
        ) from None  # by the errors of whatever library knows the store
    reader: Reader = module.Reader(path)
    return reader


def open_writer(path: Path, **options: Any) -> Writer:
    """Return a writer of a file. `options`: of the format's Writer. DatasetError where the file cannot be written."""
    writer: Writer = _module(path, WRITABLE).Writer(path, **options)
    return writer


def open_rewriter(path: Path, aside: Path | None = None) -> Rewriter | None:
    """Open the rewriter of a file; None where its format has none: its records are written anew.

    `aside`: where it keeps what is kept aside; None: beside the file."""
    module = _module(path)
    if not hasattr(module, "Rewriter"):
        return None
    if not is_local(path):
        raise DatasetError(f"{path}: a file of this form expires on the disk of a machine only")
    return cast(Rewriter, module.Rewriter(path, aside))


def _module(path: Path, hint: Iterable[str] = FORMATS) -> Any:
    name = format_of(path, hint)
    try:
        return import_module(f"comity.dataset.files.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("comity"):
            raise
        raise DatasetError(
            f"{path}: {error.name} is not installed: pip install 'comity[{name}]'"
        ) from None
