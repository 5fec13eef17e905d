"""The page of the workbench, by NiceGUI.

Each input makes a new state, and the page shows the view of this state (`view_of`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from lsprotocol.types import Position
from nicegui import background_tasks, context, run, ui
from nicegui.events import GenericEventArguments, ValueChangeEventArguments

from comity.authoring.expectations.documents import DEFAULT_FILE
from comity.authoring.wishes.wish import Wish
from comity.authoring.workbench import markup
from comity.authoring.workbench.desk import Desk, Workbench
from comity.authoring.workbench.expectations import (
    check_sentences,
    sentences_today,
    with_sentences,
)
from comity.authoring.workbench.folder import ChangedError
from comity.authoring.workbench.help import Colour, colours, completions, hover
from comity.authoring.workbench.link import fragment_of, restore_state
from comity.authoring.workbench.preview import reasons_of
from comity.authoring.workbench.state import (
    EMPTY_VIEW,
    Choices,
    EditedText,
    State,
    View,
    hidden_in,
    safe_fixes,
    text_of,
    view_of,
    wish_named,
    wish_values,
)
from comity.policies import PolicyError
from comity.policies.formats.authoring import Fix

Result = TypeVar("Result")

PAUSE = 0.4  # seconds without a change before sentences are checked
TYPING = 0.05  # seconds before the view is updated, so that several keys lead to one update
# The maximum number of problems, and of hidden characters, that the editor marks in one file.
MAX_MARKS = 500
MAX_TARGET = 2048  # the maximum characters of a folder or URL to open

# Listeners. One listener serves all buttons, or all fields, of a part of the page.
_ON_BUTTON = (
    "(e) => { const b = e.target.closest('button[data-act]'); if (b) emit({...b.dataset}); }"
)
_ON_FIELD = "(e) => { if (e.target.name) emit({name: e.target.name, value: e.target.value}); }"
_ON_WISH = """(e) => {
  e.preventDefault();
  const fields = new FormData(e.target);
  emit({...Object.fromEntries(fields), formats: fields.getAll('format')});
}"""
_ON_OPEN = "(e) => { e.preventDefault(); emit({target: e.target.elements.target.value}); }"

_HELP = (Path(__file__).parent / "editor.js").read_text("utf-8")
_START = """
const dark = matchMedia('(prefers-color-scheme: dark)');
dark.addEventListener('change', () => emitEvent('comity-dark', dark.matches));
addEventListener('hashchange', () => emitEvent('comity-link', location.hash));
addEventListener('beforeunload', (e) => {
  if (document.querySelector('[data-unsaved=true]')) e.preventDefault();
});
return {dark: dark.matches, link: location.hash};
"""
# Wait for the editor. Another file may have been opened by then.
_EDITOR = """
await Vue.nextTick();
const editor = getElement(%d);
if (!editor) return;
await editor.editorPromise;
"""
_LABEL = (
    _EDITOR
    + """
const content = editor.$el.querySelector('.cm-content');
content.setAttribute('aria-label', %s);
content.tabIndex = 0;
content.setAttribute('aria-describedby', 'editor-help');
comityEditor(editor.editor);
"""
)
_CURSOR = (
    _EDITOR
    + """
const state = editor.editor.state, head = state.selection.main.head, line = state.doc.lineAt(head);
return [line.number - 1, head - line.from];
"""
)
_TO_LINE = (
    _EDITOR
    + """
const view = editor.editor, line = view.state.doc.line(Math.min(%d, view.state.doc.lines));
view.dispatch({selection: {anchor: line.from}});
editor.revealLine(line.number);
view.focus();
"""
)
# The marks are not set as properties of the element, because its text would be sent along and
# replace new input.
_MARK = (
    _EDITOR
    + """
