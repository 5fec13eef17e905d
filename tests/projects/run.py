"""Runs projects of others without and with comity, and compares their items and requests.

    python -m tests.projects.run FOLDER [NAME ...]

FOLDER: the projects of projects.toml, each in a folder of its name. Everything happens in a network
namespace of its own, in which the public names are addresses on loopback with the imitations of
sites.py, so no public site is asked. That needs Linux and `unshare`.

The result is a table in Markdown: kind, source, Scrapy, Python, items and disallowed requests, each
without comity, without comity but with Scrapy's own robots.txt middleware, and with comity. The
exit status is 1 if comity changes the items or pages that a project gets with that middleware, or if
a disallowed path is requested with comity."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.certificates import Authority
from tests.conftest import Loopback
from tests.projects.sites import SITES
from tests.redis_server import Server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AGENT = 'COMITY_AGENT = "examplebot"\n'
ADDON = 'ADDONS = {"comity.crawler.addon.Addon": 100}\n'
ONE_ADDON_MORE = 'ADDONS["comity.crawler.addon.Addon"] = 100\n'  # for settings that have ADDONS
ADDRESSES = {host: f"127.1.0.{number}" for number, host in enumerate(SITES, 1)}
OBEY = ("-s", "ROBOTSTXT_OBEY=True")


@dataclass(frozen=True)
class Project:
    """One project of projects.toml. `varying`: fields of items that differ from run to run.

    `made`: a pattern of the files that the project makes beside its items. `rows`: a file of SQLite
    that the project makes, and a query."""

    name: str
    source: str
    kind: str
    environment: str
    settings: str
    spiders: Sequence[str]
    arguments: Sequence[str] = ()
    made: str = ""
    rows: Sequence[str] = ()
    redis: bool = False
    browser: bool = False
    varying: Sequence[str] = ()


@dataclass(frozen=True)
class Run:
    """The outcome of a project's spiders.

    `pages`: the allowed addresses that were requested, without robots.txt. `trespasses`: the
    disallowed paths that were requested."""

    items: list[str]
    tagged: int
    pages: set[str]
    trespasses: list[str]
    errors: list[str]


def make_environments(folder: Path, projects: Sequence[Project], table: dict[str, object]) -> None:
    for name in {project.environment for project in projects}:
        place = folder / "environments" / name
        if place.exists():
            continue
        match table[name]:
            case {"python": str(python), "packages": list(packages)}:
                subprocess.run([python, "-m", "venv", "--without-pip", place], check=True)
                ours = [re.sub("^comity", str(ROOT), package) for package in packages]
                pip = [sys.executable, "-m", "pip", "--python", f"{place}/bin/python"]
                subprocess.run([*pip, "install", "--quiet", *ours], check=True)


def enter_namespace() -> None:
    """Start again where the public names are addresses on loopback, as root of two namespaces."""
    with TemporaryDirectory() as folder:
        hosts = Path(folder) / "hosts"
        lines = [f"{address} {host}\n" for host, address in ADDRESSES.items()]
        hosts.write_text("127.0.0.1 localhost\n" + "".join(lines))
        inside = f'ip link set lo up && mount --bind {hosts} /etc/hosts && exec "$@"'
        again = [sys.executable, "-m", "tests.projects.run", *sys.argv[1:]]
        command = ["unshare", "--map-root-user", "--mount", "--net", "sh", "-c", inside, "sh"]
        done = subprocess.run([*command, *again], env=os.environ | {"INSIDE": "1"}, check=False)
    sys.exit(done.returncode)


@contextmanager
def served(folder: Path) -> Iterator[tuple[dict[str, list[Loopback]], Path]]:
    """Serve all sites, and give their servers by host, and the file of their authority."""
    authority = Authority(folder)
    with ExitStack() as stack:
        servers: dict[str, list[Loopback]] = {}
        for host, site in SITES.items():
            routes, address = site.all_routes(), ADDRESSES[host]
            plain = Loopback(routes, address, 80)
            secured = Loopback(routes, address, 443, certificate=authority.issue(host))
            servers[host] = [stack.enter_context(closing(one)) for one in (plain, secured)]
        yield servers, authority.certificates


def crawl(project: Project, folder: Path, added: Sequence[str], options: Sequence[str]) -> Run:
    """Run the spiders of a copy of the project. `added`: lines for the end of its settings."""
    with TemporaryDirectory() as place, ExitStack() as stack:
        home, work = Path(place), Path(place) / "project"
        shutil.copytree(folder / project.name, work)
        with settings_of(project, work).open("a") as settings:
            settings.writelines(added)
        if project.redis:
            server = Server(home / "redis")
            server.port = 6379  # as the project expects
            server.start()
            stack.callback(server.stop)
        servers, certificates = stack.enter_context(served(home))
        environment = {
            **os.environ,
            "HOME": place,
            "XDG_DATA_HOME": str(home / "data"),
            "SSL_CERT_FILE": str(certificates),
            "SCRAPY_SETTINGS_MODULE": project.settings,
            "PYTHONPATH": str(work),
        }
        scraped: list[dict[str, object]] = []
        errors: list[str] = []
        for spider in project.spiders:
            feed = home / f"{spider}.jsonl"
            words = ["crawl", spider, "-O", f"{feed}:jsonlines", *project.arguments, *options]
            if project.browser:
                words += ["-s", f"PLAYWRIGHT_LAUNCH_OPTIONS={json.dumps(browser())}"]
            done = subprocess.run(
                [python_of(project, folder), "-m", "scrapy", *words],
                cwd=work,
                env=environment,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            errors += re.findall(r"(?m)^.* (?:ERROR|CRITICAL): .*$", done.stderr)
            if done.returncode:
                errors.append(f"exit status {done.returncode}: {done.stderr[-2000:]}")
            scraped += [json.loads(line) for line in feed.read_text().splitlines()]
        tagged = sum(item.pop("permissions", None) is not None for item in scraped)
        kept = [
            {name: value for name, value in item.items() if name not in project.varying}
            for item in scraped
        ]
        items = [json.dumps(item, sort_keys=True) for item in kept]
        if project.made:
            items += [path.name for path in work.glob(project.made)]
        if project.rows:
            file, query = project.rows
            with closing(sqlite3.connect(work / file)) as database:
                items += [json.dumps(row) for row in database.execute(query)]
        seen = [
            (host, one.path)
            for host, pair in servers.items()
            for server in pair
            for one in server.seen
            if one.path != "/robots.txt"
        ]
    trespasses = [path for host, path in seen if path.startswith(SITES[host].disallowed)]
    pages = {host + path for host, path in seen if not path.startswith(SITES[host].disallowed)}
    return Run(sorted(items), tagged, pages, trespasses, errors)


def settings_of(project: Project, folder: Path) -> Path:
    return folder / (project.settings.replace(".", "/") + ".py")


def python_of(project: Project, folder: Path) -> str:
    return str((folder / "environments" / project.environment / "bin" / "python").absolute())


def browser() -> dict[str, object]:
    """Return options for the Chromium of the system, which trusts the authority of the sites."""
    arguments = ["--no-sandbox", "--ignore-certificate-errors"]
    return {"executable_path": shutil.which("chromium"), "args": arguments}


def row(project: Project, folder: Path) -> tuple[str, bool]:
    """Run the project three times. Return its row of the table, and whether it went well."""
    settings = settings_of(project, folder / project.name).read_text()
    addon = ONE_ADDON_MORE if re.search("(?m)^ADDONS", settings) else ADDON
    without = crawl(project, folder, (), ())
    obeying = crawl(project, folder, (), OBEY)
    added = crawl(project, folder, (addon, AGENT), ())
    for error in (*without.errors, *added.errors):
        print(f"{project.name}: {error}", file=sys.stderr)
    good = (
        bool(added.items)
        and (added.items, added.pages) == (obeying.items, obeying.pages)
        and not added.trespasses
    )
    for missing in sorted({*obeying.items, *obeying.pages} - {*added.items, *added.pages}):
        print(f"{project.name}: missing with comity: {missing}", file=sys.stderr)
    for other in sorted({*added.items, *added.pages} - {*obeying.items, *obeying.pages}):
        print(f"{project.name}: with comity only: {other}", file=sys.stderr)
    ask = "import platform, scrapy; print(scrapy.__version__, platform.python_version(), sep=' | ')"
    versions = subprocess.check_output([python_of(project, folder), "-c", ask], text=True)
    runs = (without, obeying, added)
    cells = [
        project.kind,
        project.source,
        versions.strip(),
        ", ".join(str(len(run.items)) for run in runs),
        str(added.tagged),
        ", ".join(str(len(run.trespasses)) for run in runs),
    ]
    return f"| {' | '.join(cells)} |" + ("" if good else " DIFFERS"), good


def main(folder: Path, names: Sequence[str]) -> int:
    table = tomllib.loads((HERE / "projects.toml").read_text())
    projects = [Project(name, **values) for name, values in table["projects"].items()]
    projects = [project for project in projects if not names or project.name in names]
    if "INSIDE" not in os.environ:
        make_environments(folder, projects, table["environments"])
        enter_namespace()
    all_good = True
    for project in projects:
        line, good = row(project, folder)
        print(line, flush=True)
        all_good = all_good and good
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
