"""Rules: the possible reasons of a decision or a finding, each with its specification.

Formats declare their own rules (`Format.rules`). The rules of comity itself are declared here.
Tests check that every rule is documented in docs/rules.md and proved by a test."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_PAGE = re.compile(r"(?:, | \()docs/[a-z-]+\.md\)?")


def without_page(spec: str) -> str:
    """Return the specification of a rule for messages, without the page of the documentation.

    An installed package has no folder docs/. `comity rule` explains each rule instead."""
    return _PAGE.sub("", spec)


class Effect(enum.Enum):
    """The effect on a request or a use if the rule is one of its reasons."""

    ALLOWS = "allows"
    REFUSES = "refuses"
    LIMITS = "limits"
    """Permitted, but only later or with restrictions."""
    SILENT = "silent"
    """Nothing is stated."""
    ASKS = "asks"
    """The site asks for an action. It changes no verdict."""
    FINDING = "finding"
    """A hint for the author of the policy. It changes no verdict."""


ALLOWS: Final = Effect.ALLOWS
REFUSES: Final = Effect.REFUSES
LIMITS: Final = Effect.LIMITS
SILENT: Final = Effect.SILENT
ASKS: Final = Effect.ASKS
FINDING: Final = Effect.FINDING


class Severity(enum.Enum):
    """The weight of a finding for the author of the file."""

    ERROR = "error"
    """Outside the grammar, or certainly not what the author meant."""
    WARNING = "warning"
    """Valid, but probably not what the author meant, or read differently by some crawlers."""
    INFO = "info"
    """Harmless; the author can delete it."""


ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING
INFO: Final = Severity.INFO


@dataclass(frozen=True, slots=True)
class Example:
    """Files with a finding, and the files that their author probably meant.

        Example("Disallow: private/", "Disallow: /private/")
        Example({"tdmrep.json": "[]"}, {".well-known/tdmrep.json": "[]"})
        Example("HTTP/1.1 503 Service Unavailable\n\n", "HTTP/1.1 404 Not Found\n\n")

    A text that begins with `HTTP/1.1` is the response for the file: status line, header fields, a
    blank line, content. The content of a redirect is the response at its `Location`. All texts of
    an example are responses, or none is.

    Attributes:
        bad: the text with the finding, or several texts by their paths in the folder of the site.
        good: the text or texts without the finding.
        name: path of the file if there is one text, e.g. "page.html". "": the first file of the
            rule's format, or robots.txt, or page.html if the format has no line of robots.txt.
        repeated: a part of `bad` that occurs there once. The finding needs it `times` times.
        times: number of repetitions of `repeated`."""

    bad: str | Mapping[str, str]
    good: str | Mapping[str, str]
    name: str = ""
    repeated: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, with its effect and its specification.

    Attributes:
        effect: the effect if this rule is a reason.
        spec: specification and section, e.g. "RFC 9309 section-2.2.2".
        summary: one sentence for docs/rules.md.
        status: HTTP status of a server's refusal by this rule.
        depends_on_request: True if the verdict depends on the request or on the response. A tag
            cannot say whether such a rule still applies today.
        names_licence: True if the source of the reason is a licence.
        is_unreachable: True if the reason is a policy file that cannot be fetched.
        is_missing_resource: True if a resource is missing that a permission requires to be used
            or included.
        is_of_purpose: True if the purpose that the operator declares decides.
        severity: weight of a finding.
        why: why the finding matters to the author of the file, in one to three sentences.
        fix: what the author should write instead, as one instruction.
        example: a text with the finding, and a text without it. Tests check both."""

    effect: Effect
    spec: str
    summary: str
    status: int = 403
    depends_on_request: bool = False
    names_licence: bool = False
    is_unreachable: bool = False
    is_missing_resource: bool = False
    is_of_purpose: bool = False
    severity: Severity = Severity.WARNING
    why: str = ""
    fix: str = ""
    example: Example | None = None


# The rules of comity and of all formats, by id. `declare` fills it.
RULES: dict[str, Rule] = {}


