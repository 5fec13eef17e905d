"""The manifest beside a dataset: its content and its history, as a Croissant description.

Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html) is JSON-LD that
tools for datasets load. If Croissant has no property for a fact, the manifest uses a term of
comity's own, `comity:...`.

    manifest(path, history, composition)    return the content of a manifest
    write(path, manifest)                   write NAME.croissant.json beside NAME
    announce(path, files)                   list the new files of a folder before they appear in it
    read(path)                              read the manifest; None if there is no manifest
    retract(path)                           rename the manifest before the dataset changes

A manifest has the SHA-256 of the dataset's file, or of each file in the dataset's folder. It is
renamed before the dataset changes, and written anew afterwards. So a crash never leaves a dataset
beside a manifest that does not describe it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from comity import __version__
from comity.dataset.files.formats import format_of, open_reader
from comity.dataset.files.places import copy_stored, is_local
from comity.dataset.files.replacement import Replacement, sync
from comity.dataset.records import DatasetError, Record
from comity.dataset.tags.sources import RawTag

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
ENCODINGS = {
    "jsonl": "application/jsonlines",
    "parquet": "application/x-parquet",
    "warc": "application/warc",
}
FILE = "file"  # @id of the FileObject
FILES = "files"  # @id of the FileSet, which has all files of a folder
RECORDS = "records"  # @id of the RecordSet
# This member is True if another program had changed the dataset before `dataset expire` rewrote it.
CHANGED_OUTSIDE = "comity:changedOutside"

# Appendix 1 of the specification, then comity's terms. The values of comity's terms are plain JSON
# with any keys.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
    "comity": "urn:comity:dataset:",
    **{
        f"comity:{name}": {"@type": "@json"}
        for name in (
            "counts",
            "agents",
            "policies",
            "policyCount",
            "arrangements",
            "vocabulary",
            "removed",
            "defaults",
            "tagged",
        )
    },
}


_KINDS = {type(None): "", bool: "sc:Boolean", int: "sc:Integer", float: "sc:Float", str: "sc:Text"}


class Fields:
    """The fields of the records, and their data types. It can be merged and pickled."""

    def __init__(self) -> None:
        # Field -> types: "" for null, "[sc:Text]" for a list, "?" if Croissant has no type.
        self.kinds: dict[str, set[str]] = {}
        self.tags: dict[str, None] = {}  # fields with tags as objects

    def note(self, record: Record, tag: RawTag | None = None) -> None:
        if tag and not tag.is_text and tag.field in record:
            self.tags[tag.field] = None
        for name, value in record.items():
            kind = _KINDS.get(type(value)) or _kind(name, value)
            if kind == "sc:Text" and taken_for_date(name):
                kind = _date(value)
            if (kinds_of_name := self.kinds.get(name)) is None:
                self.kinds[name] = {kind}
            else:
                kinds_of_name.add(kind)

    def merge(self, other: Fields) -> None:
        for name, kinds in other.kinds.items():
            self.kinds.setdefault(name, set()).update(kinds)
        self.tags |= other.tags


def _kind(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, list):
        return "?"
    kinds = {_KINDS.get(type_, "?") for type_ in set(map(type, value))}
    return f"[{_common_type(kinds)}]"


def _common_type(kinds: set[str]) -> str:
    """Return the type that includes all of `kinds`, e.g. sc:Float for integers and floats.

    "" for null only. "?" if no type includes all of them."""
    kinds = kinds - {""}
    if len(kinds) > 1:
        kinds = kinds - {"[]"}
    if len(kinds) < 2:
        return next(iter(kinds), "")
    return "sc:Float" if kinds == {"sc:Integer", "sc:Float"} else "?"


def taken_for_date(name: str) -> bool:
    """Return True if pandas parses texts in a field of this name as times, e.g. `fetched_at`.

    mlcroissant reads JSON Lines with pandas."""
    return (
        name.endswith(("_at", "_time"))
        or name in ("modified", "date")
        or name.startswith("timestamp")
    )


def _date(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return "sc:Text"
    return "sc:DateTime"


class History(NamedTuple):
    """The history of a dataset."""

    description: str
    """The description of the dataset, in words."""
    uses: tuple[str, ...]
    """The uses that were asked for."""
    exported_at: datetime
    """The aware moment of the export."""
    counts: Mapping[str, Any]
    """The numbers of records: read, written, and dropped for each cause."""
    vocabulary: Mapping[str, str]
    """Name of a vocabulary -> revision of its words."""
    defaults: Mapping[str, str]
    """Use -> its verdict if no site mentions the use. It replaces the default of the crawl."""
    tagged: Any = None
    """For records that `dataset tag` tagged: the agent and the policies by which it did so. None:
    there are no such records."""


class PolicyCount(NamedTuple):
    """The number of copies of policy files that decided."""

    all: int
    """The number of all copies."""
    listed: int
    """The number of copies that the manifest lists."""
    without_copy: int
    """The number of files that were not captured, or could not be fetched. They count in `all`."""
    is_estimate: bool
    """True if `all` is an estimate, because there are too many copies to count them exactly."""


class Composition(NamedTuple):
    """The composition of the records in a dataset."""

    fields: Fields
    """The fields of the records, with their types."""
    agents: Mapping[str, int]
    """Product token -> records that the agent fetched."""
    policies: Mapping[str, Any]
    """URL -> the copies that decided, with SHA-256 and time."""
    policy_count: PolicyCount
    """The number of copies that decided."""
    arrangements: Mapping[str, int]
    """Arrangement of the operator with a site -> records that it permits."""
    licenses: Sequence[str]
    """The licences of the records."""


class FileFacts(NamedTuple):
    """The facts about a file of the dataset. It can be pickled."""

    name: str
    """The path in the folder, with `/` between its parts. The file's name if it is the dataset."""
    encoding: str
    """The media type."""
    sha256: str
    """The SHA-256 of the file, in hexadecimal digits."""
    octets: int
    """The size of the file."""
    columns: tuple[str, ...] | None
    """The columns of a table. None for other formats."""
    records: int | None = None
    """The number of records. None if they were not counted."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def facts_of(path: Path, name: str = "", records: int | None = None) -> FileFacts:
    """Return the facts about a file. `name`: its path in the dataset's folder. "": no folder."""
    form = format_of(path)
    # Only readers of tables have a schema.
    columns = tuple(getattr(open_reader(path), "schema").names) if form == "parquet" else None  # noqa: B009
    return FileFacts(
        name or path.name, ENCODINGS[form], sha256_of(path), path.stat().st_size, columns, records
    )


