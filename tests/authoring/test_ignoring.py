"""Findings that authors ignore: comments in a file, and `.comity.toml` above it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from comity.authoring import ignoring
from comity.authoring.ignoring import Configuration, without_ignored
from comity.authoring.language_server.documents import Document
from comity.authoring.language_server.features.diagnostics import problems_in
from comity.authoring.lint import KINDS, lint_file, site_folder
from comity.authoring.workbench.desk import desk_of
from comity.cli import main
from comity.policies import Finding
from comity.policies.formats.authoring import Draft
from tests.effort import calls

ANY = "User-agent: *\n"
BAD = f"{ANY}Disallow: a\nDisallow: b\n"


def found(body: str, kind: str = "robots.txt") -> list[tuple[str, int]]:
    problems = lint_file(KINDS[kind], kind, body.encode())
    return [(problem.rule, problem.span.line if problem.span else 0) for problem in problems]


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (BAD, [("robots.path", 2), ("robots.path", 3)]),
        (f"{ANY}Disallow: a # comity: ignore robots.path\nDisallow: b\n", [("robots.path", 3)]),
        (f"{ANY}# comity: ignore robots.path\nDisallow: a\nDisallow: b\n", [("robots.path", 4)]),
        (f"{ANY}Disallow: a # comity: ignore robots\nDisallow: b\n", [("robots.path", 3)]),
        (f"# comity: ignore-file robots.path\n{BAD}", []),
        (f"# comity: ignore-file robots.url, robots.path\n{BAD}", []),
        (f"# comity: ignore-file robots.url\n{BAD}", [("robots.path", 3), ("robots.path", 4)]),
        (
            f"{ANY}Disallow: /a # comity: ignore robots.pth\n",
            [("comity.ignore", 2)],
        ),
        (f"{ANY}Disallow: a # see comity: ignore robots.path\n", [("robots.path", 2)]),
    ],
)
def test_a_comment_ignores_rules(body: str, expected: list[tuple[str, int]]) -> None:
    assert found(body) == expected


def test_markup_has_comments_of_its_own() -> None:
    page = '<meta name="robots" content="nonindex">\n'
    assert found(page, "page.html")
    comment = "<!-- comity: ignore-file robots-meta -->\n"
    assert found(comment + page, "page.html") == []


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("end", ["!", "-->", "", "!-->"])
@pytest.mark.parametrize("filling", [" ", "\t", ",", "# comity: ignore ", "<!-- comity: ignore "])
def test_a_hostile_comment_takes_steps_in_proportion_to_its_length(filling: str, end: str) -> None:
    """A pattern that goes back over the spaces does not end for this file."""

    def steps(size: int) -> int:
        body = f"# comity: ignore {filling * size}{end}\n".encode()
        return calls(lambda: without_ignored(Draft("https://x.org/robots.txt", body), []))

    assert steps(40_000) <= 2 * steps(20_000) + 100


@pytest.mark.requirement("SEC-1")
def test_the_names_in_the_comments_of_a_file_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name without a rule is compared with all rules, which takes long."""
    monkeypatch.setattr(ignoring, "MAX_NAMES", 20)

    def problems(lines: int) -> list[Finding]:
        body = f"# comity: ignore{' xyzzy.abcde' * 5}\n" * lines
        return without_ignored(Draft("https://x.org/robots.txt", body.encode()), [])

    assert len(problems(4)) == 20
    *_, last = problems(5)
    assert (last.rule, last.line) == ("comity.ignore", 5)
    assert "Only 20 names" in last.message
    assert calls(lambda: problems(1000)) <= calls(lambda: problems(5)) + 10_000


