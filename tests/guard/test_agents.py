"""The agents that may have sent a request, by its User-Agent and the names in the policy files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.guard import Answer, Guard, Incoming, Pass
from comity.guard.agents import BROWSER_WORDS, MAX_NAMED, Agents, words_of

ORIGIN = "https://example.com"
CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/130.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
IPHONE = f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {WEBKIT}"
PEOPLE = [
    CHROME,
    f"{CHROME} Edg/130.0.0.0",
    FIREFOX,
    (
        "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
        "SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile"
    ),
    f"{IPHONE} GSA/319.0.6 Mobile/15E148 Safari/604.1",
    f"{IPHONE} Mobile/15E148 [Pinterest/iOS]",
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/17.4 Safari/605.1.15",
    (
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; WOW64; Trident/4.0; SLCC2; "
        ".NET CLR 2.0.50727; Media Center PC 6.0)"
    ),
    "Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18",
    "Lynx/2.9.0 libwww-FM/2.14 SSL-MM/1.4.1 OpenSSL/3.0.2",
    "Links (2.25; Linux x86_64; GNU C 11.2; text)",
]
ROBOTS = b"""User-agent: *
Disallow: /anybody/

User-agent: GoogleOther
User-agent: 008
Disallow: /robots/

User-agent: LaxBot
Disallow:

User-agent: Mozilla
User-agent: Safari
User-agent: Chrome
User-agent: Firefox
User-agent: compatible
User-agent: Linux
User-agent: Links
User-agent: GSA
User-agent: Pinterest
User-agent: K
Disallow: /browsers/

ACAP-crawler: Two Words/2
ACAP-disallow-crawl: /acap/
ACAP-crawler: prefix*
ACAP-crawler: Fire*
ACAP-disallow-crawl: /wild/

