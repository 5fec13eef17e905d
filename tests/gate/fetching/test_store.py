from __future__ import annotations

import hashlib
import itertools
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from comity.database import checksum
from comity.gate.fetching.freshness import DAY
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.reach import Reach
from comity.gate.fetching.store import REFERENCES, PolicyStore
from comity.policies.answers.fetched import STAND_IN, Availability, Fetched, availability
from tests.gate.fetching.policy_files import answers, policy_files, utc
from tests.selection import one_in

NOW = 1_800_000_000.0
ROBOTS = "/robots.txt"


def had(body: bytes = b"User-agent: *\nDisallow: /\n", status: int = 200) -> PolicyFile:
    copy = Fetched(
        status=status,
        body=body,
        headers=((b"ETag", b'"1"'),),
        url="https://a.test/robots.txt",
        fetched_at=utc(NOW),
    )
    return PolicyFile(due=NOW + DAY, copy=copy)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "policies.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[PolicyStore]:
    store = PolicyStore(path)
    yield store
    store.close()


files = policy_files(
    answers.map(
        lambda answer: Fetched(status=answer.status, headers=answer.headers, error=answer.error)
    )
)


def test_sites_that_are_saved_together_take_few_statements(store: PolicyStore) -> None:
    """For each site: one for its old files, and one for each new file."""
    statements: list[str] = []
    sites = {
        f"https://{number}.test": {ROBOTS: had(), "/ai.txt": had(b"", 404)} for number in range(100)
    }
    store._db.set_trace_callback(statements.append)
    store.save_sites(sites)
    first, statements[:] = len(statements), []
    store.save_sites(sites)
    assert statements.count("COMMIT") == 1
    # The same number for all sites: begin, commit, the equal body, and the search for old files.
    assert (first, len(statements)) == (300 + 5, 300 + 4)


@pytest.mark.requirement("SEC-6")
def test_a_body_that_one_site_drops_stays_for_the_next_one(store: PolicyStore) -> None:
    """Both are saved together, and the first drops its oldest reference for good."""
    names = [f"https://b.test/{number}.txt" for number in range(REFERENCES + 1)]
    references = {name: had(b"# %d\n" % number) for number, name in enumerate(names)}
    last = {ROBOTS: references[names[0]]}
    store.save_sites({"https://a.test": references, "https://c.test": last})
    assert store.load("https://a.test").keys() == references.keys() - {names[0]}
    assert store.load("https://c.test") == last


@pytest.mark.requirement("SEC-6")
def test_what_is_saved_is_loaded(path: Path) -> None:
    store = PolicyStore(path)

    @given(
        st.dictionaries(
            st.sampled_from([ROBOTS, "/ai.txt", "https://b.test/more.txt"]), files, min_size=1
        ),
        st.dictionaries(st.just(ROBOTS), files),
    )
    def check(before: dict[str, PolicyFile], after: dict[str, PolicyFile]) -> None:
        store.save("https://a.test", before)
        store.save("https://a.test", after)
        assert store.load("https://a.test").items() >= (before | after).items()

    check()
    assert store.load("http://a.test") == {}
    assert store.load("https://a.test:444") == {}
    store.close()


@pytest.mark.requirement("SEC-6")
def test_bodies_are_kept_once_and_dropped_with_the_last_file(
    store: PolicyStore, path: Path
) -> None:
    store.save("https://a.test", {ROBOTS: had(b"same")})
    store.save("https://b.test", {ROBOTS: had(b"same")})
    assert bodies(path) == 1
    store.save("https://a.test", {ROBOTS: had(b"other")})
    assert bodies(path) == 2
    store.save("https://b.test", {ROBOTS: had(b"", 404)})
    assert bodies(path) == 1
    assert store.load("https://a.test") == {ROBOTS: had(b"other")}


@pytest.mark.requirement("SEC-6")
def test_what_counts_no_more_is_dropped(path: Path) -> None:
    for seconds, origin in (
        (0, "https://a.test"),
        (DAY, "https://b.test"),
        (STAND_IN + 1, "https://c.test"),
    ):
        with time_machine.travel(NOW + seconds):
            store = PolicyStore(path)
            store.save(origin, {ROBOTS: had(origin.encode())})
            store.close()
    store = PolicyStore(path)
    assert [bool(store.load(f"https://{name}.test")) for name in "abc"] == [False, True, True]
    assert bodies(path) == 2
    store.close()