def manifest(
    path: Path, history: History, composition: Composition, files: Sequence[FileFacts] | None = None
) -> dict[str, Any]:
    """Return the manifest of a new dataset.

    `files`: the files of the folder `path`. None: `path` is a file."""
    moment = history.exported_at.isoformat(timespec="seconds")
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": path.name,
        "description": history.description,
        "conformsTo": CONFORMS_TO,
        "datePublished": moment,
        "comity:version": __version__,
        "comity:uses": list(history.uses),
        "comity:exportedAt": moment,
        "comity:counts": dict(history.counts),
        "comity:vocabulary": dict(history.vocabulary),
        **({"comity:defaults": dict(history.defaults)} if history.defaults else {}),
        **({"comity:tagged": history.tagged} if history.tagged else {}),
        **_describe_composition(path, history.uses, composition, files),
    }


def after_removal(
    path: Path,
    described: Mapping[str, Any],
    composition: Composition,
    *,
    removed: Mapping[str, int],
    when: datetime,
    files: Sequence[FileFacts] | None = None,
) -> dict[str, Any]:
    """Return the manifest of a dataset after records were removed.

    `described`: the manifest before the removal. `removed`: cause -> number of removed records.
    `files`: all files of a folder. None: `path` is a file."""
    before = Counter(described.get("comity:removed", {}))
    before.update(removed)
    moment = when.isoformat(timespec="seconds")
    remaining = {key: value for key, value in described.items() if key != "license"}
    changes = {"dateModified": moment, "comity:expiredAt": moment, "comity:removed": dict(before)}
    return {
        **remaining,
        **changes,
        **_describe_composition(path, described.get("comity:uses", ()), composition, files),
    }


