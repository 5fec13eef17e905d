"""Parquet files: nothing is lost on the way there and back, and no typed column says more than the
record did."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import gc
import json
import math
import pickle
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.batches import UsableBatches
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files.columns import parquet
from comity.dataset.files.columns.arrow_foreign import proper, readable
from comity.dataset.files.columns.arrow_schema import EXTRA, TAG, adapt, decode, encode, schema_of
from comity.dataset.files.columns.parquet import GROUP_ROWS, Reader, Writer
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError, Record, Unreadable
from comity.dataset.stats import stats
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent
from comity.policies.tag import USE
from tests.dataset.tagging.archives import Policies
from tests.selection import one_in

REASON = {
    "rule": "robots.allow",
    "spec": "RFC 9309",
    "url": "https://a.example/robots.txt",
    "line": 2,
    "text": "Allow: /",
}
ALLOW: Record = {"verdict": "allow", "stated": True, "because": [0]}
RESOURCE = {"role": "credit", "extract": "", "url": "https://a.example/credit", "content": "By A"}
FULL: Record = {
    "schema": 1,
    "agent": "testbot",
    "uses": {
        **dict.fromkeys(("crawl", "follow", "preserve", "present"), ALLOW),
        "index": ALLOW
        | {
            "until": "2026-12-21T12:00:00Z",
            "until_recrawled": False,
            "max_chars": 0,
            "max_words": 9,
        },
        "train": {"verdict": "deny", "stated": False, "because": [1, 0]},
        "present-snippet": ALLOW
        | {
            "prohibited_modifications": ["annotation", "style"],
            "prohibited_contexts": ["within-user-frame"],
            "required_contexts": [],
            "must_use": [RESOURCE | {"role": "", "extract": "meta:description", "url": ""}],
            "must_include": [RESOURCE, RESOURCE],
        },
    },
    "embedded": {"train": ALLOW},
    "elements": [
        {
            "selector": "p.quote",
            "type": "html",
            "deny": ["train", "*"],
            "guide": [{"actions": ["show"], "guidelines": [{"lang": "und", "text": "Nicely"}]}],
            "spans": [["title"], ["links", 0], ["text", 0, 17]],
            "urls": ["https://a.example/i.png"],
            "because": [1],
        },
        {
            "selector": "*",
            "type": "",
            "whole": True,
            "deny": [],
            "guide": [],
            "spans": [],
            "because": [0],
        },
    ],
    "reasons": [REASON, REASON | {"part": "meta robots", "line": 0}],
    "policies": {
        "https://a.example/robots.txt": {
            "status": 200,
            "sha256": "ab" * 32,
            "fetched_at": "2026-11-21T03:00:00.123456+00:00",
        },
        "https://a.example/ai.txt": {"status": 0, "sha256": None, "fetched_at": None},
    },
}


def written(path: Path, batches: list[list[Record]], schema: pa.Schema | None = None) -> Path:
    with Writer(path, schema) as writer:
        encode_apart = pickle.loads(pickle.dumps(writer.encode))  # as another process has it
        for batch in batches:
            writer.write(encode_apart(batch))
    return path


def read(path: Path) -> list[Record | Unreadable]:
    reader = pickle.loads(pickle.dumps(Reader(path)))
    return [record for part in reader.parts() for batch in reader.read(part) for record in batch]


def normal(records: list[Any]) -> list[str]:
    return [json.dumps(record, sort_keys=True) for record in records]


@pytest.mark.requirement("MEET-3", "MEET-5")
def test_a_tag_comes_back_octet_by_octet(tmp_path: Path) -> None:
    records: list[Record] = [{"url": "https://a.example/", "permissions": FULL}]
    path = written(tmp_path / "a.parquet", [records])
    assert normal(read(path)) == normal(records)
    assert pq.read_table(path).column(EXTRA).null_count == 1  # all of it stands in typed columns


@pytest.mark.requirement("MEET-3")
def test_limits_are_moments_for_other_programs(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [[{"permissions": FULL}]])
    query = """
        SELECT u.use, u.until > TIMESTAMPTZ '2026-12-21 11:59:59Z',
            u.until > TIMESTAMPTZ '2026-12-21 12:00:00Z'
        FROM (SELECT unnest(permissions.uses) AS u FROM read_parquet(?))
        WHERE u.until IS NOT NULL"""
    import duckdb

    assert duckdb.execute(query, [str(path)]).fetchall() == [("index", True, False)]


ALTERED: list[Any] = [
    FULL | {"schema": 2},
    FULL | {"schema": True},
    FULL | {"later": 1},
    {key: value for key, value in FULL.items() if key != "policies"},
    FULL | {"uses": {"train": ALLOW | {"until": "2026-12-21T12:00:00+00:00"}}},
    FULL | {"uses": {"train": ALLOW | {"until": "2026-12-21T12:00:00.500Z"}}},
    FULL | {"uses": {"train": ALLOW | {"until": "whenever"}}},
    FULL | {"uses": {"train": ALLOW | {"until": None}}},
    FULL | {"uses": {"train": ALLOW | {"because": [0, None]}}},
    FULL | {"uses": {"train": ALLOW | {"max_chars": 1.0}}},
    FULL | {"uses": {"train": ALLOW | {"max_chars": 2**64}}},
    FULL | {"uses": {"train": {"verdict": "allow"}}},
    FULL | {"uses": {"\ud800": ALLOW}},
    FULL | {"uses": []},
    FULL | {"agent": None},
    FULL | {"elements": [FULL["elements"][0] | {"spans": [["text", 1, 2, 3]]}]},
    FULL | {"elements": [FULL["elements"][0] | {"spans": [[]]}]},
    FULL | {"policies": {"https://a.example/": {"status": 200, "sha256": None}}},
    FULL
    | {
        "policies": {
            "https://a.example/": {
                "status": 200,
                "sha256": None,
                "fetched_at": "2026-11-21T03:00:00Z",
            }
        }
    },
    {},
    [],
    None,
    "deny",
]


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("tag", one_in(2, ALTERED), ids=range(len(ALTERED)))
def test_a_tag_that_is_not_understood_is_kept_where_no_query_sees_a_permission(
    tag: Any, tmp_path: Path
) -> None:
    records = [{"url": "a", "permissions": FULL}, {"url": "b", "permissions": tag}]
    path = written(tmp_path / "a.parquet", [records])
    assert normal(read(path)) == normal(records)
    if tag != FULL | {"schema": 2}:  # which has all the same columns, and says so in one
        assert pq.read_table(path).column("permissions").is_valid().to_pylist() == [True, False]


@pytest.mark.requirement("MEET-3", "ACAP-32")
@pytest.mark.parametrize(
    ("zone", "until"), [(None, "2026-12-21T12:00:00"), ("Asia/Tokyo", "2026-12-21T12:00:00Z")]
)
def test_a_moment_without_an_offset_is_none(tmp_path: Path, zone: str | None, until: str) -> None:
    """The moment of a local time in an unknown place is unknown: a permission that ends then
    permits nothing."""
    path = written(tmp_path / "a.parquet", [[{"url": "a", "permissions": FULL}]])
    table = pq.read_table(path)
    name, column = "permissions", table.column("permissions").combine_chunks()
    table = table.set_column(table.schema.get_field_index(name), name, in_zone(column, zone))
    pq.write_table(table, path)
    [record] = read(path)
    assert isinstance(record, dict)
    assert record["permissions"]["uses"]["index"]["until"] == until
    assert USE.is_valid(record["permissions"]["uses"]["index"]) is (zone is not None)


@pytest.mark.requirement("MEET-3", "ACAP-32")
@pytest.mark.parametrize("until", ["2026-12-21T12:00:00Z", "9999-12-31T23:59:59Z"])
def test_moments_as_spark_writes_them_are_in_utc(tmp_path: Path, until: str) -> None:
    index = FULL["uses"]["index"] | {"until": until}
    record = {"url": "a", "permissions": FULL | {"uses": FULL["uses"] | {"index": index}}}
    table = pq.read_table(written(tmp_path / "a.parquet", [[record]]))
    pq.write_table(
        table, tmp_path / "b.parquet", use_deprecated_int96_timestamps=True, store_schema=False
    )
    assert normal(read(tmp_path / "b.parquet")) == normal([record])


def in_zone(column: Any, zone: str | None) -> Any:
    """The column with all its moments as another program writes them: with this zone, or with
    none."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", zone))
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [in_zone(column.field(number), zone) for number in range(kind.num_fields)],
            names=[field.name for field in kind],
            mask=column.is_null(),
        )
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(
            column.offsets, in_zone(column.values, zone), mask=column.is_null()
        )
    return column


