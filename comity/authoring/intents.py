"""The five intents of publishers, and their forms in each format, as data for docs and editors.

for intent in INTENTS:
    for form in intent.forms:
        for artefact in form.artefacts:
            artefact.text({"crawler": "examplebot"})    the text, with parameters

`Form.remark` tells how a form differs from the intent. `Intent.unsaid` lists the formats that
cannot state the intent."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import NamedTuple

from comity.policies.syntax.windows import limit_text

# The locations of artefacts that are no files.
FIELD = "response field"  # applies to the content of that response
ELEMENT = "HTML element"  # in the head of a page

RFC = "robots.txt"
ACAP = "ACAP"
AUTOMATION = "automation-preferences.txt"
USAGE = "usage preference strings"
AIPREF = "Content-Usage"
SIGNALS = "Content Signals"
AI_TXT = "ai.txt"
SPAWNING = "ai.txt of Spawning"
META = "robots meta"
TDMREP = "TDMRep"
RSL = "RSL"
FORMATS = (RFC, ACAP, AUTOMATION, USAGE, AIPREF, SIGNALS, AI_TXT, SPAWNING, META, TDMREP, RSL)

# Crawlers that fetch for training, and product tokens that permit or refuse training with content
# that other crawlers have fetched. known_crawlers.toml has the sources.
TRAINING_CRAWLERS = (
    "Ai2Bot-Dolma",
    "Applebot-Extended",
    "Bytespider",
    "CCBot",
    "ClaudeBot",
    "cohere-training-data-crawler",
    "Google-Extended",
    "GPTBot",
    "meta-externalagent",
)

ROBOTS = "/robots.txt"


class Parameter(NamedTuple):
    """A value that the publisher chooses."""

    name: str
    summary: str
    default: str


class Artefact(NamedTuple):
    """One file, header field or element.

    Attributes:
        location: The path on the site, FIELD or ELEMENT.
        template: The template of the text. `$name` is a parameter, `$$` a dollar sign.
    """

    location: str
    template: str

    def text(self, parameters: Mapping[str, str]) -> str:
        """Return the text with these parameters. KeyError: a parameter is missing."""
        return Template(self.template).substitute(parameters)


class Form(NamedTuple):
    """One way to state an intent in one format.

    Attributes:
        format: The format, one of FORMATS.
        artefacts: The files, fields and elements, which have an effect only together.
        remark: A sentence about the difference between the form and the intent.
    """

    format: str
    artefacts: tuple[Artefact, ...]
    remark: str


class Unsaid(NamedTuple):
    """A format that cannot state an intent, one of FORMATS, and the reason."""

    format: str
    reason: str


class Intent(NamedTuple):
    """A wish of many publishers.

    Attributes:
        name: The name for programs.
        title: The name for people.
        summary: The wish, in one sentence.
        forms: The ways to state the intent.
        unsaid: The formats that cannot state the intent.
        parameters: The values that the publisher chooses.
    """

    name: str
    title: str
    summary: str
    forms: tuple[Form, ...]
    unsaid: tuple[Unsaid, ...]
    parameters: tuple[Parameter, ...] = ()

    def values(self, **values: str) -> dict[str, str]:
        """Return the values of all parameters, with defaults for those that are not given.

        `seconds` also gives the value `limit` (`request_limit`).
        KeyError: the intent has no such parameter.
        ValueError: `seconds` is no number, or out of range."""
        parameters = {parameter.name: parameter.default for parameter in self.parameters}
        for name, value in values.items():
            if name not in parameters:
                raise KeyError(name)
            parameters[name] = value
        if "seconds" in parameters:
            parameters["limit"] = request_limit(int(parameters["seconds"]))
        return parameters


def request_limit(seconds: int) -> str:
    """Return a request-limit of automation-preferences.txt: at most one request in so many seconds.

    ValueError: the time is shorter than a second or longer than a day."""
    if not 1 <= seconds <= 24 * 3600:
        raise ValueError(f"{seconds} seconds between requests cannot be said: write 1 to 86400")
    return limit_text(1, seconds)


def _in_robots(*lines: str) -> Artefact:
    return Artefact(ROBOTS, "".join(f"{line}\n" for line in lines))


def _rsl(*lines: str) -> tuple[Artefact, ...]:
    """Return an RSL document for the whole site, and the line in robots.txt that refers to it."""
    document = (
        '<rsl xmlns="https://rslstandard.org/rsl">\n  <content url="/">\n    <license>\n'
        + "".join(f"      {line}\n" for line in lines)
        + "    </license>\n  </content>\n</rsl>\n"
    )
    return (
        _in_robots("License: $origin/license.xml", "", "User-agent: *", "Disallow:"),
        Artefact("/license.xml", document),
    )


def _ai_txt(*lines: str) -> Artefact:
    """Return an ai.txt with these lines for each type of resource that the format knows."""
    blocks = (
        f"  Path: / {type_}\n    Element: *\n" + "".join(f"      {line}\n" for line in lines)
        for type_ in ("html", "json", "xml")
    )
    return Artefact("/ai.txt", "User-agent: *\n" + "".join(blocks))


_NO_TRAINING_CRAWLERS = (*(f"User-agent: {name}" for name in TRAINING_CRAWLERS), "Disallow: /")
_ACAP_NO_OTHER = (
    "ACAP-crawler: *",
    "ACAP-allow-crawl: /",
    "ACAP-allow-follow: /",
    "ACAP-allow-index: /",
    "ACAP-allow-preserve: /",
    "ACAP-allow-present: /",
    "ACAP-disallow-other: /",
)
_ORIGIN = Parameter("origin", "origin of the site", "https://example.com")
_USES_ONLY = "The format is about uses of content, not about requests."
_NO_SNIPPETS = "The format has no word for snippets."
_NO_RATE = "The format has no word for the rate of requests."

NO_TRAINING = Intent(
    "no-training",
    "No training",
    "Nobody may train models with the site. Nothing else changes.",
    (
        Form(
            RFC,
            (_in_robots(*_NO_TRAINING_CRAWLERS, "", "User-agent: *", "Disallow:"),),
            "The file refuses all requests of the crawlers in it. The format has no word for "
            "training, so other crawlers are not bound.",
        ),
        Form(
            ACAP,
            (_in_robots(*_ACAP_NO_OTHER),),
            "The format has no word for training. `other` refuses every use that no line names,"
            " including the use `search` of later formats.",
        ),
        Form(
            USAGE,
            (_in_robots("User-agent: *", "Usage: ai=n", "Disallow:"),),
            "The format has no word for training alone: `ai` means training and any use of a "
            "model.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: ai=n\n"),),
            "The field refuses training and any use of a model, for the content of the response.",
        ),
        Form(
            AIPREF,
            (_in_robots("User-agent: *", "Content-Usage: train-ai=n", "Disallow:"),),
            "The file says exactly this.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, "Content-Usage: train-ai=n\n"),),
            "The field says exactly this, for the content of the response.",
        ),
        Form(
            SIGNALS,
            (_in_robots("User-agent: *", "Content-Signal: ai-train=no", "Disallow:"),),
            "The file says exactly this. Repeat the line in every group for a single crawler.",
        ),
        Form(
            AI_TXT,
            (_ai_txt("Disallow: Train"),),
            "The file says exactly this for HTML, JSON and XML, but not for images and other "
            "files.",
        ),
        Form(
            SPAWNING,
            (Artefact("/ai.txt", "User-Agent: *\nDisallow: /\n"),),
            "The file says exactly this. A site has only one ai.txt: choose this format or the "
            "other.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="noai, noimageai">\n'),),
            "The format has no word for training alone: `noai` means any use for AI. No search "
            "engine documents it.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: noai, noimageai\n"),),
            "The field says the same as the element, for files of any type.",
        ),
        Form(
            TDMREP,
            (Artefact("/.well-known/tdmrep.json", '[{"location": "/", "tdm-reservation": 1}]\n'),),
            "The file reserves the right to mine text and data. Training is part of that. Other "
            "mining is refused too.",
        ),
        Form(
            TDMREP,
            (Artefact(FIELD, "tdm-reservation: 1\n"),),
            "The field reserves the right to mine the content of the response.",
        ),
        Form(
            TDMREP,
            (Artefact(ELEMENT, '<meta name="tdm-reservation" content="1">\n'),),
            "The element reserves the right to mine the page.",
        ),
        Form(
            RSL,
            _rsl('<prohibits type="usage">ai-train</prohibits>'),
            "The document says exactly this.",
        ),
    ),
    (
        Unsaid(
            AUTOMATION,
            "The format can list the purposes of welcome requests, but not the purposes of "
            "unwelcome ones.",
        ),
    ),
    (_ORIGIN,),
)

NO_TRAINING_BUT_SEARCH = Intent(
    "no-training-but-search",
    "No training, but search",
    "Nobody may train models with the site. Search engines may use it.",
    (
        Form(
            RFC,
            (_in_robots(*_NO_TRAINING_CRAWLERS, "", "User-agent: *", "Disallow:"),),
            "The file is the same as for no training. It does not contain the crawlers of search"
            " engines, so they may fetch. The format cannot say that search is permitted.",
        ),
        Form(
            ACAP,
            (_in_robots(*_ACAP_NO_OTHER),),
            "The file is the same as for no training. It permits indexing and showing by name. "
            "The use `search` of later formats is neither of them, so `other` refuses it.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    "/automation-preferences.txt",
                    "scope: /\nallowed-methods: GET, HEAD\nallowed-purposes: search\n",
                ),
            ),
            "The file permits requests for search and refuses all others: requests for "
            "training, requests without a purpose, and requests of forms, APIs and automated "
            "browsers.",
        ),
        Form(
            USAGE,
            (_in_robots("User-agent: *", "Usage: ai=n, search=y", "Disallow:"),),
            "The format has no word for training alone: `ai` means training and any use of a "
            "model.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: ai=n, search=y\n"),),
            "The field refuses training and any use of a model, and permits search, for the "
            "content of the response.",
        ),
        Form(
            AIPREF,
            (_in_robots("User-agent: *", "Content-Usage: train-ai=n, search=y", "Disallow:"),),
            "The file says exactly this.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, "Content-Usage: train-ai=n, search=y\n"),),
            "The field says exactly this, for the content of the response.",
        ),
        Form(
            SIGNALS,
            (_in_robots("User-agent: *", "Content-Signal: search=yes, ai-train=no", "Disallow:"),),
            "The file says exactly this. Repeat the line in every group for a single crawler.",
        ),
        Form(
            AI_TXT,
            (
                _ai_txt(
                    "Disallow: Train",
                    "Guide: Index",
                    "  Lang: en",
                    "  Guideline: Link to the page.",
                ),
            ),
            "The file refuses training, and permits indexes for AI with an instruction. A Guide "
            "must have an instruction.",
        ),
        Form(
            RSL,
            _rsl(
                '<permits type="usage">search</permits>',
                '<prohibits type="usage">ai-train</prohibits>',
                '<payment type="free"/>',
            ),
            "The document says this and more: a list of permitted uses is exhaustive, so all "
            "other uses are not licensed.",
        ),
    ),
    (
        Unsaid(
            SPAWNING,
            "The format is about training only. The file for no training leaves search open.",
        ),
        Unsaid(META, "The format can only refuse. The element for no training leaves search open."),
        Unsaid(
            TDMREP,
            "The format is about mining as a whole. The file for no training leaves search open.",
        ),
    ),
    (_ORIGIN,),
)

NO_SNIPPETS = Intent(
    "no-snippets",
    "No snippets",
    "Nobody may show parts of the text, for example in search results. Search may still find "
    "the page.",
    (
        Form(
            ACAP,
            (
                _in_robots(
                    "ACAP-crawler: *",
                    "ACAP-disallow-present-snippet: /",
                    "ACAP-disallow-present-oldsnippet: /",
                ),
            ),
            "The file says exactly this. No search engine is known to read it.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="nosnippet">\n'),),
            "The element says this, and also refuses whole copies and answers by AI. "
            "`max-snippet:50` permits 50 characters instead. `data-nosnippet` on an element "
            "refuses that element only.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: nosnippet\n"),),
            "The field says the same as the element, for files of any type.",
        ),
    ),
    (
        Unsaid(RFC, "The format is about requests, not about uses of the answers."),
        Unsaid(AUTOMATION, "The format is about requests, not about uses of the answers."),
        Unsaid(USAGE, _NO_SNIPPETS),
        Unsaid(AIPREF, _NO_SNIPPETS),
        Unsaid(SIGNALS, "The signal `search` covers an index and short excerpts together."),
        Unsaid(
            AI_TXT,
            "The format has no word for snippets. `Return` refuses that AI shows any of the "
            "content, whole or in part.",
        ),
        Unsaid(SPAWNING, "The format is about training only."),
        Unsaid(TDMREP, _NO_SNIPPETS),
        Unsaid(RSL, _NO_SNIPPETS),
    ),
)

SLOWER = Intent(
    "slower",
    "Slower",
    "Crawlers may fetch everything, but not so fast.",
    (
        Form(
            RFC,
            (_in_robots("User-agent: *", "Crawl-delay: $seconds", "Disallow:"),),
            "The line is not in RFC 9309, but old and widely obeyed. Google ignores it. Repeat "
            "the line in every group for a single crawler.",
        ),
        Form(
            RFC,
            (_in_robots("User-agent: *", "Request-rate: 1/$seconds", "Disallow:"),),
            "This line is older and rarer. It can be limited to times of the day.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    "/automation-preferences.txt",
                    "scope: /\nallowed-methods: GET, HEAD\n"
                    "request-limit: $limit\nconcurrent-limit: 1\n",
                ),
            ),
            "The group limits all requests together to a number in a time, and to one at a "
            "time. It refuses forms, APIs and automated browsers, unless you add them.",
        ),
    ),
    (
        Unsaid(ACAP, _NO_RATE),
        Unsaid(USAGE, _NO_RATE),
        Unsaid(AIPREF, _NO_RATE),
        Unsaid(SIGNALS, _NO_RATE),
        Unsaid(AI_TXT, _NO_RATE),
        Unsaid(SPAWNING, _NO_RATE),
        Unsaid(META, _NO_RATE),
        Unsaid(TDMREP, _NO_RATE),
        Unsaid(RSL, _NO_RATE),
    ),
    (Parameter("seconds", "seconds between two requests", "10"),),
)

NOBODY_BUT = Intent(
    "nobody-but",
    "Nobody but X",
    "One crawler may fetch and use everything, and nobody else anything.",
    (
        Form(
            RFC,
            (_in_robots("User-agent: $crawler", "Disallow:", "", "User-agent: *", "Disallow: /"),),
            "The file says exactly this about requests.",
        ),
        Form(
            ACAP,
            (
                _in_robots(
                    "ACAP-crawler: $crawler",
                    "ACAP-allow-crawl: /",
                    "ACAP-allow-other: /",
                    "",
                    "ACAP-crawler: *",
                    "ACAP-disallow-crawl: /",
                    "ACAP-disallow-other: /",
                ),
            ),
            "The file says exactly this about requests and about every use.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    "/automation-preferences.txt",
                    "scope: /\nallowed-methods:\n\n"
                    "scope: /\nuser-agent: $crawler\nallowed-methods: GET, HEAD\n",
                ),
            ),
            "The file says this about requests by GET and HEAD. Forms, APIs and automated "
            "browsers are refused to X too, unless you add them.",
        ),
    ),
    (
        Unsaid(USAGE, _USES_ONLY),
        Unsaid(AIPREF, _USES_ONLY),
        Unsaid(SIGNALS, _USES_ONLY + " A refusal to others, in a group for `*`, applies to X too."),
        Unsaid(AI_TXT, _USES_ONLY + " A block for X cannot lift a refusal to everybody."),
        Unsaid(SPAWNING, _USES_ONLY),
        Unsaid(META, _USES_ONLY + " An element for X cannot lift a refusal to everybody."),
        Unsaid(TDMREP, "The format cannot address a crawler by name."),
        Unsaid(RSL, _USES_ONLY + " It licenses kinds of users, never a user by name."),
    ),
    (Parameter("crawler", "product token of the crawler", "examplebot"),),
)

INTENTS = (NO_TRAINING, NO_TRAINING_BUT_SEARCH, NO_SNIPPETS, SLOWER, NOBODY_BUT)
