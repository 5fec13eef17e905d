"""The uses that records gained or lost from one dataset to another, by the file that changed.

    difference = compare([Path("may.parquet")], [Path("june.parquet")])
    difference.uses["train"].lost, difference.largest_files(10)

1. A pass over each dataset notes the page, the identity and the Facts of each record. The notes are
   sorted on the disk, so the datasets may be larger than memory.
2. Records with the same page and the same `sha256` and `id` are compared. The other records of a
   page are compared in any order: the page was fetched again, and has other content.
3. The refusing statement names the policy file. If a default refuses, the permitting statement
   names it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from comity.dataset.counts.groups import Groups
from comity.dataset.diff.facts import NO_COPY, Copy, Facts, Key, Statement, facts_of, key_of
from comity.dataset.execution.sorted_runs import SortedRuns
from comity.dataset.files.formats import Reader
from comity.dataset.job import JobOptions, fields_with_tag, open_readers
from comity.dataset.passes import Outcome, Sinks, UnreadRecord, run
from comity.dataset.records import Record
from comity.dataset.tags.sources import GUESSED, TagSource

GAINED, LOST = "gained", "lost"
EXAMPLES = 3
MAX_HELD = 50_000  # the maximum number of records in memory before they are sorted
MAX_LINES = 100  # the maximum number of pairs of lines that are told apart for a change of a file

Copies = tuple[Copy, Copy]  # the old and the new copy of a policy file
Line = tuple[str, str, Statement, Statement]  # use, GAINED or LOST, old and new statement
Note = tuple[tuple[Key, int], Facts]  # key and dataset (0 or 1) of a record


class Notes:
    """The notes of a pass on the records of a dataset. They can be merged and pickled."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.records = 0
        self.unnamed = 0  # records without a URL, a `sha256` and an `id`
        self.agents: Counter[str] = Counter()  # product token -> records

    def merge(self, other: Notes) -> None:
        self.notes += other.notes
        self.records += other.records
        self.unnamed += other.unnamed
        self.agents.update(other.agents)


class NotePass(NamedTuple):
    """A pass that notes the facts of records."""

    number: int
    """The dataset of the records: 0 or 1."""
    tags: TagSource
    """The places of tags in records."""
    uses: frozenset[str]
    """The uses to compare. Empty: all uses in the tags."""

    @property
    def fields(self) -> Sequence[str] | None:
        return fields_with_tag(self.tags, "sha256", "id")

    def __call__(self, records: list[Record]) -> Outcome:
        notes, known = Notes(), dict[Facts, Facts]()
        for record in records:
            facts = facts_of(record, self.tags, self.uses)
            notes.records += 1
            notes.agents[facts.agent] += 1
            if (key := key_of(record)) is None:
                notes.unnamed += 1
            else:
                # Equal facts are one object, which is pickled once for many records.
                notes.notes.append(((key, self.number), known.setdefault(facts, facts)))
        return Outcome([], notes)


@dataclass
class UseChanges:
    """The records that gained or lost a use."""

    gained: int = 0
    lost: int = 0
    both: int = 0
    """Records that permit the use in both datasets."""
    neither: int = 0
    """Records that permit the use in neither dataset."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    """GAINED or LOST -> the first pages."""


class Change(NamedTuple):
    """The change of a policy file, or of another source of statements."""

    url: str
    """The URL of the policy file, or the name of a setting or registry. "": the page itself, or a
    tag that cannot be read."""
    part: str
    """The part of the source if it is no policy file, such as `header x-robots-tag`."""
    old: str = ""
    """The SHA-256 of the copy by which the first dataset was tagged. "": no copy with a body."""
    new: str = ""
    """The SHA-256 of the copy by which the second dataset was tagged. "": no copy with a body."""
    is_file: bool = False
    """True if it is a policy file."""

    @property
    def kind(self) -> str:
        """The change in a word: changed, new, gone, or unchanged. "": it is no policy file."""
        if not self.is_file:
            return ""
        if self.old == self.new:
            return "unchanged"
        return "changed" if self.old and self.new else "new" if self.new else "gone"


@dataclass
class Dates:
    """The first and the last of some moments in ISO 8601. "": there is none."""

    first: str = ""
    last: str = ""

    def note(self, moment: str) -> None:
        if moment:
            self.first = min(self.first or moment, moment)
            self.last = max(self.last, moment)


@dataclass
class FileChanges:
    """The records that gained or lost uses by the change of one file."""

    records: int = 0
    uses: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(use, GAINED or LOST) -> records."""
    lines: Counter[tuple[str, Statement, Statement]] = field(default_factory=Counter)
    """(GAINED or LOST, old statement, new statement) -> uses of records."""
    other_lines: int = 0
    """The uses of records by lines that are not in `lines`."""
    examples: list[str] = field(default_factory=list)
    """The first pages."""
    dates: tuple[Dates, Dates] = field(default_factory=lambda: (Dates(), Dates()))
    """The fetch times of the old and the new copy."""

    def add_lines(self, lines: Mapping[tuple[str, Statement, Statement], int]) -> None:
        for line, count in lines.items():
            if line in self.lines or len(self.lines) < MAX_LINES:
                self.lines[line] += count
            else:
                self.other_lines += count

    def merge(self, other: FileChanges) -> None:
        self.records += other.records
        self.uses.update(other.uses)
        self.add_lines(other.lines)
        self.other_lines += other.other_lines
        self.examples = (self.examples + other.examples)[:EXAMPLES]
        for own, others in zip(self.dates, other.dates, strict=True):
            own.note(others.first)
            own.note(others.last)


