"""The audit of a dataset as plain data, from the dataset, its manifest and its evidence files.

audit = audit_of(Path("train.parquet"), datetime.now(UTC))
audit["set"]["records"], audit["refused"]["reasons"][0]["examples"]"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from comity.dataset import manifest
from comity.dataset.audit.evidence import Copies, Refusals, copies_of, refusals_of
from comity.dataset.audit.publisher import publisher_of
from comity.dataset.audit.template import filled
from comity.dataset.changed_outside import MESSAGE, changed_outside
from comity.dataset.counts.use_counts import MONTH, ORIGIN, RULE, USE, Tally, UseCounts
from comity.dataset.croissant import sha256_of
from comity.dataset.evidence.run import RUN
from comity.dataset.evidence.schema import policies_path, refused_path
from comity.dataset.job import JobOptions
from comity.dataset.permissions.expiry import EXPIRED
from comity.dataset.records import DatasetError
from comity.dataset.stats import stats
from comity.dataset.tags.sources import GUESSED, TagSource
from comity.policies.answers.rule import RULES
from comity.policies.formats import FORMATS

VERSION = 1  # of the data
ORIGINS = 50  # the largest origins that are listed
NO_POLICIES = "comity.no-policies"
MAX_CRAWLERS = 10
NO_STATEMENT = "no statement of the site"
_OTHERS = {"registry": "registries of opt-outs", "comity": NO_STATEMENT}


def audit_of(
    path: Path,
    now: datetime,
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
    tags: TagSource = GUESSED,
    *,
    origin: str = "",
    contact: str = "",
) -> dict[str, Any]:
    """Return the audit of a dataset.

    `now`: the aware moment at which permissions may have ended. `origin`: also list the records of
    this origin. `contact`: the address for questions.

    DatasetError: the dataset, its manifest or its evidence is missing, cut off or changed."""
    described = _checked_manifest(path, options)
    refusals, copies = refusals_of(path), copies_of(path)
    uses = [str(use) for use in described.get("comity:uses", ())]
    counts = stats([path], now, options, tags, also=(RULE, ORIGIN, MONTH), uses=uses)
    audit: dict[str, Any] = {
        "audit": VERSION,
        "made_at": now.isoformat(timespec="seconds"),
        "contact": contact,
        "set": _set(path, described, counts, uses),
        "uses": [
            {"use": use, "allowed": tally.allowed, "refused": tally.refused}
            for use, tally in _of_uses(counts)
        ],
        "signals": _signals(counts),
        "months": [
            {"month": name, "records": group.records, "allowed": _allowed(group.uses)}
            for name, group in counts.tables[MONTH].items()
        ],
        "origins": _origins(counts, refusals),
        "refused": _refused(refusals),
        "policies": {
            "copies": copies.copies,
            "files": copies.files,
            "without_copy": copies.without_copy,
            "sources": dict(copies.sources.most_common()),
        },
        "unknown": _unknown(described, counts, copies),
        "readings": _readings(described),
        "repeat": _repeat(path, described),
    }
    audit["formats"] = _formats(audit["signals"])
    audit["template"] = filled(audit)
    audit["publisher"] = None
    if origin:
        audit["publisher"] = publisher_of(path, origin, uses, tags, options) | {
            "commands": removal(path, origin)
        }
    return audit


def _checked_manifest(path: Path, options: JobOptions) -> dict[str, Any]:
    """Return the manifest of an unchanged dataset. DatasetError: there is none."""
    if not path.exists():
        raise DatasetError(f"{path} does not exist: write the name of a dataset")
    described = manifest.current(path)
    if described is None:
        raise DatasetError(
            f"{manifest.path_of(path)}, the manifest, does not exist: write the dataset with"
            " comity dataset tag or comity dataset export"
        )
    if changed_outside([path], options._replace(complain=lambda _: None)):
        raise DatasetError(f"{path} {MESSAGE}. Write the dataset again")
    digests = described.get("comity:evidence")
    for file in (policies_path(path), refused_path(path)):
        if not file.exists():
            raise DatasetError(
                f"{file} does not exist: write the dataset again without --no-evidence"
            )
        expected = next(
            (
                one.get("sha256")
                for one in (digests if isinstance(digests, list) else ())
                if isinstance(one, dict) and one.get("name") == file.name
            ),
            None,
        )
        if expected != sha256_of(file):
            raise DatasetError(
                f"{file} is not the file that {manifest.path_of(path)} describes: write the"
                " dataset again, or put the original file there"
            )
    return described


def _set(
    path: Path, described: Mapping[str, Any], counts: UseCounts, uses: list[str]
) -> dict[str, Any]:
    files = manifest.described_files(described)
    return {
        "name": path.name,
        "description": described.get("description", ""),
        "version": described.get("comity:version", ""),
        "written_at": described.get("comity:exportedAt", ""),
        "changed_at": described.get("comity:expiredAt", ""),
        "uses": uses,
        "agents": described.get("comity:agents", {}),
        "records": counts.records,
        "origins": counts.origins.number,
        "is_exact": counts.origins.is_exact,
        "octets": sum(digest.octets or 0 for digest in files.values()),
        "files": [{"name": name, "sha256": digest.sha256} for name, digest in files.items()],
        "licenses": described.get("license", []),
        "arrangements": described.get("comity:arrangements", {}),
    }


def _of_uses(counts: UseCounts) -> list[tuple[str, Tally]]:
    tallies = [(use, group.uses[use]) for use, group in counts.tables[USE].items()]
    return sorted(tallies, key=lambda entry: (-entry[1].allowed, entry[0]))


def _allowed(uses: Mapping[str, Tally]) -> dict[str, int]:
    return {use: tally.allowed for use, tally in sorted(uses.items())}


def meaning(rule: str) -> str:
    """Return a rule in words. "": it is another cause, which is in words already."""
    if rule == EXPIRED:
        return "the permission has ended"
    return RULES[rule].summary if rule in RULES else ""


def _format_of(rule: str) -> tuple[str, str]:
    """Return the name and the title of the format in which statements with a rule are written."""
    prefix = rule.partition(".")[0]
    for one in FORMATS:
        if rule in one.rules:
            return one.name, one.title or one.name
    return prefix, _OTHERS.get(prefix, meaning(rule) or rule)


def _signals(counts: UseCounts) -> list[dict[str, Any]]:
    """Return the verdicts by the rule that decides, those of most records first."""
    signals = [
        {
            "format": _format_of(rule)[0],
            "rule": rule,
            "meaning": meaning(rule),
            "use": use,
            "allowed": tally.allowed,
            "refused": tally.refused,
        }
        for rule, group in counts.tables[RULE].items()
        for use, tally in group.uses.items()
    ]
    return sorted(
        signals, key=lambda one: (-one["allowed"] - one["refused"], one["rule"], one["use"])
    )


def _formats(signals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    formats: dict[str, dict[str, Any]] = {}
    for signal in signals:
        name, title = _format_of(signal["rule"])
        empty = {"format": name, "title": title, "allowed": 0, "refused": 0}
        one = formats.setdefault(name, empty | {"is_signal": name not in ("comity", EXPIRED)})
        for verdict in ("allowed", "refused"):
            one[verdict] += signal[verdict]
    return sorted(
        formats.values(), key=lambda one: (-one["allowed"] - one["refused"], one["format"])
    )


def _origins(counts: UseCounts, refusals: Refusals) -> list[dict[str, Any]]:
    largest = counts.tables[ORIGIN].largest(ORIGINS, lambda group: group.records)
    names = {name for name, _ in largest}
    dropped = {name: count.records for name, count in refusals.origins.items() if name in names}
    return [
        {
            "origin": name,
            "records": group.records,
            "dropped": dropped.get(name, 0),
            "allowed": _allowed(group.uses),
        }
        for name, group in largest
    ]


def _refused(refusals: Refusals) -> dict[str, Any]:
    return {
        "rows": refusals.rows,
        "dropped": refusals.dropped,
        "origins": [
            {"origin": name, "records": count.records}
            for name, count in refusals.origins.largest(10, lambda count: count.records)
        ],
        "reasons": [
            {
                "use": reason.use,
                "rule": reason.rule,
                "meaning": meaning(reason.rule),
                "rows": refused.rows,
                "dropped": refused.dropped,
                "examples": refused.examples,
            }
            for reason, refused in refusals.sorted_reasons()
        ],
    }


def _unknown(described: Mapping[str, Any], counts: UseCounts, copies: Copies) -> dict[str, Any]:
    no_policies = counts.tables[RULE].get(NO_POLICIES)
    return {
        "unread": counts.unread,
        "no_policies": no_policies.most if no_policies else 0,
        "without_copy": copies.without_copy,
        "examples_without_copy": copies.examples_without_copy,
        "undated": described.get("comity:counts", {}).get("undated", 0),
        "unreadable": counts.unreadable,
        "no_tag": counts.causes.total(),
    }


def _readings(described: Mapping[str, Any]) -> dict[str, Any]:
    tagged = described.get("comity:tagged") or []
    # The manifest of an export has one for each tagged dataset that it read.
    several = tagged if isinstance(tagged, list) else [tagged]
    taggings = [tagging for tagging in several if isinstance(tagging, dict)]

    def values(name: str) -> list[Any]:
        """Return the different values of a member that is a text or has several values."""
        found: list[Any] = []
        for tagging in taggings:
            value = tagging.get(name) or []
            found += (
                one for one in ([value] if isinstance(value, str) else value) if one not in found
            )
        return found

    agents = values("agent") or [*(described.get("comity:agents") or {})][:1]
    return {
        "agent": ", ".join(agents),
        "captured_by": values("capturedBy")[:MAX_CRAWLERS],
        "as_of": values("asOf"),
        "also": values("also"),
        "missing": values("missing"),
        "policies": values("policies"),
        "registries": values("registries"),
        "defaults": described.get("comity:defaults", {}),
        "vocabulary": described.get("comity:vocabulary", {}),
    }


def _repeat(path: Path, described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the commands that make the dataset again. None: the manifest has no command."""
    run = described.get(RUN)
    command = run.get("command") if isinstance(run, dict) else None
    if not isinstance(command, list):
        return None
    check = shlex.join(["comity", "dataset", "repeat", manifest.path_of(path).name])
    return {"command": shlex.join(map(str, command)), "check": check}


def removal(path: Path, origin: str) -> list[str]:
    """Return the commands that remove the records of an origin from the dataset."""
    return [
        f"echo {shlex.quote(origin)} > opt-out.txt",
        shlex.join(["comity", "dataset", "expire", path.name, "--opt-out", "opt-out.txt"]),
    ]
