"""What is fuzzed: for each public entry a function of octets, which makes its input of them and checks what has to hold.

    TARGETS[name](octets)       raises where something does not hold
    raw(kind, octets)           the octets that stand for a whole file or page, as seeds and finds from the web are

Octets are a sequence of choices in a grammar, so that whoever changes some of them (libFuzzer, Hypothesis, chance) makes input
that gets past the first look of a parser. The first octet may say that the others are the file itself."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import re
import tarfile
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import http_sf
import jsonschema
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from comity.authoring import lint
from comity.authoring.explaining import explain
from comity.authoring.problems import Problem
from comity.authoring.reports import FORMS
from comity.authoring.source import SiteSource, SourceFile
from comity.dataset.export.ranges import place_of
from comity.dataset.files import delimited, jsonl, shards
from comity.dataset.files.columns import arrow_schema as typed
from comity.dataset.files.columns import ipc, parquet
from comity.dataset.files.warc import cdx
from comity.dataset.files.warc import reader as warc
from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.expiry import ExpiryTerms, judge_expiry
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError, Unreadable, encode_line
from comity.dataset.stats import StatsPass
from comity.dataset.tagging import warc as captures
from comity.dataset.tags import sources as tag_sources
from comity.dataset.verify.recheck import recheck
from comity.dataset.verify.today import Today
from comity.guard import Guard
from comity.guard.guard import Pass
from comity.guard.incoming import Incoming
from comity.policies import (
    Agent,
    Fetched,
    Page,
    PolicyError,
    Site,
    Verdict,
    ai_txt_from_xml,
    ai_txt_to_xml,
    instructions,
)
from comity.policies.answers.rule import RULES
from comity.policies.document.offer import offer_in
from comity.policies.formats.authoring import Draft, apply
from comity.policies.formats.robots.file import RobotsFile
from comity.policies.registry import FORMS as FORMS_OF_REGISTRIES
from comity.policies.registry import read_registry
from comity.policies.syntax.lines import MAX_FINDINGS
from comity.policies.syntax.printable import HIDDEN
from comity.policies.tag import TagError
from comity.policies.vocabulary.table import Vocabulary
from comity.signatures.message import KeyAnswer, Outcome, SignedRequest
from comity.signatures.signer import Signer
from comity.signatures.verifier import verify

T = TypeVar("T")

ORIGIN = "https://example.com"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
USES = ("train", "index", "present-snippet")
AGENT = Agent(
    "examplebot",
    user_agent="examplebot/1.0 (+https://example.org/bot)",
    purposes=("news",),
    uses=USES,
)
DENY = Verdict.DENY


class Choices:
    """What is left of the octets. When nothing is, the first of all options is chosen."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self._at = 0

    def number(self, below: int) -> int:
        octets = self._octets[self._at : self._at + (1 if below <= 256 else 2)]
        self._at += len(octets)
        return int.from_bytes(octets) % below

    def of(self, options: Sequence[T]) -> T:
        return options[self.number(len(options))]

    def rest(self) -> bytes:
        return self._octets[self._at :]


# The grammar: of each symbol its alternatives, the first of which has no symbol that leads back to it.

