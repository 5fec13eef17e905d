"""The description of a dataset, its content and its history, in the form of Croissant.

    describe(path, history, composition)    return the description of a new dataset
    after_removal(path, described, ...)     return the description after records were removed

Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html) is JSON-LD that
tools for datasets load. If Croissant has no property for a fact, the description uses a term of
comity's own, `comity:...`. It has the SHA-256 of the dataset's file, or of each file in the
dataset's folder."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from comity import __version__
from comity.dataset.files.field_types import Fields, common_type
from comity.dataset.files.folders import KEPT, POLICIES, REFUSED, evidence_path
from comity.dataset.files.formats import format_of, open_reader

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
ENCODINGS = {
    "jsonl": "application/jsonlines",
    "parquet": "application/x-parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "tar": "application/x-tar",
    "warc": "application/warc",
}
STREAM = "application/vnd.apache.arrow.stream"
FILE = "file"  # @id of the FileObject
FILES = "files"  # @id of the FileSet, which has all files of a folder
RECORDS = "records"  # @id of the RecordSet
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
            "evidence",
            "run",
        )
    },
}


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
    """The SHA-256, in hexadecimal digits."""
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
    form, reader = format_of(path), open_reader(path)
    # Only readers of tables have a schema.
    columns = tuple(reader.schema.names) if hasattr(reader, "schema") else None
    encoding = STREAM if getattr(reader, "is_stream", False) else ENCODINGS[form]
    return FileFacts(
        name or path.name, encoding, sha256_of(path), path.stat().st_size, columns, records
    )


def describe(
    path: Path, history: History, composition: Composition, files: Sequence[FileFacts] | None = None
) -> dict[str, Any]:
    """Return the description of a new dataset.

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
        **_describe_evidence(path),
        **_describe_composition(path, history.uses, composition, files),
    }


def _describe_evidence(path: Path) -> dict[str, Any]:
    """Return the description of the evidence files beside a dataset."""
    endings = {POLICIES: "parquet", REFUSED: "parquet", KEPT: "warc"}
    files = {evidence_path(path, ending): form for ending, form in endings.items()}
    evidence = [
        {
            "name": file.name,
            "encodingFormat": ENCODINGS[form],
            "sha256": sha256_of(file),
            "contentSize": f"{file.stat().st_size} B",
        }
        for file, form in files.items()
        if file.exists()
    ]
    return {"comity:evidence": evidence} if evidence else {}


def after_removal(
    path: Path,
    described: Mapping[str, Any],
    composition: Composition,
    *,
    removed: Mapping[str, int],
    when: datetime,
    files: Sequence[FileFacts] | None = None,
) -> dict[str, Any]:
    """Return the description of a dataset after records were removed.

    `described`: the description before the removal. `removed`: cause -> number of removed records.
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
            [file_object(FILE, path.name, files[0])],
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


def file_object(identifier: str, url: str, file: FileFacts) -> dict[str, Any]:
    """Return the description of a file. `url`: its path from the folder of the manifest."""
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
        yield file_object(f"{FILES}/{file.name}", f"{folder}/{file.name}", file)


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
        kind = common_type(kinds)
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