def test_what_does_not_fit_its_column_is_kept(tmp_path: Path) -> None:
    first = [
        {
            "n": 1,
            "f": 0.5,
            "text": "a",
            "ok": True,
            "tags": ["a"],
            "price": {"amount": 1, "unit": "EUR"},
            "deep": [[{"a": [1]}]],
        }
    ]
    later = [
        {
            "n": "one",
            "f": 3,
            "text": None,
            "ok": 1,
            "tags": [1],
            "price": {"amount": 1, "other": 2},
            "deep": [],
        },
        {
            "n": 2**63,
            "f": 2**60 + 1,
            "text": "\ud800",
            "ok": None,
            "tags": [None],
            "price": {},
            "new": {"a": 1},
        },
        {
            "n": -(2**63),
            "f": -0.0,
            "text": "\x00 \N{COOKING}",
            "tags": [],
            "price": {"amount": None},
            "": 1,
            EXTRA: "mine",
            "a\nb": 1,
        },
        {},
        {"n": True, "deep": [[None]], "f": "nan", "price": {"amount": 1.0}},
    ]
    path = written(tmp_path / "a.parquet", [first, later])
    assert read(path) == first + later
    assert pq.read_schema(path).names == [
        "n",
        "f",
        "text",
        "ok",
        "tags",
        "price",
        "deep",
        "permissions",
        EXTRA,
    ]