def write(folder: Path, configuration: str) -> Path:
    (folder / "site").mkdir()
    file = folder / "site" / "robots.txt"
    file.write_text(BAD)
    (folder / ".comity.toml").write_text(configuration)
    return file


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ('ignore = ["robots.path"]', []),
        ('[ignore-in]\n"site/*" = ["robots"]', []),
        ('[ignore-in]\n"other/*" = ["robots"]', ["robots.path"] * 2),
        ('ignore = ["robots.pth"]', ["comity.ignore", *["robots.path"] * 2]),
        ('ignore = "robots.path"', ["comity.ignore", *["robots.path"] * 2]),
        ("ignores = []", ["comity.ignore", *["robots.path"] * 2]),
        ("ignore-in = 1", ["comity.ignore", *["robots.path"] * 2]),
        ("ignore = [", ["comity.ignore", *["robots.path"] * 2]),
    ],
)
def test_a_configuration_above_the_file_ignores_rules_everywhere(
    configuration: str, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, configuration)
    for target in (file, file.parent):
        status = main(["lint", "--format", "json", str(target)])
        problems = json.loads(capsys.readouterr().out)["problems"]
        assert [problem["rule"] for problem in problems] == expected
        assert status == (1 if expected else 0)
    for folder in (None, file.parent):
        in_editor = problems_in(Document(file.as_uri(), file.read_text()), folder)
        assert [problem.rule for problem in in_editor] == expected


def test_ignored_problems_are_not_fixed(tmp_path: Path) -> None:
    file = write(tmp_path, 'ignore = ["robots.path"]')
    main(["lint", "--fix", "--unsafe-fixes", str(file)])
    assert file.read_text() == BAD


def test_the_workbench_ignores_the_same_findings(tmp_path: Path) -> None:
    file = write(tmp_path, 'ignore = ["robots.path"]')
    state = desk_of(str(file.parent)).state()
    [problems] = state.problems().values()
    assert problems == []


def test_a_path_with_dots_has_the_configuration_above_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder, "").replace(folder / "robots.txt")
    (folder / ".comity.toml").rename(tmp_path / ".comity.toml")
    (tmp_path / ".comity.toml").write_bytes(b'ignore = ["robots.path"]')
    tool = folder / "tool"
    tool.mkdir()
    (tool / ".comity.toml").write_bytes(b"")
    (tool / "robots.txt").write_bytes(b"")
    monkeypatch.chdir(tool)
    assert main(["lint", "../robots.txt"]) == 0
    assert capsys.readouterr().out == "Nothing is wrong.\n"
    assert site_folder(Path("../page.html"), KINDS["page.html"]) == folder


@pytest.mark.parametrize("targets", [["."], ["robots.txt", "ai.txt", "tool/robots.txt"]])
def test_a_mistake_in_the_configuration_is_told_once(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    targets: list[str],
) -> None:
    (tmp_path / ".comity.toml").write_bytes(b"ignores = []")
    (tmp_path / "tool").mkdir()
    for name in ("robots.txt", "ai.txt", "tool/robots.txt"):
        (tmp_path / name).write_text(f"{ANY}Disallow: /a/\n")
    monkeypatch.chdir(tmp_path)
    assert main(["lint", *targets]) == 1
    assert capsys.readouterr().out.count("`ignores` is unknown") == 1


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (b"a = " + b"[" * 5000 + b"]" * 5000, "cannot be read: A value is nested too deeply"),
        (b"# " + b"x" * 2**20, "cannot be read: It has more than 1,048,576 octets."),
        (b"a = \xff", "cannot be read: "),
    ],
)
def test_a_hostile_configuration_is_a_finding(
    configuration: bytes, message: str, tmp_path: Path
) -> None:
    file = write(tmp_path, "")
    (tmp_path / ".comity.toml").write_bytes(configuration)
    [mistake] = Configuration.of(file).mistakes
    assert message in mistake


def test_a_configuration_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = write(tmp_path, '\ufeffignore = ["robots.path"]')
    assert Configuration.of(file) == Configuration(frozenset({"robots.path"}))


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (
            'ignore = "x"',
            '`ignore` is `"x"`. Write a list of rules: `ignore = ["comity.file-size"]`.',
        ),
        (
            '[ignore-in]\n"site/*" = 3',
            "`site/*` in `ignore-in` is `3`. Write a list of rules: "
            '`"site/*" = ["comity.file-size"]`.',
        ),
        (
            "ignore-in = 1979-05-27",
            '`ignore-in` is `"1979-05-27"`. Write a table: `[ignore-in]`, and below it '
            '`"site/*" = ["comity.file-size"]`.',
        ),
        (
            '[ignore-in]\n"site/*" = ["robots.pth"]',
            "`site/*` in `ignore-in`: `robots.pth` is not a rule",
        ),
        ("ignores = 1", "`ignores` is unknown. Write `ignore` or `ignore-in`."),
        ("ignore = [", "cannot be read: "),
    ],
)
def test_a_mistake_in_a_configuration_names_its_file_key_and_value(
    configuration: str, message: str, tmp_path: Path
) -> None:
    [mistake] = Configuration.of(write(tmp_path, configuration)).mistakes
    assert mistake.startswith(f"{tmp_path / '.comity.toml'}: {message}")


