"""The tagger of single records: it makes the fields of a record and its tag.

Records are captures in WARC files, or rows of tables and JSON Lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from comity.dataset.evidence.decisions import Decision, Found, Place
from comity.dataset.files.folders import APART
from comity.dataset.files.shards.works import SampleRecord
from comity.dataset.passes import Outcome
from comity.dataset.records import FIELD, PAGE_URLS, SPARE_FIELD, Record, is_blank
from comity.dataset.tagging.captured import CapturedPage, CapturedRecord, JudgedRecord
from comity.dataset.tagging.columns import Columns, captured_page, value_of
from comity.dataset.tagging.counts import Tagged, verdict_names
from comity.dataset.tagging.judging import Judge, Judged, JudgedBefore
from comity.dataset.tagging.page_fields import Extractor, is_html, links, title
from comity.dataset.tagging.tag_changes import Tag
from comity.dataset.tags.sources import RawTag, from_json, may_be_tag
from comity.policies.document.document import Content
from comity.policies.document.main_text import main_text
from comity.policies.elements.rules import ElementRules
from comity.policies.syntax.urls import base_url
from comity.policies.tag import TagError, read_tag


class Making(NamedTuple):
    """The options for making records from captures. It can be pickled."""

    columns: Columns = Columns()
    """The names of the fields of records."""
    extractor: Extractor | None = None
    """Extracts the text of a page. None: comity's own extractor."""
    html: bool = False
    """True: keep the source of a page."""


class RecordTagger:
    """Tags records one by one. It can be pickled."""

    fields: Sequence[str] | None = None

    def __init__(self, judge: Judge, making: Making, *, with_evidence: bool = False) -> None:
        """`with_evidence`: True if outcomes have evidence."""
        self.judge = judge
        self.making = making
        self.with_evidence = with_evidence
        self.names = making.columns.names(with_works=judge.question.agent.opt_outs.has_works)

    def __call__(self, records: list[Record]) -> Outcome:
        tagged, output, notes = Tagged(), [], []
        found = Found(self.judge.question.agent.uses)
        for number, record in enumerate(records):
            page, left_out = self.page(record)
            if page is None or left_out:
                tagged.left_out.note(left_out)
                found.drop(_place(number, record, page), [Decision("", "deny", left_out)])
                continue
            judged = (
                self.judge.judged_before(page, record.answer)
                if isinstance(record, JudgedRecord)
                else self.judge.judge(page)
            )
            if judged is None:
                tagged.apart += 1
                found.drop(_place(number, record, page), [Decision("", "deny", APART)])
                notes.append({"record": self._record_without_tag(record)})
                continue
            if isinstance(record, CapturedRecord):
                assert isinstance(judged, Judged)
                tagged.crawlers.note(page.crawler)
                tagged_record = self._of_capture(record, page, judged)
            else:
                tagged_record = self._of_record(record, page, judged)
            field = tag_field(tagged_record)
            tagged.keep(tagged_record, RawTag(tagged_record[field], field))
            tagged.undated += judged.captured_at is None
            for name in verdict_names(tagged_record[field], self.judge.question.agent.uses):
                tagged.verdicts.note(name)
            output.append(tagged_record)
            if self.with_evidence:
                place = _place(number, record, page)._replace(captured_at=judged.captured_at)
                found.keep(place, tagged_record[field])
        if not self.with_evidence:
            return Outcome(output, tagged, notes)
        # Imported here because pyarrow is needed only for evidence and columns.
        from comity.dataset.evidence.tables import evidence_of

        return Outcome(output, tagged, notes, evidence=evidence_of(found))

    def page(self, record: Record) -> tuple[CapturedPage | None, str]:
        """Return the page of a record, and the reason for leaving the record out.

        The reason is e.g. "status 404". It is "" if the record is a page."""
        if isinstance(record, CapturedRecord):
            return record.page, record.left_out
        *singles, types, page_urls = self.names
        url, date, _, headers, status, sha256 = (value_of(record, names)[1] for names in singles)
        values = [value_of(record, [name])[1] for name in types]
        shown_on = [value_of(record, [name])[1] for name in page_urls]
        page = captured_page(url, date, headers, status, sha256, values, shown_on)
        if isinstance(record, SampleRecord):
            page = _with_works(page, record)
        return page, page.left_out

    def _of_capture(self, record: CapturedRecord, page: CapturedPage, judged: Judged) -> Record:
        rules = judged.rules
        fields = (
            dict(record) if page.body is None else {**record, **self._of_page(page, judged, rules)}
        )
        fields[FIELD] = judged.tag(fields, rules, self.earlier(record.earlier))
        return fields

    def _record_without_tag(self, record: Record) -> Record:
        if isinstance(record, CapturedRecord) and record.page and record.page.body is not None:
            return {**record, **self._of_page(record.page, None, None)}
        return dict(record)

    def _of_page(
        self, page: CapturedPage, judged: Judged | None, rules: ElementRules | None
    ) -> Record:
        """Return the fields of a page that the ready spiders write too, from `status` to `html`."""
        assert page.body is not None
        content = Content(page.fields, page.body)
        content_type = next(
            (value for name, value in page.fields if name.lower() == b"content-type"), b""
        ).decode("latin-1")
        is_page = is_html(content_type) and bool(content.text)
        text = ""
        if is_page and self.making.extractor:
            extract = self.making.extractor
            text = (
                judged.make_without_refused(extract, content.text, rules)
                if judged
                else extract(content.text)
            )
        elif is_page:
            text = (rules.text if rules else "") or main_text(content.selector)
        base = base_url(content.text[:4096], page.url) if is_page else ""
        return {
            "status": page.status,
            "content_type": content_type,
            "title": title(content.selector) if is_page else "",
            "text": text,
            "links": links(content.selector, base) if is_page else [],
            "sha256": hashlib.sha256(page.body).hexdigest(),
            **({"html": content.text} if self.making.html and content.text else {}),
        }

    def _of_record(
        self, record: Record, page: CapturedPage, judged: Judged | JudgedBefore
    ) -> Record:
        """Return the tagged record from a table or JSON Lines. Its page is not available."""
        urls, _, texts, *_ = self.names
        url_name, text_name = value_of(record, urls)[0], value_of(record, texts)[0]
        fields = standard(record, page.url, url_name, judged.captured_at, text_name)
        field = tag_field(fields)
        renamed = text_name if text_name in record and text_name not in fields else ""
        earlier = self.earlier([fields[field]] if fields.get(field) else (), renamed)
        fields[field] = judged.tag(
            {name: value for name, value in fields.items() if name != url_name}, None, earlier
        )
        return fields

    def earlier(self, tags: Iterable[Any], renamed: str = "") -> list[Tag | TagError]:
        """Return the tags that a record already has. For an invalid tag, return its TagError.

        `renamed`: the old name of the field that is called `text` now. "" if none was renamed."""
        earlier: list[Tag | TagError] = []
        for tag in tags:
            try:
                raw = read_tag(from_json(tag) if isinstance(tag, str) else tag).raw
                earlier.append(_rename_field(raw, renamed) if renamed and raw["elements"] else raw)
            except TagError as error:
                earlier.append(error)
        return earlier


