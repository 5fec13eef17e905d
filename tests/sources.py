"""The files of the repository, also where git is missing: in an unpacked source distribution."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The links at the top. A source distribution has none, because it would have copies of the folders.
LINKS = {name: f"comity/{name}" for name in ("crawler", "policies", "spiders")}
_METADATA = ("PKG-INFO", "comity.egg-info/")  # additions of setuptools


def is_checkout() -> bool:
    """Return True in a checkout, and False in an unpacked source distribution."""
    return (ROOT / ".git").exists()


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def source_files() -> list[Path]:
    """Return every file that belongs to the repository, without its links."""
    if is_checkout():
        names = git("ls-files", "-z").split("\0")[:-1]
    else:
        listed = (ROOT / "comity.egg-info" / "SOURCES.txt").read_text("utf-8").splitlines()
        names = [name for name in listed if not name.startswith(_METADATA)]
    return [path for name in names if (path := ROOT / name).is_file() and not path.is_symlink()]


def path_of(name: str) -> Path:
    """Return the path of a file that a page names, without the links at the top."""
    top, _, rest = name.partition("/")
    return ROOT / LINKS.get(top, top) / rest
