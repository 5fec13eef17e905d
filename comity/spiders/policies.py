"""The spider `policies`: fetch only the policy files of many sites."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

from scrapy import Spider

from comity import extras
from comity.crawler.crawl import Crawl
from comity.crawler.sites.survey import Survey
from comity.dataset.files.formats import ending_of
from comity.dataset.files.places import path_of
from comity.dataset.files.replacement import Replacement
from comity.dataset.job import open_readers
from comity.dataset.records import DatasetError
from comity.dataset.verify.origins import URL_FIELDS, origins_in
from comity.gate.fetching.fetcher import OriginPolicies
from comity.gate.run.flights import ClosingError
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of, typed_url
from comity.spiders.arguments import number, only, stop

if TYPE_CHECKING:
    from comity.crawler.feeds.policy_archive import PolicyArchive

ARGUMENTS = "origins, field, warc, tries, unreachable"
TRIES = 4  # the default number of tries for an origin with a robots.txt that cannot be fetched
# The maximum number of bad lines in the log, and of unreachable origins. All of them are counted.
MOST_NAMED = 100
TELL_AFTER = 60.0  # seconds between two log lines about the progress
ENDINGS = (".warc", ".warc.gz")
BOM = b"\xef\xbb\xbf"


class PoliciesSpider(Spider):
    """Fetch the policy files of the sites in a list into the policy store, and into a WARC file.

    comity crawl policies -a origins=FILE [-a field=NAME] [-a warc=FILE.warc.gz] [-a tries=N]
        [-a unreachable=FILE.jsonl]"""

    name = "policies"

    def __init__(
        self,
        origins: str = "",
        field: str = "",
        warc: str = "",
        tries: str | int = TRIES,
        unreachable: str = "",
        **unknown: object,
    ) -> None:
        """Check the arguments, and open the list.

        `origins`: a file with a URL or host in each line, a dataset, or `-` for standard input.
        `field`: the field of the dataset with the URLs. "" means the usual names of such fields.
        `warc`: a WARC file for all policy files. "" means none.
        `tries`: the number of tries for an unreachable origin, at least 1.
        `unreachable`: a file for the unreachable origins, in JSON Lines. "" means none."""
        super().__init__()
        only(self.name, unknown, f"it takes {ARGUMENTS}")
        if not origins:
            stop(
                self.name,
                "no origins: add -a origins=FILE, with a URL or host in each line, or a dataset",
            )
        self._tries = max(number(self.name, "tries", tries) or 0, 1)
        self._size = self._position = 0  # octets of the list; the size of a stream is not known
        self._bad = 0  # lines and records without an origin
        self._unreachable: list[str] = []  # the first unreachable origins, with their errors
        self._unreachable_count = 0
        self._list_path = Path(unreachable) if unreachable else None
        self._list: IO[bytes] | None = None
        self._survey: Survey | None = None
        self.comity_is_complete = False  # False: `scrapy crawl` ends with ENDED_EARLY
        self._began = self._logged_at = 0.0
        try:
            with ExitStack() as files:
                make_archive = _archive_class(warc)
                self._origins = self._open_list(origins, (field,) if field else URL_FIELDS, files)
                self._archive = make_archive(Path(warc)) if make_archive else None
                files.pop_all()
        except (DatasetError, PolicyError) as error:
            stop(self.name, str(error))
        except OSError as error:
            stop(self.name, f"origins `{origins}` cannot be read: {error.strerror}")

    async def start(self) -> AsyncIterator[Any]:
        crawl = Crawl.of(self.crawler)
        self._began = self._logged_at = monotonic()
        try:
            with ExitStack() as files:
                if self._archive:
                    files.callback(self._archive.close)
                    self._archive.begin(crawl.agent.user_agent)
                if self._list_path:
                    self._list = files.enter_context(Replacement(self._list_path))
                for entry in self._archive.unreachable() if self._archive else ():
                    self._note_unreachable(entry)
                self._survey = Survey(self.crawler, tries=self._tries, on_outcome=self._note)
                await self._survey.run(self._new_origins())
                if self._archive:
                    self._archive.finish()
                self.comity_is_complete = True
                self._sum_up()
        except ClosingError:  # Ctrl-C, or Scrapy cancels the coroutine
            pass
        except (DatasetError, OSError) as error:
            self.logger.error("%s", error)
        finally:
            if not self.comity_is_complete:
                self.logger.warning(
                    "Ended early: fetched files are kept, and the next run continues behind them"
                )
        if False:  # a generator needs a `yield`
            yield

    def comity_progress(self) -> str:
        """Return the progress of the survey, its rate, and the remaining time."""
        if self._survey is None:
            return "0 origins"
        seconds = max(monotonic() - self._began, 0.001)
        rate = self._survey.done / seconds
        text = (
            f"{self._survey.done} origins   {self._survey.unreachable} unreachable   "
            f"{rate:.1f} a second"
        )
        if not self._size:
            return text
        share = min(self._position / self._size, 1.0)
        remaining = f"   {seconds * (1 - share) / share / 60:.0f} min left" if share else ""
        return f"{text}   {share:.0%} of the list{remaining}"

    def _open_list(self, name: str, fields: Sequence[str], files: ExitStack) -> Iterator[str]:
        """Open the list, and return an iterator over its origins.

        `fields`: the fields of a dataset with URLs. `files`: receives the open file, so that the
        caller can close it if an error occurs before the iterator starts."""
        if name == "-":
            return self._of_lines(name, sys.stdin.buffer)
        path = path_of(name)
        if path.is_dir() or ending_of(path.name):
            readers = open_readers([path])
            self._size = sum(reader.size for reader in readers)
            return origins_in(readers, fields, progress=self._note_read, bad=self._note_bad)
        self._size = path.stat().st_size
        return self._of_lines(name, files.enter_context(path.open("rb")))

    def _of_lines(self, name: str, lines: IO[bytes]) -> Iterator[str]:
        with lines:
            for number_, line in enumerate(lines, 1):
                self._note_read(len(line))
                text = line.removeprefix(BOM).strip().decode("utf-8", "replace")
                if text and not text.startswith("#"):
                    try:
                        yield origin_of(typed_url(text))
                    except ValueError:
                        self._note_bad(
                            f"{name}:{number_}: `{printable(text)}` is not a host or an http or "
                            "https URL"
                        )

    def _new_origins(self) -> Iterator[str]:
        """Yield the origins that are not in the archive yet."""
        for origin in self._origins:
            if self._archive is None or origin not in self._archive:
                yield origin

    def _note_read(self, octets: int) -> None:
        self._position += octets

    def _note_bad(self, problem: str) -> None:
        assert self.crawler.stats
        self.crawler.stats.inc_value("comity/urls/bad")
        self._bad += 1
        if self._bad <= MOST_NAMED:
            self.logger.error("%s: passed over", problem)
        if self._bad == MOST_NAMED:
            self.logger.error("Further bad lines are passed over and counted, but not listed")

    def _note(self, origin: str, policies: OriginPolicies) -> None:
        """Count and archive the outcome for an origin, and log the progress now and then."""
        assert self.crawler.stats
        self.crawler.stats.inc_value("comity/origins/done")
        entry = ""
        if policies.unreachable:
            self.crawler.stats.inc_value("comity/origins/unreachable")
            again = datetime.fromtimestamp(policies.fresh_until, UTC).isoformat(timespec="seconds")
            entry = json.dumps({"origin": origin, "error": policies.error, "asked_again_at": again})
            self._note_unreachable(entry)
        if self._archive:
            self._archive.write(policies.site, unreachable=entry)
        if monotonic() - self._logged_at > TELL_AFTER:
            self._logged_at = monotonic()
            self.logger.info("%s", self.comity_progress())

    def _note_unreachable(self, entry: str) -> None:
        """Add an unreachable origin to the summary and to the file `unreachable`.

        `entry`: a line of JSON with `origin` and `error`."""
        self._unreachable_count += 1
        if len(self._unreachable) < MOST_NAMED:
            fields = json.loads(entry)
            self._unreachable.append(f"{fields['origin']}: {fields['error']}")
        if self._list:
            self._list.write(entry.encode() + b"\n")

    def _sum_up(self) -> None:
        assert self._survey
        self.logger.info("%s", self.comity_progress())
        if self._unreachable:
            more = self._unreachable_count - len(self._unreachable)
            lines = (
                [*self._unreachable, f"and {more} more: -a unreachable=FILE.jsonl lists all"]
                if more
                else self._unreachable
            )
            self.logger.warning(
                "%d origins could not be fetched:\n%s", self._unreachable_count, "\n".join(lines)
            )


def _archive_class(name: str) -> type[PolicyArchive] | None:
    """Return the class of the archive. None if `name` is empty: no archive was requested.

    DatasetError: `name` does not end like a WARC file (ENDINGS), or warcio is not installed."""
    if not name:
        return None
    if not name.lower().endswith(ENDINGS):
        raise DatasetError(f"warc `{name}`: name a file that ends in {' or '.join(ENDINGS)}")
    if extras.is_missing("warcio"):
        raise DatasetError(extras.needs(f"warc `{name}`", "warcio", "warc"))
    from comity.crawler.feeds.policy_archive import PolicyArchive  # needs the extra `warc`

    return PolicyArchive
