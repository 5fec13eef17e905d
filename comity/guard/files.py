"""The site's own policy files. The guard reads and checks them once, when it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from comity.policies.answers.errors import PolicyError
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import FILES, accepted
from comity.policies.formats.file import File
from comity.policies.site import Site
from comity.policies.syntax.path_patterns import normal_target
from comity.policies.syntax.urls import origin_of, target_of

SERVED = tuple(file.path for file in FILES)  # the files to read in a folder
_MEDIA_TYPES = {file.path: file.media_type for file in FILES}

Files = Mapping[str, bytes | Path] | Path


class OwnFiles:
    """The policy files of a site. `bodies`: absolute URL -> the octets of the file."""

    def __init__(self, origin: str, files: Files) -> None:
        """`files`: the path of a folder, or a mapping.

        The keys of the mapping are paths (`/robots.txt`) or absolute URLs. Its values are the
        octets of the file, or the path from which to read them.

        PolicyError: a file is missing, or crawlers would reject it."""
        try:
            self.origin = origin_of(origin)
        except ValueError as error:
            raise PolicyError(f"{error}: write e.g. https://example.com") from None
        if isinstance(files, Path):
            self._folder: Path | None = files
            self.bodies = self._read_folder(files)
        else:
            self._folder = None
            self.bodies = {
                self._url(path): self._octets(path, file) for path, file in files.items()
            }
        self._check()
        self._read_references()

    @property
    def fetched(self) -> dict[str, Fetched]:
        """All files as a crawler would get them."""
        return {url: _response(url, body) for url, body in self.bodies.items()}

    @property
    def judging(self) -> dict[str, Fetched]:
        """The files by which requests are judged: absolute URL -> file.

        These are all files except those in FILES that are about uses only and refuse no request."""
        served_only = {self.origin + file.path for file in FILES if not file.restricts_access}
        return {url: fetched for url, fetched in self.fetched.items() if url not in served_only}

    @property
    def served(self) -> Iterator[tuple[str, bytes, str]]:
        """The normal path, the octets and the media type of each file of this origin."""
        for url, body in self.bodies.items():
            if origin_of(url) == self.origin:
                yield normal_target(target_of(url)), body, media_type(url)

    def _url(self, path: str) -> str:
        url = urljoin(f"{self.origin}/", path)
        try:
            return origin_of(url) + target_of(url)
        except ValueError:
            raise PolicyError(
                f"`{path}` is neither a path nor a URL: write e.g. /robots.txt"
            ) from None

    def _octets(self, path: str, file: bytes | Path) -> bytes:
        return file if isinstance(file, bytes) else _read(file, f"create it, or leave {path} out")

    def _read_folder(self, folder: Path) -> dict[str, bytes]:
        bodies = {
            self.origin + path: _read(file, "make it readable")
            for path in SERVED
            if (file := folder / path[1:]).exists()
        }
        if not bodies:
            raise PolicyError(
                f"{folder} has no policy file:"
                f" create one of {', '.join(path[1:] for path in SERVED)} in it"
            )
        return bodies

    def _check(self) -> None:
        for url, fetched in self.judging.items():
            file = File(url, accepted(url, fetched))
            if not file.is_present:
                raise PolicyError(
                    f"{url}: {file.outcome}: every crawler would reject it, so correct the file"
                )

    def _read_references(self) -> None:
        """Read the files that other files refer to, because they may refuse requests too."""
        for reference in Site.from_files(self.origin, self.fetched).referred_files:
            if not reference.url:
                raise PolicyError(
                    f"{reference.source} has an invalid reference: write a path or a URL"
                )
            if reference.url not in self.bodies:
                self.bodies[reference.url] = self._read_reference(
                    reference.url, f"{reference.source} refers to it"
                )
        self._check()

    def _read_reference(self, url: str, reason: str) -> bytes:
        if self._folder is None:
            raise PolicyError(f"{url} is missing: {reason}, so add it to `files`")
        parts = urlsplit(url)
        host = "" if origin_of(url) == self.origin else parts.netloc
        return _read(self._folder / host / parts.path.lstrip("/"), f"{reason}, so create it")


def media_type(url: str) -> str:
    """Return the media type for serving a file."""
    path = urlsplit(url).path
    return _MEDIA_TYPES.get(path) or (
        "application/json" if path.endswith(".json") else "text/plain; charset=utf-8"
    )


def _response(url: str, body: bytes) -> Fetched:
    return Fetched(status=200, headers=((b"Content-Type", media_type(url).encode()),), body=body)


def _read(file: Path, remedy: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise PolicyError(f"{file} cannot be read ({error.strerror}): {remedy}") from None
