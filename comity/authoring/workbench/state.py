"""The state of the workbench: the files of a site, what somebody asks about them, and what follows. Nothing here does I/O.

State(origin, files, pages, choices)   what there is; `edited` and `chosen` return a new one
view_of(state)                         what it means: problems, answers, elements, the prompt and the other form of ai.txt"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urljoin

from comity.authoring.lint import lint_site
from comity.authoring.problems import Problem
from comity.authoring.source import Source, SourceFile
from comity.authoring.workbench.preview import Preview, preview_of
from comity.gate.explanation import explain
from comity.policies import Agent, Fetched, PolicyError, Site, instructions
from comity.policies.formats import WELL_KNOWN
from comity.policies.formats.ai_txt.conversion import other_form
from comity.policies.formats.ai_txt.file import PATH as AI_PATH
from comity.policies.formats.authoring import Fix, apply
from comity.policies.syntax.printable import HIDDEN, printable
from comity.policies.syntax.urls import origin_of

MAX_URLS = 20  # that are asked about at once
MAX_FILE = (
    512 * 1024
)  # octets of a file that is shown: what crawlers read of a robots.txt, and more
MAX_FIELD = 8192  # characters of one choice

_BOM = "\ufeff"
_LINE_END = re.compile(r"\r\n|\r|\n")
_SEPARATORS = re.compile(r"[\s,]+")


class Choices(NamedTuple):
    """The fields of the form, as they were typed."""

    agent: str = "comitybot"
    purposes: str = ""  # words, with commas or spaces between
    uses: str = ""
    urls: str = "/"  # a path or URL a line
    detail: str = ""  # URL of those whose answer is shown in full; "": the first
    page: str = ""  # URL of the sample page; "": none
    action: str = "Train"  # on elements, and of the prompt
    lang: str = ""  # of guidelines


class Text(NamedTuple):
    """A file as an editor shows it, and what it takes to get the same octets back."""

    text: str  # lines end with LF
    line_end: str = "\n"
    has_bom: bool = False
    is_editable: bool = True  # the octets can be had back
    note: str = ""  # what its author should know

    def octets(self, text: str) -> bytes:
        """Return a text as a file of this kind."""
        return ((_BOM if self.has_bom else "") + text.replace("\n", self.line_end)).encode(
            "utf-8", "replace"
        )


def text_of(body: bytes) -> Text:
    """Return a file as text. What is no UTF-8, or too long, is shown and not edited."""
    if len(body) > MAX_FILE:
        beginning = body[:MAX_FILE].decode("utf-8", "replace")
        note = f"The file has more than {MAX_FILE // 1024} KiB: its beginning is shown, and it cannot be changed here."
        return Text(_unix(beginning), is_editable=False, note=note)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        note = (
            "The file is not in UTF-8: it is shown as far as it can be, and cannot be changed here."
        )
        return Text(_unix(body.decode("utf-8", "replace")), is_editable=False, note=note)
    has_bom = text.startswith(_BOM)
    text = text.removeprefix(_BOM)
    ends = set(_LINE_END.findall(text))
    if len(ends) > 1:
        return Text(
            _unix(text),
            has_bom=has_bom,
            note="Its lines end in several ways: when it is changed, all end with LF.",
        )
    return Text(_unix(text), next(iter(ends), "\n"), has_bom)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Hidden(NamedTuple):
    """A character that would not be seen, or changes how others are seen. Offsets count characters of the text."""

    offset: int
    name: str  # "U+202E"


def hidden_in(text: str) -> list[Hidden]:
    """Return the characters of a text that are not to be seen."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return []
    return [
        Hidden(offset, f"U+{ord(char):04X}")
        for offset, char in enumerate(text)
        if char not in "\n\t" and unicodedata.category(char) in HIDDEN
    ]


