"""A page's own statements once more, as far as its tag quotes it: its header fields and its markup cannot be asked for again.

recalled(tag)          header fields and markup that say the same once more, and which reasons cannot be said again
is_of_page(reason)     whether a reason was read in the page, not in a policy file or a setting
refuses(reason)        whether it refuses"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from comity.policies.answers import rule
from comity.policies.answers.fetched import Fetched
from comity.policies.formats import FORMATS
from comity.policies.page import MODIFICATION

Tag = Mapping[str, Any]
Quoted = Mapping[str, Any]  # a reason, as the tag has it

_OWNERS = {
    rule: format_ for format_ in FORMATS for rule in format_.rules
}  # whose reasons are said again
_CUT = ("…", "\ufffd")  # what a quote has that is not as it was written


def is_of_page(reason: Quoted, tag: Tag) -> bool:
    """A document that only the page refers to is no policy file of the site."""
    part = reason.get("part", "body")
    return (
        reason["url"] not in tag["policies"]
        if part == "body"
        else part not in ("status", "setting")
    )


def refuses(reason: Quoted) -> bool:
    return rule.refuses(reason["rule"])


class Recalled(NamedTuple):
    """All that `Site.page` asks for besides the URL."""

    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    resources: Mapping[str, Fetched]
    lost: frozenset[int]  # reasons of the page that are not among it, by their places in the tag


def recalled(tag: Tag) -> Recalled:
    """The tag is valid by its schema."""
    headers: dict[tuple[bytes, bytes], None] = {}
    markup: dict[str, None] = {}
    lost = set()
    for number, reason in enumerate(tag["reasons"]):
        if (
            is_of_page(reason, tag) and reason["rule"] != MODIFICATION
        ):  # which quotes the next reason
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
        else:  # the markup of the element, which has the name of it
            markup[resource["content"]] = None
    body = "".join(markup).encode("utf-8", "replace")
    if body:
        headers[b"Content-Type", b"text/html; charset=utf-8"] = None
    return Recalled(tuple(headers), body, resources, frozenset(lost))


def _meta(name: str, content: str) -> str:
    """Return an element that says it as `name` and as the header field of this name (`http-equiv`)."""
    return f'<meta name="{escape(name)}" http-equiv="{escape(name)}" content="{escape(content)}">\n'


def _resources(tag: Tag) -> Iterator[Mapping[str, str]]:
    for use in tag["uses"].values():
        yield from use.get("must_use", ())
        yield from use.get("must_include", ())
