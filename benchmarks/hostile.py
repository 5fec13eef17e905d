"""Hostile input: the CPU time of each public step on inputs of growing size, up to the limits of size.

    python benchmarks/hostile.py             what there is time for in two minutes, of all entries; first steps first
    python benchmarks/hostile.py --full      all cases, however long that takes
    python benchmarks/hostile.py WORD ...    only the cases with one of the words in their name

Each case is measured at its limit, and, where that takes long enough to see how it grows, at half and at a quarter of it: a step
that is linear doubles from one to the next. What takes more than MOST at the limit, or grows by more than GROWTH, is marked.
tests/test_hostile.py counts the calls of the same cases."""

from __future__ import annotations

import argparse
import base64
import gc
import io
import itertools
import random
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, process_time
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rich.console import Console
from rich.progress import track
from rich.table import Table

from comity.authoring import lint
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.terms import Terms
from comity.dataset.stats import StatsPass
from comity.dataset.verify.recheck import recheck
from comity.dataset.verify.today import Today
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import PolicyStore
from comity.guard import Guard, Proofs
from comity.guard.incoming import Incoming
from comity.policies import (
    Agent,
    Fetched,
    Page,
    PolicyError,
    Site,
    ai_txt_from_xml,
    ai_txt_to_xml,
    instructions,
)
from comity.policies.formats.authoring import apply
from comity.policies.vocabulary.table import Vocabulary
from comity.signatures.message import KeyAnswer
from comity.signatures.signer import Signer

FILE = 512 * 1024  # octets of a policy file
FIELDS = 64 * 1024  # octets of one header field: more than Scrapy's clients take
PAGE = 1024 * 1024  # octets of a page: there is no limit but Scrapy's
URL = 64 * 1024  # octets of a URL
TAG = 1024 * 1024  # octets of the tag of a record, as JSON

MOST = 0.5  # seconds
GROWTH = 2.2
NOISE = 0.05  # seconds: how what takes less grows cannot be measured

ORIGIN = "https://example.com"
HTML = (b"Content-Type", b"text/html; charset=utf-8")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
AGENT = Agent(
    "examplebot",
    user_agent="examplebot/1.0 (+https://example.org/bot)",
    purposes=("news",),
    uses=("train", "index", "present-snippet"),
)

Step = Callable[[], object]
Files = Mapping[str, bytes]


class Case(NamedTuple):
    """One step on one shape of input."""

    name: str
    limit: int  # octets of the input
    prepare: Callable[[int], Step]  # from octets; what it does itself is not measured


