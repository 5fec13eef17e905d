"""`comity startproject`: create a Scrapy project that uses comity and runs at once."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from string import Template

from comity.gate.run.console import say
from comity.policies import PolicyError

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")  # an identifier of Python, and a product token

# The files of a project, and their templates. A file without a template is empty.
FILES = {
    "README.md": "README.md.tmpl",
    "scrapy.cfg": "scrapy.cfg.tmpl",
    "$name/__init__.py": "",
    "$name/settings.py": "settings.py.tmpl",
    "$name/spiders/__init__.py": "",
    "$name/spiders/pages.py": "pages.py.tmpl",
}


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="the name of the project, of its package and of its crawler"
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help="the folder of the project (default: NAME)",
    )


def run(options: Namespace) -> int:
    name, folder = options.name, options.folder or Path(options.name)
    _check(name)
    create(name, folder)
    say(f"The project {name} is in {folder}. Crawl a site with it:")
    say(f"    cd {folder}")
    say("    comity crawl pages -a url=https://example.com -O items.jsonl")
    say(f"{folder / name / 'settings.py'} explains the settings. Set COMITY_AGENT and USER_AGENT.")
    return 0


def _check(name: str) -> None:
    """Check that the name can be that of a new package. PolicyError: it cannot."""
    if not NAME.fullmatch(name):
        known = re.sub("[^A-Za-z0-9]+", "_", name).strip("_0123456789")
        raise PolicyError(
            f"NAME `{name}` is not a name of a Python package: begin with a letter, and use"
            f" letters, digits and `_` only, e.g. `{known or 'my_crawler'}`"
        )
    if iskeyword(name) or find_spec(name) is not None:
        raise PolicyError(
            f"NAME `{name}` is taken: Python has a module or a keyword of this name. Write"
            f" another, e.g. `{name}_crawler`"
        )


def create(name: str, folder: Path) -> None:
    """Write the files of the project. No file is ever replaced.

    PolicyError: a file exists already, or cannot be written."""
    paths = {folder / Template(path).substitute(name=name): of for path, of in FILES.items()}
    for path in paths:
        if path.exists() or path.is_symlink():
            raise PolicyError(f"{path} exists already: write another FOLDER behind the name")
    for path, template in paths.items():
        text = (files(__package__) / "template" / template).read_text("utf-8") if template else ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(Template(text).substitute(name=name))
        except OSError as error:
            raise PolicyError(f"{path} cannot be written: {error.strerror}") from None