GRAMMAR: dict[str, tuple[str, ...]] = {
    "eol": ("\n", "\n", "\n", "\r\n", "\r", "\n\n", " # comment\n", "\n# comment\n"),
    "agent": (
        "*",
        "examplebot",
        "ExampleBot/1.0",
        "otherbot",
        "example",
        "examplebot otherbot",
        "",
        "{junk}",
    ),
    "path": (
        "/",
        "/a",
        "/a/b.html",
        "/private/",
        "/a?b=c",
        "/%61",
        "/é",
        "",
        "a",
        "{junk}",
        "https://example.com/a",
        "//",
    ),
    "pattern": (
        "{path}",
        "{path}*",
        "*{path}",
        "{path}$",
        "/*a*b$",
        "*.html",
        "*.html$",
        "{path}*{path}",
        "**",
        "$",
        "{path}#{path}",
    ),
    "number": (
        "1",
        "0",
        "-1",
        "7",
        "0.5",
        "1e9",
        "99999999999",
        "nan",
        "１",
        "",
        "{junk}",
        "1/5s",
        "3/1m 0100-0200",
        "0100-2500",
    ),
    "yn": ("y", "n", "yes", "no", "Y", "?0", "1", '"n"', "n;a=1", "{junk}"),
    "label": (
        "ai",
        "tdm",
        "search",
        "genai",
        "train-ai",
        "ai-train",
        "ai-input",
        "ai-use",
        "bots",
        "all",
        "use",
        "z",
        "{junk}",
    ),
    "preferences": (
        "{label}={yn}",
        "{label}={yn}, {preferences}",
        "{label}",
        "{path} {preferences}",
        ",",
        "{junk}",
    ),
    "usage": (
        "index",
        "crawl",
        "follow",
        "preserve",
        "present",
        "other",
        "present-snippet",
        "present-original",
        "(q)",
        "(c)",
        "{junk}",
    ),
    "resource": ("{pattern}", "the-acap:resource-set:s", "the-acap:resource-set:t", "{path}"),
    "qualifier": (
        "",
        " time-limit=30-days",
        " time-limit=until-recrawled",
        " time-limit=until-2099-12-31",
        " max-length=30-words",
        " max-length={number}-chars",
        " prohibited-modification=style",
        " must-include-resource={path}",
        " must-use-resource=the-acap:extract:id:a",
        " required-context=within-original-frame",
        "{qualifier}{qualifier}",
        " {junk}={junk}",
    ),
    "method": ("GET", "HEAD", "POST", "get", "*", "", "{junk}", "GET, {method}"),
    "purpose": ("news", "*", "archiving", "n*", "", "{junk}", "news, {purpose}"),
    "token": (
        "none",
        "open",
        "with-key-only",
        "read-only",
        "true",
        "false",
        "cookie-based",
        "oauth",
        "headless",
        "1h",
        "",
        "{junk}",
    ),
    "selector": (
        "p",
        "*",
        ".quote",
        "#a",
        "div > p",
        "p ~ p",
        ":not(.quote)",
        "[id]",
        "a.b",
        "p:nth-child(2n)",
        "p, .quote",
        "{junk}",
    ),
    "action": (
        "Train",
        "*",
        "Summarize",
        "Index",
        "Crop",
        "train index",
        "Clip",
        "{action} {action}",
        "{junk}",
    ),
    "lang": ("en", "de-AT", "", "{junk}"),
    "directive": (
        "noindex",
        "none",
        "noai",
        "nofollow",
        "max-snippet:{number}",
        "max-image-preview:standard",
        "unavailable_after: 1 Jan 2099",
        "unavailable_after: {junk}",
        "examplebot: noarchive",
        "otherbot: noai",
        "index",
        "indexifembedded",
        "notranslate",
        "{junk}",
        "{directive}, {directive}",
        "{directive} {directive}",
    ),
    "word": (
        "search",
        "all",
        "ai-all",
        "ai-train",
        "ai-input",
        "commercial",
        "DE",
        "x:y",
        "{junk}",
        "{word} {word}",
        "{word},{word}",
    ),
    "kind": ("usage", "user", "geo", "", "{junk}"),
    "term": (
        '<permits type="{kind}">{word}</permits>',
        '<prohibits type="{kind}">{word}</prohibits>',
        "<payment/>",
        '<payment type="free"/>',
        '<legal type="warranty">{junk}</legal>',
        "<{label}/>",
        "{term}{term}",
        "",
    ),
    "content": (
        '<content url="{pattern}"><license>{term}</license></content>',
        "<content/>",
        "{content}{content}",
        "<!-- {junk} -->",
    ),
    "rsl": (
        '<rsl xmlns="https://rslstandard.org/rsl">{content}</rsl>',
        '<rsl max-age="{number}">{content}</rsl>',
        "{content}",
        "{junk}",
    ),
    "json": (
        "0",
        "1",
        '"1"',
        "null",
        "true",
        '"{junk}"',
        "[{json}]",
        '{"tdm-reservation": {json}}',
        "{number}",
    ),
    "junk": (
        "x",
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\u2028",
        "\x85",
        "é",
        "%zz",
        "%2a",
        "\\",
        '"',
        "'",
        "<",
        "&#0;",
        "=",
        ":",
        ",",
        "\t",
        "]]>",
        "\ud800",
    ),
}
LINES: dict[str, tuple[str, ...]] = {
    "/robots.txt": (
        "User-agent: {agent}",
        "Disallow: {pattern}",
        "Allow: {pattern}",
        "Crawl-delay: {number}",
        "Clean-param: a&{junk} {pattern}",
        "Content-Signal: {pattern} ai-train=yes, search=no",
        "Request-rate: {number}",
        "Visit-time: {number}",
        "Sitemap: {path}",
        "Usage: {preferences}",
        "Content-Usage: {preferences}",
        "Content-Usage: {path} {preferences}",
        "Content-Signal: {preferences}",
        "DisallowAITraining: {pattern}",
        "AllowAITraining: {pattern}",
        "License: {path}",
        "License: /license.xml",
        "##ACAP version=1.0",
        "ACAP-ignore-conventional-records",
        "ACAP-crawler: {agent}",
        "ACAP-allow-{usage}: {resource}{qualifier}",
        "ACAP-disallow-{usage}: {resource}",
        "ACAP-usage-purpose: {purpose}",
        "ACAP-resource-set: s {pattern} {pattern}",
        "ACAP-qualified-usage: q {usage}{qualifier}",
        "ACAP-composite-usage: c {usage} (q)",
        "ACAP-permissions-reference: {path}",
        "ACAP-request-take-down: {path}",
        "{junk}",
        "{junk}: {junk}",
        "",
    ),
    "/automation-preferences.txt": (
        "scope: {pattern}",
        "allowed-methods: {method}",
        "host: example.com",
        "host: *.com",
        "user-agent: {agent}",
        "allowed-purposes: {purpose}",
        "request-limit: {number}",
        "request-limit: 5/second",
        "concurrent-limit: {number}",
        "allowed-automations: {token}",
        "api-automation: {token}",
        "allow-xhr: {token}",
        "disallow-fetch-from: {pattern}",
        "require-human-initiated-session: {token}",
        "session-validation: {token}",
        "session-ttl: {token}",
        "{junk}: {junk}",
        "{junk}",
        "",
    ),
    "/ai.txt": (
        "User-agent: {agent}",
        "  Path: {path} html",
        "  Path: / json",
        "  Path: {path} {token}",
        "    Element: {selector}",
        "      Disallow: {action}",
        "      Guide: {action}",
        "        Lang: {lang}",
        "        Guideline: {junk} {junk}",
        "\tPath: / html",
        "Disallow: {pattern}",
        "Disallow: *.html",
        "Allow: {pattern}",
        "{junk}: {junk}",
        "{junk}",
    ),
}
TDMREP = (
    '{"location": "{pattern}", "tdm-reservation": {json}}',
    '{"location": "{pattern}", "tdm-reservation": 1, "tdm-policy": "{path}"}',
    '{"tdm-reservation": {json}, "tdm-reservation": 0}',
    '{"location": {json}}',
    "{json}",
)
FIELDS = {
    b"X-Robots-Tag": "{directive}",
    b"Content-Usage": "{preferences}",
    b"Usage-Pref": "{preferences}",
    b"Content-Signal": "{preferences}",
    b"tdm-reservation": "{number}",
    b"tdm-policy": "{path}",
    b"Link": '<{path}>; rel="license"; type="application/rsl+xml"',
}
MARKUP = (
    "<p>{junk}</p>",
    '<meta name="robots" content="{directive}">',
    '<meta name="examplebot" content="{directive}">',
    '<meta name="tdm-reservation" content="{number}">',
    '<meta name="tdm-policy" content="{path}">',
    '<link rel="license" type="application/rsl+xml" href="{path}">',
    '<script type="application/rsl+xml">{rsl}</script>',
    '<script type="application/ld+json">{"@type": "AutomationPolicyAnnotation", "allowedPurposes": ["{purpose}"]}</script>',
    '<script type="application/ld+json">{"@graph": [{"@type": "AutomationPolicyAnnotation", "{token}": {json}}]}</script>',
    "<p data-nosnippet>{junk}</p>",
    '<a rel="nofollow" href="{path}">{junk}</a>',
    "{junk}",
)
MOST_LINES = 24
MOST_SYMBOLS = 400  # of one file, so that none grows without end

_SYMBOL = re.compile(r"\{([a-z]+)\}")


def expanded(template: str, choices: Choices, left: int = MOST_SYMBOLS) -> str:
    """The template with an alternative for each symbol in it."""
    while (match := _SYMBOL.search(template)) and match[1] in GRAMMAR:
        alternatives = GRAMMAR[match[1]]
        chosen = choices.of(alternatives) if left > 0 else alternatives[0]
        template = template[: match.start()] + chosen + template[match.end() :]
        left -= 1
    return template


