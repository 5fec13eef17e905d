"""Twice the text leads to about twice the work of each request (SEC-1).

Calls are counted, because their number is the same on every machine."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
from lsprotocol.types import Position, Range

from comity.authoring.language_server import outline, statements, tasks
from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.features import diagnostics, hints
from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.tasks import Snapshot
from comity.authoring.lint import KINDS
from tests.effort import calls
from tests.selection import one_in

SLACK = 3000  # calls that do not depend on the size
GROWTH = 2.3
SIZE = 60


def words(form: str, separator: str = " ") -> Callable[[int], str]:
    return lambda size: separator.join(form.replace("#", str(number)) for number in range(size))


def around(text: str, values: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: text.replace("{}", values(size))


RSL = (
    '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>{}</license></content>'
    "</rsl>"
)
BLOCK = "\n  Path: / html\n    Element: *\n      Disallow: Train\n"
XML_PATH = (
    '<path value="/#"><element name="*"><disallow><action>Train</action></disallow></element>'
    "</path>"
)

# For each format, one line with many values, and many lines with one value.
SHAPES: dict[str, dict[str, Callable[[int], str]]] = {
    "robots.txt": {
        "crawlers of ACAP": around("ACAP-crawler: {}\nACAP-disallow-index: /\n", words("a#")),
        "one crawler in two lines": around(
            "ACAP-crawler: {}\nACAP-crawler: {}\nACAP-disallow-index: /\n", words("a")
        ),
        "agents in a line": around("User-agent: {}\nDisallow: /\n", words("a#")),
        "paths in a line": around("ACAP-crawler: *\nACAP-disallow-index: {}\n", words("/#")),
        "a set": around(
            "ACAP-resource-set-def: s {}\nACAP-crawler: *\nACAP-allow-index: "
            "the-acap:resource-set:s\n",
            words("/#"),
        ),
        "preferences": around("User-agent: *\nContent-Usage: {}\nUsage: {}\n", words("u#=n", ", ")),
        "signals": around("User-agent: *\nContent-Signal: {}\n", words("u#=no", ", ")),
        "one line of many characters": around("User-agent: *\nDisallow: /{}\n", words("é 😀a#")),
        "lines of agents": around("{}\nDisallow: /\n", words("User-agent: a#", "\n")),
        "groups of one agent": words("User-agent: gptbot\nDisallow: /#\n", "\n"),
        "groups of ACAP": words("ACAP-crawler: a#\nACAP-disallow-index: /#\n", "\n"),
        "rules": around("User-agent: *\n{}\n", words("Disallow: /#", "\n")),
        "usages": around(
            "{}\nACAP-crawler: *\n",
            words("ACAP-usage-definition: n# index\nACAP-disallow-(n#): /", "\n"),
        ),
        "unknown records": words("Noindex#: /\n", ""),
        "comments": words("# a\n", ""),
    },
    "ai.txt": {
        "agents": around("User-agent: {}" + BLOCK, words("a#")),
        "actions": around(
            "User-agent: *\n  Path: / html\n    Element: *\n      Disallow: {}\n", words("a#")
        ),
        "elements": around(
            "User-agent: *\n  Path: / html\n    Element: {}\n      Disallow: Train\n",
            words("p.a#", ", "),
        ),
        "blocks": words(f"User-agent: a#{BLOCK}", ""),
        "paths": around(
            "User-agent: *\n{}    Element: p\n      Disallow: Train\n",
            words("  Path: /# html\n", ""),
        ),
        "Spawning's form": around("User-Agent: *\n{}", words("Disallow: *.a#\n", "")),
    },
    "automation-preferences.txt": {
        "purposes": around(
            "scope: /\nallowed-methods: GET\nallowed-purposes: {}\n", words("a#", ", ")
        ),
        "agents": around("scope: /\nuser-agent: {}\nallowed-methods: GET\n", words("a#", ", ")),
        "groups": words("scope: /#\nallowed-methods: GET\n\n", ""),
        "lines of a group": around("scope: /\n{}", words("allowed-methods: A#\n", "")),
    },
    "tdmrep.json": {
        "rules in a line": around("[{}]", words('{"location": "/#", "tdm-reservation": 1}', ", ")),
        "rules in lines": around(
            "[\n{}\n]", words('{"location": "/#",\n"tdm-reservation": 1}', ",\n")
        ),
        "members": around('[{"location": "/", {}}]', words('"a#": 1', ", ")),
        "brackets": around("{}{", words("[", "")),
        "members in brackets": lambda size: "[" * size + "{" + words('"a#": 1', ", ")(size),
    },
    "rsl.xml": {
        "elements in a line": around(RSL, words('<permits type="usage">a#</permits>', "")),
        "elements in lines": around(RSL, words('<permits type="usage">\na#</permits>', "\n")),
        "words": around(RSL, words("a#", ", ")),
        "attributes": around(RSL, around("<permits {}/>", words('a#="b"'))),
        "open elements": around(RSL, words("<permits>", "")),
        "ends of other elements": around(RSL, lambda size: "<a>" * size + "</b>" * size),
    },
    "ai.xml": {
        "paths": around(
            '<ai-txt><user-agent names="*">{}</user-agent></ai-txt>', words(XML_PATH, "")
        )
    },
    "page.html": {
        "elements in a line": words('<meta name="robots" content="noai">', ""),
        "elements in lines": words('<meta name="robots" content="noai">', "\n"),
        "words": around('<meta name="robots" content="{}">', words("noai#", ", ")),
        "links": words('<link rel="license" href="/#">', ""),
    },
}


def snapshot_of(kind: str, text: str, folder: Path) -> Snapshot:
    file = folder / KINDS[kind].path.lstrip("/") if KINDS[kind].path else folder / kind
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return Snapshot(file.as_uri(), text, "utf-16", str(folder))


def questions(snapshot: Snapshot) -> dict[str, Callable[[], object]]:
    """Return a call of each task. Positions are near the end of the last longest line."""
    lines = snapshot.text.split("\n")
    line = max(range(len(lines)), key=lambda number: (len(lines[number]), number))
    position = Position(line, len(lines[line]) - 1)
    everything = Range(Position(0, 0), Position(len(lines), 0))
    problems = tasks.find_problems(snapshot)
    calls_of_tasks = (
        partial(tasks.find_problems, snapshot),
        partial(tasks.find_problems_in_folder, snapshot),
        partial(tasks.diagnostics_of, snapshot, problems),
        partial(tasks.symbols_of, snapshot),
        partial(tasks.folding_of, snapshot),
        partial(tasks.tokens_of, snapshot, 0, len(lines)),
        partial(tasks.format_text, snapshot, tab_size=2, spaces=True),
        partial(tasks.hints_of, snapshot, problems, 0, len(lines)),
        partial(tasks.lenses_of, snapshot),
        partial(tasks.fixes_of, snapshot, problems, everything, None),
        partial(tasks.conversion_of, snapshot, None),
        partial(tasks.other_formats_of, snapshot, (), None),
        partial(tasks.other_form_of, snapshot),
        partial(tasks.hover_at, snapshot, position, problems),
        partial(tasks.locations_at, snapshot, position, definitions_only=False),
        partial(tasks.rename_at, snapshot, position, "other"),
        partial(tasks.name_range_at, snapshot, position),
        partial(tasks.complete_at, snapshot, position, has_snippets=True),
    )
    return {call.func.__name__: call for call in calls_of_tasks}


def test_every_task_is_measured() -> None:
    functions = {
        name
        for name, value in vars(tasks).items()
        if isfunction(value) and value.__module__ == tasks.__name__ and not name.startswith("_")
    }
    assert functions == set(questions(Snapshot("file:///robots.txt", "Allow: /", "utf-16", "/")))


class Counted(int):
    """The number of a line. Comparisons, also those of sets and dictionaries, count as calls."""

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)


def counting(items: Iterable[Any], start: int = 0) -> Iterator[tuple[int, Any]]:
    return ((Counted(number), item) for number, item in builtins.enumerate(items, start))


CASES = [(kind, name) for kind, shapes in SHAPES.items() for name in shapes]


@pytest.mark.requirement("SEC-1", "IDE-1")
@pytest.mark.parametrize(("kind", "name"), one_in(16, CASES))
def test_requests_take_twice_the_calls_for_twice_the_text(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (statements, outline):
        monkeypatch.setattr(module, "enumerate", counting, raising=False)
    counts = []
    for size in (SIZE, 2 * SIZE):
        snapshot = snapshot_of(kind, SHAPES[kind][name](size), tmp_path)
        of_size = {}
        for task, call in questions(snapshot).items():
            call()  # fills the caches
            tasks.outline_of.cache_clear()
            tasks._other_formats.cache_clear()
            of_size[task] = calls(call)
        counts.append(of_size)
    less, more = counts
    assert {
        task: (less[task], more[task]) for task in less if more[task] > GROWTH * less[task] + SLACK
    } == {}


def test_an_answer_has_a_bound() -> None:
    text = "ACAP-crawler: " + " ".join(f"a{number}" for number in range(hints.MAX_HINTS + 10))
    document = Document("file:///site/robots.txt", f"{text}\n{text}\nACAP-disallow-index: /\n")
    answer = hints.hints(FileOutline(document), (), 0, 3)
    assert len(answer) == hints.MAX_HINTS
    assert {hint.label for hint in answer} == {"and line 2"}


def test_a_large_file_is_looked_at_without_its_folder(tmp_path: Path) -> None:
    rules = "Disallow: /a\n" * (diagnostics.MAX_IN_FOLDER // 13)
    (tmp_path / "ai.txt").write_text(
        "User-agent: *\n  Path: / html\n    Element: *\n      Disallow: Train\n", "utf-8"
    )
    for comment, looks in (("", True), ("# a\n" * 10, False)):
        text = (
            "User-agent: *\nContent-Signal: ai-train=yes\n"
            f"{rules[: -100 if looks else None]}{comment}"
        )
        document = Document((tmp_path / "robots.txt").as_uri(), text)
        problems = diagnostics.problems_in(document, tmp_path)
        assert ("comity.contradiction" in {problem.rule for problem in problems}) is looks
