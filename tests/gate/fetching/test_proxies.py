"""Policy files through proxies: the choice of the proxy, and the requests that it gets."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from comity.gate.fetching.client import PolicyClient
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.proxies import Proxies, Proxy
from comity.gate.fetching.reach import Reach
from comity.policies import PolicyError
from tests.gate.fetching.conftest import PATHS, Peer, Script, Server, answer, get_all, options, says

Serving = Callable[..., Server]


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def choose(
    setting: str = "",
    url: tuple[str, str] = ("http", "example.com"),
    *,
    is_environment_read: bool = True,
) -> object:
    proxy = Proxies.read(setting, is_environment_read=is_environment_read).select(*url)
    return proxy and (proxy.host, proxy.port)


def test_which_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting comes before the environment, which is read as urllib and Scrapy do."""
    https = ("https", "example.com")
    assert choose() is None
    monkeypatch.setenv("HTTP_PROXY", "http://one.test:3128")
    monkeypatch.setenv("https_proxy", "two.test:3129")
    monkeypatch.setenv("NO_PROXY", "example.org,.inner.test")
    assert (choose(), choose(url=https)) == (("one.test", 3128), ("two.test", 3129))
    for host in ("example.org", "www.inner.test"):
        assert choose(url=("http", host)) is None
    assert choose(is_environment_read=False) is None
    assert choose("direct") is None
    for setting in ("http://own.test:8080", "own.test:8080", "HTTP://own.test:8080/"):
        for url in (("http", "example.com"), https, ("http", "example.org")):
            assert choose(setting, url) == ("own.test", 8080)
    assert choose("http://own.test", is_environment_read=False) == ("own.test", 80)
    assert choose("http://[::1]:3128") == ("::1", 3128)


@pytest.mark.parametrize(
    "value",
    [
        "socks5://name:secret@one.test:1080",
        "https://name:secret@one.test",
        "http://name:secret@one.test:99999",
        "http://name:secret@[",
        "http://",
        "[",
        "a b",
    ],
)
def test_other_proxies_end_the_program(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """The message does not contain the credentials."""
    with pytest.raises(PolicyError, match=r"COMITY_PROXY .* is not an HTTP proxy") as refused:
        Proxies.read(value, is_environment_read=True)
    assert "secret" not in str(refused.value)
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(PolicyError, match=r"https_proxy .* COMITY_PROXY=direct"):
        Proxies.read("", is_environment_read=True)
    assert choose("direct") is None


def test_an_encoding_that_is_none_is_named() -> None:
    with pytest.raises(PolicyError, match="HTTPPROXY_AUTH_ENCODING `utf-9` is not an encoding"):
        Proxies.read("http://name:secret@one.test", is_environment_read=True, encoding="utf-9")


def client_of(server: Server, credentials: str = "") -> PolicyClient:
    url = server.origin.replace("://", f"://{credentials}")
    return PolicyClient(options(proxies=Proxies.read(url, is_environment_read=False)))


@pytest.mark.parametrize("credentials", ["", "na%3Ame:s%C3%A9cret@"])
def test_http_goes_to_the_proxy_with_absolute_urls(serving: Serving, credentials: str) -> None:
    """They go out one by one: a proxy may share the connection among many servers."""

    def script(peer: Peer) -> None:
        for number in range(4):
            peer.read()
            assert len(peer.requests) == number + 1
            peer.send(answer(b"%d" % number))
        peer.wait_for_the_end()

    proxy = serving(script)
    got = get_all("http://site.test:81", client=client_of(proxy, credentials))
    assert got.bodies == [b"0", b"1", b"2", b"3"]
    (peer,) = proxy.peers
    assert peer.paths == [f"http://site.test:81{path}" for path in PATHS]
    assert all(b"\r\nHost: site.test:81\r\n" in request for request in peer.requests)
    sent = [
        line
        for request in peer.requests
        for line in request.split(b"\r\n")
        if line.startswith(b"Proxy-")
    ]
    encoded = base64.b64encode("na:me:s\xe9cret".encode("latin-1"))
    assert sent == ([b"Proxy-Authorization: Basic " + encoded] * 4 if credentials else [])


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    "octets",
    [
        answer(b"", 407, "Proxy-Authenticate: Basic"),
        answer(b"<html>", 403, "X-Squid-Error: ERR_ACCESS_DENIED 0"),
        answer(b"", 404, "Proxy-Status: proxy.test; error=dns_error"),
    ],
)
def test_an_answer_of_the_proxy_is_none_of_the_server(serving: Serving, octets: bytes) -> None:
    """From a server, status 403 would mean that there is no file."""
    got = get_all("http://site.test", paths=PATHS[:1], client=client_of(serving(says(octets))))
    assert got.bodies == [None]
    assert "the proxy answered" in got.errors[0]


