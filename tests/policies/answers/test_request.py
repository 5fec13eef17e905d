"""The facts of a request by its header fields. Empty values count as missing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.answers.request import (
    API,
    DOCUMENT,
    XHR,
    Facts,
    Session,
    credentials,
    facts_of,
)
from tests.selection import one_in

ORIGIN = "https://example.com"
AGENT = Agent("examplebot")


def facts(fields: Mapping[str, str], **more: object) -> Facts:
    stated: dict[str, object] = {
        "method": "GET",
        "kind": None,
        "automations": (),
        "purposes": None,
        "key_header": "X-API-Key",
        "referer": None,
        "session": None,
    }
    return facts_of(fields=fields, **(stated | more))  # type: ignore[arg-type]


CARRIED = [
    ({}, ""),
    # a key in a field of its own
    ({"x-api-key": "k"}, "token"),
    ({"x-api-key": ""}, ""),
    ({"x-api-key": " \t"}, ""),
    ({"x-api-key": ", "}, ""),
    ({"x-api-key": ", k"}, "token"),
    # RFC 9110 section-11.4: a scheme, followed by credentials
    ({"authorization": "Bearer k"}, "bearer token"),
    ({"authorization": "bEARER   k"}, "bearer token"),
    ({"authorization": "Basic eA=="}, "token"),
    ({"authorization": 'Digest username="x", realm="y"'}, "token"),
    ({"authorization": ""}, ""),
    ({"authorization": "  "}, ""),
    ({"authorization": "Bearer"}, ""),
    ({"authorization": "Bearer "}, ""),
    ({"authorization": " Basic\t"}, ""),
    ({"authorization": "Bearer , Basic "}, ""),
    ({"authorization": "Bearer, Basic eA=="}, "token"),
    ({"authorization": "Basic, Bearer k"}, "bearer token"),
    ({"authorization": "Bearer", "x-api-key": "k"}, "token"),
    # cookies
    ({"cookie": "sid=1"}, "cookie"),
    ({"cookie": "theme=; sid=1"}, "cookie"),
    ({"cookie": ""}, ""),
    ({"cookie": " ; "}, ""),
    ({"cookie": "sid="}, ""),
    ({"cookie": 'sid=""'}, ""),
    ({"cookie": "sid= ;theme=\t"}, ""),
    ({"cookie": "sid=, theme="}, ""),
    ({"cookie": "sid"}, ""),
]


@pytest.mark.requirement("AUTX-5", "AUTX-9")
@pytest.mark.parametrize(("fields", "carried"), one_in(3, CARRIED))
def test_what_a_request_carries(fields: dict[str, str], carried: str) -> None:
    assert credentials(fields, "X-API-Key") == frozenset(carried.split())
    assert facts(fields).has_key is ("token" in carried)
    asked = Site.from_files(
        ORIGIN,
        {
            "/automation-preferences.txt": b"scope: /\nallowed-methods: GET\n"
            b"api-automation: with-key-only\n"
        },
    )
    decision = asked.access(AGENT, ORIGIN, kind="api", headers=fields)
    assert decision.verdict is (Verdict.ALLOW if "token" in carried else Verdict.DENY)


@pytest.mark.requirement("AUTX-5")
def test_a_session_brings_its_key_along() -> None:
    assert facts({"x-api-key": ""}, session=Session(carries=frozenset(["token"]))).has_key
    assert not facts({"x-api-key": ""}, session=Session(carries=frozenset(["cookie"]))).has_key


@pytest.mark.requirement("AUTX-5", "AUTX-6")
@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({"sec-fetch-dest": " EMPTY\t"}, (XHR,)),
        ({"sec-fetch-dest": "empty;a=1"}, (XHR,)),
        ({"sec-fetch-dest": "document, Empty"}, (XHR,)),
        ({"sec-fetch-dest": "emptyish"}, (DOCUMENT,)),
        ({"sec-fetch-dest": ""}, (DOCUMENT,)),
        ({"x-requested-with": ""}, (XHR,)),
        ({"content-type": " Application/JSON ; charset=utf-8"}, (API,)),
        ({"content-type": "text/html, application/json"}, (API,)),
        ({"accept": "\tAPPLICATION/hal+JSON, */*"}, (API,)),
        ({"content-type": "text/json;charset=utf-8"}, (API,)),
        ({"accept": "text/json"}, (API,)),
    ],
)
def test_kinds_however_they_are_written(fields: dict[str, str], kinds: tuple[str, ...]) -> None:
    assert facts(fields).kinds == kinds


@pytest.mark.requirement("AUTO-7", "AUTO-20")
@pytest.mark.parametrize("field", ["X-HTTP-Method-Override", "x-http-method", "X-Method-Override"])
@pytest.mark.parametrize(
    ("value", "overriding", "verdict"),
    [
        ("delete", ("DELETE",), Verdict.DENY),
        (" GET , DELETE", ("GET", "DELETE"), Verdict.DENY),
        ("GET", ("GET",), Verdict.ALLOW),
        (", ", (), Verdict.ALLOW),
    ],
)
def test_a_method_that_a_field_puts_in_place_is_wanted_too(
    field: str, value: str, overriding: tuple[str, ...], verdict: Verdict
) -> None:
    assert facts({field.lower(): value}).overriding == overriding
    for file in (b"scope: /\nallowed-methods: GET, POST\n", Fetched(status=503)):
        asked = Site.from_files(ORIGIN, {"/automation-preferences.txt": file})
        assert asked.access(AGENT, ORIGIN, headers={field: value}).verdict is verdict


@pytest.mark.requirement("AUTX-7")
@pytest.mark.parametrize(
    ("referer", "verdict"),
    [
        ("https://example.com/open/", Verdict.ALLOW),
        (" https://example.com/open/ ", Verdict.ALLOW),
        ("https://example.com/closed/", Verdict.DENY),
        ("", Verdict.DENY),
        (" ", Verdict.DENY),
        ("/open/", Verdict.DENY),
        ("https://example.com/open/, https://example.com/closed/", Verdict.DENY),
        ("https://example.com/closed/, https://example.com/open/", Verdict.DENY),
    ],
)
def test_pages_that_nobody_knows_are_excluded_like_others(referer: str, verdict: Verdict) -> None:
    text = b"scope: /\nallowed-methods: GET\nallow-xhr: open\ndisallow-fetch-from: /closed/\n"
    asked = Site.from_files(ORIGIN, {"/automation-preferences.txt": text})
    assert asked.access(AGENT, ORIGIN, kind="xhr", headers={"Referer": referer}).verdict is verdict
    assert asked.access(AGENT, ORIGIN, kind="xhr", referer=referer).verdict is verdict


@pytest.mark.requirement("AUTO-13")
@pytest.mark.parametrize(
    ("purposes", "verdict"),
    [
        (["news"], Verdict.ALLOW),
        ([" News "], Verdict.ALLOW),
        (["news", ""], Verdict.ALLOW),
        ([], Verdict.DENY),
        ([""], Verdict.DENY),
        ([" ", "\t"], Verdict.DENY),
        (["news", "ads"], Verdict.DENY),
    ],
)
def test_an_empty_purpose_is_none(purposes: list[str], verdict: Verdict) -> None:
    asked = Site.from_files(
        ORIGIN,
        {
            "/automation-preferences.txt": b"scope: /\nallowed-methods: GET\n"
            b"allowed-purposes: news\n"
        },
    )
    assert (
        asked.access(Agent("examplebot", purposes=("news",)), ORIGIN, purposes=purposes).verdict
        is verdict
    )


@pytest.mark.requirement("AUTX-5", "AUTX-9")
def test_credentials_of_the_request_and_of_its_session_count_together() -> None:
    bearer, cookie = (
        Session(carries=frozenset(("bearer",))),
        Session(carries=frozenset(("cookie",))),
    )
    assert facts({}, session=bearer).has_key
    assert facts({"x-api-key": "k"}, session=cookie).has_key
    assert not facts({}, session=cookie).has_key
    assert credentials({"authorization": "Basic eA==", "cookie": "sid=1"}, "X-API-Key") == {
        "token",
        "cookie",
    }


@pytest.mark.requirement("AUTX-7")
def test_page_that_nobody_names() -> None:
    assert facts({}).referer is None
    assert facts({"referer": "https://example.com/a"}).referer == "https://example.com/a"
    assert (
        facts({"referer": "https://example.com/a"}, referer="https://example.com/b").referer
        == "https://example.com/b"
    )


@pytest.mark.requirement("AUTX-5")
@pytest.mark.parametrize(
    "fields",
    [
        {"accept": "text/html, application/json"},
        {"accept": "application/xml"},
        {"accept": "a/b+json"},
    ],
)
def test_what_is_asked_for_first_is_what_is_asked_for(fields: dict[str, str]) -> None:
    assert facts(fields).kinds == (DOCUMENT,)


def test_kinds_that_are_none() -> None:
    with pytest.raises(ValueError, match="`ajax` is not a kind of request"):
        facts({}, kind="ajax")
