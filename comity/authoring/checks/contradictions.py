"""Contradictions between files, and between files and pages: any refusal refuses, so what is permitted beside it has no effect.

Each file's word for a use is asked of the site as if only one format were there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from comity.authoring.sites import Source, SourceFile
from comity.policies import Agent, Finding, Page, Reason, Site, UseDecision, Verdict
from comity.policies.formats import FORMATS

NOBODY = "comity-nobody"  # a crawler that no file names: what is said to everybody
MAX_AGENTS = 50
MAX_PAGES = 100


def check_contradictions(source: Source, samples: tuple[SourceFile, ...]) -> Iterator[Finding]:
    names = [NOBODY, *islice(sorted(name for name in source.site.crawler_names if _is_token(name)), MAX_AGENTS)]
    reported: set[tuple[Reason, Reason]] = set()
    for name in names:
        agent = Agent(name)
        for permitting, refusing, use in _of_files(source, agent):
            if (permitting, refusing) not in reported:
                reported.add((permitting, refusing))
                yield _finding(source, permitting, refusing, use, "" if name == NOBODY else f" to {name}")
    for page in source.pages[:MAX_PAGES]:
        for permitting, refusing, use in _of_page(source, page):
            yield _finding(source, permitting, refusing, use, "")


def _is_token(name: str) -> bool:
    return name.replace("-", "").replace("_", "").isalnum()


Contradiction = tuple[Reason, Reason, str]  # why it is permitted, why it is refused, the use


def _of_files(source: Source, agent: Agent) -> Iterator[Contradiction]:
    """The contradictions between formats about the site's first page."""
    url = f"{source.origin}/"
    uses: list[Mapping[str, UseDecision]] = []
    for format_ in FORMATS:
        if format_.read_site:
            alone = Site(source.origin, source.site.files, formats=(format_,))
            uses.append(_stated(alone.page(agent, url, body=None)))
    yield from _between(uses)


def _of_page(source: Source, page: SourceFile) -> Iterator[Contradiction]:
    """What a page permits for itself, and the files refuse."""
    agent = Agent(NOBODY)
    itself = Site.from_files(source.origin, {}).page(agent, page.url, headers=page.fetched.headers, body=page.fetched.body)
    of_files = source.site.page(agent, page.url, body=None)
    permitted = {use: decision for use, decision in _stated(itself).items() if decision.verdict is Verdict.ALLOW}
    yield from _between([permitted, {use: each for use, each in _stated(of_files).items() if each.verdict is Verdict.DENY}])


def _stated(page: Page) -> Mapping[str, UseDecision]:
    """The uses of which somebody speaks. That it may be fetched is no permission to use it."""
    decisions = {use: decision for use, decision in page.uses.items() if use not in ("crawl", "follow")}
    return {use: decision for use, decision in decisions.items() if decision.stated}


def _between(by_source: list[Mapping[str, UseDecision]]) -> Iterator[Contradiction]:
    for number, permitting in enumerate(by_source):
        for use, decision in permitting.items():
            if decision.verdict is not Verdict.ALLOW or not decision.reasons[0].source.line:
                continue
            for refusing in (other for index, other in enumerate(by_source) if index != number):
                if use in refusing and refusing[use].verdict is Verdict.DENY:
                    yield decision.reasons[0], refusing[use].reasons[0], use


def _finding(source: Source, permitting: Reason, refusing: Reason, use: str, to_whom: str) -> Finding:
    origin = refusing.source
    position = source.name_of(origin.url) + (f":{origin.line}" if origin.line else "")
    text = f" (`{origin.text}`)" if origin.text else ""
    message = f"`{use}` is permitted here{to_whom}, and refused by {position}{text}: it is refused"
    place = permitting.source
    return Finding(rule="comity.contradiction", message=message, url=place.url, line=place.line)
