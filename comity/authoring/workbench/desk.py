"""The desk of the workbench: what is worked on, and what is saved of it.

desk_of(target)        the files of a folder or a site, or of the demonstration site
Desk.save(...)         into the folder
Workbench.open(...)    another folder or site, as the page asks for it"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from comity.authoring.sites import is_url, load
from comity.authoring.workbench.folder import Folder
from comity.authoring.workbench.state import Choices, State
from comity.crawler import demo
from comity.gate.fetching.reach import Reach
from comity.policies import Fetched, PolicyError
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.printable import printable

DEMO = "https://demo.example"  # RFC 2606 keeps it for examples
_PAGES = ("text/html", "application/json", "application/xml")
_SAMPLE = "/features/lamp.html"
_PATHS = "/\n/news/1.html\n/private/diary.html\n/features/lamp.html"


@dataclass
class Desk:
    """The files of a site that are worked on."""

    title: str
    start: State
    folder: Folder | None = None  # None: nothing can be saved
    notes: tuple[str, ...] = ()
    reach: Reach = Reach.PUBLIC  # of the server of the site
    saved: dict[str, Fetched] = field(
        default_factory=dict
    )  # absolute URL -> the file as it was read or saved

    def __post_init__(self) -> None:
        self.saved = dict(self.start.documents)

    def state(self) -> State:
        """Return the files as they are saved."""
        files = {url: file for url, file in self.saved.items() if url not in self.start.pages}
        pages = {url: file for url, file in self.saved.items() if url in self.start.pages}
        return State(self.start.origin, files, pages, self.start.choices)

    def unsaved(self, state: State) -> list[str]:
        """Return the URLs of files that are not as they are saved."""
        return [
            url
            for url, file in state.documents.items()
            if url not in self.saved or self.saved[url].body != file.body
        ]

    def save(self, state: State, url: str, *, is_sure: bool = False) -> None:
        """Write a file into the folder. PolicyError, ChangedError: it was not."""
        if self.folder is None:
            raise PolicyError("there is no folder to save to: open one")
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


class Workbench:
    """The desk that was opened last, and what may be opened from the page.

    A page can ask for less than who starts the program. Sites are asked where the one that was named then may lead: at public
    addresses, and where that one is at an inner address, at those of its kind. Folders are those below the one that was named,
    and below the one in which the program was started."""

    def __init__(self, start: Desk, folder: Path | None = None) -> None:
        """`folder`: in which the program was started; None: the one that it is in now."""
        self.desk = start
        self._reach = start.reach
        roots = [folder or Path(), start.folder.root] if start.folder else [folder or Path()]
        self._roots = tuple(dict.fromkeys(root.resolve() for root in roots))
        self._lock = Lock()

    def open(self, target: str) -> Desk:
        """Return the files of a folder or a site, which are not shown before `desk` is set. PolicyError."""
        if not self._lock.acquire(blocking=False):
            raise PolicyError("something is being opened already: wait until it is there")
        try:
            if is_url(target):
                return desk_of(target, referrer_reach=self._reach)
            return desk_of(str(self._folder(target)))
        finally:
            self._lock.release()

    def _folder(self, target: str) -> Path:
        try:
            folder = (self._roots[0] / Path(target).expanduser()).resolve()
        except (OSError, ValueError, RuntimeError):
            raise PolicyError(f"`{printable(target)}` is no folder") from None
        if not any(folder.is_relative_to(root) for root in self._roots):
            raise PolicyError(
                f"`{printable(target)}` is not below {' or '.join(printable(str(root)) for root in self._roots)}: "
                "start `comity workbench` with it"
            )
        return folder


def desk_of(
    target: str | None, *, origin: str | None = None, referrer_reach: Reach | None = None
) -> Desk:
    """Return what a user names: a folder, a URL, or nothing, which is the demonstration site. PolicyError.

    `referrer_reach`: as of `load`."""
    if target is None:
        return Desk("the demonstration site", _demo())
    source = load(target, origin=origin, referrer_reach=referrer_reach)
    files = {file.url: file.fetched for file in source.files}
    pages = {file.url: file.fetched for file in source.pages}
    names = {file.url: file.name for file in (*source.files, *source.pages)}
    folder = None if is_url(target) else Folder(Path(target), source.origin, names)
    page = next(iter(pages), "")
    state = State(source.origin, files, pages, Choices(page=page))
    return Desk(
        target,
        state.chosen(urls=_paths(state, pages)),
        folder,
        (*source.notes, *source.place_notes),
        source.reach,
    )


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
