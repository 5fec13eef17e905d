"""The content of a response: its type, text and trees, and elements that may state a policy.

The parsers of trees (html_parsers, parsel) are imported with the first page. Most files of policies
do without, and `comity lint robots.txt` starts faster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from html import unescape
from itertools import chain
from typing import TYPE_CHECKING

from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from lxml.html.defs import tags as HTML_TAGS  # type: ignore[import-untyped]  # noqa: N812  # a constant
from w3lib.encoding import html_body_declared_encoding, html_to_unicode, http_content_type_encoding

from comity.policies.answers.qualifiers import Extract
from comity.policies.document.json_documents import Json
from comity.policies.syntax.urls import resolved

if TYPE_CHECKING:
    from parsel import Selector

    from comity.policies.document.html.tree import MarkupTag
    from comity.policies.document.markup import Html, Markup, Xml
    from comity.policies.document.selector_index import ElementAttributes

# The encodings of browsers (Encoding Standard section-4.2), by the names of Python's codecs. Some
# other codecs of Python raise, take minutes (punycode), or decode ASCII to other characters.
_CODECS = (
    "utf-8|cp866|iso8859-2|iso8859-3|iso8859-4|iso8859-5|iso8859-6|iso8859-7|iso8859-8|iso8859-10"
    "|iso8859-13|iso8859-14|iso8859-15|iso8859-16|koi8-r|koi8-u|mac-roman|mac-cyrillic|cp874|cp1250"
    "|cp1251|cp1252|cp1253|cp1254|cp1255|cp1256|cp1257|cp1258|gb18030|big5hkscs|euc_jp|iso2022_jp"
    "|cp932|cp949"
)
CHARSETS = frozenset(_CODECS.split("|"))
_UTF_16 = ("utf-16-le", "utf-16-be")  # valid in the header field only

_WORD = re.compile(r"[a-z0-9]+")  # of a media type
_MEDIA_TYPES = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*+"?)++')  # members of a list of media types
_SPACE = b"\xef\xbb\xbf\xff\xfe \t\r\n\x1e"  # white space and byte order marks
_SNIFFED = 65_536  # octets at the beginning that show the type of a document
_PROLOGUE = (
    rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?"
    rb"(?:\s++|(?P<declared><\?xml[^>]*+>)|<!--(?:[^-]++|-(?!->))*+-->)*+"
)
# HTML that is certainly HTML, not any markup.
_HTML_START = re.compile(
    rb"%s<(?:!doctype\s++html|html|head|body|title)[\s/>]" % _PROLOGUE, re.IGNORECASE
)
_XML_START = re.compile(
    rb"%s(?:(?(declared)|(?!))|<(?:rss|feed|rdf:rdf|svg)[\s>])" % _PROLOGUE, re.IGNORECASE
)
_IMAGE_START = re.compile(  # mimesniff section-6.1
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBPVP|BM.{4}\0{4}|\0\0[\1\2]\0", re.DOTALL
)
# Files that may have XMP packets (document/xmp.py).
_MEDIA = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8|RIFF|II[*+]\0|MM\0[*+]|8BPS|ID3|\x1aE\xdf\xa3"
    rb"|.{4}(?:ftyp|jP  |JXL )|\xff\n|\xff\x4f\xff\x51",
    re.DOTALL,
)
_OF_MEDIA = ("image/", "video/", "audio/")
# An object with at least one name.
_JSON_START = re.compile(rb'[\[%s]*+\{\s*+"(?:[^"\\]|\\.)*+"\s*+:' % re.escape(_SPACE), re.DOTALL)

# For these media types browsers (mimesniff section-7.1) and Scrapy look at the octets.
_NAMELESS = re.compile(r"[^/]++|\*/\*|[^/]+/octet-stream|.*unknown.*")
_TAG_START = re.compile(
    rb"%s<(?:%s)[\s/>]" % (_PROLOGUE, "|".join(sorted(HTML_TAGS)).encode()), re.IGNORECASE
)
_PAGE_WITHIN = re.compile(rb"<(?:!doctype\s++html|html)[\s/>]", re.IGNORECASE)
_WITHIN = 5000  # octets at the beginning in which Scrapy looks for <html>

# A letter or hyphen that is written as a reference: the octets may hide a word.
_LETTER = re.compile(
    rb"&#(?:0*(?:45|6[5-9]|[78]\d|90|9[7-9]|1[01]\d|12[0-2])(?!\d)"
    rb"|x0*(?:2d|[46][1-9a-f]|[57][\da])(?![\da-f]))"
)

# Characters of a URL in a page that is unread. `unescape` raises for a reference of 4,301 digits.
_MAX_HREF = 4_000
_HREF = re.compile(r"""\bhref\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>"']++)""", re.IGNORECASE)

