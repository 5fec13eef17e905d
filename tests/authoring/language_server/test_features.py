"""Symbols, folding, tokens, names, actions, formatting, hints and lenses of a document."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    CreateFile,
    Position,
    Range,
    TextDocumentEdit,
    TextEdit,
)

from comity.authoring.language_server.documents import Buffer, Document
from comity.authoring.language_server.features import actions, names
from comity.authoring.language_server.features.completion import completion
from comity.authoring.language_server.features.diagnostics import diagnostics, problems_in
from comity.authoring.language_server.features.formatting import formatting
from comity.authoring.language_server.features.hints import hints, lenses
from comity.authoring.language_server.features.hover import hover
from comity.authoring.language_server.features.symbols import folding, symbols
from comity.authoring.language_server.features.tokens import TYPES, tokens
from comity.authoring.language_server.outline import FileOutline
from comity.authoring.language_server.samples import Samples
from comity.authoring.problems import LineSpan, Problem
from comity.policies import Agent, Site, Verdict, ai_txt_from_xml
from comity.policies.answers.decision import Finding
from comity.policies.formats.ai_txt import parse, spawning
from comity.policies.formats.authoring import Edit, Fix
from tests.authoring.language_server.editing import at
from tests.selection import one_in

ACAP = """\
# The rules
# of the site
User-agent: a
User-agent: b
Disallow: /x

ACAP-resource-set: news /news/ /opinion/
ACAP-qualified-usage: teaser present-snippet max-length=30-words
ACAP-composite-usage: all (teaser) index
ACAP-crawler: *
ACAP-allow-(Teaser): the-acap:resource-set:news
ACAP-allow-index: the-acap:resource-set:News
ACAP-allow-(all): /
"""
AI = """\
User-agent: *
  Path: / html
    Element: p
      Disallow: Train
      Guide: Index
        Lang: en
        Guideline: Be kind.
