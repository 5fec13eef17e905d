"""The manifest beside a dataset: a file with its description (comity.dataset.croissant).

    write(path, described)    write NAME.croissant.json beside NAME
    read(path)                read the manifest; None if there is no manifest
    announce(path, files)     list the new files of a folder before they appear in it
    retract(path)             rename the manifest before the dataset changes

The manifest is renamed before the dataset changes, and written anew afterwards. So a crash never
leaves a dataset beside a manifest that does not describe it. The evidence of a dataset that is
replaced is renamed with the manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from comity.dataset.croissant import FileFacts, file_object, sha256_of
from comity.dataset.files.folders import EVIDENCE, evidence_path
from comity.dataset.files.places import copy_stored, is_local
from comity.dataset.files.replacement import Replacement, sync
from comity.dataset.records import DatasetError

# This member is True if another program had changed the dataset before `dataset expire` rewrote it.
CHANGED_OUTSIDE = "comity:changedOutside"


def digests(described: Mapping[str, Any] | None) -> dict[str, str]:
    """Return name -> SHA-256 for the files that a folder's manifest describes."""
    distribution = (described or {}).get("distribution", ())
    return {
        file["name"]: file.get("sha256", "")
        for file in distribution
        if file.get("@type") == "cr:FileObject" and "name" in file
    }


class Digest(NamedTuple):
    """The digest and size of a file, from a manifest."""

    sha256: str
    """The SHA-256, in hexadecimal digits."""
    octets: int | None
    """None if the manifest does not state the size."""


def described_files(described: Mapping[str, Any]) -> dict[str, Digest]:
    """Return name -> digest for the files that a manifest identifies by their SHA-256."""
    distribution = described.get("distribution")
    files = (
        [file for file in distribution if isinstance(file, dict)]
        if isinstance(distribution, list)
        else []
    )
    return {
        str(file["name"]): Digest(str(file["sha256"]), _octets(str(file.get("contentSize"))))
        for file in files
        if file.get("@type") == "cr:FileObject" and "name" in file and "sha256" in file
    }


def _octets(size: str) -> int | None:
    number, _, unit = size.partition(" ")
    return int(number[:20]) if unit == "B" and number.isdecimal() else None


def path_of(path: Path) -> Path:
    """Return the path of a dataset's manifest."""
    return path.with_name(f"{path.name}.croissant.json")


def before_path(path: Path) -> Path:
    """Return the path of the last manifest while the dataset changes."""
    return path.with_name(f".{path.name}.croissant.json.before")


def replaced_path(path: Path) -> Path:
    """Return the path of the last manifest while another dataset replaces this one."""
    return path.with_name(f".{path.name}.croissant.json.replaced")


def announced_path(path: Path) -> Path:
    """Return the path of the list of a folder's files while the folder has no manifest yet."""
    return path.with_name(f".{path.name}.croissant.json.next")


def announce(path: Path, files: Sequence[FileFacts]) -> None:
    """Write the list of the new files of a folder, at `announced_path`.

    If a run is killed before it writes the manifest, the list shows the files that comity wrote."""
    described = {"distribution": [file_object(file.name, file.name, file) for file in files]}
    with Replacement(announced_path(path), is_named=False) as file:
        file.write(json.dumps(described).encode() + b"\n")


def written_names(path: Path) -> frozenset[str]:
    """Return the names of the files in a folder that comity is known to have written."""
    return frozenset((*digests(last(path)), *digests(_read(announced_path(path)))))


def last(path: Path) -> dict[str, Any] | None:
    """Read the last manifest, even if the dataset has changed since.

    None if there is neither a manifest nor an old one. DatasetError: a manifest cannot be read."""
    return next(
        (
            value
            for name in (path_of, before_path, replaced_path)
            if (value := _read(name(path))) is not None
        ),
        None,
    )


def read(path: Path) -> dict[str, Any] | None:
    """Read the manifest of a dataset, or after a crash the manifest from before the change.

    If a crash ended the replacement of the dataset, the old manifest is used only if its digests
    are still those of the files. None if there is no manifest. DatasetError: a manifest cannot be
    read."""
    for name in (path_of, before_path):
        if (described := _read(name(path))) is not None:
            return described
    described = _read(replaced_path(path))
    return described if described and _is_described(path, described) else None


def _is_described(path: Path, described: Mapping[str, Any]) -> bool:
    files = described_files(described)
    is_folder = path.is_dir()
    return bool(files) and all(
        _is_it(path / name if is_folder else path, digest.sha256) for name, digest in files.items()
    )


def _is_it(path: Path, sha256: str) -> bool:
    try:
        return sha256_of(path) == sha256
    except FileNotFoundError:
        return False


def current(path: Path) -> dict[str, Any] | None:
    """Read the manifest of a dataset. None if there is no manifest, or the dataset is changing.

    DatasetError: the manifest cannot be read."""
    return _read(path_of(path))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        described = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None
    if not isinstance(described, dict):
        raise DatasetError(f"{path} is no manifest")
    return described


def retract(path: Path, *, is_replaced: bool = False) -> None:
    """Rename the manifest before the dataset changes.

    `is_replaced`: True if a new dataset replaces this one. Its evidence is renamed too. False if
    records are removed from the dataset. Its evidence still says how it was made."""
    moved = (before_path(path), path_of(path)) if is_replaced else (path_of(path),)
    for file in moved:
        if file.exists():
            _move(file, replaced_path(path) if is_replaced else before_path(path))
            sync(path.parent)
    for file, hidden in _evidence(path) if is_replaced else ():
        if file.exists():
            _move(file, hidden)
            sync(path.parent)


def _evidence(path: Path) -> list[tuple[Path, Path]]:
    """Return the evidence files of a dataset, each with its name while another dataset replaces
    this one."""
    files = [evidence_path(path, ending) for ending in EVIDENCE]
    return [(file, file.with_name(f".{file.name}.replaced")) for file in files]


@contextmanager
def restored_on_error(path: Path) -> Iterator[None]:
    """Give the manifest and the evidence their old names if the block raises, because the dataset
    is unchanged then."""
    was_there = path_of(path).exists()
    try:
        yield
    except BaseException:
        file = next(
            (file for file in (before_path(path), replaced_path(path)) if file.exists()), None
        )
        if (
            file
            and not path_of(path).exists()
            and (was_there or _is_described(path, _read(file) or {}))
        ):
            for evidence, hidden in _evidence(path):
                if hidden.exists() and not evidence.exists():
                    _move(hidden, evidence)
            _move(file, path_of(path))
        raise


def _move(source: Path, target: Path) -> None:
    if is_local(source):
        source.replace(target)
    else:
        copy_stored(source, target)
        source.unlink()


def write(path: Path, described: Mapping[str, Any]) -> None:
    """Write the manifest of a complete dataset, and remove its old manifests."""
    with Replacement(path_of(path), is_named=False) as file:
        file.write(
            json.dumps(described, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
            + b"\n"
        )
    old = (before_path(path), replaced_path(path), announced_path(path))
    for name in (*old, *(hidden for _, hidden in _evidence(path))):
        name.unlink(missing_ok=True)
