"""The properties of TDMRep in EPUB and PDF files (W3C TDMRep, sec-epub2, sec-epub3, sec-pdf)."""

from __future__ import annotations

import html
import re
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

from comity.policies.document.document import Content, is_pdf
from comity.policies.document.xmp import MAX_PACKET, Unread, pdf_streams
from comity.policies.syntax import xml_tree
from comity.policies.syntax.lines import MAX_BYTES, Findings
from comity.policies.syntax.xml_tree import own_text

# Maximum octets that are read of an EPUB file. Its pages and images are not read.
MAX_PACKAGE = 4 * 1024 * 1024
MAX_PACKAGES = 5  # maximum package documents that are read of an EPUB file
MAX_PACKETS = 20  # maximum packets that are read in the plain text of a PDF file
MAX_POLICIES = 100  # maximum policy addresses that are read of a PDF file


class Metadata(NamedTuple):
    """The TDMRep values of an EPUB or PDF file, as written.

    Attributes:
        part: The part of the file that contains the values, "EPUB package" or "XMP". Reasons
            name it.
        reservations: The values of `reservation`, such as "1".
        policies: The values of `policy`, which are addresses.
    """

    part: str
    reservations: list[Any]
    policies: list[Any]


def read(content: Content, report: Findings) -> Metadata | None:
    """Return the metadata of an EPUB or PDF file, or None for any other content."""
    body = content.body
    is_epub = content.media_type == "application/epub+zip" or b"application/epub+zip" in body[:128]
    if is_epub and body.startswith(b"PK"):
        return _epub(body, report)
    return _pdf(body, report) if content.is_media and is_pdf(body) else None


# EPUB


class _LimitError(ValueError):
    """The file exceeds a limit."""


class _LimitedFile(BytesIO):
    """A file whose `read` raises _LimitError after MAX_PACKAGE octets in total.

    zipfile has no such limit: it reads the whole index, which can be as long as the archive.
    """

    remaining = MAX_PACKAGE

    def read(self, size: int | None = -1, /) -> bytes:
        octets = super().read(size)
        self.remaining -= len(octets)
        if self.remaining < 0:
            raise _LimitError
        return octets


def _epub(body: bytes, report: Findings) -> Metadata:
    metadata = Metadata("EPUB package", [], [])
    try:
        with zipfile.ZipFile(_LimitedFile(body)) as archive:
            for package in _packages(archive):
                for name, value in _properties(package):
                    (metadata.reservations if name == "reservation" else metadata.policies).append(
                        value
                    )
    except _LimitError:
        report.report(
            "tdmrep.limit",
            f"The EPUB file is not read: its metadata is longer than {MAX_PACKAGE} octets.",
        )
    except xml_tree.XmlError as error:
        report.report(
            "tdmrep.limit" if error.is_limit else "tdmrep.syntax",
            "The EPUB file is not read: {}.",
            str(error).encode(),
        )
    # The errors of zipfile for a file that is no archive, is encrypted, or is packed in a way that
    # EPUB does not allow.
    except (
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        LookupError,
        EOFError,
        OSError,
        RuntimeError,
    ) as error:
        report.report(
            "tdmrep.syntax", "The EPUB file is not read: {}.", str(error).encode(errors="replace")
        )
    return metadata


def _packages(archive: zipfile.ZipFile) -> Iterator[Any]:
    """Yield the package documents that META-INF/container.xml names.

    See EPUB 3.3 section 4.2.6.3.1.
    """
    container = _tree(_member(archive, "META-INF/container.xml"))
    paths = [file.get("full-path", "") for file in container.iterdescendants("{*}rootfile")]
    for path in list(dict.fromkeys(paths))[:MAX_PACKAGES]:
        yield _tree(_member(archive, path))


# A document type declaration that only refers to a file (XML 1.0 section-2.8). Package documents of
# EPUB 2 may have one. It is ignored, and the file is not fetched.
_DOCTYPE = re.compile(rb"<!DOCTYPE(?:[^\[<>\"']++|\"[^\"]*+\"|'[^']*+')*+>")


