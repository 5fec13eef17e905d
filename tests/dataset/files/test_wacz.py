"""WACZ files: the records of their WARC files, and each problem by the name of its member."""

from __future__ import annotations

import gzip
import io
import random
import stat
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.dataset.expire import expire
from comity.dataset.files.warc import reader as items
from comity.dataset.files.warc import wacz
from comity.dataset.records import DatasetError, Unreadable
from comity.dataset.tagging import warc
from comity.dataset.tagging.captured import CapturedRecord
from comity.dataset.tags.sources import GUESSED
from tests.dataset.files.wacz_files import ARCHIVE, described, write_wacz, zipped
from tests.dataset.tagging.archives import NOW, http, page, record

UNDESCRIBED = ("datapackage.json", "it is not in the file: members may be missing")
DEFLATED = pytest.mark.parametrize("deflated", [False, True])


def warc_gz(*records: bytes) -> bytes:
    return b"".join(gzip.compress(one, 1, mtime=0) for one in records)


def pages_of(*numbers: int) -> bytes:
    return warc_gz(
        *(page(b"<p>%d</p>" % number, url=f"https://a.test/{number}") for number in numbers)
    )


def read(path: Path) -> tuple[list[CapturedRecord], list[tuple[str, str]]]:
    """The captures, and the places and errors of what cannot be read, apart from UNDESCRIBED."""
    reader = warc.Reader(path)
    parts = [*reader.parts()]
    assert sum(part.octets for part in parts) == path.stat().st_size
    found = [one for part in parts for batch in reader.read(part) for one in batch]
    return (
        [one for one in found if isinstance(one, CapturedRecord)],
        [
            (one.position, one.error)
            for one in found
            if isinstance(one, Unreadable) and one[::2] != UNDESCRIBED
        ],
    )


def urls(captures: list[CapturedRecord]) -> list[str]:
    return [one.page.url.rpartition("/")[2] for one in captures if one.page]


@DEFLATED
def test_records_of_all_warc_files_are_read(tmp_path: Path, deflated: bool) -> None:
    members = {
        "archive/a.warc.gz": pages_of(1, 2),
        "archive/b.warc": page(b"<p>3</p>", url="https://a.test/3"),
        "indexes/index.cdx.gz": b"no WARC",
        "archive/c.warc.gz": pages_of(4),
    }
    captures, problems = read(write_wacz(tmp_path / "a.wacz", members, deflated=deflated))
    assert (urls(captures), problems) == (["1", "2", "3", "4"], [])
    assert [one.page and one.page.body for one in captures] == [
        b"<p>%d</p>" % number for number in (1, 2, 3, 4)
    ]


@DEFLATED
def test_they_are_the_records_of_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deflated: bool
) -> None:
    """Revisits find their originals, requests their answers, in parts of any number."""
    chance = random.Random(1)
    records: list[bytes] = []
    monkeypatch.setattr(warc, "PART", 2**18)
    for number in range(60):
        body, url = chance.randbytes(25_000), f"https://a.test/{number}"
        name = f"<urn:uuid:{number}>"
        records += [
            record("request", b"POST / HTTP/1.1\r\nUser-Agent: abot\r\n\r\n", url),
            page(body, url=url, WARC_Record_ID=name),
        ]
        if number % 7 == 3:
            refers = {"WARC_Refers_To": f"<urn:uuid:{number // 7}>"}
            records.append(record("revisit", http(b""), f"{url}/again", **refers))
    alone = tmp_path / "a.warc.gz"
    alone.write_bytes(warc_gz(*records))
    half = len(records) // 2
    members = {
        "archive/a.warc.gz": warc_gz(*records[:half]),
        "archive/b.warc": b"".join(records[half:]),
    }
    packed = write_wacz(tmp_path / "a.wacz", members, deflated=deflated)
    assert len([*warc.Reader(packed).parts()]) > 3
    expected, got = read(alone), read(packed)
    assert [(dict(one), one.page) for one in got[0]] == [
        (dict(one), one.page) for one in expected[0]
    ]
    assert len(got[0]) == 69
    assert got[1] == []


