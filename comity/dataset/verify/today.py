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
MAX_AGENTS = 100  # agents of tags that are kept

Sites = Callable[[str], Site | None]  # origin -> its policies today; None: they are unknown


class Today:
    """The agent, the moment and the uses of a recheck. It can be pickled."""

    def __init__(
        self, agent: Agent, now: datetime, uses: tuple[str, ...] = (), tags: TagSource = GUESSED
    ) -> None:
        """`now`: an aware moment. `uses`: every record must be permitted for them and for crawling.
        Without them, a record must be permitted for the uses that its tag permits."""
        self.agent = agent
        self.now = now
        self.uses = tuple(dict.fromkeys(("crawl", *uses))) if uses else ()
        self.tags = tags
        self.alike: Alike[Rechecked] = Alike()
        self._agents: dict[str, Agent] = {}

    def agent_of(self, token: str) -> Agent:
        """Return the agent that a tag names.

        Of an agent other than ours only the token is known, so it has no arrangements."""
        if token.lower() == self.agent.token.lower():
            return self.agent
        if token not in self._agents:
            if len(self._agents) >= MAX_AGENTS:
                self._agents.clear()
            self._agents[token] = replace(self.agent, token=token, user_agent="", arrangements=())
        return self._agents[token]
