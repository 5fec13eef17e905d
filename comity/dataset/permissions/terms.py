"""The terms of use: the uses for which records are wanted, and the result for one record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from comity.dataset.permissions.expiry import NEVER_RECRAWLED, UNKNOWN_RECRAWLED, Recrawled
from comity.dataset.records import DatasetError, Record
from comity.dataset.tags.sources import GUESSED, RawTag, TagSource
from comity.policies.answers.decision import Verdict
from comity.policies.answers.rule import RULES
from comity.policies.tag import USE_NAME, Tag
from comity.policies.vocabulary.table import Vocabulary

# Uses that are permitted only for the record of the most recent fetch of a page (ACAP 1.0
# section-2.5.5.1).
CURRENT = frozenset(("present-currentcopy", "present-snippet", "present-thumbnail"))
DEFAULT = "comity.default"  # rule of reasons from the operator's defaults
ARRANGEMENT = "comity.arrangement"  # rule of reasons from the operator's arrangements
# Rules of reasons that name a licence.
LICENSES = tuple(name for name, rule in RULES.items() if rule.names_licence)


class Terms(NamedTuple):
    """The uses for which records are wanted, the moment, and further conditions.

    It can be pickled."""

    uses: tuple[str, ...]
    """The uses in lower case. All of them must be permitted."""
    now: datetime
    """The moment of the use, aware."""
    vocabulary: Vocabulary
    """The words, and their meanings for uses."""
    recrawled: Recrawled = NEVER_RECRAWLED
    """The pages that were fetched again, for permissions that end when a page is fetched again."""
    tags: TagSource = GUESSED
    """The places of tags in records."""
    defaults: Mapping[str, Verdict] = {}
    """Use -> its verdict if no site mentions the use. It replaces the default of the crawl."""
    last_fetch: bool = False
    """True: only the records from the last fetch of each page may be used."""

    @classmethod
    def of(
        cls,
        uses: Iterable[str],
        *,
        now: datetime | None = None,
        vocabulary: Vocabulary | None = None,
        recrawled: Recrawled = NEVER_RECRAWLED,
        tags: TagSource = GUESSED,
        defaults: Mapping[str, Verdict] | None = None,
        last_fetch: bool = False,
    ) -> Self:
        """Return the terms for these uses.

        `now`: None means the moment of this call. `vocabulary`: None means the shipped vocabulary.
        Other arguments: as the attributes. DatasetError: `uses` is empty, or the name of a use is
        invalid."""
        names = tuple(dict.fromkeys(use.strip().lower() for use in uses))
        for name in names or ("",):
            if not USE_NAME.fullmatch(name):
                raise DatasetError(
                    f"`{name}` is not the name of a use: write, for example, train,index"
                )
        words = vocabulary or Vocabulary.shipped()
        return cls(
            names, now or datetime.now(UTC), words, recrawled, tags, defaults or {}, last_fetch
        )

    @property
    def modifications(self) -> dict[str, frozenset[str]]:
        """Requested use that is a modification -> the words that prohibit this modification."""
        return {
            use: modifications
            for use in self.uses
            if (modifications := self.vocabulary.modifications(use))
        }

    def by_single_records(self, recrawled: Recrawled | None) -> Self:
        """Return the terms for a program that passes records one by one, not whole datasets.

        `recrawled`: the pages that were fetched again, among the pages of all records. None: they
        are unknown, so a use that is permitted until its page is fetched again is refused.

        DatasetError: `recrawled` is None, but `last_fetch` is True, or a use is one of CURRENT."""
        if recrawled is None and self.last_fetch:
            raise DatasetError(
                "the last fetch of each page is asked for, but not known:"
                " pass the result of recrawled_in()"
            )
        if recrawled is None and (current := CURRENT.intersection(self.uses)):
            raise DatasetError(
                f"{min(current)} means the most recent fetch of a page, which is not known:"
                " pass the result of recrawled_in()"
            )
        return self._replace(recrawled=UNKNOWN_RECRAWLED if recrawled is None else recrawled)


class TermsApplied(NamedTuple):
    """The result of the terms for one record."""

    record: Record | None
    """The usable record: the record itself, or a changed copy. None: it may not be used."""
    cause: str = ""
    """The cause of a refusal, e.g. "no-tag", "deny:RULE" or "expired:USE"; docs/datasets.md lists
    all. Empty if the record may be used."""
    reasons: tuple[dict[str, Any], ...] = ()
    """The statements behind a refusal, as the tag quotes them."""
    tag: RawTag | None = None
    """The tag of the usable record."""
    read: Tag | None = None
    """The tag by which the terms were applied, with `Terms.defaults`. None: it cannot be read."""


class RefusedError(Exception):
    """The record may not be used."""

    def __init__(self, cause: str, reasons: tuple[dict[str, Any], ...] = ()) -> None:
        super().__init__(cause)
        self.cause = cause
        self.reasons = reasons


def is_licensed(tag: Tag, use: str) -> bool:
    """Return True if an arrangement of the operator with the site permits the use.

    An arrangement takes precedence over all statements of the site."""
    return any(reason["rule"] == ARRANGEMENT for reason in tag.reasons_of(tag.uses[use]))
