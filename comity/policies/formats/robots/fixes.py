"""Fixes for robots.txt.

After a fix that changes no decision, other crawlers read the line in the same way as comity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from comity.policies.answers.decision import Finding
from comity.policies.formats.authoring import Draft, Fix
from comity.policies.formats.fixes import (
    Mend,
    comment_out,
    delete_line,
    first_of,
    is_loose,
    proposed,
    put_above,
    write,
    write_proposed,
)
from comity.policies.formats.robots.grammar import TOKEN
from comity.policies.formats.robots.rates import hours, rate, seconds
from comity.policies.syntax.printable import printable
from comity.policies.syntax.records import (
    NAME,
    RATE_KINDS,
    RULE_KINDS,
    Record,
    RecordKind,
    read_record,
)
from comity.policies.syntax.suspicions import INVISIBLE, right_path, several_paths, suspicions
from comity.policies.vocabulary.known_crawlers import known, nearest

_SPELLINGS = {kind: kind.value.capitalize() for kind in RecordKind} | {
    RecordKind.ACAP_CRAWLER: b"ACAP-crawler"
}
# A sign in place of the colon, with the spaces around it.
SEPARATOR = re.compile(rb"[ \t]*+(?:[=;]|-(?=[ \t]++[/*])|\xef\xbc\x9a)[ \t]*+")
_COMMENT = re.compile(rb"([ \t]*+)<!--[ \t]*+(.*?)[ \t]*+-->[ \t]*+")
_ALTERNATIVES = re.compile(rb"\(([^()|]+(?:\|[^()|]+)+)\)")
_WORDS = re.compile(rb"[A-Za-z][A-Za-z0-9_.-]*+")
# The end of a path behind a space: `/b/`, `b*`, `b$` or `b.pdf`.
_PATH_END = re.compile(rb"(?:/[^ \t]*+|[*$]|\.[A-Za-z0-9]{2,5})\Z")
# Where a further record begins in a line: behind a space, or behind a written `\n`.
_NEXT_RECORD = re.compile(rb"(?:\\r?\\n|\\n|[ \t]+)(?=%s[ \t]*+:)" % NAME)
# The host of an origin that no publisher has: RFC 2606.
_EXAMPLE = "example.com"


def _read_record(draft: Draft, finding: Finding) -> tuple[Record, bytes] | None:
    """Return the record in the line of a finding, and the line itself.

    None means that the line has no record, or that it is not safe to change the line.
    """
    line = draft.mendable_line(finding)
    record = read_record(line)
    return (record, line) if record else None


def _fix_spelling(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _read_record(draft, finding)):
        return None
    record, line = record_and_line
    spelling = _SPELLINGS[record.kind]
    column = line.lower().find(record.name) + 1
    return Fix(
        f"Write `{spelling.decode()}`",
        (draft.replace_octets(finding.line, column, len(record.name), spelling),),
    )


def _add_colon(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _read_record(draft, finding)) or record_and_line[0].colon:
        return None
    record, line = record_and_line
    end = line.lower().find(record.name) + len(record.name)
    return Fix("Write a colon", (draft.replace_octets(finding.line, end + 1, 0, b":"),))


def _trim_agent(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that removes a version or invisible characters after a name.

    None means that the rest of the value may name another agent, as in `examplebot otherbot`.
    """
    if (
        not (record_and_line := _read_record(draft, finding))
        or record_and_line[0].kind is not RecordKind.AGENT
    ):
        return None
    record, line = record_and_line
    token = TOKEN.match(record.value)
    if not token:
        return None
    rest = record.value[token.end() :]
    if (rest[:1] != b"/" and INVISIBLE.sub(b"", rest) not in (b"", b"*")) or len(rest.split()) > 1:
        return None
    edit = draft.replace_octets(finding.line, record.column(line) + token.end(), len(rest), b"")
    return Fix(f"Write `{token[0].decode()}`", (edit,))


