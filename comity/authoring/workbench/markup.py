"""The parts of the page as HTML. All texts are escaped, and hidden characters in them are visible.

page.py and in_browser.py show `forms` and `parts`, and act on buttons by their attribute
`data-act`. In the parts here it is `open` or `add` for a
file, `line` for a line of the open file, `fix` for a problem, `fix-all` for all fixes that change
no decision, `detail` for the answer about a URL, and `text` for the other form of ai.txt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from comity.authoring.expectations.sentences import EVERYBODY
from comity.authoring.problems import Problem
from comity.authoring.wishes import WISHES
from comity.authoring.wishes.files import WishFiles
from comity.authoring.wishes.readers import Reader, readers_of
from comity.authoring.wishes.wish import ELEMENT, FIELD, FORMATS, Parameter, Wish
from comity.authoring.workbench.expectations import CheckedSentence, expectations_file
from comity.authoring.workbench.preview import PreviewPart
from comity.authoring.workbench.state import State, View, safe_fixes
from comity.gate.explanation import unread_limit
from comity.policies.answers.element_rule import ACTIONS
from comity.policies.answers.rule import RULES, without_page
from comity.policies.syntax.printable import unhidden
from comity.policies.vocabulary.known_crawlers import known, known_crawlers

MAX_PROBLEMS = 200  # the maximum number of problems in the list of a file
MAX_ROWS = 200  # the maximum number of rows in each list of uses, elements or reasons

OPENING = (
    '<form class="opening"><label for="target">Open a folder or URL</label> '
    '<input id="target" name="target" spellcheck=false autocomplete=off '
    'placeholder="https://example.com/"> '
    '<button type="submit">Open</button></form>'
)

_BACKTICKS = re.compile("`([^`]*)`")
_VERDICTS = {"allow": "Allowed", "deny": "Refused", "defer": "Not now"}
# The menu and the field for the crawler show one choice: a field, and the part with its twin.
TWINS = {"agent": "other-crawler", "other": "crawlers"}
_RESULTS = {
    True: ("allow", "Holds:"),
    False: ("deny", "Does not hold:"),
    None: ("defer", "Not understood:"),
}
_LIMITS = {"verdict", "stated", "reasons"}


def text(value: object, *, keep: str = "") -> str:
    """Return a text escaped for HTML, with hidden characters made visible.

    `keep`: hidden characters that stay as they are, such as line ends."""
    return escape(unhidden(str(value), keep=keep))


def actions(labels: Iterable[tuple[str, str]]) -> str:
    """Return a button for each pair of an action (`data-act`) and a label."""
    return " ".join(_button(act, label=text(label)) for act, label in labels)


def forms(state: State) -> dict[str, str]:
    """Return the fields of the choices, by the name of the part that shows them."""
    return {
        "crawlers": crawlers(state),
        "form": form(state),
        "other-crawler": other_crawler(state),
        "crawl-form": crawl_form(state),
        "expectations-form": expectations_form(state),
        "page-form": page_form(state),
    }


def parts(
    state: State, view: View, opened: str, unsaved: Iterable[str], *, is_editable: bool
) -> dict[str, str]:
    """Return what follows from a state, by the name of the part that shows it.

    `opened`: the URL of the file in the editor, or "". `is_editable`: True if it can be changed.
    `unsaved`: the URLs of the files that are marked as not saved."""
    return {
        "files": files(state, view, opened, unsaved),
        "problems": problems(view.problems.get(opened, []), is_editable=is_editable),
        "answers": answers(state, view),
        "elements": elements(state, view),
        "other": other_form(view),
        "prompt": prompt(view),
    }


def files(state: State, view: View, opened: str, unsaved: Iterable[str]) -> str:
    """Return the list of files, and of the policy files that the site does not have yet."""
    unsaved = frozenset(unsaved)
    rows = []
    for url in (
        *state.files,
        *((state.choices.page,) if state.choices.page in state.pages else ()),
    ):
        count = len(view.problems.get(url, ()))
        notes = [f"{count} finding{'s' * (count != 1)}"] if count else []
        notes += ["not saved"] * (url in unsaved)
        current = ' aria-current="true"' if url == opened else ""
        detail = f" <small>{', '.join(notes)}</small>" if notes else ""
        button = _button("open", url=url, label=text(state.name(url)) + detail, extra=current)
        rows.append(f"<li>{button}</li>")
    missing = [
        f"<li>{_button('add', url=url, label='Add ' + text(state.name(url)))}</li>"
        for url in state.missing
    ]
    missing_list = f"<h3>Not there</h3><ul>{''.join(missing)}</ul>" if missing else ""
    return f"<h2>Files</h2><ul>{''.join(rows)}</ul>{missing_list}"


def problems(findings: Sequence[Problem], *, is_editable: bool) -> str:
    """Return the list of a file's problems."""
    if not findings:
        return '<h2>Findings</h2><p class="quiet">Nothing is wrong with this file.</p>'
    rows = []
    for number, problem in enumerate(findings[:MAX_PROBLEMS]):
        position = (
            f"Line {problem.span.line}, column {problem.span.column}"
            if problem.span
            else "The file"
        )
        line = problem.span.line if problem.span else 1
        fix = _fix(number, problem) if is_editable else ""
        rows.append(
            f'<li class="{text(problem.severity.value)}">'
            f"{_button('line', line=line, label=text(position))} "
            f"<strong>{text(problem.severity.value)}</strong> {_marked(problem.message)} "
            f"<small>{text(problem.rule)}, {text(without_page(problem.spec))}</small> {fix}"
            f"{_advice(problem.rule)}</li>"
        )
    more = (
        f"<p>And {len(findings) - MAX_PROBLEMS} more.</p>" if len(findings) > MAX_PROBLEMS else ""
    )
    count = len(safe_fixes(findings)) if is_editable else 0
    fix_all = _button("fix-all", label=f"Fix the {count} that change no decision") * (count > 1)
    return f"<h2>Findings ({len(findings)})</h2>{fix_all}<ol>{''.join(rows)}</ol>{more}"


