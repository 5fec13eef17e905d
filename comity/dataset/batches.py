"""The export as a step of other programs. It maps Arrow batches to batches of usable records.

    usable = UsableBatches(Terms.of(["train"]))
    dataset.map_batches(usable, batch_format="pyarrow")                             Ray Data
    frame.mapInArrow(lambda batches: map(usable, batches), schema)                  Spark
    [dask.delayed(usable)(batch) for batch in batches]                              Dask
    pyarrow.RecordBatchReader.from_batches(usable.schema(schema), map(usable, reader))

Records and tags have the form of comity's Parquet files (docs/datasets.md), or of files of other
programs. A usable record is changed as in an export: its refused parts are removed, its text is cut
to the permitted length, and the required fields are added. A single batch cannot tell which pages
were fetched more than once. `recrawled_in` finds these pages in whole datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from comity.extras import required

with required("comity.dataset.batches", "parquet"):
    import pyarrow as pa

from comity.dataset.arrow_step import Table, pass_through
from comity.dataset.counts.summary import Summary
from comity.dataset.export.column_pass import schema_of_export
from comity.dataset.export.export import ExportPass
from comity.dataset.files.places import path_of
from comity.dataset.job import JobOptions, find_recrawled, open_readers
from comity.dataset.permissions.expiry import Recrawled
from comity.dataset.permissions.terms import Terms


class UsableBatches:
    """A step that keeps the usable records. It can be pickled.

    The output for a batch does not depend on other batches."""

    def __init__(self, terms: Terms, recrawled: Recrawled | None = None) -> None:
        """`recrawled`: the result of `recrawled_in`. None: it is unknown which pages were fetched
        again, so a use that is permitted until its page is fetched again is refused.

        DatasetError: `recrawled` is None, but `terms.last_fetch` is True, or one of the uses means
        the most recent fetch."""
        self.terms = terms.by_single_records(recrawled)
        self._pass = ExportPass(self.terms)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the output for batches with this schema."""
        return schema_of_export(schema)

    def __call__(self, batch: Table) -> Table:
        return self.counted(batch)[0]

    def counted(self, batch: Table) -> tuple[Table, Summary]:
        """Return the usable records, and a summary of all rows of the batch.

        Unreadable rows are counted in the summary, and are not in the output."""
        summary = Summary()
        return pass_through(self._pass, batch, self.schema(batch.schema), summary), summary


def recrawled_in(
    datasets: Sequence[Path | str],
    terms: Terms,
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
) -> Recrawled:
    """Return the pages in these files and folders that were fetched more than once.

    If neither the terms nor the tags depend on the last fetch of a page, return no pages. The
    records are not all read then.

    DatasetError: a file cannot be read."""
    paths = [path_of(dataset) if isinstance(dataset, str) else dataset for dataset in datasets]
    return find_recrawled(
        open_readers(paths), options, terms.tags, terms.uses, last_fetch=terms.last_fetch
    )


__all__ = ("Recrawled", "Summary", "Terms", "UsableBatches", "recrawled_in")
