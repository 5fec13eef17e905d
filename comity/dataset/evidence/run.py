"""The facts about a run in the manifest of its output, by which it can be repeated.

Run(action, command, options, settings).facts(...)      the member `comity:run` of a manifest
read_manifest(path)                                     a manifest with these facts
changed_files(facts)                                    files that differ from the facts
differences(described, old, new)                        outputs that differ"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from comity.dataset.croissant import sha256_of
from comity.dataset.files.places import is_local, path_of
from comity.dataset.manifest import described_files
from comity.dataset.records import DatasetError
from comity.policies.formats import INSTALLED

RUN = "comity:run"  # the member of a manifest
SQLITE = b"SQLite format 3\0"
# The values of settings with such names are not written down.
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH", re.IGNORECASE)
# The user and password of a URL.
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]*@")


def without_secrets(value: Any) -> Any:
    """Return a value of JSON without the users and passwords of its URLs."""
    if isinstance(value, str):
        return _USERINFO.sub("", value)
    if isinstance(value, Mapping):
        return {str(name): without_secrets(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(member) for member in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def command_line(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command without secrets."""
    return [
        re.sub(r"=.*", "=...", argument, flags=re.DOTALL)
        if SECRET.search(argument.partition("=")[0]) and "=" in argument
        else without_secrets(argument)
        for argument in arguments
    ]


class FileFact(NamedTuple):
    """A file that a run has read."""

    name: str
    """The path, as the run named it."""
    sha256: str
    """The SHA-256. For a policy store, "": its octets change while it is read."""
    version: str = ""
    """The version of a policy store, or the date of a policy file on the disk."""


def file_fact(path: Path, version: str = "") -> FileFact:
    """Return the facts about a file. OSError: it cannot be read."""
    with path.open("rb") as file:
        is_store = file.read(len(SQLITE)) == SQLITE
    return FileFact(without_secrets(str(path)), "" if is_store else sha256_of(path), version)


class Run(NamedTuple):
    """A run of a command."""

    action: str
    """tag or export."""
    command: Sequence[str]
    """The arguments of the command, with its name."""
    options: Mapping[str, Any]
    """The options of the action."""
    settings: Mapping[str, Any]
    """The settings that decide."""
    moment: datetime
    """The moment of the tags, or of the use."""
    inputs: Sequence[FileFact]
    """The files with records."""
    captures: Sequence[FileFact] = ()
    """The files with captures of policies."""
    registries: Sequence[FileFact] = ()
    """The registries of opt-outs."""

    def facts(self) -> dict[str, Any]:
        """Return the facts for the manifest."""
        return {
            "action": self.action,
            "command": command_line(self.command),
            "options": without_secrets(self.options),
            "settings": without_secrets(self.settings),
            "moment": self.moment.isoformat(),
            "inputs": [fact._asdict() for fact in self.inputs],
            "captures": [fact._asdict() for fact in self.captures],
            "registries": [fact._asdict() for fact in self.registries],
            "formats": sorted(format_.name for format_ in INSTALLED),
        }


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest with the facts about a run. DatasetError: it has none."""
    try:
        described = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DatasetError(f"{path} does not exist: name the manifest OUT.croissant.json") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} is no manifest, or was cut off: {error}") from None
    run = described.get(RUN) if isinstance(described, dict) else None
    members = {"action": str, "options": dict, "settings": dict, "moment": str, "inputs": list}
    if not isinstance(run, dict):
        raise DatasetError(
            f"{path} does not say how the dataset was made: tag or export it again with this"
            " version of comity"
        )
    for name, kind in {**members, "captures": list, "registries": list}.items():
        if not isinstance(run.get(name), kind):
            raise DatasetError(f"{path}: `{RUN}` has no valid `{name}`: it was changed by hand")
    try:
        datetime.fromisoformat(run["moment"])
        for fact in (*run["inputs"], *run["captures"], *run["registries"]):
            FileFact(**fact)
    except (ValueError, TypeError):
        raise DatasetError(f"{path}: `{RUN}` is not valid: it was changed by hand") from None
    manifest: dict[str, Any] = described
    return manifest


def changed_files(facts: Iterable[Mapping[str, str]], kind: str) -> Iterator[str]:
    """Yield a line for each file that is missing or differs. `kind`: input or capture."""
    for fact in facts:
        path = path_of(fact["name"])
        try:
            if fact["sha256"] and (found := sha256_of(path)) != fact["sha256"]:
                yield (
                    f"{kind} {path} has changed: its SHA-256 was {fact['sha256']}, and is {found}"
                )
            elif not path.exists():
                yield f"{kind} {path} is missing"
            elif fact["sha256"] and fact["version"] and fact["version"] != _version(path):
                yield f"{kind} {path} has another date, which counts as its fetch time"
        except FileNotFoundError:
            yield f"{kind} {path} is missing"
        except OSError as error:
            yield f"{kind} {path} cannot be read: {error.strerror or error}"


def _version(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def differences(described: Mapping[str, Any], old: Path, new: Path) -> Iterator[str]:
    """Yield a line for each output of a repeated run that differs from its manifest.

    `described`: the manifest of `old`. `new`: the repeated output."""
    is_folder = new.is_dir()
    files = {
        new / name if is_folder else new: digest.sha256
        for name, digest in described_files(described).items()
    }
    if is_folder:
        extra = {path for path in new.rglob("*") if path.is_file()} - files.keys()
        yield from (f"{path.relative_to(new)} is new" for path in sorted(extra))
    for file in described.get("comity:evidence", ()):
        ending = str(file["name"]).removeprefix(old.name)
        files[new.with_name(f"{new.name}{ending}")] = file["sha256"]
    for path, sha256 in files.items():
        name = path.relative_to(new.parent) if is_local(path) else path
        try:
            if (found := sha256_of(path)) != sha256:
                yield f"{name} differs: its SHA-256 was {sha256}, and is {found}"
        except FileNotFoundError:
            yield f"{name} is missing"
