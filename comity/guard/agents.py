"""The agents that a User-Agent may name: crawlers in the policy files, or an agent without a name.

    Agents(names, key_header).asking(user_agent) -> Asking

A crawler's product token may be anywhere in a User-Agent, often after the name of the browser that
the crawler imitates. Words that browsers send, e.g. "chrome", do not identify a crawler, even if a
file has rules for "chrome". These words count only if the User-Agent has no other words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from itertools import count
from typing import NamedTuple

from comity.bounded import Bounded
from comity.policies.agent import PRODUCT_TOKEN, Agent
from comity.policies.document.document import Content
from comity.policies.formats.acap import CrawlerNames

# The maximum number of crawlers that one User-Agent may name. A request with more is refused.
MAX_NAMED = 4
# The maximum number of words of a User-Agent that pages are searched for.
MAX_WORDS = 16
# Characters. In a longer User-Agent, which no real client sends, words in versions and in addresses
# count as product tokens too.
MAX_PARSED = 2048
# The maximum number of agents in memory. There is one for each pair of a product token and a
# combination of ACAP names.
MAX_AGENTS = 1000

_ESCAPED = re.compile(r"\\u00([0-9a-f]{2})")  # an ASCII character in JSON, in lower case
_ITEMS = re.compile(r"[^\s;,()<>\[\]{}\"'+]+")  # products, and words in comments

# Words in the User-Agents of browsers, and of applications that show pages in a browser window. A
# word of fewer than MIN_WORD characters counts as a browser's: it is a version or a model.
MIN_WORD = 3
BROWSER_WORDS = frozenset(
    """
    mozilla compatible like gecko applewebkit webkit khtml trident presto goanna blink msie
    version mobile safari build
    chrome chromium crios hichrome firefox fxios focus klar seamonkey palemoon waterfox
    iceweasel icecat fennec librewolf
    edge edg edga edgios edgw opera opr opt opios oprgx opx mini mobi vivaldi brave yabrowser
    yowser samsungbrowser
    ucbrowser ubrowser ucweb silk silk-accelerated epiphany konqueror falkon midori qupzilla
    otter maxthon whale puffin duckduckgo
    ddg ecosia gsa googleapp miuibrowser heytapbrowser vivobrowser huaweibrowser honorbrowser
    mqqbrowser qqbrowser metasr
    micromessenger alipayclient baidubrowser baiduboxapp bidubrowser liebaofast quark
    sogoumobilebrowser 2345explorer
    lynx libwww-fm links elinks w3m dillo netsurf netfront nokiabrowser kaios browserng iemobile
    zunewp7 nintendobrowser
    fban fbav fbbv fbdv fbmd fbsn fbsv fbss fbid fblc fbop fbrv fbios fb_iab fb4a messenger
    messengerforios instagram
    twitter pinterest snapchat tiktok musical_ly bytelocale bytedancewebview line linkedinapp
    whatsapp viber telegram reddit
    electron slack discord teams thunderbird outlook microsoft office
    windows win64 win32 wow64 x64 x86 x86_64 amd64 i386 i586 i686 arm64 armv7l armv8l aarch64
    touch tablet desktop
    x11 linux wayland ubuntu debian fedora suse gentoo arch freebsd openbsd netbsd sunos cros
    macintosh intel ppc mac iphone ipad ipod cpu ios
    android pixel nexus web0s webos smart-tv smarttv smart television tizen playstation xbox
    nintendo switch oculusbrowser
    net clr slcc1 slcc2 infopath media center
    """.split()  # noqa: SIM905  # to be read as words
)


class Asking(NamedTuple):
    """The agents that may have sent a request."""

    agents: tuple[Agent, ...]
    """An agent for each product token that is in the files and in the User-Agent. If there is no
    such token, a single agent with a name that no file has. Each agent has all matching ACAP
    names in its `user_agent`."""
    names: tuple[str, ...]
    """The product tokens of `agents`, without the name that no file has."""
    is_named: bool
    """True if the request counts as a crawler's, because a file names a word of the User-Agent
    that browsers do not send."""
    is_clear: bool
    """False if the User-Agent names more than MAX_NAMED crawlers. Then `agents` is incomplete."""


class Agents:
    """The agents that the policy files distinguish.

    An agent has only names from the files, so clients cannot fill the memory with new agents."""

    def __init__(self, names: Iterable[str], key_header: str) -> None:
        """`names`: `Site.crawler_names`. `key_header`: the header field with a crawler's key."""
        self._tokens = frozenset(name for name in names if PRODUCT_TOKEN.fullmatch(name))
        # Names in ACAP, with several words or with `*` at the end.
        self._others = tuple(sorted(set(names) - self._tokens))
        self._nobody = next(
            name for length in count(1) if (name := "_" * length) not in self._tokens
        )
        self._key_header = key_header
        self._agents: Bounded[tuple[str, str], Agent] = Bounded(MAX_AGENTS)

    def asking(self, user_agent: str) -> Asking:
        """Return the agents that a User-Agent may name."""
        distinctive, tokens = self._product_tokens(user_agent)
        names = self._names_in_acap(user_agent) if self._others else []
        is_clear = len(tokens) + len(names) <= MAX_NAMED
        acap_names = "; ".join(name.rstrip("*") for name in names[:MAX_NAMED])
        agents = tuple(
            self._agent(token, acap_names) for token in tokens[:MAX_NAMED] or (self._nobody,)
        )
        is_named = bool(distinctive and tokens) or any(
            _tells_apart(name, distinctive) for name in names
        )
        return Asking(agents, tuple(tokens[:MAX_NAMED]), is_named, is_clear)

    def addressed_by_pages(
        self, user_agent: str, uses: tuple[str, ...], content: Content
    ) -> tuple[Agent, ...] | None:
        """Return an agent for each word of a User-Agent that a response may name as a crawler.

        A page may name crawlers that no file names. These agents are new, so judge them only by
        pages, and not by files. If there are more than MAX_WORDS words, only the words that the
        response contains count. None: these are too many too. `uses`: see `Agent`."""
        words = list(dict.fromkeys(words_of(user_agent)))
        words = [word for word in words if not is_of_browsers(word)] or words
        if len(words) > MAX_WORDS:
            words = _words_in(content, words)
        if len(words) > MAX_WORDS:
            return None
        return tuple(
            Agent(word, uses=uses, key_header=self._key_header) for word in words or (self._nobody,)
        )

    def _product_tokens(self, user_agent: str) -> tuple[list[str], list[str]]:
        """Return the words that browsers do not send, and the product tokens that files name.

        The tokens are words that browsers do not send, or if there are no such words, any words.
        Both lists are empty if the files have no ACAP names, and name no word of the User-Agent."""
        words = PRODUCT_TOKEN.findall(user_agent.lower())
        if not self._others and self._tokens.isdisjoint(words):
            return [], []
        words = list(
            dict.fromkeys(words_of(user_agent) if len(user_agent) <= MAX_PARSED else words)
        )
        distinctive = [word for word in words if not is_of_browsers(word)]
        return distinctive, [word for word in distinctive or words if word in self._tokens]

    def _agent(self, token: str, acap_names: str) -> Agent:
        agent = self._agents.get((token, acap_names))
        if agent is None:
            agent = self._agents[token, acap_names] = Agent(
                token, user_agent=acap_names, key_header=self._key_header
            )
        return agent

    def _names_in_acap(self, user_agent: str) -> list[str]:
        names = CrawlerNames(Agent(self._nobody, user_agent=user_agent))
        return [name for name in self._others if names.mean(name)]


