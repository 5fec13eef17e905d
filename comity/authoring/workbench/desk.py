"""The desk of the workbench: the open files, and their saved versions.

desk_of(target)        open a folder or a site, or the demonstration site
Desk.save(...)         save a file into the folder
Workbench.open(...)    open another folder or site for the page"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from comity.authoring.expectations.documents import DEFAULT_FILE, read_document
from comity.authoring.expectations.sentences import write
from comity.authoring.sites import is_url, load
from comity.authoring.workbench.expectations import file_with_sentences
from comity.authoring.workbench.folder import Folder
from comity.authoring.workbench.state import Choices, State
from comity.crawler import demo
from comity.gate.fetching.reach import Reach
from comity.policies import Fetched, PolicyError
from comity.policies.formats import WELL_KNOWN
from comity.policies.syntax.printable import printable

DEMO = "https://demo.example"  # RFC 2606 reserves it for examples
_PAGES = ("text/html", "application/json", "application/xml")
_SAMPLE = "/features/lamp.html"
_PATHS = "/\n/news/1.html\n/private/diary.html\n/features/lamp.html"


@dataclass
class Desk:
    """The open files of a site.

    Attributes:
        title: The name of the site, for people.
        start: The files as they were opened.
        folder: The folder to save files in. None means that files cannot be saved.
        notes: Sentences about files and pages that could not be read.
        reach: The reach of the site's server.
        saved: The files as they were read or saved last, by absolute URL.
        sentences: The sentences as they were read or saved last, one in each line.
        sentences_file: expectations.toml as it was read or saved last. None: it does not exist, or
            its sentences are not understood.
    """

    title: str
    start: State
    folder: Folder | None = None
    notes: tuple[str, ...] = ()
    reach: Reach = Reach.PUBLIC
    saved: dict[str, Fetched] = field(default_factory=dict)
    sentences: str = ""
    sentences_file: bytes | None = None

    def __post_init__(self) -> None:
        self.saved = dict(self.start.documents)
        self.sentences = self.start.choices.expectations

    def state(self) -> State:
        """Return a state with the saved files, and the choices of the start."""
        files = {url: file for url, file in self.saved.items() if url not in self.start.pages}
        pages = {url: file for url, file in self.saved.items() if url in self.start.pages}
        state = replace(self.start, files=files, pages=pages)
        return state.with_choices(expectations=self.sentences)

    def unsaved_urls(self, state: State) -> list[str]:
        """Return the URLs of files that differ from their saved versions."""
        return [
            url
            for url, file in state.documents.items()
            if url not in self.saved or self.saved[url].body != file.body
        ]

    def save(self, state: State, url: str, *, is_sure: bool = False) -> None:
        """Write a file into the folder.

        `is_sure`: True writes the file even if the file on the disk has changed.
        PolicyError: the file cannot be written.
        ChangedError: the file on the disk has changed since it was read or saved."""
        if self.folder is None:
            raise PolicyError("there is no folder to save to: open one")
        expected = self.saved[url].body if url in self.saved else None
        self.folder.save(url, state.documents[url].body, expected=expected, is_sure=is_sure)
        self.saved[url] = state.documents[url]

    def has_unsaved_sentences(self, state: State) -> bool:
        return self.folder is not None and state.choices.expectations != self.sentences

    def save_sentences(self, state: State, *, is_sure: bool = False) -> None:
        """Write the sentences into expectations.toml of the folder, as `comity check` reads them.

        `is_sure`: True writes them even if the file on the disk has changed.
        PolicyError: a sentence is not understood, or the file cannot be written.
        ChangedError: the file on the disk has changed since it was read or saved."""
        if self.folder is None:
            raise PolicyError("there is no folder to save to: open one")
        url = f"{state.origin}/{DEFAULT_FILE}"
        old = self.folder.read(url)
        body = file_with_sentences(state, old)
        self.folder.save(url, body, expected=self.sentences_file, is_sure=is_sure)
        self.sentences, self.sentences_file = state.choices.expectations, body

    def reread_sentences(self, state: State) -> State:
        """Read the sentences from the disk again, and return the state with them.

        PolicyError: the file cannot be read, or a sentence in it is not understood."""
        self.sentences, self.sentences_file = _expectations(self.folder, state.origin)
        return state.with_choices(expectations=self.sentences)

    def reread(self, state: State, url: str) -> State:
        """Read a file from the disk again, and return the state with this version.

        PolicyError: the file does not exist any more, or cannot be read."""
        body = self.folder.read(url) if self.folder else None
        if body is None:
            raise PolicyError(
                f"{state.name(url)} does not exist any more: save it to write it again"
            )
        state = state.with_file(url, body)
        self.saved[url] = state.documents[url]
        return state


class Workbench:
    """The desk that is shown, and the limits for opening further desks from the page.

    The page may open less than the user who starts the program. Sites must be at public addresses.
    If the program was started with a site at an inner address, inner addresses of the same kind are
    allowed, too. Folders must be below the current folder of the program, or below the folder that
    the program was started with."""

    def __init__(self, start: Desk, folder: Path | None = None) -> None:
        """`start`: the desk of the target that the program was started with.
        `folder`: the folder in which the program was started. None means the current folder."""
        self.desk = start
        self._reach = start.reach
        roots = [folder or Path(), start.folder.root] if start.folder else [folder or Path()]
        self._roots = tuple(dict.fromkeys(root.resolve() for root in roots))
        self._lock = Lock()

    def open(self, target: str) -> Desk:
        """Return the desk of a folder or a site. The caller sets `desk` to show it.

        PolicyError: the target cannot be read or may not be opened, or a call of `open` for another
        target has not returned yet."""
        if not self._lock.acquire(blocking=False):
            raise PolicyError(
                "another folder or URL is being opened already: wait until it is open"
            )
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
            raise PolicyError(f"`{printable(target)}` is not a folder") from None
        if not any(folder.is_relative_to(root) for root in self._roots):
            roots = " or ".join(printable(str(root)) for root in self._roots)
            raise PolicyError(
                f"`{printable(target)}` is not below {roots}: start `comity workbench` with it"
            )
        return folder


def desk_of(
    target: str | None, *, origin: str | None = None, referrer_reach: Reach | None = None
) -> Desk:
    """Return the desk of a target.

    `target`: a folder or URL. None means the demonstration site.
    `origin`, `referrer_reach`: see `comity.authoring.sites.load`.
    PolicyError: the target cannot be read."""
    if target is None:
        return Desk("the demonstration site", _demo())
    source = load(target, origin=origin, referrer_reach=referrer_reach)
    files = {file.url: file.fetched for file in source.files}
    pages = {file.url: file.fetched for file in source.pages}
    names = {file.url: file.name for file in (*source.files, *source.pages)}
    folder = None if is_url(target) else Folder(Path(target), source.origin, names)
    page = next(iter(pages), "")
    state = State(source.origin, files, pages, Choices(page=page), names)
    notes = [*source.notes, *source.place_notes]
    sentences, sentences_file = "", None
    try:
        sentences, sentences_file = _expectations(folder, source.origin)
    except PolicyError as error:
        notes.append(str(error))
    return Desk(
        target,
        state.with_choices(urls=_paths(state, pages), expectations=sentences),
        folder,
        tuple(notes),
        source.reach,
        sentences_file=sentences_file,
    )


def _expectations(folder: Folder | None, origin: str) -> tuple[str, bytes | None]:
    """Return the sentences of expectations.toml in a folder, one per line, and the file.

    The file is None if there is none. PolicyError: it cannot be read, or is outside of the
    folder."""
    body = folder.read(f"{origin}/{DEFAULT_FILE}") if folder else None
    if folder is None or body is None:
        return "", None
    document = read_document(folder.path(f"{origin}/{DEFAULT_FILE}"))
    return "\n".join(write(sentence.meaning) for sentence in document.sentences), body


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
