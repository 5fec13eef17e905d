"""The manifest beside a dataset: what it is and how it came about, as a Croissant description.

Croissant 1.0, https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html: JSON-LD that tools for datasets load. What
it has no property for stands in terms of our own, `comity:...`.

manifest(path, told, composition)   what to write
write(path, manifest)               NAME.croissant.json beside NAME
announce(path, files)               before the files of a folder take their places
read(path)                          what was written; None where nothing was
retract(path)                       before the dataset changes, or becomes another one

A manifest has the SHA-256 of its file; of a folder, that of each file in it. It is taken away before the dataset changes and
comes back after: no crash leaves it beside a dataset that it does not describe."""

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
from comity.dataset.files.places import copied, is_local
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
FILES = "files"  # @id of the FileSet, which has all of a folder
RECORDS = "records"  # @id of the RecordSet
CHANGED_OUTSIDE = (
    "comity:changedOutside"  # true where something else had changed a dataset before it expired
)

# Appendix 1 of the specification, then ours. Values of ours are JSON as it is, whatever keys it has.
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
    """The fields that the records have, and their data types. Mergeable; it can be pickled."""

    def __init__(self) -> None:
        self.kinds: dict[
            str, set[str]
        ] = {}  # "" null, "?" what Croissant has no type for, "[sc:Text]" a list of it
        self.tags: dict[str, None] = {}  # those that hold tags, as objects

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
    """The type that all of them have."""
    kinds = kinds - {""}
    if len(kinds) > 1:
        kinds = kinds - {"[]"}
    if len(kinds) < 2:
        return next(iter(kinds), "")
    return "sc:Float" if kinds == {"sc:Integer", "sc:Float"} else "?"


def taken_for_date(name: str) -> bool:
    """pandas, by which mlcroissant reads JSON Lines, takes what stands under such names for times where it looks like one."""
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
    """The history of the dataset."""

    description: str
    uses: tuple[str, ...]
    exported_at: datetime
    counts: Mapping[str, Any]  # records that were read, that came out, and why others did not
    vocabulary: Mapping[str, str]  # name -> revision of its words
    defaults: Mapping[
        str, str
    ]  # use -> verdict where nobody speaks of it, in the place of that of the crawl
    tagged: Any = None  # of records of others: for whom and by which policies they were tagged


class PolicyCount(NamedTuple):
    """The number of copies of policy files that decided."""

    all: int
    listed: int  # in the manifest
    without_copy: int  # of all: files that nobody captured, or that could not be fetched
    is_estimate: bool


class Composition(NamedTuple):
    """The composition of the records that are in it."""

    fields: Fields
    agents: Mapping[str, int]  # product token -> records that it fetched
    policies: Mapping[str, Any]  # URL -> the copies that decided, with SHA-256 and time
    policy_count: PolicyCount
    arrangements: Mapping[str, int]  # of the operator with the sites -> records that they permitted
    licenses: Sequence[str]


class FileFacts(NamedTuple):
    """The facts of a file of the dataset. Picklable."""

    name: str  # in the folder, with `/` between its parts; of a dataset that is one file, its own
    encoding: str
    sha256: str
    octets: int
    columns: tuple[str, ...] | None  # of a table
    records: int | None = None  # where somebody counted them