def _tree(octets: bytes) -> Any:
    return xml_tree.read(_DOCTYPE.sub(lambda doctype: b" " * len(doctype[0]), octets, count=1)).root


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    member = archive.getinfo(name)
    # zipfile decompresses other compression methods without a limit.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed by method {member.compress_type}")
    with archive.open(member) as opened:
        return opened.read(MAX_BYTES + 1)  # one octet too many: the parser reports the limit


_PREFIX = re.compile(r"(\S{1,50}+)(?<=:)\s++https?://www\.w3\.org/ns/tdmrep[#/]?+(?=\s|$)")


def _properties(package: Any) -> Iterator[tuple[str, str]]:
    """Yield the TDMRep properties of a package document, such as ("reservation", "1")."""
    prefixes = {"tdm:", *_PREFIX.findall(package.get("prefix", "")[:1000])}
    for meta in package.iterdescendants("{*}meta"):
        qualified_name = (meta.get("property") or meta.get("name") or "").strip()
        prefix, colon, name = qualified_name.partition(":")
        if prefix + colon in prefixes and name in ("reservation", "policy"):
            yield name, meta.get("content", "").strip() or own_text(meta).strip()


# PDF: XMP packets. They are not read as XML, because the example of the specification has an
# attribute without quotes, and publishers copy it.

_PROTOCOL = b"www.w3.org/ns/tdmrep"
_XMLNS = re.compile(
    rb"xmlns:([A-Za-z_][\w.-]{0,50}+)\s{0,9}+=\s{0,9}+[\"']?+https?://%s" % re.escape(_PROTOCOL)
)


# An element, or the attribute that has the same meaning in RDF.
_NAME = rb"([A-Za-z_][\w.-]{0,50}+):(reservation|policy)"
_PROPERTY = re.compile(
    rb"(?:<%s(?:\s[^<>]*+)?+>|\s%s\s{0,9}+=\s{0,9}+[\"'])([^<>\"']*+)" % (_NAME, _NAME)
)


def _pdf(body: bytes, report: Findings) -> Metadata:
    metadata = Metadata("XMP", [], [])
    for packet in _packets(body, report):
        prefixes = frozenset(_XMLNS.findall(packet))
        for of_element, element, of_attribute, attribute, value in (
            _PROPERTY.findall(_strip_comments(packet)) if prefixes else ()
        ):
            is_reservation = (element or attribute) == b"reservation"
            if (of_element or of_attribute) in prefixes and (
                is_reservation or len(metadata.policies) < MAX_POLICIES
            ):
                values = metadata.reservations if is_reservation else metadata.policies
                values.append(html.unescape(value.decode("utf-8", "replace")).strip())
    return metadata


def _strip_comments(packet: bytes) -> bytes:
    first, *others = packet.split(b"<!--")
    # A `<!--` without `-->` does not begin a comment: the text after it may reserve the rights.
    return first + b"".join(
        part.partition(b"-->")[2] if b"-->" in part else part for part in others
    )


def _packets(body: bytes, report: Findings) -> Iterator[bytes]:
    """Yield the parts of a PDF file that may contain TDMRep properties.

    These are the octets around each TDMRep namespace in the plain text, and then every compressed
    metadata stream, decompressed.
    """
    count = 0
    position = body.find(_PROTOCOL)
    while position >= 0:
        start = max(body.rfind(b"<", max(0, position - 4096), position), 0)
        end = body.find(b"</rdf:RDF", position, position + MAX_PACKET)
        end = end if end >= 0 else position + MAX_PACKET
        count += 1
        if count > MAX_PACKETS:
            report.report("tdmrep.limit", f"Only {MAX_PACKETS} packets of the PDF file are read.")
            break
        yield body[start:end]
        position = body.find(_PROTOCOL, end)
    for stream in pdf_streams(body):
        if not isinstance(stream, Unread):
            yield stream
        else:
            rule = "tdmrep.limit" if stream.is_limit else "tdmrep.syntax"
            report.report(rule, stream.cause)
