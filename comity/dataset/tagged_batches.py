"""`scrapy dataset tag` as a step of other machinery: Arrow batches come in, and go out with a column of tags.

    tag = tagger(policies, "examplebot", ["train"])
    tag(table)                                                                      pyarrow, Polars by its Arrow tables
    dataset.map_batches(tag, batch_format="pyarrow")                                Ray Data
    dataset.map(tag, batched=True, batch_size=1000)                                 Hugging Face datasets, format "arrow"
    pyarrow.RecordBatchReader.from_batches(tag.schema(schema), map(tag, reader))    DuckDB

What comes out is what the command writes for the rows of a Parquet file: comity.dataset.batches.UsableBatches exports it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import pyarrow as pa

from comity.dataset.arrow_step import Table, passed_through
from comity.dataset.captures.captures import PolicyCaptures
from comity.dataset.captures.sources import sources_in
from comity.dataset.files.places import path_of
from comity.dataset.records import DatasetError
from comity.dataset.tagging.columns import Columns, checked
from comity.dataset.tagging.columns_pass import schema_of_tagged
from comity.dataset.tagging.counts import Tagged
from comity.dataset.tagging.judging import KEEP_APART, Judge, Policies, Question
from comity.dataset.tagging.tagging import Making, TagPass
from comity.policies import Agent


class TaggedBatches:
    """A step that tags rows. It can be pickled, and has no memory of other batches."""

    def __init__(
        self,
        question: Question,
        policies: Policies,
        columns: Columns = Columns(),  # noqa: B008
    ) -> None:  # immutable
        """DatasetError for records that are to be kept apart: there is no place for them."""
        if question.missing == KEEP_APART:
            raise DatasetError(
                f"a batch has no place to keep records apart: write another `missing` than {KEEP_APART}"
            )
        self._pass = TagPass(Judge(question, policies), Making(columns))
        self._columns = columns
        self._opened: PolicyCaptures | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The captures that it has opened itself are closed, for all copies of it."""
        if self._opened is not None:
            self._opened.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of what comes out of batches with this one. DatasetError where no field can be the URL."""
        checked(self._columns, schema.names)
        return schema_of_tagged(schema, self._pass)

    def __call__(self, batch: Table) -> Table:
        return self.counted(batch)[0]

    def counted(self, batch: Table) -> tuple[Table, Tagged]:
        """Return what comes out, and how it was tagged. Rows that cannot be read are counted as such, and left out."""
        tagged = Tagged()
        return passed_through(self._pass, batch, self.schema(batch.schema), tagged), tagged


def tagger(
    policies: Policies | Iterable[Path | str],
    agent: Agent | str,
    uses: Iterable[str],
    *,
    columns: Columns = Columns(),  # noqa: B008  # immutable
    **fields: Any,
) -> TaggedBatches:
    """Return a step that tags rows.

    `policies`: captures that are open, or the WARC files and folders that have them: then it is to be closed, or used by `with`.
    `agent`: or its product token. `fields`: of Question: as_of, missing, captured_by, captured_at, also, now.

    DatasetError or PolicyError where it makes no sense, or a file cannot be read."""
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