def test_objects_whose_keys_are_data_become_no_columns() -> None:
    records: list[Record] = [
        {"prices": {f"day {number}": 1.5 for number in range(1000)}, "same": {}, "mixed": number}
        for number in range(2)
    ]
    records[1]["mixed"] = "text"
    schema = schema_of(records)
    assert schema.names == ["permissions", EXTRA]
    assert decode(encode(records)) == records


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(["a", "b", "permissions", EXTRA, ""])
RECORDS = st.lists(st.dictionaries(NAMES, JSON | st.just(FULL), max_size=4), max_size=4)


def same(one: Any, other: Any) -> bool:
    """Equal, and of equal types but for integers among floats."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same(one[key], other[key]) for key in one)
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other) and (
        type(one) is type(other) or {type(one), type(other)} == {int, float}
    )


@given(RECORDS, RECORDS)
def test_any_records_come_back(first: list[Record], later: list[Record]) -> None:
    schema = schema_of(first)
    for records in (first, later):
        for batch in (encode(records, schema), adapt(encode(records), schema)):
            assert batch.schema.equals(schema)
            found = decode(batch)
            assert same(found, records)
            for record, its in zip(found, records, strict=True):
                if its.get("permissions") == FULL:  # else it is a field like others
                    assert isinstance(record, dict)
                    assert normal([record["permissions"]]) == normal([FULL])


def test_row_groups_are_the_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 400)
    records: list[Record] = [{"n": number} for number in range(2 * GROUP_ROWS + 1)]
    path = written(
        tmp_path / "a.parquet",
        [records[start : start + 1000] for start in range(0, len(records), 1000)],
    )
    reader = Reader(path)
    parts = [*reader.parts()]
    assert len(parts) == 3
    assert sum(part.octets for part in parts) == reader.size == path.stat().st_size
    batches = [batch for part in parts for batch in reader.read(part, ["n"])]
    assert max(map(len, batches)) == 400
    assert [record for batch in batches for record in batch] == records
    assert next(iter(reader.read(parts[2]))) == records[-1:]


def test_only_the_fields_that_are_asked_for_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.parquet", [[{"url": "a", "text": "long", "permissions": FULL}, {"url": None}]]
    )
    reader = Reader(path)
    (part,) = reader.parts()
    assert [*reader.read(part, ("url", "fetched_at"))] == [[{"url": "a"}, {"url": None}]]


def test_no_records_are_a_file_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [])
    assert read(path) == []
    assert pq.read_schema(path).field("permissions").type == TAG.type


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [[{"n": 1}]])
    with suppress(ZeroDivisionError), Writer(path) as writer:
        writer.write(writer.encode([{"n": 2}]))
        raise ZeroDivisionError
    assert read(path) == [{"n": 1}]
    assert [one.name for one in tmp_path.iterdir()] == ["a.parquet"]


def test_a_file_that_was_cut_off_is_none(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [[{"n": 1}]])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DatasetError, match=r"a\.parquet is not a Parquet file, or was cut off"):
        [*Reader(path).parts()]


def test_what_was_read_is_free_before_garbage_is_collected(tmp_path: Path) -> None:
    """The schema and the metadata of a file with many row groups are some MB, and refer to each
    other."""
    records = [FULL | {"url": str(number)} for number in range(3)]
    path = written(tmp_path / "a.parquet", [[record | {"permissions": FULL}] for record in records])
    reader = Reader(path)
    gc.collect()
    gc.disable()
    try:
        rows = [row for part in reader.parts() for batch in reader.read(part) for row in batch]
        left = [
            one for one in gc.get_objects() if isinstance(one, (pq.ParquetSchema, pq.FileMetaData))
        ]
    finally:
        gc.enable()
    assert len(rows) == 3
    assert left == []


def test_a_damaged_row_group_loses_no_other(tmp_path: Path) -> None:
    records: list[Record] = [
        {"n": number, "text": f"{number} " * 20} for number in range(2 * GROUP_ROWS)
    ]
    path = written(tmp_path / "a.parquet", [records[:GROUP_ROWS], records[GROUP_ROWS:]])
    column = pq.read_metadata(path).row_group(0).column(1)
    octets = bytearray(path.read_bytes())
    start = column.data_page_offset + 40
    octets[start : start + 200] = bytes(200)
    path.write_bytes(octets)
    found = read(path)
    unreadable = [record for record in found if isinstance(record, Unreadable)]
    assert [one.position for one in unreadable] == ["row 1 and the rest of row group 0"]
    assert found[-GROUP_ROWS:] == records[GROUP_ROWS:]
    before = path.read_bytes()
    with pytest.raises(
        DatasetError,
        match=r"row 1 and the rest of row group 0 cannot be read: .* nothing has changed",
    ):
        expire([path], dt.datetime(2026, 12, 1, tzinfo=dt.UTC))
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("a.parquet", before)]


def test_a_row_that_is_taken_out_as_unreadable_is_kept_whole(tmp_path: Path) -> None:
    octets = pa.array([b"a", b"\xff", b"b"])
    table = pa.table(
        {
            "text": pa.Array.from_buffers(pa.string(), 3, octets.buffers()),
            "permissions": [json.dumps(FULL)] * 3,
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    counts = expire([tmp_path / "a.parquet"], dt.datetime(2026, 12, 1, tzinfo=dt.UTC))
    assert (counts.kept, counts.unreadable, len(read(tmp_path / "a.parquet"))) == (2, 1, 2)
    [line] = (tmp_path / "a.parquet.unreadable.jsonl").read_text().splitlines()
    kept = pa.ipc.open_stream(base64.b64decode(json.loads(line)["base64"])).read_all()
    assert kept.column("text").cast(pa.binary()).to_pylist() == [b"\xff"]
    assert kept.column("permissions").to_pylist() == [json.dumps(FULL)]


def test_a_row_with_a_broken_column_of_others_is_unreadable_alone(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2, 3, 4], EXTRA: ["{", '{"n": 5}', '{"n": null, "m": 1}', None]})
    pq.write_table(table, tmp_path / "a.parquet")
    first, second, *others = read(tmp_path / "a.parquet")
    assert isinstance(first, Unreadable)
    assert isinstance(second, Unreadable)
    assert (first.position, second.position) == ("row 1", "row 2")
    assert json.loads(first.octets) == {"n": 1, EXTRA: "{"}
    assert others == [{"n": 3, "m": 1}, {"n": 4}]


@pytest.mark.requirement("MEET-3")
def test_a_row_with_two_tags_under_one_name_is_unreadable(tmp_path: Path) -> None:
    tag = json.dumps(FULL)
    pq.write_table(
        pa.table({"n": [1], EXTRA: [f'{{"permissions": {tag}, "permissions": {tag}}}']}),
        tmp_path / "a.parquet",
    )
    [unreadable] = read(tmp_path / "a.parquet")
    assert isinstance(unreadable, Unreadable)
    assert unreadable.error.endswith("`permissions` is repeated")


FAR = 9 * 10**18
OF_OTHERS = {
    "year-300000": (pa.array([FAR], pa.timestamp("us")), f"<value out of range: {FAR}>"),
    "unknown-zone": (
        pa.array([1_000_000], pa.timestamp("us", "Foo/Bar")),
        "1970-01-01 00:00:01.000000Z",
    ),
    "far-day": (pa.array([2**31 - 1], pa.date32()), f"<value out of range: {2**31 - 1}>"),
    "long-time": (pa.array([2**60], pa.duration("s")), str(2**60)),
    "view": (pa.array(["a"], pa.string_view()), "a"),
    "views-in-list": (pa.array([["a", None]], pa.list_(pa.string_view())), ["a", None]),
    "views-in-object": (pa.array([{"b": "a"}], pa.struct([("b", pa.binary_view())])), {"b": "a"}),
}
if int(pa.__version__.partition(".")[0]) >= 25:  # others write none of them into a Parquet file
    OF_OTHERS["views-in-view"] = (pa.array([["a"]], pa.list_view(pa.string_view())), ["a"])


@pytest.mark.parametrize("case", one_in(2, OF_OTHERS))
@pytest.mark.parametrize("form", one_in(2, ["jsonl", "parquet"]))
def test_no_column_of_others_ends_a_command(tmp_path: Path, case: str, form: str) -> None:
    array, text = OF_OTHERS[case]
    table = pa.Table.from_batches([encode([{"url": "a", "permissions": FULL}])]).append_column(
        "date", array
    )
    pq.write_table(table, tmp_path / "a.parquet")
    assert [record["date"] for record in read(tmp_path / "a.parquet")] == [text]  # type: ignore[call-overload]
    terms = Terms.of(["index"], now=dt.datetime(2026, 12, 1, tzinfo=dt.UTC))
    assert export([tmp_path / "a.parquet"], tmp_path / f"out.{form}", terms).counts.records == 1
    assert stats([tmp_path / "a.parquet"], terms.now).records == 1
    assert expire([tmp_path / "a.parquet"], terms.now, dry_run=True).records == 1
    judge = Judge(Question.of(Agent("examplebot", uses=("train",)), now=terms.now), Policies({}))
    assert tag_dataset([tmp_path / "a.parquet"], tmp_path / "tagged.jsonl", judge).read == 1


VIEW = pa.string_view()
NESTED: dict[pa.DataType, list[Any]] = {
    pa.list_view(VIEW): [["a"], None, [], ["b", None]],
    pa.large_list_view(VIEW): [["a"], None, [], ["b", None]],
    pa.list_(VIEW, 1): [["a"], None, ["c"], [None]],
    pa.map_(VIEW, VIEW): [[("a", "b")], None, [], [("c", None)]],
    pa.large_list(pa.struct([("a", pa.list_view(VIEW)), ("b", pa.struct([("c", VIEW)]))])): [
        [{"a": ["x", None], "b": {"c": "d"}}],
        None,
        [{"a": None, "b": None}],
        [None],
    ],
}


@pytest.mark.parametrize("type_", NESTED, ids=str)
def test_views_within_others_are_read_as_what_they_show(type_: pa.DataType) -> None:
    array = pa.array(NESTED[type_], type_)
    for batch in (pa.record_batch([array], ["a"]), pa.record_batch([array], ["a"]).slice(1, 3)):
        plain = readable(batch)
        plain.validate(full=True)
        assert plain.to_pylist() == batch.to_pylist()
        # of views Arrow can take none
        assert plain.take(pa.array([2])).to_pylist() == batch.to_pylist()[2:3]
        assert plain.schema == proper(batch.schema).remove(2).remove(1)


@pytest.mark.parametrize(
    "array",
    [
        pa.nulls(1),
        pa.array(['{"m": 1}']).dictionary_encode(),
        pa.array(['{"m": 1}'], pa.string_view()),
        pa.array([b'{"m": 1}']),
        pa.array(['{"m": 1}'], pa.large_string()),
    ],
    ids=str,
)
def test_further_fields_are_texts_of_any_kind(tmp_path: Path, array: Any) -> None:
    pq.write_table(pa.table({"n": [1], EXTRA: array}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [{"n": 1} | ({"m": 1} if array[0].is_valid else {})]
    assert not Reader(tmp_path / "a.parquet").may_mention("until_recrawled")
    assert export(
        [tmp_path / "a.parquet"], tmp_path / "out.jsonl", Terms.of(["index"])
    ).counts.causes == {"no-tag": 1}


def with_repeated_members(name: str) -> pa.StructArray:
    """An object that repeats the members with this name. In a tag, one of them may refuse."""
    return pa.StructArray.from_arrays([pa.array(["deny"]), pa.array(["allow"])], names=[name, name])


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (pa.table([[1], [2]], names=["n", "n"]), "two of its columns are called `n`"),
        (pa.table({"n": [1], EXTRA: [1]}), "its column extra_json is not text"),
        (pa.table({"n": with_repeated_members("uses")}), "two of its columns are called `n.uses`"),
        (
            pa.table({"n": pa.ListArray.from_arrays([0, 1], with_repeated_members("verdict"))}),
            r".* called `n\.\w+\.verdict`",
        ),
    ],
)
def test_columns_that_no_record_can_have(tmp_path: Path, table: Any, why: str) -> None:
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match=f"a.parquet cannot be used: {why}"):
        read(tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match=why):
        UsableBatches(Terms.of(["index"]))(table)


@pytest.mark.requirement("MEET-3")
def test_what_pandas_writes_again_is_read_as_before(tmp_path: Path) -> None:
    records: list[Record] = [
        {"n": 1, "permissions": FULL},
        {"n": 2, "permissions": FULL | {"elements": []}},
    ]
    path, other, third = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    import pandas as pd

    pd.read_parquet(written(path, [records])).to_parquet(other)
    assert normal(read(other)) == normal(records)
    reader = Reader(other)
    with Writer(third, reader.schema) as writer:
        for part in reader.parts():
            for batch, _ in reader.read_columns(part):
                writer.write(batch)
    assert normal(read(third)) == normal(records)
    assert pq.read_schema(third).field("permissions").type == TAG.type


@pytest.mark.requirement("MEET-3")
def test_what_duckdb_writes_again_is_read_as_before(tmp_path: Path) -> None:
    records: list[Record] = [
        {"n": 1, "permissions": FULL},
        {"n": 2, "permissions": FULL | {"embedded": {}}},
        {"n": 3},
    ]
    path, other = written(tmp_path / "a.parquet", [records]), tmp_path / "b.parquet"
    import duckdb

    duckdb.execute(f"COPY (SELECT * FROM '{path}') TO '{other}' (FORMAT parquet)")
    assert normal(read(other)) == normal(records)


@pytest.mark.requirement("MEET-3")
def test_tags_in_text_and_types_of_other_programs_are_read(tmp_path: Path) -> None:
    table = pa.table(
        {
            "permissions": [json.dumps(FULL), "no JSON"],
            "day": [dt.date(2026, 11, 21), None],
            "price": [decimal.Decimal("1.50"), None],
            "raw": [b"a\xff", None],
            "small": pa.array([1, None], pa.uint8()),
            "label": pa.array(["a", None]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    first, second = read(tmp_path / "a.parquet")
    assert isinstance(first, dict)
    # unchanged: only readers of tags parse it
    assert json.loads(str(first.pop("permissions"))) == FULL
    assert first == {
        "day": "2026-11-21",
        "price": "1.50",
        "raw": "a\\xff",
        "small": 1,
        "label": "a",
    }
    assert second == {"permissions": "no JSON"}
    again = written(
        tmp_path / "b.parquet",
        [[{"small": 1, "permissions": FULL, "day": "2026-11-21"}]],
        Reader(tmp_path / "a.parquet").schema,
    )
    assert read(again) == [{"small": 1, "permissions": FULL, "day": "2026-11-21"}]


@pytest.mark.requirement("SEC-1", "SEC-6")
def test_a_text_that_is_no_utf_8_is_one_row_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    urls = pa.array([b"a", b"\xff\xfe", b"c"], pa.binary())
    pq.write_table(pa.table({"url": urls.view(pa.string())}), path)
    reader = Reader(path)
    records = [one for part in reader.parts() for batch in reader.read(part) for one in batch]
    assert [one.position if isinstance(one, Unreadable) else one["url"] for one in records] == [
        "a",
        "row 2",
        "c",
    ]


@pytest.mark.requirement("SEC-1", "SEC-6")
def test_what_a_damaged_file_says_of_itself_is_an_error(tmp_path: Path, *, in_full: bool) -> None:
    """Each octet of its table of contents, damaged in one way."""
    path = tmp_path / "a.parquet"
    with Writer(path) as writer:
        writer.write(encode([{"url": "a", "text": "b"}]))
    whole = path.read_bytes()
    for place in range(len(whole) - 400, len(whole), 1 if in_full else 7):
        path.write_bytes(whole[:place] + bytes((whole[place] ^ 0x95,)) + whole[place + 1 :])
        reader = Reader(path)
        with suppress(DatasetError):
            reader.may_mention("until_recrawled")
            for part in reader.parts():
                assert all(
                    isinstance(one, Unreadable | dict)
                    for batch in reader.read(part)
                    for one in batch
                )


def test_fields_come_in_the_order_of_the_columns() -> None:
    """Fields that all records of a batch have come first.

    A limit of length depends on the order."""
    names = [chr(letter) for letter in range(ord("a"), ord("z"))]
    batch = encode([dict.fromkeys(names, 1) | {"z": 1}, {"z": 1}])
    first, _ = decode(batch)
    assert isinstance(first, dict)
    assert [*first] == ["z", *names]


@pytest.mark.requirement("MEET-3")
def test_the_queries_of_the_page_find_the_permitted_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks for pandas and Hugging Face datasets run as they stand in docs/datasets.md."""

    def tagged(number: int, verdict: str) -> Record:
        index = FULL["uses"]["index"] | {"verdict": verdict}
        return {"n": number, "permissions": FULL | {"uses": FULL["uses"] | {"index": index}}}

    unknown = {"n": 4, "permissions": FULL | {"schema": 99}}
    records = [tagged(1, "deny"), tagged(2, "allow"), {"n": 3}, unknown, tagged(5, "allow")]
    written(tmp_path / "items.parquet", [records])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    page = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text("utf-8")
    blocks = re.findall(
        r"^#### (pandas|Hugging Face datasets)\n\n```python\n(.*?)^```",
        page,
        re.MULTILINE | re.DOTALL,
    )
    assert len(blocks) == 2
    for _, block in blocks:
        names: dict[str, Any] = {}
        exec(block, names)
        assert list(names["indexed"]["n"]) == [2, 5]