@pytest.mark.parametrize("kind", ["page.html", "rsl.xml"])
@pytest.mark.parametrize("line", ["# comity: ignore-file {}", "x # comity: ignore-file {}"])
def test_text_in_markup_is_not_a_comment(kind: str, line: str) -> None:
    text = f"<pre>\n{line.format('robots-meta rsl')}\n</pre><meta name=robots content=nonindex>\n"
    assert found(text, kind)
    assert found(text, kind) == found(text.replace("comity:", "x"), kind)
    text = f"Words first. {text}"
    assert found(text, "page.html") == found(text.replace("comity:", "x"), "page.html")


def test_stacked_comments_are_for_the_line_below_them() -> None:
    comments = "# comity: ignore robots.path\n# comity: ignore robots.url\n"
    assert found(f"{ANY}{comments}Disallow: a\n") == []
    assert found(f"{ANY}{comments}\nDisallow: a\n") == [("robots.path", 5)]


@pytest.mark.parametrize(
    ("comment", "write"),
    [
        ("# comity: ignore robots.path (ticket 12)", "# comity: ignore robots.path"),
        ("# Comity: Ignore robots.path", "# comity: ignore robots.path"),
        ("# comity: ignore-File robots.path", "# comity: ignore-file robots.path"),
        ("# comity: ignore", "# comity: ignore comity.file-size"),
        ("# comity: ignore!?", ""),
        ("# comity: ignores robots.path", ""),
        ("# comity: ignore (ticket 12)", "# comity: ignore comity.file-size"),
        ("# comity: ignore , robots.url,robots - why?", "# comity: ignore robots.url, robots"),
        (
            "# comity: ignore robots.url # comity: ignore robots.path",
            "# comity: ignore robots.url",
        ),
    ],
)
def test_an_unreadable_comment_is_reported(comment: str, write: str) -> None:
    body = f"{ANY}{comment}\nAllow: a".encode()
    [*unread, other] = lint_file(KINDS["robots.txt"], "robots.txt", body)
    assert other.rule == "robots.path"
    assert [problem.message for problem in unread] == [
        f"This comment is not read. Write only names of rules behind `ignore`: `{write}`."
    ] * bool(write)
    assert [problem.rule for problem in unread] == ["comity.ignore"] * bool(write)


def test_an_unreadable_comment_in_markup_is_reported() -> None:
    comment = "<!-- comity: ignore-file robots-meta (I know) -->"
    page = f"{comment}\n<meta name=robots content=nonindex>\n"
    assert found(page, "page.html")[0] == ("comity.ignore", 1)
    [problem, *_] = lint_file(KINDS["page.html"], "page.html", page.encode())
    assert "`<!-- comity: ignore-file robots-meta -->`" in problem.message


def test_a_comment_in_markup_may_have_markup_behind_it() -> None:
    page = "<!-- comity: ignore robots-meta --><meta name=robots content=nonindex>\n"
    assert found(page, "page.html") == []


@pytest.mark.parametrize("target", [".", "tdmrep.json"])
def test_a_configuration_ignores_the_wrong_place_of_a_file(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tdmrep.json").write_bytes(b"[]")
    arguments = ["lint", "--select", "comity.file-place", target]
    assert main(arguments) == 1
    (tmp_path / ".comity.toml").write_bytes(b'ignore = ["comity.file-place"]')
    assert main(arguments) == 0
    assert capsys.readouterr().out.endswith("Nothing is wrong.\n")
