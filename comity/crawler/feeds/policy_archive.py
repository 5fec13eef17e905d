"""WARC files of policy files, made by `scrapy crawl policies`.

They have a response for each file of each origin, as comity took it.

An archive gets its name when it is complete. Until then it grows beside that name, as `.NAME.part`.
`.NAME.journal` says which origins are in it, and up to which octet. A killed process loses the
origins of its last moment, and the next process continues from there."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.client import responses as REASONS  # noqa: N812  # it is a constant
from pathlib import Path
from time import monotonic

from comity.crawler.feeds.warc_records import RecordWriter, head_of
from comity.database import Kind, open_database, transaction
from comity.dataset.files.replacement import open_beside, sync
from comity.dataset.files.warc.items import POLICY
from comity.policies import PolicyError, Site
from comity.policies.answers.fetched import Fetched

APPLICATION_ID = 0x636F6D77  # "comw"
SAVE_AFTER = 0.5  # seconds of work that a killed process loses at most
NONE = "none"  # the digest of an answer without a text
FINAL_URL = "Comity-Final-URI"  # field of a record: the last URL, if redirects were followed

VERSIONS = (
    """
CREATE TABLE origin (origin TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE archive (end INTEGER NOT NULL);
INSERT INTO archive VALUES (0);
""",
    "ALTER TABLE origin ADD COLUMN unreachable TEXT NOT NULL DEFAULT ''",
)
JOURNAL = Kind(
    subject="warc: the journal",
    name="journal of an archive",
    remedy="name another file",
    application_id=APPLICATION_ID,
    versions=VERSIONS,
    alone="wait until that has ended, or name another file",
)


class PolicyArchive:
    """An archive that this process alone is making."""

    def __init__(self, path: Path) -> None:
        """PolicyError, with what to do about it: the archive cannot be made.

        DatasetError: the files beside it are not comity's."""
        if path.is_dir():
            raise PolicyError(f"warc `{path}` is a folder: name a file in it")
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._journal_path = path.with_name(f".{path.name}.journal")
        self._journal = open_database(self._journal_path, JOURNAL, check_same_thread=False)
        try:
            self._file = open_beside(self._part)
            (end,) = self._journal.execute("SELECT end FROM archive").fetchone()
            # If the file is shorter, it has its final name by now, or was lost in a power cut.
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
        """Yield the entries of unreachable origins that earlier processes wrote, in no order."""
        query = "SELECT unreachable FROM origin WHERE unreachable <> ''"
        return (entry for (entry,) in self._journal.execute(query))

    def write(self, site: Site, *, unreachable: str = "") -> None:
        """Write the files of a site that were answered. A site in the archive is skipped.

        `unreachable`: the site's entry in the list of unreachable sites; "": it is reachable.
        OSError: there is no room."""
        if site.origin in self:
            return
        for url, file in site.files.items():
            if file.status:
                self._write_file(url, file)
        self._unsaved[site.origin] = unreachable
        if monotonic() > self._save_at:
            self._save()

    def _write_file(self, url: str, file: Fetched) -> None:
        fields = {
            "WARC-Target-URI": url,
            POLICY: hashlib.sha256(file.body).hexdigest() if file.body else NONE,
        }
        if file.url not in ("", url):
            fields[FINAL_URL] = file.url
        if file.oversized:
            fields["WARC-Truncated"] = "length"
        headers = (*file.headers, (b"Content-Length", str(len(file.body)).encode()))
        head = head_of(f"HTTP/1.1 {file.status} {REASONS.get(file.status, '')}", headers)
        self._records.write(
            "response", file.fetched_at or datetime.now(UTC), file.body, fields, head=head
        )

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
        """Give the archive its name. OSError: it fails."""
        self._save()
        os.fsync(self._file.fileno())
        self._part.replace(self._path)
        sync(self._path.parent)
        self.close()
        self._journal_path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files. Data that is written by now stays for the next process."""
        if not self._file.closed:
            with suppress(OSError, sqlite3.Error):
                self._save()
            self._file.close()
            self._journal.close()
