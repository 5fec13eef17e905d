"""The export as a step of a datatrove pipeline.

    from comity.dataset.datatrove import PermittedFilter

    [JsonlReader("crawled/"), PermittedFilter(Terms.of(["train"])), JsonlWriter("train/")]

A document has the fields of the record in its metadata, the tag among them, and its text. What is left of the record when it may
be used takes their places: text may be cut, and fields may be gone or added. Which pages were fetched again is not known in a
pipeline: `recrawled` is that of comity.dataset.batches.recrawled_in."""

from __future__ import annotations

from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter

from comity.dataset.permissions.expiry import Recrawled
from comity.dataset.permissions.terms import Terms, apply_terms
from comity.dataset.records import Record, Unreadable

TEXT = "text"


class PermittedFilter(BaseFilter):  # type: ignore[misc]  # whose types are not there without datatrove
    """Keeps documents that may be used, as they may be used. The others are dropped by the reasons of an export."""

    name = "📜 Permitted"

    def __init__(
        self, terms: Terms, recrawled: Recrawled | None = None, exclusion_writer: Any = None
    ) -> None:
        """DatasetError where one of the uses is of the most recent fetch, and nobody knows which that is."""
        super().__init__(exclusion_writer)
        self.terms = terms.by_single_records(recrawled)

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        record = _record({**doc.metadata, TEXT: doc.text})
        if record is None:
            return False, "unreadable"
        answer = apply_terms(record, self.terms)
        if answer.record is None or answer.tag is None:
            return False, answer.cause
        if answer.record is not record or answer.tag.raw.get("embedded"):
            doc.media = []  # nobody knows which of them are in what was cut out, or refused
        doc.metadata = {name: value for name, value in answer.record.items() if name != TEXT}
        doc.text = answer.record.get(TEXT) or ""
        return True


def _record(fields: Record) -> Record | None:
    """The record of a document. Of a Parquet file its tag is as its columns have it; None where nobody can read that."""
    if not any(
        isinstance(value, dict) and isinstance(value.get("uses"), list) for value in fields.values()
    ):
        return fields
    # pyarrow is there where a Parquet file was read
    import pyarrow as pa

    from comity.dataset.files.arrow_schema import decode

    try:
        [record] = decode(pa.RecordBatch.from_pylist([fields]))
    except (pa.ArrowException, TypeError, ValueError):
        return None
    return None if isinstance(record, Unreadable) else record
