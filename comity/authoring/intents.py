"""The five things that publishers want, and how each format says them, as data: for documentation, snippets and editors.

for intent in INTENTS:
    for form in intent.forms:
        for artefact in form.artefacts:
            artefact.text({"crawler": "examplebot"})    the text, with parameters

What a form says besides, or leaves open, stands in `Form.remark`; what a format cannot say, in `Intent.unsaid`."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import NamedTuple

from comity.policies.syntax.windows import limit_text

FIELD = (
    "response field"  # the location of an artefact that is one, for the content of that response
)
ELEMENT = "HTML element"  # the location of an artefact that stands in the head of a page

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

# Crawlers that fetch for training, or whose name says whether what was fetched may train; known_crawlers.toml has their sources.
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
    """One file, header field or element."""

    location: str  # path on the site, FIELD or ELEMENT
    template: str  # of its text: `$name` is a parameter, `$$` a dollar sign

    def text(self, parameters: Mapping[str, str]) -> str:
        """Return the text. KeyError where a parameter is missing."""
        return Template(self.template).substitute(parameters)


class Form(NamedTuple):
    """One way to say it in one format: all artefacts together."""

    format: str  # of FORMATS
    artefacts: tuple[Artefact, ...]
    remark: str  # what it says, in comparison with what is wanted


class Unsaid(NamedTuple):
    """A format that cannot say it."""

    format: str  # of FORMATS
    reason: str


class Intent(NamedTuple):
    """Something that publishers want."""

    name: str  # for programs
    title: str
    summary: str
    forms: tuple[Form, ...]
    unsaid: tuple[Unsaid, ...]
    parameters: tuple[Parameter, ...] = ()

    def values(self, **values: str) -> dict[str, str]:
        """Return all parameters, the defaults among them, and what follows from them. KeyError for one that there is not,
        ValueError for a number that is none."""
        parameters = {parameter.name: parameter.default for parameter in self.parameters}
        for name, value in values.items():
            if name not in parameters:
                raise KeyError(name)
            parameters[name] = value
        if "seconds" in parameters:
            parameters["limit"] = request_limit(int(parameters["seconds"]))
        return parameters


def request_limit(seconds: int) -> str:
    """Return the request-limit of automation-preferences.txt that lets one request through in so many seconds, or fewer.

    ValueError for less than a second, and for more than a day."""
    if not 1 <= seconds <= 24 * 3600:
        raise ValueError(f"{seconds} seconds between requests cannot be said: write 1 to 86400")
    return limit_text(1, seconds)


def _in_robots(*lines: str) -> Artefact:
    return Artefact(ROBOTS, "".join(f"{line}\n" for line in lines))


def _rsl(*lines: str) -> tuple[Artefact, ...]:
    """A document for the whole site, and the reference to it."""
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
    """The same for all types of resources of which ai.txt speaks."""
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
_USES_ONLY = "It speaks of what is done with content, and of no request."
_NO_SNIPPETS = "It has no word for snippets."
_NO_RATE = "It has no word for how often somebody may come."

NO_TRAINING = Intent(
    "no-training",
    "No training",
    "Nobody may train models with the site; nothing else changes.",
    (
        Form(
            RFC,
            (_in_robots(*_NO_TRAINING_CRAWLERS, "", "User-agent: *", "Disallow:"),),
            "It refuses all requests of crawlers that it names. It has no word for training, and binds nobody else.",
        ),
        Form(
            ACAP,
            (_in_robots(*_ACAP_NO_OTHER),),
            "It has no word for training. `other` refuses all that no line names, of whatever kind it is, search as a use by that"
            " name among it.",
        ),
        Form(
            USAGE,
            (_in_robots("User-agent: *", "Usage: ai=n", "Disallow:"),),
            "It has no word for training alone: `ai` is training and any use of a model.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: ai=n\n"),),
            "The same, for the content of the response alone.",
        ),
        Form(
            AIPREF,
            (_in_robots("User-agent: *", "Content-Usage: train-ai=n", "Disallow:"),),
            "It says exactly this.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, "Content-Usage: train-ai=n\n"),),
            "It says exactly this, for the content of the response alone.",
        ),
        Form(
            SIGNALS,
            (_in_robots("User-agent: *", "Content-Signal: ai-train=no", "Disallow:"),),
            "It says exactly this. Groups for single crawlers need the line as well.",
        ),
        Form(
            AI_TXT,
            (_ai_txt("Disallow: Train"),),
            "It says exactly this, of HTML, JSON and XML; of no images or other files.",
        ),
        Form(
            SPAWNING,
            (Artefact("/ai.txt", "User-Agent: *\nDisallow: /\n"),),
            "It says exactly this. The site can have one file of that name: this one, or the other.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="noai, noimageai">\n'),),
            "It has no word for training alone: `noai` is any use for AI. No search engine documents it.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: noai, noimageai\n"),),
            "The same, for files of any kind.",
        ),
        Form(
            TDMREP,
            (Artefact("/.well-known/tdmrep.json", '[{"location": "/", "tdm-reservation": 1}]\n'),),
            "It reserves the right to mine text and data, of which training is a part; other mining is refused as well.",
        ),
        Form(
            TDMREP,
            (Artefact(FIELD, "tdm-reservation: 1\n"),),
            "The same, for the content of the response alone.",
        ),
        Form(
            TDMREP,
            (Artefact(ELEMENT, '<meta name="tdm-reservation" content="1">\n'),),
            "The same, for the page alone.",
        ),
        Form(RSL, _rsl('<prohibits type="usage">ai-train</prohibits>'), "It says exactly this."),
    ),
    (
        Unsaid(
            AUTOMATION,
            "It can list the purposes for which requests are welcome, and not one for which they are not.",
        ),
    ),
    (_ORIGIN,),
)

NO_TRAINING_BUT_SEARCH = Intent(
    "no-training-but-search",
    "No training, but search",
    "Nobody may train models with the site; search engines may have it.",
    (
        Form(
            RFC,
            (_in_robots(*_NO_TRAINING_CRAWLERS, "", "User-agent: *", "Disallow:"),),
            "The same file as for no training: crawlers of search engines are not among those that it names. It permits them to"
            " fetch; that search is permitted it cannot say.",
        ),
        Form(
            ACAP,
            (_in_robots(*_ACAP_NO_OTHER),),
            "The same file as for no training: it permits indexes and showing by name. What later formats call search is neither,"
            " so that `other` refuses it.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    "/automation-preferences.txt",
                    "scope: /\nallowed-methods: GET, HEAD\nallowed-purposes: search\n",
                ),
            ),
            "It permits requests that are made for search, and refuses all others: those for training, and those of crawlers that"
            " state no purpose, of forms, APIs and automated browsers.",
        ),
        Form(
            USAGE,
            (_in_robots("User-agent: *", "Usage: ai=n, search=y", "Disallow:"),),
            "It has no word for training alone: `ai` is training and any use of a model.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: ai=n, search=y\n"),),
            "The same, for the content of the response alone.",
        ),
        Form(
            AIPREF,
            (_in_robots("User-agent: *", "Content-Usage: train-ai=n, search=y", "Disallow:"),),
            "It says exactly this.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, "Content-Usage: train-ai=n, search=y\n"),),
            "It says exactly this, for the content of the response alone.",
        ),
        Form(
            SIGNALS,
            (_in_robots("User-agent: *", "Content-Signal: search=yes, ai-train=no", "Disallow:"),),
            "It says exactly this. Groups for single crawlers need the line as well.",
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
            "It refuses training, and permits indexes for AI with an instruction, which a Guide has to have.",
        ),
        Form(
            RSL,
            _rsl(
                '<permits type="usage">search</permits>',
                '<prohibits type="usage">ai-train</prohibits>',
                '<payment type="free"/>',
            ),
            "It says this, and since a list of what is permitted is exhaustive, everything else is not licensed.",
        ),
    ),
    (
        Unsaid(
            SPAWNING,
            "It speaks of training alone. With the file for no training, nothing is said of search.",
        ),
        Unsaid(
            META, "It only refuses. With the element for no training, nothing is said of search."
        ),
        Unsaid(
            TDMREP,
            "It speaks of mining as a whole. With the file for no training, nothing is said of search.",
        ),
    ),
    (_ORIGIN,),
)

NO_SNIPPETS = Intent(
    "no-snippets",
    "No snippets",
    "Nobody may show parts of the text, as results of searches do; the page may be found all the same.",
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
            "It says exactly this. No search engine is known to read it.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="nosnippet">\n'),),
            "It says this, and refuses whole copies and answers by AI as well. `max-snippet:50` permits 50 characters instead,"
            " and `data-nosnippet` on an element refuses that element alone.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: nosnippet\n"),),
            "The same, for files of any kind.",
        ),
    ),
    (
        Unsaid(RFC, "It speaks of requests, and of nothing that is done with what came back."),
        Unsaid(
            AUTOMATION, "It speaks of requests, and of nothing that is done with what came back."
        ),
        Unsaid(USAGE, _NO_SNIPPETS),
        Unsaid(AIPREF, _NO_SNIPPETS),
        Unsaid(SIGNALS, "Its `search` is an index with short excerpts, together."),
        Unsaid(
            AI_TXT,
            "`Return` refuses that AI shows anything of the content, whole or in part; it has no word for snippets.",
        ),
        Unsaid(SPAWNING, "It speaks of training alone."),
        Unsaid(TDMREP, _NO_SNIPPETS),
        Unsaid(RSL, _NO_SNIPPETS),
    ),
)

SLOWER = Intent(
    "slower",
    "Slower",
    "Crawlers may have everything, but not so fast.",
    (
        Form(
            RFC,
            (_in_robots("User-agent: *", "Crawl-delay: $seconds", "Disallow:"),),
            "Not in RFC 9309, but old and widely obeyed; Google does not. Groups for single crawlers need the line as well.",
        ),
        Form(
            RFC,
            (_in_robots("User-agent: *", "Request-rate: 1/$seconds", "Disallow:"),),
            "The same by an older and rarer line. It can be limited to times of the day.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    "/automation-preferences.txt",
                    "scope: /\nallowed-methods: GET, HEAD\nrequest-limit: $limit\nconcurrent-limit: 1\n",
                ),
            ),
            "So many requests in all of a time, and one at a time. The group refuses forms, APIs and automated browsers, unless"
            " you add them.",
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
    "One crawler may have everything, and nobody else anything.",
    (
        Form(
            RFC,
            (_in_robots("User-agent: $crawler", "Disallow:", "", "User-agent: *", "Disallow: /"),),
            "It says exactly this, of requests.",
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
            "It says exactly this, of requests and of every use.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    "/automation-preferences.txt",
                    "scope: /\nallowed-methods:\n\nscope: /\nuser-agent: $crawler\nallowed-methods: GET, HEAD\n",
                ),
            ),
            "It says this of requests by GET and HEAD. Forms, APIs and automated browsers stay refused to X as well, unless you"
            " add them.",
        ),
    ),
    (
        Unsaid(USAGE, _USES_ONLY),
        Unsaid(AIPREF, _USES_ONLY),
        Unsaid(
            SIGNALS, _USES_ONLY + " What refuses others, in a group for `*`, counts for X as well."
        ),
        Unsaid(AI_TXT, _USES_ONLY + " What is refused to everybody no block for X lifts."),
        Unsaid(SPAWNING, _USES_ONLY),
        Unsaid(META, _USES_ONLY + " What is refused to everybody no element for X lifts."),
        Unsaid(TDMREP, "It addresses nobody by name."),
        Unsaid(RSL, _USES_ONLY + " It licenses to kinds of users, and to none by name."),
    ),
    (Parameter("crawler", "product token of the crawler", "examplebot"),),
)

INTENTS = (NO_TRAINING, NO_TRAINING_BUT_SEARCH, NO_SNIPPETS, SLOWER, NOBODY_BUT)
