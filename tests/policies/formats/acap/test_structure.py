"""Records, sub-records and definitions of ACAP, and the findings about malformed lines.

See ACAP 1.0 section-2.2 to section-2.9 and section-3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from comity.policies import Verdict
from comity.policies.formats.acap import Acap, parse
from comity.policies.formats.acap.usages import FieldQualifiers
from comity.policies.formats.robots import grammar as robots
from comity.policies.syntax.lines import MAX_BYTES, MAX_LINE, text_of
from tests.selection import one_in

URL = "https://example.com/robots.txt"


def read(text: str | bytes, **options: Any) -> Acap:
    octets = text if isinstance(text, bytes) else text.encode()
    return parse(text_of(octets)[0], url=URL, **options)


def describe(acap: Acap) -> list[str]:
    """Return the crawlers of each record in brackets, then its lines.

    A line is its number, its statement, its purposes, and `unusable`.
    """
    shown = []
    for record in acap.records:
        assert record.url == URL
        shown.append(f"[{', '.join(record.crawlers)}]")
        lines = [
            (request.line, f"request {request.action} {request.path}")
            for request in record.requests
        ]
        lines += (
            (reference.line, f"reference {reference.locator}") for reference in record.references
        )
        for field in record.fields:
            assert field.url == URL
            purposes = f" for {'|'.join(field.purposes)}" if field.purposes else ""
            unusable = " unusable" if field.unusable else ""
            lines.append(
                (
                    field.line,
                    f"{field.verdict.value} {field.usage} "
                    f"{field.pattern or '(all)'}{purposes}{unusable}",
                )
            )
        shown += (f"{line} {text}" for line, text in sorted(lines, key=lambda line: line[0]))
    return shown


def describe_findings(acap: Acap) -> list[str]:
    """Return rule and place of each finding."""
    assert {finding.url for finding in acap.findings} <= {URL}
    return [f"{finding.rule} {finding.line}:{finding.column}" for finding in acap.findings]


class Case(NamedTuple):
    id: str
    rows: str
    text: str | bytes
    said: str  # "; " between the lines
    found: str = ""  # "; " between the findings


A = "ACAP-crawler: a\n"
SET = "the-acap:resource-set:"
DAYS = "time-limit=3-days"
QUALIFIED = f"ACAP-qualified-usage: q index {DAYS}\n"

CASES = [
    # section-2.2: fields, lines, comments
    Case("2.2-nothing", "ACAP-3", "", ""),
    Case("2.2-no-acap", "ACAP-3", "User-agent: *\nDisallow: /", ""),
    Case("2.2-field", "ACAP-1", f"{A}ACAP-allow-crawl: /x", "[a]; 2 allow crawl /x"),
    Case("2.2-comments", "ACAP-1",
         f"# c\n{A}\n  # c\nACAP-allow-crawl: /x#c\n#ACAP-allow-crawl: /y",
         "[a]; 5 allow crawl /x"),
    Case("2.2-comment-after-crawler", "ACAP-1", "ACAP-crawler: a # b\nACAP-allow-crawl: /x # y",
         "[a]; 2 allow crawl /x"),
    Case("2.2-comment-with-a-field", "ACAP-1", f"{A}# b ACAP-crawler: b\nACAP-allow-crawl: /x",
         "[a]; 3 allow crawl /x"),
    Case("2.2-no-field-in-a-line", "ACAP-1", f"{A}x ACAP-allow-crawl: /x", "[a]"),
    Case("2.2-cr", "ACAP-1", "ACAP-crawler: a\r\rACAP-allow-crawl: /x\r", "[a]; 3 allow crawl /x"),
    Case("2.2-crlf", "ACAP-1", "ACAP-crawler: a\r\n\r\nACAP-allow-crawl: /x\r\n",
         "[a]; 3 allow crawl /x"),
    Case("2.2-mixed", "ACAP-1", "\r\n\r\r\nACAP-crawler: a\n\rACAP-allow-crawl: /x",
         "[a]; 6 allow crawl /x"),
    Case("2.2-no-other-line-end", "ACAP-1",
         f"{A}ACAP-disallow-crawl: /\x0b\x0c\x85\u2028ACAP-allow-crawl: /",
         "[a]; 2 deny crawl /", "acap.prohibition 2:30"),
    Case("2.2-no-other-space", "ACAP-1",
         f"ACAP-resource-set: s /x\xa0/y\n{A}ACAP-allow-crawl: /\xa0x\nACAP-allow-index: {SET}s\n"
         f"ACAP-disallow-index: {SET}s",
         "[a]; 3 allow crawl / unusable; 4 allow index /x unusable; 4 allow index /y unusable; "
         "5 deny index /x; 5 deny index /y", "acap.syntax 1:20; acap.syntax 3:19"),
    Case("2.2-white-space", "ACAP-1", " \tACAP-crawler \t:\t a \t\n  ACAP-allow-crawl\t:/x \t",
         "[a]; 2 allow crawl /x"),
    Case("2.2-bom", "ACAP-1", b"\xef\xbb\xbf" + f"{A}ACAP-allow-crawl: /x".encode(),
         "[a]; 2 allow crawl /x"),
    Case("2.2-utf16", "ACAP-1", f"{A}ACAP-allow-crawl: /x".encode("utf-16"),
         "[a]; 2 allow crawl /x"),
    Case("2.2-not-utf8", "ACAP-1", b"ACAP-crawler: \xff\nACAP-allow-crawl: /\nACAP-allow-\xff: /",
         "[\ufffd]",
         "acap.syntax 1:0; acap.unknown-usage 3:0"),
    # section-3: names are case-insensitive
    Case("3-case", "ACAP-2",
         "acap-CRAWLER: SearchBot\nAcap-Allow-Crawl: /X\nACAP-DISALLOW-PRESENT-Link: /Y",
         "[SearchBot]; 2 allow crawl /X; 3 deny present-link /Y"),
    Case("3-case-of-definitions", "ACAP-2",
         f"acap-Qualified-Usage: Mine Index {DAYS}\n"
             f"acap-composite-USAGE: Both Crawl (MINE)\nacap-RESOURCE-set: Docs /X\n{A}"
         "ACAP-allow-(BOTH): THE-ACAP:Resource-Set:dOCS",
         "[a]; 5 allow crawl /X; 5 allow index /X"),
    Case("3-case-of-purposes", "ACAP-2", f"{A}ACAP-Usage-Purpose: NEWS\nACAP-allow-crawl: /",
         "[a]; 3 allow crawl / for news"),
    Case("3-case-of-the-rest", "ACAP-2",
         f"{A}ACAP-Permissions-Reference: /R\nACAP-crawler: b\nACAP-Request-Take-Down: /X",
         "[a]; 2 reference /R; [b]; 4 request take-down /X"),
    # LENIENT: no colon
    Case("3-no-colon", "ACAP-3", "ACAP-crawler a\n ACAP-allow-crawl /x", "[a]; 2 allow crawl /x",
         "acap.syntax 2:2"),
    Case("3-no-colon-of-definitions", "ACAP-5",
         f"ACAP-resource-set s /x\n{A}ACAP-allow-crawl: {SET}s", "[a]; 3 allow crawl /x",
         "acap.syntax 1:1"),
    Case("3-no-colon-nor-name", "ACAP-3",
         f"{A}ACAP-allow-crawl: /\nACAP-crawler\nACAP-allow-crawl: /x\nACAP-disallow-crawl: /y",
         "[a]; 2 allow crawl /; [*]; 5 deny crawl /y", "acap.syntax 3:0"),
    Case("3-no-colon-many-names", "ACAP-3", "ACAP-crawler any bot # x\nACAP-disallow-crawl: /y",
         "[*]; 2 deny crawl /y",
         "acap.syntax 1:0"),
    Case("3-unknown-fields", "ACAP-3",
         f"{A}ACAP-version: 1\nACAP-crawlers: b\nACAP-permit-crawl: /\nACAP-request: /\n"
             " ACAP-request-x: /\nACAP-usage: x\n"
         "ACAP-: x", "[a]",
         "acap.unknown-field 2:1; acap.unknown-field 3:1; acap.unknown-field 4:1; "
             "acap.unknown-field 5:1; "
         "acap.unknown-field 6:2; acap.unknown-field 7:1"),
    # section-2.3: records
    Case("2.3-record-ends", "ACAP-3",
         f"{A}ACAP-allow-crawl: /x\nACAP-crawler: b\nACAP-allow-crawl: /y",
         "[a]; 2 allow crawl /x; [b]; 4 allow crawl /y"),
    Case("2.3-blank-line-ends-nothing", "ACAP-3",
         f"{A}ACAP-allow-crawl: /x\n\n\nACAP-allow-index: /y",
         "[a]; 2 allow crawl /x; 5 allow index /y"),
    Case("2.3-several-crawlers", "ACAP-3",
         f"{A}ACAP-crawler: b c/1.0\nACAP-crawler: d\nACAP-allow-crawl: /x",
         "[a, b c/1.0, d]; 4 allow crawl /x"),
    Case("2.3-no-field", "ACAP-3", A, "[a]"),
    Case("2.3-same-crawler-twice", "ACAP-3", f"{A}ACAP-allow-crawl: /x\n{A}ACAP-allow-crawl: /y",
         "[a]; 2 allow crawl /x; [a]; 4 allow crawl /y"),
    Case("2.3-any", "ACAP-3", "ACAP-crawler: *\nACAP-allow-crawl: /x", "[*]; 2 allow crawl /x"),
    *(
        Case(f"2.3-ends-after-{name}", "ACAP-3", f"{A}{field}\nACAP-crawler: b", f"[a]{shown}; [b]",
             finding)
        for name, field, shown, finding in (
            ("reference", "ACAP-permissions-reference: /r", "; 2 reference /r", ""),
            ("request", "ACAP-request-take-down: /x", "; 2 request take-down /x", ""),
            ("purpose", "ACAP-usage-purpose: p", "", ""),
            ("empty-field", "ACAP-allow-crawl:", "", "acap.empty 2:0"),
            ("unknown-usage", "ACAP-allow-read: /", "", "acap.unknown-usage 2:12"),
        )
    ),
    *(
        Case(f"2.3-fused-over-{name}", "ACAP-3",
             f"{A}{between}\nACAP-crawler: b\nACAP-allow-crawl: /", "[a, b]; 4 allow crawl /",
             f"{findings}acap.fused 3:0")
        for name, between, findings in (
            ("blank", "", ""),
            ("comment", "# c", ""),
            ("conventional", "Disallow: /", ""),
            ("unknown", "ACAP-version: 1", "acap.unknown-field 2:1; "),
            ("definition", "ACAP-resource-set: s /", "acap.late 2:20; "),
        )
    ),
    Case("2.3.1-any-beside-a-name", "ACAP-3", f"{A}ACAP-crawler: *\nACAP-allow-crawl: /",
         "[a, *]; 3 allow crawl /",
         "acap.crawlers 2:0"),
    Case("2.3.1-name-beside-any", "ACAP-3", f"ACAP-crawler: *\n\n{A}ACAP-allow-crawl: /",
         "[*, a]; 4 allow crawl /",
         "acap.crawlers 3:0"),
    Case("2.3.1-no-name", "ACAP-3",
         "ACAP-crawler:\nACAP-allow-crawl: /x\nACAP-disallow-crawl: /y\n"
             "ACAP-permissions-reference: /r",
         "[*]; 3 deny crawl /y; 4 reference ", "acap.syntax 1:0; acap.reference 4:0"),
    Case("2.3.1-one-without-name", "ACAP-3",
         f"{A}ACAP-crawler: # b\nACAP-allow-crawl: /x\nACAP-crawler: c\nACAP-allow-crawl: /y",
         "[a, *]; [c]; 5 allow crawl /y", "acap.syntax 2:0"),
    Case("2.3-outside", "ACAP-3",
         "ACAP-allow-crawl: /x\nACAP-disallow-crawl: /y\nACAP-usage-purpose: p\n"
             "ACAP-request-re-crawl: /\n"
         f"ACAP-permissions-reference: /r\n{A}", "[a]",
         "; ".join(f"acap.outside-record {line}:0" for line in range(1, 6))),
    # section-2.3, section-2.3.3: sub-records
    Case("2.3.3-one", "ACAP-4",
         f"{A}ACAP-allow-crawl: /\nACAP-usage-purpose: p\nACAP-allow-index: /x\n\n"
             "ACAP-disallow-index: /y",
         "[a]; 2 allow crawl /; 4 allow index /x for p; 6 deny index /y for p"),
    Case("2.3.3-several-purposes", "ACAP-4",
         f"{A}ACAP-usage-purpose: p\n# c\nACAP-usage-purpose: http://e.com/*/x\n"
             "ACAP-allow-index: /x",
         "[a]; 5 allow index /x for p|http://e.com/*/x"),
    Case("2.3.3-ends-at-a-purpose", "ACAP-4",
         f"{A}ACAP-usage-purpose: p\nACAP-allow-index: /x\nACAP-usage-purpose: q\n"
             "ACAP-disallow-index: /y",
         "[a]; 3 allow index /x for p; 5 deny index /y for q"),
    Case("2.3.3-ends-at-a-crawler", "ACAP-4", f"{A}ACAP-usage-purpose: p\n{A}ACAP-allow-index: /x",
         "[a]; [a]; 4 allow index /x"),
    Case("2.3.3-unknown-usage-is-a-field", "ACAP-4",
         f"{A}ACAP-usage-purpose: p\nACAP-allow-read: /x\nACAP-usage-purpose: q\n"
             "ACAP-disallow-read: /x\nACAP-usage-purpose: r\n"
         "ACAP-allow-index: /x", "[a]; 7 allow index /x for r",
         "acap.unknown-usage 3:12; acap.unknown-usage 5:15"),
    Case("2.3.3-empty-field-is-a-field", "ACAP-4",
         f"{A}ACAP-usage-purpose: p\nACAP-allow-index:\nACAP-usage-purpose: q\n"
             "ACAP-allow-index: /x",
         "[a]; 5 allow index /x for q", "acap.empty 3:0"),
    Case("2.3.3-request", "ACAP-4",
         f"{A}ACAP-usage-purpose: p\nACAP-request-re-crawl: /x\nACAP-allow-index: /x",
         "[a]; 4 allow index /x for p", "acap.action 3:0"),
    Case("2.3.3-no-purpose", "ACAP-4",
         f"{A}ACAP-usage-purpose:\nACAP-allow-index: /x\nACAP-disallow-index: /y\n"
             "ACAP-usage-purpose: p\nACAP-allow-index: /z",
         "[a]; 4 deny index /y; 4 deny index /y for *; 6 allow index /z for p", "acap.syntax 2:0"),
    # section-2.3.2: references
    Case("2.3.2-reference", "ACAP-12",
         f"{A}ACAP-permissions-reference: /r.txt\nACAP-crawler: b\nACAP-permissions-reference: "
         "http://e.com/r?a#b", "[a]; 2 reference /r.txt; [b]; 4 reference http://e.com/r?a"),
    Case("2.3.2-before-a-field", "ACAP-12",
         f"{A}ACAP-permissions-reference: /r\nACAP-allow-crawl: /x\nACAP-request-re-crawl: /x",
         "[a]; 2 reference /r; 3 allow crawl /x; 4 request re-crawl /x",
         "acap.reference 3:0; acap.reference 4:0"),
    Case("2.3.2-after-a-field", "ACAP-12",
         f"{A}ACAP-disallow-crawl: /x\nACAP-permissions-reference: /r",
         "[a]; 2 deny crawl /x; 3 reference /r", "acap.reference 3:0"),
    Case("2.3.2-after-a-purpose", "ACAP-12",
         f"{A}ACAP-usage-purpose: p\nACAP-permissions-reference: /r", "[a]; 3 reference ",
         "acap.reference 3:0; acap.reference 3:0"),
    Case("2.3.2-two", "ACAP-12",
         f"{A}ACAP-permissions-reference: /r\nACAP-permissions-reference: /s",
         "[a]; 2 reference /r; 3 reference /s", "acap.reference 3:0"),
    Case("2.3.2-nowhere", "ACAP-12", f"{A}ACAP-permissions-reference:", "[a]", "acap.syntax 2:0"),
    # section-2.4: permissions and prohibitions
    Case("2.4-both", "ACAP-20", f"{A}ACAP-allow-follow:/x\nACAP-disallow-other: /y",
         "[a]; 2 allow follow /x; 3 deny other /y"),
    Case("2.4.2-qualifiers", "ACAP-20", f"{A}ACAP-disallow-index: /index time-limit=3-days",
         "[a]; 2 deny index /index",
         "acap.prohibition 2:29"),
    Case("2.4.4-misspelled-set", "ACAP-22",
         f"{A}ACAP-allow-crawl: the-acap:resourceset:x\nACAP-disallow-index: the-acap:x",
         "[a]; 3 deny index (all)", "acap.unknown-set 2:19; acap.unknown-set 3:22"),
    Case("2.4.4-earlier-scheme", "ACAP-22",
         f"ACAP-resource-set: s /x\n{A}ACAP-disallow-crawl: ACAP:resource-set:S\n"
             "ACAP-allow-index: acap:resource-set:s\n"
         "ACAP-disallow-index: acap:resource-set:t",
         "[a]; 3 deny crawl /x; 4 allow index /x unusable; 5 deny index (all)",
         "acap.syntax 3:22; acap.syntax 4:19; acap.unknown-set 5:22"),
    Case("2.4.3-url", "ACAP-23", f"{A}ACAP-disallow-crawl: http://e.com/x", "[a]; 2 deny crawl /x",
         "acap.syntax 2:22"),
    Case("2.4.2-words", "ACAP-20", f"{A}ACAP-disallow-crawl: /x /y", "[a]; 2 deny crawl /x",
         "acap.prohibition 2:25"),
    Case("2.4.2-qualified-usage", "ACAP-20", f"{QUALIFIED}{A}ACAP-disallow-(q): /x",
         "[a]; 3 deny index /x",
         "acap.prohibition 3:15"),
    Case("2.4.2-composite-usage", "ACAP-20",
         f"{QUALIFIED}ACAP-composite-usage: c index crawl (q)\n{A}ACAP-disallow-(c): /x\n"
             "ACAP-disallow-(c): /y",
         "[a]; 4 deny index /x; 4 deny crawl /x; 5 deny index /y; 5 deny crawl /y",
         "acap.prohibition 4:15; acap.prohibition 5:15"),
    Case("2.4.2-undefined-usage", "ACAP-20", f"{A}ACAP-disallow-(q): /x", "[a]",
         "acap.unknown-usage 2:15"),
    Case("2.4.1.3-qualified-usage", "ACAP-21", f"{QUALIFIED}{A}ACAP-allow-(q): /x",
         "[a]; 3 allow index /x"),
    Case("2.4.1.3-own-qualifiers", "ACAP-21",
         f"{QUALIFIED}{A}ACAP-allow-(q): /x time-limit=3-days\nACAP-allow-(q): /y",
         "[a]; 3 allow index /x unusable; 4 allow index /y", "acap.qualifier 3:20"),
    Case("2.4.1.3-undefined", "ACAP-21", f"{A}ACAP-allow-(q): /(q) x=y", "[a]",
         "acap.undefined 2:12"),
    Case("2.4.1.3-parentheses", "ACAP-21", f"{QUALIFIED}{A}ACAP-allow-q: /x", "[a]",
         "acap.unknown-usage 3:12"),
    Case("2.4-usage-like-the-verb", "ACAP-20", f"{A}ACAP-allow-allow: /allow\nACAP-disallow-a: /a",
         "[a]",
         "acap.unknown-usage 2:12; acap.unknown-usage 3:15"),
    Case("2.4.1.3-named-like-a-usage", "ACAP-21",
         "ACAP-qualified-usage: crawl index time-limit=3-days\n"
             f"{A}ACAP-allow-(crawl): /x\nACAP-allow-crawl: /y",
         "[a]; 3 allow index /x; 4 allow crawl /y"),
    # section-2.4.3, section-2.4.4, section-2.7.3: resources
    Case("2.4.3-patterns", "ACAP-22",
         f"{A}ACAP-allow-crawl: /a/*.gif$\nACAP-allow-crawl: *.gif\n"
             "ACAP-allow-crawl: x/\nACAP-allow-crawl: /%7e/%c3%A9?a=b",
         "[a]; 2 allow crawl /a/*.gif$; 3 allow crawl *.gif; 4 allow crawl /x/; 5 allow "
             "crawl /~/%C3%A9?a=b"),
    Case("2.4.3-octets", "ACAP-22", f"{A}ACAP-allow-crawl: /é".encode(),
         "[a]; 2 allow crawl /%C3%A9"),
    Case("2.4.3-empty", "ACAP-22", f"{A}ACAP-allow-crawl:\nACAP-disallow-crawl: # all", "[a]",
         "acap.empty 2:0; acap.empty 3:0"),
    Case("2.4.4-set", "ACAP-22",
         f"ACAP-resource-set: s /x  y \t*.gif$\n{A}ACAP-allow-crawl: {SET}s\n"
             f"ACAP-disallow-index: {SET}S",
         "[a]; 3 allow crawl /x; 3 allow crawl /y; 3 allow crawl *.gif$; 4 deny index "
             "/x; 4 deny index /y; 4 deny index *.gif$"),
    Case("2.4.4-set-and-qualifier", "ACAP-22",
         f"ACAP-resource-set: s /x /y\n{A}ACAP-allow-index: {SET}s time-limit=1-hour",
         "[a]; 3 allow index /x unusable; 3 allow index /y unusable", "acap.qualifier 3:54"),
    Case("2.4.4-unknown", "ACAP-22", f"{A}ACAP-allow-crawl: {SET}s\nACAP-disallow-index: {SET}s",
         "[a]; 3 deny index (all)",
         "acap.unknown-set 2:19; acap.unknown-set 3:22"),
    Case("2.4.4-no-name", "ACAP-22", f"{A}ACAP-allow-crawl: {SET}\nACAP-disallow-index: {SET}",
         "[a]; 3 deny index (all)",
         "acap.unknown-set 2:19; acap.unknown-set 3:22"),
    Case("2.4.4-holds-nothing", "ACAP-22",
         f"ACAP-resource-set: s # /x\n{A}ACAP-allow-crawl: {SET}s\nACAP-disallow-index: {SET}s",
         "[a]; 4 deny index (all)",
         "acap.syntax 1:20; acap.unknown-set 3:19; acap.unknown-set 4:22"),
    # section-2.6: action requests
    Case("2.6-actions", "ACAP-4",
         f"{A}ACAP-request-take-down: /x?y\nACAP-allow-crawl: /\nACAP-request-re-crawl: /%7E*"[:-1],
         "[a]; 2 request take-down /x?y; 3 allow crawl /; 4 request re-crawl /%7E"),
    *(
        Case(f"2.6-no-path-{path}", "ACAP-4", f"{A}ACAP-request-take-down: {path}", "[a]",
             f"acap.action 2:{25 if path else 0}")
        for path in ("", "x", "/*", "/x /y", "//example.org/x", "https://example.org/x")
    ),
    # section-2.7: definitions
    Case("2.7-any-order-of-sets", "ACAP-5",
         f"ACAP-resource-set: s /x\n{QUALIFIED}ACAP-resource-set: t /y\n"
             f"{A}ACAP-allow-(q): {SET}s\nACAP-allow-crawl: {SET}t",
         "[a]; 5 allow index /x; 6 allow crawl /y"),
    Case("2.7-after-conventional", "ACAP-5",
         f"User-agent: *\nDisallow: /\n{QUALIFIED}{A}ACAP-allow-(q): /x",
         "[a]; 5 allow index /x"),
    Case("2.7-late-qualified", "ACAP-5",
         f"{A}ACAP-allow-(q): /x\nACAP-disallow-(q): /y\n{QUALIFIED}",
         "[a]; 2 allow index /x unusable; 3 deny index /y",
         "acap.prohibition 3:15; acap.late 4:23"),
    Case("2.7-late-composite", "ACAP-5",
         f"{A}ACAP-allow-crawl: /\nACAP-composite-usage: c crawl index\nACAP-crawler: b\n"
             "ACAP-allow-(c): /x\n"
         "ACAP-disallow-(c): /y",
         "[a]; 2 allow crawl /; [b]; 5 allow crawl /x unusable; 5 allow index /x "
             "unusable; 6 deny crawl /y; 6 deny index /y",
         "acap.late 3:23; acap.prohibition 6:15"),
    Case("2.7-late-set", "ACAP-5",
         f"{A}ACAP-resource-set: s /x\nACAP-allow-crawl: {SET}s\nACAP-disallow-index: {SET}s",
         "[a]; 3 allow crawl /x unusable; 4 deny index /x", "acap.late 2:20"),
    Case("2.7-no-name", "ACAP-40",
         "ACAP-qualified-usage: 1q index\nACAP-composite-usage: (c) index\n"
             "ACAP-resource-set: s:t /x\n"
         f"ACAP-resource-set:\n{A}ACAP-allow-(1q): /x\nACAP-allow-crawl: {SET}s:t", "[a]",
         "acap.syntax 1:23; acap.syntax 2:23; acap.syntax 3:20; acap.syntax 4:0; "
             "acap.unknown-usage 6:12; acap.unknown-set 7:19"),
    Case("2.7-names", "ACAP-40",
         f"ACAP-qualified-usage: A.b-c_9 index {DAYS}\n{A}ACAP-allow-(a.b-c_9): /x",
         "[a]; 3 allow index /x"),
    Case("2.7.1-no-qualifier", "ACAP-40",
         f"ACAP-qualified-usage: q Index # {DAYS}\nACAP-composite-usage: c crawl (q)\n"
             f"{A}ACAP-allow-(q): /x\nACAP-allow-(c): /y\n"
         "ACAP-disallow-(q): /z",
         "[a]; 4 allow index /x unusable; 5 allow crawl /y; 5 allow index /y unusable; 6 "
             "deny index /z",
         "acap.qualifier 1:25; acap.prohibition 6:15"),
    Case("2.7.1-unknown-usage", "ACAP-40",
         f"ACAP-qualified-usage: q read\nACAP-qualified-usage: r\n{A}ACAP-allow-(q): /x",
         "[a]", "acap.unknown-usage 1:25; acap.unknown-usage 2:0"),
    Case("2.7.2-composite", "ACAP-41",
         f"{QUALIFIED}ACAP-composite-usage: c CRAWL (Q) present-link crawl\n{A}ACAP-allow-(c): /x",
         "[a]; 4 allow crawl /x; 4 allow index /x; 4 allow present-link /x"),
    Case("2.7.2-broken-constituent", "ACAP-41",
         "ACAP-qualified-usage: q index time-limit=3\n"
             f"ACAP-composite-usage: c crawl (q)\n{A}ACAP-allow-(c): /x",
         "[a]; 4 allow crawl /x; 4 allow index /x unusable", "acap.qualifier 1:42"),
    Case("2.7.2-nothing", "ACAP-41", f"ACAP-composite-usage: c\n{A}ACAP-allow-(c): /x", "[a]",
         "acap.syntax 1:23"),
    Case("2.7.2-composite-in-composite", "ACAP-41",
         "ACAP-composite-usage: c crawl\nACAP-composite-usage: d index (c)\n"
             f"{A}ACAP-allow-(d): /x\nACAP-disallow-(d): /y",
         "[a]; 4 allow index /x unusable; 4 allow crawl /x unusable; 5 deny index /y; 5 "
             "deny crawl /y",
         "acap.undefined 2:31; acap.prohibition 5:15"),
    Case("2.7.2-composites-in-each-other", "ACAP-20 ACAP-41",
         "ACAP-composite-usage: c crawl (e)\nACAP-composite-usage: d index (c)\n"
             "ACAP-composite-usage: e follow (d) (q)\n"
         f"{QUALIFIED}{A}ACAP-disallow-(c): /x\nACAP-disallow-(e): /y",
         "[a]; 6 deny crawl /x; 6 deny follow /x; 6 deny index /x; 7 deny follow /y; 7 "
             "deny index /y; 7 deny crawl /y",
         "acap.undefined 1:31; acap.undefined 2:31; acap.undefined 3:32; acap.undefined "
             "3:36; acap.prohibition 6:15; "
         "acap.prohibition 7:15"),
    Case("2.7.2-usage-in-parentheses", "ACAP-20 ACAP-41",
         f"ACAP-composite-usage: c (index) (read)\n{A}ACAP-allow-(c): /x\nACAP-disallow-(c): /y",
         "[a]; 3 allow index /x unusable; 4 deny index /y",
         "acap.undefined 1:25; acap.undefined 1:33; acap.prohibition 4:15"),
    Case("2.4.2-usage-in-parentheses", "ACAP-20",
         f"{A}ACAP-disallow-(Crawl): /x\nACAP-allow-(crawl): /y", "[a]; 2 deny crawl /x",
         "acap.prohibition 2:15; acap.undefined 3:12"),
    Case("2.7.2-itself", "ACAP-41", f"ACAP-composite-usage: c crawl (c)\n{A}ACAP-allow-(c): /x",
         "[a]; 3 allow crawl /x unusable",
         "acap.undefined 1:31"),
    Case("2.7.2-undefined", "ACAP-41",
         f"ACAP-composite-usage: c crawl (q) q read\n{A}ACAP-allow-(c): /x",
         "[a]; 3 allow crawl /x unusable",
         "acap.undefined 1:31; acap.undefined 1:32; acap.undefined 1:37"),
    Case("2.7.2-defined-after", "ACAP-5",
         f"ACAP-composite-usage: c crawl (q)\n{QUALIFIED}{A}ACAP-allow-(c): /x\nACAP-allow-(q): /y",
         "[a]; 4 allow crawl /x unusable; 4 allow index /x unusable; 5 allow index /y",
         "acap.undefined 1:31"),
    Case("2.7.2-defined-after-the-record", "ACAP-5",
         f"ACAP-composite-usage: c (q) (r)\n{A}ACAP-allow-(c): /x\n"
             f"ACAP-disallow-(c): /y\n{QUALIFIED}",
         "[a]; 3 allow index /x unusable; 4 deny index /y",
         "acap.undefined 1:25; acap.undefined 1:29; acap.prohibition 4:15; acap.late 5:23"),
    Case("3-duplicate", "ACAP-42",
         f"{QUALIFIED}ACAP-qualified-usage: Q preserve {DAYS}\n{A}ACAP-allow-(q): /x\n"
             "ACAP-disallow-(q): /y",
         "[a]; 4 allow index /x unusable; 4 allow preserve /x unusable; 5 deny index /y; "
             "5 deny preserve /y",
         "acap.duplicate 2:23; acap.prohibition 5:15"),
    Case("3-duplicate-of-the-other-kind", "ACAP-42",
         f"{QUALIFIED}ACAP-composite-usage: q index\n{A}ACAP-allow-(q): /x",
         "[a]; 4 allow index /x unusable", "acap.duplicate 2:23"),
    Case("3-duplicate-in-a-composite", "ACAP-42",
         f"{QUALIFIED}ACAP-composite-usage: c crawl (q)\n"
             f"ACAP-qualified-usage: q index {DAYS}\n{A}ACAP-allow-(c): /x",
         "[a]; 5 allow crawl /x unusable; 5 allow index /x unusable", "acap.duplicate 3:23"),
    Case("3-set-and-usage-share-a-name", "ACAP-42",
         f"{QUALIFIED}ACAP-resource-set: q /y\n{A}ACAP-allow-(q): {SET}q",
         "[a]; 4 allow index /y"),
    Case("3-duplicate-set", "ACAP-42",
         "ACAP-resource-set: s /x\nACAP-resource-set: s /y\n"
             f"{A}ACAP-allow-crawl: {SET}s\nACAP-disallow-index: {SET}s",
         "[a]; 4 allow crawl /x unusable; 4 allow crawl /y unusable; 5 deny index /x; 5 "
             "deny index /y", "acap.duplicate 2:20"),
    # section-2.9: beside conventional records
    Case("2.9-agent-ends-the-record", "ACAP-9",
         f"{A}ACAP-disallow-crawl: /x\nUser-agent: *\nACAP-disallow-crawl: /y\n"
             f"{A}ACAP-disallow-crawl: /z",
         "[a]; 2 deny crawl /x; [a]; 6 deny crawl /z", "acap.outside-record 4:0"),
    Case("2.9-misspelled-agent", "ACAP-9", f"{A}Useragent: *\nACAP-disallow-crawl: /y", "[a]",
         "acap.outside-record 3:0"),
    Case("2.9-agent-between-crawlers", "ACAP-9",
         f"{A}User-agent: *\nACAP-crawler: b\nACAP-disallow-crawl: /y",
         "[a]; [b]; 4 deny crawl /y"),
    Case("2.9.2-conventional-in-acap", "ACAP-8",
         f"{A}Disallow: /\nCrawl-delay: 1\nSitemap: /s\nACAP-disallow-crawl: /y",
         "[a]; 5 deny crawl /y"),
    Case("2.9.2-acap-in-conventional", "ACAP-8", "User-agent: *\nACAP-allow-crawl: /\nDisallow: /",
         "",
         "acap.outside-record 2:0"),
]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    one_in(
        3,
        [
            pytest.param(case, id=case.id, marks=pytest.mark.requirement(*case.rows.split()))
            for case in CASES
        ],
    ),
)
def test_case(case: Case) -> None:
    acap = read(case.text)
    assert "; ".join(describe(acap)) == case.said
    assert "; ".join(describe_findings(acap)) == case.found


@pytest.mark.requirement("ACAP-2")
@pytest.mark.parametrize(
    "case",
    one_in(3, [pytest.param(case, id=case.id) for case in CASES if isinstance(case.text, str)]),
)
def test_the_case_of_names_changes_nothing(case: Case) -> None:
    """Paths keep their case. It is ignored only when patterns are matched."""
    assert isinstance(case.text, str)
    changed = read(case.text.swapcase())
    assert "; ".join(describe(changed)).lower() == case.said.lower()
    assert "; ".join(describe_findings(changed)) == case.found


@pytest.mark.requirement("ACAP-41")
def test_a_composite_usage_has_the_qualifiers_of_its_constituents() -> None:
    acap = read(f"{QUALIFIED}ACAP-composite-usage: c crawl (q) preserve\n{A}ACAP-allow-(c): /x")
    assert [(field.usage, field.qualifiers) for field in acap.records[0].fields] == [
        ("crawl", FieldQualifiers()),
        ("index", FieldQualifiers(days=3)),
        ("preserve", FieldQualifiers()),
    ]


@pytest.mark.requirement("ACAP-42")
def test_what_is_defined_twice_loses_its_qualifiers() -> None:
    acap = read(
        f"{QUALIFIED}ACAP-qualified-usage: q index time-limit=9-days\n{A}ACAP-allow-(q): /x"
    )
    assert [(field.qualifiers, field.unusable) for field in acap.records[0].fields] == [
        (FieldQualifiers(), "ACAP 1.0 section-3")
    ]


@pytest.mark.requirement("ACAP-38")
def test_fields_know_their_place_in_the_text() -> None:
    text = (
        f"{A}\r\n\r ACAP-allow-crawl: /x\nACAP-request-take-down: /y\n"
        "ACAP-permissions-reference: /z"
    )
    (record,) = read(text).records
    places = [
        place.offset
        for places in (record.fields, record.requests, record.references)
        for place in places
    ]
    assert places == [
        text.index(line) for line in (" ACAP-allow", "ACAP-request", "ACAP-permissions")
    ]


# The version: section-2.9.3

VERSIONS = [
    ("##ACAP version=1.0\n", "1.0"),
    ("##acap \tVERSION=1.0 # x\n", "1.0"),
    ("# c\n\n##ACAP version=2.0-beta\n##ACAP version=1.0\n", "2.0-beta"),
    ("##ACAP version=\n", ""),
    ("##ACAP 1.0\n", ""),
    ("# ##ACAP version=1.0\n", ""),
    ("#ACAP version=1.0\n", ""),
    ("ACAP version=1.0\n", ""),
    ("", ""),
]


@pytest.mark.requirement("ACAP-6")
@pytest.mark.parametrize(("comment", "version"), one_in(2, VERSIONS))
def test_version(comment: str, version: str) -> None:
    acap = read(f"{comment}{A}ACAP-allow-crawl: /")
    assert (acap.version, acap.findings) == (version, ())
    assert describe(acap) == ["[a]", f"{comment.count(chr(10)) + 2} allow crawl /"]


@pytest.mark.requirement("ACAP-6")
def test_version_after_a_bom() -> None:
    assert read(b"\xef\xbb\xbf##ACAP version=1.0\n").version == "1.0"


# Ignoring conventional records: section-2.9.1

IGNORE = "ACAP-ignore-conventional-records"
RECORD = f"{A}ACAP-allow-crawl: /\n"

IGNORING = [
    # text, the effective line, findings
    pytest.param(f"{IGNORE}\n{RECORD}", 1, "", id="alone"),
    pytest.param(f"# c\n {IGNORE.upper()} # c\n{RECORD}", 2, "", id="any-case"),
    pytest.param(f"{IGNORE}:\n{RECORD}", 1, "", id="colon"),
    pytest.param(f"{IGNORE} : yes\n{RECORD}", 0, "acap.ignored 1:36", id="value"),
    pytest.param(f"{IGNORE}\n{IGNORE}\n{RECORD}", 1, "", id="twice"),
    pytest.param(f"{IGNORE}\n{QUALIFIED}{RECORD}", 1, "", id="before-definitions"),
    pytest.param(f"User-agent: *\nDisallow: /\n{IGNORE}\n{RECORD}", 3, "", id="after-conventional"),
    pytest.param(f"{QUALIFIED}{IGNORE}\n{RECORD}", 0, "acap.ignored 2:0", id="after-a-definition"),
    pytest.param(
        f"ACAP-resource-set: s /\n{IGNORE}\n{RECORD}", 0, "acap.ignored 2:0", id="after-a-set"
    ),
    pytest.param(f"{RECORD}{IGNORE}\n", 0, "acap.ignored 3:0", id="after-a-record"),
    pytest.param(f"{IGNORE}\n{RECORD}{IGNORE}\n", 1, "acap.ignored 4:0", id="before-and-after"),
    pytest.param(f"{IGNORE}\n", 0, "acap.ignored 1:0", id="no-record"),
    pytest.param(f"{IGNORE}\n{A}", 0, "acap.ignored 1:0", id="no-field"),
    pytest.param(f"{IGNORE}\n{QUALIFIED}", 0, "acap.ignored 1:0", id="no-record-but-definitions"),
    pytest.param(
        f"{IGNORE}\nUser-agent: *\nACAP-allow-crawl: /",
        0,
        "acap.ignored 1:0; acap.outside-record 3:0",
        id="no-crawler",
    ),
    pytest.param(f"# {IGNORE}\n{RECORD}", 0, "", id="comment"),
    pytest.param(
        f"{IGNORE}-x\n{RECORD}", 0, "acap.syntax 1:1; acap.unknown-field 1:1", id="another-name"
    ),
    pytest.param(RECORD, 0, "", id="not-said"),
]


@pytest.mark.requirement("ACAP-7")
@pytest.mark.parametrize(("text", "line", "findings"), one_in(2, IGNORING))
def test_ignore_conventional_records(text: str, line: int, findings: str) -> None:
    acap = read(text)
    assert acap.ignores_conventional == line
    assert "; ".join(describe_findings(acap)) == findings
    if line:
        assert text[acap.ignores_offset :].lstrip().upper().startswith(IGNORE.upper())


# Conventional records beside those of ACAP: section-2.9.2


class Beside(NamedTuple):
    """The reading of conventional records beside ACAP, for "a" and /x."""

    id: str
    rows: str
    text: str
    line: int  # of the deciding rule; 0: none decides
    verdict: Verdict = Verdict.DENY
    said: str = ""  # in ACAP
    found: str = ""  # of the conventional parser


BESIDE = [
    Beside("acap-after", "ACAP-8", f"User-agent: a\nDisallow: /x\n{A}ACAP-allow-crawl: /x", 2,
           said="[a]; 4 allow crawl /x"),
    Beside("acap-before", "ACAP-9", f"{A}ACAP-allow-crawl: /x\nUser-agent: a\nDisallow: /x", 4,
           said="[a]; 2 allow crawl /x"),
    Beside("acap-fields-within", "ACAP-8",
           "User-agent: a\nACAP-allow-crawl: /x\nDisallow: /x\nACAP-disallow-crawl: /\nAllow: /",
           3),
    Beside(
        "rule-within-acap", "ACAP-8",
        f"User-agent: a\nAllow: /\n{A}Disallow: /x\nACAP-allow-crawl: /", 2, Verdict.ALLOW,
        "[a]; 5 allow crawl /", "acap.conventional 4:1"
    ),
    Beside("rules-only-within-acap", "ACAP-8", f"{A} disallow: /x\nCrawl-delay: 9", 0, said="[a]",
           found="acap.conventional 2:2; acap.conventional 3:1"),
    Beside("rule-after-acap", "ACAP-8",
           f"User-agent: a\nDisallow: /y\n{A}ACAP-allow-crawl: /\n\nDisallow: /x", 0,
           said="[a]; 4 allow crawl /", found="acap.conventional 6:1"),
    Beside("agent-after-acap", "ACAP-9",
           f"{A}ACAP-allow-crawl: /\nDisallow: /\nUser-agent: a\nDisallow: /x", 5,
           said="[a]; 2 allow crawl /", found="acap.conventional 3:1"),
    Beside("acap-between-groups", "ACAP-9",
           f"User-agent: b\nDisallow: /\n{A}ACAP-allow-crawl: /\nUser-agent: a\n"
               "Disallow: /x\nUser-agent: b\nAllow: /", 6,
           said="[a]; 4 allow crawl /"),
    Beside("list-goes-on", "ACAP-9",
           f"User-agent: a\n{A}ACAP-allow-crawl: /\nUser-agent: b\nDisallow: /x", 5,
           said="[a]; 3 allow crawl /"),
    Beside("list-goes-on-past-fields", "ACAP-9",
           f"User-agent: a\n{A}Disallow: /y\nUser-agent: b\nDisallow: /x", 5, said="[a]",
           found="acap.conventional 3:1"),
    Beside("list-that-ended", "ACAP-9",
           f"User-agent: a\nDisallow: /y\n{A}ACAP-allow-crawl: /\nUser-agent: b\nDisallow: /x", 0,
           said="[a]; 4 allow crawl /"),
    Beside("crawler-without-colon", "ACAP-9",
           "User-agent: a\nDisallow: /y\nACAP-crawler a\nDisallow: /x", 0, said="[a]",
           found="robots.missing-colon 3:13; acap.conventional 4:1"),
    Beside("crawler-that-cannot-be-read", "ACAP-9",
           "User-agent: a\nDisallow: /y\nACAP-crawler\nDisallow: /x", 4, said="[*]"),
    Beside("any-case", "ACAP-2", "User-agent: a\nDisallow: /y\nacap-CRAWLER : a\nDisallow: /x", 0,
           said="[a]",
           found="acap.conventional 4:1"),
    Beside("comment-ends-nothing", "ACAP-1", "User-agent: a\n# ACAP-crawler: a\nDisallow: /x", 3),
]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    one_in(
        2,
        [
            pytest.param(case, id=case.id, marks=pytest.mark.requirement(*case.rows.split()))
            for case in BESIDE
        ],
    ),
)
def test_conventional_records_beside(case: Beside) -> None:
    conventional = robots.parse(case.text.encode())
    rule = conventional.for_agent("a").decide("/x")
    assert (rule.line, rule.verdict) == (case.line, case.verdict) if rule else not case.line
    assert (
        "; ".join(f"{one.rule} {one.line}:{one.column}" for one in conventional.findings)
        == case.found
    )
    assert "; ".join(describe(read(case.text))) == case.said


@pytest.mark.requirement("ACAP-8")
def test_a_sitemap_belongs_to_no_record() -> None:
    text = f"{A}Sitemap: https://example.com/s\nCrawl-delay: 9".encode()
    assert robots.parse(text).sitemaps == ("https://example.com/s",)
    assert robots.parse(text).for_agent("a").rates.crawl_delay is None


# Referenced files: section-2.3.2, section-2.4.1.3

REFERRING = read(
    "ACAP-resource-set: s /x\nACAP-resource-set: twice /x\nACAP-resource-set: twice /z\n"
    f"{QUALIFIED}"
    "ACAP-composite-usage: c crawl (q)\nACAP-qualified-usage: broken index x=y"
)

REFERENCED = [
    Case("sees-definitions", "ACAP-13", f"{A}ACAP-allow-(c): {SET}s",
         "[a]; 2 allow crawl /x; 2 allow index /x"),
    Case("sees-that-one-is-broken", "ACAP-13", f"{A}ACAP-allow-(broken): /",
         "[a]; 2 allow index / unusable"),
    Case("adds-its-own", "ACAP-13", f"ACAP-resource-set: t /y\n{A}ACAP-allow-(q): {SET}t",
         "[a]; 3 allow index /y"),
    Case("defines-again", "ACAP-42",
         f"ACAP-qualified-usage: q preserve {DAYS}\n{A}ACAP-allow-(q): /",
         "[a]; 3 allow index / unusable; 3 allow preserve / unusable", "acap.duplicate 1:23"),
    Case("set-defined-again", "ACAP-13",
         f"ACAP-resource-set: S /y\n{A}ACAP-disallow-crawl: {SET}s\nACAP-allow-index: {SET}s",
         "[a]; 3 deny crawl /y; 4 allow index /y"),
    Case("set-defined-again-twice", "ACAP-42",
         f"ACAP-resource-set: s /y\nACAP-resource-set: s /z\n{A}ACAP-allow-crawl: {SET}s",
         "[a]; 4 allow crawl /y unusable; 4 allow crawl /z unusable", "acap.duplicate 2:20"),
    Case("set-defined-again-late", "ACAP-5",
         f"{A}ACAP-allow-crawl: {SET}s\nACAP-resource-set: s /y",
         "[a]; 2 allow crawl /y unusable", "acap.late 3:20"),
    Case("broken-set-defined-again", "ACAP-13",
         f"ACAP-resource-set: twice /y\n{A}ACAP-allow-crawl: {SET}twice",
         "[a]; 3 allow crawl /y"),
    Case("composite-of-its-own-usages-only", "ACAP-41",
         f"ACAP-composite-usage: d crawl (q)\n{A}ACAP-allow-(d): /",
         "[a]; 3 allow crawl / unusable; 3 allow index / unusable", "acap.undefined 1:31"),
    Case("refers-on", "ACAP-12", f"{A}ACAP-permissions-reference: /r\nACAP-allow-crawl: /",
         "[a]; 3 allow crawl /",
         "acap.reference 2:29"),
]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    one_in(
        2,
        [
            pytest.param(case, id=case.id, marks=pytest.mark.requirement(*case.rows.split()))
            for case in REFERENCED
        ],
    ),
)
def test_referenced_file(case: Case) -> None:
    acap = read(case.text, definitions=REFERRING.definitions)
    assert "; ".join(describe(acap)) == case.said
    assert "; ".join(describe_findings(acap)) == case.found
    # The referring file keeps its own definitions.
    assert REFERRING.definitions.sets == {"s": ["/x"], "twice": ["/x", "/z"]}
    assert set(REFERRING.definitions.usages) == {"q", "c", "broken"}
    assert set(REFERRING.definitions.broken) == {"set twice"}


@pytest.mark.requirement("ACAP-12")
def test_fields_before_any_record_of_a_referenced_file_address_the_crawlers_of_the_reference() -> (
    None
):
    text = (
        f"ACAP-resource-set: t /y\nACAP-allow-(c): {SET}t\nACAP-usage-purpose: p\n"
        f"ACAP-permissions-reference: /r\n{A}"
    )
    acap = read(text, definitions=REFERRING.definitions, crawlers=("b", "c"))
    assert describe(acap) == ["[b, c]", "2 allow crawl /y", "2 allow index /y", "[a]"]
    assert describe_findings(acap) == ["acap.reference 4:29"]
    with_agents = read(
        f"User-agent: b\nACAP-allow-crawl: /\n{A}",
        definitions=REFERRING.definitions,
        crawlers=("b",),
    )
    assert (describe(with_agents), describe_findings(with_agents)) == (
        ["[b]", "[a]"],
        ["acap.outside-record 2:0"],
    )


# Limits: section-4

LONG = "x" * MAX_LINE

LIMITS = [
    # A line that is too long grants nothing, and prohibits everything that its start can mean.
    Case("allow", "ACAP-44", f"{A}ACAP-allow-crawl: /{LONG}",
         f"[a]; 2 allow crawl /{LONG[:-1]} unusable", "acap.limit 2:0"),
    Case("disallow", "ACAP-44", f"{A}ACAP-disallow-crawl: /{LONG}",
         f"[a]; 2 deny crawl /{LONG[:-1]}"),
    Case("qualifiers", "ACAP-44", f"{A}ACAP-allow-index: / must-use-resource=/{LONG}",
         "[a]; 2 allow index / unusable",
         "acap.limit 2:0"),
    Case("crawler", "ACAP-44", f"ACAP-crawler: {LONG}\nACAP-allow-crawl: /\nACAP-disallow-index: /",
         f"[{LONG}]; 3 deny index /", "acap.syntax 1:0"),
    Case("purpose", "ACAP-44",
         f"{A}ACAP-usage-purpose: {LONG}\nACAP-allow-crawl: /\nACAP-disallow-index: /",
         "[a]; 4 deny index /; 4 deny index / for *", "acap.syntax 2:0"),
    Case("reference", "ACAP-44", f"{A}ACAP-permissions-reference: /{LONG}", "[a]; 2 reference "),
    Case("request", "ACAP-44", f"{A}ACAP-request-take-down: /{LONG}", "[a]", "acap.action 2:25"),
    Case("qualified", "ACAP-44",
         f"ACAP-qualified-usage: q index must-use-resource=/{LONG}\n{A}ACAP-allow-(q): /",
         "[a]; 3 allow index / unusable", "acap.limit 1:23"),
    Case("composite", "ACAP-44",
         f"ACAP-composite-usage: c crawl {' ' * MAX_LINE}index\n{A}ACAP-allow-(c): /",
         "[a]; 3 allow crawl / unusable", "acap.limit 1:23"),
    # The comment does not count for the length of a line.
    Case("comment", "ACAP-44", f"{A}ACAP-allow-crawl: / #{LONG}", "[a]; 2 allow crawl /"),
]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    one_in(
        2,
        [
            pytest.param(case, id=case.id, marks=pytest.mark.requirement(*case.rows.split()))
            for case in LIMITS
        ],
    ),
)
def test_long_line(case: Case) -> None:
    acap = read(case.text)
    assert "; ".join(describe(acap)) == case.said
    assert "; ".join(describe_findings(acap)) == case.found


@pytest.mark.requirement("ACAP-44")
class TestLimits:
    def test_what_a_long_set_holds_besides_cannot_be_read(self) -> None:
        acap = read(
            f"ACAP-resource-set: s /x {LONG}\n{A}ACAP-allow-crawl: {SET}s\n"
            f"ACAP-disallow-index: {SET}s"
        )
        start = "/" + LONG[len("s /x ") :]
        allowed, denied = "3 allow crawl {} unusable", "4 deny index {}"
        assert describe(acap) == [
            "[a]",
            *(shown.format(part) for shown in (allowed, denied) for part in ("/x", start, "(all)")),
        ]
        assert describe_findings(acap) == ["acap.limit 1:20"]

    def test_records_past_the_limit_bind_any_and_grant_nothing(self) -> None:
        """They are one record of their own: earlier records keep their addressees."""
        records = [
            f"ACAP-crawler: {name}\nACAP-allow-crawl: /{name}\nACAP-disallow-index: /{name}\n"
            for name in "abcd"
        ]
        acap = read("".join(records), max_records=2)
        assert describe(acap) == [
            *("[a]", "2 allow crawl /a", "3 deny index /a"),
            *("[b]", "5 allow crawl /b", "6 deny index /b"),
            *("[*]", "9 deny index /c", "12 deny index /d"),
        ]
        assert describe_findings(acap) == ["acap.limit 7:0"]

    def test_no_record_is_read(self) -> None:
        assert describe(read(f"{A}ACAP-allow-crawl: /\nACAP-disallow-index: /", max_records=0)) == [
            "[*]",
            "3 deny index /",
        ]

    def test_fields_past_the_limit_refuse_everywhere(self) -> None:
        text = (
            f"{A}ACAP-allow-crawl: /x\nACAP-disallow-crawl: /y\nACAP-allow-index: /x\n"
            "ACAP-disallow-index: /y"
        )
        acap = read(text, max_fields=2)
        assert describe(acap) == [
            "[a]",
            "2 allow crawl /x",
            "3 deny crawl /y",
            "4 allow index (all) unusable",
            "5 deny index (all)",
        ]
        assert describe_findings(acap) == ["acap.limit 4:0", "acap.limit 5:0"]

    def test_a_field_counts_for_each_of_its_usages_and_patterns(self) -> None:
        text = (
            "ACAP-composite-usage: c crawl index\nACAP-resource-set: s /x /y\n"
            f"{A}ACAP-allow-(c): {SET}s\nACAP-disallow-(c): /z"
        )
        assert len(read(text, max_fields=6).records[0].fields) == 6
        assert describe(read(text, max_fields=5))[-2:] == [
            "5 deny crawl (all)",
            "5 deny index (all)",
        ]
        unread = ["4 allow crawl (all) unusable", "4 allow index (all) unusable"]
        assert describe(read(text, max_fields=3)) == [
            "[a]",
            *unread,
            "5 deny crawl /z",
            "5 deny index /z",
        ]

    def test_fields_past_the_limit_are_each_there_once(self) -> None:
        """There is one for each usage, verdict and set of purposes of a record.

        Otherwise each line would add all usages of a composite usage.
        """
        usages = range(50)
        text = "".join(
            f"ACAP-qualified-usage: q{number} index time-limit={number}-days\n" for number in usages
        )
        text += f"ACAP-composite-usage: c crawl {' '.join(f'(q{number})' for number in usages)}\n"
        fields = "ACAP-allow-(c): /x\n" * 20 + "ACAP-disallow-(c): /x\n" * 20
        record = f"{A}{fields}ACAP-usage-purpose: p\n{fields}ACAP-usage-purpose:\n{fields}"
        acap = read(text + record + record, max_fields=1)
        general = {
            (usage, verdict, ())
            for usage in ("crawl", "index")
            for verdict in (Verdict.ALLOW, Verdict.DENY)
        }
        for each in acap.records:
            stated = [(field.usage, field.verdict, field.purposes) for field in each.fields]
            assert set(stated[:4]) == general
            assert set(stated[4:8]) == {(usage, verdict, ("p",)) for usage, verdict, _ in general}
            # an unreadable purpose: one field for none and one for any
            assert set(stated[8:]) == {
                (usage, Verdict.DENY, purposes)
                for usage, _, _ in general
                for purposes in ((), ("*",))
            }
            assert len(stated) == 12
            assert {(field.pattern, field.qualifiers) for field in each.fields} == {
                ("", FieldQualifiers())
            }
        assert len(acap.records) == 2

    def test_octets_past_the_limit_are_cut_at_a_line(self) -> None:
        fields = "ACAP-disallow-crawl: /x\n" * (MAX_BYTES // 24)
        acap = read(f"{A}{fields}ACAP-allow-crawl: /y")
        assert {field.pattern for field in acap.records[0].fields} == {"/x"}
        assert len(acap.records[0].fields) == (MAX_BYTES - len(A)) // 24

    def test_findings(self) -> None:
        acap = read(f"{A}" + "ACAP-x: y\n" * 150)
        assert describe_findings(acap)[-2:] == [
            "acap.unknown-field 101:1",
            "comity.more-findings 0:0",
        ]
        assert len(acap.findings) == 101


@pytest.mark.requirement("ACAP-5")
def test_findings_stand_in_the_order_of_the_file() -> None:
    """Definitions are read before records, but their findings are in order."""
    acap = read(
        f"{A}ACAP-x: y\n{QUALIFIED}ACAP-y: z\nACAP-qualified-usage: 1\nACAP-allow-index: / x=1 # x"
    )
    assert describe_findings(acap) == [
        "acap.unknown-field 2:1",
        "acap.late 3:23",
        "acap.unknown-field 4:1",
        "acap.syntax 5:23",
        "acap.qualifier 6:21",
    ]