@dataclass
class Side:
    """One of the two datasets."""

    paths: list[str]
    records: int = 0
    unreadable: int = 0
    unnamed: int = 0
    """Records that cannot be compared, because they have no URL, no `sha256` and no `id`."""
    only: int = 0
    """Records that the other dataset does not have."""
    agents: Counter[str] = field(default_factory=Counter)
    """Product token of the tags -> records. "": records without a valid tag."""


class Difference:
    """The differences between two datasets."""

    def __init__(self, old: Side, new: Side) -> None:
        self.sides = (old, new)
        self.compared = 0
        self.changed = 0  # compared records that gained or lost a use
        self.uses: dict[str, UseChanges] = {}
        self.files: Groups[Change, FileChanges] = Groups(FileChanges)

    @property
    def is_loss(self) -> bool:
        """True if a record lost a use."""
        return any(use.lost for use in self.uses.values())

    def largest_files(self, number: int) -> list[tuple[Change, FileChanges]]:
        """Return the changes of files that changed most records, at most `number` of them."""
        return self.files.largest(number, lambda changes: changes.records)

    def sorted_uses(self) -> list[tuple[str, UseChanges]]:
        """Return the uses, those of most changes first."""
        return sorted(
            self.uses.items(), key=lambda use: (-use[1].gained - use[1].lost, -use[1].both, use[0])
        )

    def compare(self, page: str, old: Facts, new: Facts, uses: frozenset[str], count: int) -> None:
        """Compare the facts of records. `count`: the number of records with these facts."""
        self.compared += count
        changes: dict[Change, tuple[list[Line], Copies]] = {}
        listed = {name for facts in (old, new) for name, *_ in facts.uses}
        for use in sorted(uses or listed):
            (was_allowed, before), (is_allowed, after) = old.verdict(use), new.verdict(use)
            counts = self.uses.setdefault(use, UseChanges())
            if was_allowed == is_allowed:
                counts.both += count if is_allowed else 0
                counts.neither += 0 if is_allowed else count
                continue
            direction = GAINED if is_allowed else LOST
            counts.gained += count if is_allowed else 0
            counts.lost += 0 if is_allowed else count
            _note_example(counts.examples.setdefault(direction, []), page)
            change, copies = _change((old, new), (before, after), refusing=not is_allowed)
            lines = changes.setdefault(change, ([], copies))[0]
            lines.append((use, direction, before.without_copy, after.without_copy))
        self.changed += count if changes else 0
        for change, (lines, copies) in changes.items():
            file = self.files[change]
            for dates, copy in zip(file.dates, copies, strict=True):
                dates.note(copy.fetched_at)
            file.records += count
            _note_example(file.examples, page)
            for use, direction, before, after in lines:
                file.uses[use, direction] += count
                file.add_lines({(direction, before, after): count})

    def totals(self) -> dict[str, Any]:
        """Return plain data in a stable order, without the files."""
        return {
            **{
                name: {
                    "paths": side.paths,
                    "records": side.records,
                    "only": side.only,
                    "unnamed": side.unnamed,
                    "unreadable": side.unreadable,
                    "agents": dict(side.agents.most_common()),
                }
                for name, side in zip(("old", "new"), self.sides, strict=True)
            },
            "compared": self.compared,
            "changed": self.changed,
            "uses": [
                {
                    "use": name,
                    "gained": use.gained,
                    "lost": use.lost,
                    "both": use.both,
                    "neither": use.neither,
                    "examples": use.examples,
                }
                for name, use in self.sorted_uses()
            ],
        }

    def files_as_json(self) -> Iterator[dict[str, Any]]:
        """Yield the changes of files as plain data, those that changed most records first."""
        for change, changes in self.files.by_size(lambda changes: changes.records):
            yield _file_as_json(change, changes)


