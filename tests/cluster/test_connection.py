"""Calls of scripts: how many go together, and what becomes of them when the server goes away."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from comity.cluster.errors import StateError, StateFullError
from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.check import check_server
from comity.cluster.redis.connection import RedisLine, StateConnection
from comity.cluster.redis.scripts import Script
from comity.cluster.redis.scripts import script as of_comity
from comity.cluster.redis.store import RedisStore
from comity.policies import PolicyError
from tests.certificates import Authority
from tests.redis_server import Server, free_port
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Serve

PUSH, FAILS, FILLS = "test push", "test fails", "test fills"
TEXTS = {
    PUSH: "redis.call('RPUSH', KEYS[1], ARGV[1]); return redis.call('LLEN', KEYS[1])",
    FAILS: "return redis.call('INCR', KEYS[1], 'too', 'many')",
    FILLS: "return redis.call('SET', KEYS[1], ARGV[1])",
}


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection finds the scripts of the tests too."""

    def script(step: str) -> Script:
        if (text := TEXTS.get(step)) is None:
            return of_comity(step)
        return Script(step, text, sha1(text.encode(), usedforsecurity=False).hexdigest())

    monkeypatch.setattr("comity.cluster.redis.connection.script", script)


def run(
    address: StateAddress,
    test: Callable[[StateConnection], Awaitable[None]],
    *,
    patience: float = 5.0,
) -> None:
    async def runs() -> None:
        connection = StateConnection(address, patience=patience)
        try:
            await test(connection)
        finally:
            await connection.close()

    asyncio.run(runs())


