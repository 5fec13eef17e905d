"""What every test can ask for: real servers on loopback, and crawls in both modes of Scrapy."""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any
from zlib import crc32

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import settings, strategies
from scrapy import Spider

from comity.policies.formats import WELL_KNOWN
from tests.certificates import Authority
from tests.collected import Collected, collect_elsewhere
from tests.fork_server import ForkServer, NewProcess, forking

# No test touches the store of whoever runs it.
_home = TemporaryDirectory(prefix="comity-tests-")
os.environ["XDG_DATA_HOME"] = _home.name


# No test trusts the certificates of this machine: to read them takes a fifth of the shortest crawl.
os.environ["SSL_CERT_FILE"] = os.devnull

# Who runs the tests in the background of a script has it ignored, and so would have the commands that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure() -> None:
    _home.cleanup()


# No test is about time: other programs run on this machine.
settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("all", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("quick")


# What `make test` leaves to `make test-all`


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="run every test, in both modes of Scrapy and in full"
    )
    parser.addoption(
        "--explore",
        action="store_true",
        help="with --all: let Hypothesis try other examples each time",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COLLECTED] = Collected()
    config.pluginmanager.register(config.stash[COLLECTED])
    config.pluginmanager.register(SharedForkServer())
    if config.getoption("--all"):
        settings.load_profile("explore" if config.getoption("--explore") else "all")
    else:
        config.pluginmanager.register(LeftOut())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: the garbage collector, which would look through all of it time and again, skips it."""
    # Hypothesis imports some of itself late. pytest would compile that anew for each process of each run, and while servers run
    # in threads: CPython 3.11 can fail with a SystemError then (python/cpython#106905).
    strategies.from_type(int).validate()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 10, 10)
        gc.enable()


COLLECTED = pytest.StashKey[Collected]()


class LeftOut:
    """Leaves out slow tests, and of those that run in both modes of Scrapy one mode, which depends on the test's id alone.

    The run says so at its end. Where tests are named one by one, they all run."""

    def __init__(self) -> None:
        self._slow = self._other_mode = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        if any("::" in argument for argument in config.args):
            return
        slow = [item for item in items if item.get_closest_marker("slow")]
        by_mode: dict[str, list[pytest.Item]] = {}
        for item in items:
            if isinstance(item, pytest.Function) and "mode" in item.fixturenames:
                by_mode.setdefault(
                    item.nodeid.replace("no-reactor", "*").replace("reactor", "*"), []
                ).append(item)
        kept = {modes[crc32(name.encode()) % len(modes)] for name, modes in by_mode.items()}
        other_mode = [
            item
            for modes in by_mode.values()
            for item in modes
            if item not in kept and item not in slow
        ]
        self._slow, self._other_mode = len(slow), len(other_mode)
        left = {*slow, *other_mode}
        kept_items = (item for item in items if item not in left)
        # Modules that wait for servers and clocks stand between those that compute: both cores always have something to do.
        items[:] = sorted(kept_items, key=lambda item: (crc32(item.path.name.encode()), item.path))
        config.hook.pytest_deselected(items=[*left])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(
            session.config, "workeroutput"
        ):  # of pytest-xdist: what it collects is not seen by the process that reports
            session.config.workeroutput["left out"] = self._slow, self._other_mode

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._slow, self._other_mode = getattr(node, "workeroutput", {}).get(
            "left out", (self._slow, self._other_mode)
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(
            f"Left to `make test-all` (pytest --all): {self._slow} slow tests, {self._other_mode} in the other mode of Scrapy, "
            "and of those that ran most examples of Hypothesis, most kills, and commands in new processes."
        )


@pytest.fixture(scope="session")
def collected(request: pytest.FixtureRequest) -> Collected:
    """All tests, however few of them run now."""
    found = request.config.stash[COLLECTED]
    return found if found.is_whole else collect_elsewhere()


@pytest.fixture(scope="session")
def in_full(request: pytest.FixtureRequest) -> bool:
    """Whether a test should take the time to try all that it can."""
    return bool(request.config.getoption("--all"))


@pytest.fixture(scope="session", autouse=True)
def _nothing_compiled_is_kept() -> None:
    """Modules that tests write can change within a second. Not set on import: the tests themselves are kept compiled."""
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


FORK_SERVER = "fork_server"  # its address, in what the workers of pytest-xdist are told


class SharedForkServer:
    """The process that forks for all workers of pytest-xdist. It imports while they collect."""

    def __init__(self) -> None:
        self._server: ForkServer | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        self._server = self._server or ForkServer()
        node.workerinput[FORK_SERVER] = self._server.address

    def pytest_unconfigure(self) -> None:
        if self._server is not None:
            self._server.close()


@pytest.fixture(scope="session", autouse=True)
def _forking(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork the commands that tests start from a process that has imported everything."""
    with forking(getattr(request.config, "workerinput", {}).get(FORK_SERVER)):
        yield


