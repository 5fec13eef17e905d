"""The wording of `comity.policies.instructions`: how long it is, and whether a model understands it.

    python benchmarks/wording.py                       words and sentences of each case
    python benchmarks/wording.py --model "llm -m NAME"    the answers of a model, too

wording.toml has the cases. COMMAND gets the instructions, the page and a question on standard input,
and prints the answer of a model. Its first "yes" or "no" counts. Change the wording, run the program
again, and compare."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from comity.policies import Agent, Page, Site, Verdict, instructions
from comity.policies.answers.element_rule import ACTIONS

CASES = Path(__file__).with_suffix(".toml")
ORIGIN = "https://example.com"
AGENT = Agent("examplebot", defaults={action.lower(): Verdict.ALLOW for action in ACTIONS})
LONG = 25  # words of a long sentence
_ANSWER = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


class Case(NamedTuple):
    """One case of wording.toml, which describes the fields."""

    name: str
    ai_txt: str
    page: str
    action: str
    text: str
    answer: str

    @property
    def read(self) -> Page:
        site = Site.from_files(ORIGIN, {"/ai.txt": self.ai_txt.strip().encode() + b"\n"})
        fields = ((b"Content-Type", b"text/html"),)
        return site.page(AGENT, f"{ORIGIN}/a", headers=fields, body=self.page.encode())

    @property
    def decided(self) -> str:
        """The answer of comity: "no" if the text is taken out of the page for the action."""
        permitted = self.read.redacted([self.action.lower()]).decode()
        return "yes" if self.text in permitted else "no"

    @property
    def prompt(self) -> str:
        question = f'May you {self.action} the text "{self.text}"? Answer yes or no.'
        return f"{instructions(self.read, self.action)}\nThe page:\n{self.page}\n\n{question}\n"


def cases() -> list[Case]:
    return [Case(**case) for case in tomllib.loads(CASES.read_text("utf-8"))["cases"]]


def sentences(text: str) -> list[int]:
    """Return the number of words in each sentence."""
    parts = re.split(r"(?<=[.:?!])\s+|\n+", text)
    return [len(part.split()) for part in parts if part.strip()]


def answer(command: str, prompt: str) -> str:
    """Return "yes", "no", or "none" if the command prints neither."""
    done = subprocess.run(
        shlex.split(command), input=prompt, capture_output=True, text=True, check=True
    )
    found = _ANSWER.search(done.stdout)
    return found[0].lower() if found else "none"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", metavar="COMMAND", help="a command that prints a model's answer")
    options = parser.parse_args()
    table = Table("case", "words", "longest sentence", f"above {LONG} words", "right", "model")
    right = 0
    for case in cases():
        lengths = sentences(instructions(case.read, case.action))
        told = answer(options.model, case.prompt) if options.model else ""
        right += told == case.answer
        long = sum(length > LONG for length in lengths)
        numbers = map(str, (sum(lengths), max(lengths), long))
        table.add_row(case.name, *numbers, case.answer, told)
    console = Console()
    console.print(table)
    if options.model:
        console.print(f"{right} of {table.row_count} answers are right.")


if __name__ == "__main__":
    main()
