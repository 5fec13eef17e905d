"""`comity lint --fix` and `--diff`: the changes in files, and that nothing is lost."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from lsprotocol.types import Position, Range

from comity.authoring.checks.fixes import write_utf_8
from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.features.actions import FIX_ALL, fixes
from comity.authoring.language_server.features.diagnostics import problems_in
from comity.authoring.workbench.desk import desk_of
from comity.authoring.workbench.markup import problems as problems_list
from comity.cli import main
from comity.policies import Finding
from comity.policies.formats.authoring import Draft, Edit, Fix, apply

MISSPELLED = b"User-agent: *\r\nDissallow: /private/ # mine\r\nUseragent: x\nDisallow: /"
MENDED = b"User-agent: *\r\nDisallow: /private/ # mine\r\nUser-agent: x\nDisallow: /"


@pytest.fixture
def robots(tmp_path: Path) -> Path:
    path = tmp_path / "robots.txt"
    path.write_bytes(MISSPELLED)
    return path


@pytest.mark.requirement("IDE-6")
def test_fix_writes_the_file_and_keeps_the_rest_of_it(
    robots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robots.chmod(0o640)
    assert main(["lint", "--fix", "--select", "robots.misspelled", str(robots)]) == 0
    assert robots.read_bytes() == MENDED
    assert robots.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out == "Nothing is wrong.\n"
    assert main(["lint", "--diff", "--select", "robots.misspelled", str(robots)]) == 0
    assert capsys.readouterr().out == ""
    assert list(robots.parent.iterdir()) == [robots]


def test_diff_shows_what_would_be_written_and_writes_nothing(
    robots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", "--diff", "--select", "robots.misspelled", str(robots)]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [f"--- {robots}", f"+++ {robots}"]
    assert [line for line in shown[2:] if line.startswith(("-", "+"))] == [
        "-Dissallow: /private/ # mine",
        "-Useragent: x",
        "+Disallow: /private/ # mine",
        "+User-agent: x",
    ]
    assert robots.read_bytes() == MISSPELLED


def test_a_folder_is_mended_file_by_file(robots: Path) -> None:
    (robots.parent / "notes.txt").write_bytes(b"Dissallow: /\n")
    main(["lint", "--fix", str(robots.parent)])
    assert b"Dissallow" not in robots.read_bytes()
    assert (
        robots.parent / "notes.txt"
    ).read_bytes() == b"Dissallow: /\n"  # the file has no known kind


def test_standard_input_is_printed_mended(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(MISSPELLED), encoding="utf-8"))
    assert main(["lint", "--fix", "--select", "robots.misspelled", "--as", "robots.txt", "-"]) == 0
    assert capsysbinary.readouterr().out == MENDED


def test_a_file_that_cannot_be_written_is_named(
    robots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (robots.parent / ".robots.txt.part").mkdir()
    assert main(["lint", "--fix", str(robots)]) == 2
    assert f"{robots} cannot be written" in capsys.readouterr().err
    assert robots.read_bytes() == MISSPELLED


# The edits


def fix(*edits: tuple[int, int, bytes]) -> Fix:
    return Fix("mend", tuple(Edit(*edit) for edit in edits))


@pytest.mark.parametrize(
    ("fixes", "expected", "made"),
    [
        ([], b"0123456789", 0),
        ([fix((2, 4, b"ab"))], b"01ab456789", 1),
        ([fix((2, 4, b"")), fix((4, 5, b"x"))], b"01x56789", 2),
        ([fix((2, 4, b"a")), fix((3, 5, b"b"))], b"01a456789", 1),
        ([fix((3, 3, b"a")), fix((3, 3, b"a"))], b"012a3456789", 1),
        ([fix((0, 1, b"a"), (9, 10, b"z")), fix((9, 10, b"y"), (4, 5, b"x"))], b"a12345678z", 1),
        ([fix((0, 10, b"")), fix((1, 2, b"x"))], b"", 1),
    ],
)
def test_of_fixes_that_touch_the_same_octets_the_first_is_made(
    fixes: list[Fix], expected: bytes, made: int
) -> None:
    body, done = apply(b"0123456789", fixes)
    assert (body, len(done)) == (expected, made)


@pytest.mark.parametrize(
    "body",
    [
        (MISSPELLED.decode() * 5000).encode("utf-16"),
        ("a" * 50 + "\u4e2d" * 200_000).encode("utf-16"),
        b"\xe9" * 400_000,
    ],
    ids=["too long", "too long after the fix", "Windows-1252"],
)
def test_a_file_beyond_the_limit_keeps_its_encoding(body: bytes) -> None:
    finding = Finding(rule="comity.file-encoding", message="", url="", line=0)
    assert write_utf_8(Draft("", body), finding) is None
    assert write_utf_8(Draft("", body[:100]), finding)


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\r\nb\rc\nd", [b"a", b"b", b"c", b"d"]),
        (b"\xef\xbb\xbfa\nb\n", [b"a", b"b"]),
        (b"\n\n", [b"", b""]),
    ],
)
def test_lines_of_a_draft_are_those_of_the_readers(body: bytes, lines: list[bytes]) -> None:
    draft = Draft("https://example.com/robots.txt", body)
    assert [draft.line(number + 1) for number in range(draft.lines)] == lines
    assert all(
        body[draft.start(number + 1) :].startswith(line) for number, line in enumerate(lines)
    )
    assert draft.has_places


def test_places_in_utf_16_are_nowhere_in_the_octets() -> None:
    assert not Draft(
        "https://example.com/robots.txt", "User-agent: *\n".encode("utf-16")
    ).has_places


# Fixes that change decisions

RELATIVE = b"User-agent: *\nDissallow: /a/\nDisallow: private/\n"
SAFELY = b"User-agent: *\nDisallow: /a/\nDisallow: private/\n"
WHOLLY = b"User-agent: *\nDisallow: /a/\nDisallow: /private/\n"


@pytest.mark.requirement("IDE-6")
def test_only_chosen_fixes_change_decisions(
    robots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robots.write_bytes(RELATIVE)
    main(["lint", "--fix", str(robots)])
    assert robots.read_bytes() == SAFELY
    out = capsys.readouterr().out
    assert "    --unsafe-fixes: Write `/private/` (changes decisions)" in out
    assert "--fix --unsafe-fixes mends 1 more and changes decisions" in out
    main(["lint", "--diff", "--unsafe-fixes", str(robots)])
    assert "+Disallow: /private/" in capsys.readouterr().out
    assert robots.read_bytes() == SAFELY
    main(["lint", "--fix", "--unsafe-fixes", str(robots)])
    assert robots.read_bytes() == WHOLLY


def test_unsafe_fixes_alone_are_one_clear_line(
    robots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", "--unsafe-fixes", str(robots)]) == 2
    assert "--unsafe-fixes has no effect alone: add --fix or --diff" in capsys.readouterr().err
    assert robots.read_bytes() == MISSPELLED


def test_an_editor_fixes_at_once_only_without_a_change_of_decisions() -> None:
    document = Document("file:///srv/site/robots.txt", RELATIVE.decode())
    whole = Range(Position(0, 0), Position(3, 0))
    *single, at_once = fixes(document, problems_in(document), whole)
    assert [(action.title, action.is_preferred) for action in single] == [
        ("Write `Disallow`", True),
        ("Write `/private/` (changes decisions)", False),
    ]
    assert at_once.kind == FIX_ALL
    assert at_once.edit
    assert at_once.edit.changes
    [edits] = at_once.edit.changes.values()
    assert [edit.new_text for edit in edits] == ["Disallow"]


def test_the_workbench_marks_a_fix_that_changes_decisions(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_bytes(RELATIVE)
    [found] = desk_of(str(tmp_path)).state().problems().values()
    shown = problems_list(found, is_editable=True)
    assert "Fix: Write Disallow<" in shown
    assert "Fix: Write /private/ (changes decisions)" in shown


def mended(path: Path, text: str) -> str:
    """Return the text of a file after `comity lint --fix --unsafe-fixes`."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    main(["lint", "--fix", "--unsafe-fixes", str(path)])
    return path.read_bytes().decode()


