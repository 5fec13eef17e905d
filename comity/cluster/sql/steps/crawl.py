"""The steps of a crawl as a whole. The key of a call is the name of the crawl."""

from __future__ import annotations

from typing import Any

from comity.cluster.sql.steps.queue import forget_old_answers
from comity.cluster.sql.steps.step import step
from comity.cluster.sql.work import HOUR, Work
from comity.cluster.steps.queue import DATA_VERSION

SHARDS = 1  # the rows of a table need no shards
_RUNS = "run, emptied, kept, swept, forgotten, put_before, done_before, filtered_before"


def _row(work: Work, crawl: str, columns: str, lock: str = "") -> tuple[Any, ...] | None:
    return work.db.one(f"SELECT {columns} FROM crawl WHERE crawl = ?{lock}", (crawl,))


def _ago(work: Work, moment: int | None) -> int:
    """Return the milliseconds since the moment; 0 if it is None."""
    return 0 if moment is None else (work.now - moment) // 1000


def _began(began: int) -> bytes:
    """Return the begin of the crawl as an answer. It distinguishes crawls of one name."""
    return str(began).encode()


@step("crawl open", is_alone=True)
def open_(work: Work, crawl: str, version: Any, shards: Any) -> list[Any]:
    work.db.rows(
        "INSERT INTO crawl VALUES"
        " (?, 1, 1, 1, 0, 0, 0, 0, 0, ?, 'running', '', NULL, NULL, NULL, NULL, 0, 0, 0)"
        " ON CONFLICT DO NOTHING",
        (crawl, work.now),
    )
    row = _row(work, crawl, f"state, began, {_RUNS}", work.db.lock)
    assert row is not None
    state, began, *runs = row
    work.db.rows("INSERT INTO run VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (crawl, runs[0], began))
    gone = work.db.rows(
        "SELECT worker FROM worker WHERE crawl = ? AND beat < ?", (crawl, work.now - 24 * HOUR)
    )
    for (worker,) in gone:
        _forget(work, crawl, worker, "died")
    forget_old_answers(work)
    return [DATA_VERSION, SHARDS, state.encode(), _began(began), runs]


def _told(work: Work, crawl: str, ttl: Any) -> list[Any] | None:
    row = _row(work, crawl, "state, run, began, deployed")
    if row is None:
        return None
    alive = work.db.one(
        "SELECT count(*) FROM worker WHERE crawl = ? AND beat > ?",
        (crawl, work.now - int(ttl) * 1000),
    )
    assert alive is not None
    state, run, began, deployed = row
    return [state.encode(), run, _began(began), alive[0], deployed]


@step("crawl ask")
def ask(work: Work, crawl: str, ttl: Any) -> list[Any] | None:
    return _told(work, crawl, ttl)


@step("crawl noted")
def noted(work: Work, crawl: str, age: Any) -> list[Any]:
    """Return the state of the crawl alone: a look costs no more than its notes would."""
    return [_told(work, crawl, 0)]


@step("crawl note")
def note(work: Work, crawl: str, run: Any, counts: bytes) -> int:
    return 1


@step("crawl beat")
def beat(work: Work, crawl: str, worker: str, ttl: Any) -> list[Any] | None:
    if _row(work, crawl, "1") is None:
        return None
    work.db.rows(
        "INSERT INTO worker VALUES (?, ?, ?) ON CONFLICT (crawl, worker)"
        " DO UPDATE SET beat = excluded.beat",
        (crawl, worker, work.now),
    )
    return _told(work, crawl, ttl)


@step("crawl leave", is_alone=True)
def leave(work: Work, crawl: str, worker: str, how: str) -> int:
    if _row(work, crawl, "1", work.db.lock) is not None:
        _forget(work, crawl, worker, how)
    return 1


def _forget(work: Work, crawl: str, worker: str, how: str) -> None:
    """Forget a worker, and keep its counts. The row of the crawl is locked."""
    column = "gone" if how == "left" else "died"
    if work.db.rows(
        "DELETE FROM worker WHERE crawl = ? AND worker = ? RETURNING 1", (crawl, worker)
    ):
        work.db.rows(f"UPDATE crawl SET {column} = {column} + 1 WHERE crawl = ?", (crawl,))
    work.db.rows(
        "INSERT INTO told SELECT crawl, '', name, number FROM told WHERE crawl = ? AND worker = ?"
        " ON CONFLICT (crawl, worker, name) DO UPDATE SET number = told.number + excluded.number",
        (crawl, worker),
    )
    work.db.rows("DELETE FROM told WHERE crawl = ? AND worker = ?", (crawl, worker))


@step("crawl set", is_alone=True)
def set_(work: Work, crawl: str, state: str, reason: str) -> bytes | None:
    row = _row(work, crawl, "state", work.db.lock)
    if row is None:
        return None
    if state != "ended":
        work.db.rows("UPDATE crawl SET reason = '', ended = NULL WHERE crawl = ?", (crawl,))
    elif row[0] != "ended":  # the first reason stays
        work.db.rows(
            "UPDATE crawl SET reason = ?, ended = ? WHERE crawl = ?", (reason, work.now, crawl)
        )
    work.db.rows("UPDATE crawl SET state = ? WHERE crawl = ?", (state, crawl))
    return bytes(row[0].encode())


@step("crawl finish", is_alone=True)
def finish(work: Work, crawl: str, run: Any, put: Any) -> int | None:
    row = _row(work, crawl, "run, put, finished", work.db.lock)
    if row is None or row[0] != int(run):
        return None
    if row[1] == int(put):
        return _ago(work, row[2])
    work.db.rows(
        "UPDATE crawl SET finished = ?, put = ? WHERE crawl = ?", (work.now, int(put), crawl)
    )
    return 0


@step("crawl again", is_alone=True)
def again(work: Work, crawl: str, run: Any, since: Any, put: Any, done: Any, filtered: Any) -> int:
    row = _row(work, crawl, "run, emptied, kept", work.db.lock)
    if row is None or row[0] != int(run):
        return 0
    number, emptied, kept = row
    first = number + 1
    if since == "":
        emptied = first
    else:
        begins: dict[int, int] = dict(
            work.db.rows("SELECT run, began FROM run WHERE crawl = ?", (crawl,))
        )
        while first > kept and begins.get(first - 1, 0) // 1000 >= int(since):
            first -= 1
    work.db.rows(
        "UPDATE crawl SET run = ?, emptied = ?, kept = ?, put_before = ?, done_before = ?,"
        " filtered_before = ?, began = ?, state = 'running', reason = '', ended = NULL,"
        " finished = NULL, put = NULL, settings = NULL, gone = 0, died = 0 WHERE crawl = ?",
        (number + 1, emptied, first, int(put), int(done), int(filtered), work.now, crawl),
    )
    work.db.rows("INSERT INTO run VALUES (?, ?, ?)", (crawl, number + 1, work.now))
    work.db.rows("DELETE FROM told WHERE crawl = ?", (crawl,))
    return 1


@step("crawl swept")
def swept(work: Work, crawl: str, runs: Any, forgotten: Any) -> int:
    work.db.rows(
        "UPDATE crawl SET swept = ?, forgotten = ? WHERE crawl = ?",
        (int(runs), int(forgotten), crawl),
    )
    return 1


@step("crawl exchange", is_alone=True)
def exchange(work: Work, crawl: str, change: Any, *pairs: Any) -> list[Any]:
    if _row(work, crawl, "1", work.db.lock) is None:
        return [0]
    last = work.db.one("SELECT max(change) FROM spider_state WHERE crawl = ?", (crawl,))
    assert last is not None
    number = last[0] or 0
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        number += 1
        work.db.rows(
            "INSERT INTO spider_state VALUES (?, ?, ?, ?) ON CONFLICT (crawl, key)"
            " DO UPDATE SET change = excluded.change, value = excluded.value",
            (crawl, key, number, value),
        )
    changed = work.db.rows(
        "SELECT key, value FROM spider_state WHERE crawl = ? AND change > ? ORDER BY change",
        (crawl, int(change)),
    )
    return [number, *(member for key, value in changed for member in (key.encode(), value))]


@step("crawl look")
def look(work: Work, crawl: str) -> list[Any] | None:
    row = _row(work, crawl, f"state, began, put, finished, settings, {_RUNS}")
    if row is None:
        return None
    state, began, put, finished, settings, *runs = row
    workers = work.db.rows(
        "SELECT worker, beat FROM worker WHERE crawl = ? ORDER BY worker", (crawl,)
    )
    return [
        DATA_VERSION,
        SHARDS,
        state.encode(),
        runs,
        _ago(work, began),
        put or 0,
        _ago(work, finished),
        settings or b"",
        *([worker.encode(), _ago(work, moment)] for worker, moment in workers),
    ]


@step("crawl delete", is_alone=True)
def delete(work: Work, crawl: str) -> int:
    for table in ("crawl", "worker", "told", "run", "spider_state", "account", "reserved"):
        work.db.rows(f"DELETE FROM {table} WHERE crawl = ?", (crawl,))
    return 1


@step("crawl agree", is_alone=True)
def agree(work: Work, crawl: str, settings: bytes) -> list[Any] | None:
    work.db.rows(
        "UPDATE crawl SET settings = ? WHERE crawl = ? AND settings IS NULL", (settings, crawl)
    )
    row = _row(work, crawl, "settings, deployed")
    return None if row is None else list(row)


@step("crawl deploy", is_alone=True)
def deploy(work: Work, crawl: str, settings: bytes) -> bytes | None:
    row = _row(work, crawl, "settings", work.db.lock)
    if row is None:
        return None
    work.db.rows(
        "UPDATE crawl SET settings = ?, deployed = deployed + 1 WHERE crawl = ?", (settings, crawl)
    )
    return row[0] or b""


@step("crawl tell")
def tell(work: Work, crawl: str, worker: str, run: Any, *counts: Any) -> int:
    row = _row(work, crawl, "run", work.db.lock_shared)
    if row is not None and row[0] == int(run):
        work.db.with_rows(
            "INSERT INTO told VALUES {list} ON CONFLICT (crawl, worker, name)"
            " DO UPDATE SET number = excluded.number",
            [
                (crawl, worker, name, number)
                for name, number in sorted(zip(counts[::2], counts[1::2], strict=True))
            ],
            repeat=False,
        )
    return 1


@step("crawl sums")
def sums(work: Work, crawl: str, *names: str) -> list[Any] | None:
    row = _row(work, crawl, "state, reason, ended, began")
    if row is None:
        return None
    found = {
        name: int(number)
        for name, number in work.db.rows_in(
            "SELECT name, sum(number) FROM told WHERE crawl = ? AND name IN ({list}) GROUP BY name",
            (crawl,),
            names,
        )
    }
    state, reason, ended, began = row
    return [
        state.encode(),
        reason.encode(),
        _ago(work, ended),
        _ago(work, began),
        *(found.get(name, 0) for name in names),
    ]


@step("crawl totals")
def totals(work: Work, crawl: str) -> list[Any] | None:
    row = _row(work, crawl, "reason, gone, died")
    if row is None:
        return None
    counts = work.db.rows(
        "SELECT name, sum(number) FROM told WHERE crawl = ? GROUP BY name", (crawl,)
    )
    reason, gone, died = row
    return [
        reason.encode(),
        gone,
        died,
        *([name.encode(), int(number)] for name, number in counts),
    ]