def pipelines(connection: StateConnection, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls each pipeline has."""
    sizes: list[int] = []
    line = connection._calls
    send = line._send_batch

    async def sends(calls: list[Any]) -> None:
        sizes.append(len(calls))
        await send(calls)

    monkeypatch.setattr(line, "_send_batch", sends)
    return sizes


def test_calls_of_one_turn_of_the_loop_go_together_and_in_order(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(connection: StateConnection) -> None:
        sizes = pipelines(connection, monkeypatch)
        calls = [connection.call(PUSH, "x", number) for number in range(7)]
        await asyncio.sleep(0)
        calls += [
            connection.call(PUSH, "x", number) for number in range(7, 12)
        ]  # while those are under way
        assert await asyncio.gather(*calls) == list(range(1, 13))
        assert sizes == [7, 5]
        assert server.client().lrange("x", 0, -1) == [b"%d" % number for number in range(12)]

    run(server.address(), test)


def test_a_call_whose_caller_was_cancelled_fails_no_other(server: Server) -> None:
    async def test(connection: StateConnection) -> None:
        first, second = connection.call(PUSH, "x", 1), connection.call(PUSH, "x", 2)
        first.cancel()
        assert await second == 2

    run(server.address(), test)


def test_what_the_server_refuses_fails_that_call_alone(own_server: Server) -> None:
    async def test(connection: StateConnection) -> None:
        fails, works = connection.call(FAILS, "x"), connection.call(PUSH, "y", 2)
        with pytest.raises(StateError, match="test fails: "):
            await fails
        assert await works == 1
        own_server.client().config_set("maxmemory", 1)
        with pytest.raises(StateFullError, match="test fills: "):
            await connection.call(FILLS, "x", "1")

    run(own_server.address(), test)


def test_scripts_are_loaded_again_after_the_server_was_started_anew(own_server: Server) -> None:
    async def test(connection: StateConnection) -> None:
        assert await connection.call(PUSH, "x", 1) == 1
        own_server.client().script_flush()
        assert await connection.call(PUSH, "x", 2) == 2
        own_server.kill()
        own_server.start()
        with pytest.raises(StateError):  # sent over the old connection: nobody knows
            await connection.call(PUSH, "x", 3)
        assert await connection.call(PUSH, "x", 4) == 3

    run(own_server.address(), test)


def test_calls_wait_for_a_server_that_is_away_but_not_for_ever(own_server: Server) -> None:
    async def test(connection: StateConnection) -> None:
        own_server.kill()
        waits = connection.call(PUSH, "x", 1)
        given_up = connection.call(PUSH, "x", 2)
        calls = connection._calls
        calls._waiting[1] = calls._waiting[1]._replace(until=0)
        with pytest.raises(StateError, match="redis://127"):
            await given_up
        assert not waits.done()
        own_server.start()
        assert await waits == 1

    run(own_server.address(), test, patience=30)


def test_nothing_is_called_that_waits_for_nobody_any_more(own_server: Server) -> None:
    async def test(connection: StateConnection) -> None:
        own_server.kill()
        waits = connection.call(PUSH, "x", 1)
        await connection.close()
        with pytest.raises(StateError):
            await waits
        with pytest.raises(StateError, match="the connection is closed"):
            await connection.call(PUSH, "x", 1)

    run(own_server.address(), test, patience=0.1)


def test_what_was_called_before_the_end_happens(server: Server) -> None:
    async def test(connection: StateConnection) -> None:
        connection.call(PUSH, "x", 1)
        connection.beat(PUSH, "x", 2)
        await connection.close()
        assert sorted(server.client().lrange("x", 0, -1)) == [b"1", b"2"]

    run(server.address(), test)


def fails_once(
    monkeypatch: pytest.MonkeyPatch, target: object, method: str, error: Exception
) -> None:
    right = getattr(target, method)

    async def fails(*_: object) -> None:
        monkeypatch.setattr(target, method, right)
        raise error

    monkeypatch.setattr(target, method, fails)


@pytest.mark.parametrize("method", ["_connect", "_run", "aclose"])
def test_a_mistake_of_the_client_leaves_no_call_without_an_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """RuntimeError and AttributeError are raised within asyncio and redis-py where a connection was closed meanwhile."""
    monkeypatch.setattr("comity.cluster.redis.connection.RedisLine.most", 1)
    mistake = RuntimeError("the transport is closed")

    async def test(connection: StateConnection) -> None:
        await connection.call(PUSH, "x", 1)
        line = connection._calls
        assert isinstance(line, RedisLine)
        client = line._client
        if method == "aclose":
            fails_once(monkeypatch, client, "aclose", mistake)
            fails_once(monkeypatch, line, "_run", OSError("the connection is lost"))
        else:
            fails_once(monkeypatch, line, method, mistake)
        if method == "_connect":
            await line._disconnect()
        calls = [connection.call(PUSH, "x", number) for number in range(2, 5)]
        await asyncio.wait(calls, timeout=5)
        outcomes = [type(call.exception() or call.result()) for call in calls]
        sent_again = method == "_connect"
        assert outcomes == [int if sent_again else StateError, int, int]
        await client.aclose()

    run(server.address(), test)


def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def test() -> None:
        writers: list[asyncio.StreamWriter] = []
        silent = await asyncio.start_server(
            lambda reader, writer: writers.append(writer), "127.0.0.1", port := free_port()
        )
        connection = StateConnection(
            StateAddress.parse(f"redis://:s3cret@127.0.0.1:{port}", "crawl", {}), patience=0.05
        )
        with pytest.raises(StateError) as raised:
            await connection.call(PUSH, "x", 1)
        assert "s3cret" not in str(raised.value)
        await connection.close()
        silent.close()
        for writer in writers:
            writer.close()

    asyncio.run(test())


@pytest.fixture
def tls_front(server: Server) -> Iterator[Callable[[Path], int]]:
    """`tls_front(certificate)` opens a port that speaks TLS before the server."""
    ends: list[tuple[Callable[[], None], Thread]] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**16):
            writer.write(data)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", server.port)
        with suppress(OSError):
            await asyncio.gather(relay(reader, inner_writer), relay(inner_reader, writer))

    async def serve(
        context: ssl.SSLContext, ready: Callable[[int, Callable[[], None]], None]
    ) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        proxy = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)

        def end() -> None:
            loop.call_soon_threadsafe(ended.set)

        ready(proxy.sockets[0].getsockname()[1], end)
        async with proxy:
            await ended.wait()

    def open_port(certificate: Path) -> int:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        started: Queue[tuple[int, Callable[[], None]]] = Queue()
        thread = Thread(
            target=lambda: asyncio.run(serve(context, lambda port, end: started.put((port, end))))
        )
        thread.start()
        port, end = started.get()
        ends.append((end, thread))
        return port

    yield open_port
    for end, thread in ends:
        end()
        thread.join()


@pytest.fixture
def tls_port(tls_front: Callable[[Path], int], certificate: Path) -> int:
    return tls_front(certificate)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_over_tls_the_server_has_to_be_the_one_that_was_meant(
    server: Server, tls_port: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.client().acl_setuser(
        "crawler", enabled=True, passwords=["+s3cret"], keys=["*"], commands=["+@all"]
    )
    address = StateAddress.parse(f"rediss://crawler:s3cret@127.0.0.1:{tls_port}", "crawl", {})
    messages = []
    with pytest.raises(
        PolicyError, match=r"certificate verify failed.*: let SSL_CERT_FILE name the certificates"
    ) as told:
        check_server(address)
    messages.append(str(told.value))

    async def refused(connection: StateConnection) -> None:
        with pytest.raises(StateError, match="certificate verify failed") as raised:
            await connection.call(PUSH, "x", 1)
        messages.append(str(raised.value))

    run(address, refused, patience=2.0)
    with pytest.raises(OSError, match="certificate verify failed") as missed:
        RedisStore(address).load("https://a.example")
    messages.append(str(missed.value))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert check_server(address) == []
    store = RedisStore(address)
    assert store.load("https://a.example") == {}
    store.close()

    async def works(connection: StateConnection) -> None:
        assert await connection.call(PUSH, "x", 1) == 1

    run(address, works)
    with pytest.raises(
        PolicyError, match="certificate"
    ):  # it is that of an address, and of no name
        check_server(StateAddress.parse(f"rediss://localhost:{tls_port}", "crawl", {}))
    with pytest.raises(PolicyError, match="refuses user or password") as wrong:
        check_server(
            StateAddress.parse(f"rediss://crawler:s3crets@127.0.0.1:{tls_port}", "crawl", {})
        )
    with pytest.raises(
        PolicyError, match="cannot be used"
    ) as plain:  # TLS where the server has none
        check_server(
            StateAddress.parse(f"rediss://crawler:s3cret@127.0.0.1:{server.port}", "crawl", {})
        )
    server.client().acl_deluser("crawler")
    assert not [
        text for text in (*messages, str(wrong.value), str(plain.value)) if "s3cret" in text
    ]


LET_TRUST = "let SSL_CERT_FILE name the certificates to trust"


@pytest.mark.slow
@pytest.mark.requirement("REACH-1")
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("scheme", one_in(2, ["redis", "redis+cluster"]))
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("unknown authority", LET_TRUST),
        (
            "expired",
            "check the clock of this machine; if it is right, renew the server's certificate",
        ),
        (
            "of tomorrow",
            "check the clock of this machine; if it is right, renew the server's certificate",
        ),
        ("another name", "write the host as the certificate of the server has it"),
        (
            "no TLS",
            "start the server, or write its address, and redis:// if it has no TLS at this port",
        ),
        ("HTTP", "write redis:// if the server has no TLS at this port"),
        ("TLS", "write the port of a Redis server, and rediss:// if it expects TLS"),
    ],
)
def test_whatever_is_wrong_with_tls_has_its_remedy(
    server: Server,
    tls_front: Callable[[Path], int],
    authority: Authority,
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    kind: str,
    remedy: str,
) -> None:
    """At the start, and when a worker that runs finds it."""
    # Only where no answer comes is the end of all patience awaited.
    monkeypatch.setattr("comity.cluster.redis.check.PATIENCE", 0.5 if kind == "no TLS" else 60.0)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificates))
    match kind:
        case "unknown authority":
            port = tls_front(Authority(tmp_path, "another authority").issue("127.0.0.1"))
        case "expired":
            port = tls_front(authority.expired("127.0.0.1"))
        case "of tomorrow":
            port = tls_front(authority.of_tomorrow("127.0.0.1"))
        case "another name":
            port = tls_front(authority.issue("localhost"))
        case "no TLS":
            port = server.port
        case "HTTP":
            port = serve({}).port
        case _:
            port = tls_front(authority.issue("127.0.0.1"))
    if kind != "TLS":
        scheme = scheme.replace("redis", "rediss")
    address = StateAddress.parse(f"{scheme}://127.0.0.1:{port}", "crawl", {})
    with pytest.raises(PolicyError) as told:
        check_server(address)
    assert str(told.value).startswith(f"COMITY_STATE: {address} cannot be used (")
    assert str(told.value).endswith(f"): {remedy}")
    assert "\n" not in str(told.value)

    async def refused(connection: StateConnection) -> None:
        with pytest.raises(StateError) as raised:
            await connection.call(PUSH, "x", 1)
        assert str(raised.value).startswith(f"{address}: ")
        assert str(raised.value).endswith(f": {remedy}")

    if kind == "expired":
        run(address, refused, patience=3.0)
