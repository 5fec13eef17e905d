"""Crawls with each profile, and with the list that `comity profile` prints for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from comity.cli import main
from comity.gate.options.profiles import PROFILES
from comity.spiders.site import SiteSpider
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Crawled, Loopback, Serve

    Crawl = Callable[..., Crawled]

PAGES = {
    "/": '<meta name="other">',
    "/noindex": '<meta name="robots" content="noindex">',
    "/noarchive": '<meta name="robots" content="noarchive">',
    "/noai": '<meta name="robots" content="noai">',
    "/reserved": '<meta name="tdm-reservation" content="1">',
}
FIELDS = {"/no-training": "train-ai=n", "/training": "train-ai=y"}  # Content-Usage
PATHS = {*PAGES, *FIELDS}

# The pages whose items are kept.
KEPT = {
    "search": PATHS - {"/noindex"},
    "archive": PATHS - {"/noarchive"},
    "training": {"/training"},
    "research": PATHS - {"/noai", "/reserved", "/no-training"},
    "monitoring": PATHS - {"/noai", "/reserved"},
}


@pytest.fixture
def site(serve: Serve) -> Loopback:
    links = "".join(f'<a href="{path}">x</a>' for path in sorted(PATHS))
    body = f"<title>t</title></head><main>{links}"
    routes: dict[str, Any] = {path: f"<head>{meta}{body}" for path, meta in PAGES.items()}
    for path, usage in FIELDS.items():
        routes[path] = serve.Answer(
            f"<head>{body}", content_type="text/html", headers={"Content-Usage": usage}
        )
    return serve(routes)


def printed(profile: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the settings that `comity profile` prints, read as a settings.py."""
    capsys.readouterr()
    assert main(["profile", profile]) == 0
    settings: dict[str, Any] = {}
    exec(capsys.readouterr().out, settings)
    del settings["__builtins__"]
    return settings


def requests_of(site: Loopback) -> list[tuple[str, str | None]]:
    """Return the requests for pages since the last call: each path, and its declared purpose."""
    seen = [(one.path, one.headers.get("automation-purpose")) for one in site.seen]
    site.seen.clear()
    return sorted(each for each in seen if each[0] in PATHS)


def kept_by(crawled: Crawled, site: Loopback) -> set[str]:
    return {item["final_url"].removeprefix(site.origin) for item in crawled.items}


@pytest.mark.parametrize("profile", one_in(3, PROFILES))
def test_a_profile_is_the_list_that_is_printed(
    site: Loopback, crawl: Crawl, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = printed(profile, capsys)
    by_name = crawl(SiteSpider, {"COMITY_PROFILE": profile}, url=site.url())
    requests = requests_of(site)
    assert requests == [(path, profile) for path in sorted(PATHS)]
    assert kept_by(by_name, site) == KEPT[profile]
    for setting in settings:
        assert f"{setting} = " in by_name.log
    by_list = crawl(SiteSpider, settings, url=site.url())
    assert requests_of(site) == requests
    assert kept_by(by_list, site) == KEPT[profile]
    assert verdicts_of(by_name) == verdicts_of(by_list)
    assert "COMITY_DEFAULTS has no value" not in by_name.log


def verdicts_of(crawled: Crawled) -> dict[str, dict[str, str]]:
    return {
        item["final_url"]: {use: one["verdict"] for use, one in item["permissions"]["uses"].items()}
        for item in crawled.items
    }


def test_your_own_settings_come_first(site: Loopback, crawl: Crawl) -> None:
    settings = {"COMITY_PROFILE": "training", "COMITY_DEFAULTS": "train:allow"}
    crawled = crawl(SiteSpider, settings, url=site.url())
    assert kept_by(crawled, site) == PATHS - {"/noai", "/reserved", "/no-training"}
    assert (
        'COMITY_PROFILE `training` sets COMITY_PURPOSES = "training", COMITY_USES = "train",'
        ' COMITY_ELEMENTS = "redact". Your own settings replace its COMITY_DEFAULTS\n'
    ) in crawled.log


class Watching(SiteSpider):
    """A spider with a profile of its own."""

    custom_settings: ClassVar[dict[str, Any]] = {"COMITY_PROFILE": "monitoring"}  # type: ignore[misc]


def test_a_spider_can_choose_a_profile(site: Loopback, crawl: Crawl) -> None:
    crawled = crawl(Watching, {"COMITY_PROFILE": "training"}, url=site.url())
    assert kept_by(crawled, site) == KEPT["monitoring"]


@pytest.mark.requirement("AUTO-13")
@pytest.mark.parametrize("profile", one_in(2, PROFILES))
def test_sites_for_another_purpose_are_not_crawled(
    site: Loopback, crawl: Crawl, profile: str
) -> None:
    site.routes["/automation-preferences.txt"] = (
        "user-agent: *\nallowed-methods: GET\nallowed-purposes: search\n"
    )
    crawl(SiteSpider, {"COMITY_PROFILE": profile}, url=site.url())
    paths = [path for path, _ in requests_of(site)]
    assert paths == (sorted(PATHS) if profile == "search" else [])


def test_an_unknown_profile_ends_the_program_with_one_line(site: Loopback, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"url={site.url()}"]
    done = subprocess.run(
        [*command, "-s", "COMITY_PROFILE=trainig"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "comity: COMITY_PROFILE `trainig` is not a profile: did you mean `training`? Else write"
        " search, archive, training, research or monitoring"
    )
    assert site.seen == []
