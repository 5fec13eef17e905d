"""The content that came back for a page or for a resource that goes with it: its text, and what of it states something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from lxml import etree  # type: ignore[import-untyped]  # it ships no types
from lxml.html.defs import tags as HTML_TAGS  # type: ignore[import-untyped]  # noqa: N812  # a constant
from parsel import Selector
from w3lib.encoding import html_body_declared_encoding, html_to_unicode, http_content_type_encoding

from comity.policies.answers.qualifiers import Extract
from comity.policies.document.json_documents import Json
from comity.policies.document.markup import Html, Markup, Tag, Xhtml, Xml, with_end_tags
from comity.policies.syntax.urls import resolved

# The encodings of browsers (Encoding Standard section-4.2), as Python names the codecs. Of all others that Python has some raise,
# take minutes (punycode), or make other characters of ASCII.
_CODECS = (
    "utf-8|cp866|iso8859-2|iso8859-3|iso8859-4|iso8859-5|iso8859-6|iso8859-7|iso8859-8|iso8859-10|iso8859-13|iso8859-14|iso8859-15"
    "|iso8859-16|koi8-r|koi8-u|mac-roman|mac-cyrillic|cp874|cp1250|cp1251|cp1252|cp1253|cp1254|cp1255|cp1256|cp1257|cp1258"
    "|gb18030|big5hkscs|euc_jp|iso2022_jp|cp932|cp949"
)
CHARSETS = frozenset(_CODECS.split("|"))
_UTF_16 = ("utf-16-le", "utf-16-be")  # these count in the header alone

_WORD = re.compile(r"[a-z0-9]+")  # of a media type
_MEDIA_TYPES = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*+"?)++')  # of a list of them
_SPACE = b"\xef\xbb\xbf\xff\xfe \t\r\n\x1e"  # and byte order marks
_SNIFFED = 65_536  # octets in which a document shows what it is
_PROLOGUE = rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?(?:\s++|(?P<declared><\?xml[^>]*+>)|<!--(?:[^-]++|-(?!->))*+-->)*+"
_HTML_START = re.compile(
    rb"%s<(?:!doctype\s++html|html|head|body|title)[\s/>]" % _PROLOGUE, re.IGNORECASE
)  # not of any markup
_XML_START = re.compile(
    rb"%s(?:(?(declared)|(?!))|<(?:rss|feed|rdf:rdf|svg)[\s>])" % _PROLOGUE, re.IGNORECASE
)
_IMAGE_START = re.compile(  # mimesniff section-6.1
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBPVP|BM.{4}\0{4}|\0\0[\1\2]\0", re.DOTALL
)
_JSON_START = re.compile(
    rb'[\[%s]*+\{\s*+"(?:[^"\\]|\\.)*+"\s*+:' % re.escape(_SPACE), re.DOTALL
)  # an object that has a name

# What is served without a type that says what it is: browsers (mimesniff section-7.1) and Scrapy look at its octets.
_NAMELESS = re.compile(r"[^/]++|\*/\*|[^/]+/octet-stream|.*unknown.*")
_TAG_START = re.compile(
    rb"%s<(?:%s)[\s/>]" % (_PROLOGUE, "|".join(sorted(HTML_TAGS)).encode()), re.IGNORECASE
)
_PAGE_WITHIN = re.compile(rb"<(?:!doctype\s++html|html)[\s/>]", re.IGNORECASE)
_WITHIN = 5000  # octets, of which Scrapy takes what has an <html> for a page

# Letters and hyphens that are written as references: a word may be there that its octets don't show.
_LETTER = re.compile(
    rb"&#(?:0*(?:45|6[5-9]|[78]\d|90|9[7-9]|1[01]\d|12[0-2])(?!\d)|x0*(?:2d|[46][1-9a-f]|[57][\da])(?![\da-f]))"
)


FILE_TYPES = ("html", "json", "xml")
_TYPE_WORDS = {
    "html": frozenset(("html", "xhtml")),
    "json": frozenset(("json", "ndjson", "jsonl", "jsonlines")),
    "xml": frozenset(("xml", "xhtml", "rss", "atom", "rdf")),
}


def file_types(media_type: str) -> frozenset[str]:
    """The file types as which a resource is served, by the words of the media type: `application/rss+xml` is XML.

    XHTML is of two; all are meant where the server names none."""
    name = _media_type(media_type)
    words = frozenset(_WORD.findall(name))
    return frozenset(
        word for word in FILE_TYPES if not name or not words.isdisjoint(_TYPE_WORDS[word])
    )


def _content_types(values: Sequence[bytes]) -> list[str]:
    """Return the media types of the fields, with their parameters; at least one, which may be empty."""
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
    """Return the one of several that browsers and Scrapy take: the last one, with the charset of another one of the same name
    where it has none (Fetch section 3.5)."""
    last = content_types[-1]
    same = [
        part
        for part in content_types
        if _media_type(part) == _media_type(last) and http_content_type_encoding(part)
    ]
    return same[-1] if same else last


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


class Content:
    """A body with its media type."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        self.headers = tuple(headers)
        content_types = _content_types(
            [value for name, value in self.headers if name.lower() == b"content-type"]
        )
        self._content_type = (
            _deciding(content_types) if len(content_types) > 1 else content_types[0]
        )
        self.media_type = _media_type(self._content_type)
        self.served_as = ",".join(map(_media_type, content_types))  # by one reader or another
        self.body = body

    @property
    def is_image(self) -> bool:
        """True where it is served as an image, or its octets say that it is."""
        return self.media_type.startswith("image/") or _IMAGE_START.match(self.body) is not None

    @cached_property
    def _start(self) -> bytes:
        return self.body[:_SNIFFED].replace(
            b"\0", b""
        )  # of UTF-16 and UTF-32 the NULs are left out

    @cached_property
    def is_html(self) -> bool:
        """True where it is served as HTML or XHTML, or as nothing, or its octets say that it is."""
        if "text/html" in self.served_as.split(",") or "xhtml" in self.served_as:
            return True
        if (not self.media_type and not self.starts_as_xml) or _HTML_START.match(self._start):
            return True
        if not _NAMELESS.fullmatch(self.media_type):
            return False
        return bool(_TAG_START.match(self._start) or _PAGE_WITHIN.search(self._start, 0, _WITHIN))

    @cached_property
    def is_xml(self) -> bool:
        """True where it is served as XML, XHTML among it, or its octets say that it is."""
        return self._is_served_as_xml or self.starts_as_xml

    @property
    def _is_served_as_xml(self) -> bool:
        return bool(self.media_type) and "xml" in file_types(self.served_as)

    @cached_property
    def starts_as_xml(self) -> bool:
        """True where its octets are those of XML that is no XHTML."""
        return bool(_XML_START.match(self._start)) and not _HTML_START.match(self._start)

    @property
    def is_markup(self) -> bool:
        """True where something may be stated in it."""
        return self.is_html or self.is_xml

    @cached_property
    def text(self) -> str:
        """The body, decoded as the header or the markup says; "" where it is no text."""
        return self._decoded[1]

    @cached_property
    def encoding(self) -> str:
        """The encoding by which the text is decoded, as Python names it."""
        return self._decoded[0]

    @cached_property
    def _decoded(self) -> tuple[str, str]:
        if not self.is_html and not self.media_type.startswith("text/"):
            return "utf-8", ""
        charset = http_content_type_encoding(self._content_type)
        if (
            charset == "utf-16"
        ):  # little-endian; LENIENT: big-endian by its octets, which browsers do not look at
            charset = "utf-16-be" if self.body.startswith(b"\0") else "utf-16-le"
        elif charset not in CHARSETS and charset not in _UTF_16:
            charset = html_body_declared_encoding(self.body)
            charset = (
                charset if charset in CHARSETS else "utf-8"
            )  # UTF-16 too: HTML Standard section-13.2.3.2
        return html_to_unicode(f"; charset={charset}", self.body)

    @cached_property
    def markup(self) -> Markup:
        """The document as a browser reads it. Of XML that is not well-formed browsers show nothing: it is read as HTML."""
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
        """The body as HTML, whatever it is."""
        return Html(self._any_text)

    @property
    def _any_text(self) -> str:
        return self.text or self.body.decode("utf-8", "replace")

    @cached_property
    def selector(self) -> Selector:
        """The tree of a page."""
        return Selector(root=self.markup.root, type="html")

    @cached_property
    def json(self) -> Json:
        """The body as JSON, parsed once. ValueError where it is none."""
        return Json(self.body)

    @cached_property
    def xml(self) -> Xml:
        """The body as XML, parsed once. XMLSyntaxError (lxml), ValueError where it is none."""
        return Xml(self.body)

    @cached_property
    def kind(self) -> str:
        """The kind of document by its octets, else as it is served: "html", "json" or "xml"; "": none of them.

        What only begins as JSON does is JSON as well: others may read what `json` does not."""
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
        """The body in lower case, to search for ASCII: what is not found there need not be parsed for."""
        return self.body.replace(b"\0", b"").lower()  # of UTF-16 and UTF-32 the NULs are left out

    @property
    def declares(self) -> bool:
        """True where it has a DTD that declares what may stand in the document twice."""
        return any(declaration in self.octets for declaration in (b"<!entity", b"<!attlist"))

    def mentions(self, *words: bytes) -> bool:
        """Return whether this is markup that has one of the words, lower-case ASCII: without them it need not be parsed."""
        return self.is_markup and (
            any(word in self.octets for word in words) or self.has_written_letters
        )

    @cached_property
    def has_written_letters(self) -> bool:
        """True where letters are written as references: a word may be there that the octets don't show."""
        octets = self.octets
        return (
            b"&" in octets and b"&#" in octets and _LETTER.search(octets) is not None
        )  # one octet is found soonest

    def metas(self, attribute: str = "name") -> Iterator[tuple[str, str]]:
        """Yield an attribute, lower case, and content of each `meta` that has both. See `metas_by_line`."""
        return ((name, content) for name, content, _ in self.metas_by_line(attribute))

    def metas_by_line(self, attribute: str = "name") -> Iterator[tuple[str, str, int]]:
        """Yield an attribute, lower case, content and line of each `meta` that has both.

        `attribute`: "name", "http-equiv", or "property", which counts where there is no name.
        Lines are 1-based; 0: the line is not known."""
        for tag in self._tags:
            if tag.name == "meta" and (attribute != "property" or "name" not in tag.attributes):
                name, content = tag.attributes.get(attribute), tag.attributes.get("content")
                if name is not None and content is not None:
                    yield name.strip().lower(), content, tag.line

    def links(self, relation: str) -> Iterator[tuple[str, str]]:
        """Yield media type, lower case and without parameters, and address of each `link` with that relation."""
        for link in self._tags:
            address = link.attributes.get("href") if link.name == "link" else None
            if address is not None and relation in link.attributes.get("rel", "").lower().split():
                yield (
                    link.attributes.get("type", "").partition(";")[0].strip().lower(),
                    address.strip(),
                )

    def base(self, url: str) -> str:
        """The URL by which relative ones in the page are resolved: that of the first `base` with one (HTML Standard
        section-2.4.3); the page's own, where that means none. `url`: of the page."""
        addresses = (tag.attributes.get("href") for tag in self.markup.tags("base"))
        address = next((address for address in addresses if address is not None), None)
        try:
            return url if address is None else resolved(url, address.strip())
        except ValueError:
            return url

    def hyperlinks(self) -> Iterator[tuple[str, str]]:
        """Yield `rel`, "" where there is none, and address of each `a` and `area` that has one."""
        for link in self.markup.tags("a", "area"):
            if (address := link.attributes.get("href")) is not None:
                yield link.attributes.get("rel", ""), address.strip()

    def scripts(self, media_type: str) -> Iterator[tuple[str, int]]:
        """The text of each `script` element of a type, its line ends as LF, and the line where it starts.

        Lines are 1-based; 0: nobody knows."""
        for script in self._tags:
            if (
                script.name == "script"
                and script.attributes.get("type", "").partition(";")[0].strip().lower()
                == media_type
            ):
                yield script.text, script.text_line

    @cached_property
    def _tags(self) -> tuple[Tag, ...]:
        """The tags that may state something, but for links in the text."""
        return tuple(self.markup.tags("meta", "link", "script"))

    def extracted(self, extract: Extract) -> str | None:
        """The element's markup, or the content of the `meta`; None where the page has none such."""
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