def _fix(number: int, problem: Problem) -> str:
    """Return the button for the fix of a problem, or "" if it has none."""
    label = f"Fix: {_code(problem.fix_title)}"
    return _button("fix", number=number, label=label) if problem.fix else ""


def help_at_line(line: int, findings: Sequence[Problem], meaning: str, *, is_editable: bool) -> str:
    """Return the problems of a line with their fixes, and the meaning of a word in it.

    `line`: the line, from 1. `meaning`: HTML."""
    rows = [
        f"<p><strong>{text(problem.severity.value)}</strong> {_marked(problem.message)} "
        f"{_fix(number, problem) if is_editable else ''}</p>"
        for number, problem in enumerate(findings)
        if problem.span and problem.span.line == line
    ]
    return f"{''.join(rows)}{meaning}"


def _advice(rule: str) -> str:
    """Return why a finding matters and how to mend it, as an element that the reader opens."""
    entry = RULES[rule]
    advice = _marked(f"{entry.why} {entry.fix}")
    return f"<details><summary>Why</summary><p>{advice}</p></details>" if entry.why else ""


def _code(title: str) -> str:
    return text(title.replace("`", ""))


def _marked(message: str) -> str:
    """Return a message with the parts between backticks as code."""
    return _BACKTICKS.sub(r"<code>\1</code>", text(message))


def crawlers(state: State) -> str:
    """Return the menu of crawlers: everybody, those in the files, and the known ones."""
    chosen, in_files = state.agent_name.lower(), state.site.crawler_names - {"*", ""}
    names = sorted(in_files)[:MAX_ROWS]
    others = [
        crawler
        for crawler in sorted(known_crawlers(), key=lambda crawler: crawler.token.lower())
        if not crawler.retired and crawler.token.lower() not in in_files
    ]
    groups = {
        "In the files": [crawler.token if (crawler := known(name)) else name for name in names],
        "Known: for training": [crawler.token for crawler in others if crawler.trains],
        "Known: for other purposes": [crawler.token for crawler in others if not crawler.trains],
    }
    options = _option("", "Everybody", is_selected=chosen == EVERYBODY)
    if chosen not in {EVERYBODY, *(name.lower() for names in groups.values() for name in names)}:
        options += _option(state.agent_name, state.agent_name, is_selected=True)
    for label, names in groups.items():
        rows = (_option(name, name, is_selected=name.lower() == chosen) for name in names)
        options += f'<optgroup label="{label}">{"".join(rows)}</optgroup>' * bool(names)
    return (
        "<label for=agent>Crawler</label>"
        f"<select id=agent name=agent aria-describedby=agent-hint>{options}</select>"
        '<small id=agent-hint>"Everybody" is each crawler that the files do not name.</small>'
    )


