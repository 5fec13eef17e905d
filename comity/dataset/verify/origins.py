"""The sites of records: which page a record is of, and the origins of the records of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from comity.dataset.files.formats import Reader
from comity.dataset.records import Record, Unreadable
from comity.policies.syntax.urls import origin_of, origin_or_empty

URL_FIELDS = ("final_url", "url")  # the first that a record has names its page


def page_url(record: Record, fields: Sequence[str] = URL_FIELDS) -> str:
    """The URL of its page; "" where it has none that a site could speak for."""
    url = next((url for field in fields if isinstance(url := record.get(field), str) and url), "")
    return url if origin_or_empty(url) else ""


def origins_in(
    readers: Sequence[Reader],
    fields: Sequence[str] = URL_FIELDS,
    *,
    progress: Callable[[int], object] = lambda _: None,
    bad: Callable[[str], object] = lambda _: None,
) -> Iterator[str]:
    """Yield the origin of each record that has one. DatasetError where a file cannot be read.

    `progress`: told how many octets have been read. `bad`: told of each record without an origin what is wrong."""
    for reader in readers:
        for part in reader.parts():
            for batch in reader.read(part, fields):
                for record in batch:
                    if isinstance(record, Unreadable):
                        bad(f"{reader.path}, {record.position} cannot be read: {record.error}")
                    elif url := page_url(record, fields):
                        yield origin_of(url)
                    else:
                        bad(
                            f"{reader.path}: a record has no http or https URL in {' or '.join(fields)}"
                        )
            progress(part.octets)
