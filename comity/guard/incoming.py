"""A request as the server received it, and the facts that the request shows.

is_automated(incoming)     True if a program makes the request without a person
mechanisms(incoming)       the tools that make the request, e.g. ("headless",)
credentials(fields)        the kinds of credentials in the request
Incoming.targets           the targets that an application may answer for
Incoming.methods           the methods that an application may act on"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

from comity.policies.agent import Agent
from comity.policies.answers import request as requests

KEY_HEADER = Agent("_").key_header  # the header field for a crawler's key, by default

# Some applications and frameworks obey these fields instead of the request line.
_TARGET_FIELDS = ("x-original-url", "x-rewrite-url")
MAX_TARGETS = 64  # the maximum number of targets of one request

# Visible ASCII to keep, besides the characters that `quote` always keeps. `#` is not among them,
# because it would begin a fragment.
_VISIBLE = "!\"$%&'()*+,/:;<=>?@[\\]^`{|}"
# Tab, LF and CR, which urllib.parse and the URL Standard of WHATWG remove.
_LEFT_OUT = re.compile("%0[9AaDd]")
# Scheme and authority; RFC 3986 section-3.
_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?]*)?")


class Incoming(NamedTuple):
    """One request."""

    method: str
    """The method, as in the request line."""
    target: str
    """Path and query as in the request line, in visible ASCII, not decoded."""
    fields: Mapping[str, str]
    """The header fields by lower-case name. Several fields of one name are joined with ", "."""
    peer: str = ""
    """The IP address of the sender. Empty if it is unknown."""
    aliases: tuple[str, ...] = ()
    """Other targets that the server makes from the request line, in the form of `target`."""
    root: str = ""
    """The path under which clients know the application, in the form of `target`."""

    def field(self, name: str) -> str:
        """Return the value of a field. "" if the field is missing. `name`: in lower case."""
        return self.fields.get(name, "")

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets that an application may answer for. The request line's target comes first."""
        values = (self.fields[name] for name in _TARGET_FIELDS if name in self.fields)
        overrides = [target for value in values for target in _overriding(value, self.root)]
        targets = [self.target, *self.aliases, *overrides]
        targets += [_LEFT_OUT.sub("", target) for target in targets if "%0" in target]
        stripped = [
            target[scheme.end() :] for target in targets if (scheme := _SCHEME.match(target))
        ]
        return tuple(dict.fromkeys(targets + stripped))

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods that an application may act on. The request line's method comes first."""
        return tuple(dict.fromkeys([self.method, *requests.overriding_methods(self.fields)]))


def _overriding(value: str, root: str) -> Iterator[str]:
    """Yield the targets to which a field like X-Original-URL may change the request's target.

    `value`: the value of the field. The whole value is a target. The value may also be several
    fields joined by commas, so each member that is a path or URL is a target too. Each target is
    yielded with and without its fragment. A target outside `root` is also yielded below `root`:
    for the root `/app`, `/a` is yielded as `/a` and `/app/a`."""
    several = [
        word
        for part in value.split(",")
        if (word := part.strip()).startswith("/") or _SCHEME.match(word)
    ]
    targets = list(islice(dict.fromkeys([value, *several]), MAX_TARGETS + 1))
    for text in dict.fromkeys([*targets, *(text.partition("#")[0] for text in targets)]):
        target = target_from(_octets(text))
        yield target
        path = _SCHEME.sub("", target, count=1)
        if root and not (
            path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/", "?")
        ):
            yield root + path


def target_from(octets: bytes) -> str:
    """Return a target, in visible ASCII, from the octets that the server received."""
    return quote(octets, safe=_VISIBLE)


def target_of_path(path: bytes, query: bytes) -> str:
    """Return a target. `path`: percent-decoded. `query`: as received, not decoded."""
    target = target_from(path.replace(b"%", b"%25").replace(b"?", b"%3F"))
    return f"{target}?{target_from(query)}" if query else target


def _octets(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def list_members(value: str) -> tuple[str, ...]:
    """Return the members of a comma-separated list without duplicates: "a, b, a" -> (a, b)."""
    return tuple(dict.fromkeys(word for part in value.split(",") if (word := part.strip())))


# A client that names itself, its maker or its purpose is a program, even if its User-Agent begins
# like a browser's. Cubot makes telephones.
_NAMES_A_ROBOT = re.compile(
    r"(?<!cu)bot(?![a-z])|crawl|spider|slurp|scrap|headless|phantomjs|https?://|@", re.IGNORECASE
)
_ENGINE = re.compile(r"(?:Mozilla|Opera)/.*?(?:AppleWebKit|KHTML|Gecko|Trident|Presto)")
_TEXT_BROWSER = re.compile(r"(?:Lynx|Links|ELinks|w3m|Dillo|NetSurf)\b")


def is_automated(incoming: Incoming) -> bool:
    """Return True if the request shows that a program makes it without a person.

    Signs of a program are a missing User-Agent, a User-Agent that is not a browser's, a User-Agent
    with the name of a robot, a headless browser, a URL or a mail address, a From field (RFC 9110
    section-10.1.2: robots should send one), and a Signature-Agent field, which crawlers sign. A
    program that imitates a browser cannot be recognised.

    The guard does not call this function for requests that state a purpose, nor for crawlers that
    a policy file names. These requests always count as automated."""
    user_agent = incoming.field("user-agent")
    if "from" in incoming.fields or "signature-agent" in incoming.fields:
        return True
    is_browser = _ENGINE.match(user_agent) or _TEXT_BROWSER.match(user_agent)
    return not is_browser or bool(_NAMES_A_ROBOT.search(user_agent) or mechanisms(incoming))


def mechanisms(incoming: Incoming) -> tuple[str, ...]:
    """Return ("headless",) if a headless browser makes the request. () if no tool is recognised.

    The word is from draft-liao-aipref-autoctl-ext section-3.2."""
    products = incoming.field("user-agent") + incoming.field("sec-ch-ua")
    return ("headless",) if "HeadlessChrome" in products or "PhantomJS" in products else ()


def credentials(fields: Mapping[str, str], key_header: str = KEY_HEADER) -> frozenset[str]:
    """Return the kinds of credentials in the request's header fields.

    They are words of `comity.policies.answers.request.CREDENTIALS`, for a Session."""
    return requests.credentials(fields, key_header)
