"""The causes of failures, their words in the store, and the wait after each."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from comity.gate.fetching import files as module
from comity.gate.fetching.causes import (
    CAUSES,
    LOOK_UP,
    NETWORK,
    NO_HOST,
    OTHER,
    REFUSED,
    SOCKETS,
    TLS,
    cause_of,
    failure_of,
)
from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.files import PolicyFiles, PolicyQuery
from comity.gate.fetching.store import PolicyStore
from tests.certificates import Authority
from tests.gate.fetching.conftest import Server, answer, get, options, says

Serving = Callable[..., Server]


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), LOOK_UP),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure in name resolution"), LOOK_UP),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), NO_HOST),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), NETWORK),
        (OSError(errno.EMFILE, "Too many open files"), SOCKETS),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"), REFUSED),
        (ssl.SSLError(1, "[SSL: NO_PROTOCOLS_AVAILABLE] no protocols available"), TLS),
        (
            OSError(
                "Multiple exceptions: [Errno 101] Network is unreachable,"
                " [Errno 111] Connection refused"
            ),
            OTHER,
        ),
        (UnicodeError("label too long"), OTHER),
    ],
)
def test_a_failure_keeps_its_cause_in_its_words(error: Exception, cause: object) -> None:
    assert cause_of(failure_of(error)) is cause
    assert str(error) in failure_of(error)


def test_the_words_of_causes_tell_them_apart() -> None:
    assert [cause_of(f"{cause.words}: x") for cause in CAUSES] == list(CAUSES)


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("expired", "the certificate is not valid at this time: certificate has expired"),
        ("of tomorrow", "the certificate is not valid at this time: certificate is not yet valid"),
        ("another name", "the certificate is for another name: IP address mismatch"),
        (
            "unknown authority",
            "the certificate is not trusted: unable to get local issuer certificate",
        ),
        ("good", ""),
    ],
)
def test_certificates_of_an_authority_that_is_trusted(
    serving: Serving,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    words: str,
) -> None:
    certificate = {
        "expired": lambda: authority.expired("127.0.0.1"),
        "of tomorrow": lambda: authority.of_tomorrow("127.0.0.1"),
        "another name": lambda: authority.issue("localhost", "127.0.0.2"),
        "unknown authority": lambda: Authority(tmp_path, "another authority").issue("127.0.0.1"),
        "good": lambda: authority.issue("127.0.0.1"),
    }[kind]()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = serving(says(answer(b"text")), context=context)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificates))
    got = get(server.origin)
    assert got.bodies == [b"text" if kind == "good" else None]
    assert all(error.startswith(words) for error in got.errors)
    assert len(got.errors) == (kind != "good")
    if kind != "good":
        assert not server.peers[0].requests
        assert get(server.origin, client=PolicyClient(options(verified=False))).bodies == [b"text"]


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize("is_local", [True, False])
def test_a_cause_that_the_operator_can_remove_closes_a_site_for_a_minute_at_most(
    serving: Serving, certificate: Path, tmp_path: Path, is_local: bool
) -> None:
    """After a setting is corrected, the next crawl fetches the site.

    The number of failures before does not matter.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = serving(says(answer(b"", 503)), context=context if is_local else None)
    now = 2_000_000_000.0

    class Crawl:
        def count(self, name: str, number: int = 1, origin: str = "") -> None:
            pass

    async def run() -> list[float]:
        nonlocal now
        files = PolicyFiles(
            PolicyStore(tmp_path / "store"), PolicyClient(options()), timeout=60, clock=lambda: now
        )
        waits = []
        for _ in range(8):
            (file,) = (
                await files.get(PolicyQuery(server.origin, ("/robots.txt",), None), Crawl())
            ).files.values()
            waits.append(file.due - now)
            now = file.due
        await files.leave()
        return waits

    doubled = [5.0 * 2**number for number in range(8)]
    assert asyncio.run(run()) == (
        [min(wait, module.LOCAL_BACK_OFF) for wait in doubled] if is_local else doubled
    )
