"""The evidence files beside a dataset OUT: their names, columns and reader.

    for batch in read(policies_path(out)): ...          one row for each copy of a policy file
    for batch in read(refused_path(out), ["rule"]): ... one row for each refused use of a record

The rows of OUT.policies.parquet are sorted by `url`, `fetched_at`, `sha256` and `status`. The rows
of OUT.refused.parquet have the order of the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from comity.dataset.files.folders import KEPT, POLICIES, REFUSED, evidence_path
from comity.dataset.files.places import is_local
from comity.dataset.records import DatasetError

MOMENT = pa.timestamp("us", "UTC")
VERDICTS = pa.list_(
    pa.struct(
        [
            ("use", pa.string()),  # a use that was asked for
            ("verdict", pa.string()),  # allow or deny
            ("records", pa.int64()),  # verdicts of OUT by statements of the copy
        ]
    )
)
POLICY_COLUMNS = pa.schema(
    [
        ("url", pa.string()),  # the URL of the policy file, as it was requested
        ("status", pa.int64()),  # HTTP status; 0: there is no copy, or no answer
        ("sha256", pa.string()),  # of the body, hexadecimal; null: there is no body
        ("fetched_at", MOMENT),  # null: there is no copy
        ("source", pa.string()),  # the capture file or store that the copy is from; null: unknown
        ("records", pa.int64()),  # records of OUT with this copy in their tag
        ("refused", pa.int64()),  # rows of OUT.refused.parquet that this copy decided
        ("verdicts", VERDICTS),
    ]
)
REFUSED_COLUMNS = pa.schema(
    [
        ("file", pa.string()),  # the input file
        # The number of the record in the file, from 1, or its WARC-Record-ID. For a record that
        # cannot be read, its place in words.
        ("record", pa.string()),
        ("url", pa.string()),  # the URL of the page; "": the record has none
        ("captured_at", MOMENT),  # null: the record has no readable date
        ("use", pa.string()),  # a use that was asked for; "": `rule` is another cause
        # The rule that refuses the use, as in docs/rules.md. If `use` is "", the cause why the
        # record is not in OUT: "status 404", "no-policies", "unreadable" and others.
        ("rule", pa.string()),
        # The product token for which the rule decides: yours, or that of another crawler that
        # counts too (the crawler of the capture, or --also). "": `use` is "".
        ("agent", pa.string()),
        ("line", pa.string()),  # the place of the statement and its text; "": there is none
        ("policy_url", pa.string()),  # the URL of the statement; "": there is none
        ("policy_sha256", pa.string()),  # the copy with the statement; null: it is no policy file
        ("policy_fetched_at", MOMENT),
        ("dropped", pa.bool_()),  # true: the record is not in OUT
    ]
)
ROWS = 10_000  # the maximum number of rows in a batch

_COLUMNS = {POLICIES: POLICY_COLUMNS, REFUSED: REFUSED_COLUMNS}


def policies_path(output: Path) -> Path:
    """Return the path of the copies that decided about a dataset."""
    return evidence_path(output, POLICIES)


def refused_path(output: Path) -> Path:
    """Return the path of the refused uses of a dataset."""
    return evidence_path(output, REFUSED)


def kept_path(output: Path) -> Path:
    """Return the path of the WARC file with the copies that decided."""
    return evidence_path(output, KEPT)


def read(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an evidence file in batches of at most ROWS rows.

    `columns`: the names of the columns to read. None: all.

    DatasetError: the file does not exist, is no evidence file, or is damaged."""
    if not path.exists():
        raise DatasetError(f"{path} does not exist: write the dataset again without --no-evidence")
    schema = next(schema for ending, schema in _COLUMNS.items() if path.name.endswith(ending))
    try:
        source = path if is_local(path) else path.open("rb")
        with pq.ParquetFile(source, pre_buffer=False) as file:
            if not file.schema_arrow.equals(schema):
                raise DatasetError(f"{path} is no evidence file of comity: write the dataset again")
            yield from file.iter_batches(ROWS, columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        message = str(error).partition("\n")[0]
        raise DatasetError(
            f"{path} is no Parquet file, or was cut off while it was written: {message}"
        ) from None
