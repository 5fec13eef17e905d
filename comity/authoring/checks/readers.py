"""Find lines of robots.txt that other parsers read differently.

The parsers are in `comity.gate.second_opinion`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter

from comity.authoring.checks.contradictions import NOBODY, is_token
from comity.authoring.source import SiteSource
from comity.gate.second_opinion import Opinion, differing, second_opinions, sentences
from comity.policies import Agent, Finding, Site
from comity.policies.answers.fetched import Availability, availability
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import target_of

MAX_AGENTS = 5
# The maximum number of differing URLs that are explained for one parser. Each explanation parses
# the file some hundred times.
MAX_EXPLAINED = 2


def check_readers(source: SiteSource) -> Iterator[Finding]:
    """Yield a finding for each parser and each cause why it differs.

    The finding is at the first line that was found for the cause."""
    url = f"{source.origin}/robots.txt"
    robots = source.site.files[url]
    if availability(robots) is not Availability.PRESENT:
        return
    robots_site = Site.from_files(source.origin, {"/robots.txt": robots})
    tokens = [NOBODY, *islice(sorted(filter(is_token, robots_site.crawler_names)), MAX_AGENTS)]
    reported: set[tuple[str, str]] = set()
    for _, differences in groupby(differing(source.site, tokens), itemgetter(0)):
        for reader, agent, probe in islice(differences, MAX_EXPLAINED):
            decision = robots_site.access(agent, probe)
            for opinion in second_opinions(robots_site, agent, probe, decision):
                if opinion.reader == reader and (reader, opinion.cause) not in reported:
                    reported.add((reader, opinion.cause))
                    line = opinion.line or decision.reasons[0].source.line
                    yield Finding(
                        rule="comity.other-readers",
                        message=_message(opinion, agent, probe),
                        url=url,
                        line=line,
                    )


def _message(opinion: Opinion, agent: Agent, probe: str) -> str:
    text = "; ".join(sentences([opinion.as_json], []))
    return text.replace("fetch this", f"fetch {printable(target_of(probe))} as {agent.token}")
