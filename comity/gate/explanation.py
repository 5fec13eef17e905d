"""Explains a site's policies on one URL: as values for programs, and as tables for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from comity.gate.explanation_shape import VERSION
from comity.gate.fetching.causes import cause_of
from comity.gate.options import DEFAULTS
from comity.gate.run.console import add_row, line, table
from comity.gate.second_opinion import second_opinions, sentences, unread_uses
from comity.policies import Agent, Fetched, Reason, Site
from comity.policies.answers.decision import UseDecision
from comity.policies.answers.element_rule import display_names
from comity.policies.answers.request import PLAIN, Facts
from comity.policies.answers.rule import RULES, without_page
from comity.policies.document.offer import offer_in
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_of
from comity.policies.syntax.windows import StatedLimit
from comity.policies.tag import write_conditions
from comity.policies.vocabulary.use_classes import CLASSES


def explain(
    site: Site,
    agent: Agent,
    url: str,
    facts: Facts = PLAIN,
    *,
    response: Fetched | None = None,
    max_delay: float = DEFAULTS["COMITY_MAX_DELAY"],
) -> dict[str, Any]:
    """Return everything that is known about a request for the URL, as JSON values.

    `response`: the response to the request; None before it is made. `max_delay`: the seconds
    between two requests that replace a limit with an unreadable value."""
    decision = site.judge(agent, url, facts)
    page = (
        site.page(
            agent,
            url,
            headers=response.headers,
            body=response.body,
            facts=facts,
        )
        if response
        else site.page(agent, url, body=None, facts=facts)
    )
    rules = site.rates(agent)
    limits = [line for limits in site.limits(agent, url) for line in limits.lines(max_delay)]
    return {
        "schema": VERSION,
        "url": url,
        "agent": agent.token,
        "verdict": decision.verdict.value,
        "not_before": decision.not_before.isoformat() if decision.not_before else None,
        "reasons": reasons_as_json(decision.reasons),
        "overruled": reasons_as_json(
            reason
            for reason in site.considered(agent, url, facts)
            if reason not in decision.reasons
        ),
        "other_readers": [
            opinion.as_json for opinion in second_opinions(site, agent, url, decision)
        ],
        "unread_uses": unread_uses(agent, page, decision),
        "answers": [
            {"topic": topic, "use": use} | _answer(page.uses[use])
            for use, topic in _topics(agent).items()
        ],
        "uses": {use: _answer(decision) for use, decision in page.uses.items()},
        "elements": [
            element.tag
            | ({"urls": list(element.urls)} if element.urls else {})
            | {"reasons": reasons_as_json(element.reasons)}
            for element in page.elements
        ],
        "rates": {
            "crawl_delay": rules.crawl_delay if rules else None,
            "request_rates": [_rate(rate) for rate in rules.request_rates] if rules else [],
            "visit_time": rules.visit_time.text if rules and rules.visit_time else None,
            "request_limits": [_rate(limit.window) for limit in limits if limit.window],
            "concurrent_limit": min(
                (limit.concurrent for limit in limits if limit.concurrent is not None), default=None
            ),
            "limits": list(map(_limit, limits)),
        },
        "requests": [
            {
                "action": request.action,
                "url": request.url,
                "arranged": request.arranged,
                "reasons": reasons_as_json([request.reason]),
            }
            for request in site.requests(agent)
        ],
        "sitemaps": list(site.sitemaps),
        "findings": [
            {
                "rule": finding.rule,
                "message": finding.message,
                "url": finding.url,
                "line": finding.line,
                "column": finding.column,
            }
            for finding in site.findings
        ],
        "policies": site.policies,
        "offers": [
            {
                "url": file_url,
                "status": offer.status,
                "price": str(offer.price) if offer.price else None,
                "licenses": list(offer.licences),
                "text": str(offer),
            }
            for file_url, file in site.files.items()
            if (offer := offer_in(file.status, file.headers, file.body, url=file_url))
        ],
    }


def _topics(agent: Agent) -> dict[str, str]:
    """Return use -> topic of the uses that are always answered, "" for declared uses."""
    topics = {"follow": "follow"} | {class_.use: class_.name for class_ in CLASSES}
    return topics | {use: "" for use in agent.uses if use not in (*topics, "crawl")}


def _answer(decision: UseDecision) -> dict[str, Any]:
    """Return the decision about one use as a JSON value."""
    return {
        "verdict": decision.verdict.value,
        "stated": decision.stated,
        "reasons": reasons_as_json(decision.reasons),
    } | write_conditions(decision)


def _rate(rate: Any) -> dict[str, Any]:
    hours = f"{rate.start:%H:%M}-{rate.end:%H:%M}" if rate.start and rate.end else None
    return {"requests": rate.requests, "seconds": rate.seconds, "hours": hours}


def _limit(limit: StatedLimit) -> dict[str, Any]:
    """Return one limit of automation-preferences.txt as a JSON value.

    Its member "advice" is the correct way to write the limit, or "" if the value can be read."""
    source = limit.source
    return {
        "name": limit.name,
        "value": _rate(limit.window) if limit.window else limit.concurrent,
        "url": source.url,
        "line": source.line,
        "text": source.text,
        "advice": limit.advice,
    }


def unread_limit(limit: dict[str, Any]) -> str:
    """Return a sentence about a limit whose value cannot be read; "" for other limits."""
    return (
        f"`{limit['text']}` cannot be read, so the strictest value applies: {limit['advice']}"
        if limit["advice"]
        else ""
    )


def reasons_as_json(reasons: Iterable[Reason]) -> list[dict[str, Any]]:
    """Return the reasons as a JSON value."""
    return [
        {
            "rule": reason.rule,
            "spec": reason.spec,
            "url": reason.source.url,
            "part": reason.source.part,
            "line": reason.source.line,
            "text": reason.source.text,
            "sha256": reason.source.sha256,
            "fetched_at": reason.source.fetched_at.isoformat()
            if reason.source.fetched_at
            else None,
        }
        for reason in reasons
    ]


COLORS = {"allow": "green", "deny": "red", "defer": "yellow"}


def show(explanation: dict[str, Any], console: Console, *, is_full: bool = False) -> None:
    """Print the explanation for people.

    `is_full`: print every part of it. False: print the answers, the pace, and a line about the
    other parts."""
    verdict = explanation["verdict"]
    until = f" until {explanation['not_before']}" if explanation["not_before"] else ""
    headline = Text.assemble(
        (verdict.upper(), f"bold {COLORS[verdict]}"), line(f"{until}  {explanation['url']}")
    )
    console.print(headline.append(f"  for {explanation['agent']}"))
    for reason in explanation["reasons"]:
        console.print(line(f"{reason['rule']} ({without_page(reason['spec'])})"))
        if reason["text"]:
            console.print(line(f"{location_of(reason)}: {reason['text']}"))
        if reason["rule"] in RULES and RULES[reason["rule"]].is_unreachable:
            console.print(line(cause_of(reason["text"]).remedy))
    for sentence in sentences(explanation["other_readers"], explanation["unread_uses"]):
        console.print(line(sentence))
    if verdict == "deny":
        console.print("The answers below `fetch it` are about copies of the page that others have.")
    console.print()
    others = (_overruled_rules, _uses, _elements, _requests, _files, _findings)
    for make_table in (_answers, _rates, _offers, *(others if is_full else ())):
        rows = make_table(explanation, origin_of(explanation["url"]))
        if rows.row_count:
            console.print(rows)
    if not is_full:
        console.print(line(f"--all adds {_other_parts(explanation)}."))


# The parts of an explanation that people see with --all, as the words for one and for several.
_OTHER_PARTS = {
    "overruled": ("other matching rule", "other matching rules"),
    "uses": ("use by name", "uses by name"),
    "elements": ("element with rules", "elements with rules"),
    "requests": ("requested action", "requested actions"),
    "policies": ("file", "files"),
    "findings": ("problem", "problems"),
}


def _other_parts(explanation: dict[str, Any]) -> str:
    return ", ".join(
        f"{number} {one if number == 1 else several}"
        for key, (one, several) in _OTHER_PARTS.items()
        if (number := len(explanation[key]))
    )


def _answers(explanation: dict[str, Any], origin: str) -> Table:
    question = f"may {explanation['agent']}"
    rows = table("Answers", question, "answer", "for how long", "limits", "where", "why")
    access = {key: explanation[key] for key in ("verdict", "reasons")} | {"stated": True}
    if explanation["not_before"]:
        access["not_before"] = explanation["not_before"]
    asked = {
        "access": "fetch it",
        "follow": "follow its links",
        **{class_.name: class_.verb_of_one for class_ in CLASSES},
    }
    for answer in ({"topic": "access"} | access, *explanation["answers"]):
        if answer["topic"] == "follow" and explanation["verdict"] == "deny":
            continue  # comity has no links of a page that it may not fetch
        words = asked.get(answer["topic"]) or f"use it for {answer['use']}"
        limits = {name: value for name, value in answer.items() if name not in _TERMS}
        add_row(
            rows,
            words,
            Text(answer["verdict"], COLORS[answer["verdict"]]),
            _term(answer),
            limits_of(limits),
            *_where_and_why(answer, answer["reasons"][0], origin),
        )
    return rows


_TERMS = ("until", "until_recrawled", "not_before")  # names of the members that limit the time


def _term(answer: dict[str, Any]) -> str:
    """Return how long a permission lasts, in words."""
    if answer["verdict"] == "defer":
        return f"not before {_minute(answer['not_before'])}" if "not_before" in answer else ""
    ends = []
    if "until" in answer:
        ends.append(f"until {_minute(answer['until'])}")
    if "until_recrawled" in answer:
        ends.append("until it is fetched again")
    return ", ".join(ends)


def _minute(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _where_and_why(answer: dict[str, Any], reason: dict[str, Any], origin: str) -> tuple[str, str]:
    has_place = reason["line"] or reason["part"] == "status"
    location = location_of(reason).removeprefix(origin) if has_place else ""
    text = reason["text"] or reason["rule"]
    if answer["verdict"] == "deny" and reason["text"]:
        text += f" ({reason['rule']})"  # the line of a refusal may allow the use by itself
    return location, text if answer["stated"] else f"not stated: {reason['text']}"


def _overruled_rules(explanation: dict[str, Any], origin: str) -> Table:
    rows = table("Other matching rules, which do not decide", "rule", "where", "line")
    for reason in explanation["overruled"]:
        add_row(rows, reason["rule"], location_of(reason), reason["text"])
    return rows


def _uses(explanation: dict[str, Any], origin: str) -> Table:
    rows = table("Uses", "use", "verdict", "limits", "where", "why")
    for use, answer in explanation["uses"].items():
        cells: tuple[Any, ...] = (
            use,
            Text(answer["verdict"], COLORS[answer["verdict"]]),
            limits_of(answer),
        )
        # An unstated verdict has one deciding reason, the first.
        for reason in answer["reasons"] if answer["stated"] else answer["reasons"][:1]:
            add_row(rows, *cells, *_where_and_why(answer, reason, origin))
            cells = ("", "", "")
    return rows


def _elements(explanation: dict[str, Any], origin: str) -> Table:
    rows = table("Uses of its elements", "element", "type", "denied", "guided", "where")
    for element in explanation["elements"]:
        guided = {action for guide in element["guide"] for action in guide["actions"]}
        lines = ",".join(str(reason["line"]) for reason in element["reasons"])
        add_row(
            rows,
            printable(element["selector"]) + (" (whole document)" if element.get("whole") else ""),
            element["type"] or "any",
            " ".join(map(printable, display_names(element["deny"]))),
            " ".join(map(printable, display_names(guided))),
            f"{element['reasons'][0]['url'].removeprefix(origin)}:{lines}",
        )
    return rows


def _requests(explanation: dict[str, Any], origin: str) -> Table:
    rows = table("Actions that the site requests", "action", "url", "arranged", "where")
    for request in explanation["requests"]:
        location = location_of(request["reasons"][0]).removeprefix(origin)
        add_row(
            rows,
            request["action"],
            request["url"],
            "yes" if request["arranged"] else "no",
            location,
        )
    return rows


def _rates(explanation: dict[str, Any], origin: str) -> Table:
    limits = explanation["rates"]
    rates = [
        ("Crawl-delay", limits["crawl_delay"]),
        *(("Request-rate", rate) for rate in limits["request_rates"]),
        ("Visit-time", limits["visit_time"]),
    ]
    rows = table("How often", "asked", "value", "where", "remark")
    for name, value in rates:
        if value is not None:
            add_row(rows, name, _value(value), "", "")
    for limit in limits["limits"]:
        add_row(
            rows,
            limit["name"],
            _value(limit["value"]),
            location_of(limit).removeprefix(origin),
            unread_limit(limit),
        )
    return rows


def _offers(explanation: dict[str, Any], origin: str) -> Table:
    rows = table("Files for payment or a license, which are not bought", "file", "offer")
    for offer in explanation["offers"]:
        add_row(rows, offer["url"].removeprefix(origin), offer["text"])
    return rows


def _files(explanation: dict[str, Any], origin: str) -> Table:
    rows = table("Files", "file", "status", "sha256")
    for url, file in explanation["policies"].items():
        add_row(rows, url, file["status"] or "none", (file["sha256"] or "")[:16])
    return rows


def _findings(explanation: dict[str, Any], origin: str) -> Table:
    rows = table("Findings", "where", "rule", "what")
    for finding in explanation["findings"]:
        add_row(
            rows, location_of(finding).removeprefix(origin), finding["rule"], finding["message"]
        )
    return rows


def location_of(reason: dict[str, Any]) -> str:
    """Return the URL and, if it is known, the line of a reason, limit or finding."""
    return f"{reason['url']}:{reason['line']}" if reason["line"] else str(reason["url"])


def limits_of(answer: dict[str, Any]) -> str:
    """Return the restrictions of a permitted use, e.g. "max_words 12"."""
    return ", ".join(
        name if value is True else f"{name} {_join(value)}"
        for name, value in answer.items()
        if name not in ("topic", "use", "verdict", "stated", "reasons")
    )


def _join(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    texts = (
        f"{item['role']} {item['extract'] or item['url']}".strip()
        if isinstance(item, dict)
        else item
        for item in value
    )
    return " ".join(map(printable, texts))


def _value(value: Any) -> str:
    if isinstance(value, dict):
        hours = f", {value['hours']} UTC" if value["hours"] else ""
        return f"{value['requests']} requests in {value['seconds']} s{hours}"
    return f"{value:g} s between requests" if isinstance(value, float) else str(value)
