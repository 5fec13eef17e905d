"""The state of the workbench: the files of a site, and the choices of the user. It has no I/O.

State(origin, files, pages, choices)   the state; `with_file` and `with_choices` return a new one
view_of(state)                         its view: problems, answers, elements and so on"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urljoin

from comity.authoring.expectations.sentences import EVERYBODY
from comity.authoring.explaining import unnamed_token
from comity.authoring.lint import lint_site
from comity.authoring.problems import Problem
from comity.authoring.source import SiteSource, SourceFile
from comity.authoring.stated_wishes import texts_to_add
from comity.authoring.wishes import WISHES
from comity.authoring.wishes.files import WishFiles, write_files
from comity.authoring.wishes.wish import Wish
from comity.authoring.workbench.preview import Preview, preview_of
from comity.gate.explanation import explain
from comity.policies import Agent, Fetched, PolicyError, Site, instructions
from comity.policies.formats import WELL_KNOWN
from comity.policies.formats.ai_txt.conversion import other_form
from comity.policies.formats.ai_txt.file import PATH as AI_PATH
from comity.policies.formats.authoring import Fix, apply
from comity.policies.syntax.printable import HIDDEN, printable
from comity.policies.syntax.urls import origin_of

MAX_URLS = 20  # the maximum number of URLs in one view
# The maximum octets of a file in the editor. Crawlers have to read 500 KiB of a robots.txt.
MAX_FILE = 512 * 1024
MAX_FIELD = 8192  # the maximum characters of one choice

_BOM = "\ufeff"
_LINE_END = re.compile(r"\r\n|\r|\n")
_SEPARATORS = re.compile(r"[\s,]+")


class Choices(NamedTuple):
    """The fields of the form, as the user typed them.

    Attributes:
        agent: The product token of the crawler. "" and "everybody" mean a crawler that the files do
            not name.
        purposes: Purposes of the crawl, with commas or spaces between them.
        uses: Uses of the content, with commas or spaces between them.
        urls: Paths or URLs, one in each line.
        detail: The URL with the detailed answer. "" means the first one.
        page: The URL of the sample page. "" means none.
        action: The action that the preview of elements and the prompt are about.
        lang: The language of guidelines. "" means any.
        expectations: Sentences about the site, one in each line.
    """

    agent: str = ""
    purposes: str = ""
    uses: str = ""
    urls: str = "/"
    detail: str = ""
    page: str = ""
    action: str = "Train"
    lang: str = ""
    expectations: str = ""


class EditedText(NamedTuple):
    """A file as text for the editor, with the facts that are needed to turn it into octets again.

    Attributes:
        text: The text. Its lines end with LF.
        line_end: The line end of the file.
        has_bom: True if the file begins with a byte order mark.
        is_editable: True if the octets can be restored from the text.
        note: A sentence for the author, or "".
    """

    text: str
    line_end: str = "\n"
    has_bom: bool = False
    is_editable: bool = True
    note: str = ""

    def octets(self, text: str) -> bytes:
        """Return a text as octets, with the line end and byte order mark of this file."""
        return ((_BOM if self.has_bom else "") + text.replace("\n", self.line_end)).encode(
            "utf-8", "replace"
        )


def text_of(body: bytes) -> EditedText:
    """Return a file as text. A file that is not UTF-8, or larger than MAX_FILE, is not editable."""
    if len(body) > MAX_FILE:
        beginning = body[:MAX_FILE].decode("utf-8", "replace")
        note = (
            f"The file has more than {MAX_FILE // 1024} KiB: "
            "its beginning is shown, and it cannot be changed here."
        )
        return EditedText(_unix(beginning), is_editable=False, note=note)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        note = (
            "The file is not in UTF-8: it is shown as far as it can be, and cannot be changed here."
        )
        return EditedText(_unix(body.decode("utf-8", "replace")), is_editable=False, note=note)
    has_bom = text.startswith(_BOM)
    text = text.removeprefix(_BOM)
    ends = set(_LINE_END.findall(text))
    if len(ends) > 1:
        return EditedText(
            _unix(text),
            has_bom=has_bom,
            note="Its lines end in several ways: when it is changed, all end with LF.",
        )
    return EditedText(_unix(text), next(iter(ends), "\n"), has_bom)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Hidden(NamedTuple):
    """An invisible character, or one that changes the look of others.

    Attributes:
        offset: Its place in the text, in characters.
        name: Its code point: "U+202E".
    """

    offset: int
    name: str


def hidden_in(text: str) -> list[Hidden]:
    """Return the hidden characters of a text."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return []
    return [
        Hidden(offset, f"U+{ord(char):04X}")
        for offset, char in enumerate(text)
        if char not in "\n\t" and unicodedata.category(char) in HIDDEN
    ]


