"""WACZ files for tests, whole and hostile."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

ARCHIVE = "archive/data.warc.gz"


def described(members: Mapping[str, bytes]) -> bytes:
    """The datapackage.json of some members."""
    resources = [
        {
            "name": name.rpartition("/")[2],
            "path": name,
            "hash": f"sha256:{hashlib.sha256(octets).hexdigest()}",
            "bytes": len(octets),
        }
        for name, octets in members.items()
    ]
    return json.dumps(
        {"profile": "data-package", "resources": resources, "wacz_version": "1.1.1"}
    ).encode()


def zipped(
    members: Mapping[str, bytes], *, deflated: bool = False, description: bytes | None = None
) -> bytes:
    """The octets of a WACZ file with these members.

    `deflated`: True: the members are compressed. `description`: the datapackage.json; None: the
    true one."""
    file = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, octets in members.items():
            archive.writestr(name, octets)
        archive.writestr("pages/pages.jsonl", b'{"format": "json-pages-1.0"}\n')
        archive.writestr(
            "datapackage.json", described(members) if description is None else description
        )
    return file.getvalue()


def write_wacz(path: Path, members: Mapping[str, bytes], *, deflated: bool = False) -> Path:
    path.write_bytes(zipped(members, deflated=deflated))
    return path
