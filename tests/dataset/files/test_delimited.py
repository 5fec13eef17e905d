"""CSV and TSV: all values are texts, and octets that are not a row are kept."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.dataset.expire import expire
from comity.dataset.export.export import export
from comity.dataset.files import delimited, jsonl
from comity.dataset.files.formats import open_reader, open_writer
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError, Unreadable
from comity.dataset.stats import stats
from comity.dataset.tagging.columns import Columns
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.record_tagger import Making
from comity.dataset.tagging.tagging import tag_dataset
from tests.dataset.files.test_jsonl import everything
from tests.dataset.tagging.archives import NOW, Policies
from tests.dataset.tagging.test_tagging import ALLOWED, DATE, OWN, SITES, URLS
from tests.selection import one_in

ROWS = [["url", "digits", "text"], ["https://a.test/", "0012345678901234567890", 'a "b"\nc']]
NAMES = ["a.csv", "A.TSV", "a.csv.gz", "a.tsv.zst"]


def packed(name: str, octets: bytes) -> bytes:
    return jsonl.compress(codec, octets) if (codec := jsonl.codec_of(Path(name))) else octets


def text_of(name: str, rows: list[list[str]]) -> bytes:
    """The rows, as Python writes them."""
    file = io.StringIO(newline="")
    csv.writer(file, delimiter="\t" if "tsv" in name.lower() else ",").writerows(rows)
    return file.getvalue().encode()


def write(path: Path, octets: bytes) -> Path:
    path.write_bytes(packed(path.name, octets))
    return path


@pytest.mark.parametrize("name", one_in(2, NAMES))
@settings(max_examples=min(60, settings().max_examples), deadline=None)
@given(
    rows=st.lists(
        st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=2), max_size=20
    ),
    part=st.sampled_from([1, 30, 1000]),
)
def test_every_value_is_the_text_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, name: str, rows: list[list[str]], part: int
) -> None:
    path = write(tmp_path_factory.mktemp("table") / name, text_of(name, [["a", "b"], *rows]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "PART", part)
        assert everything(open_reader(path)) == [{"a": a, "b": b} for a, b in rows]
        parts = [*open_reader(path).parts()]
    assert sum(part.octets for part in parts) == path.stat().st_size


def test_files_of_other_programs(tmp_path: Path) -> None:
    """pandas writes an unnamed column of row numbers first."""
    expected = [dict(zip(ROWS[0], ROWS[1], strict=True))]
    rows = pa.table({name: [value] for name, value in expected[0].items()})
    pa.csv.write_csv(rows, tmp_path / "arrow.csv")
    duckdb.sql(f"COPY (FROM rows) TO '{tmp_path}/duckdb.csv'")
    pd.DataFrame(expected).to_csv(tmp_path / "pandas.csv.gz")
    assert everything(open_reader(tmp_path / "arrow.csv")) == expected
    assert everything(open_reader(tmp_path / "duckdb.csv")) == expected
    assert everything(open_reader(tmp_path / "pandas.csv.gz")) == [{"": "0", **expected[0]}]


UNREADABLE = [
    (b"1,2,3\n", "has 3 values, and the header has 2"),
    (b"1\n", "has 1 values, and the header has 2"),
    (b'"1"2,3\n', "is not CSV: ',' expected after '\"'"),
    (b'"1\n2"3,4\n', "is not CSV: ',' expected after '\"'"),
    (b"\xff,1\n", "is not UTF-8"),
    (b"1\r2,3\n", "is not CSV: a carriage return is outside quotation marks"),
]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", one_in(2, ["a.csv", "a.csv.gz"]))
@pytest.mark.parametrize(("line", "error"), UNREADABLE)
def test_octets_that_are_not_a_row_are_kept(
    tmp_path: Path, name: str, line: bytes, error: str
) -> None:
    path = write(tmp_path / name, b"a,b\n1,2\n\n" + line + b"3,4\n")
    good, bad, last = everything(open_reader(path))
    assert (good, last) == ({"a": "1", "b": "2"}, {"a": "3", "b": "4"})
    assert bad == Unreadable("line 4", line, error)


@pytest.mark.requirement("SEC-6")
def test_a_quotation_mark_that_is_not_closed_takes_the_rest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'a,b\n1,2\n3,"4\n5,6\n')
    assert everything(open_reader(path))[1] == Unreadable(
        "line 3", b'3,"4\n5,6\n', "is not CSV: the file ends within quotation marks"
    )


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("text", [b'a,b\n1,"' + b"x\n" * 600, b"a,b\n1," + b"x" * 1200])
def test_a_record_without_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    """So a compressed file of some KB does not fill the memory."""
    monkeypatch.setattr(delimited, "MAX_LINE", 1000)
    path = write(tmp_path / "a.csv.gz", text)
    with pytest.raises(DatasetError, match=r"a\.csv\.gz: the record at line 2 has more than 1000"):
        everything(open_reader(path))


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv.zst"])
@pytest.mark.parametrize("cut", [0, 1, 30])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path, name: str, cut: int) -> None:
    path = tmp_path / name
    rows = [["a", "b"], *([str(number), str(number**9)] for number in range(100))]
    octets = packed(name, text_of(name, rows))
    path.write_bytes(octets[: -cut if cut else 0])
    with pytest.raises(DatasetError, match="is damaged, or cut off while it was written"):
        everything(open_reader(path))


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.csv", b"", "line 1: there is no header: write the names of the columns"),
        ("a.csv", b"https://a.test/,x\n", "`https://a.test/` is a URL, so this line is not a h"),
        ("a.csv", b"a,b,a\n", "line 1: two of its columns are called `a`"),
        ("a.csv", b"url;text\n", "`url;text` is one name: separate columns by commas"),
        ("a.tsv", b"url,text\n", "`url,text` is one name: separate columns by tabs"),
        ("a.csv", "url,b".encode("utf-16"), "line 1: the file is UTF-16: convert it with `iconv"),
        ("a.csv", b"u\xff,b\n", "line 1: is not UTF-8"),
        ("a.csv", b'"u"rl,b\n', "line 1: is not CSV: ',' expected after"),
    ],
)
def test_a_file_without_a_header(tmp_path: Path, name: str, text: bytes, error: str) -> None:
    path = write(tmp_path / name, text)
    with pytest.raises(DatasetError, match=error):
        everything(open_reader(path))


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'\xef\xbb\xbf"url",b\r\n1,2\r\n')
    assert everything(open_reader(path)) == [{"url": "1", "b": "2"}]


def test_a_table_of_urls_is_tagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "PART", 100)
    rows = [["link", "date", "text"], *([url, DATE, f"Text\nof {url}"] for url in URLS), ["x"]]
    path = write(tmp_path / "a.csv", text_of("a.csv", rows))
    tagged = tag_dataset(
        [path],
        tmp_path / "out.jsonl",
        Judge(Question.of(OWN, now=NOW), Policies(SITES)),
        Making(Columns(url="link")),
    )
    assert (tagged.counts.kept, tagged.counts.unreadable) == (len(URLS), 1)
    terms = Terms.of(["train"], now=NOW)
    export([tmp_path / "out.jsonl"], tmp_path / "train.jsonl", terms)
    kept = everything(open_reader(tmp_path / "train.jsonl"))
    assert [one["link"] for one in kept if isinstance(one, dict)] == ALLOWED
    assert kept[0]["text"] == f"Text\nof {ALLOWED[0]}"  # type: ignore[call-overload]


def test_a_column_without_urls_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"link,text\n1,2\n")
    with pytest.raises(DatasetError, match=r"no field looks like a URL.*it has link, text"):
        tag_dataset(
            [path], tmp_path / "out.jsonl", Judge(Question.of(OWN, now=NOW), Policies(SITES))
        )


def test_a_tag_as_json_text_is_read(tmp_path: Path) -> None:
    """As pandas writes a tagged dataset that was read from JSON Lines with `json:permissions`."""
    plain = write(tmp_path / "a.csv", text_of("a", [["url", "date"], *([u, DATE] for u in URLS)]))
    judge = Judge(Question.of(OWN, now=NOW), Policies(SITES))
    tag_dataset([plain], tmp_path / "a.jsonl", judge)
    tagged = everything(open_reader(tmp_path / "a.jsonl"))
    rows = [
        [one["url"], jsonl.encode([one["permissions"]]).decode()]
        for one in tagged
        if isinstance(one, dict)
    ]
    path = write(tmp_path / "tagged.csv", text_of("a", [["url", "permissions"], *rows]))
    export([path], tmp_path / "train.jsonl", Terms.of(["train"], now=NOW))
    kept = everything(open_reader(tmp_path / "train.jsonl"))
    assert [one["url"] for one in kept if isinstance(one, dict)] == ALLOWED
    assert stats([path], NOW).records == len(URLS)


def test_csv_is_not_written(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"url\nhttps://a.test/\n")
    for do in (lambda: open_writer(tmp_path / "b.csv"), lambda: expire([path], NOW)):
        with pytest.raises(DatasetError, match=r"without loss: choose \.jsonl or \.parquet"):
            do()
    assert path.read_bytes() == b"url\nhttps://a.test/\n"
    judge = Judge(Question.of(OWN, now=NOW), Policies(SITES))
    tag_folder([path], tmp_path / "out", judge)
    lines = gzip.decompress((tmp_path / "out" / "a.jsonl.gz").read_bytes())
    assert b'"url":"https://a.test/"' in lines