def test_a_compressed_member_is_unpacked_once_or_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each part."""
    monkeypatch.setattr(warc, "PART", 2**18)
    monkeypatch.setattr(wacz, "STEP", 2**18)
    chance = random.Random(2)
    octets = warc_gz(*(page(chance.randbytes(100_000)) for _ in range(80)))
    path = write_wacz(tmp_path / "a.wacz", {ARCHIVE: octets}, deflated=True)
    unpacked = 0
    once = wacz._Deflated._unpack

    def counting(self: wacz._Deflated) -> bool:
        nonlocal unpacked
        before = self._offset
        try:
            return once(self)
        finally:
            unpacked += self._offset - before

    monkeypatch.setattr(wacz._Deflated, "_unpack", counting)
    reader = warc.Reader(path)
    parts = [*reader.parts()]
    assert len(parts) > 20
    assert sum(1 for part in parts for batch in reader.read(part) for _ in batch) == 80
    # To find the crawler and the parts, to read them, to look up requests, and to compare the hash.
    # To unpack it from the beginning on for each part would be 20 times.
    assert unpacked < 10 * len(octets)


@pytest.mark.parametrize("parts", [True, False])
def test_damaged_records_have_the_name_of_their_member(tmp_path: Path, parts: bool) -> None:
    good, bad = pages_of(1), bytearray(pages_of(2))
    bad[30] ^= 0xFF
    members = {"archive/a.warc.gz": good, "archive/b.warc.gz": good + bytes(bad) + pages_of(3)}
    path = write_wacz(tmp_path / "a.wacz", members)
    captures, problems = read(path)
    assert urls(captures) == ["1", "1", "3"]
    [(place, error)] = problems
    assert place == f"archive/b.warc.gz, record at octet {len(good)}"
    assert error.startswith("it cannot be unpacked")


@DEFLATED
def test_a_record_does_not_go_on_in_the_next_member(tmp_path: Path, deflated: bool) -> None:
    whole = page(b"<p>1</p>")
    members = {"archive/a.warc": whole[:-6], "archive/b.warc": page(b"<p>2</p>")}
    captures, problems = read(write_wacz(tmp_path / "a.wacz", members, deflated=deflated))
    assert [one.page and one.page.body for one in captures] == [b"<p>2</p>"]
    assert problems == [
        ("archive/a.warc, record at octet 0", "it does not end at its Content-Length")
    ]


def test_a_changed_member_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    true = {ARCHIVE: pages_of(1), "archive/b.warc.gz": pages_of(2)}
    path.write_bytes(zipped(true | {ARCHIVE: pages_of(3)}, description=described(true)))
    captures, problems = read(path)
    assert urls(captures) == ["3", "2"]
    assert problems == [
        (
            ARCHIVE,
            "it differs from its hash in datapackage.json: it was changed after it was packed",
        )
    ]


@pytest.mark.parametrize("description", [b"", b"{", b"[]", b'{"resources": [1]}', b"[" * 100_000])
def test_a_damaged_description_is_named_and_records_are_read(
    tmp_path: Path, description: bytes
) -> None:
    path = tmp_path / "a.wacz"
    path.write_bytes(zipped({ARCHIVE: pages_of(1)}, description=description))
    captures, problems = read(path)
    assert urls(captures) == ["1"]
    assert problems == [("datapackage.json", "it is not a description of a WACZ file")]


def test_a_missing_description_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(ARCHIVE, pages_of(1))
    assert [one[::2] for one in wacz.findings(path)] == [UNDESCRIBED]


def test_a_lost_member_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    members = {ARCHIVE: pages_of(1)}
    both = described(members | {"archive/lost.warc.gz": b""})
    path.write_bytes(zipped(members, description=both))
    assert read(path)[1] == [
        ("archive/lost.warc.gz", "datapackage.json names it, but it is not in the file")
    ]


def test_octets_that_changed_on_the_disk_are_named(tmp_path: Path) -> None:
    plain = page(b"<p>1</p>", url="https://a.test/1")
    path = write_wacz(tmp_path / "a.wacz", {"archive/a.warc": plain})
    path.write_bytes(path.read_bytes().replace(b"<p>1</p>", b"<p>2</p>"))
    assert read(path)[1] == [("archive/a.warc", "it differs from its checksum in the zip file")]


def entry(name: str, **fields: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    return info


LINK = (stat.S_IFLNK | 0o777) << 16
HOSTILE: Mapping[str, tuple[zipfile.ZipInfo, bytes, str]] = {
    "symlink": (
        entry("archive/x.warc", external_attr=LINK),
        b"/etc/passwd",
        "it is a symbolic link",
    ),
    "arc": (entry("archive/x.arc.gz"), b"", "ARC files cannot be read: convert it with"),
    "nested": (entry("archive/x.wacz"), b"", "a WACZ file within a WACZ file"),
    "bzip2": (entry("archive/x.warc", compress_type=12), b"x", "its compression method 12 is not"),
}


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("kind", HOSTILE)
def test_members_that_are_not_read_are_named(tmp_path: Path, kind: str) -> None:
    info, octets, error = HOSTILE[kind]
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, octets)
        archive.writestr(ARCHIVE, pages_of(1))
    captures, [(place, problem)] = read(path)
    assert (urls(captures), place) == (["1"], info.filename)
    assert problem.startswith(error)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("name", ["../a.warc", "/etc/a.warc", "archive/../../a.warc", "C:\\a.warc"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    """Names are only shown. No file is written by them."""
    (folder := tmp_path / "deep" / "er").mkdir(parents=True)
    path = write_wacz(folder / "a.wacz", {name: page(b"<p>1</p>", url="https://a.test/1") + b"x"})
    captures, [(place, _)] = read(path)
    assert urls(captures) == ["1"]
    assert place.startswith(f"{name}, record at octet ")
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [path]


def test_an_encrypted_member_is_named(tmp_path: Path) -> None:
    octets = bytearray(zipped({"archive/x.warc": page(), ARCHIVE: pages_of(1)}))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        octets[octets.index(signature) + flags] |= 1
    path = tmp_path / "a.wacz"
    path.write_bytes(octets)
    captures, problems = read(path)
    assert urls(captures) == ["1"]
    assert problems == [("archive/x.warc", "it is encrypted: decrypt the file first")]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_with_one_name_are_all_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(ARCHIVE, pages_of(1))
        archive.writestr(ARCHIVE, pages_of(2))
    captures, problems = read(path)
    assert (urls(captures), problems) == (["1", "2"], [(ARCHIVE, "several members have this name")])


def test_members_that_share_octets_are_read_once(tmp_path: Path) -> None:
    """As in zip bombs, where each member unpacks the same octets."""
    octets = zipped({"archive/a.warc": page(url="https://a.test/1")})
    start = octets.index(b"PK\x01\x02")
    [end] = [at for at in range(len(octets)) if octets.startswith(b"PK\x05\x06", at)]
    first = octets[start : octets.index(b"PK\x01\x02", start + 4)]
    tail = bytearray(octets[end:])
    for place, more in ((8, 9), (10, 9)):
        struct.pack_into("<H", tail, place, struct.unpack_from("<H", tail, place)[0] + more)
    struct.pack_into("<L", tail, 12, struct.unpack_from("<L", tail, 12)[0] + 9 * len(first))
    path = tmp_path / "a.wacz"
    copies = b"".join(first.replace(b"a.warc", b"%d.warc" % number) for number in range(9))
    path.write_bytes(octets[:start] + octets[start:end] + copies + tail)
    captures, problems = read(path)
    assert urls(captures) == ["1"]
    shared = [place for place, error in problems if error.startswith("its octets are those")]
    assert shared == [f"archive/{number}.warc" for number in range(9)]


@pytest.mark.requirement("SEC-6")
def test_a_bomb_takes_little_memory_and_is_named(tmp_path: Path) -> None:
    """40 MB of zeros in 40 KB."""
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("archive/a.warc", "w") as member:
            for _ in range(40):
                member.write(bytes(2**20))
        archive.writestr(ARCHIVE, pages_of(1))
    tracemalloc.start()
    try:
        captures, problems = read(path)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()
    assert urls(captures) == ["1"]
    assert problems == [("archive/a.warc, record at octet 0", "no WARC record begins here")]


@pytest.mark.parametrize("size", [2**40, 2**32 - 2])
def test_a_false_size_is_named(tmp_path: Path, size: int) -> None:
    info = zipfile.ZipInfo("archive/a.warc")
    info.compress_type = zipfile.ZIP_DEFLATED
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(info, page(url="https://a.test/1"))
        info.file_size = size  # as the list of members states it, in ZIP64 if it is long
    path = tmp_path / "a.wacz"
    path.write_bytes(file.getvalue())
    assert read(path) == ([], [("archive/a.warc", "so few octets cannot be unpacked to its size")])


def test_a_member_that_is_shorter_than_its_size_is_read_to_its_end(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("archive/a.warc")
    info.compress_type = zipfile.ZIP_DEFLATED
    file = io.BytesIO()
    plain = page(url="https://a.test/1")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(info, plain)
        info.file_size += 1000
    path = tmp_path / "a.wacz"
    path.write_bytes(file.getvalue())
    captures, problems = read(path)
    assert urls(captures) == ["1"]
    assert problems == [
        (f"archive/a.warc, record at octet {len(plain)}", "no WARC record begins here"),
        ("archive/a.warc", f"it cannot be unpacked after octet {len(plain)}"),
    ]


def test_zip64(tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    with (
        zipfile.ZipFile(path, "w") as archive,
        archive.open(ARCHIVE, "w", force_zip64=True) as member,
    ):
        member.write(pages_of(1, 2))
    assert read(path)[1] == []
    assert urls(read(path)[0]) == ["1", "2"]


def test_a_file_that_is_cut_off_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = write_wacz(tmp_path / "a.wacz", {ARCHIVE: pages_of(1)})
    whole = path.read_bytes()
    for end in (0, 1, 40, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:end])
        with pytest.raises(DatasetError, match=r"a\.wacz is damaged, or cut off .* `zip -FF"):
            read(path)


def test_a_member_that_is_packed_as_a_whole_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(page() * 2)
    path = write_wacz(tmp_path / "a.wacz", {ARCHIVE: whole})
    with pytest.raises(DatasetError, match=rf"a\.wacz: {ARCHIVE} is packed as a whole"):
        read(path)


def test_a_file_without_warc_files_says_so(tmp_path: Path) -> None:
    assert read(write_wacz(tmp_path / "a.wacz", {})) == (
        [],
        [("a.wacz", "it contains no WARC file")],
    )


def test_it_cannot_expire(tmp_path: Path) -> None:
    path = write_wacz(tmp_path / "a.wacz", {ARCHIVE: pages_of(1)})
    with pytest.raises(DatasetError, match="a WACZ file cannot expire: unzip it"):
        expire([path], NOW, tags=GUESSED)


@settings(deadline=None)
@given(st.data())
def test_any_damage_is_said_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    octets = bytearray(
        zipped(
            {ARCHIVE: pages_of(1, 2), "archive/b.warc": page()}, deflated=data.draw(st.booleans())
        )
    )
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("wacz") / "a.wacz"
    path.write_bytes(octets)
    for reader in (warc.Reader(path), items.Reader(path)):
        try:
            parts = [*reader.parts()]
            found = [one for part in parts for batch in reader.read(part) for one in batch]
        except DatasetError as error:
            assert "a.wacz" in str(error)  # noqa: PT017
            continue
        records = [one for one in found if isinstance(one, dict)]
        assert len(records) == 3 or any(isinstance(one, Unreadable) for one in found)


@pytest.mark.slow
def test_a_file_of_py_wacz(tmp_path: Path) -> None:
    (warc_file := tmp_path / "a.warc.gz").write_bytes(pages_of(1, 2))
    words = ("create", "-f", "a.warc.gz", "-o", "a.wacz", "--detect-pages")
    done = subprocess.run(
        [sys.executable, "-m", "wacz", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    got, problems = read(tmp_path / "a.wacz")
    assert [(dict(one), one.page) for one in got] == [
        (dict(one), one.page) for one in read(warc_file)[0]
    ]
    assert (len(got), problems) == (2, [])
