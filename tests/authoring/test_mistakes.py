"""The mistakes that publishers make: lint finds them at their lines, and mends most of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from comity.authoring.lint import KINDS, lint_file, lint_site, place_problems, right_place
from comity.authoring.problems import Problem
from comity.authoring.source import SiteSource, SourceFile
from comity.policies import Agent, Fetched, Site
from comity.policies.formats.authoring import apply
from tests.authoring.mistakes import MISTAKES, Mistake
from tests.selection import one_in

ORIGIN = "https://publisher.example"
RESPONSE = b"HTTP/1.1 "
AGENTS = [Agent(token) for token in ("comity-nobody", "GPTBot", "CCBot", "Google-Extended")]
PATHS = ("/", "/a", "/a/", "/a/b", "/a/x.pdf", "/b/", "/a%20b/", "/50%25/", "/Private/", "/shop/")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def octets(mistake: Mistake) -> bytes:
    return mistake.body.encode() if isinstance(mistake.body, str) else mistake.body


def response(body: bytes, url: str = "") -> Fetched:
    """Read a body or a whole response. `url`: the address to which a redirect led."""
    if not body.startswith(RESPONSE):
        return Fetched(status=200, body=body)
    head, _, content = body.partition(b"\n\n")
    status, *lines = head.split(b"\n")
    headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
    if location := dict(headers).get(b"Location"):
        return response(content, location.decode())
    code = int(status.split(b" ")[1])
    return Fetched(status=code, headers=tuple(headers), body=content, url=url)


def problems_in(path: str, body: bytes) -> list[Problem]:
    """Return the problems of the only file of a site. `body` may be a whole response."""
    kind = KINDS[Path(path).name]
    if kind.path and f"/{path}" != kind.path:
        return place_problems(path, right_place(Path("/srv/site", path), kind))
    url = f"{ORIGIN}/{path}"
    if not kind.path and not body.startswith(RESPONSE):
        return lint_file(kind, path, body, origin=ORIGIN)
    file = SourceFile(path, url, response(body))
    files = {url: file.fetched} if kind.path else {}
    sources = ((file,), ()) if kind.path else ((), (file,))
    return lint_site(SiteSource(ORIGIN, Site.from_files(ORIGIN, files), *sources))


def line_of(problem: Problem) -> int:
    return problem.span.line if problem.span else 0


def problem_of(mistake: Mistake) -> Problem | None:
    """Return the problem that names a mistake, if lint finds it."""
    problems = [
        problem
        for problem in problems_in(mistake.path, octets(mistake))
        if (problem.rule, line_of(problem)) == (mistake.rule, mistake.line)
    ]
    return next((problem for problem in problems if problem.fix), (*problems, None)[0])


def decisions(path: str, body: bytes) -> list[object]:
    """Return the decisions of a site with one policy file, or about one page."""
    kind = KINDS[Path(path).name]
    files = {f"/{path}": body} if kind.path else {}
    site = Site.from_files(ORIGIN, files)
    decided: list[object] = []
    for agent in AGENTS:
        decided.append(site.rates(agent))
        for target in PATHS:
            url = ORIGIN + target
            content = None if kind.path else body
            headers = [(b"Content-Type", b"text/html")]
            page = site.page(agent, url, headers=headers, body=content, now=NOW)
            uses = [(use, by.verdict, by.stated) for use, by in page.uses.items()]
            decided.append((site.access(agent, url).verdict, uses))
    return decided


@pytest.mark.requirement("IDE-4")
@pytest.mark.parametrize("mistake", one_in(2, MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_found_at_its_line_and_mended(mistake: Mistake) -> None:
    problem = problem_of(mistake)
    assert bool(mistake.rule) is not bool(mistake.why)
    if not mistake.rule:
        assert all(
            line_of(other) != mistake.line for other in problems_in(mistake.path, octets(mistake))
        )
        return
    assert problem
    fix = problem.fix
    assert mistake.fix == (("changes" if fix.changes_decisions else "safe") if fix else "")
    if fix is None:
        return
    mended, [made] = apply(octets(mistake), [fix])
    assert made == fix
    before, after = (
        [(other.rule, other.message) for other in problems_in(mistake.path, body)]
        for body in (octets(mistake), mended)
    )
    finding = problem.rule, problem.message
    assert after.count(finding) < before.count(finding)
    if not fix.changes_decisions:
        assert decisions(mistake.path, mended) == decisions(mistake.path, octets(mistake))


@pytest.mark.requirement("IDE-6")
def test_most_mistakes_are_found_and_mended() -> None:
    found = sum(mistake.rule != "" for mistake in MISTAKES)
    mended = sum(mistake.fix != "" for mistake in MISTAKES)
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 74
    assert found >= len(MISTAKES) * 68 / 74
    assert mended >= len(MISTAKES) * 50 / 74
