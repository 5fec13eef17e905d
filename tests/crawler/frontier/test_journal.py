from __future__ import annotations

import itertools
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest

from comity.crawler.frontier.journal import NAME, Journal
from comity.database import checksum
from comity.policies import PolicyError

A, B = "https://a.test", "https://b.test:444"


class Pages(Spider):
    name = "pages"

    def parse_page(self, response: object) -> None: ...

    def failed(self, failure: object) -> None: ...


class OtherPages(Spider):
    """A later version, without the callback."""

    name = "pages"


class NotAgain:
    """Goes into a pickle and does not come out."""

    def __init__(self, value: int) -> None: ...

    def __reduce__(self) -> tuple[type[NotAgain], tuple[()]]:
        return NotAgain, ()


class Sulky:
    def __reduce__(self) -> str:
        raise RuntimeError("not today")


SPIDER = Pages()


def job_in(folder: Path, spider: Spider = SPIDER) -> Journal:
    journal = Journal(folder)
    journal.open(spider)
    return journal


def page(number: int = 0, priority: int = 0, **more: Any) -> Request:
    return Request(f"{A}/{number}", priority=priority, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "journal"


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    journal = job_in(folder)
    yield journal
    journal.close()


def crashed(folder: Path, copy: Path) -> Path:
    """What is left where the process that has the journal is killed now."""
    copy.mkdir()
    for file in folder.iterdir():
        shutil.copyfile(file, copy / file.name)
    return copy


SHARING = Request(A, meta={"depth": 1})
SHARING.cb_kwargs["meta"] = SHARING.meta
REQUESTS = {
    "plain": page(),
    "verbatim": Request(f"{A}/a b", meta={"verbatim_url": True}),
    "meta in cb_kwargs": SHARING,
    "all there is": Request(
        f"{A}/päge?b=1#f",
        callback=SPIDER.parse_page,
        errback=SPIDER.failed,
        method="PUT",
        headers={"Referer": A, "X-Two": ["1", "2"]},
        body=b"\x00\xff",
        cookies={"a": "b"},
        meta={"depth": 3, "nested": {"list": [1, None]}},
        encoding="latin-1",
        priority=-7,
        dont_filter=True,
        flags=["one"],
        cb_kwargs={"number": 1},
    ),
    "form": FormRequest(A, formdata={"q": "ä"}, callback=SPIDER.parse_page),
    "JSON": JsonRequest(A, data={"q": 1}, dumps_kwargs={"sort_keys": True}),
}


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_comes_back_as_it_was(folder: Path, kind: str) -> None:
    """From memory, from the file, and in the next crawl."""
    request = REQUESTS[kind]
    stated = request.to_dict(spider=SPIDER)

    def check(got: Request) -> None:
        assert type(got) is type(request)
        assert got.to_dict(spider=SPIDER) == stated
        assert (got.callback, got.errback) == (request.callback, request.errback)

    journal = job_in(folder)
    key = journal.put(A, request, b"1")
    assert key is not None
    check(journal.get(key))
    journal.flush()
    check(journal.get(key))
    journal.close()
    journal = job_in(folder)
    assert list(journal.stored_requests()) == [(key, A, request.priority)]
    check(journal.get(key))
    journal.close()


@pytest.mark.requirement("SEC-6")
def test_a_request_is_stored_as_it_was_when_it_was_put(journal: Journal) -> None:
    request = page(meta={"depth": 1})
    key = journal.put(A, request, None)
    request.meta["depth"] = 2
    assert key is not None
    assert journal.get(key).meta == {"depth": 1}


@pytest.mark.requirement("SEC-6")
def test_higher_priority_comes_first_then_order_of_arrival(folder: Path) -> None:
    far = 2**70  # SQLite has no such number
    for _ in range(2):  # in two crawls
        journal = job_in(folder)
        for origin, priority in ((A, 0), (B, 5), (A, 5), (B, -far), (A, far)):
            journal.put(origin, page(priority=priority), None)
        journal.flush()
        assert len({key for key, _, _ in journal.stored_requests()}) in (
            0,
            5,
        )  # of the crawl before, not of this one
        journal.close()
    journal = job_in(folder)
    waiting = list(journal.stored_requests())
    assert [(origin, priority) for _, origin, priority in waiting] == [
        *[(A, 2**63 - 1)] * 2,
        *[(B, 5), (A, 5)] * 2,
        *[(A, 0)] * 2,
        *[(B, -(2**63))] * 2,
    ]
    assert [journal.get(waiting[position][0]).priority for position in (0, -1)] == [far, -far]
    journal.close()


@pytest.mark.requirement("SEC-6")
def test_a_fingerprint_is_written_once(folder: Path) -> None:
    journal = job_in(folder)
    for fingerprint in (b"1", None, b"2", None):
        journal.put(A, page(), fingerprint)
        journal.flush()
    journal.close()
    db = sqlite3.connect(folder / NAME)
    assert db.execute("SELECT fingerprint FROM seen").fetchall() == [(b"1",), (b"2",)]
    db.close()


# What a crawl does: puts a request (origin, priority, fingerprint, whether it can be stored), is done with one, flushes.
puts = st.tuples(
    st.sampled_from([A, B]),
    st.integers(-2, 2),
    st.none() | st.binary(min_size=1, max_size=2),
    st.booleans(),
)
steps = st.one_of(puts, st.integers(0, 30), st.just("flush"))
crawls = st.lists(st.tuples(st.lists(steps, max_size=20), st.booleans()), max_size=4)


@pytest.mark.requirement("SEC-6")
@given(crawls)
def test_every_crawl_finds_what_the_one_before_flushed(
    crawls: list[tuple[list[Any], bool]],
) -> None:
    """Nothing more and nothing less, whether it was closed or killed; and has it at hand as long as it runs."""
    flushed: tuple[dict[int, tuple[str, int]], set[bytes]] = ({}, set())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "0"
        for number, (did, is_killed) in enumerate(crawls, 1):
            journal = job_in(folder)
            live, seen = dict(flushed[0]), set(flushed[1])
            assert journal.seen == seen
            assert list(journal.stored_requests()) == [
                (key, *live[key]) for key in sorted(live, key=lambda key: (-live[key][1], key))
            ]
            for step in did:
                if step == "flush":
                    journal.flush()
                    flushed = (dict(live), set(seen))
                elif isinstance(step, int):
                    if live:
                        key = sorted(live)[step % len(live)]
                        journal.mark_done(key)
                        del live[key]
                else:
                    origin, priority, fingerprint, can_be_stored = step
                    request = Request(
                        origin, priority=priority, callback=None if can_be_stored else print
                    )
                    put = journal.put(origin, request, fingerprint)
                    assert (put is not None) is can_be_stored
                    assert fingerprint is None or fingerprint in journal.seen
                    if put is not None:
                        assert put not in live
                        live[put] = (origin, priority)
                        seen |= {fingerprint} - {None}
            for key, (origin, priority) in live.items():
                got = journal.get(key)
                assert (got.url, got.priority) == (origin, priority)
            if is_killed:
                folder = crashed(folder, Path(temporary) / str(number))
            else:
                flushed = (live, seen)
            journal.close()


# A crawl of pages that lead to two further ones each: page n to 2n + 1 and 2n + 2. It says which ones it has flushed.
CRAWL = """
import sys
from pathlib import Path
from scrapy import Request, Spider
from comity.database import checksum
from comity.crawler.frontier.journal import Journal

journal = Journal(Path(sys.argv[1]))
journal.open(Spider("pages"))
keys = [key for key, _, _ in journal.stored_requests()]
first = int(journal.get(keys[0]).url.rpartition("/")[2]) if keys else 0

def put(number):
    request = Request(f"https://a.test/{number}", meta={"filler": "#" * (number * 37 % 5000)})
    keys.append(journal.put("https://a.test", request, b"%d" % number))

if not keys:
    put(0)
for number in range(first, first + 100_000):
    key = keys.pop(0)
    assert journal.get(key).url == f"https://a.test/{number}"
    put(2 * number + 1)
    put(2 * number + 2)
    journal.mark_done(key)
    if number % 7 == 0:
        journal.flush()
        print(number, flush=True)
"""


@pytest.mark.requirement("SEC-6")
def test_kill_9_loses_no_request(folder: Path) -> None:
    """Again and again in one crawl: a page is done where what it leads to is stored, and else it is there again."""
    for killed_after in (1, 30, 3, 400):
        process = subprocess.Popen(
            [sys.executable, "-c", CRAWL, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        reported = [int(line) for line in itertools.islice(process.stdout, killed_after)][-1]
        process.kill()
        process.wait()
        process.stdout.close()
        journal = job_in(folder)
        waiting = [
            int(journal.get(key).url.rpartition("/")[2]) for key, _, _ in journal.stored_requests()
        ]
        assert waiting[0] > reported
        assert waiting == list(range(waiting[0], 2 * waiting[0] + 1))
        assert journal.seen == {b"%d" % number for number in range(2 * waiting[0] + 1)}
        journal.close()


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@contextmanager
def only_here() -> Iterator[type[Request]]:
    class Hidden(Request):
        """Nobody can import it."""

    yield Hidden


def hidden() -> Request:
    with only_here() as hidden_class:
        return hidden_class(A)


UNSTORABLE: dict[str, Callable[[], Request]] = {
    "a callback that is no method": lambda: page(callback=lambda response: None),
    "another object's method": lambda: page(callback=threading.Event().set),
    "an errback that is no method": lambda: page(errback=print),
    "a lock": lambda: page(meta={"lock": threading.Lock()}),
    "a lambda": lambda: page(cb_kwargs={"key": lambda: 0}),
    "an open file": lambda: page(cb_kwargs={"file": sys.__stdout__}),
    "too deep": lambda: page(meta={"nested": deep()}),
    "an object with a mind of its own": lambda: page(meta={"object": Sulky()}),
    "a class that cannot be imported": hidden,
}


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("kind", UNSTORABLE)
def test_a_request_that_cannot_be_stored_is_forgotten_until_it_is_done(
    folder: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """In this crawl it is seen. In the next one it is not, or it would never be asked for."""
    journal = job_in(folder)
    before = journal.put(A, page(1), b"1")
    assert journal.put(A, UNSTORABLE[kind](), b"2") is None
    assert journal.put(A, UNSTORABLE[kind](), b"3") is None
    assert journal.put(A, UNSTORABLE[kind](), None) is None
    after = journal.put(A, page(2), b"4")
    assert journal.seen == {b"1", b"2", b"3", b"4"}
    assert len(caplog.records) == 1
    journal.mark_seen(b"3")
    journal.close()
    journal = job_in(folder)
    assert journal.seen == {b"1", b"3", b"4"}
    assert list(journal.stored_requests()) == [(before, A, 0), (after, A, 0)]
    journal.close()


def without_callback(folder: Path) -> Spider:
    return OtherPages()


def with_other_origin(folder: Path) -> Spider:
    change(folder, "UPDATE waiting SET origin = 'https://other.test' WHERE id = 1")
    return SPIDER


def with_damaged_body(folder: Path) -> Spider:
    change(folder, "UPDATE waiting SET body = substr(body, 1, 20) WHERE id = 1")
    return SPIDER


def with_cut_body(folder: Path) -> Spider:
    """Written so."""
    with_damaged_body(folder)
    change(folder, RESUM)
    return SPIDER


def with_foreign_body(folder: Path) -> Spider:
    change(folder, "UPDATE waiting SET body = x'4e2e' WHERE id = 1")  # None
    change(folder, RESUM)
    return SPIDER


def without_row(folder: Path) -> Spider:
    change(folder, "UPDATE waiting SET id = 99 WHERE id = 1")
    return SPIDER


RESUM = "UPDATE waiting SET sum = checksum(id, origin, priority, body)"


def change(folder: Path, statement: str) -> None:
    db = sqlite3.connect(folder / NAME)
    db.create_function("checksum", -1, checksum)
    db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(
    "happens",
    [
        without_callback,
        with_other_origin,
        with_damaged_body,
        with_cut_body,
        with_foreign_body,
        without_row,
    ],
)
def test_a_request_that_cannot_be_read_any_more_is_said_and_stays(
    folder: Path, happens: Callable[[Path], Spider]
) -> None:
    journal = job_in(folder)
    assert journal.put(A, page(callback=SPIDER.parse_page), None) == 1
    assert journal.put(A, page(2), None) == 2
    journal.close()
    journal = job_in(folder, happens(folder))
    with pytest.raises(LookupError, match=r"^request 1 of `.*comity.sqlite` cannot be read: ."):
        journal.get(1)
    assert journal.get(2).url == f"{A}/2"
    journal.mark_done(2)
    journal.close()
    journal = job_in(folder)
    assert len(list(journal.stored_requests())) == 1
    journal.close()


@pytest.mark.requirement("SEC-6")
def test_an_object_that_does_not_come_out_of_its_pickle(journal: Journal) -> None:
    key = journal.put(A, page(meta={"object": NotAgain(1)}), None)
    assert key is not None
    with pytest.raises(LookupError):
        journal.get(key)
    journal.flush()
    with pytest.raises(LookupError):
        journal.get(key)


@contextmanager
def full_disk(octets: int) -> Iterator[None]:
    """No file of this process grows further than that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.requirement("SEC-6")
def test_a_full_disk_costs_nothing_but_memory(folder: Path, tmp_path: Path) -> None:
    """What could not be written is at hand, none of it is in the file, and all of it is once there is space again."""
    journal = job_in(folder)
    keys = [journal.put(A, page(number, body=b"#" * 5000), b"%d" % number) for number in range(200)]
    assert keys[0]
    journal.flush()
    with full_disk(100_000):
        more = [
            journal.put(B, page(number, body=b"#" * 5000), b"%d" % number)
            for number in range(200, 300)
        ]
        assert more[0]
        assert more[1]
        journal.mark_done(keys[0])
        for _ in range(2):
            with pytest.raises(OSError, match=r"comity.sqlite cannot be written: ."):
                journal.flush()
        journal.mark_done(more[0])
        assert journal.get(more[1]).url == f"{A}/201"
    after_crash = job_in(crashed(folder, tmp_path / "crashed"))
    assert list(after_crash.stored_requests()) == [(key, A, 0) for key in keys]
    assert len(after_crash.seen) == 200
    after_crash.close()
    journal.flush()
    journal.close()
    journal = job_in(folder)
    assert list(journal.stored_requests()) == [(key, A, 0) for key in keys[1:]] + [
        (key, B, 0) for key in more[1:]
    ]
    assert len(journal.seen) == 300
    journal.close()


@pytest.mark.requirement("SEC-6")
def test_what_fails_half_way_is_taken_back(folder: Path) -> None:
    journal = job_in(folder)
    journal._db.execute(
        "CREATE TEMP TRIGGER one_at_most BEFORE INSERT ON main.seen WHEN (SELECT count(*) FROM waiting) > 1"
        " BEGIN SELECT RAISE(ABORT, 'too many'); END"
    )
    first, second = (journal.put(A, page(number), b"%d" % number) for number in range(2))
    assert first
    for _ in range(2):
        with pytest.raises(OSError, match="cannot be written: too many"):
            journal.flush()
    journal.mark_done(first)
    journal.flush()
    journal.close()
    journal = job_in(folder)
    assert list(journal.stored_requests()) == [(second, A, 0)]
    assert journal.seen == {b"0", b"1"}
    journal.close()


@pytest.mark.requirement("SEC-6")
def test_a_job_that_cannot_be_written_is_let_go_all_the_same(folder: Path) -> None:
    journal = job_in(folder)
    journal.put(A, page(body=b"#" * 500_000), b"1")
    with full_disk(100_000), pytest.raises(OSError, match="cannot be written"):
        journal.close()
    journal = job_in(folder)
    assert journal.seen == set()
    journal.close()


HOLDER = """
import sys
from pathlib import Path
from comity.database import checksum
from comity.crawler.frontier.journal import Journal
from comity.policies import PolicyError

try:
    journal = Journal(Path(sys.argv[1]))
except PolicyError as error:
    print(error, flush=True)
else:
    print("open", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("is_new", [True, False])
def test_two_crawls_cannot_have_the_same_job(folder: Path, is_new: bool) -> None:
    """Until the first one ends, in whatever way."""
    if not is_new:
        job_in(folder).close()
    process = holder(folder)
    assert process.stdout
    assert process.stdout.readline() == "open\n"
    with pytest.raises(PolicyError) as raised:
        Journal(folder)
    assert str(raised.value) == (
        f"JOBDIR: `{folder / NAME}` is in use by another crawl; set JOBDIR to a folder of this crawl's own"
    )
    ended(process)
    journal = job_in(folder)
    with pytest.raises(PolicyError, match="in use by another crawl"):
        Journal(folder)  # in the same process
    key = journal.put(A, page(), b"1")
    journal.flush()
    assert key is not None
    assert journal.get(key)
    journal.close()


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("is_new", [True, False])
def test_of_two_crawls_that_start_together_one_has_the_job(folder: Path, is_new: bool) -> None:
    if not is_new:
        job_in(folder).close()
    processes = [holder(folder) for _ in range(2)]
    said = []
    for process in processes:
        assert process.stdout
        said.append(process.stdout.readline())
    for process in processes:
        ended(process)
    assert said.count("open\n") == 1
    assert sum("in use by another crawl" in line for line in said) == 1


@pytest.mark.requirement("SEC-6")
def test_damage_that_shows_later_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file that is too large to be checked at the start."""
    monkeypatch.setattr("comity.database.CHECKED", 0)
    journal = job_in(folder)
    for number in range(100):
        journal.put(A, page(number, body=b"#" * 3000), None)
    journal.close()
    path = folder / NAME
    octets = path.read_bytes()
    quarter = len(octets) // 4
    path.write_bytes(octets[:quarter] + b"\xff" * quarter + octets[2 * quarter :])
    journal = job_in(folder)
    with pytest.raises(PolicyError, match="is damaged"):
        list(journal.stored_requests())
    journal.close()


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("mark", ["'x'", "x'00ff'", "9e999"])
def test_a_damaged_mark_of_a_queue_that_was_taken_over_is_said(folder: Path, mark: str) -> None:
    job_in(folder).close()
    change(folder, f"INSERT INTO taken_over VALUES ({mark})")
    journal = job_in(folder)
    with pytest.raises(PolicyError, match="is damaged"):
        _ = journal.mark
    journal.close()
