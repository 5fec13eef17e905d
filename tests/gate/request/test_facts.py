"""Inferred and declared facts of requests, by the table in docs/automation.md."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import FormRequest, JsonRequest, Request
from scrapy.settings import Settings

from comity.gate.request.facts import NO_DECLARATION, RequestFacts, declaration
from comity.policies import Agent, PolicyError
from comity.policies.answers.request import PLAIN, Facts, Session

URL = "https://example.com/a"
PAGE = "https://example.com/page"
DOCUMENT, API, XHR = ("document",), ("api",), ("xhr",)


def facts(request: Request, session: Session | None = None, **settings: Any) -> Facts:
    return RequestFacts(Settings(settings), Agent("testbot", key_header="X-Key")).for_request(
        request, session
    )


def test_a_plain_request() -> None:
    assert facts(Request(URL)) == PLAIN
    assert facts(Request(URL, method="HEAD")).is_plain


@pytest.mark.requirement("AUTO-15")
@pytest.mark.parametrize(
    ("request_", "method"),
    [
        (FormRequest(URL, formdata={"a": "b"}), "POST"),
        (FormRequest(URL, formdata={"a": "b"}, method="GET"), "GET"),
        (JsonRequest(URL, data={}), "POST"),
        (Request(URL, method="put"), "PUT"),
    ],
)
def test_method(request_: Request, method: str) -> None:
    assert facts(request_).method == method


@pytest.mark.requirement("AUTO-7", "AUTO-15")
def test_a_method_that_a_field_puts_in_place() -> None:
    found = facts(Request(URL, method="POST", headers={"X-HTTP-Method-Override": "DELETE"}))
    assert (found.method, found.overriding) == ("POST", ("DELETE",))
    assert facts(Request(URL), DEFAULT_REQUEST_HEADERS={"X-Method-Override": "put"}).overriding == (
        "PUT",
    )


@pytest.mark.requirement("AUTX-5", "AUTX-6")
@pytest.mark.parametrize(
    ("request_", "kinds"),
    [
        (FormRequest(URL, formdata={"a": "b"}), DOCUMENT),
        (JsonRequest(URL, data={"a": 1}), API),
        (Request(URL, method="POST", body='{"a": 1}'), API),
        (Request(URL, method="POST", body="\n[1]"), API),
        (Request(URL, method="POST", body="{}", headers={"Content-Type": "text/plain"}), DOCUMENT),
        (Request(URL, method="POST", body="a=b"), DOCUMENT),
        (Request(URL, headers={"Content-Type": "application/ld+json; charset=utf-8"}), API),
        (Request(URL, headers={"Accept": "application/json"}), API),
        (Request(URL, headers={"accept": ["application/vnd.api+json", "text/html"]}), API),
        (Request(URL, headers={"Accept": "text/html,application/json;q=0.1"}), DOCUMENT),
        (Request(URL, headers={"X-Requested-With": "XMLHttpRequest"}), XHR),
        (Request(URL, headers={"Sec-Fetch-Dest": "empty"}), XHR),
        (Request(URL, headers={"Sec-Fetch-Dest": "document"}), DOCUMENT),
        (
            Request(
                URL, headers={"X-Requested-With": "XMLHttpRequest", "Accept": "application/json"}
            ),
            API + XHR,
        ),
    ],
)
def test_kind(request_: Request, kinds: tuple[str, ...]) -> None:
    assert facts(request_).kinds == kinds


@pytest.mark.requirement("AUTX-5")
def test_fields_of_the_project_count_where_the_request_has_none() -> None:
    defaults: dict[str, Any] = {
        "Accept": "application/json",
        "AUTHORIZATION": "Basic eDp5",
        "X-Requested-With": None,
    }
    found = facts(Request(URL), DEFAULT_REQUEST_HEADERS=defaults)
    assert (found.kinds, found.has_key) == (API, True)
    found = facts(
        Request(URL, headers={"accept": "text/html", "authorization": None}),
        DEFAULT_REQUEST_HEADERS=defaults,
    )
    assert (found.kinds, found.has_key) == (DOCUMENT, False)


@pytest.mark.requirement("AUTX-5")
@pytest.mark.parametrize(
    ("headers", "has_key"),
    [
        ({}, False),
        ({"Authorization": "Bearer x"}, True),
        ({"x-key": "x"}, True),
        ({"x-key": " "}, False),
        ({"Authorization": "Basic"}, False),
        ({"X-Key": None}, False),
        ({"X-API-Key": "x"}, False),
        ({"Cookie": "key=x"}, False),
    ],
)
def test_key(headers: dict[str, Any], has_key: bool) -> None:
    assert facts(Request(URL, headers=headers)).has_key is has_key


@pytest.mark.requirement("AUTX-5")
@pytest.mark.parametrize(
    ("carries", "has_key"), [("token", True), ("bearer", True), ("cookie", False)]
)
def test_key_of_the_session(carries: str, has_key: bool) -> None:
    session = Session(carries=frozenset([carries]))
    found = facts(Request(URL), session)
    assert found.has_key is has_key
    assert found.session is session


@pytest.mark.requirement("AUTX-7")
@pytest.mark.parametrize(
    ("headers", "referer"),
    [
        ({"X-Requested-With": "x", "Referer": PAGE}, PAGE),
        (
            {"X-Requested-With": "x", "Referer": "http://example.org/page"},
            "http://example.org/page",
        ),
        ({"X-Requested-With": "x", "Referer": "/page"}, None),
        ({"X-Requested-With": "x", "Referer": "about:blank"}, None),
        ({"X-Requested-With": "x"}, None),
        ({"Referer": PAGE}, None),
    ],
)
def test_page_that_a_script_asks_from(headers: dict[str, str], referer: str | None) -> None:
    assert facts(Request(URL, headers=headers)).referer == referer


HEADERS = st.dictionaries(
    st.sampled_from(
        ["Referer", "Accept", "X-Key", "Authorization", "X-Requested-With", "Content-Type"]
    ),
    st.sampled_from([PAGE, "application/json", "Bearer x", "", None]),
    max_size=2,
)
METAS = st.sampled_from(
    [
        {},
        {"depth": 1},
        {"comity": {"kind": "api"}},
        {"playwright": True},
        {"comity_led_from": "public"},
    ]
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["GET", "POST"]), HEADERS, METAS, st.sampled_from(["", "{}"])),
        max_size=4,
    ),
    HEADERS,
)
def test_requests_before_it_change_nothing(
    requests: list[tuple[str, Any, Any, str]], defaults: dict[str, Any]
) -> None:
    """The facts of links are cached, and the facts of a request depend on it alone."""
    settings = {"DEFAULT_REQUEST_HEADERS": defaults}
    kept = RequestFacts(Settings(settings), Agent("testbot", key_header="X-Key"))
    for method, headers, meta, body in [("GET", {"Referer": PAGE}, {}, ""), *requests]:
        request = Request(URL, method=method, headers=headers, meta=meta, body=body)
        assert kept.for_request(request) == kept._facts(request, None)


@pytest.mark.requirement("AUTX-4")
@pytest.mark.parametrize(
    ("settings", "automations"),
    [
        ({}, ("cdp", "headless")),
        ({"PLAYWRIGHT_BROWSER_TYPE": "chromium"}, ("cdp", "headless")),
        ({"PLAYWRIGHT_BROWSER_TYPE": "firefox"}, ("firefox-remote", "headless")),
        (
            {"PLAYWRIGHT_BROWSER_TYPE": "webkit", "PLAYWRIGHT_LAUNCH_OPTIONS": {"headless": False}},
            ("webkit-remote", "headed"),
        ),
        (
            {"PLAYWRIGHT_BROWSER_TYPE": "lynx", "PLAYWRIGHT_LAUNCH_OPTIONS": '{"headless": true}'},
            ("lynx", "headless"),
        ),
        ({"PLAYWRIGHT_LAUNCH_OPTIONS": '{"headless": false}'}, ("cdp", "headed")),
        ({"PLAYWRIGHT_LAUNCH_OPTIONS": "{"}, ("cdp", "headless")),
        (
            {"PLAYWRIGHT_CDP_URL": "http://localhost:9222", "PLAYWRIGHT_BROWSER_TYPE": "firefox"},
            ("cdp", "headless"),
        ),
    ],
)
def test_browser(settings: dict[str, Any], automations: tuple[str, ...]) -> None:
    assert facts(Request(URL, meta={"playwright": True}), **settings).automations == automations
    assert facts(Request(URL, meta={"playwright": False}), **settings).automations == ()


@pytest.mark.requirement("AUTO-13", "AUTX-4", "AUTX-5", "AUTX-6")
@pytest.mark.parametrize(
    ("declared", "changed"),
    [
        ({"kind": "api"}, {"kinds": API}),
        ({"kind": ["api", "xhr"]}, {"kinds": API + XHR}),
        ({"kind": "api, xhr"}, {"kinds": API + XHR}),
        ({"kind": ["document", "api", "xhr"]}, {"kinds": DOCUMENT + API + XHR}),
        ({"automations": ["WebDriver", "headed"]}, {"automations": ("webdriver", "headed")}),
        ({"automations": "my-tool"}, {"automations": ("my-tool",)}),
        ({"automations": []}, {"automations": ()}),
        (
            {"purposes": ["search", "http://example.org/news"]},
            {"purposes": ("search", "http://example.org/news")},
        ),
        ({"purposes": []}, {"purposes": ()}),
        ({"session": False}, {}),
        ({}, {}),
        (None, {}),
    ],
)
def test_declared_facts(declared: Any, changed: dict[str, Any]) -> None:
    assert facts(Request(URL, meta={"comity": declared})) == PLAIN._replace(**changed)
    assert declaration(Request(URL, meta={"comity": declared})).session is (declared or {}).get(
        "session", True
    )


@pytest.mark.requirement("AUTX-4", "AUTX-5", "AUTX-6")
def test_declarations_come_before_inferred_facts() -> None:
    meta = {"playwright": True, "comity": {"kind": "document", "automations": "webdriver"}}
    found = facts(
        Request(URL, headers={"X-Requested-With": "x", "Accept": "application/json"}, meta=meta)
    )
    assert (found.kinds, found.automations) == (DOCUMENT, ("webdriver",))


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ("api", "`api` is not a mapping: write kind, automations, purposes or session"),
        (["kind"], "is not a mapping"),
        (
            {"kinds": "api"},
            "`kinds` cannot be declared: write kind, automations, purposes or session",
        ),
        ({"kind": "ajax"}, "`ajax` is no kind of request: write document, api, xhr"),
        ({"kind": []}, "is no kind of request"),
        ({"kind": None}, "`None` is not a list for `kind`"),
        ({"kind": ["api", 1]}, "is not a list for `kind`"),
        ({"automations": {"cdp": True}}, "is not a list for `automations`"),
        ({"automations": "cdp headless"}, "write words without spaces and commas"),
        ({"purposes": ["a, b"]}, "is not a list for `purposes`"),
        ({"purposes": "a\r\nCookie: x"}, "is not a list for `purposes`"),
        ({"session": "no"}, "`no` is not an answer to `session`: write True or False"),
        ({"session": None}, "write True or False"),
        ({1: 2}, "`1` cannot be declared"),
    ],
)
def test_an_invalid_declaration_says_the_correction(declared: Any, says: str) -> None:
    with pytest.raises(PolicyError) as raised:
        facts(Request(URL, meta={"comity": declared}))
    assert says in str(raised.value)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.sampled_from(["api", "xhr", "cdp,headless"])
)
VALUES = SCALARS | st.lists(SCALARS) | st.dictionaries(st.text(), SCALARS)
KEYS = st.sampled_from(["kind", "automations", "purposes", "session"]) | SCALARS


@given(VALUES | st.dictionaries(KEYS, VALUES))
def test_any_declaration_is_read_or_refused(declared: Any) -> None:
    try:
        found = declaration(Request(URL, meta={"comity": declared}))
    except PolicyError as error:
        message = str(error)
    else:
        message = "write"
        assert found == NO_DECLARATION or isinstance(declared, dict)
        words = [
            word
            for words in (found.kinds, found.automations, found.purposes)
            for word in words or ()
        ]
        assert all(
            word and word.isascii() and word.isprintable() and not set(" ,") & set(word)
            for word in words
        )
    assert "write" in message
    assert message.splitlines() == [message]
