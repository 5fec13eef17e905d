"""`comity completion`: real shells complete commands, options and their values by its scripts."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from comity.commands import COMMANDS
from comity.completion import FILES, FOLDERS, POSITIONALS, SHELLS, full_parser

COMITY = [sys.executable, "-c", "import sys; from comity.cli import main; sys.exit(main())"]
PATIENCE = 60  # seconds to wait for a shell
# Call the function that bash would call at the Tab key, with the words of the line.
BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function_of_comity=$(complete -p comity | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
"$function_of_comity" comity "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
# `compadd` is the builtin that adds matches. The calls with -O, -A and -D add none.
ZSH = """
cp script _comity
touch matches
fpath=($PWD $fpath)
autoload -Uz compinit
compinit -u -D
compadd() {
    if [[ ! " $* " =~ " -(O|A|D) " ]]; then
        local -a found
        builtin compadd -O found "$@"
        print -rl -- $found >> matches
    fi
    builtin compadd "$@"
}
zle-line-init() { print -n READY }
zle -N zle-line-init
"""


@cache
def script(shell: str) -> str:
    done = subprocess.run(
        [*COMITY, "completion", shell], capture_output=True, text=True, check=True
    )
    return done.stdout


def bash(folder: Path, *words: str) -> set[str]:
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", str(folder / "script"), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


def fish(folder: Path, *words: str) -> set[str]:
    done = subprocess.run(
        ["fish", "--no-config", "-c", 'source script; complete -C "$argv"', " ".join(words)],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.partition("\t")[0] for line in done.stdout.splitlines()} - {""}


def zsh(folder: Path, *words: str) -> set[str]:
    """Type the words and a Tab into zsh."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        os.environ |= {"TERM": "dumb", "HOME": str(folder)}
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        _type(terminal, "source ./zshrc\n")
        # The editor of lines is ready: before, Ctrl-U would delete what waits in the terminal.
        _read_until(terminal, "READY")
        _type(terminal, f"{' '.join(words)}\t")
        # Ctrl-U deletes the line. The shell runs the next one when it has completed the first.
        _type(terminal, "\x15echo EN''D\n")
        _read_until(terminal, "END")
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return set((folder / "matches").read_text("utf-8").split("\n")) - {""}


def _type(terminal: int, text: str) -> None:
    os.write(terminal, text.encode())


def _read_until(terminal: int, mark: str) -> str:
    text = ""
    while mark not in text:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, text
        text += os.read(terminal, 4096).decode("utf-8", "replace")
    return text


COMPLETE: dict[str, Callable[..., set[str]]] = {"bash": bash, "fish": fish, "zsh": zsh}


@pytest.fixture(
    params=("bash", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fish", "zsh")))
)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., set[str]]:
    """Return the function that completes words in a shell."""
    name: str = request.param
    assert shutil.which(name), f"{name} is missing: apt-get install {name}"
    (tmp_path / "script").write_text(script(name), "utf-8")
    (tmp_path / "zshrc").write_text(ZSH, "utf-8")
    (tmp_path / "robots.txt").touch()
    (tmp_path / "spider.py").touch()
    return lambda *words: COMPLETE[name](tmp_path, *words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("comity", "d"), {"demo", "dataset"}),
        (("comity", "dataset", "ex"), {"export", "expire"}),
        (("comity", "lint", "--s"), {"--sample", "--skip-unknown", "--select"}),
        (("comity", "lint", "--format", ""), {"text", "json", "sarif", "github"}),
        (("comity", "crawl", ""), {"site", "urls", "policies"}),
        (("comity", "completion", ""), {"bash", "fish", "zsh"}),
        (("comity", "lint", "rob"), {"robots.txt"}),
        (("comity", "runspider", "sp"), {"spider.py"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_shell_completes(
    shell: Callable[..., set[str]], words: tuple[str, ...], expected: set[str]
) -> None:
    assert expected <= shell(*words)


def test_a_shell_proposes_nothing_else(shell: Callable[..., set[str]]) -> None:
    assert not {"lint", "policy", "crawl"} & shell("comity", "d")


def test_an_unknown_shell_is_one_line() -> None:
    done = subprocess.run(
        [*COMITY, "completion", "tcsh"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("comity completion: argument shell: invalid choice: 'tcsh'")
    assert done.stderr.count("\n") == 1


def test_every_command_has_a_parser_and_its_summary() -> None:
    text = full_parser().format_help()
    for name, command in COMMANDS.items():
        assert name in text
        assert command.summary.split()[0] in text
    assert set(POSITIONALS) <= set(COMMANDS)
    assert not FILES & FOLDERS
    assert set(COMPLETE) == set(SHELLS)