@pytest.mark.requirement("ACAP-12", "SEC-3")
def test_a_site_that_names_other_files_every_day_does_not_fill_the_store(path: Path) -> None:
    """The references named last are kept, and always the origin's own files."""
    with time_machine.travel(NOW, tick=False) as clock:
        store = PolicyStore(path)
        store.save("https://a.test", {ROBOTS: had()})
        store.save("https://b.test", {"https://c.test/0.txt": had(b"other")})
        for number in range(REFERENCES + 9):
            clock.shift(1)
            store.save("https://a.test", {f"https://c.test/{number}.txt": had(b"%d" % number)})
    named = {f"https://c.test/{number}.txt" for number in range(9, REFERENCES + 9)}
    assert store.load("https://a.test").keys() == {ROBOTS} | named
    assert store.load("https://b.test").keys() == {"https://c.test/0.txt"}
    assert bodies(path) == REFERENCES + 2
    store.close()


PAGE = "https://a.test/page"


@pytest.mark.requirement("ACAP-32")
def test_the_first_moment_is_remembered(path: Path) -> None:
    """It is kept for each URL and use, between crawls and processes. Later uses change nothing."""
    here = datetime(2027, 1, 1, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=5)))
    store, other = PolicyStore(path), PolicyStore(path)
    assert store.first_taken(PAGE, ["index", "preserve"], here) == {"index": here, "preserve": here}
    assert other.first_taken(PAGE, ["index", "present"], utc(NOW)) == {
        "index": here,
        "present": utc(NOW),
    }
    assert store.first_taken(PAGE + "?", ["index"], utc(NOW + 1)) == {"index": utc(NOW + 1)}
    assert store.first_taken(PAGE, [], utc(NOW)) == {}
    store.close()
    store = PolicyStore(path)
    assert store.first_taken(PAGE, ["present", "index"], utc(NOW + 9)) == {
        "present": utc(NOW),
        "index": here,
    }
    store.close()
    other.close()


@pytest.mark.requirement("ACAP-32", "SEC-6")
def test_first_moments_are_kept_longer_than_files(path: Path) -> None:
    """If the begin of a period were forgotten, the new period would be a permission."""
    store = PolicyStore(path)
    with time_machine.travel(NOW):
        store.save("https://a.test", {ROBOTS: had()})
        store.first_taken(PAGE, ["index"], utc(NOW))
    with time_machine.travel(NOW + 400 * DAY):
        store.save("https://b.test", {ROBOTS: had()})
        assert store.load("https://a.test") == {}
        assert store.first_taken(PAGE, ["index"], utc(NOW + 400 * DAY)) == {"index": utc(NOW)}
    store.close()


@pytest.mark.requirement("ACAP-43")
def test_a_request_for_an_action_is_new_once_for_each_copy_of_the_file(path: Path) -> None:
    store = PolicyStore(path)
    asked = [
        store.requests_action(url, action, sha256, utc(NOW + seconds))
        for seconds, (url, action, sha256) in enumerate(
            [
                (PAGE, "re-crawl", "aa"),
                (PAGE, "re-crawl", "aa"),
                (PAGE, "take-down", "aa"),
                (PAGE + "2", "take-down", "aa"),
                (PAGE, "take-down", "bb"),
                (PAGE, "take-down", "aa"),
            ]
        )
    ]
    assert asked == [True, False, True, True, True, False]
    store.close()
    store = PolicyStore(path)
    assert store.requests_action(PAGE, "take-down", "bb", utc(NOW + 9)) is False
    assert store.take_downs() == [(PAGE + "2", utc(NOW + 3)), (PAGE, utc(NOW + 4))]
    store.close()