def _write_value(
    draft: Draft, finding: Finding, value: bytes, *, changes_decisions: bool = True
) -> Fix | None:
    """Return the fix that writes another value into the record of a finding."""
    if not (record_and_line := _read_record(draft, finding)):
        return None
    record, line = record_and_line
    start = record.column(line) - 1
    if start < 0:
        name_end = line.lower().find(record.name) + len(record.name)
        start = line.find(b":", name_end) + 1
        value = b" " + value
        return write(draft, finding, value, (start, start), changes_decisions=changes_decisions)
    span = start, start + len(record.value)
    return write(draft, finding, value, span, changes_decisions=changes_decisions)


def _write_lines(draft: Draft, finding: Finding, values: list[bytes]) -> Fix | None:
    """Return the fix that writes a line for each of several values of one record."""
    if not (record_and_line := _read_record(draft, finding)) or len(values) < 2:
        return None
    record, line = record_and_line
    start = record.column(line) - 1
    ends = draft.line_end + line[:start]
    edit = draft.replace_octets(finding.line, start + 1, len(record.value), ends.join(values))
    return Fix("Write a line for each value", (edit,), changes_decisions=True)


def _write_right_name(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes the names of known crawlers in a User-agent line.

    A value without a name becomes `*`. A whole User-agent header becomes the crawler's name.
    """
    if not (record_and_line := _read_record(draft, finding)):
        return None
    value = record_and_line[0].value
    text = value.decode("utf-8", "replace")
    if not value:
        return _write_value(draft, finding, b"*")
    if crawler := known(text.replace(" ", "-")) or nearest(text.replace(" ", "-")):
        return _write_value(draft, finding, crawler.token.encode())
    crawlers = [known(word.decode()) for word in _WORDS.findall(value)]
    names = [crawler.token.encode() for crawler in crawlers if crawler]
    if b"(" not in value:
        return _write_lines(draft, finding, names) if all(crawlers) else None
    return _write_value(draft, finding, names[0]) if len(set(names)) == 1 else None


def _split_names(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _read_record(draft, finding)):
        return None
    names = re.split(rb"[,;][ \t]*+", record_and_line[0].value)
    return _write_lines(draft, finding, [name for name in names if name])


def _split_paths(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a line for each path, or `#` for a `//` before a comment.

    A further record in the line begins a line of its own, and keeps its name. None means that
    there are other words between the paths.
    """
    if not (record_and_line := _read_record(draft, finding)):
        return None
    if "`#`" in finding.message and finding.column:
        span = finding.column - 1, finding.column + 1
        return write(draft, finding, b"#", span)
    if fix := _split_records(draft, finding):
        return fix
    paths = several_paths(record_and_line[0].value)
    has_words = any(len(path.split()) > 1 for path in paths)
    return None if has_words else _write_lines(draft, finding, paths)


def _split_records(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes several records of one line on lines of their own."""
    line = draft.mendable_line(finding)
    edits = tuple(
        draft.replace_octets(finding.line, match.start() + 1, len(match[0]), draft.line_end)
        for match in _NEXT_RECORD.finditer(line.partition(b"#")[0])
        if match.start()
    )
    if not edits:
        return None
    return Fix("Write each record on its own line", edits, changes_decisions=True)


def _write_alternatives(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a line for each alternative of `(a|b)`."""
    if not (record_and_line := _read_record(draft, finding)):
        return None
    value = record_and_line[0].value
    match = _ALTERNATIVES.search(value)
    if not match or len(suspicions(value)) > 1:
        return None
    before, behind = value[: match.start()], value[match.end() :]
    return _write_lines(draft, finding, [before + word + behind for word in match[1].split(b"|")])


def _write_path(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix for a path that matches nothing. Other findings mend a URL or quotes."""
    if not (record_and_line := _read_record(draft, finding)):
        return None
    value = record_and_line[0].value
    if any(sign.kind in ("url", "quotes", "invisible") for sign in suspicions(value)):
        return None
    return _write_value(draft, finding, right_path(value))


def _write_space(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes `%20` for each space of a path.

    None means that the words behind the first space are probably a comment.
    """
    if not (record_and_line := _read_record(draft, finding)):
        return None
    value = record_and_line[0].value
    if value[:1] not in (b"/", b"*") or (value.count(b" ") > 1 and not _PATH_END.search(value)):
        return None
    return _write_value(draft, finding, value.replace(b" ", b"%20"), changes_decisions=False)


def _end_at_dollar(draft: Draft, finding: Finding) -> Fix | None:
    if not (record_and_line := _read_record(draft, finding)):
        return None
    value, _, rest = record_and_line[0].value.rpartition(b"$")
    return _write_value(draft, finding, value + b"$") if not rest.strip(b"*") else None


def _escape_fragment(draft: Draft, finding: Finding) -> Fix | None:
    return write(draft, finding, b"%23", (finding.column - 1, finding.column))


def _delete_invisible(draft: Draft, finding: Finding) -> Fix | None:
    line = draft.mendable_line(finding)
    edits = tuple(
        draft.replace_octets(finding.line, match.start() + 1, len(match[0]), b"")
        for match in INVISIBLE.finditer(line)
    )
    return Fix("Delete the invisible characters", edits, changes_decisions=True) if edits else None


def _write_rate(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a Crawl-delay, Request-rate or Visit-time in its usual form."""
    if not (record_and_line := _read_record(draft, finding)):
        return None
    record, _ = record_and_line
    read = {
        RecordKind.CRAWL_DELAY: seconds,
        RecordKind.REQUEST_RATE: rate,
        RecordKind.VISIT_TIME: hours,
    }.get(record.kind)
    value = read(record.value) if read else b""
    return _write_value(draft, finding, value) if value else delete_line(draft, finding)


def _write_colon(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes a colon for another sign behind the name."""
    start, end = draft.place(finding)
    match = SEPARATOR.match(draft.mendable_line(finding), end)
    return write(draft, finding, b": ", match.span()) if match and start < end else None


def _write_hash(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes `#` before a comment. None means that a path begins with `/*`."""
    if "begin a comment" not in finding.message or not is_loose(draft, finding):
        return None
    return draft.comment(finding)


def _write_elsewhere(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix for a line that no crawler reads: the record that the message proposes."""
    line = draft.mendable_line(finding)
    if match := _COMMENT.fullmatch(line):
        text = match[1] + b"# " + match[2]
        return write(draft, finding, text, (0, len(line)), changes_decisions=False)
    text = proposed(finding)
    if b":" not in text:
        return write(draft, finding, text) if text.decode().lower() in _RECORDS else None
    end = len(line.partition(b"#")[0].rstrip(b" \t"))
    if text.startswith(b"Disallow:"):
        return write(draft, finding, text)
    is_signal = text.startswith(b"Content-Signal:")
    return write(draft, finding, text, (0, end)) if is_signal else None


_RECORDS = frozenset(kind.value.decode() for kind in RecordKind)


def _write_address(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes absolute URLs of sitemaps, one on each line.

    None means that an address is not clear, or that the host is not known. Sitemaps take part in no
    decision.
    """
    if not (record_and_line := _read_record(draft, finding)):
        return None
    value = record_and_line[0].value
    if not value:
        return delete_line(draft, finding)
    parts = re.split(rb"[,;]?\s+", value)
    if len(parts) > 1 and not all(map(_CLEAR_ADDRESS.match, parts)):
        return None
    addresses = [_absolute(part, draft.url) for part in parts]
    if not all(addresses):
        return None
    if len(addresses) == 1:
        return _write_value(draft, finding, addresses[0], changes_decisions=False)
    fix = _write_lines(draft, finding, addresses)
    return fix._replace(changes_decisions=False) if fix else None


_CLEAR_ADDRESS = re.compile(rb"(?i:https?)://|/")
# The first segment of a relative address, if it looks like a host.
_LIKE_HOST = re.compile(rb"[^./?]++\.[^/?]*+/")


def _absolute(address: bytes, base: str) -> bytes:
    """Return an address of a sitemap as an absolute URL. b"" means that it is not clear."""
    host = urlsplit(base).netloc
    if address.startswith((b"www.", f"{host}/".encode())):
        return b"https://" + address
    if re.match(rb"[A-Za-z][A-Za-z0-9+.-]*+:", address):
        return address if _CLEAR_ADDRESS.match(address) else b""
    if host == _EXAMPLE or _LIKE_HOST.match(address):
        return b""
    try:
        url = urljoin(base, address.decode("utf-8", "surrogateescape"))
    except ValueError:  # a host with a broken bracket
        return b""
    return url.encode("utf-8", "surrogateescape")


def _delete_pathless(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that deletes a rule without a path beside other rules.

    None means that it is the only rule of its group. Only its author knows whether it means to
    permit or to refuse everything.
    """
    return delete_line(draft, finding) if "Delete it" in finding.message else None


def _open_group(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that writes `User-agent: *` above the first record that no group contains.

    The fix is the same for all of these records, so it is made once.
    """
    first = finding.line
    for number in range(finding.line, 0, -1):
        record = read_record(draft.line(number)) if number <= draft.lines else None
        if record and record.kind in (RecordKind.AGENT, RecordKind.ACAP_CRAWLER):
            break
        if record and record.kind in (*RULE_KINDS, *RATE_KINDS):
            first = number
    return put_above(b"User-agent: *")(draft, replace(finding, line=first))


def _delete_mark(draft: Draft, finding: Finding) -> Fix | None:
    """Return the fix that deletes the mark of a list before a record."""
    start, end = draft.place(finding)
    if not draft.mendable_line(finding):
        return None
    edit = draft.replace_octets(finding.line, start + 1, end - start, b"")
    mark = printable(draft.line(finding.line)[start:end])
    return Fix(f"Delete `{mark}`", (edit,), changes_decisions=True)


def _remove_stars(draft: Draft, finding: Finding) -> Fix | None:
    if (
        not (record_and_line := _read_record(draft, finding))
        or record_and_line[0].kind not in RULE_KINDS
    ):
        return None
    record, line = record_and_line
    bare = record.value.rstrip(b"*")
    stars = len(record.value) - len(bare)
    edit = draft.replace_octets(finding.line, record.column(line) + len(bare), stars, b"")
    return Fix("Delete the `*`", (edit,)) if stars else None


FIXES: Mapping[str, Mend] = {
    "robots.agent": first_of(_trim_agent, _split_records, _write_right_name),
    "robots.backslash": _write_path,
    "robots.colon": _write_colon,
    "robots.covered": delete_line,
    "robots.dollar": _end_at_dollar,
    "robots.dot-segment": _write_path,
    "robots.duplicate": delete_line,
    "robots.empty-rule": _delete_pathless,
    "robots.escape": write_proposed,
    "robots.file-type": write_proposed,
    "robots.fragment": _escape_fragment,
    "robots.invisible": _delete_invisible,
    "robots.list-mark": _delete_mark,
    "robots.misplaced": first_of(_write_hash, _write_elsewhere),
    "robots.misspelled": _fix_spelling,
    "robots.missing-colon": _add_colon,
    "robots.no-agent": _open_group,
    "robots.path": _write_path,
    "robots.quotes": write_proposed,
    "robots.rate-value": _write_rate,
    "robots.regex": _write_alternatives,
    "robots.repeated": delete_line,
    "robots.second-path": _split_paths,
    "robots.several-agents": _split_names,
    "robots.sitemap-url": _write_address,
    "robots.space": _write_space,
    "robots.star": _remove_stars,
    "robots.unknown": write_proposed,
    "robots.unread": comment_out,
    "robots.url": write_proposed,
}
