"""The facts of a tag that decide about uses: verdicts, deciding statements, copies of policy files.

facts_of(record, tags, uses)    the Facts of a record
key_of(record)                  the page of a record, and the record on that page"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from comity.dataset.permissions.expiry import page_of
from comity.dataset.records import Record
from comity.dataset.tags.sources import TagSource, read
from comity.policies.tag import TagError

NOT_LISTED = "not-listed"  # the rule of a use that the tag does not list
IDENTITIES = ("sha256", "id")  # fields that tell the records of a page apart

Key = tuple[str, tuple[str, ...]]  # a page, and the values of IDENTITIES


class Copy(NamedTuple):
    """A copy of a policy file."""

    sha256: str
    """The SHA-256 of its body. "": there is no body."""
    status: int
    """The HTTP status. 0: there was no response, or no copy."""
    fetched_at: str
    """The time of the fetch, in ISO 8601. "": unknown."""


NO_COPY = Copy("", 0, "")


class Statement(NamedTuple):
    """The statement that decides about a use."""

    rule: str
    """The rule, or the cause why the tag permits nothing: no-tag, invalid-tag:..., not-listed."""
    url: str = ""
    """The URL of the statement, the name of a registry or setting, or ""."""
    part: str = ""
    """The part of the source, such as `header x-robots-tag`. "": the body of a file."""
    line: int = 0
    """The line from 1. 0: no line."""
    text: str = ""
    """The statement as written."""
    copy: Copy | None = None
    """The copy of the policy file with the statement. None: `url` is no policy file."""

    @property
    def without_copy(self) -> Statement:
        """The statement, equal for all copies that have it."""
        return self._replace(copy=None)


class Facts(NamedTuple):
    """The facts of a tag. They are equal for most pages of a site."""

    agent: str
    """The product token of the tag. "": there is no valid tag."""
    uses: tuple[tuple[str, bool, Statement], ...]
    """Use, True if it is permitted, and the deciding statement."""
    copies: tuple[tuple[str, Copy], ...] = ()
    """URL and latest copy of each policy file."""
    problem: str = ""
    """The cause why the tag permits nothing, or ""."""

    def verdict(self, use: str) -> tuple[bool, Statement]:
        """Return True if the use is permitted, and the deciding statement."""
        for name, is_allowed, statement in self.uses:
            if name == use:
                return is_allowed, statement
        return False, Statement(self.problem or NOT_LISTED)

    def copy_of(self, url: str) -> Copy:
        """Return the latest copy of a policy file. NO_COPY: the tag has no copy."""
        return next((copy for name, copy in self.copies if name == url), NO_COPY)


def facts_of(record: Record, tags: TagSource, uses: frozenset[str]) -> Facts:
    """Return the facts of a record's tag. `uses`: the uses to compare. Empty: all uses."""
    try:
        tag = read(record, tags)
    except TagError as error:
        return Facts("", (), problem=str(error))
    policies = tag.raw["policies"]
    asked = tag.uses.keys() & uses if uses else tag.uses.keys()
    return Facts(
        tag.raw["agent"],
        tuple(
            (name, use.is_allowed, _statement(tag.reasons_of(use)[0], policies))
            for name, use in sorted(tag.uses.items())
            if name in asked
        ),
        tuple((url, _copy(policy)) for url, policy in sorted(policies.items())),
    )


def _statement(reason: Mapping[str, Any], policies: Mapping[str, Any]) -> Statement:
    policy = policies.get(reason["url"])
    copy = None
    if policy is not None:
        dated = (one for one in policy.get("earlier", ()) if one["fetched_at"] == _date(reason))
        copy = _copy(next(dated, policy) if _date(reason) else policy)
    part = reason.get("part", "")
    return Statement(reason["rule"], reason["url"], part, reason["line"], reason["text"], copy)


def _date(reason: Mapping[str, Any]) -> str | None:
    """Return the fetch time of the copy that has the statement, if the tag has several copies."""
    return reason.get("fetched_at")


def _copy(policy: Mapping[str, Any]) -> Copy:
    return Copy(policy["sha256"] or "", policy["status"], policy["fetched_at"] or "")


def key_of(record: Record) -> Key | None:
    """Return the key by which a record is found in the other dataset.

    None: the record has neither a URL nor a value in IDENTITIES."""
    urls = (record.get(name) for name in ("final_url", "url"))
    url = next((url for url in urls if isinstance(url, str) and url), "")
    identity = tuple(
        str(value) if isinstance(value := record.get(name), str | int) else ""
        for name in IDENTITIES
    )
    return (page_of(url) if url else "", identity) if url or any(identity) else None
