"""Find contradictions between files, and between files and pages.

One refusal is enough to refuse a use, so a permission in another file has no effect. To compare
formats, the site is read once for each format, as if it had no statements in other formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from comity.authoring.source import SiteSource, SourceFile
from comity.policies import Agent, Finding, Page, Reason, Site, Verdict
from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.formats import FORMATS
from comity.policies.syntax.printable import unhidden

NOBODY = "comity-nobody"  # a crawler that no file names: the rules for everybody apply to it
MAX_AGENTS = 50
# The maximum product of the octets of all policy files and the number of agents.
MAX_OCTETS = 4 * 1024 * 1024
MAX_PAGES = 100


def check_contradictions(source: SiteSource) -> Iterator[Finding]:
    """Yield a finding for each permission in a file or page that another file or format refuses.

    Refusals in pages are not compared with the permissions in files."""
    size = sum(len(file.fetched.body) for file in source.files)
    tokens = sorted(filter(is_token, source.site.crawler_names))
    names = [NOBODY, *tokens[: min(MAX_AGENTS, MAX_OCTETS // (size + 1))]]
    reported: set[tuple[Reason, Reason]] = set()
    sites = [
        Site(source.origin, source.site.files, formats=(format_,))
        for format_ in FORMATS
        if format_.read_site
    ]
    of_names = (
        (name, contradiction)
        for name in names
        for contradiction in _of_files(source, sites, Agent(name))
    )
    of_pages = (
        (NOBODY, contradiction)
        for page in source.pages[:MAX_PAGES]
        for contradiction in _of_page(source, page)
    )
    for name, (permitting, refusing, use) in chain(of_names, of_pages):
        if (permitting, refusing) not in reported:
            reported.add((permitting, refusing))
            yield _finding(
                source, permitting, refusing, use, "" if name == NOBODY else f" to {name}"
            )


def is_token(name: str) -> bool:
    """Return True if a name is a product token, which an `Agent` can have."""
    return PRODUCT_TOKEN.fullmatch(name) is not None


# The reason that permits, the reason that refuses, and the use.
Contradiction = tuple[Reason, Reason, str]


def _of_files(source: SiteSource, sites: Sequence[Site], agent: Agent) -> Iterator[Contradiction]:
    """Yield the contradictions between formats about the root of a site.

    `sites`: the site, read once for each format."""
    url = f"{source.origin}/"
    # All formats together decide about access, because some formats have no rules about access.
    access = source.site.access(agent, url)
    yield from _between([site.page(agent, url, body=None, access=access) for site in sites])


def _of_page(source: SiteSource, page: SourceFile) -> Iterator[Contradiction]:
    """Yield the contradictions between a page that permits a use and a file that refuses it."""
    agent = Agent(NOBODY)
    itself = Site.from_files(source.origin, {}).page(
        agent, page.url, headers=page.fetched.headers, body=page.fetched.body
    )
    of_files = source.site.page(agent, page.url, body=None)
    for permitting, refusing, use in _between([itself, of_files]):
        if permitting.source.url == page.url:
            yield permitting, refusing, use


def _between(pages: Sequence[Page]) -> Iterator[Contradiction]:
    """Yield the contradictions between several readings of one page.

    Only stated permissions and refusals count. A use without a statement is no permission here."""
    uses = dict.fromkeys(
        use for page in pages for use, decision in page.uses.items() if decision.stated
    )
    # Fetching is no use of content.
    for use in (use for use in uses if use not in ("crawl", "follow")):
        decisions = [page.uses[use] for page in pages]
        permitting = [
            decision.reasons[0]
            for decision in decisions
            if decision.stated and decision.verdict is Verdict.ALLOW
        ]
        refusing = [
            decision.reasons[0]
            for decision in decisions
            if decision.stated and decision.verdict is Verdict.DENY
        ]
        yield from ((permission, refusal, use) for permission in permitting for refusal in refusing)


def _finding(
    source: SiteSource, permitting: Reason, refusing: Reason, use: str, addressee: str
) -> Finding:
    origin = refusing.source
    position = unhidden(source.name_of(origin.url), keep="") + (
        f":{origin.line}" if origin.line else ""
    )
    text = f" (`{origin.text}`)" if origin.text else ""
    message = (
        f"`{use}` is permitted here{addressee}, but {position}{text} refuses it. The refusal wins."
    )
    return Finding(
        rule="comity.contradiction",
        message=message,
        url=permitting.source.url,
        line=permitting.source.line,
    )