@pytest.mark.requirement("ACAP-43")
def test_what_is_taken_down_is_asked_for_no_more(path: Path) -> None:
    """Later requests, other pages and other actions are still to be done."""
    store = PolicyStore(path)
    for seconds, (url, action) in enumerate(
        [(PAGE, "take-down"), (PAGE + "2", "take-down"), (PAGE, "re-crawl")]
    ):
        store.requests_action(url, action, "aa", utc(NOW + seconds))
    store.took_down([PAGE, "https://b.test/"], utc(NOW + 5))
    assert store.take_downs() == [(PAGE + "2", utc(NOW + 1))]
    assert store.requests_action(PAGE, "take-down", "aa", utc(NOW + 6)) is False
    assert store.take_downs() == [(PAGE + "2", utc(NOW + 1))]
    store.requests_action(PAGE, "take-down", "bb", utc(NOW + 7))
    store.took_down([PAGE], utc(NOW + 6))  # by a process that did not know of the new request
    store.close()
    store = PolicyStore(path)
    assert store.take_downs() == [(PAGE + "2", utc(NOW + 1)), (PAGE, utc(NOW + 7))]
    store.close()


@pytest.mark.requirement("AUTX-10")
def test_when_a_session_began_is_remembered(path: Path) -> None:
    """It is kept for each host and secret, between crawls and processes, longer than files."""
    store, other = PolicyStore(path), PolicyStore(path)
    assert store.session_began("a.test", b"secret", utc(NOW)) == utc(NOW)
    assert other.session_began("a.test", b"secret", utc(NOW + 1)) == utc(NOW)
    assert other.session_began("a.test", b"other", utc(NOW + 2)) == utc(NOW + 2)
    assert store.session_began("a.test:8080", b"secret", utc(NOW + 3)) == utc(NOW + 3)
    store.close()
    other.close()
    with time_machine.travel(NOW + 400 * DAY):
        store = PolicyStore(path)
        store.save("https://b.test", {ROBOTS: had()})
        assert store.session_began("a.test", b"secret", utc(NOW + 400 * DAY)) == utc(NOW)
        store.close()


@pytest.mark.requirement("AUTX-10")
def test_secrets_are_not_in_the_store(path: Path) -> None:
    """No value in it allows a comparison of two stores."""
    stores = [path, path.with_name("other.sqlite")]
    digests = []
    for each in stores:
        store = PolicyStore(each)
        store.session_began("a.test", b"s3cr3t-value", utc(NOW))
        store.close()
        db = sqlite3.connect(each)
        digests.append(db.execute("SELECT digest FROM session").fetchone()[0])
        db.close()
        assert b"s3cr3t-value" not in b"".join(file.read_bytes() for file in each.parent.iterdir())
    assert digests[0] != digests[1]
    assert hashlib.sha256(b"s3cr3t-value").digest() not in digests


def bodies(path: Path) -> int:
    db = sqlite3.connect(path)
    (count,) = db.execute("SELECT count(*) FROM body").fetchone()
    db.close()
    return int(count)


