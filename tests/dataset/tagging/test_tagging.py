"""Whole datasets of others: the tagged records, the manifest, and that nothing gets lost."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comity.dataset import manifest, tagger
from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files.columns.arrow_schema import EXTRA, decode, encode, schema_of
from comity.dataset.files.formats import open_reader
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.stats import stats
from comity.dataset.tagging.captured import fields_of, moment_of
from comity.dataset.tagging.columns import Columns
from comity.dataset.tagging.counts import MAX_NAMES, NameCounts
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent, Verdict
from comity.policies.formats import WELL_KNOWN
from tests.dataset.tagging.archives import NOW, Policies, http, page, record, write
from tests.selection import one_in

MakeRecord = Callable[..., dict[str, Any]]

OWN = Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW})
SITES = {
    "https://a.test": {"/robots.txt": "User-agent: *\nAllow: /\n"},
    "https://b.test": {
        "/robots.txt": "User-agent: *\nDisallow: /private\nContent-Usage: /ai train-ai=n\n"
    },
    "https://c.test": {
        "/ai.txt": "User-agent: *\n  Path: /\n    Element: p.quote\n      Disallow: train\n"
    },
}
URLS = [
    "https://a.test/1",
    "https://a.test/2",
    "https://b.test/private/1",
    "https://b.test/ai/1",
    "https://b.test/1",
    "https://c.test/1",
    "https://unknown.test/1",
    "not a URL",
]
ALLOWED = ["https://a.test/1", "https://a.test/2", "https://b.test/1", "https://c.test/1"]
DATE = "2024-06-01T00:00:00Z"


def judge(agent: Agent = OWN, **question: Any) -> Judge:
    return Judge(Question.of(agent, now=NOW, **question), Policies(SITES))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def read(path: Path) -> list[dict[str, Any]]:
    reader = open_reader(path)
    return [one for part in reader.parts() for batch in reader.read(part) for one in batch]  # type: ignore[misc]


def allowed(records: list[dict[str, Any]], use: str = "train") -> list[str]:
    return [one["url"] for one in records if one["permissions"]["uses"][use]["verdict"] == "allow"]


def jsonl(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def parquet(path: Path, records: list[dict[str, Any]]) -> Path:
    names = dict.fromkeys(name for one in records for name in one)
    table = pa.table({name: [one.get(name) for one in records] for name in names})
    pq.write_table(table, path, row_group_size=3)
    return path


# The fields of usual sets
SHAPES: dict[str, Any] = {
    "ours": lambda url: {"url": url, "fetched_at": DATE, "text": "Hello"},
    "fineweb": lambda url: {
        "text": "Hello",
        "id": "<urn:uuid:1>",
        "dump": "CC-MAIN-2024-22",
        "url": url,
        "date": DATE,
    },
    "c4": lambda url: {"text": "Hello", "timestamp": DATE, "url": url},
    "redpajama": lambda url: {
        "text": "Hello",
        "meta": {"url": url, "timestamp": DATE, "source": "cc"},
    },
    "redpajama-text": lambda url: {
        "text": "Hello",
        "meta": json.dumps({"url": url, "timestamp": DATE}),
    },
    "redpajama-2": lambda url: {
        "raw_content": "Hello",
        "url": url,
        "date_download": DATE,
        "digest": "sha1:A",
    },
    "columnar-index": lambda url: {
        "url": url,
        "fetch_time": DATE,
        "fetch_status": 200,
        "text": "Hello",
    },
    "archive": lambda url: {"target_uri": url, "warc_date": "20240601000000", "content": "Hello"},
}


@pytest.mark.requirement("SEC-1")
def test_a_base_that_is_no_url_ends_nothing(tmp_path: Path) -> None:
    body = b'<base href="http://[x/"><title>T</title><p>Hello <a href="b" rel="nofollow">there</a>'
    archive = write(tmp_path / "in.warc", page(body, url=URLS[0]), page(body, url=URLS[5]))
    assert tag_dataset([archive], tmp_path / "out.jsonl", judge()).read == 2
    assert [one["links"] for one in read(tmp_path / "out.jsonl")] == [
        ["https://a.test/b"],
        ["https://c.test/b"],
    ]


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize("shape", one_in(3, SHAPES))
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("output", one_in(2, ["out.jsonl", "out.parquet"]))
def test_usual_sets(tmp_path: Path, shape: str, form: str, output: str) -> None:
    records = [SHAPES[shape](url) for url in URLS]
    path = (jsonl if form == "jsonl" else parquet)(tmp_path / f"in.{form}", records)
    tagged = tag_dataset([path], tmp_path / output, judge())
    found = read(tmp_path / output)
    assert (tagged.read, tagged.counts.kept, len(found)) == (8, 8, 8)
    assert allowed(found) == ALLOWED
    assert {one["text"] for one in found} == {"Hello"}
    assert [datetime.fromisoformat(one["fetched_at"]) for one in found] == [
        datetime.fromisoformat(DATE)
    ] * 8
    for before, after in zip(records, found, strict=True):
        renamed = {
            ("text" if name in ("raw_content", "content") else name): value
            for name, value in before.items()
        }
        assert {name: after[name] for name in renamed} == renamed
    causes = [
        one["permissions"]["reasons"][one["permissions"]["uses"]["train"]["because"][0]]["rule"]
        for one in found
    ]
    assert causes[2:4] == ["robots.disallow", "aipref.refuses"] or causes[2] == "robots.disallow"
    assert causes[6:] == ["comity.no-policies", "comity.no-url"]


INDEX = pa.schema(
    [
        ("url", pa.string()),
        ("fetch_time", pa.timestamp("ms", "UTC")),
        ("fetch_status", pa.int16()),
        ("content_mime_type", pa.string()),
        ("content_mime_detected", pa.string()),
    ]
)


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_the_columnar_index_of_common_crawl(tmp_path: Path, form: str) -> None:
    statuses = [200, 404, 301, 206, 999, None, 203]
    rows = [
        {"url": url, "fetch_time": DATE, "fetch_status": status}
        for url, status in zip([URLS[0]] * 5 + [URLS[2], URLS[1]], statuses, strict=True)
    ]
    path = jsonl(tmp_path / "in.jsonl", rows)
    if form == "parquet":
        moment = datetime.fromisoformat(DATE)
        table = pa.Table.from_pylist([row | {"fetch_time": moment} for row in rows], INDEX)
        pq.write_table(table, path := tmp_path / "in.parquet")
    tagged = tag_dataset([path], tmp_path / "out.jsonl", judge())
    assert dict(tagged.left_out) == {"status 404": 1, "status 301": 1}
    found = lines(tmp_path / "out.jsonl")
    causes = [
        one["permissions"]["reasons"][one["permissions"]["uses"]["train"]["because"][0]]["rule"]
        for one in found
    ]
    assert causes == [
        "comity.default",
        "comity.unread",
        "comity.unread",
        "robots.disallow",
        "comity.default",
    ]
    assert {datetime.fromisoformat(one["fetched_at"]) for one in found} == {
        datetime.fromisoformat(DATE)
    }
    assert (tagged.read, tagged.undated) == (7, 0)


@pytest.mark.requirement("TAG-1", "AIT-4")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({}, 0),
        ({"content_mime_type": "text/html"}, 1),
        ({"content_mime_detected": "application/xhtml+xml"}, 0),
        ({"content_mime_type": "text/html", "content_mime_detected": "application/json"}, 0),
        ({"content_mime_type": "page"}, 0),
        ({"content_mime_type": "image/png", "headers": "Content-Type: text/xml"}, 0),
        ({"content_mime_type": "text/xml", "headers": "Content-Type: image/png"}, 1),
    ],
)
def test_media_types_of_tables(
    tmp_path: Path, form: str, fields: dict[str, str], number: int
) -> None:
    """Rules for XML and JSON count for pages of these types, and for pages of no known type."""
    rules = "".join(
        f"  Path: / {name}\n    Element: *\n      Disallow: train\n" for name in ("xml", "json")
    )
    policies = Policies({"https://a.test": {"/ai.txt": f"User-agent: *\n{rules}"}})
    made: Callable[..., Path] = jsonl if form == "jsonl" else parquet
    path = made(tmp_path / f"in.{form}", [{"url": URLS[0], "date": DATE, **fields}])
    tag_dataset([path], tmp_path / "out.jsonl", Judge(Question.of(OWN, now=NOW), policies))
    exported = export(
        [tmp_path / "out.jsonl"], tmp_path / "exported.jsonl", Terms.of(["train"], now=NOW)
    )
    assert exported.counts.kept == number


@pytest.mark.requirement("TAG-2", "TAG-3")
@pytest.mark.parametrize("form", ["jsonl", "parquet", "warc"])
def test_a_date_for_records_without_one(tmp_path: Path, form: str) -> None:
    """It is the date of the policies, and `fetched_at` of the records. Dates of records count
    first."""
    dates = [None, "2020-01-01", "18/05/2024"]
    if form == "warc":
        path = write(
            tmp_path / "in.warc", *(page(url=URLS[0], WARC_Date=date or "") for date in dates)
        )
    else:
        made: Callable[..., Path] = jsonl if form == "jsonl" else parquet
        path = made(tmp_path / f"in.{form}", [{"URL": URLS[0], "date": date} for date in dates])
    undated = tag_dataset([path], tmp_path / "out.jsonl", judge())
    assert (undated.undated, allowed(lines(tmp_path / "out.jsonl"))) == (2, [])
    dated = tag_dataset([path], tmp_path / "out.jsonl", judge(captured_at="2024-06-01"))
    found = lines(tmp_path / "out.jsonl")
    verdicts = [one["permissions"]["uses"]["train"]["verdict"] for one in found]
    assert (dated.undated, verdicts) == (0, ["allow", "deny", "allow"])
    if form != "warc":
        assert [one["fetched_at"][:10] for one in found] == [
            "2024-06-01",
            "2020-01-01",
            "2024-06-01",
        ]
    described = manifest.read(tmp_path / "out.jsonl")
    assert described is not None
    assert described["comity:tagged"]["capturedAt"] == "2024-06-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("date", "message"),
    [
        ("May", "`May` is not a date"),
        ("2099-01-01", "is in the future"),
        (0, "is before the web began"),
    ],
)
def test_a_date_for_all_that_makes_no_sense(date: object, message: str) -> None:
    with pytest.raises(DatasetError, match=f"{message}.*: write the day of the capture"):
        judge(captured_at=date)


@pytest.mark.requirement("TAG-1")
def test_what_was_tagged_can_be_exported_counted_and_expired(tmp_path: Path) -> None:
    pages = [page(b"<main><p>Hello<p class=quote>Quoted</main>", url=url) for url in URLS]
    path = write(tmp_path / "in.warc.gz", *pages)
    tagged = tag_dataset([path], tmp_path / "tagged.parquet", judge())
    assert (tagged.read, tagged.counts.kept, dict(tagged.left_out)) == (8, 7, {"no URL": 1})
    exported = export(
        [tmp_path / "tagged.parquet"], tmp_path / "out.jsonl", Terms.of(["train"], now=NOW)
    )
    assert exported.counts.kept == 4
    assert [(one["url"], one["text"]) for one in lines(tmp_path / "out.jsonl")] == [
        (url, "Hello\n" if "c.test" in url else "Hello\nQuoted") for url in ALLOWED
    ]
    assert (
        stats([tmp_path / "tagged.parquet"], NOW, by="origin")
        .groups["https://b.test"]["train"]
        .refused
        == 2
    )
    assert expire([tmp_path / "tagged.parquet"], NOW).kept == 7


@pytest.mark.requirement("TAG-2", "TAG-3")
def test_the_manifest_says_for_whom_and_by_what(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.warc",
        *(page(url=url) for url in URLS[:3]),
        page(url="https://a.test/3")[:-20],
    )
    question = {"as_of": "both", "missing": "allow", "captured_by": "CCBot", "also": ["GPTBot"]}
    said = Policies(
        {"https://a.test": SITES["https://a.test"]},
        {"https://a.test": {"/robots.txt": "User-agent: *\nDisallow: /\n"}},
    )
    asked = Judge(Question.of(OWN, now=NOW, **question), said)
    tagged = tag_dataset([path], tmp_path / "out.jsonl", asked, sources=["robots.warc.gz"])
    assert allowed(lines(tmp_path / "out.jsonl")) == ["https://b.test/private/1"]
    described = manifest.read(tmp_path / "out.jsonl")
    assert described is not None
    assert described["comity:tagged"] == {
        "agent": "examplebot",
        "capturedBy": "CCBot",
        "also": ["GPTBot"],
        "asOf": "both",
        "missing": "allow",
        "policies": ["robots.warc.gz"],
    }
    assert [
        copy["fetched_at"][:4] for copy in described["comity:policies"]["https://a.test/robots.txt"]
    ] == ["2026", "2024"]
    listed = [copy for copies in described["comity:policies"].values() for copy in copies]
    missing = [copy for copy in listed if copy["status"] == 0]
    counted = {
        "all": len(listed),
        "listed": len(listed),
        "withoutCopy": len(missing),
        "isEstimate": False,
    }
    assert described["comity:policyCount"] == counted
    assert described["comity:counts"] == {
        "read": 4,
        "tagged": 3,
        "verdicts": {"train: allow": 1, "train: deny: robots.disallow": 2},
        "apart": 0,
        "leftOut": {},
        "unreadable": 1,
        "undated": 0,
    }
    assert tagged.read == 4
    [unread] = lines(tmp_path / "out.jsonl.unreadable.jsonl")
    assert unread["why"] == "the file ends within it"
    export([tmp_path / "out.jsonl"], tmp_path / "export.jsonl", Terms.of(["train"], now=NOW))
    exported = manifest.read(tmp_path / "export.jsonl")
    assert exported is not None
    assert exported["comity:tagged"] == [described["comity:tagged"]]


@pytest.mark.requirement("TAG-3")
@pytest.mark.parametrize("form", ["jsonl", "parquet", "warc"])
def test_records_of_unknown_sites_are_kept_apart(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"in.{form}"
    if form == "warc":
        write(path, *(page(url=url) for url in URLS[:-1]))
    else:
        (jsonl if form == "jsonl" else parquet)(
            path, [{"url": url, "date": DATE, "text": "Hello"} for url in URLS]
        )
    tagged = tag_dataset([path], tmp_path / "out.jsonl", judge(missing="keep-apart"))
    [apart] = lines(tmp_path / "out.jsonl.no-policies.jsonl")
    assert (apart["url"], apart["text"], "permissions" in apart) == (
        "https://unknown.test/1",
        "Hello",
        False,
    )
    assert (tagged.apart, tagged.read) == (1, 7 if form == "warc" else 8)
    tag_dataset([path], tmp_path / "out.jsonl", judge())
    assert not (tmp_path / "out.jsonl.no-policies.jsonl").exists()


@pytest.mark.parametrize(
    "own",
    [
        "rw-r--r--",
        '{"uses of it": 1}',
        ["read", "write"],
        {"schema": "dc", "rights": "CC0"},
        {"agent": "me"},
    ],
)
def test_other_data_in_the_field_of_the_tag_stays(tmp_path: Path, own: Any) -> None:
    for form, make in (("jsonl", jsonl), ("parquet", parquet)):
        path = make(tmp_path / f"in.{form}", [{"url": URLS[0], "date": DATE, "permissions": own}])
        tag_dataset([path], tmp_path / "out.jsonl", judge())
        [one] = lines(tmp_path / "out.jsonl")
        assert one["permissions"] == own
        assert one["comity_permissions"]["uses"]["train"]["verdict"] == "allow"


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_second_tagging_takes_nothing_back(tmp_path: Path, form: str) -> None:
    path = jsonl(tmp_path / "in.jsonl", [{"url": url, "date": DATE} for url in URLS])
    tag_dataset([path], tmp_path / f"first.{form}", judge())
    free = Judge(
        Question.of(OWN, now=NOW),
        Policies({url.rpartition("/")[0]: {} for url in ("https://b.test/",)}),
    )
    tag_dataset([tmp_path / f"first.{form}"], tmp_path / "second.jsonl", free)
    assert allowed(lines(tmp_path / "second.jsonl")) == ["https://b.test/1"]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_tags_as_text_and_tags_that_nobody_understands(tmp_path: Path, form: str) -> None:
    """A use that such a tag refuses, or may refuse, stays refused."""
    jsonl(tmp_path / "in.jsonl", [{"url": "https://b.test/ai/1", "date": DATE}])
    tag_dataset([tmp_path / "in.jsonl"], tmp_path / "tagged.jsonl", judge())
    [tagged] = lines(tmp_path / "tagged.jsonl")
    free = Judge(Question.of(OWN, now=NOW), Policies({"https://b.test": {}}))
    for value in (
        json.dumps(tagged["permissions"]),
        tagged["permissions"] | {"schema": 2},
        tagged["permissions"],
    ):
        path = tmp_path / f"again.{form}"
        jsonl(
            tmp_path / "again.jsonl",
            [{**tagged, "permissions": value}, {"url": URLS[0], "date": DATE}],
        )
        if form == "parquet":
            batch = encode(lines(tmp_path / "again.jsonl"))
            pq.write_table(pa.Table.from_batches([batch]), path)
        tag_dataset([path], tmp_path / "out.jsonl", free)
        assert lines(tmp_path / "out.jsonl")[0]["permissions"]["uses"]["train"]["verdict"] == "deny"


@pytest.mark.requirement("TAG-2", "TAG-3")
@pytest.mark.parametrize("date", [DATE, "2020-01-01", ""])
def test_no_default_of_an_export_lifts_what_is_refused_for_want_of_knowledge(
    tmp_path: Path, date: str
) -> None:
    """Today's policies of the site do not mention the use, and its policies on the date of the
    capture are unknown."""
    silent = {"https://a.test": {"/robots.txt": "User-agent: *\nAllow: /\n"}}
    policies = Policies(silent if date == DATE else {}, silent)
    asked = Judge(
        Question.of(Agent("examplebot", uses=("train",)), now=NOW, as_of="both"), policies
    )
    tag_dataset(
        [jsonl(tmp_path / "in.jsonl", [{"url": URLS[0], "date": date}])],
        tmp_path / "tagged.jsonl",
        asked,
    )
    terms = Terms.of(["train"], now=NOW, defaults={"train": Verdict.ALLOW})
    causes = export([tmp_path / "tagged.jsonl"], tmp_path / "out.jsonl", terms).counts.causes
    rules = {DATE: {}, "2020-01-01": {"deny:comity.no-policies": 1}, "": {"deny:comity.no-date": 1}}
    assert causes == rules[date]


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(("names", "remaining"), [([], " and free"), (["content"], None)])
def test_what_a_tag_says_of_the_text_holds_for_it_by_its_new_name(
    tmp_path: Path, make_record: MakeRecord, form: str, names: list[str], remaining: str | None
) -> None:
    element = {"spans": [["content", 0, 7]], "names": names}
    made = make_record(train={}, elements=[element], fields={"content": "Refused and free"})
    made = {name: value for name, value in made.items() if name != "text"} | {
        "url": URLS[0],
        "final_url": URLS[0],
    }
    path = jsonl(tmp_path / "in.jsonl", [made])
    if form == "parquet":
        path = tmp_path / "in.parquet"
        pq.write_table(pa.Table.from_batches([encode([made])]), path)
    tag_dataset([path], tmp_path / f"tagged.{form}", judge())
    assert read(tmp_path / f"tagged.{form}")[0]["text"] == "Refused and free"
    export([tmp_path / f"tagged.{form}"], tmp_path / "out.jsonl", Terms.of(["train"], now=NOW))
    assert lines(tmp_path / "out.jsonl")[0].get("text") == remaining


# remains of a tag in files of other programs
DAMAGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "without-schema": lambda tag: {name: value for name, value in tag.items() if name != "schema"},
    "without-uses": lambda tag: {name: value for name, value in tag.items() if name != "uses"},
    "uses-alone": lambda tag: {"uses": tag["uses"]},
    "in-a-list": lambda tag: [tag],
    "as-python": str,
    "as-text-of-a-text": lambda tag: json.dumps(json.dumps(tag)),
    "behind-a-mark": lambda tag: f"\ufeff{json.dumps(tag)}",
    "cut-off": lambda tag: json.dumps(tag, sort_keys=True)[:700],
}


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize("damage", one_in(2, DAMAGED))
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_what_is_left_of_a_tag_is_no_other_data(
    tmp_path: Path, make_record: MakeRecord, damage: str, form: str
) -> None:
    """Its refusals are unknown. An export kept no such record before it was tagged again."""
    made = make_record(train={})
    made = {"url": URLS[0], "date": DATE, "permissions": DAMAGED[damage](made["permissions"])}
    path = (jsonl if form == "jsonl" else parquet)(tmp_path / f"in.{form}", [made])
    tag_dataset([path], tmp_path / f"out.{form}", judge())
    exported = export(
        [tmp_path / f"out.{form}"], tmp_path / "export.jsonl", Terms.of(["train"], now=NOW)
    )
    assert exported.counts.causes == {"deny:comity.no-page": 1}


def test_names_that_are_counted_are_bounded() -> None:
    names = NameCounts()
    for number in range(3 * MAX_NAMES):
        names.note(str(number))
    assert (len(names), sum(names.values())) == (MAX_NAMES + 1, 3 * MAX_NAMES)


def test_header_fields_in_a_column_count(tmp_path: Path) -> None:
    made = [
        {"url": URLS[0], "date": DATE, "headers": value}
        for value in (
            {"X-Robots-Tag": "noai"},
            {"x-robots-tag": ["all", "noai"]},
            [["X-Robots-Tag", "noai"]],
            [{"name": "X-Robots-Tag", "value": "noai"}],
            "HTTP/1.1 200 OK\r\nX-Robots-Tag: noai\r\n\r\n",
            '{"X-Robots-Tag": "noai"}',
            '{"X-Robots-Tag": "noai", "X-Robots-Tag": "all"}',
            7,
            {"X-Other": "x"},
            None,
        )
    ]
    path = jsonl(tmp_path / "in.jsonl", made)
    tag_dataset([path], tmp_path / "out.jsonl", judge())
    assert [
        one["permissions"]["uses"]["train"]["verdict"] for one in lines(tmp_path / "out.jsonl")
    ] == ["deny"] * 8 + ["allow"] * 2
    fields = '{"X-Robots-Tag": "noai", "X-Robots-Tag": "all", "A": "b"}'
    texts = (
        f'{{"headers": {fields}}}',
        f'{{"meta": {{"headers": {fields}}}}}',
        json.dumps({"meta": f'{{"headers": {fields}}}'}),
    )
    path.write_text(
        "".join(f'{{"url": "{URLS[0]}", "date": "{DATE}", {text[1:]}\n' for text in texts)
    )
    tag_dataset([path], tmp_path / "out.jsonl", judge())
    assert allowed(lines(tmp_path / "out.jsonl")) == []
    assert lines(tmp_path / "out.jsonl")[0]["headers"] == {
        "X-Robots-Tag": ["noai", "all"],
        "A": "b",
    }


@pytest.mark.parametrize("field", ["headers", "http", "http.sent"])
def test_header_fields_that_stand_twice_count_whatever_is_before_and_behind_them(
    tmp_path: Path, field: str
) -> None:
    """The cached result for a tag does not hold for the names in other fields.

    The field may have any name."""
    tag_dataset(
        [jsonl(tmp_path / "in.jsonl", [{"url": URLS[0], "date": DATE}])],
        tmp_path / "out.jsonl",
        judge(),
    )
    [tagged] = lines(tmp_path / "out.jsonl")
    permissions = json.dumps(tagged["permissions"])
    tail = f'"url": "{URLS[0]}", "date": "{DATE}", "permissions": {permissions}}}\n'
    name, _, member = field.partition(".")
    headers = [
        f'{{"X-Robots-Tag": {value}}}' for value in ('"all"', '"noai", "X-Robots-Tag": "all"')
    ]
    objects = [f'{{"{member}": {header}}}' if member else header for header in headers]
    (tmp_path / "in.jsonl").write_text("".join(f'{{"{name}": {value}, {tail}' for value in objects))
    tag_dataset(
        [tmp_path / "in.jsonl"], tmp_path / "out.jsonl", judge(), Making(Columns(headers=field))
    )
    verdicts = [
        one["permissions"]["uses"]["train"]["verdict"] for one in lines(tmp_path / "out.jsonl")
    ]
    assert verdicts == ["allow", "deny"]


REFUSING = {"X-Robots-Tag": "noai"}


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("headers", None, REFUSING),
        ("headers", {"Server": "x"}, {"Server": "x"} | REFUSING),
        ("headers", "Server: x", REFUSING),
        ("meta", "x", {"headers": REFUSING}),
        ("final_url", None, URLS[3]),
        ("date", DATE, 1_717_200_000),
        ("adreça", 7, URLS[3]),
    ],
)
def test_what_fits_no_column_is_heard(tmp_path: Path, name: str, first: Any, second: Any) -> None:
    """The first records of a file define its columns.

    Further fields of later records are in one column, EXTRA."""
    made = [
        {"url": URLS[0], "date": DATE} | ({} if value is None else {name: value})
        for value in (first, second)
    ]
    batch = encode(made, schema_of(made[:1], tagged=False))
    assert name in json.loads(batch.column(EXTRA)[1].as_py())
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "in.parquet")
    making, outputs = Making(Columns(url=name if name == "adreça" else "")), []
    for path in (jsonl(tmp_path / "in.jsonl", made), tmp_path / "in.parquet"):
        tag_dataset([path], tmp_path / "out.jsonl", judge(), making)
        outputs.append(lines(tmp_path / "out.jsonl"))
    assert outputs[0] == outputs[1]


@pytest.mark.requirement("TAG-2", "TAG-3")
@pytest.mark.parametrize(
    ("more", "then", "now", "as_of", "rule"),
    [
        ({}, True, True, "both", "content-signal.allow"),
        ({"headers": 7}, True, True, "capture", "comity.unread"),
        ({}, False, True, "both", "comity.no-policies"),
        ({}, True, False, "both", "comity.no-policies"),
        ({"date": ""}, True, True, "both", "comity.no-date"),
        ({"permissions": {"schema": 2, "uses": {}}}, True, True, "capture", "comity.no-page"),
    ],
)
def test_what_nobody_knows_is_refused_for_uses_that_only_sites_name_too(
    tmp_path: Path, more: dict[str, Any], then: bool, now: bool, as_of: str, rule: str
) -> None:
    """An export may be for another use than that for which was asked, and the default permits that
    one."""
    agent = Agent("examplebot", uses=("train",), defaults={"search": Verdict.ALLOW})
    site = {
        "https://a.test": {
            "/robots.txt": "User-agent: *\nAllow: /\nContent-Signal: search=yes, ai-train=yes\n"
        }
    }
    policies = Policies(site if then else {}, site if now else {})
    made = jsonl(tmp_path / "in.jsonl", [{"url": URLS[0], "date": DATE, **more}])
    tag_dataset(
        [made], tmp_path / "out.jsonl", Judge(Question.of(agent, now=NOW, as_of=as_of), policies)
    )
    [tag] = [one["permissions"] for one in lines(tmp_path / "out.jsonl")]
    assert {
        tag["reasons"][tag["uses"][use]["because"][0]]["rule"] for use in ("train", "search")
    } == {rule}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_pages_are_known_by_the_url_and_the_date_that_they_were_judged_by(
    tmp_path: Path, form: str
) -> None:
    """By these they are taken down, and found to have been fetched again."""
    rows: list[dict[str, Any]] = [
        {"url": URLS[1], "fetched_at": "2024-06-02", "uri": URLS[0], "date": DATE},
        {"url": None, "fetched_at": "", "uri": URLS[0], "date": DATE},
        {"url": "", "fetched_at": None, "uri": URLS[4], "date": DATE},
    ]
    made: Callable[..., Path] = jsonl if form == "jsonl" else parquet

    def tagged(rows: list[dict[str, Any]], columns: Columns = Columns()) -> list[list[Any]]:  # noqa: B008  # immutable
        tag_dataset(
            [made(tmp_path / f"in.{form}", rows)], tmp_path / "out.jsonl", judge(), Making(columns)
        )
        return [
            [one.get(name) for name in ("url", "final_url", "fetched_at")]
            for one in lines(tmp_path / "out.jsonl")
        ]

    written = "2024-06-01T00:00:00+00:00"
    assert tagged(rows) == [
        [URLS[1], None, "2024-06-02"],
        [URLS[0], None, written],
        [URLS[4], None, written],
    ]
    assert tagged(rows[:1], Columns(url="uri")) == [[URLS[1], URLS[0], "2024-06-02"]]
    assert tagged([{"final_url": URLS[1]} | rows[1]], Columns(url="uri")) == [
        [URLS[0], URLS[1], written]
    ]
    assert tagged([{"final_url": URLS[1]} | rows[0]], Columns(url="uri")) == [
        [URLS[1], URLS[1], "2024-06-02"]
    ]
    tag_dataset(
        [made(tmp_path / f"in.{form}", rows[:1])],
        tmp_path / "out.jsonl",
        judge(),
        Making(Columns(url="uri")),
    )
    assert expire([tmp_path / "out.jsonl"], NOW, [URLS[0]]).causes == {"taken-down": 1}


def test_octets_of_columns_are_texts(tmp_path: Path) -> None:
    """Programs that know no texts write them so; in records they are."""
    columns: dict[str, list[Any]] = {
        "url": [URLS[0], URLS[0]],
        "date": [DATE, None],
        "headers": ["X-Robots-Tag: noai", ""],
    }
    octets = {
        name: pa.array([text and text.encode() for text in texts])
        for name, texts in columns.items()
    }
    outputs = []
    for table in (pa.table(columns), pa.table(octets)):
        pq.write_table(table, tmp_path / "in.parquet")
        tag_dataset([tmp_path / "in.parquet"], tmp_path / "out.jsonl", judge())
        outputs.append(lines(tmp_path / "out.jsonl"))
    assert outputs[0] == outputs[1]


@given(
    st.lists(
        st.fixed_dictionaries(
            {"url": st.sampled_from(URLS), "date": st.sampled_from([DATE, "x", "2030-01-01"])},
            optional={
                "text": st.text(max_size=5),
                "title": st.none() | st.text(max_size=3),
                "n": st.integers(-9, 9),
            },
        ),
        min_size=1,
        max_size=12,
    )
)
# of empty fields an element covers nothing
@example([{"url": URLS[5], "date": DATE, "text": "", "n": 0}])
@settings(max_examples=min(40, settings().max_examples))
def test_columns_are_tagged_as_records_are(records: list[dict[str, Any]]) -> None:
    # columns have one order, and so have their entries in a tag
    names = dict.fromkeys(name for one in records for name in one)
    records = [{name: one[name] for name in names if name in one} for one in records]
    with tempfile.TemporaryDirectory() as folder:
        for form, make in (("jsonl", jsonl), ("parquet", parquet)):
            path = make(Path(folder) / f"in.{form}", records)
            tagged = tag_dataset([path], Path(folder) / f"{form}.jsonl", judge())
            assert tagged.read == len(records)
        by_records, by_columns = (
            [
                {name: value for name, value in one.items() if value is not None}
                for one in lines(Path(folder) / f"{form}.jsonl")
            ]
            for form in ("jsonl", "parquet")
        )
        assert by_columns == by_records


def test_no_output_takes_the_place_of_its_input(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "in.jsonl", [{"url": URLS[0]}])
    with pytest.raises(DatasetError, match="is read from"):
        tag_dataset([path], path, judge())
    assert lines(path) == [{"url": URLS[0]}]
    parquet(tmp_path / "in.parquet", [{"address": URLS[0]}])
    with pytest.raises(DatasetError, match="no field looks like a URL"):
        tag_dataset([tmp_path / "in.parquet"], tmp_path / "out.jsonl", judge())
    with pytest.raises(DatasetError, match="there is no field `uri`"):
        tag_dataset(
            [tmp_path / "in.parquet"], tmp_path / "out.jsonl", judge(), Making(Columns(url="uri"))
        )
    tag_dataset(
        [tmp_path / "in.parquet"], tmp_path / "out.jsonl", judge(), Making(Columns(url="address"))
    )
    assert len(lines(tmp_path / "out.jsonl")) == 1


@pytest.mark.slow
def test_workers_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the workers find the policies of this test there
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    bodies = [
        b"<main>%d %s</main>" % (number, bytes(70 + number % 20 for _ in range(20_000)))
        for number in range(500)
    ]
    path = write(
        tmp_path / "in.warc",
        *(page(body, url=URLS[number % 7]) for number, body in enumerate(bodies)),
    )
    for workers in (1, 2):
        tag_dataset([path], tmp_path / f"{workers}.jsonl", judge(), options=JobOptions(workers))
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_text_by_another_extractor(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.warc", page(b"<main><p>Free<p class=quote>Quoted</main>", url=URLS[5])
    )
    tag_dataset([path], tmp_path / "out.jsonl", judge(), Making(extractor=len_of, html=True))
    [one] = lines(tmp_path / "out.jsonl")
    assert "Quoted" in one["html"]
    assert "Quoted" not in one["text"]


def len_of(source: str) -> str:
    return source.upper().title()


def test_moments() -> None:
    wanted = datetime(2024, 6, 1, tzinfo=UTC)
    value: Any
    for value in (
        DATE,
        "2024-06-01",
        "20240601000000",
        "2024-06-01T02:00:00+02:00",
        wanted.timestamp(),
        wanted.timestamp() * 1000,
        wanted,
        wanted.date(),
    ):
        assert moment_of(value) == wanted, value
    for value in (
        "",
        "yesterday",
        "2024-13-01",
        None,
        True,
        float("nan"),
        1e300,
        [DATE],
        "0001-01-01T00:00:00+23:00",
    ):
        assert moment_of(value) is None, value


def test_fields_that_are_none() -> None:
    for value in (
        7,
        [7],
        ["abc"],
        "no field",
        [["a", {}]],
        {"a": b"x"},
        [{"name": "a"}],
        "[" * 100_000,
    ):
        with pytest.raises((ValueError, TypeError, KeyError, RecursionError)):
            fields_of(value)


# Batches


@pytest.mark.requirement("TAG-1")
@pytest.mark.parametrize("rows", one_in(3, [1, 3, 100]))
def test_batches_are_tagged_as_files_are(tmp_path: Path, rows: int) -> None:
    table = pa.Table.from_pylist([{"url": url, "date": DATE, "text": "Hello"} for url in URLS])
    pq.write_table(table, tmp_path / "in.parquet")
    tag_dataset([tmp_path / "in.parquet"], tmp_path / "out.parquet", judge())
    tag = pickle.loads(pickle.dumps(tagger(Policies(SITES), OWN, ["train"], now=NOW)))
    found = [one for batch in table.to_batches(rows) for one in decode(tag(batch))]
    assert found == read(tmp_path / "out.parquet")
    assert decode(tag(table).combine_chunks().to_batches()[0]) == found
    assert tag(table.slice(0, 0)).schema == tag(table).schema == tag.schema(table.schema)
    with pytest.raises(DatasetError, match="no place to keep records apart"):
        tagger(Policies(SITES), OWN, ["train"], missing="keep-apart")


def test_a_tagger_of_files_with_captures(tmp_path: Path) -> None:
    robots = http(b"User-agent: *\nDisallow: /private\n", (b"Content-Type", b"text/plain"))
    others = [
        record(
            "response", http(b"", status="404 Not Found"), f"https://b.test{path}", WARC_Date=DATE
        )
        for path in WELL_KNOWN
        if path != "/robots.txt"
    ]
    path = write(
        tmp_path / "policies.warc.gz",
        record("response", robots, "https://b.test/robots.txt", WARC_Date=DATE),
        *others,
    )
    table = pa.table({"url": URLS[2:5], "date": ["2024-06-02"] * 3})
    with tagger([path], OWN, ["train"], now=NOW) as tag:
        assert allowed(decode(tag(table).to_batches()[0])) == [  # type: ignore[arg-type]
            "https://b.test/ai/1",
            "https://b.test/1",
        ]


@pytest.mark.requirement("TAG-1")
def test_a_page_that_was_posted_for_is_judged_as_such(tmp_path: Path) -> None:
    post = record("request", b"POST / HTTP/1.1\r\n\r\n", "https://a.test/1")
    path = write(
        tmp_path / "in.warc", post, page(url="https://a.test/1"), page(url="https://a.test/2")
    )
    said = Policies(
        {"https://a.test": {"/automation-preferences.txt": "scope: /\nallowed-methods: GET\n"}}
    )
    tag_dataset([path], tmp_path / "out.jsonl", Judge(Question.of(OWN, now=NOW), said))
    assert allowed(lines(tmp_path / "out.jsonl")) == ["https://a.test/2"]