"""


def outline(name: str, text: str) -> FileOutline:
    return FileOutline(Document(f"file:///site/{name}", text))


def apply_edits(document: Document, edits: list[TextEdit]) -> str:
    buffer = Buffer(document.text)
    for edit in sorted(
        edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True
    ):
        buffer.replace(edit.range, edit.new_text, document.encoding)
    return buffer.text


# Names


def mark_position(text: str, place: str, offset: int = 0) -> tuple[FileOutline, Position]:
    index = text.index(place) + offset
    return at("robots.txt", f"{text[:index]}|{text[index:]}")


PLACES = [("resource-set:News", 14, 6), ("(Teaser)", 3, 7), ("(teaser)", 3, 7), ("(all)", 2, 8)]


@pytest.mark.parametrize(("place", "offset", "line"), PLACES)
def test_a_name_leads_to_its_definition(place: str, offset: int, line: int) -> None:
    found = names.locations(*mark_position(ACAP, place, offset), definitions_only=True)
    assert [location.range.start.line for location in found] == [line]


def test_references_are_all_places_whatever_their_case() -> None:
    found = names.locations(*mark_position(ACAP, "news /news/", 1), definitions_only=False)
    assert [location.range.start.line for location in found] == [6, 10, 11]
    found = names.locations(
        *mark_position(ACAP, "teaser present", 1), definitions_only=False, with_definitions=False
    )
    assert [location.range.start.line for location in found] == [8, 10]


def test_a_name_is_renamed_everywhere_and_nothing_else_is() -> None:
    place = mark_position(ACAP, "news /news/", 2)
    edit = names.rename(*place, "articles")
    assert edit
    assert edit.changes
    assert apply_edits(
        place[0].document, list(edit.changes["file:///site/robots.txt"])
    ) == ACAP.replace("set: news", "set: articles").replace("set:news", "set:articles").replace(
        "set:News", "set:articles"
    )


@pytest.mark.parametrize("name", ["", "a b", "1a", "(x)", "all", "index"])
def test_a_name_that_means_something_else_is_no_new_name(name: str) -> None:
    assert names.rename(*mark_position(ACAP, "teaser present", 1), name) is None


def test_a_set_and_a_usage_of_one_name_are_two() -> None:
    text = ACAP.replace("teaser", "news").replace("Teaser", "news")
    found = names.locations(*mark_position(text, "usage: news", 8), definitions_only=False)
    assert [location.range.start.line for location in found] == [7, 8, 10]


# Symbols, folding and tokens


def test_symbols_are_groups_with_their_lines() -> None:
    roots = symbols(outline("robots.txt", ACAP))
    assert [symbol.name for symbol in roots][:3] == [
        "User-agent: a",
        "User-agent: b",
        "ACAP-resource-set: news /news/ /opinion/",
    ]
    assert [child.name for child in roots[1].children or ()] == ["Disallow: /x"]
    nested = symbols(outline("ai.txt", AI))
    path = (nested[0].children or [])[0]
    element = (path.children or [])[0]
    assert [child.name for child in element.children or ()] == ["Disallow: Train", "Guide: Index"]
    assert nested[0].range.end == Position(6, 27)


def test_blocks_and_comments_are_folded() -> None:
    ranges = {(fold.start_line, fold.end_line) for fold in folding(outline("robots.txt", ACAP))}
    assert ranges == {(0, 1), (3, 4), (9, 12)}
    xml = '<rsl>\n <content url="/">\n  <license>\n  </license>\n </content>\n</rsl>\n'
    assert {(fold.start_line, fold.end_line) for fold in folding(outline("rsl.xml", xml))} == {
        (0, 5),
        (1, 4),
        (2, 3),
    }


def decode_tokens(document: FileOutline, *lines: int) -> list[tuple[str, str]]:
    """Return the text and type of each token."""
    line = column = 0
    found = []
    data = list(tokens(document, *lines).data)
    for number in range(0, len(data), 5):
        down, right, length, kind, _ = data[number : number + 5]
        line, column = line + down, right if down else column + right
        text = (
            document.document.line(line)
            .encode("utf-16-le")[2 * column : 2 * (column + length)]
            .decode("utf-16-le")
        )
        found.append((text, TYPES[kind]))
    return found


def test_tokens_say_what_words_are() -> None:
    text = "User-agent: GPTBot # 😀\nDisallow: /a\nContent-Usage: train-ai=n # x\nNonsense: 1\n"
    assert decode_tokens(outline("robots.txt", text)) == [
        ("User-agent", "keyword"), ("GPTBot", "type"), ("# 😀", "comment"),
        ("Disallow", "keyword"), ("/a", "string"),
        ("Content-Usage", "keyword"), ("train-ai=n", "enumMember"), ("# x", "comment"),
    ]  # fmt: skip
    assert decode_tokens(outline("robots.txt", text), 1, 1) == [
        ("Disallow", "keyword"),
        ("/a", "string"),
    ]


def test_a_number_sign_in_a_selector_begins_no_comment() -> None:
    assert ("#main", "class") in decode_tokens(
        outline("ai.txt", "User-agent: *\n  Path: / html\n    Element: #main\n")
    )


PARTS = st.lists(
    st.sampled_from(
        [
            *(
                "User-agent: a",
                "User-agent: b",
                "Disallow: /x",
                "ACAP-crawler: *",
                "ACAP-allow-(t): /",
                "",
                "# User-agent: c",
            ),
            *(
                "ACAP-resource-set: s /a",
                "ACAP-qualified-usage: t index",
                "ACAP-allow-index: ",
                "License: /l",
                "Nonsense: 1",
            ),
            *(
                "  Path: / html",
                "    Element: p",
                "      Guide: Index",
                "        Lang: ",
                "\ufeffUser-agent: d",
                "scope: /",
                "AC",
            ),
            *(
                "allowed-methods: GET",
                "user-agent: e",
                " User-Agent : f g",
                "User-agent: ",
                "USER-AGENT:a# b",
                "user agent: h",
            ),
            *(
                "acap-Resource-Set: v /b",
                "ACAP-composite-usage: u (",
                "ACAP-allow-(",
                "ACAP-crawler: a, c",
            ),
        ]
    ),
    max_size=12,
)


@given(
    st.sampled_from(["robots.txt", "ai.txt", "automation-preferences.txt"]),
    PARTS,
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_a_part_of_a_file_is_as_it_is_in_the_whole(
    name: str, lines: list[str], first: int, last: int
) -> None:
    text = "\n".join(lines)
    whole = outline(name, text)
    assert whole.statements is not None  # the statements are cached now
    assert whole.part(first, last) is whole
    assert tokens(outline(name, text), first, last) == tokens(whole, first, last)
    for line in range(len(whole.document.lines)):
        position = whole.document.position(line, len(whole.document.line(line)))
        assert completion(outline(name, text), position) == completion(whole, position)
        assert hover(outline(name, text), position) == hover(whole, position)
        on_name = whole.document.position(
            line, len(whole.document.line(line)) - len(whole.document.line(line).lstrip()) + 1
        )
        assert hover(outline(name, text), on_name) == hover(whole, on_name)
    assert hints(outline(name, text), [], first, last) == hints(whole, [], first, last)


def test_what_is_typed_in_a_large_file_does_not_wait_for_all_of_it() -> None:
    large = outline(
        "robots.txt",
        "User-agent: a\nDisallow: /\n\n" * 50 + "Dis\n" + "User-agent: a\nDisallow: /\n\n" * 50,
    )
    assert "Disallow" in {item.label for item in completion(large, Position(150, 3)).items}
    assert tokens(large, 140, 160).data
    assert hover(large, Position(3, 3))
    assert hints(large, [], 0, 10)
    assert {"a", "GPTBot"} <= {item.label for item in completion(large, Position(0, 12)).items}
    assert "statements" not in vars(large)
    assert len(large.part(150, 150).statements) == 2


# Actions

PROBLEM = "robots.misspelled"


def problem(document: Document, word: bytes, text: bytes) -> Problem:
    start = document.body.index(word)
    line = document.body[:start].count(b"\n") + 1
    fix = Fix(f"Write {text.decode()}", (Edit(start, start + len(word), text),))
    finding = Finding(rule=PROBLEM, message="m", line=line)
    return Problem("robots.txt", PROBLEM, "m", None, "", fix, finding)._replace(
        span=LineSpan(line, 1, 2)
    )


def test_fixes_are_offered_where_the_problems_are_and_all_at_once() -> None:
    document = Document("file:///robots.txt", "# 😀\nUser-agent: *\nDissallow: /a\nAlow: /b\n")
    found = [problem(document, b"Dissallow", b"Disallow"), problem(document, b"Alow", b"Allow")]
    here = Range(Position(2, 0), Position(2, 5))
    one, every = actions.fixes(document, found, here)
    assert (one.title, one.kind) == ("Write Disallow", CodeActionKind.QuickFix)
    assert one.edit
    assert one.edit.changes
    assert (
        apply_edits(document, list(one.edit.changes[document.uri]))
        == "# 😀\nUser-agent: *\nDisallow: /a\nAlow: /b\n"
    )
    assert every.kind == actions.FIX_ALL
    assert every.edit
    assert every.edit.changes
    assert (
        apply_edits(document, list(every.edit.changes[document.uri]))
        == "# 😀\nUser-agent: *\nDisallow: /a\nAllow: /b\n"
    )
    assert [action.kind for action in actions.fixes(document, found, here, ["source.fixAll"])] == [
        actions.FIX_ALL
    ]
    assert actions.fixes(document, found, here, ["refactor"]) == []


@pytest.mark.requirement("IDE-5")
def test_an_ai_txt_is_written_as_xml_beside_it_and_back() -> None:
    (action,) = actions.conversion(Document("file:///site/ai.txt", AI))
    assert action.title == "Generate XML (ai.xml)"
    assert action.edit
    create, edit = action.edit.document_changes or ()
    assert isinstance(create, CreateFile)
    assert isinstance(edit, TextDocumentEdit)
    assert create.uri == edit.text_document.uri == "file:///site/ai.xml"
    assert isinstance(edit.edits[0], TextEdit)
    xml = edit.edits[0].new_text
    assert parse(ai_txt_from_xml(xml.encode())).rules == parse(AI.encode()).rules != ()
    (back,) = actions.conversion(Document("file:///site/ai.xml", xml))
    assert back.title == "Generate text (ai.txt)"
    assert actions.conversion(Document("file:///site/robots.txt", AI)) == []
    assert (
        actions.conversion(Document("file:///site/ai.txt", "User-agent: *\nDisallow: *.png\n"))
        == []
    )


NO_TRAINING = "User-agent: *\nContent-Usage: train-ai=n\nDisallow:"


def files_after(
    found: list[CodeAction], title: str, others: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the files after an action, by their URIs, and the URIs of new files."""
    (action,) = [action for action in found if action.title == title]
    assert action.edit
    texts, created = {f"file:///site{place}": text for place, text in others.items()}, []
    for change in action.edit.document_changes or ():
        if isinstance(change, CreateFile):
            assert change.uri not in texts
            created.append(change.uri)
            texts[change.uri] = ""
        else:
            assert isinstance(change, TextDocumentEdit)
            uri = change.text_document.uri
            edits = [edit for edit in change.edits if isinstance(edit, TextEdit)]
            texts[uri] = apply_edits(Document(uri, texts[uri]), edits)
    return texts, created


