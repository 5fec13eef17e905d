"""Rebuild a page's own statements from the quotations in its tag.

The page itself is not fetched again.

    recall(tag)                 header fields and markup with the quoted statements, and the
                                reasons that cannot be rebuilt
    is_of_page(reason, tag)     True if a reason is from the page, not from a file or a setting
    refuses(reason)             True if a reason refuses"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from comity.policies.answers import rule
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import FORMATS
from comity.policies.page import MODIFICATION

Tag = Mapping[str, Any]
Quoted = Mapping[str, Any]  # a reason as the tag quotes it

# Rule -> the format that can rebuild its statements.
_OWNERS = {rule: format_ for format_ in FORMATS for rule in format_.rules}
_CUT = ("…", "\ufffd")  # marks of a quotation that is not exact


def is_of_page(reason: Quoted, tag: Tag) -> bool:
    """Return True if a reason is a statement of the page.

    Documents that only the page refers to belong to the page, not to the site's policy files."""
    part = reason.get("part", "body")
    return (
        reason["url"] not in tag["policies"]
        if part == "body"
        else part not in ("status", "setting")
    )


def refuses(reason: Quoted) -> bool:
    """Return True if the rule of a reason refuses."""
    return rule.refuses(reason["rule"])


class Recalled(NamedTuple):
    """The arguments of `Site.page` besides the URL."""

    headers: tuple[tuple[bytes, bytes], ...]
    """The header fields, as the tag quotes them."""
    body: bytes
    """A page with the elements that the tag quotes."""
    resources: Mapping[str, Fetched]
    """URL -> response, for the resources of the page."""
    lost: frozenset[int]
    """The indices (in `reasons` of the tag) of the page's reasons that cannot be rebuilt."""


def recall(tag: Tag) -> Recalled:
    """Return the page's statements that a tag quotes. The tag must be valid by its schema."""
    headers: dict[tuple[bytes, bytes], None] = {}
    markup: dict[str, None] = {}
    lost = set()
    for number, reason in enumerate(tag["reasons"]):
        # A reason with the rule MODIFICATION quotes the reason behind it.
        if is_of_page(reason, tag) and reason["rule"] != MODIFICATION:
            carrier, _, name = reason.get("part", "body").partition(" ")
            owner = (
                None
                if any(mark in reason["text"] for mark in _CUT)
                else _OWNERS.get(reason["rule"])
            )
            pairs = owner.replay(name.lower(), reason["text"]) if owner else ()
            if not pairs or carrier not in ("header", "meta"):
                lost.add(number)
            elif carrier == "header" and owner and name.lower().encode() in owner.header_fields:
                headers |= dict.fromkeys(
                    (word.encode("latin-1", "replace"), value.encode("utf-8", "replace"))
                    for word, value in pairs
                )
            elif carrier == "meta":
                markup |= dict.fromkeys(_meta(word, value) for word, value in pairs)
            else:
                lost.add(number)
    resources = {}
    for resource in _resources(tag):
        kind, _, name = resource["extract"].partition(":")
        if resource["url"]:
            resources[resource["url"]] = Fetched(
                status=200,
                headers=((b"Content-Type", b"text/plain; charset=utf-8"),),
                body=resource["content"].encode("utf-8", "replace"),
            )
        elif kind == "meta":
            markup[_meta(name, resource["content"])] = None
        else:  # the content is the whole markup of the element
            markup[resource["content"]] = None
    body = "".join(markup).encode("utf-8", "replace")
    if body:
        headers[b"Content-Type", b"text/html; charset=utf-8"] = None
    return Recalled(tuple(headers), body, resources, frozenset(lost))


def _meta(name: str, content: str) -> str:
    """Return a `meta` element with this content, as `name` and as header field (`http-equiv`)."""
    return f'<meta name="{escape(name)}" http-equiv="{escape(name)}" content="{escape(content)}">\n'


def _resources(tag: Tag) -> Iterator[Mapping[str, str]]:
    for use in tag["uses"].values():
        yield from use.get("must_use", ())
        yield from use.get("must_include", ())
