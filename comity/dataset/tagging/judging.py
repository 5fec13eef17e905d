"""Tag a page that another crawler has captured as our own crawl would have tagged it.

    Judge(question, policies).judge(page)      the page with the policies that apply to it
    Judged.tag(fields)                          the tag of a record made from the page

A page is judged once for each date (its capture, today), by the policies of its site on that date
and by the page's own statements. For each date:

1. The page is judged for our own agent, as in a crawl. If the agent may not fetch the page, our own
   crawl would not have it, so no use is permitted.
2. The page is judged for the crawler that captured it, and for the other product tokens whose rules
   the operator obeys (`also`). Refusals and restrictions of these agents count, permissions do not.
   All agents that no file names get the same answer, so only one such agent is judged.

If a use is refused on one date, it is refused. An item from two pages is treated the same way
(join_tags)."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, reduce
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from comity.bounded import Bounded
from comity.dataset.records import FIELD, IDENTITY, SPARE_FIELD
from comity.dataset.tagging.captured import CapturedPage
from comity.dataset.tagging.question import (
    CAPTURE,
    DENY,
    KEEP_APART,
    TODAY,
    Question,
)
from comity.dataset.tagging.tag_changes import (
    Tag,
    bound_by_crawl,
    join_dates,
    with_refusals,
    without_policies,
    without_repetitions,
)
from comity.policies import Agent, Page, Site
from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.answers.decision import Reason, Source
from comity.policies.answers.request import PLAIN, Facts
from comity.policies.elements.redaction import redacted_fields
from comity.policies.elements.rules import ElementRules, Traced
from comity.policies.formats import INSTALLED
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of
from comity.policies.tag import TagError, join_tags, no_statements, not_understood

# The maximum number of entries of each cache. A site in a cache takes up to 100 KB.
MAX_CACHED = 1000
DECLARED = dict.fromkeys(IDENTITY, "")  # fields that do not come from an element of the page

_TOKEN = attrgetter("token")
_COMPATIBLE = re.compile(r"compatible;\s*([A-Za-z0-9_.-]+)", re.IGNORECASE)


class CapturedSite(Protocol):
    """The policies of a site on one date, as comity.dataset.captures gives them."""

    @property
    def site(self) -> Site: ...

    @property
    def absent(self) -> Sequence[str]:
        """The URLs of the policy files without a copy, which count as impossible to fetch."""


class Policies(Protocol):
    """Copies of the policies of sites. It can be pickled."""

    def at(self, origin: str, moment: datetime) -> CapturedSite | None:
        """Return the site by the last copies before the moment. None if there are no copies."""

    def today(self, origin: str) -> CapturedSite | None:
        """Return the site by the newest copies. None if there are no copies."""


class _SiteFacts(NamedTuple):
    """The facts about a site that are equal for all pages that one crawler has captured."""

    may_name_agent: bool  # True if the site's files may name our own agent
    named_agents: tuple[Agent, ...]  # other agents that the files may name
    unnamed_agents: tuple[Agent, ...]  # other agents that the files do not name
    has_element_rules: bool
    licensing: frozenset[str]  # product tokens for which robots.txt has a licence


class _MissingError(Exception):
    """A site has no copies of policies, so its pages are kept apart."""


class Judge:
    """Judges pages for a question, by the policies of their sites. It can be pickled.

    The answer for a page does not depend on earlier pages."""

    def __init__(self, question: Question, policies: Policies) -> None:
        self.question = question
        self._policies = policies
        self._forget()

    def _forget(self) -> None:
        self._crawlers: Bounded[str, Agent | None] = Bounded(MAX_CACHED)
        self._site_facts: Bounded[tuple[Site, str], _SiteFacts] = Bounded(MAX_CACHED)
        self._tags: Bounded[Hashable, Tag] = Bounded(MAX_CACHED)
        # Identities of two tags -> both tags, and the tag of a page that has them both.
        self._joined: Bounded[tuple[int, int], tuple[Tag, Tag, Tag]] = Bounded(MAX_CACHED)
        # Site with an unknown robots.txt -> the same site, with no robots.txt.
        self._sites: Bounded[Site, Site] = Bounded(MAX_CACHED)

    def __getstate__(self) -> tuple[Question, Policies]:
        return self.question, self._policies

    def __setstate__(self, state: tuple[Question, Policies]) -> None:
        self.question, self._policies = state
        self._forget()

    def judge(self, page: CapturedPage) -> Judged | None:
        """Return the page with its policies, and with those of the pages beside it.

        None: the page must be kept apart, because a site has no copies of policies."""
        judged = self._judge(self.dated(page))
        if judged is None or not page.beside:
            return judged
        beside = [*map(self.judge, page.beside)]
        return None if None in beside else judged.joined_with([*filter(None, beside)])

    def _judge(self, page: CapturedPage) -> Judged | None:
        try:
            origin = origin_of(page.url)
        except ValueError:
            url = printable(page.url.encode("utf-8", "replace"))
            return Judged(
                self,
                page,
                [
                    _Refused(
                        Reason(rule="comity.no-url", source=Source(url="", part="item", text=url))
                    )
                ],
            )
        dates = []
        try:
            if self.question.as_of != TODAY:
                dates.append(self._of_capture(page, origin))
            if self.question.as_of != CAPTURE:
                dates.append(
                    self._of_date(
                        page, origin, TODAY, self._policies.today(origin), self.question.now
                    )
                )
        except _MissingError:
            return None
        return Judged(self, page, dates)

    def judged_before(self, page: CapturedPage, tag: Tag | None) -> JudgedBefore | None:
        """Return a page that `judge` has judged before. `tag`: its tag. None: keep it apart."""
        return None if tag is None else JudgedBefore(self, self.dated(page), tag)

    def dated(self, page: CapturedPage) -> CapturedPage:
        """Return the page with the date of the question if it has no date."""
        if page.captured_at is None:
            return page._replace(captured_at=self.question.captured_at)
        return page

    def _of_capture(self, page: CapturedPage, origin: str) -> _Date:
        moment = page.captured_at
        if moment is None:
            return _no_date("the record has no readable date")
        if invalid := self.question.out_of_range(moment):
            return _no_date(invalid)
        return self._of_date(page, origin, CAPTURE, self._policies.at(origin, moment), moment)

    def _of_date(
        self,
        page: CapturedPage,
        origin: str,
        label: str,
        captured: CapturedSite | None,
        now: datetime,
    ) -> _Date:
        """Return the policies of a date. `label`: CAPTURE or TODAY. `now`: the moment of the date.

        `captured` is used as it is if it has a copy of robots.txt, or if `missing` is DENY. Other
        files without a copy count as files that cannot be fetched.

        _MissingError: there is no copy of robots.txt, and `missing` is KEEP_APART."""
        robots = f"{origin}/robots.txt"
        if captured is not None and (
            robots not in captured.absent or self.question.missing == DENY
        ):
            return _PoliciesOfDate(self, page, captured.site, now)
        if self.question.missing == KEEP_APART:
            raise _MissingError
        text = "no copy from before the capture" if label == CAPTURE else "no copy of today"
        reason = Reason(
            rule="comity.no-policies", source=Source(url=robots, part="status", text=text)
        )
        if self.question.missing == DENY:
            return _Refused(reason)
        site = Site(origin, {}) if captured is None else self._without_robots(captured.site)
        return _PoliciesOfDate(self, page, site, now, reason)

    def _without_robots(self, site: Site) -> Site:
        """Return the site as if its robots.txt did not exist. It does not count as unreachable."""
        if site not in self._sites:
            self._sites[site] = Site(
                site.origin,
                {
                    url: file
                    for url, file in site.files.items()
                    if url != f"{site.origin}/robots.txt"
                },
            )
        return self._sites[site]

    def site_facts(self, site: Site, crawler: str) -> _SiteFacts:
        """Return the facts about a site. `crawler`: the User-Agent that captured its pages."""
        key = site, crawler
        site_facts = self._site_facts.get(key)
        if site_facts is None:
            site_facts = self._site_facts[key] = self._read(site, crawler)
        return site_facts

    def others(self, site_facts: _SiteFacts, page: CapturedPage) -> tuple[Agent, ...]:
        """Return the agents for which the page is judged, besides our own agent.

        These are the agents that the site or the page may name. If the site or the page may name
        our own agent, one unnamed agent is added: it may get another answer than our agent."""
        named_agents, others = site_facts.named_agents, site_facts.unnamed_agents
        if not named_agents and not others:
            return ()
        # Without its zero octets, ASCII text in UTF-16 can be searched too.
        words = (
            b"\n".join((*(value for _, value in page.fields), page.body or b""))
            .lower()
            .replace(b"\0", b"")
        )
        named_in_page = (
            [agent for agent in others if agent.token.lower().encode() in words] if words else []
        )
        unnamed = [agent for agent in others if agent not in named_in_page][:1]
        is_agent_named = (
            site_facts.may_name_agent or self.question.agent.token.lower().encode() in words
        )
        return (*named_agents, *named_in_page, *(unnamed if is_agent_named else ()))

    def _read(self, site: Site, user_agent: str) -> _SiteFacts:
        question, names = self.question, site.crawler_names - {"*", ""}
        agents = {
            agent.token.lower(): agent for name in question.also if (agent := self._crawler(name))
        }
        if (capturing := self._crawler(question.captured_by or user_agent)) is not None:
            agents[capturing.token.lower()] = capturing
        agents.pop(question.agent.token.lower(), None)
        named_agents = tuple(agent for agent in agents.values() if _may_be_named(agent, names))
        return _SiteFacts(
            _may_be_named(question.agent, names),
            named_agents,
            tuple(agent for agent in agents.values() if agent not in named_agents),
            bool(site.element_rules),
            frozenset(
                agent.token for agent in (question.agent, *agents.values()) if site.licenses(agent)
            ),
        )

    def _crawler(self, user_agent: str) -> Agent | None:
        """Return the crawler with a User-Agent or product token. None if it is unknown."""
        if user_agent not in self._crawlers:
            match = _COMPATIBLE.search(user_agent) or PRODUCT_TOKEN.search(user_agent)
            token = PRODUCT_TOKEN.match(match[match.lastindex or 0]) if match else None
            sent = user_agent if "/" in user_agent else ""
            self._crawlers[user_agent] = (
                replace(self.question.agent, token=token[0], user_agent=sent) if token else None
            )
        return self._crawlers[user_agent]

    def cached_tag(self, judged: Judged, make: Callable[[], Tag]) -> Tag:
        """Return the tag of a page that is known by its URL only, from the cache if possible.

        Most of such pages of a site have the same tag."""
        keys = [date.key() for date in judged.dates]
        if None in keys:
            return make()
        key = tuple(keys)
        tag = self._tags.get(key)
        if tag is None:
            tag = self._tags[key] = make()
        return tag

    def joined_tag(self, tag: Tag, other: Tag) -> Tag:
        """Return the tag of a work with these tags for its own page and a page beside it.

        Equal arguments give the same object, because most works of a site have the same tags."""
        key = id(tag), id(other)
        found = self._joined.get(key)
        if found is None or found[0] is not tag or found[1] is not other:
            joined = without_repetitions(join_tags(self.question.agent, tag, other))
            if other.get("is_unread"):
                joined["is_unread"] = True
            found = self._joined[key] = (tag, other, joined)
        return found[2]


def _may_be_named(agent: Agent, names: Iterable[str]) -> bool:
    """Return True if a name in policy files may mean the agent, by the rules of any format."""
    if INSTALLED:
        return True  # formats of other packages need not declare the names in their files
    text = f"{agent.token} {agent.user_agent}".lower()
    return any((word := name.rstrip("*")) in text or agent.token.lower() in word for name in names)


class _Refused:
    """A date without policies, on which no use is permitted."""

    pages: tuple[Page, ...] = ()
    has_element_rules = False

    def __init__(self, reason: Reason) -> None:
        self._reason = reason

    def key(self) -> Hashable:
        return self._reason

    def tag(self, agent: Agent, elements: Iterable[Traced], uses: Iterable[str] = ()) -> Tag:
        """Return a tag without permissions. `uses`: further uses to refuse, from other dates."""
        return no_statements(agent, self._reason, uses)


class _PoliciesOfDate:
    """The policies of one date, applied to the page."""

    def __init__(
        self,
        judge: Judge,
        page: CapturedPage,
        site: Site,
        now: datetime,
        missing: Reason | None = None,
    ) -> None:
        """`missing`: the reason why the site has no policies. None: the site has policies."""
        self._captured, self._site, self._now, self._missing = page, site, now, missing
        self._agent = judge.question.agent
        self._site_facts = judge.site_facts(site, page.crawler)
        self._facts = PLAIN if page.method == PLAIN.method else Facts(method=page.method)
        self._agents = (self._agent, *judge.others(self._site_facts, page))
        self.has_element_rules = self._site_facts.has_element_rules

    @cached_property
    def pages(self) -> tuple[Page, ...]:
        """The page for each agent. Our own agent is the first."""
        return tuple(map(self._page, self._agents))

    def _page(self, agent: Agent) -> Page:
        captured = self._captured

        def page(first_seen: Mapping[str, datetime] | None = None) -> Page:
            return self._site.page(
                agent,
                captured.url,
                headers=captured.header,
                body=captured.body,
                sha256=captured.sha256,
                now=self._now,
                first_seen=first_seen,
                facts=self._facts,
            )

        first = page()
        if first.dated and captured.captured_at is not None:
            return page(dict.fromkeys(first.dated, captured.captured_at))
        return first

    def key(self) -> Hashable | None:
        """Return a key for sharing the tag: equal keys mean equal tags. None: it is not shared."""
        if (
            self._captured.body is not None
            or self._captured.fields
            or self._captured.unread
            or self.has_element_rules
        ):
            return None
        tokens = tuple(map(_TOKEN, self._agents))
        if not self._site_facts.licensing.isdisjoint(tokens):
            return None
        url, now, statements_key = self._captured.url, self._now, self._site.statements_key
        keys = tuple(map(statements_key, self._agents, repeat(url), repeat(now)))
        return (
            None
            if None in keys
            else (
                self._site,
                tokens,
                keys,
                self._missing,
                self._captured.media_types,
                self._agent.opt_outs.of_work(self._captured.sha256),
            )
        )

    def tag(self, agent: Agent, elements: Iterable[Traced]) -> Tag:
        """Return the tag by the policies of this date.

        `elements`: the elements of the page, with their places in the record."""
        agent_page, *other_pages = self.pages
        tag = bound_by_crawl(agent_page.tag_with(elements))
        for page in other_pages:
            tag = with_refusals(agent, tag, bound_by_crawl(page.tag_with(())), page.agent.token)
        return without_policies(tag, self._missing) if self._missing else tag


_Date = _Refused | _PoliciesOfDate


def _no_date(text: str) -> _Refused:
    return _Refused(Reason(rule="comity.no-date", source=Source(url="", part="item", text=text)))


class Judged:
    """A page with its policies for each date, the latest date last."""

    def __init__(self, judge: Judge, page: CapturedPage, dates: Sequence[_Date]) -> None:
        self._judge = judge
        self._captured = page
        # From the record, or if the record has no date, from the question. It may be None.
        self.captured_at = page.captured_at
        self.dates = dates
        self._beside: Sequence[Judged] = ()

    def joined_with(self, beside: Sequence[Judged]) -> Judged:
        """Return this page with further pages that must permit a use too."""
        joined = Judged(self._judge, self._captured, self.dates)
        joined._beside = beside
        return joined

    @property
    def _pages(self) -> Iterator[Page]:
        return (page for date in self.dates for page in date.pages)

    @property
    def rules(self) -> ElementRules | None:
        """The element rules of all dates. None: there are none, or the page is not available."""
        if self._captured.body is None:
            return None
        rules = [page.element_rules for page in self._pages if page.element_rules]
        return reduce(ElementRules.beside, rules) if rules else None

    @property
    def has_elements(self) -> bool:
        """True if the tag depends on the fields of the record."""
        return any(date.has_element_rules for date in self.dates) or any(
            page.has_elements for page in self._beside
        )

    @property
    def depends_on_record(self) -> bool:
        """True if records that are made from this page may have different tags."""
        return (
            self.has_elements
            or any(page.elements for page in (self._pages if self._captured.fields else ()))
            or any(page.depends_on_record for page in self._beside)
        )

    def make_without_refused(
        self, make: Callable[[str], str], source: str, rules: ElementRules | None
    ) -> str:
        """Return `make(source)` without the elements that are refused for one of the agent's uses.

        `source`: the page. `make`: turns the source of a page into text."""
        return make(source) if rules is None else rules.made_without(self._refusable, make)

    @property
    def _refusable(self) -> tuple[str, ...]:
        uses = self._judge.question.agent.uses
        return tuple(dict.fromkeys(use for page in self._pages for use in page.refusable(uses)))

    def tag(
        self,
        fields: dict[str, Any],
        rules: ElementRules | None = None,
        earlier: Iterable[Tag | TagError] = (),
    ) -> Tag:
        """Return the tag of a record with these fields.

        `fields`: if `redacts` is True, refused elements are removed from this dict. `rules`: the
        element rules with which the text of the page was made. None: there are no such rules, or
        the page is not available. `earlier`: tags that the record already has. Their refusals stay,
        and an invalid tag permits nothing."""
        if self._captured.body is None and not self._captured.fields and not self._captured.unread:
            tag = self._judge.cached_tag(self, lambda: self._tag(fields, rules))
        else:
            tag = self._tag(fields, rules)
        for page in self._beside:
            tag = self._judge.joined_tag(tag, page.tag(fields))
        return _with_earlier(self._judge.question.agent, tag, earlier)

    def _tag(self, fields: dict[str, Any], rules: ElementRules | None) -> Tag:
        question = self._judge.question
        elements = list(self._elements(fields, rules))
        tags = [
            date.tag(question.agent, elements if date is self.dates[-1] else ())
            for date in self.dates
        ]
        if len(tags) > 1:
            uses = dict.fromkeys(use for tag in tags for use in tag["uses"])
            tags = [
                date.tag(question.agent, (), uses) if isinstance(date, _Refused) else tag
                for date, tag in zip(self.dates, tags, strict=True)
            ]
        *earlier, tag = tags
        for other in earlier:
            tag = join_dates(question.agent, tag, other)
        tag = without_repetitions(tag)
        tag["as_of"] = question.as_of
        if self._captured.body is None:
            tag["is_unread"] = True
        if self._captured.unread:
            source = Source(url=self._captured.url, part="item", text=self._captured.unread)
            refused = no_statements(
                question.agent, Reason(rule="comity.unread", source=source), tag["uses"]
            )
            tag = join_tags(question.agent, refused, tag) | {"as_of": question.as_of}
        return tag

    def _elements(self, fields: dict[str, Any], rules: ElementRules | None) -> Iterator[Traced]:
        if rules is None:
            # Without the page, an element may be in any field.
            names = [
                name
                for name, value in fields.items()
                if name not in IDENTITY and value and not _is_tag(name)
            ]
            for page in self._pages:
                for element in page.elements if self._captured.body is None else ():
                    yield Traced(
                        element, () if element.is_whole else tuple((name,) for name in names)
                    )
            return
        values = {name: value for name, value in fields.items() if not _is_tag(name)}
        if not self._judge.question.redacts:
            yield from rules.traced(values, DECLARED)
            return
        for page in self._pages:
            page.is_cut = bool(rules.refused(self._refusable))
        redacted = redacted_fields(rules, values, DECLARED, self._refusable)
        fields.update(redacted.changed)
        for name in redacted.removed:
            del fields[name]
        yield from redacted.traced


class JudgedBefore:
    """A page that was judged before, with its tag."""

    def __init__(self, judge: Judge, page: CapturedPage, tag: Tag) -> None:
        self._agent, self._tag = judge.question.agent, tag
        self.captured_at = page.captured_at

    def tag(
        self, fields: dict[str, Any], rules: None = None, earlier: Iterable[Tag | TagError] = ()
    ) -> Tag:
        """Return the tag of a record, as `Judged.tag` does. It does not depend on `fields`."""
        return _with_earlier(self._agent, self._tag, earlier)


def _with_earlier(agent: Agent, tag: Tag, earlier: Iterable[Tag | TagError]) -> Tag:
    """Return the tag with the refusals of earlier tags. An invalid tag permits nothing."""
    for former in earlier:
        if isinstance(former, TagError):
            former = not_understood(agent, former, tag["uses"])
        tag = without_repetitions(join_tags(agent, tag, former))
    return tag


def _is_tag(name: str) -> bool:
    return name in (FIELD, SPARE_FIELD)
