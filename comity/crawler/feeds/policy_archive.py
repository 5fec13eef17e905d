"""WARC files of policy files, made by `comity crawl policies`.

An archive has a WARC response for each policy file of each origin that was answered. Its text is
the text that comity read.

An archive gets its name when it is complete. Until then it grows beside that name, as `.NAME.part`.
`.NAME.journal` lists its complete origins, and the number of its valid octets. A killed process
loses the origins of its last half second. The next process continues behind the valid octets."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.client import responses as REASONS  # noqa: N812  # it is a constant
from pathlib import Path
from time import monotonic
from typing import IO
from uuid import NAMESPACE_URL, uuid5

from comity.crawler.feeds.warc_records import RecordWriter, head_of
from comity.database import DatabaseKind, open_database, transaction
from comity.dataset.files.replacement import open_beside, sync
from comity.dataset.files.warc.items import POLICY, UNREAD
from comity.policies import PolicyError, Site
from comity.policies.answers.fetched import Fetched

APPLICATION_ID = 0x636F6D77  # "comw"
SAVE_AFTER = 0.5  # seconds of work that a killed process loses at most
NONE = "none"  # stands for the hash of an answer with an empty body
FINAL_URL = "Comity-Final-URI"  # field of a record: the last URL, if redirects were followed

SCHEMA = """
CREATE TABLE origin (origin TEXT PRIMARY KEY, unreachable TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE archive (end INTEGER NOT NULL);
INSERT INTO archive VALUES (0);
"""
JOURNAL = DatabaseKind(
    subject="warc: the journal",
    name="journal of an archive",
    remedy="name another file",
    application_id=APPLICATION_ID,
    schema=SCHEMA,
    alone="wait until that has ended, or name another file",
)


def write_answer(
    records: RecordWriter, url: str, file: Fetched, fields: Mapping[str, str] | None = None
) -> None:
    """Write the record of a policy file. `fields`: further fields of the record."""
    fields = {
        "WARC-Target-URI": url,
        POLICY: hashlib.sha256(file.body).hexdigest() if file.body else NONE,
        **(fields or {}),
    }
    if file.url not in ("", url):
        fields[FINAL_URL] = file.url
    if file.oversized:
        fields["WARC-Truncated"] = "length"
    headers = (*file.headers, (b"Content-Length", str(len(file.body)).encode()))
    head = head_of(f"HTTP/1.1 {file.status} {REASONS.get(file.status, '')}", headers)
    records.write("response", file.fetched_at or datetime.now(UTC), file.body, fields, head=head)


class KeptPolicies:
    """Writes the copies of policy files that decided about a dataset, each once.

    The octets depend on the copies alone. A capture that cannot be read is written as a record with
    the cause, so that no earlier copy counts in its place."""

    def __init__(self, copy: Callable[[str, datetime], Fetched | None], file: IO[bytes]) -> None:
        """`copy`: a function that returns the copy of a URL by its time. `file`: a new file."""
        self._copy = copy
        self._records = RecordWriter(file, compressed=True)

    def __call__(self, url: str, fetched_at: datetime) -> None:
        """Write a copy. Do nothing if there is none."""
        file = self._copy(url, fetched_at)
        if file is None:
            return
        name = uuid5(NAMESPACE_URL, f"{url} {fetched_at.isoformat()} {file.status}")
        fields = {"WARC-Record-ID": name.urn.join("<>")}
        if file.status:
            # The archive has the content under the requested URL, so no redirect is followed.
            write_answer(self._records, url, replace(file, url=""), fields)
            return
        error = file.error or "there was no answer"
        fields |= {"WARC-Target-URI": url, POLICY: NONE, UNREAD: error}
        self._records.write("response", fetched_at, b"", fields, content_type="application/http")


class PolicyArchive:
    """An unfinished archive. A second process cannot open it."""

    def __init__(self, path: Path) -> None:
        """Open the archive, or continue the one that an earlier process began.

        PolicyError: the archive cannot be made. The message contains the remedy. DatasetError: the
        files beside it are not comity's."""
        if path.is_dir():
            raise PolicyError(f"warc `{path}` is a folder: name a file in it")
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._journal_path = path.with_name(f".{path.name}.journal")
        self._journal = open_database(self._journal_path, JOURNAL, check_same_thread=False)
        try:
            self._file = open_beside(self._part)
            (end,) = self._journal.execute("SELECT end FROM archive").fetchone()
            # The file is shorter than the journal says if an earlier process was killed between
            # renaming it and deleting the journal, or after a power cut. Then start again.
            if os.fstat(self._file.fileno()).st_size < end:
                end = 0
                self._journal.execute("DELETE FROM origin")
            self._file.truncate(end)
            self._file.seek(end)
        except OSError as error:
            raise PolicyError(f"warc `{path}` cannot be written: {error.strerror}") from None
        self._unsaved: dict[str, str] = {}  # origin -> `unreachable` of `write`
        self._save_at = monotonic() + SAVE_AFTER
        self._records = RecordWriter(self._file, compressed=path.name.lower().endswith(".gz"))

    def begin(self, user_agent: str) -> None:
        """Write the head of the archive if the archive is empty."""
        if not self._file.tell():
            self._records.write_info(
                user_agent=user_agent, description="Policy files only, without content codings"
            )

    def __contains__(self, origin: str) -> bool:
        if origin in self._unsaved:
            return True
        return (
            self._journal.execute("SELECT 1 FROM origin WHERE origin = ?", (origin,)).fetchone()
            is not None
        )

    def unreachable(self) -> Iterator[str]:
        """Yield the saved entries of unreachable origins, in no particular order."""
        query = "SELECT unreachable FROM origin WHERE unreachable <> ''"
        return (entry for (entry,) in self._journal.execute(query))

    def write(self, site: Site, *, unreachable: str = "") -> None:
        """Write each file of a site that got a response. Skip a site that is in the archive.

        `unreachable`: the site's entry in the list of unreachable sites. "": the site is
        reachable. OSError: the disk is full."""
        if site.origin in self:
            return
        for url, file in site.files.items():
            if file.status:
                write_answer(self._records, url, file)
        self._unsaved[site.origin] = unreachable
        if monotonic() > self._save_at:
            self._save()

    def _save(self) -> None:
        self._file.flush()
        with transaction(self._journal):
            self._journal.executemany(
                "INSERT OR IGNORE INTO origin VALUES (?, ?)", self._unsaved.items()
            )
            self._journal.execute("UPDATE archive SET end = ?", (self._file.tell(),))
        self._unsaved.clear()
        self._save_at = monotonic() + SAVE_AFTER

    def finish(self) -> None:
        """Give the complete archive its name. OSError: it cannot be written or renamed."""
        self._save()
        os.fsync(self._file.fileno())
        self._part.replace(self._path)
        sync(self._path.parent)
        self.close()
        self._journal_path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files. The next process continues with the data that is written by now."""
        if not self._file.closed:
            with suppress(OSError, sqlite3.Error):
                self._save()
            self._file.close()
            self._journal.close()
