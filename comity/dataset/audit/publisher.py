"""The records of one origin: all that is kept of it, all that was dropped, and the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from comity.dataset.audit.evidence import plain
from comity.dataset.counts.use_counts import origin_of
from comity.dataset.diff.facts import Statement, facts_of
from comity.dataset.evidence.schema import policies_path, read, refused_path
from comity.dataset.job import JobOptions, fields_with_tag, open_readers
from comity.dataset.passes import Outcome, Sinks, run
from comity.dataset.records import Record, Unreadable, moment_of
from comity.dataset.tags.sources import TagSource
from comity.policies.syntax.urls import origin_or_empty

MAX_ROWS = 100_000  # the maximum number of listed pages, refusals and copies

Reason = tuple[str, bool, Statement]  # use, True if it is permitted, and the deciding statement


class Kept:
    """The kept records of an origin. It can be merged and pickled."""

    def __init__(self) -> None:
        self.records = 0
        self.pages: list[dict[str, Any]] = []
        self.reasons: Counter[Reason] = Counter()

    def merge(self, other: Kept) -> None:
        self.records += other.records
        self.pages = (self.pages + other.pages)[:MAX_ROWS]
        self.reasons.update(other.reasons)


class OriginPass(NamedTuple):
    """A pass that finds the records of an origin."""

    origin: str
    """The origin: scheme, host and port."""
    uses: frozenset[str]
    """The uses to list. Empty: all uses in the tags."""
    tags: TagSource
    """The places of tags in records."""

    @property
    def fields(self) -> Sequence[str] | None:
        return fields_with_tag(self.tags, "fetched_at", "sha256")

    def __call__(self, records: list[Record]) -> Outcome:
        kept = Kept()
        for record in records:
            url = record.get("final_url") or record.get("url")
            if origin_of(url, "") != self.origin:
                continue
            facts = facts_of(record, self.tags, self.uses)
            moment, sha256 = moment_of(record.get("fetched_at")), record.get("sha256")
            kept.records += 1
            kept.reasons.update(facts.uses)
            kept.pages.append(
                {
                    "url": url,
                    "fetched_at": moment.isoformat(timespec="seconds") if moment else None,
                    "sha256": sha256 if isinstance(sha256, str) else None,
                    "allowed": [use for use, is_allowed, _ in facts.uses if is_allowed],
                    "refused": [use for use, is_allowed, _ in facts.uses if not is_allowed],
                }
            )
        return Outcome([], kept)

    def columns(self, batch: Any, number: int) -> Outcome:
        # Imported here because pyarrow is installed only where there are columns.
        import pyarrow as pa

        from comity.dataset.counts.use_columns import values_of
        from comity.dataset.files.columns.arrow_schema import decode

        urls = zip(values_of(batch, "final_url"), values_of(batch, "url"), strict=True)
        is_of_origin = pa.array([origin_of(*pair) == self.origin for pair in urls], pa.bool_())
        rows = [number + row for row, is_one in enumerate(is_of_origin.to_pylist()) if is_one]
        records = decode(batch.filter(is_of_origin), rows)
        unreadable = [record for record in records if isinstance(record, Unreadable)]
        outcome = self([record for record in records if not isinstance(record, Unreadable)])
        return outcome._replace(unreadable=unreadable)


def publisher_of(
    path: Path, origin: str, uses: Sequence[str], tags: TagSource, options: JobOptions
) -> dict[str, Any]:
    """Return all records of an origin as plain data.

    DatasetError: the dataset or its evidence cannot be read."""
    kept = Kept()
    run(
        OriginPass(origin, frozenset(uses), tags),
        open_readers([path]),
        Sinks(kept.merge, progress=options.progress),
        workers=options.workers,
        executor=options.executor,
    )
    refused = (row for batch in read(refused_path(path)) for row in _rows(batch, "url", origin))
    copies = (row for batch in read(policies_path(path)) for row in _rows(batch, "url", origin))
    return {
        "origin": origin,
        "records": kept.records,
        "pages": kept.pages,
        "reasons": [
            {
                "use": use,
                "allowed": is_allowed,
                "records": count,
                **{name: getattr(statement, name) for name in ("rule", "url", "line", "text")},
                "sha256": statement.copy.sha256 if statement.copy else None,
                "fetched_at": statement.copy.fetched_at if statement.copy else None,
            }
            for (use, is_allowed, statement), count in kept.reasons.most_common(MAX_ROWS)
        ],
        "refused": [row for row, _ in zip(refused, range(MAX_ROWS), strict=False)],
        "copies": [row for row, _ in zip(copies, range(MAX_ROWS), strict=False)],
        "max_rows": MAX_ROWS,
    }


def _rows(batch: Any, name: str, origin: str) -> list[dict[str, Any]]:
    """Return the rows with URLs of the origin."""
    import pyarrow as pa

    is_one = [origin_or_empty(url or "") == origin for url in batch.column(name).to_pylist()]
    return list(map(plain, batch.filter(pa.array(is_one, pa.bool_())).to_pylist()))
