"""ACAP 1.0, Implementation Version: permissions and prohibitions of usages in robots.txt.

    usages      the usages that can be permitted, and their qualifiers
    grammar     the fields, records and definitions of a file
    resolution  the fields that decide for one agent and resource
    uses        the resulting decisions on the uses of a page

ACAP records are in robots.txt and replace lines there, so formats/robots reads both together
(`RobotsReading`). The supported features and every reading of an open point are in docs/acap.md.
"""

from comity.policies.formats.acap.authoring import AUTHORING
from comity.policies.formats.acap.grammar import (
    Acap,
    CrawlerRecord,
    Definitions,
    Field,
    Reference,
    parse,
)
from comity.policies.formats.acap.resolution import (
    AcapRules,
    CrawlerNames,
    Matching,
    PurposeView,
    UsageAnswer,
    records_for,
)
from comity.policies.formats.acap.rules import RULES
from comity.policies.formats.acap.uses import PageUses, SiteUses
from comity.policies.formats.format import Format

FORMAT = Format(
    name="acap",
    rules=RULES,
    title="ACAP in robots.txt",
    specification="ACAP 1.0, part 1",
    summary="all of it; some features need an arrangement with the site",
    authoring=AUTHORING,
)

__all__ = [
    "FORMAT",
    "Acap",
    "AcapRules",
    "CrawlerNames",
    "CrawlerRecord",
    "Definitions",
    "Field",
    "Matching",
    "PageUses",
    "PurposeView",
    "Reference",
    "SiteUses",
    "UsageAnswer",
    "parse",
    "records_for",
]
