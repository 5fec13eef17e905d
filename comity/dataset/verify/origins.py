"""The page of a record, and the origins of the records in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from comity.dataset.files.formats import Reader
from comity.dataset.records import Record, Unreadable
from comity.policies.syntax.urls import origin_of, origin_or_empty

URL_FIELDS = ("final_url", "url")  # the first field with a value is the URL of the record's page


def page_url(record: Record, fields: Sequence[str] = URL_FIELDS) -> str:
    """Return the URL of the record's page: the first of `fields` with a value.

    "" if there is no such field, or its value is not an http or https URL."""
    url = next((url for field in fields if isinstance(url := record.get(field), str) and url), "")
    return url if origin_or_empty(url) else ""


def origins_in(
    readers: Sequence[Reader],
    fields: Sequence[str] = URL_FIELDS,
    *,
    progress: Callable[[int], object] = lambda _: None,
    bad: Callable[[str], object] = lambda _: None,
) -> Iterator[str]:
    """Yield the origin of each record that has one.

    `progress`: called with the number of octets read since its last call. `bad`: called with a
    message for each record without an origin. DatasetError: a file cannot be read."""
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
                            f"{reader.path}: a record has no http or https URL in"
                            f" {' or '.join(fields)}"
                        )
            progress(part.octets)