@pytest.fixture
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what a command imports, or of what the interpreter does when it starts: nothing is forked."""
    monkeypatch.setattr(subprocess, "Popen", NewProcess)


@pytest.fixture
def new_processes_in_full(request: pytest.FixtureRequest, *, in_full: bool) -> None:
    """With --all, nothing is forked: for one test of each command, which shows that it starts."""
    if in_full:
        request.getfixturevalue("new_processes")


@dataclass
class Answer:
    """What a loopback server sends."""

    body: bytes | str = b""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One request as the server saw it."""

    method: str
    path: str  # with the query
    headers: dict[str, str]  # lower-case names
    at: float  # seconds, monotonic; when its first line had come
    body: bytes = b""


Route = bytes | str | Answer | Callable[[BaseHTTPRequestHandler], Answer | None]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        certificate: Path | None,
    ) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)
        self.names: list[str | None] = []  # that clients named in their handshakes (SNI)
        self._context = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.sni_callback = lambda sock, name, context: self.names.append(name)
            self.present(certificate)

    def present(self, certificate: Path) -> None:
        assert self._context
        self._context.load_cert_chain(certificate)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the thread of the connection: a client that makes no handshake holds up no other."""
        if self._context is None:
            super().finish_request(request, client_address)
            return
        with suppress(OSError), self._context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(
            sys.exception(), ConnectionError | ssl.SSLError
        ):  # a client that hangs up is no error
            super().handle_error(request, client_address)


class Loopback:
    """An HTTP server on a loopback address that records what it was asked, in order, but for policy files that it does not have.

    A route is a text (an HTML page, or plain text where the path ends in .txt), an Answer, or a function of the handler that
    returns an Answer, or None after it has written to `handler.wfile` by itself. Other paths answer 404.

    `far`: seconds until it takes a new connection. `certificate`: file of its certificate and key; None: without TLS."""

    def __init__(
        self,
        routes: dict[str, Route],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        far: float = 0,
        certificate: Path | None = None,
    ) -> None:
        self.routes = routes
        self.scheme = "https" if certificate else "http"
        self.seen: list[Seen] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                time.sleep(
                    far
                )  # the way there takes so long; nobody in the crawl could be told instead
                super().setup()

            def parse_request(self) -> bool:
                self.came_at = time.monotonic()
                return super().parse_request()

            def do_GET(self) -> None:
                self.body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                server.answer(self, self.came_at, self.body)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_CONNECT = do_GET  # noqa: N815  # the names that http.server asks for

            def log_message(self, *args: object) -> None:
                pass

        self._server = _Listener((host, port), Handler, certificate)
        self.host, self.port = host, self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [seen.path for seen in self.seen]

    def url(self, path: str = "/") -> str:
        return self.origin + path

    def present(self, certificate: Path) -> None:
        """Show another certificate to those that connect from now on."""
        self._server.present(certificate)

    @property
    def names(self) -> list[str | None]:
        """The names of the server in the handshakes of TLS, in order; None for an address."""
        return self._server.names

    def answer(self, handler: BaseHTTPRequestHandler, came_at: float, body: bytes) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        if handler.path in self.routes or not handler.path.endswith(WELL_KNOWN[1:]):
            self.seen.append(Seen(handler.command, handler.path, headers, came_at, body))
        route = self.routes.get(
            handler.path,
            self.routes.get(handler.path.partition("?")[0], Answer("not found", status=404)),
        )
        answer = route(handler) if callable(route) else route
        if answer is None:
            handler.close_connection = True
            return
        if isinstance(answer, bytes | str):
            is_text = handler.path.endswith(".txt")
            answer = Answer(
                answer, content_type=Answer.content_type if is_text else "text/html; charset=utf-8"
            )
        sent = answer.body.encode() if isinstance(answer.body, str) else answer.body
        handler.send_response(answer.status)
        for name, value in {
            "Content-Type": answer.content_type,
            "Content-Length": str(len(sent)),
            **answer.headers,
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(sent)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Serve:
    """Starts servers. Test modules reach Answer through it: they are loaded by file and cannot import this one."""

    Answer = Answer

    def __init__(self) -> None:
        self._servers: list[Loopback] = []

    def __call__(
        self, routes: dict[str, Route], host: str = "127.0.0.1", port: int = 0, **others: Any
    ) -> Loopback:
        self._servers.append(Loopback(routes, host, port, **others))
        return self._servers[-1]

    def close(self) -> None:
        for server in self._servers:
            server.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(routes, host="127.0.0.1", port=0, far=0, certificate=None)` starts a server that is closed after the test."""
    servers = Serve()
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a self-signed certificate for 127.0.0.1 and 127.0.0.2, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    signed = (
        x509.CertificateBuilder(
            name,
            name,
            key.public_key(),
            1,
            datetime(2020, 1, 1),  # noqa: DTZ001
            datetime(2120, 1, 1),  # noqa: DTZ001
        )
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.IPAddress(ip_address(f"127.0.0.{n}")) for n in (1, 2)]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    unencrypted = serialization.NoEncryption()
    pem = tmp_path_factory.mktemp("certificate") / "server.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return pem


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that issues certificates. It is trusted where SSL_CERT_FILE names its own certificate."""
    return Authority(tmp_path_factory.mktemp("authority"))


@dataclass(frozen=True)
class Crawled:
    """What a crawl left behind."""

    items: list[dict[str, Any]]  # as the feed wrote them
    stats: dict[str, Any]
    log: str

    @property
    def finish_reason(self) -> str:
        return str(self.stats.get("finish_reason"))


DEADLINE = (
    300  # seconds; no crawl of a test takes a tenth of that, unless the machine is busy with others
)


class Worker:
    """A process that runs one crawl after the other, with a reactor or without."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        # With pyOpenSSL 25.1 to 26.1 Scrapy causes this warning at each connection over HTTP/2.
        filters = ["-W", "error", "-W", "ignore:Attempting to mutate a Context"]
        command = [sys.executable, *filters, str(Path(__file__).parent / "harness.py"), mode]
        self._log = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # close() does
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def begin(
        self,
        spider: type[Spider],
        settings: dict[str, Any],
        arguments: dict[str, Any],
        deadline: float,
    ) -> None:
        """`deadline`: seconds until a crawl that has not ended is a failure."""
        assert self._process.stdin
        self._log.seek(0)
        self._log.truncate()
        where = {"file": inspect.getfile(spider), "spider": spider.__qualname__}
        job = {**where, "settings": settings, "arguments": arguments, "deadline": deadline}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()

    def end(self) -> Crawled:
        """Of the crawl that was begun."""
        assert self._process.stdout
        answer = self._process.stdout.readline()
        if not answer:
            status = self._process.wait(DEADLINE)
            self._log.seek(0)
            raise RuntimeError(f"the worker ended with {status}:\n{self._log.read()}")
        return Crawled(**json.loads(answer))

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(DEADLINE)
        self._process.stdout.close()
        self._log.close()


