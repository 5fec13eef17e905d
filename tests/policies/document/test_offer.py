"""Offers of responses: prices, the documents of x402, links to licences, challenges of RSL."""

from __future__ import annotations

import decimal
import json
from base64 import b64encode
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Offer, Price
from comity.policies.document.offer import MAX_DOCUMENT, offer_in, price_in

X402 = {
    "x402Version": 1,
    "accepts": [
        {
            "scheme": "exact",
            "network": "base-sepolia",
            "maxAmountRequired": "10000",
            "asset": "0xA1",
            "payTo": "0xB2",
        }
    ],
}


def offer(status: int, *headers: tuple[bytes, bytes], body: bytes = b"") -> Offer | None:
    return offer_in(status, headers, body, url="https://shop.test/a")


def terms(status: int, *headers: tuple[bytes, bytes], body: bytes = b"") -> tuple[str, ...]:
    found = offer(status, *headers, body=body)
    assert found
    return found.terms


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize(
    ("text", "amount"),
    [("USD 0.01", "0.01"), (" usd\t5 ", "5"), ("EUR 999999999.999999999", "999999999.999999999")],
)
def test_prices(text: str, amount: str) -> None:
    price = Price.parse(text)
    assert price == (text.split()[0].upper(), Decimal(amount))
    assert Price.of_billionths(price.currency, price.billionths) == price


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "USD",
        "0.01",
        "0.01 USD",
        "USD0.01",
        "US 1",
        "USDC 1",
        "USD -1",
        "USD +1",
        "USD NaN",
        "USD Infinity",
        "USD 1e999",
        "USD 1E1",
        "USD .5",
        "USD 5.",
        "USD 1,000",
        "USD 1_0",
        "USD 0x1",
        "USD 1234567890",
        "USD 0.1234567890",
        "USD 1 USD 2",
        "USD 1, USD 2",
        "USD \u0661",
        "USD 1\n",
        "USD 1\x00",
        "USD " + "9" * 100_000,
    ],
)
def test_texts_that_are_no_price(text: str) -> None:
    assert Price.parse(text) is None
    assert price_in([text.encode()]) is None


def test_amounts_are_exact_in_any_decimal_context() -> None:
    with decimal.localcontext(prec=2):
        price = Price.parse("USD 123456789.123456789")
        assert price
        assert price.billionths == 123456789123456789
        assert str(Price.of_billionths("USD", price.billionths)) == "USD 123456789.123456789"
        assert [str(Price.of_billionths("USD", 10**n)) for n in (0, 7, 8, 9, 12)] == [
            "USD 0.000000001",
            "USD 0.01",
            "USD 0.10",
            "USD 1.00",
            "USD 1000.00",
        ]
        assert str(Price.of_billionths("USD", 0)) == "USD 0.00"


@pytest.mark.requirement("PAY-1")
def test_several_prices_are_no_price() -> None:
    found = offer(402, (b"Crawler-Price", b"USD 1"), (b"crawler-price", b"USD 2"))
    assert found == (402, None, (), ("crawler-price: USD 1", "crawler-price: USD 2"))
    assert price_in([]) is None


@pytest.mark.requirement("PAY-1")
def test_other_statuses_make_no_offer() -> None:
    price = (b"crawler-price", b"USD 1")
    assert [status for status in range(600) if offer(status, price)] == [402]
    assert str(offer(402)) == "402"


@pytest.mark.requirement("PAY-1")
def test_x402_in_the_body_and_in_a_field() -> None:
    said = ("x402: 10000 units of 0xA1 on base-sepolia",)
    assert terms(402, body=json.dumps(X402).encode()) == said
    newer = {"x402Version": 2, "accepts": [{"amount": 7, "asset": "0xC3", "network": "eip155:1"}]}
    field = (b"PAYMENT-REQUIRED", b64encode(json.dumps(newer).encode()))
    assert terms(402, field, body=b"{}") == ("x402: 7 units of 0xC3 on eip155:1",)
    assert offer(200, field) is None


