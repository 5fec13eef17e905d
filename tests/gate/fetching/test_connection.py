"""The client against arbitrary servers: each connection follows a script of its own."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.gate.fetching.client import Hop, PolicyClient
from comity.gate.fetching.connection import (
    MAX_ANSWER,
    MAX_HEAD,
    MAX_INTERIM,
    Connection,
    HttpAnswer,
    TransferError,
    UnansweredError,
)
from comity.gate.fetching.network import BarredError
from comity.gate.fetching.reach import Reach
from comity.policies.syntax.lines import MAX_BYTES
from comity.policies.syntax.urls import target_of
from tests.gate.fetching.conftest import (
    PATHS,
    Peer,
    Script,
    Server,
    answer,
    get,
    get_all,
    options,
    says,
)

Serving = Callable[..., Server]


def says_and_ends(octets: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(octets)

    return script


# One answer


class Framed(NamedTuple):
    name: str
    octets: bytes
    body: bytes | None = None  # None for an unclean answer
    why: str = ""  # a part of the reason


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
FRAMED = [
    Framed("length", OK + b"Content-Length: 2\r\n\r\nab", b"ab"),
    Framed("chunks", CHUNKED + b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n", b"ab"),
    Framed("chunk-extension", CHUNKED + b"2;a=b;c\r\nab\r\n0\r\n\r\n", b"ab"),
    Framed("no-reason", b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nab", b"ab"),
    Framed("http-1.0", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", b"ab"),
    Framed("204", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    Framed(
        "interim",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer(b"ab"),
        b"ab",
    ),
    Framed(
        "interim-with-length",
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n" + answer(b"ab"),
        b"ab",
    ),
    Framed("upgrade-offered", answer(b"ab", 200, "Connection: upgrade", "Upgrade: h2c"), b"ab"),
    Framed("eight-bit-field", OK + b"X: \xe9\xff\r\nContent-Length: 2\r\n\r\nab", b"ab"),
    Framed(
        "both-lengths",
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        why="Length",
    ),
    Framed(
        "both-the-other-way",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        why="Length",
    ),
    Framed(
        "two-lengths", OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc", why="Duplicate"
    ),
    Framed("list-of-lengths", OK + b"Content-Length: 2, 2\r\n\r\nab", why="Content-Length"),
    Framed("signed-length", OK + b"Content-Length: +2\r\n\r\nab", why="Content-Length"),
    Framed("negative-length", OK + b"Content-Length: -2\r\n\r\nab", why="Content-Length"),
    Framed(
        "gzip-coding",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        why="Transfer-Encoding gzip",
    ),
    Framed(
        "unknown-coding",
        OK + b"Transfer-Encoding: xchunked\r\n\r\nab",
        why="Transfer-Encoding xchunked",
    ),
    Framed(
        "identity-coding",
        OK + b"Transfer-Encoding: identity\r\n\r\nab",
        why="Transfer-Encoding identity",
    ),
    Framed(
        "two-codings",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\nab",
        why="Transfer-Encoding",
    ),
    Framed(
        "chunks-in-1.0",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        why="HTTP/1.0",
    ),
    Framed("bare-lf", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab", why="CR"),
    Framed("bare-lf-in-a-field", OK + b"X: y\nContent-Length: 2\r\n\r\nab", why="CR"),
    Framed("bare-cr", OK + b"X: y\rContent-Length: 2\r\n\r\nab", why="LF"),
    Framed("bare-lf-in-chunks", CHUNKED + b"2\nab\n0\n\n", why="CR"),
    Framed("folded-field", OK + b"X: y\r\n z\r\nContent-Length: 2\r\n\r\nab", why="whitespace"),
    Framed("space-before-colon", OK + b"Content-Length : 2\r\n\r\nab", why="header"),
    Framed("nul", OK + b"X: y\0z\r\nContent-Length: 2\r\n\r\nab", why="header value"),
    Framed("huge-chunk-size", CHUNKED + b"ffffffffffffffffff\r\nab", why="overflow"),
    Framed("no-chunk-size", CHUNKED + b"xyz\r\nab", why="chunk size"),
    Framed("longer-chunk", CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", why="chunk"),
    Framed("http-0.9", b"User-agent: *\nDisallow: /\n", why="HTTP/"),
    Framed("http-2", b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nab", why="HTTP/2.0"),
    Framed("http-2-settings", b"\0\0\0\4\0\0\0\0\0", why="HTTP/"),
    Framed("http-3.7", b"HTTP/3.7 200 OK\r\nContent-Length: 2\r\n\r\nab", why="version"),
    Framed("other-protocol", b"SSH-2.0-OpenSSH_9.7\r\n", why="HTTP/"),
    Framed("lower-case", b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", why="HTTP/"),
    Framed("garbage-before", b"x" + answer(b"ab"), why="HTTP/"),
    Framed(
        "101", b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", why="101"
    ),
    Framed("status-0", b"HTTP/1.1 000 Zero\r\nContent-Length: 2\r\n\r\nab", why="status 0"),
    Framed("status-99", b"HTTP/1.1 99 Low\r\nContent-Length: 2\r\n\r\nab", why="tatus"),
    Framed("status-2000", b"HTTP/1.1 2000 High\r\nContent-Length: 2\r\n\r\nab", why="tatus"),
    Framed(
        "endless-interim",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * (MAX_INTERIM + 1) + answer(b"ab"),
        why="1xx",
    ),
    Framed(
        "large-head",
        OK + b"X: " + b"y" * MAX_HEAD + b"\r\nContent-Length: 2\r\n\r\nab",
        why="header section",
    ),
    Framed(
        "many-fields",
        OK + b"X: y\r\n" * MAX_HEAD + b"Content-Length: 2\r\n\r\nab",
        why="header section",
    ),
    Framed(
        "large-interim",
        b"HTTP/1.1 103 Early Hints\r\nX: " + b"y" * MAX_HEAD + b"\r\n\r\n" + answer(b"ab"),
        why="header section",
    ),
    Framed(
        "endless-chunk-extension",
        CHUNKED + b"2;" + b"x" * (2 * MAX_ANSWER) + b"\r\nab\r\n0\r\n\r\n",
        why="the answer is larger",
    ),
    Framed(
        "endless-trailers",
        CHUNKED + b"2\r\nab\r\n0\r\n" + b"X: y\r\n" * MAX_ANSWER + b"\r\n",
        why="the answer is larger",
    ),
]


@pytest.mark.requirement("RFC-7", "SEC-3")
@pytest.mark.parametrize("framed", FRAMED, ids=lambda framed: framed.name)
def test_only_clean_answers_count(serving: Serving, framed: Framed) -> None:
    got = get(serving(says(framed.octets)).origin)
    assert got.bodies == [framed.body]
    assert (framed.body is None) == bool(got.errors)
    assert all(framed.why in error for error in got.errors)


@pytest.mark.requirement("RFC-7", "SEC-3")
@pytest.mark.parametrize(
    "framed",
    [framed for framed in FRAMED if len(framed.octets) < 500],
    ids=lambda framed: framed.name,
)
def test_pieces_do_not_matter(framed: Framed) -> None:
    """The answer does not depend on the pieces in which its octets arrive."""

    async def run(pieces: int) -> tuple[object, ...]:
        connection = Connection()
        connection.connection_made(_Nowhere())
        (future,) = connection.ask([b""])
        for start in range(0, len(framed.octets), pieces):
            connection.data_received(framed.octets[start : start + pieces])
        result = future.result()
        return tuple(result) if isinstance(result, HttpAnswer) else (str(result),)

    assert asyncio.run(run(1)) == asyncio.run(run(3)) == asyncio.run(run(len(framed.octets)))


class _Nowhere(asyncio.Transport):
    def write(self, data: object) -> None:
        pass

    def abort(self) -> None:
        pass

    def is_closing(self) -> bool:
        return False


@pytest.mark.requirement("SEC-1")
@given(
    st.lists(st.binary() | st.sampled_from([framed.octets[:200] for framed in FRAMED]), max_size=6),
    st.integers(1, 3),
)
def test_no_octets_raise(pieces: list[bytes], requests: int) -> None:
    async def run() -> None:
        connection = Connection()
        connection.connection_made(_Nowhere())
        futures = connection.ask([b""] * requests)
        for piece in pieces:
            connection.data_received(piece)
        connection.eof_received()
        connection.connection_lost(None)
        assert all(
            future.done() and not future.exception() for future in futures if not future.cancelled()
        )

    asyncio.run(run())


@pytest.mark.requirement("SEC-1")
@given(
    st.lists(st.binary() | st.sampled_from([framed.octets[:200] for framed in FRAMED]), max_size=6),
    st.booleans(),
)
def test_no_octets_raise_while_an_answer_arrives(
    pieces: list[bytes],
    is_head: bool,  # of Hypothesis
) -> None:
    async def run() -> None:
        connection = Connection()
        connection.connection_made(_Nowhere())
        arrival = connection.stream(b"", is_head=is_head, max_octets=MAX_ANSWER)
        for piece in pieces:
            connection.data_received(piece)
        connection.eof_received()
        connection.connection_lost(None)
        assert arrival.result is not None
        await arrival.more()
        assert not (is_head and arrival.chunks)

    asyncio.run(run())


@pytest.mark.requirement("RFC-7", "SEC-3")
@pytest.mark.parametrize("framed", FRAMED, ids=lambda framed: framed.name)
def test_answers_that_arrive_in_parts_are_as_clean(framed: Framed) -> None:
    """A streamed answer counts if the whole answer does."""

    async def run() -> None:
        connection = Connection()
        connection.connection_made(_Nowhere())
        arrival = connection.stream(b"", max_octets=MAX_ANSWER)
        # In one piece, the parser would be at its end before the connection counts the octets.
        for start in range(0, len(framed.octets), 65536):
            connection.data_received(framed.octets[start : start + 65536])
        if framed.body is None:
            assert isinstance(arrival.result, TransferError)
            assert framed.why in str(arrival.result)
        else:
            assert isinstance(arrival.result, HttpAnswer)
            assert b"".join(arrival.chunks) == framed.body

    asyncio.run(run())


@pytest.mark.requirement("RFC-7")
def test_octets_after_the_end_void_the_answer(serving: Serving) -> None:
    """Its length is not the one that the server meant."""
    for surplus in (b"c", b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"):
        for first in (answer(b"ab"), answer(b"ab", 200, "Connection: close")):
            got = get(serving(says(first + surplus)).origin)
            assert got.bodies == [None]
    # llhttp skips empty lines.
    assert get(serving(says(answer(b"ab") + b"\r\n")).origin).bodies == [b"ab"]


@pytest.mark.requirement("RFC-7")
def test_trailers_are_no_header_fields(serving: Serving) -> None:
    async def run(origin: str) -> Hop:
        async with PolicyClient(options()).server(
            origin, None, lambda what, number, origin: None
        ) as server:
            return await server.get(f"{origin}/robots.txt", {})

    hop = asyncio.run(
        run(serving(says(CHUNKED + b"2\r\nab\r\n0\r\nContent-Type: text/html\r\n\r\n")).origin)
    )
    assert [name for name, _ in hop.headers] == [b"Transfer-Encoding"]


@pytest.mark.requirement("RFC-9", "SEC-3")
@pytest.mark.parametrize("size", [MAX_BYTES, MAX_BYTES + 1, 4 * MAX_BYTES])
def test_the_body_is_cut_at_the_limit(serving: Serving, size: int) -> None:
    async def run(origin: str) -> Hop:
        async with PolicyClient(options()).server(
            origin, None, lambda what, number, origin: None
        ) as server:
            return await server.get(f"{origin}/robots.txt", {})

    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(chunk), chunk)
        for chunk in [b"x" * 1000] * (size // 1000) + [b"x" * (size % 1000)]
    )
    for octets in (answer(b"x" * size), CHUNKED + chunks + b"0\r\n\r\n"):
        hop = asyncio.run(run(serving(says(octets)).origin))
        assert (len(hop.body), hop.oversized) == (MAX_BYTES, size > MAX_BYTES)


@pytest.mark.requirement("RFC-7")
def test_a_body_without_length_ends_with_the_connection(serving: Serving) -> None:
    assert get(serving(says_and_ends(OK + b"\r\nab")).origin).bodies == [b"ab"]

    def breaks_off(peer: Peer) -> None:
        peer.read()
        peer.send(OK + b"\r\nab")
        time.sleep(0.2)  # so that the client reads it now
        peer.reset()

    for script in (
        breaks_off,
        says_and_ends(OK + b"Content-Length: 3\r\n\r\nab"),
        says_and_ends(CHUNKED + b"2\r\nab\r\n"),
    ):
        got = get(serving(script).origin)
        assert (got.bodies, len(got.errors)) == ([None], 1)


# Several requests, over one connection or several


def test_after_the_first_answer_the_others_are_asked_for_together(serving: Serving) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"/robots.txt"))
        peer.read(3)  # no request waits for an answer
        for path in peer.paths[1:]:
            peer.send(answer(path.encode()))
        peer.wait_for_the_end()

    server = serving(script)
    got = get_all(server.origin)
    assert got.bodies == [path.encode() for path in PATHS]
    assert [peer.paths for peer in server.peers] == [list(PATHS)]
    assert (got.counts["requests"], got.counts["connections"]) == (4, 1)
    assert got.counts["bytes"] == sum(len(answer(path.encode())) for path in PATHS)


def one_answer(*fields: str) -> Script:
    """Answer one request, and end the connection if the fields say so."""

    def script(peer: Peer) -> None:
        peer.read()
        peer.send(answer(peer.paths[0].encode(), 200, *fields))
        if "Connection: close" in fields:
            peer.wait_for_the_end()

    return script


@pytest.mark.parametrize("fields", [("Connection: close",), (), ("Connection: keep-alive",)])
@pytest.mark.parametrize("seconds", [0, 0.05])
def test_a_server_that_ends_the_connection_is_asked_again_over_another(
    serving: Serving, fields: tuple[str, ...], seconds: float
) -> None:
    """It says so, or ends it while no request is under way, or when the next requests arrive."""
    server = serving(one_answer(*fields))
    got = get_all(server.origin, between=partial(asyncio.sleep, seconds))
    assert got.bodies == [path.encode() for path in PATHS]
    assert [peer.paths[0] for peer in server.peers] == list(PATHS)
    assert got.counts["connections"] == 4


def test_a_new_connection_that_ends_without_an_answer_is_not_repeated(serving: Serving) -> None:
    for first in ([], [one_answer()]):
        server = serving(*first, lambda peer: peer.read())
        got = get_all(server.origin, paths=PATHS[: 1 + len(first)])
        assert got.bodies[-1] is None
        assert len(server.peers) == 1 + len(first)


@pytest.mark.requirement("RFC-7")
@pytest.mark.parametrize(
    "second",
    [
        b"garbage",
        OK + b"Content-Length: 2\r\nContent-Length: 9\r\n\r\nab",
        answer(b"/a.txt") + b"garbage",
        answer(b"/a.txt", 200, "Connection: close"),
        answer(b"/a.txt")
        + answer(b"/b.txt")
        + answer(b"/c.txt")
        + answer(b"more than was asked for"),
        answer(b"/a.txt") + OK + b"Content-Length: 99\r\n\r\nbreaks off",
    ],
    ids=["garbage", "two-lengths", "garbage-after", "close", "one-too-many", "breaks-off"],
)
def test_what_comes_after_an_unclean_answer_is_asked_for_again_one_by_one(
    serving: Serving, second: bytes
) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"/robots.txt"))
        peer.read(3)
        peer.send(second)

    def alone(peer: Peer) -> None:
        peer.read()
        peer.send(answer(peer.paths[0].encode()))
        peer.wait_for_the_end()

    server = serving(script, alone)
    assert get_all(server.origin).bodies == [path.encode() for path in PATHS]
    again = [peer.paths for peer in server.peers[1:]]
    assert again
    assert all(len(paths) == 1 for paths in again)
    assert [path for paths in again for path in paths] == list(PATHS[-len(again) :])


@pytest.mark.requirement("RFC-7")
def test_a_server_that_reads_only_the_first_of_several_requests_is_asked_again(
    serving: Serving,
) -> None:
    """All of this takes less time than one file may take."""

    def reads_one(peer: Peer) -> None:
        while data := peer.sock.recv(65536):  # as if it were one request
            peer.requests.append(data)
            peer.send(answer(data.split(b" ")[1]))

    server = serving(reads_one)
    got = get_all(server.origin, client=PolicyClient(options(), patience=1.0))
    assert got.bodies == [path.encode() for path in PATHS]
    assert [len(peer.requests) for peer in server.peers] == [2, 1, 1]


def test_a_408_over_a_used_connection_is_about_the_connection(serving: Serving) -> None:
    """As a final answer it would mean that there is no file."""

    def script(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"/robots.txt"))
        peer.read(3)
        peer.send(answer(b"", 408, "Connection: close"))
        peer.wait_for_the_end()

    server = serving(script, one_answer())
    assert get_all(server.origin).bodies == [path.encode() for path in PATHS]
    assert [peer.paths for peer in server.peers] == [
        list(PATHS),
        ["/a.txt"],
        ["/b.txt"],
        ["/c.txt"],
    ]


@pytest.mark.requirement("RFC-7")
def test_an_answer_that_nobody_has_asked_for_is_void(serving: Serving) -> None:
    """It arrived before the request that it would be taken to answer."""

    answered, sent = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"/robots.txt"))
        assert answered.wait(60)
        peer.send(answer(b"nobody asked"))
        sent.set()
        peer.wait_for_the_end()

    async def until_it_is_there() -> None:
        answered.set()
        assert await asyncio.to_thread(sent.wait, 60)
        for _ in range(3):  # turns of the loop, in which the received octets are read
            await asyncio.sleep(0)

    server = serving(script, one_answer())
    got = get_all(server.origin, paths=PATHS[:2], between=until_it_is_there)
    assert got.bodies == [b"/robots.txt", b"/a.txt"]
    assert [peer.paths for peer in server.peers] == [["/robots.txt"], ["/a.txt"]]


@pytest.mark.requirement("SEC-3")
def test_a_file_that_does_not_come_in_time_costs_no_other(serving: Serving) -> None:
    """This is true for files that were requested together, too."""

    def hangs(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"/robots.txt"))
        peer.read(3)
        peer.send(answer(b"/a.txt"))
        peer.wait_for_the_end()

    server = serving(hangs, one_answer())
    got = get_all(server.origin, seconds=2)
    assert got.bodies == [b"/robots.txt", b"/a.txt", None, b"/c.txt"]
    assert [peer.paths for peer in server.peers] == [list(PATHS), ["/c.txt"]]


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"", b""),
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (OK + b"Content-Length: 99999\r\n\r\n", b"#"),
        (CHUNKED, b"1\r\n#\r\n"),
    ],
    ids=["silence", "one-octet", "fields", "body", "chunks"],
)
@pytest.mark.requirement("SEC-3")
def test_slow_servers_end_at_the_deadline(serving: Serving, first: bytes, drop: bytes) -> None:
    def drips(peer: Peer) -> None:
        peer.read()
        peer.send(first)
        while drop:
            peer.send(drop)
            time.sleep(0.05)  # the server sends very slowly
            if drop == b"H":
                peer.wait_for_the_end()
        peer.wait_for_the_end()

    server = serving(drips)
    assert get(server.origin, seconds=0.5).errors == ["TimeoutError"]


# The request


def test_what_is_sent(serving: Serving) -> None:
    async def run(origin: str) -> None:
        async with PolicyClient(options()).server(
            origin, None, lambda what, number, origin: None
        ) as server:
            await server.get(f"{origin}/a?b=%20#part", {"If-None-Match": '"\xe9"'})

    server = serving(says(answer()))
    asyncio.run(run(server.origin))
    (peer,) = server.peers
    assert peer.requests == [
        b"GET /a?b=%20 HTTP/1.1\r\nHost: "
        + server.origin.removeprefix("http://").encode()
        + b"\r\nUser-Agent: testbot/1.0\r\nAccept: text/plain,*/*;q=0.8"
        + b"\r\nAccept-Encoding: identity"
        + b'\r\nIf-None-Match: "\xe9"'
    ]


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/\x00\nb", "/\u2460"])
def test_no_url_smuggles_anything_into_a_request(serving: Serving, path: str) -> None:
    server = serving(says(answer()))
    got = get_all(server.origin, paths=("/robots.txt", path, "/c.txt"))
    assert got.bodies[1] is None
    assert "cannot be asked for" in got.errors[0]
    assert all(
        peer.paths in (["/robots.txt"], ["/c.txt"], ["/robots.txt", "/c.txt"])
        for peer in server.peers
    )


@pytest.mark.requirement("SEC-2")
def test_what_is_asked_for_is_what_is_judged(serving: Serving) -> None:
    server = serving(says(answer()))
    url = f"{server.origin}/b\tc\r\nd \x00\n"
    get_all(server.origin, paths=(url.removeprefix(server.origin),))
    assert [path for peer in server.peers for path in peer.paths] == [target_of(url)] == ["/bcd"]


# TLS


@pytest.fixture
def context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusting(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> PolicyClient:
    """Return a client that trusts the certificate through the environment."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return PolicyClient(options())


