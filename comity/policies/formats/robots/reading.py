"""The reading of robots.txt for one agent: RFC 9309 records, and ACAP records.

Both kinds of records may also be in files that robots.txt refers to (ACAP 1.0 section-2.3.2), and
ACAP records may replace RFC 9309 records. All files are read once and compiled once. These steps
decide on a request:

1. /robots.txt itself is always allowed (RFC 9309 section-2.2.2).
2. Without a robots.txt everything is allowed (section-2.3.1.3). If robots.txt cannot be fetched,
   nothing is allowed (section-2.3.1.4). If a record for the agent refers to a file that cannot be
   fetched, nothing is allowed either.
3. In each file the groups of the agent decide (`grammar`), unless a line of ACAP makes the file's
   conventional records ineffective (ACAP 1.0 section-2.9.1). Outside the hours of Visit-time,
   requests that the groups allow are deferred.
4. The ACAP fields on crawling, of all files together, decide in addition (`acap.resolution`).
5. A line has no effect if a field on crawling has its pattern and another verdict (ACAP 1.0
   section-2.9.2). But a permission for any crawler does not lift a Disallow of a group that names
   the agent (ACAP-27), and no permission lifts a Disallow of another file (ACAP-12).
6. Of all these answers any refusal refuses (`combining.strictest`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from typing import NamedTuple
from urllib.parse import urljoin

from comity.bounded import Bounded
from comity.policies.agent import Agent
from comity.policies.answers.combining import strictest
from comity.policies.answers.decision import (
    ActionRequest,
    Decision,
    Finding,
    Reason,
    UseDecision,
    Verdict,
)
from comity.policies.answers.fetched import Availability, Fetched
from comity.policies.answers.rates import Rates
from comity.policies.answers.request import Facts
from comity.policies.formats.acap.grammar import Field, Reference
from comity.policies.formats.acap.resolution import MAX_REASONS, AcapRules, PurposeView, records_for
from comity.policies.formats.acap.uses import PageUses, RelatedUses, SiteUses
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import AgentReading, Capture, FileReference, SiteReading
from comity.policies.formats.robots import grammar as robots
from comity.policies.formats.robots.file import PATH, RobotsFile, robots_of
from comity.policies.syntax.urls import merges_slashes_only, resolved

# The maximum number of cached decisions, and of cached reasons. There is one for each line that has
# decided.
MAX_DECIDED = 1024


class Groups:
    """The conventional records of one file that bind the agent (RFC 9309 section-2.2.1).

    Attributes:
        by_name: True if a group names the agent.
        rules: The rules of the groups.
    """

    __slots__ = ("_decided", "_file", "by_name", "rules")

    def __init__(self, file: RobotsFile, token: str, contested: Container[str]) -> None:
        """Compile the rules. `contested` are the patterns that ACAP makes a statement about."""
        assert file.robots
        self.rules = file.robots.for_agent(token, contested=contested)
        self.by_name = file.robots.names(token)
        self._file = file
        # Number of the deciding line -> decision. 0 means that no line of a group matches, -1 that
        # no group binds the agent.
        self._decided: Bounded[int, Decision] = Bounded(MAX_DECIDED)

    def access(
        self, target: str, sent: str, now: datetime | None, acap: PurposeView | None = None
    ) -> Decision:
        """Return the decision of the groups on a request.

        `sent` is the target of the URL as the request sends it. `target` is one of its `spellings`.
        `acap` are the fields that make lines ineffective. None means that there are none.
        """
        replaced = (
            partial(acap.on_crawling, by_name=self.by_name, url=self._file.url) if acap else None
        )
        line = self.rules.deciding_line(target, replaced) or (0 if self.rules.has_group else -1)
        if (
            target != sent
            and line > 0
            and merges_slashes_only(sent, target)
            and line in self._lines(sent)
        ):
            # The line also matches `sent`, and a longer Allow may override the line for `sent`.
            return self.access(sent, sent, now, acap)
        decision = self._decided.get(line)
        if decision is None:
            decision = self._decided[line] = self._decide(line)
        visit_time = self.rules.rates.visit_time
        if visit_time and decision.verdict is Verdict.ALLOW:
            opens = visit_time.opens(now or datetime.now(UTC))
            if opens is not None:
                reason = self._file.reason(
                    "robots.visit-time", line=visit_time.line, text=visit_time.text
                )
                return Decision(verdict=Verdict.DEFER, reasons=(reason,), not_before=opens)
        return decision

    def matching(self, target: str) -> Iterator[Reason]:
        """Return the reasons of all matching rules, the deciding one first."""
        return map(self._reason, self.rules.matching(target))

    def _lines(self, target: str) -> set[int]:
        """Return the line numbers of the matching rules."""
        return {rule.line for rule in self.rules.matching(target)}

    def _decide(self, line: int) -> Decision:
        """Return the decision for a key of `_decided`."""
        if line > 0:
            deciding = self.rules.rule_in(line)
            return Decision(verdict=deciding.verdict, reasons=(self._reason(deciding),))
        rule = "robots.no-group" if line < 0 else "robots.no-match"
        return Decision(verdict=Verdict.ALLOW, reasons=(self._file.reason(rule),))

    def _reason(self, line: robots.RuleLine) -> Reason:
        rule = "robots.allow" if line.verdict is Verdict.ALLOW else "robots.disallow"
        return self._file.reason(rule, line=line.line, text=line.text)


class _Referred(NamedTuple):
    """A file that a record for the agent refers to (ACAP 1.0 section-2.3.2).

    Attributes:
        url: The absolute URL of the file. "" if the reference leads to no http or https URL.
        crawlers: The crawlers that fields before the first record of the file address.
        reference: The first of the references to the file.
    """

    url: str
    crawlers: tuple[str, ...]
    reference: Reference


class RobotsReading(AgentReading):
    """The answers of one robots.txt, and of the files that it refers to, to one agent."""

    restricts_access = True

    def __init__(
        self, agent: Agent, file: RobotsFile, fetched: Mapping[str, Fetched], origin: str
    ) -> None:
        """Read the files for the agent.

        `fetched` maps absolute URLs to responses, for the files that robots.txt refers to.
        """
        self._agent = agent
        self._origin = origin
        self._file = file
        referred = list(_references(agent, file))
        self.references = tuple(
            dict.fromkeys(reference.url for reference in referred if reference.url)
        )
        self._constant: list[Decision] = []  # decisions that apply to every request
        self._unknown: list[Reason] = []  # references to files that cannot be fetched
        files = [file]
        for reference in referred:
            referred_file = _read_file(reference, file, fetched)
            if referred_file is None or referred_file.availability is Availability.UNREACHABLE:
                if len(self._unknown) < MAX_REASONS:
                    reason = file.line_reason(
                        "acap.reference-unreachable",
                        reference.reference.line,
                        reference.reference.offset,
                    )
                    self._unknown.append(reason)
            elif referred_file.is_present:
                files.append(referred_file)
        self._files = {robots_file.url: robots_file for robots_file in files}
        if not file.is_present:
            is_absent = file.availability is Availability.ABSENT
            rule, verdict = (
                ("robots.unavailable", Verdict.ALLOW)
                if is_absent
                else ("robots.unreachable", Verdict.DENY)
            )
            self._constant.append(Decision(verdict=verdict, reasons=(file.outcome_reason(rule),)))
        if self._unknown:
            self._constant.append(Decision(verdict=Verdict.DENY, reasons=tuple(self._unknown)))
        speaking = [robots_file.acap for robots_file in files if robots_file.acap]
        self._acap = AcapRules(agent, speaking) if speaking else _no_rules()
        self._bind_groups(files)

    def _bind_groups(self, read_files: list[RobotsFile]) -> None:
        for file in read_files:
            if file.acap and file.acap.ignores_conventional:
                reason = file.line_reason(
                    "acap.ignore-conventional",
                    file.acap.ignores_conventional,
                    file.acap.ignores_offset,
                )
                self._constant.append(Decision(verdict=Verdict.ALLOW, reasons=(reason,)))
        files = list(
            {
                file.url: file
                for file in read_files
                if not (file.acap and file.acap.ignores_conventional)
            }.values()
        )
        self._groups = [
            Groups(file, self._agent.token, self._acap.crawl_patterns)
            for file in files
            if file.robots
        ]
        self.depends_on_request = self._acap.asks_purposes
        # Most sites have one file without ACAP.
        self._single = (
            self._groups[0]
            if len(self._groups) == 1 and not self._constant and not self._acap.records
            else None
        )

    # Access

    @property
    def depends_on_time(self) -> bool:  # type: ignore[override]
        """True if a Visit-time line binds the agent."""
        return any(groups.rules.rates.visit_time for groups in self._groups)

    def access(
        self, target: str, sent: str, facts: Facts, now: datetime | None, page: object = None
    ) -> Decision:
        if self._single and target != PATH:
            return self._single.access(target, sent, now)
        if target == PATH:
            return Decision(verdict=Verdict.ALLOW, reasons=(self._file.reason("robots.self"),))
        acap = self._acap.for_purposes(facts.purposes)
        answer = acap.matching(target).decide("crawl")
        decisions = (
            [
                Decision(
                    verdict=answer.verdict,
                    reasons=tuple(map(self._field_reason, answer.named_fields)),
                )
            ]
            if answer
            else []
        )
        decisions += self._constant
        decisions += (groups.access(target, sent, now, acap) for groups in self._groups)
        return strictest(decisions)

    def disallows(self, target: str, facts: Facts) -> bool:
        acap = self._acap.for_purposes(facts.purposes)
        return any(
            groups.access(target, target, None, acap).verdict is Verdict.DENY
            for groups in self._groups
        )

    def considered(self, target: str, facts: Facts) -> Iterator[Reason]:
        for groups in self._groups:
            yield from groups.matching(target)
        yield from map(
            self._field_reason,
            self._acap.for_purposes(facts.purposes).matching(target).fields("crawl"),
        )

    @property
    def rates(self) -> Rates | None:  # type: ignore[override]
        """The strictest rates of all files for this agent.

        None means that no file has effective conventional records.
        """
        if self._single:
            return self._single.rules.rates
        rates = None
        for groups in self._groups:
            rates = rates.strictest(groups.rules.rates) if rates else groups.rules.rates
        return rates

    # Uses, by ACAP

    @property
    def is_same_for_pages(self) -> bool:
        return not self._acap.records

    def sources(self, targets: Iterable[str], capture: Capture) -> list[RelatedUses]:
        if not self._acap.records:
            return []
        refused = (
            UseDecision(verdict=Verdict.DENY, stated=True, reasons=tuple(self._unknown))
            if self._unknown
            else None
        )
        distinct = dict.fromkeys(
            map(self._acap.for_purposes(capture.facts.purposes).matching, targets)
        )
        uses = (
            PageUses(self._agent, matching, self._reason, capture, refused=refused)
            for matching in distinct
        )
        return [RelatedUses(of_target, self._agent.vocabulary) for of_target in uses]

    def site_sources(self, purposes: Iterable[str] | None) -> list[RelatedUses]:
        if not self._acap.records:
            return []
        acap = self._acap.for_purposes(purposes)
        return [RelatedUses(SiteUses(acap.everywhere(), self._reason), self._agent.vocabulary)]

    def requests(self) -> Iterable[ActionRequest]:
        """Return the actions that the site asks for (ACAP 1.0 section-2.6).

        An action that several records request for one resource is returned once.
        """
        requests: dict[tuple[str, str], ActionRequest] = {}
        for file, request in (
            (record.url, request) for record in self._acap.records for request in record.requests
        ):
            url = resolved(self._origin, request.path)
            if (request.action, url) not in requests:
                is_arranged = self._agent.has_arranged(url, request.action)
                reason = self._files[file].line_reason("acap.request", request.line, request.offset)
                action_request = ActionRequest(
                    action=request.action, url=url, arranged=is_arranged, reason=reason
                )
                requests[request.action, url] = action_request
        return requests.values()

    def _field_reason(self, field: Field) -> Reason:
        if field.verdict is Verdict.DENY:
            return self._reason("acap.disallow", field)
        return self._reason("acap.unusable" if field.unusable else "acap.allow", field)

    @cached_property
    def _reasons(self) -> Bounded[tuple[str, str, str, int], Reason]:
        """A cache: rule, citation, URL of the file and offset of the ACAP field -> the reason."""
        return Bounded(MAX_DECIDED)

    def _reason(self, rule: str, field: Field) -> Reason:
        citation = field.unusable if rule == "acap.unusable" else ""
        key = rule, citation, field.url, field.offset
        reason = self._reasons.get(key)
        if reason is None:
            reason = self._reasons[key] = self._files[field.url].line_reason(
                rule, field.line, field.offset, citation
            )
        return reason


@cache
def _no_rules() -> AcapRules:
    """Return the empty rules that all sites without ACAP share, which are most sites."""
    return AcapRules(Agent("nobody"), ())


def _references(agent: Agent, file: RobotsFile) -> Iterator[_Referred]:
    """Yield the files that records for the agent refer to.

    A file occurs twice if a record that names the agent and a record for any crawler refer to it.
    """
    seen = set()
    for record in records_for(agent, [file.acap] if file.acap else ()).records:
        crawlers = ("*",) if "*" in record.crawlers else (agent.token,)
        for reference in record.references:
            url = file.resolve_reference(reference)
            if url != file.url and (url, crawlers) not in seen:
                seen.add((url, crawlers))
                yield _Referred(url, crawlers, reference)


def _read_file(
    reference: _Referred, file: RobotsFile, fetched: Mapping[str, Fetched]
) -> RobotsFile | None:
    """Return the file that is referred to, or None if it was not fetched."""
    assert file.acap
    if reference.url not in fetched:
        return None
    definitions, refuses_only = file.acap.definitions, file.refuses_only
    return RobotsFile(
        reference.url,
        fetched[reference.url],
        definitions=definitions,
        crawlers=reference.crawlers,
        refuses_only=refuses_only,
    )


class RobotsSite(SiteReading):
    """One robots.txt and the files that it refers to, for any agent."""

    def __init__(self, site: SiteFiles) -> None:
        self._site = site
        self._file = robots_of(site)

    def for_agent(self, agent: Agent) -> RobotsReading:
        return RobotsReading(agent, self._file, self._site.fetched, self._site.origin)

    @cached_property
    def _referenced_files(self) -> tuple[RobotsFile, ...]:
        """The files that robots.txt refers to, read for any crawler."""
        if not (acap := self._file.acap):
            return ()
        urls = dict.fromkeys(
            self._file.resolve_reference(reference)
            for record in acap.records
            for reference in record.references
        )
        return tuple(
            RobotsFile(url, self._site.fetched[url], definitions=acap.definitions, crawlers=("*",))
            for url in urls
            if url in self._site.fetched and url != self._file.url
        )

    @property
    def crawler_names(self) -> frozenset[str]:  # type: ignore[override]
        """The agents that robots.txt and the files that it refers to name."""
        return self._file.crawler_names.union(
            *(file.crawler_names for file in self._referenced_files)
        )

    @property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        return tuple(
            finding for file in (self._file, *self._referenced_files) for finding in file.findings
        )

    @property
    def referred_files(self) -> tuple[FileReference, ...]:  # type: ignore[override]
        """ACAP 1.0 section-2.3.2."""
        references = (
            reference
            for record in (self._file.acap.records if self._file.acap else ())
            for reference in record.references
        )
        return tuple(
            FileReference(
                self._file.resolve_reference(reference), f"{self._file.url}:{reference.line}"
            )
            for reference in references
        )

    @property
    def sitemaps(self) -> tuple[str, ...]:  # type: ignore[override]
        """The sitemaps that robots.txt names, as absolute URLs."""
        urls = []
        for sitemap in self._file.robots.sitemaps if self._file.robots else ():
            with suppress(ValueError):  # not a URL
                urls.append(urljoin(self._file.url, sitemap))
        return tuple(urls)
