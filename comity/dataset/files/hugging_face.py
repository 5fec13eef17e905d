"""Folders of Hugging Face: the files beside the tables, which `datasets` needs to open a folder.

    dataset_dict.json, train/, test/                    a DatasetDict from `save_to_disk`
    dataset_info.json, state.json, data-*.arrow         a Dataset from `save_to_disk`
    README.md, data/train-00000-of-00010.parquet        a repository of the hub

A new folder has the same files, changed where records or columns have changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comity.dataset.files.formats import ending_of, open_reader
from comity.dataset.files.places import is_local
from comity.dataset.records import DatasetError

SPLITS, INFO, STATE = "dataset_dict.json", "dataset_info.json", "state.json"
README = "README.md"
# Members of INFO about the octets and records of the old files.
_OLD = ("splits", "download_checksums", "download_size", "dataset_size", "size_in_bytes")
_DTYPES = {"double": "float64", "float": "float32", "halffloat": "float16"}
_HEAD = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_OLD_INFO = re.compile(r"^dataset_info:.*\n(?:[ \t-].*\n|\n)*", re.MULTILINE)


def is_ours(name: str) -> bool:
    """Return True if a file of this name in a folder of comity may be removed."""
    return name.rpartition("/")[2] in (SPLITS, INFO, STATE)


def copy(folder: Path, new: Path, names: Mapping[str, str]) -> None:
    """Write the files beside the tables of a folder into a new folder, as far as there are any.

    `names`: the names of the tables in the folder, and in the new folder.

    DatasetError: one of these files cannot be read."""
    if (folder / README).is_file():
        _write(new / README, readme(folder, names))
    if any(ending_of(old) != ending_of(name) for old, name in names.items()):
        return  # `load_from_disk` reads .arrow only
    if (folder / SPLITS).is_file():
        _write(new / SPLITS, (folder / SPLITS).read_bytes())
    for within in {name.rpartition("/")[0] for name in names}:
        tables = [new / name for name in names.values() if name.rpartition("/")[0] == within]
        if (folder / within / INFO).is_file():
            info = _read(folder / within / INFO)
            _write(new / within / INFO, _encoded(_new_info(info, tables[0])))
        if (folder / within / STATE).is_file():
            state = _read(folder / within / STATE)
            _write(new / within / STATE, _encoded(_new_state(state, tables)))


def readme(folder: Path, names: Mapping[str, str]) -> bytes:
    """Return the README of a repository for the new folder.

    `dataset_info` in its head lists the old columns, so it is left out. The head names files by
    their endings, which may have changed."""
    try:
        text = (folder / README).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DatasetError(f"{folder / README} cannot be read: {error}") from None
    match = _HEAD.match(text.replace("\r\n", "\n"))
    if match is None:
        return text.encode()
    head = _OLD_INFO.sub("", match[1])
    for old, new in names.items():
        if ending_of(old) != ending_of(new):
            head = re.sub(rf"{re.escape(ending_of(old))}(?=[\"'\s]|$)", ending_of(new), head)
    return f"---\n{head}---\n{text.replace(chr(13) + chr(10), chr(10))[match.end() :]}".encode()


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise DatasetError(f"{path} is not an object of JSON")
    return value


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _write(path: Path, octets: bytes) -> None:
    if is_local(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(octets)


def _new_info(info: dict[str, Any], table: Path) -> dict[str, Any]:
    """Return the description of a dataset with the columns of a new table."""
    reader: Any = open_reader(table)
    known = info.get("features") or {}
    features = {
        field.name: known.get(field.name) or _feature(field.type) for field in reader.schema
    }
    return {name: value for name, value in info.items() if name not in _OLD} | {
        "features": features
    }


def _feature(type_: Any) -> Any:
    """Return the description of an Arrow type as a feature of `datasets`."""
    # Imported here because pyarrow is installed only where there are columns.
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return {field.name: _feature(field.type) for field in type_}
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = "List" if pa.types.is_list(type_) else "LargeList"
        return {"feature": _feature(type_.value_type), "_type": kind}
    return {"dtype": _DTYPES.get(str(type_), str(type_)), "_type": "Value"}


def _new_state(state: dict[str, Any], tables: list[Path]) -> dict[str, Any]:
    """Return the state of a dataset with new tables.

    `datasets` finds the results of earlier work by the fingerprint, so it must be a new one."""
    digest = hashlib.sha256(str(state.get("_fingerprint")).encode())
    for table in tables:
        with table.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return state | {"_fingerprint": digest.hexdigest()[:16], "_format_columns": None}