def _describe_composition(
    path: Path, uses: Sequence[str], composition: Composition, files: Sequence[FileFacts] | None
) -> dict[str, Any]:
    if files is None:
        files = [facts_of(path)]
        distribution, source = (
            [_file_object(FILE, path.name, files[0])],
            {"fileObject": {"@id": FILE}},
        )
    else:
        distribution, source = [*_file_set(path.name, files)], {"fileSet": {"@id": FILES}}
    columns = (
        None
        if files[0].columns is None
        else {name for file in files for name in file.columns or ()}
    )
    fields = list(_describe_fields(composition.fields, uses, columns, source))
    count = composition.policy_count
    return {
        **({"license": list(composition.licenses)} if composition.licenses else {}),
        "comity:agents": dict(composition.agents),
        "comity:policies": dict(composition.policies),
        "comity:policyCount": {
            "all": count.all,
            "listed": count.listed,
            "withoutCopy": count.without_copy,
            "isEstimate": count.is_estimate,
        },
        "comity:arrangements": dict(composition.arrangements),
        "distribution": distribution,
        "recordSet": [{"@type": "cr:RecordSet", "@id": RECORDS, "name": RECORDS, "field": fields}],
    }


def _file_object(identifier: str, url: str, file: FileFacts) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": identifier,
        "name": file.name,
        "contentUrl": url,
        "encodingFormat": file.encoding,
        "sha256": file.sha256,
        "contentSize": f"{file.octets} B",
        **({"comity:records": file.records} if file.records is not None else {}),
    }


def _file_set(folder: str, files: Sequence[FileFacts]) -> Iterator[dict[str, Any]]:
    """Yield the set of all files, then each file by itself."""
    yield {
        "@type": "cr:FileSet",
        "@id": FILES,
        "name": FILES,
        "encodingFormat": files[0].encoding,
        "includes": [escape(f"{folder}/{file.name}") for file in files],
    }
    for file in files:
        yield _file_object(f"{FILES}/{file.name}", f"{folder}/{file.name}", file)


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


def _describe_fields(
    fields: Fields, uses: Sequence[str], columns: Collection[str] | None, source: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the descriptions of the fields of records.

    `columns`: the columns of a table. None: the format has no columns. A tag is described by its
    agent, and by its verdicts unless the format has columns. Other nested values are omitted."""
    for name, kinds in fields.kinds.items():
        if columns is not None and name not in columns:
            continue
        if name in fields.tags:
            verdicts = (
                {} if columns is not None else {use: f"$.uses.'{use}'.verdict" for use in uses}
            )
            yield {
                "@type": "cr:Field",
                "@id": f"{RECORDS}/{name}",
                "name": name,
                "subField": [
                    _field(f"{name}/{key}", key, "sc:Text", source, name, path_in_tag)
                    for key, path_in_tag in {"agent": "$.agent", **verdicts}.items()
                ],
            }
            continue
        kind = _common_type(kinds)
        repeated = kind.startswith("[")
        data_type = kind.strip("[]") or "sc:Text"
        if data_type != "?":
            yield {
                **_field(name, name, data_type, source, name),
                **({"repeated": True} if repeated else {}),
            }


def _field(
    identifier: str,
    name: str,
    data_type: str,
    source: Mapping[str, Any],
    column: str,
    path: str = "",
) -> dict[str, Any]:
    extract = {**source, "extract": {"column": column}}
    return {
        "@type": "cr:Field",
        "@id": f"{RECORDS}/{quote(identifier)}",
        "name": name,
        "dataType": data_type,
        "source": {**extract, "transform": {"jsonPath": path}} if path else extract,
    }


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
    described = {"distribution": [_file_object(file.name, file.name, file) for file in files]}
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

    `is_replaced`: True if a new dataset replaces this one. False if its records are removed."""
    moved = (before_path(path), path_of(path)) if is_replaced else (path_of(path),)
    for file in moved:
        if file.exists():
            _move(file, replaced_path(path) if is_replaced else before_path(path))
            sync(path.parent)


@contextmanager
def restored_on_error(path: Path) -> Iterator[None]:
    """Give the manifest its old name if the block raises, because the dataset is unchanged then."""
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
    for manifest in (before_path(path), replaced_path(path), announced_path(path)):
        manifest.unlink(missing_ok=True)
