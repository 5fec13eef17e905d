"""COMITY_SESSIONS: valid declarations and their URLs. No output shows a credential."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from scrapy.settings import Settings

from comity.gate.fetching.store import PolicyStore
from comity.gate.http import PlainRequest
from comity.gate.options import Options
from comity.gate.request.sessions import DeclaredSession, Sessions
from comity.policies import PolicyError
from comity.policies.answers.request import Session
from tests.selection import one_in

SECRET = "s3cr3t-value"
NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("BLANK", " \t")
    monkeypatch.setenv("COOKIES", f"sid={SECRET}; theme=dark")
    monkeypatch.setenv("BROKEN", f"{SECRET}\r\nX-Other: 1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PolicyStore]:
    store = PolicyStore(tmp_path / "policies.sqlite")
    yield store
    store.close()


def declared(value: Any) -> tuple[DeclaredSession, ...]:
    return Options.from_settings(Settings({"COMITY_SESSIONS": value})).sessions


def one(stated: Any) -> DeclaredSession:
    (session,) = declared({"example.com": stated})
    return session


@pytest.mark.requirement("AUTX-8", "AUTX-9")
@pytest.mark.parametrize("form", [lambda stated: stated, json.dumps])
def test_forms(form: Any) -> None:
    stated = {
        "Example.COM": {
            "human_initiated": True,
            "cookies": {"sid": "env:SECRET"},
            "started_at": "2026-01-31T08:00:00+01:00",
        },
        "127.0.0.1:8080": {"token": "env:SECRET", "bearer": "env:SECRET", "insecure": True},
    }
    first, second = declared(form(stated))
    assert (first.host, first.human_initiated, first.insecure) == ("example.com", True, False)
    assert first.cookies == (("sid", SECRET),)
    assert first.started_at == datetime(2026, 1, 31, 7, tzinfo=UTC)
    assert (second.host, second.human_initiated, second.insecure) == ("127.0.0.1:8080", False, True)
    assert (second.token, second.bearer, second.started_at) == (SECRET, SECRET, None)


@pytest.mark.parametrize("value", [None, "", " ", {}, "{}"])
def test_nothing_declared(value: Any) -> None:
    assert declared(value) == ()


@pytest.mark.requirement("AUTX-9")
@pytest.mark.parametrize(
    ("stated", "carries"),
    [
        ({"cookies": "env:COOKIES"}, {"cookie"}),
        ({"token": "env:SECRET"}, {"token"}),
        ({"bearer": "env:SECRET"}, {"bearer"}),
        ({"cookies": {"sid": "env:SECRET"}, "bearer": "env:SECRET"}, {"cookie", "bearer"}),
    ],
)
def test_policies_know_only_the_kinds_of_credentials(stated: Any, carries: set[str]) -> None:
    facts = one({**stated, "human_initiated": True, "started_at": NOW.replace(year=2026)}).facts
    assert facts == Session(
        human_initiated=True, carries=frozenset(carries), started_at=NOW.replace(year=2026)
    )


def test_cookies_as_one_field() -> None:
    assert one({"cookies": "env:COOKIES"}).cookies == (("sid", SECRET), ("theme", "dark"))


@pytest.mark.requirement("AUTX-9")
@pytest.mark.parametrize("cookies", ["sid=", "sid=; theme=", " ; sid = ", 'sid=""'])
def test_cookies_without_values_carry_nothing(
    cookies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COOKIES", cookies)
    with pytest.raises(PolicyError, match="carries nothing: write cookies, token or bearer"):
        one({"cookies": "env:COOKIES", "human_initiated": True})
    assert one({"cookies": "env:COOKIES", "token": "env:SECRET"}).facts.carries == {"token"}


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n", " \t\n"])
def test_credentials_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    (tmp_path / "token").write_bytes(f"{SECRET}{end}".encode())
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (tmp_path / "token", "~/token"):
        assert one({"token": f"file:{path}"}).token == SECRET


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (SECRET, 'is not a mapping of hosts: write {"example.com"'),
        ([SECRET], "is not a mapping of hosts"),
        (5, "is not a mapping of hosts"),
        (f'{{"example.com": {{"token": "{SECRET}"}}', "is not a mapping of hosts"),
        ({f"me:{SECRET}@example.com": {"token": "env:SECRET"}}, "has a key that is not a host"),
        ({"https://example.com": {"token": "env:SECRET"}}, "has a key that is not a host"),
        (
            {"example.com": {"token": "env:SECRET"}, "EXAMPLE.com": {"token": "env:SECRET"}},
            "`example.com` occurs more than once",
        ),
        (
            {"example.com": SECRET},
            "`example.com`: is not a mapping: write some of human_initiated, cookies, token",
        ),
        ({"example.com": {}}, "carries nothing: write cookies, token or bearer"),
        ({"example.com": {"human_initiated": True}}, "carries nothing"),
        ({"example.com": {"tokens": "env:SECRET"}}, "`tokens` is unknown: write some of"),
        (
            {"example.com": {"token": SECRET}},
            "`token` does not name a place: write env:VARIABLE or file:PATH",
        ),
        (
            {"example.com": {"token": None}},
            "`token` does not name a place: write env:VARIABLE or file:PATH",
        ),
        (
            {"example.com": {"bearer": "env:"}},
            "`bearer` does not name a place: write env:VARIABLE or file:PATH",
        ),
        (
            {"example.com": {"cookies": f"sid={SECRET}"}},
            "`cookies` does not name a place: write env:VARIABLE or file:PATH",
        ),
        (
            {"example.com": {"cookies": {"sid": SECRET}}},
            "`cookies` does not name a place: write env:VARIABLE or file:PATH",
        ),
        (
            {"example.com": {"cookies": {f"sid={SECRET}": "env:SECRET"}}},
            "`cookies` has an invalid name",
        ),
        (
            {"example.com": {"cookies": "env:SECRET"}},
            "`cookies` has an invalid name: write name=value",
        ),
        ({"example.com": {"cookies": {"sid": "env:COOKIES"}}}, "`cookies.sid` has a `;`"),
        (
            {"example.com": {"token": "env:MISSING"}},
            "there is no environment variable `MISSING`: set it",
        ),
        ({"example.com": {"token": "env:EMPTY"}}, "`EMPTY` is empty"),
        ({"example.com": {"token": "env:BLANK"}}, "`BLANK` is empty"),
        ({"example.com": {"cookies": {"sid": "env:BLANK"}}}, "`BLANK` is empty"),
        ({"example.com": {"token": "env:BROKEN"}}, "`BROKEN` has a line break"),
        (
            {"example.com": {"token": "file:/nowhere/token"}},
            "`/nowhere/token` cannot be read: No such file or directory",
        ),
        ({"example.com": {"token": "file:/"}}, "`/` cannot be read: Is a directory"),
        ({"example.com": {"token": "file:a\0b"}}, "cannot be read: the path is invalid"),
        ({"example.com": {"token": "file:/dev/zero"}}, "is longer than any field"),
        (
            {"example.com": {"token": "env:SECRET", "human_initiated": "yes"}},
            "`human_initiated` is neither true nor false",
        ),
        (
            {"example.com": {"token": "env:SECRET", "insecure": 1}},
            "`insecure` is neither true nor false",
        ),
        (
            {"example.com": {"token": "env:SECRET", "started_at": "yesterday"}},
            "`yesterday` is not a moment: write it with its offset",
        ),
        (
            {"example.com": {"token": "env:SECRET", "started_at": "2026-01-31T08:00:00"}},
            "is not a moment: write it with its offset",
        ),
        (
            {"example.com": {"token": "env:SECRET", "started_at": "9999-01-31T08:00:00Z"}},
            "is in the future",
        ),
    ],
)
def test_nonsense_is_said_in_one_line_without_the_credential(value: Any, says: str) -> None:
    with pytest.raises(PolicyError) as raised:
        declared(value)
    message = str(raised.value)
    assert message.startswith("COMITY_SESSIONS ")
    assert says in message
    assert message.splitlines() == [message]
    assert SECRET not in message
    assert raised.value.__cause__ is None


def test_credentials_are_in_no_repr() -> None:
    stated = {
        "example.com": {"cookies": "env:COOKIES", "token": "env:SECRET", "bearer": "env:SECRET"}
    }
    options = Options.from_settings(Settings({"COMITY_SESSIONS": stated}))
    (session,) = options.sessions
    for shown in (repr(options), repr(session), str(session), repr(session.facts)):
        assert SECRET not in shown
        assert "example.com" in shown or shown == repr(session.facts)


@pytest.mark.requirement("AUTX-8")
@pytest.mark.parametrize(
    ("host", "url", "goes"),
    one_in(
        4,
        [
            ("example.com", "https://example.com/a", True),
            ("example.com", "https://EXAMPLE.com:8443/a", True),
            ("example.com", "https://www.example.com/", False),
            ("example.com", "https://example.com.evil.test/", False),
            ("example.com", "https://example.com@evil.test/", False),
            ("example.com", "https://evil.test/?example.com", False),
            ("example.com", "http://example.com/", False),
            ("example.com:443", "https://example.com/", True),
            ("example.com:8443", "https://example.com:8443/", True),
            ("example.com:8443", "https://example.com/", False),
            ("example.com:8443", "https://example.com:443/", False),
            ("b\u00fccher.example", "https://xn--bcher-kva.example/", True),
            ("[::1]", "http://[::1]:8080/", True),
            ("[::1]:8080", "http://[::1]:8080/", True),
            ("[::1]:8080", "http://[::1]:8081/", False),
            ("127.0.0.1", "http://127.0.0.1:8080/", True),
            ("127.0.0.1:80", "http://127.0.0.1/", True),
            ("localhost", "http://localhost/", True),
            ("192.168.0.1", "http://192.168.0.1/", False),
            ("localhost.example", "http://localhost.example/", False),
            ("example.com", "ftp://example.com/", False),
        ],
    ),
)
def test_hosts(store: PolicyStore, host: str, url: str, goes: bool) -> None:
    """Over http, sessions go to this machine only."""
    sessions = Sessions(declared({host: {"token": "env:SECRET"}}), store)
    assert (sessions.for_request(PlainRequest(url)) is not None) is goes


@pytest.mark.parametrize(
    ("url", "insecure", "goes"),
    [
        ("http://127.0.0.1/", False, False),
        ("http://localhost:8080/", False, False),
        ("https://127.0.0.1/", False, True),
        ("http://127.0.0.1/", True, True),
    ],
)
def test_a_proxy_is_another_machine(
    store: PolicyStore, url: str, insecure: bool, goes: bool
) -> None:
    host = "localhost" if "localhost" in url else "127.0.0.1"
    stated = {host: {"token": "env:SECRET", "insecure": insecure}}
    request = PlainRequest(url, meta={"proxy": "http://proxy.test:3128"})
    assert (Sessions(declared(stated), store).for_request(request) is not None) is goes


def test_over_http_where_the_operator_says_so(
    store: PolicyStore, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = Sessions(declared({"example.com": {"token": "env:SECRET", "insecure": True}}), store)
    assert sessions.for_request(PlainRequest("http://example.com/"))
    assert caplog.records == []
    sessions = Sessions(declared({"example.com": {"token": "env:SECRET"}}), store)
    for _ in range(2):
        assert sessions.for_request(PlainRequest("http://example.com/")) is None
    (record,) = caplog.records
    assert 'write "insecure": true' in record.getMessage()


def test_the_port_comes_before_the_host(store: PolicyStore) -> None:
    stated = {"example.com": {"token": "env:SECRET"}, "example.com:8443": {"bearer": "env:SECRET"}}
    sessions = Sessions(declared(stated), store)
    first, second = (
        sessions.for_request(PlainRequest("https://example.com/")),
        sessions.for_request(PlainRequest("https://example.com:8443/")),
    )
    assert first
    assert second
    assert (first.host, second.host) == ("example.com", "example.com:8443")


def test_without_the_middleware_that_sends_them_there_are_none(store: PolicyStore) -> None:
    """Else policies would permit a request by a session that does not go out."""
    sessions = Sessions(declared({"example.com": {"token": "env:SECRET"}}), store)
    assert not sessions.are_sent
    sessions.send()
    assert sessions.are_sent
    none = Sessions((), store)
    none.send()
    assert not none.are_sent


def began(store: PolicyStore, **stated: Any) -> datetime | None:
    (session,) = declared({"example.com": stated})
    found = Sessions([session], store).for_request(PlainRequest("https://example.com/"))
    assert found
    assert found.facts.started_at == found.started_at
    return found.started_at


@pytest.mark.requirement("AUTX-10")
def test_an_undated_session_began_at_its_first_use(
    store: PolicyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed credential makes another session. Other changes do not."""
    with time_machine.travel(NOW, tick=False) as clock:
        assert began(store, token="env:SECRET") == NOW
        clock.shift(timedelta(days=400))
        assert began(store, token="env:SECRET") == NOW
        assert began(store, token="env:SECRET", human_initiated=True) == NOW
        assert began(store, bearer="env:SECRET") == NOW + timedelta(days=400)
        monkeypatch.setenv("SECRET", "renewed")
        clock.shift(timedelta(days=1))
        assert began(store, token="env:SECRET") == NOW + timedelta(days=401)


@pytest.mark.requirement("AUTX-10")
def test_a_declared_moment_comes_first(store: PolicyStore) -> None:
    with time_machine.travel(NOW, tick=False):
        began(store, token="env:SECRET")
        assert began(store, token="env:SECRET", started_at="2026-01-01T00:00:00Z") == datetime(
            2026, 1, 1, tzinfo=UTC
        )


@pytest.mark.requirement("AUTX-10")
def test_when_it_began_is_unknown_where_the_store_fails(
    store: PolicyStore, caplog: pytest.LogCaptureFixture
) -> None:
    (session,) = declared({"example.com": {"token": "env:SECRET"}})
    store.close()
    found = Sessions([session], store).for_request(PlainRequest("https://example.com/"))
    assert found
    assert found.started_at is None
    (record,) = caplog.records
    assert "counts as too old" in record.getMessage()
