"""Read the targets of publishers: folders, and sites on real servers."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from comity.authoring.language_server.tasks import Snapshot, find_problems_in_folder
from comity.authoring.sites import MAX_PAGES, load
from comity.authoring.workbench.desk import desk_of
from comity.cli import main
from comity.policies import Agent, PolicyError, Verdict

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = "User-agent: *\nDisallow: /private\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


# ---- folders


def test_a_folder_has_its_policy_files_and_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "ai.txt": "User-agent: *\n",
        "robots.txt": ROBOTS,
        ".well-known/tdmrep.json": "[]",
        "index.html": "<p>first</p>",
        "a b/page.HTM": "<p>second</p>",
        "a b/notes.txt": "no page",
        ".git/hidden.html": "<p>hidden</p>",
        "b/feed.xhtml": "<p>third</p>",
    }
    write(tmp_path / "site", files)
    monkeypatch.chdir(tmp_path)
    source = load("site")
    assert source.origin == "https://example.com"
    assert [(file.name, file.url) for file in source.files] == [
        ("site/robots.txt", "https://example.com/robots.txt"),
        ("site/ai.txt", "https://example.com/ai.txt"),
        ("site/.well-known/tdmrep.json", "https://example.com/.well-known/tdmrep.json"),
    ]
    assert source.files[0].fetched.body == ROBOTS.encode()
    assert [(page.name, page.url) for page in source.pages] == [
        ("site/index.html", "https://example.com/index.html"),
        ("site/a b/page.HTM", "https://example.com/a%20b/page.HTM"),
        ("site/b/feed.xhtml", "https://example.com/b/feed.xhtml"),
    ]
    assert source.pages[1].fetched.body == b"<p>second</p>"
    assert source.name_of("https://example.com/ai.txt") == "site/ai.txt"
    assert (
        source.site.access(Agent("somebot"), "https://example.com/private").verdict is Verdict.DENY
    )


def test_files_that_the_files_refer_to_are_there(tmp_path: Path) -> None:
    robots = (
        "License: https://site.example/license.xml\nLicense: https://other.example/terms.xml\n"
        "\nUser-agent: *\nDisallow:\n"
    )
    license_ = (
        '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license/></content></rsl>'
    )
    write(
        tmp_path,
        {"robots.txt": robots, "license.xml": license_, "other.example/terms.xml": license_},
    )
    source = load(str(tmp_path), origin="https://site.example")
    assert {file.name: file.url for file in source.files} == {
        str(tmp_path / "robots.txt"): "https://site.example/robots.txt",
        str(tmp_path / "license.xml"): "https://site.example/license.xml",
        str(tmp_path / "other.example/terms.xml"): "https://other.example/terms.xml",
    }


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"secret.html": "<p>secret</p>", "site/robots.txt": ROBOTS})
    (tmp_path / "site" / "linked.html").symlink_to(tmp_path / "secret.html")
    assert load(str(tmp_path / "site")).pages == ()


def test_more_pages_than_are_read_are_told(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}.html": "" for number in range(MAX_PAGES + 1)})
    source = load(str(tmp_path))
    assert len(source.pages) == MAX_PAGES
    assert source.notes == (
        f"{tmp_path} has more pages than {MAX_PAGES}: the others were not read",
    )


@pytest.mark.parametrize(
    ("target", "origin", "message"),
    [
        ("nowhere", None, "`nowhere` is not a folder or a URL: write https:// before a host"),
        ("ftp://example.com/", None, "is not a folder or a URL"),
        (
            "site/robots.txt",
            None,
            "`site/robots.txt` is a file: name the folder that it is in, or a URL",
        ),
        ("https://example.com/", "https://example.org", "a URL has its own"),
        ("site", "example.org", "is not an http or https URL"),
        ("mailto:x@y.z", None, "`mailto:x@y.z` is not a folder or a URL: write `https://y.z`"),
        ("http//typo", None, "`http//typo` is not a folder or a URL: write `http://typo`"),
        ("https://mailto:x@y.z", None, "is not an http or https URL: write `https://y.z`"),
        ("https://", None, "`https://` has no host"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, origin: str | None, message: str
) -> None:
    write(tmp_path / "site", {"robots.txt": ROBOTS})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match=message):
        load(target, origin=origin)


@pytest.fixture(
    params=['COMITY_AGENT = "two words"\n', "import no_such_module_of_a_project\n", "(\n"]
)
def broken_project(project: Path, request: pytest.FixtureRequest) -> str:
    """Make invalid settings. Return the beginning of the message about them."""
    project.write_text(request.param, "utf-8")
    if request.param.startswith("COMITY"):
        return "COMITY_AGENT `two words` is not a product token"
    return "the settings of this project (explained_settings) cannot be used: "


def test_a_folder_is_read_without_the_settings_of_the_project(
    tmp_path: Path, broken_project: str
) -> None:
    write(tmp_path, {"robots.txt": ROBOTS, "index.html": ""})
    folder = str(tmp_path)
    assert len(load(folder).files) == 1
    assert main(["lint", folder]) == 0
    assert main(["explain", folder]) == 0
    snapshot = Snapshot((tmp_path / "robots.txt").as_uri(), ROBOTS, "utf-16", folder)
    assert find_problems_in_folder(snapshot) == []
    assert desk_of(folder).folder is not None


def test_a_scrapy_cfg_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE")
    monkeypatch.chdir(write(tmp_path, {"scrapy.cfg": "no section\n", "robots.txt": ROBOTS}))
    with pytest.raises(
        PolicyError,
        match=r"the settings of this project \(scrapy.cfg\) cannot be used: MissingSection",
    ):
        load("https://127.0.0.1:9/")
    assert len(load(".").files) == 1


def test_a_site_is_not_asked_with_settings_that_cannot_be_used(
    broken_project: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("lint", "explain"):
        assert main([command, "https://127.0.0.1:9/"]) == 2
        out, complaints = capsys.readouterr()
        assert out == ""
        assert complaints.startswith(f"comity {command}: {broken_project}")
        assert complaints.count("\n") == 1
    with pytest.raises(PolicyError, match=re.escape(broken_project)):
        desk_of("https://127.0.0.1:9/")


# ---- sites


def test_a_host_that_does_not_exist_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_name(host: str, *arguments: object, **named: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    for command in ("explain", "lint"):
        assert main([command, "https://nosuch.invalid/a"]) == 2
        assert capsys.readouterr() == (
            "",
            f"comity {command}: there is no host nosuch.invalid (check the spelling)\n",
        )


def test_a_site_is_asked_as_a_crawler_asks_it(serve: Serve) -> None:
    server = serve(
        {"/robots.txt": ROBOTS, "/": "<p>first</p>", "/ai.txt": serve.Answer("gone", status=410)}
    )
    source = load(server.origin)
    assert source.origin == server.origin
    assert [(file.url, file.fetched.status) for file in source.files] == [
        (server.url("/robots.txt"), 200),
        (server.url("/ai.txt"), 410),
    ]
    assert source.files[0].fetched.header(b"Content-Type") == b"text/plain; charset=utf-8"
    [page] = source.pages
    assert (page.name, page.url, page.fetched.status, page.fetched.body) == (
        server.url("/"),
        server.url("/"),
        200,
        b"<p>first</p>",
    )
    assert server.paths[0] == "/robots.txt"
    assert server.paths[-1] == "/"
    assert {seen.method for seen in server.seen} == {"GET"}
    assert all(seen.headers["user-agent"].startswith("testbot") for seen in server.seen)
    assert source.notes == ()


def test_a_program_with_a_loop_asks_in_a_thread(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "<p>first</p>"})

    async def ask() -> list[int]:
        sources = [await asyncio.to_thread(load, server.origin) for _ in range(2)]
        return [len(source.pages) for source in sources]

    assert asyncio.run(ask()) == [1, 1]


def test_files_are_asked_for_anew_each_time(serve: Serve) -> None:
    """Fresh copies in the store do not count, because the publisher has just changed the files."""
    server = serve(
        {
            "/robots.txt": serve.Answer(
                ROBOTS, headers={"ETag": '"1"', "Cache-Control": "max-age=3600"}
            ),
            "/": "",
        }
    )
    load(server.url("/"))
    server.routes["/robots.txt"] = serve.Answer(
        "User-agent: *\nDisallow:\n", headers={"ETag": '"2"'}
    )
    source = load(server.url("/"))
    assert [
        seen.headers.get("if-none-match") for seen in server.seen if seen.path == "/robots.txt"
    ] == [None, '"1"']
    assert source.files[0].fetched.body == b"User-agent: *\nDisallow:\n"


def test_a_page_keeps_its_header_fields(serve: Serve) -> None:
    answer = serve.Answer(
        "<p>page</p>",
        content_type="text/html",
        headers={"X-Robots-Tag": "noai", "Content-Usage": "train-ai=n"},
    )
    server = serve({"/robots.txt": ROBOTS, "/page": answer})
    [page] = load(server.url("/page")).pages
    assert page.fetched.header(b"X-Robots-Tag") == b"noai"
    assert page.fetched.header(b"Content-Usage") == b"train-ai=n"
    assert page.fetched.header(b"Content-Type") == b"text/html"


def test_a_page_that_moved_is_had_where_it_went(serve: Serve) -> None:
    server = serve(
        {
            "/robots.txt": ROBOTS,
            "/old": serve.Answer("", status=301, headers={"Location": "/new"}),
            "/new": "<p>moved</p>",
        }
    )
    [page] = load(server.url("/old")).pages
    assert (page.url, page.fetched.url, page.fetched.status) == (
        server.url("/old"),
        server.url("/new"),
        200,
    )
    assert page.fetched.body == b"<p>moved</p>"


@pytest.mark.parametrize("status", [403, 404, 410, 500])
def test_a_page_that_is_not_there_is_had_with_its_status(serve: Serve, status: int) -> None:
    server = serve({"/robots.txt": ROBOTS, "/page": serve.Answer("no", status=status)})
    source = load(server.url("/page"))
    assert [page.fetched.status for page in source.pages] == [status]
    assert server.paths.count("/page") == 1


@pytest.mark.requirement("RFC-2")
def test_a_page_that_is_refused_is_not_asked_for(serve: Serve) -> None:
    server = serve({"/robots.txt": ROBOTS, "/private": "<p>secret</p>"})
    source = load(server.url("/private"))
    assert "/private" not in server.paths
    assert source.pages == ()
    [note] = source.notes
    line = f"{server.url('/robots.txt')}:2: Disallow: /private"
    assert note == f"{server.url('/private')} was not fetched: it is refused to testbot by {line}"


def test_a_page_behind_a_redirect_that_is_refused_is_not_asked_for(serve: Serve) -> None:
    server = serve(
        {
            "/robots.txt": ROBOTS,
            "/old": serve.Answer("", status=302, headers={"Location": "/private"}),
        }
    )
    source = load(server.url("/old"))
    assert "/private" not in server.paths
    assert source.pages == ()
    [note] = source.notes
    assert note.startswith(f"{server.url('/old')} could not be fetched: ")
    assert "/private" in note


@pytest.mark.requirement("RFC-7")
def test_a_site_whose_policies_cannot_be_had_is_asked_for_nothing_more(serve: Serve) -> None:
    server = serve({"/robots.txt": serve.Answer("", status=503), "/": "<p>page</p>"})
    source = load(server.url("/"))
    assert server.paths == ["/robots.txt"]
    assert [(file.url, file.fetched.status) for file in source.files] == [
        (server.url("/robots.txt"), 503)
    ]
    assert source.pages == ()
    assert source.site.access(Agent("somebot"), server.url("/")).verdict is Verdict.DENY


def test_settings_that_are_about_items_change_nothing_of_the_page(
    serve: Serve, project: Path
) -> None:
    """Settings that strip elements, or skip unusable pages, do not affect the page."""
    with project.open("a", encoding="utf-8") as file:
        file.write(
            'COMITY_ELEMENTS = "strip"\nCOMITY_USES = "train"\nCOMITY_DEFAULTS = "train:deny"\n'
        )
    ai_txt = "User-agent: *\n  Path: / html\n    Element: p\n      Disallow: *\n"
    server = serve(
        {
            "/robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nDisallow:\n",
            "/ai.txt": ai_txt,
            "/": "<p>text</p>",
        }
    )
    [page] = load(server.url("/")).pages
    assert page.fetched.body == b"<p>text</p>"
