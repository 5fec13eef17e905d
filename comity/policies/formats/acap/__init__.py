"""ACAP 1.0, Implementation Version: permissions and prohibitions of usages in robots.txt.

    usages      the usages that can be permitted, and their qualifiers
    grammar     the fields, records and definitions of a file
    resolution  the fields that decide for one agent and resource
    uses        the resulting decisions on the uses of a page

ACAP records are in robots.txt and replace lines there, so formats/robots reads both together
(`RobotsReading`). The supported features and every reading of an open point are in docs/acap.md.
"""

from comity.policies.formats.acap.authoring import AUTHORING
from comity.policies.formats.acap.grammar import Acap, Definitions, Field, Record, Reference, parse
from comity.policies.formats.acap.resolution import (
    Answer,
    Matching,
    Names,
    PurposeView,
    Rules,
    records_for,
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
    "parse",
    "records_for",
]
