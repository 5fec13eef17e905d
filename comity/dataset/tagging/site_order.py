"""Judge the rows of tables in the order of their sites, for tables in any order.

Reading the policies of a site takes longer than judging a row. So the rows are judged by site:

1. Read the URL, the date and the other fields by which a row is judged, and sort them by site in
   runs on the disk. WARC files are left out, see below.
2. Judge RUN rows at a time, in the order of the sites. Sort the verdicts by their stretch of a
   file, in runs on the disk. Equal verdicts of a run in a stretch are stored once.
3. The pass over all records takes the parts of a stretch together, with their verdicts. So the
   output has the order of the input.

Memory does not grow with the number of rows. The temporary files take about 200 octets a row, and
2 KB for each distinct tag of a stretch. A killed job leaves no result, so the next run begins anew.

Some rows are judged when they are tagged, as all WARC records are:

- rows whose tag depends on further fields, because their site has rules about elements
- rows of columns that already have a tag, and rows without a valid URL
- batches whose columns may hide a value (see columns_pass)
- WARC records and samples of shards, because their tag depends on the body, which takes longer to
  read than a site"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from comity.dataset.execution.executors import PROCESSES, in_order, usable_cores
from comity.dataset.execution.sorted_runs import SortedRuns, chunks
from comity.dataset.files.formats import Part, Reader
from comity.dataset.files.shards.works import WorksReader
from comity.dataset.job import JobOptions
from comity.dataset.passes import is_small
from comity.dataset.records import Unreadable
from comity.dataset.tagging import warc
from comity.dataset.tagging.captured import CapturedPage
from comity.dataset.tagging.record_tagger import RecordTagger
from comity.dataset.tagging.verdicts import (
    PICKLED,
    Answer,
    AnswerForm,
    JudgedColumns,
    JudgedReader,
    Stretch,
    Verdicts,
    join,
    version_of,
)
from comity.gc_pause import gc_paused
from comity.policies.syntax.urls import origin_or_empty

RUN = 50_000  # rows that are sorted or judged together
STRETCH = 10_000  # a stretch ends after this many rows
ROWS_AT_ONCE = 64  # rows of each run that are in memory while runs are merged
PENDING = 1_000  # distinct answers that are encoded together, and rows between two collections

Key = tuple[int, int]  # the indices of a reader and of a stretch in its file
Row = tuple[Key, int, CapturedPage]  # the stretch, the number of the row, and its page
OriginRow = tuple[str, Row]


class RowPages(NamedTuple):
    """A task: return the pages of the rows in a part of a table."""

    tagger: RecordTagger
    readers: dict[int, Reader]

    @gc_paused()
    def __call__(self, task: tuple[int, Part]) -> tuple[int, list[tuple[int, CapturedPage]]]:
        """Return the number of entries in the part, and the numbers and pages of rows.

        Rows of records are numbered from 0 in each part. Rows of columns have their numbers in the
        file, and the number of entries is 0."""
        number, part = task
        reader: Any = self.readers[number]
        if not hasattr(reader, "read_columns"):
            entries = [entry for batch in reader.read(part) for entry in batch]
            pages = ((row, self._page(entry)) for row, entry in enumerate(entries))
            return len(entries), [(row, page) for row, page in pages if page is not None]
        # Imported here because pyarrow is installed only where there are columns.
        from comity.dataset.tagging.columns_pass import fields_of_pages, pages_of

        rows: list[tuple[int, CapturedPage]] = []
        for batch, first in reader.read_columns(part, fields_of_pages(self.tagger)):
            if not isinstance(batch, Unreadable):
                rows += enumerate(pages_of(batch, self.tagger), first)
        return 0, rows

    def _page(self, entry: Any) -> CapturedPage | None:
        return None if isinstance(entry, Unreadable) else self.tagger.page(entry)[0]


class JudgeRows(NamedTuple):
    """A task: judge rows that are sorted by site."""

    tagger: RecordTagger
    forms: dict[int, AnswerForm]
    """The form of the answers for each reader."""

    def __call__(self, rows: Iterable[OriginRow]) -> list[tuple[Key, Verdicts]]:
        """Return the verdicts for each stretch, sorted by stretch."""
        answers = {form: _Answers(form) for form in dict.fromkeys(self.forms.values())}
        by_stretch: dict[Key, tuple[list[int], list[int]]] = {}
        # The garbage collector runs in between, because sites have cycles.
        for some in chunks(rows, PENDING):
            with gc_paused():
                for _, row in some:
                    self._judge(row, answers, by_stretch)
        encoded = {form: of_form.encoded() for form, of_form in answers.items()}
        verdicts = []
        for key, (numbers, indices) in sorted(by_stretch.items()):
            form = self.forms[key[0]]
            places = {index: place for place, index in enumerate(dict.fromkeys(indices))}
            taken = form.take(encoded[form], [*places])
            verdicts.append((key, Verdicts(numbers, [places[index] for index in indices], taken)))
        return verdicts

    def _judge(
        self,
        row: Row,
        answers: Mapping[AnswerForm, _Answers],
        by_stretch: dict[Key, tuple[list[int], list[int]]],
    ) -> None:
        """Judge a row, and note its number and the index of its answer."""
        key, number, page = row
        judged = self.tagger.judge.judge(page)
        if judged is not None and judged.depends_on_record:
            return
        answer = None if judged is None else judged.tag({})
        numbers, indices = by_stretch.setdefault(key, ([], []))
        numbers.append(number)
        indices.append(answers[self.forms[key[0]]].index(answer))


class _Answers:
    """Distinct answers, encoded.

    Answers are compared by identity, which is fast: a Judge returns the same object for similar
    URLs of a site."""

    def __init__(self, form: AnswerForm) -> None:
        self._form = form
        self._pending: list[Answer] = []
        self._indices: dict[int, int] = {}
        self._pieces: list[Any] = []
        self._count = 0

    def index(self, answer: Answer) -> int:
        """Return the index of an answer. Add it if it is new."""
        index = self._indices.get(id(answer))
        if index is None:
            if len(self._pending) == PENDING:
                self._encode()
            index = self._indices[id(answer)] = self._count
            self._pending.append(answer)
            self._count += 1
        return index

    def _encode(self) -> None:
        self._pieces.append(self._form.encode(self._pending))
        self._pending, self._indices = [], {}

    def encoded(self) -> Any:
        """Return all answers. None if there are none."""
        if self._pending:
            self._encode()
        return self._form.join(self._pieces) if self._pieces else None


def is_table(reader: Reader) -> bool:
    """Return True if the rows of a file are judged before they are tagged."""
    return not isinstance(reader, warc.Reader | WorksReader)


def judged_readers(
    readers: Sequence[Reader],
    tagger: RecordTagger,
    options: JobOptions,
    keep: Callable[[int, Iterator[Verdicts]], Iterator[Verdicts] | Path] = lambda _, found: found,
) -> tuple[list[Reader], JobOptions]:
    """Return readers of the same files that give the rows of tables their verdicts, and the options
    for the pass that tags.

    `keep`: called with the index of a reader and the verdicts of its stretches. It returns them, or
    the file in which it has saved them. By default, the parts of the readers must be read once, in
    the order of the readers.

    DatasetError: a file cannot be read."""
    tables = {number: reader for number, reader in enumerate(readers) if is_table(reader)}
    if not tables:
        return [*readers], options
    versions = {number: version_of(reader.path) for number, reader in tables.items()}
    workers = options.workers
    if workers is None and options.executor == PROCESSES:
        workers = 1 if is_small(tables.values()) else usable_cores()
    judging = options._replace(workers=workers)
    rows, stretches = _sorted_rows(tables, tagger, judging)
    forms = {number: _form(reader, tagger) for number, reader in tables.items()}
    # Half of the progress is for judging, and half for tagging.
    size = sum(reader.size for reader in readers) // 2
    found = _judged(rows, JudgeRows(tagger, forms), judging, size)
    verdicts = _verdicts_in_turn(found, stretches, forms)
    judged = [*readers]
    for number, reader in tables.items():
        kind = JudgedColumns if hasattr(reader, "read_columns") else JudgedReader
        of_file = keep(number, islice(verdicts, len(stretches[number])))
        judged[number] = kind(reader, versions[number], stretches[number], of_file)
    half = options._replace(progress=lambda octets: options.progress(octets - octets // 2))
    return judged, half


def _form(reader: Reader, tagger: RecordTagger) -> AnswerForm:
    if not hasattr(reader, "read_columns"):
        return PICKLED
    # Imported here because pyarrow is installed only where there are columns.
    from comity.dataset.tagging.columns_pass import ColumnAnswers

    return ColumnAnswers(tagger.judge.question.agent.uses)


def _sorted_rows(
    tables: Mapping[int, Reader], tagger: RecordTagger, options: JobOptions
) -> tuple[SortedRuns[str, Row], dict[int, list[Stretch]]]:
    """Return the rows of tables that have a site, sorted by site, and the stretches of each."""
    runs: SortedRuns[str, Row] = SortedRuns(chunk=ROWS_AT_ONCE)
    pending: list[OriginRow] = []
    stretches: dict[int, list[Stretch]] = {number: [] for number in tables}
    entries = dict.fromkeys(tables, 0)
    sizes = dict.fromkeys(tables, STRETCH)  # rows in the last stretch of each file
    parts: deque[int] = deque()
    tasks = _noted(tables, parts)
    found = in_order(RowPages(tagger, dict(tables)), tasks, options.executor, options.workers)
    with closing(found):
        for count, rows in found:
            number = parts.popleft()
            of_file = stretches[number]
            if sizes[number] >= STRETCH:
                of_file.append(Stretch(entries[number], 0))
                sizes[number] = 0
            of_file[-1] = of_file[-1]._replace(parts=of_file[-1].parts + 1)
            sizes[number] += len(rows)
            key = number, len(of_file) - 1
            for row, page in rows:
                if not page.left_out and (origin := origin_or_empty(page.url)):
                    pending.append((origin, (key, entries[number] + row, page)))
            entries[number] += count
            if len(pending) >= RUN:
                runs.add(sorted(pending, key=itemgetter(0)))
                pending = []
    if pending:
        runs.add(sorted(pending, key=itemgetter(0)))
    return runs, stretches


def _noted(tables: Mapping[int, Reader], parts: deque[int]) -> Iterator[tuple[int, Part]]:
    """Yield the parts of tables. Append the index of the reader to `parts` for each."""
    for number, reader in tables.items():
        for part in reader.parts():
            parts.append(number)
            yield number, part


def _judged(
    rows: SortedRuns[str, Row], judge: JudgeRows, options: JobOptions, size: int
) -> SortedRuns[Key, Verdicts]:
    """Return the verdicts on rows, sorted by stretch.

    `size`: the number of octets that are reported as progress in total."""
    verdicts: SortedRuns[Key, Verdicts] = SortedRuns(chunk=1)
    runs = -(-len(rows) // RUN)
    judged = in_order(judge, chunks(rows, RUN), options.executor, options.workers)
    with closing(judged):
        for number, run in enumerate(judged):
            verdicts.add(run)
            options.progress(size * (number + 1) // runs - size * number // runs)
    return verdicts


def _verdicts_in_turn(
    verdicts: SortedRuns[Key, Verdicts],
    stretches: Mapping[int, Sequence[Stretch]],
    forms: Mapping[int, AnswerForm],
) -> Iterator[Verdicts]:
    """Yield the verdicts of each stretch, in the order of the files."""
    pairs = iter(verdicts)
    pair = next(pairs, None)
    for number, of_file in stretches.items():
        for stretch in range(len(of_file)):
            several = []
            while pair is not None and pair[0] == (number, stretch):
                several.append(pair[1])
                pair = next(pairs, None)
            yield join(several, forms[number])
