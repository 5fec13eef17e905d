"""`comity rule`: explain a rule."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from rich.text import Text

from comity.authoring.rules import as_json, as_plain_text, select_rules, weight_of
from comity.gate.run.console import line, open_console, say, table
from comity.policies.answers.rule import RULES

_STYLES = {"error": "bold red", "refuses": "bold red", "warning": "yellow", "info": "cyan"}


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "rule",
        nargs="?",
        metavar="RULE",
        help="the id of a rule, or its beginning, such as robots (default: list all rules)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(options: Namespace) -> int:
    rules = select_rules(options.rule) if options.rule is not None else list(RULES)
    if options.json:
        say(json.dumps({"version": 1, "rules": [as_json(rule) for rule in rules]}, indent=2))
    elif options.rule is None:
        _list(rules)
    else:
        console = open_console()
        for number, rule in enumerate(rules):
            heading, _, texts = as_plain_text(rule).partition("\n")
            style = _STYLES.get(weight_of(rule), "")
            if number:
                console.print()
            console.print(line(heading, style), soft_wrap=True)
            if texts:
                console.print(Text(texts))
    return 0


def _list(rules: list[str]) -> None:
    rows = table("The rules", "rule", "effect", "meaning")
    for rule in rules:
        weight = weight_of(rule)
        rows.add_row(rule, line(weight, _STYLES.get(weight, "")), RULES[rule].summary)
    open_console().print(rows)
