"""Write the workbench as static files, which answer in the browser without a server of comity.

The folder has the page, comity and the packages that it needs, Pyodide, and the files of the site.
It has everything, so the page loads nothing from elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from comity.authoring.workbench.desk import Desk
from comity.authoring.workbench.in_browser import pack
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

SITE = "site.json"
# The part of Pyodide in its package of npm. It has no packages of others, such as lxml.
_PYODIDE = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
# The packages without compiled code that the policies and the authoring tools import.
_PACKAGES = (
    "cssselect2",
    "http-sf",
    "platformdirs",
    "protego",
    "rich",
    "tinycss2",
    "tinyhtml5",
    "typing-extensions",
    "w3lib",
    "webencodings",
)
# lxml and parsel are replaced: what lxml_etree.py does not have ends with NeedsLxml.
_GETATTR = b"from comity.authoring.workbench.lxml_etree import __getattr__\n"
_SUFFIXES = (".py", ".toml", ".json")


def export(desk: Desk, folder: Path, pyodide: Path) -> int:
    """Write the workbench of a desk into a folder, and return the number of octets written.

    `pyodide`: the folder with the package `pyodide` of npm.
    PolicyError: a file of Pyodide is missing, or the folder has other files, or it cannot be
    written."""
    missing = [name for name in _PYODIDE if not (pyodide / name).is_file()]
    if missing:
        raise PolicyError(
            f"`{printable(str(pyodide))}` has no {missing[0]}: run `npm install pyodide@314`, and "
            "name its folder with `--pyodide node_modules/pyodide`"
        )
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / SITE).is_file():
            raise PolicyError(f"`{printable(str(folder))}` has other files: name a new folder")
        (folder / "pyodide").mkdir(parents=True, exist_ok=True)
        for name in _PYODIDE:
            shutil.copyfile(pyodide / name, folder / "pyodide" / name)
        for path in (
            Path(__file__).with_name("page.css"),
            *Path(__file__).with_name("exported").iterdir(),
        ):
            shutil.copyfile(path, folder / path.name)
        (folder / "python.zip").write_bytes(python_archive())
        # The path of a folder on this machine is nothing to publish.
        title = desk.title if desk.folder is None else desk.start.origin
        (folder / SITE).write_text(pack(title, desk.state()), "utf-8")
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise PolicyError(
            f"`{printable(str(folder))}` cannot be written: {error.strerror}"
        ) from None


def python_archive() -> bytes:
    """Return a zip archive with comity and the packages that it needs in the browser."""
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for name, body in sorted(_modules()):
            archive.writestr(ZipInfo(name), body, ZIP_DEFLATED)  # of 1980: equal exports are equal
    return buffer.getvalue()


def _modules() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each module for the browser."""
    package = Path(__file__).parents[2]
    for path in package.rglob("*"):
        if path.suffix in _SUFFIXES and path.is_file():
            yield f"comity/{path.relative_to(package).as_posix()}", path.read_bytes()
    for name in _PACKAGES:
        for file in distribution(name).files or ():
            if file.suffix in _SUFFIXES and ".." not in file.parts:
                yield file.as_posix(), file.read_binary()
    yield "lxml/__init__.py", b""
    yield "lxml/etree.py", b"from comity.authoring.workbench.lxml_etree import *\n" + _GETATTR
    yield "parsel.py", b"from comity.authoring.workbench.lxml_etree import Selector\n" + _GETATTR
    yield "lxml/html/__init__.py", b""
    yield "lxml/html/defs.py", files("lxml").joinpath("html/defs.py").read_bytes()
