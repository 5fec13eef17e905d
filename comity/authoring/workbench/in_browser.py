"""The workbench of an exported page, which Pyodide runs in the browser.

    pack(title, state)      the content of site.json
    Bench(site)             the state of a tab; `handle` answers the messages of page.js

It has the parts of the page from markup.py, as page.py does. lxml_etree.py reads XML and HTML in
place of lxml. If something needs lxml itself, the page says so, and has no answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from comity.authoring.workbench import markup
from comity.authoring.workbench.expectations import (
    check_sentences,
    sentences_today,
    with_sentences,
)
from comity.authoring.workbench.link import fragment_of, restore_state
from comity.authoring.workbench.lxml_etree import NeedsLxml
from comity.authoring.workbench.state import (
    EMPTY_VIEW,
    Choices,
    State,
    View,
    safe_fixes,
    text_of,
    view_of,
    wish_named,
    wish_values,
)
from comity.policies import Fetched, PolicyError

NEEDS_LXML = (
    "This page cannot read one of the files: a page in XML, or XML with a DTD or a mistake. "
    "`comity workbench` reads all of them."
)
_NEEDS_LXML_PART = f'<p role="alert">{NEEDS_LXML}</p>'
_MOMENTS = ("fetched_at", "unreachable_since")


def pack(title: str, state: State) -> str:
    """Return a state as JSON. `title`: the name of the site, for people."""
    content = {
        "title": title,
        "origin": state.origin,
        "files": {url: _as_json(fetched) for url, fetched in state.files.items()},
        "pages": {url: _as_json(fetched) for url, fetched in state.pages.items()},
        "choices": state.choices._asdict(),
    }
    return json.dumps(content, indent=1)


def _unpack(content: Mapping[str, Any]) -> State:
    files, pages = (
        {url: _as_fetched(fields) for url, fields in content[name].items()}
        for name in ("files", "pages")
    )
    return State(content["origin"], files, pages, Choices(**content["choices"]))


def _as_json(fetched: Fetched) -> dict[str, Any]:
    moments = {
        name: moment and moment.isoformat()
        for name, moment in asdict(fetched).items()
        if name in _MOMENTS
    }
    headers = [[part.decode("latin-1") for part in field] for field in fetched.headers]
    body = base64.b64encode(fetched.body).decode()
    return {**asdict(fetched), **moments, "headers": headers, "body": body}


def _as_fetched(fields: Mapping[str, Any]) -> Fetched:
    moments = {name: fields[name] and datetime.fromisoformat(fields[name]) for name in _MOMENTS}
    headers = tuple(
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in fields["headers"]
    )
    body = base64.b64decode(fields["body"])
    return Fetched(**{**fields, **moments, "headers": headers, "body": body})


class Bench:
    """The state of a tab. Messages and answers are JSON."""

    def __init__(self, site: str) -> None:
        """`site`: the content of site.json."""
        content = json.loads(site)
        self._title = content["title"]
        self._state = self._start = _unpack(content)
        self._opened = next(iter(self._state.documents), "")
        self._view = EMPTY_VIEW
        self._checked: State | None = None  # the state with the visible check of its sentences

    def handle(self, message: str) -> str:
        """Carry out an action, and return the parts of the page that follow from it.

        `message`: an object with the member `act`, the name of an action, and its arguments. The
        action `check` checks the sentences of the expectations, which takes longer than the rest.

        The answer is an object. `parts`: HTML by the name of a part. `frame`: the sample page as
        HTML, or "". Other members are there only if something follows from them: `say`, a sentence;
        `editor`, the file to edit; `line`, the line to go to; `fragment`, the fragment of the
        address; `download`, a file to save."""
        fields = json.loads(message)
        parts: dict[str, str] = {}
        answer: dict[str, Any] = {"parts": parts}
        names = self._state.site.crawler_names
        if fields["act"] == "check":
            if self._checked is not self._state:
                parts["expectations"] = _expectations(self._state)
                self._checked = self._state
            return json.dumps(answer)
        try:
            self._act(fields, answer)
        except PolicyError as error:
            message = str(error)
            answer["say"] = f"{message[:1].upper()}{message[1:]}."
        except NeedsLxml:
            answer["say"] = NEEDS_LXML
        self._view = _view(self._state)
        parts |= self._parts()
        if names != self._state.site.crawler_names:
            parts["crawlers"] = markup.crawlers(self._state)
        answer["frame"] = self._view.preview.html if self._view.preview else ""
        return json.dumps(answer)

    def _act(self, fields: Mapping[str, Any], answer: dict[str, Any]) -> None:
        url, line = fields.get("url", ""), int(fields.get("line") or 0)
        match fields["act"]:
            case "start":
                try:
                    answer["say"] = self._restore(fields["fragment"])
                finally:  # an invalid link leaves the page as it is
                    answer["parts"] |= {"wishes": markup.wishes(), "wish": ""}
                    answer["parts"] |= markup.forms(self._state)
                    self._open(self._opened, 0, answer)
            case "type" if url in self._state.documents:
                edited = text_of(self._state.documents[url].body)
                if edited.is_editable:
                    self._state = self._state.with_file(url, edited.octets(fields["text"]))
            case "choose":
                self._choose(fields["name"], fields["value"], answer)
            case "detail":
                self._state = self._state.with_choices(detail=url)
            case "open":
                self._open(url, line, answer)
            case "line":
                self._open(self._opened, line or 1, answer)
            case "add" if url in self._state.missing:
                self._state = self._state.with_file(url, b"")
                self._open(url, 1, answer)
            case "fix":
                problem = self._view.problems[self._opened][int(fields["number"])]
                if problem.fix:
                    self._state = self._state.with_fixes(self._opened, [problem.fix])
                    self._open(self._opened, problem.finding.line or 1, answer)
            case "fix-all":
                fixes = safe_fixes(self._view.problems[self._opened])
                self._state = self._state.with_fixes(self._opened, fixes)
                self._open(self._opened, 1, answer)
            case "text":
                name = next(url for url in self._state.files if url.endswith("/ai.txt"))
                self._state = self._state.with_file(name, self._view.other_form.encode())
                self._open(name, 1, answer)
            case "show-wish":
                wish = wish_named(fields["wish"])
                answer["parts"]["wish"] = markup.wish(wish, self._state.origin) if wish else ""
            case "wish":
                self._wish(fields["fields"], fields["formats"], answer)
            case "today":
                today = sentences_today(self._state)
                self._state, answer["say"] = with_sentences(self._state, today)
                answer["parts"]["expectations-form"] = markup.expectations_form(self._state)
            case "download" if self._opened:
                body = self._state.documents[self._opened].body
                name = self._opened.rpartition("/")[2]
                answer["download"] = {"name": name, "body": base64.b64encode(body).decode()}
            case "link":
                answer["fragment"] = fragment_of(self._state, self._start.documents)
                answer["say"] = "The address of this page is now a link to this view."

    def _restore(self, fragment: str) -> str:
        """Apply a link, and return a sentence about it, or ""."""
        if not fragment:
            return ""
        self._state, changed = restore_state(self._start, fragment)
        if changed:
            self._opened = changed[0]
        names = ", ".join(map(self._state.name, changed))
        return f"Files that the link has changed: {names}." if changed else ""

    def _open(self, url: str, line: int, answer: dict[str, Any]) -> None:
        if url not in self._state.documents:
            return
        self._opened = url
        edited = text_of(self._state.documents[url].body)
        answer["line"] = line
        answer["editor"] = {
            "url": url,
            "name": self._state.name(url),
            "text": edited.text,
            "editable": edited.is_editable,
            "note": edited.note,
        }

    def _choose(self, name: str, value: str, answer: dict[str, Any]) -> None:
        field = "agent" if name == "other" else name
        if field in Choices._fields:
            self._state = self._state.with_choices(**{field: value})
            if twin := markup.TWINS.get(name):
                answer["parts"][twin] = markup.forms(self._state)[twin]

    def _wish(
        self, fields: Mapping[str, str], formats: Sequence[str], answer: dict[str, Any]
    ) -> None:
        wish = wish_named(fields.get("wish"))
        if wish is None:
            return
        self._state, files, urls = self._state.with_wish(wish, wish_values(wish, fields), formats)
        names = " and ".join(map(self._state.name, urls))
        added = f"the lines are in {names}." if urls else "see the lines above."
        answer["say"] = f"{wish.title}: {added}"
        answer["parts"]["wish"] = markup.others(files)
        self._open(urls[0] if urls else self._opened, 0, answer)

    def _parts(self) -> dict[str, str]:
        state, view = self._state, self._view
        changed = [
            url for url, file in state.documents.items() if file != self._start.documents.get(url)
        ]
        file = state.documents.get(self._opened)
        is_editable = file is not None and text_of(file.body).is_editable
        parts = markup.parts(state, view, self._opened, changed, is_editable=is_editable)
        if view.question_error == NEEDS_LXML:
            parts["problems"] = f"<h2>Findings</h2>{_NEEDS_LXML_PART}"
        return {"title": markup.text(self._title), **parts}


def _view(state: State) -> View:
    try:
        return view_of(state)
    except NeedsLxml:
        return EMPTY_VIEW._replace(question_error=NEEDS_LXML, prompt_error=NEEDS_LXML)


def _expectations(state: State) -> str:
    try:
        return markup.expectations(state, check_sentences(state))
    except NeedsLxml:
        return _NEEDS_LXML_PART
