"""The pass that tags whole columns. In a table of URLs most rows of a site have the same tag."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from comity.dataset.counts.column_summary import note
from comity.dataset.evidence import columns as evidence
from comity.dataset.evidence.decisions import Decision, Found, Place
from comity.dataset.evidence.tables import evidence_of
from comity.dataset.files.columns.arrow_foreign import proper
from comity.dataset.files.columns.arrow_schema import (
    EXTRA,
    TAG,
    Rows,
    adapt,
    decode,
    is_tag_type,
    kinds_of,
)
from comity.dataset.files.columns.arrow_types import plain
from comity.dataset.files.folders import APART as APART_RULE
from comity.dataset.passes import Outcome, readable
from comity.dataset.records import FIELD, IDENTITY, PAGE_URLS, SPARE_FIELD, Unreadable, is_blank
from comity.dataset.tagging.captured import CapturedPage, moment_of
from comity.dataset.tagging.columns import captured_page, first_part, value_of
from comity.dataset.tagging.counts import Tagged, verdict_names
from comity.dataset.tagging.record_tagger import RecordTagger
from comity.dataset.tagging.tag_changes import Tag

STANDARD = ("url", "fetched_at")  # fields of comity's own records that are added
VERDICT = "comity:verdict"  # the name of the column that `with_verdicts` adds
# An answer: the tag, null if the row is kept apart, and the names of the verdicts in the tag.
ANSWER = pa.struct([("tag", TAG.type), ("verdicts", pa.list_(pa.string()))])
APART = -1


def tag_columns(batch: pa.RecordBatch, number: int, tagger: RecordTagger) -> Outcome:
    """Return the batch with its tags. `number`: the number of its first row in the file."""
    batch, verdicts = _without_verdicts(batch)
    if _may_hide(batch, tagger):
        return _as_records(batch, number, tagger)
    tagged, apart, dropped = Tagged(), [], Found(tagger.judge.question.agent.uses)
    rows, indices, tags, columns = [], [], _Tags(verdicts, tagger), _PageColumns(batch, tagger)
    urls: list[str] = []
    moments: list[datetime | None] = []
    for row, page in enumerate(columns.pages()):
        if page.left_out:
            tagged.left_out.note(page.left_out)
            place = Place(number + row, page.url, page.captured_at)
            dropped.drop(place, [Decision("", "deny", page.left_out)])
            continue
        earlier = columns.earlier(row)
        index = None if earlier else tags.of_verdict(row)
        if index is None:
            judged = tagger.judge.judge(page)
            if judged is not None:
                fields = columns.content(row) if judged.has_elements else {}
                index = tags.add(judged.tag(fields, None, earlier))
        if index is None or index == APART:
            apart.append(row)
            place = Place(number + row, page.url, page.captured_at)
            dropped.drop(place, [Decision("", "deny", APART_RULE)])
            continue
        indices.append(index)
        rows.append(row)
        urls.append(page.url)
        moments.append(tagger.judge.dated(page).captured_at)
    tagged.undated = moments.count(None)
    counts = Counter(indices)
    for names, records in tags.names(counts):
        for name in names:
            tagged.verdicts.note(name, records)
    judged_rows = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows, pa.int64()))
    tag_column = tags.column(indices)
    renamed = columns.standard(judged_rows, urls, moments)
    output = adapt(_with_tags(renamed, tag_column), schema_of_tagged(batch.schema, tagger))
    if output.num_rows:
        note(tagged, output, FIELD)
    notes = (
        [{"record": record} for record in decode(batch.take(pa.array(apart, pa.int64())))]
        if apart
        else []
    )
    tagged.apart += len(apart)
    if not tagger.with_evidence:
        return Outcome(Rows(output), tagged, notes)
    found = evidence.evidence_of_rows(
        tags.rows([number + row for row in rows], urls, moments, indices),
        tagger.judge.question.agent.uses,
        evidence_of(dropped),
    )
    return Outcome(Rows(output), tagged, notes, evidence=found)


def schema_of_tagged(schema: pa.Schema, tagger: RecordTagger) -> pa.Schema:
    """Return the schema of tagged batches. `schema`: the schema of the batches before tagging."""
    text = _text_name(schema.names, tagger)
    fields = {("text" if field.name == text else field.name): field.type for field in schema}
    for name in filter(None, (*STANDARD, _url_field(schema.names, tagger))):
        if pa.types.is_null(fields.get(name, pa.null())):
            fields[name] = pa.string()
    return proper(pa.schema(list(fields.items())))


def _url_field(names: Collection[str], tagger: RecordTagger) -> str:
    """Return the field to add for the URLs of pages. "" if a column of PAGE_URLS has them."""
    if any(name in names for name in PAGE_URLS if name in tagger.names[0]):
        return ""
    return next((name for name in PAGE_URLS if name not in names), "")


def _text_name(names: Iterable[str], tagger: RecordTagger) -> str:
    """Return the column with the text that becomes `text`. "" if there is none."""
    present = list(names)
    return (
        "" if "text" in present else next((name for name in tagger.names[2] if name in present), "")
    )


def _may_hide(batch: pa.RecordBatch, tagger: RecordTagger) -> bool:
    """Return True if the rows must become records, because columns may hide a relevant value.

    The column for tags may have other data. A tag, or a value by which pages are judged, may be in
    a second column if the usual column is blank, or in EXTRA if it fits no column."""
    names = batch.schema.names
    if FIELD in names and not is_tag_type(batch.schema.field(FIELD).type):
        return True
    kinds = kinds_of(batch.schema)
    for standard, candidates in ((PAGE_URLS, tagger.names[0]), (("fetched_at",), tagger.names[1])):
        present = [name for name in candidates if first_part(name) in names]
        if any(
            any(map(is_blank, kinds[name].values(batch.column(name))))
            for name in standard
            if name in names and present not in ([], [name])
        ):
            return True
    return EXTRA in names and bool(
        pc.any(pc.match_substring_regex(batch.column(EXTRA), _pattern(tagger.names))).as_py()
    )


@lru_cache(maxsize=16)
def _pattern(names: tuple[tuple[str, ...], ...]) -> str:
    """Return a pattern that finds tags, and values with one of these names, in EXTRA.

    It also matches escaped letters, which may be part of a name."""
    fields = {
        part for candidates in names for name in candidates for part in (name, first_part(name))
    }
    spellings = sorted(
        {re.escape(text) for field in fields for text in (field, json.dumps(field)[1:-1])}
    )
    return rf'(?i){FIELD}|\\u00[2-7]|"(?:{"|".join(spellings)})"\s*:\s*[^n\s]'  # null is no value


def _as_records(batch: pa.RecordBatch, number: int, tagger: RecordTagger) -> Outcome:
    """Tag each record by itself."""
    records = decode(batch, range(number, number + batch.num_rows))
    outcome = tagger([record for record in records if not isinstance(record, Unreadable)])
    if outcome.evidence is not None:
        numbers = [number + index for index in readable(records)]
        outcome = outcome._replace(evidence=outcome.evidence.numbered(numbers))
    return outcome._replace(
        unreadable=[record for record in records if isinstance(record, Unreadable)]
    )


def _with_tags(batch: pa.RecordBatch, tags: pa.Array) -> pa.RecordBatch:
    names = [name for name in batch.schema.names if name not in (FIELD, EXTRA)]
    arrays = [*(batch.column(name) for name in names), tags]
    if EXTRA in batch.schema.names:
        names, arrays = [*names, FIELD, EXTRA], [*arrays, batch.column(EXTRA)]
    else:
        names = [*names, FIELD]
    return pa.RecordBatch.from_arrays(arrays, names)


class ColumnAnswers(NamedTuple):
    """The answers for columns (see AnswerForm): an array of ANSWER."""

    uses: tuple[str, ...]
    """The uses whose verdicts are counted."""

    def encode(self, answers: Sequence[Tag | None]) -> pa.StructArray:
        tags = [None if tag is None else TAG.fit(tag) for tag in answers]
        names = [[] if tag is None else verdict_names(tag, self.uses) for tag in answers]
        arrays = [pa.array(tags, TAG.type), pa.array(names, ANSWER.field("verdicts").type)]
        return pa.StructArray.from_arrays(arrays, fields=[*ANSWER])

    def join(self, pieces: Sequence[pa.StructArray]) -> pa.StructArray:
        return pa.concat_arrays(pieces)

    def take(self, encoded: pa.StructArray, indices: Sequence[int]) -> pa.StructArray:
        return encoded.take(pa.array(indices, pa.int64()))


def with_verdicts(
    batch: pa.RecordBatch, indices: Sequence[int | None], answers: pa.StructArray
) -> pa.RecordBatch:
    """Return the batch with a further column, which has the answer for each row.

    `indices`: the index of each row in `answers`. None: the row has no verdict."""
    column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), answers)
    schema = batch.schema.append(pa.field(VERDICT, column.type))
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)


def _without_verdicts(
    batch: pa.RecordBatch,
) -> tuple[pa.RecordBatch, pa.DictionaryArray | None]:
    """Return the batch before `with_verdicts`, and the column. None: the batch has no verdicts."""
    last = batch.num_columns - 1
    if last < 0 or batch.schema.field(last).type != pa.dictionary(pa.int32(), ANSWER):
        return batch, None
    schema = batch.schema.remove(last)
    return pa.RecordBatch.from_arrays(batch.columns[:last], schema=schema), batch.column(last)


class _Tags:
    """The tags of the rows in a batch, each once: first those of verdicts, then those added."""

    def __init__(self, verdicts: pa.DictionaryArray | None, tagger: RecordTagger) -> None:
        self._uses = tagger.judge.question.agent.uses
        self._places: list[int | None] = []
        self._before = pa.array([], ANSWER)
        if verdicts is not None:
            self._places, self._before = verdicts.indices.to_pylist(), verdicts.dictionary
        self._is_apart = pc.is_null(self._before.field("tag")).to_pylist()
        self._added: list[Tag] = []
        self._indices: dict[int, int] = {}

    def of_verdict(self, row: int) -> int | None:
        """Return the index of the tag that the verdict gives to a row.

        APART: the verdict keeps the row apart. None: the row has no verdict."""
        place = self._places[row] if self._places else None
        return APART if place is not None and self._is_apart[place] else place

    def add(self, tag: Tag) -> int:
        """Return the index of a tag. Add a new tag.

        Tags are compared by identity, which is fast: a Judge returns the same object for similar
        URLs of a site. Equal tags in two objects have two indices."""
        index = self._indices.get(id(tag))
        if index is None:
            index = self._indices[id(tag)] = len(self._before) + len(self._added)
            self._added.append(tag)
        return index

    def names(self, counts: Mapping[int, int]) -> Iterator[tuple[list[str], int]]:
        """Yield the names of the verdicts in each tag, and the number of its rows.

        `counts`: the number of rows for each index."""
        before = [index for index in counts if index < len(self._before)]
        names = self._before.field("verdicts").take(pa.array(before, pa.int64())).to_pylist()
        yield from zip(names, map(counts.__getitem__, before), strict=True)
        for index, tag in enumerate(self._added, len(self._before)):
            yield verdict_names(tag, self._uses), counts[index]

    @cached_property
    def tags(self) -> pa.StructArray:
        """All tags. It must be used after the last `add`."""
        tags = self._before.field("tag")
        if self._added:
            added = pa.array([TAG.fit(tag) for tag in self._added], TAG.type)
            tags = pa.concat_arrays([tags, added]) if len(tags) else added
        return tags

    def rows(
        self,
        numbers: Sequence[int],
        urls: Sequence[str],
        moments: Sequence[datetime | None],
        indices: Sequence[int],
    ) -> evidence.Rows:
        """Return rows with their tags for the evidence."""
        used = {index: place for place, index in enumerate(dict.fromkeys(indices))}
        tags = self.tags.take(pa.array([*used], pa.int64()))
        return evidence.Rows(numbers, urls, moments, [used[index] for index in indices], tags)

    def column(self, indices: Sequence[int]) -> pa.StructArray:
        """Return the column of tags with these indices."""
        return self.tags.take(pa.array(indices, pa.int64()))


def fields_of_pages(tagger: RecordTagger) -> tuple[str, ...]:
    """Return the fields by which pages are judged, and those that may hide a value."""
    urls, dates, _, *others = tagger.names
    names = (*urls, *dates, *(name for names in others for name in names), *PAGE_URLS, "fetched_at")
    return tuple(dict.fromkeys(name for field in names for name in (field, first_part(field))))


def pages_of(batch: pa.RecordBatch, tagger: RecordTagger) -> Sequence[CapturedPage]:
    """Return the page of each row. () if columns may hide a value."""
    return () if _may_hide(batch, tagger) else _PageColumns(batch, tagger).pages()


class _PageColumns:
    """The columns of a batch by which the pages of its rows are judged."""

    def __init__(self, batch: pa.RecordBatch, tagger: RecordTagger) -> None:
        self._batch, self._tagger = batch, tagger
        # The others: names for header fields, statuses, hashes and media types.
        self._urls, self._dates, _, *self._others = tagger.names
        present = batch.schema.names
        self._text = _text_name(present, tagger)
        names = dict.fromkeys(
            first_part(name) if name not in present else name
            for names in tagger.names
            for name in names
        )
        judging = {name for names in (self._urls, self._dates, *self._others) for name in names}
        relevant = judging | set(map(first_part, judging))
        kinds = kinds_of(batch.schema)  # they give octets as texts, as in records
        self._values = {
            name: kinds[name].values(batch.column(name))
            for name in names
            if name in kinds and name in relevant
        }
        self._tags = TAG.values(batch.column(FIELD)) if FIELD in present else None

    def pages(self) -> list[CapturedPage]:
        """Return the page of each row."""
        urls, dates = self._column(self._urls), self._column(self._dates)
        headers, statuses, hashes, types, page_urls = self._others
        singles = [[name] for name in (*types, *page_urls)]
        others = [*map(self._column, (headers, statuses, hashes, *singles))]
        if page_urls or any(value is not None for column in others for value in column):
            rows, media = zip(urls, dates, *others, strict=True), len(types)
            return [
                captured_page(url, date, header, status, sha256, rest[:media], rest[media:])
                for url, date, header, status, sha256, *rest in rows
            ]
        by_text = {
            date: moment_of(date) for date in {date for date in dates if isinstance(date, str)}
        }
        moments = (by_text[date] if isinstance(date, str) else moment_of(date) for date in dates)
        return [
            CapturedPage(url if isinstance(url, str) else "", moment)
            for url, moment in zip(urls, moments, strict=True)
        ]

    def _column(self, names: Sequence[str]) -> list[Any]:
        """Return a value for each row, from the first of these fields that is not blank in it."""
        first = next(
            (name for name in names if name in self._values or first_part(name) in self._values),
            None,
        )
        if first is None:
            return [None] * self._batch.num_rows
        column: list[Any] = self._values.get(first, [])
        if column and None not in column and "" not in column:
            return column
        columns = self._values.items()
        return [
            value_of({name: column[row] for name, column in columns}, names)[1]
            for row in range(self._batch.num_rows)
        ]

    def earlier(self, row: int) -> Any:
        """Return the tags that a row already has, as `RecordTagger.earlier` does."""
        tag = self._tags[row] if self._tags is not None else None
        return self._tagger.earlier([tag], self._text) if tag is not None else ()

    def content(self, row: int) -> dict[str, Any]:
        """Return the fields of a row that may have content of the page, by their new names."""
        text = self._text
        names = [
            name
            for name in self._batch.schema.names
            if name not in IDENTITY and name not in (FIELD, SPARE_FIELD)
        ]
        present = {
            name: True
            for name in names
            if name != EXTRA and plain(self._batch.column(name).slice(row, 1))[0]
        }
        extra = self._batch.column(EXTRA)[row].as_py() if EXTRA in names else None
        rest = dict.fromkeys(_names_in(extra), True) if extra else {}
        url_name = value_of(
            {name: column[row] for name, column in self._values.items()}, self._urls
        )[0]
        return {
            ("text" if name == text else name): value
            for name, value in {**present, **rest}.items()
            if name != url_name
        }

    def standard(
        self, batch: pa.RecordBatch, urls: list[str], moments: list[datetime | None]
    ) -> pa.RecordBatch:
        """Return the batch with URL, date and text in the fields of comity's own records."""
        names = ["text" if name == self._text else name for name in batch.schema.names]
        arrays = [batch.column(number) for number in range(batch.num_columns)]
        texts = {
            moment: moment.isoformat() if moment else None for moment in dict.fromkeys(moments)
        }
        url_field = _url_field(names, self._tagger)
        for name, values in (
            (url_field, urls),
            ("fetched_at", [texts[moment] for moment in moments]),
        ):
            if name and name not in names:
                names.append(name)
                arrays.append(pa.array(values, pa.string()))
        return pa.RecordBatch.from_arrays(arrays, names)


def _names_in(extra: str) -> Iterable[str]:
    try:
        return [name for name in json.loads(extra) if name not in IDENTITY]
    except (ValueError, TypeError):
        return []