@pytest.mark.requirement("IDE-5")
def test_what_a_file_says_is_written_in_other_formats() -> None:
    document = Document("file:///site/robots.txt", NO_TRAINING)
    others = {"/robots.txt": NO_TRAINING}
    found = actions.other_formats(document, "file:///site", others)
    assert {action.kind for action in found} == {actions.OTHER_FORMAT}
    texts, created = files_after(found, 'Write "No training" as ai.txt', others)
    assert created == ["file:///site/ai.txt"]
    site = Site.from_files(
        "https://example.com", {"/ai.txt": texts["file:///site/ai.txt"].encode()}
    )
    page = site.page(
        Agent("x"),
        "https://example.com/",
        headers=[(b"Content-Type", b"text/html")],
        body=b"<p>Text",
    )
    assert (page.uses["train-ai"].verdict, page.uses["search"].stated) == (Verdict.DENY, False)
    texts, created = files_after(
        found, 'Write "No training" as Content Signals (robots.txt)', others
    )
    assert created == []
    assert (
        texts["file:///site/robots.txt"]
        == NO_TRAINING + "\n\nUser-agent: *\nContent-Signal: ai-train=no\nDisallow:\n"
    )
    assert actions.other_formats(document, "file:///site", others, ["quickfix"]) == []


def test_what_is_there_is_not_written_over() -> None:
    others = {"/robots.txt": "User-agent: *\nDisallow: /x\n", "/ai.txt": "User-agent: *\n"}
    document = Document(
        "file:///site/.well-known/tdmrep.json", '[{"location": "/", "tdm-reservation": 1}]'
    )
    found = actions.other_formats(document, "file:///site", others)
    assert not [action for action in found if "ai.txt" in action.title]
    texts, created = files_after(found, 'Write "No training" as Content-Usage (robots.txt)', others)
    assert created == []
    assert texts["file:///site/robots.txt"] == f"{others['/robots.txt']}\n{NO_TRAINING}\n"


