"""The samples of a survey: files of sites, from folders and WARC files.

    samples = read_samples(Path("corpus.toml"), folder)

A TOML file names the samples, and patterns of their files. Each file of a folder is a site of its
own. A WARC file may have several files of a site: `comity crawl policies` and the robots.txt files
of Common Crawl are such files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from comity.policies import Fetched
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.urls import origin_or_empty

WARC_ENDINGS = (".warc", ".warc.gz")
ORIGIN = "https://example.com"


class SampledSite(NamedTuple):
    """The files of one site.

    Attributes:
        name: The name of the file or site.
        origin: The origin of the site.
        files: The path of each policy file -> the file.
        pages: The path of each other file -> the file.
    """

    name: str
    origin: str
    files: dict[str, Fetched]
    pages: dict[str, Fetched]


class Sample(NamedTuple):
    """One sample of sites.

    Attributes:
        title: The name of the sample.
        source: Its source, in Markdown.
        date: The time of its files, in words.
        is_main: True for the sample from which the page counts shares.
        sites: Its sites.
    """

    title: str
    source: str
    date: str
    is_main: bool
    sites: tuple[SampledSite, ...]


class Samples(NamedTuple):
    """All samples of a survey.

    Attributes:
        intro: The text about what the samples are, and what they are not.
        samples: The samples.
    """

    intro: str
    samples: tuple[Sample, ...]


def read_samples(description: Path, folder: Path) -> Samples:
    """Read the samples that a TOML file describes. `folder`: the folder of their files.

    FileNotFoundError: a pattern matches no file."""
    table = tomllib.loads(description.read_text("utf-8"))
    return Samples(
        table["intro"].strip(),
        tuple(
            Sample(
                entry["title"],
                entry["source"],
                entry["date"],
                entry.get("main", False),
                tuple(
                    site
                    for pattern in entry["files"]
                    for path in _matching(folder, pattern)
                    for site in _sites(path, entry["path"])
                ),
            )
            for entry in table["samples"]
        ),
    )


def _matching(folder: Path, pattern: str) -> list[Path]:
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"no file matches {pattern} in {folder}")
    return paths


def _sites(path: Path, published_at: str) -> Iterator[SampledSite]:
    """Yield the site of a file, or the sites of a WARC file.

    `published_at`: the path at which sites publish the file. "" means a page, or any path."""
    if path.name.endswith(WARC_ENDINGS):
        yield from _of_warc(path)
        return
    file = {published_at or f"/{path.name}": Fetched(status=200, body=path.read_bytes())}
    is_policy = bool(published_at)
    yield SampledSite(path.name, ORIGIN, file if is_policy else {}, {} if is_policy else file)


def _of_warc(path: Path) -> Iterator[SampledSite]:
    sites: dict[str, SampledSite] = {}
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            url = record.rec_headers.get_header("WARC-Target-URI")
            if record.rec_type != "response" or not (origin := origin_or_empty(url)):
                continue
            site = sites.setdefault(origin, SampledSite(origin, origin, {}, {}))
            fetched = Fetched(
                status=int(record.http_headers.get_statuscode()),
                headers=tuple(
                    (name.encode("latin-1"), value.encode("latin-1", "replace"))
                    for name, value in record.http_headers.headers
                ),
                body=record.content_stream().read(),
            )
            target = urlsplit(url).path or "/"
            (site.files if target in WELL_KNOWN else site.pages)[target] = fetched
    yield from sites.values()
