"""The summary of a pass over records, for the manifest of the output and for the caller."""

from __future__ import annotations

from collections import Counter

from comity.dataset.counts.record_counts import RecordCounts
from comity.dataset.croissant import Composition, PolicyCount
from comity.dataset.files.field_types import Fields
from comity.dataset.permissions.terms import ARRANGEMENT
from comity.dataset.records import LICENSE, Record
from comity.dataset.tags.sources import RawTag


class Summary:
    """The records that a pass kept, and the causes of those that it dropped.

    Summaries can be merged and pickled."""

    def __init__(self) -> None:
        self.counts = RecordCounts()
        self.fields = Fields()
        self.arrangements: Counter[str] = Counter()  # arrangement -> records that it decided
        self.licenses: dict[str, None] = {}

    def keep(self, record: Record, tag: RawTag) -> None:
        """Note a record that is kept."""
        self.counts.keep(tag.raw)
        self.fields.note(record, tag)
        licenses = record.get(LICENSE)
        if isinstance(licenses, list):  # else the record has another field with this name
            self.licenses |= dict.fromkeys(url for url in licenses if isinstance(url, str))
        texts = {reason["text"] for reason in tag.raw["reasons"] if reason["rule"] == ARRANGEMENT}
        self.arrangements.update(texts)

    def merge(self, other: Summary) -> None:
        self.counts.merge(other.counts)
        self.fields.merge(other.fields)
        self.arrangements.update(other.arrangements)
        self.licenses |= other.licenses

    @property
    def composition(self) -> Composition:
        """The composition of the kept records, for the manifest."""
        counts = self.counts
        return Composition(
            fields=self.fields,
            agents=counts.agents,
            policies={
                url: list(copies.values()) for url, copies in sorted(counts.policies.items())
            },
            policy_count=PolicyCount(
                all=counts.copies.number,
                listed=counts.listed_copies,
                without_copy=counts.missing_copies.number,
                is_estimate=not counts.copies.is_exact,
            ),
            arrangements=self.arrangements,
            licenses=tuple(self.licenses),
        )
