"""COMITY_ARRANGEMENTS: what it may look like, and which URLs it speaks of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scrapy.settings import Settings

from comity.gate.options import Options
from comity.gate.options.agreement import Agreement
from comity.policies import Agent, PolicyError


def agent(arrangements: Any) -> Agent:
    return Options.from_settings(Settings({"COMITY_ARRANGEMENTS": arrangements})).agent


def arranged(arrangements: Any) -> dict[str, list[str]]:
    return {one.host: sorted(one.features) for one in agent(arrangements).arrangements}


BOTH = {"example.com": ["take-down", "must-use-resource"], "127.0.0.1:8080": ["re-crawl"]}


@pytest.mark.requirement("ACAP-33", "ACAP-36", "ACAP-43")
@pytest.mark.parametrize(
    "value",
    [
        BOTH,
        json.dumps(BOTH),
        "example.com:take-down,example.com:must-use-resource,127.0.0.1:8080:re-crawl",
        " Example.COM:Take-Down , example.com : must-use-resource,,127.0.0.1:08080:re-crawl,",
        {
            "EXAMPLE.com": {"take-down"},
            " example.com": ("must-use-resource",),
            "127.0.0.1:8080": "re-crawl",
        },
        '{"example.com": ["take-down"], "example.com": "must-use-resource", "127.0.0.1:8080": ["re-crawl", "re-crawl"]}',
    ],
)
def test_forms(value: Any) -> None:
    assert arranged(value) == {
        "example.com": ["must-use-resource", "take-down"],
        "127.0.0.1:8080": ["re-crawl"],
    }


@pytest.mark.parametrize("value", [None, "", {}, "{}", ","])
def test_nothing_arranged(value: Any) -> None:
    assert arranged(value) == {}


@pytest.mark.requirement("ACAP-33", "ACAP-36", "ACAP-43")
@pytest.mark.parametrize(
    ("host", "url", "holds"),
    [
        ("example.com", "http://example.com/a", True),
        ("example.com", "https://EXAMPLE.com:8443/a", True),
        ("example.com", "https://www.example.com/", False),
        ("example.com", "https://example.com.evil.test/", False),
        ("example.com", "https://example.com@evil.test/", False),
        ("example.com:8080", "http://example.com:8080/", True),
        ("example.com:8080", "http://example.com/", False),
        ("b\u00fccher.example", "http://xn--bcher-kva.example/", True),
        ("[::1]", "http://[::1]:8080/", True),
        ("[::1]:8080", "http://[::1]:8080/", True),
        ("[::1]:8080", "http://[::1]:8081/", False),
    ],
)
def test_hosts(host: str, url: str, holds: bool) -> None:
    for form in ({host: ["take-down"]}, f"{host}:take-down"):
        assert agent(form).has_arranged(url, "take-down") is holds
        assert not agent(form).has_arranged(url, "re-crawl")


LICENCE = {"uses": ["train", "AI "], "reference": "contract 2026/14"}


@pytest.mark.requirement("USE-14")
@pytest.mark.parametrize(
    "value",
    [
        {"*.Example.com": ["take-down", LICENCE]},
        json.dumps({"*.example.com": ["take-down", LICENCE]}),
        '{"*.example.com": "take-down", "*.example.com": {"uses": "train, ai", "reference": "contract 2026/14"}}',
    ],
)
def test_licences(value: Any) -> None:
    found = agent(value)
    for use in ("train", "ai"):
        licence = found.licence("https://news.example.com/a", use)
        assert licence
        assert (licence.host, licence.reference) == ("*.example.com", "contract 2026/14")
    assert found.licence("https://news.example.com/a", "index") is None
    assert found.licence("https://example.com/a", "train") is None
    assert found.has_arranged("https://news.example.com/a", "take-down")


@pytest.mark.requirement("USE-14")
@pytest.mark.parametrize(
    ("host", "url", "holds"),
    [
        ("*.example.com", "http://a.example.com/", True),
        ("*.example.com", "http://a.b.Example.com:8080/", True),
        ("*.example.com", "http://example.com/", False),
        ("*.example.com", "http://notexample.com/", False),
        ("*.example.com", "http://a.example.com.evil.test/", False),
        ("*.example.com", "http://a.example.com@evil.test/", False),
        ("*.example.com:8080", "http://a.example.com:8080/", True),
        ("*.example.com:8080", "http://a.example.com/", False),
        ("*.b\u00fccher.example", "http://a.xn--bcher-kva.example/", True),
    ],
)
def test_host_patterns(host: str, url: str, holds: bool) -> None:
    found = agent({host: ["take-down", {"uses": ["train"]}]})
    assert (found.licence(url, "train") is not None) is holds
    assert found.has_arranged(url, "take-down") is holds
    assert agent(f"{host}:take-down").has_arranged(url, "take-down") is holds


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("example.com", "`example.com` is not a mapping of hosts: write host:feature"),
        (
            "take-down:example.com",
            "`example.com` cannot be arranged: write must-use-resource, must-include-resource",
        ),
        ("example.com:takedown", "`takedown` cannot be arranged"),
        ("example.com:8080", "`8080` cannot be arranged"),
        (":take-down", "`` is not a host"),
        ("https://example.com:take-down", "`https://example.com` is not a host: write"),
        ("*:take-down", "`*` is not a host"),
        ("example.com/news:take-down", "is not a host"),
        ("example.com:99999:take-down", "`example.com:99999` is not a host"),
        ("me@example.com:take-down", "is not a host"),
        ("::1:take-down", "is not a host"),
        (["example.com"], "is not a mapping of hosts"),
        ({"example.com": True}, "is not a mapping of hosts"),
        ({"example.com": [["take-down"]]}, "cannot be arranged"),
        ('{"example.com": {"take-down": true}}', "`take-down` is not a part of a licence: write"),
        ({"example.com": {"reference": "7"}}, "names no uses that are licensed: write"),
        ({"example.com": {"uses": []}}, "names no uses"),
        ({"example.com": {"uses": "train;index"}}, "names no uses"),
        ({"example.com": [{"uses": ["train", None, ""]}]}, "names no uses"),
        ({"example.com": {"uses": {"train": True}}}, "names no uses"),
        (
            {"example.com": {"uses": ["train"], "reference": "a\nb"}},
            "is not a reference of at most 200 printable characters",
        ),
        ({"example.com": {"uses": ["train"], "reference": "7" * 201}}, "is not a reference"),
        ({"example.com": {"uses": ["train"], "reference": 7}}, "`7` is not a reference"),
        ({"*.": {"uses": ["train"]}}, "`*.` is not a host"),
        ({"a.*.example.com": "take-down"}, "is not a host"),
        ('{"example.com"', "is not a mapping of hosts"),
        (
            {"a.test": {"max_price": "USD 1"}},
            "`a.test` has a payment without `sum`, the most that all requests of the crawl may cost"
            ' together: write {"max_price": "USD 0.01", "sum": "USD 5"}',
        ),
        (
            {"a.test": {"sum": "EUR 7"}},
            "`a.test` has a payment without `max_price`, the highest price of one request: write {",
        ),
        ({"a.test": {"max_price": None, "sum": "USD 1"}}, "`None` is not the `max_price`"),
        ({"a.test": {"max_price": 0.01, "sum": "USD 1"}}, "`0.01` is not the `max_price`"),
        ({"a.test": {"max_price": "USD 0", "sum": "USD 1"}}, "`USD 0` is not the `max_price`"),
        ({"a.test": {"max_price": "USD NaN", "sum": "USD 1"}}, "an amount above 0"),
        ({"a.test": {"max_price": "USD 1", "sum": "USD 1e9"}}, "`USD 1e9` is not the `sum`"),
        ({"a.test": {"max_price": "USD 1", "sum": "EUR 1"}}, "has two currencies"),
        ({"a.test": {"max_price": "USD 2", "sum": "USD 1"}}, "has a `max_price` above its `sum`"),
        ({"a.test": {"max_price": "USD 1", "sum": "USD 1", "uses": []}}, "`uses` is not a part"),
        ({"a.test": [{"max_price": "USD 1", "sum": "USD 1"}] * 2}, "has `max_price` more than"),
        ({"*.a.test": {"max_price": "USD 1", "sum": "USD 1"}}, "names several hosts: write"),
        ({None: "take-down", "a b": "take-down"}, "`a b` is not a host"),
    ],
)
def test_nonsense_is_said_in_one_line_with_the_remedy(value: Any, says: str) -> None:
    with pytest.raises(PolicyError) as raised:
        agent(value)
    message = str(raised.value)
    assert message.startswith("COMITY_ARRANGEMENTS `")
    assert says in message
    assert message.splitlines() == [message]


@pytest.mark.requirement("PAY-1", "RSL-4")
def test_payments_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    payment = {"max_price": "usd 0.010", "sum": "USD 5"}
    value = {
        "Shop.example": ["take-down", payment, {"license_token": "env:TOKEN"}],
        "shop.example:8080": [payment],
    }
    options = Options.from_settings(Settings({"COMITY_ARRANGEMENTS": value}))
    assert [(one.account, str(one.max_price), str(one.sum)) for one in options.payments] == [
        ("shop.example USD", "USD 0.010", "USD 5"),
        ("shop.example:8080 USD", "USD 0.010", "USD 5"),
    ]
    assert [(one.host, one.token) for one in options.license_tokens] == [("shop.example", "s3cret")]
    assert [one.host for one in options.agent.arrangements] == ["shop.example"]
    assert "s3cret" not in repr(options)
    # All workers of a crawl have the same payments.
    agreement = Agreement.of(Settings({"COMITY_ARRANGEMENTS": value}), "spider")
    assert agreement.decides["COMITY_ARRANGEMENTS shop.example"] == (
        "license token; max_price USD 0.010, sum USD 5; take-down"
    )


@pytest.mark.requirement("RSL-4")
@pytest.mark.parametrize(
    ("host", "terms", "says"),
    [
        ("a.test", {"license_token": "s3cret"}, "`a.test`: `license_token` does not name a place"),
        ("a.test", {"license_token": "env:NO_SUCH"}, "there is no environment variable"),
        ("a.test", {"license_token": 7}, "does not name a place: write env:VARIABLE or file:PATH"),
        ("a.test", {"license_token": "s3cret", "uses": ["train"]}, "has other parts: write"),
        ("a.test", {"license_token": "s3cret", "insecure": "s3cret"}, "has other parts: write"),
        ("a.test", [{"license_token": "env:TOKEN"}] * 2, "has `license_token` more than once"),
        ("*.a.test", {"license_token": "s3cret"}, "names several hosts"),
    ],
)
def test_a_message_shows_no_token(
    monkeypatch: pytest.MonkeyPatch, host: str, terms: Any, says: str
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    with pytest.raises(PolicyError) as raised:
        agent({host: terms})
    assert says in str(raised.value)
    assert "s3cret" not in str(raised.value)
    with pytest.raises(PolicyError) as raised:
        agent(json.dumps({host: terms})[:-1])
    assert "is not a mapping of hosts" in str(raised.value)
    assert "s3cret" not in str(raised.value)
