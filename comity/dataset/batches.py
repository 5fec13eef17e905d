"""The export as a step of other machinery: Arrow batches come in, and those of what may be used go out.

    usable = UsableBatches(Terms.of(["train"]))
    dataset.map_batches(usable, batch_format="pyarrow")                             Ray Data
    frame.mapInArrow(lambda batches: map(usable, batches), schema)                  Spark
    [dask.delayed(usable)(batch) for batch in batches]                              Dask
    pyarrow.RecordBatchReader.from_batches(usable.schema(schema), map(usable, reader))

Records and tags are as in Parquet files of ours (docs/datasets.md), or of other programs. What permits the use comes out as an
export has it: without what is refused on parts of it, cut to the length that is permitted, with what is to be shown with it.
Which pages were fetched again no single batch can tell: `recrawled_in` asks whole datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from comity.dataset.arrow_step import Table, passed_through
from comity.dataset.counts.summary import Summary
from comity.dataset.export.column_pass import schema_of_export
from comity.dataset.export.export import ExportPass
from comity.dataset.files.places import path_of
from comity.dataset.job import JobOptions, open_readers, recrawled
from comity.dataset.permissions.expiry import Recrawled
from comity.dataset.permissions.terms import Terms


class UsableBatches:
    """A step that keeps what may be used. It can be pickled, and has no memory of other batches."""

    def __init__(self, terms: Terms, recrawled: Recrawled | None = None) -> None:
        """`recrawled`: of `recrawled_in`. None: nobody knows, and what is permitted until its page is fetched again is refused.

        DatasetError where one of the uses is of the most recent fetch, and nobody knows which that is."""
        self.terms = terms.by_single_records(recrawled)
        self._pass = ExportPass(self.terms)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of what comes out of batches with this one."""
        return schema_of_export(schema)

    def __call__(self, batch: Table) -> Table:
        return self.counted(batch)[0]

    def counted(self, batch: Table) -> tuple[Table, Summary]:
        """Return what comes out, and how much did not, and why. Rows that cannot be read are counted as such, and left out."""
        summary = Summary()
        return passed_through(self._pass, batch, self.schema(batch.schema), summary), summary


def recrawled_in(
    datasets: Sequence[Path | str],
    terms: Terms,
    options: JobOptions = JobOptions(),  # noqa: B008
) -> Recrawled:  # immutable
    """The pages in these files and folders that were fetched more than once, where any of it depends on that."""
    paths = [path_of(dataset) if isinstance(dataset, str) else dataset for dataset in datasets]
    return recrawled(
        open_readers(paths), options, terms.tags, terms.uses, last_fetch=terms.last_fetch
    )


__all__ = ("Recrawled", "Summary", "Terms", "UsableBatches", "recrawled_in")
