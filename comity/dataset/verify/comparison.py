"""One record against what today's files say of its page: use by use, by its tag and by today's policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from comity.dataset.records import Record
from comity.dataset.verify.element_changes import MARKUP, ElementChanges, document_of
from comity.dataset.verify.policy_copies import first_seen, is_same_copy
from comity.dataset.verify.replay import Recalled, Tag, is_of_page, recalled, refuses
from comity.dataset.verify.result import (
    GAINED,
    LOST,
    RESTRICTED,
    SAME,
    Cause,
    Rechecked,
    UseToday,
    cause_of,
    quoted,
)
from comity.dataset.verify.today import Today
from comity.policies import Page, Site, Verdict
from comity.policies.answers.decision import Reason, UseDecision
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.answers.rule import RULES, depends_on_request
from comity.policies.document.document import Content
from comity.policies.formats import FILES, FORMATS
from comity.policies.formats.format import Format
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty
from comity.policies.tag import Use

DAY = timedelta(days=1)


class Comparison:
    """A record, and what today's files say of its page."""

    def __init__(
        self, record: Record, tag: Tag, uses: Mapping[str, Use], url: str, site: Site, today: Today
    ) -> None:
        self._record = record
        self._tag = tag
        self._uses = uses
        self._site = site
        self._today = today
        self.agent = today.agent_of(self._tag["agent"])
        self._recalled: Recalled = recalled(self._tag)
        self._url = url
        self._page = self._read()
        overruling = (
            format_ for format_ in FORMATS if format_.overruling and self._overruled(format_)
        )
        if overruled := [field for format_ in overruling for field in format_.overruling]:
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
            first_seen=first_seen(self._tag),
        )

    def _overruled(self, format_: Format) -> bool:
        """Return True if the page itself took back what a file refuses.

        Then the file says the same as before, and the use was permitted. Where no use is listed that
        this permits, no reason quotes it. A file that could not be fetched said nothing."""
        if not all(self._is_same(self._site.origin + file.path) for file in format_.files):
            return False
        permitted = (
            use
            for use, recorded in self._uses.items()
            if recorded.is_allowed and not self._was_arranged(recorded)
        )
        rules = {rule for rule in format_.rules if not RULES[rule].is_unreachable}
        reasons = (reason for use in permitted for reason in self._page.uses[use].reasons)
        return any(reason.rule in rules and refuses(_as_quoted(reason)) for reason in reasons)

    def _was_arranged(self, recorded: Use) -> bool:
        return any(
            self._tag["reasons"][number]["rule"] == "comity.arrangement"
            for number in recorded.reason_indices
        )

    @property
    def is_by_files(self) -> bool:
        """Return whether nothing of the page decides."""
        page = self._recalled
        return not (page.headers or page.body or page.resources or page.lost or self._document)

    def rechecked(self, result: Rechecked) -> Rechecked:
        uses_asked_for = self._today.uses
        uses = tuple(self._use(use) for use in uses_asked_for or self._uses)
        refusals = tuple(use.cause for use in uses if self._is_refused(use))
        gained = any(
            use.verdict is Verdict.ALLOW and use.change != GAINED and self._elements.gained(use.use)
            for use in uses
        )
        return result._replace(
            uses=uses, refusals=tuple(dict.fromkeys(refusals)), gained_elements=gained
        )

    def _is_refused(self, use: UseToday) -> bool:
        """Return whether a use is refused today.

        What the tag refuses stays refused until the page is fetched again, and links are not followed any more."""
        if use.use == "follow" and not self._today.uses:
            return False
        is_missing = bool(self._today.uses) and (
            use.verdict is Verdict.DENY or use.change == GAINED
        )
        return is_missing or use.change in (LOST, RESTRICTED)

    def _use(self, use: str) -> UseToday:
        recorded = self._uses.get(use)
        if recorded is None:
            return UseToday(
                use, Verdict.DENY, SAME, Cause("not-listed", text=f"the tag says nothing of {use}")
            )
        verdict, cause, now = self._judged(use, recorded)
        if verdict is Verdict.DENY:
            return UseToday(use, verdict, LOST if recorded.is_allowed else SAME, cause)
        if not recorded.is_allowed:
            return UseToday(use, verdict, GAINED, cause)
        if cause.rule != "comity.arrangement" and (
            part := self._elements.lost(use, was_licensed=self._was_arranged(recorded))
        ):
            element, reason = part
            cause = cause_of(reason)
            return UseToday(
                use,
                Verdict.DENY,
                LOST,
                cause._replace(
                    text=f"{cause.text} ({printable(element.selector.encode('utf-8', 'replace'))})"
                ),
            )
        if now is not None and (tighter := list(_tighter(recorded.qualifiers, now))):
            text = f"{cause.text} ({', '.join(tighter)} not in the tag)".lstrip()
            return UseToday(use, verdict, RESTRICTED, cause._replace(text=text))
        return UseToday(use, verdict, SAME, cause)

    def _judged(self, use: str, recorded: Use) -> tuple[Verdict, Cause, Qualifiers | None]:
        """The verdict, why, and the conditions that hold today, None where the tag has all that is known of them."""
        now, reasons = (
            self._page.uses[use],
            [self._tag["reasons"][number] for number in recorded.reason_indices],
        )
        if now.reasons[0].rule == "comity.arrangement":
            return now.verdict, cause_of(now.reasons[0]), now
        if standing_refusal := next(
            (reason for reason in reasons if refuses(reason) and is_of_page(reason, self._tag)),
            None,
        ):
            return Verdict.DENY, quoted(standing_refusal), None
        until = recorded.qualifiers.until
        if recorded.is_allowed and until is not None and until <= self._today.now:
            return Verdict.DENY, Cause("expired", text=f"until {until.isoformat()}"), None
        if (
            not recorded.is_allowed
            and now.verdict is Verdict.ALLOW
            and (refusal := self._elements.page_refusal(use))
        ):
            return Verdict.DENY, cause_of(refusal), None
        standing = (
            self._standing(now, recorded)
            if recorded.is_allowed and now.verdict is Verdict.DENY
            else None
        )
        if now.verdict is Verdict.DENY and standing is None:
            return Verdict.DENY, cause_of(_refusing(now)), None
        if hidden := self._hidden(use, now, reasons):
            return Verdict.DENY, quoted(hidden), None
        if standing is not None:
            return Verdict.ALLOW, quoted(standing), None
        return now.verdict, cause_of(now.reasons[0]), now

    def _standing(self, now: UseDecision, recorded: Use) -> Mapping[str, Any] | None:
        """The reason that permits the use although today's files alone do not: the page itself, or how it was asked for.

        What a file says that is the same as it was then, was no refusal then and is none today."""
        quoted: list[dict[str, Any]] = self._tag["reasons"]
        if self._was_arranged(recorded):
            return None
        refusing = [reason for reason in now.reasons if refuses(_as_quoted(reason))]
        if not self._nothing_changed and not all(
            self._is_same(reason.source.url) for reason in refusing
        ):
            return None
        if refusing and all(depends_on_request(reason.rule) for reason in refusing):
            return quoted[recorded.reason_indices[0]]
        lost = (
            quoted[number] for number in recorded.reason_indices if number in self._recalled.lost
        )
        return next((reason for reason in lost if not refuses(reason)), None)

    def _hidden(
        self, use: str, now: UseDecision, reasons: list[Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        """A refusal by the page of what the use has to do with: the files of then may have come before it, today's are others."""
        if not self._recalled.lost or self._nothing_changed:
            return None
        recorded = {_key(reason) for reason in reasons if not is_of_page(reason, self._tag)}
        if recorded == {_key(_as_quoted(reason)) for reason in now.reasons}:
            return None
        vocabulary = self.agent.vocabulary
        words = frozenset().union(
            *(vocabulary.related(name, use).words for name in vocabulary.words)
        )
        first = min(
            (self._lost_refusals[word] for word in words & self._lost_refusals.keys()), default=None
        )
        return None if first is None else self._tag["reasons"][first[1]]

    @cached_property
    def _lost_refusals(self) -> dict[str, tuple[int, int]]:
        """Use -> its number in the tag, and the first reason of the page that refuses it and cannot be said again."""
        refusals = {}
        for number, (use, decision) in enumerate(self._uses.items()):
            refusing = (
                reason
                for reason in decision.reason_indices
                if reason in self._recalled.lost and self._refuses(reason)
            )
            if not decision.is_allowed and (reason := next(refusing, None)) is not None:
                refusals[use] = number, reason
        return refusals

    def _refuses(self, reason: int) -> bool:
        """Return whether a reason of the tag refuses, by its number."""
        return refuses(self._tag["reasons"][reason])

    @cached_property
    def _nothing_changed(self) -> bool:
        return all(map(self._is_same, self._site.files))

    @cached_property
    def _document(self) -> Content | None:
        """The page, where rules for elements may have to do with it."""
        files = (self._site.files.get(url) for url in self._declared_files)
        return document_of(self._record) if any(file and file.body for file in files) else None

    @property
    def _declared_files(self) -> set[str]:
        """The URLs of the files that may have rules for elements, as their formats declare."""
        return {self._site.origin + file.path for file in FILES if file.has_element_rules}

    @cached_property
    def _elements(self) -> ElementChanges:
        of_today = {
            reason.source.url for element in self._page.elements for reason in element.reasons
        }
        of_tag = {
            self._tag["reasons"][number]["url"]
            for element in self._tag["elements"]
            for number in element["because"]
        }
        files = self._declared_files | set(filter(self._is_file, of_today | of_tag))
        copies = [copy for url in files if (copy := self._tag["policies"].get(url))]
        return ElementChanges(
            self._tag,
            self._page.elements,
            self.agent.vocabulary,
            document=self._document,
            is_same=all(map(self._is_same, files)),
            had_rules=any(copy["status"] // 100 == 2 for copy in copies),
        )

    def _is_file(self, url: str) -> bool:
        """Return whether the URL is that of a policy file of the site, of today or of then."""
        return url in self._site.files or (
            url in self._tag["policies"] and origin_or_empty(url) == self._site.origin
        )

    def _is_same(self, url: str) -> bool:
        return is_same_copy(self._tag, self._site, url)


def _refusing(decision: UseDecision) -> Reason:
    return next(
        (reason for reason in decision.reasons if refuses(_as_quoted(reason))), decision.reasons[0]
    )


def _tighter(recorded: Qualifiers, now: Qualifiers) -> Iterator[str]:
    """The conditions of today that are stricter. A time limit only where it ends more than a day earlier: days are counted from
    when the page was first taken, which is known to a day."""
    for name, value in now.restrictions().items():
        old_value = getattr(recorded, name)
        if isinstance(value, datetime):
            stricter = old_value is None or value < old_value - DAY
        elif isinstance(value, frozenset):
            stricter = not value <= old_value
        elif isinstance(value, tuple):
            stricter = {str(resource) for resource in value} != {
                str(resource) for resource in old_value
            }
        elif isinstance(value, bool):
            stricter = not old_value
        else:
            stricter = old_value is None or value < old_value
        if stricter:
            yield name


def _as_quoted(reason: Reason) -> Mapping[str, Any]:
    return {"rule": reason.rule, "url": reason.source.url, "text": reason.source.text}


def _key(reason: Mapping[str, Any]) -> tuple[str, str, str]:
    return reason["rule"], reason["url"], reason["text"]
