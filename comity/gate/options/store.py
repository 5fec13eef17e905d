"""The paths of the store for policy files."""

from __future__ import annotations

import os
from configparser import ConfigParser
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from comity.gate.options.errors import invalid
from comity.policies import PolicyError


def store_path(name: str, value: Any) -> Path:
    """Read the path of the store.

    If the value is empty, return the store of the project if it exists, else that of the machine.
    PolicyError: the value is not a path, or there is no home folder."""
    path = str(value)
    if "\0" in path:
        raise invalid(name, path, "has a NUL character: write the path of a file")
    if "://" in path:
        raise invalid(name, path, "is a URL: write the path of a file")
    if path:
        return Path(path)
    store = project_store()
    return store if store.exists() else machine_store()


def project_store() -> Path:
    """Return the path of the store in the data folder of the project around the current folder.

    Scrapy's documentation, "Default structure of Scrapy projects", defines this folder."""
    folders = (Path.cwd(), *Path.cwd().parents)
    found = next((folder for folder in folders if (folder / "scrapy.cfg").is_file()), None)
    if found is None:
        return Path(".scrapy/comity/policies.sqlite")
    of_user = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "scrapy.cfg"
    config = ConfigParser()
    config.read(
        ["/etc/scrapy.cfg", of_user, Path("~/.scrapy.cfg").expanduser(), found / "scrapy.cfg"]
    )
    data = config.get("datadir", "default", fallback=str(found / ".scrapy"))
    return Path(data) / "comity/policies.sqlite"


def machine_store() -> Path:
    """Return the path of the store that all projects of the user on this machine share.

    Projects with this store also share the pace file, which is in the same folder.
    PolicyError: there is no home folder."""
    # Without a home folder, platformdirs raises RuntimeError. Older versions return a path that
    # begins with "~".
    with suppress(RuntimeError):
        if (folder := user_data_path("comity", appauthor=False)).is_absolute():
            return folder / "policies.sqlite"
    raise PolicyError(
        "COMITY_STORE is not set, and there is no home folder to keep policy files in:"
        " set it to a path of yours"
    )
