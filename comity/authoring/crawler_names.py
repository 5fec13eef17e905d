"""The names of crawlers in User-agent lines, and the two ways in which readers compare them.

A product token has letters, `-` and `_` (RFC 9309 section-2.2.1), and digits in practice. Some
crawlers have other names: `archive.org_bot`, `Sogou web spider`. There are two kinds of readers:

1. Readers by the RFC read a line up to the first other sign: `archive`, `Sogou`.
2. Others compare the whole value, such as Protego, `urllib.robotparser`, and Heritrix, the crawler
   of the Internet Archive.

So files contain the whole name, which both kinds find. A sentence about such a crawler holds if it
holds for both kinds."""

from __future__ import annotations

import re
from dataclasses import replace

from comity.authoring.source import SiteSource
from comity.policies import Site
from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.syntax.lines import text_of

_WORD = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
# A name of one word, and a name of several words. A slash begins a version, which is no part of it.
ONE_WORD = re.compile(_WORD)
NAME = re.compile(rf"{_WORD}(?: {_WORD})*")
_AGENT_LINE = re.compile(rb"(?<![^\r\n])([ \t]*user-?agent[ \t]*:[ \t]*)([^#\r\n]*)", re.IGNORECASE)


def is_token(name: str) -> bool:
    """Return True if all readers compare the whole name, because it is a product token."""
    return PRODUCT_TOKEN.fullmatch(name) is not None


def token_of(name: str) -> str:
    """Return the product token that readers by the RFC read in a name. "" if there is none."""
    token = PRODUCT_TOKEN.match(name)
    return token[0] if token else ""


def replace_name(source: SiteSource, name: str, token: str) -> SiteSource:
    """Return a site with a token in place of a name, in all User-agent lines that have the name.

    The lines keep their numbers. A reader that compares whole names finds the lines for the name
    where readers by the RFC find the lines for the token, if no file contains the token.

    `name`: in any case. `token`: a product token."""

    def put(match: re.Match[bytes]) -> bytes:
        value = match[2].strip(b" \t")
        if value.decode("utf-8", "replace").lower() != name.lower():
            return match[0]
        return match[1] + token.encode() + match[2][len(value) :]

    fetched = {
        url: replace(file, body=_AGENT_LINE.sub(put, text_of(file.body)[0]))
        for url, file in source.site.files.items()
    }
    files = (file._replace(fetched=fetched.get(file.url, file.fetched)) for file in source.files)
    return source._replace(site=Site(source.origin, fetched), files=tuple(files))