def sha256_of(path: Path) -> str:
    """Return the digest of a file as manifests have it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def facts_of(path: Path, name: str = "", records: int | None = None) -> FileFacts:
    """Return what a manifest says of a file. `name`: in its folder."""
    form = format_of(path)
    columns = tuple(getattr(open_reader(path), "schema").names) if form == "parquet" else None  # noqa: B009  # others have none
    return FileFacts(
        name or path.name, ENCODINGS[form], sha256_of(path), path.stat().st_size, columns, records
    )


def manifest(
    path: Path, history: History, composition: Composition, files: Sequence[FileFacts] | None = None
) -> dict[str, Any]:
    """The manifest of a dataset that is written. `files`: of a folder."""
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
        **_composed(path, history.uses, composition, files),
    }


def changed(
    path: Path,
    described: Mapping[str, Any],
    composition: Composition,
    *,
    removed: Mapping[str, int],
    when: datetime,
    files: Sequence[FileFacts] | None = None,
) -> dict[str, Any]:
    """The manifest after records went. `removed`: how many, by why. `files`: of a folder."""
    before = Counter(described.get("comity:removed", {}))
    before.update(removed)
    moment = when.isoformat(timespec="seconds")
    remaining = {key: value for key, value in described.items() if key != "license"}
    changes = {"dateModified": moment, "comity:expiredAt": moment, "comity:removed": dict(before)}
    return {
        **remaining,
        **changes,
        **_composed(path, described.get("comity:uses", ()), composition, files),
    }


def _composed(
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
    fields = list(_described(composition.fields, uses, columns, source))
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
    """The set of all, then each by itself."""
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
    """The files in a folder that is so described, by their names there, with their SHA-256."""
    distribution = (described or {}).get("distribution", ())
    return {
        file["name"]: file.get("sha256", "")
        for file in distribution
        if file.get("@type") == "cr:FileObject" and "name" in file
    }


class Digest(NamedTuple):
    """The digest of a file that a manifest describes."""

    sha256: str
    octets: int | None  # None: it does not say


def described_files(described: Mapping[str, Any]) -> dict[str, Digest]:
    """The files that a manifest describes so that they can be told from others, by their names."""
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


def _described(
    fields: Fields, uses: Sequence[str], columns: Collection[str] | None, source: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The fields of the record set. `columns`: of a table.

    Of the tag the agent and, where uses have their names as keys, the verdicts; other nested values are in the file only."""
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
    """The manifest of a dataset."""
    return path.with_name(f"{path.name}.croissant.json")


def before(path: Path) -> Path:
    """The last manifest, while the dataset changes."""
    return path.with_name(f".{path.name}.croissant.json.before")


def replaced(path: Path) -> Path:
    """The last manifest, while the dataset becomes another one, of which it says nothing."""
    return path.with_name(f".{path.name}.croissant.json.replaced")


def announced(path: Path) -> Path:
    """Return the place of the names of files that are about to become a folder, which has no manifest yet."""
    return path.with_name(f".{path.name}.croissant.json.next")


def announce(path: Path, files: Sequence[FileFacts]) -> None:
    """Say which files a folder gets. A run that is killed before it writes the manifest has written them."""
    described = {"distribution": [_file_object(file.name, file.name, file) for file in files]}
    with Replacement(announced(path), is_named=False) as file:
        file.write(json.dumps(described).encode() + b"\n")


def written_names(path: Path) -> frozenset[str]:
    """Return the names of the files in a folder that runs of comity have written, as far as they said so."""
    return frozenset((*digests(last(path)), *digests(_read(announced(path)))))


def last(path: Path) -> dict[str, Any] | None:
    """Read the last manifest that was there, whatever stands there now. DatasetError where it is none."""
    return next(
        (value for name in (path_of, before, replaced) if (value := _read(name(path))) is not None),
        None,
    )


def read(path: Path) -> dict[str, Any] | None:
    """Read the manifest of the dataset; the last one, where a crash has left none. If the dataset was to become another one, that
    counts where it still is what that describes. DatasetError where it is none."""
    for name in (path_of, before):
        if (described := _read(name(path))) is not None:
            return described
    described = _read(replaced(path))
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
    """Read the manifest of the dataset as it stands; None where there is none, and while it changes. DatasetError as above."""
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
    """The dataset is about to change. `is_replaced`: to become another one."""
    moved = (before(path), path_of(path)) if is_replaced else (path_of(path),)
    for file in moved:
        if file.exists():
            _move(file, replaced(path) if is_replaced else before(path))
            sync(path.parent)


@contextmanager
def restored_on_error(path: Path) -> Iterator[None]:
    """Put the manifest back where the dataset could not be changed."""
    was_there = path_of(path).exists()
    try:
        yield
    except BaseException:
        file = next((file for file in (before(path), replaced(path)) if file.exists()), None)
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
        copied(source, target)
        source.unlink()


def write(path: Path, described: Mapping[str, Any]) -> None:
    """The dataset stands as it is described."""
    with Replacement(path_of(path), is_named=False) as file:
        file.write(
            json.dumps(described, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
            + b"\n"
        )
    for manifest in (before(path), replaced(path), announced(path)):
        manifest.unlink(missing_ok=True)