def octets_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def lines(templates: Sequence[str], choices: Choices) -> bytes:
    written = (
        expanded(choices.of(templates) + "{eol}", choices)
        for _ in range(choices.number(MOST_LINES))
    )
    return octets_of("".join(written))


RAW = 255  # first octet of what stands for itself


def raw(kind: str, octets: bytes) -> bytes:
    """Octets that make a target take these for a whole file or page. `kind`: of KINDS."""
    return bytes((RAW, KINDS.index(kind))) + octets


TRUST = ("/trust.txt", "/.well-known/trust.txt")
TRUST_LINES = (
    "datatrainingallowed={training}",
    "DataTrainingAllowed = {training} # {number}",
    "data-training-allowed: {training}",
    "member={url}",
    "# {number}",
)
# Inputs of regressions have the numbers of their kinds.
KINDS = (*LINES, "/.well-known/tdmrep.json", "/license.xml", "page", "field", *TRUST)


def site_files(choices: Choices) -> dict[str, bytes]:
    """The policy files of a site."""
    made = {
        path: lines(templates, choices) for path, templates in LINES.items() if choices.number(4)
    }
    if not choices.number(3):
        made["/.well-known/tdmrep.json"] = octets_of(
            f"[{', '.join(expanded(choices.of(TDMREP), choices) for _ in range(choices.number(6)))}]"
        )
    if not choices.number(4):
        made[choices.of(TRUST)] = lines(TRUST_LINES, choices)
    if not choices.number(3):
        made["/license.xml"] = octets_of(expanded("{rsl}", choices))
    return made


def parted(octets: bytes) -> tuple[Choices, dict[str, bytes]]:
    """The files of a site; and what is left to choose from."""
    if octets[:1] == bytes((RAW,)) and len(octets) > 1:
        kind = KINDS[octets[1] % len(KINDS)]
        choices = Choices(octets[-8:])
        return choices, {kind: octets[2:]} if kind.startswith("/") else {}
    choices = Choices(octets)
    return choices, site_files(choices)


PATHS = (
    "/",
    "/a",
    "/a/b.html",
    "/private/x",
    "/a?b=c",
    "/%61",
    "/%2A",
    "/é\u2028",
    "/x.gif?a#b",
    "/" + "a" * 300,
)


def url_in(choices: Choices) -> str:
    return ORIGIN + choices.of(PATHS)


def request_in(choices: Choices) -> dict[str, Any]:
    """Arguments of Site.access."""
    return {
        "method": choices.of(("GET", "POST", "HEAD", "")),
        "kind": choices.of((None, "document", "api", "xhr", ("api", "xhr"))),
        "automations": choices.of(((), ("headless",), ("cdp", "x"))),
        "purposes": choices.of((None, ("news",), (), ("\u2028",))),
        "headers": choices.of(
            ({}, {"Authorization": "Bearer x"}, {"X-Requested-With": "x"}, {"User-Agent": "y"})
        ),
        "referer": choices.of((None, ORIGIN, "x")),
        "now": NOW,
    }


# What has to hold of everything


def is_shown(text: str) -> bool:
    return text.isprintable() or not any(unicodedata.category(char) in HIDDEN for char in text)


def check_site(site: Site) -> None:
    findings = site.findings
    assert len(findings) <= (MAX_FINDINGS + 1) * 12
    assert all(one.rule in RULES and is_shown(one.message) and one.line >= 0 for one in findings)


@cache
def _schema() -> Any:
    schema = json.loads(
        files("comity.policies").joinpath("permissions.schema.json").read_text("utf-8")
    )
    return jsonschema.Draft202012Validator(schema)


def check_page(page: Page, choices: Choices) -> None:
    """Its tag is understood by whoever reads it, and what it shows is fit to be shown."""
    tag = page.permissions
    read = tag_sources.read({"permissions": tag})
    assert {use: one.is_allowed for use, one in read.uses.items()} == {
        use: page.uses[use].verdict is Verdict.ALLOW for use in page.uses
    }
    assert all(reason["rule"] in RULES and is_shown(reason["text"]) for reason in tag["reasons"])
    assert all(one.rule in RULES and is_shown(one.message) for one in page.findings)
    if not choices.number(64):  # it takes long
        _schema().validate(tag)
        record = {"url": page.url, "permissions": tag}
        assert json.loads(encode_line(record)) == record


def denied(uses: Iterable[str], page: Page) -> set[str]:
    return {use for use in uses if page.uses[use].verdict is DENY}


# The targets

ASKED = (
    "crawl",
    "follow",
    "index",
    "preserve",
    "present",
    "present-snippet",
    "train",
    "ai",
    "search",
    "summarize",
)


OFFER_FIELDS = (
    b"crawler-price",
    b"crawler-error",
    b"Link",
    b"WWW-Authenticate",
    b"PAYMENT-REQUIRED",
)


def fuzz_offer(octets: bytes) -> None:
    """Whatever a site asks for: nothing raises, a price is within its limits, and the text is fit to be shown."""
    lines = octets.split(b"\n")
    headers = [(OFFER_FIELDS[line[0] % len(OFFER_FIELDS)], line[1:]) for line in lines[:-1] if line]
    for status in (402, 401, 200):
        offer = offer_in(status, headers, lines[-1], url=ORIGIN)
        assert offer is not None or status != 402
        if offer is not None:
            assert status != 200
            assert is_shown(str(offer))
            assert all(map(is_shown, (*offer.terms, *offer.licences)))
            assert offer.price is None or 0 <= offer.price.billionths < 10**18


def fuzz_site(octets: bytes) -> None:
    """Whatever stands in the files of a site: nothing raises, and there is an answer with its reasons."""
    choices, given = parted(octets)
    site, url = Site.from_files(ORIGIN, given), url_in(choices)
    decision = site.access(AGENT, url, **request_in(choices))
    assert all(reason.rule in RULES and is_shown(reason.source.text) for reason in decision.reasons)
    assert decision.reasons
    check_site(site)
    check_page(site.page(AGENT, url, body=None, now=NOW), choices)
    site.considered(AGENT, url)
    asked = (
        site.unusable(AGENT),
        site.sitemaps,
        site.references(AGENT),
        site.licenses(AGENT),
        site.requests(AGENT),
    )
    assert all(condition.words for condition in site.conditions(AGENT))
    assert all(request.url.isascii() for request in asked[-1])
    site.rates(AGENT)
    site.limits(AGENT, url)
    assert site.clean(site.clean(url)) == site.clean(url)
    assert site.access(AGENT, f"{ORIGIN}/robots.txt", now=NOW).verdict is not None


