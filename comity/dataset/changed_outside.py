"""Find datasets that another program has changed since comity wrote their manifests.

Datasets without a manifest are not checked. A dataset also lacks a manifest if comity was killed
after it changed the dataset and before it wrote the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from comity.dataset import manifest
from comity.dataset.croissant import sha256_of
from comity.dataset.files.folders import Dataset, open_dataset
from comity.dataset.files.formats import Reader, open_reader
from comity.dataset.files.places import is_local
from comity.dataset.job import JobOptions, each_file

MESSAGE = "differs from its manifest: another program has changed it"


class _Described(NamedTuple):
    """A file, and its description in a manifest.

    `manifest_of`: the dataset or file that the manifest describes."""

    reader: Reader
    facts: manifest.Digest
    manifest_of: Path


def _differs(file: _Described) -> bool:
    """Return True if a file differs from its manifest.

    The file is read only if its size is that in the manifest, or the manifest has no size."""
    if file.facts.octets not in (None, file.reader.size):
        return True
    return sha256_of(file.reader.path) != file.facts.sha256


def changed_outside(paths: Sequence[Path], options: JobOptions = JobOptions()) -> list[Path]:  # noqa: B008  # immutable
    """Return the datasets that differ from their manifests.

    In a folder, a file with a manifest of its own is checked too, and returned if it differs.
    `options.complain` is called with a warning for each returned path. DatasetError: a manifest
    cannot be read."""
    changed: dict[Path, None] = {}
    tasks: list[_Described] = []
    for dataset in map(open_dataset, paths):
        for path, files in _find_manifests(dataset):
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


def _find_manifests(dataset: Dataset) -> Iterator[tuple[Path, dict[Path, manifest.Digest] | None]]:
    """Yield each path with a manifest, and a mapping: file -> its digest in the manifest.

    None instead of the mapping: the path is known to be changed, because its manifest says so, or
    because the folder has other files than its manifest lists."""
    # In a store, a search for a manifest takes a request, and most files in folders have no
    # manifest.
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