def wishes() -> str:
    """Return the menu of wishes."""
    options = "".join(_option(wish.name, wish.title, is_selected=False) for wish in WISHES)
    return (
        "<label for=wish>What do you want?</label> "
        f'<select id=wish name=wish><option value="">Choose</option>{options}</select>'
    )


def wish(chosen: Wish, origin: str) -> str:
    """Return a wish in words, the fields for its values and formats, and the button to write it."""
    fields = [_parameter(parameter, origin) for parameter in chosen.parameters]
    forms = {form.format: form for form in reversed(chosen.forms)}
    formats = [
        f'<li><label><input type=checkbox name=format value="{text(name)}"'
        f"{' checked' * (name in chosen.defaults)}> {text(name)}</label> {_marked(form.remark)} "
        f"<small>{' '.join(map(_reader, readers_of(form)))}</small></li>"
        for name in FORMATS
        if (form := forms.get(name))
    ]
    unsaid = ", ".join(text(unsaid.format) for unsaid in chosen.unsaid)
    return (
        f"<p>{text(chosen.summary)}</p><div class=form>{''.join(fields)}</div>"
        "<details><summary>Formats, and the crawlers that obey them</summary>"
        f"<ul class=formats>{''.join(formats)}</ul>"
        f"{f'<p>These cannot say it: {unsaid}.</p>' if unsaid else ''}</details>"
        '<button type="submit">Write it into the files</button>'
    )


def _parameter(parameter: Parameter, origin: str) -> str:
    """Return the field for a value of a wish. A required value has no default but the origin."""
    is_origin = parameter.name == "origin"
    default = origin if is_origin else "" if parameter.is_required else parameter.default
    hint = "e.g. GPTBot, CCBot" if parameter.name == "crawlers" else f"e.g. {parameter.default}"
    label = parameter.summary[:1].upper() + parameter.summary[1:]
    return _field(parameter.name, label, default, hint=hint, extra="required")


def _reader(reader: Reader) -> str:
    statement = _marked(reader.statement)
    if not reader.source:
        return f"{statement}."
    return f'<a href="{text(reader.source)}" target=_blank rel=noreferrer>{statement}</a>.'


def others(files: WishFiles) -> str:
    """Return the elements and fields of a wish, which belong into pages and responses."""
    places = {ELEMENT: "Add to the head of each page", FIELD: "Add to each response"}
    return "".join(
        f"<p>{places[place]}:</p>{_listing(places[place], content)}"
        for place, content in files.others
    )


def _option(value: str, label: str, *, is_selected: bool) -> str:
    return f'<option value="{text(value)}"{" selected" * is_selected}>{text(label)}</option>'


def other_crawler(state: State) -> str:
    """Return the field for the name of a crawler that is not in the menu."""
    hint = "as in User-agent, e.g. examplebot"
    return _field("other", "Another crawler", state.choices.agent, hint=hint)


def form(state: State) -> str:
    """Return the field for the pages to ask about."""
    return (
        "<label for=urls>Pages, one path per line</label>"
        "<textarea id=urls name=urls rows=2 spellcheck=false autocomplete=off>"
        f"{text(state.choices.urls, keep=chr(10))}</textarea>"
    )


def crawl_form(state: State) -> str:
    """Return the fields about the crawl that few need."""
    choices = state.choices
    return _field(
        "purposes", "Purposes of the crawl", choices.purposes, hint="e.g. research, archiving"
    ) + _field("uses", "Uses of the content", choices.uses, hint="e.g. train-ai, search")


def page_form(state: State) -> str:
    """Return the fields about the sample page and its elements."""
    choices = state.choices
    actions = "".join(
        _option(name, name, is_selected=name.lower() == choices.action.lower()) for name in ACTIONS
    )
    pages = "".join(
        _option(url, state.name(url), is_selected=url == choices.page) for url in state.pages
    )
    return (
        "<div><label for=page>Sample page</label>"
        f'<select id=page name=page><option value="">none</option>{pages}</select></div>'
        "<div><label for=action>Action on elements, and of the prompt</label>"
        f"<select id=action name=action>{actions}</select></div>"
        f"{_field('lang', 'Language of guidelines', choices.lang, hint='e.g. en')}"
    )


def _field(name: str, label: str, value: str, *, hint: str, extra: str = "") -> str:
    return (
        f'<div><label for="{name}">{label}</label>'
        f'<input id="{name}" name="{name}" value="{text(value)}" '
        f'spellcheck=false autocomplete=off aria-describedby="{name}-hint" {extra}>'
        f'<small id="{name}-hint">{hint}</small></div>'
    )


