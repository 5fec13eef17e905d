"""Makes mistakes in modules and looks whether the tests see them: `make mutants MODULE=comity.policies.answers.combining`.

    python -m tests.mutants.run [--again] [MODULE ...]

Of each module one mistake after the other is made (faults.py), and those tests are run that come by the changed line, the quick
ones first, until one fails. Outcomes are kept in .mutants/, so that a run can be ended at any time and goes on there; a mistake
that lived is tried again when the tests have changed (`--again`: in any case). accepted.toml lists those that are none, with the
reason. The exit status is 1 where a module has fewer than FLOOR per cent, or an entry of accepted.toml fits nothing any more.

Tests are collected once, and a child is forked for each mistake: there the functions get their new code, and the processes that
tests start get it by inside/sitecustomize.py."""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import _lru_cache_wrapper
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.faults import Fault, faults

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".mutants"
FLOOR = 95  # per cent
CHILDREN = 3
MOST_SECONDS = 2.0  # of CPU; when they are over, no other test is tried on a mistake
MOST_SECONDS_IN_WORKERS = 20.0
ALIVE, KILLED, UNMADE = 0, 1, 2  # exit statuses of a child
MEMORY = 8 * 2**30  # octets of a child


class Suite(NamedTuple):
    names: str  # of the modules, within comity.<first word of tests>
    tests: str  # files and folders, within tests
    workers: str = ""  # files whose crawls run in processes of their own

    @property
    def modules(self) -> list[str]:
        return [f"comity.{self.tests.split('/')[0]}.{name}" for name in self.names.split()]

    @property
    def files(self) -> list[Path]:
        paths = [ROOT / "tests" / name for name in f"{self.tests} {self.workers}".split()]
        return [
            file
            for path in paths
            for file in (
                sorted(path.rglob("test_*.py")) if path.is_dir() else [path.with_suffix(".py")]
            )
        ]

    def is_in_worker(self, item: pytest.Item) -> bool:
        return bool(self.workers) and item.path.is_relative_to(
            ROOT / "tests" / self.workers.split("/")[0]
        )


Functions = Mapping[str, list[list[FunctionType]]]

# Modules -> the tests that are tried on them. Which of them come by a line is learned, but not of what runs in other processes:
# of those files all are tried.
SUITES: Mapping[str, Suite] = {
    "policies": Suite(
        "answers.combining answers.fetched answers.qualifiers answers.rates answers.request syntax.windows syntax.path_patterns "
        "syntax.urls site agent_view page vocabulary.preferences elements.coverage elements.rules formats.robots.grammar "
        "formats.robots.rates formats.acap.resolution formats.automation.access formats.automation.resolution "
        "formats.aipref.short_strings formats.aipref.content_usage formats.content_signals.signals "
        "formats.robots_meta.directives formats.tdmrep.reservation formats.rsl.licensing",
        "policies",
    ),
    "gate": Suite(
        "pace.ledger fetching.freshness fetching.policy_copy request.facts request.referrals "
        "fetching.store",
        "gate/pace/test_ledger gate/fetching/test_freshness gate/fetching/test_policy_copy "
        "gate/fetching/test_store gate/request/test_facts gate/request/test_referrals",
    ),
    "host_queues": Suite(
        "frontier.waiting.host_queue frontier.waiting.host_queues",
        "crawler/frontier/test_host_queues",
    ),
    "pace": Suite(
        "pace.limiter pace.pace", "gate/pace/test_pace crawler/frontier/test_host_queues"
    ),
    "scheduler": Suite(
        "frontier.scheduler frontier.waiting.turns frontier.waiting.waiting_requests frontier.waiting.policy_fetches "
        "frontier.waiting.wake_timer frontier.book frontier.writes frontier.storages frontier.complaints",
        "crawler/frontier/test_scheduler crawler/frontier/test_host_queues",
    ),
    "fetcher": Suite("fetching.fetcher", "gate/fetching/test_fetcher"),
    "files": Suite("fetching.files", "gate/fetching/test_files", "live/test_policy_fetching"),
    "elements": Suite("elements", "crawler/test_page_elements"),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Makes mistakes in modules and looks whether the tests see them."
    )
    parser.add_argument("--again", action="store_true", help="try again what lived")
    parser.add_argument("--suite", help=argparse.SUPPRESS)
    parser.add_argument("modules", nargs="*")
    arguments = parser.parse_args()
    if arguments.suite:
        return _run_suite(arguments.suite, arguments.modules, again=arguments.again)
    (KEPT / "lines").mkdir(parents=True, exist_ok=True)
    every = [module for suite in SUITES.values() for module in suite.modules]
    if unknown := set(arguments.modules).difference(every):
        parser.error(f"not in SUITES of {__file__}: {', '.join(sorted(unknown))}")
    for name, suite in SUITES.items():
        if chosen := [module for module in suite.modules if module in (arguments.modules or every)]:
            command = [
                sys.executable,
                "-m",
                "tests.mutants.run",
                "--suite",
                name,
                *(["--again"] if arguments.again else []),
                *chosen,
            ]
            path = os.pathsep.join(
                filter(None, (str(HERE / "inside"), os.environ.get("PYTHONPATH")))
            )
            status = subprocess.run(
                command, cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": path}
            ).returncode
            if status:
                return status
    return _report(arguments.modules or every)


