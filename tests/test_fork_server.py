"""What is forked does what a new process does: our commands of Scrapy, and all that a program can tell of its start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fork_server import NewProcess, _job_of
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = "User-agent: *\nDisallow: /private\n"
SPIDER = """
from scrapy import Request, Spider

class Pages(Spider):
    name = "pages"
    custom_settings = {"ADDONS": {"comity.crawler.addon.Addon": 100}}

    async def start(self):
        yield Request(self.url)

    def parse(self, response):
        yield {"url": response.url}
"""
STORE = ("-s", "COMITY_STORE=policies.sqlite", "-s", "COMITY_MIN_DELAY=0", "-s", "LOG_LEVEL=ERROR")
COMMANDS = {
    "policy": ("policy", "https://example.com/private", "--offline", "files", "--json"),
    "dataset": ("dataset", "stats", "items.jsonl"),
    "crawl": ("crawl", "site", "-a", "url={origin}", *STORE),
    "runspider": ("runspider", "pages.py", "-a", "url={origin}", *STORE),
    "demo": ("demo", "--port", "no number"),
    "comity": ("lint", "files"),
}
STATUS = {"policy": 1, "demo": 2}
PROGRAMS = {
    "what it is told": "import os, sys; print(sys.argv, os.getcwd(), sys.path[0], os.environ['TOLD'], __name__)",
    "its mask": "import os; print(os.umask(0))",
    "its warnings": "import warnings; warnings.warn('an error')",
    "an error": "1 / 0",
    "a status": "import sys; sys.exit(7)",
    "a message": "import sys; sys.exit('why')",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "Ctrl-C": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "threads": "import threading; print('main'); threading.Timer(0.1, print, ['thread']).start()",
    "its end": "import atexit; atexit.register(print, 'exit'); print('main')",
}


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`both(command, **options)` returns the results of a new process and of a forked one."""
    forked = subprocess.Popen
    assert forked is not NewProcess

    def run(command: list[str], **options: Any) -> list[Any]:
        done = []
        for popen in (NewProcess, forked):
            with monkeypatch.context() as patched:
                patched.setattr(subprocess, "Popen", popen)
                done.append(
                    subprocess.run(
                        command,
                        capture_output=True,
                        text=True,
                        check=False,
                        timeout=300,
                        **options,
                    )
                )
        return done

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, both: Any, serve: Serve, tmp_path: Path) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "<p>a page"})
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "robots.txt").write_text(ROBOTS)
    (tmp_path / "items.jsonl").write_text(json.dumps({"url": "https://example.com/"}) + "\n")
    (tmp_path / "pages.py").write_text(SPIDER)
    environment = os.environ | {"SCRAPY_SETTINGS_MODULE": "comity.crawler.settings"}
    words = [word.format(origin=server.url()) for word in COMMANDS[name]]
    command = [sys.executable, "-m", "comity" if name == "comity" else "scrapy", *words]
    assert _job_of(command, {}) is not None
    new, forked = both(command, cwd=tmp_path, env=environment)
    assert new.returncode == forked.returncode == STATUS.get(name, 0), new.stderr
    if name == "policy":
        one, other = json.loads(new.stdout), json.loads(forked.stdout)
        assert one["verdict"] == other["verdict"] == "deny"
    else:
        assert (new.stdout, new.stderr) == (forked.stdout, forked.stderr)
    if name in ("crawl", "runspider"):
        assert server.paths.count("/") == 2


@pytest.mark.parametrize("name", one_in(2, PROGRAMS))
def test_programs(name: str, both: Any, tmp_path: Path) -> None:
    words = ["-W", "error", "-c", PROGRAMS[name], "a", "b"]
    environment = os.environ | {"TOLD": "so"}
    new, forked = both([sys.executable, *words], cwd=tmp_path, env=environment, umask=0o027)
    assert forked.returncode == new.returncode
    assert forked.stdout == new.stdout
    assert (
        forked.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]
    )  # a traceback of a fork begins elsewhere


@pytest.mark.usefixtures("both")
def test_forks_can_be_waited_for_and_ended() -> None:
    command = [sys.executable, "-c", "import time; print('on', flush=True); time.sleep(300)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "on\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.terminate()
        assert process.wait(300) == -signal.SIGTERM
        assert process.poll() == -signal.SIGTERM


def test_forks_have_numbers_of_their_own(both: Any) -> None:
    command = [sys.executable, "-c", "import random; print(random.random())"]
    assert len({done.stdout for _ in range(2) for done in both(command)}) == 4


@pytest.mark.parametrize("where", one_in(2, ["elsewhere", "installed"]))
def test_packages_are_found(both: Any, tmp_path: Path, where: str) -> None:
    about = tmp_path / "odd-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[scrapy.commands]\nodd = odd:Odd\n")
    program = "from scrapy import cmdline; print(*sorted(cmdline.entry_points(group='scrapy.commands')), sep='\\n')"
    folder = tmp_path if where == "elsewhere" else tmp_path / "none"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    }
    new, forked = both([sys.executable, "-c", program], env=environment)
    assert (forked.returncode, forked.stdout, forked.stderr) == (0, new.stdout, new.stderr)
    assert "comity" in forked.stdout
    assert forked.stdout.count("odd:Odd") == (where == "elsewhere")
