"""Lines of robots.txt by which other readers decide otherwise (`comity.crawler.commands.second_opinion`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from comity.authoring.checks.contradictions import NOBODY
from comity.authoring.sites import Source, SourceFile
from comity.crawler.commands.second_opinion import differing, second_opinions, sentences
from comity.policies import Finding, Site
from comity.policies.answers.fetched import Availability, availability

MAX_AGENTS = 10
MAX_TRIED = 20  # URLs of which is looked why


def check_readers(source: Source, samples: tuple[SourceFile, ...]) -> Iterator[Finding]:
    url = f"{source.origin}/robots.txt"
    robots = source.site.files[url]
    if availability(robots) is not Availability.PRESENT:
        return
    alone = Site.from_files(source.origin, {"/robots.txt": robots})
    tokens = [NOBODY, *islice(sorted(name for name in alone.crawler_names if name.replace("-", "").isalnum()), MAX_AGENTS)]
    reported: set[tuple[int, str]] = set()
    for agent, probe in islice(differing(source.site, tokens), MAX_TRIED):
        decision = alone.access(agent, probe)
        for opinion in second_opinions(alone, agent, probe, decision):
            line = opinion.line or decision.reasons[0].source.line
            if opinion.agrees is False and (line, opinion.cause) not in reported:
                reported.add((line, opinion.cause))
                told = "; ".join(sentences([opinion.as_json], []))
                here = f"comity says {decision.verdict.value} of {probe} to {agent.token}"
                yield Finding(rule="comity.other-readers", message=f"{told}. {here}", url=url, line=line)
