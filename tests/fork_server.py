"""Python processes for the tests, forked from one that has imported Scrapy, comity and the servers of others already.

To import them takes longer than most commands that tests run. While `forking()` is on, `subprocess.Popen`, and with it
`subprocess.run`, forks where it is to start `python [-W ...] (-m scrapy | -c PROGRAM | SCRIPT) ...` with options that a fork
can keep: a working directory, an environment, files, a umask. Everything else is started as ever.

    python fork_server.py DESCRIPTOR

is the process that forks, one for all workers of pytest-xdist. It listens at the socket with this descriptor and ends when nobody
is connected any more. A job comes with four descriptors, for standard input, output and error, and a pipe, which gets the id of
the new process, and its status when it has ended."""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import pkgutil
import random
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

from comity.crawler.garbage import FEW, GarbageCollection
from comity.policies import Agent, Site

# Nothing here may start a thread of Python or install a reactor.
PRELOADED = (
    *(
        "scrapy.cmdline",
        "scrapy.core.engine",
        "scrapy.core.scraper",
        "scrapy.core.scheduler",
        "scrapy.pipelines.files",
    ),
    *(
        "scrapy.spiderloader",
        "twisted.internet.asyncioreactor",
        "rich._emoji_codes",
        "urllib.robotparser",
    ),
    *("aiohttp.web", "pyarrow.parquet", "warcio"),
    "pandas",  # pyarrow imports it, where it is there, with the first array that it makes
    "pytest",  # modules of tests do, whose spiders are run
    "jwm.robotstxt.googlebot",
    *("uvicorn", "gunicorn.app.base", "werkzeug.serving", "wsgiref.simple_server"),
)
AIOHTTP_HANDLER = "scrapy.core.downloader.handlers._aiohttp"  # Scrapy has it since 2.19
PRELOADED_PACKAGES = ("comity", "scrapy.commands")  # with all their modules
# Few programs need what these import; and browsers and engines of datasets are there in `make test-all` alone.
LEFT_OUT = (
    "comity.__main__",  # runpy warns of a module that it runs if it has been imported
    "comity.authoring.language_server.",
    "comity.authoring.workbench.",
    "comity.browser.",
    "comity.cluster.conformance.",
    "comity.dataset.datatrove",
    # turbohtml may be missing.
    *(() if importlib.util.find_spec("turbohtml") else ("comity.policies.document.html.turbo",)),
)
COMPONENTS = (
    "SPIDER_MIDDLEWARES_BASE",
    "DOWNLOADER_MIDDLEWARES_BASE",
    "EXTENSIONS_BASE",
    "DOWNLOAD_HANDLERS_BASE",
)
OWN = {
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
}  # of the variables that the interpreter reads when it starts, those that a fork can obey
OPTIONS = {
    "args",
    "bufsize",
    "stdin",
    "stdout",
    "stderr",
    "cwd",
    "env",
    "umask",
    "text",
    "encoding",
    "errors",
    "universal_newlines",
}
JOB = 1 << 20  # octets, at most
NUMBER = struct.Struct("i")
FORKED_MODULES = (["-m", "comity"], ["-m", "scrapy"])


# The side of the tests

NewProcess = subprocess.Popen


class ForkServer:
    """The process that forks."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="comity-fork-")
        self.address = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self.address)
            listening.listen(64)  # who connects before all is imported
            self._process = NewProcess(
                [sys.executable, __file__, str(listening.fileno())], pass_fds=[listening.fileno()]
            )
        self._connection = Connection(self.address)  # by which it goes on while others come and go

    def close(self) -> None:
        """End it, when all others are closed too."""
        self._connection.close()
        self._process.wait(300)
        self._folder.cleanup()


class Connection:
    """A connection to the process that forks."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, JOB)
        self._socket.connect(address)

    def start(self, job: dict[str, Any], files: list[int]) -> tuple[int, int]:
        """The id of a new process, and the descriptor from which its status can be read when it has ended."""
        report, theirs_report = os.pipe()
        try:
            socket.send_fds(self._socket, [json.dumps(job).encode()], [*files, theirs_report])
        finally:
            os.close(theirs_report)
        return _number(report), report

    def close(self) -> None:
        self._socket.close()


def _number(report: int) -> int:
    octets = os.read(report, NUMBER.size)
    if not octets:
        raise RuntimeError("the process that forks has ended")
    number: int = NUMBER.unpack(octets)[0]
    return number