FILE_TYPES = ("html", "json", "xml")
_TYPE_WORDS = {
    "html": frozenset(("html", "xhtml")),
    "json": frozenset(("json", "ndjson", "jsonl", "jsonlines")),
    "xml": frozenset(("xml", "xhtml", "rss", "atom", "rdf")),
}


def is_pdf(body: bytes) -> bool:
    """Return True if the octets are those of a PDF file."""
    return body.find(b"%PDF-", 0, 1024) >= 0


def file_types(media_type: str) -> frozenset[str]:
    """Return the file types of a media type, by its words: `application/rss+xml` is XML.

    XHTML is HTML and XML. An empty media type is every file type."""
    name = _media_type(media_type)
    words = frozenset(_WORD.findall(name))
    return frozenset(
        word for word in FILE_TYPES if not name or not words.isdisjoint(_TYPE_WORDS[word])
    )


def _content_types(values: Sequence[bytes]) -> list[str]:
    """Return the media types in the fields, with their parameters.

    There is at least one, which may be empty."""
    if len(values) == 1 and b"," not in values[0]:
        return [values[0].decode("latin-1")]
    parts = [
        *chain.from_iterable(_MEDIA_TYPES.findall(value.decode("latin-1")) for value in values)
    ]
    return (
        [part for part in parts if "/" in _media_type(part) and _media_type(part) != "*/*"]
        or parts[-1:]
        or [""]
    )


def _deciding(content_types: Sequence[str]) -> str:
    """Return the media type that browsers and Scrapy use if there are several (Fetch section 3.5).

    It is the last one. If it has no charset, that of another one with the same name counts."""
    last = content_types[-1]
    same = [
        part
        for part in content_types
        if _media_type(part) == _media_type(last) and http_content_type_encoding(part)
    ]
    return same[-1] if same else last


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


@lru_cache(maxsize=256)  # most pages have one of a few
def _types(values: tuple[bytes, ...]) -> tuple[str, str, str]:
    """Return the deciding type with its parameters, and `Content.media_type` and `served_as`."""
    content_types = _content_types(values)
    content_type = _deciding(content_types) if len(content_types) > 1 else content_types[0]
    return content_type, _media_type(content_type), ",".join(map(_media_type, content_types))


