"""`comity dataset tag` as a step of other programs. It maps Arrow batches to batches with tags.

    tag = tagger(policies, "examplebot", ["train"])

    tag(table)                                          # pyarrow; Polars by its Arrow tables
    dataset.map_batches(tag, batch_format="pyarrow")    # Ray Data
    dataset.map(tag, batched=True, batch_size=1000)     # Hugging Face datasets, format "arrow"
    schema = tag.schema(reader.schema)                  # DuckDB
    pyarrow.RecordBatchReader.from_batches(schema, map(tag, reader))

The output is the same as the command's output for the rows of a Parquet file. To keep only usable
rows, pass the output to comity.dataset.batches.UsableBatches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

from comity.extras import required

with required("comity.dataset.tagged_batches", "parquet"):
    import pyarrow as pa

from comity.dataset.arrow_step import Table, pass_through
from comity.dataset.captures.captures import PolicyCaptures
from comity.dataset.captures.sources import sources_in
from comity.dataset.files.places import path_of
from comity.dataset.records import DatasetError
from comity.dataset.tagging.columns import Columns, check_fields
from comity.dataset.tagging.columns_pass import schema_of_tagged
from comity.dataset.tagging.counts import Tagged
from comity.dataset.tagging.judging import Judge, Policies
from comity.dataset.tagging.question import KEEP_APART, Question
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.tagging import TagPass
from comity.policies import Agent


class TaggedBatches:
    """A step that tags rows. It can be pickled.

    The output for a batch does not depend on other batches."""

    def __init__(
        self,
        question: Question,
        policies: Policies,
        columns: Columns = Columns(),  # noqa: B008  # immutable
    ) -> None:
        """`question`: the agent and the options. `columns`: the names of the fields.

        DatasetError: `question.missing` is KEEP_APART, but a batch cannot keep records apart."""
        if question.missing == KEEP_APART:
            raise DatasetError(
                "a batch has no place to keep records apart:"
                f" write another `missing` than {KEEP_APART}"
            )
        self._pass = TagPass(Judge(question, policies), Making(columns))
        self._columns = columns
        self._opened: PolicyCaptures | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the captures that `tagger` has opened. Copies of this step cannot be used then."""
        if self._opened is not None:
            self._opened.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the output. DatasetError: no field of this schema can be the URL."""
        check_fields(self._columns, schema.names)
        return schema_of_tagged(schema, self._pass)

    def __call__(self, batch: Table) -> Table:
        return self.counted(batch)[0]

    def counted(self, batch: Table) -> tuple[Table, Tagged]:
        """Return the tagged rows, and counts of all rows. Unreadable rows are only counted."""
        tagged = Tagged()
        return pass_through(self._pass, batch, self.schema(batch.schema), tagged), tagged


def tagger(
    policies: Policies | Iterable[Path | str],
    agent: Agent | str,
    uses: Iterable[str],
    *,
    columns: Columns = Columns(),  # noqa: B008  # immutable
    **fields: Any,
) -> TaggedBatches:
    """Return a step that tags rows.

    `policies`: open captures, or the WARC files and folders with captures. In the second case the
    step must be closed, or used in a `with` statement. `agent`: an agent or its product token.
    `fields`: fields of Question: as_of, missing, captured_by, captured_at, also, now.

    DatasetError or PolicyError: a value is invalid, or a file cannot be read."""
    names = tuple(dict.fromkeys(use.strip().lower() for use in uses))
    asking = replace(agent if isinstance(agent, Agent) else Agent(agent), uses=names)
    question = Question.of(asking, **fields)
    if hasattr(policies, "at"):
        return TaggedBatches(question, cast(Policies, policies), columns)
    sources = [
        source
        for path in policies
        for source in sources_in(path if isinstance(path, Path) else path_of(str(path)))
    ]
    captures = PolicyCaptures.open(sources, agent=asking, now=question.now)
    tagging = TaggedBatches(question, captures, columns)
    tagging._opened = captures
    return tagging


__all__ = ("Columns", "Question", "TaggedBatches", "tagger")