@dataclass(frozen=True)
class State:
    """The files of a site, and the choices of the user.

    Attributes:
        origin: The origin of the site.
        files: The policy files, by absolute URL.
        pages: The sample pages, by absolute URL.
        choices: The choices.
        names: The names of files on this machine, by absolute URL. `.comity.toml` beside or above
            them says which findings to ignore.
    """

    origin: str
    files: Mapping[str, Fetched]
    pages: Mapping[str, Fetched]
    choices: Choices
    names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def site(self) -> Site:
        return Site.from_files(self.origin, dict(self.files))

    @property
    def documents(self) -> Mapping[str, Fetched]:
        return {**self.files, **self.pages}

    @property
    def missing(self) -> tuple[str, ...]:
        """The URLs of policy files that the site does not have yet."""
        return tuple(url for path in WELL_KNOWN if (url := self.origin + path) not in self.files)

    def name(self, url: str) -> str:
        """Return the name of a file: its path, or its URL if it belongs to another host."""
        return url.removeprefix(self.origin) or "/"

    def with_file(self, url: str, body: bytes) -> State:
        """Return the state with a new version of a file, or with a further file."""
        fetched = Fetched(
            status=200,
            headers=self.documents[url].headers if url in self.documents else (),
            body=body,
        )
        if url in self.pages:
            return replace(self, pages={**self.pages, url: fetched})
        return replace(self, files={**self.files, url: fetched})

    def with_choices(self, **choices: str) -> State:
        """Return the state with some choices replaced. Each is cut at MAX_FIELD characters."""
        cut = {name: value[:MAX_FIELD] for name, value in choices.items()}
        return replace(self, choices=self.choices._replace(**cut))

    def problems(self) -> dict[str, list[Problem]]:
        """Return the problems of the policy files and the sample page, by absolute URL."""
        page = self.choices.page
        pages = {page: self.pages[page]} if page in self.pages else {}
        files = _as_files(self.files, self.names), _as_files(pages, self.names)
        source = SiteSource(self.origin, self.site, *files)
        problems: dict[str, list[Problem]] = {url: [] for url in (*self.files, *pages)}
        for problem in lint_site(source):
            if problem.finding.url in problems:
                problems[problem.finding.url].append(problem)
        return problems

    def source(self) -> SiteSource:
        """Return all files and pages. The names of files are their URLs."""
        return SiteSource(
            self.origin, self.site, _as_files(self.files, {}), _as_files(self.pages, {})
        )

    def with_fixes(self, url: str, fixes: Iterable[Fix]) -> State:
        """Return the state with all fixes applied to a file that can be applied together."""
        return self.with_file(url, apply(self.documents[url].body, fixes)[0])

    def with_wish(
        self, wish: Wish, values: Mapping[str, str], formats: Iterable[str] = ()
    ) -> tuple[State, WishFiles, tuple[str, ...]]:
        """Return the state with the files of a wish, the wish, and the URLs of changed files.

        Lines are added to a file that exists only if every decision stays as it was, or is that of
        the wish.
        `values`, `formats`: see `write_files`. Without an origin, it is the one of the site.
        PolicyError: a value is missing or malformed, or lines cannot be added to a file."""
        for parameter in wish.parameters:
            if parameter.name == "crawlers" and "crawlers" not in values:
                raise PolicyError("write the names of the crawlers, such as GPTBot")
        if any(parameter.name == "origin" for parameter in wish.parameters):
            values = {"origin": self.origin, **values}
        files = write_files(wish, values, formats)
        texts = {
            self.name(url): file.body.decode("utf-8", "replace") for url, file in self.files.items()
        }
        added = texts_to_add(files.texts, texts)
        if added is None:
            raise PolicyError(
                f"{' and '.join(files.texts)} cannot take the lines for `{wish.title}`: they would"
                f" change other decisions. `comity new {wish.name}` prints them"
            )
        state = self
        for path, text in added.items():
            url = self.origin + path
            if url not in self.files:
                state = state.with_file(url, text.encode())
                continue
            edited = text_of(self.files[url].body)
            if not edited.is_editable:
                raise PolicyError(f"{path} cannot be changed here")
            state = state.with_file(url, edited.octets(edited.text + text))
        return state, files, tuple(self.origin + path for path in added)

    @property
    def agent_name(self) -> str:
        """The name of the crawler as typed, or EVERYBODY."""
        return self.choices.agent.strip() or EVERYBODY

    def agent(self) -> Agent:
        """Return the agent of the choices. PolicyError: its name is no product token."""
        name = self.agent_name
        return Agent(
            unnamed_token(self.site) if name.lower() == EVERYBODY else name,
            purposes=words(self.choices.purposes),
            uses=words(self.choices.uses),
        )

    def urls(self) -> tuple[str, ...]:
        """Return the URLs of the choices, each once.

        PolicyError: a URL is invalid or belongs to another site, or there are too many."""
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