@pytest.mark.requirement("IDE-6")
def test_only_the_policy_of_the_finding_is_deleted(tmp_path: Path) -> None:
    reserved = '{"location":"/a","tdm-reservation":1,"tdm-policy":"https://x.org/p"}'
    free = '{"location":"/b","tdm-reservation":0'
    text = f'[{reserved},{free},"tdm-policy":"https://x.org/q"}}]\n'
    assert mended(tmp_path / ".well-known" / "tdmrep.json", text) == f"[{reserved},{free}}}]\n"


META = "<meta name=robots content='{}'>\n"


@pytest.mark.requirement("IDE-6")
@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (META.format("noydir, noindex"), META.format("noindex")),
        ("<title>noydir</title>" + META.format("noydir, noindex"), "<title>noydir</title>"),
        ("<title>noydir</title><meta name=robots\ncontent='noydir, noindex'>\n", ""),
        ("<title>nonindex</title><meta name=robots\ncontent='nonindex'>\n", ""),
        ("<title>property = x</title><meta\nproperty=robots content=noindex>\n", ""),
        (f"<!-- {META.strip()} --><meta name=robots\ncontent='noydir, noindex'>\n", ""),
        ("<script>'<meta noydir>'</script><meta name=robots\ncontent='noydir, noindex'>\n", ""),
    ],
)
def test_a_fix_of_a_directive_changes_only_its_element(
    page: str, expected: str, tmp_path: Path
) -> None:
    found = mended(tmp_path / "page.html", page)
    assert found.startswith(expected) if expected else found == page


