"""Circumstances of a recheck besides the record: who asks, when, and what sites say today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from comity.dataset.records import Record
from comity.dataset.tag_sources import GUESSED, TagSource
from comity.dataset.verify.element_changes import DOCUMENT
from comity.dataset.verify.result import Rechecked
from comity.dataset.verify.shared_results import Alike
from comity.policies import Agent, Site
from comity.policies.syntax.urls import origin_of

URL_FIELDS = ("final_url", "url")  # the first that a record has names its page
FIELDS = (*URL_FIELDS, DOCUMENT)  # what is read of a record besides its tag
MAX_AGENTS = 100  # of tags, that are kept

Sites = Callable[[str], Site | None]  # origin -> what it says today; None: nobody knows


class Today:
    """The question of a recheck: who asks, when, and for what. It can be pickled."""

    def __init__(self, agent: Agent, now: datetime, uses: tuple[str, ...] = (), tags: TagSource = GUESSED) -> None:
        """`now`: aware. `uses`: for which every record has to be permitted, besides crawling; none: whatever its tag permits."""
        self.agent = agent
        self.now = now
        self.uses = tuple(dict.fromkeys(("crawl", *uses))) if uses else ()
        self.tags = tags
        self.alike: Alike[Rechecked] = Alike()
        self._agents: dict[str, Agent] = {}

    def agent_of(self, token: str) -> Agent:
        """The agent that a tag means. Of another agent than ours nothing is known but its name: nothing is arranged with it."""
        if token.lower() == self.agent.token.lower():
            return self.agent
        if token not in self._agents:
            if len(self._agents) >= MAX_AGENTS:
                self._agents.clear()
            self._agents[token] = replace(self.agent, token=token, user_agent="", arrangements=())
        return self._agents[token]


def page_url(record: Record) -> str:
    """The URL of its page; "" where it has none that a site could speak for."""
    url = next((url for field in URL_FIELDS if isinstance(url := record.get(field), str) and url), "")
    return url if origin(url) else ""


def origin(url: str) -> str:
    """ "" where it has none."""
    try:
        return origin_of(url)
    except ValueError:
        return ""