def _words_in(content: Content, words: list[str]) -> list[str]:
    """Return the words that a response contains. They are all words if that cannot be told."""
    if content.is_xml:  # its sections and entities may divide a word
        return words
    fields = b"\n".join(value for _, value in content.headers).lower()
    as_sent = (fields + b"\n" + content.octets).decode("latin-1")
    try:
        text = unescape(as_sent)
    except ValueError:  # a reference with thousands of digits
        return words
    text = as_sent + _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    text = text.lower()
    return [word for word in words if word in text]


def words_of(user_agent: str) -> list[str]:
    """Return the names of products and the words of comments, in lower case.

    Versions, URLs and mail addresses are omitted: "Bot/1.0 (+http://a.example)" -> ["bot"]."""
    items = (item for item in _ITEMS.findall(user_agent.lower()) if not _is_address(item))
    return [word for item in items for word in PRODUCT_TOKEN.findall(item.partition("/")[0])]


def _is_address(item: str) -> bool:
    """Return True if an item is a URL or a mail address, which contains no names of products."""
    return "://" in item or "@" in item or item.startswith("www.")


def is_of_browsers(word: str) -> bool:
    """Return True if browsers send this word. `word`: in lower case."""
    return len(word) < MIN_WORD or word in BROWSER_WORDS


def _tells_apart(name: str, distinctive: Iterable[str]) -> bool:
    """Return True if an ACAP name has a word of `distinctive`.

    The last word of a name that ends with `*` may also be the beginning of a word of `distinctive`.
    `distinctive`: the words of the User-Agent that browsers do not send."""
    of_name = words_of(name)
    return any(
        word in of_name
        or (name.endswith("*") and word.startswith(of_name[-1:][0] if of_name else ""))
        for word in distinctive
    )
