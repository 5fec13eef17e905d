"""The policy files by which a record was tagged, against those of today."""

from __future__ import annotations

from datetime import UTC, datetime

from comity.dataset.verify.replay import Tag
from comity.dataset.verify.result import Cause
from comity.dataset.verify.today import Sites
from comity.policies import Site
from comity.policies.answers.fetched import Availability, availability
from comity.policies.syntax.urls import origin_or_empty


def first_seen(tag: Tag) -> dict[str, datetime]:
    """A time before which the page was not asked for by these policies, for permissions that end some days after."""
    try:
        moments = [
            datetime.fromisoformat(copy["fetched_at"])
            for copy in tag["policies"].values()
            if copy["fetched_at"]
        ]
        first = min(moment.astimezone(UTC) for moment in moments)
    except (ValueError, OverflowError):  # there is none, or one is no time
        first = datetime.min.replace(tzinfo=UTC)
    return dict.fromkeys(tag["uses"], first)


def is_same_copy(tag: Tag, site: Site, url: str) -> bool:
    """Return whether the file is, octet by octet, the one by which the record was tagged."""
    recorded, current = tag["policies"].get(url), site.policies.get(url)
    if recorded is None or current is None:  # a file that nobody asked for then
        return current is not None and availability(site.files[url]) is Availability.ABSENT
    return bool(
        (recorded["status"] // 100, recorded["sha256"])
        == (current["status"] // 100, current["sha256"])
    )


def newly_unreachable(tag: Tag, site: Site) -> Cause | None:
    """A file that could be had when the record was tagged, and cannot be had now: nobody knows what it says."""
    for url, file in site.files.items():
        if availability(file) is Availability.UNREACHABLE and not is_same_copy(tag, site, url):
            recorded = tag["policies"].get(url)
            if recorded is None or not (
                recorded["status"] in (0, 429) or recorded["status"] // 100 == 5
            ):
                return Cause("unreachable", url, text=file.error or f"HTTP status {file.status}")
    return None


def other_page(tag: Tag, site: Site, sites: Sites) -> Cause | None:
    """Return why another page of the item is in doubt, None where none is.

    Of an item that was made of pages of several sites the others have to be as they were: their URLs are not known."""
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
                    text="a page of this site is in it too, and nobody knows which",
                )
    return None
