"""Responses that wait until the statements in their pages are read.

    held = pages.hold(status, fields, judge)     # None: send the response as it comes
    held.add(octets)
    held.end()
    held.answer                                  # not None: send it in place of the response

Draft-liao-aipref-autoctl-ext section-6: servers should process the annotations of a page. They may
be anywhere in the page, so no octet of it may go out before the last one is read. Only responses
that may be HTML or XML wait. Everything else is sent as it comes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence

from comity.guard.answers import Answer
from comity.policies.answers.errors import PolicyError
from comity.policies.document.document import Content
from comity.policies.syntax.content_coding import decoded, is_coded

Fields = Sequence[tuple[bytes, bytes]]  # names and values of header fields
Judge = Callable[[Content], Answer | None]  # returns the refusal of a response
Refuse = Callable[[str], Answer]  # returns the refusal of a response that cannot be read

MAX_PAGE = 4 * 1024 * 1024  # octets of a page, by default
# Octets of a sitemap, by sitemaps.org/protocol.html: "no larger than 50MB (52,428,800 bytes)".
MAX_SITEMAP = 52_428_800
MAX_AT_ONCE = 16 * 1024  # octets of a page that is judged without letting others go on

PARTIAL = 206
# RFC 9110 section-14.4
#   Content-Range = range-unit SP ( range-resp / unsatisfied-range )
_CONTENT_RANGE = re.compile(rb"bytes[ ]0-(\d{1,18})/(\d{1,18})", re.IGNORECASE)
# RFC 2046 section-5: media types whose bodies consist of other bodies, such as pages.
_COMPOSITE = re.compile(rb"(?:^|[\s,])(?:multipart/|message/|application/(?:x-mimearchive|http)\b)")
# The longer marks first: UTF-32 begins as UTF-16 does.
_MARKS = (
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
    codecs.BOM_UTF8,
)
_SITEMAP = re.compile(
    rb"(?:\xef\xbb\xbf)?+\s*+(?:<[?!][^>]*+>\s*+)*+<(?:[\w.-]++:)?+(?:urlset|sitemapindex)[\s>]"
)
_MAX_START = 4096  # octets in which the root element of a sitemap begins
_READABLE = frozenset(("gzip", "x-gzip", "deflate", "identity"))


class HeldPage:
    """One response that waits.

    Attributes:
        answer: The answer to send in its place. None: the response is not refused, or not yet."""

    def __init__(self, fields: Fields, max_page: int, judge: Judge, refuse: Refuse) -> None:
        self.answer: Answer | None = None
        self._fields = fields
        self._coding = b",".join(_values(fields, b"content-encoding")).lower()
        self._max_page = max_page
        self._judge = judge
        self._refuse = refuse
        self._parts: list[bytes] = []
        self._octets = 0

    @property
    def is_long(self) -> bool:
        """True if `end` may take long enough to let other requests go on."""
        return self._octets > MAX_AT_ONCE or is_coded(self.body, self._coding)

    @property
    def body(self) -> bytes:
        """The octets that came so far, as they came."""
        return b"".join(self._parts)

    def add(self, octets: bytes) -> None:
        """Add octets of the body. This refuses a page that is too long."""
        if self.answer is not None:
            return
        self._parts.append(bytes(octets))  # the application may use its buffer again
        self._octets += len(octets)
        if self._octets > self._max_page:
            self._allow_sitemap()
        if self._octets > self._max_page:
            self._refuse_as(f"at most {self._max_page} octets")

    def end(self) -> None:
        """Judge the response, because its body is complete."""
        if self.answer is not None:
            return
        coding = self._coding if self._octets else b""  # a redirect may have the field alone
        try:
            body, is_cut = decoded(self.body, coding, is_cut=False, most=self._max_page)
            if is_cut and self._allow_sitemap():
                body, is_cut = decoded(self.body, coding, is_cut=False, most=self._max_page)
        except ValueError as error:
            self._refuse_as(str(error))
            return
        if is_cut:
            self._refuse_as(f"at most {self._max_page} octets")
            return
        for content in _readings(self._fields, body):
            self.answer = self._judge(content)
            if self.answer is not None:
                return

    def _allow_sitemap(self) -> bool:
        """Raise the limit of a sitemap to that of its protocol. Return True if it was raised."""
        try:
            start, _ = decoded(self.body, self._coding, is_cut=True, most=_MAX_START)
        except ValueError:
            return False
        is_raised = self._max_page < MAX_SITEMAP and _SITEMAP.match(start[:_MAX_START]) is not None
        if is_raised:
            self._max_page = MAX_SITEMAP
        return is_raised

    def _refuse_as(self, text: str) -> None:
        self.answer = self._refuse(text)
        self._parts.clear()


class Pages:
    """The choice of the responses that wait. `max_page`: octets. 0: no response waits."""

    def __init__(self, max_page: int) -> None:
        if max_page < 0:
            raise PolicyError(f"max_page `{max_page}` is negative: write octets, 0 or more")
        self._max_page = max_page

    @property
    def are_read(self) -> bool:
        """True if responses may wait."""
        return self._max_page > 0

    def hold(
        self, status: int, fields: Fields, judge: Judge, refuse: Refuse, *, judges_fields: bool
    ) -> HeldPage | None:
        """Return the response if it has to wait, else None.

        `judge`, `refuse`: return the refusal. `judges_fields`: True to judge the header fields of
        responses that do not wait."""
        page = HeldPage(fields, self._max_page, judge, refuse)
        media_type = b",".join(_values(fields, b"content-type")).lower()
        is_composite = _COMPOSITE.search(media_type) is not None
        if not (is_composite or Content(fields, b"").may_be_markup):
            page.answer = judge(Content(fields, b"")) if judges_fields else None
            return page if page.answer else None
        if status == PARTIAL and (is_composite or not _is_whole(fields)):
            page.answer = refuse("a part of a page does not show its statements: ask for all of it")
        elif is_composite:
            page.answer = refuse("pages within a response of several parts are not read")
        return page


def _readings(fields: Fields, body: bytes) -> Iterator[Content]:
    """Yield a page as browsers decode it, and in other ways if other readers may.

    NULs and a declaration of UTF-16 show that browsers and programs that look at the octets may
    differ. A mark decides for all of them."""
    yield Content(fields, body)
    declared = b"".join(_values(fields, b"content-type")).lower()
    if (b"\0" in body or b"utf-16" in declared) and not body.startswith(_MARKS):
        for mark in _MARKS:
            yield Content(fields, mark + body)


def _is_whole(fields: Fields) -> bool:
    """Return True if a response with status 206 has all octets of the page."""
    ranges = _values(fields, b"content-range")
    match = _CONTENT_RANGE.fullmatch(ranges[0].strip()) if len(ranges) == 1 else None
    return match is not None and int(match[1]) + 1 == int(match[2])


def _values(fields: Fields, name: bytes) -> list[bytes]:
    return [value for field, value in fields if field.lower() == name]


def readable_codings(accept_encoding: str) -> str:
    """Return the value of an Accept-Encoding field with the codings that the guard can remove.

    It is "identity" if there are none."""
    members = [member.strip() for member in accept_encoding.split(",")]
    readable = [
        member for member in members if member.partition(";")[0].strip().lower() in _READABLE
    ]
    return ", ".join(readable) or "identity"


def has_body(method: str, status: str) -> bool:
    """Return True if a response has content (RFC 9110 section-6.4). `status`: its three digits."""
    return method != "HEAD" and status not in ("204", "304")


def has_several_ranges(ranges: str) -> bool:
    """Return True if a Range field asks for several parts in one response.

    Their response does not show its type first, so the guard has the application send all of it:
    RFC 9110 section-14.2 permits servers to ignore the field."""
    return "," in ranges
