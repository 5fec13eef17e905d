"""Courtesy, an invented policy format: an example of a format in a package of its own.

The entry point in pyproject.toml names FORMAT. grammar.py reads the text, and this module gives the
statements their meaning."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from comity.policies.agent import Agent
from comity.policies.answers.decision import Decision, Reason, Verdict
from comity.policies.answers.fetched import Availability
from comity.policies.answers.request import Facts
from comity.policies.answers.rule import ALLOWS, FINDING, REFUSES, Rule
from comity.policies.document.document import Content
from comity.policies.formats.file import File, SiteFiles
from comity.policies.formats.format import (
    AgentReading,
    Format,
    Headers,
    Resource,
    Response,
    SiteReading,
    Statements,
    WellKnown,
)
from comity.policies.formats.robots.file import PATH as ROBOTS
from comity.policies.formats.robots.file import lines_of
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.statement import Location, Statement
from comity_courtesy.grammar import USES, VISIT, Wish, Wishes, parse_file, parse_members

PATH = "/courtesy.txt"
NAME = "courtesy"  # of the line, the field and the element

RULES = {
    "courtesy.visit": Rule(REFUSES, "Courtesy 1.0", "courtesy.txt asks not to visit these paths"),
    "courtesy.unreachable": Rule(
        REFUSES,
        "Courtesy 1.0",
        "courtesy.txt cannot be had: nobody knows who may visit",
        status=503,
        is_unreachable=True,
    ),
    "courtesy.no": Rule(REFUSES, "Courtesy 1.0", "Courtesy says no to a use"),
    "courtesy.yes": Rule(ALLOWS, "Courtesy 1.0", "Courtesy says yes to a use"),
    "courtesy.value": Rule(
        FINDING, "Courtesy 1.0", "a word or a value that Courtesy does not have"
    ),
}

VOCABULARY = """
[vocabulary.courtesy]
title = "Courtesy"
specification = "Courtesy"
revision = "1.0"

[vocabulary.courtesy.terms]
learn = {}
quote = {}

[[relation]]
uses = ["train", "train-ai", "ai-train"]
kind = "within"
terms = ["courtesy:learn"]
why = "who trains a model lets it learn"

[[relation]]
uses = ["tdm", "all", "bots", "ai", "ai-all", "genai"]
kind = "touches"
terms = ["courtesy:learn"]
why = "who may not do a part of it may not do all of it"

[[relation]]
uses = ["present-snippet"]
kind = "within"
terms = ["courtesy:quote"]
why = "a snippet is a quotation"

[[relation]]
uses = ["present"]
kind = "touches"
terms = ["courtesy:quote"]
why = "who may not do a part of it may not do all of it"
"""


class CourtesySite(SiteReading):
    """One courtesy.txt and the lines of robots.txt, which say the same to all."""

    def __init__(self, file: File, wishes: Wishes) -> None:
        """`file`: the courtesy.txt; `wishes`: of both."""
        self.findings = wishes.findings
        self._reading = CourtesyReading(file, wishes)

    def for_agent(self, agent: Agent) -> CourtesyReading:
        return self._reading


class CourtesyReading(AgentReading):
    """The answers to any agent."""

    restricts_access = True

    def __init__(self, file: File, wishes: Wishes) -> None:
        self._file = file
        self._wishes = wishes

    def access(
        self, target: str, sent: str, facts: Facts, now: datetime | None, page: object = None
    ) -> Decision | None:
        reasons = tuple(self.considered(target, facts))
        return Decision(verdict=Verdict.DENY, reasons=reasons[:1]) if reasons else None

    def considered(self, target: str, facts: Facts) -> Iterable[Reason]:
        if self._file.availability is Availability.UNREACHABLE:
            yield self._file.outcome_reason("courtesy.unreachable")
        wish = self._wishes.deciding(VISIT, target)
        if wish and not wish.is_granted:
            yield self._file.reason(
                "courtesy.visit", line=wish.location.line, text=wish.location.text
            )

    def statements(self, resource: Resource) -> Statements:
        deciding = (self._wishes.deciding(word, resource.target) for word in USES)
        return Statements(tuple(_statement(wish) for wish in deciding if wish))

    def everywhere(self) -> tuple[Statement, ...]:
        return tuple(
            _statement(wish)
            for wish in self._wishes.wishes
            if wish.word != VISIT and (wish.is_granted or wish.pattern == "/")
        )


def read_site(site: SiteFiles) -> CourtesySite:
    """The file as it came back, or did not, and the lines of robots.txt."""
    file = File(site.origin + PATH, site.get(PATH))
    carriers = [parse_file(file.text, file.url)] if file.is_present else []
    lines = (line for line in lines_of(site) if line.name == NAME)
    carriers += (
        parse_members(line.value.decode("utf-8", "replace"), line.source(site.origin + ROBOTS))
        for line in lines
    )
    return CourtesySite(file, _joined(carriers))


def read_headers(headers: Headers, response: Response) -> Statements:
    """The fields of one response."""
    carriers = [
        parse_members(
            value.decode("utf-8", "replace"),
            Location(part="header Courtesy", text=printable(value)),
        )
        for value in headers[NAME.encode()]
    ]
    return _stated(_joined(carriers))


def read_document(content: Content, response: Response) -> Statements:
    """The meta elements of a page."""
    if not content.mentions(NAME.encode()):
        return Statements()
    carriers = [
        parse_members(text, Location(part=f"meta {name}", line=line, text=printable(text)))
        for name, text, line in content.metas_by_line()
        if name == NAME
    ]
    return _stated(_joined(carriers))


def _joined(carriers: Iterable[Wishes]) -> Wishes:
    carriers = tuple(carriers)
    wishes = tuple(wish for carrier in carriers for wish in carrier.wishes)
    return Wishes(wishes, tuple(finding for carrier in carriers for finding in carrier.findings))


def _stated(carrier: Wishes) -> Statements:
    return Statements(tuple(map(_statement, carrier.wishes)), carrier.findings)


def _statement(wish: Wish) -> Statement:
    rule, verdict = (
        ("courtesy.yes", Verdict.ALLOW) if wish.is_granted else ("courtesy.no", Verdict.DENY)
    )
    return Statement(f"courtesy:{wish.word}", verdict, rule, wish.location)


FORMAT = Format(
    name="courtesy",
    version=1,
    rules=RULES,
    files=(
        WellKnown(
            PATH,
            restricts_access=True,
            refuses=("courtesy:learn", "courtesy:quote"),
            unreachable_rule="courtesy.unreachable",
            unreachable="nobody is to visit the site",
        ),
    ),
    robots_lines=(NAME,),
    header_fields=(NAME.encode(),),
    vocabulary=VOCABULARY,
    read_site=read_site,
    read_headers=read_headers,
    read_document=read_document,
)
