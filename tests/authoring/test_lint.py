"""`comity lint`: problems in files, folders and sites, their output, and their fixes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sarif_pydantic import Sarif

from comity.authoring.checks import contradictions
from comity.authoring.commands import lint as lint_command
from comity.authoring.lint import KINDS, kind_of, lint_file, lint_site, site_folder
from comity.authoring.rules import as_markdown, as_plain_text, href
from comity.authoring.sites import load
from comity.authoring.source import SiteSource, SourceFile
from comity.cli import main
from comity.policies import Fetched, Site
from comity.policies.answers.rule import RULES
from comity.policies.formats import FORMATS
from comity.policies.formats.ai_txt import file as ai_txt_file
from comity.policies.formats.automation import file as automation_file
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Serve

MISSPELLED = b"User-agent: *\nDissallow: /private/\n"


@pytest.fixture
def lint(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `comity lint`. Return its exit status, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main(["lint", *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


Lint = Callable[..., tuple[int, str, str]]


def write(folder: Path, files: Mapping[str, bytes | str]) -> Path:
    for name, body in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body.encode() if isinstance(body, str) else body)
    return folder


def rules(folder: Path, files: Mapping[str, bytes | str], rule: str) -> list[tuple[str, int, str]]:
    """Return the problems of a rule in a folder: file, line and message."""
    problems = lint_site(load(str(write(folder, files))))
    return [
        (Path(problem.file).name, problem.span.line if problem.span else 0, problem.message)
        for problem in problems
        if problem.rule == rule
    ]


# Output


@pytest.mark.requirement("IDE-4")
def test_a_problem_is_shown_at_its_place_with_its_section(tmp_path: Path, lint: Lint) -> None:
    file = write(tmp_path, {"robots.txt": MISSPELLED}) / "robots.txt"
    status, out, _ = lint(file)
    assert status == 1
    assert out.splitlines()[:3] == [
        f"{file}:2:1: error: `dissallow` is read as `disallow` [robots.misspelled, RFC 9309 "
        "section-2.2]",
        "  2 | Dissallow: /private/",
        "    | ^^^^^^^^^",
    ]
    assert out.splitlines()[-1] == "1 error, 1 info in 1 file; --fix mends 1."


@pytest.mark.parametrize(
    ("name", "line", "marked"),
    [
        ("license.rsl.xml", '<permits type="usage">search, searchh</permits>', "searchh"),
        ("license.rsl.xml", '<permits typo="usage" type="usage">search</permits>', "typo"),
        ("license.rsl.xml", "<permits>search </permits><wrong/>", "wrong"),
        ("page.html", 'é <meta name="robots" content="noindx, noindex">', "noindx"),
        ("page.html", '<meta name="robots" content="noindx"><!-- noindx -->', None),
        ("page.html", '<meta name="robots" content="noind&#120;x">', "noindxx"),
    ],
)
def test_of_markup_what_the_message_quotes_is_marked_where_it_stands_once(
    name: str, line: str, marked: str | None
) -> None:
    rsl = (
        f'<rsl xmlns="https://rslstandard.org/rsl">\n<content url="/">\n<license>\n{line}\n'
        "</license></content></rsl>"
    )
    text = rsl if name.endswith(".xml") else f"<html><head>\n{line}\n</head>"
    kind = kind_of(name, text.encode())
    assert kind
    number = text.split("\n").index(line) + 1
    places = {
        problem.span[1:]
        for problem in lint_file(kind, name, text.encode())
        if problem.span and problem.span.line == number
    }
    start = line.find(marked) if marked else -1
    whole = (1, len(line) + 1)
    assert (
        (start + 1, start + 1 + len(marked)) in places
        if marked and start >= 0
        else places == {whole}
    )


def test_columns_count_characters_and_the_caret_stands_below_them(
    tmp_path: Path, lint: Lint
) -> None:
    file = write(tmp_path, {"robots.txt": "User-agent: *\nDisallow: 日本/€\n"}) / "robots.txt"
    _, out, _ = lint(file, "--select", "robots.path")
    heading, shown, caret, *_ = out.splitlines()
    assert heading.startswith(f"{file}:2:11: ")
    # Each letter is two columns wide.
    assert (shown, caret) == (
        "  2 | Disallow: 日本/€",
        "    |           ^^^^^^",
    )


@pytest.mark.requirement("IDE-6")
def test_many_problems_by_one_rule_are_folded_for_people_alone(tmp_path: Path, lint: Lint) -> None:
    lines = "".join(f"Noindex: /{number}\n" for number in range(40))
    file = (
        write(tmp_path, {"robots.txt": f"User-agent: *\n{lines}Dissallow: /private/\n"})
        / "robots.txt"
    )
    status, out, _ = lint(file, "--select", "robots")
    headings = [line for line in out.splitlines() if line.startswith(str(file))]
    assert status == 1
    assert [line.count("[robots.misplaced,") for line in headings[:5]] == [1] * 5
    assert (
        headings[5]
        == f"{file}: 35 more by robots.misplaced, from line 7 on. --format json lists all."
    )
    assert "[robots.misspelled," in headings[6]
    assert len(headings) == 7
    assert out.splitlines()[-1] == "1 error, 40 warnings in 1 file; --fix mends 1."
    for form, mark in (
        ("json", '"robots.misplaced"'),
        ("sarif", '"ruleId": "robots.misplaced"'),
        ("github", "title=robots.misplaced"),
    ):
        _, out, _ = lint(file, "--select", "robots", "--format", form)
        assert out.count(mark) == 40


def test_what_would_be_hidden_on_a_terminal_is_not(tmp_path: Path, lint: Lint) -> None:
    file = (
        write(tmp_path, {"robots.txt": b"User-agent: *\nDissallow: /\x1b[31m\xe2\x80\xae\n"})
        / "robots.txt"
    )
    _, out, _ = lint(file)
    assert not any(char in out for char in "\x1b\u202e")
    assert "\ufffd" in out


@pytest.mark.requirement("IDE-6")
def test_json_has_place_section_severity_and_fix(tmp_path: Path, lint: Lint) -> None:
    file = write(tmp_path, {"robots.txt": MISSPELLED}) / "robots.txt"
    status, out, _ = lint(file, "--format", "json")
    document = json.loads(out)
    (problem,) = [each for each in document["problems"] if each["rule"] == "robots.misspelled"]
    assert status == 1
    assert document["version"] == 1
    assert {name: problem[name] for name in problem if name != "fix"} == {
        "file": str(file),
        "rule": "robots.misspelled",
        "severity": "error",
        "message": "`dissallow` is read as `disallow`",
        "spec": "RFC 9309 section-2.2",
        "line": 2,
        "column": 1,
        "end_column": 10,
        "text": "Dissallow: /private/",
    }


def unknown(part: Any) -> set[str]:
    """Return the names in a SARIF document that are not in its model."""
    if isinstance(part, list):
        return {name for each in part for name in unknown(each)}
    if not hasattr(part, "model_fields_set"):
        return set()
    fields = [getattr(part, name) for name in type(part).model_fields]
    return set(part.model_extra or ()) | {name for field in fields for name in unknown(field)}


@pytest.mark.requirement("IDE-6")
def test_sarif_is_valid_and_says_the_same(tmp_path: Path, lint: Lint) -> None:
    write(tmp_path, {"robots.txt": MISSPELLED, "ai.txt": "User-agent *\n"})
    _, out, _ = lint(tmp_path, "--format", "sarif")
    sarif = Sarif.model_validate_json(out)
    assert sarif.version == "2.1.0"
    assert unknown(sarif) <= {"columnKind"}
    (run,) = sarif.runs
    assert {rule.id for rule in run.tool.driver.rules or ()} == {
        result.rule_id for result in run.results or ()
    }
    for rule in run.tool.driver.rules or ():
        assert rule.help
        assert rule.help.text == as_plain_text(rule.id)
        assert rule.help.markdown == as_markdown(rule.id)
        assert str(rule.help_uri or "") == href(RULES[rule.id].spec)
    _, out, _ = lint(tmp_path, "--format", "json")
    assert [(result.rule_id, result.message.text) for result in run.results or ()] == [
        (problem["rule"], problem["message"]) for problem in json.loads(out)["problems"]
    ]


def test_github_gets_workflow_commands_in_which_nothing_ends_early(
    tmp_path: Path, lint: Lint
) -> None:
    file = write(tmp_path, {"a,b:c%/robots.txt": MISSPELLED}) / "a,b:c%" / "robots.txt"
    _, out, _ = lint(file, "--format", "github")
    name = str(file).replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    start = f"::error file={name},title=robots.misspelled,line=2,col=1,endColumn=10::"
    assert out.startswith(f"{start}`dissallow` is read as `disallow` (RFC 9309 section-2.2)\n")


def test_a_file_with_nothing_wrong_ends_with_0(tmp_path: Path, lint: Lint) -> None:
    file = write(tmp_path, {"robots.txt": "User-agent: *\nDisallow: /private/\n"}) / "robots.txt"
    assert lint(file) == (0, "Nothing is wrong.\n", "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--select", "robots.path"], {"robots.path"}),
        (["--select", "robots"], {"robots.path", "robots.misspelled"}),
        (["--ignore", "robots.path"], {"robots.misspelled"}),
        (["--select", "robots", "--ignore", "robots.misspelled"], {"robots.path"}),
    ],
)
def test_rules_are_chosen_by_name_or_by_the_beginning_of_it(
    options: list[str], expected: set[str], tmp_path: Path, lint: Lint
) -> None:
    file = write(tmp_path, {"robots.txt": MISSPELLED + b"Disallow: a\n"}) / "robots.txt"
    _, out, _ = lint(file, "--format", "json", *options)
    assert {
        problem["rule"] for problem in json.loads(out)["problems"] if problem["severity"] != "info"
    } == expected


# Targets


def test_every_well_known_file_of_every_format_is_known_by_its_name() -> None:
    for format_ in FORMATS:
        for file in format_.files:
            kind = kind_of(f"somewhere{file.path}", b"")
            assert kind is not None
            assert kind.path == file.path
        for kind_of_format in format_.authoring.kinds:
            assert KINDS[kind_of_format.name].file_kind is kind_of_format


@pytest.mark.parametrize("name", one_in(3, sorted(KINDS)))
def test_any_octets_can_be_looked_at(name: str) -> None:
    for body in (
        b"",
        b"\xff\xfe",
        b"\xff\xfeU\0s\0",
        b"\0" * 100,
        b"\xef\xbb\xbf",
        b"\r",
        b"\n" * 1000,
        b"<" * 5000,
    ):
        for problem in lint_file(KINDS[name], name, body):
            assert problem.rule in RULES, body[:9]
            assert problem.message, body[:9]


def test_standard_input_is_what_it_is_said_to_be(
    lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(MISSPELLED), encoding="utf-8"))
    status, out, complaints = lint("-", "--as", "robots.txt")
    assert status == 1
    assert out.startswith("standard input:2:1: error: ")
    assert complaints.startswith(
        "standard input: checked without the other files and the pages of the site"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-"], "-: its kind is not known: add --as with one of ai.txt, "),
        (["{folder}/notes.md"], "notes.md: its kind is not known: add --as with one of "),
        (["{folder}/nowhere"], "is not a file, a folder or a URL: write https:// before a host"),
        (["{folder}/empty"], "has none of "),
        ([""], "`` is not a file, a folder or a URL"),
        (["x" * 5000], "is not a file, a folder or a URL"),
        (["--fix", "nowhere"], "`nowhere` is not a file, a folder or a URL"),
        (
            ["--select", "nonsense"],
            "`nonsense` is not a rule or the beginning of one. `comity rule` lists all.",
        ),
        (["--fix", "http://127.0.0.1:1/"], "cannot be fixed by its URL: name the folder"),
        (
            ["--sample", "{folder}/nowhere.html"],
            "nowhere.html cannot be read: No such file or directory",
        ),
        (
            ["--origin", "example.org", "--as", "robots.txt", "-"],
            "--origin: `example.org` is not an http or https URL",
        ),
    ],
)
def test_what_cannot_be_done_is_said_and_ends_with_2(
    arguments: list[str], message: str, tmp_path: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"notes.md": "Notes", "empty/x": ""})
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b""), encoding="utf-8"))
    status, out, complaints = lint(
        *(argument.replace("{folder}", str(tmp_path)) for argument in arguments)
    )
    assert (status, out) == (2, "")
    assert complaints.startswith("comity lint: ")
    assert message in complaints


def test_ctrl_c_while_a_command_is_imported_is_no_error_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("comity.cli.import_module", interrupted)
        assert main(["lint", "."]) == 130
    assert capsys.readouterr() == ("", "")


def test_the_command_is_installed_and_scrapy_has_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE")
    file = write(tmp_path, {"robots.txt": MISSPELLED}) / "robots.txt"
    outputs = []
    for program in (
        ["-m", "scrapy"],
        ["-c", "import sys; from comity.cli import main; sys.exit(main())"],
    ):
        command = [sys.executable, *program, "lint", str(file)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, "")
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert "robots.misspelled" in outputs[0]
    unknown = [sys.executable, "-m", "scrapy", "lint", "--fixx", str(file)]
    done = subprocess.run(unknown, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "scrapy lint: unrecognized arguments: --fixx" in done.stderr


# A file and its site


GTPBOT = "User-agent: GTPBot\nDisallow: /private/\n"
TDM_REFUSED = {"robots.txt": "User-agent: *\nContent-Usage: tdm=n\nAllow: /\n"}
TDM_ALLOWS = '[{"location": "/", "tdm-reservation": 0}]'
REFUSING = {"ai.txt": "User-agent: *\n  Path: / \n    Element: *\n      Disallow: Train\n"}


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize(
    ("files", "target", "rule"),
    [
        ({"robots.txt": GTPBOT}, "robots.txt", "comity.agent-misspelled"),
        ({"robots.txt": "User-agent: *\nContent-Signal: ai-train=yes\n", **REFUSING}, "robots.txt", "comity.contradiction"),
        ({**TDM_REFUSED, ".well-known/tdmrep.json": TDM_ALLOWS}, ".well-known/tdmrep.json", "comity.contradiction"),
        ({**TDM_REFUSED, "a/page.html": '<meta name="tdm-reservation" content="0">'}, "a/page.html", "comity.contradiction"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("start", [".", "above", "inside", "absolute"])
def test_a_file_is_judged_with_the_folder_of_its_site(
    start: str,
    files: dict[str, str],
    target: str,
    rule: str,
    tmp_path: Path,
    lint: Lint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = write(tmp_path / "site", files)
    file = folder / target
    monkeypatch.chdir(
        {".": folder, "above": tmp_path, "inside": file.parent, "absolute": tmp_path}[start]
    )
    name = str(file) if start == "absolute" else os.path.relpath(file)
    _, out, complaints = lint(name, "--format", "json", "--select", rule)
    assert [problem["file"] for problem in json.loads(out)["problems"]] == [name]
    assert complaints == ""


def test_files_of_one_site_are_judged_together_in_one_reading(
    tmp_path: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(
        tmp_path,
        {"robots.txt": "User-agent: *\nContent-Signal: ai-train=yes\n" + GTPBOT, **REFUSING},
    )
    loads = []

    def counted(*arguments: Any, **named: Any) -> SiteSource:
        loads.append(arguments)
        return load(*arguments, **named)

    monkeypatch.setattr(lint_command, "load", counted)
    _, out, _ = lint(
        folder / "ai.txt",
        folder / "robots.txt",
        "--select",
        "comity",
        "--ignore",
        "comity.other-readers",
    )
    assert out.count("comity.contradiction") == 1
    assert out.count("comity.agent-misspelled") == 1
    assert len(loads) == 1


def test_checks_that_were_left_out_are_named(tmp_path: Path, lint: Lint) -> None:
    write(tmp_path, {"draft.txt": GTPBOT, "draft.html": "<p>", "b.html": "<p>", "c.html": "<p>"})
    status, out, complaints = lint(tmp_path / "draft.txt", "--as", "robots.txt")
    assert (status, "comity.agent-misspelled" in out) == (1, True)  # the check needs no other file
    assert complaints == (
        f"{tmp_path}/draft.txt: checked without the other files and the pages of the site, which "
        "comity.contradiction and comity.unmatched-element need. Name the folder of the site to "
        "check these too.\n"
    )
    pages = [tmp_path / name for name in ("draft.html", "b.html", "c.html")]
    _, _, complaints = lint(*pages, tmp_path / "draft.txt", "--as", "page.html")
    assert complaints.startswith(f"{', '.join(map(str, pages))} and 1 more: checked without")


def test_a_file_that_the_site_cannot_have_is_judged_by_itself(tmp_path: Path, lint: Lint) -> None:
    write(
        tmp_path,
        {
            "robots.txt": "",
            "license.xml": '<rsl xmlns="https://rslstandard.org/rsl"><wrong/></rsl>',
        },
    )
    status, out, complaints = lint(tmp_path / "license.xml")
    assert (status, "rsl." in out) == (1, True)
    assert complaints.startswith(f"{tmp_path}/license.xml: checked without the other files")


@pytest.mark.parametrize("name", ["robots.txt", "sub/page.html"])
def test_neither_a_home_folder_nor_the_root_of_a_disk_is_a_site(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, {name: "", "robots.txt": ""}) / name
    kind = kind_of(name, b"")
    assert kind
    assert site_folder(file, kind) == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    assert site_folder(file, kind) is None
    assert site_folder(Path("/robots.txt"), KINDS["robots.txt"]) is None


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("tdmrep.json", ".well-known/tdmrep.json"),
        (".well-known/robots.txt", "robots.txt"),
        (".well-known/ai.txt", "ai.txt"),
        (".well-known/automation-preferences.txt", "automation-preferences.txt"),
    ],
)
@pytest.mark.parametrize("others", [{}, {"page.html": ""}])
def test_a_policy_file_that_no_crawler_asks_for_is_told_its_place(
    others: dict[str, str],
    file: str,
    place: str,
    tmp_path: Path,
    lint: Lint,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path, {file: "[]" if file.endswith("json") else "", **others})
    for target in (tmp_path, tmp_path / file):
        status, out, _ = lint(target, "--select", "comity.file-place")
        message = (
            f"No crawler asks for this file here. Put it at {place} in the folder of the site."
        )
        assert out.startswith(f"{tmp_path / file}: error: {message} [comity.file-place, ")
        assert status == 1
    assert main(["explain", str(tmp_path)]) == (0 if others else 2)
    assert f"{tmp_path / file} is not read: crawlers ask for it at {place}" in "".join(
        capsys.readouterr()
    ).replace("\n", "")
    # The other file is a copy of the one at its place.
    write(tmp_path, {place: (tmp_path / file).read_bytes()})
    assert lint(tmp_path, "--select", "comity.file-place") == (0, "Nothing is wrong.\n", "")


def test_a_file_that_is_said_to_be_one_may_be_anywhere(tmp_path: Path, lint: Lint) -> None:
    write(tmp_path, {"draft.json": "[]"})
    _, out, _ = lint(
        tmp_path / "draft.json", "--as", "tdmrep.json", "--select", "comity.file-place"
    )
    assert out == "Nothing is wrong.\n"


def test_files_that_are_no_policies_are_passed_over_if_that_is_said(
    tmp_path: Path, lint: Lint
) -> None:
    write(tmp_path, {"sitemap.xml": "<urlset/>", "robots.txt": GTPBOT})
    status, out, _ = lint("--skip-unknown", tmp_path / "sitemap.xml", tmp_path / "robots.txt")
    assert (status, "comity.agent-misspelled" in out) == (1, True)
    assert lint("--skip-unknown", "--fix", tmp_path / "sitemap.xml") == (
        0,
        "Nothing is wrong.\n",
        "",
    )
    status, _, complaints = lint(tmp_path / "sitemap.xml", tmp_path / "robots.txt")
    assert (status, "sitemap.xml: its kind is not known" in complaints) == (2, True)


def test_the_hooks_are_given_every_kind_of_file(tmp_path: Path, lint: Lint) -> None:
    text = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text("utf-8")
    entries, patterns = (
        re.findall(rf"^  {key}: (.*)$", text, re.MULTILINE) for key in ("entry", "files")
    )
    rsl = '<rsl xmlns="https://rslstandard.org/rsl"/>'
    names = [f"a{file.path}" for format_ in FORMATS for file in format_.files]
    contents = {
        **dict.fromkeys(names, ""),
        "a/b.html": "",
        "b.htm": "",
        "c.xhtml": "",
        "license.xml": rsl,
        "x.rsl": rsl,
        "ai.xml": "",
    }
    write(tmp_path, {**contents, "notes.txt": "", "pom.xml": "<project/>", "a.json": "{}"})
    hooks = [
        (entry.split(), pattern)
        for entry, pattern in zip(entries, patterns, strict=True)
        if "lint" in entry
    ]
    assert len(hooks) == 2
    for (program, command, *options), pattern in hooks:
        given = [
            name
            for name in sorted({*contents, "notes.txt", "pom.xml", "a.json"})
            if re.search(pattern, name)
        ]
        assert given == sorted({*contents, "pom.xml"})
        assert (program, command) == ("comity", "lint")
        status, _, complaints = lint(*options, *(tmp_path / name for name in given))
        assert status != 2, complaints


@pytest.mark.parametrize("name", ["robots.txt", "{folder}/robots.txt", "{folder}"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "User-agent: *\nDisallow: /a\n".encode("utf-16"),
            "warning: This file is in UTF-16. Save it as UTF-8.",
        ),
        (
            b"User-agent: *\nDisallow: /\xe9\n",
            "warning: Some octets of this file are not UTF-8. Save it as UTF-8.",
        ),
        (
            b"User-agent: *\nDisallow: /a\n" + b"#" * 512_000,
            "Crawlers only have to read the first 512000.",
        ),
    ],
)
def test_a_file_by_itself_is_as_it_is_in_its_folder(
    name: str,
    body: bytes,
    message: str,
    tmp_path: Path,
    lint: Lint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(write(tmp_path, {"robots.txt": body}))
    status, out, _ = lint(
        "--select",
        "comity.file-encoding",
        "--select",
        "comity.file-size",
        name.format(folder=tmp_path),
    )
    assert status == 1
    assert message in out


# Checks beyond single formats


AI_PERMITS = "User-agent: *\nContent-Signal: ai-train=yes\nDisallow: /private/\n"
ACAP_REFUSES = "ACAP-crawler: *\nACAP-disallow-index: /\n"
TDM_REFUSES = '[{"location": "/", "tdm-reservation": 1}]'


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "robots.txt": AI_PERMITS,
                "ai.txt": "User-agent: *\n  Path: / \n    Element: *\n      Disallow: Train\n",
            },
            (
                "robots.txt",
                2,
                "`ai-train` is permitted here, but {folder}/ai.txt:4 (`Disallow: Train`) "
                "refuses it",
            ),
        ),
        (
            {"robots.txt": AI_PERMITS, ".well-known/tdmrep.json": TDM_REFUSES},
            (
                "robots.txt",
                2,
                f"`ai-train` is permitted here, but {{folder}}/.well-known/tdmrep.json:1 "
                f"(`{TDM_REFUSES[1:-1]}`) refuses it",
            ),
        ),
    ],
)
def test_a_permission_that_another_file_refuses_is_named_with_the_line_that_refuses(
    files: dict[str, str], expected: tuple[str, int, str], tmp_path: Path
) -> None:
    name, line, message = expected
    expected = (name, line, f"{message.replace('{folder}', str(tmp_path))}. The refusal wins.")
    assert rules(tmp_path, files, "comity.contradiction") == [expected]


def test_files_are_read_once_for_all_crawlers_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def counted(*arguments: Any, **named: Any) -> Site:
        made.append(1)
        return Site(*arguments, **named)

    monkeypatch.setattr(contradictions, "Site", counted)
    for crawlers in (1, 20):
        write(
            tmp_path,
            {
                "robots.txt": "".join(
                    f"ACAP-crawler: a{number}\nACAP-disallow-index: /\n"
                    for number in range(crawlers)
                )
            },
        )
        made.clear()
        assert list(contradictions.check_contradictions(load(str(tmp_path)))) == []
        assert len(made) <= len(FORMATS)


def test_crawlers_are_asked_about_as_far_as_the_size_of_the_files_lets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robots = "User-agent: gptbot\nContent-Signal: ai-train=yes\nAllow: /\n"
    files = {"robots.txt": robots, ".well-known/tdmrep.json": TDM_REFUSES}
    assert rules(tmp_path, files, "comity.contradiction")
    monkeypatch.setattr(contradictions, "MAX_OCTETS", len(robots))
    # Only rules for everybody are compared.
    assert rules(tmp_path, files, "comity.contradiction") == []


def test_files_that_agree_contradict_nothing(tmp_path: Path) -> None:
    files = {"robots.txt": AI_PERMITS.replace("yes", "no"), ".well-known/tdmrep.json": TDM_REFUSES}
    assert rules(tmp_path, files, "comity.contradiction") == []


def test_what_one_crawler_is_permitted_and_refused_is_said_of_it_alone(tmp_path: Path) -> None:
    robots = "User-agent: gptbot\nContent-Signal: ai-train=yes\nAllow: /\n"
    found = rules(
        tmp_path,
        {"robots.txt": robots, ".well-known/tdmrep.json": TDM_REFUSES},
        "comity.contradiction",
    )
    assert [
        (line, "is permitted here to gptbot, but" in message) for _, line, message in found
    ] == [(2, True)]


def test_a_page_that_permits_what_the_files_refuse_is_named(tmp_path: Path) -> None:
    page = (
        '<html><head>\n<meta name="tdm-reservation" content="0">\n</head><body>text</body></html>'
    )
    robots = "User-agent: *\nContent-Usage: tdm=n\nAllow: /\n"
    found = rules(tmp_path, {"robots.txt": robots, "page.html": page}, "comity.contradiction")
    # Reasons of elements have no line.
    assert [(name, line) for name, line, _ in found] == [("page.html", 0)]
    assert f"`tdm` is permitted here, but {tmp_path}/robots.txt:2" in found[0][2]


@pytest.mark.parametrize(
    ("rule", "line", "words"),
    [
        ("comity.agent-misspelled", 1, "If you mean the one of OpenAI, write `GPTBot`."),
        ("comity.agent-unknown", 3, "No known crawler has the name `completely-made-up`"),
        ("comity.agent-retired", 4, "`anthropic-ai` is no longer in use"),
    ],
)
def test_names_of_crawlers_are_compared_with_those_that_are_known(
    rule: str, line: int, words: str, tmp_path: Path
) -> None:
    robots = (
        "User-agent: GPTBto\nUser-agent: Googlebot\nUser-agent: completely-made-up\n"
        "User-agent: anthropic-ai\nDisallow: /\n"
    )
    ((name, number, message),) = rules(tmp_path, {"robots.txt": robots}, rule)
    assert (name, number) == ("robots.txt", line)
    assert words in message


def test_every_name_in_a_line_of_ai_txt_is_compared(tmp_path: Path) -> None:
    ai_txt = (
        "User-agent: GPTBot, Google-Extnded, GTPBot\n  Path: / html\n    Element: *\n"
        "      Disallow: Train\n"
    )
    problems = lint_site(load(str(write(tmp_path, {"ai.txt": ai_txt}))))
    spans = [problem.span for problem in problems if problem.rule == "comity.agent-misspelled"]
    assert [span and ai_txt[span.column - 1 : span.end_column - 1] for span in spans] == [
        "Google-Extnded",
        "GTPBot",
    ]


def test_a_line_that_another_reader_understands_otherwise_is_named(tmp_path: Path) -> None:
    robots = "User-agent: *\nDisallow: /a\nAllow: /a/b\n"
    found = rules(tmp_path, {"robots.txt": robots}, "comity.other-readers")
    assert [(name, line) for name, line, _ in found] == [("robots.txt", 2)]
    assert (
        "urllib.robotparser would not fetch /a/b as comity-nobody: it follows the first rule "
        "that matches" in found[0][2]
    )
    assert (
        rules(
            tmp_path,
            {"robots.txt": "User-agent: *\nAllow: /a/b\nDisallow: /a\n"},
            "comity.other-readers",
        )
        == []
    )


ELEMENTS = """User-agent: *
  Path: /news/* html
    Element: p.quote
      Disallow: Train
    Element: .gone
      Disallow: Train
"""


def test_elements_that_no_sample_has_are_named(tmp_path: Path, lint: Lint) -> None:
    write(tmp_path, {"site/ai.txt": ELEMENTS, "sample.html": "<p class=quote>q</p>"})
    _, out, _ = lint(tmp_path / "site", "--sample", tmp_path / "sample.html", "--format", "json")
    found = [
        each for each in json.loads(out)["problems"] if each["rule"] == "comity.unmatched-element"
    ]
    assert [(each["line"], each["message"]) for each in found] == [
        (6, "`.gone` selects nothing in the sample page. Check the selector.")
    ]


def test_pages_of_the_site_are_samples_of_the_rules_about_them(tmp_path: Path) -> None:
    other = {"ai.txt": ELEMENTS, "other/page.html": "<p>nothing</p>"}
    assert rules(tmp_path, other, "comity.unmatched-element") == []
    about = {**other, "news/page.html": "<p class=quote>q</p>"}
    assert [line for _, line, _ in rules(tmp_path, about, "comity.unmatched-element")] == [6]


TEXT = b"text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("status", "media_type", "body", "rule", "words"),
    [
        (503, TEXT, MISSPELLED, "comity.file-status", "status 503"),
        (
            403,
            TEXT,
            MISSPELLED,
            "comity.file-status",
            "With status 403, crawlers treat this file as if it did not exist",
        ),
        (200, b"", MISSPELLED, "comity.file-type", "without a media type"),
        (
            200,
            b"application/octet-stream",
            MISSPELLED,
            "robots.media-type",
            "served as application/octet-stream",
        ),
        (200, b"text/html", MISSPELLED, "robots.media-type", "served as text/html"),
        (200, TEXT, b"<p>Not found", "comity.file-type", "This file is an HTML page"),
        (200, TEXT, b"<pre>" + MISSPELLED, "robots.markup", "Save the file as plain text"),
        (
            200,
            b"text/plain; charset=iso-8859-1",
            MISSPELLED,
            "comity.file-encoding",
            "served as iso-8859-1",
        ),
        (
            200,
            TEXT,
            b"User-agent: *\nDisallow: /\xe9\n",
            "comity.file-encoding",
            "Some octets of this file are not UTF-8",
        ),
        (
            200,
            TEXT,
            "User-agent: *\nDisallow: /a\n".encode("utf-16"),
            "comity.file-encoding",
            "This file is in UTF-16",
        ),
        (
            200,
            TEXT,
            b"#" * 510 * 1024,
            "comity.file-size",
            "Crawlers only have to read the first 512000.",
        ),
    ],
)
def test_how_a_file_is_served_is_looked_at(
    status: int, media_type: bytes, body: bytes, rule: str, words: str
) -> None:
    headers = (
        ((b"Content-Type", media_type), (b"Server", b"test"))
        if media_type
        else ((b"Server", b"test"),)
    )
    site = Site.from_files(
        "https://example.com", {"/robots.txt": Fetched(status=status, headers=headers, body=body)}
    )
    url = "https://example.com/robots.txt"
    problems = lint_site(
        SiteSource("https://example.com", site, (SourceFile(url, url, site.files[url]),), ())
    )
    assert [words in problem.message for problem in problems if problem.rule == rule] == [True]
    # The problem is reported once.
    assert len([problem for problem in problems if problem.rule.endswith("-type")]) <= 1


def test_a_file_that_is_served_as_it_must_be_is_left_alone(
    serve: Serve, lint: Lint, tmp_path: Path
) -> None:
    write(tmp_path, {"robots.txt": "User-agent: *\nDisallow: /a\n"})
    server = serve({"/robots.txt": (tmp_path / "robots.txt").read_bytes(), "/": "<p>page</p>"})
    assert lint(server.url("/"), "--select", "comity") == (0, "Nothing is wrong.\n", "")
    assert server.paths.count("/robots.txt") == 1


def test_a_file_that_is_elsewhere_is_said_to_be(serve: Serve, lint: Lint) -> None:
    moved = serve.Answer(status=301, headers={"Location": "/files/robots.txt"})
    server = serve(
        {
            "/robots.txt": moved,
            "/files/robots.txt": "User-agent: *\nDisallow: /a\n",
            "/": "<p>page</p>",
        }
    )
    _, out, _ = lint(server.url("/"), "--format", "json", "--select", "comity.file-moved")
    assert [(each["file"], each["message"]) for each in json.loads(out)["problems"]] == [
        (
            server.url("/robots.txt"),
            f"This file is redirected to {server.url('/files/robots.txt')}. Serve it here.",
        )
    ]
    assert "/files/robots.txt" in server.paths


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("ai.txt", "User-agent: *\n  Path: /a b={} html\n    Element: p\n      Disallow: Train\n"),
        (
            "ai.txt",
            "User-agent: *\n  Path: / html\n    Element: p\n      Guide: Train\n        Lang: "
            "a{}-UK\n        Guideline: a\n",
        ),
        ("automation-preferences.txt", 'scope: "/a={}"\nallowed-methods: GET\n'),
        ("tdmrep.json", '[{"location": "/a b={}", "tdm-reservation": 1}]'),
        (
            "rsl.xml",
            (
                '<rsl xmlns="https://rslstandard.org/rsl"><content url="/a b={}"><license/>'
                "</content></rsl>"
            ),
        ),
        (
            "rsl.xml",
            (
                '<rsl xmlns="https://rslstandard.org/rsl"><content url="https://a{}.com/"/>'
                '<content url="https://b.com/"/></rsl>'
            ),
        ),
    ],
)
def test_braces_in_a_file_are_quoted_as_they_stand(name: str, body: str) -> None:
    for text in ("{}", "{0}", "{a}", "{", "}{"):
        problems = lint_file(KINDS[name], name, body.replace("{}", text).encode())
        assert any(text in problem.message for problem in problems) or "https://a" in body, text


@pytest.mark.requirement("SEC-1")
def test_names_that_are_no_token_are_asked_for_by_no_check(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"robots.txt": "ACAP-crawler: é\nACAP-disallow-index: /\nContent-Signal: search=yes\n"},
    )
    source = load(str(tmp_path))
    assert "é" in source.site.crawler_names
    assert lint_site(source)


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
@pytest.mark.parametrize("name", [b"\xff", "\u202e\x1b[31m\n::error::".encode()])
def test_a_file_of_any_name_can_be_told(form: str, name: bytes, tmp_path: Path, lint: Lint) -> None:
    folder = tmp_path / os.fsdecode(name)
    page = os.fsdecode(name + b".html")
    write(
        folder,
        {"robots.txt": MISSPELLED, "rsl.xml": "<rsl/>", page: "<meta name=robots content=noidex>"},
    )
    for target in (folder, folder / "robots.txt", folder / "rsl.xml"):
        _, out, _ = lint(target, "--format", form)
        assert "robots.misspelled" in out or target.name == "rsl.xml"
        assert all(line.isprintable() for line in out.splitlines())
        assert not any(line.startswith("::error::") for line in out.splitlines())


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("ai.txt", b"User-agent: *\n  Path: /\n    Element: p\n      Disallow: Train\n"),
        ("automation-preferences.txt", b"scope: /\n"),
    ],
)
def test_reading_and_checks_share_what_is_read_of_a_file(
    name: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = {"ai.txt": ai_txt_file, "automation-preferences.txt": automation_file}[name]
    read, times = module.parse, []

    def parse(*arguments: Any, **named: Any) -> Any:
        times.append(1)
        return read(*arguments, **named)

    monkeypatch.setattr(module, "parse", parse)
    lint_file(KINDS[name], name, body)
    assert times == [1]
