"""Checks of a trust.txt beyond the lines about training. No crawler runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comity.policies.answers.decision import Finding, Verdict
from comity.policies.formats.authoring import Remarks, literal
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.trust_txt.file import TrustFile, trust_files
from comity.policies.formats.trust_txt.grammar import LIKE_TRAINING, NAME
from comity.policies.syntax.lines import Lines
from comity.policies.syntax.suspicions import nearest

# Name -> its meaning.
NAMES = {
    "member": "An organization that is a member of this one: the URL of its site",
    "belongto": "An organization that this one is a member of: the URL of its site",
    "control": "A site that this organization controls: its URL",
    "controlledby": "The organization that controls this site: the URL of its site",
    "social": "An account of this organization in a social network: its URL",
    "vendor": "A vendor of this organization: the URL of its site",
    "customer": "A customer of this organization: the URL of its site",
    "disclosure": "A page that tells more about this organization: its URL",
    "contact": "A way to reach this organization: a URL, an address or a number",
    NAME: "Whether AI models may be trained with the content of the site: yes or no",
}
_RECORD = re.compile(rb"[ \t]*+([A-Za-z][A-Za-z_-]*+)[ \t]*+=")
_REMARK = re.compile(rb"[ \t]*+(?:#|[\r\n]|$)")
# Lines of robots.txt that say the same to more crawlers.
_KNOWN = frozenset(("content-signal", "content-signals", "content-usage"))


def check_site(site: SiteFiles) -> Iterator[Finding]:
    """Yield findings about the trust.txt files of a site, in addition to those of reading them."""
    for file in trust_files(site):
        remarks = Remarks(file.url)
        _check_lines(file.text, remarks)
        _check_rarity(file, site, remarks)
        yield from remarks.findings


def _check_lines(text: bytes, remarks: Remarks) -> None:
    lines = Lines(text)
    while line := lines.read():
        record = _RECORD.match(line)
        if _REMARK.match(line) or LIKE_TRAINING.match(line):
            continue
        if record is None:
            remarks.report(
                "trust-txt.line",
                "`{}` is neither `name=value` nor a comment. Correct it, or write `#` before it.",
                line,
                line=lines.number,
            )
            continue
        name = record[1].decode("ascii")
        if name.lower() in NAMES:
            continue
        near = nearest(name, NAMES)
        remedy = f"Write `{literal(near)}`." if near else "Delete the line."
        remarks.report(
            "trust-txt.attribute",
            f"`{{}}` is not a name of trust.txt. {remedy}",
            record[1],
            line=lines.number,
            column=record.start(1) + 1,
            length=len(record[1]),
        )


def _check_rarity(file: TrustFile, site: SiteFiles, remarks: Remarks) -> None:
    """Report a refusal that robots.txt does not repeat for the many crawlers that read it."""
    training = file.trust.training
    if (
        training
        and training.verdict is Verdict.DENY
        and robots_of(site).is_present
        and not any(line.name in _KNOWN for line in lines_of(site))
    ):
        remarks.report(
            "trust-txt.rare",
            "Few crawlers read this file. Add `Content-Signal: ai-train=no` to robots.txt.",
            line=training.line,
        )