class Content:
    """A body with its media type.

    Attributes:
        headers: header fields of the response.
        media_type: in lower case without parameters. "": none is given.
        served_as: all media types in the fields, separated by commas. Readers differ in the one
            that they use.
        body: the octets."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        self.headers = tuple(headers)
        values = [value for name, value in self.headers if name.lower() == b"content-type"]
        self._content_type, self.media_type, self.served_as = _types(tuple(values))
        self.body = body

    @property
    def is_image(self) -> bool:
        """True if the media type or the octets are those of an image."""
        return self.media_type.startswith("image/") or _IMAGE_START.match(self.body) is not None

    @cached_property
    def is_media(self) -> bool:
        """True for an image, a video, a sound or a PDF file, by its media type or first octets."""
        return (
            f"{self.media_type}/".startswith(_OF_MEDIA)
            or _MEDIA.match(self.body) is not None
            or is_pdf(self.body)
        )

    @cached_property
    def _start(self) -> bytes:
        # Without NULs, to recognise UTF-16 and UTF-32.
        return self.body[:_SNIFFED].replace(b"\0", b"")

    @cached_property
    def is_html(self) -> bool:
        """True if it is served as HTML or XHTML or without a type, or if its octets are HTML."""
        if "text/html" in self.served_as.split(",") or "xhtml" in self.served_as:
            return True
        if (not self.media_type and not self.starts_as_xml) or _HTML_START.match(self._start):
            return True
        if not _NAMELESS.fullmatch(self.media_type):
            return False
        return bool(_TAG_START.match(self._start) or _PAGE_WITHIN.search(self._start, 0, _WITHIN))

    @property
    def may_be_markup(self) -> bool:
        """True if octets behind those of `body` may show that this is markup.

        LENIENT: not for `application/octet-stream`, the type of downloads."""
        is_nameless = _NAMELESS.fullmatch(self.media_type) and "octet-stream" not in self.media_type
        return self.is_markup or bool(is_nameless) or "html" in file_types(self.served_as)

    @cached_property
    def is_xml(self) -> bool:
        """True if it is served as XML (XHTML included), or if its octets are XML."""
        return self._is_served_as_xml or self.starts_as_xml

    @property
    def _is_served_as_xml(self) -> bool:
        return bool(self.media_type) and "xml" in file_types(self.served_as)

    @cached_property
    def starts_as_xml(self) -> bool:
        """True if its octets are XML, but not XHTML."""
        return bool(_XML_START.match(self._start)) and not _HTML_START.match(self._start)

    @cached_property
    def is_markup(self) -> bool:
        """True if it may contain statements."""
        return self.is_html or self.is_xml

    @cached_property
    def text(self) -> str:
        """The body, decoded as the header field or the markup says; "" if it is not text."""
        return self._encoding_and_text[1]

    @cached_property
    def encoding(self) -> str:
        """The encoding of the text, by the name of Python's codec."""
        return self._encoding_and_text[0]

    @cached_property
    def _encoding_and_text(self) -> tuple[str, str]:
        if not self.is_html and not self.media_type.startswith("text/"):
            return "utf-8", ""
        charset = http_content_type_encoding(self._content_type)
        if charset == "utf-16":
            # Little-endian. LENIENT: big-endian if the octets show it, which browsers do not check.
            charset = "utf-16-be" if self.body.startswith(b"\0") else "utf-16-le"
        elif charset not in CHARSETS and charset not in _UTF_16:
            charset = html_body_declared_encoding(self.body)
            # A declaration of UTF-16 means UTF-8 too: HTML Standard section-13.2.3.2.
            charset = charset if charset in CHARSETS else "utf-8"
        return html_to_unicode(f"; charset={charset}", self.body)

    @cached_property
    def markup(self) -> Markup:
        """The document as a browser reads it.

        Browsers show nothing for XML that is not well-formed. Here it is read as HTML."""
        from comity.policies.document.markup import Html, Xhtml, with_end_tags

        try:
            if not self.is_html:
                return self.xml if self.is_xml else self.html
            if self._is_served_as_xml and not self.declares:
                return Xhtml(self.text)
        except (etree.XMLSyntaxError, ValueError):
            pass
        return Html(with_end_tags(self._any_text)) if self._is_served_as_xml else self.html

    @cached_property
    def html(self) -> Html:
        """The body as HTML, for any type."""
        from comity.policies.document.markup import Html

        return Html(self._any_text)

    @property
    def _any_text(self) -> str:
        return self.text or self.body.decode("utf-8", "replace")

    @property
    def is_unread(self) -> bool:
        """True if the parser of HTML did not read the page to its end: its tree has no elements.

        Only a page that was parsed can be unread."""
        parsed = self.__dict__
        return ("markup" in parsed and self.markup.is_unread) or (
            "html" in parsed and self.html.is_unread
        )

    @cached_property
    def attributes(self) -> ElementAttributes:
        """The attributes of each element of `markup`, in the order of the document."""
        from comity.policies.document.selector_index import element_attributes

        return element_attributes(self.markup.root)

    @cached_property
    def selector(self) -> Selector:
        """The tree of a page, as parsel's selector."""
        from parsel import Selector

        return Selector(root=self.markup.root, type="html")

    @cached_property
    def json(self) -> Json:
        """The body as JSON, parsed once. ValueError: it is not JSON."""
        return Json(self.body)

    @cached_property
    def xml(self) -> Xml:
        """The body as XML, parsed once. XMLSyntaxError (lxml) or ValueError: it is not XML."""
        from comity.policies.document.markup import Xml

        return Xml(self.body)

    @cached_property
    def kind(self) -> str:
        """The kind of document by its octets, else by its media type: "html", "json" or "xml".

        "": none of them. Octets that only begin like JSON are JSON too, because other readers may
        accept JSON that `json` refuses."""
        start = self._start.lstrip(_SPACE)
        if start.startswith((b"{", b"[")) and (_JSON_START.match(start) or self._is_read("json")):
            return "json"
        if (
            start.startswith(b"<")
            and (self.starts_as_xml or not self.is_html)
            and self._is_read("xml")
        ):
            return "html" if self.is_html and self.xml.root.tag in HTML_TAGS else "xml"
        if self.is_html:
            return "html"
        return next((name for name in ("json", "xml") if name in file_types(self.served_as)), "")

    def _is_read(self, name: str) -> bool:
        try:
            getattr(self, name)
        except (etree.XMLSyntaxError, ValueError):
            return False
        return True

    @cached_property
    def octets(self) -> bytes:
        """The body in lower case, to search for ASCII words before the document is parsed."""
        # Without NULs, for UTF-16 and UTF-32.
        return self.body.replace(b"\0", b"").lower()

    @property
    def declares(self) -> bool:
        """True if a DTD declares entities or attributes, i.e. content that is not in the markup."""
        return any(declaration in self.octets for declaration in (b"<!entity", b"<!attlist"))

    def mentions(self, *words: bytes) -> bool:
        """Return True if this is markup that may contain one of the words (ASCII in lower case).

        If it returns False, the document need not be parsed for them."""
        if not self.is_markup:
            return False
        octets = self.octets
        for word in words:
            if word in octets:
                return True
        return self.has_written_letters

    @cached_property
    def has_written_letters(self) -> bool:
        """True if letters are written as references, so that the octets may hide a word."""
        octets = self.octets
        # The search for one octet is the fastest, so it comes first.
        return b"&" in octets and b"&#" in octets and _LETTER.search(octets) is not None

    def metas(self, attribute: str = "name") -> Iterator[tuple[str, str]]:
        """Yield an attribute in lower case and the content of each `meta` that has both.

        `attribute` is an argument of `metas_by_line`."""
        return ((name, content) for name, content, _ in self.metas_by_line(attribute))

    def metas_by_line(self, attribute: str = "name") -> Iterator[tuple[str, str, int]]:
        """Yield an attribute in lower case, the content and the line of each `meta` with both.

        `attribute` is "name", "http-equiv" or "property". "property" counts only if there is no
        name. Lines are 1-based. 0: the line is unknown."""
        for tag in self._tags:
            if tag.name == "meta" and (attribute != "property" or "name" not in tag.attributes):
                name, content = tag.attributes.get(attribute), tag.attributes.get("content")
                if name is not None and content is not None:
                    yield name.strip().lower(), content, tag.line

    def metas_without_content(self) -> Iterator[tuple[str, int]]:
        """Yield the name in lower case, and the line, of each `meta` without `content`."""
        for tag in self._tags:
            if tag.name == "meta" and "content" not in tag.attributes:
                yield tag.attributes.get("name", "").strip().lower(), tag.line

    def links(self, relation: str) -> Iterator[tuple[str, str]]:
        """Yield the media type and the URL of each `link` with this relation.

        The media type is in lower case, without parameters."""
        for link in self._tags:
            address = link.attributes.get("href") if link.name == "link" else None
            if address is not None and relation in link.attributes.get("rel", "").lower().split():
                yield (
                    link.attributes.get("type", "").partition(";")[0].strip().lower(),
                    address.strip(),
                )

    def base(self, url: str) -> str:
        """Return the URL that relative URLs in the page are resolved against.

        It is the URL of the first `base` that has one (HTML Standard section-2.4.3), else `url`,
        the URL of the page."""
        addresses = (tag.attributes.get("href") for tag in self.markup.tags("base"))
        address = next((address for address in addresses if address is not None), None)
        try:
            return url if address is None else resolved(url, address.strip())
        except ValueError:
            return url

    def hyperlinks(self) -> Iterator[tuple[str, str]]:
        """Yield `rel` ("" if there is none) and URL of each `a` and `area` that has a URL.

        In a page that is unread, each `href` is a link with rel=nofollow."""
        for link in self.markup.tags("a", "area"):
            if (address := link.attributes.get("href")) is not None:
                yield link.attributes.get("rel", ""), address.strip()
        if self.is_unread:
            for match in _HREF.finditer(self._any_text):
                yield "nofollow", unescape(match[1].strip("\"'")[:_MAX_HREF]).strip()

    def scripts(self, media_type: str) -> Iterator[tuple[str, int]]:
        """Yield the text of each `script` element of a type, and the line where the text starts.

        Line ends are LF. Lines are 1-based. 0: the line is unknown."""
        for script in self._tags:
            if (
                script.name == "script"
                and script.attributes.get("type", "").partition(";")[0].strip().lower()
                == media_type
            ):
                yield script.text, script.text_line

    @cached_property
    def _tags(self) -> tuple[MarkupTag, ...]:
        """The elements that may contain statements, except links in the text."""
        return tuple(self.markup.tags("meta", "link", "script"))

    def extracted(self, extract: Extract) -> str | None:
        """Return the markup of the element, or the content of the `meta`; None: there is none."""
        if not extract.name.isprintable() or "html" not in file_types(self.served_as):
            return None
        if extract.kind == "meta":
            return next(
                (content for name, content in self.metas() if name == extract.name.lower()), None
            )
        if extract.kind == "id":
            return self.selector.xpath("//*[@id=$name]", name=extract.name).get()
        has_class = (
            "//*[contains(concat(' ', normalize-space(@class), ' '), concat(' ', $name, ' '))]"
        )
        return self.selector.xpath(has_class, name=extract.name).get()