@pytest.mark.requirement("PAY-1")
@pytest.mark.parametrize(
    ("accepts", "said"),
    [
        ("7", []),
        ([7, None, []], []),
        ([{}], ["x402: an unknown number of units of unknown on unknown"]),
        ([{"amount": "1e999"}], ["x402: an unknown number of units of unknown on unknown"]),
        ([{"amount": -1}], ["x402: an unknown number of units of unknown on unknown"]),
        ([{"amount": True}], ["x402: an unknown number of units of unknown on unknown"]),
        (
            [{"amount": "1", "asset": "a\x1b[31m\u202eb", "network": {"a": 1}}],
            ["x402: 1 units of a\ufffd[31m\ufffdb on {'a': 1}"],
        ),
        ([{"amount": str(number)} for number in range(9)], 4),
    ],
)
def test_hostile_x402(accepts: object, said: list[str] | int) -> None:
    found = terms(402, body=json.dumps({"x402Version": 1, "accepts": accepts}).encode())
    assert found == tuple(said) if isinstance(said, list) else len(found) == said


@pytest.mark.parametrize(
    "body",
    [
        b"x402Version",
        b'{"x402Version": 1, "accepts": ' + b"[" * 50_000,
        b'{"x402Version": ' + b"9" * 50_000 + b"}",
        b'["x402Version"]',
        b"\xff\xfe" + json.dumps(X402).encode(),
        json.dumps(X402).encode() + b" " * MAX_DOCUMENT,
    ],
)
def test_bodies_that_are_no_x402(body: bytes) -> None:
    assert terms(402, body=body) == ()
    assert terms(402, (b"Payment-Required", b64encode(body))) == ()
    assert terms(402, (b"Payment-Required", b"=" + body)) == ()


@pytest.mark.requirement("PAY-1", "RSL-4")
def test_links_to_licences() -> None:
    found = offer(
        402,
        (b"Link", b'</rsl.xml>; rel="license"; type="application/rsl+xml", </x>; rel=next'),
        (b"Link", b'<http://127.0.0.1/a>; rel="License", <file:///etc/passwd>; rel=license'),
    )
    assert found
    assert found.licences == ("https://shop.test/rsl.xml", "http://127.0.0.1/a")
    assert str(found) == "402, license: https://shop.test/rsl.xml, license: http://127.0.0.1/a"


@pytest.mark.requirement("RSL-4")
@pytest.mark.parametrize(
    ("fields", "asks"),
    [
        ([b"License"], True),
        ([b'license error="invalid_request", error_description="a, b"'], True),
        ([b'Basic realm="a", License error="x"'], True),
        ([b"Basic", b"License"], True),
        ([b"Basic,License,Bearer"], True),
        ([], False),
        ([b""], False),
        ([b"Basic"], False),
        ([b'Basic realm="x, License y"'], False),
        ([b'Basic realm="x, License'], False),
        ([b"Licensee"], False),
        ([b"Bearer scope=a, License=b"], False),
    ],
)
def test_challenges(fields: list[bytes], asks: bool) -> None:
    found = offer(401, *((b"WWW-Authenticate", field) for field in fields))
    assert (found is not None) is asks
    assert found is None or found.price is None


@pytest.mark.requirement("SEC-1", "SEC-4")
@given(
    status=st.sampled_from([401, 402]),
    headers=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    b"crawler-price",
                    b"crawler-error",
                    b"Link",
                    b"WWW-Authenticate",
                    b"payment-required",
                ]
            ),
            st.binary(max_size=60)
            | st.sampled_from([b"USD 1", b"License", b"</a>; rel=license", b"e30="]),
        ),
        max_size=9,
    ),
    body=st.binary(max_size=60),
)
def test_any_octets(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    found = offer_in(status, headers, body, url="https://shop.test/")
    assert found is not None or status == 401
    if found is not None:
        assert str(found).isprintable()
        assert len(str(found)) <= 200
        assert found.price is None or 0 <= found.price.billionths < 10**18
