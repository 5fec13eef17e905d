"""Datasets that something else than comity has changed, since comity wrote the manifests beside them.

Nothing is told of a dataset without a manifest, nor where a process was killed that was about to write one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.files.folders import Dataset, open_dataset
from comity.dataset.files.formats import Reader, open_reader
from comity.dataset.files.places import is_local
from comity.dataset.job import JobOptions, each_file

MESSAGE = "is not what its manifest describes: something else than comity has changed it"


class _Described(NamedTuple):
    """A file, and what a manifest says of it."""

    reader: Reader
    facts: manifest.Digest
    manifest_of: Path


def _differs(file: _Described) -> bool:
    """Return whether a file is another one than the manifest describes. It is read only where its size is the same."""
    if file.facts.octets not in (None, file.reader.size):
        return True
    return manifest.sha256_of(file.reader.path) != file.facts.sha256


def changed_outside(paths: Sequence[Path], options: JobOptions = JobOptions()) -> list[Path]:  # noqa: B008  # immutable
    """Return those of these datasets, and of the files in them, that are not what the manifests beside them describe, and
    complain of each.

    DatasetError where a manifest cannot be read."""
    changed: dict[Path, None] = {}
    tasks: list[_Described] = []
    for dataset in map(open_dataset, paths):
        for path, files in _described(dataset):
            if files is None:
                changed[path] = None
            else:
                tasks += (
                    _Described(open_reader(file), facts, path) for file, facts in files.items()
                )
    outcomes = each_file(_differs, tasks, options._replace(progress=lambda _: None))
    with closing(outcomes):
        changed |= {
            task.manifest_of: None for task, differs in zip(tasks, outcomes, strict=True) if differs
        }
    for path in changed:
        options.complain(f"{path} {MESSAGE}")
    return [*changed]


def _described(dataset: Dataset) -> Iterator[tuple[Path, dict[Path, manifest.Digest] | None]]:
    """Yield what has a manifest, with the files that this describes; None where it is known that others were there."""
    # In a store each file would be a request, most of them for what is not there.
    single_files = dataset.files if is_local(dataset.path) or not dataset.is_folder else ()
    for path in dict.fromkeys((dataset.path, *single_files)):
        described = manifest.current(path)
        if not described:
            continue
        digests = manifest.described_files(described)
        if described.get(manifest.CHANGED_OUTSIDE):
            yield path, None
        elif digests and dataset.is_folder and path is dataset.path:
            files = {dataset.name_of(file): file for file in dataset.files}
            yield (
                path,
                {files[name]: digests[name] for name in files}
                if files.keys() == digests.keys()
                else None,
            )
        elif digests:
            [digest, *_] = digests.values()
            yield path, {path: digest}