def answers(state: State, view: View) -> str:
    """Return the pages with their decisions, and the table about one of them."""
    if view.question_error:
        return f'<p role="alert">{text(view.question_error)}</p>'
    if view.detail is None:
        return "<p>Write the path of a page above.</p>"
    rows = []
    for answer in view.answers:
        current = ' aria-current="true"' if answer["url"] == view.detail["url"] else ""
        show = _button(
            "detail", url=answer["url"], label=text(state.name(answer["url"])), extra=current
        )
        verdict = answer["verdict"]
        rows.append(
            f'<li>{show} <strong class="verdict {verdict}">{_VERDICTS[verdict]}</strong></li>'
        )
    return f"<ul class=pages>{''.join(rows)}</ul>{_answer(state, view.detail)}"


def _answer(state: State, answer: dict[str, Any]) -> str:
    """Return the table of decisions about one page: the request first, then each use."""
    until = f"not before {answer['not_before']}" if answer["not_before"] else ""
    reasons = _reasons(state, answer["reasons"])
    if answer["overruled"]:
        reasons += f"<p>Matches too, and loses:</p>{_reasons(state, answer['overruled'])}"
    limits = "; ".join(filter(None, (until, *_rates(answer["rates"]))))
    rows = [_row("fetch", answer["verdict"], limits, reasons)]
    rows += (_use(state, use, decision) for use, decision in [*answer["uses"].items()][:MAX_ROWS])
    name = state.agent_name
    who = "Everybody" if name.lower() == EVERYBODY else text(name)
    return (
        f"<table class=answer><caption>{who} on {text(state.name(answer['url']))}</caption>"
        "<thead><tr><th scope=col>Use</th><th scope=col>Answer</th><th scope=col>Limits</th>"
        f"<th scope=col>Decided by</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _row(use: str, verdict: str, limits: str, reasons: str) -> str:
    return (
        f'<tr><th scope=row>{text(use)}</th><td class="verdict {verdict}">{_VERDICTS[verdict]}</td>'
        f"<td>{text(limits)}</td><td>{reasons}</td></tr>"
    )


def _use(state: State, use: str, decision: dict[str, Any]) -> str:
    limits = "; ".join(
        f"{name} {_limit(value)}" if value is not True else name
        for name, value in decision.items()
        if name not in _LIMITS
    )
    reasons = (
        _reasons(state, decision["reasons"])
        if decision["stated"]
        else '<span class="quiet">no line: the default of the crawler</span>'
    )
    return _row(use, decision["verdict"], limits, reasons)


def _limit(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_limit, value))
    if isinstance(value, dict):
        return str(value.get("extract") or value.get("url"))
    return str(value)


def _rates(rates: dict[str, Any]) -> Iterator[str]:
    """Yield the limits on the pace of requests."""
    if rates["crawl_delay"] is not None:
        yield f"{rates['crawl_delay']:g} s between requests"
    yield from map(_rate_text, rates["request_rates"])
    if rates["visit_time"]:
        yield f"at {rates['visit_time']}"
    for limit in rates["limits"]:
        parts = _rate_text(limit["value"]), f"(line {limit['line']})", unread_limit(limit)
        yield " ".join(filter(None, parts))


def _rate_text(value: Any) -> str:
    if not isinstance(value, dict):
        return f"{value} at a time"
    number = value["requests"]
    return f"{number} request{'s' * (number != 1)} in {value['seconds']} s"


def _reasons(state: State, reasons: Iterable[dict[str, Any]]) -> str:
    rows = []
    for reason in [*reasons][:MAX_ROWS]:
        name, line = state.name(reason["url"]), reason["line"]
        quotation = text(reason["text"] or reason["rule"])
        position = f"{text(name)} line {line}" if line else text(name)
        if reason["url"] in state.documents:
            position = _button("open", url=reason["url"], line=line or 1, label=position)
        spec = text(without_page(reason["spec"]))
        rows.append(f"<li>{position} <code>{quotation}</code> <small>{spec}</small></li>")
    return f"<ul class=reasons>{''.join(rows)}</ul>"


def expectations_form(state: State) -> str:
    """Return the field for sentences."""
    return (
        "<div class=wider><label for=expectations>Sentences, one per line</label>"
        "<textarea id=expectations name=expectations rows=4 spellcheck=false autocomplete=off "
        'placeholder="GPTBot must not fetch /private/**&#10;everybody may fetch /">'
        f"{text(state.choices.expectations, keep=chr(10))}</textarea></div>"
    )