def wish_named(name: object) -> Wish | None:
    """Return the wish with a name, or None."""
    return next((wish for wish in WISHES if wish.name == name), None)


def wish_values(wish: Wish, fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a wish from the fields of its form. Empty fields are left out."""
    return {
        parameter.name: value
        for parameter in wish.parameters
        if (value := str(fields.get(parameter.name) or "")[:MAX_FIELD].strip())
    }


def safe_fixes(problems: Iterable[Problem]) -> list[Fix]:
    """Return the fixes that change no decision. The others are applied one by one."""
    return [fix for problem in problems if (fix := problem.fix) and not fix.changes_decisions]


def _as_files(documents: Mapping[str, Fetched], names: Mapping[str, str]) -> tuple[SourceFile, ...]:
    return tuple(
        SourceFile(names.get(url, url), url, fetched) for url, fetched in documents.items()
    )


def words(text: str) -> tuple[str, ...]:
    """Return the words in a text, each once. Commas and spaces separate them."""
    return tuple(dict.fromkeys(word for word in _SEPARATORS.split(text) if word))


class View(NamedTuple):
    """The meaning of a state.

    Attributes:
        problems: The problems of each file, by absolute URL.
        answers: The results of `explain`, one for each URL of the choices.
        detail: The answer with details. None means that there are no answers.
        question_error: The error in the choices, which prevents answers, or "".
        other_form: The ai.txt as XML, or as text if the file is XML. "" means that there is none.
        is_other_text: True if the other form is text, because the file is XML.
        form_notes: Sentences for the author, or the reason why there is no other form.
        prompt: The prompt for a model.
        prompt_error: The reason why there is no prompt, or "".
        preview: The preview of the sample page. None means that no page is chosen.
    """

    problems: Mapping[str, list[Problem]]
    answers: tuple[dict[str, Any], ...]
    detail: dict[str, Any] | None
    question_error: str
    other_form: str
    is_other_text: bool
    form_notes: tuple[str, ...]
    prompt: str
    prompt_error: str
    preview: Preview | None


# The view before the first state is read.
EMPTY_VIEW = View(
    problems={},
    answers=(),
    detail=None,
    question_error="",
    other_form="",
    is_other_text=False,
    form_notes=(),
    prompt="",
    prompt_error="",
    preview=None,
)


def view_of(state: State) -> View:
    """Return the view of a state."""
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
            state.site.page(agent, url, headers=fetched.headers, body=fetched.body)
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
    """Return `other_form`, `is_other_text` and `form_notes` of a View."""
    url = state.origin + AI_PATH
    fetched = state.files.get(url, Fetched(status=404))
    is_xml = fetched.body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    try:
        form, notes = other_form(state.name(url), fetched, is_xml=is_xml)
    except PolicyError as error:
        return "", is_xml, (str(error),)
    return form.decode(), is_xml, notes
