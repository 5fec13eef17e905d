"""examples/cluster: its files are valid, and their commands crawl to the end (docs/cluster.md)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis

from tests.live.test_jobdir import asked, numbered, tree
from tests.redis_server import DEADLINE, free_port, newest_program

if TYPE_CHECKING:
    from tests.conftest import Serve

EXAMPLES = Path(__file__).parents[1] / "examples" / "cluster"
UNITS = ("comity-worker@.service", "comity-worker@.timer")
SCRAPY = "/srv/crawl/.venv/bin/scrapy"  # in the unit
PASSWORD = "secret"
PAGES = 12


def tool(name: str, package: str) -> str:
    """The path of a program that `make test-all` takes."""
    path = shutil.which(name)
    assert path, f"make test-all needs {name}: apt-get install {package}"
    return path


def unit(name: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser.read_string((EXAMPLES / name).read_text())
    return parser


def documents(name: str) -> list[dict[str, Any]]:
    import yaml  # type: ignore[import-untyped]  # it is in the dependency group test-all

    return [*yaml.safe_load_all((EXAMPLES / name).read_text())]


def manifest(kind: str) -> dict[str, Any]:
    [found] = [it for it in documents("kubernetes.yaml") if it["kind"] == kind]
    return found


def container(kind: str) -> dict[str, Any]:
    [found] = manifest(kind)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_the_command_of_compose_is_one_of_a_shell(tmp_path: Path) -> None:
    """Compose makes `$` of `$$`, YAML one line of the lines; the rest is the shell's."""
    text = (EXAMPLES / "compose.yaml").read_text()
    [command] = re.findall(r"- >-\n((?: {8}.*\n)+)", text)
    for name in ("pip", "scrapy"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@" >> {tmp_path}/calls\n')
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["sh", "-c", " ".join(command.split()).replace("$$", "$")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "calls").read_text().split("\n") == [
        *("pip", "install", "--quiet", "comity[redis]"),
        *(
            "scrapy",
            "crawl",
            "news",
            "-s",
            "COMITY_STATE=redis://state:6379/0",
            "-s",
            "COMITY_CRAWL=news",
            "-s",
            "COMITY_ITEMS=/items",
            "",
        ),
    ]


@pytest.mark.slow
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "scrapy"
    for name in UNITS:
        text = (EXAMPLES / name).read_text()
        (tmp_path / name).write_text(text.replace(SCRAPY, str(program)))
    done = subprocess.run(
        [tool("systemd-analyze", "systemd"), "verify", *(str(tmp_path / name) for name in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.slow
def test_compose_accepts_its_file() -> None:
    done = subprocess.run(
        [
            tool("docker-compose", "docker-compose"),
            "--file",
            str(EXAMPLES / "compose.yaml"),
            "config",
        ],
        env={**os.environ, "COMITY_STATE_PASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "stop_signal: SIGINT" in done.stdout


@pytest.mark.slow
def test_the_manifests_keep_to_the_schemas_of_kubernetes() -> None:
    import kubernetes_validate  # in the group test-all

    for document in documents("kubernetes.yaml"):
        version = kubernetes_validate.latest_version()
        assert kubernetes_validate.validate(document, version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**document, "spec": {"parallel": 4}}, version, strict=True)


# The commands of the files, as ordinary processes


@dataclass
class Deployment:
    """The commands of one kind of deployment.

    Attributes:
        state: The command of the server. `redis.conf` stands for its configuration.
        worker: Returns the command of a worker by its number.
        places: The words for the server, and for the folder of the items.
        stop: The signal that stops a worker in order.
        configuration: The configuration of the server.
    """

    state: list[str]
    worker: Callable[[int], list[str]]
    places: tuple[str, str]
    stop: signal.Signals
    configuration: str = field(default_factory=(EXAMPLES / "redis.conf").read_text)


def systemd() -> Deployment:
    service = unit(UNITS[0])["Service"]

    def worker(number: int) -> list[str]:
        line = re.sub(
            "%[%i]", lambda of: "%" if of[0] == "%%" else str(number), service["ExecStart"]
        )
        return shlex.split(line.replace(SCRAPY, "scrapy"))

    stop = signal.Signals[service["KillSignal"]]
    state = ["valkey-server", "redis.conf", "--requirepass", PASSWORD]
    return Deployment(state, worker, ("10.0.0.1:6379", "/srv/crawl/items"), stop)


def compose() -> Deployment:
    services = documents("compose.yaml")[0]["services"]
    given = {"${COMITY_STATE_PASSWORD:?}": PASSWORD, "/etc/state.conf": "redis.conf"}
    state = [given.get(word, word) for word in services["state"]["command"]]
    command = [word.replace("$$", "$") for word in services["worker"]["command"]]
    stop = signal.Signals[services["worker"]["stop_signal"]]
    return Deployment(state, lambda _: command, ("state:6379", "/items"), stop)


def kubernetes() -> Deployment:
    given = {"$(PASSWORD)": PASSWORD, "/etc/state/state.conf": "redis.conf"}
    state = [given.get(word, word) for word in container("StatefulSet")["args"]]
    command: list[str] = container("Job")["command"]
    configuration = manifest("ConfigMap")["data"]["state.conf"]
    places = ("comity-state:6379", "/items")
    return Deployment(state, lambda _: command, places, signal.SIGTERM, configuration)


@contextmanager
def server(deployment: Deployment, folder: Path) -> Iterator[int]:
    """Run the server of a deployment on 127.0.0.1. Yield its port."""
    (folder / "redis.conf").write_text(deployment.configuration)
    port = free_port()
    own = ["--port", str(port), "--bind", "127.0.0.1"]
    command = [str(newest_program()), *deployment.state[1:], *own]
    with (folder / "state.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        with redis.Redis(port=port, password=PASSWORD, socket_timeout=DEADLINE) as client:
            deadline = time.monotonic() + DEADLINE
            while True:
                try:
                    client.ping()
                    break
                except redis.RedisError:
                    assert process.poll() is None, (folder / "state.log").read_text()
                    assert time.monotonic() < deadline
                time.sleep(0.01)  # between two looks at another process
        yield port
    finally:
        process.kill()
        process.wait()


def make_project(folder: Path, urls: list[str]) -> None:
    """A Scrapy project with the spider `news`, and with programs that the commands start."""
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    (folder / "settings.py").write_text(
        'ADDONS = {"comity.crawler.addon.Addon": 100}\nCOMITY_AGENT = "testbot"\n'
        # On a busy machine a worker may give no sign of life for some seconds. If its leases ended
        # then, others would fetch its pages again.
        "COMITY_MIN_DELAY = 0\nCOMITY_WORKER_TIMEOUT = 60\n"
        'SPIDER_MODULES = ["spiders"]\nUSER_AGENT = "testbot/1"\n'
    )
    (folder / "spiders.py").write_text(
        "from tests.live.test_jobdir import Follow\n\n\nclass News(Follow):\n"
        f'    name = "news"\n    urls = "{" ".join(urls)}"\n'
    )
    (folder / "bin").mkdir()
    programs = {
        "scrapy": f'exec {sys.executable} -m scrapy "$@"',
        "pip": "exit 0",
    }
    for name, line in programs.items():
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)


@pytest.mark.slow
@pytest.mark.requirement("REACH-1", "STATE-4")
@pytest.mark.parametrize("made", [systemd, compose, kubernetes])
def test_the_commands_crawl_to_the_end_and_a_worker_that_is_stopped_loses_nothing(
    serve: Serve, tmp_path: Path, made: Callable[[], Deployment]
) -> None:
    deployment = made()
    robots = "User-agent: *\nCrawl-delay: 0.2\n"
    sites = [serve(tree(PAGES, robots), host=f"127.0.0.{place}") for place in (2, 3)]
    make_project(tmp_path, [site.url("/0") for site in sites])
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    root = str(Path(__file__).parents[1])
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": root,
        "COMITY_STATE_PASSWORD": PASSWORD,
    }
    running: list[subprocess.Popen[bytes]] = []
    with server(deployment, tmp_path) as port:
        state, items = deployment.places

        def start(number: int) -> subprocess.Popen[bytes]:
            command = [
                word.replace(f"//{state}", f"//127.0.0.1:{port}").replace(
                    f"COMITY_ITEMS={items}", f"COMITY_ITEMS={tmp_path}/items"
                )
                for word in deployment.worker(number)
            ]
            log = tmp_path / f"worker-{len(running)}.log"
            with log.open("wb") as file:
                running.append(
                    subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=file)
                )
            return running[-1]

        try:
            stopped, _ = start(1), start(2)
            deadline = time.monotonic() + DEADLINE
            while min(len(asked(site)) for site in sites) < 6:
                assert time.monotonic() < deadline
                time.sleep(0.01)  # between two looks at other processes
            stopped.send_signal(deployment.stop)
            assert stopped.wait(DEADLINE) == 0
            start(1)
            assert [worker.wait(DEADLINE) for worker in running] == [0, 0, 0]
        finally:
            for worker in running:
                worker.kill()
                worker.wait()
    for site in sites:
        assert sorted(asked(site)) == sorted(numbered(PAGES))
    files = (tmp_path / "items").glob("*.jsonl")
    lines = [line for file in files for line in file.read_text().splitlines()]
    found = [json.loads(line)["url"] for line in lines]
    assert sorted(found) == sorted(site.url(path) for site in sites for path in numbered(PAGES))