ACAP-crawler: *
ACAP-permissions-reference: /more.txt
"""
MORE = b"User-agent: referredbot\nDisallow: /robots/\n"
AUTOMATION = (
    b"scope: /\nallowed-methods: GET\n\nscope: /\nuser-agent: methodbot\nallowed-methods: POST\n"
)
AI = b"User-Agent: Ai-Bot\nDisallow: /\n"
FILES = {
    "/robots.txt": ROBOTS,
    "/more.txt": MORE,
    "/automation-preferences.txt": AUTOMATION,
    "/ai.txt": AI,
}


@pytest.fixture(scope="module")
def guard() -> Guard:
    return Guard(ORIGIN, FILES)


def asked(guard: Guard, target: str, user_agent: str) -> str:
    """The rule by which it is refused; "": it passes as automated, "person": as not automated."""
    before = guard.passed.total()
    checked = guard.check(Incoming("GET", target, {"user-agent": user_agent}))
    if isinstance(checked, Answer):
        return str(json.loads(checked.body)["rule"])
    return "" if guard.passed.total() > before else "person"


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize(
    ("user_agent", "target", "rule"),
    [
        ("Mozilla/5.0 (compatible; GoogleOther) Chrome/130", "/robots/", "robots.disallow"),
        (f"{CHROME} (compatible; GoogleOther)", "/robots/", "robots.disallow"),
        (f"{CHROME} GoogleOther/1.0", "/robots/", "robots.disallow"),
        (f"{CHROME} googleother", "/robots/", "robots.disallow"),
        (f"{CHROME} (GoogleOther/2; +https://example.com/)", "/robots/", "robots.disallow"),
        (f"{CHROME} [GoogleOther]", "/robots/", "robots.disallow"),
        (f"{CHROME} x=GoogleOther", "/robots/", "robots.disallow"),
        (f"{FIREFOX} {'word ' * 500}GoogleOther", "/robots/", "robots.disallow"),
        (f"{FIREFOX} {'x' * 5000} GoogleOther", "/robots/", "robots.disallow"),
        (
            (
                "Mozilla/5.0 (compatible; 008/0.83; "
                "http://www.example.com/webcrawler.html) Gecko/2008032620"
            ),
            "/robots/",
            "robots.disallow",
        ),
        (f"{CHROME} (referredbot)", "/robots/", "robots.disallow"),
        (f"{CHROME} (methodbot)", "/", "automation.method"),
        (f"{CHROME} (Ai-Bot)", "/anybody/", "robots.disallow"),
        (f"{CHROME} (Two Words/2)", "/acap/", "acap.disallow"),
        (f"{CHROME} PrefixBot/1", "/wild/x", "acap.disallow"),
        # None of them
        (f"{CHROME} GoogleOther-Image/1.0", "/robots/", "person"),
        (f"{CHROME} NotGoogleOther", "/robots/", "person"),
        (f"{CHROME} Version/GoogleOther", "/robots/", "person"),
        (f"{CHROME} (Two; Words/2)", "/acap/", "person"),
        # The page of a crawler is not its name.
        ("otherbot/1.0 (+https://example.com/GoogleOther.html)", "/robots/", ""),
        ("otherbot/1.0 (+mailto:GoogleOther@example.com)", "/robots/", ""),
        # Several crawlers: a refusal for any of them counts.
        ("LaxBot/1.0", "/anybody/", ""),
        ("LaxBot/1.0 (like GoogleOther)", "/robots/", "robots.disallow"),
        ("GoogleOther/1.0 (like LaxBot)", "/robots/", "robots.disallow"),
        ("LaxBot GoogleOther 008 methodbot referredbot", "/", "comity.long-fields"),
        # Words of browsers identify no crawler ...
        ("Mozilla/5.0 (compatible; LaxBot/1.0)", "/browsers/", ""),
        ("Mozilla/5.0 (compatible; otherbot/1.0)", "/browsers/", ""),
        ("Mozilla/5.0 (compatible; otherbot/1.0)", "/anybody/", "robots.disallow"),
        # ... where there are others.
        ("Mozilla/5.0", "/browsers/", "robots.disallow"),
        ("Links", "/browsers/", "person"),
        ("Pinterest/0.2 (+https://www.pinterest.com/bot.html)", "/browsers/", "robots.disallow"),
        ("K/1.0 (+https://example.com/)", "/browsers/", "robots.disallow"),
    ],
)
def test_whom_a_file_names_is_held_to_it(
    guard: Guard, user_agent: str, target: str, rule: str
) -> None:
    assert asked(guard, target, user_agent) == rule


@pytest.mark.requirement("GUARD-1")
@pytest.mark.parametrize("user_agent", PEOPLE)
@pytest.mark.parametrize("target", ["/browsers/", "/anybody/", "/wild/"])
def test_people_pass_whatever_words_of_their_browsers_a_file_names(
    guard: Guard, user_agent: str, target: str
) -> None:
    assert asked(guard, target, user_agent) == "person"


@pytest.mark.requirement("GUARD-1")
def test_people_with_long_fields_pass() -> None:
    """A browser with many additions, and all else that is long."""
    guard = Guard(ORIGIN, FILES)
    long = dict.fromkeys(
        ("cookie", "referer", "accept", "accept-language", "sec-fetch-dest", "x-requested-with"),
        "x, " * 20000,
    )
    user_agent = (
        "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0"
        + "; .NET CLR 2.0.50727; Addition 1" * 2000
        + ")"
    )
    for target in ("/anybody/", "/anybody/" + "x" * 60_000, "/a?" + "y/../" * 12_000):
        checked = guard.check(Incoming("GET", target, long | {"user-agent": user_agent}))
        assert isinstance(checked, Pass)
        assert not checked.is_counted
    assert guard.refused.total() == guard.passed.total() == 0


@given(
    st.lists(
        st.sampled_from(
            ["GoogleOther", "008", "LaxBot", "prefixbot", "Two Words/2", "Mozilla", "x", "(", ";"]
        ),
        max_size=12,
    )
)
def test_never_more_agents_than_names(words: list[str]) -> None:
    agents = Agents(
        {"googleother", "008", "laxbot", "mozilla", "prefix*", "two words/2"}, "X-API-Key"
    )
    asking = agents.asking(" ".join(words))
    assert 1 <= len(asking.agents) <= MAX_NAMED
    assert asking == agents.asking(" ".join(words))
    assert {agent.token for agent in asking.agents} <= {
        "googleother",
        "008",
        "laxbot",
        "mozilla",
        "_",
    }
    assert all(
        own is other
        for own, other in zip(asking.agents, agents.asking(" ".join(words)).agents, strict=True)
    )


def test_words_of_browsers_are_words() -> None:
    assert {word for word in BROWSER_WORDS if words_of(word) != [word]} == set()
