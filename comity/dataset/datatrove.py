"""The export as a step of a datatrove pipeline.

    from comity.dataset.datatrove import PermittedFilter

    [JsonlReader("crawled/"), PermittedFilter(Terms.of(["train"])), JsonlWriter("train/")]

A document has the record's text in its `text`, and the other fields, with the tag, in its
`metadata`. The filter replaces both by those of the usable record: text may be cut, and fields may
be removed or added. A pipeline cannot tell which pages were fetched more than once. Therefore pass
`recrawled`, the result of comity.dataset.batches.recrawled_in."""

from __future__ import annotations

from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter

from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.expiry import Recrawled
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import Record, Unreadable

TEXT = "text"


class PermittedFilter(BaseFilter):  # type: ignore[misc]  # has no types without datatrove
    """Keeps usable documents, without their refused parts, and drops all other documents.

    The reason for a dropped document is the cause that an export would count, e.g. "no-tag"."""

    name = "📜 Permitted"

    def __init__(
        self, terms: Terms, recrawled: Recrawled | None = None, exclusion_writer: Any = None
    ) -> None:
        """`recrawled`: the pages that were fetched more than once. None: they are unknown, so a
        use that is permitted until its page is fetched again is refused. `exclusion_writer`: as in
        BaseFilter, for the dropped documents.

        DatasetError: `recrawled` is None, but `terms.last_fetch` is True, or one of the uses means
        the most recent fetch."""
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
            doc.media = []  # each of the media may belong to a refused part
        doc.metadata = {name: value for name, value in answer.record.items() if name != TEXT}
        doc.text = answer.record.get(TEXT) or ""
        return True


def _record(fields: Record) -> Record | None:
    """Return the record of a document. None if the record cannot be read.

    A document from a Parquet file has a tag in the form of columns, in which `uses` is a list. The
    tag is decoded."""
    if not any(
        isinstance(value, dict) and isinstance(value.get("uses"), list) for value in fields.values()
    ):
        return fields
    # Imported here because pyarrow is installed if a Parquet file was read.
    import pyarrow as pa

    from comity.dataset.files.columns.arrow_schema import decode

    try:
        [record] = decode(pa.RecordBatch.from_pylist([fields]))
    except (pa.ArrowException, TypeError, ValueError):
        return None
    return None if isinstance(record, Unreadable) else record
