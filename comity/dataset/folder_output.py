"""A folder as the output of a job: a file for each file that is read, under the same name, and one manifest for all.

A part of the work is a file. Whoever does it reads, judges and writes it by itself: nothing of the records comes to the process
that gives the work, only what was found out of them. That one names the files, puts the folder in its place, and writes the
manifest when all files are there. A part can be done again, whoever was killed in it: its file is replaced whole.

A run that was killed begins anew. Its files are not taken over: they were judged by the clock of that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple, TypeVar

from comity.dataset import manifest
from comity.dataset.execution.executors import PROCESSES, Do
from comity.dataset.files.folders import FolderReplacement, open_dataset
from comity.dataset.files.formats import WRITABLE, Reader, Writer, ending_of, open_writer
from comity.dataset.files.places import is_local, is_within
from comity.dataset.job import JobOptions, check_outside, each_file, open_readers, paths_read
from comity.dataset.manifest import FileFacts
from comity.dataset.records import DatasetError
from comity.dataset.side_files import side_folder
from comity.dataset.tags.sources import GUESSED, TagSource

UNWRITABLE_AS = ".jsonl.gz"  # ending of what is read in a form that is not written

R = TypeVar("R")


class FolderPart(NamedTuple):
    """A file that is read, and the one that is made of it. It can be pickled."""

    reader: Reader
    name: str  # of the new file in the folder
    folder: Path
    asides: tuple[Path, ...]  # folders, one for each kind of what is kept beside

    def open_writer(self) -> Writer:
        output = self.folder / self.name
        if is_local(output):
            output.parent.mkdir(parents=True, exist_ok=True)
        return open_writer(output)

    def aside(self, number: int = 0) -> Path:
        """The file for what of this one is kept beside. `number`: of its kind."""
        return self.asides[number] / f"{self.name}.jsonl"

    def facts(self, records: int) -> FileFacts:
        """Return what the manifest says of the new file, when it is there."""
        return manifest.facts_of(self.folder / self.name, self.name, records)


class FolderOutput(NamedTuple):
    """A new folder that is being filled."""

    readers: Sequence[Reader]
    parts: Sequence[FolderPart]
    facts: list[FileFacts]  # of the files that are there

    def results(
        self,
        do_by: Callable[[int | None], Do[FolderPart, tuple[R, FileFacts]]],
        options: JobOptions,
    ) -> Iterator[R]:
        """Yield what is found out of each file. `do_by`: gives what is done with a part, by so many processes."""
        is_one = (
            len(self.parts) == 1 and options.executor == PROCESSES
        )  # then it is shared among processes
        do = do_by(options.workers if is_one else 1)
        for result, facts in each_file(
            do, self.parts, options._replace(workers=1) if is_one else options
        ):
            self.facts.append(facts)
            yield result


@contextmanager
def folder_output(
    inputs: Sequence[Path],
    folder: Path,
    *,
    kinds: Sequence[str],
    ending: str = "",
    reader_of: Callable[[Reader], Reader] = lambda reader: reader,
    tags: TagSource = GUESSED,
) -> Iterator[FolderOutput]:
    """Fill a new folder. At the end of `with` it is there, and whoever made it writes its manifest; where it raises nothing has
    changed.

    `folder`: of `nameable_folder`. `kinds`: of what is kept beside it, each in a folder. `ending`: one of WRITABLE, that of the
    new files; "": that of each file. DatasetError where a file cannot be used or written."""
    asides = [side_folder(folder, kind) for kind in kinds]
    datasets, readers = (
        [open_dataset(path) for path in inputs],
        list(map(reader_of, open_readers(inputs))),
    )
    for clash in (folder, *asides):
        if any(is_within(path, clash) for path in paths_read(readers, tags)):
            raise DatasetError(f"{clash} is read from: give the output another name")
    check_outside(folder, inputs)
    names = [
        _new_name(dataset.name_of(file), ending) for dataset in datasets for file in dataset.files
    ]
    [(name, count)] = Counter(names).most_common(1)
    if count > 1:
        raise DatasetError(f"{folder / name} would be written twice: two files have this name")
    # In a store the old files go before the new ones come: then no manifest is beside them until all are there.
    restored = manifest.restored_on_error(folder) if is_local(folder) else nullcontext()
    with restored, ExitStack() as stack:
        filled = stack.enter_context(
            FolderReplacement(folder, manifest.written_names(folder).__contains__)
        )
        beside = tuple(stack.enter_context(FolderReplacement(aside, _is_lines)) for aside in asides)
        parts = [
            FolderPart(reader, name, filled, beside)
            for reader, name in zip(readers, names, strict=True)
        ]
        yield (output := FolderOutput(readers, parts, []))
        manifest.announce(folder, output.facts)
        manifest.retract(folder, is_replaced=True)


def is_folder(name: str, path: Path) -> bool:
    """Return whether an output that the operator has named so is to be a folder. `path`: its place."""
    return name.endswith(("/", "/.")) or path.is_dir()


def _is_lines(name: str) -> bool:
    return name.endswith(".jsonl")


def _new_name(name: str, ending: str) -> str:
    old_ending = ending_of(name)
    return name[: len(name) - len(old_ending)] + (
        ending or (old_ending if old_ending in WRITABLE else UNWRITABLE_AS)
    )
