"""Compare the policy files by which a record was tagged with today's files."""

from __future__ import annotations

from datetime import UTC, datetime

from comity.dataset.verify.replay import Tag
from comity.dataset.verify.result import Cause
from comity.dataset.verify.today import Sites
from comity.policies import Site
from comity.policies.answers.fetched import Availability, availability
from comity.policies.syntax.urls import origin_or_empty


def first_seen(tag: Tag) -> dict[str, datetime]:
    """Return, for each use, the earliest moment at which the page can have been fetched.

    Permissions that last a number of days begin at that moment. It is the moment of the earliest
    fetch of a policy file. If the tag has no such moment, or an invalid one, it is the earliest
    possible date. All uses have the same moment."""
    try:
        moments = [
            datetime.fromisoformat(copy["fetched_at"])
            for copy in tag["policies"].values()
            if copy["fetched_at"]
        ]
        first = min(moment.astimezone(UTC) for moment in moments)
    except (ValueError, OverflowError):  # there is no moment, or one is invalid
        first = datetime.min.replace(tzinfo=UTC)
    return dict.fromkeys(tag["uses"], first)


def is_same_copy(tag: Tag, site: Site, url: str) -> bool:
    """Return True if a file is the same, octet by octet, as when the record was tagged."""
    recorded, current = tag["policies"].get(url), site.policies.get(url)
    if recorded is None or current is None:  # the file was not requested then
        return current is not None and availability(site.files[url]) is Availability.ABSENT
    return bool(
        (recorded["status"] // 100, recorded["sha256"])
        == (current["status"] // 100, current["sha256"])
    )


def newly_unreachable(tag: Tag, site: Site) -> Cause | None:
    """Return the cause of an unknown result: a file that cannot be fetched today.

    The file could be fetched when the record was tagged, so today's content is unknown. None if
    there is no such file."""
    for url, file in site.files.items():
        if availability(file) is Availability.UNREACHABLE and not is_same_copy(tag, site, url):
            recorded = tag["policies"].get(url)
            if recorded is None or not (
                recorded["status"] in (0, 429) or recorded["status"] // 100 == 5
            ):
                return Cause("unreachable", url, text=file.error or f"HTTP status {file.status}")
    return None


def other_page(tag: Tag, site: Site, sites: Sites) -> Cause | None:
    """Return the cause of an unknown result: another page of the item, on another site.

    An item can be made from pages of several sites. The URLs of the other pages are unknown, so
    their result is known only if the files of their sites have not changed. None if the files of
    all these sites are unchanged, or if all pages are on one site."""
    for url in tag["policies"]:
        if (
            url.endswith("/robots.txt")
            and url not in site.files
            and (page_origin := origin_or_empty(url))
        ):
            other = sites(page_origin)
            if other is None or not all(is_same_copy(tag, other, file) for file in other.files):
                return Cause(
                    "another-page",
                    page_origin,
                    text="the record contains an unknown page of this site too",
                )
    return None