def tunnels_to(
    server: Server, says: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"
) -> Script:
    """A proxy that always connects to this server, for all destinations."""

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def script(peer: Peer) -> None:
        peer.read()
        host, _, port = server.origin.rpartition("/")[2].partition(":")
        with socket.create_connection((host, int(port))) as onward:
            peer.send(says)
            back = threading.Thread(target=copy, args=(onward, peer.sock), daemon=True)
            back.start()
            copy(peer.sock, onward)
            back.join(60)

    return script


@pytest.fixture
def context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_https_goes_through_a_tunnel(
    serving: Serving, context: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy sees the name of the server only, and certificates are verified."""

    def script(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"robots"))
        peer.read(3)
        for _ in range(3):
            peer.send(answer(b"other"))
        peer.wait_for_the_end()

    server = serving(script, context=context)
    proxy = serving(tunnels_to(server))
    assert get_all(server.origin, client=client_of(proxy)).bodies == [None] * 4
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = client_of(proxy, "name:secret@")
    assert get_all(server.origin, client=client).bodies == [b"robots"] + [b"other"] * 3
    authority = server.origin.rpartition("/")[2].encode()
    credentials = base64.b64encode(b"name:secret")
    fields = b"Host: %s\r\nProxy-Authorization: Basic %s" % (authority, credentials)
    assert proxy.peers[-1].requests == [b"CONNECT %s HTTP/1.1\r\n%s" % (authority, fields)]
    assert server.peers[-1].paths == list(PATHS)
    assert b"Proxy-" not in b"".join(server.peers[-1].requests)


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (answer(b"", 407), "HTTP status 407"),
        (answer(b"no", 403), "HTTP status 403"),
        (answer(b"", 502), "HTTP status 502"),
        (b"garbage\r\n\r\n", "invalid HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, "no answer that can be read"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nAllow: /", "no answer"),
        (b"", "no answer"),
    ],
)
def test_a_proxy_that_makes_no_tunnel(serving: Serving, octets: bytes, why: str) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        if octets:
            peer.send(octets)
            peer.wait_for_the_end()

    got = get_all("https://site.test", paths=PATHS[:1], client=client_of(serving(script)))
    assert got.bodies == [None]
    assert why in got.errors[0]


def test_a_proxy_that_is_not_there() -> None:
    proxies = Proxies((("http", Proxy("127.0.0.1", 1)), ("https", Proxy("127.0.0.1", 1))))
    for origin in ("http://site.test", "https://site.test"):
        got = get_all(origin, paths=PATHS[:1], client=PolicyClient(options(proxies=proxies)))
        assert got.bodies == [None]


@pytest.mark.requirement("SEC-2")
def test_through_a_proxy_addresses_in_urls_are_judged(serving: Serving) -> None:
    """The proxy resolves names."""
    proxy = serving(says(answer(b"ab")))
    for origin in ("http://10.0.0.1", "https://0x7f.1", "http://[::1]:8080"):
        with pytest.raises(BarredError):
            get_all(origin, client=client_of(proxy), referrer_reach=Reach.PUBLIC)
    assert proxy.peers == []
    assert get_all(
        "http://site.test", paths=PATHS[:1], client=client_of(proxy), referrer_reach=Reach.PUBLIC
    ).bodies == [b"ab"]
