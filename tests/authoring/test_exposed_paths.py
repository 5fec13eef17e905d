"""Lines that show everybody where something is that only its owner should find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.authoring.checks.exposed_paths import MAX_REPORTED, check_exposed_paths
from comity.authoring.checks.serving import check_serving
from comity.authoring.live_site import fetch
from comity.authoring.source import SiteSource, SourceFile
from comity.gate.fetching.reach import Reach
from comity.policies import Fetched, Finding, Site

if TYPE_CHECKING:
    from tests.conftest import Serve

ORIGIN = "https://example.com"


def found(path: str, body: bytes) -> list[Finding]:
    url = ORIGIN + path
    file = Fetched(status=200, body=body)
    site = Site.from_files(ORIGIN, {path: file})
    return list(check_exposed_paths(SiteSource(ORIGIN, site, (SourceFile(url, url, file),), ())))


@pytest.mark.requirement("AUTO-19")
@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("Disallow: /admin", "/admin"),
        ("disallow : /Admin/ # the way in", "/Admin/"),
        ("Disallow: /intern/backup/*", "/intern/backup/*"),
        ("Disallow: /backup.sql", "/backup.sql"),
        ("Disallow: /old/site.SQL.gz$", "/old/site.SQL.gz$"),
        ("Disallow: /.git/", "/.git/"),
        ("Disallow: /.git/config", "/.git/config"),
        ("Disallow: /%2Eenv", "/%2Eenv"),
        ("Disallow: /.env.local", "/.env.local"),
        ("Disallow: /wp-config.php.bak", "/wp-config.php.bak"),
        ("Disallow: /keys/server.pem", "/keys/server.pem"),
        ("ACAP-disallow-crawl: /admin/", "/admin/"),
        ("DisallowAITraining: /admin/", "/admin/"),
        ("scope: /phpmyadmin/", "/phpmyadmin/"),
        ("disallow-fetch-from: /account/, /admin/*", "/admin/*"),
        ("  Path: /secrets/ html", "/secrets/"),
        ('[{"location": "/backup/", "tdm-reservation": 1}]', "/backup/"),
    ],
)
def test_a_line_with_the_place_is_reported(line: str, path: str) -> None:
    name = "/.well-known/tdmrep.json" if line.startswith("[") else "/robots.txt"
    [finding] = found(name, f"User-agent: *\n{line}\nDisallow: /search\n".encode())
    assert (finding.rule, finding.line, finding.url) == ("comity.exposed-path", 2, ORIGIN + name)
    assert line[finding.column - 1 :][: finding.length] == path
    assert f"`{path}`" in finding.message


@pytest.mark.requirement("AUTO-19")
@pytest.mark.parametrize(
    "line",
    [
        "Disallow: /",
        "Disallow: /search",
        "Disallow: /wp-admin/",
        "Disallow: /administrator/",
        "Disallow: /administration.html",
        "Disallow: /private/",
        "Disallow: /guide/admin/first-steps.html",
        "Disallow: /INSTALL.sqlite.txt",
        "Disallow: /*.sql$",
        "Disallow: /search?path=/admin/",
        "Disallow: /.well-known/",
        "Disallow: /.gitignore-explained",
        "Allow: /admin/",
        "ACAP-allow-crawl: /admin/",
        "# Disallow: /admin/",
        "Sitemap: https://example.com/admin/sitemap.xml",
        "User-agent: admin",
    ],
)
def test_other_lines_are_not_reported(line: str) -> None:
    assert found("/robots.txt", f"User-agent: *\n{line}\n".encode()) == []


@pytest.mark.requirement("AUTO-19")
def test_only_the_first_lines_are_reported() -> None:
    body = b"User-agent: *\n" + b"Disallow: /admin\n" * (MAX_REPORTED + 5)
    assert [finding.line for finding in found("/robots.txt", body)] == [*range(2, MAX_REPORTED + 2)]


@pytest.mark.requirement("SEC-1")
@given(st.binary(max_size=200))
def test_any_octets_are_read(octets: bytes) -> None:
    for finding in found("/robots.txt", b"Disallow: /admin\n" + octets):
        assert finding.line > 0


@pytest.mark.requirement("AUTO-19")
@pytest.mark.parametrize(
    ("url", "last", "rules"),
    [
        ("http://example.com", "", ["comity.file-http"]),
        ("https://example.com", "", []),
        ("http://example.com", "https://example.com/robots.txt", []),
        (
            "https://example.com",
            "http://example.com/robots.txt",
            ["comity.file-http", "comity.file-moved"],
        ),
        ("http://example.com", "https://www.example.com/robots.txt", ["comity.file-moved"]),
    ],
)
def test_a_file_that_came_over_http_is_reported(url: str, last: str, rules: list[str]) -> None:
    file = Fetched(
        status=200,
        headers=((b"Content-Type", b"text/plain; charset=utf-8"),),
        body=b"User-agent: *\nDisallow: /search\n",
        url=last,
    )
    source = source_of(url, file)
    assert sorted(finding.rule for finding in check_serving(source)) == rules
    assert "comity.file-http" not in {
        finding.rule for finding in check_serving(source._replace(reach=Reach.LOOPBACK))
    }
    without_fields = source_of(url, Fetched(status=200, body=file.body))
    assert not [*check_serving(without_fields)]
    missing = source_of(url, Fetched(status=503, headers=file.headers))
    assert {finding.rule for finding in check_serving(missing)} == {"comity.file-status"}


def source_of(origin: str, file: Fetched) -> SiteSource:
    name = f"{origin}/robots.txt"
    site = Site.from_files(origin, {"/robots.txt": file})
    return SiteSource(origin, site, (SourceFile(name, name, file),), ())


@pytest.mark.requirement("AUTO-19")
def test_a_server_on_this_machine_is_left_alone(serve: Serve) -> None:
    server = serve({"/robots.txt": "User-agent: *\nDisallow: /search\n", "/": "<p>page</p>"})
    source = fetch(server.url("/"), None)
    assert source.reach is Reach.LOOPBACK
    assert "comity.file-http" not in {finding.rule for finding in check_serving(source)}
    elsewhere = source._replace(reach=Reach.PUBLIC)
    assert "comity.file-http" in {finding.rule for finding in check_serving(elsewhere)}