def test_what_cannot_be_told_is_not_offered() -> None:
    for name, text in (
        ("robots.txt", "User-agent: *\nDisallow: /x\n"),
        ("a.html", "<p>"),
        ("ai.txt", AI),
        ("x", ""),
    ):
        assert (
            actions.other_formats(Document(f"file:///site/{name}", text), "file:///site", {}) == []
        )


# Formatting

LINES = st.sampled_from(
    [
        *(
            "User-agent: *",
            "Path: / html",
            "Element: #a .b",
            "Disallow: Train",
            "Guide: Index",
            "Lang: en",
        ),
        *("Guideline: Be  kind.", "# x", "", "Allow: /", "prose"),
    ]
)
INDENTED = st.tuples(
    st.sampled_from(["", "  ", "    ", "\t", " ", "\ufeff", "\xa0"]),
    LINES,
    st.sampled_from(["", " ", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)


def test_lines_of_an_ai_txt_are_indented_as_its_grammar_has_them() -> None:
    flat = "".join(line.lstrip() + " \n" for line in AI.splitlines())
    document = outline("ai.txt", flat)
    assert apply_edits(document.document, formatting(document)) == AI
    assert formatting(outline("ai.txt", AI)) == []
    tabbed = AI.replace("  ", "\t")
    assert formatting(outline("ai.txt", tabbed)) == []


@example("\xa0Path: / html\nAllow: /\n")
@example("User-agent: *\n\ufeffPath: / html\nAllow: /\n")
@given(st.lists(INDENTED, max_size=12).map(lambda lines: "".join(map("".join, lines))))
def test_formatting_changes_no_rule_and_is_done_once(text: str) -> None:
    document = outline("ai.txt", text)
    formatted = apply_edits(document.document, formatting(document))
    before, after = text.encode(), formatted.encode()
    assert (
        parse(after.removeprefix(b"\xef\xbb\xbf")).rules
        == parse(before.removeprefix(b"\xef\xbb\xbf")).rules
    )
    assert spawning(after).patterns == spawning(before).patterns
    assert formatting(outline("ai.txt", formatted)) == []


def test_elsewhere_alignment_is_kept() -> None:
    text = "User-agent:   *   \n  Disallow:   /x # y\t\n"
    document = outline("robots.txt", text)
    assert (
        apply_edits(document.document, formatting(document))
        == "User-agent:   *\n  Disallow:   /x # y\n"
    )


# Hints and lenses


def test_an_agent_that_is_named_elsewhere_too_says_where() -> None:
    found = hints(
        outline("robots.txt", "User-agent: a\nDisallow: /\n\nUser-agent: A\nDisallow: /b\n"),
        [],
        0,
        9,
    )
    assert [(hint.position, hint.label) for hint in found] == [
        (Position(0, 13), "and line 4"),
        (Position(3, 13), "and line 1"),
    ]


def test_a_misspelt_line_says_what_it_is_read_as() -> None:
    document = outline("robots.txt", "User-agent: a\nDissallow: /\n")
    (hint,) = hints(document, problems_in(document.document), 0, 9)
    assert (hint.position.line, hint.label) == (1, "= disallow")
    assert hints(document, problems_in(document.document), 0, 0) == []


def test_a_group_says_of_how_many_sample_pages_it_decides() -> None:
    text = "User-agent: a\nDisallow: /x\n\nUser-agent: *\nDisallow: /\n"
    assert titles(outline("robots.txt", text), "/x", "/y", "/x/z") == [
        "decides 2 of 3 sample URLs",
        "decides 3 of 3 sample URLs",
    ]
    ai = AI.replace("/ html", "/news html")
    assert titles(outline("ai.txt", ai), "/news/1.html", "/shop") == ["decides 1 of 2 sample URLs"]
    assert titles(outline("robots.txt", text)) == []


def titles(document: FileOutline, *targets: str) -> list[str]:
    return [lens.command.title for lens in lenses(document, targets) if lens.command]


# Diagnostics


@pytest.mark.parametrize(("encoding", "end"), [("utf-8", 16), ("utf-16", 14), ("utf-32", 13)])
def test_the_place_of_a_problem_is_counted_as_the_editor_counts(encoding: str, end: int) -> None:
    text = "User-agent: *\nDisallow: /\nDisallow: 😀 x\n"
    document = Document("file:///robots.txt", text, encoding=encoding)
    (found,) = [each for each in diagnostics(document) if each.code == "robots.path"]
    assert found.range == Range(Position(2, 10), Position(2, end))
    assert found.source == "comity"
    assert found.code_description


def test_a_byte_order_mark_moves_no_problem() -> None:
    (found,) = diagnostics(Document("file:///robots.txt", "\ufeffDisallow: /\n"))
    assert found.range == Range(Position(0, 1), Position(0, 12))


# Any content

NAMES = [
    "robots.txt",
    "ai.txt",
    "automation-preferences.txt",
    "tdmrep.json",
    "rsl.xml",
    "ai.xml",
    "a.html",
    "x.py",
]
PIECES = st.sampled_from(
    [
        *"<>\"'=:#/*(){}[],.\\ \n\r\t\x00\x0b\x85\u2028\ufeff😀é",
        "\ud83d",
        *(
            "User-agent",
            "Disallow",
            "ACAP-resource-set: a /",
            "ACAP-allow-(a)",
            "the-acap:resource-set:a",
            "Path: / html\n",
        ),
        *(
            "Element: ",
            "<rsl",
            "<content url=",
            "<license>",
            "</rsl>",
            "<ai-txt>",
            "<meta name=",
            "content=",
            "<!--",
            "-->",
        ),
        *("<![CDATA[", '"tdm-reservation": 1'),
    ]
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("encoding", one_in(2, ["utf-16", "utf-8"]))
@given(st.lists(PIECES, max_size=25).map("".join), st.integers(0, 8), st.integers(0, 40))
def test_any_text_has_an_answer_within_it(
    name: str, encoding: str, text: str, line: int, column: int
) -> None:
    document = Document(f"file:///site/{name}", Buffer(text).text, encoding=encoding)
    read, position = FileOutline(document), Position(line, column)
    found = problems_in(document)
    site = Samples(("/a", "/b?c"), ("/",), ("p", "#a"))
    for item in completion(read, position, site).items:
        assert isinstance(item.text_edit, TextEdit)
        check(item.text_edit.range, document)
    hover(read, position)
    names.rename(read, position, "b")
    for location in names.locations(read, position, definitions_only=False):
        check(location.range, document)
    for report in diagnostics(document, found):
        check(report.range, document)
    for action in actions.fixes(document, found, Range(Position(0, 0), document.end)):
        for edits in (action.edit.changes or {}).values() if action.edit else ():
            for edit in edits:
                check(edit.range, document)
    for edit in formatting(read):
        check(edit.range, document)
    for symbol in symbols(read):
        check(symbol.range, document)
        check(symbol.selection_range, document)
        assert inside(symbol.selection_range, symbol.range)
    for fold in folding(read):
        assert 0 <= fold.start_line < fold.end_line < len(document.lines)
    numbers = list(tokens(read).data)
    assert all(number >= 0 for number in numbers)
    hints(read, found, 0, 100)
    lenses(read, site.targets)
    actions.conversion(document)


def key(position: Position) -> tuple[int, int]:
    return position.line, position.character


def inside(inner: Range, outer: Range) -> bool:
    return key(outer.start) <= key(inner.start) <= key(inner.end) <= key(outer.end)


def check(place: Range, document: Document) -> None:
    assert inside(place, Range(Position(0, 0), document.end))
    for position in (place.start, place.end):
        assert document.position(*document.line_and_column(position)) == position