def _run_suite(name: str, modules: Sequence[str], *, again: bool) -> int:
    suite = SUITES[name]
    watch = coverage.Coverage(
        data_file=None, config_file=False, include=[str(_file(module)) for module in suite.modules]
    )
    watch.start()  # before anything is imported: what is done then is done without any mistake
    plugin = Plugin(suite, modules, watch, again=again)
    status = pytest.main(
        [
            "-q",
            "--all",
            "--no-header",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            *map(str, suite.files),
        ],
        plugins=[plugin],
    )
    return 0 if plugin.is_done else int(status) or 1


class Plugin:
    """Runs the tests that were collected on mistakes, and not as pytest does."""

    def __init__(
        self, suite: Suite, modules: Sequence[str], watch: coverage.Coverage, *, again: bool
    ) -> None:
        self.is_done = False
        self._modules = modules
        self._suite = suite
        self._watch = watch
        self._again = again
        self._seconds: dict[str, float] = {}  # that a test takes, of CPU
        self._tests: dict[
            str, dict[int, list[str]]
        ] = {}  # module -> line -> tests that come by; 0: those that may

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        from hypothesis import Phase, settings  # not before pytest has its hook

        generating = (
            Phase.explicit,
            Phase.generate,
        )  # the same examples each time, and no shorter ones of those that fail
        settings.register_profile(
            "mutants", settings(), database=None, derandomize=True, phases=generating
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._watch.stop()
        for cached in (each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper)):
            if cached.__module__.startswith("comity."):
                cached.cache_clear()
        functions = {module: _functions(module) for module in self._modules}
        gc.freeze()  # nothing of it is looked at again in any child
        items = {item.nodeid: item for item in session.items}
        tests = _digest(sorted({item.path for item in session.items}))
        self._learn(items)
        for module in self._modules:
            self._try(module, items, tests, functions[module])
        self.is_done = True
        return True

    def _learn(self, items: Mapping[str, pytest.Item]) -> None:
        """Which test comes by which line. It is learned for a file of tests at a time, when that or a module has changed."""
        by_file: dict[Path, list[pytest.Item]] = {}
        for item in items.values():
            by_file.setdefault(item.path, []).append(item)
        for path, own in by_file.items():
            read = _digest([path, ROOT / "tests/conftest.py"])
            kept = {
                module: KEPT
                / "lines"
                / f"{module}-{path.stem}-{_digest([_file(module)])}-{read}.json"
                for module in self._suite.modules
            }
            if missing := [module for module, file in kept.items() if not file.exists()]:
                print(f"learning what {path.relative_to(ROOT)} comes by", flush=True)
                if child := os.fork():
                    os.waitpid(child, 0)
                else:
                    try:
                        self._write_lines(own, {module: kept[module] for module in missing})
                    except BaseException:
                        traceback.print_exc()
                    os._exit(0)
            for module, file in kept.items():
                if file.exists():
                    for nodeid, (seconds, lines) in json.loads(file.read_text()).items():
                        self._seconds[nodeid] = seconds
                        for line in lines if nodeid in items else ():
                            self._tests.setdefault(module, {}).setdefault(line, []).append(nodeid)

    def _write_lines(self, items: Sequence[pytest.Item], kept: Mapping[str, Path]) -> None:
        """In a child, so that nothing of what the tests did stays."""
        seconds: dict[str, float] = {}
        watch = coverage.Coverage(
            data_file=None, config_file=False, include=[str(_file(module)) for module in kept]
        )
        watch.set_option("run:disable_warnings", ["no-data-collected"])
        watch.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            watch.switch_context(item.nodeid)
            clock = time.monotonic if self._suite.is_in_worker(item) else time.process_time
            began = clock()
            if _passes(item, following):
                seconds[item.nodeid] = clock() - began
            else:
                print(f"fails without any mistake, and is left out: {item.nodeid}", flush=True)
        watch.stop()
        for module, file in kept.items():
            in_workers = {item.nodeid for item in items if self._suite.is_in_worker(item)}
            lines: dict[str, list[int]] = {
                nodeid: [0] if nodeid in in_workers else [] for nodeid in seconds
            }
            for line, contexts in watch.get_data().contexts_by_lineno(str(_file(module))).items():
                for nodeid in contexts:
                    if nodeid in lines:
                        lines[nodeid].append(line)
            made = {
                nodeid: (round(seconds[nodeid], 4), each) for nodeid, each in lines.items() if each
            }
            file.write_text(json.dumps(made))

    def _try(
        self, module: str, items: Mapping[str, pytest.Item], tests: str, functions: Functions
    ) -> None:
        outcomes = Outcomes(module)
        early = set(self._watch.get_data().lines(str(_file(module))) or ())
        running: dict[int, str] = {}
        todo = [
            (key, fault)
            for key, fault in outcomes.faults()
            if outcomes.is_open(key, tests, again=self._again)
        ]
        for number, (key, fault) in enumerate(todo, 1):
            chosen = self._chosen(module, fault.line)
            if number % 10 == 0:
                print(f"{module}: {number} of {len(todo)}", flush=True)
            if not chosen:
                outcomes.add(key, "untested" + (" (import)" if fault.line in early else ""), tests)
                continue
            while len(running) >= CHILDREN:
                _reap(running, outcomes, tests)
            if child := os.fork():
                running[child] = key
            else:
                self._in_child(module, fault, functions, [items[nodeid] for nodeid in chosen])
        while running:
            _reap(running, outcomes, tests)

    def _chosen(self, module: str, line: int) -> list[str]:
        """The tests to try: those that are named after the module first, then the quick ones; and one mode of Scrapy."""
        by_line = self._tests.get(module, {})
        own = f"test_{module.rpartition('.')[2]}.py"
        chosen: list[str] = []
        for names, left in (
            (by_line.get(line, ()), MOST_SECONDS),
            (by_line.get(0, ()), MOST_SECONDS_IN_WORKERS),
        ):
            for nodeid in sorted(
                set(names).difference(chosen),
                key=lambda name: (own not in name, self._seconds[name]),
            ):
                if left > 0 and "no-reactor" not in nodeid:
                    chosen.append(nodeid)
                    left -= self._seconds[nodeid]
        return chosen

    def _in_child(
        self, module: str, fault: Fault, functions: Functions, items: Sequence[pytest.Item]
    ) -> None:
        status = UNMADE
        try:
            seconds = sum(self._seconds[item.nodeid] for item in items)
            resource.setrlimit(resource.RLIMIT_CPU, (int(2 + 2 * seconds), -1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(int(60 + 30 * seconds))
            file = KEPT / f"fault-{os.getpid()}.py"
            file.write_text(fault.text)
            os.environ["MUTANT_UNDER_TEST"] = f"{module}={file}"
            _exchange(functions, compile(fault.text, _file(module), "exec"))
            status = KILLED
            pairs = zip(items, [*items[1:], None], strict=True)
            if all(_passes(item, following) for item, following in pairs):
                status = ALIVE
        finally:
            os._exit(status)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _reap(running: dict[int, str], outcomes: Outcomes, tests: str) -> None:
    child, status = os.wait()
    (KEPT / f"fault-{child}.py").unlink(missing_ok=True)
    outcomes.add(
        running.pop(child),
        {ALIVE: "alive", UNMADE: "unmade"}.get(os.waitstatus_to_exitcode(status), "killed"),
        tests,
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _functions(module: str) -> Functions:
    """Those that there are, by qualified name; those that share their code together, in the order of their lines."""
    import_module(module)
    by_code: dict[CodeType, list[FunctionType]] = {}
    file = str(_file(module))
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == file:
            by_code.setdefault(each.__code__, []).append(each)
    found: dict[str, list[list[FunctionType]]] = {}
    for code in sorted(by_code, key=lambda code: code.co_firstlineno):
        found.setdefault(code.co_qualname, []).append(by_code[code])
    return found


def _exchange(functions: Functions, new: CodeType) -> None:
    codes: dict[str, list[CodeType]] = {}
    for code in _codes(new):
        codes.setdefault(code.co_qualname, []).append(code)
    for name, groups in functions.items():
        if "<" not in name:  # neither lambdas nor functions in functions
            for group, code in zip(groups, codes[name], strict=True):
                for function in group:
                    function.__code__ = code


class Outcomes:
    """What became of the mistakes in one module: "killed", "alive", "untested", or "unmade", where it is no Python, or a function
    cannot be exchanged for it."""

    def __init__(self, module: str) -> None:
        self.module = module
        self._path = KEPT / f"{module}.json"
        self._source = _digest([_file(module)])
        kept = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.by_key: dict[str, tuple[str, str]] = (
            kept["outcomes"] if kept.get("source") == self._source else {}
        )

    def faults(self) -> list[tuple[str, Fault]]:
        """With a key for each."""
        numbers: Counter[str] = Counter()
        found = []
        for fault in faults(_file(self.module).read_text("utf-8")):
            numbers[fault.key] += 1
            found.append(
                (
                    f"{fault.key} ({numbers[fault.key]})" if numbers[fault.key] > 1 else fault.key,
                    fault,
                )
            )
        return found

    def is_open(self, key: str, tests: str, *, again: bool) -> bool:
        outcome, by = self.by_key.get(key, ("", ""))
        return outcome not in ("killed", "unmade") and (again or by != tests)

    def add(self, key: str, outcome: str, tests: str) -> None:
        self.by_key[key] = (outcome, tests)
        self._path.write_text(
            json.dumps({"source": self._source, "outcomes": self.by_key}, indent=0)
        )


def _file(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def _digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def _accepted() -> list[tuple[str, str]]:
    """Modules, and how the keys of mistakes in them begin."""
    tables = tomllib.loads((HERE / "accepted.toml").read_text("utf-8"))["none"]
    assert all(table["why"] for table in tables)
    return [
        (table["module"], f"{table['function']}: {change}")
        for table in tables
        for change in table["changes"]
    ]


def _report(modules: Sequence[str]) -> int:
    rows, is_bad = [], False
    for module in modules:
        outcomes = Outcomes(module)
        every = [
            key for key, _ in outcomes.faults() if outcomes.by_key.get(key, ("",))[0] != "unmade"
        ]
        tried = [key for key in every if key in outcomes.by_key]
        living = {key for key in tried if outcomes.by_key[key][0] != "killed"}
        entries = [entry for each, entry in _accepted() if each == module]
        fitting = {key: [entry for entry in entries if key.startswith(entry)] for key in living}
        stale = [
            entry
            for entry in entries
            if len(tried) == len(every) and not any(entry in fit for fit in fitting.values())
        ]
        accepted = {key for key, fit in fitting.items() if fit}
        for key in sorted(living - accepted):
            print(f"{outcomes.by_key[key][0]}: {module}.{key}")
        for entry in stale:
            print(f"accepted.toml: nothing lives like {module}.{entry}")
        counted = len(tried) - len(accepted)
        score = 100 * (len(tried) - len(living)) / counted if counted else 0.0
        is_bad = is_bad or bool(stale) or (bool(tried) and score < FLOOR)
        rows.append(
            (
                module,
                len(every),
                len(tried),
                len(tried) - len(living),
                len(living - accepted),
                len(accepted),
                f"{score:.1f}",
            )
        )
    print(
        f"{'module':42}{'mutants':>9}{'tried':>7}{'killed':>8}{'alive':>7}{'none':>6}{'score':>7}"
    )
    for row in rows:
        print(f"{row[0]:42}{row[1]:9}{row[2]:7}{row[3]:8}{row[4]:7}{row[5]:6}{row[6]:>7}")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
