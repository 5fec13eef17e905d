"""Compare one record's tag with today's policies for its page, use by use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from comity.dataset.records import Record
from comity.dataset.verify.element_changes import MARKUP, ElementChanges, document_of
from comity.dataset.verify.policy_copies import first_seen, is_same_copy
from comity.dataset.verify.replay import Recalled, Tag, is_of_page, recall, refuses
from comity.dataset.verify.result import (
    GAINED,
    LOST,
    RESTRICTED,
    SAME,
    Cause,
    Rechecked,
    UseToday,
    cause_of,
    quoted_cause,
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
    """Compares a record's tag with today's policies for its page."""

    def __init__(
        self, record: Record, tag: Tag, uses: Mapping[str, Use], url: str, site: Site, today: Today
    ) -> None:
        self._record = record
        self._tag = tag
        self._uses = uses
        self._site = site
        self._today = today
        self.agent = today.agent_of(self._tag["agent"])
        self._recalled: Recalled = recall(self._tag)
        self._url = url
        self._page = self._read()
        overruling = (
            format_ for format_ in FORMATS if format_.overruling and self._is_overruled(format_)
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

    def _is_overruled(self, format_: Format) -> bool:
        """Return True if the page itself revoked a refusal by a file of this format.

        The tag quotes no reason for that, so it is inferred: the file is unchanged and refuses a
        use that the tag permits. A file that could not be fetched refused nothing then."""
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
        """True if only policy files decide about the record, not the page itself."""
        page = self._recalled
        return not (page.headers or page.body or page.resources or page.lost or self._document)

    def complete(self, result: Rechecked) -> Rechecked:
        """Return the result with its uses and refusals filled in."""
        requested = self._today.uses
        uses = tuple(self._use(use) for use in requested or self._uses)
        refusals = tuple(use.cause for use in uses if self._is_refused(use))
        gained = any(
            use.verdict is Verdict.ALLOW
            and use.change != GAINED
            and self._elements.has_gain(use.use)
            for use in uses
        )
        return result._replace(
            uses=uses, refusals=tuple(dict.fromkeys(refusals)), gained_elements=gained
        )

    def _is_refused(self, use: UseToday) -> bool:
        """Return True if a use is refused today.

        A use that the tag refuses stays refused until the page is fetched again. "follow" counts
        only on request, because the links of a stored record are no longer followed."""
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
                use, Verdict.DENY, SAME, Cause("not-listed", text=f"the tag does not list {use}")
            )
        verdict, cause, now = self._judge(use, recorded)
        if verdict is Verdict.DENY:
            return UseToday(use, verdict, LOST if recorded.is_allowed else SAME, cause)
        if not recorded.is_allowed:
            return UseToday(use, verdict, GAINED, cause)
        if cause.rule != "comity.arrangement" and (
            part := self._elements.find_loss(use, was_licensed=self._was_arranged(recorded))
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

    def _judge(self, use: str, recorded: Use) -> tuple[Verdict, Cause, Qualifiers | None]:
        """Return today's verdict, its cause and its conditions.

        None as conditions: only those in the tag are known."""
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
            return Verdict.DENY, quoted_cause(standing_refusal), None
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
        if hidden := self._hidden_refusal(use, now, reasons):
            return Verdict.DENY, quoted_cause(hidden), None
        if standing is not None:
            return Verdict.ALLOW, quoted_cause(standing), None
        return now.verdict, cause_of(now.reasons[0]), now

    def _standing(self, now: UseDecision, recorded: Use) -> Mapping[str, Any] | None:
        """Return the recorded reason that still permits the use although today's files refuse it.

        The files must be unchanged. When the record was tagged, they refused the use too, and it
        was permitted all the same, by the page itself or by the manner of the request. So it is
        permitted today. None if no recorded reason permits the use."""
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

    def _hidden_refusal(
        self, use: str, now: UseDecision, reasons: list[Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        """Return a refusal by the page of a related use, which may refuse `use` today.

        When the record was tagged, the files may have taken precedence over this refusal. Today's
        files are different, so the refusal may apply now. None if there is no such refusal."""
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
        """Refused use -> its position among the uses, and the index of the page's first refusal.

        Only refusals that cannot be rebuilt from the tag are included. The index is that of a
        reason in the tag."""
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
        """Return True if a reason of the tag refuses. `reason`: its index."""
        return refuses(self._tag["reasons"][reason])

    @cached_property
    def _nothing_changed(self) -> bool:
        return all(map(self._is_same, self._site.files))

    @cached_property
    def _document(self) -> Content | None:
        """The page, if the record contains it and a file of the site may have element rules.

        None if not."""
        files = (self._site.files.get(url) for url in self._declared_files)
        return document_of(self._record) if any(file and file.body for file in files) else None

    @property
    def _declared_files(self) -> set[str]:
        """The URLs of the files that may contain element rules, as their formats declare."""
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
        """Return True if the URL is a policy file of the site, today or when it was tagged."""
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
    """Yield the names of today's conditions that are stricter than the recorded ones.

    A time limit is stricter only if it ends more than a day earlier, because it begins when the
    page was first fetched, and that moment is known only to within a day."""
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
