"""The steps of the books of payments. The key of a call is the name of the crawl.

The steps cannot be repeated: a call whose answer is lost counts as it is."""

from __future__ import annotations

from typing import Any

from comity.cluster.sql.steps.step import step
from comity.cluster.sql.work import Work
from comity.gate.request.books import MOST


@step("books reserve", is_alone=True)
def reserve(work: Work, crawl: str, account: str, amount: Any, total: Any) -> int:
    work.db.rows("INSERT INTO account VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING", (crawl, account))
    changed = work.db.rows(
        "UPDATE account SET taken = taken + ? WHERE crawl = ? AND account = ? AND taken + ? <= ?"
        " RETURNING 1",
        (int(amount), crawl, account, int(amount), int(total)),
    )
    return len(changed)


@step("books settle", is_alone=True)
def settle(work: Work, crawl: str, account: str, amount: Any, charged: Any) -> int:
    row = work.db.one(
        f"SELECT taken, charged FROM account WHERE crawl = ? AND account = ?{work.db.lock}",
        (crawl, account),
    )
    if row is not None:
        taken, before = row
        is_closed = int(charged) > int(amount) or taken >= MOST
        work.db.rows(
            "UPDATE account SET taken = ?, charged = ? WHERE crawl = ? AND account = ?",
            (
                MOST if is_closed else taken - int(amount) + int(charged),
                min(before + int(charged), MOST),
                crawl,
                account,
            ),
        )
    return 1


@step("books accounts")
def accounts(work: Work, crawl: str) -> list[Any]:
    rows = work.db.rows(
        "SELECT account, taken, charged FROM account WHERE crawl = ? ORDER BY account", (crawl,)
    )
    return [[account.encode(), taken, charged] for account, taken, charged in rows]
