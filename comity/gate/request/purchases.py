"""Purchases from hosts, as COMITY_ARRANGEMENTS permits them: license tokens of RSL, and payments.

A request passes these methods, each time that it is sent:

    begin       reserve the highest price of its host, before anything is sent. It may wait
    fields      the header fields that offer it, for this one sending
    answered    book what the site has charged, and give the rest back
    failed      the request got no answer: the amount stays taken, unless nothing was sent

The fields are on a request only while it is out. So redirects, retries, caches and logs do not have
them, and no other host gets them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from comity.gate.http import HeaderFields, Request
from comity.gate.request.books import Account, Books, BooksError, new_key
from comity.gate.request.sessions import may_send_secret, of_host
from comity.gate.run.flights import ClosingError
from comity.gate.run.surroundings import Stats
from comity.policies import Price
from comity.policies.document.offer import PAYING, price_in
from comity.policies.syntax.printable import printable

logger = logging.getLogger(__name__)

MAX_PRICE, _ = PAYING
CHARGED = "Crawler-Charged"
AUTHORIZATION = "Authorization"

LOOK = 1.0  # seconds between two looks at shared books
# Seconds for which a download may go on, and its amount may come back: Scrapy's DOWNLOAD_TIMEOUT.
PATIENCE = 180.0


@dataclass(frozen=True, slots=True)
class Payment:
    """An arrangement to pay a host.

    Attributes:
        host: As DeclaredSession.host.
        max_price: The highest price of one request.
        sum: The most that all requests of the crawl to the host may cost.
    """

    host: str
    max_price: Price
    sum: Price

    @property
    def account(self) -> str:
        """The name of the account in the books."""
        return f"{self.host} {self.sum.currency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LicenseToken:
    """A license token of RSL for a host.

    Attributes:
        host: As DeclaredSession.host.
        token: The token.
        insecure: True if the token may also go over http to other machines.
    """

    host: str
    token: str = field(repr=False)
    insecure: bool = False


@dataclass(slots=True, eq=False)
class Purchase:
    """What is bought by one sending of a request.

    Attributes:
        url: The URL that is sent.
        fields: The header fields that are sent.
        payment: The arrangement that the price is reserved by. None: nothing is offered.
        key: The key of the reserved amount.
        is_over: True after its answer or its end. The reserved amount is booked, stays taken or was
            given back.
    """

    url: str
    fields: dict[str, str]
    payment: Payment | None
    key: str
    is_over: bool = False


class _Charge(NamedTuple):
    """What a site has charged, in billionth parts.

    Attributes:
        amount: The amount that counts as charged.
        kind: The statistic.
    """

    amount: int
    kind: str


class Purchases:
    """The purchases of one crawl."""

    def __init__(
        self,
        payments: Iterable[Payment],
        tokens: Iterable[LicenseToken],
        books: Books | None,
        stats: Stats,
        is_closing: Callable[[], bool] = lambda: False,
    ) -> None:
        """`books`: None: there are no payments. `is_closing`: True if the crawl is ending."""
        self._payments = {payment.host: payment for payment in payments if books is not None}
        self._tokens = {token.host: token for token in tokens}
        self._books = books
        self._stats = stats
        self._is_closing = is_closing
        self._in_flight = Counter[str]()  # account -> requests that have an amount reserved
        # Account -> set at the end of one of these requests, which may give something back.
        self._ends: dict[str, asyncio.Event] = {}
        # Account -> lock of the request that waits. The others wait for the lock, and ask no books.
        self._lines = defaultdict[str, asyncio.Lock](asyncio.Lock)
        # Account of shared books -> what was last seen of it, and when it was first seen like that.
        self._seen: dict[str, tuple[Account, float]] = {}
        self._breached: set[str] = set()  # accounts of sites that charged more than was offered
        self._reported: set[tuple[str, str]] = set()
        self._taken_off: set[str] = set()  # names of fields with a logged warning

    @property
    def are_any(self) -> bool:
        """True if the operator has arranged a payment or a license token."""
        return bool(self._payments or self._tokens)

    def take_off(self, request: Request) -> None:
        """Take the fields that offer money off a request. No books know of such an offer."""
        for name in PAYING:
            if request.headers.getlist(name):
                request.headers.pop(name)
                if name not in self._taken_off:
                    self._taken_off.add(name)
                    logger.warning(
                        "`%(name)s` is taken off all requests, first off %(url)s: write `max_price`"
                        " and `sum` for the host in COMITY_ARRANGEMENTS, such as"
                        ' {"shop.example": [{"max_price": "USD 0.01", "sum": "USD 5"}]}',
                        {"name": name, "url": request.url},
                    )

    async def begin(self, request: Request, *, at_most: float | None = None) -> Purchase | None:
        """Reserve what the sending of a request may cost. None: nothing is bought by it.

        If too little is left, wait for amounts that may come back. `at_most`: seconds. None means
        that all of these requests have an end.
        BooksError: the books fail. ClosingError: the crawl is ending since."""
        if "playwright" in request.meta:
            return None  # a browser sends header fields on, to redirects and to parts of the page
        fields = self._token_fields(request)
        payment = of_host(self._payments, request.url) if request.method == "GET" else None
        key = new_key()
        if payment is not None and await self._reserve(payment, key, at_most):
            fields[MAX_PRICE] = str(payment.max_price)
        else:
            payment = None
        return Purchase(request.url, fields, payment, key) if fields else None

    def _token_fields(self, request: Request) -> dict[str, str]:
        token = of_host(self._tokens, request.url)
        if token is None:
            return {}
        if not may_send_secret(request, insecure=token.insecure):
            self._report(
                token.host,
                "its license token is not sent over http to another machine or a proxy: write"
                ' "insecure": true to send it all the same',
            )
            return {}
        if request.headers.getlist(AUTHORIZATION):
            self._report(
                token.host,
                "its license token is not sent: a request has another Authorization field. Leave"
                " that field out",
            )
            return {}
        return {AUTHORIZATION: f"License {token.token}"}

    async def _reserve(self, payment: Payment, key: str, at_most: float | None) -> bool:
        """Reserve the highest price. If too little is left, wait for amounts that may come back."""
        name = payment.account
        line = self._lines[name]
        if not (name in self._breached or line.locked()) and await self._try(payment, key):
            return True
        try:
            async with asyncio.timeout(at_most), line:
                if await self._reserve_first(payment, key):
                    return True
        except TimeoutError:
            if at_most is None:
                raise
            self._report(
                payment.host,
                f"nothing of the sum {payment.sum} was given back within {at_most:g} s, so requests"
                " go without an offer",
            )
        self._stats.inc_value("comity/payments/not-offered")
        return False

    async def _try(self, payment: Payment, key: str) -> bool:
        assert self._books is not None
        is_reserved = await self._books.reserve(
            key, payment.account, payment.max_price.billionths, payment.sum.billionths
        )
        self._in_flight[payment.account] += is_reserved
        return is_reserved

    async def _reserve_first(self, payment: Payment, key: str) -> bool:
        """Reserve the highest price, or wait. Only one request for each account is in here."""
        name = payment.account
        assert self._books is not None
        while name not in self._breached:
            if self._is_closing():
                raise ClosingError
            end = self._ends.setdefault(name, asyncio.Event())
            if await self._try(payment, key):
                return True
            account = await self._account(name)
            if account.is_closed:
                self._breached.add(name)
                self._report(
                    payment.host,
                    "it has charged more than was offered, so nothing more is offered",
                )
                break
            if not (self._in_flight[name] or end.is_set() or self._may_come_back(account, payment)):
                self._report(
                    payment.host,
                    f"less than {payment.max_price} is left of the sum {payment.sum}, so nothing"
                    " more is offered",
                )
                break
            self._report(
                payment.host,
                f"requests wait for what others may give back of the sum {payment.sum}",
                logging.INFO,
            )
            with suppress(TimeoutError):
                # No other worker tells this one what it gives back.
                async with asyncio.timeout(LOOK if self._books.is_shared else None):
                    await end.wait()
        return False

    async def _account(self, name: str) -> Account:
        assert self._books is not None
        for account in await self._books.accounts():
            if account.name == name:
                return account
        raise BooksError(f"the books of payments for `{name}` cannot be read")

    def _may_come_back(self, account: Account, payment: Payment) -> bool:
        """Return True if other workers may give back enough for one more request.

        Nobody knows if they still live. So it is False if the account has not changed for a long
        time."""
        assert self._books is not None
        if not self._books.is_shared:
            return False
        if account.charged + payment.max_price.billionths > payment.sum.billionths:
            return False
        before, since = self._seen.get(account.name, (None, 0.0))
        if account != before:
            since = monotonic()
            self._seen[account.name] = account, since
        return monotonic() < since + PATIENCE

    def answered(self, purchase: Purchase, status: int, headers: HeaderFields) -> None:
        """Book the charge of an answer. Nothing happens if the purchase is over."""
        if purchase.is_over:
            return
        purchase.is_over = True
        payment = purchase.payment
        if payment is None:
            return
        self._stats.inc_value("comity/payments/offered")
        most = payment.max_price.billionths
        charge = _charge(payment, status, headers.getlist(CHARGED))
        self._stats.inc_value(f"comity/payments/{charge.kind}")
        if charge.amount > most:
            self._breached.add(payment.account)
            logger.error(
                "%(url)s charges %(charged)s, and %(offered)s was offered: it is booked, nothing"
                " more is offered to %(host)s, and you should object",
                {
                    "url": purchase.url,
                    "charged": Price.of_billionths(payment.sum.currency, charge.amount),
                    "offered": payment.max_price,
                    "host": payment.host,
                },
            )
        elif charge.kind == "unclear":
            self._report(
                payment.host,
                "an answer does not say in one field `crawler-charged` what it costs. Each of them"
                f" counts as {payment.max_price}",
            )
        self._end(purchase, payment, charge.amount)

    def failed(self, purchase: Purchase, *, is_sent: bool) -> None:
        """Note that a request got no answer. Nothing happens if the purchase is over.

        `is_sent`: False if the site cannot have seen the request."""
        if purchase.is_over:
            return
        purchase.is_over = True
        payment = purchase.payment
        if payment is None:
            return
        if is_sent:
            self._stats.inc_value("comity/payments/offered")
            self._stats.inc_value("comity/payments/lost")
        self._end(purchase, payment, None if is_sent else 0)

    def _end(self, purchase: Purchase, payment: Payment, charged: int | None) -> None:
        """Book a charge. None: it is not known, and the whole amount stays reserved."""
        if charged is not None and self._books is not None:
            self._books.settle(purchase.key, payment.account, payment.max_price.billionths, charged)
        self._in_flight[payment.account] -= 1
        if (end := self._ends.pop(payment.account, None)) is not None:
            end.set()

    def _report(self, host: str, problem: str, level: int = logging.WARNING) -> None:
        """Log a problem with a host, once."""
        if (host, problem) not in self._reported:
            self._reported.add((host, problem))
            logger.log(
                level,
                "COMITY_ARRANGEMENTS `%(host)s`: %(problem)s",
                {"host": host, "problem": problem},
            )

    async def close(self) -> None:
        """Log the accounts, and close the books."""
        if self._books is None:
            return
        for end in self._ends.values():
            end.set()  # nothing comes back any more
        for account in await self._books.accounts():
            host, _, currency = account.name.rpartition(" ")
            charged, lost = (
                Price.of_billionths(currency, amount)
                for amount in (account.charged, account.taken - account.charged)
            )
            logger.info(
                "Payments to %(host)s: %(charged)s charged; nothing more is offered to it, because"
                " it has charged more than was offered"
                if account.is_closed
                else "Payments to %(host)s: %(charged)s charged; %(lost)s counts as spent too, for"
                " requests without an answer",
                {"host": printable(host), "charged": charged, "lost": lost},
            )
        self._books.close()


def _charge(payment: Payment, status: int, values: list[bytes]) -> _Charge:
    """Return the charge of an answer. `values`: those of its crawler-charged fields.

    A charge that cannot be read counts as the highest price, and so does a success that states
    none. Other statuses are free (Cloudflare, Pay Per Crawl)."""
    price = price_in(values)
    if price is not None and price.currency == payment.sum.currency:
        return _Charge(price.billionths, "charged")
    if values or 200 <= status < 300:
        return _Charge(payment.max_price.billionths, "unclear")
    return _Charge(0, "free")
