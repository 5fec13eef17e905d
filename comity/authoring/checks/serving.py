"""Check how a server serves policy files: status, media type, encoding, redirects, size."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from email.message import Message
from urllib.parse import urlsplit

from comity.authoring.source import SiteSource, SourceFile
from comity.gate.fetching.reach import Reach
from comity.policies import Fetched, Finding
from comity.policies.answers.fetched import Availability, availability, is_page
from comity.policies.formats import FILES, FORMATS
from comity.policies.syntax.lines import MAX_BYTES

MEDIA_TYPES = {file.path: file.media_type for file in FILES}
# Files whose format has a rule of its own about the media type.
_WITH_TYPE_RULE = (format_ for format_ in FORMATS if f"{format_.name}.media-type" in format_.rules)
TYPED = frozenset(file.path for format_ in _WITH_TYPE_RULE for file in format_.files)
RESTRICTING = frozenset(file.path for file in FILES if file.restricts_access)
MUST_BE_READ = 500 * 1024  # octets of robots.txt that crawlers have to read: RFC 9309 section-2.5


def check_serving(source: SiteSource) -> Iterator[Finding]:
    """Yield the findings about the answers for all policy files."""
    for file in source.files:
        yield from check_served(file.url, file.fetched)
        if source.reach is not Reach.LOOPBACK and _came_over_http(file):
            message = "Others can change this file on its way. Serve it over https."
            yield Finding(rule="comity.file-http", message=message, url=file.url)


def _came_over_http(file: SourceFile) -> bool:
    """Return True if a server sent the file over http. A file from a disk has no header fields."""
    fetched = file.fetched
    is_there = availability(fetched) is Availability.PRESENT and bool(fetched.headers)
    return is_there and urlsplit(fetched.url or file.url).scheme == "http"


def check_served(url: str, fetched: Fetched) -> Iterator[Finding]:
    """Yield the findings about the answer for one policy file.

    An answer without header fields was read from a disk: its media type is not checked."""
    for rule, message in _problems(url, fetched):
        yield Finding(rule=rule, message=message, url=url)


def _problems(url: str, fetched: Fetched) -> Iterator[tuple[str, str]]:
    """Yield the rule and the message of each problem."""
    path = urlsplit(url).path
    if availability(fetched) is Availability.UNREACHABLE:
        cause = fetched.error or f"status {fetched.status}"
        consequence = (
            "Until they can, they may fetch nothing from this site."
            if path in RESTRICTING
            else "Until they can, they may treat every use that it could refuse as refused."
        )
        yield "comity.file-status", f"Crawlers cannot fetch this file ({cause}). {consequence}"
        return
    if fetched.status // 100 == 2 and is_page(fetched):
        yield (
            "comity.file-type",
            "This file is an HTML page. Crawlers treat it as if it did not exist. "
            "Serve the file, or answer with status 404.",
        )
        return
    if fetched.status // 100 != 2:
        if fetched.status not in (404, 410):
            yield (
                "comity.file-status",
                f"With status {fetched.status}, crawlers treat this file as if it did not exist, "
                "so it refuses nothing. Answer with status 200 or 404.",
            )
        return
    # From http to https at the same address is no other place.
    if fetched.url and fetched.url not in (url, url.replace("http:", "https:", 1)):
        yield "comity.file-moved", f"This file is redirected to {fetched.url}. Serve it here."
    if fetched.oversized or len(fetched.body) > MUST_BE_READ:
        size = f"more than {MAX_BYTES}" if fetched.oversized else str(len(fetched.body))
        yield (
            "comity.file-size",
            f"This file has {size} octets. Crawlers only have to read the first {MUST_BE_READ}.",
        )
    yield from _type_problems(path, fetched)


def _type_problems(path: str, fetched: Fetched) -> Iterator[tuple[str, str]]:
    """Yield the rule and the message of each problem with the encoding and the media type."""
    if fetched.body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield "comity.file-encoding", "This file is in UTF-16. Save it as UTF-8."
    elif not _is_utf8(fetched.body):
        yield "comity.file-encoding", "Some octets of this file are not UTF-8. Save it as UTF-8."
    field = Message()
    field["Content-Type"] = fetched.header(b"Content-Type").decode("latin-1") or "none"
    expected = MEDIA_TYPES.get(path, "").partition(";")[0]
    if not fetched.headers or not expected:  # from a folder: its media type is not known
        return
    if not fetched.header(b"Content-Type"):
        yield (
            "comity.file-type",
            f"This file is served without a media type. Send `Content-Type: {MEDIA_TYPES[path]}`.",
        )
    elif field.get_content_type() != expected and path not in TYPED:
        yield (
            "comity.file-type",
            f"This file is served as {field.get_content_type()}. "
            f"Send `Content-Type: {MEDIA_TYPES[path]}`.",
        )
    charset = field.get_param("charset")
    if isinstance(charset, str) and charset.lower().replace("_", "-") not in (
        "utf-8",
        "utf8",
        "us-ascii",
    ):
        yield (
            "comity.file-encoding",
            f"This file is served as {charset}, but crawlers read it as UTF-8. "
            "Send `charset=utf-8`.",
        )


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
