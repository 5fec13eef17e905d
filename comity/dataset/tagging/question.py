"""The options of tagging: for which agent, by the policies of which date, with which exceptions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from comity.dataset.records import DatasetError, moment_of
from comity.policies import Agent
from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.tag import DATES
from comity.policies.vocabulary.known_crawlers import training_crawlers

CAPTURE, TODAY, BOTH_DATES = DATES
DENY, ALLOW, KEEP_APART = MISSING = ("deny", "allow", "keep-apart")
AI_TRAINING = "ai-training"  # in `also`: all crawlers that are known to fetch for training
OLDEST = datetime(1991, 8, 6, tzinfo=UTC)  # the first page of the web
SKEW = timedelta(days=1)  # a capture may be dated this much in the future: clocks differ


class Question(NamedTuple):
    """The agent for which records are tagged, and the options of tagging. It can be pickled."""

    agent: Agent
    """The agent, with its uses."""
    now: datetime
    """The moment of tagging, aware."""
    as_of: str = CAPTURE
    """The date of the policies, one of DATES."""
    missing: str = DENY
    """The treatment of pages whose site has no copies of policies, one of MISSING."""
    captured_by: str = ""
    """User-Agent or product token of the crawler that captured the pages. Empty: as each capture
    says."""
    also: tuple[str, ...] = ()
    """Product tokens of other crawlers whose rules count for us too."""
    captured_at: datetime | None = None
    """The aware moment of capture for records without a readable date."""
    redacts: bool = False
    """True: elements that are refused for one of the agent's uses are cut out of records."""

    @classmethod
    def of(
        cls,
        agent: Agent,
        *,
        now: datetime | None = None,
        also: Iterable[str] = (),
        captured_at: Any = None,
        **more: Any,
    ) -> Question:
        """Return a question.

        `now`: None means the moment of this call. `also`: product tokens. AI_TRAINING stands for
        the tokens of all known crawlers for training. `captured_at`: a moment in a form that
        `moment_of` reads, e.g. "2024-05-18". `more`: further fields of Question.

        DatasetError: a value is invalid."""
        names: dict[str, None] = {}
        for name in filter(None, (name.strip() for name in also)):
            if name.lower() == AI_TRAINING:
                names |= dict.fromkeys(
                    crawler.token for crawler in training_crawlers(with_retired=True)
                )
            elif PRODUCT_TOKEN.fullmatch(name):
                names[name] = None
            else:
                raise DatasetError(
                    f"`{name}` is not a product token:"
                    f" write, for example, GPTBot,Google-Extended or {AI_TRAINING}"
                )
        question = cls(
            agent,
            now or datetime.now(UTC),
            also=tuple(names),
            captured_at=moment_of(captured_at),
            **more,
        )
        if question.captured_by and not PRODUCT_TOKEN.search(question.captured_by):
            raise DatasetError(
                f"`{question.captured_by}` names no crawler:"
                " write its product token, for example CCBot"
            )
        if captured_at is not None:
            moment = question.captured_at
            if (
                invalid := question.out_of_range(moment)
                if moment
                else f"`{captured_at}` is not a date"
            ):
                raise DatasetError(
                    f"{invalid}: write the day of the capture, for example 2024-05-18"
                )
        for value, values, name in (
            (question.as_of, DATES, "as_of"),
            (question.missing, MISSING, "missing"),
        ):
            if value not in values:
                raise DatasetError(f"{name} `{value}` is unknown: write {', '.join(values)}")
        return question

    def out_of_range(self, moment: datetime) -> str:
        """Return the reason why no page can have been captured at this moment.

        "" if a page can have been captured then."""
        if OLDEST <= moment <= self.now + SKEW:
            return ""
        time = "in the future" if moment > OLDEST else "before the web began"
        return f"{moment.isoformat()} is {time}"
