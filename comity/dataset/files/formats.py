"""Files of records: the format of a file, which its name decides, and the interface of formats.

    format_of(path)         the name of the format
    open_reader(path)       a Reader
    open_writer(path)       a Writer of a new file, which appears when it is complete
    open_rewriter(path)     a Rewriter, which copies the remaining records from the old file

Writers use comity.dataset.files.replacement."""

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
from comity.extras import required

# Name of a format -> its module in this package. Each has a `Reader(path)` and a `Writer(path)`,
# some a `Rewriter(path, aside)`.
_MODULES = {
    "jsonl": "jsonl",
    "csv": "delimited",
    "arrow": "columns.ipc",
    "parquet": "columns.parquet",
    "tar": "shards",
    "warc": "warc",
    "cdx": "warc.cdx",
}
# Ending of a file name -> name of its format
FORMATS = {
    ".jsonl": "jsonl",
    ".jl": "jsonl",
    ".jsonl.gz": "jsonl",
    ".jl.gz": "jsonl",
    ".jsonl.zst": "jsonl",
    ".jl.zst": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".tar": "tar",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
    ".csv.zst": "csv",
    ".tsv.zst": "csv",
    ".warc": "warc",
    ".warc.gz": "warc",
    ".wacz": "warc",
    ".cdxj": "cdx",
    ".cdxj.gz": "cdx",
    ".cdx": "cdx",
    ".cdx.gz": "cdx",
}
_DUCKDB = "write it as Parquet: `duckdb -c \"COPY (FROM {}) TO '{{name}}.parquet'\"`"
_ARROW = "write it as Parquet with {} and pyarrow.parquet.write_table"
_SHEET = "save the sheet as CSV in UTF-8, {name}.csv"
# Ending of a file that must be changed before it can be read -> the remedy. `{path}` stands for the
# path, and `{name}` for the path without the ending.
OTHERS = {
    ".json": _DUCKDB.format("read_json('{path}')"),
    ".ndjson": "rename it to {name}.jsonl",
    ".txt": "write its URLs as CSV: `(echo url; cat {path}) > {name}.csv`",
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _SHEET),
    **dict.fromkeys(
        (".sqlite", ".sqlite3", ".db"), _DUCKDB.format("sqlite_scan('{path}', 'TABLE')")
    ),
    ".duckdb": "write a table as Parquet: `duckdb {path} \"COPY TABLE TO '{name}.parquet'\"`",
    ".avro": _DUCKDB.format("read_avro('{path}')"),
    ".orc": _ARROW.format("pyarrow.orc.read_table('{path}')"),
    ".lance": _ARROW.format("lance.dataset('{path}').to_table()"),
    ".zip": "unpack it: `unzip {path} -d {name}`, or name it .wacz if it has WARC files in"
    " `archive/`",
    ".arc": "convert it: `warcio recompress {path} {name}.warc.gz`",
    ".arc.gz": "convert it: `warcio recompress {path} {name}.warc.gz`",
    ".wet.gz": "it is WARC: rename it to {name}.warc.gz",
    ".wat.gz": "it has no pages: take the WARC or WET file of the same name",
    ".paths.gz": "it is a list of files: download them, and name them",
    ".idx": "it is an index of an index: name the .cdx.gz files that it refers to",
    ".har": "convert it to WARC, for example by har2warc",
    **dict.fromkeys((".tar.gz", ".tgz"), "unpack it: `gunzip -c {path} > {name}.tar`"),
    **dict.fromkeys((".tar.zst", ".warc.zst"), "unpack it: `zstd -d {path}`"),
    ".bz2": "unpack it: `bunzip2 {path}`",
    ".xz": "unpack it: `unxz {path}`",
    ".7z": "unpack it: `7z x {path}`",
}
WRITABLE = tuple(ending for ending, name in FORMATS.items() if name not in ("cdx", "csv", "warc"))


class Part(NamedTuple):
    """Some records of a file that are read together, a few MB. It can be pickled."""

    position: Any
    """The position of the records in the file. Each format has its own type of positions. If a file
    can be read only from its beginning, the position contains the octets of the records."""
    octets: int
    """The part's share of the file in octets. The sum over all parts is the size of the file."""