def declare(rules: Mapping[str, Rule]) -> None:
    """Add rules to RULES. ValueError if an id is already there."""
    if duplicates := RULES.keys() & rules:
        raise ValueError(f"rule `{min(duplicates)}` is declared twice")
    RULES.update(rules)


def is_silent(rule: str) -> bool:
    """Return True if this rule says that nothing is stated."""
    return rule in RULES and RULES[rule].effect is SILENT


def refuses(rule: str) -> bool:
    """Return True if this rule refuses. Unknown rules count as refusals."""
    return rule not in RULES or RULES[rule].effect in (REFUSES, ASKS, FINDING)


def depends_on_request(rule: str) -> bool:
    """Return True if another request might not have been refused by this rule.

    A tag does not record the request, so it cannot tell."""
    return rule in RULES and RULES[rule].depends_on_request


def of_missing_resource(rule: str) -> str:
    """Return the rule that refuses if a resource required by a permission is missing.

    Args:
        rule: the rule of the permission. If its format has no rule for missing resources, the
            first such rule of any format is returned."""
    rules = [name for name, candidate in RULES.items() if candidate.is_missing_resource]
    return next(
        (name for name in rules if name.partition(".")[0] == rule.partition(".")[0]), rules[0]
    )


# Ours
declare(
    {
        "comity.arrangement": Rule(
            ALLOWS,
            "comity, docs/uses.md",
            "the operator has arranged it with the site",
            names_licence=True,
        ),
        "registry.opt-out": Rule(
            REFUSES,
            "comity, docs/opt-outs.md",
            "a registry of opt-outs that the operator obeys lists the domain, the URL or the work",
        ),
        "comity.more-findings": Rule(
            FINDING,
            "comity, docs/rules.md",
            "the file has more findings than are listed",
            why="lint lists at most 100 findings of a file. A finding that is not listed may "
            "matter more than the listed ones.",
            fix="Mend the listed findings, and check the file again.",
            example=Example(
                bad="User-agent: *\nDisallow: private/\n",
                good="User-agent: *\nDisallow: /private/\n",
                repeated="Disallow: private/\n",
                times=101,
            ),
        ),
        "comity.default": Rule(
            SILENT,
            "comity, docs/uses.md",
            "no source mentions this use, so the operator's default decides",
        ),
        "comity.modification": Rule(
            REFUSES,
            "comity, docs/uses.md",
            "the use is a modification that the page, or a permission to show it, prohibits",
        ),
        "comity.unreachable": Rule(
            REFUSES,
            "comity, docs/uses.md",
            "a policy file may exist that refuses the use, but it cannot be fetched",
            is_unreachable=True,
        ),
        "comity.no-page": Rule(
            REFUSES,
            "comity, docs/uses.md",
            "the item has no source page, so no policy can permit its use",
        ),
        "comity.no-policies": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "there is no copy of the site's policies, so their content is unknown",
        ),
        "comity.no-date": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "the capture date of the page is unknown, so it is unknown which policies apply",
        ),
        "comity.no-url": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "the record has no http or https URL, so no site's policies apply",
        ),
        "comity.unread": Rule(
            REFUSES,
            "comity, docs/existing-data.md",
            "the page is cut off, too long or unreadable, so its statements are unknown",
        ),
        "comity.scheme": Rule(
            REFUSES, "comity, docs/rules.md", "only http and https URLs have policies"
        ),
        "comity.no-site": Rule(
            ALLOWS,
            "comity, docs/rules.md",
            "data:, file: and s3: URLs are the operator's own data, so there is no site to ask",
        ),
        "comity.license": Rule(
            REFUSES,
            "RSL 1.0",
            "the site asks for a license token (status 401 with the scheme License); the reason has"
            " its offer",
            depends_on_request=True,
        ),
        "comity.payment": Rule(
            REFUSES,
            "RFC 9110 section-15.5.3",
            "the site asks for payment (status 402); the reason has its offer",
            depends_on_request=True,
        ),
        "comity.declaration": Rule(
            REFUSES,
            "comity, docs/automation.md",
            "the declaration about the request is not understood, or the request differs"
            " from the one that was judged",
        ),
        "comity.changed": Rule(
            REFUSES,
            "comity, docs/scheduler.md",
            "a downloader middleware changed the URL of a request in place to another"
            " site's, without a decision",
        ),
        "comity.session": Rule(
            ALLOWS,
            "comity, docs/automation.md",
            "the request goes out without the session that is declared for its host",
        ),
        "comity.browser": Rule(
            REFUSES,
            "comity, docs/browsers.md",
            "the crawl ended before the request of the browser was judged",
        ),
        "comity.part": Rule(
            ALLOWS,
            "comity, docs/browsers.md",
            "a page needs it to be shown, so the page's own decision applies to it"
            " (COMITY_BROWSER)",
        ),
        "comity.rate": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the client asks more often than the site's files permit",
            status=429,
        ),
        "comity.concurrent": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the client has more requests in flight than the site's files permit",
            status=429,
        ),
        "comity.uncounted": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the requests of the client cannot be counted, so its rate is unknown",
            status=503,
        ),
        "comity.proof": Rule(
            REFUSES,
            "comity, docs/signatures.md",
            "the request claims a crawler's name without a valid signature of that crawler",
        ),
        "comity.proof-used": Rule(
            REFUSES,
            "comity, docs/signatures.md",
            "the signature for a crawler's name was used for an earlier request",
            status=429,
        ),
        "comity.proof-unknown": Rule(
            REFUSES,
            "comity, docs/signatures.md",
            "the public keys of the crawler whose name the request claims are not known yet",
            status=503,
        ),
        "comity.long-target": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "the request target is longer than the guard reads",
            status=414,
        ),
        "comity.long-fields": Rule(
            REFUSES,
            "comity, docs/guard.md",
            "header fields that decide are longer, or have more values, than the guard reads",
            status=431,
        ),
        "comity.promise": Rule(
            REFUSES,
            "draft-thomson-aipref-sup section-6.2",
            "the site cannot promise the usage preferences that a request states for its content",
        ),
        "comity.inner-address": Rule(
            REFUSES,
            "comity, docs/fetching.md",
            "a site leads to a server at an inner address that the operator did not ask for",
        ),
        "comity.format": Rule(
            REFUSES,
            "comity, docs/formats.md",
            "a format of another package fails, so the content of the policy is unknown",
        ),
        "comity.file-status": Rule(
            FINDING,
            "RFC 9309 section-2.3.1",
            "the status of a policy file means that everything is refused, or that nothing"
            " is stated",
            severity=ERROR,
            why="If the server fails, crawlers must assume that the file refuses everything. "
            "With a status of 400 to 499 they assume that there is no file, so nothing is refused.",
            fix="Answer with status 200 and the file, or with 404 if there is no file.",
            example=Example(
                bad="HTTP/1.1 503 Service Unavailable\n\n",
                good="HTTP/1.1 404 Not Found\n\n",
            ),
        ),
        "comity.file-type": Rule(
            FINDING,
            "RFC 9309 section-2.3",
            "a policy file is served with the wrong media type",
            why="Each format requires a media type. A crawler may ignore a file that has another "
            "one. An HTML page in place of the file counts as no file.",
            fix="Configure the server to send the media type that the message names.",
            example=Example(
                bad="HTTP/1.1 200 OK\n"
                "Content-Type: text/plain\n"
                "\n"
                '[{"location": "/", "tdm-reservation": 1}]\n',
                good="HTTP/1.1 200 OK\n"
                "Content-Type: application/json\n"
                "\n"
                '[{"location": "/", "tdm-reservation": 1}]\n',
                name=".well-known/tdmrep.json",
            ),
        ),
        "comity.file-encoding": Rule(
            FINDING,
            "RFC 9309 section-2.3",
            "a policy file is not in UTF-8, or not served as UTF-8",
            why="Crawlers read policy files as UTF-8. A path or name with other octets matches "
            "nothing.",
            fix="Save the file as UTF-8, and send `charset=utf-8` with it.",
            example=Example(
                bad="HTTP/1.1 200 OK\n"
                "Content-Type: text/plain; charset=iso-8859-1\n"
                "\n"
                "User-agent: *\n"
                "Disallow: /private/\n",
                good="HTTP/1.1 200 OK\n"
                "Content-Type: text/plain; charset=utf-8\n"
                "\n"
                "User-agent: *\n"
                "Disallow: /private/\n",
            ),
        ),
        "comity.file-place": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "a policy file is at a path where no crawler looks for it",
            severity=ERROR,
            why="Crawlers ask for a policy file at one fixed path. They never see a file at "
            "another path, so it refuses nothing.",
            fix="Move the file to the path that the message names.",
            example=Example(
                bad={"tdmrep.json": '[{"location": "/", "tdm-reservation": 1}]\n'},
                good={".well-known/tdmrep.json": '[{"location": "/", "tdm-reservation": 1}]\n'},
            ),
        ),
        "comity.file-moved": Rule(
            FINDING,
            "RFC 9309 section-2.3.1.2",
            "a policy file is redirected; some crawlers do not follow, and none follows everywhere",
            why="Crawlers should follow five redirects of robots.txt, but some follow none, and "
            "some do not follow to another host. For them the file does not exist.",
            fix="Serve the file at its own address.",
            example=Example(
                bad="HTTP/1.1 301 Moved Permanently\n"
                "Location: https://www.example.com/robots.txt\n"
                "\n"
                "HTTP/1.1 200 OK\n"
                "Content-Type: text/plain; charset=utf-8\n"
                "\n"
                "User-agent: *\n"
                "Disallow: /private/\n",
                good="HTTP/1.1 200 OK\n"
                "Content-Type: text/plain; charset=utf-8\n"
                "\n"
                "User-agent: *\n"
                "Disallow: /private/\n",
            ),
        ),
        "comity.file-http": Rule(
            FINDING,
            "draft-liao-aipref-autoctl-core-01 security-considerations",
            "a policy file is served over http, so others can change it on its way",
            why="Everybody on the way between a crawler and the server can change a file that is "
            "served over http. The crawler then obeys the rules of another person.",
            fix="Serve the file over https.",
            example=Example(
                bad="HTTP/1.1 301 Moved Permanently\n"
                "Location: http://example.com/robots.txt\n"
                "\n"
                "HTTP/1.1 200 OK\n"
                "Content-Type: text/plain; charset=utf-8\n"
                "\n"
                "User-agent: *\n"
                "Disallow: /search\n",
                good="HTTP/1.1 200 OK\n"
                "Content-Type: text/plain; charset=utf-8\n"
                "\n"
                "User-agent: *\n"
                "Disallow: /search\n",
            ),
        ),
        "comity.exposed-path": Rule(
            FINDING,
            "draft-liao-aipref-autoctl-core-01 security-considerations",
            "a policy file shows where something is that only its owner should find",
            severity=INFO,
            why="Everybody can read a policy file, and it protects nothing. A line with the path "
            "of a backup, a repository or a login leads attackers there.",
            fix="Protect the path by a login, or take the file off the server. Delete the line.",
            example=Example(
                bad="User-agent: *\nDisallow: /backup.sql\nDisallow: /search\n",
                good="User-agent: *\nDisallow: /search\n",
            ),
        ),
        "comity.file-size": Rule(
            FINDING,
            "RFC 9309 section-2.5",
            "a policy file is longer than crawlers have to read",
            why="RFC 9309 requires crawlers to read the first 500 KiB of robots.txt. Some miss "
            "the rules behind them.",
            fix="Shorten the file to less than 500 KiB.",
            example=Example(
                bad="User-agent: *\nDisallow: /private/page-1.html\n",
                good="User-agent: *\nDisallow: /private/\n",
                repeated="Disallow: /private/page-1.html\n",
                times=16_600,
            ),
        ),
        "comity.ignore": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "a `comity: ignore` comment or .comity.toml names no rule, or cannot be read",
            why="The name matches no rule, or the comment or key has a mistake. Nothing is ignored "
            "by it.",
            fix="Write the rule of the finding. `comity rule` lists all rules.",
            example=Example(
                bad="User-agent: ExampleBot  # comity: ignore comity.agent-unkown\nDisallow: /\n",
                good="User-agent: ExampleBot  # comity: ignore comity.agent-unknown\nDisallow: /\n",
            ),
        ),
        "comity.reader": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "a reader that --readers names documents another reading of this line",
            severity=INFO,
            why="Google and Lighthouse document their own reading of robots.txt. Lighthouse "
            "reports a file that other crawlers read well.",
            fix="Write the line in another form if this reader matters to you.",
            example=Example(
                bad="User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n",
                good="User-agent: *\nAllow: /\n",
            ),
        ),
        "comity.agent-misspelled": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "no known crawler has this name, but one has a similar name",
            why="A crawler obeys only the group with its own name. It does not recognise a "
            "misspelled name, and obeys the rules for `*` instead.",
            fix="Write the name as the operator of the crawler documents it.",
            example=Example(
                bad="User-agent: GTPBot\nDisallow: /\n",
                good="User-agent: GPTBot\nDisallow: /\n",
            ),
        ),
        "comity.agent-retired": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "the crawler is no longer in use",
            severity=INFO,
            why="No crawler uses this name any more, so the group has no effect. A successor of "
            "the crawler may fetch everything.",
            fix="Write the name that the operator uses today, or delete the group.",
            example=Example(
                bad="User-agent: msnbot\nDisallow: /private/\n",
                good="User-agent: bingbot\nDisallow: /private/\n",
            ),
        ),
        "comity.agent-unknown": Rule(
            FINDING,
            "comity, docs/authoring.md",
            "the crawler is not in the list of known crawlers",
            severity=INFO,
            why="The name may be misspelled, and then the group has no effect. The list of known "
            "crawlers is not complete, so the name may also be right.",
            fix="Compare the name with the documentation of the crawler.",
            example=Example(
                bad="User-agent: OpenAI\nDisallow: /\n",
                good="User-agent: GPTBot\nDisallow: /\n",
            ),
        ),
        "comity.contradiction": Rule(
            FINDING,
            "comity, docs/uses.md",
            "one file or page permits a use that another one refuses, so it is refused",
            why="comity obeys every file and page, so the refusal wins over the permission. "
            "Another reader may know only one of the formats, and decide by that one.",
            fix="Say the same in all formats.",
            example=Example(
                bad={
                    "robots.txt": "User-agent: *\nContent-Signal: ai-train=yes\nAllow: /\n",
                    ".well-known/tdmrep.json": '[{"location": "/", "tdm-reservation": 1}]\n',
                },
                good={
                    "robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n",
                    ".well-known/tdmrep.json": '[{"location": "/", "tdm-reservation": 1}]\n',
                },
            ),
        ),
        "comity.other-readers": Rule(
            FINDING,
            "comity, docs/policy-command.md",
            "because of this line another reader of robots.txt decides differently",
            severity=INFO,
            why="Crawlers with another parser fetch pages that this file refuses, or skip pages "
            "that it permits.",
            fix="Write the lines so that all parsers read the same, for example Allow lines "
            "above Disallow lines.",
            example=Example(
                bad="User-agent: *\nDisallow: /\nAllow: /public/\n",
                good="User-agent: *\nAllow: /public/\nDisallow: /\n",
            ),
        ),
        "comity.unmatched-element": Rule(
            FINDING,
            "ai.txt paper section-3.2",
            "an element is in none of the sample pages",
            severity=INFO,
            why="A rule about an element has an effect only on pages with that element. The "
            "selector may be misspelled, or the pages may have changed.",
            fix="Compare the selector with the pages.",
            example=Example(
                bad={
                    "ai.txt": "User-agent: *\n"
                    "  Path: / html\n"
                    "    Element: article.storry\n"
                    "      Disallow: Train\n",
                    "index.html": '<article class="story">Text</article>\n',
                },
                good={
                    "ai.txt": "User-agent: *\n"
                    "  Path: / html\n"
                    "    Element: article.story\n"
                    "      Disallow: Train\n",
                    "index.html": '<article class="story">Text</article>\n',
                },
            ),
        ),
        "comity.max-delay": Rule(
            REFUSES,
            "comity, docs/settings.md",
            "the wait that the site asks for is longer than COMITY_MAX_DELAY",
        ),
    }
)
