"""ACAP 1.0, Implementation Version: permissions and prohibitions of usages in robots.txt.

usages      what can be permitted, and with which qualifiers
grammar     the fields, records and definitions of a file
resolution  which of them decide for one agent and resource
uses        what that means for the uses of a page that was fetched
Its records stand in robots.txt and replace lines there: formats/robots reads them together
(`RobotsReading`). What is supported, and every reading of an open point, stands in docs/acap.md.
"""

from comity.policies.formats.acap.authoring import AUTHORING
from comity.policies.formats.acap.grammar import Acap, Definitions, Field, Record, Reference, parse
from comity.policies.formats.acap.resolution import (
    Answer,
    Matching,
    Names,
    PurposeView,
    Rules,
    addressed,
)
from comity.policies.formats.acap.rules import RULES
from comity.policies.formats.acap.uses import PageUses, SiteUses
from comity.policies.formats.format import Format

FORMAT = Format(name="acap", rules=RULES, authoring=AUTHORING)

__all__ = [
    "FORMAT",
    "Acap",
    "Answer",
    "Definitions",
    "Field",
    "Matching",
    "Names",
    "PageUses",
    "PurposeView",
    "Record",
    "Reference",
    "Rules",
    "SiteUses",
    "addressed",
    "parse",
]
