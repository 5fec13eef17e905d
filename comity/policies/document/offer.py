"""The offer of a response that asks for payment or for a licence.

    offer = offer_in(402, [(b"crawler-price", b"USD 0.01")])
    offer.price    # Price("USD", Decimal("0.01"))

Status 402 asks for payment (RFC 9110 section-15.5.3). Three carriers state the price: the field
`crawler-price` (Cloudflare, Pay Per Crawl), the document of x402, and links to a licence. Status
401 asks for a licence if it has a challenge of the scheme `License` (RSL 1.0). Everything here
comes from the site. Nothing of it is ever requested, and no text is shown unescaped."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal
from typing import Any, NamedTuple, Self

from comity.policies.syntax.link_field import links_in
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import resolved

PAYMENT_REQUIRED, UNAUTHORIZED = 402, 401
ASKING = (PAYMENT_REQUIRED, UNAUTHORIZED)  # statuses of responses that may have an offer

PRICE = b"crawler-price"
FIELDS = frozenset(  # header fields with terms
    (PRICE, b"crawler-error", b"link", b"payment-required", b"www-authenticate")
)
# Header fields of requests that offer money.
PAYING = ("Crawler-Max-Price", "Crawler-Exact-Price")
MAX_TERMS = 4  # of one kind in an offer
MAX_DOCUMENT = 64 * 1024  # octets of an x402 document that is read

# Amounts have at most 9 digits on each side of the point, so that sums of their billionth parts fit
# into 64 bits.
_EXACT = Context(prec=40)  # a program may have changed the precision of its own context
_CENT = Decimal("0.01")
_PRICE = re.compile(r"([A-Za-z]{3})[ \t]+([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"?')
_LICENSE = re.compile(r"(?:^|,)\s*License(?=[\s,]|$)", re.IGNORECASE)
_AMOUNT = re.compile(r"[0-9]{1,40}")


class Price(NamedTuple):
    """An amount of money.

    Attributes:
        currency: Three letters in upper case, such as "USD".
        amount: 0 or more, below 10**9, with at most 9 decimals.
    """

    currency: str
    amount: Decimal

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a price such as `USD 0.01`. None: the text is not a price."""
        match = _PRICE.fullmatch(text.strip(" \t"))
        return cls(match[1].upper(), Decimal(match[2])) if match else None

    @classmethod
    def of_billionths(cls, currency: str, billionths: int) -> Self:
        """Return the price of a number of billionth parts of a currency."""
        amount = Decimal(billionths).scaleb(-9, _EXACT)
        cents = amount.quantize(_CENT, context=_EXACT)
        return cls(currency, cents if cents == amount else amount.normalize(_EXACT))

    @property
    def billionths(self) -> int:
        """The amount in billionth parts of the currency, a whole number."""
        return int(self.amount.scaleb(9, _EXACT))

    def __str__(self) -> str:
        return f"{self.currency} {self.amount:f}"


class Offer(NamedTuple):
    """The terms on which a site gives a response.

    Attributes:
        status: 402 or 401.
        price: The price of the response. None: it is not stated in a form that can be read.
        licences: URLs that the site names for a licence. comity does not request them.
        terms: The terms as the site writes them, printable.
    """

    status: int
    price: Price | None
    licences: tuple[str, ...]
    terms: tuple[str, ...]

    def __str__(self) -> str:
        """Return the terms on one line, such as `402, crawler-price: USD 0.01`."""
        return printable(", ".join((str(self.status), *self.terms)))


def offer_in(
    status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes = b"", *, url: str = ""
) -> Offer | None:
    """Return the offer of a response; None if it asks neither for payment nor for a licence.

    `body`: the body, or its beginning. `url`: of the response, for relative links."""
    if status not in ASKING:
        return None
    fields: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        fields.setdefault(name.lower(), []).append(value)
    challenges = [
        value for value in fields.get(b"www-authenticate", ()) if _asks_for_licence(value)
    ]
    if status == UNAUTHORIZED and not challenges:
        return None
    prices = fields.get(PRICE, [])
    terms = [f"crawler-price: {printable(price)}" for price in prices[:MAX_TERMS]]
    terms += [
        f"crawler-error: {printable(error)}" for error in fields.get(b"crawler-error", ())[:1]
    ]
    licences = _licences(fields.get(b"link", ()), url)
    terms += [f"license: {licence}" for licence in licences]
    if status == PAYMENT_REQUIRED:
        terms += _x402(fields.get(b"payment-required", ()), body)
    terms += [f"WWW-Authenticate: {printable(value)}" for value in challenges[:MAX_TERMS]]
    return Offer(status, price_in(prices), licences, tuple(terms))


def price_in(values: Iterable[bytes]) -> Price | None:
    """Return the price in the values of a field. None unless there is one value, and a price."""
    several = [*values]
    return Price.parse(several[0].decode("latin-1")) if len(several) == 1 else None


def _asks_for_licence(challenges: bytes) -> bool:
    """Return True if one of the challenges of a field has the scheme `License`."""
    return _LICENSE.search(_QUOTED.sub("", challenges.decode("latin-1"))) is not None


def _licences(values: Iterable[bytes], url: str) -> tuple[str, ...]:
    addresses: dict[str, None] = {}
    for value in values:
        for link in links_in(value):
            if "license" not in link.relations:
                continue
            try:
                address = resolved(url, link.target.strip())
            except ValueError:
                continue
            addresses[printable(address)] = None
            if len(addresses) == MAX_TERMS:
                return tuple(addresses)
    return tuple(addresses)


def _x402(headers: Iterable[bytes], body: bytes) -> list[str]:
    """Return the terms of x402: version 1 has them in the body, version 2 in a header field.

    Amounts are in the smallest unit of an asset. comity knows no assets, so such an amount is no
    Price."""
    encoded = next(iter(headers), None)
    document = body if encoded is None else _decoded(encoded)
    terms = []
    for accepted in _accepted(document):
        amount = accepted.get("maxAmountRequired", accepted.get("amount"))
        if not isinstance(amount, str | int) or not _AMOUNT.fullmatch(str(amount)):
            amount = "an unknown number of"
        asset, network = (
            printable(str(accepted.get(name, "unknown"))) for name in ("asset", "network")
        )
        terms.append(f"x402: {amount} units of {asset} on {network}")
    return terms


def _decoded(value: bytes) -> bytes:
    try:
        return b64decode(value[: 2 * MAX_DOCUMENT], validate=True)
    except ValueError:
        return b""


def _accepted(document: bytes) -> Iterator[dict[str, Any]]:
    """Yield the ways to pay of an x402 document; none if it is no such document."""
    if len(document) > MAX_DOCUMENT or b"x402Version" not in document:
        return
    try:
        ways = json.loads(document).get("accepts")
    except (ValueError, AttributeError, RecursionError):
        return
    if isinstance(ways, list):
        yield from (way for way in ways[:MAX_TERMS] if isinstance(way, dict))
