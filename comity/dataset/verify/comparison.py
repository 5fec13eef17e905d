"""Would today's policies still permit a record? What its page said of itself goes on holding, what files say is asked again.

    verified(record, sites, today) -> Verified     the record's uses, each by its tag and by today's policies
What is judged how, and why the stricter way, stands in docs/datasets.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from comity.dataset.permissions import tags
from comity.dataset.permissions.tags import GUESSED, TagError, TagSource, Use
from comity.dataset.records import Record
from comity.dataset.verify.alike import Alike, octets_of
from comity.dataset.verify.element_changes import DOCUMENT, MARKUP, ElementChanges, document_of
from comity.dataset.verify.replay import Recalled, Tag, is_of_page, recalled, refuses
from comity.policies import Agent, Page, Site, Verdict
from comity.policies.answers.decision import Reason, UseDecision
from comity.policies.answers.fetched import Availability, availability
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.answers.rule import depends_on_request
from comity.policies.document.document import Content
from comity.policies.formats import FORMATS
from comity.policies.formats.ai_txt.file import PATH as AI_PATH
from comity.policies.formats.format import Format
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of

URL_FIELDS = ("final_url", "url")  # the first that a record has names its page
FIELDS = (*URL_FIELDS, DOCUMENT)  # what is read of a record besides its tag
MAX_AGENTS = 100  # of tags, that are kept
DAY = timedelta(days=1)

SAME, GAINED, LOST, RESTRICTED = "same", "gained", "lost", "restricted"

Sites = Callable[[str], Site | None]  # origin -> what it says today; None: nobody knows


class Because(NamedTuple):
    """What decides today. `rule`: a key of comity.policies.answers.rule.RULES, or a word of this module."""

    rule: str
    url: str = ""
    part: str = ""  # "": the text of a file
    line: int = 0
    text: str = ""

    def __str__(self) -> str:
        place = f"{self.url}:{self.line}" if self.line else self.url
        return ": ".join(filter(None, (f"{self.rule} at {place}" if place else self.rule, self.text)))


class UseToday(NamedTuple):
    """One use of one record."""

    use: str
    verdict: Verdict
    change: str  # SAME, GAINED, LOST, or RESTRICTED: permitted as before, with conditions that its tag has not
    because: Because


class Verified(NamedTuple):
    """One record."""

    url: str  # "": it has none
    origin: str
    agent: str  # token of its tag
    uses: tuple[UseToday, ...] = ()
    refusals: tuple[Because, ...] = ()  # why it is not compliant today; none: it is
    is_unknown: bool = False  # nobody knows what today's policies say of it
    gained_elements: bool = False  # the tag refuses parts of it that today's ai.txt does not


class Today:
    """Who asks, when, and for what. It can be pickled."""

    def __init__(self, agent: Agent, now: datetime, uses: tuple[str, ...] = (), tags: TagSource = GUESSED) -> None:
        """`now`: aware. `uses`: for which every record has to be permitted, besides crawling; none: whatever its tag permits."""
        self.agent = agent
        self.now = now
        self.uses = tuple(dict.fromkeys(("crawl", *uses))) if uses else ()
        self.tags = tags
        self.alike: Alike[Verified] = Alike()
        self._agents: dict[str, Agent] = {}

    def agent_of(self, token: str) -> Agent:
        """Who is meant by a tag. Of another agent than ours nothing is known but its name: nothing is arranged with it."""
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


def verified(record: Record, sites: Sites, today: Today) -> Verified:
    """Whatever nobody knows is no permission."""
    url = page_url(record)
    found = Verified(url, origin(url), "")
    site = sites(found.origin) if url else None
    try:
        carried = today.tags.find(record)
        octets = octets_of(carried.raw)
        if site and octets and (known := today.alike.find(site, octets, url, today.now)):
            return known._replace(url=url)
        uses = tags.read_carried(carried).uses
    except TagError as error:
        return _unknown(found, Because(str(error)))
    tag: Tag = carried.raw
    found = found._replace(agent=tag["agent"])
    if not url:
        return _unknown(found, Because("no-url", text=f"neither {' nor '.join(URL_FIELDS)} has an http or https URL"))
    if site is None:
        return _unknown(found, Because("no-policies", found.origin, text="the policy store has not all of its policy files"))
    if unreachable := _newly_unreachable(tag, site):
        return _unknown(found, unreachable)
    if other := _other_page(tag, site, sites):
        return _unknown(found, other)
    comparison = _Comparison(record, tag, uses, url, site, today)
    found = comparison.verified(found)
    if comparison.is_by_files:
        today.alike.keep(site, octets, comparison.agent, url, today.now, found)
    return found


def _unknown(found: Verified, why: Because) -> Verified:
    return found._replace(refusals=(why,), is_unknown=True)


class _Comparison:
    """A record, and what today's files say of its page."""

    def __init__(self, record: Record, tag: Tag, uses: Mapping[str, Use], url: str, site: Site, today: Today) -> None:
        self._record = record
        self._tag = tag
        self._uses = uses
        self._site = site
        self._today = today
        self.agent = today.agent_of(self._tag["agent"])
        self._recalled: Recalled = recalled(self._tag)
        self._url = url
        self._page = self._read()
        if overruled := [field for each in FORMATS if each.overruling and self._overruled(each) for field in each.overruling]:
            self._page = self._read(*overruled)

    def _read(self, *fields: tuple[bytes, bytes]) -> Page:
        return self._site.page(
            self.agent,
            self._url,
            headers=(*((MARKUP,) if self._document else ()), *self._recalled.headers, *fields),
            body=self._recalled.body,
            is_read=False,
            resources=self._recalled.resources,
            now=self._today.now,
            first_seen=_first_seen(self._tag),
        )

    def _overruled(self, by: Format) -> bool:
        """Whether the page itself took back what a file refuses: the file says what it said then, and the use was permitted.

        Where no use is listed that this permits, no reason quotes it."""
        if not all(self._is_same(self._site.origin + file.path) for file in by.files):
            return False
        permitted = (use for use, then in self._uses.items() if then.is_allowed and not self._was_arranged(then))
        return any(
            reason.rule in by.rules and refuses(_written(reason)) for use in permitted for reason in self._page.uses[use].reasons
        )

    def _was_arranged(self, then: Use) -> bool:
        return any(self._tag["reasons"][place]["rule"] == "comity.arrangement" for place in then.because)

    @property
    def is_by_files(self) -> bool:
        """Whether nothing of the page decides."""
        there = self._recalled
        return not (there.headers or there.body or there.resources or there.lost or self._document)

    def verified(self, found: Verified) -> Verified:
        asked = self._today.uses
        uses = tuple(self._use(use) for use in asked or self._uses)
        refusals = tuple(one.because for one in uses if self._is_refused(one))
        gained = any(one.verdict is Verdict.ALLOW and one.change != GAINED and self._elements.gained(one.use) for one in uses)
        return found._replace(uses=uses, refusals=tuple(dict.fromkeys(refusals)), gained_elements=gained)

    def _is_refused(self, one: UseToday) -> bool:
        """What the tag refuses stays refused until the page is fetched again, and links are not followed any more."""
        if one.use == "follow" and not self._today.uses:
            return False
        is_missing = bool(self._today.uses) and (one.verdict is Verdict.DENY or one.change == GAINED)
        return is_missing or one.change in (LOST, RESTRICTED)

    def _use(self, use: str) -> UseToday:
        then = self._uses.get(use)
        if then is None:
            return UseToday(use, Verdict.DENY, SAME, Because("not-listed", text=f"the tag says nothing of {use}"))
        verdict, because, now = self._judged(use, then)
        if verdict is Verdict.DENY:
            return UseToday(use, verdict, LOST if then.is_allowed else SAME, because)
        if not then.is_allowed:
            return UseToday(use, verdict, GAINED, because)
        if because.rule != "comity.arrangement" and (part := self._elements.lost(use, was_licensed=self._was_arranged(then))):
            element, reason = part
            found = _because(reason)
            return UseToday(
                use,
                Verdict.DENY,
                LOST,
                found._replace(text=f"{found.text} ({printable(element.selector.encode('utf-8', 'replace'))})"),
            )
        if now is not None and (tighter := list(_tighter(then.qualifiers, now))):
            text = f"{because.text} ({', '.join(tighter)} not in the tag)".lstrip()
            return UseToday(use, verdict, RESTRICTED, because._replace(text=text))
        return UseToday(use, verdict, SAME, because)

    def _judged(self, use: str, then: Use) -> tuple[Verdict, Because, Qualifiers | None]:
        """With the conditions that hold today, None where the tag has all that is known of them."""
        now, reasons = self._page.uses[use], [self._tag["reasons"][place] for place in then.because]
        if now.reasons[0].rule == "comity.arrangement":
            return now.verdict, _because(now.reasons[0]), now
        if kept := next((one for one in reasons if refuses(one) and is_of_page(one, self._tag)), None):
            return Verdict.DENY, _quoted(kept), None
        until = then.qualifiers.until
        if then.is_allowed and until is not None and until <= self._today.now:
            return Verdict.DENY, Because("expired", text=f"until {until.isoformat()}"), None
        if not then.is_allowed and now.verdict is Verdict.ALLOW and (whole := self._elements.whole(use)):
            return Verdict.DENY, _because(whole), None
        standing = self._standing(now, then) if then.is_allowed and now.verdict is Verdict.DENY else None
        if now.verdict is Verdict.DENY and standing is None:
            return Verdict.DENY, _because(_refusing(now)), None
        if hidden := self._hidden(use, now, reasons):
            return Verdict.DENY, _quoted(hidden), None
        if standing is not None:
            return Verdict.ALLOW, _quoted(standing), None
        return now.verdict, _because(now.reasons[0]), now

    def _standing(self, now: UseDecision, then: Use) -> Mapping[str, Any] | None:
        """What permits the use although today's files alone do not: the page itself, or how it was asked for.

        What a file says that is the same as it was then, was no refusal then and is none today."""
        quoted: list[dict[str, Any]] = self._tag["reasons"]
        if self._was_arranged(then):
            return None
        refusing = [reason for reason in now.reasons if refuses(_written(reason))]
        if not self._nothing_changed and not all(self._is_same(reason.source.url) for reason in refusing):
            return None
        if refusing and all(depends_on_request(reason.rule) for reason in refusing):
            return quoted[then.because[0]]
        permits = (quoted[place] for place in then.because if place in self._recalled.lost and not refuses(quoted[place]))
        return next(permits, None)

    def _hidden(self, use: str, now: UseDecision, reasons: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """A refusal by the page of what the use has to do with: the files of then may have come before it, today's are others."""
        if not self._recalled.lost or self._nothing_changed:
            return None
        then = {_key(reason) for reason in reasons if not is_of_page(reason, self._tag)}
        if then == {_key(_written(reason)) for reason in now.reasons}:
            return None
        vocabulary = self.agent.vocabulary
        words = frozenset().union(*(vocabulary.related(name, use).words for name in vocabulary.words))
        first = min((self._lost_refusals[word] for word in words & self._lost_refusals.keys()), default=None)
        return None if first is None else self._tag["reasons"][first[1]]

    @cached_property
    def _lost_refusals(self) -> dict[str, tuple[int, int]]:
        """Use -> its number in the tag, and the first reason of the page that refuses it and cannot be said again."""
        found = {}
        for number, (name, decision) in enumerate(self._uses.items()):
            lost = (place for place in decision.because if place in self._recalled.lost and refuses(self._tag["reasons"][place]))
            if not decision.is_allowed and (place := next(lost, None)) is not None:
                found[name] = number, place
        return found

    @cached_property
    def _nothing_changed(self) -> bool:
        return all(map(self._is_same, self._site.files))

    @cached_property
    def _document(self) -> Content | None:
        """Where rules for elements may have to do with it."""
        file = self._site.files.get(self._site.origin + AI_PATH)
        return document_of(self._record) if file and file.body else None

    @cached_property
    def _elements(self) -> ElementChanges:
        sources = {reason.source.url for element in self._page.elements for reason in element.reasons}
        files = {self._site.origin + AI_PATH, *sources.intersection(self._site.files)}
        copies = [copy for url in files if (copy := self._tag["policies"].get(url))]
        return ElementChanges(
            self._tag,
            self._page.elements,
            self.agent.vocabulary,
            document=self._document,
            is_same=all(map(self._is_same, files)),
            had_rules=any(copy["status"] // 100 == 2 for copy in copies),
        )

    def _is_same(self, url: str) -> bool:
        return _is_same_copy(self._tag, self._site, url)


def _first_seen(tag: Tag) -> dict[str, datetime]:
    """A time before which the page was not asked for by these policies, for permissions that end some days after."""
    try:
        moments = [datetime.fromisoformat(copy["fetched_at"]) for copy in tag["policies"].values() if copy["fetched_at"]]
        first = min(moment.astimezone(UTC) for moment in moments)
    except (ValueError, OverflowError):  # there is none, or one is no time
        first = datetime.min.replace(tzinfo=UTC)
    return dict.fromkeys(tag["uses"], first)


def _is_same_copy(tag: Tag, site: Site, url: str) -> bool:
    """Whether the file is, octet by octet, the one by which the record was tagged."""
    then, now = tag["policies"].get(url), site.policies.get(url)
    if then is None or now is None:  # a file that nobody asked for then
        return now is not None and availability(site.files[url]) is Availability.ABSENT
    return bool((then["status"] // 100, then["sha256"]) == (now["status"] // 100, now["sha256"]))


def _newly_unreachable(tag: Tag, site: Site) -> Because | None:
    """A file that could be had when the record was tagged, and cannot be had now: nobody knows what it says."""
    for url, file in site.files.items():
        if availability(file) is Availability.UNREACHABLE and not _is_same_copy(tag, site, url):
            then = tag["policies"].get(url)
            if then is None or not (then["status"] in (0, 429) or then["status"] // 100 == 5):
                return Because("unreachable", url, text=file.error or f"HTTP status {file.status}")
    return None


def _other_page(tag: Tag, site: Site, sites: Sites) -> Because | None:
    """Of an item that was made of pages of several sites the others have to be as they were: their URLs are not known."""
    for url in tag["policies"]:
        if url.endswith("/robots.txt") and url not in site.files and (its := origin(url)):
            other = sites(its)
            if other is None or not all(_is_same_copy(tag, other, one) for one in other.files):
                return Because("another-page", its, text="a page of this site is in it too, and nobody knows which")
    return None


def _refusing(decision: UseDecision) -> Reason:
    return next((reason for reason in decision.reasons if refuses(_written(reason))), decision.reasons[0])


def _tighter(then: Qualifiers, now: Qualifiers) -> Iterator[str]:
    """The conditions of today that are stricter. A time limit only where it ends more than a day earlier: days are counted from
    when the page was first taken, which is known to a day."""
    for name, value in now.restrictions().items():
        had = getattr(then, name)
        if isinstance(value, datetime):
            stricter = had is None or value < had - DAY
        elif isinstance(value, frozenset):
            stricter = not value <= had
        elif isinstance(value, tuple):
            stricter = {str(one) for one in value} != {str(one) for one in had}
        elif isinstance(value, bool):
            stricter = not had
        else:
            stricter = had is None or value < had
        if stricter:
            yield name


def _because(reason: Reason) -> Because:
    source = reason.source
    return Because(reason.rule, source.url, "" if source.part == "body" else source.part, source.line, source.text)


def _quoted(reason: Mapping[str, Any]) -> Because:
    return Because(reason["rule"], reason["url"], reason.get("part", ""), reason["line"], reason["text"])


def _written(reason: Reason) -> Mapping[str, Any]:
    return {"rule": reason.rule, "url": reason.source.url, "text": reason.source.text}


def _key(reason: Mapping[str, Any]) -> tuple[str, str, str]:
    return reason["rule"], reason["url"], reason["text"]