if (editor.editor.state.doc.toString() !== %s) return;  // newer marks follow
editor.setDecorations(%s);
"""
)


async def build(workbench: Workbench) -> None:
    """Build the page for one tab of the browser."""
    bench = Bench(workbench)
    bench.lay_out()
    await bench.begin()


class Bench:
    """One tab of the browser: its state, and the parts of the page."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._desk = workbench.desk
        self._waiting: Desk | None = None  # opened, but not shown before the user confirms it
        self._choice_buttons = ""  # the answers to the message in the status
        self._client = context.client
        self._state = self._desk.state()
        self._opened = next(iter(self._state.documents), "")
        self._text = EditedText("")
        self._view = EMPTY_VIEW
        self._editor: ui.codemirror | None = None
        self._is_dark = False
        self._latest = self._displayed = 0  # the numbers of the last state, and of the visible one
        self._is_busy = False
        self._chosen_wish: Wish | None = None
        self._names: frozenset[str] = frozenset()  # the crawlers of the files in the menu
        self._parts: dict[str, ui.html] = {}  # by their names in markup.py

    # ---- the parts

    def lay_out(self) -> None:
        """Create the parts of the page."""
        with ui.element("header").classes("bar"):
            self._html("<h1>comity workbench</h1>")
            self._title = self._html("", tag="p")
            self._html(markup.OPENING).on("submit", self._open_site, js_handler=_ON_OPEN)
            self._actions = self._html("").on("click", self._act, js_handler=_ON_BUTTON)
            self._status = self._html("").props("role=status aria-live=polite").classes("status")
        with (
            ui.element("section").props('aria-label="What do you want?"').classes("wish"),
            ui.element("form")
            .on("submit", self._add_wish, js_handler=_ON_WISH)
            .on("input", self._show_wish, js_handler=_ON_FIELD),
        ):
            self._html(markup.wishes())
            self._wish = self._html("")
        with ui.element("div").classes("bench"):
            with ui.element("nav").props('aria-label="Files"').classes("files"):
                self._part("files").on("click", self._act, js_handler=_ON_BUTTON)
            with ui.element("section").props('aria-label="What it means"').classes("meaning"):
                self._html("<h2>What crawlers may do</h2>")
                with (
                    ui.element("div")
                    .classes("form")
                    .on("input", self._choose, js_handler=_ON_FIELD)
                ):
                    self._part("crawlers")
                    self._part("form")
                    with ui.element("details").classes("wider"):
                        self._html("Another crawler, its purposes and uses", tag="summary")
                        self._part("other-crawler")
                        self._part("crawl-form").classes("form")
                self._part("answers").on("click", self._act, js_handler=_ON_BUTTON)
                self._html("<h2>Expectations</h2>")
                self._part("expectations-form").classes("form").on(
                    "input", self._choose, js_handler=_ON_FIELD
                )
                self._part("expectations-actions").on("click", self._act, js_handler=_ON_BUTTON)
                self._part("expectations").on("click", self._act, js_handler=_ON_BUTTON)
                self._html("<h2>Elements of the sample page</h2>")
                self._part("page-form").classes("form").on(
                    "input", self._choose, js_handler=_ON_FIELD
                )
                self._frame = ui.element("iframe").props(
                    'sandbox="" title="Sample page" referrerpolicy=no-referrer'
                )
                self._part("elements").on("click", self._act, js_handler=_ON_BUTTON)
                with ui.element("details"):
                    self._html("ai.txt in its other form", tag="summary")
                    self._part("other").on("click", self._act, js_handler=_ON_BUTTON)
                with ui.element("details"):
                    self._html("The prompt for a model", tag="summary")
                    self._part("prompt")
            with ui.element("section").props('aria-label="Editor"').classes("editing"):
                self._heading = self._html("")
                self._editor_box = (
                    ui.element("div")
                    .classes("place")
                    .on("click", self._act, js_handler=_ON_BUTTON)  # buttons in tooltips
                )
                self._html(
                    '<p id="editor-help" class="quiet">Escape, then Tab, leaves the editor. '
                    "Ctrl+S saves, Ctrl+Space completes a word, Ctrl+. explains the line.</p>"
                )
                self._html(markup.actions([("help", "Explain the line of the cursor")])).on(
                    "click", self._act, js_handler=_ON_BUTTON
                )
                self._line_help = (
                    self._html("")
                    .props(
                        'id=line-help role=region tabindex=-1 aria-label="The line of the cursor"'
                    )
                    .classes("help")
                    .on("click", self._act, js_handler=_ON_BUTTON)
                )
                self._part("problems").classes("problems").on(
                    "click", self._act, js_handler=_ON_BUTTON
                )

    @staticmethod
    def _html(content: str, tag: str = "div") -> ui.html:
        return ui.html(content, sanitize=False, tag=tag)  # markup.py escapes

    def _part(self, name: str) -> ui.html:
        """Create an empty part, which `_put_parts` fills."""
        self._parts[name] = self._html("")
        return self._parts[name]

    def _put_parts(self, parts: Mapping[str, str]) -> None:
        for name, content in parts.items():
            self._parts[name].content = content

    async def begin(self) -> None:
        """Restore the state in the address, and show it."""
        ui.on("comity-dark", self._darken)
        ui.on("comity-help", self._help)
        ui.on("comity-link", lambda event: self._restore(str(event.args)))
        await self._client.connected()
        self._client.run_javascript(_HELP)
        browser: dict[str, Any] = await self._client.run_javascript(_START, timeout=10) or {}
        self._is_dark = bool(browser.get("dark"))
        self._show_desk()
        self._restore(str(browser.get("link") or ""))

    def _show_desk(self) -> None:
        """Show the desk: its title, its form, its notes, and its first file if it has one."""
        ui.page_title(f"comity workbench: {self._desk.title}")
        self._title.content = markup.text(self._desk.title)
        self._show_form()
        self._show_wish_form()
        self._open(self._opened)
        if not self._opened:
            self._change()
        for note in self._desk.notes:
            self._say(note)

    def _show_crawlers(self) -> None:
        self._names = self._state.site.crawler_names
        self._put_parts({"crawlers": markup.crawlers(self._state)})

    def _show_form(self) -> None:
        self._names = self._state.site.crawler_names
        self._put_parts(markup.forms(self._state))

    def _say(self, message: str) -> None:
        self._status.content = f"<p>{markup.text(message)}</p>"
        self._choice_buttons = ""
        self._show_actions()

    def _warn(self, message: str, *answers: tuple[str, str]) -> None:
        """Show a message with buttons, until the next message.

        `answers`: an action and a label for each button."""
        self._status.content = f'<p class="warning">{markup.text(message)}</p>'
        self._choice_buttons = markup.actions(answers)
        self._show_actions()

    # ---- the editor

    def _open(self, url: str, line: int = 0) -> None:
        """Show a file in a new editor, so that its undo history belongs to this file.

        `line`: the line to go to, from 1. 0 means no line."""
        documents = self._state.documents
        if url not in documents:
            return
        if url != self._opened or self._editor is None:
            self._opened = url
            self._show_editor()
        if line and self._editor:
            self._client.run_javascript(_TO_LINE % (self._editor.id, line))
        self._change()

    def _show_editor(self) -> None:
        url = self._opened
        body = self._state.documents[url].body
        self._text = text_of(body)
        name, is_page = self._state.name(url), url in self._state.pages
        note = f'<p class="quiet">{markup.text(self._text.note)}</p>' if self._text.note else ""
        self._heading.content = f"<h2>{markup.text(name)}</h2>{note}"
        self._line_help.content = ""
        self._editor_box.clear()
        with self._editor_box:
            self._editor = ui.codemirror(
                self._text.text,
                on_change=self._type,
                keymap={"Mod-s": lambda: self._save(url), "Mod-.": self._explain_line},
                language="XML"
                if name.endswith(".xml")
                else "JSON"
                if name.endswith(".json")
                else "HTML"
                if is_page
                else None,
                theme="basicDark" if self._is_dark else "basicLight",
                line_wrapping=True,
            )
        if not self._text.is_editable:
            self._editor.disable()
        self._client.run_javascript(
            _LABEL % (self._editor.id, json.dumps(f"Text of {markup.text(name)}"))
        )

    def _type(self, event: ValueChangeEventArguments[str]) -> None:
        if self._text.is_editable:
            self._state = self._state.with_file(self._opened, self._text.octets(event.value or ""))
            self._change()

    def _darken(self, event: GenericEventArguments) -> None:
        self._is_dark = bool(event.args)
        if self._editor:
            self._editor.theme = "basicDark" if self._is_dark else "basicLight"

    def _put(self, state: State, url: str) -> None:
        """Show a state with a file that was changed outside the editor."""
        self._state = state
        if url == self._opened and self._editor:
            self._text = text_of(state.documents[url].body)
            self._editor.value = self._text.text
        self._change()

    # ---- input

    def _choose(self, event: GenericEventArguments) -> None:
        name, value = event.args.get("name"), event.args.get("value")
        field = "agent" if name == "other" else name
        if field in Choices._fields and isinstance(value, str):
            self._state = self._state.with_choices(**{field: value})
            if twin := markup.TWINS.get(name):  # the field in use stays as it is
                self._put_parts({twin: markup.forms(self._state)[twin]})
            self._change()

    def _act(self, event: GenericEventArguments) -> None:
        fields = {name: str(value) for name, value in event.args.items()}
        url, line, number = (
            fields.get("url", ""),
            _number(fields.get("line")),
            _number(fields.get("number")),
        )
        try:
            match fields.get("act"):
                case "open":
                    self._open(url, line)
                case "detail":
                    self._state = self._state.with_choices(detail=url)
                    self._change()
                case "line":
                    self._open(self._opened, line or 1)
                case "add" if url in self._state.missing:
                    self._state = self._state.with_file(url, b"")
                    self._open(url, 1)
                case "fix":
                    self._fix(number)
                case "fix-all":
                    self._fix_all()
                case "help":
                    background_tasks.create(self._explain_line())
                case "text":
                    self._put_text()
                case "save":
                    self._save(self._opened)
                case "save-sure":
                    self._save(self._opened, is_sure=True)
                case "reread":
                    self._put(self._desk.reread(self._state, self._opened), self._opened)
                    self._say(f"{self._state.name(self._opened)} is as it is on the disk.")
                case "save-sentences":
                    self._save_sentences()
                case "save-sentences-sure":
                    self._save_sentences(is_sure=True)
                case "reread-sentences":
                    self._state = self._desk.reread_sentences(self._state)
                    self._put_parts({"expectations-form": markup.expectations_form(self._state)})
                    self._say("The sentences are as they are on the disk.")
                    self._change()
                case "link":
                    self._link()
                case "today":
                    background_tasks.create(self._write_today())
                case "take" if self._waiting:
                    self._take(self._waiting)
        except PolicyError as error:
            self._say(str(error))

    def _show_wish(self, event: GenericEventArguments) -> None:
        if event.args.get("name") == "wish":
            self._chosen_wish = wish_named(event.args.get("value"))
            self._show_wish_form()

    def _show_wish_form(self) -> None:
        wish, origin = self._chosen_wish, self._desk.start.origin
        self._wish.content = markup.wish(wish, origin) if wish else ""

    async def _add_wish(self, event: GenericEventArguments) -> None:
        """Add the lines for the chosen wish, and open the first file with them."""
        fields, before = event.args, self._state
        wish = wish_named(fields.get("wish"))
        if wish is None:
            return
        values = wish_values(wish, fields)
        formats = [str(name) for name in fields.get("formats") or ()]
        try:
            state, files, urls = await _in_daemon(lambda: before.with_wish(wish, values, formats))
        except PolicyError as error:
            with self._client:
                self._say(f"Nothing is added: {error}.")
            return
        with self._client:
            if self._state is not before:
                self._say("The files have changed meanwhile: write it again.")
                return
            for url in urls:
                self._put(state, url)
            if urls:
                self._open(urls[0])
            names = " and ".join(map(state.name, urls))
            added = f"the lines are in {names}, not saved yet." if urls else "see the lines above."
            self._wish.content = markup.others(files)
            self._say(f"{wish.title}: {added}")

    async def _open_site(self, event: GenericEventArguments) -> None:
        """Open the folder or URL in the field. If files are not saved, ask before they are lost."""
        target = str(event.args.get("target") or "")[:MAX_TARGET].strip()
        if not target:
            self._say("Write a folder, or a URL with https:// before the host.")
            return
        self._waiting = None
        self._say(f"{target} is being opened.")
        try:
            desk = await _in_daemon(lambda: self._workbench.open(target))
        except PolicyError as error:
            self._say(f"{target} is not opened: {error}.")
            return
        with self._client:
            names = [*map(self._state.name, self._desk.unsaved_urls(self._state))]
            names += ["the sentences"] * self._desk.has_unsaved_sentences(self._state)
            if names:
                self._waiting = desk
                self._warn(
                    f"Not saved: {', '.join(names)}.", ("take", f"Open {desk.title}, and lose that")
                )
            else:
                self._take(desk)

    def _take(self, desk: Desk) -> None:
        """Show another desk.

        Clear the fragment of the address, which belongs to the previous one."""
        self._workbench.desk = self._desk = desk
        self._waiting = None
        self._state = desk.state()
        self._opened = next(iter(self._state.documents), "")
        self._text = EditedText("")
        self._view = EMPTY_VIEW
        self._editor = None
        self._heading.content = ""
        self._editor_box.clear()
        self._client.run_javascript("history.replaceState(null, '', '/')")
        self._say(f"{desk.title} is open.")
        self._show_desk()

    def _fix(self, number: int) -> None:
        problems = self._view.problems.get(self._opened, [])
        if number < len(problems) and (fix := problems[number].fix):
            self._apply([fix], fix.title.replace("`", "") + ": done.")
            if self._editor:
                self._client.run_javascript(
                    _TO_LINE % (self._editor.id, problems[number].finding.line or 1)
                )

    def _fix_all(self) -> None:
        fixes = safe_fixes(self._view.problems.get(self._opened, []))
        self._apply(fixes, "The fixes that change no decision: done.")

    def _apply(self, fixes: Sequence[Fix], message: str) -> None:
        # The list may belong to an older text.
        if fixes and self._displayed == self._latest and self._text.is_editable:
            self._line_help.content = ""
            self._put(self._state.with_fixes(self._opened, fixes), self._opened)
            self._say(message)

    async def _help(self, event: GenericEventArguments) -> None:
        """Answer a question of the editor (editor.js)."""
        number, kind = event.args.get("number"), event.args.get("kind")
        line, character = _number(event.args.get("line")), _number(event.args.get("character"))
        state, url = self._state, self._opened
        position = Position(line, character)
        if url not in state.documents:
            return
        if kind == "completions":
            answer: Any = await run.io_bound(completions, state, url, position)
        else:
            answer = await self._help_at(state, url, position)
        with self._client:
            self._client.run_javascript(f"comityAnswer({_number(number)}, {json.dumps(answer)})")

    async def _help_at(self, state: State, url: str, position: Position) -> str:
        """Return the problems at a position with their fixes, and the meaning of its word."""
        problems = self._view.problems.get(url, []) if self._displayed == self._latest else []
        meaning = await run.io_bound(hover, state, url, position, problems)
        return markup.help_at_line(
            position.line + 1, problems, meaning or "", is_editable=self._text.is_editable
        )

    async def _explain_line(self) -> None:
        """Show the help for the word at the cursor below the editor, and go there."""
        if self._editor is None:
            return
        state, url = self._state, self._opened
        with self._client:
            cursor = await self._client.run_javascript(_CURSOR % self._editor.id, timeout=10)
            line, character = map(_number, cursor or (0, 0))
            content = await self._help_at(state, url, Position(line, character))
            nothing = "<p>No word of a format and no finding is at the cursor.</p>"
            self._line_help.content = content or nothing
            self._client.run_javascript("document.getElementById('line-help').focus()")

    def _put_text(self) -> None:
        if self._view.is_other_text and self._displayed == self._latest:
            url = next(url for url in self._state.files if self._state.name(url) == "/ai.txt")
            self._put(self._state.with_file(url, self._view.other_form.encode()), url)

    def _save(self, url: str, *, is_sure: bool = False) -> None:
        name = self._state.name(url)
        try:
            self._desk.save(self._state, url, is_sure=is_sure)
        except ChangedError as error:
            self._warn(
                f"{error}.",
                ("save-sure", "Save mine over it"),
                ("reread", "Take what is on the disk"),
            )
            return
        except PolicyError as error:
            self._say(str(error))
            return
        self._say(f"{name} is saved.")
        self._change()

    def _save_sentences(self, *, is_sure: bool = False) -> None:
        try:
            self._desk.save_sentences(self._state, is_sure=is_sure)
        except ChangedError as error:
            self._warn(
                f"{error}.",
                ("save-sentences-sure", "Save mine over it"),
                ("reread-sentences", "Take what is on the disk"),
            )
            return
        except PolicyError as error:
            self._say(f"The sentences are not saved: {error}.")
            return
        self._say(f"{DEFAULT_FILE} is saved.")
        self._change()

    def _link(self) -> None:
        fragment = fragment_of(
            self._state,
            self._desk.start.documents if self._desk.folder is None else self._desk.saved,
        )
        self._client.run_javascript(
            f"history.replaceState(null, '', {json.dumps('/#' + fragment)})"
        )
        self._say(
            "The address of this page is now a link to this view. It contains your unsaved files. "
            "The browser sends them to nobody."
        )

    def _restore(self, fragment: str) -> None:
        if fragment in ("", "#"):
            return
        try:
            self._state, changed = restore_state(self._state, fragment)
        except PolicyError as error:
            self._say(str(error)[:1].upper() + str(error)[1:] + ".")
            return
        self._show_form()
        if changed:
            self._editor = None
            self._open(changed[0])
            names = ", ".join(map(self._state.name, changed))
            self._say(f"Files that the link has changed, and that are not saved: {names}.")
        self._change()

    async def _write_today(self) -> None:
        """Write the sentences that hold now. Sentences of the user stay above them."""
        before = self._state
        with self._client:
            self._say("The sentences that hold now are being written.")
        try:
            today = await _in_daemon(lambda: sentences_today(before))
        except PolicyError as error:
            with self._client:
                self._say(f"No sentence is added: {error}.")
            return
        with self._client:
            self._state, message = with_sentences(self._state, today)
            self._put_parts({"expectations-form": markup.expectations_form(self._state)})
            self._say(message)
            self._change()

    # ---- output

    def _change(self) -> None:
        """Compute the view of the current state in a thread, and show it.

        If the state changes meanwhile, the view is not shown, and a view of the new state follows.
        """
        self._latest += 1
        if not self._is_busy:
            self._is_busy = True
            background_tasks.create(self._work())

    async def _work(self) -> None:
        try:
            while self._displayed != self._latest:
                await asyncio.sleep(TYPING)
                number, state = self._latest, self._state
                view = await run.io_bound(view_of, state)
                words = await run.io_bound(colours, state, self._opened)
                if number == self._latest and view is not None:
                    with self._client:
                        self._show(state, view, words or ())
                self._displayed = number
        finally:
            self._is_busy = False

    async def _check_sentences(self, state: State, number: int) -> None:
        """Check the sentences after a pause, since they take longer than the view."""
        await asyncio.sleep(PAUSE)
        if number == self._latest:
            checked = await run.io_bound(check_sentences, state)
            if number == self._latest and checked is not None:
                with self._client:
                    self._put_parts({"expectations": markup.expectations(state, checked)})

    def _show(self, state: State, view: View, words: Sequence[Colour]) -> None:
        self._view = view
        unsaved = self._desk.unsaved_urls(state)
        if self._names != state.site.crawler_names:  # else the menu in use would lose its focus
            self._show_crawlers()
        self._put_parts(
            markup.parts(state, view, self._opened, unsaved, is_editable=self._text.is_editable)
        )
        self._frame.set_visibility(view.preview is not None)
        if view.preview and self._frame.props.get("srcdoc") != view.preview.html:
            self._frame.props["srcdoc"] = view.preview.html
        self._show_actions()
        self._mark(view, words)
        background_tasks.create(self._check_sentences(state, self._latest))

    def _show_actions(self) -> None:
        unsaved = self._desk.unsaved_urls(self._state)
        disabled = "" if self._opened in unsaved else " disabled"
        save = f'<button type="button" data-act="save"{disabled}>Save</button> '
        link = '<button type="button" data-act="link">Link to this</button> '
        new_sentences = self._desk.has_unsaved_sentences(self._state)
        is_unsaved = bool(unsaved and self._desk.folder) or new_sentences
        marker = f'<span data-unsaved="{str(is_unsaved).lower()}"></span>'
        buttons = [("today", "Write what holds now")]
        if self._desk.folder:
            buttons.append(("save-sentences", f"Save as {DEFAULT_FILE}"))
        self._put_parts({"expectations-actions": markup.actions(buttons)})
        self._actions.content = (
            (save if self._desk.folder else "") + link + self._choice_buttons + marker
        )

    def _mark(self, view: View, words: Sequence[Colour]) -> None:
        """Mark words, problems, hidden characters and deciding lines in the editor."""
        if self._editor is None:
            return
        text = self._editor.value or ""
        starts = [0]
        for line in text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        lines: dict[int, list[str]] = {}
        spans = [(word.line, word.start, word.end, f"word-{word.type}") for word in words]
        spans += [
            (
                span.line - 1,
                span.column - 1,
                span.end_column - 1,
                f"problem-{problem.severity.value}",
            )
            for problem in view.problems.get(self._opened, [])[:MAX_MARKS]
            if (span := problem.span)
        ]
        marks: list[dict[str, Any]] = []
        for line, start, end, name in spans:
            if line < len(starts) - 1:
                first, last = starts[line] + start, min(starts[line] + end, starts[line + 1] - 1)
                if first < last:
                    marks.append({"kind": "mark", "from": first, "to": last, "class": name})
        marks += [
            {
                "kind": "replace",
                "from": hidden.offset,
                "to": hidden.offset + 1,
                "text": hidden.name,
                "class": "hidden-character",
            }
            for hidden in hidden_in(text)[:MAX_MARKS]
        ]
        for line, kind in deciding_lines(view, self._opened):
            if line < len(starts):
                lines.setdefault(line, []).append(kind)
        marks += [
            {"kind": "line", "line": line, "class": " ".join(dict.fromkeys(kinds))}
            for line, kinds in lines.items()
        ]
        self._client.run_javascript(_MARK % (self._editor.id, json.dumps(text), json.dumps(marks)))


async def _in_daemon(call: Callable[[], Result]) -> Result:
    """Return the result of a call, which runs in a daemon thread.

    The call may wait minutes for a server. The program can end before it returns."""
    future: Future[Result] = Future()

    def work() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)

    Thread(target=work, name="comity-opening", daemon=True).start()
    return await asyncio.wrap_future(future)


def deciding_lines(view: View, url: str) -> list[tuple[int, str]]:
    """Return the lines of a file that decide in this view, and the class that highlights each."""
    lines = []
    if answer := view.detail:
        lines += [(reason, f"decides-{answer['verdict']}") for reason in answer["reasons"]]
        for decision in answer["uses"].values():
            lines += [
                (reason, f"decides-{decision['verdict']}")
                for reason in decision["reasons"]
                if decision["stated"]
            ]
    deciding = [
        (reason["line"], kind) for reason, kind in lines if reason["url"] == url and reason["line"]
    ]
    parts = view.preview.parts if view.preview else ()
    deciding += [
        (reason.source.line, "decides-part")
        for reason in reasons_of(parts)
        if reason.source.url == url and reason.source.line
    ]
    return list(dict.fromkeys(deciding))


def _number(value: object) -> int:
    """Return a number of at most eight digits, or 0."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
