"""The steps of the books of payments. The key of a call is the name of the crawl."""

from __future__ import annotations

from typing import Any

from comity.cluster.sql.steps.step import step
from comity.cluster.sql.work import Work


@step("books reserve", is_alone=True)
def reserve(work: Work, crawl: str, key: str, account: str, amount: Any, total: Any) -> list[int]:
    where = f"SELECT taken FROM account WHERE crawl = ? AND account = ?{work.db.lock}"
    row = work.db.one(where, (crawl, account))
    if row is None:
        return [-1]
    if work.db.one("SELECT 1 FROM reserved WHERE crawl = ? AND id = ?", (crawl, key)) is None:
        if row[0] + int(amount) > int(total):
            return [0]
        work.db.rows(
            "UPDATE account SET taken = taken + ? WHERE crawl = ? AND account = ?",
            (int(amount), crawl, account),
        )
        work.db.rows("INSERT INTO reserved VALUES (?, ?)", (crawl, key))
    return [1]


@step("books settle", is_alone=True)
def settle(
    work: Work, crawl: str, key: str, account: str, amount: Any, charged: Any, most: Any, first: Any
) -> int:
    row = work.db.one(
        f"SELECT taken, charged FROM account WHERE crawl = ? AND account = ?{work.db.lock}",
        (crawl, account),
    )
    gone = work.db.rows(
        "DELETE FROM reserved WHERE crawl = ? AND id = ? RETURNING id", (crawl, key)
    )
    if row is None or not (gone or first):
        return 1
    taken, before = row
    if int(charged) > int(amount) or taken >= most:
        taken = most
    else:
        taken += int(charged) - (int(amount) if gone else 0)
    work.db.rows(
        "UPDATE account SET taken = ?, charged = ? WHERE crawl = ? AND account = ?",
        (taken, min(before + int(charged), most), crawl, account),
    )
    return 1


@step("books accounts")
def accounts(work: Work, crawl: str) -> list[Any]:
    rows = work.db.rows("SELECT account, taken, charged FROM account WHERE crawl = ?", (crawl,))
    return [[account.encode(), taken, charged] for account, taken, charged in rows]
