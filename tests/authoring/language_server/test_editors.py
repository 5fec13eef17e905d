"""The files in editors/, tested in real editors."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

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


@pytest.mark.slow
@pytest.mark.requirement("IDE-1")
def test_make_packs_the_extension_of_visual_studio_code(tmp_path: Path) -> None:
    assert shutil.which("npm"), "npm is missing: apt-get install npm"
    folder = tmp_path / "vscode"
    shutil.copytree(
        EDITORS / "vscode", folder, ignore=shutil.ignore_patterns("node_modules", "*.vsix")
    )
    done = subprocess.run(
        ["make", "vsix", f"EXTENSION={folder}", f"VSIX={tmp_path / 'dist'}"],
        cwd=EDITORS.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    package = json.loads((folder / "package.json").read_text("utf-8"))
    unpacked = tmp_path / "unpacked"
    with ZipFile(tmp_path / "dist" / f"comity-{package['version']}.vsix") as archive:
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


def test_a_grammar_of_the_extension_stands_for_each_of_its_languages() -> None:
    package = json.loads((EDITORS / "vscode/package.json").read_text("utf-8"))
    languages = {language["id"] for language in package["contributes"]["languages"]}
    grammars = {grammar["language"]: grammar for grammar in package["contributes"]["grammars"]}
    assert languages == grammars.keys()
    for grammar in grammars.values():
        written = json.loads((EDITORS / "vscode" / grammar["path"]).read_text("utf-8"))
        assert written["scopeName"] == grammar["scopeName"]
