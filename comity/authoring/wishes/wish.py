"""A wish of publishers, and its forms in each format, as data for commands, docs and editors.

for form in wish.forms:
    for artefact in form.artefacts:
        artefact.text(wish.values(crawlers="examplebot"))    the text, with parameters

`Form.remark` tells how a form differs from the wish. `Wish.unsaid` lists the formats that cannot
state the wish."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template
from typing import NamedTuple

from comity.authoring.crawler_names import NAME
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.windows import limit_text
from comity.policies.vocabulary.known_crawlers import known, training_crawlers

# The locations of artefacts that are no files.
FIELD = "response field"  # applies to the content of that response
ELEMENT = "HTML element"  # in the head of a page

RFC = "robots.txt"
ACAP = "ACAP"
AUTOMATION = "automation-preferences.txt"
USAGE = "usage preference strings"
AIPREF = "Content-Usage"
SIGNALS = "Content Signals"
TRAINING_RULES = "training rules"
TRUST = "trust.txt"
AI_TXT = "ai.txt"
SPAWNING = "ai.txt of Spawning"
META = "robots meta"
TDMREP = "TDMRep"
RSL = "RSL"
FORMATS = (
    *(RFC, ACAP, AUTOMATION, USAGE, AIPREF, SIGNALS, TRAINING_RULES, TRUST),
    *(AI_TXT, SPAWNING, META, TDMREP, RSL),
)

# Crawlers that fetch for training, and product tokens that permit or refuse training with content
# that other crawlers have fetched. `comity check` has the same list. known_crawlers.toml has the
# sources.
TRAINING_CRAWLERS = tuple(crawler.token for crawler in training_crawlers())

ROBOTS = "/robots.txt"
AUTOMATION_FILE = "/automation-preferences.txt"
# Search engines count characters, and most words of European languages have fewer than six.
CHARACTERS_A_WORD = 6

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")
# ACAP looks for names between the boundaries of words, so both ends are letters or digits.
_CRAWLER = re.compile(rf"(?=[A-Za-z0-9])(?:{NAME.pattern})(?<=[A-Za-z0-9])")
_PATH = re.compile(r"/[A-Za-z0-9/._~-]*")
_SPACE = re.compile(r"\s+")
_MAXIMA = {"seconds": 24 * 3600, "words": 10_000, "days": 3650}


class Parameter(NamedTuple):
    """A value that the publisher chooses.

    Attributes:
        name: "crawlers" (names, separated by commas or white space), "seconds", "words",
            "days" (whole numbers), "path" or "origin".
        summary: The meaning.
        default: An example, or the value if the publisher chooses none.
        is_required: True if the publisher has to choose, because the default is only an example.
    """

    name: str
    summary: str
    default: str
    is_required: bool = False


class Artefact(NamedTuple):
    """One file, header field or element.

    Attributes:
        location: The path on the site, FIELD or ELEMENT.
        template: The template of the text. `$name` is a parameter, `$$` a dollar sign. A line with
            `$crawlers` is repeated for each crawler.
    """

    location: str
    template: str

    def text(self, parameters: Mapping[str, str]) -> str:
        """Return the text with these parameters. KeyError: a parameter is missing."""
        return "".join(
            Template(line).substitute({**parameters, "crawlers": name})
            for line in self.template.splitlines(keepends=True)
            for name in (names_in(parameters["crawlers"]) if "$crawlers" in line else ("",))
        )


class Form(NamedTuple):
    """One way to state a wish in one format.

    Attributes:
        format: The format, one of FORMATS.
        artefacts: The files, fields and elements, which have an effect only together.
        remark: A sentence about the difference between the form and the wish.
    """

    format: str
    artefacts: tuple[Artefact, ...]
    remark: str


class Unsaid(NamedTuple):
    """A format that cannot state a wish, one of FORMATS, and the reason."""

    format: str
    reason: str


class Wish(NamedTuple):
    """A wish of many publishers.

    Attributes:
        name: The name for programs.
        title: The name for people.
        summary: The wish, in one sentence.
        forms: The ways to state the wish.
        unsaid: The formats that cannot state the wish.
        phrases: Other names of the wish. `{name}` is the value of a parameter.
        defaults: The formats in which `comity new` states the wish, unless others are chosen.
        parameters: The values that the publisher chooses.
    """

    name: str
    title: str
    summary: str
    forms: tuple[Form, ...]
    unsaid: tuple[Unsaid, ...]
    phrases: tuple[str, ...]
    defaults: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()

    def form(self, format_: str) -> Form | None:
        """Return the first form in a format, which is the usual one. None: there is none."""
        return next((form for form in self.forms if form.format == format_), None)

    def values(self, **values: str) -> dict[str, str]:
        """Return the values of all parameters, with defaults for those that are not given.

        `seconds` also gives the value `limit` (`request_limit`), and `words` the value
        `characters`.
        KeyError: the wish has no such parameter.
        PolicyError: a value is malformed or out of range."""
        parameters = {parameter.name: parameter.default for parameter in self.parameters}
        for name, value in values.items():
            if name not in parameters:
                raise KeyError(name)
            parameters[name] = _read_value(name, value.strip())
        if "seconds" in parameters:
            parameters["limit"] = request_limit(int(parameters["seconds"]))
        if "words" in parameters:
            parameters["characters"] = str(CHARACTERS_A_WORD * int(parameters["words"]))
        return parameters


def names_in(text: str) -> tuple[str, ...]:
    """Return the names of crawlers in a text, each once.

    Commas and white space separate them. A name of several words is in quotes, or has commas around
    it and is known."""
    names: list[str] = []
    for part in map(str.strip, text.split(",")):
        is_one = part[:1] in ("'", '"') and part[1:].endswith(part[:1])
        names += [part.strip("'\"")] if is_one or known(part) else _SPACE.split(part)
    return tuple(dict.fromkeys(filter(None, names)))


def _read_value(name: str, value: str) -> str:
    """Return the value of a parameter. PolicyError: it is malformed or out of range."""
    shown = printable(value[:40])
    if maximum := _MAXIMA.get(name):
        if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= maximum:
            raise PolicyError(f"`{shown}` is no number of {name}: write 1 to {maximum}")
        return str(int(value))
    if name == "crawlers":
        names = names_in(value)
        if not names or not all(map(_CRAWLER.fullmatch, names)):
            raise PolicyError(
                f"`{shown}` is no list of crawlers: write names of letters and digits, with"
                " `-`, `_` and `.` inside, such as `GPTBot,archive.org_bot`, and names of several"
                " words in quotes"
            )
        return ", ".join(f'"{one}"' if " " in one else one for one in names)
    if name == "origin":
        value = value.rstrip("/")
        if not _ORIGIN.fullmatch(value):
            raise PolicyError(f"`{shown}` is no origin: write it as https://www.example.org")
    elif not _PATH.fullmatch(value):
        raise PolicyError(f"`{shown}` is no path: write it as /api/, without `*`, `$` and `?`")
    return value


def request_limit(seconds: int) -> str:
    """Return a request-limit of automation-preferences.txt: at most one request in so many seconds.

    PolicyError: the time is shorter than a second or longer than a day."""
    if not 1 <= seconds <= _MAXIMA["seconds"]:
        raise PolicyError(f"{seconds} seconds between requests cannot be said: write 1 to 86400")
    return limit_text(1, seconds)


def in_robots(*lines: str) -> Artefact:
    """Return a robots.txt with these lines."""
    return Artefact(ROBOTS, "".join(f"{line}\n" for line in lines))


def in_group(*lines: str) -> Artefact:
    """Return a robots.txt with lines about everybody, who may fetch everything."""
    return in_robots("User-agent: *", *lines, "Disallow:")


def in_ai_txt(*lines: str, element: str = "*", types: tuple[str, ...] = ()) -> Artefact:
    """Return an ai.txt with these lines about an element of each type of resource.

    `types`: the types. () means all that the format knows."""
    blocks = (
        f"  Path: / {type_}\n    Element: {element}\n"
        + "".join(f"      {line}\n" for line in lines)
        for type_ in types or ("html", "json", "xml")
    )
    return Artefact("/ai.txt", "User-agent: *\n" + "".join(blocks))


def rsl(*lines: str) -> tuple[Artefact, ...]:
    """Return an RSL document for the whole site, and the line in robots.txt that refers to it."""
    document = (
        '<rsl xmlns="https://rslstandard.org/rsl">\n  <content url="/">\n    <license>\n'
        + "".join(f"      {line}\n" for line in lines)
        + "    </license>\n  </content>\n</rsl>\n"
    )
    return (
        in_robots("License: $origin/license.xml", "", "User-agent: *", "Disallow:"),
        Artefact("/license.xml", document),
    )


def unsaid(reason: str, *formats: str) -> tuple[Unsaid, ...]:
    """Return formats that cannot state a wish, all for one reason."""
    return tuple(Unsaid(format_, reason) for format_ in formats)


ORIGIN = Parameter("origin", "origin of the site", "https://example.com", is_required=True)
USES_ONLY = "The format is about uses of content, not about requests."
REQUESTS_ONLY = "The format is about requests, not about uses of the answers."
TRAINING_ONLY = "The format is about training only."