def repeated(unit: bytes, octets: int, start: bytes = b"", end: bytes = b"") -> bytes:
    return start + unit * ((octets - len(start) - len(end)) // len(unit)) + end


def numbered(unit: str, octets: int, start: str = "", end: str = "") -> bytes:
    """Each unit with a number of its own for its {}."""
    length = max(1, (octets - len(start) - len(end)) // (len(unit) + 4))
    return (
        start + "".join(unit.replace("{}", str(number)) for number in range(length)) + end
    ).encode()[:octets]


# Policy files

ACAP = "ACAP-crawler: *\n"
USAGES = (
    "crawl",
    "follow",
    "index",
    "preserve",
    "present",
    "other",
    "present-snippet",
    "present-original",
)

ROBOTS: dict[str, Callable[[int], bytes]] = {
    "one line": lambda n: repeated(b"a", n, b"User-agent: *\nDisallow: /"),
    "one line of stars": lambda n: repeated(b"*a", n, b"User-agent: *\nDisallow: /"),
    "markup, tags": lambda n: repeated(b"<p>User-agent: *<br>Disallow: /a<br>", n, b"<html>"),
    "markup, references": lambda n: repeated(
        b"&amp;&#x41;&", n, b"<pre>User-agent: *\nDisallow: /"
    ),
    "markup, unclosed": lambda n: repeated(b"<a <!--", n, b"<html>\nUser-agent: *\n"),
    "markup, comments": lambda n: repeated(b"<!-- -->", n, b"", b"<p>User-agent: *"),
    "markup, open comments": lambda n: repeated(b"<!--", n),
    "markup without records": lambda n: repeated(b"<p>agent ", n, b"<html>"),
    "broken lines": lambda n: repeated(b"Disallow: /a<br\n", n, b"User-agent: *\n"),
    "stars": lambda n: numbered("Disallow: /*a*a*a*a*{}$\n", n, "User-agent: *\n"),
    "wildcards": lambda n: numbered("Disallow: *{}/a\n", n, "User-agent: *\n"),
    "deep prefixes": lambda n: (
        b"User-agent: *\n"
        + b"".join(b"Disallow: /%s\n" % (b"a" * k) for k in range(int((2 * n) ** 0.5)))
    ),
    "deep prefixes, stars": lambda n: (
        b"User-agent: *\n"
        + b"".join(b"Disallow: /%s*b\n" % (b"a" * k) for k in range(int((2 * n) ** 0.5)))
    ),
    "same rule": lambda n: repeated(b"Disallow: /a\n", n, b"User-agent: *\n"),
    "empty lines": lambda n: repeated(b"\n", n),
    "carriage returns": lambda n: repeated(b"\r", n),
    "unknown lines": lambda n: repeated(b"x:y\n", n),
    "colons": lambda n: repeated(b":", n),
    "comments": lambda n: repeated(b"#\n", n, b"User-agent: *\nDisallow: /a\n"),
    "spaces": lambda n: repeated(b" ", n, b"User-agent: *\nDisallow:"),
    "escapes": lambda n: repeated(b"%2a%41\xff", n, b"User-agent: *\nDisallow: /"),
    "utf-16": lambda n: (
        b"\xff\xfe" + "User-agent: *\nDisallow: /a\n".encode("utf-16-le") * (n // 60)
    ),
    "agents": lambda n: numbered("User-agent: bot{}\n", n, "", "Disallow: /a\n"),
    "agents of ours": lambda n: repeated(b"User-agent: examplebot\n", n, b"", b"Disallow: /a\n"),
    "groups": lambda n: numbered("User-agent: bot{}\nDisallow: /{}\n", n),
    "groups of ours": lambda n: numbered("User-agent: examplebot\nDisallow: /{}\n", n),
    "groups and sitemaps": lambda n: numbered(
        "User-agent: examplebot\nSitemap: /{}\nAllow: /\n", n
    ),
    "sitemaps": lambda n: numbered("Sitemap: https://example.com/{}\n", n),
    "crawl-delays": lambda n: repeated(b"Crawl-delay: 1\n", n, b"User-agent: *\n"),
    "request-rates": lambda n: numbered("Request-rate: {}/1m\n", n, "User-agent: *\n"),
    "visit-times": lambda n: repeated(b"Visit-time: 0100-0200\n", n, b"User-agent: *\n"),
    "usage lines": lambda n: numbered("usage: l{}=n\n", n, "User-agent: *\n"),
    "usage in one line": lambda n: numbered("l{}=n,", n, "User-agent: *\nusage: "),
    "content-usage lines": lambda n: numbered("content-usage: /{} l{}=n\n", n, "User-agent: *\n"),
    "content-usage stars": lambda n: numbered(
        "content-usage: /*{} train-ai=n\n", n, "User-agent: *\n"
    ),
    "content-usage in one line": lambda n: numbered(
        "l{}=n,", n, "User-agent: *\ncontent-usage: ", "z=n"
    ),
    "content-usage in groups": lambda n: numbered(
        "User-agent: b{}\ncontent-usage: train-ai=n\nAllow: /\n", n
    ),
    "content-signal lines": lambda n: repeated(
        b"content-signal: ai-train=no\n", n, b"User-agent: *\n"
    ),
    "content-signal in one line": lambda n: numbered(
        "l{}=no,", n, "User-agent: *\ncontent-signal: "
    ),
    "content-signal in groups": lambda n: numbered(
        "User-agent: b{}\ncontent-signal: search=yes\nAllow: /\n", n
    ),
    "content-signal paths": lambda n: numbered(
        "content-signal: /{}*a ai-train=no\n", n, "User-agent: *\n"
    ),
    "training rules": lambda n: numbered("DisallowAITraining: /{}*a\n", n, "User-agent: *\n"),
    "training rules in groups": lambda n: numbered(
        "User-agent: b{}\nAllowAITraining: /a\nAllow: /\n", n
    ),
    "clean-param of one name": lambda n: numbered("Clean-param: a /{}\n", n),
    "clean-param of all names": lambda n: numbered("Clean-param: a{}\n", n),
    "clean-param stars": lambda n: numbered("Clean-param: a&b&c /*a*{}\n", n),
    "clean-param ampersands": lambda n: repeated(b"Clean-param: &\n", n),
    "licenses": lambda n: numbered("License: https://example.com/{}.xml\n", n),
    "licenses and comments": lambda n: repeated(
        b"#\nLicense: /a.xml\n", n, b"User-agent: *\nAllow: /\n\n"
    ),
    "licenses of others": lambda n: repeated(
        b"License:/a\n", n, b"User-agent: other\nDisallow: /x\n"
    ),
    "acap fields": lambda n: numbered("ACAP-disallow-index: /{}\n", n, ACAP),
    "acap stars": lambda n: numbered("ACAP-disallow-index: *{}\n", n, ACAP),
    "acap deep": lambda n: (
        ACAP.encode()
        + b"".join(b"ACAP-allow-index: /%s\n" % (b"a" * k) for k in range(int((2 * n) ** 0.5)))
    ),
    "acap usages": lambda n: numbered(
        "".join(f"ACAP-allow-{usage}: /{{}}\n" for usage in USAGES), n, ACAP
    ),
    "acap equal": lambda n: repeated(
        b"ACAP-allow-index: /a\nACAP-disallow-index: /a\n", n, ACAP.encode()
    ),
    "acap time limits": lambda n: numbered("ACAP-allow-index: / time-limit={}-days\n", n, ACAP),
    "acap crawlers": lambda n: numbered("ACAP-crawler: bot{}\n", n, "", "ACAP-disallow-index: /\n"),
    "acap records": lambda n: numbered("ACAP-crawler: bot{}\nACAP-disallow-index: /{}\n", n),
    "acap records of ours": lambda n: numbered(
        "ACAP-crawler: examplebot\nACAP-disallow-index: /{}\n", n
    ),
    "acap one crawler": lambda n: repeated(
        b"b ", n, b"ACAP-crawler: ", b"\nACAP-disallow-index: /\n"
    ),
    "acap purposes": lambda n: numbered(
        "ACAP-usage-purpose: p{}*\nACAP-disallow-index: /{}\n", n, ACAP
    ),
    "acap purpose of stars": lambda n: repeated(
        b"*e", n, ACAP.encode() + b"ACAP-usage-purpose: ", b"\nACAP-disallow-index: /\n"
    ),
    "acap qualifiers": lambda n: repeated(
        b" prohibited-modification=style", n, ACAP.encode() + b"ACAP-allow-present: /"
    ),
    "acap resources": lambda n: numbered(
        " must-include-resource=/{}", n, ACAP + "ACAP-allow-present: /"
    ),
    "acap resource lines": lambda n: numbered(
        "ACAP-allow-present: /a{} must-use-resource=/{}\n", n, ACAP
    ),
    "acap sets": lambda n: numbered(
        "ACAP-resource-set: s{} /a /b /c\n", n, "", ACAP + "ACAP-disallow-index: /\n"
    ),
    "acap set of many": lambda n: numbered(" /{}", n, "ACAP-resource-set: s", f"\n{ACAP}"),
    "acap sets in use": lambda n: (
        numbered(" /{}", n // 2, "ACAP-resource-set: s")
        + b"\n"
        + repeated(b"ACAP-disallow-index: the-acap:resource-set:s\n", n // 2, ACAP.encode())
    ),
    "acap composites": lambda n: numbered(
        "ACAP-composite-usage: c{} index present follow\n", n, "", ACAP
    ),
    "acap composites in use": lambda n: (
        repeated(b" index", n // 2, b"ACAP-composite-usage: c")
        + b"\n"
        + repeated(b"ACAP-allow-(c): /\n", n // 2, ACAP.encode())
    ),
    "acap requests": lambda n: numbered("ACAP-request-take-down: /{}\n", n, ACAP),
    "acap references": lambda n: numbered(
        "ACAP-crawler: *\nACAP-permissions-reference: /{}.txt\n", n
    ),
}
AUTOMATION: dict[str, Callable[[int], bytes]] = {
    "scopes": lambda n: numbered("scope: /{}\nallowed-methods: GET\n", n),
    "scopes of one group": lambda n: numbered("scope: /{}\n", n, "", "allowed-methods: GET\n"),
    "scopes of stars": lambda n: numbered("scope: /*a*a*{}\nallowed-methods: GET\n", n),
    "one scope": lambda n: repeated(b"*a", n, b"scope: /", b"\nallowed-methods: GET\n"),
    "hosts": lambda n: numbered("scope: /\nhost: *.h{}.example.com\nallowed-methods: GET\n", n),
    "one host": lambda n: repeated(b"*.", n, b"scope: /\nhost: ", b"com\nallowed-methods: GET\n"),
    "labels": lambda n: repeated(
        "ü.".encode(), n, b"scope: /\nhost: ", b"com\nallowed-methods: GET\n"
    ),
    "agents": lambda n: numbered("b{},", n, "scope: /\nuser-agent: ", "\nallowed-methods: GET\n"),
    "agent lines": lambda n: numbered(
        "user-agent: b{}\n", n, "scope: /\n", "allowed-methods: GET\n"
    ),
    "purposes": lambda n: numbered("p{},", n, "scope: /\nallowed-methods: GET\nallowed-purposes: "),
    "purpose lines": lambda n: numbered(
        "allowed-purposes: p{}, news\n", n, "scope: /\nallowed-methods: GET\n"
    ),
    "methods": lambda n: repeated(b"GET,", n, b"scope: /\nallowed-methods: "),
    "automations": lambda n: numbered(
        "a{},", n, "scope: /\nallowed-methods: GET\nallowed-automations: "
    ),
    "fetch-from": lambda n: numbered(
        "*{},", n, "scope: /\nallowed-methods: GET\nallow-xhr: open\ndisallow-fetch-from: "
    ),
    "commas": lambda n: repeated(b",", n, b"scope: /\nallowed-methods: GET\nallowed-purposes: "),
    "limits": lambda n: repeated(
        b"request-limit: 1/second\n", n, b"scope: /\nallowed-methods: GET\n"
    ),
    "digits": lambda n: repeated(
        b"9", n, b"scope: /\nallowed-methods: GET\nrequest-limit: ", b"/second\n"
    ),
    "unknown": lambda n: numbered("x{}: y\n", n, "scope: /\nallowed-methods: GET\n"),
    "empty lines": lambda n: repeated(b"\n", n),
    "groups of one scope": lambda n: repeated(b"scope: /\nallowed-methods: GET\n\n", n),
}
AI_TXT: dict[str, Callable[[int], bytes]] = {
    "paths": lambda n: numbered(
        "  Path: /{} html\n    Element: p\n      Disallow: Train\n", n, "User-agent: *\n"
    ),
    "elements": lambda n: numbered(
        "    Element: p{}\n      Disallow: Train\n", n, "User-agent: *\n  Path: / html\n"
    ),
    "names of json": lambda n: numbered(
        "    Element: a.b{}\n      Disallow: Train\n", n, "User-agent: *\n  Path: / json\n"
    ),
    "lines of one element": lambda n: repeated(
        b"      Disallow: Train\n", n, b"User-agent: *\n  Path: / html\n    Element: p\n"
    ),
    "actions": lambda n: numbered(
        " A{}", n, "User-agent: *\n  Path: / html\n    Element: p\n      Disallow:"
    ),
    "lines of the document": lambda n: repeated(
        b"      Disallow: *\n", n, b"User-agent: *\n  Path: / html\n    Element: *\n"
    ),
    "actions of the document": lambda n: numbered(
        "      Disallow: a{}\n", n, "User-agent: *\n  Path: / html\n    Element: *\n"
    ),
    "guidelines": lambda n: numbered(
        "        Lang: en\n        Guideline: g{}\n",
        n,
        "User-agent: *\n  Path: / html\n    Element: p\n      Guide: Train\n",
    ),
    "guides": lambda n: numbered(
        "      Guide: Train\n        Lang: en\n        Guideline: g{}\n",
        n,
        "User-agent: *\n  Path: / html\n    Element: p\n",
    ),
    "agents": lambda n: numbered(
        " b{}", n, "User-agent:", "\n  Path: / html\n    Element: p\n      Disallow: Train\n"
    ),
    "agent lines": lambda n: numbered(
        "User-agent: b{}\n  Path: / html\n    Element: p\n      Disallow: Train\n", n
    ),
    "lines of one agent block": lambda n: (
        numbered("User-agent: b{}\n", n // 50)
        + repeated(
            b"User-agent: a\n",
            n - n // 50,
            b"",
            b"  Path: / html\n    Element: p\n      Disallow: Train\n",
        )
    ),
    "paths that share elements": lambda n: (
        numbered("  Path: /{} html\n", n // 2, "User-agent: *\n")
        + repeated(b"    Element: p\n      Disallow: Train\n", n // 2)
    ),
    "one selector": lambda n: repeated(
        b"p ~ ", n, b"User-agent: *\n  Path: / html\n    Element: ", b"p\n      Disallow: *\n"
    ),
    "indentation": lambda n: repeated(b" ", n, b"User-agent: *\n"),
    "spawning": lambda n: numbered("Disallow: *.e{}\n", n, "User-Agent: *\n"),
    "spawning paths": lambda n: numbered("Disallow: /{}\nAllow: /{}/a\n", n, "User-Agent: *\n"),
    "prose": lambda n: repeated(b"Please be kind. ", n),
}
TRUST_TXT: dict[str, Callable[[int], bytes]] = {
    "lines about training": lambda n: repeated(b"datatrainingallowed=no\n", n),
    "permissions": lambda n: repeated(b"datatrainingallowed=yes\n", n),
    "spaces in a name": lambda n: repeated(b" ", n, b"data", b"trainingallowed=no"),
    "beginnings of a name": lambda n: repeated(b"data-training\n", n),
    "empty lines": lambda n: repeated(b"\n", n, b"", b"datatrainingallowed=yes"),
    "one long value": lambda n: repeated(b"y", n, b"datatrainingallowed="),
}
TDMREP: dict[str, Callable[[int], bytes]] = {
    "rules": lambda n: numbered('{"location":"/{}","tdm-reservation":1},', n, "[", "{}]"),
    "small rules": lambda n: repeated(b'{"location":0},', n, b"["),
    "rules that say nothing": lambda n: numbered(
        '{"location":"/","tdm-reservation":"x{}"},', n, "["
    ),
    "values of one rule": lambda n: numbered(
        "x{},", n, '[{"location":"/","tdm-reservation":"', '"}]'
    ),
    "policies": lambda n: numbered(
        '{"location":"/","tdm-reservation":1,"tdm-policy":"/{}"},', n, "["
    ),
    "one policy": lambda n: repeated(
        b"a", n, b'[{"location":"/","tdm-reservation":1,"tdm-policy":"/', b'"}]'
    ),
    "one location": lambda n: repeated(b"*a", n, b'[{"location":"/', b'","tdm-reservation":1}]'),
    "stars": lambda n: numbered('{"location":"/*{}","tdm-reservation":1},', n, "["),
    "what is no rule": lambda n: repeated(b"0,", n, b"["),
    "commas": lambda n: repeated(b",", n, b"["),
    "deep": lambda n: repeated(b"[", n),
    "deep, many": lambda n: repeated(b"[" * 900 + b"]" * 900 + b",", n, b"["),
    "deep objects": lambda n: repeated(b'{"a":', n, b"["),
    "comments": lambda n: repeated(b"//\n", n, b"["),
    "comments in one line": lambda n: repeated(b"/* */", n, b"[", b"]"),
    "open comments": lambda n: repeated(b"/*", n, b"["),
    "texts": lambda n: repeated(b'"//",', n, b"["),
    "commas and spaces": lambda n: repeated(b", ", n, b"[{}", b"]"),
    "no rules that reserve": lambda n: repeated(b'[{"tdm-reservation":1}],\n', n, b"["),
    "reservations behind an error": lambda n: repeated(b"tdm-reservation \n", n, b"[oops "),
    "digits": lambda n: repeated(b"9", n, b'[{"location":"/","tdm-reservation":', b"}]"),
    "names of one rule": lambda n: numbered(
        '"a{}":1,', n, '[{"location":"/","tdm-reservation":1,', '"a":1}]'
    ),
    "one name": lambda n: repeated(
        b'"tdm-reservation":1,', n, b'[{"location":"/",', b'"tdm-reservation":0}]'
    ),
    "one name of texts": lambda n: numbered(
        '"tdm-reservation":"{}",', n, '[{"location":"/",', '"tdm-reservation":0}]'
    ),
    "escapes": lambda n: repeated(b"\\u0061", n, b'[{"location":"/', b'","tdm-reservation":1}]'),
    "spaces": lambda n: repeated(b" ", n, b"["),
    "lines": lambda n: repeated(b"\n0,", n, b"["),
}
RSL = '<rsl xmlns="https://rslstandard.org/rsl">'
CONTENT = '<content url="/"><license>'
END = "</license></content></rsl>"
DOCUMENTS: dict[str, Callable[[int], bytes]] = {
    "contents": lambda n: numbered(
        '<content url="/{}"><license><permits type="usage">search</permits></license></content>',
        n,
        RSL,
        "</rsl>",
    ),
    "contents of one url": lambda n: repeated(
        b'<content url="/"><license/></content>', n, RSL.encode(), b"</rsl>"
    ),
    "contents, wildcards": lambda n: numbered(
        '<content url="*{}"><license/></content>', n, RSL, "</rsl>"
    ),
    "licenses": lambda n: repeated(
        b'<license><permits type="usage">all</permits></license>',
        n,
        f'{RSL}<content url="/">'.encode(),
        b"</content></rsl>",
    ),
    "small licenses": lambda n: repeated(
        b"<license/>", n, f'{RSL}<content url="/">'.encode(), b"</content></rsl>"
    ),
    "alternates": lambda n: numbered(
        "<alternate>/{}</alternate>", n, f'{RSL}<content url="/">', "</content></rsl>"
    ),
    "permits": lambda n: repeated(
        b'<permits type="usage">all</permits>', n, (RSL + CONTENT).encode(), END.encode()
    ),
    "types of permits": lambda n: numbered(
        '<permits type="t{}">all</permits>', n, RSL + CONTENT, END
    ),
    "words": lambda n: repeated(
        b"all ", n, f'{RSL}{CONTENT}<permits type="usage">'.encode(), f"</permits>{END}".encode()
    ),
    "words that differ": lambda n: numbered(
        "a{} ", n, f'{RSL}{CONTENT}<prohibits type="usage">', f"</prohibits>{END}"
    ),
    "users": lambda n: numbered(
        "u{} ", n, f'{RSL}{CONTENT}<permits type="user">', f"</permits>{END}"
    ),
    "places": lambda n: numbered('<prohibits type="geo">G{}</prohibits>', n, RSL + CONTENT, END),
    "separators": lambda n: repeated(
        b",", n, f'{RSL}{CONTENT}<permits type="usage">'.encode(), f"</permits>{END}".encode()
    ),
    "elements": lambda n: repeated(b"<a/>", n, (RSL + CONTENT).encode(), END.encode()),
    "attributes": lambda n: numbered(' a{}="1"', n, "<rsl", "/>"),
    "attributes of contents": lambda n: numbered(
        '<content url="/" a="{}"><license/></content>', n, RSL, "</rsl>"
    ),
    "namespaces": lambda n: numbered('<x xmlns="u:{}"/>', n, RSL + CONTENT, END),
    "prefixes": lambda n: numbered(' xmlns:a{}="u"', n, "<rsl", "/>"),
    "one namespace": lambda n: repeated(
        b"<a/>", n, b'<rsl xmlns="' + b"u" * (n // 2) + b'">', b"</rsl>"
    ),
    "deep": lambda n: repeated(b"<a>", n),
    "text": lambda n: repeated(
        b"a", n, f"{RSL}{CONTENT}<permits>".encode(), f"</permits>{END}".encode()
    ),
    "pieces of text": lambda n: repeated(
        b"a&amp;", n, f"{RSL}{CONTENT}<permits>".encode(), f"</permits>{END}".encode()
    ),
    "comments": lambda n: repeated(b"<!---->", n, (RSL + CONTENT).encode(), END.encode()),
    "pieces between comments": lambda n: repeated(
        b"a<!---->",
        n,
        f'{RSL}{CONTENT}<permits type="usage">'.encode(),
        f"</permits>{END}".encode(),
    ),
    "instructions": lambda n: repeated(b"<?a?>", n, (RSL + CONTENT).encode(), END.encode()),
    "entities": lambda n: repeated(b"<!ENTITY a 'a'>", n, b"<!DOCTYPE rsl [", b"]><rsl/>"),
    "one start tag": lambda n: repeated(b" ", n, b"<rsl"),
    "one attribute": lambda n: repeated(b"a", n, b'<rsl a="', b'"/>'),
    "lines": lambda n: repeated(b"\n", n, (RSL + CONTENT).encode(), END.encode()),
    "url of stars": lambda n: repeated(
        b"*a", n, f'{RSL}<content url="/'.encode(), b'"><license/></content></rsl>'
    ),
}
# What authors get wrong, again and again: kind of `comity lint` -> shapes.
FAULTS: dict[str, dict[str, Callable[[int], bytes]]] = {
    "robots.txt": {
        "misspelled": lambda n: numbered("Dissallow: /{}\n", n, "User-agent: *\n"),
        "no colons": lambda n: numbered("Disallow /{}\n", n, "User-agent: *\n"),
        "versions": lambda n: numbered("User-agent: bot{}/1.0\n", n, "", "Disallow: /\n"),
        "stars at the end": lambda n: numbered("Disallow: /{}*\n", n, "User-agent: *\n"),
        "unknown names": lambda n: numbered("x{}: y\n", n),
        "odd paths": lambda n: numbered('Disallow: "/{} b"\n', n, "User-agent: *\n"),
        "one odd path": lambda n: repeated(b"\xc2\xa0", n, b"User-agent: *\nDisallow: /"),
        "signals": lambda n: numbered("Content-Signals: ai_train{}=no\n", n, "User-agent: *\n"),
        "acap without colons": lambda n: numbered("ACAP-disallow-index /{}\n", n, ACAP),
    },
    "automation-preferences.txt": {
        "markup": lambda n: numbered("<!-- {} -->\n", n, "scope: /\nallowed-methods: GET\n"),
        "markup behind values": lambda n: numbered(
            "scope: /{} <!-- a -->\n", n, "", "allowed-methods: GET\n"
        ),
        "no colons": lambda n: numbered("scope /{}\n", n, "", "allowed-methods: GET\n"),
        "repeated": lambda n: repeated(b"scope: /a\nallow-xhr: open\nallow-xhr: open\n\n", n),
        "repeated in one block": lambda n: repeated(b"allow-xhr: open\n", n, b"scope: /\n"),
        "limits": lambda n: numbered(
            "request-limit: 1{}/second\n", n, "scope: /\nallowed-methods: GET\n"
        ),
        "braces": lambda n: repeated(b"{a,b}", n, b"scope: /"),
    },
    "ai.txt": {
        "indentation": lambda n: numbered(
            "User-agent: a{}\nPath: / html\nElement: p\nDisallow: Train\n", n
        ),
        "comments": lambda n: numbered(
            "  Path: /{} html # a\n    Element: p\n      Disallow: Train\n", n, "User-agent: *\n"
        ),
        "wildcards": lambda n: numbered(
            "  Path: /*{} html\n    Element: *\n      Disallow: Train\n", n, "User-agent: *\n"
        ),
        "wildcards of one path": lambda n: numbered(
            "  Path: /*a*{} html\n    Element: *\n      Disallow: Train\n", n, "User-agent: *\n"
        ),
        "repeated agents": lambda n: repeated(
            b" a", n, b"User-agent:", b"\n  Path: /\n    Element: p\n      Disallow: Train\n"
        ),
        "guidelines between": lambda n: numbered(
            "      Disallow: Train\n        Lang: en\n        Guideline: {}\n",
            n,
            "User-agent: *\n  Path: /\n    Element: p\n",
        ),
        "languages": lambda n: numbered(
            "      Guide: Train\n        Lang: en_{}\n",
            n,
            "User-agent: *\n  Path: / html\n    Element: p\n",
        ),
        "selectors": lambda n: numbered(
            "    Element: p:hover{}(\n      Disallow: Train\n", n, "User-agent: *\n  Path: / html\n"
        ),
    },
    "trust.txt": {
        "misspelt names": lambda n: numbered("membre{}=https://a.example/\n", n),
        "prose": lambda n: repeated(b"a\n", n),
    },
    "tdmrep.json": {
        "comments": lambda n: repeated(b"// a\n", n, b"[", b"]"),
        "comments and spaces": lambda n: repeated(b"/* a */    ", n, b"[", b"]"),
        "commas": lambda n: repeated(b", {},", n, b"[", b"]"),
        "texts": lambda n: numbered('{"location":"/{}","tdm-reservation":"1"},\n', n, "[", "{}]"),
        "texts in one line": lambda n: numbered(
            '{"location":"/{}","tdm-reservation":"1"},', n, "[", "{}]"
        ),
        "unknown members": lambda n: numbered('"reservatoin{}":1,', n, "[{", '"a":1}]'),
        "wildcards": lambda n: numbered('{"location":"/*{}","tdm-reservation":1},', n, "[", "{}]"),
        "wildcards of one path": lambda n: numbered(
            '{"location":"/*a*{}","tdm-reservation":1},', n, "[", "{}]"
        ),
    },
    "rsl.xml": {
        "unknown words": lambda n: numbered(
            "serch{} ", n, f'{RSL}{CONTENT}<permits type="usage">', f"</permits>{END}"
        ),
        "other hosts": lambda n: numbered('<content url="https://a{}.com/"/>', n, RSL, "</rsl>"),
        "odd urls": lambda n: numbered('<content url="/{} a"/>', n, RSL, "</rsl>"),
        "other namespaces": lambda n: repeated(b'<content xmlns=""/>', n, RSL.encode(), b"</rsl>"),
    },
    "page.html": {
        "words": lambda n: numbered("noidex{},", n, '<meta name="robots" content="', '">'),
        "metas": lambda n: repeated(b'<meta name="robots" content="noidex">', n),
    },
}
SHORT_URL = ORIGIN + "/a"
LONG_PATHS = {"": "/a", "a": "/" + "a" * 2000, "b": "/*a*a*a".replace("*", "b" * 300)}


def sites() -> Iterator[tuple[str, Callable[[int], Files]]]:
    def one(path: str, make: Callable[[int], bytes]) -> Callable[[int], Files]:
        return lambda octets: {path: make(octets)}

    for path, shapes in (
        ("/robots.txt", ROBOTS),
        ("/automation-preferences.txt", AUTOMATION),
        ("/ai.txt", AI_TXT),
        ("/.well-known/tdmrep.json", TDMREP),
        ("/trust.txt", TRUST_TXT),
    ):
        for name, make in shapes.items():
            yield f"{path.rpartition('/')[2]}: {name}", one(path, make)
    for name, make in DOCUMENTS.items():
        yield f"rsl: {name}", _licensed(make)


def _licensed(make: Callable[[int], bytes]) -> Callable[[int], Files]:
    return lambda octets: {"/robots.txt": b"License: /license.xml\n", "/license.xml": make(octets)}


def _first(files: Files) -> Step:
    return lambda: Site.from_files(ORIGIN, files).access(AGENT, SHORT_URL, now=NOW)


def _bound(files: Files) -> Site:
    site = Site.from_files(ORIGIN, files)
    site.access(AGENT, SHORT_URL, now=NOW)
    return site


def _accesses(files: Files) -> Step:
    """Of URLs as long as servers answer, and that the patterns come near to matching."""
    site = _bound(files)
    return lambda: [
        site.access(AGENT, ORIGIN + path, now=NOW, kind=kind)
        for path in LONG_PATHS.values()
        for kind in (None, "xhr")
    ]


def _first_page(files: Files) -> Step:
    site = _bound(files)
    return lambda: site.page(AGENT, SHORT_URL, body=None, now=NOW).permissions


def _next_page(files: Files) -> Step:
    site = _bound(files)
    _ = site.page(AGENT, SHORT_URL, body=None, now=NOW).permissions
    return lambda: site.page(AGENT, ORIGIN + LONG_PATHS["a"], body=None, now=NOW).permissions


def _prompt(files: Files) -> Step:
    page = _bound(files).page(AGENT, SHORT_URL, body=None, now=NOW)
    return lambda: instructions(page, "Train", "en")


def _told(files: Files) -> Step:
    """What else is asked of a site."""
    site = _bound(files)

    def ask() -> object:
        asked = (
            site.unusable(AGENT),
            site.sitemaps,
            site.references(AGENT),
            site.licenses(AGENT),
            site.requests(AGENT),
        )
        return (
            *asked,
            *site.conditions(AGENT),
            site.rates(AGENT),
            site.limits(AGENT, SHORT_URL),
            site.policies,
            site.crawler_names,
        )

    return ask


def _findings(files: Files) -> Step:
    site = _bound(files)
    return lambda: site.findings


def _considered(files: Files) -> Step:
    site = _bound(files)
    return lambda: site.considered(AGENT, SHORT_URL)


def _cleaned(files: Files) -> Step:
    """Of URLs with as many parameters as servers accept."""
    site = _bound(files)
    _ = site.findings
    urls = [
        f"{ORIGIN}{path}?{query}"
        for path in LONG_PATHS.values()
        for query in ("a&" * 4000, "&".join(f"a{number}" for number in range(1500)), "&" * 8000)
    ]
    return lambda: [site.clean(url) for url in urls]


SITE_STEPS: dict[str, Callable[[Files], Step]] = {
    "first access": _first,
    "accesses": _accesses,
    "considered": _considered,
    "first page": _first_page,
    "next page": _next_page,
    "prompt": _prompt,
    "others": _told,
    "findings": _findings,
    "cleaned": _cleaned,
}

# What "first access", "first page" and "findings" do besides.
LATER_STEPS = ("accesses", "considered", "next page", "prompt", "others", "cleaned")

# Pages

FIELD_SHAPES: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "X-Robots-Tag, directives": (b"X-Robots-Tag", lambda n: numbered("a{},", n)),
    "X-Robots-Tag, refusals": (b"X-Robots-Tag", lambda n: repeated(b"noindex,", n)),
    "X-Robots-Tag, words": (b"X-Robots-Tag", lambda n: repeated(b"noindex ", n)),
    "X-Robots-Tag, agents": (b"X-Robots-Tag", lambda n: numbered("bot{}: noindex,", n)),
    "X-Robots-Tag, scopes": (
        b"X-Robots-Tag",
        lambda n: repeated(b"examplebot:", n, b"", b"noindex"),
    ),
    "X-Robots-Tag, colons": (b"X-Robots-Tag", lambda n: repeated(b"a:", n, b"", b"noindex")),
    "X-Robots-Tag, commas": (b"X-Robots-Tag", lambda n: repeated(b",", n)),
    "X-Robots-Tag, dates": (
        b"X-Robots-Tag",
        lambda n: repeated(b"unavailable_after: Mon, 1 Jan 2099 00:00 GMT,", n),
    ),
    "X-Robots-Tag, almost dates": (b"X-Robots-Tag", lambda n: repeated(b"unavailable after a,", n)),
    "X-Robots-Tag, one date": (
        b"X-Robots-Tag",
        lambda n: repeated(b"1 ", n, b"unavailable_after: "),
    ),
    "X-Robots-Tag, spaces in a date": (
        b"X-Robots-Tag",
        lambda n: repeated(b" ", n, b"unavailable_after: 1 Jan 2099", b"x"),
    ),
    "X-Robots-Tag, spaces": (b"X-Robots-Tag", lambda n: repeated(b" ", n)),
    "Content-Usage, members": (b"Content-Usage", lambda n: numbered("l{}=n,", n, "", "z=n")),
    "Content-Usage, parameters": (b"Content-Usage", lambda n: numbered(";p{}", n, "train-ai=n")),
    "Content-Usage, lists": (b"Content-Usage", lambda n: repeated(b"n ", n, b"a=(", b")")),
    "Content-Usage, text": (b"Content-Usage", lambda n: repeated(b"\\", n, b'a="', b'"')),
    "Usage-Pref": (b"Usage-Pref", lambda n: numbered("l{}=n,", n)),
    "Content-Signal": (b"Content-Signal", lambda n: numbered("l{}=no,", n)),
    "tdm-reservation": (b"tdm-reservation", lambda n: numbered("x{},", n)),
    "tdm-policy": (b"tdm-policy", lambda n: repeated(b"../", n)),
    "Link": (b"Link", lambda n: numbered('</{}>; rel="license"; type="application/rsl+xml",', n)),
    "Link, parameters": (b"Link", lambda n: repeated(b";a", n, b"<a>; rel=license")),
    "Link, one text": (b"Link", lambda n: repeated(b"\\", n, b'<a>; rel=license; x="')),
    "Link, relations": (
        b"Link",
        lambda n: repeated(b"license ", n, b'<a>; type="application/rsl+xml"; rel="', b'"'),
    ),
    "Link, brackets": (b"Link", lambda n: repeated(b"<", n, b"license")),
}
BODY_SHAPES: dict[str, Callable[[int], bytes]] = {
    "metas": lambda n: repeated(b"<meta name=robots content=noindex>", n),
    "metas of many directives": lambda n: repeated(
        b'<meta name=robots content="a,b,c,d,e,f,g,h,i,j,k,l">', n
    ),
    "one meta": lambda n: numbered("a{},", n, '<meta name=robots content="', '">'),
    "one meta of words": lambda n: repeated(b"noindex ", n, b'<meta name=robots content="', b'">'),
    "one meta of colons": lambda n: repeated(b"a:", n, b'<meta name=robots content="', b'">'),
    "metas of agents": lambda n: numbered(
        "<meta name=a{} content=noindex>", n, "<meta name=robots content=noai>"
    ),
    "metas by property": lambda n: numbered('<meta property=robots content="max-snippet:{}">', n),
    "metas as X-Robots-Tag": lambda n: numbered("<meta http-equiv=x-robots-tag content=a{}>", n),
    "metas as Content-Usage": lambda n: numbered(
        "<meta http-equiv=content-usage content='train-ai=n,a{}=n'>", n
    ),
    "metas as Usage-Pref": lambda n: numbered(
        "<meta http-equiv=usage-pref content='ai=n,a{}=n'>", n
    ),
    "metas as tdm-reservation": lambda n: numbered(
        "<meta http-equiv=tdm-reservation content=x{}>", n
    ),
    "metas of tdm": lambda n: repeated(b"<meta name=tdm-reservation content=1>", n),
    "metas of tdm, odd": lambda n: numbered("<meta name=tdm-reservation content=x{}>", n),
    "metas of tdm policies": lambda n: numbered("<meta name=tdm-policy content=/{}>", n),
    "one meta of tdm": lambda n: numbered("x{},", n, '<meta name=tdm-reservation content="', '">'),
    "links": lambda n: numbered('<link rel=license type="application/rsl+xml" href=/{}>', n),
    "relations": lambda n: repeated(
        b"license ", n, b'<link type="application/rsl+xml" href=/a rel="', b'">'
    ),
    "scripts of rsl": lambda n: repeated(b'<script type="application/rsl+xml"></script>', n),
    "rsl": lambda n: (
        b'<script type="application/rsl+xml">%s</script>' % DOCUMENTS["contents"](n - 50)
    ),
    "five of rsl": lambda n: (
        (b'<script type="application/rsl+xml">%s</script>' % DOCUMENTS["licenses"](n // 5 - 50)) * 5
    ),
    "annotations": lambda n: repeated(
        b'<script type="application/ld+json">{"@type":"AutomationPolicyAnnotation","allowedPurposes":[]}</script>',
        n,
    ),
    "one annotation": lambda n: repeated(
        b'"a",',
        n,
        b'<script type="application/ld+json">{"@type":"AutomationPolicyAnnotation","allowedPurposes":[',
        b'"a"]}</script>',
    ),
    "annotation, deep": lambda n: repeated(
        b"[", n, b'<script type="application/ld+json">"AutomationPolicyAnnotation"'
    ),
    "escapes of an annotation": lambda n: repeated(
        b"\\u0041", n, b'<script type="application/ld+json">'
    ),
    "data-nosnippet": lambda n: repeated(
        b"<p data-nosnippet>a", n, b"<meta name=robots content=max-snippet:9>"
    ),
    "data-nosnippet, deep": lambda n: repeated(
        b"<div data-nosnippet>", n, b"<meta name=robots content=max-snippet:9>"
    ),
    "words of all": lambda n: repeated(
        b"a ", n, b"<meta name=robots content=noai><meta name=tdm-policy content=/>application/rsl"
    ),
}
PLUS = b"<rdf:RDF xmlns:plus='http://ns.useplus.org/ldf/xmp/1.0/'>"
FILE_SHAPES: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "pdf, packets": (
        b"application/pdf",
        lambda n: repeated(b'<rdf:RDF xmlns:tdm="http://www.w3.org/ns/tdmrep">', n, b"%PDF-1.7"),
    ),
    "pdf, elements": (
        b"application/pdf",
        lambda n: repeated(
            b"<tdm:reservation>1</tdm:reservation>",
            n,
            b'%PDF-1.7 <rdf:RDF xmlns:tdm="http://www.w3.org/ns/tdmrep">',
        ),
    ),
    "pdf, start tags": (
        b"application/pdf",
        lambda n: repeated(
            b"<tdm:reservation ", n, b'%PDF-1.7 <rdf:RDF xmlns:tdm="http://www.w3.org/ns/tdmrep">'
        ),
    ),
    "pdf, prefixes": (
        b"application/pdf",
        lambda n: numbered(' xmlns:a{}="http://www.w3.org/ns/tdmrep"', n, "%PDF-1.7 <rdf:RDF"),
    ),
    "pdf, comments": (
        b"application/pdf",
        lambda n: repeated(
            b"<!---->", n, b'%PDF-1.7 <rdf:RDF xmlns:tdm="http://www.w3.org/ns/tdmrep">'
        ),
    ),
    "pdf, streams": (
        b"application/pdf",
        lambda n: repeated(b"/FlateDecode /Type/Metadata stream\n", n, b"%PDF-1.7"),
    ),
    "pdf, bombs": (
        b"application/pdf",
        lambda n: repeated(
            b"/FlateDecode /Type/Metadata stream\n" + zlib.compress(bytes(2**20), 9), n, b"%PDF-1.7"
        ),
    ),
    "xmp, values": (
        b"image/jpeg",
        lambda n: repeated(b"<plus:DataMining>", n, b"\xff\xd8\xff " + PLUS),
    ),
    "xmp, attributes": (
        b"image/jpeg",
        lambda n: repeated(b" plus:DataMining='", n, b"\xff\xd8\xff " + PLUS),
    ),
    "xmp, packets": (b"image/jpeg", lambda n: repeated(PLUS, n, b"\xff\xd8\xff ")),
    "xmp, constraints": (
        b"image/jpeg",
        lambda n: repeated(b":OtherConstraints ", n, b"\xff\xd8\xff " + PLUS),
    ),
    "xmp, comments": (
        b"image/jpeg",
        lambda n: repeated(b"<!---->", n, b"\xff\xd8\xff " + PLUS),
    ),
    "xmp, segments": (
        b"image/jpeg",
        lambda n: repeated(
            b"\xff\xe1\0\x4dhttp://ns.adobe.com/xmp/extension/\0" + bytes(40), n, b"\xff\xd8"
        ),
    ),
    "xmp, bombs": (
        b"image/png",
        lambda n: repeated(
            b"\0\x00\x20\0iTXtXML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(bytes(2**22), 9),
            n,
            b"\x89PNG\r\n\x1a\n",
        ),
    ),
    "c2pa, assertions": (
        b"image/webp",
        lambda n: repeated(
            b"\0\0\0\x2ejumd" + bytes(17) + b"cawg.training-mining\0\0\0\0\x10cborentries!",
            n,
            b"RIFF1234WEBPjumb",
        ),
    ),
    "c2pa, entries": (
        b"image/webp",
        lambda n: repeated(
            b"cawg.ai_training",
            n,
            b"RIFF1234WEBPjumb\0\0\0\x2ejumd"
            + bytes(17)
            + b"cawg.training-mining\0\0\0\xff\xffcborentries",
        ),
    ),
    "c2pa, segments": (
        b"image/jpeg",
        lambda n: (
            numbered("\xff\xeb\0\x16JP\0{}1234jumb", n, "\xff\xd8").decode().encode("latin-1")
        ),
    ),
    "c2pa, blocks of GIF": (
        b"image/gif",
        lambda n: repeated(b"\1x", n, b"GIF89a jumb!\xff\x0bC2PA_GIF\1\0\0"),
    ),
    "epub, members": (b"application/epub+zip", lambda n: _epub(n, b"<package/>")),
    "epub, elements": (
        b"application/epub+zip",
        lambda n: _epub(0, b"<package>" + b'<meta property="tdm:reservation"/>' * (n // 34)),
    ),
    "epub, rootfiles": (
        b"application/epub+zip",
        lambda n: _epub(
            0,
            b"<package/>",
            b'<c><rootfile full-path="a"/>' + b'<rootfile full-path="b"/>' * (n // 26) + b"</c>",
        ),
    ),
}


def _epub(
    octets: int, package: bytes, container: bytes = b'<c><rootfile full-path="p"/></c>'
) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("p", package)
        for number in range(octets // 120):
            archive.writestr(str(number), b"")
    return file.getvalue()


RULED = b"User-agent: *\n  Path: / html json xml\n    Element: %s\n      Disallow: Train\n"
TREES: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "html, wide": (b"text/html", lambda n: repeated(b"<p>a", n)),
    "html, deep": (b"text/html", lambda n: repeated(b"<div>", n)),
    "html, open elements": (b"text/html", lambda n: repeated(b"<b><i><p>a", n)),
    "html, tables": (b"text/html", lambda n: repeated(b"<table><tr><td>", n)),
    "html, attributes": (
        b"text/html",
        lambda n: numbered(" a{}", n // 16, "<p", ">a"),
    ),  # libxml2 takes the square of it
    "html, addresses": (
        b"text/html",
        lambda n: repeated(b"a.jpg?url(", n, b"<p data-x='", b" x'>a"),
    ),
    "html, noscripts": (b"text/html", lambda n: repeated(b"<noscript><p>a</noscript>", n)),
    "html, text": (b"text/html", lambda n: repeated(b"a ", n, b"<p>")),
    "html, entities": (b"text/html", lambda n: repeated(b"&amp;", n, b"<p>")),
    "html, comments": (b"text/html", lambda n: repeated(b"<!-->", n, b"<p>a")),
    "json, wide": (b"application/json", lambda n: repeated(b'{"p":1},', n, b"[", b"0]")),
    "json, deep": (
        b"application/json",
        lambda n: b'{"p":' * min(n // 10, 900) + b"1" + b"}" * min(n // 10, 900),
    ),
    "json, names": (b"application/json", lambda n: numbered('"a{}":1,', n, "{", '"p":1}')),
    "xml, wide": (b"application/xml", lambda n: repeated(b"<p>a</p>", n, b"<r>", b"</r>")),
    "xml, deep": (
        b"application/xml",
        lambda n: b"<p>" * min(n // 7, 250) + b"</p>" * min(n // 7, 250),
    ),
}
SELECTORS = {
    "html": ("p", "p ~ p", "div div p", ":not(p)", ":not(:has(p))", "*"),
    "json": ("p", "p.p", "*"),
    "xml": ("p", "p.p", "*"),
}
MANY_RULES: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "html, rules": (
        b"<p>a" * 5000,
        lambda n: numbered(
            "    Element: p.c{}\n      Disallow: Train\n", n, "User-agent: *\n  Path: / html\n"
        ),
    ),
    "html, rules that match": (
        b"<p>a" * 5000,
        lambda n: numbered(
            "    Element: p, a{}\n      Disallow: Train\n", n, "User-agent: *\n  Path: / html\n"
        ),
    ),
    "json, rules": (
        b"[%s 0]" % (b'{"p":1},' * 5000),
        lambda n: numbered(
            "    Element: p{}\n      Disallow: Train\n", n, "User-agent: *\n  Path: / json\n"
        ),
    ),
    "json, rules that match": (
        b"[%s 0]" % (b'{"p":1},' * 5000),
        lambda n: repeated(
            b"    Element: p\n      Disallow: Train\n", n, b"User-agent: *\n  Path: / json\n"
        ),
    ),
}

NAMED = b"User-agent: *\n  Path: / json\n" + b"".join(
    b"    Element: %s\n      Disallow: Train\n" % b".".join([b"p"] * parts)
    for parts in range(1, 50)
)
NAMED_JSON: dict[str, Callable[[int], bytes]] = {
    "objects": lambda n: repeated(b'{"p":1},', n, b"[", b"0]"),
    "chains": lambda n: repeated(b'{"p":' * 50 + b"1" + b"}" * 50 + b",", n, b"[", b"0]"),
    "in deep arrays": lambda n: repeated(b'{"p":1},', n, b"[" * 200, b"0" + b"]" * 200),
    "addresses": lambda n: numbered('{"p":"/a{}"},', n, "[", "0]"),
}

PLAIN_SITE: Files = {"/robots.txt": b"User-agent: *\nDisallow: /private/\n"}


def _page(site: Site, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> Page:
    return site.page(AGENT, SHORT_URL, headers=headers, body=body, now=NOW)


def _tagged(
    headers: tuple[tuple[bytes, bytes], ...], body: bytes, files: Files = PLAIN_SITE
) -> Step:
    site = _bound(files)
    return lambda: _page(site, headers, body).permissions


def _redacted(headers: tuple[tuple[bytes, bytes], ...], body: bytes, files: Files) -> Step:
    site = _bound(files)
    return lambda: _page(site, headers, body).redacted(("train",))


def _traced(headers: tuple[tuple[bytes, bytes], ...], body: bytes, files: Files) -> Step:
    page = _page(_bound(files), headers, body)
    text = body.decode()
    return lambda: page.tag_of({"html": text, "text": text[:20_000], "list": ["a"] * 1000}, {})


def pages() -> Iterator[Case]:
    for name, (field, make) in FIELD_SHAPES.items():

        def prepare(octets: int, field: bytes = field, make: Callable[[int], bytes] = make) -> Step:
            return _tagged((HTML, (field, make(octets))), b"<p>a")

        def prepare_many(
            octets: int, field: bytes = field, make: Callable[[int], bytes] = make
        ) -> Step:
            value = make(200)
            return _tagged((HTML, *[(field, value)] * (octets // 200)), b"<p>a")

        yield Case(f"field {name}", FIELDS, prepare)
        yield Case(f"fields {name}", 4 * FIELDS, prepare_many)
    for name, body in BODY_SHAPES.items():
        yield Case(
            f"markup: {name}",
            PAGE,
            lambda octets, make=body: _tagged((HTML,), make(octets)),  # type: ignore[misc]
        )
    for name, (media_type, body) in FILE_SHAPES.items():
        yield Case(
            f"file: {name}",
            PAGE,
            lambda octets, kind=media_type, make=body: _tagged(
                ((b"Content-Type", kind),), make(octets)
            ),  # type: ignore[misc]
        )
    for name, (media_type, body) in TREES.items():
        for selector in SELECTORS[name.partition(",")[0]]:
            files = {"/ai.txt": RULED % selector.encode()}
            for what, step in (("tag", _tagged), ("redacted", _redacted), ("item", _traced)):
                yield Case(
                    f"element {selector} in {name}: {what}",
                    PAGE,
                    lambda octets, kind=media_type, make=body, step=step, files=files: step(  # type: ignore[misc]
                        ((b"Content-Type", kind),), make(octets), files
                    ),
                )
    for name, body in NAMED_JSON.items():
        json_field = (b"Content-Type", b"application/json")
        for what, step in (("tag", _tagged), ("redacted", _redacted), ("item", _traced)):
            yield Case(
                f"elements of json by many names, {name}: {what}",
                FILE,
                lambda octets, make=body, step=step, field=json_field: step(
                    (field,), make(octets), {"/ai.txt": NAMED}
                ),  # type: ignore[misc]
            )
    for name, (document, rules) in MANY_RULES.items():
        kind = b"text/html" if name.startswith("html") else b"application/json"
        for what, step in (("tag", _tagged), ("redacted", _redacted), ("item", _traced)):
            yield Case(
                f"elements of {name}: {what}",
                FILE,
                lambda octets, kind=kind, body=document, make=rules, step=step: step(  # type: ignore[misc]
                    ((b"Content-Type", kind),), body, {"/ai.txt": make(octets)}
                ),
            )


# Requests to the guard

TARGETS: dict[str, Callable[[int], str]] = {
    "path": lambda n: "/" + "a" * n,
    "segments": lambda n: "/a" * (n // 2),
    "dots": lambda n: "/.." * (n // 3),
    "slashes": lambda n: "/" * n,
    "escapes": lambda n: "/%2F" * (n // 4),
    "percent": lambda n: "/" + "%" * n,
    "query": lambda n: "/?" + "&" * n,
}
GUARDED: Files = {
    "/robots.txt": b"User-agent: *\nDisallow: /*a*b*c\nCrawl-delay: 1\n",
    "/automation-preferences.txt": b"scope: /\nallowed-methods: GET\nrequest-limit: 1000/second\n",
}


class NoKeys:
    """Directories in which there is no key."""

    def expect(self, urls: Collection[str]) -> None:
        pass

    def find(self, url: str, keyid: str, *, is_listed: bool) -> KeyAnswer:
        return KeyAnswer(None)


def _signed_fields() -> dict[str, str]:
    signer = Signer("https://bot.example.org", Ed25519PrivateKey.generate(), lambda: 0.0)
    return {name.lower(): value for name, value in signer.fields(ORIGIN).items()}


def proving(fields: dict[str, str]) -> Step:
    proofs = Proofs({"examplebot": "https://bot.example.org"}, NoKeys())
    guard = Guard(ORIGIN, dict(GUARDED), clock=lambda: 0.0, proofs=proofs)
    incoming = Incoming("GET", "/", {"user-agent": "examplebot", **fields})
    return lambda: guard.check(incoming)


def requests() -> Iterator[Case]:
    def asked(target: str, **fields: str) -> Step:
        guard = Guard(ORIGIN, dict(GUARDED), clock=lambda: 0.0, tolerance=0.5)
        incoming = Incoming("GET", target, {"user-agent": "examplebot", **fields})
        return lambda: guard.check(incoming)

    for name, make in TARGETS.items():
        yield Case(f"guard, target: {name}", URL, lambda octets, make=make: asked(make(octets)))  # type: ignore[misc]
    for field in (
        "user-agent",
        "purpose",
        "automation-purpose",
        "referer",
        "if-none-match",
        "authorization",
        "from",
    ):
        for word in ("a", "a,", "a ", '"', "bot/"):
            yield Case(
                f"guard, {field}: {word}",
                FIELDS,
                lambda octets, field=field, word=word: asked(
                    "/robots.txt" if field.startswith("if") else "/b",
                    **{field: word * (octets // len(word))},
                ),  # type: ignore[misc]
            )
    signed = _signed_fields()
    for field, value in signed.items():
        words = {word: word for word in ("a", "a,", "(", '"a" ', ";a=1")}
        for name, word in (words | {"itself": f"{value},"}).items():
            yield Case(
                f"guard, {field}: {name}",
                FIELDS,
                lambda octets, field=field, word=word: proving(
                    signed | {field: word * max(1, octets // len(word))}
                ),  # type: ignore[misc]
            )
    for name, make in TARGETS.items():
        site = _bound(GUARDED)
        yield Case(
            f"access, URL: {name}",
            URL,
            lambda octets, make=make, site=site: (
                lambda: site.access(AGENT, ORIGIN + make(octets), now=NOW)
            ),  # type: ignore[misc]
        )


# Tags of records that others made

USE = {"verdict": "allow", "stated": True, "because": [0]}
REASON = {"rule": "acap.allow", "spec": "ACAP", "url": ORIGIN, "line": 1, "text": "a"}


def tag_with(**parts: Any) -> dict[str, Any]:
    uses = dict.fromkeys(("crawl", "follow", "index", "preserve", "present", "train"), USE)
    plain = {
        "schema": 1,
        "agent": "a",
        "uses": uses,
        "elements": [],
        "reasons": [REASON],
        "policies": {},
    }
    return plain | parts


def _element(number: int, **parts: Any) -> dict[str, Any]:
    element = {
        "selector": "p",
        "type": "html",
        "deny": ["train"],
        "guide": [],
        "spans": [["text", number, number + 1]],
        "because": [0],
    }
    return element | parts


TAGS: dict[str, Callable[[int], dict[str, Any]]] = {
    "uses": lambda n: tag_with(
        uses=tag_with()["uses"] | {f"u{number}": USE for number in range(n // 70)}
    ),
    "reasons": lambda n: tag_with(reasons=[REASON] * (n // 80)),
    "reasons of one use": lambda n: tag_with(
        reasons=[REASON] * (n // 160),
        uses=tag_with()["uses"] | {"index": USE | {"because": [*range(n // 160)]}},
    ),
    "elements": lambda n: tag_with(elements=[_element(number) for number in range(n // 120)]),
    "elements of other uses": lambda n: tag_with(
        elements=[_element(number, deny=[f"a{number}"]) for number in range(n // 120)]
    ),
    "spans": lambda n: tag_with(
        elements=[_element(0, spans=[["text", at, at + 1] for at in range(n // 20)])]
    ),
    "spans of lists": lambda n: tag_with(
        elements=[_element(0, spans=[["links", at] for at in range(n // 14)])]
    ),
    "spans of fields": lambda n: tag_with(
        elements=[_element(0, spans=[[f"f{at}"] for at in range(n // 10)])]
    ),
    "names": lambda n: tag_with(
        elements=[_element(0, deny=[f"a{number}" for number in range(n // 8)])]
    ),
    "urls": lambda n: tag_with(
        elements=[_element(0, urls=[f"{ORIGIN}/{number}" for number in range(n // 30)])]
    ),
    "policies": lambda n: tag_with(
        policies={
            f"{ORIGIN}/{number}": {"status": 200, "sha256": None, "fetched_at": None}
            for number in range(n // 80)
        }
    ),
    "resources": lambda n: tag_with(
        uses=tag_with()["uses"]
        | {
            "index": USE
            | {
                "must_use": [
                    {"role": "", "extract": "", "url": str(number), "content": "a"}
                    for number in range(n // 60)
                ]
            }
        }
    ),
    "modifications": lambda n: tag_with(
        uses=tag_with()["uses"]
        | {"index": USE | {"prohibited_modifications": [f"m{number}" for number in range(n // 10)]}}
    ),
    "quoted fields": lambda n: tag_with(
        reasons=[
            REASON | {"part": "header X-Robots-Tag", "text": f"noai, a{number}"}
            for number in range(n // 110)
        ]
    ),
    "quoted metas": lambda n: tag_with(
        reasons=[
            REASON | {"part": "meta robots", "text": f"noai, a{number}"}
            for number in range(n // 110)
        ]
    ),
    "quoted tdm": lambda n: tag_with(
        reasons=[
            REASON
            | {"part": "header tdm-reservation", "text": "; ".join(["tdm-policy: a"] * (n // 15))}
        ]
    ),
    "max_words": lambda n: tag_with(uses=tag_with()["uses"] | {"index": USE | {"max_words": 1}}),
}
TERMS = Terms.of(["index", "train"], now=NOW)
RECORDS: dict[str, Callable[[int], dict[str, Any]]] = {  # fields of records
    "fields within a length": lambda n: {
        **{f"f{number}": "a b" for number in range(n // 20)},
        "permissions": tag_with(uses=tag_with()["uses"] | {"index": USE | {"max_words": n}}),
    },
    "files of elements": lambda n: {
        "files": [{"url": f"{ORIGIN}/{number}"} for number in range(n // 60)],
        "permissions": tag_with(
            elements=[
                _element(number, deny=["*"], urls=[f"{ORIGIN}/b"], more_urls=True)
                for number in range(n // 120)
            ]
        ),
    },
}


def _record(tag: dict[str, Any], octets: int) -> dict[str, Any]:
    text, url = "a " * (octets // 8), f"{ORIGIN}/a"
    links = [f"{ORIGIN}/{number}" for number in range(octets // 100)]
    return {
        "url": url,
        "final_url": url,
        "fetched_at": NOW.isoformat(),
        "text": text,
        "links": links,
        "permissions": tag,
    }


def tags() -> Iterator[Case]:
    site = _bound(PLAIN_SITE)

    def exported(record: dict[str, Any]) -> Step:
        return lambda: apply_terms(record, TERMS)

    def counted(record: dict[str, Any]) -> Step:
        return lambda: StatsPass(NOW)([record])

    def checked(record: dict[str, Any]) -> Step:
        return lambda: recheck(record, lambda _: site, Today(AGENT, NOW))

    for name, make in TAGS.items():
        for what, step in (("export", exported), ("stats", counted), ("verify", checked)):
            yield Case(
                f"tag, {name}: {what}",
                TAG,
                lambda octets, make=make, step=step: step(_record(make(octets), octets)),  # type: ignore[misc]
            )
    for name, make in RECORDS.items():
        yield Case(
            f"record, {name}: export",
            TAG,
            lambda octets, make=make: exported(_record({}, octets) | make(octets)),  # type: ignore[misc]
        )


# What authors are told

LINT_SHAPES: dict[str, dict[str, Callable[[int], bytes]]] = {
    "robots.txt": ROBOTS,
    "automation-preferences.txt": AUTOMATION,
    "ai.txt": AI_TXT,
    "tdmrep.json": TDMREP,
    "trust.txt": TRUST_TXT,
    "rsl.xml": DOCUMENTS,
    "page.html": BODY_SHAPES,
}


def _linted(kind: lint.LintKind, body: bytes) -> Step:
    def step() -> object:
        problems = lint.lint_file(kind, kind.name, body)
        return apply(body, (problem.fix for problem in problems if problem.fix))

    return step


def linted() -> Iterator[Case]:
    for name, shapes in LINT_SHAPES.items():
        kind = lint.KINDS[name]
        for shape, make in (FAULTS[name] | shapes).items():
            yield Case(
                f"lint {name}: {shape}",
                FILE,
                lambda octets, kind=kind, make=make: _linted(kind, make(octets)),  # type: ignore[misc]
            )
    for shape, make in AI_TXT.items():
        yield Case(
            f"lint ai.xml: {shape}",
            FILE,
            lambda octets, make=make: _linted(lint.KINDS["ai.xml"], _as_xml(make(octets))),  # type: ignore[misc]
        )


def _as_xml(body: bytes) -> bytes:
    try:
        return ai_txt_to_xml(body)
    except PolicyError:
        return body


# Other files

VOCABULARIES: dict[str, Callable[[int], bytes]] = {
    "terms": lambda n: numbered("t{} = {narrows = []}\n", n, "[vocabulary.a.terms]\n"),
    "chain": lambda n: (
        "[vocabulary.a.terms]\nt0 = {narrows = []}\n"
        + "".join(f't{number} = {{narrows = ["t{number - 1}"]}}\n' for number in range(1, n // 28))
    ).encode(),
    "relations": lambda n: repeated(
        b'[[relation]]\nkind = "within"\nuses = ["u"]\nterms = ["usage:ai"]\n', n
    ),
    "relations of uses": lambda n: numbered(
        '[[relation]]\nkind = "within"\nuses = ["u{}"]\nterms = ["usage:ai"]\n', n
    ),
    "no toml": lambda n: repeated(b"[a.", n),
}


def others() -> Iterator[Case]:
    def vocabulary(octets: int, make: Callable[[int], bytes]) -> Step:
        text = make(octets).decode().rpartition("\n")[0]

        def read() -> object:
            try:
                return Vocabulary.from_toml(text).related("a", "t0")
            except PolicyError as error:
                return error

        return read

    for name, make in VOCABULARIES.items():
        yield Case(
            f"vocabulary: {name}",
            FILE // 8,
            lambda octets, make=make: vocabulary(octets, make),  # type: ignore[misc]
        )
    for name, make in AI_TXT.items():
        yield Case(f"ai.txt to XML: {name}", FILE, lambda octets, make=make: _to_xml(make(octets)))  # type: ignore[misc]
        yield Case(
            f"ai.txt from XML: {name}",
            FILE,
            lambda octets, make=make: _from_xml(make(octets)),  # type: ignore[misc]
        )
    yield Case("store: load", FILE, _stored)


def _or_error(work: Callable[[bytes], object], given: bytes) -> Step:
    def step() -> object:
        try:
            return work(given)
        except PolicyError as error:
            return error

    return step


def _to_xml(body: bytes) -> Step:
    return _or_error(ai_txt_to_xml, body)


def _from_xml(body: bytes) -> Step:
    try:
        return _or_error(ai_txt_from_xml, ai_txt_to_xml(body))
    except PolicyError:
        return _or_error(ai_txt_from_xml, body)


_folders: list[tempfile.TemporaryDirectory[str]] = []


def _stored(octets: int) -> Step:
    folder = tempfile.TemporaryDirectory()
    _folders.append(folder)
    store = PolicyStore(Path(folder.name) / "policies.sqlite")
    fetched = Fetched(
        status=200,
        body=base64.b85encode(random.Random(octets).randbytes(octets * 4 // 5)),
        fetched_at=NOW,
        headers=((b"a", b"b"),) * 100,
    )
    store.save(ORIGIN, {f"/{number}": PolicyFile(due=0, copy=fetched) for number in range(4)})
    assert len(store.load(ORIGIN)) == 4
    return lambda: store.load(ORIGIN)


def cases() -> Iterator[Case]:
    for name, make in sites():
        for what, step in SITE_STEPS.items():
            yield Case(
                f"{name}: {what}",
                FILE,
                lambda octets, make=make, step=step: step(make(octets)),  # type: ignore[misc]
            )
    yield from itertools.chain(pages(), requests(), tags(), others(), linted())


def seconds(step: Step) -> float:
    """CPU time."""
    gc.collect()
    start = process_time()
    step()
    return process_time() - start


class Measured(NamedTuple):
    """The seconds of one case, at a quarter, at half and at all of its limit."""

    times: tuple[float, float, float]

    @classmethod
    def of(cls, case: Case, attempts: int) -> Measured:
        """What looks bad is measured again: other programs may have been in the way."""
        best = (float("inf"),) * 3
        for _ in range(attempts):
            whole = seconds(case.prepare(case.limit))
            if whole <= NOISE:
                return cls((whole, whole, whole))
            quarter, half = (
                seconds(case.prepare(octets)) for octets in (case.limit // 4, case.limit // 2)
            )
            best = (min(best[0], quarter), min(best[1], half), min(best[2], whole))
            if not cls(best).is_bad:
                break
        return cls(best)

    @property
    def growths(self) -> tuple[float, float]:
        quarter, half, whole = (max(time, NOISE / 8) for time in self.times)
        return half / quarter, whole / half

    @property
    def is_bad(self) -> bool:
        """Twice the input may once take longer than twice the time, as where it no longer fits a cache; not each time."""
        return self.times[2] > MOST or (
            self.times[2] > NOISE and self.growths[0] * self.growths[1] > GROWTH**2
        )


def is_later(case: Case) -> bool:
    """Whether the first steps on the same input do most of what it does."""
    return case.name.rpartition(": ")[2] in LATER_STEPS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("word", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--minutes", type=float, default=2.0)
    options = parser.parse_args()
    console = Console(width=120)
    chosen = [
        case
        for case in cases()
        if not options.word or any(word in case.name for word in options.word)
    ]
    end = float("inf") if options.full else monotonic() + options.minutes * 60
    measured, shown, bad, slowest = 0, 0, 0, 0.0
    table = Table(
        "case",
        "limit KiB",
        "quarter ms",
        "half ms",
        "whole ms",
        "growth",
        "",
        title="CPU time of hostile input",
    )
    # What there is time for is of all entries: one case in ten of each, then the next ones.
    in_turn = sorted(enumerate(chosen), key=lambda of: (is_later(of[1]), of[0] % 10))
    for _, case in track(in_turn, console=Console(stderr=True), transient=True):
        if monotonic() > end:
            break
        measured += 1
        found = Measured.of(case, 3 if options.full or options.word else 1)
        slowest = max(slowest, found.times[2])
        bad += found.is_bad
        if found.is_bad or found.times[2] > MOST / 5:
            shown += 1
            times = (f"{time * 1000:.0f}" for time in found.times)
            growth = " ".join(f"{growth:.1f}" for growth in found.growths)
            table.add_row(
                case.name, str(case.limit // 1024), *times, growth, "!" if found.is_bad else ""
            )
    console.print(table)
    console.print(
        f"{measured} cases, {bad} of them bad (!), the slowest {slowest * 1000:.0f} ms;"
        f" {measured - shown} faster ones are not shown"
    )
    if measured < len(chosen):
        left = len(chosen) - measured
        console.print(
            f"For {left} more cases there was no time left; --full has all of them, and measures bad ones again"
        )


if __name__ == "__main__":
    main()