def test_certificates_are_verified(
    serving: Serving, context: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving(says(answer(b"ab")), context=context)
    assert get(server.origin).bodies == [None]
    assert get(server.origin, client=PolicyClient(options(verified=False))).bodies == [b"ab"]
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert get(server.origin).bodies == [b"ab"]
    # The certificate is for another name.
    got = get(server.origin.replace("127.0.0.1", "localhost"))
    assert "certificate" in got.errors[0].lower()


@pytest.mark.usefixtures("each_event_loop")
@pytest.mark.requirement("RFC-7")
def test_over_tls_only_the_server_ends_a_body(
    serving: Serving, context: ssl.SSLContext, trusting: PolicyClient
) -> None:
    """RFC 9112 section-9.8: an attacker on the way can end a connection, not a TLS session."""

    def with_alert(peer: Peer) -> None:
        peer.read()
        peer.send(OK + b"\r\nab")
        assert isinstance(peer.sock, ssl.SSLSocket)
        with suppress(OSError):
            peer.sock.unwrap()

    def without(peer: Peer) -> None:
        peer.read()
        peer.send(OK + b"\r\nab")
        peer.sock.shutdown(socket.SHUT_WR)
        time.sleep(0.2)

    assert get(serving(with_alert, context=context).origin, client=trusting).bodies == [b"ab"]
    assert get(serving(without, context=context).origin, client=trusting).bodies == [None]
    whole = answer(b"ab")  # it states its length

    def without_but_whole(peer: Peer) -> None:
        peer.read()
        peer.send(whole)

    assert get(serving(without_but_whole, context=context).origin, client=trusting).bodies == [
        b"ab"
    ]


def test_tls_that_stalls_ends_at_the_deadline(serving: Serving) -> None:
    server = serving(lambda peer: peer.wait_for_the_end())
    got = get(
        server.origin.replace("http:", "https:"),
        client=PolicyClient(options(verified=False)),
        seconds=0.5,
    )
    assert got.errors == ["TimeoutError"]


# Addresses


@pytest.mark.requirement("SEC-2", "SEC-7")
def test_no_connection_where_nobody_may_lead(serving: Serving) -> None:
    async def run(origin: str, referrer_reach: Reach | None) -> Hop:
        async with PolicyClient(options()).server(
            origin, referrer_reach, lambda what, number, origin: None
        ) as server:
            return await server.get(f"{origin}/robots.txt", {})

    server = serving(says(answer(b"ab")))
    for host in ("127.0.0.1", "localhost", "0x7f.1"):
        with pytest.raises(BarredError):
            asyncio.run(run(server.origin.replace("127.0.0.1", host), Reach.PUBLIC))
    assert server.peers == []
    for referrer_reach in (None, Reach.LOOPBACK):
        hop = asyncio.run(run(server.origin, referrer_reach))
        assert (hop.body, hop.reach) == (b"ab", Reach.LOOPBACK)


def test_a_slow_name_holds_up_no_other(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number does not matter, though the loop's own executor has few threads."""
    release = threading.Event()
    get_address_info = socket.getaddrinfo

    def slow(host: str, *args: object, **kwargs: object) -> object:
        if host == "slow.test":
            release.wait(60)
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return get_address_info(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def run(origin: str) -> tuple[int, list[object]]:
        client = PolicyClient(options())

        async def ask(origin: str) -> int:
            async with client.server(origin, None, lambda what, number, origin: None) as server:
                return (await server.get(f"{origin}/robots.txt", {})).status

        slow_ones = [asyncio.create_task(ask("http://slow.test")) for _ in range(100)]
        await asyncio.sleep(0)
        status = await ask(origin)
        assert not any(task.done() for task in slow_ones)
        release.set()
        return status, await asyncio.gather(*slow_ones, return_exceptions=True)

    status, errors = asyncio.run(
        run(serving(says(answer())).origin.replace("127.0.0.1", "localhost"))
    )
    assert status == 200
    assert all(
        isinstance(error, TransferError) and not isinstance(error, UnansweredError)
        for error in errors
    )