def _change(
    facts: tuple[Facts, Facts], statements: tuple[Statement, Statement], *, refusing: int
) -> tuple[Change, Copies]:
    """Return the change to which a gain or a loss belongs, and the copies of its policy file.

    `refusing`: the index of the statement that refuses."""
    for number in (refusing, 1 - refusing):
        statement = statements[number]
        if statement.copy:
            copies = [one.copy_of(statement.url) for one in facts]
            copies[number] = statement.copy
            old, new = copies
            return Change(statement.url, "", old.sha256, new.sha256, is_file=True), (old, new)
    source = statements[refusing]
    if not (source.url or source.part):
        source = statements[1 - refusing]
    # A statement of the page has the URL of the page, which differs from record to record.
    url = source.url if source.part in ("", "setting") else ""
    return Change(url, source.part), (NO_COPY, NO_COPY)


def _note_example(examples: list[str], page: str) -> None:
    if len(examples) < EXAMPLES and page and page not in examples:
        examples.append(page)


def _file_as_json(change: Change, changes: FileChanges) -> dict[str, Any]:
    return {
        "policy_url": change.url,
        "part": change.part,
        "change": change.kind,
        **{
            name: {"sha256": sha256 or None, "first": dates.first, "last": dates.last}
            for name, sha256, dates in zip(
                ("old", "new"), (change.old, change.new), changes.dates, strict=True
            )
        },
        "records": changes.records,
        "uses": [
            {"use": use, "change": direction, "records": count}
            for (use, direction), count in changes.uses.most_common()
        ],
        "lines": [
            {
                "change": direction,
                "uses": count,
                "old": _statement_as_json(before),
                "new": _statement_as_json(after),
            }
            for (direction, before, after), count in changes.lines.most_common()
        ],
        "other_lines": changes.other_lines,
        "examples": changes.examples,
    }


def _statement_as_json(statement: Statement) -> dict[str, Any]:
    return {name: value for name, value in statement._asdict().items() if name != "copy"}


def compare(
    old: Sequence[Path],
    new: Sequence[Path],
    options: JobOptions = JobOptions(),  # noqa: B008  # immutable
    tags: TagSource = GUESSED,
    *,
    uses: Iterable[str] = (),
) -> Difference:
    """Compare the tags of two datasets, each in files and folders.

    `uses`: the uses to compare. Empty: all uses in the tags.

    DatasetError: a file cannot be read."""
    asked = frozenset(uses)
    sides = Side(list(map(str, old))), Side(list(map(str, new)))
    runs: SortedRuns[tuple[Key, int], Facts] = SortedRuns()
    readers = open_readers(old), open_readers(new)  # fail before the first dataset is read
    for number, side in enumerate(sides):
        _note(runs, side, NotePass(number, tags, asked), readers[number], options)
    difference = Difference(*sides)
    for page, notes in groupby(runs, lambda note: note[0][0][0]):
        waiting = _compare_page(difference, page, notes, asked)
        for side, alone in zip(sides, waiting, strict=True):
            side.only += alone.total()
    return difference


def _note(
    runs: SortedRuns[tuple[Key, int], Facts],
    side: Side,
    work: NotePass,
    readers: Sequence[Reader],
    options: JobOptions,
) -> None:
    """Add the notes on a dataset to the sorted runs."""
    held: list[Note] = []

    def spill() -> None:
        runs.add(sorted(held, key=itemgetter(0)))
        held.clear()

    def take(notes: Notes) -> None:
        side.records += notes.records
        side.unnamed += notes.unnamed
        side.agents.update(notes.agents)
        held.extend(notes.notes)
        if len(held) >= MAX_HELD:
            spill()

    def unreadable(_: UnreadRecord) -> None:
        side.unreadable += 1

    sinks = Sinks(take, unreadable=unreadable, progress=options.progress)
    run(work, readers, sinks, workers=options.workers, executor=options.executor)
    spill()


def _compare_page(
    difference: Difference, page: str, notes: Iterator[Note], uses: frozenset[str]
) -> tuple[Counter[Facts], Counter[Facts]]:
    """Compare the records of a page. Return those without a counterpart, of each dataset."""
    waiting = Counter[Facts](), Counter[Facts]()
    for _, group in groupby(notes, lambda note: note[0][0]):
        equal = Counter[Facts](), Counter[Facts]()
        for (_, number), facts in group:
            equal[number][facts] += 1
        _pair(difference, page, equal, uses)
        for kept, rest in zip(waiting, equal, strict=True):
            kept.update(rest)
        if page:
            _pair(difference, page, waiting, uses)
    return waiting


def _pair(
    difference: Difference,
    page: str,
    records: tuple[Counter[Facts], Counter[Facts]],
    uses: frozenset[str],
) -> None:
    """Compare records of two datasets until one of the datasets has no more, and remove them.

    Records with equal facts are compared with each other first."""
    old, new = records
    pairs = [(facts, facts) for facts in old if facts in new]
    while old and new:
        before, after = pairs.pop() if pairs else (next(iter(old)), next(iter(new)))
        count = min(old[before], new[after])
        difference.compare(page, before, after, uses, count)
        for counter, facts in ((old, before), (new, after)):
            counter[facts] -= count
            if not counter[facts]:
                del counter[facts]
