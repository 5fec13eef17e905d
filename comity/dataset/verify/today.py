"""The circumstances of a recheck besides the record: agent, moment, uses and today's policies."""

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

FIELDS = (*URL_FIELDS, DOCUMENT)  # fields of a record that are read besides its tag
MAX_AGENTS = 100  # the maximum number of agents of tags that are kept in memory

Sites = Callable[[str], Site | None]  # origin -> its policies today; None: they are unknown


class Today:
    """The agent, the moment and the uses of a recheck. It can be pickled."""

    def __init__(
        self, agent: Agent, now: datetime, uses: tuple[str, ...] = (), tags: TagSource = GUESSED
    ) -> None:
        """`agent`: our agent. `now`: the moment of the recheck, aware. `tags`: the source of tags.

        `uses`: the uses that must be permitted for each record, besides crawling. (): the uses that
        the tag of the record permits must still be permitted."""
        self.agent = agent
        self.now = now
        self.uses = tuple(dict.fromkeys(("crawl", *uses))) if uses else ()
        self.tags = tags
        self.alike: Alike[Rechecked] = Alike()
        self._agents: dict[str, Agent] = {}

    def agent_of(self, token: str) -> Agent:
        """Return the agent that a tag names.

        If it is not our agent, only its token is known. So it has no arrangements."""
        if token.lower() == self.agent.token.lower():
            return self.agent
        if token not in self._agents:
            if len(self._agents) >= MAX_AGENTS:
                self._agents.clear()
            self._agents[token] = replace(self.agent, token=token, user_agent="", arrangements=())
        return self._agents[token]
