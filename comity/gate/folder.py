"""Read the policies of a site from a folder, and find out why a site has none."""

from __future__ import annotations

import posixpath
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from comity.gate.fetching.causes import no_host
from comity.gate.run.console import complain
from comity.policies import Agent, Fetched, PolicyError, Site
from comity.policies.formats import WELL_KNOWN
from comity.policies.formats.file import MAX_REFERENCES
from comity.policies.syntax.urls import host_name, origin_of, target_of


def read_folder(origin: str, folder: Path, agent: Agent) -> Site:
    """Return the policies in a folder, under the paths that they have on a site.

    The site does not have the files that are missing in the folder. A file of another host is in a
    folder with the name of the host. If robots.txt refers to a file that is missing, that file
    counts as not fetchable. PolicyError: a file cannot be read."""
    files = {path: file for path in WELL_KNOWN if (file := read_file(folder, path))}
    site = Site.from_files(origin, files)
    references = site.references(agent)
    if len(references) > MAX_REFERENCES:
        complain(
            f"{origin} refers to {len(references)} policy files, but only {MAX_REFERENCES}"
            " are read: everything is refused"
        )
    for url in (*references[:MAX_REFERENCES], *site.licenses(agent)):
        if file := read_file(folder, path_in_folder(origin, url)):
            files[url] = file
    return Site.from_files(origin, files)


def missing_host(site: Site) -> str:
    """Return a sentence if the host of a site does not exist.

    "" means that the host exists, or that a copy of its policies is used."""
    error = site.files[f"{site.origin}/robots.txt"].error
    return error if error == no_host(host_name(site.origin)) else ""


def misplaced_files(folder: Path) -> dict[str, str]:
    """Return policy files in wrong places: {"tdmrep.json": ".well-known/tdmrep.json"}.

    Each path in the folder has the path that crawlers request. Files in wrong places are not read.
    A file is left out of the result if a file is at the right place, too."""
    misplaced = {}
    for path in WELL_KNOWN:
        name = posixpath.basename(path)
        for place in (f"/{name}", f"/.well-known/{name}"):
            if (
                place not in WELL_KNOWN
                and (folder / place[1:]).is_file()
                and not (folder / path[1:]).exists()
            ):
                misplaced[place[1:]] = path[1:]
    return misplaced


def path_in_folder(origin: str, url: str) -> str:
    """Return the path of a URL's file in the folder of a site, with a slash before it.

    For a URL of another host, it is "/cdn.example/license.xml"."""
    return (
        target_of(url) if origin_of(url) == origin else f"/{urlsplit(url).netloc}{target_of(url)}"
    )


def read_file(folder: Path, path: str) -> Fetched | None:
    """Return a file of the folder as if it was fetched.

    None means that it does not exist, or is a link out of the folder.
    PolicyError: it cannot be read."""
    file = folder / path.lstrip("/")
    try:
        if not file.resolve().is_relative_to(folder.resolve()) or not file.is_file():
            return None
        changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        return Fetched(status=200, body=file.read_bytes(), fetched_at=changed)
    except ValueError:  # not a valid path
        return None
    except OSError as error:
        raise PolicyError(f"{file} cannot be read: {error.strerror}") from None
