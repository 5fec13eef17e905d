"""The files in editors/, tested in real editors."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit
from zipfile import ZipFile

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from playwright.sync_api import expect

from tests.authoring.workbench.workbench_process import started_browser

EDITORS = Path(__file__).parents[3] / "editors"
SCRIPT = "import sys; from comity.cli import main; sys.exit(main())"

pytestmark = pytest.mark.usefixtures("new_processes")


def parse_xml(path: Path) -> Any:
    return etree.parse(str(path)).getroot()


@pytest.mark.slow
@pytest.mark.requirement("IDE-1")
def test_neovim_shows_completes_mends_and_saves(tmp_path: Path) -> None:
    """Neovim is set up as in its instructions: the file of editors/neovim, and the command."""
    assert shutil.which("nvim"), "Neovim is missing: apt-get install neovim"
    (tmp_path / "robots.txt").write_text("User-agent: GPTBot\nDissallow: /private\n", "utf-8")
    command = (
        json.dumps([sys.executable, "-c", SCRIPT, "languageserver"])
        .replace("[", "{")
        .replace("]", "}")
    )
    (tmp_path / "init.lua").write_text(
        f"vim.g.comity_command = {command}\ndofile({str(EDITORS / 'neovim/comity.lua')!r})\n",
        "utf-8",
    )
    folders = {
        name: str(tmp_path / "home")
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    }
    session = Path(__file__).with_name("neovim.lua")
    done = subprocess.run(
        ["nvim", "--headless", "-n", "-u", "init.lua", "-c", f"luafile {session}"],
        cwd=tmp_path,
        env=os.environ | folders,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "robots.misspelled" in done.stderr  # the output of headless Neovim
    text = (tmp_path / "robots.txt").read_text("utf-8")
    assert text == "User-agent: GPTBot\nDisallow: /private\nDisallow: /a\nCrawl-delay: 10\n"


@pytest.mark.slow
@pytest.mark.requirement("IDE-1")
def test_emacs_shows_completes_mends_lays_out_and_saves(tmp_path: Path) -> None:
    """Emacs runs in a terminal, set up as in its instructions: editors/emacs, and the command."""
    assert shutil.which("emacs"), "Emacs is missing: apt-get install emacs-nox elpa-eglot"
    site, home = tmp_path / "site", tmp_path / "home"
    site.mkdir()
    (site / "robots.txt").write_text("User-agent: GPTBot\nDissallow: /private\n", "utf-8")
    (site / "ai.txt").write_text(
        "User-agent: *\n    Path: / html\n  Element: p\n Disallow: Train\n", "utf-8"
    )
    (site / "tdmrep.json").write_text('[{"location": "/", "tdm-reservation": 2}]\n', "utf-8")
    (site / "page.html").write_text("<p>", "utf-8")
    (home / ".emacs.d").mkdir(parents=True)
    command = " ".join(map(json.dumps, [sys.executable, "-c", SCRIPT, "languageserver"]))
    (home / ".emacs.d/init.el").write_text(
        f"(setq comity-command '({command}))\n(load "
        f"{json.dumps(str(EDITORS / 'emacs/comity.el'))})\n",
        "utf-8",
    )
    session = Path(__file__).with_name("emacs.el")
    status, screen = in_terminal(
        ["emacs", "-nw", "-l", str(session)], site, {"HOME": str(home), "TERM": "vt100"}
    )
    seen = (
        (site / "seen").read_text("utf-8")
        if (site / "seen").exists()
        else screen.decode("utf-8", "replace")
    )
    assert status == 0, seen
    assert "robots.misspelled" in seen
    assert "completed Crawl-delay: \n" in seen
    assert "form ai.xml <?xml version=" in seen
    assert "json comity [tdmrep." in seen
    text = (site / "robots.txt").read_text("utf-8")
    assert text == (
        "User-agent: GPTBot\nDisallow: /private\nDisallow: /a\nCrawl-delay: 10\n"
        "Disallow: /page.html\n"
    )
    text = (site / "ai.txt").read_text("utf-8")
    assert (
        text == "User-agent: *\n    Path: / html\n        Element: p\n            Disallow: Train\n"
    )


def in_terminal(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, bytes]:
    """Run a command in a terminal. Return its status and its output."""
    controller, terminal = pty.openpty()
    screen = bytearray()
    with subprocess.Popen(
        ["setsid", "--ctty", *command],
        cwd=folder,
        env=os.environ | environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        with suppress(OSError):  # the end of a terminal is an error in Linux
            while octets := os.read(controller, 65536):
                screen += octets
        os.close(controller)
        return process.wait(300), bytes(screen)


PACKAGE = json.loads((EDITORS / "vscode/package.json").read_text("utf-8"))


def run_to_end(command: list[str], folder: Path, **environment: str) -> str:
    """Run a command, and return its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def vsix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension of Visual Studio Code as a package."""
    assert shutil.which("npm"), "npm is missing: apt-get install npm"
    folder = tmp_path_factory.mktemp("extension")
    shutil.copytree(
        EDITORS / "vscode",
        folder / "vscode",
        ignore=shutil.ignore_patterns("node_modules", "*.vsix"),
    )
    arguments = [f"EXTENSION={folder / 'vscode'}", f"VSIX={folder / 'dist'}"]
    run_to_end(["make", "vsix", *arguments], EDITORS.parent)
    return folder / "dist" / f"comity-{PACKAGE['version']}.vsix"


@pytest.mark.slow
@pytest.mark.requirement("IDE-1")
def test_make_packs_the_extension_of_visual_studio_code(vsix: Path, tmp_path: Path) -> None:
    package = PACKAGE
    unpacked = tmp_path / "unpacked"
    with ZipFile(vsix) as archive:
        archive.extractall(unpacked)
    manifest = parse_xml(unpacked / "extension.vsixmanifest")
    identity = manifest.find("{*}Metadata/{*}Identity")
    assert identity is not None
    assert (identity.get("Id"), identity.get("Publisher")) == (
        package["name"],
        package["publisher"],
    )
    assert identity.get("Version") == package["version"]
    assets = [str(asset.get("Path")) for asset in manifest.iterfind("{*}Assets/{*}Asset")]
    assert "extension/package.json" in assets
    contributed = [
        *(grammar["path"] for grammar in package["contributes"]["grammars"]),
        *(language["configuration"] for language in package["contributes"]["languages"]),
    ]
    files = [*assets, *(f"extension/{path}" for path in (package["main"], *contributed))]
    assert [path for path in files if not (unpacked / path).is_file()] == []
    types = parse_xml(unpacked / "[Content_Types].xml")
    known = {entry.get("Extension") for entry in types.iterfind("{*}Default")}
    found = {
        file.suffix
        for file in (unpacked / "extension").rglob("*")
        if file.is_file() and file.suffix
    }
    assert found <= known
    # Everything that the extension imports is in the package, but for the editor itself.
    require = "require.resolve('vscode-languageclient/node')"
    where = subprocess.run(
        ["node", "-p", require],
        cwd=unpacked / "extension",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(unpacked)


CODE_SERVER = EDITORS.parent / ".venv/code-server/node_modules/.bin/code-server"


@pytest.mark.slow
@pytest.mark.requirement("IDE-1")
def test_visual_studio_code_installs_the_extension_and_shows_findings(
    vsix: Path, tmp_path: Path
) -> None:
    """code-server is Visual Studio Code in a browser. It takes the extension from its package."""
    assert CODE_SERVER.is_file(), "code-server is missing: make .venv/code-server/ready"
    site, data = tmp_path / "site", tmp_path / "data"
    site.mkdir()
    robots = site / "robots.txt"
    robots.write_text("User-agent: GPTBot\nDissallow: /private\n", "utf-8")
    settings = {
        "comity.command": [sys.executable, "-c", SCRIPT, "languageserver"],
        "security.workspace.trust.enabled": False,
        "workbench.startupEditor": "none",
    }
    (data / "User").mkdir(parents=True)
    (data / "User/settings.json").write_text(json.dumps(settings), "utf-8")
    code = [
        str(CODE_SERVER),
        f"--user-data-dir={data}",
        f"--extensions-dir={tmp_path / 'extensions'}",
        f"--config={tmp_path / 'config.yaml'}",
    ]
    run_to_end([*code, f"--install-extension={vsix}"], tmp_path)
    listed = run_to_end([*code, "--list-extensions", "--show-versions"], tmp_path)
    assert listed.split() == [f"comity.comity@{PACKAGE['version']}"]
    options = ["--auth=none", "--bind-addr=127.0.0.1:0", "--disable-telemetry"]
    with (
        started(["setsid", *code, *options, "--disable-update-check"], tmp_path) as origin,
        started_browser() as browser,
    ):
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        files = json.dumps([["openFile", f"vscode-remote://{origin.netloc}{robots}"]])
        page.goto(f"{origin.geturl()}?{urlencode({'folder': str(site), 'payload': files})}")
        expect(page.locator(".squiggly-error, .squiggly-warning").first).to_be_visible(
            timeout=120_000
        )
        page.keyboard.press("Control+Shift+M")
        expect(page.locator(".markers-panel")).to_contain_text("robots.misspelled")


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[SplitResult]:
    """Start a server in a group of processes, yield the address that it prints, and end all."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            address = next(filter(None, (re.search(r"http://127\S+", line) for line in lines)))
            yield urlsplit(address[0])
        finally:
            os.killpg(process.pid, signal.SIGTERM)


