"""A request as it came to the server, and what can be seen of it.

is_automated(incoming)     does a program make it, by itself?
mechanisms(incoming)       with which tools?
credentials(fields)        what kinds of credentials does it carry?
Incoming.targets           what may an application take it to ask for?
Incoming.methods           and to want done?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

from comity.policies.agent import Agent
from comity.policies.answers import request as requests

KEY_HEADER = Agent("_").key_header  # as crawlers have it

# Applications and frameworks that obey such fields are asked for what these say, not for what the request line says.
_TARGET_FIELDS = ("x-original-url", "x-rewrite-url")
MAX_TARGETS = 64  # of one request

_VISIBLE = "!\"$%&'()*+,/:;<=>?@[\\]^`{|}"  # of ASCII, besides what `quote` leaves alone; `#` would begin a fragment
_LEFT_OUT = re.compile(
    "%0[9AaDd]"
)  # tab, LF, CR: by urllib.parse and by the URL Standard of WHATWG
_SCHEME = re.compile(
    r"\A[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?]*)?"
)  # and authority; RFC 3986 section-3


class Incoming(NamedTuple):
    """One request."""

    method: str
    target: str  # path and query, visible ASCII, as the request line had them: not decoded
    fields: Mapping[
        str, str
    ]  # header fields by lower-case name; several of one name are joined with ", "
    peer: str = ""  # IP address of who sent it; "": nobody knows
    aliases: tuple[
        str, ...
    ] = ()  # other targets that the server makes of the request line, written like `target`
    root: str = ""  # path under which clients know the application, written like `target`

    def field(self, name: str) -> str:
        """Return the value of a field; "" where it is not there. `name`: in lower case."""
        return self.fields.get(name, "")

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets for which an application may answer, the one of the request line first."""
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
        """All methods that an application may take it for, the one of the request line first."""
        return tuple(dict.fromkeys([self.method, *requests.overriding_methods(self.fields)]))


def _overriding(value: str, root: str) -> Iterator[str]:
    """Yield what an application may answer for by a field: all of its value, and where several of one name were joined, each;
    with a fragment and without; as clients know it, and below the root where it is not there."""
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
    """Return a target, from the octets that came for it."""
    return quote(octets, safe=_VISIBLE)


def target_of_path(path: bytes, query: bytes) -> str:
    """Return a target, from a path that was decoded and a query that was not."""
    target = target_from(path.replace(b"%", b"%25").replace(b"?", b"%3F"))
    return f"{target}?{target_from(query)}" if query else target


def _octets(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def list_members(value: str) -> tuple[str, ...]:
    """Return the values of a field that is a list with commas between, each once."""
    return tuple(dict.fromkeys(word for part in value.split(",") if (word := part.strip())))


# What names itself, its maker or its purpose is a program, also where it begins like a browser. Cubot makes telephones.
_NAMES_A_ROBOT = re.compile(
    r"(?<!cu)bot(?![a-z])|crawl|spider|slurp|scrap|headless|phantomjs|https?://|@", re.IGNORECASE
)
_ENGINE = re.compile(r"(?:Mozilla|Opera)/.*?(?:AppleWebKit|KHTML|Gecko|Trident|Presto)")
_TEXT_BROWSER = re.compile(r"(?:Lynx|Links|ELinks|w3m|Dillo|NetSurf)\b")


def is_automated(incoming: Incoming) -> bool:
    """Return whether a program makes the request by itself, as far as it says so. Nothing can be seen of one that poses as a
    browser.

    It does where there is no User-Agent; where that is no browser's; where it names a robot, a page or a mail address; and where
    there is a From field (RFC 9110 section-10.1.2: robots should send one). One that declares a purpose, and one that a policy
    file names, is not asked about."""
    user_agent = incoming.field("user-agent")
    if "from" in incoming.fields:
        return True
    is_browser = _ENGINE.match(user_agent) or _TEXT_BROWSER.match(user_agent)
    return not is_browser or bool(_NAMES_A_ROBOT.search(user_agent) or mechanisms(incoming))


def mechanisms(incoming: Incoming) -> tuple[str, ...]:
    """Return by which tools the request is made, in words of draft-liao-aipref-autoctl-ext section-3.2; (): none that shows."""
    products = incoming.field("user-agent") + incoming.field("sec-ch-ua")
    return ("headless",) if "HeadlessChrome" in products or "PhantomJS" in products else ()


def credentials(fields: Mapping[str, str], key_header: str = KEY_HEADER) -> frozenset[str]:
    """Return what a session that this request belongs to carries: of `comity.policies.answers.request.CREDENTIALS`."""
    return requests.credentials(fields, key_header)
