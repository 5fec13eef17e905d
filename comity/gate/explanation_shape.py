"""The shapes of `comity policy --json` and `comity policy history --json`, as JSON Schema too.

The version changes if a member goes or changes its meaning. It stays if a member is added."""

from __future__ import annotations

from typing import Any

from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.syntax.shapes import (
    Constant,
    Count,
    Either,
    Keyed,
    Member,
    Moment,
    Nullable,
    Number,
    Object,
    Several,
    Text,
    Truth,
    definitions,
)
from comity.policies.tag import ELEMENT, POLICY, USE, USE_NAME

VERSION = 1
TEXT, NOTHING = Text(), Constant(None)
SHA256 = Text("[0-9a-f]{64}")
MOMENT = Moment("+00:00")
RULE = Member(Text(r"[a-z0-9-]+\.[a-z0-9-]+"), "Id of the rule; `comity rule` explains it.")
PLACE = {
    "url": Member(TEXT, "URL of the file or page, or the name of a setting."),
    "line": Member(Count(), "Line number from 1. 0: no line."),
    "text": Member(TEXT, "The statement as written, made printable."),
}
REASON = Object(
    {
        "rule": RULE,
        "spec": Member(TEXT, "Specification and section."),
        **PLACE,
        "part": Member(
            TEXT, "Part of the source: body, status, setting, a header field and others."
        ),
        "sha256": Member(Either(SHA256, Text(values=("",))), "Hash of the file. Empty: no file."),
        "fetched_at": Member(Nullable(MOMENT), "Fetch time of the file. null: unknown."),
    },
    name="reason",
)
REASONS = Member(Several(REASON), "The reasons, the deciding one first.")
VERDICT = Text(values=("allow", "deny", "defer"))
DECIDED = {
    "verdict": USE.members["verdict"],
    "stated": USE.members["stated"],
    "reasons": REASONS,
}
CONDITIONS = {
    name: member for name, member in USE.members.items() if name not in (*DECIDED, "because")
}
ANSWER = Object({**DECIDED, **CONDITIONS}, name="answer")
RATE = Object(
    {
        "requests": Member(Count(), "Most requests in the period."),
        "seconds": Member(Number(), "Length of the period."),
        "hours": Member(Nullable(TEXT), "Time of the day in UTC, as 08:00-12:30. null: all day."),
    },
    name="rate",
)
RATES = Object(
    {
        "crawl_delay": Member(Either(Number(), NOTHING), "Seconds between two requests."),
        "request_rates": Member(Several(RATE), "The lines Request-rate of robots.txt."),
        "visit_time": Member(Nullable(TEXT), "The line Visit-time of robots.txt."),
        "request_limits": Member(Several(RATE), "The limits in a period that apply."),
        "concurrent_limit": Member(Either(Count(), NOTHING), "Most requests in flight."),
        "limits": Member(
            Several(
                Object(
                    {
                        "name": Member(TEXT, "Name of the directive."),
                        "value": Member(
                            Either(RATE, Count(), NOTHING),
                            "The limit: a rate, or a number of requests in flight.",
                        ),
                        **PLACE,
                        "advice": Member(
                            TEXT, "Advice on the value to write if it cannot be read, or empty."
                        ),
                    }
                )
            ),
            "Each line of automation-preferences.txt that limits requests.",
        ),
    }
)
EXPLANATION = Object(
    {
        "schema": Member(Constant(VERSION), "Version of this form."),
        "url": Member(TEXT, "The URL of the request."),
        "agent": Member(Text(PRODUCT_TOKEN.pattern), "Product token of the crawler."),
        "verdict": Member(VERDICT, "Whether the crawler may fetch the URL. defer: not now."),
        "not_before": Member(Nullable(MOMENT), "With defer: the next permitted moment, if any."),
        "reasons": REASONS,
        "overruled": Member(Several(REASON), "Rules of access that match and do not decide."),
        "other_readers": Member(
            Several(
                Object(
                    {
                        "reader": Member(TEXT, "Module of the reader of robots.txt."),
                        "verdict": Member(
                            Either(Text(values=("allow", "deny")), NOTHING),
                            "null: the reader raises an exception, or its verdict is unknown.",
                        ),
                        "agrees": Member(
                            Either(Truth(), NOTHING), "Whether it decides like comity."
                        ),
                        "why": Member(TEXT, "The cause of a difference or of an exception."),
                        "line": Member(Count(), "The line that it follows. 0: no line."),
                        "text": Member(TEXT, "The text of this line."),
                    }
                )
            ),
            "Other readers of robots.txt.",
        ),
        "unread_uses": Member(
            Several(TEXT), "Declared uses that the site refuses and no other reader knows."
        ),
        "answers": Member(
            Several(
                Object(
                    {
                        "topic": Member(
                            TEXT,
                            "Topic of `comity explain`. Empty: a use that the crawler declares.",
                        ),
                        "use": Member(TEXT, "The use that is decided."),
                        **DECIDED,
                        **CONDITIONS,
                    }
                )
            ),
            "The answers about the page that are always given.",
        ),
        "uses": Member(
            Keyed("use", ANSWER, pattern=USE_NAME.pattern),
            "Use -> the answer: the basic uses, the declared ones, and those of the site's files.",
        ),
        "elements": Member(
            Several(
                Object(
                    {
                        name: ELEMENT.members[name]
                        for name in ("selector", "type", "whole", "deny", "guide", "urls")
                    }
                    | {"reasons": REASONS}
                )
            ),
            "Parts of the page with rules of their own.",
        ),
        "rates": Member(RATES, "How often the crawler may make requests."),
        "requests": Member(
            Several(
                Object(
                    {
                        "action": Member(TEXT, "Name of the action, e.g. take-down."),
                        "url": Member(TEXT, "The URL that the action is about."),
                        "arranged": Member(Truth(), "Whether COMITY_ARRANGEMENTS names it."),
                        "reasons": REASONS,
                    }
                )
            ),
            "Actions that the site asks for.",
        ),
        "sitemaps": Member(Several(TEXT), "The sitemaps in robots.txt."),
        "findings": Member(
            Several(
                Object(
                    {
                        "rule": RULE,
                        "message": Member(TEXT, "The mistake."),
                        "url": Member(TEXT, "URL of the file."),
                        "line": Member(Count(), "Line number from 1. 0: the whole file."),
                        "column": Member(Count(), "Octet in the line, from 1. 0: the whole line."),
                    }
                )
            ),
            "Problems in the site's files.",
        ),
        "policies": Member(Keyed("url", POLICY), "URL of each policy file -> its copy."),
        "offers": Member(
            Several(
                Object(
                    {
                        "url": Member(TEXT, "URL of a policy file."),
                        "status": Member(Count(), "HTTP status: 402 or 401."),
                        "price": Member(Nullable(TEXT), "Such as USD 0.01. null: it is not known."),
                        "licenses": Member(Several(TEXT), "URLs of licenses that the site names."),
                        "text": Member(TEXT, "The terms on one line."),
                    }
                )
            ),
            "Policy files that the site gives for payment or a license only.",
        ),
    }
)
HISTORY = Object(
    {
        "schema": Member(Constant(VERSION), "Version of this form."),
        "url": Member(TEXT, "The URL of the request."),
        "agent": Member(Text(PRODUCT_TOKEN.pattern), "Product token of the crawler."),
        "dates": Member(
            Several(
                Object(
                    {
                        "at": Member(MOMENT, "The moment of the copies."),
                        "answers": Member(
                            Keyed(
                                "question",
                                Object(
                                    {**DECIDED, "verdict": Member(VERDICT), **CONDITIONS},
                                    name="past_answer",
                                ),
                                required=("access",),
                            ),
                            "`access` or a use -> the answer.",
                        ),
                        "changed": Member(
                            Several(TEXT), "The questions with another answer than before."
                        ),
                        "copies": Member(
                            Several(
                                Object(
                                    {
                                        "url": Member(TEXT, "URL of a policy file."),
                                        "fetched_at": Member(
                                            Nullable(MOMENT), "null: there is no copy."
                                        ),
                                        "sha256": Member(
                                            Nullable(SHA256), "Hash of the text. null: no text."
                                        ),
                                        "status": Member(Count(), "HTTP status. 0: no copy."),
                                        "source": Member(TEXT, "The file that has the copy."),
                                        "offset": Member(Count(), "Its position there in octets."),
                                    }
                                )
                            ),
                            "The copies that decide at this moment.",
                        ),
                    }
                )
            ),
            "The dates with copies, the earliest first.",
        ),
        "unreadable": Member(Count(), "Number of places that cannot be read."),
    }
)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of `comity policy --json`."""
    return _schema("policy", "The output of `comity policy --json`.", EXPLANATION)


def history_schema() -> dict[str, Any]:
    """Return the JSON Schema of the output of `comity policy history --json`."""
    return _schema("policy-history", "The output of `comity policy history --json`.", HISTORY)


def _schema(name: str, description: str, shape: Object) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:comity:{name}:{VERSION}",
        "title": name,
        "description": description,
        **_open(shape.schema),
        "$defs": _open(definitions(shape)),
    }


def _open(schema: Any) -> Any:
    """Return a schema whose objects may have more members, because later versions may add some."""
    if isinstance(schema, dict):
        return {
            name: _open(value)
            for name, value in schema.items()
            if (name, value) != ("additionalProperties", False)
        }
    return list(map(_open, schema)) if isinstance(schema, list) else schema