@pytest.mark.requirement("IDE-6")
@pytest.mark.parametrize(
    ("beside", "is_mended"),
    [
        ("", True),
        ("<!-- a & b -->", False),
        ("<x><![CDATA[a & b]]></x>", False),
        ("<?note a & b?>", False),
    ],
)
def test_ampersands_beside_comments_have_no_fix(
    beside: str, is_mended: bool, tmp_path: Path
) -> None:
    line = f'{beside}<content url="/search?q=news&page=*"></content>'
    text = f'<rsl xmlns="https://rslstandard.org/rsl">\n{line}\n</rsl>\n'
    expected = text.replace("&page", "&amp;page") if is_mended else text
    assert mended(tmp_path / "rsl.xml", text) == expected


def test_no_unsafe_fix_is_built_on_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "robots.txt"
    file.write_text("User-agent: *\nContent-Signal: ai-train=y, ai=y\nDisallow:\n")
    main(["lint", "--fix", "--unsafe-fixes", str(file)])
    capsys.readouterr()
    assert "Content-Signal: ai-train=yes, ai-train=y\n" in file.read_text()


@pytest.mark.requirement("IDE-6")
@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        # Without the line between CR and LF these two would end one line.
        (
            "automation-preferences.txt",
            "user-agent: a\nscope: /\nallowed-methods: GET\rallow-xhr: true\nallow-xhr: true\n\n",
            ("\r", "\n"),
        ),
        # What is shown of a hidden character is no text to write.
        (
            "automation-preferences.txt",
            "user-agent: *\nscope: \x85a/\nallowed-methods: GET\n",
            ("\x85", ""),
        ),
        (
            "ai.txt",
            "User-agent: *\n  Path: \u2028a html\n    Element: *\n      Disallow: Train\n",
            ("\u2028", ""),
        ),
        # An empty line directly above a License would put it outside of the group.
        (
            "robots.txt",
            "User-agent: *\nDisallow: /a\n\nVisit-time: 0.5\nLicense: /l\n",
            ("\n\n", "\n"),
        ),
        ("robots.txt", "User-agent: *\nDisallow: /a\n\n// news\nLicense: /l\n", ("\n\n", "\n")),
        ("robots.txt", "User-agent: a\nVisit-time: 0.5\n", ("\nV", "\nDisallow: /\nV")),
    ],
)
def test_a_fix_that_would_change_decisions_is_not_a_safe_one(
    name: str, text: str, changed: tuple[str, str], tmp_path: Path
) -> None:
    """`changed`: what is replaced in the text, and by what, so that the fix is safe."""
    assert mended(tmp_path / name, text) == text
    safe = text.replace(*changed)
    assert mended(tmp_path / name, safe) != safe


def test_a_proposal_shows_hidden_characters_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "robots.txt"
    file.write_bytes("Clean-param: a&\u202e b\n".encode())
    main(["lint", str(file)])
    shown = capsys.readouterr().out
    assert "Write `a&\ufffd&b`." in shown
    assert "\u202e" not in shown