class Reader(ABC):
    """A file of records. It can be pickled.

    Several processes read parts, so each call opens the file anew. An unreadable record is an
    Unreadable among the records. DatasetError: the file as a whole cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def size(self) -> int:
        """The size of the file in octets."""
        return self.path.stat().st_size

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Yield the parts in the order of the file. Each is found only when it is needed."""

    @abstractmethod
    def may_mention(self, key: str, tags: Sequence[str] | None = None) -> bool:
        """Return False only if no tag has this key, at any depth.

        `tags`: names of fields that contain a tag. Fields that look like a tag count too, with
        TAG_FIELDS in `tags` or without it."""

    @abstractmethod
    def read(self, part: Part, fields: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the records of a part.

        `fields`: the fields that are needed. Others may be missing if that is faster. None: all."""


class Writer(Protocol):
    """A new file of records. It replaces the old file at the end of `with`, except after an error.

    `encode` does most of the work, in several processes, so it must be picklable and pure. `write`
    runs in one process."""

    path: Path
    encode: Callable[[Sequence[Record]], Any]

    def __enter__(self) -> Self: ...

    def write(self, encoded: Any) -> None:
        """Write a result of `encode`. Results come in the order of the records."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Rewriter(Writer, Protocol):
    """A Writer that copies all records from the old file, except those that are left out.

    The records must be PositionedRecords. `copy` must be the last call in the `with` block."""

    def leave_out(self, position: Any, *, keep_aside: bool) -> None:
        """Note a record to remove.

        `position`: the position of the PositionedRecord. `keep_aside`: True to copy the record to a
        side file."""

    def copy(self) -> None:
        """Copy the remaining records to the new file."""


def format_of(path: Path, hint: Iterable[str] = FORMATS) -> str:
    """Return the name of a file's format.

    `hint`: the endings to suggest in the error. DatasetError: the format is unknown."""
    ending = ending_of(path.name)
    if not ending and hint is FORMATS and (other := ending_of(path.name, OTHERS)):
        remedy = OTHERS[other].format(path=path, name=str(path)[: -len(other)])
        raise DatasetError(f"{path}: {other} cannot be read: {remedy}")
    if not ending:
        raise DatasetError(
            f"{path}: unknown format of records: write a name that ends in {', '.join(hint)}"
        )
    return FORMATS[ending]


def ending_of(name: str, endings: Iterable[str] = FORMATS) -> str:
    """Return the longest of these endings that a file name has. "" if it has none."""
    return next(
        (
            ending
            for ending in sorted(endings, key=len, reverse=True)
            if name.lower().endswith(ending)
        ),
        "",
    )


def open_reader(path: Path) -> Reader:
    """Return a reader of a file.

    DatasetError: the file cannot be opened, its format is unknown, or a package for its format is
    not installed."""
    module = _module(path)
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:
        if is_local(path):
            raise
        # The library of an object store may raise anything.
        raise DatasetError(f"{path} cannot be read: {error}") from None
    reader: Reader = module.Reader(path)
    return reader


def open_writer(path: Path, sources: Sequence[Path] = (), **options: Any) -> Writer:
    """Return a writer of a file.

    `sources`: the files with the records. Some formats keep their form. `options`: options of the
    format's Writer.

    DatasetError: the format cannot be written."""
    kind = _module(path, WRITABLE).Writer
    if getattr(kind, "takes_sources", False):
        options["sources"] = sources
    writer: Writer = kind(path, **options)
    return writer


def open_rewriter(path: Path, aside: Path | None = None) -> Rewriter | None:
    """Return a rewriter of a file. None if the format has none: then a Writer writes all records.

    `aside`: the side file for records with `keep_aside`. None: a file beside the dataset.

    DatasetError: the file is a WACZ file or is in an object store, or a package for its format is
    not installed."""
    module = _module(path)
    if not hasattr(module, "Rewriter"):
        return None
    if path.name.lower().endswith(".wacz"):
        raise DatasetError(
            f"{path}: a WACZ file cannot expire: unzip it, and name the WARC files in `archive/`"
        )
    if not is_local(path):
        raise DatasetError(
            f"{path}: a WARC file in an object store cannot expire: copy it to a disk first"
        )
    return cast(Rewriter, module.Rewriter(path, aside))


def _module(path: Path, hint: Iterable[str] = FORMATS) -> Any:
    name = format_of(path, hint)
    module = _MODULES[name]
    extra = "parquet" if module.startswith("columns.") else name
    with required(str(path), extra, DatasetError):
        return import_module(f"comity.dataset.files.{module}")