def fuzz_explain(octets: bytes) -> None:
    """Whatever stands in the files of a site: it has a meaning in words, which is what is decided of the samples."""
    _, given = parted(octets)
    fetched = {path: Fetched(status=200, body=body) for path, body in given.items()}
    site = Site.from_files(ORIGIN, dict(fetched))
    files = tuple(SourceFile(path, ORIGIN + path, file) for path, file in fetched.items())
    explanation = explain(SiteSource(ORIGIN, site, files, ()), AGENT)
    for group in explanation.groups:
        assert all(answer.sentence and is_shown(answer.sentence) for answer in group.answers)
        assert not any("{" in answer.sentence.partition("`")[0] for answer in group.answers)
    access = explanation.groups[0].answers[0]
    excepted = {url: exception.verdict for exception in access.exceptions for url in exception.urls}
    decided = {"limit": "deny"}  # a plain request is refused, and another one would not be
    anybody = Agent("any-other-crawler")
    if anybody.token not in site.crawler_names:
        verdicts = {url: excepted.get(url, access.verdict) for url in explanation.samples}
        told = {url: decided.get(verdict, verdict) for url, verdict in verdicts.items()}
        assert told == {url: site.access(anybody, url).verdict.value for url in explanation.samples}


MAX_ROUNDS = 10  # of fixes
NAMES = (
    "",
    "a b/",
    "/a/",
    "a,b:c%/",
    "\u202e\n/",
    "\udcff/",
)  # folders of a file, as its user calls them
MISSPELLED = (  # besides the lines that are well written, which have little to mend
    ("Disallow", ("Dissallow", "disallow ", "Disallow\t", "Disalow")),
    ("User-agent", ("Useragent", "USER AGENT", "user-agent", "User agent")),
    (": ", (" ", ":", " : ", "=", ":\xa0")),
    ("    ", ("  ", "\t", "   ", "")),
    ('": "', ('": 1, "', "': '")),
)


def lint_body(kind: lint.LintKind, choices: Choices) -> bytes:
    """A file of a kind, in which authors have made mistakes."""
    if kind.path in LINES:
        body = lines(LINES[kind.path], choices)
    elif kind.name == "tdmrep.json":
        body = site_files(choices).get("/.well-known/tdmrep.json", b"[]")
    elif kind.path in TRUST:
        body = lines(TRUST_LINES, choices)
    elif kind.name == "rsl.xml":
        body = octets_of(expanded("{rsl}", choices))
    elif kind.name == lint.PAGE:
        body = octets_of(
            "".join(expanded(choices.of(MARKUP), choices) for _ in range(choices.number(12)))
        )
    else:
        body = lines(LINES["/ai.txt"], choices)
        with contextlib.suppress(PolicyError):
            body = ai_txt_to_xml(body)
    for _ in range(choices.number(6)):
        right, wrong = choices.of(MISSPELLED)
        body = body.replace(octets_of(right), octets_of(choices.of(wrong)), 1 + choices.number(3))
    return choices.of((b"", b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b" ")) + body


def linted(octets: bytes) -> tuple[Choices, lint.LintKind, bytes]:
    kinds = [*lint.KINDS.values()]
    if octets[:1] == bytes((RAW,)) and len(octets) > 1:
        wanted = KINDS[octets[1] % len(KINDS)].rpartition("/")[2]
        named = lint.KINDS.get({"license.xml": "rsl.xml", "page": lint.PAGE}.get(wanted, wanted))
        choices = Choices(octets[-8:])
        return choices, named or choices.of(kinds), octets[2:]
    choices = Choices(octets)
    kind = choices.of(kinds)
    return choices, kind, lint_body(kind, choices)


def check_problems(problems: Sequence[Problem], bodies: Mapping[str, bytes]) -> None:
    """Each is by a rule, at a place that is there, and can be told. `bodies`: by the name of the file."""
    drafts = {name: Draft(ORIGIN, body) for name, body in bodies.items()}
    for one in problems:
        assert one.rule in RULES
        assert one.message
        assert is_shown(one.message)
        if one.span:
            draft = drafts[one.file]
            assert 0 < one.span.line <= draft.lines
            assert one.text == draft.line(one.span.line).decode("utf-8", "replace")
            assert 0 < one.span.column <= one.span.end_column <= len(one.text) + 1
        if one.fix:
            assert one.fix.edits
            assert is_shown(one.fix.title)
            assert all(
                0 <= edit.start <= edit.end <= len(bodies[one.file]) for edit in one.fix.edits
            )
    told = {form: printed(problems, form) for form in FORMS}
    assert [one["message"] for one in json.loads(told["json"])["problems"]] == [
        one.message for one in problems
    ]
    (run,) = json.loads(told["sarif"])["runs"]
    assert [one["ruleId"] for one in run["results"]] == [one.rule for one in problems]
    commands = told["github"].splitlines()
    assert len(commands) == len(problems)
    assert all(
        re.match(
            r"::(?:error|warning|notice) file=[^,:]*,title=[a-z.-]+(?:,[a-zA-Z]+=\d+)*::.", one
        )
        for one in commands
    )


def printed(problems: Sequence[Problem], form: str) -> str:
    octets = io.BytesIO()
    with (
        io.TextIOWrapper(octets, encoding="utf-8", newline="\n") as output,
        contextlib.redirect_stdout(output),
    ):
        FORMS[form](problems)
        output.flush()
        text = octets.getvalue().decode("utf-8")
    assert all(is_shown(line) for line in text.split("\n")), form
    return text


def meanings(kind: lint.LintKind, body: bytes) -> list[object]:
    """What is decided by a file, without the lines by which it is."""
    if kind.file_kind:
        path = "/ai.txt" if kind.name.startswith("ai") else "/license.xml"
        given = {path: body, "/robots.txt": b"License: /license.xml\n"}
    else:
        given = {kind.path: body} if kind.path else {}
    site = Site.from_files(ORIGIN, given)
    # A line with several addresses means a sitemap each.
    sitemaps = [address for line in site.sitemaps for address in re.split(r"[,;]?\s+", line)]
    decided: list[object] = [sitemaps, site.crawler_names]
    page_body = body if kind.name == lint.PAGE else b""
    for agent in (AGENT, Agent("otherbot", uses=USES), Agent("zznobody", uses=USES)):
        rates = site.rates(agent)
        visit = rates.visit_time if rates else None
        decided += rates and rates[:2], visit and (visit.start, visit.end)
        decided += [(request.action, request.url) for request in site.requests(agent)]
        for path in PATHS[:6]:
            decided.append(site.access(agent, ORIGIN + path, now=NOW).verdict)
            page = site.page(agent, ORIGIN + path, headers=[HTML], body=page_body, now=NOW)
            decided += [
                (page.uses[use].verdict, page.uses[use].stated, page.uses[use].restrictions())
                for use in ASKED
            ]
    return decided


