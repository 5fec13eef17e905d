"""Inputs of generated cases: a page, its response, and the policies of its site.

`page_case(seed, number)` returns plain values: texts, numbers, lists and objects of JSON. Octets are
texts in ISO 8859-1. A seed and a number give the same case in every process and on every machine."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.dataset.tagging import page_grammar as grammar

T = TypeVar("T")
Json = dict[str, Any]

MAX_SYMBOLS = 60  # of one text: beyond it each symbol is its first alternative
_SYMBOL = re.compile(r"\{([a-z-]+)\}")


class Draw:
    """Choices by chance, and the texts that are made of them."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # of a text: the same whatever PYTHONHASHSEED is

    def of(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def number(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Up to `most` of the options, each once, in their order."""
        chosen = {self.number(0, len(options) - 1) for _ in range(self.number(0, most))}
        return [options[number] for number in sorted(chosen)]

    def text(self, template: str) -> str:
        """The template with an alternative for each symbol in it."""
        left = MAX_SYMBOLS

        def chosen(match: re.Match[str]) -> str:
            nonlocal left
            alternatives = grammar.SYMBOLS.get(match[1])
            if alternatives is None:
                return match[0]
            left -= 1
            return _SYMBOL.sub(chosen, self.of(alternatives) if left > 0 else alternatives[0])

        return _SYMBOL.sub(chosen, template)

    def line(self, templates: Sequence[str]) -> str:
        return self.text(self.of(templates) + "{eol}")

    def lines(self, templates: Sequence[str], low: int, high: int) -> str:
        return "".join(self.line(templates) for _ in range(self.number(low, high)))


def octets(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


# Policy files


def _robots(draw: Draw) -> str:
    parts = []
    if draw.chance(0.06):
        parts.append(draw.lines((*grammar.RULES, *grammar.EXTENSIONS), 1, 2))  # in no group
    for _ in range(draw.number(0, 3)):
        parts += [draw.text("User-agent: {agent}\n") for _ in range(draw.of((1, 1, 1, 2)))]
        if draw.chance(0.05):
            parts.append("Crawl-delay: 1\nUser-agent: otherbot\n")
        above = draw.chance(0.5)
        extensions = draw.lines(grammar.EXTENSIONS, 0, 3)
        rules = draw.lines(grammar.RULES[:-1] if draw.chance(0.8) else grammar.RULES, 0, 4)
        parts += [extensions, rules] if above else [rules, extensions]
        if draw.chance(0.25):
            parts.append(draw.lines(grammar.ODD_LINES, 1, 2))
    if draw.chance(0.25):
        parts.insert(draw.of((0, len(parts))), _acap(draw))
    return "".join(parts) + _much(draw)


def _much(draw: Draw) -> str:
    """Now and then more than is read of something."""
    if not draw.chance(0.02):
        return ""
    return draw.of(
        (
            "User-agent: *\nDisallow: /" + "a" * 33_000 + "\n",
            "User-agent: *\nAllow: /" + "a" * 33_000 + "\n",
            "User-agent: *\n" + "Crawl-delay: 1\n" * 1001,
            "Sitemap: /a\n" * 1001,
            "User-agent: *\nUsage: " + ", ".join(f"a{number}=n" for number in range(101)) + "\n",
            "User-agent: *\nUsage: " + "a" * 1100 + "=n\n",
            "User-agent: *\nContent-Usage: ai-train=" + "n" * 33_000 + "\n",
            "Foo bar\n" + "User-agent: b c\n" * 120,
            "ACAP-crawler: *\nACAP-allow-index: /" + "a" * 33_000 + "\n",
            "ACAP-crawler: *\n" + "ACAP-allow-frobnicate: /\n" * 101,
        )
    )


def _acap(draw: Draw) -> str:
    parts = ["##ACAP version=1.0\n"] if draw.chance(0.8) else []
    parts.append(draw.lines(grammar.ACAP_DEFINITIONS, 0, 3))
    for _ in range(draw.number(1, 2)):
        if draw.chance(0.95):
            parts.append(draw.text("ACAP-crawler: {agent}\n"))
        if draw.chance(0.2):
            parts.append(draw.text("ACAP-usage-purpose: {acap-purpose}\n"))
        parts.append(draw.lines(grammar.ACAP_FIELDS, 1, 4))
        if draw.chance(0.15):
            parts.append(draw.lines(grammar.ACAP_ODD, 1, 2))
    if draw.chance(0.15):
        parts.append(
            draw.text("ACAP-crawler: {agent}\nACAP-permissions-reference: {acap-locator}\n")
        )
    return "".join(parts)


def _automation(draw: Draw) -> str:
    parts = []
    for _ in range(draw.number(1, 3)):
        parts += [draw.line(grammar.AUTOMATION_SCOPES) for _ in range(draw.of((1, 1, 1, 2, 0)))]
        if draw.chance(0.4):
            parts.append(draw.line(grammar.AUTOMATION_NARROWING))
        if draw.chance(0.7):
            parts.append("allowed-methods: GET, HEAD, POST\n")
        if draw.chance(0.12):
            parts.append(
                draw.of(
                    ("concurrent-limit: 1\n", "allow-xhr: true\ndisallow-fetch-from: /private/\n")
                )
            )
        parts.append(draw.lines(grammar.AUTOMATION_LINES, 1, 4))
        if draw.chance(0.12):
            parts.append(draw.lines(grammar.AUTOMATION_ODD, 1, 2))
        parts.append("\n")
    if draw.chance(0.02):
        much = (
            "\nscope: /a\nrequest-limit: 1/second\n" * 1001,
            "request-limit: 1/second\n" * 17,
            "allowed-purposes: " + ", ".join(f"p{n}" for n in range(201)) + "\n",
        )
        parts.append("scope: /\n" + draw.of(much))
    return "".join(parts)


def _ai_txt(draw: Draw) -> str:
    if draw.chance(0.3):
        return draw.lines(grammar.SPAWNING, 1, 6)
    parts = []
    for _ in range(draw.number(1, 2)):
        parts.append(
            draw.text("User-agent: {agent}\n" if draw.chance(0.9) else "User-agent: {odd-agent}\n")
        )
        for _ in range(draw.of((1, 1, 1, 2))):
            file_type = draw.text("{file-type}") if draw.chance(0.6) else "html"
            parts.append(draw.text("  Path: {path} ").rstrip() + f" {file_type}".rstrip() + "\n")
            for _ in range(draw.of((1, 1, 2, 3))):
                symbol = "{dotted}" if file_type in ("json", "xml") else "{selector}"
                parts.append(draw.text(f"    Element: {symbol}\n"))
                parts += [
                    draw.text("      Disallow: {action}\n") for _ in range(draw.of((0, 1, 1, 2)))
                ]
                if draw.chance(0.4):
                    parts.append(
                        draw.text(
                            "      Guide: {action}\n        Lang: {lang}\n        Guideline: {guideline}\n"
                        )
                    )
        if draw.chance(0.15):
            parts.append(draw.line(grammar.AI_ODD))
    if draw.chance(0.1):
        parts.append(draw.lines(grammar.SPAWNING, 1, 2))
    if draw.chance(0.005):
        parts.append(
            "User-agent: *\n  Path: /"
            + "a" * 9000
            + " html\n    Element: p\n      Disallow: Train\n"
        )
    return "".join(parts)


def _tdmrep(draw: Draw) -> str:
    rules = ", ".join(draw.text(draw.of(grammar.TDMREP)) for _ in range(draw.number(0, 4)))
    return f"[{rules}]" if draw.chance(0.95) else f"[{rules}"


def _license(draw: Draw) -> str:
    many = (
        '<content url="/a"><license><permits type="usage">search</permits></license></content>'
        * 1001
    )
    return (
        draw.text("{rsl}")
        if draw.chance(0.99)
        else f'<rsl xmlns="https://rslstandard.org/rsl">{many}</rsl>'
    )


FILES: dict[
    str, tuple[float, Callable[[Draw], str], str]
] = {  # path -> share of sites that have it, what makes it, media type
    "/robots.txt": (0.88, _robots, "text/plain"),
    "/automation-preferences.txt": (0.35, _automation, "text/plain"),
    "/ai.txt": (0.4, _ai_txt, "text/plain"),
    "/.well-known/tdmrep.json": (0.25, _tdmrep, "application/json"),
    "/license.xml": (0.4, _license, "application/rsl+xml"),
    "/more.txt": (0.4, _acap, "text/plain"),
}


def fetched(draw: Draw, body: str, media_type: str) -> Json:
    """What came back for a policy file: most often the file."""
    made: Json = {"status": 200, "headers": [["Content-Type", media_type]], "body": octets(body)}
    if draw.chance(0.9):
        if draw.chance(0.3):
            made["fetched_at"] = "2026-11-20T08:00:00+00:00"
        return made
    match draw.number(0, 9):
        case 0 | 1:
            return made | {"status": draw.of((401, 403, 404, 410, 429)), "body": ""}
        case 2 | 3:
            return made | {"status": draw.of((500, 503)), "body": ""}
        case 4:
            return {"status": 0, "error": "connection refused"}
        case 5:
            return made | {
                "headers": [["Content-Type", "text/html"]],
                "body": "<!doctype html><html><p>Not found</p></html>",
            }
        case 6:
            return made | {"oversized": True}
        case 7:
            return made | {"status": draw.of((301, 304, 204)), "body": ""}
        case 8:
            since = {
                "unreachable_since": "2026-11-20T00:00:00+00:00",
                "fetched_at": "2026-11-19T00:00:00+00:00",
            }
            return made | since
    return made | {
        "url": f"https://www.{grammar.HOST}/moved",
        "body": "\xef\xbb\xbf" + made["body"],
    }


def files(draw: Draw) -> Json:
    """Path -> what came back."""
    made = {}
    for path, (share, make, media_type) in FILES.items():
        if draw.chance(share):
            made[path] = fetched(
                draw, make(draw), media_type if draw.chance(0.97) else "application/octet-stream"
            )
    return made


# Who asks, and for what

VOCABULARY = """
[vocabulary.own.terms]
everything = {}
"[robots-meta]" = {}
[[relation]]
uses = ["cite"]
terms = ["robots-meta:noai"]
kind = "touches"
[[relation]]
uses = ["index"]
terms = ["aipref:search"]
kind = "within"
"""


def agent(draw: Draw) -> Json:
    token = draw.of(grammar.AGENTS if draw.chance(0.4) else grammar.AGENTS[:1])
    made: Json = {"token": token, "uses": draw.some(grammar.USES, 4)}
    if draw.chance(0.5):
        made["user_agent"] = draw.of(
            (f"{token}/1.0 (+https://example.org/bot)", "Mozilla/5.0 (compatible; ExampleBot/2.1)")
        )
    if draw.chance(0.5):
        made["purposes"] = draw.some(("news", "archiving", "search", "x"), 2)
    if draw.chance(0.6):
        made["defaults"] = {
            use: draw.of(("allow", "allow", "deny")) for use in draw.some(grammar.USES, 5)
        }
    if draw.chance(0.4):
        made["arrangements"] = [_arrangement(draw) for _ in range(draw.number(1, 2))]
    if draw.chance(0.15):
        made["content_usage"] = draw.of((["usage"], ["aipref"], []))
    if draw.chance(0.1):
        made["key_header"] = "X-Key"
    if draw.chance(0.1):
        made["automation_required"] = True
    if draw.chance(0.08):
        made["vocabulary"] = VOCABULARY
    return made


def _arrangement(draw: Draw) -> Json:
    return {
        "host": draw.of(("example.com", "example.com", "*.example.com", "other.example")),
        "features": draw.some(
            ("must-use-resource", "must-include-resource", "take-down", "re-crawl"), 3
        ),
        "uses": draw.some(grammar.USES, 2) if draw.chance(0.4) else [],
        "reference": draw.of(("", "contract 7")),
    }


def url(draw: Draw) -> str:
    return draw.of((grammar.ORIGIN,) * 9 + ("https://EXAMPLE.com:443",)) + draw.of(grammar.PATHS)


MOMENTS = (
    "2026-11-22T12:00:00+00:00",
    "2026-11-22T12:00:00+00:00",
    "2026-11-22T03:30:00+00:00",
    "2030-01-01T23:00:00+00:00",
)


# Pages and items

TYPES = ("text/html; charset=utf-8",) * 8 + (
    "application/json",
    "text/xml",
    "image/gif",
    "text/plain",
    "",
    "application/pdf",
)


MUCH_IN_A_FIELD = (
    ["X-Robots-Tag", "noodp, " * 2400 + "noindex"],
    ["Usage-Pref", "ai=n, " * 1500],
    ["Content-Usage", "train-ai=n, " * 3000],
    ["Content-Signal", "ai-train=no, " * 200],
)


def response(draw: Draw) -> Json:
    media_type = draw.of(TYPES)
    headers = [["Content-Type", media_type]] if media_type else []
    for name, template in draw.some(grammar.FIELDS, 3):
        headers.append([name, octets(draw.text(template).replace("\n", " "))])
    if draw.chance(0.012):
        headers.append(draw.of(MUCH_IN_A_FIELD))
    made: Json = {"status": draw.of((200, 200, 200, 200, 404, 503)), "headers": headers}
    if draw.chance(0.06):
        return made | {"body": None}
    if "html" in media_type or not media_type:
        head, body = (
            draw.some(grammar.HEAD, 3),
            [draw.of(grammar.BODY) for _ in range(draw.number(1, 6))],
        )
        text = f"<html><head>{''.join(head)}</head><body>{''.join(body)}</body></html>"
    else:
        text = draw.of(grammar.JSON_BODIES if "json" in media_type else grammar.XML_BODIES)
    made["body"] = octets(draw.text(text))
    if draw.chance(0.05):
        made["is_read"] = False
    return made


TEXTS = (
    "The quick brown fox",
    "jumps over the lazy dog.",
    "The quick brown fox jumps over the lazy dog. one two three four five six seven eight nine ten",
    "one two three four five six seven eight nine ten",
    "Ann",
    "",
    "what no page has",
    "<p>The quick brown fox</p>",
)


def item(draw: Draw) -> Json:
    values: tuple[Any, ...] = (
        *TEXTS,
        [*TEXTS[:2]],
        {"people": {"name": "Ann"}},
        7,
        None,
        f"{grammar.ORIGIN}/x.gif",
    )
    names = ("title", "text", "people", "name", "links", "image_urls", "é")
    return {
        "fields": {name: draw.of(values) for name in draw.some(names, 4)},
        "declared": dict(
            draw.some(
                (("text", ".quote"), ("title", "h1"), ("name", "people.name"), ("text", "#a")), 2
            )
        ),
    }


# Kinds of cases


def _rules_for(draw: Draw, media_type: str) -> str:
    """An ai.txt about every document of this type, whose elements most pages of ours have."""
    kind = next((kind for kind in ("json", "xml", "html") if kind in media_type), "")
    names = grammar.PLAIN_NAMES if kind in ("json", "xml") else grammar.PLAIN_SELECTORS
    blocks = (
        draw.text(f"    Element: {draw.of(names)}\n      Disallow: {{action}}\n")
        + (
            draw.text(
                "      Guide: {action}\n        Lang: {lang}\n        Guideline: {guideline}\n"
            )
            if draw.chance(0.3)
            else ""
        )
        for _ in range(draw.number(1, 3))
    )
    return f"User-agent: *\n  Path: / {kind}\n{''.join(blocks)}"


def _page(draw: Draw) -> Json:
    resources = {
        path: fetched(draw, made, "text/plain")
        for path, made in (("/license.xml", draw.text("{rsl}")), ("/credit.txt", "By Ann"))
        if draw.chance(0.6)
    }
    made_files, came = files(draw), response(draw)
    if draw.chance(0.3):
        rules = _rules_for(draw, came["headers"][0][1] if came["headers"] else "html")
        made_files["/ai.txt"] = {
            "status": 200,
            "headers": [["Content-Type", "text/plain"]],
            "body": octets(rules),
        }
    return {
        "files": made_files,
        "agent": agent(draw),
        "url": url(draw),
        "now": draw.of(MOMENTS),
        "response": came,
        "resources": resources,
        "first_seen": {
            use: draw.of(("2026-11-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"))
            for use in draw.some(grammar.USES, 3)
        },
        "item": item(draw),
        "uses": draw.some(grammar.USES, 2),
        "actions": [
            draw.of(("Summarize", "train", "Cite", "index", "clip", "translate")),
            draw.of(("", "en", "de-CH")),
        ],
        "other_url": url(draw) if draw.chance(0.25) else None,
    }


# Datasets


def page_case(seed: int, number: int) -> Json:
    """Return a case."""
    return _page(Draw(f"{seed}:{number}"))