# The keys in https://docs.helix-editor.com/languages.html of Helix 25.07.
HELIX_LANGUAGE = {
    "name", "language-id", "scope", "injection-regex", "file-types", "shebangs", "roots",
    "auto-format", "diagnostic-severity", "comment-token", "comment-tokens",
    "block-comment-tokens", "indent", "language-servers", "grammar", "formatter", "soft-wrap",
    "text-width", "rulers", "path-completion", "word-completion", "workspace-lsp-roots",
    "persistent-diagnostic-sources",
}  # fmt: skip
HELIX_SERVER = {"command", "args", "config", "timeout", "environment", "required-root-patterns"}


@pytest.mark.requirement("IDE-1")
def test_the_configuration_of_helix_has_documented_keys_and_the_command() -> None:
    """No package index that the tests use has Helix itself."""
    configuration = tomllib.loads((EDITORS / "helix/languages.toml").read_text("utf-8"))
    assert configuration.keys() == {"language-server", "language"}
    server = configuration["language-server"]["comity"]
    assert server.keys() <= HELIX_SERVER
    assert [server["command"], *server["args"]] == ["comity", "languageserver"]
    for language in configuration["language"]:
        assert language.keys() <= HELIX_LANGUAGE
        assert "comity" in language["language-servers"]
    (own,) = (language for language in configuration["language"] if "file-types" in language)
    assert own["indent"].keys() == {"tab-width", "unit"}
    names = [name for entry in PACKAGE["contributes"]["languages"] for name in entry["filenames"]]
    # Visual Studio Code shows trust.txt as plain text.
    assert own["file-types"] == [{"glob": name} for name in (*names, "trust.txt")]


def test_a_grammar_of_the_extension_stands_for_each_of_its_languages() -> None:
    package = json.loads((EDITORS / "vscode/package.json").read_text("utf-8"))
    languages = {language["id"] for language in package["contributes"]["languages"]}
    grammars = {grammar["language"]: grammar for grammar in package["contributes"]["grammars"]}
    assert languages == grammars.keys()
    for grammar in grammars.values():
        written = json.loads((EDITORS / "vscode" / grammar["path"]).read_text("utf-8"))
        assert written["scopeName"] == grammar["scopeName"]
