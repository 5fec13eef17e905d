"""Targets that the page may open: fewer than the user who starts the program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from comity.authoring.workbench.desk import Workbench, desk_of
from comity.policies import PolicyError

if TYPE_CHECKING:
    from tests.conftest import Serve

ROBOTS = "User-agent: *\nDisallow: /private\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the default settings, with a separate store."""
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    """Make a folder with two sites below it, and one beside it."""
    for name in ("sites/first", "sites/second", "beside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "robots.txt").write_text(ROBOTS, "utf-8")
    (tmp_path / "sites/link").symlink_to(tmp_path / "beside")
    return tmp_path / "sites"


def test_a_folder_below_the_one_of_the_start_is_opened_and_saved_to(sites: Path) -> None:
    desk = Workbench(desk_of(None), sites).open("second")
    assert desk.folder
    url = "https://example.com/robots.txt"
    desk.save(desk.state().with_file(url, b"User-agent: *\n"), url)
    assert (sites / "second/robots.txt").read_bytes() == b"User-agent: *\n"
    assert (sites / "first/robots.txt").read_text("utf-8") == ROBOTS


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize(
    "target",
    ["../beside", "{beside}", "link", "/", "~", "..", "second/../../beside", "file:///etc"],
)
def test_no_other_folder_is_opened(sites: Path, target: str) -> None:
    with pytest.raises(PolicyError, match=r"is not below|is not a folder"):
        Workbench(desk_of(str(sites / "first")), sites).open(
            target.format(beside=sites.parent / "beside")
        )


def test_a_folder_that_was_named_at_the_start_may_be_anywhere(sites: Path) -> None:
    workbench = Workbench(desk_of(str(sites / "first")), sites.parent / "beside")
    assert workbench.open(str(sites / "first")).folder
    with pytest.raises(PolicyError, match="start `comity workbench` with it"):
        workbench.open(str(sites / "second"))


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize("target", ["first", None])
def test_no_server_at_an_inner_address_is_asked(
    sites: Path, serve: Serve, target: str | None
) -> None:
    server = serve({"/robots.txt": ROBOTS, "/": "<p>inside"})
    workbench = Workbench(desk_of(target and str(sites / target)), sites)
    for host in ("127.0.0.1", "localhost", "127.1"):
        with pytest.raises(PolicyError, match="may not be asked"):
            workbench.open(server.url("/").replace("127.0.0.1", host))
    assert server.seen == []


def test_who_was_started_with_a_site_at_such_an_address_stays_with_its_kind(serve: Serve) -> None:
    first, second = (
        serve({"/robots.txt": ROBOTS, "/": ""}),
        serve({"/robots.txt": ROBOTS, "/": "<p>second"}, host="127.0.0.2"),
    )
    desk = Workbench(desk_of(first.url("/"))).open(second.url("/"))
    assert [file.body for file in desk.start.pages.values()] == [b"<p>second"]
    with pytest.raises(
        PolicyError, match=r"may not be asked: led to 10\.0\.0\.1, which is a private address"
    ):
        Workbench(desk_of(first.url("/"))).open("http://10.0.0.1/")


@pytest.mark.parametrize(
    "target",
    ["\ud800", "\0", "http://\ud800/", "http://[", "https://", "http://user@/", "x" * 5000],
)
def test_what_is_neither_is_told(sites: Path, target: str) -> None:
    with pytest.raises(PolicyError):
        Workbench(desk_of(None), sites).open(target)


def test_one_is_opened_at_a_time(sites: Path) -> None:
    workbench = Workbench(desk_of(None), sites)
    with workbench._lock, pytest.raises(PolicyError, match="already"):
        workbench.open("first")
    assert workbench.open("first").folder
