"""Check how a server serves policy files: status, media type, encoding, redirects, size."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from email.message import Message
from urllib.parse import urlsplit

from comity.authoring.sites import Source, SourceFile
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


def check_serving(source: Source, samples: tuple[SourceFile, ...]) -> Iterator[Finding]:
    """Yield the findings about the answers for all policy files."""
    for file in source.files:
        yield from check_served(file.url, file.fetched)


def check_served(url: str, fetched: Fetched) -> Iterator[Finding]:
    """Yield the findings about the answer for one policy file.

    An answer without header fields was read from a disk: its media type is not checked."""
    for rule, message in _problems(url, fetched):
        yield Finding(rule=rule, message=message, url=url)


def _problems(url: str, fetched: Fetched) -> Iterator[tuple[str, str]]:
    """Yield the rule and the message of each problem."""
    path = urlsplit(url).path
    if availability(fetched) is Availability.UNREACHABLE:
        consequence = (
            "until it is there again, crawlers may fetch nothing"
            if path in RESTRICTING
            else "until it is there again, crawlers may deny every use that it could refuse"
        )
        yield (
            "comity.file-status",
            f"it cannot be had ({fetched.error or f'status {fetched.status}'}): {consequence}",
        )
        return
    if fetched.status // 100 == 2 and is_page(fetched):
        yield (
            "comity.file-type",
            "an HTML page is served in its place: it counts as not there, answer with status 404",
        )
        return
    if fetched.status // 100 != 2:
        if fetched.status not in (404, 410):
            yield (
                "comity.file-status",
                f"status {fetched.status} counts as no file: "
                "everything that it would refuse is permitted",
            )
        return
    if fetched.url and fetched.url != url:
        yield "comity.file-moved", f"it is redirected to {fetched.url}: serve it here"
    if fetched.oversized or len(fetched.body) > MUST_BE_READ:
        size = f"more than {MAX_BYTES}" if fetched.oversized else str(len(fetched.body))
        yield (
            "comity.file-size",
            f"it has {size} octets, and crawlers have to read the first {MUST_BE_READ} alone",
        )
    yield from _type_problems(path, fetched)


def _type_problems(path: str, fetched: Fetched) -> Iterator[tuple[str, str]]:
    """Yield the rule and the message of each problem with the encoding and the media type."""
    if fetched.body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield "comity.file-encoding", "it is in UTF-16: save it as UTF-8"
    elif not _is_utf8(fetched.body):
        yield "comity.file-encoding", "some octets are no UTF-8: save it as UTF-8"
    field = Message()
    field["Content-Type"] = fetched.header(b"Content-Type").decode("latin-1") or "none"
    expected = MEDIA_TYPES.get(path, "").partition(";")[0]
    if not fetched.headers or not expected:  # from a folder: its media type is not known
        return
    if not fetched.header(b"Content-Type"):
        yield (
            "comity.file-type",
            f"it is served without a media type: send `Content-Type: {MEDIA_TYPES[path]}`",
        )
    elif field.get_content_type() != expected and path not in TYPED:
        message = (
            f"it is served as {field.get_content_type()}: send `Content-Type: {MEDIA_TYPES[path]}`"
        )
        yield "comity.file-type", message
    charset = field.get_param("charset")
    if isinstance(charset, str) and charset.lower().replace("_", "-") not in (
        "utf-8",
        "utf8",
        "us-ascii",
    ):
        yield "comity.file-encoding", f"it is served as {charset}, and read as UTF-8"


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