def expectations(state: State, checked: Sequence[CheckedSentence]) -> str:
    """Return the sentences that do not hold, the others folded, and the file with all of them."""
    if not checked:
        return ""
    failed = [_sentence(state, each) for each in checked if not each.holds]
    holding = [_sentence(state, each) for each in checked if each.holds]
    parts = [f"<p><strong>{len(holding)} of {len(checked)} hold.</strong></p>"]
    if failed:
        parts.append(f"<ul class=expectations>{''.join(failed)}</ul>")
    if holding:
        rows = f"<ul class=expectations>{''.join(holding)}</ul>"
        parts.append(f"<details><summary>Sentences that hold</summary>{rows}</details>")
    file = _listing("expectations.toml", expectations_file(state))
    parts.append(f"<details><summary>The file for comity check</summary>{file}</details>")
    return "".join(parts)


def _sentence(state: State, sentence: CheckedSentence) -> str:
    verdict, label = _RESULTS[sentence.holds]
    why = f"<p>{_marked(sentence.why)}</p>" if sentence.why else ""
    if citation := sentence.citation:
        reason = {**citation._asdict(), "url": citation.file}
        why += _reasons(state, [reason])
    result = f'<strong class="verdict {verdict}">{label}</strong>'
    return f"<li>{result} {text(sentence.text)}{why}</li>"


def elements(state: State, view: View) -> str:
    """Return the list of elements in the sample page that rules cover."""
    page = state.choices.page
    edit = _button("open", url=page, label="Edit this page", extra=' class="edit"')
    note = edit if page in state.pages else ""
    if view.preview is None:
        return f"{note}<p>Choose a sample page to see what the rules for elements cover of it.</p>"
    note += f"<p>{text(view.preview.note)}</p>" if view.preview.note else ""
    if not view.preview.parts:
        return f"{note}<p>No rule is about parts of this page.</p>"
    rows = "".join(_part(state, part) for part in view.preview.parts[:MAX_ROWS])
    return f"{note}<ul class=parts>{rows}</ul>"


def _part(state: State, part: PreviewPart) -> str:
    action = text(state.choices.action)
    covers = (
        "the whole page" if part.is_whole else f"{part.covered} element{'s' * (part.covered != 1)}"
    )
    effect = {
        "deny": f"No {action}",
        "guide": f"{action}, as it is guided",
        "": f"nothing about {action}",
    }[part.verdict]
    guidelines = "".join(f"<li>{text(guideline)}</li>" for guideline in part.guidelines)
    reasons = [
        {
            "url": r.source.url,
            "line": r.source.line,
            "text": r.source.text,
            "rule": r.rule,
            "spec": r.spec,
        }
        for r in part.reasons
    ]
    return (
        f'<li class="{part.verdict}"><code>{text(part.selector)}</code> ({covers}): '
        f"<strong>{effect}</strong>. "
        f"{'Refused: ' + text(', '.join(part.denied)) + '. ' if part.denied else ''}"
        f"{f'<ul>{guidelines}</ul>' if guidelines else ''}{_reasons(state, reasons)}</li>"
    )


def other_form(view: View) -> str:
    """Return the other form of ai.txt, with notes for its author."""
    notes = "".join(f"<li>{text(note)}</li>" for note in view.form_notes[:MAX_ROWS])
    note_list = f"<ul>{notes}</ul>" if notes else ""
    if not view.other_form:
        return note_list
    button = _button("text", label="Put this into ai.txt") if view.is_other_text else ""
    return f"{note_list}{button}{_listing('ai.txt, in its other form', view.other_form)}"


def prompt(view: View) -> str:
    """Return the prompt in a box, or the reason why there is none."""
    if view.prompt_error:
        return f'<p role="alert">{text(view.prompt_error)}</p>'
    return _listing("Prompt", view.prompt) if view.prompt else "<p>Write a page above.</p>"


def _listing(label: str, content: str) -> str:
    visible = text(content, keep="\n\t")
    return f'<pre tabindex=0 role=region aria-label="{label}">{visible}</pre>'


def _button(act: str, *, label: str, extra: str = "", **data: object) -> str:
    attributes = "".join(f' data-{name}="{text(value)}"' for name, value in data.items())
    return f'<button type="button" data-act="{act}"{attributes}{extra}>{label}</button>'
