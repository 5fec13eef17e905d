"""Print the results of sentences: for people, in JSON, JUnit XML and SARIF, and for GitHub."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from comity.authoring.expectations.documents import Document, Sentence
from comity.authoring.expectations.judging import Answer
from comity.authoring.reports import sarif_document, uri_of, workflow_command
from comity.gate.run.console import line, open_console, say
from comity.policies.syntax.printable import unhidden

RULE = "comity.expectation"
ADVICE = (
    "Change the file that decides, or the sentence. "
    "`comity explain` says what the files of the site mean."
)


class Result(NamedTuple):
    """The result of one sentence of a file."""

    document: Document
    sentence: Sentence
    answer: Answer

    @property
    def reason(self) -> str:
        """Why the sentence does not hold, with the line that decides."""
        citation = self.answer.citation
        if citation is None:
            return self.answer.why
        text = f": `{citation.text}`" if citation.text else ""
        return f"{self.answer.why}, by {citation}{text}"


def as_text(results: Sequence[Result]) -> None:
    """Print the sentences that do not hold, and the numbers of all."""
    console = open_console()
    for result in results:
        if not result.answer.holds:
            heading = line(f"{result.document.name}:{result.sentence.line}: ", "bold")
            heading.append_text(line("fails: ", "bold red"))
            heading.append_text(line(result.sentence.text))
            console.print(heading, soft_wrap=True)
            console.print(line(f"    {result.reason}"), soft_wrap=True)
    partial = sum(result.answer.holds and not result.answer.is_complete for result in results)
    if partial:
        text = (
            f"The files have too many patterns for {_count(partial, 'sentence')} to be tried with"
            " each set of them. --format json lists the sentences (`is_complete`)."
        )
        console.print(line(text), soft_wrap=True)
    console.print(line(summary(results)), soft_wrap=True)


def summary(results: Sequence[Result]) -> str:
    failed = sum(not result.answer.holds for result in results)
    held = _count(len(results) - failed, "sentence")
    verb = "holds" if len(results) - failed == 1 else "hold"
    return f"{held} {verb}, {failed} {'fails' if failed == 1 else 'fail'}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_json(results: Sequence[Result]) -> None:
    """Print all sentences as one JSON document."""
    say(json.dumps({"version": 1, "results": list(map(_as_json, results))}, indent=2))


def _as_json(result: Result) -> dict[str, Any]:
    answer = result.answer
    return {
        "file": result.document.name,
        "line": result.sentence.line,
        "sentence": result.sentence.text,
        "holds": answer.holds,
        "paths": answer.paths,
        "is_complete": answer.is_complete,
        "why": answer.why,
        "decided_by": answer.citation._asdict() if answer.citation else None,
    }


def as_junit(results: Sequence[Result]) -> None:
    """Print the sentences in JUnit XML: a test case for each."""
    suites = Element("testsuites", name="comity check")
    by_file: dict[str, list[Result]] = {}
    for result in results:
        by_file.setdefault(result.document.name, []).append(result)
    for name, of_file in by_file.items():
        failed = sum(not result.answer.holds for result in of_file)
        suite = SubElement(
            suites,
            "testsuite",
            {
                "name": _plain(name),
                "tests": str(len(of_file)),
                "failures": str(failed),
                "errors": "0",
                "skipped": "0",
            },
        )
        for result in of_file:
            case = SubElement(
                suite,
                "testcase",
                {
                    "classname": _plain(result.document.target),
                    "name": _plain(result.sentence.text),
                    "file": _plain(name),
                    "line": str(result.sentence.line),
                },
            )
            if not result.answer.holds:
                reason = _plain(result.reason)
                failure = SubElement(case, "failure", {"type": RULE, "message": reason})
                failure.text = f"{_plain(name)}:{result.sentence.line}: {reason}"
    indent(suites)
    # A console may have any encoding. US-ASCII is part of nearly all.
    say(tostring(suites, encoding="us-ascii").decode())


def _plain(text: str) -> str:
    return unhidden(text, keep="")


def as_sarif(results: Sequence[Result]) -> None:
    """Print the sentences that do not hold in SARIF 2.1.0, with the lines that decide."""
    rule = {
        "id": RULE,
        "shortDescription": {"text": "A sentence of an expectations file does not hold"},
        "fullDescription": {"text": "The files of the site decide otherwise than the sentence."},
        "help": {"text": ADVICE, "markdown": ADVICE},
        "defaultConfiguration": {"level": "error"},
    }
    say(sarif_document([rule], [_sarif(each) for each in results if not each.answer.holds]))


def _sarif(result: Result) -> dict[str, Any]:
    citation = result.answer.citation
    related = [_location(citation.file, citation.line)] if citation else []
    return {
        "ruleId": RULE,
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": f"{result.sentence.text}: fails. {result.reason}"},
        "locations": [_location(result.document.name, result.sentence.line)],
        **({"relatedLocations": related} if related else {}),
    }


def _location(name: str, number: int) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": uri_of(name)}}
    if number:
        location["region"] = {"startLine": number}
    return {"physicalLocation": location}


def as_github(results: Sequence[Result]) -> None:
    """Print the sentences that do not hold as workflow commands, and the numbers of all."""
    for result in results:
        if not result.answer.holds:
            fields = {
                "file": result.document.name,
                "line": str(result.sentence.line),
                "title": RULE,
            }
            message = f"{result.sentence.text}: fails. {result.reason}"
            say(workflow_command("error", fields, message))
    say(summary(results))


FORMS: dict[str, Callable[[Sequence[Result]], None]] = {
    "text": as_text,
    "json": as_json,
    "junit": as_junit,
    "sarif": as_sarif,
    "github": as_github,
}