def fuzz_lint(octets: bytes) -> None:
    """Lint finds problems in any file of any kind. Safe fixes come to an end and change no decision, also after an unsafe one."""
    choices, kind, body = linted(octets)
    name = choices.of(NAMES) + kind.name
    lint.kind_of(name, body)
    problems = lint.lint_file(kind, name, body)
    check_problems(problems, {name: body})
    for _ in range(2):
        begin, rounds = body, 0
        while fixes := [one.fix for one in problems if one.fix and not one.fix.changes_decisions]:
            after, made = apply(body, fixes)
            assert made
            assert after != body
            body, rounds = after, rounds + 1
            assert rounds <= MAX_ROUNDS
            problems = lint.lint_file(kind, name, body)
        assert not rounds or meanings(kind, body) == meanings(kind, begin)
        body, _ = apply(body, [one.fix for one in problems if one.fix])
        problems = lint.lint_file(kind, name, body)


def fuzz_lint_site(octets: bytes) -> None:
    """Any robots.txt with any other file beside it, as a folder: what they say together can be told."""
    choices, kind, body = linted(octets)
    robots = lint.KINDS["robots.txt"]
    given = {kind.path: body} if kind.path else {}
    given.setdefault(robots.path, lint_body(robots, choices))
    folder = choices.of(NAMES)
    fetched = {path: Fetched(status=200, body=octets_) for path, octets_ in given.items()}
    files_ = tuple(SourceFile(folder + path, ORIGIN + path, file) for path, file in fetched.items())
    page = SourceFile(
        f"{folder}a.html",
        f"{ORIGIN}/a.html",
        Fetched(status=200, body=body if kind.name == lint.PAGE else b"<p>a"),
    )
    source = SiteSource(ORIGIN, Site.from_files(ORIGIN, dict(fetched)), files_, (page,))
    problems = lint.lint_site(source, [page] if choices.number(2) else [])
    check_problems(problems, {file.name: file.fetched.body for file in (*files_, page)})


REFUSALS: dict[str, tuple[bytes, ...]] = {
    "/robots.txt": (b"Disallow: /\n", b"Disallow: /a\n", b"Disallow: *b\n"),
    "/automation-preferences.txt": (
        b"\nscope: /\nallowed-methods:\n",
        b"\nscope: /a\nallowed-methods:\n",
    ),
    "/ai.txt": (b"User-agent: *\n  Path: /\n    Element: *\n      Disallow: Train\n",),
}