# Changes of a store with robots.txt, its body, a first date, a take-down that is done, one that is
# not, and a session.
DAMAGES = {
    "no body": "DELETE FROM body",
    "a body that is not packed": "UPDATE body SET deflated = x'00'",
    "the body of another file": (
        "UPDATE file SET body = (SELECT sha256 FROM body WHERE sha256 <> file.body)"
    ),
    "no file": "UPDATE file SET body = NULL",
    "a bomb": f"UPDATE body SET deflated = x'{zlib.compress(bytes(50_000_000), 1).hex()}'",
    "half a copy": "UPDATE file SET copy = '{'",
    "no copy": "UPDATE file SET copy = NULL",
    "another status": "UPDATE file SET copy = replace(copy, '200', '404')",
    "no failure": "UPDATE file SET failure = NULL WHERE failure IS NOT NULL",
    "another reach": "UPDATE file SET reach = 'loopback'",
    "another origin": (
        "UPDATE file SET origin = replace(origin, 'b.test', 'a.test'), path = path || '2'"
        " WHERE origin = 'https://b.test'"
    ),
    "a text for a number": "UPDATE file SET failures = 'x'",
    "a text for a time": "UPDATE file SET due = 'x'",
    "octets for a time": "UPDATE file SET due = x'00'",
    "no UTF-8": "UPDATE file SET copy = CAST(x'ff' AS TEXT)",
    "another date": "UPDATE taken SET first = first + 1e6",
    "a text for a date": "UPDATE taken SET first = 'x'",
    "what is done": "UPDATE action SET done = 1 WHERE done IS NULL",
    "another action": "UPDATE action SET action = 're-crawl'",
    "another page": "UPDATE action SET url = 'https://a.test/'",
    "another salt": "UPDATE salt SET salt = randomblob(32)",
    "no salt": "DELETE FROM salt",
    "a younger session": "UPDATE session SET first = first + 1e6",
}


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("damage", one_in(6, DAMAGES))
def test_damage_that_shows_later_is_an_error_and_no_permission(path: Path, damage: str) -> None:
    """The store answers only with values as they were written.

    A lost row counts as unknown.
    """

    def told(store: PolicyStore) -> list[object]:
        answers: list[object] = []
        for ask in (
            lambda: store.load("https://a.test"),
            lambda: store.load("https://b.test"),
            lambda: store.first_taken(PAGE, ["index"], utc(NOW + 50)),
            store.take_downs,
            lambda: store.session_began("a.test", b"secret", utc(NOW + 50)),
        ):
            try:
                answers.append(ask())
            except OSError as error:
                answers.append(None if str(error).startswith(f"{path} cannot be ") else error)
        return answers

    store = PolicyStore(path)
    failing = had().after_failure(Fetched(status=503, fetched_at=utc(NOW)), NOW)
    store.save("https://a.test", {ROBOTS: had(), "/ai.txt": failing})
    store.save("https://b.test", {ROBOTS: had(b"User-agent: *\nDisallow: /\n")})
    store.first_taken(PAGE, ["index"], utc(NOW))
    store.session_began("a.test", b"secret", utc(NOW))
    store.requests_action(PAGE, "take-down", "aa", utc(NOW - 9))
    store.took_down([PAGE], utc(NOW - 8))
    store.requests_action(PAGE, "take-down", "bb", utc(NOW))
    before = told(store)
    assert None not in before
    db = sqlite3.connect(path)
    assert db.execute(DAMAGES[damage]).rowcount > 0
    db.commit()
    db.close()
    after = told(store)
    assert after != before
    assert all(new in (old, None, {}) for old, new in zip(before, after, strict=True))
    store.save("https://a.test", {ROBOTS: had(), "/ai.txt": failing})
    assert store.load("https://a.test")[ROBOTS] == had()  # the next save repairs the store
    store.close()


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize(
    "damage",
    [
        "failing_since = 1e300",
        "failures = 'x'",
        "reach = 'x'",
        "copy = '[]', body = NULL",
        f"copy = '{100_000 * '['}'",
        """copy = replace(copy, '200', '"200"')""",
        "copy = replace(copy, '1800000000.0', '1e300')",
        """copy = replace(copy, '"url":"https://a.test/robots.txt"', '"url":[]')""",
    ],
)
def test_what_nobody_writes_is_an_error_though_its_checksum_is_right(
    store: PolicyStore, path: Path, damage: str
) -> None:
    store.save("https://a.test", {ROBOTS: had()})
    with closing(sqlite3.connect(path)) as db, db:
        db.create_function("checksum", -1, checksum)
        before = db.execute("SELECT sum FROM file").fetchone()
        db.execute(f"UPDATE file SET {damage}")
        db.execute(
            "UPDATE file SET sum = checksum(origin, path, copy, body,"
            " failure, failing_since, failures, reach)"
        )
        assert db.execute("SELECT sum FROM file").fetchone() != before
    with pytest.raises(OSError, match=f"{path} cannot be read: "):
        store.load("https://a.test")
    store.save("https://a.test", {ROBOTS: had()})
    assert store.load("https://a.test") == {ROBOTS: had()}


@pytest.mark.requirement("SEC-6")
def test_a_damaged_time_of_a_file_that_is_named_no_more_is_dropped(
    store: PolicyStore, path: Path
) -> None:
    store.save("https://a.test", {ROBOTS: had(), "https://b.test/more.txt": had()})
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE file SET due = 'x' WHERE path <> '/robots.txt'")
    store.save("https://a.test", {ROBOTS: had()})
    assert store.load("https://a.test") == {ROBOTS: had()}


