"""What the workbench was started with, and what is saved of it.

desk_of(target)        the files of a folder or a site, or of the demonstration site
Desk.save(...)         into the folder"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from comity.authoring.sites import load
from comity.authoring.workbench.folder import Folder
from comity.authoring.workbench.state import Choices, State
from comity.crawler import demo
from comity.policies import Fetched, PolicyError
from comity.policies.formats import WELL_KNOWN

DEMO = "https://demo.example"  # RFC 2606 keeps it for examples
_PAGES = ("text/html", "application/json", "application/xml")
_SAMPLE = "/features/lamp.html"
_PATHS = "/\n/news/1.html\n/private/diary.html\n/features/lamp.html"


@dataclass
class Desk:
    """What is worked on."""

    title: str
    start: State
    folder: Folder | None = None  # None: nothing can be saved
    notes: tuple[str, ...] = ()
    saved: dict[str, Fetched] = field(default_factory=dict)  # absolute URL -> the file as it was read or saved

    def __post_init__(self) -> None:
        self.saved = dict(self.start.documents)

    def state(self) -> State:
        """Return the files as they are saved."""
        files = {url: file for url, file in self.saved.items() if url not in self.start.pages}
        pages = {url: file for url, file in self.saved.items() if url in self.start.pages}
        return State(self.start.origin, files, pages, self.start.choices)

    def unsaved(self, state: State) -> list[str]:
        """Return the URLs of files that are not as they are saved."""
        return [url for url, file in state.documents.items() if url not in self.saved or self.saved[url].body != file.body]

    def save(self, state: State, url: str, *, is_sure: bool = False) -> None:
        """Write a file into the folder. PolicyError, ChangedError: it was not."""
        if self.folder is None:
            raise PolicyError("there is no folder to save to: start `comity workbench` with one")
        expected = self.saved[url].body if url in self.saved else None
        self.folder.save(url, state.documents[url].body, expected=expected, is_sure=is_sure)
        self.saved[url] = state.documents[url]

    def reread(self, state: State, url: str) -> State:
        """Return the state with the file as it is on the disk. PolicyError where it cannot be read."""
        body = self.folder.read(url) if self.folder else None
        if body is None:
            raise PolicyError(f"{state.name(url)} is no longer there")
        state = state.edited(url, body)
        self.saved[url] = state.documents[url]
        return state


def desk_of(target: str | None, *, origin: str | None = None) -> Desk:
    """Return what a user names: a folder, a URL, or nothing, which is the demonstration site. PolicyError."""
    if target is None:
        return Desk("the demonstration site", _demo())
    source = load(target, origin=origin)
    files = {file.url: file.fetched for file in source.files}
    pages = {file.url: file.fetched for file in source.pages}
    is_folder = "://" not in target
    names = {file.url: file.name for file in (*source.files, *source.pages)}
    folder = Folder(Path(target), source.origin, names) if is_folder else None
    page = next(iter(pages), "")
    state = State(source.origin, files, pages, Choices(page=page))
    return Desk(target, state.chosen(urls=_paths(state, pages)), folder, source.notes)


def _paths(state: State, pages: Mapping[str, Fetched]) -> str:
    return "\n".join(dict.fromkeys(["/", *[state.name(url) for url in pages][:4]]))


def _demo() -> State:
    files, pages = {}, {}
    for path, fetched in demo.files(DEMO).items():
        media_type = fetched.header(b"Content-Type").decode().partition(";")[0]
        if path in WELL_KNOWN or media_type == "text/plain":
            files[DEMO + path] = fetched
        elif media_type in _PAGES and fetched.status == 200:
            pages[DEMO + path] = fetched
    return State(DEMO, files, pages, Choices(page=DEMO + _SAMPLE, urls=_PATHS))