def fuzz_monotony(octets: bytes) -> None:
    """A refusal more never permits more, and a comment changes nothing."""
    choices, given = parted(octets)
    path = choices.of([*REFUSALS])
    before = given.get(path, b"")
    if b"\x00" in before[:2] or before[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return  # what is added would have to be UTF-16, too
    refusal = choices.of(REFUSALS[path])
    site = Site.from_files(ORIGIN, given)
    if path == "/robots.txt":
        read = RobotsFile(f"{ORIGIN}/robots.txt", site.files[f"{ORIGIN}/robots.txt"]).robots
        is_named = read is not None and read.names(AGENT.token)
        refusal = b"User-agent: %s\n%s" % (AGENT.token.encode() if is_named else b"*", refusal)
    more = Site.from_files(ORIGIN, given | {path: before + b"\n" + refusal})
    with_comment = Site.from_files(
        ORIGIN, given | {path: before + (b"\n# comment\n" if before else b"# comment\n")}
    )
    for number in range(4):
        url, request = ORIGIN + PATHS[number], request_in(choices)
        verdict = site.access(AGENT, url, **request).verdict
        assert verdict is not DENY or more.access(AGENT, url, **request).verdict is DENY
        assert with_comment.access(AGENT, url, **request).verdict is verdict
        page = site.page(AGENT, url, body=None, now=NOW)
        if path == "/ai.txt":
            assert denied(ASKED, page) <= denied(ASKED, more.page(AGENT, url, body=None, now=NOW))
        assert denied(ASKED, page) == denied(
            ASKED, with_comment.page(AGENT, url, body=None, now=NOW)
        )


MARK = "Zq7marked"
HTML, JSON, XML = (
    (b"Content-Type", b"text/html; charset=utf-8"),
    (b"Content-Type", b"application/json"),
    (b"Content-Type", b"text/xml"),
)
PAGE_SITE = {
    "/robots.txt": b"User-agent: *\nDisallow: /private/\n",
    "/ai.txt": b"User-agent: *\n  Path: / html xml\n    Element: .quote\n      Disallow: Train\n"
    b"  Path: / json\n    Element: quote\n      Disallow: Train\n  Path: / xml\n    Element: quote\n      Disallow: Train\n",
}


def nested(choices: Choices, depth: int = 0) -> str:
    """Well-formed elements, some of them refused, with marks in these only."""
    made = ""
    for _ in range(choices.number(5)):
        match choices.number(6):
            case 0:
                made += choices.of(("a", " ", "é", "&amp;", "<br>", "<!-- a -->"))
            case 1:
                inner = nested(choices, depth + 1) if depth < 6 else ""
                made += f'<div class="{choices.of(("quote", "a quote", "quote b"))}">{MARK}{inner}</div>'
            case 2:
                made += f'<span class="quote" title="{MARK}">{MARK}</span>'
            case _:
                name = choices.of(("div", "section", "span", "b", "em", "article"))
                made += (
                    f"<{name}>{nested(choices, depth + 1) if depth < 6 else 'b'}</{name}>"
                    if name in ("div", "section")
                    else f"<{name}>c</{name}>"
                )
    return made


def nested_json(choices: Choices, depth: int = 0) -> Any:
    match choices.number(7 if depth < 6 else 3):
        case 0:
            return choices.of((1, 1.0, -0.0, 1e300, "a", "é\u2028", None, True, 10**30))
        case 1:
            return "b"
        case 2:
            return []
        case 3:
            return [nested_json(choices, depth + 1) for _ in range(choices.number(4))]
        case 4:
            return {
                "quote": [MARK, nested_json(choices, depth + 1)],
                "a": nested_json(choices, depth + 1),
            }
        case _:
            return {
                choices.of(("a", "b", "quot", "é")): nested_json(choices, depth + 1)
                for _ in range(choices.number(4))
            }


def fuzz_page(octets: bytes) -> None:
    """Whatever comes back for a page: nothing raises, and a header field more permits nothing more."""
    if octets[:1] == bytes((RAW,)) and len(octets) > 1:
        choices, body, headers = Choices(octets[-8:]), octets[2:], [HTML]
        if KINDS[octets[1] % len(KINDS)] == "field":
            headers, body = [HTML, *((name, body) for name in FIELDS)], b""
    else:
        choices = Choices(octets)
        body = octets_of(
            "".join(expanded(choices.of(MARKUP), choices) for _ in range(choices.number(12)))
        )
        names = [choices.of([*FIELDS]) for _ in range(choices.number(4))]
        headers = [
            choices.of(
                (
                    HTML,
                    HTML,
                    HTML,
                    JSON,
                    XML,
                    (b"Content-Type", b"\xff"),
                    (b"Content-Type", b"text/html; charset=utf-16"),
                )
            )
        ]
        headers += [
            (name, octets_of(expanded(FIELDS[name], choices)).replace(b"\n", b"")) for name in names
        ]
    site, url = Site.from_files(ORIGIN, PAGE_SITE), url_in(choices)
    page = site.page(AGENT, url, headers=headers, body=body, now=NOW)
    check_page(page, choices)
    page.redacted(("train",))
    page.tag_of({"text": body[:200].decode("utf-8", "replace"), "links": [url]}, {})
    refused = denied(ASKED, page)
    for field in ((b"X-Robots-Tag", b"none, noai"), (b"tdm-reservation", b"1")):
        assert refused <= denied(
            ASKED, site.page(AGENT, url, headers=[*headers, field], body=body, now=NOW)
        )
    assert site.refused_by_headers(AGENT, url, headers, NOW) is None or refused >= set(USES)


XMP = (
    *(
        b"<",
        b">",
        b"'",
        b"</",
        b"/>",
        b"<!--",
        b"-->",
        b"&a;",
        b"</rdf:RDF>",
        b":OtherConstraints>",
    ),
    *(b"xmlns:plus='http://ns.useplus.org/ldf/xmp/1.0/'", b" plus:DataMining='", b"DMI-ALLOWED"),
    *(b"<plus:DataMining>", b"</plus:DataMining>", b"DMI-PROHIBITED-AIMLTRAINING", b"DMI-ASK"),
    *(b"iTXtXML:com.adobe.xmp\0\1\0\0\0", b"/Type /Metadata /FlateDecode stream\n", b"/Encrypt"),
    *(b"jumb\0\0\0\x2ejumd" + bytes(17) + b"cawg.training-mining\0", b"\0\0\0\x40cborentries"),
    *(b"cawg.ai_training", b"\x63use\x67allowed", b"\x63use\x6anotAllowed", b"\xff\xeb\0\x20JP"),
    *(b"http://ns.adobe.com/xmp/extension/\0", b"\xff\xe1\0\x60", b"\xff\xda"),
)
MEDIA = (b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"%PDF-1.7 ", b"II*\0", b"RIFF1234WEBP", b"GIF89a")


def fuzz_media(octets: bytes) -> None:
    """Metadata of images: nothing raises, and a refusal in the same file is not lost."""
    choices = Choices(octets)
    start = choices.of(MEDIA)
    parts = [
        choices.of(XMP) if choices.number(4) else bytes((choices.number(256),))
        for _ in range(choices.number(40))
    ]
    site, body = Site.from_files(ORIGIN, PAGE_SITE), b"".join(parts)
    check_page(site.page(AGENT, f"{ORIGIN}/", body=start + body, now=NOW), choices)
    refusing = (
        b"<rdf:RDF xmlns:a='http://ns.useplus.org/ldf/xmp/1.0/' a:DataMining='DMI-PROHIBITED'>"
    )
    page = site.page(AGENT, f"{ORIGIN}/", body=start + refusing + b"</rdf:RDF>" + body, now=NOW)
    assert "tdm" in denied(("tdm",), page)


def fuzz_registry(octets: bytes) -> None:
    """A registry of opt-outs is read, or one line says what is wrong with it."""
    form = FORMS_OF_REGISTRIES[octets[0] % len(FORMS_OF_REGISTRIES)] if octets else "lines"
    with contextlib.suppress(PolicyError):
        registry = read_registry("list", form, io.BytesIO(octets[1:]), lambda host: False)
        assert registry.entries


def fuzz_redaction(octets: bytes) -> None:
    """What is refused is in nothing that is made for the use."""
    choices = Choices(octets)
    kind, made = choices.number(3), ""
    if kind == 0:
        made = choices.of(("", "<!doctype html>", "<html><body>")) + nested(choices)
    elif kind == 1:
        made = json.dumps(nested_json(choices), ensure_ascii=bool(choices.number(2)))
    else:
        made = f"<r>{nested(choices).replace('<br>', '<br/>').replace('&amp;', '')}<quote>{MARK}</quote></r>"
    page = Site.from_files(ORIGIN, PAGE_SITE).page(
        AGENT,
        f"{ORIGIN}/",
        headers=[(HTML, JSON, XML)[kind]],
        body=made.encode("utf-8", "surrogatepass"),
        now=NOW,
    )
    left = page.redacted(("train",))
    assert MARK.encode() not in left
    record = {
        "url": page.url,
        "html": made,
        "text": MARK + " a " + MARK,
        "permissions": page.tag_of({"html": made}, {}),
    }
    if MARK in made:
        answer = apply_terms(record, Terms.of(["train"], now=NOW))
        assert answer.record is None or MARK not in str(answer.record.get("html") or "")


def fuzz_guard(octets: bytes) -> None:
    """The guard refuses what a crawler that reads the same files would not ask for."""
    choices, given = parted(octets)
    given.setdefault("/robots.txt", b"")
    try:
        guard = Guard(
            ORIGIN,
            {path: body for path, body in given.items() if path in LINES},
            clock=NOW.timestamp,
        )
    except PolicyError:
        return
    site = Site.from_files(ORIGIN, {path: body for path, body in given.items() if path in LINES})
    target = choices.of([path for path in PATHS if path.isascii()])
    method = choices.of(("GET", "POST", "HEAD"))
    agent = Agent("examplebot" if "examplebot" in site.crawler_names else "zznobody")
    answer = guard.check(
        Incoming(method, target, {"user-agent": f"{agent.token}/1.0"}, "192.0.2.1")
    )
    decision = site.access(agent, ORIGIN + target, method=method, purposes=(), now=NOW)
    if decision.verdict is DENY:
        assert not isinstance(answer, Pass), decision
    elif not isinstance(answer, Pass):
        assert answer.status in (200, 304, 401, 403, 405, 429)


SIGNER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
SIGNED = {
    name.lower(): value
    for name, value in Signer("https://bot.example.org", SIGNER_KEY, NOW.timestamp)
    .fields(ORIGIN)
    .items()
}
SIGNED_PIECES = (
    *('"', "(", ")", ";", ",", "=", ":", " ", "sig1", "sig1=", "?1", "5", "a", "\x00", "é"),
    *('"@authority"', '"@path"', '"@query-param";name="a"', '"signature-agent"', '"signature"'),
    *(";created", ";expires=1", ";keyid", ";req", ";sf", ";bs", ";tr", ';key="sig1"', ";nonce"),
    *SIGNED.values(),
)


def fuzz_signatures(octets: bytes) -> None:
    """Only what the key has signed is verified: any other member of Signature-Input is not."""
    choices = Choices(octets)
    fields = dict(SIGNED)
    for _ in range(choices.number(4)):
        name = choices.of(sorted(fields))
        begin = choices.number(len(fields[name]) + 1)
        end = begin + choices.number(1 + len(fields[name]) - begin)
        pieces = (choices.of(SIGNED_PIECES) for _ in range(choices.number(4)))
        fields[name] = fields[name][:begin] + "".join(pieces) + fields[name][end:]
    request = SignedRequest("GET", f"{ORIGIN}/", fields)
    found = verify(request, lambda *_: KeyAnswer(SIGNER_KEY.public_key()), NOW.timestamp())
    if any(signature.outcome is Outcome.VERIFIED for signature in found):
        inputs: list[Any] = [
            http_sf.parse(each["signature-input"].encode(), tltype="dictionary")
            for each in (SIGNED, fields)
        ]
        [member], members = (each.values() for each in inputs)
        assert member in members, fields


def fuzz_ai_txt(octets: bytes) -> None:
    """Text to XML and back is the same rules, and nothing raises but PolicyError."""
    choices, given = parted(octets)
    body = given.get("/ai.txt", choices.rest())
    with contextlib.suppress(PolicyError):
        document = ai_txt_to_xml(body)
        again = ai_txt_to_xml(ai_txt_from_xml(document))
        assert again == document
    with contextlib.suppress(PolicyError):
        ai_txt_from_xml(body)


def fuzz_prompt(octets: bytes) -> None:
    """What a site has written stays within its quotation marks: the text around it is the same."""
    choices, given = parted(octets)
    page = Site.from_files(ORIGIN, given).page(AGENT, url_in(choices), body=None, now=NOW)
    action = choices.of(("Train", "summarize", "index", "\x1b"))
    try:
        text = instructions(page, action, choices.of(("", "en", "de-AT")))
    except PolicyError:
        return
    assert all(char == "\n" or char.isprintable() for char in text)
    without = re.sub(r'"[^"\n]*"', "", text)
    assert '"' not in without
    assert without.startswith("What a website asks of an AI agent")
    assert without.endswith("\nEnd of what the website asks.\n")


PARTS: tuple[Any, ...] = (
    0,
    1,
    -1,
    True,
    None,
    "",
    "x",
    "allow",
    "deny",
    [],
    {},
    [0],
    [[0]],
    {"x": 1},
    "\ud800",
    1.5,
    10**20,
    ["train"],
    "2099-01-01T00:00:00Z",
    "1",
)


def mutated(value: Any, choices: Choices, depth: int = 0) -> Any:
    """JSON with something else in some places."""
    if not choices.number(40):
        return choices.of(PARTS)
    if isinstance(value, dict):
        made = {
            key: mutated(member, choices, depth + 1)
            for key, member in value.items()
            if choices.number(60)
        }
        if not choices.number(30):
            made[
                choices.of((*value, "x", "until", "whole", "urls", "max_words", "must_use", "part"))
            ] = choices.of(PARTS)
        return made
    if isinstance(value, list):
        return [
            mutated(member, choices, depth + 1)
            for member in value
            for _ in range(1 if choices.number(30) else 2)
        ]
    return value


@cache
def _tag() -> str:
    files_ = {
        "/robots.txt": b"User-agent: *\nUsage: ai=n\nACAP-crawler: *\nACAP-allow-index: / time-limit=30-days\n",
        "/ai.txt": PAGE_SITE["/ai.txt"],
    }
    headers = [HTML, (b"X-Robots-Tag", b"max-snippet:9, noarchive")]
    page = Site.from_files(ORIGIN, files_).page(
        AGENT, f"{ORIGIN}/a", headers=headers, body=b'<p class="quote">a b</p>c', now=NOW
    )
    return json.dumps(page.tag_of({"text": "a b c", "links": [f"{ORIGIN}/b"]}, {}))


def record_in(choices: Choices) -> dict[str, Any]:
    record: dict[str, Any] = {
        "url": f"{ORIGIN}/a",
        "fetched_at": "2026-11-21T12:00:00+00:00",
        "text": "a b c",
        "links": [f"{ORIGIN}/b"],
        "files": [{"url": f"{ORIGIN}/b"}],
        "permissions": json.loads(_tag()),
    }
    made = mutated(record, choices)
    return made if isinstance(made, dict) else record


def fuzz_tag(octets: bytes) -> None:
    """A tag of anybody: what is judged by it raises nothing, and permits nothing that it does not list as permitted."""
    choices = Choices(octets)
    record = record_in(choices)
    use = choices.of(("train", "index", "search", "present-snippet"))
    answer = apply_terms(record, Terms.of([use], now=NOW))
    if answer.record is not None:
        read = tag_sources.read(record)
        assert read.uses[use].is_allowed
        assert not any(use in element.deny and element.is_whole for element in read.elements)
    StatsPass(NOW)([record])
    judge_expiry(record, ExpiryTerms.create(NOW, taken_down=[f"{ORIGIN}/b"]))
    site = Site.from_files(ORIGIN, {"/robots.txt": b"User-agent: *\nUsage: ai=n\n"})
    check = recheck(record, lambda _: site, Today(AGENT, NOW))
    assert check.refusals or all(one.verdict is not None for one in check.uses)
    with contextlib.suppress(TagError):
        tag_sources.read(record)
        _schema().validate(record["permissions"])


def fuzz_columns(octets: bytes) -> None:
    """Records come back from columns as they were; those that cannot say so."""
    choices = Choices(octets)
    records = [record_in(choices) for _ in range(1 + choices.number(3))]
    back = typed.decode(typed.encode(records))
    for before, after in zip(records, back, strict=True):
        assert (
            isinstance(after, Unreadable)
            or json.dumps(after, sort_keys=True) == json.dumps(before, sort_keys=True)
            or after == before
        )


_FOLDER = tempfile.TemporaryDirectory()


def fuzz_readers(octets: bytes) -> None:
    """Files of anybody: what cannot be read is said, and nothing else raises."""
    choices = Choices(octets[:2])
    name = choices.of(
        (
            *("a.jsonl", "a.jsonl.gz", "a.warc", "a.warc.gz", "a.parquet"),
            *("a.csv", "a.csv.gz", "a.arrow", "a.arrows", "a.tar"),
        )
    )
    path = Path(_FOLDER.name) / name
    path.write_bytes(_file_of(name, choices.number(4), octets[2:]))
    modules = {"jsonl": jsonl, "warc": warc, "parquet": parquet, "csv": delimited}
    modules |= {"arrow": ipc, "arrows": ipc, "tar": shards}
    module: Any = modules[name.split(".")[1]]
    with contextlib.suppress(DatasetError, OSError):
        reader = module.Reader(path)
        reader.may_mention("until_recrawled")
        total = 0
        for part in reader.parts():
            total += part.octets
            for batch in reader.read(part):
                for one in batch:
                    assert isinstance(one, Unreadable | dict)
                    if isinstance(one, dict):
                        StatsPass(NOW)([one])
        assert total == reader.size


def fuzz_archives(octets: bytes) -> None:
    """WACZ files and indexes of anybody: captures are read, or their place is named."""
    choices = Choices(octets[:2])
    name = choices.of(("a.wacz", "a.deflated.wacz", "a.cdxj", "a.cdx.gz"))
    path = Path(_FOLDER.name) / name
    path.write_bytes(_file_of(name, choices.number(4), octets[2:]))
    readers = (captures.Reader, warc.Reader) if name.endswith("wacz") else (cdx.Reader,)
    for kind in readers:
        with contextlib.suppress(DatasetError):
            reader: Any = kind(path)
            total = 0
            for part in reader.parts():
                total += part.octets
                for batch in reader.read(part):
                    assert all(isinstance(one, Unreadable | dict) for one in batch)
                    for one in batch:
                        place = place_of(one) if isinstance(one, dict) else None
                        assert place is None or ".." not in place.name.split("/")
            assert total == reader.size


@cache
def _whole(name: str) -> bytes:
    """A file that can be read."""
    if name.endswith("wacz"):
        members = {"archive/a.warc.gz": _whole("a.warc.gz"), "archive/b.warc": _whole("a.warc")}
        resources = [
            {"path": name, "hash": f"sha256:{hashlib.sha256(octets).hexdigest()}"}
            for name, octets in members.items()
        ]
        members["datapackage.json"] = json.dumps({"resources": resources}).encode()
        method = zipfile.ZIP_DEFLATED if "deflated" in name else zipfile.ZIP_STORED
        with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
            for member, octets in members.items():
                archive.writestr(zipfile.ZipInfo(member), octets, method)
        return file.getvalue()
    if name.startswith("a.cdx"):
        row = {
            "url": f"{ORIGIN}/a",
            "status": "200",
            "mime": "text/html",
            "filename": "a/b.warc.gz",
        }
        line = f"{json.dumps(row | {'offset': '5', 'length': '7'})}\n"
        octets = f"com,example)/a 20240518015810 {line}{line}".encode()
        return gzip.compress(octets, mtime=0) if name.endswith("gz") else octets
    record = {"url": f"{ORIGIN}/a", "text": "a", "permissions": json.loads(_tag())}
    path = Path(_FOLDER.name) / f"whole.{name}"
    if name.startswith("a.warc"):
        block = json.dumps(record).encode()
        head = b"WARC/1.1\r\nWARC-Type: metadata\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        octets = (head % len(block) + block + b"\r\n\r\n") * 2
        return (
            b"".join(gzip.compress(octets, mtime=0) for _ in range(2))
            if name.endswith("gz")
            else octets
        )
    if name == "a.tar":
        with tarfile.open(path, "w") as archive:
            for member in ("0.jpg", "0.json", "0.txt"):
                content = json.dumps(record).encode() if member == "0.json" else b"a"
                info = tarfile.TarInfo(member)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return path.read_bytes()
    if name.startswith("a.csv"):
        tag = json.dumps(record["permissions"]).replace('"', '""')
        octets = f'url,text,permissions\n{ORIGIN}/a,"a\nb","{tag}"\n'.encode()
        return gzip.compress(octets, mtime=0) if name.endswith("gz") else octets
    module: Any = jsonl if "jsonl" in name else ipc if "arrow" in name else parquet
    with module.Writer(path) as writer:
        writer.write(writer.encode([record, record]))
    return path.read_bytes()


def _file_of(name: str, how: int, octets: bytes) -> bytes:
    """The octets, or a good file that they damage: each three say where, and what stands there."""
    if how == 0:
        return octets
    whole = bytearray(_whole(name))
    for at in range(0, len(octets) - 2, 3):
        place = int.from_bytes(octets[at : at + 2]) % len(whole)
        whole[place] = octets[at + 2]
    return bytes(whole) if how < 3 else bytes(whole)[: len(whole) - len(octets)]


def fuzz_vocabulary(octets: bytes) -> None:
    """An operator's table is read, or there is a PolicyError with what to write."""
    choices = Choices(octets)
    table = "".join(
        choices.of(
            (
                "replaces = true\n",
                '[vocabulary.a.terms]\nb = {narrows = ["c"]}\nc = {}\n',
                '[vocabulary.a.terms]\nb = {narrows = ["b"]}\n',
                '[[relation]]\nuses = ["train"]\nkind = "within"\nterms = ["a:b"]\n',
                '[[relation]]\nuses = 1\nkind = "touches"\nterms = ["a"]\n',
                "[vocabulary]\na = 1\n",
                "x = ",
                '"\\u0000"',
                "\n",
            )
        )
        for _ in range(choices.number(6))
    )
    for text in (table, octets.decode("utf-8", "replace")):
        with contextlib.suppress(PolicyError):
            vocabulary = Vocabulary.from_toml(text)
            Site.from_files(ORIGIN, {}).page(
                Agent("a", uses=("b",), vocabulary=vocabulary), ORIGIN, body=b"", now=NOW
            ).uses["b"]


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): target
    for name, target in globals().items()
    if name.startswith("fuzz_")
}