@pytest.mark.requirement("SEC-6")
def test_a_store_that_is_gone_is_an_error(path: Path) -> None:
    store = PolicyStore(path)
    store.close()
    with pytest.raises(OSError, match="cannot be read"):
        store.load("https://a.test")
    with pytest.raises(OSError, match="cannot be read"):
        store.take_downs()
    with pytest.raises(OSError, match="cannot be written"):
        store.save("https://a.test", {ROBOTS: had()})
    with pytest.raises(OSError, match="cannot be written"):
        store.first_taken(PAGE, ["index"], utc(NOW))
    with pytest.raises(OSError, match="cannot be written"):
        store.requests_action(PAGE, "re-crawl", "aa", utc(NOW))
    with pytest.raises(OSError, match="cannot be written"):
        store.took_down([PAGE], utc(NOW))
    with pytest.raises(OSError, match="cannot be written"):
        store.session_began("a.test", b"secret", utc(NOW))


WRITER = """
import sys
from pathlib import Path
from datetime import UTC, datetime
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from comity.policies.answers.fetched import Fetched

store = PolicyStore(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    body = b"User-agent: *\\nDisallow: /%d\\n" % number + b"#" * (number * 37 % 5000)
    copy = Fetched(status=200, body=body, fetched_at=datetime.fromtimestamp(1_800_000_000, UTC))
    file = PolicyFile(due=1_800_086_400, copy=copy)
    store.save(f"https://{sys.argv[2]}{number % 50}.test", {"/robots.txt": file})
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


def rules_of(store: PolicyStore, origin: str) -> int:
    """Return the number in the rule of the copy, which must be whole."""
    copy = store.load(origin)[ROBOTS].copy
    assert copy
    assert availability(copy) is Availability.PRESENT
    line, _, filler = copy.body.removeprefix(b"User-agent: *\nDisallow: /").partition(b"\n")
    assert len(filler) == int(line) * 37 % 5000
    return int(line)


@pytest.mark.requirement("SEC-6", "RFC-7")
@pytest.mark.parametrize("killed_after", [1, 7, 180])
def test_kill_9_forgets_nothing(path: Path, killed_after: int) -> None:
    """The store opens again after the kill.

    Every origin that was reported as saved has its whole rules, and no older ones.
    """
    process = writer(path, "a", 100_000)
    assert process.stdout
    reported = [int(line) for line in itertools.islice(process.stdout, killed_after)][-1]
    process.kill()
    process.wait()
    process.stdout.close()
    store = PolicyStore(path)
    for number in range(max(0, reported - 49), reported + 1):
        assert rules_of(store, f"https://a{number % 50}.test") >= number
    store.close()


@pytest.mark.requirement("SEC-6")
def test_processes_share_a_store(path: Path) -> None:
    """Both create the file, write at the same time, and read the rows of the other."""
    processes = [writer(path, name, 200) for name in "ab"]
    for process in processes:
        assert process.communicate()[0].split()[-1] == "199"
    store = PolicyStore(path)
    assert {
        rules_of(store, f"https://{name}{number % 50}.test")
        for name in "ab"
        for number in range(150, 200)
    } == set(range(150, 200))
    store.close()


@pytest.mark.requirement("RFC-7", "RFC-8")
@given(files, st.floats(0, 4e9))
def test_times_far_ahead_are_not_believed(file: PolicyFile, now: float) -> None:
    """After the clock was set back, no site stays closed, or open, for years."""
    assert file.is_due(now) or now < file.due <= now + DAY


@pytest.mark.requirement("RFC-7")
@given(
    st.lists(
        st.tuples(st.sampled_from(["ok", "absent", "304", "fail"]), st.integers(1, 20 * 86_400)),
        min_size=1,
        max_size=30,
    )
)
def test_an_unreachable_file_permits_nothing(events: list[tuple[str, float]]) -> None:
    """After any history, an unreachable file refuses everything or its copy counts.

    The copy was confirmed within 30 days, and no wait is longer than a day.
    """
    now, file = NOW, PolicyFile(due=0)
    confirmed: float | None = None
    for event, seconds in events:
        now += seconds
        match event:
            case "ok":
                file, confirmed = (
                    PolicyFile(
                        due=now + DAY, copy=Fetched(status=200, body=b"x", fetched_at=utc(now))
                    ),
                    now,
                )
            case "absent":
                file, confirmed = (
                    PolicyFile(due=now + DAY, copy=Fetched(status=404, fetched_at=utc(now))),
                    None,
                )
            case "304" if file.copy and confirmed is not None:
                file, confirmed = file.after_confirmation((), DAY, now), now
            case _:
                file = file.after_failure(Fetched(status=503), now)
                current = file.current(now)
                stands_in = confirmed is not None and now < confirmed + STAND_IN
                assert availability(current) is (
                    Availability.PRESENT if stands_in else Availability.UNREACHABLE
                )
                assert (current.unreachable_since is not None) is stands_in
        assert now < file.counts_until(now) <= now + DAY


@pytest.mark.requirement("RFC-7", "SEC-6")
def test_all_that_is_known_of_a_file_comes_back(path: Path) -> None:
    then = utc(NOW - 5)
    headers = ((b"ETag", b'"\xe4"'), (b"X", b""))
    copy = Fetched(
        status=200,
        headers=headers,
        body=b"x" * 99,
        url="https://b.test/r",
        fetched_at=then,
        oversized=True,
    )
    failure = Fetched(
        status=0, error="no \u2603 answer", url="https://c.test/", fetched_at=utc(NOW)
    )
    files = {
        "/whole": PolicyFile(
            due=NOW, copy=copy, failure=failure, failing_since=then, failures=3, reach=Reach.PRIVATE
        ),
        "/failing": PolicyFile(
            due=NOW + 1,
            failure=Fetched(status=503, headers=headers),
            failing_since=utc(NOW),
            failures=1,
        ),
        "/absent": PolicyFile(due=NOW + 2, copy=Fetched(status=404)),
        "/nothing": PolicyFile(due=NOW + 3),
    }
    store = PolicyStore(path)
    store.save("https://a.test", files)
    assert store.load("https://a.test") == files
    store.close()


@pytest.mark.requirement("SEC-6")
@pytest.mark.parametrize("deflated", [b"\0", zlib.compress(b"User-agent: *\n"), "no octets"])
def test_a_body_that_is_damaged_is_written_again(path: Path, deflated: bytes | str) -> None:
    store = PolicyStore(path)
    store.save("https://a.test", {ROBOTS: had()})
    store._db.execute("UPDATE body SET deflated = ?", (deflated,))
    with pytest.raises(OSError, match="cannot be read"):
        store.load("https://a.test")
    store.save("https://b.test", {ROBOTS: had()})
    assert store.load("https://a.test") == store.load("https://b.test") == {ROBOTS: had()}
    store.close()


@pytest.mark.requirement("SEC-6")
def test_errors_say_what_has_happened(path: Path) -> None:
    store = PolicyStore(path)
    for table in ("file", "taken", "action", "salt"):
        store._db.execute(f"DROP TABLE {table}")
    for table, call in (
        ("file", lambda: store.load("https://a.test")),
        ("file", lambda: store.save("https://a.test", {ROBOTS: had()})),
        ("taken", lambda: store.first_taken(PAGE, ["index"], utc(NOW))),
        ("action", lambda: store.requests_action(PAGE, "re-crawl", "aa", utc(NOW))),
        ("action", store.take_downs),
        ("action", lambda: store.took_down([PAGE], utc(NOW))),
        ("salt", lambda: store.session_began("a.test", b"secret", utc(NOW))),
    ):
        with pytest.raises(OSError, match=f"no such table: {table}"):
            call()
    store.close()


@pytest.mark.requirement("ACAP-43")
def test_take_downs_of_one_moment_are_in_the_order_of_their_urls(path: Path) -> None:
    store = PolicyStore(path)
    for url, seconds in ((PAGE + "2", 9), (PAGE + "1", 9), (PAGE + "3", 1), (PAGE + "2", 0)):
        store.requests_action(url, "take-down", str(seconds), utc(NOW + seconds))
    assert [url for url, _ in store.take_downs()] == [PAGE + "3", PAGE + "1", PAGE + "2"]
    store.close()
