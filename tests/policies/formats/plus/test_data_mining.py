"""PLUS Data Mining in XMP, in files that exiftool 12.57 wrote, and in damaged ones.

Each file in `files` has an image of 2 by 2 pixels, an empty page or no frames. exiftool wrote the
XMP, with a definition of `DataMining` in the namespace `plus` (`-config`), and `packed.png` with
`-z`. Pillow 13 wrote the same packet into the WebP and AVIF files, which exiftool 12.57 cannot."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict
from comity.policies.document.document import Content
from comity.policies.document.xmp import MAX_STREAMS, MAX_TEXT
from comity.policies.formats.plus.data_mining import MAX_PACKETS, MAX_VALUES, PROHIBITED, statements
from comity.policies.vocabulary.table import Vocabulary

pytestmark = pytest.mark.requirement("IMG-1")

FILES = Path(__file__).parent / "files"
TYPES = {
    "jpg": b"image/jpeg",
    "png": b"image/png",
    "webp": b"image/webp",
    "tif": b"image/tiff",
    "gif": b"image/gif",
    "avif": b"image/avif",
    "pdf": b"application/pdf",
    "mp4": b"video/mp4",
}
ORIGIN = "https://example.com"
SITE = Site.from_files(ORIGIN, {"/robots.txt": b"User-agent: *\nAllow: /\n"})
USES = ("train", "train-genai", "tdm", "ai", "search", "index", "ai-input", "present", "preserve")
AGENT = Agent("testbot", uses=USES, defaults=dict.fromkeys(USES, Verdict.ALLOW))
STRICT = Agent("testbot", uses=USES)
VOCABULARY = "http://ns.useplus.org/ldf/vocab/"
JPEG = b"\xff\xd8\xff\xe0\x00\x04\x00\x00"


def refused(body: bytes, media_type: bytes = b"image/jpeg", agent: Agent = AGENT) -> set[str]:
    page = SITE.page(agent, f"{ORIGIN}/a", headers=[(b"Content-Type", media_type)], body=body)
    return {use for use in USES if page.uses[use].verdict is Verdict.DENY}


def rules(body: bytes) -> set[str]:
    return {statement.rule for statement in statements(body)}


def xmp(inner: str, attributes: str = "") -> bytes:
    """Return a packet with these properties."""
    return (
        "<?xpacket begin='\ufeff' id='W5M0MpCehiHzreSzNTczkc9d'?>"
        "<x:xmpmeta xmlns:x='adobe:ns:meta/'>"
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
        f"<rdf:Description rdf:about='' xmlns:plus='http://ns.useplus.org/ldf/xmp/1.0/'{attributes}>"
        f"{inner}</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end='w'?>"
    ).encode()


def element(key: str) -> str:
    return f"<plus:DataMining>{VOCABULARY}{key}</plus:DataMining>"


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir()))
def test_files_of_exiftool(name: str) -> None:
    """The statement is found in each kind of file, by its octets or by its media type."""
    body, ending = (FILES / name).read_bytes(), name.rpartition(".")[2]
    assert Content((), body).is_media
    for media_type in (TYPES[ending], b"application/octet-stream", b""):
        uses = refused(body, media_type)
        assert uses == (set() if "allowed" in name else {"train", "train-genai", "tdm", "ai"})
    [statement] = statements(body)
    expected = "plus:DataMining: DMI-ALLOWED"
    if "allowed" not in name:
        expected = "plus:DataMining: DMI-PROHIBITED-AIMLTRAINING"
        if name.startswith("training"):
            expected += "; plus:OtherConstraints: Ask us first"
    assert (statement.location.part, statement.location.text) == ("XMP", expected)


TRAINING = {"train", "train-genai", "tdm", "ai"}
MINING = {*TRAINING, "ai-input"}


@pytest.mark.parametrize(
    ("key", "uses"),
    [
        ("DMI-PROHIBITED", {*MINING, "search", "index"}),
        ("DMI-PROHIBITED-SEECONSTRAINT", {*MINING, "search", "index"}),
        ("DMI-PROHIBITED-SEEEMBEDDEDRIGHTSEXPR", {*MINING, "search", "index"}),
        ("DMI-PROHIBITED-SEELINKEDRIGHTSEXPR", {*MINING, "search", "index"}),
        ("DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING", MINING),
        ("DMI-PROHIBITED-AIMLTRAINING", TRAINING),
        ("DMI-PROHIBITED-GENAIMLTRAINING", TRAINING),
        ("DMI-ALLOWED", set()),
        ("DMI-UNSPECIFIED", set()),
    ],
)
def test_each_value(key: str, uses: set[str]) -> None:
    """The value may be an element, a resource or an attribute, as a URL or as the bare key."""
    for value in (VOCABULARY + key, key, key.lower(), f" {VOCABULARY}{key}/\n"):
        for packet in (
            xmp(f"<plus:DataMining>{value}</plus:DataMining>"),
            xmp(f'<plus:DataMining rdf:resource="{value}"/>'),
            xmp(f"<plus:DataMining  rdf:resource='{value}' ></plus:DataMining>"),
            xmp("", f" plus:DataMining='{value}'"),
            xmp("", f'\n plus:DataMining = "{value}"'),
            xmp(f"<plus:DataMining><rdf:Bag><rdf:li>{value}</rdf:li></rdf:Bag></plus:DataMining>"),
        ):
            assert refused(JPEG + packet) == uses, packet
    allowed = {"tdm"} if key == "DMI-ALLOWED" else set()
    assert refused(JPEG + xmp(element(key)), agent=STRICT) == {*USES} - allowed


def test_another_prefix_and_other_properties() -> None:
    packet = (
        xmp(element("DMI-PROHIBITED")).replace(b"plus:", b"p.1-x:").replace(b":plus=", b":p.1-x=")
    )
    assert rules(JPEG + packet) == {"plus.prohibited"}
    assert rules(JPEG + xmp("<plus:Licensor>DMI-PROHIBITED</plus:Licensor>")) == set()
    assert rules(JPEG + xmp("<dc:DataMining>DMI-PROHIBITED</dc:DataMining>")) == set()
    assert rules(JPEG + xmp(f"<!-- {element('DMI-PROHIBITED')} -->")) == set()


def test_a_refusal_wins_over_a_permission() -> None:
    for inner in (
        element("DMI-ALLOWED") + element("DMI-PROHIBITED-AIMLTRAINING"),
        element("DMI-PROHIBITED-AIMLTRAINING") + element("DMI-ALLOWED"),
    ):
        assert refused(JPEG + xmp(inner)) == TRAINING
    two = JPEG + xmp(element("DMI-ALLOWED")) + xmp(element("DMI-PROHIBITED"))
    assert refused(two) == {*MINING, "search", "index"}


@pytest.mark.parametrize(
    "packet",
    [
        xmp("<plus:DataMining>no thanks</plus:DataMining>"),
        xmp(element("DMI-FORBIDDEN")),
        xmp(element("DMI-ALLOWED-BUT-ASK")),
        xmp("<plus:DataMining>&forbidden;</plus:DataMining>"),
        xmp(f"<plus:DataMining>{VOCABULARY}DMI-ALLOWED"),
        xmp(f"<plus:DataMining rdf:resource='{VOCABULARY}DMI-ALLOWED'"),
        xmp("", " plus:DataMining='DMI-ALLOWED").partition(b"LOWED")[0],
        xmp(element("DMI-UNSPECIFIED") * MAX_VALUES + element("DMI-ALLOWED")),
    ],
)
def test_a_value_that_cannot_be_read_permits_nothing(packet: bytes) -> None:
    assert "plus.unread" in rules(JPEG + packet)
    assert refused(JPEG + packet) >= MINING


def test_an_empty_value_states_nothing() -> None:
    for inner in ("<plus:DataMining/>", "<plus:DataMining> </plus:DataMining>"):
        assert statements(JPEG + xmp(inner)) == ()


def test_a_packet_that_is_not_utf_8() -> None:
    text = xmp(element("DMI-PROHIBITED")).decode()
    for encoding in ("utf-16-le", "utf-16-be"):
        for before in (b"II*\0", b"II*\0\0"):
            assert rules(before + text.encode(encoding)) == {"plus.prohibited"}


def test_entities_and_dtds_have_no_effect() -> None:
    bomb = b"<!DOCTYPE x [" + b"".join(
        b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 20)
    )
    body = JPEG + bomb + b"]>" + xmp("<plus:DataMining>&a19;</plus:DataMining>")
    assert rules(body) == {"plus.unread"}
    external = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    body = JPEG + external + xmp("<plus:DataMining>&a;</plus:DataMining>")
    [statement] = statements(body)
    assert statement.location.text == "plus:DataMining: &a;"


def chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data).to_bytes(4)
    return len(data).to_bytes(4) + kind + data + check


def png(packed: bytes) -> bytes:
    text = b"XML:com.adobe.xmp\0\1\0en\0\0" + packed
    return b"\x89PNG\r\n\x1a\n" + chunk(b"iTXt", text) + chunk(b"IEND", b"")


def test_packed_packets_of_png() -> None:
    packed = zlib.compress(xmp(element("DMI-PROHIBITED")))
    assert rules(png(packed)) == {"plus.prohibited"}
    assert rules(png(zlib.compress(xmp("")))) == set()
    for damaged in (packed[:-9], b"\0" * 9, b"", zlib.compress(bytes(MAX_TEXT + 1), 9)):
        assert rules(png(damaged)) == {"plus.unread"}
    assert rules(png(packed).replace(b"IEND", png(packed)[8:] * 30)) == {
        "plus.prohibited",
        "plus.unread",
    }


def pdf(packed: bytes, more: bytes = b"") -> bytes:
    head = b"5 0 obj << /Filter /FlateDecode /Type /Metadata >>\nstream\n"
    return b"%PDF-1.7\n" + head + packed + b"\nendstream\n" + more


def test_packed_packets_of_pdf() -> None:
    packed = zlib.compress(xmp(element("DMI-PROHIBITED")))
    assert rules(pdf(packed)) == {"plus.prohibited"}
    assert rules(pdf(b"damaged")) == {"plus.unread"}
    assert rules(pdf(b"encrypted", b"trailer << /Encrypt 9 0 R >>")) == set()
    many = pdf(zlib.compress(xmp(""))) * (MAX_STREAMS + 1)
    assert rules(many) == {"plus.unread"}


def test_a_value_behind_much_else_is_found() -> None:
    """A long history is no reason to miss the property, and too many packets refuse."""
    history = "<photoshop:History>x</photoshop:History>" * 50_000
    assert rules(JPEG + xmp(history + element("DMI-PROHIBITED"))) == {"plus.prohibited"}
    assert rules(JPEG + xmp("") * (MAX_PACKETS + 1)) == {"plus.unread"}
    long = "".join(f"<a>{number}</a>" for number in range(30_000)) + element("DMI-PROHIBITED")
    assert rules(pdf(zlib.compress(xmp(long)))) == {"plus.unread"}


def segment(data: bytes) -> bytes:
    return b"\xff\xe1" + (len(data) + 2).to_bytes(2) + data


def test_a_long_packet_of_jpeg_is_in_several_segments() -> None:
    """The parts may be in any order, and a value may be cut between two of them."""
    packet = xmp(element("DMI-PROHIBITED-AIMLTRAINING"))
    cut = packet.index(b"AIML")
    parts = [
        b"http://ns.adobe.com/xmp/extension/\0"
        + b"0" * 32
        + len(packet).to_bytes(4)
        + start.to_bytes(4)
        + packet[start:end]
        for start, end in ((0, cut), (cut, len(packet)))
    ]
    main = segment(b"http://ns.adobe.com/xap/1.0/\0" + xmp(""))
    for order in (parts, parts[::-1]):
        body = b"\xff\xd8" + main + b"".join(map(segment, order)) + b"\xff\xda\0\0image\xff\xd9"
        assert refused(body) == TRAINING
    own = segment(b"http://ns.adobe.com/xap/1.0/\0" + xmp(element("DMI-PROHIBITED")))
    body = b"\xff\xd8" + own + segment(parts[0]) + b"\xff\xda"
    assert "plus.prohibited" in rules(body)


def test_pages_that_quote_a_packet_state_nothing() -> None:
    packet = xmp(element("DMI-PROHIBITED"))
    for media_type, body in (
        (b"text/html", b"<!doctype html><title>PLUS</title><pre>" + packet),
        (b"text/plain", packet),
        (b"application/json", b'{"a": "' + packet + b'"}'),
    ):
        assert refused(body, media_type) == set()
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><metadata>" + packet + b"</metadata></svg>"
    assert refused(svg, b"image/svg+xml") == {*MINING, "search", "index"}


def test_every_word_of_the_vocabulary_is_stated() -> None:
    words = {f"plus:{word}" for word in Vocabulary.shipped().words["plus"].narrows}
    assert words == set(PROHIBITED.values())


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("training.*")))
def test_a_file_that_is_cut_off_permits_nothing_more(name: str) -> None:
    """No part of a file with a refusal has a permission."""
    body = (FILES / name).read_bytes()
    for end in range(0, len(body), 7):
        assert "plus.allowed" not in rules(body[:end])


@given(
    st.sampled_from([JPEG, b"\x89PNG\r\n\x1a\n", b"%PDF-1.7", b"II*\0", b"RIFF1234WEBP"]),
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [
                    b"<",
                    b">",
                    b"'",
                    b"</",
                    b"<!--",
                    b"-->",
                    b"plus:DataMining",
                    b" plus:DataMining=",
                    b"xmlns:plus='http://ns.useplus.org/ldf/xmp/1.0/'",
                    b"DMI-ALLOWED",
                    b"DMI-PROHIBITED",
                    b":OtherConstraints>",
                    b"iTXtXML:com.adobe.xmp\0\1\0",
                    b"/FlateDecode /Type /Metadata stream\n",
                    b"http://ns.adobe.com/xmp/extension/\0",
                ]
            ),
        ),
        max_size=12,
    ),
)
def test_any_octets(start: bytes, parts: list[bytes]) -> None:
    """Nothing raises, and a refusal in the same file is not lost."""
    body = start + b"".join(parts)
    statements(body)
    with_refusal = statements(start + xmp(element("DMI-PROHIBITED")) + b"".join(parts))
    assert "plus.prohibited" in {statement.rule for statement in with_refusal}
