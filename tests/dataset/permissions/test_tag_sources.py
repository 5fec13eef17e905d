"""Datasets find the tags in every place where a crawl can put them.

If several tags may be meant, nothing is permitted."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset import manifest
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files.columns.arrow_schema import EXTRA, TAG, decode, encode, schema_of
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.job import JobOptions
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import ARRIVED_AT, REQUEST, DatasetError, Record, Unreadable
from comity.dataset.sidecar import Sidecar, item_id, row
from comity.dataset.stats import stats
from comity.dataset.tags.setting import TagSetting
from comity.dataset.tags.sources import GUESSED, InField, TagSource, read
from comity.policies import PolicyError
from comity.policies.tag import TagError
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("permissions", ("field", "permissions"), "permissions"),
        ("rights", ("field", "rights"), "rights"),
        (" field:rights ", ("field", "rights"), "rights"),
        ("field:json", ("field", "json"), "field:json"),
        ("field:off", ("field", "off"), "field:off"),
        ("json", ("json", "permissions"), "json:permissions"),
        ("json:rights", ("json", "rights"), "json:rights"),
        ("sidecar:tags.jsonl", ("sidecar", "tags.jsonl"), "sidecar:tags.jsonl"),
        (
            "sidecar:s3://bucket/%(name)s.jsonl",
            ("sidecar", "s3://bucket/%(name)s.jsonl"),
            "sidecar:s3://bucket/%(name)s.jsonl",
        ),
        ("sidecar:C:\\tags.jsonl", ("sidecar", "C:\\tags.jsonl"), "sidecar:C:\\tags.jsonl"),
        ("off", ("off", ""), "off"),
    ],
)
def test_setting(text: str, expected: tuple[str, str], shown: str) -> None:
    setting = TagSetting.parse(text, subject="COMITY_TAG")
    assert setting == expected
    assert str(setting) == shown
    assert TagSetting.parse(shown, subject="COMITY_TAG") == setting


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sidecar",
        "sidecar:",
        "json:",
        "off:x",
        "field:",
        "a b",
        "1st",
        "class",
        "_own",
        "a:b",
        "é",
    ],
)
def test_setting_that_makes_no_sense(text: str) -> None:
    with pytest.raises(
        PolicyError, match=r"^COMITY_TAG `.*` (is not a place|names no file).*: write "
    ):
        TagSetting.parse(text, subject="COMITY_TAG")


def moved(record: Record, field: str, *, as_text: bool = False) -> Record:
    """With the tag in another field."""
    tag = record.pop("permissions")
    return record | {field: json.dumps(tag) if as_text else tag}


@pytest.mark.parametrize("field", ["permissions", "comity_permissions", "rights"])
def test_the_only_tag_is_found(make_record: MakeRecord, field: str) -> None:
    record = moved(make_record(train={}), field)
    assert read(record).uses["train"].is_allowed
    assert InField(field).find(record).field == field


@pytest.mark.parametrize(
    ("field", "source"), [("permissions", GUESSED), ("rights", InField("rights"))]
)
def test_a_tag_that_is_text(make_record: MakeRecord, field: str, source: TagSource) -> None:
    record = moved(make_record(train={}), field, as_text=True)
    assert read(record, source).uses["train"].is_allowed
    for text in ("{", "text", "[]", "1", "null", '{"schema": 1}', '"{}"'):
        with pytest.raises(TagError, match="invalid-tag:keys"):
            read(record | {field: text}, source)


def test_data_of_the_items_own_beside_the_tag(make_record: MakeRecord) -> None:
    record = moved(make_record(train={}), "comity_permissions")
    for own in ("rw-r--r--", ["read"], {"read": True}, 7, {"schema": 1}):
        assert read(record | {"permissions": own}).uses["train"].is_allowed


@pytest.mark.parametrize(
    ("start", "end"), [("", ""), (" \n", ""), ("", ', "uses": {}'), ("", ', "cut')]
)
def test_a_text_that_is_meant_as_a_tag_is_one_of_two(
    make_record: MakeRecord, start: str, end: str
) -> None:
    refusal = json.dumps(make_record(train=None)["permissions"])
    text = start + refusal.removesuffix("}") + (end if "cut" in end else f"{end}}}")
    record = moved(make_record(train={}), "comity_permissions", as_text=True) | {
        "permissions": text
    }
    with pytest.raises(TagError, match="several-tags"):
        read(record)


def test_a_tag_that_says_two_things_permits_nothing(make_record: MakeRecord) -> None:
    record = moved(make_record(train=None), "permissions", as_text=True)
    uses = json.dumps(make_record(train={})["permissions"]["uses"])
    record["permissions"] = record["permissions"].removesuffix("}") + f', "uses": {uses}}}'
    with pytest.raises(TagError, match="invalid-tag:keys"):
        read(record)


@pytest.mark.requirement("MEET-3")
def test_of_two_tags_nobody_knows_which_counts(make_record: MakeRecord) -> None:
    """A site can put one into the data that a spider takes over as they are."""
    forged = make_record(train={})["permissions"]
    record = moved(make_record(train=None), "rights") | {"data": forged}
    with pytest.raises(TagError, match="several-tags"):
        read(record)
    assert apply_terms(record, Terms.of(["train"], now=NOW)).cause == "several-tags"
    assert (
        apply_terms(record, Terms.of(["train"], now=NOW, tags=InField("rights"))).cause
        == "deny:acap.disallow"
    )
    with pytest.raises(TagError, match="no-tag"):
        read({"url": "a", "data": forged}, InField("rights"))


# In a file of its own


def sidecar(path: Path, *rows: tuple[Record, str, Any]) -> Sidecar:
    path.write_bytes(b"".join(row(record, url, tag) for record, url, tag in rows))
    return Sidecar(path)


def apart(record: Record) -> tuple[Record, dict[str, Any]]:
    tag: dict[str, Any] = record.pop("permissions")
    return record, tag


def test_rows_are_found_by_what_the_item_says(tmp_path: Path, make_record: MakeRecord) -> None:
    pairs = [
        apart(make_record(fields={"text": str(n)}, train={} if n % 2 else None)) for n in range(100)
    ]
    source = sidecar(tmp_path / "tags.jsonl", *((record, "u", tag) for record, tag in pairs))
    source = pickle.loads(pickle.dumps(source))
    assert len(source) == 100
    for record, tag in reversed(pairs):
        assert source.find(dict(reversed(record.items()))).raw == tag
    with pytest.raises(TagError, match="no-tag"):
        source.find(pairs[0][0] | {"text": "another"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), max_size=3))
def test_the_id_outlasts_lines_and_columns(records: list[Record]) -> None:
    ids = [item_id(record) for record in records]
    assert [item_id(json.loads(json.dumps(record))) for record in records] == ids
    added = {REQUEST: "ab", ARRIVED_AT: "2026-11-21T12:00:00+00:00"}
    assert [item_id(record | added) for record in records] == ids
    assert [
        item_id(record) for record in decode(encode(records)) if not isinstance(record, Unreadable)
    ] == ids
    assert [
        item_id({key: value for key, value in record.items() if value is not None})
        for record in records
    ] == ids


def test_other_contents_have_other_ids() -> None:
    different: list[Record] = [
        {},
        {"a": 1},
        {"a": "1"},
        {"a": True},
        {"a": [1]},
        {"a": {}},
        {"b": 1},
        {"a": 1.5},
        {"a": ""},
    ]
    assert len({item_id(record) for record in different}) == len(different)


@pytest.mark.requirement("MEET-3")
def test_content_of_several_pages_is_bound_by_all_of_them(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    record, permits = apart(make_record(train={}, index={"until": "2027-01-01T00:00:00Z"}))
    _, refuses = apart(make_record(train=None, index={}))
    source = sidecar(tmp_path / "tags.jsonl", (record, "a", permits), (record, "b", refuses))
    tag = read(record, source)
    assert not tag.uses["train"].is_allowed
    assert tag.uses["index"].qualifiers.until is not None


def test_what_is_too_deep_for_a_row_has_none(tmp_path: Path) -> None:
    source = sidecar(tmp_path / "tags.jsonl", ({"a": 1}, "a", {}))
    deep: Any = 1
    for _ in range(2_000):
        deep = [deep]
    with pytest.raises(TagError, match="no-tag"):
        source.find({"a": deep})


def test_of_one_page_the_last_row_counts(tmp_path: Path, make_record: MakeRecord) -> None:
    record, permits = apart(make_record(train={}))
    _, refuses = apart(make_record(train=None))
    for first, last in ((permits, refuses), (refuses, permits)):
        source = sidecar(tmp_path / "tags.jsonl", (record, "a", first), (record, "a", last))
        assert source.find(record).raw == last


@pytest.mark.requirement("MEET-3")
def test_a_row_that_was_cut_off_permits_nothing(
    tmp_path: Path, make_record: MakeRecord, *, in_full: bool
) -> None:
    """A killed process may stop at any octet, and the next process may write anything behind it."""
    record, tag = apart(make_record(train={}))
    whole, other = row(record, "a", tag), row(record, "b", tag)
    path = tmp_path / "tags.jsonl"
    for end in range(0, len(whole) - 1, 1 if in_full else 7):
        for octets in (whole[:end] + b"\n" + other, other + whole[:end]):
            path.write_bytes(octets)
            try:
                uses = read(record, Sidecar(path)).uses
            except TagError as error:
                assert str(error).startswith("invalid-tag")  # noqa: PT017  # either may be
            else:
                assert uses["train"].is_allowed
                # nothing of it says that it is about this item
                assert end < len('{"id":"') + 64 + 1
    path.write_bytes(whole[:-20] + b"\n" + whole)  # the page was fetched again
    assert read(record, Sidecar(path)).uses["train"].is_allowed


@pytest.mark.usefixtures("processes")
def test_several_processes_read_it(tmp_path: Path, make_record: MakeRecord) -> None:
    pairs = [
        apart(make_record(fields={"text": str(n)}, train={} if n % 2 else None)) for n in range(200)
    ]
    source = sidecar(tmp_path / "tags.jsonl", *((record, "u", tag) for record, tag in pairs))
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(record) + "\n" for record, _ in pairs))
    terms = Terms.of(["train"], now=NOW, tags=source)
    assert (
        export(
            [tmp_path / "items.jsonl"], tmp_path / "out.jsonl", terms, JobOptions(workers=2)
        ).counts.kept
        == 100
    )


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("pages", [1, 9])
@pytest.mark.parametrize("is_cut", [False, True])
def test_rows_of_the_same_content_are_read_once(
    tmp_path: Path,
    make_record: MakeRecord,
    monkeypatch: pytest.MonkeyPatch,
    pages: int,
    *,
    is_cut: bool,
) -> None:
    tag = make_record(train={})["permissions"]
    source = sidecar(
        tmp_path / "tags.jsonl", *(({"a": 1}, str(number % pages), tag) for number in range(9))
    )
    if is_cut:
        source.path.write_bytes(source.path.read_bytes()[:-9])
    reads: list[int] = []
    line = Sidecar._line

    def noted(source: Sidecar, offset: int) -> bytes:
        reads.append(offset)
        return line(source, offset)

    monkeypatch.setattr(Sidecar, "_line", noted)
    for _ in range(9):
        if is_cut:
            with pytest.raises(TagError, match="invalid-tag"):
                read({"a": 1}, source)
        else:
            assert read({"a": 1}, source).uses["train"].is_allowed
    assert len(reads) == 9
    assert source.find({"a": 1}).field == "permissions"
    assert len(pickle.loads(pickle.dumps(source))) == 9


def test_a_sidecar_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"tags\.jsonl cannot be read: No such file"):
        Sidecar(tmp_path / "tags.jsonl")


# As datasets


PLACES = ["permissions", "rights", "json:permissions", "json:rights", "sidecar"]


def stored(
    tmp_path: Path, records: list[Record], setting: str, ending: str
) -> tuple[Path, TagSource]:
    """The records as a crawl with this COMITY_TAG leaves them."""
    kind, _, name = setting.rpartition(":")
    source: TagSource = InField(name)
    if setting == "sidecar":
        pairs = [apart(record) for record in records]
        source = sidecar(
            tmp_path / "tags.jsonl", *((record, str(record["url"]), tag) for record, tag in pairs)
        )
        records = [record for record, _ in pairs]
    else:
        records = [moved(record, name, as_text=kind == "json") for record in records]
    path = tmp_path / f"items{ending}"
    with open_writer(path) as writer:
        writer.write(writer.encode(records))
    return path, source


def load(path: Path) -> list[Record]:
    reader = open_reader(path)
    return [
        one
        for part in reader.parts()
        for batch in reader.read(part)
        for one in batch
        if not isinstance(one, Unreadable)
    ]


def some(make_record: MakeRecord) -> list[Record]:
    quote = {"spans": [["text", 0, 4]]}
    return [
        make_record(train={}, fields={"url": "https://example.com/1"}),
        make_record(train=None, fields={"url": "https://example.com/2"}),
        make_record(train={}, elements=[quote], fields={"url": "https://example.com/3"}),
        make_record(
            train={"until": "2026-11-30T00:00:00Z"}, fields={"url": "https://example.com/4"}
        ),
        make_record(train={"max_words": 2}, fields={"url": "https://example.com/5"}),
        make_record(train={"until_recrawled": True}, fields={"url": "https://example.com/6"}),
        make_record(
            train={},
            fields={
                "url": "https://example.com/6",
                "fetched_at": "2026-11-25T00:00:00+00:00",
                "text": "Later.",
            },
        ),
    ]


@pytest.mark.requirement("MEET-3", "MEET-5")
@pytest.mark.parametrize("ending", one_in(2, [".jsonl", ".parquet"]))
@pytest.mark.parametrize("setting", PLACES)
def test_an_export_is_the_same_wherever_the_tags_are(
    tmp_path: Path, make_record: MakeRecord, setting: str, ending: str
) -> None:
    plain, _ = stored(tmp_path, some(make_record), "permissions", ".jsonl")
    terms = Terms.of(["train"], now=NOW)
    expected = export([plain], tmp_path / "expected.jsonl", terms)
    path, source = stored(tmp_path, some(make_record), setting, ending)
    for out in ("out.jsonl", "out.parquet"):
        exported = export([path], tmp_path / out, terms._replace(tags=source))
        assert vars(exported.counts) == vars(expected.counts)
        name = "permissions" if setting == "sidecar" else setting.rpartition(":")[2]
        for record, other in zip(
            load(tmp_path / out), load(tmp_path / "expected.jsonl"), strict=True
        ):
            tag = record.pop(name)
            assert isinstance(tag, str) == setting.startswith("json")
            assert (json.loads(tag) if isinstance(tag, str) else tag) == other.pop("permissions")
            assert record == {
                key: value
                for key, value in other.items()
                if value is not None or ending == ".jsonl"
            } | ({"html": None} if "html" in record else {})
        described = manifest.read(tmp_path / out)
        assert described
        fields = {field["name"]: field for field in described["recordSet"][0]["field"]}
        assert ("subField" in fields[name]) is not setting.startswith("json")
        again = stats([tmp_path / out], NOW, tags=InField(name))
        assert (again.records, again.causes) == (exported.counts.kept, {})


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("ending", one_in(2, [".jsonl", ".parquet"]))
@pytest.mark.parametrize("setting", PLACES)
def test_what_expires_goes_and_the_tags_stay_where_they_are(
    tmp_path: Path, make_record: MakeRecord, setting: str, ending: str
) -> None:
    ended = {"until": "2026-11-30T00:00:00Z"}
    records = [
        make_record(preserve={}, fields={"url": "https://example.com/1"}),
        make_record(preserve=ended, fields={"url": "https://example.com/2"}),
    ]
    path, source = stored(tmp_path, records, setting, ending)
    before = load(path)
    counts = expire([path], NOW, tags=source)
    assert (counts.kept, counts.causes) == (1, {"expired:preserve": 1})
    assert load(path) == before[:1]


def test_an_export_of_a_crawl_with_a_sidecar_expires_with_it(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    path, source = stored(tmp_path, [make_record(train={})], "sidecar", ".jsonl")
    out = tmp_path / "train.jsonl"
    export([path], out, Terms.of(["train"], now=NOW, tags=source))
    assert expire([path, out], NOW, tags=source).causes == {}


def test_columns_of_tags_are_typed_under_any_name(tmp_path: Path, make_record: MakeRecord) -> None:
    path, _ = stored(tmp_path, some(make_record), "rights", ".parquet")
    schema = pq.read_schema(path)
    assert schema.field("rights").type == TAG.type
    assert "permissions" not in schema.names
    schema = schema_of([moved(make_record(), "rights") | {"permissions": "rw-"}])
    assert (schema.field("rights").type, schema.field("permissions").type) == (TAG.type, "string")
    schema = schema_of([{"permissions": "rw-"}])
    assert schema.field("comity_permissions").type == TAG.type
    assert schema_of([{"permissions": "rw-"}], tagged=False).names == ["permissions", EXTRA]
