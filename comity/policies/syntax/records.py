"""Records of robots.txt (RFC 9309 section-2.2), also for other formats: `name: value` lines."""

from __future__ import annotations

import codecs
import re
from enum import Enum
from typing import NamedTuple

from comity.policies.syntax.lines import MAX_LINE
from comity.policies.syntax.suspicions import INVISIBLE


class RecordKind(Enum):
    """The kind of a record. Its value is the name in the specification."""

    AGENT = b"user-agent"  # section-2.2.1
    ALLOW = b"allow"  # section-2.2.2
    DISALLOW = b"disallow"
    SITEMAP = b"sitemap"  # section-2.2.4
    CRAWL_DELAY = b"crawl-delay"  # extensions
    REQUEST_RATE = b"request-rate"
    VISIT_TIME = b"visit-time"
    # ACAP 1.0 section-2.3: begins a record of ACAP, and ends one of robots.txt.
    ACAP_CRAWLER = b"acap-crawler"


RULE_KINDS = (RecordKind.ALLOW, RecordKind.DISALLOW)
RATE_KINDS = (RecordKind.CRAWL_DELAY, RecordKind.REQUEST_RATE, RecordKind.VISIT_TIME)
# How lines that may be outside of all groups begin (RFC 9309 section-2.2.4, RSL section-4.4.2).
OF_NO_GROUP = (b"#", b"sitemap", b"license")
# LENIENT: common misspellings. There are none of Allow, because doubt is not permission.
MISSPELLINGS = {
    b"useragent": RecordKind.AGENT,
    b"user agent": RecordKind.AGENT,
    b"dissallow": RecordKind.DISALLOW,
    b"dissalow": RecordKind.DISALLOW,
    b"disalow": RecordKind.DISALLOW,
    b"diasllow": RecordKind.DISALLOW,
    b"disallaw": RecordKind.DISALLOW,
    b"site-map": RecordKind.SITEMAP,
    b"sitemaps": RecordKind.SITEMAP,
    b"crawl delay": RecordKind.CRAWL_DELAY,
    b"crawldelay": RecordKind.CRAWL_DELAY,
    b"request rate": RecordKind.REQUEST_RATE,
    b"visit time": RecordKind.VISIT_TIME,
}
_SPELLINGS = {kind.value: kind for kind in RecordKind} | MISSPELLINGS
# LENIENT: a BOM before User-agent, where two files were joined.
_BEFORE = rb"[ \t]*+(?:%s[ \t]*+)*+" % codecs.BOM_UTF8
NAME = rb"%s(?i:%s)" % (_BEFORE, b"|".join(sorted(_SPELLINGS, reverse=True)))

# section-2.2
#   rule = *WS ("allow" / "disallow") *WS ":" *WS (path-pattern / empty-pattern) EOL
#   startgroupline = *WS "user-agent" *WS ":" *WS product-token EOL
# LENIENT: white space instead of the colon. Prose may begin with these words too. So a rule without
# colon needs a path, and another record without colon a single word.
_RECORD = re.compile(rb"(%s)(?:[ \t]*+(:)[ \t]*+|[ \t]++)([^#\r\n]*+)" % NAME)
# LENIENT: invisible characters before the path of a Disallow or a product token are skipped.
_UNSEEN_BEFORE = (RecordKind.AGENT, RecordKind.DISALLOW)
_UNSEEN = re.compile(rb"(?:[ \t]*+(?:%s))++[ \t]*+" % INVISIBLE.pattern)


class Record(NamedTuple):
    """A line of robots.txt.

    Attributes:
        kind: its kind.
        name: the name as written, in lower case.
        value: the value as written, cut at MAX_LINE.
        colon: False if there is white space in place of the colon.
        overlong: True if the line is longer than MAX_LINE.
        unseen: True if invisible characters before the name or value were skipped."""

    kind: RecordKind
    name: bytes
    value: bytes
    colon: bool
    overlong: bool
    unseen: bool

    def column(self, line: bytes) -> int:
        """Return the 1-based column of the value in its line; 0: there is no value."""
        # The name may contain the same letters, so the search begins behind it.
        return (
            line.find(self.value, line.lower().find(self.name) + len(self.name)) + 1
            if self.value
            else 0
        )


def read_record(line: bytes) -> Record | None:
    """Return the record in a line; None for unknown records, blank lines and comments."""
    match = _RECORD.match(line)
    if match is None:
        return None
    name, colon, value = match.groups()
    bom = codecs.BOM_UTF8 in name
    name = name.lstrip(b" \t" + codecs.BOM_UTF8).lower()
    kind = _SPELLINGS[name]
    if bom and kind is not RecordKind.AGENT:
        return None
    value = value[:MAX_LINE].rstrip(b" \t")
    unseen = _UNSEEN.match(value) if value >= b"\x80" and kind in _UNSEEN_BEFORE else None
    if unseen:
        value = value[unseen.end() :]
    if not colon and not (
        value[:1] in (b"/", b"*") if kind in RULE_KINDS else value and b" " not in value
    ):
        return None
    return Record(
        kind, name, value, bool(colon), len(match[0]) > MAX_LINE, bom or unseen is not None
    )
