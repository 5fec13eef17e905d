"""Sample paths and elements of a site, from the pages and sitemaps in its folder.

samples(folder) -> Samples     the current samples; unchanged folders are not read again"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

MAX_FILES = 2000  # the maximum number of files that are listed
MAX_PAGES = 50  # the maximum number of pages that are read for selectors
MAX_PATHS = 500  # the maximum number of targets, of folders, and of selectors
# The maximum octets that are read of a page. Of a sitemap, sixteen times as many are read.
MAX_OCTETS = 256 * 1024
MAX_DEPTH = 6  # the maximum depth of folders below the folder of the site
URLS = 20  # the number of targets that a code lens counts

_PAGES = (".html", ".htm", ".xhtml")
_LOCATION = re.compile(rb"<loc>\s*([^<\s]+)\s*</loc>", re.IGNORECASE)
_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9-]*)((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)>")
_ID = re.compile(r"\bid\s*=\s*[\"']?([A-Za-z][\w-]*)")
_CLASS = re.compile(r"\bclass\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|(\S+))")
_CLASS_NAME = re.compile(r"[A-Za-z_][\w-]*")


class Samples(NamedTuple):
    """Paths and elements of a site.

    Attributes:
        targets: Paths of pages, with their queries: "/search?q=tea".
        folders: Paths of folders: "/images/".
        selectors: Selectors of elements in pages: "article", "#main", ".price". Those in most pages
            come first.
    """

    targets: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    selectors: tuple[str, ...] = ()


NONE = Samples()
_cache: dict[Path, tuple[tuple[tuple[str, int], ...], Samples]] = {}


def samples(folder: Path | None) -> Samples:
    """Return the samples in a folder. Never raises.

    A folder that cannot be read, and None, have no samples."""
    if folder is None:
        return NONE
    try:
        files = tuple(_files(folder))
        state = tuple((str(path), path.stat().st_mtime_ns) for path in files)
        cached = _cache.get(folder)
        if cached is None or cached[0] != state:
            cached = _cache[folder] = state, _read(folder, files)
    except OSError:
        return NONE
    return cached[1]


def _head(path: Path, octets: int) -> bytes:
    with path.open("rb") as file:
        return file.read(octets)


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for root, folders, names in os.walk(folder):
        depth = len(Path(root).relative_to(folder).parts)
        folders[:] = (
            sorted(name for name in folders if not name.startswith((".", "node_modules")))
            if depth < MAX_DEPTH
            else []
        )
        for name in sorted(names):
            if not name.startswith("."):
                count += 1
                if count > MAX_FILES:
                    return
                yield Path(root) / name


def _read(folder: Path, files: tuple[Path, ...]) -> Samples:
    targets, folders, selectors = dict[str, None](), dict[str, None](), dict[str, int]()
    pages = 0
    for path in files:
        target = "/" + quote(os.fsencode(path.relative_to(folder).as_posix()))
        for parent in path.relative_to(folder).parents:
            folders["/" + quote(os.fsencode(parent.as_posix())) + "/" if parent.name else "/"] = (
                None
            )
        suffix = path.suffix.lower()
        if suffix in _PAGES:
            targets[target] = None
            pages += 1
            if pages <= MAX_PAGES:
                for selector in selectors_in(_head(path, MAX_OCTETS).decode("utf-8", "replace")):
                    selectors[selector] = selectors.get(selector, 0) + 1
        elif path.name.lower().startswith("sitemap") and suffix == ".xml":
            for location in _LOCATION.findall(_head(path, 16 * MAX_OCTETS))[: MAX_PATHS * 10]:
                try:
                    url = urlsplit(location.decode("utf-8", "replace").replace("&amp;", "&"))
                except ValueError:
                    continue
                targets[(url.path or "/") + (f"?{url.query}" if url.query else "")] = None
    for target in targets:
        parent_path = target.partition("?")[0].rpartition("/")[0]
        while parent_path:
            folders[parent_path + "/"] = None
            parent_path = parent_path.rpartition("/")[0]
    ordered = sorted(selectors, key=lambda selector: (-selectors[selector], selector))
    return Samples(
        tuple(targets)[:MAX_PATHS], tuple(folders)[:MAX_PATHS], tuple(ordered[:MAX_PATHS])
    )


def selectors_in(page: str) -> set[str]:
    """Return selectors of the elements in an HTML page, by their names, ids and classes."""
    selectors = set()
    for name, attributes in _TAG.findall(page):
        selectors.add(name.lower())
        selectors |= {f"#{value}" for value in _ID.findall(attributes)}
        for classes in _CLASS.findall(attributes):
            selectors |= {
                f".{value}" for value in "".join(classes).split() if _CLASS_NAME.fullmatch(value)
            }
    return selectors


def spread_evenly(targets: tuple[str, ...], count: int = URLS) -> tuple[str, ...]:
    """Return at most `count` targets, taken from the list at equal distances."""
    return (
        targets
        if len(targets) <= count
        else tuple(targets[number * len(targets) // count] for number in range(count))
    )
