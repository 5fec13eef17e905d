"""A request as it came to the server, and what can be seen of it.

is_automated(incoming)     does a program make it, by itself?
mechanisms(incoming)       with which tools?
credentials(fields)        what kinds of credentials does it carry?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from comity.policies import requests
from comity.policies.values import Agent

KEY_HEADER = Agent("_").key_header  # as crawlers have it
MAX_FIELD = 2048  # characters of a field that are looked at
MAX_METHOD = 32  # characters
MAX_PURPOSES = 16  # of one request

_VISIBLE = "!\"$%&'()*+,/:;<=>?@[\\]^`{|}"  # of ASCII, besides what `quote` leaves alone; `#` would begin a fragment


class Incoming(NamedTuple):
    """One request."""

    method: str
    target: str  # path and query, visible ASCII, as the request line had them: not decoded
    fields: Mapping[str, str]  # header fields by lower-case name; several of one name are joined with ", "
    peer: str = ""  # IP address of who sent it; "": nobody knows

    def field(self, name: str) -> str:
        """What is looked at of a field; "" where it is not there."""
        return self.fields.get(name, "")[:MAX_FIELD]


def target_from(path: bytes, query: bytes) -> str:
    """The target of a request, from the octets that came for it."""
    return quote(path + b"?" + query if query else path, safe=_VISIBLE)


def purposes(value: str) -> tuple[str, ...]:
    """Of a purpose field: a list with commas between."""
    words = dict.fromkeys(word.strip() for word in value[:MAX_FIELD].split(","))
    return tuple(word for word in words if word)[:MAX_PURPOSES]


# What names itself, its maker or its purpose is a program, also where it begins like a browser. Cubot makes telephones.
_NAMES_A_ROBOT = re.compile(r"(?<!cu)bot(?![a-z])|crawl|spider|slurp|scrap|headless|phantomjs|https?://|@", re.IGNORECASE)
_ENGINE = re.compile(r"(?:Mozilla|Opera)/.*?(?:AppleWebKit|KHTML|Gecko|Trident|Presto)")
_TEXT_BROWSER = re.compile(r"(?:Lynx|Links|ELinks|w3m|Dillo|NetSurf)\b")


def is_automated(incoming: Incoming) -> bool:
    """Whether a program makes the request by itself, as far as it says so. Nothing can be seen of one that poses as a browser.

    It does where there is no User-Agent; where that is no browser's; where it names a robot, a page or a mail address; and where
    there is a From field (RFC 9110 section-10.1.2: robots should send one). One that declares a purpose is not asked about."""
    user_agent = incoming.field("user-agent")
    if "from" in incoming.fields:
        return True
    is_browser = _ENGINE.match(user_agent) or _TEXT_BROWSER.match(user_agent)
    return not is_browser or bool(_NAMES_A_ROBOT.search(user_agent) or mechanisms(incoming))


def mechanisms(incoming: Incoming) -> tuple[str, ...]:
    """By which tools the request is made, in words of draft-liao-aipref-autoctl-ext section-3.2; (): none that can be seen."""
    shown = incoming.field("user-agent") + incoming.field("sec-ch-ua")
    return ("headless",) if "HeadlessChrome" in shown or "PhantomJS" in shown else ()


def credentials(fields: Mapping[str, str], key_header: str = KEY_HEADER) -> frozenset[str]:
    """What a session that this request belongs to carries: of `comity.policies.requests.CREDENTIALS`."""
    return requests.credentials(fields, key_header)