@contextmanager
def forking(address: str | None = None) -> Iterator[None]:
    """`subprocess.Popen` forks what it can, by the server at this address. None: by one of its own."""
    at_end = ExitStack()

    @cache
    def connection() -> Connection:
        if address is not None:
            return at_end.enter_context(closing(Connection(address)))
        server = at_end.enter_context(closing(ForkServer()))
        return at_end.enter_context(closing(Connection(server.address)))

    class Popen(NewProcess[Any]):
        _job: dict[str, Any] | None = None
        _report: int | None = None

        def __init__(self, args: Any, *others: Any, **options: Any) -> None:
            if not others:
                self._job = _job_of(args, options)
            super().__init__(args, *others, **options)

        def _execute_child(self, *arguments: Any) -> None:
            if self._job is None:
                super()._execute_child(*arguments)  # type: ignore[misc]
                return
            given = inspect.signature(super()._execute_child).bind(*arguments).arguments  # type: ignore[misc]
            files = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
            files = [number if file == -1 else file for number, file in enumerate(files)]
            try:
                self.pid, self._report = connection().start(self._job, files)
                self._child_created = True
            finally:
                names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
                self._close_pipe_fds(*(given[name] for name in names))  # type: ignore[attr-defined]

        def _internal_poll(self, *arguments: Any, **options: Any) -> int | None:
            if self._report is None:
                found: int | None = super()._internal_poll(*arguments, **options)  # type: ignore[misc]
                return found
            try:
                return self._wait(0)
            except subprocess.TimeoutExpired:
                return None

        def _wait(self, timeout: float | None) -> int:
            if self._report is None:
                found: int = super()._wait(timeout=timeout)  # type: ignore[misc]
                return found
            if self.returncode is None:
                if not select.select([self._report], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = _number(self._report)
                os.close(self._report)
            return self.returncode

    subprocess.Popen = Popen  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = NewProcess  # type: ignore[misc]
        at_end.close()


def _job_of(args: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """What a fork has to know. None: it would not be the same."""
    words = [os.fspath(word) for word in args] if isinstance(args, list) else []
    if words[:1] != [sys.executable] or len(words) < 2 or not options.keys() <= OPTIONS:
        return None
    environment = dict(os.environ if options.get("env") is None else options["env"])
    for name in environment.keys() | os.environ.keys():
        if (
            name.startswith(("PYTHON", "LC_", "LANG", "LD_"))
            and name not in OWN
            and environment.get(name) != os.environ.get(name)
        ):
            return None
    del words[0]
    filters = []
    while words[:1] == ["-W"]:
        filters.append(words[1])
        del words[:2]
    if words[:2] not in FORKED_MODULES and words[0] != "-c" and words[0].startswith("-"):
        return None
    folder = os.fspath(options.get("cwd") or Path.cwd())
    return {
        "words": words,
        "filters": filters,
        "folder": folder,
        "environment": environment,
        "umask": options.get("umask", -1),
    }


# The side of the process that forks


def main(descriptor: int) -> None:
    # Who runs the tests ends them with Ctrl-C; this ends with them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    packages = [importlib.import_module(name) for name in PRELOADED_PACKAGES]
    modules = [
        module.name
        for package in packages
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for name in (*PRELOADED, *(name for name in modules if not name.startswith(LEFT_OUT))):
        importlib.import_module(name)
    if importlib.util.find_spec(AIOHTTP_HANDLER):
        importlib.import_module(AIOHTTP_HANDLER)
    for setting in COMPONENTS:
        components = getattr(default_settings, setting)
        for path in components.values() if setting == "DOWNLOAD_HANDLERS_BASE" else components:
            load_object(path)
    assert "twisted.internet.reactor" not in sys.modules  # each process has one of its own
    # Without the folder of this file, and PYTHONPATH of who runs the tests.
    base = sys.path[1 + len([*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]) :]
    _remember_entry_points(base)
    _fill_caches()
    gc.collect()
    gc.freeze()
    GarbageCollection._is_shared = gc.get_freeze_count() >= FEW
    job = _next_job(socket.socket(fileno=descriptor))
    if job is None:
        return
    try:
        _become(json.loads(job), base)
        status: Any = 0
    except SystemExit as ended:
        status = ended.code
    _exit(status)


def _next_job(listening: socket.socket) -> bytes | None:
    """Fork for each job; return it in the new process. None, in this one: nobody is connected any more."""
    ended, by_signal = socket.socketpair()
    by_signal.settimeout(0)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(by_signal.fileno(), warn_on_full_buffer=False)
    reports: dict[int, int] = {}  # of processes that have not ended
    sockets = [listening, ended]
    while True:
        for ready in select.select(sockets, [], [])[0]:
            if ready is listening:
                sockets.append(listening.accept()[0])
                continue
            if ready is ended:
                ended.recv(1024)
                _report_ends(reports)
                continue
            job, descriptors, _, _ = socket.recv_fds(ready, JOB, 4)
            if not job:
                ready.close()
                sockets.remove(ready)
                continue
            *files, report = descriptors
            process = os.fork()
            if not process:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for inherited in (*sockets, by_signal):
                    inherited.close()
                for number, file in enumerate(files):
                    os.dup2(file, number)
                # It is known when it has its signals: from then on others may send it some.
                os.write(report, NUMBER.pack(os.getpid()))
                for given in (*descriptors, *reports.values()):
                    os.close(given)
                return job
            reports[process] = report
            for file in files:
                os.close(file)
        if sockets == [listening, ended]:
            return None


def _report_ends(reports: dict[int, int]) -> None:
    """Write the status of each process that has ended to its pipe."""
    with suppress(ChildProcessError):
        while (end := os.waitpid(-1, os.WNOHANG))[0]:
            process, status = end
            report = reports.pop(process)
            with suppress(BrokenPipeError):  # nobody waits for it
                os.write(report, NUMBER.pack(os.waitstatus_to_exitcode(status)))
            os.close(report)


def _remember_entry_points(base: list[str]) -> None:
    """To read what all packages say costs more than all else in most commands. With other packages it is read as ever."""
    known = importlib.metadata.entry_points()

    def entry_points(**selection: str) -> Any:
        others = [Path(folder) for folder in sys.path if folder not in base]
        if any(folder.is_file() or any(folder.glob("*.*-info")) for folder in others):
            return importlib.metadata.entry_points(**selection)
        return known.select(**selection)

    for name in ("scrapy.cmdline", "comity.policies.formats.installed"):
        sys.modules[name].__dict__["entry_points"] = entry_points


def _fill_caches() -> None:
    """Fill the caches that most commands would fill, each with the same values."""
    versions = sys.modules["scrapy.utils.versions"]
    versions.__dict__["version"] = cache(importlib.metadata.version)
    versions.get_versions()
    for scheme in ("http", "https"):
        site = Site.from_files(
            f"{scheme}://example.com", {"/robots.txt": b"User-agent: *\nDisallow: /a\n"}
        )
        agent = Agent("testbot")
        site.access(agent, f"{scheme}://example.com/")
        fields = ((b"Content-Type", b"text/html"),)
        page = site.page(agent, f"{scheme}://example.com/", headers=fields, body=b"<p>A</p>")
        for use in agent.vocabulary.uses:
            agent.vocabulary.question(use)
            page.uses.get(use)


def _become(job: dict[str, Any], base: list[str]) -> None:
    """Do in this process what a new one would have been started for."""
    os.chdir(job["folder"])
    if job["umask"] != -1:
        os.umask(job["umask"])
    environment = job["environment"]
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        new = open(  # noqa: SIM115
            number, "w" if number else "r", encoding=old.encoding, errors=old.errors, closefd=False
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.warnoptions[:] = job["filters"]
    warnings._processoptions(job["filters"])  # type: ignore[attr-defined]
    random.seed()  # all forks would have the same numbers

    how, *words = job["words"]
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    first = {"-m": job["folder"], "-c": ""}.get(how, os.path.dirname(os.path.abspath(how)))  # noqa: PTH100, PTH120  # as Python does it
    sys.path[:] = [first, *paths, *base]
    if how == "-m":
        module, *words = words
        sys.argv[:] = [module, *words]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif how == "-c":
        program, *words = words
        sys.argv[:] = ["-c", *words]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), main.__dict__)
    else:
        sys.argv[:] = [how, *words]
        runpy.run_path(how, run_name="__main__")


def _exit(status: Any) -> NoReturn:
    """As Python does, but that it does not take apart all that was imported, which costs more than many a command."""
    if not isinstance(status, int | None):
        print(status, file=sys.stderr)  # noqa: T201
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    gc.collect()  # an error that nobody handled is logged when what holds it goes
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
