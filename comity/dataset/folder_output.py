"""A folder as the output of a job. It has one file for each input file, and one manifest.

A task is one file. The process with the task reads the input file, judges its records, writes the
output file, and returns only counts, no records. The main process names the files. When all files
are complete, it renames the new folder and writes the manifest. A task can be repeated after its
process was killed, because its file is replaced as a whole.

After a run was killed, the next run begins anew. It does not use the earlier files, because they
were judged at another moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from comity.dataset import manifest
from comity.dataset.croissant import FileFacts, facts_of
from comity.dataset.execution.executors import PROCESSES, Do
from comity.dataset.files import hugging_face
from comity.dataset.files.folders import FolderReplacement, open_dataset
from comity.dataset.files.formats import WRITABLE, Reader, Writer, ending_of, open_writer
from comity.dataset.files.places import is_local, is_within
from comity.dataset.job import JobOptions, check_outside, each_file, open_readers, paths_read
from comity.dataset.records import DatasetError
from comity.dataset.side_files import side_folder
from comity.dataset.tags.sources import GUESSED, TagSource

UNWRITABLE_AS = ".jsonl.gz"  # ending of the output for formats that can only be read

if TYPE_CHECKING:
    from comity.dataset.evidence.files import EvidenceFiles, Piece

R = TypeVar("R")


def evidence_files(
    output: Path, options: JobOptions
) -> AbstractContextManager[EvidenceFiles | None]:
    """Return the evidence files of an output. None if the options ask for none."""
    if options.evidence is None:
        return nullcontext()
    # Imported here because pyarrow is needed only for evidence and columns.
    from comity.dataset.evidence.files import EvidenceFiles

    return EvidenceFiles(output, options.evidence, options.keep)


class FolderPart(NamedTuple):
    """An input file, and the output file that is made from it. It can be pickled."""

    reader: Reader
    """The reader of the input file."""
    name: str
    """The name of the output file in the folder."""
    folder: Path
    """The folder of the output file."""
    asides: tuple[Path, ...]
    """The folders for side files, one for each kind."""

    def open_writer(self) -> Writer:
        """Open the output file."""
        output = self.folder / self.name
        if is_local(output):
            output.parent.mkdir(parents=True, exist_ok=True)
        return open_writer(output, [self.reader.path])

    def aside(self, number: int = 0) -> Path:
        """Return the path of the side file for this file. `number`: the index of its kind."""
        return self.asides[number] / f"{self.name}.jsonl"

    @property
    def piece(self) -> Path:
        """The temporary file with the evidence about this file."""
        output = self.folder / self.name
        return output.with_name(f".{output.name}.evidence")

    def evidence(self, *, with_evidence: bool) -> AbstractContextManager[Piece | None]:
        """Open the evidence about this file. None without evidence."""
        if not with_evidence:
            return nullcontext()
        # Imported here because pyarrow is needed only for evidence and columns.
        from comity.dataset.evidence.files import Piece

        return Piece(self.piece)

    def facts(self, records: int) -> FileFacts:
        """Return the facts about the complete output file for the manifest."""
        return facts_of(self.folder / self.name, self.name, records)


class FolderOutput(NamedTuple):
    """A new folder that is being filled."""

    readers: Sequence[Reader]
    """The readers of all input files."""
    parts: Sequence[FolderPart]
    """The input files, with their output files."""
    facts: list[FileFacts]
    """The facts about the complete files."""

    def results(
        self,
        do_by: Callable[[int | None], Do[FolderPart, tuple[R, FileFacts]]],
        options: JobOptions,
    ) -> Iterator[R]:
        """Yield the result for each file, in the order of the files. Collect their `facts`.

        `do_by`: a function that returns the function for a task. The argument of `do_by` is the
        number of processes for one file, as in JobOptions.workers."""
        # A single file is shared among the processes.
        is_one = len(self.parts) == 1 and options.executor == PROCESSES
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
    """Fill a new folder. At the end of `with`, it replaces the old folder. Then the caller must
    write its manifest.

    If the block raises, nothing changes. `folder`: the result of `nameable_folder`. `kinds`: the
    kinds of side files. Each kind has a folder. `ending`: the ending of the new files, one of
    WRITABLE. "" keeps the ending of each file, or is UNWRITABLE_AS if the ending cannot be written.
    `reader_of`: returns a reader to use instead of the given one. `tags`: the source of the tags.

    DatasetError: a file cannot be used or written."""
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
    # In a store, the old files are removed before the new ones appear. Meanwhile there must be no
    # manifest beside them.
    restored = manifest.restored_on_error(folder) if is_local(folder) else nullcontext()
    with restored, ExitStack() as stack:
        written = manifest.written_names(folder)
        alone = datasets[0] if len(datasets) == 1 and datasets[0].is_folder else None
        tables = dict(zip(map(alone.name_of, alone.files), names, strict=True)) if alone else {}

        def is_ours(name: str) -> bool:
            if name == hugging_face.README and alone and (alone.path / name).is_file():
                return (folder / name).read_bytes() == hugging_face.readme(alone.path, tables)
            return name in written or (bool(written) and hugging_face.is_ours(name))

        filled = stack.enter_context(FolderReplacement(folder, is_ours))
        beside = tuple(stack.enter_context(FolderReplacement(aside, _is_lines)) for aside in asides)
        parts = [
            FolderPart(reader, name, filled, beside)
            for reader, name in zip(readers, names, strict=True)
        ]
        yield (output := FolderOutput(readers, parts, []))
        if alone:
            hugging_face.copy(alone.path, filled, tables)
        manifest.announce(folder, output.facts)
        manifest.retract(folder, is_replaced=True)


def is_folder(name: str, path: Path) -> bool:
    """Return True if an output must become a folder: `name` ends with `/`, or `path` is a folder.

    `name`: the output as the operator wrote it."""
    return name.endswith(("/", "/.")) or path.is_dir()


def _is_lines(name: str) -> bool:
    return name.endswith(".jsonl")


def _new_name(name: str, ending: str) -> str:
    old_ending = ending_of(name)
    return name[: len(name) - len(old_ending)] + (
        ending or (old_ending if old_ending in WRITABLE else UNWRITABLE_AS)
    )