@dataclass(frozen=True)
class State:
    """The files of a site, and what is asked about them."""

    origin: str
    files: Mapping[str, Fetched]  # absolute URL -> policy file
    pages: Mapping[str, Fetched]  # absolute URL -> sample page
    choices: Choices

    @cached_property
    def site(self) -> Site:
        return Site.from_files(self.origin, dict(self.files))

    @property
    def documents(self) -> Mapping[str, Fetched]:
        return {**self.files, **self.pages}

    @property
    def missing(self) -> tuple[str, ...]:
        """The URLs of policy files that the site could have and has not."""
        return tuple(url for path in WELL_KNOWN if (url := self.origin + path) not in self.files)

    def name(self, url: str) -> str:
        """Return how a file is called: its path, or the URL of one on another host."""
        return url.removeprefix(self.origin) or "/"

    def edited(self, url: str, body: bytes) -> State:
        """Return the state with a file changed, or added."""
        fetched = Fetched(
            status=200,
            headers=self.documents[url].headers if url in self.documents else (),
            body=body,
        )
        if url in self.pages:
            return replace(self, pages={**self.pages, url: fetched})
        return replace(self, files={**self.files, url: fetched})

    def chosen(self, **choices: str) -> State:
        """Return the state with other choices. What is longer than any answer is cut."""
        cut = {name: value[:MAX_FIELD] for name, value in choices.items()}
        return replace(self, choices=self.choices._replace(**cut))

    def problems(self) -> dict[str, list[Problem]]:
        """Return what is wrong with each policy file, and with the sample page: absolute URL -> problems."""
        page = self.choices.page
        pages = {page: self.pages[page]} if page in self.pages else {}
        source = Source(self.origin, self.site, _as_files(self.files), _as_files(pages))
        problems: dict[str, list[Problem]] = {url: [] for url in (*self.files, *pages)}
        for problem in lint_site(source):
            if problem.file in problems:
                problems[problem.file].append(problem)
        return problems

    def mended(self, url: str, fix: Fix) -> State:
        """Return the state with a fix made."""
        return self.edited(url, apply(self.documents[url].body, [fix])[0])

    def agent(self) -> Agent:
        """Return who asks. PolicyError where that is no name of a crawler."""
        return Agent(
            self.choices.agent.strip(),
            purposes=words(self.choices.purposes),
            uses=words(self.choices.uses),
        )

    def urls(self) -> tuple[str, ...]:
        """Return the URLs that are asked about, each once. PolicyError where one is none of this site."""
        lines = [line.strip() for line in self.choices.urls.splitlines() if line.strip()]
        if len(lines) > MAX_URLS:
            raise PolicyError(f"{len(lines)} URLs: write {MAX_URLS} at most")
        return tuple(dict.fromkeys(map(self._url, lines)))

    def _url(self, line: str) -> str:
        try:
            url = urljoin(self.origin + "/", line)
            is_own = origin_of(url) == self.origin
        except ValueError as error:
            raise PolicyError(f"`{printable(line)}`: {error}") from None
        if not is_own:
            raise PolicyError(
                f"`{printable(line)}` is not of {self.origin}: write a path, e.g. /news/"
            )
        return url


def _as_files(documents: Mapping[str, Fetched]) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(url, url, fetched) for url, fetched in documents.items())


def words(text: str) -> tuple[str, ...]:
    """Return words with commas or spaces between, each once."""
    return tuple(dict.fromkeys(word for word in _SEPARATORS.split(text) if word))


class View(NamedTuple):
    """The meaning of a state."""

    problems: Mapping[str, list[Problem]]  # URL of a file -> what is wrong with it
    answers: tuple[
        dict[str, Any], ...
    ]  # as `explain` has them, one for each URL that is asked about
    detail: dict[str, Any] | None  # the answer that is shown in full
    question_error: str  # why there are none; ""
    other_form: str  # ai.txt as XML, or as text where it is XML
    is_other_text: bool  # it is text: what was written is XML
    form_notes: tuple[str, ...]  # what its author should know, or why there is none
    prompt: str
    prompt_error: str
    preview: Preview | None  # of the sample page


def view_of(state: State) -> View:
    """Return what a state means."""
    problems = state.problems()
    form, is_text, notes = _other_form(state)
    try:
        agent, urls = state.agent(), state.urls()
    except PolicyError as error:
        return View(problems, (), None, str(error), form, is_text, notes, "", str(error), None)
    answers = tuple(explain(state.site, agent, url, response=state.pages.get(url)) for url in urls)
    detail = next(
        (answer for answer in answers if answer["url"] == state.choices.detail),
        next(iter(answers), None),
    )
    prompt, prompt_error, preview = "", "", None
    url = state.choices.page or next(iter(urls), "")
    if url:
        fetched = state.pages.get(url)
        page = (
            state.site.page(
                agent, url, status=fetched.status, headers=fetched.headers, body=fetched.body
            )
            if fetched
            else state.site.page(agent, url, body=None)
        )
        try:
            prompt = instructions(page, state.choices.action, state.choices.lang.strip())
        except PolicyError as error:
            prompt_error = str(error)
        preview = preview_of(page, fetched, state.choices.action) if fetched else None
    return View(problems, answers, detail, "", form, is_text, notes, prompt, prompt_error, preview)


def _other_form(state: State) -> tuple[str, bool, tuple[str, ...]]:
    url = state.origin + AI_PATH
    fetched = state.files.get(url, Fetched(status=404))
    is_xml = fetched.body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    try:
        form, notes = other_form(state.name(url), fetched, is_xml=is_xml)
    except PolicyError as error:
        return "", is_xml, (str(error),)
    return form.decode(), is_xml, notes
