"""Write shards: samples of other shards, with the records and the files that may be used."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from comity.dataset.files.formats import format_of
from comity.dataset.files.replacement import Replacement
from comity.dataset.files.shards.reader import FILES, Member, Sample, record_of, samples
from comity.dataset.records import KEY, DatasetError, Record, encode_line
from comity.policies.syntax.printable import printable


class _Encoded(NamedTuple):
    """A record, as it is written."""

    key: str
    """The key of its sample."""
    record: bytes
    """The record without the key and the names of files, as JSON."""
    files: tuple[str, ...]
    """The names of the files to copy."""


def encode(records: Sequence[Record]) -> list[_Encoded]:
    """Return records as they are written."""
    encoded = []
    for record in records:
        fields = {name: value for name, value in record.items() if name not in (KEY, FILES)}
        key, files = record.get(KEY), record.get(FILES)
        encoded.append(
            _Encoded(
                key if isinstance(key, str) else "",
                encode_line(fields),
                tuple(files) if isinstance(files, list) else (),
            )
        )
    return encoded


class Writer:
    """A new shard, with samples of other shards."""

    takes_sources = True

    def __init__(self, path: Path, sources: Sequence[Path] = ()) -> None:
        """`sources`: the shards with the samples, in their order.

        DatasetError: records come from another format."""
        self.path = path
        self.encode: Callable[[Sequence[Record]], list[_Encoded]] = encode
        if other := next((one for one in sources if format_of(one) != "tar"), None):
            raise DatasetError(
                f"{path}: only samples of .tar become .tar, not those of {other}:"
                " choose .jsonl or .parquet"
            )
        self._sources = sources
        self._replacement = Replacement(path)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            file = stack.enter_context(self._replacement)
            self._archive = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)
            self._samples = self._samples_of_sources()
            stack.callback(self._samples.close)
            self._files = stack.pop_all()
        return self

    def _samples_of_sources(self) -> Generator[tuple[IO[bytes], Sample]]:
        """Yield the samples, each with the open shard that has it."""
        for source in self._sources:
            with source.open("rb") as file:
                for sample in samples(file, source.stat().st_size, source):
                    if isinstance(sample, Sample) and not sample.error:
                        yield file, sample

    def write(self, encoded: Sequence[_Encoded]) -> None:
        for record in encoded:
            pairs = (pair for pair in self._samples if pair[1].key == record.key)
            pair = next(pairs, None)
            if pair is None:
                raise DatasetError(
                    f"{self.path}: sample `{printable(record.key)}` is not in its shard,"
                    " which may have changed: run the command again"
                )
            self._add(record, *pair)

    def _add(self, record: _Encoded, file: IO[bytes], sample: Sample) -> None:
        """Write a sample. `file`: the open shard that has it."""
        fields = json.loads(record.record)
        field = "txt" if "txt" in record_of(file, sample) else "text"
        text = fields.pop(field, None) if sample.member("txt") else None
        if not sample.member("json"):
            self._put(Member(f"{sample.key}.json", "json", 0, 0, 0), encode_line(fields))
        for member in sample.members:
            if member.ending == "json":
                self._put(member, encode_line(fields))
            elif member.ending == "txt" and isinstance(text, str):
                self._put(member, text.encode("utf-8", "surrogatepass"))
            elif member.ending != "txt" and member.name in record.files:
                file.seek(member.offset)
                self._put(member, file)

    def _put(self, member: Member, octets: bytes | IO[bytes]) -> None:
        head = tarfile.TarInfo(member.name)
        head.mtime = member.changed_at
        if isinstance(octets, bytes):
            head.size = len(octets)
            self._archive.addfile(head, io.BytesIO(octets))
        else:
            head.size = member.size
            self._archive.addfile(head, octets)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._archive.close()
        self._files.__exit__(kind, error, trace)
