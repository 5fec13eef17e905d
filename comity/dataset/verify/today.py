"""Circumstances of a recheck besides the record: who asks, when, and what sites say today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from comity.dataset.tags.sources import GUESSED, TagSource
from comity.dataset.verify.element_changes import DOCUMENT
from comity.dataset.verify.origins import URL_FIELDS
from comity.dataset.verify.result import Rechecked
from comity.dataset.verify.shared_results import Alike
from comity.policies import Agent, Site

FIELDS = (*URL_FIELDS, DOCUMENT)  # what is read of a record besides its tag
MAX_AGENTS = 100  # of tags, that are kept

Sites = Callable[[str], Site | None]  # origin -> what it says today; None: nobody knows


class Today:
    """The question of a recheck: who asks, when, and for what. It can be pickled."""

    def __init__(
        self, agent: Agent, now: datetime, uses: tuple[str, ...] = (), tags: TagSource = GUESSED
    ) -> None:
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
