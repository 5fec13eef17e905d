"""`comity explain DIR|URL`: explain the files of a site together, in plain sentences."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from comity.authoring.expectations.documents import write_document
from comity.authoring.expectations.judging import Judge
from comity.authoring.expectations.sentences import write
from comity.authoring.expectations.today import sentences_of_today
from comity.authoring.explaining import AgentGroup, ExplainedAnswer, Explanation, explain
from comity.authoring.honouring import DecidingLine, Honouring, lines_of
from comity.authoring.sites import agent_for, is_url, load
from comity.authoring.source import DEFAULT_ORIGIN, SiteSource
from comity.gate.run.console import add_row, complain, line, open_console, read_or_not, say, table
from comity.policies import PolicyError
from comity.policies.syntax.printable import unhidden

FAILED = 2  # exit status: wrong usage, or no file and no page could be read
FORMATS = ("table", "markdown", "json")
READERS_TITLE = "Crawlers that would obey each line, as their operators say"
SOURCES = "--readers --format json"
COLORS = {"allow": "green", "deny": "red", "defer": "yellow", "limit": "yellow"}


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="DIR|URL",
        help="folder with the files of a site (robots.txt in it), or the URL of a site or page",
    )
    parser.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="NAME",
        help="crawler to explain; may be repeated (default: all in the files)",
    )
    parser.add_argument(
        "--origin",
        metavar="URL",
        help=f"address of the site whose files are in the folder (default: {DEFAULT_ORIGIN})",
    )
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        help="URL or path to ask about; may be repeated (default: the root, and the paths in the "
        "files)",
    )
    parser.add_argument(
        "--readers",
        action="store_true",
        help="add the crawlers that would obey each line, as their operators say",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=FORMATS,
        default="table",
        help="form of the output (default: %(default)s)",
    )
    form.add_argument(
        "--as-expectations",
        action="store_true",
        help="print a file for `comity check`: sentences that hold today",
    )


def run(options: Namespace) -> int:
    """Print the explanation. Return the exit status: 0, or FAILED."""
    try:
        source = load(options.target, origin=options.origin)
        explanation = explain(
            source, agent_for(options.target), agents=options.agent, urls=options.url
        )
    except PolicyError as error:
        complain(f"comity explain: {error}")
        return FAILED
    if not source.pages and all(not file.fetched.status for file in source.files):
        for name, outcome in explanation.files:
            complain(f"{name}: {outcome}")
        for note in source.place_notes:
            complain(note)
        complain(f"comity explain: no policy file and no page of {options.target} could be fetched")
        return FAILED
    lines = tuple(lines_of(explanation)) if options.readers else ()
    if options.as_expectations:
        say(as_expectations(options, source))
    elif options.format == "json":
        readers = {"readers": [_line(one) for one in lines]} if options.readers else {}
        say(json.dumps(as_json(explanation) | readers, indent=2))
    elif options.format == "markdown":
        say(as_markdown(explanation, lines))
    else:
        with read_or_not():
            show(explanation, open_console(), lines)
    return 0


def as_expectations(options: Namespace, source: SiteSource) -> str:
    """Return a file of expectations with the sentences that hold today."""
    judge = Judge(source, agent_for(options.target))
    sentences = map(write, sentences_of_today(judge, options.agent, options.url))
    place = {"site": options.target} if is_url(options.target) else {"folder": options.target}
    origin = {"origin": options.origin} if options.origin else {}
    return write_document(place | origin, sentences)


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as a value for JSON."""
    return {
        "origin": explanation.origin,
        "files": [{"file": name, "outcome": outcome} for name, outcome in explanation.files],
        "groups": [
            {"agents": list(group.agents), "answers": [_answer(answer) for answer in group.answers]}
            for group in explanation.groups
        ],
        "as_everybody": list(explanation.as_everybody),
        "samples": list(explanation.samples),
        "notes": list(explanation.notes),
    }


def _answer(answer: ExplainedAnswer) -> dict[str, Any]:
    return {
        "about": answer.topic,
        "verdict": answer.verdict,
        "sentence": answer.sentence,
        "limits": dict(answer.limits),
        "decided_by": [citation._asdict() for citation in answer.citations],
        "exceptions": [
            {
                "verdict": exception.verdict,
                "limits": dict(exception.limits),
                "decided_by": [citation._asdict() for citation in exception.citations],
                "urls": list(exception.urls),
            }
            for exception in answer.exceptions
        ],
    }


