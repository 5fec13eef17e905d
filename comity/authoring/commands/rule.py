"""`comity rule`: explain a rule."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from rich.console import Console

from comity.authoring.rules import as_json, samples_of, select_rules, weight_of
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
            if number:
                console.print()
            _explain(console, rule)
    return 0


def _list(rules: list[str]) -> None:
    rows = table("", "rule", "effect", "meaning")
    rows.title = None
    for rule in rules:
        weight = weight_of(rule)
        rows.add_row(rule, line(weight, _STYLES.get(weight, "")), RULES[rule].summary)
    open_console().print(rows)


def _explain(console: Console, rule: str) -> None:
    entry, weight = RULES[rule], weight_of(rule)
    heading = line(rule, "bold").append(" ").append_text(line(weight, _STYLES.get(weight, "")))
    console.print(heading.append_text(line(f": {entry.summary} [{entry.spec}]")))
    if entry.why:
        console.print("", line(entry.why), "", line(f"Fix: {entry.fix}", "green"), sep="\n")
    for sample in samples_of(rule):
        console.print("", line(f"{sample.title}:"), sep="\n")
        for row in sample.text.split("\n"):
            console.print(line(f"    {row}"), soft_wrap=True)