@pytest.fixture(scope="session")
def _workers() -> Iterator[Callable[[str, int], Worker]]:
    """By mode and number."""
    workers: dict[tuple[str, int], Worker] = {}

    def get(mode: str, number: int) -> Worker:
        if (mode, number) in workers and workers[mode, number].has_ended:
            workers.pop((mode, number)).close()
        if (mode, number) not in workers:
            workers[mode, number] = Worker(mode)
        return workers[mode, number]

    yield get
    for worker in workers.values():
        worker.close()


@pytest.fixture(params=["reactor", "no-reactor"])
def mode(request: pytest.FixtureRequest) -> str:
    """Both modes of Scrapy: the asyncio reactor, and TWISTED_REACTOR_ENABLED=False."""
    return str(request.param)


@pytest.fixture(params=["asyncio", *(["uvloop"] if sys.platform != "win32" else [])])
def each_event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with each event loop. `asyncio.run` in the test uses it."""
    if request.param == "uvloop":
        new_event_loop = importlib.import_module("uvloop").new_event_loop
        monkeypatch.setattr(asyncio.events, "new_event_loop", new_event_loop)


@pytest.fixture
def crawl_together(
    mode: str, _workers: Callable[[str, int], Worker], tmp_path: Path
) -> Callable[..., list[Crawled]]:
    """`crawl_together(SpiderClass, settings, *arguments)` runs a spider of the test's own module once for each of `arguments`,
    at the same time, each in a process of its own, in both modes.

    Spiders stand at the top level of the test module. Unless the settings say otherwise, the add-on is on, and the store is new
    and shared."""

    def run(
        spider: type[Spider],
        settings: dict[str, Any] | None,
        *arguments: dict[str, Any],
        deadline: float = DEADLINE,
    ) -> list[Crawled]:
        defaults: dict[str, Any] = {
            "ADDONS": {"comity.crawler.addon.Addon": 100},
            "COMITY_STORE": str(tmp_path / "policies.sqlite"),
            "COMITY_AGENT": "testbot",
            "COMITY_MIN_DELAY": 0,
        }
        workers = [_workers(mode, number) for number in range(len(arguments))]
        for worker, own in zip(workers, arguments, strict=True):
            worker.begin(spider, defaults | (settings or {}), own, deadline)
        return [worker.end() for worker in workers]

    return run


@pytest.fixture
def crawl(crawl_together: Callable[..., list[Crawled]]) -> Callable[..., Crawled]:
    """`crawl(SpiderClass, settings, **arguments)`: one of them."""

    def run(
        spider: type[Spider], settings: dict[str, Any] | None = None, **arguments: Any
    ) -> Crawled:
        return crawl_together(spider, settings, arguments)[0]

    return run