def _place(number: int, record: Record, page: CapturedPage | None) -> Place:
    url, moment = (page.url, page.captured_at) if page else ("", None)
    if isinstance(record, CapturedRecord):
        return Place(number, url or record.target, moment, record.record_id)
    return Place(number, url, moment)


def _with_works(page: CapturedPage, record: SampleRecord) -> CapturedPage:
    """Return the page of a sample, with its works beside it.

    A work is judged with its content: the metadata in an image may refuse a use, and its SHA-256
    may be in a registry. `page`: the page of the sample as a row of a table."""
    works = [
        page._replace(
            body=work.body, media_types=work.media_type, unread=work.unread, beside=(), sha256=""
        )
        for work in record.works
    ]
    return page._replace(beside=(*page.beside, *works))


def standard(
    record: Mapping[str, Any],
    url: str,
    url_name: str,
    captured_at: datetime | None,
    text_name: str,
) -> Record:
    """Return the record with its URL, date and text in the fields of comity's own records."""
    fields = {
        "text" if name == text_name and "text" not in record else name: value
        for name, value in record.items()
    }
    if url_name not in PAGE_URLS and (
        name := next((name for name in PAGE_URLS if is_blank(fields.get(name))), "")
    ):
        fields[name] = url
    if captured_at is not None and is_blank(fields.get("fetched_at")):
        fields["fetched_at"] = captured_at.isoformat()
    return fields


def _rename_field(tag: Tag, name: str) -> Tag:
    """Return the tag of a record whose field `name` is called `text` now."""
    elements = []
    for element in tag["elements"]:
        spans = [["text", *span[1:]] if span[0] == name else span for span in element["spans"]]
        names = dict.fromkeys(
            "text" if other == name else other for other in element.get("names", ())
        )
        elements.append(element | {"spans": spans} | ({"names": list(names)} if names else {}))
    return tag | {"elements": elements}


def tag_field(record: Mapping[str, Any]) -> str:
    """Return the field for the tag: FIELD, or SPARE_FIELD if FIELD has other data."""
    value = record.get(FIELD)
    return FIELD if value is None or value == {} or may_be_tag(value) else SPARE_FIELD
