"""`comity new`: the list of wishes, the files of a wish, and files that exist already."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.robotparser import RobotFileParser

import pytest
from protego import Protego

from comity.authoring.explaining import agent_named
from comity.authoring.lint import lint_site as lint
from comity.authoring.sites import load
from comity.authoring.wishes import WISHES
from comity.cli import main
from comity.policies import Agent, Verdict

Run = Callable[..., tuple[int, str, str]]
DOCS = Path(__file__).parents[3] / "docs"
ROBOTS = "User-agent: *\nCrawl-delay: 5\nDisallow:\n"
MEANING = "lines at its end could change what others mean:"


@pytest.fixture
def new(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `comity new`. Return its exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["new", *arguments])
        return status, *capsys.readouterr()

    return run


def test_without_a_wish_all_wishes_are_listed(new: Run) -> None:
    status, out, error = new()
    assert (status, error) == (0, "")
    for wish in WISHES:
        assert re.search(rf"(?m)^{wish.title} +{re.escape(wish.summary)} +", out)
    status, out, error = new("--json")
    listed = json.loads(out)
    assert (status, error, listed["version"]) == (0, "", 1)
    assert [wish["name"] for wish in listed["wishes"]] == [wish.name for wish in WISHES]
    assert listed["wishes"][0]["defaults"] == ["robots.txt", "Content-Usage", "Content Signals"]
    assert "automation-preferences.txt" in listed["wishes"][0]["unsaid"]


def test_the_texts_of_a_wish_are_printed_with_the_crawlers_that_obey(new: Run) -> None:
    status, out, error = new("one request each 5 seconds")
    assert (status, error) == (0, "")
    assert out.startswith("Slower: Crawlers may fetch everything, but not so fast.\n")
    assert "  Google ignores `Crawl-delay` (https://developers.google.com/" in out
    assert out.endswith(f"/robots.txt:\n\n{ROBOTS}\n")
    beginning, _, end = (DOCS / "authoring.md").read_text("utf-8").partition("...\n```\n")
    example = beginning.partition('$ comity new "one request each 5 seconds"\n')[2]
    assert end
    assert example
    assert all(line in out.splitlines() for line in example.splitlines())


def test_elements_are_printed_with_their_place(new: Run) -> None:
    status, out, _ = new("no snippets")
    assert status == 0
    assert out.endswith('In the head of each page:\n\n<meta name="robots" content="nosnippet">\n\n')


def test_files_are_written_and_mean_the_wish(new: Run, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "site"
    status, out, error = new(
        "everybody but X", "--crawlers", "GPTBot,examplebot", "--out", str(folder)
    )
    assert (status, error) == (0, "")
    assert out.endswith(f"{folder / 'robots.txt'}: written\n")
    assert "User-agent:" not in out
    site = load(str(folder)).site
    for token, verdict in (
        ("GPTBot", Verdict.DENY),
        ("examplebot", Verdict.DENY),
        ("otherbot", Verdict.ALLOW),
    ):
        assert site.access(Agent(token), "https://example.com/a").verdict is verdict


def test_files_in_folders_are_written(new: Run, tmp_path: Path) -> None:
    assert new("everything", "--out", str(tmp_path))[0] == 0
    paths = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert paths == {"robots.txt", ".well-known/tdmrep.json"}
    assert main(["lint", str(tmp_path)]) == 0


@pytest.mark.parametrize("name", ["archive.org_bot", "Mail.RU_Bot", "Sogou web spider", "MJ12bot"])
@pytest.mark.requirement("RFC-12")
def test_readers_of_all_kinds_find_the_name_of_a_crawler(
    new: Run, tmp_path: Path, name: str
) -> None:
    """docs/robots.md has the table of readers."""
    googlebot = pytest.importorskip("jwm.robotstxt.googlebot")
    url = "https://example.com/x"
    for wish, is_permitted in (("nobody-but", True), ("everybody-but", False)):
        status, _, error = new(
            *(wish, "--crawlers", f"{name},GPTBot", "--out", str(tmp_path), "--force")
        )
        assert (status, error) == (0, "")
        text = (tmp_path / "robots.txt").read_text()
        assert text.startswith(f"User-agent: {name}\nUser-agent: GPTBot\n")
        protego, python = Protego.parse(text), RobotFileParser()
        python.parse(text.splitlines())
        field = f"Mozilla/5.0 (compatible; {name} +https://example.com/bot)"
        assert [
            protego.can_fetch(url, name),
            protego.can_fetch(url, field),
            python.can_fetch(name, url),
            googlebot.RobotsMatcher().OneAgentAllowedByRobots(
                text, re.split("[^A-Za-z_-]", name)[0], url
            ),
        ] == [is_permitted] * 4
        assert protego.can_fetch(url, "somebot") != is_permitted
        for explained in (name, "GPTBot"):
            agent = agent_named(Agent("x"), explained)
            verdict = load(str(tmp_path)).site.access(agent, url).verdict
            assert (verdict is Verdict.ALLOW) == is_permitted
        rules = {problem.rule for problem in lint(load(str(tmp_path)))}
        assert rules <= {"comity.other-readers"}


def test_names_of_several_words_are_in_quotes_or_known(new: Run) -> None:
    arguments = ("everybody-but", "--json", "--crawlers")
    files = json.loads(new(*arguments, "Sogou web spider, GPTBot CCBot,'Kangaroo Bot'")[1])["files"]
    names = ["Sogou web spider", "GPTBot", "CCBot", "Kangaroo Bot"]
    assert re.findall("User-agent: (.*)", files["/robots.txt"]) == [*names, "*"]
    status, _, error = new("everybody-but", "--crawlers", "!Susie")
    assert status == 2
    assert "`!Susie` is no list of crawlers: write names of letters and digits" in error


def test_lines_are_added_to_a_file_that_then_means_both(new: Run, tmp_path: Path) -> None:
    robots = tmp_path / "robots.txt"
    robots.write_bytes(b"User-agent: *\r\nDisallow: /private/")
    arguments = ("no training", "--out", str(tmp_path))
    status, out, error = new(*arguments)
    assert (status, error) == (0, "")
    assert out.endswith(
        f"{robots}: 29 lines are added at its end, and its other lines still hold\n"
    )
    text = robots.read_bytes()
    assert text.startswith(b"User-agent: *\r\nDisallow: /private/\n\nUser-agent: AI2Bot\n")
    site = load(str(tmp_path)).site
    for token in ("GPTBot", "somebot"):
        agent = Agent(token)
        private, other = (
            site.access(agent, f"https://example.com{path}").verdict is Verdict.ALLOW
            for path in ("/private/x", "/x")
        )
        assert (private, other) == (False, token == "somebot")
        uses = site.page(agent, "https://example.com/x", body=None).uses
        assert uses["train-ai"].verdict is Verdict.DENY
    status, out, error = new(*arguments)  # once more
    assert (status, error) == (0, "")
    assert out.endswith(f"{robots}: is unchanged, because the lines would change nothing in it\n")
    assert robots.read_bytes() == text


@pytest.mark.parametrize(
    ("wish", "name", "text", "why"),
    [
        (  # the group of GPTBot would not have the line
            "one request each 5 seconds",
            "robots.txt",
            "User-agent: GPTBot\nDisallow: /x\n\n\nUser-agent: *\n# all\nDisallow: /y\n",
            MEANING,
        ),
        (  # Googlebot would be permitted to fetch /y
            "nobody but Googlebot",
            "robots.txt",
            "User-agent: *\nDisallow: /y\n",
            MEANING,
        ),
        (  # bingbot would be in the group of GPTBot
            "everybody but GPTBot",
            "robots.txt",
            "User-agent: bingbot\nCrawl-delay: 5\n",
            MEANING,
        ),
        (  # BadBot is in the group for `*`
            "text, but no images",
            "robots.txt",
            "User-agent: BadBot\nCrawl-delay: 3\nUser-agent: *\nDisallow: /secret\n",
            MEANING,
        ),
        (  # the refusal would stay
            "everything",
            "robots.txt",
            "User-agent: *\nDisallow: /\n",
            "it refuses what the wish permits. Remove that,",
        ),
        (  # POST and requests of APIs would be permitted
            "API for research only",
            "automation-preferences.txt",
            "scope: /\nallowed-methods: GET, HEAD\napi-automation: none\n",
            MEANING,
        ),
    ],
)
def test_lines_that_could_change_what_others_mean_are_printed(
    new: Run, tmp_path: Path, wish: str, name: str, text: str, why: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    status, out, error = new(wish, "--out", str(tmp_path))
    assert status == 1
    assert error == (
        f"comity new: {path} is unchanged, because {why} put the lines below into it, or replace"
        " it with --force\n"
    )
    assert path.read_text() == text
    found = json.loads(new(wish, "--out", str(tmp_path), "--json")[1])
    assert str(path) in found["existing"]
    [added] = found["to_add"]
    assert added == {"file": str(path), "text": found["files"][f"/{name}"]}
    assert f"To put into {path}:\n\n{added['text']}" in out


@pytest.mark.parametrize("text", ["Disallow: /a\n", "Disallow: /any\n", "Disallow: /*any\n"])
def test_a_file_that_lacks_a_rule_is_not_taken_to_have_it(
    new: Run, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "robots.txt"
    path.write_text(f"User-agent: *\n{text}")
    new("text, but no images", "--out", str(tmp_path))
    access = load(str(tmp_path)).site.access(Agent("somebot"), "https://example.com/z.png")
    assert access.verdict is Verdict.DENY


def test_a_folder_that_cannot_be_entered_is_one_line(new: Run, tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 300)
    status, _, error = new("slower", "--out", str(folder))
    assert (status, error.count("cannot be written"), error.count("\n")) == (2, 1, 1)


def test_new_files_are_written_beside_a_file_that_stays(new: Run, tmp_path: Path) -> None:
    (tmp_path / ".well-known").mkdir()
    tdmrep = tmp_path / ".well-known" / "tdmrep.json"
    tdmrep.write_text('[{"location": "/", "tdm-reservation": 1}]')
    status, out, error = new("everything", "--out", str(tmp_path))
    assert status == 1
    assert f"{tmp_path / 'robots.txt'}: written\n" in out
    assert f"To put into {tdmrep}:\n\n" in out
    assert error.startswith(f"comity new: {tdmrep} is unchanged")
    assert tdmrep.read_text() == '[{"location": "/", "tdm-reservation": 1}]'
    assert new("everything", "--out", str(tmp_path), "--force")[0] == 0
    status, out, _ = new("everything", "--out", str(tmp_path))
    assert (status, out.count("is unchanged, because the lines would change nothing")) == (0, 2)


def test_a_file_in_another_encoding_stays(new: Run, tmp_path: Path) -> None:
    body = "User-agent: *\nDisallow: /é\n".encode("latin-1")
    (tmp_path / "robots.txt").write_bytes(body)
    status, out, error = new("no training", "--out", str(tmp_path))
    assert (status, "To put into" in out) == (1, True)
    assert "is no file that can be read as UTF-8: put the lines below into it" in error
    assert (tmp_path / "robots.txt").read_bytes() == body


def test_force_replaces_a_file(new: Run, tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    status, _, error = new("slower", "--seconds", "5", "--out", str(tmp_path), "--force")
    assert (status, error) == (0, "")
    assert (tmp_path / "robots.txt").read_text() == ROBOTS


def test_a_link_to_nowhere_is_a_file_that_exists(new: Run, tmp_path: Path) -> None:
    (tmp_path / "robots.txt").symlink_to(tmp_path / "nowhere")
    assert new("slower", "--out", str(tmp_path))[0] == 1
    assert not (tmp_path / "nowhere").exists()


def test_json_has_the_texts_the_values_and_the_readers(new: Run, tmp_path: Path) -> None:
    status, out, error = new(
        *("snippets of at most 20 words", "--json", "--out", str(tmp_path / "site"))
    )
    assert (status, error) == (0, "")
    found = json.loads(out)
    assert found["values"] == {"words": "20", "characters": "120"}
    assert [form["format"] for form in found["forms"]] == ["ACAP", "robots meta"]
    assert found["forms"][1]["readers"][0]["statement"].startswith("Google honours `max-snippet`")
    assert found["files"]["/robots.txt"].startswith("ACAP-crawler: *\n")
    assert found["others"] == [
        {"place": "HTML element", "text": '<meta name="robots" content="max-snippet:120">\n'}
    ]
    assert found["written"] == [str(tmp_path / "site" / "robots.txt")]


def test_formats_that_contradict_each_other_are_told(new: Run) -> None:
    arguments = ("no training but search", "--formats", "ACAP,Content-Usage")
    status, _, error = new(*arguments)
    assert status == 0
    assert error.startswith("comity new: warning: ")
    assert error.endswith(" [comity.contradiction]\n")
    assert error.count("\n") == 1
    [problem] = json.loads(new(*arguments, "--json")[1])["problems"]
    assert problem["rule"] == "comity.contradiction"
    assert problem["message"] in error


def test_a_licence_is_at_the_origin_of_the_site(new: Run) -> None:
    status, out, error = new(
        *("no training", "--formats", "rsl", "--origin", "https://www.example.org/", "--json")
    )
    assert (status, error) == (0, "")
    found = json.loads(out)
    assert found["problems"] == []
    assert "License: https://www.example.org/license.xml\n" in found["files"]["/robots.txt"]


def test_an_option_overrides_a_value_in_the_words(new: Run) -> None:
    _, out, _ = new("one request each 5 seconds", "--seconds", "9", "--json")
    assert json.loads(out)["values"]["seconds"] == "9"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["no tranning"],
            "no wish is known by the words `no tranning`: did you mean `No training`?",
        ),
        (
            ["nobody but X"],
            "the names of the crawlers must be known: add --crawlers, such",
        ),
        (
            ["nobody but Foo"],
            "`Foo` is no known crawler: `comity new` takes any name behind --crawl",
        ),
        (["slower", "--formats", "ACAP"], "the format `ACAP` cannot say `Slower`. The format has"),
        (["no training", "--days", "3"], "`No training` has no days: leave out --days"),
        (["slower", "--seconds", "\x1b"], "`\ufffd` is no number of seconds: write 1 to 86400"),
        (["--out", "site"], "the options need a wish: write it first, such as"),
        (["slower", "--force"], "--force needs --out: write --out DIR, or leave out --force"),
    ],
)
def test_a_mistake_is_one_line(new: Run, arguments: list[str], message: str) -> None:
    status, out, error = new(*arguments)
    assert (status, out) == (2, "")
    assert error.startswith(f"comity new: {message}")
    assert error.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_one_line(new: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, _, error = new("slower", "--out", str(tmp_path / "file" / "site"))
    assert status == 2
    assert error.startswith(f"comity new: {tmp_path}/file/site/robots.txt cannot be written: ")
    assert error.count("\n") == 1


def test_the_commands_of_the_list_in_the_docs_run(new: Run) -> None:
    commands = re.findall(r"\| `comity new ([^`]+)` \|", (DOCS / "wishes.md").read_text("utf-8"))
    assert [command.split()[0] for command in commands] == [wish.name for wish in WISHES]
    for command in commands:
        status, out, error = new(*command.split())
        assert (status, error) == (0, "")
        assert out