def _line(deciding: DecidingLine) -> dict[str, Any]:
    return {
        "line": deciding.citation._asdict(),
        "agents": list(deciding.agents),
        "directives": [_honouring(one) for one in deciding.honouring],
    }


def _honouring(honouring: Honouring) -> dict[str, Any]:
    return {
        "format": honouring.format,
        "directive": honouring.name,
        "statements": [
            {
                "who": one.who,
                "crawlers": list(one.crawlers),
                "answer": one.answer,
                "detail": one.detail,
                "source": one.source,
                "quoted_by": one.quoted_by,
                "date": one.date.isoformat(),
            }
            for one in honouring.statements
        ],
        "silent": list(honouring.silent),
    }


def as_markdown(explanation: Explanation, lines: Iterable[DecidingLine] = ()) -> str:
    """Return the explanation in Markdown. Quotations from the files are code, or are escaped.

    `lines`: the lines with the crawlers that would obey them."""
    parts = [f"# The meaning of the files of {_escape(explanation.origin)}", ""]
    for group in explanation.groups:
        parts += [f"## {_escape(_heading(group, explanation))}", ""]
        parts += [f"- {_escape(answer.sentence)}" for answer in group.answers]
        parts.append("")
    if explanation.as_everybody:
        parts += [f"As everybody else: {_escape(', '.join(explanation.as_everybody))}.", ""]
    for number, one in enumerate(lines):
        parts += [f"## {READERS_TITLE}", ""] if number == 0 else []
        parts += [f"### {_escape(_place(one))}", ""]
        parts += [
            f"- {_escape(sentence)}" for each in one.honouring for sentence in each.sentences()
        ]
        parts.append("")
    parts += [
        "## Files",
        "",
        *(f"- {_escape(name)}: {_escape(outcome)}" for name, outcome in explanation.files),
        "",
    ]
    if explanation.notes:
        parts += ["## Notes", "", *(f"- {_escape(note)}" for note in explanation.notes), ""]
    return "\n".join(parts)


def _place(deciding: DecidingLine) -> str:
    """Return the text and place of a line, and its crawlers."""
    agents = f" for {', '.join(deciding.agents)}" if deciding.agents else ""
    return f"`{deciding.citation.text}` ({deciding.citation}){agents}"


def _escape(text: str) -> str:
    """Return the text for Markdown: code stays between backticks, other markup is escaped."""
    text = unhidden(text, keep="")
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a quotation contains a backtick itself
        return _without_markup(text)
    return "`".join(
        part if number % 2 else _without_markup(part) for number, part in enumerate(parts)
    )


def _without_markup(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in text)


def _heading(group: AgentGroup, explanation: Explanation) -> str:
    if group.agents:
        return ", ".join(group.agents)
    return "Everybody else" if len(explanation.groups) > 1 else "Everybody"


def _topic(answer: ExplainedAnswer) -> str:
    return answer.topic if "," not in answer.topic else "all else"


def show(explanation: Explanation, console: Console, lines: Iterable[DecidingLine] = ()) -> None:
    """Print the explanation for people.

    `lines`: the lines with the crawlers that would obey them."""
    console.print(line(f"The meaning of the files of {explanation.origin}", "bold"))
    topics = {_topic(answer) for group in explanation.groups for answer in group.answers}
    for group in explanation.groups:
        rows = table("", "about", "answer", "sentence")
        rows.columns[0].width = max(map(len, topics))  # so that the tables of all groups line up
        for answer in group.answers:
            verdict = Text(answer.verdict, COLORS.get(answer.verdict, ""))
            add_row(rows, _topic(answer), verdict, answer.sentence)
        console.print()
        console.print(line(_heading(group, explanation), "bold"))
        console.print(rows)
    console.print()
    if explanation.as_everybody:
        console.print(line(f"As everybody else: {', '.join(explanation.as_everybody)}"))
    files = table("Files", "file", "outcome")
    for name, outcome in explanation.files:
        add_row(files, name, outcome)
    if files.row_count:
        console.print(files)
    readers = table(READERS_TITLE, "line", "readers")
    for one in lines:
        add_row(readers, _place(one), " ".join(one.sentences()))
    if readers.row_count:
        console.print(readers)
        console.print(line(f"Sources: {SOURCES}"))
    for note in explanation.notes:
        console.print(line(note))
