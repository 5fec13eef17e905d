"""XML from a site: the tree, the lines, and the refused documents (RSL-3)."""

from __future__ import annotations

import io
import resource
import xml.sax
from collections.abc import Callable
from contextlib import suppress
from xml.sax.handler import ContentHandler, feature_namespaces
from xml.sax.xmlreader import AttributesNSImpl, Locator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies.syntax import xml_tree
from comity.policies.syntax.xml_tree import (
    XmlError,
    attributes,
    local_name,
    namespace,
    own_text,
    plain_attributes,
    read,
)
from tests.selection import one_in

# Namespace, name, line, attributes, own text.
Seen = list[tuple[str, str, int, dict[str, str], str]]


def facts_of(body: bytes) -> Seen:
    """Return the facts about each element that users of the tree need."""
    tree = read(body)
    return [
        (
            namespace(element),
            local_name(element),
            tree.lines[element],
            plain_attributes(element),
            own_text(element),
        )
        for element in tree.root.iter()
    ]


class Oracle(ContentHandler):
    """The facts about each element, by Python's parser."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str, int, dict[str, str], list[str]]] = []
        self._open: list[int] = []
        self._locator: Locator

    def setDocumentLocator(self, locator: Locator) -> None:  # the name that xml.sax calls
        self._locator = locator

    def startElementNS(
        self, name: tuple[str | None, str], qname: str | None, attrs: AttributesNSImpl
    ) -> None:
        attributes = {key: str(value) for (uri, key), value in attrs.items() if not uri}
        self._open.append(len(self.seen))
        self.seen.append(
            (name[0] or "", name[1], self._locator.getLineNumber() or 0, attributes, [])
        )

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:
        self._open.pop()

    def characters(self, content: str) -> None:
        self.seen[self._open[-1]][4].append(content)


def by_python(body: bytes) -> Seen:
    parser, oracle = xml.sax.make_parser(), Oracle()
    parser.setFeature(feature_namespaces, 1)
    parser.setContentHandler(oracle)
    parser.parse(io.BytesIO(body))
    return [(*element[:4], "".join(element[4])) for element in oracle.seen]


NAMES = st.sampled_from(["a", "b", "x:a", "x:b", "é"])
SPACES = st.sampled_from([" ", "\n", "\r\n", "\r", " \n\t"])
VALUES = st.sampled_from(["", "1", "a>b", "&amp;", "&#10;", "é", " 1\n2 ", "&lt;!-- "])
ATTRIBUTES = st.lists(
    st.tuples(SPACES, st.sampled_from(["a", "b", "x:c", "xml:lang", "xmlns"]), VALUES),
    max_size=3,
    unique_by=lambda it: it[1],
)
TEXTS = st.sampled_from(
    [
        "text",
        "\n",
        "\r\n",
        "\r",
        "&lt;a>",
        "<!-- <a> \n -->",
        "<?pi <a>\n?>",
        "<![CDATA[<b>\n&amp;]]>",
        "&#x1F600;",
        "\x85",
        "\u2028",
    ]
)


def element(
    name: str, attributes: list[tuple[str, str, str]], space: str, content: list[str]
) -> str:
    written = "".join(
        f'{before}{key}="{"urn:" + str(len(value)) if key == "xmlns" else value}"'
        for before, key, value in attributes
    )
    return f"<{name}{written}{space}>{''.join(content)}</{name}{space}>"


ELEMENTS = st.recursive(
    TEXTS,
    lambda inner: st.builds(element, NAMES, ATTRIBUTES, SPACES, st.lists(inner, max_size=4)),
    max_leaves=15,
)
PROLOGUES = st.sampled_from(["", '<?xml version="1.0"?>\n', "<!-- <a>\n -->\r\n", "<?pi\n?>"])


@pytest.mark.requirement("RSL-3")
@given(
    PROLOGUES,
    st.lists(ELEMENTS, max_size=4),
    SPACES,
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_the_tree_and_its_lines_are_those_of_another_parser(
    prologue: str, content: list[str], space: str, codec: str
) -> None:
    body = f'{prologue}<x:root{space}xmlns:x="urn:x">{"".join(content)}</x:root>{space}'.encode(
        codec
    )
    assert facts_of(body) == by_python(body)


@pytest.mark.requirement("SEC-5")
@pytest.mark.parametrize("number", [0, 1, 100, 101, 1000])
@pytest.mark.parametrize(
    "parser", [etree.XMLParser(resolve_entities=False), etree.HTMLParser()], ids=["xml", "html"]
)
def test_attributes_are_those_of_lxml_however_many_there_are(
    number: int, parser: etree._FeedParser
) -> None:
    many = " ".join(f"a{index}='{index}'" for index in range(number))
    text = (
        f"<r><?p {many}?><!-- {many} --><p {many} xmlns:q='u' q:b='&amp;' xml:lang='de' "
        f"xlink:href='é' xmlns:xlink='v'/></r>"
    )
    for node in etree.fromstring(text, parser).iter():
        assert attributes(node) == node.items()
        assert all(type(word) is str for pair in attributes(node) for word in pair)


@pytest.mark.requirement("RSL-3")
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_have_no_limit(end: str) -> None:
    """libxml2 counts to 65,535, and does not count a lone CR."""
    tree = read(f"<a>{end * 70_000}<b{end}c='1'{end}/><d/></a>".encode())
    assert [tree.lines[element] for element in tree.root.iter()] == [1, 70_001, 70_003]


@pytest.mark.requirement("RSL-3")
def test_a_page_of_one_octet_set_has_its_letters() -> None:
    body = '<?xml version="1.0" encoding="iso-8859-1"?>\n<a b="é">ü</a>'.encode("latin-1")
    assert facts_of(body) == [("", "a", 2, {"b": "é"}, "ü")]


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
DTDS = {
    "alone": "<!DOCTYPE a>",
    "laughs": f'<!DOCTYPE a [<!ENTITY a0 "ha">{LAUGHS}]>',
    "blow-up": f'<!DOCTYPE a [<!ENTITY a9 "{"a" * 10_000}">]>',
    "default": '<!DOCTYPE a [<!ATTLIST a b CDATA "&a9;">]>',
    "external": '<!DOCTYPE a SYSTEM "file:///etc/passwd">',
    "external-entity": '<!DOCTYPE a [<!ENTITY a9 SYSTEM "file:///etc/passwd">]>',
    "parameter-entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
    "not-finished": '<!DOCTYPE a [<!ENTITY a0 "ha">',
}


@pytest.mark.requirement("RSL-3", "SEC-1")
@pytest.mark.parametrize("padding", [0, 100, 150_000], ids="padding-{}".format)
@pytest.mark.parametrize("name", DTDS)
def test_a_dtd_refuses_the_document_before_it_is_read(name: str, padding: int) -> None:
    text = f"<!--{' ' * padding}-->\n{DTDS[name]}<a b='&a9;'>{'&a9;' * 1000}</a>"
    for codec in ("utf-8", "utf-8-sig", "utf-16"):
        with pytest.raises(XmlError, match=r"^the document has a DTD$") as raised:
            read(text.encode(codec))
        assert (raised.value.line, raised.value.is_limit) == (2, False), codec


@pytest.mark.requirement("RSL-3", "SEC-1")
@pytest.mark.parametrize("name", one_in(3, DTDS))
def test_nothing_that_reads_a_dtd_sees_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even behind an error that a recovering parser would skip."""
    monkeypatch.setattr("lxml.etree.XMLPullParser", None)
    for before in ("", "<!-- a -- b -->", '<?xml version="2.0"?>', "<?xml?>", "a", "&a;", "</a>"):
        with pytest.raises(XmlError):
            read(f"{before}{DTDS[name]}<a/>".encode())


LIMITS: list[tuple[str, Callable[[int], str], int]] = [
    ("elements", lambda count: f"<r>\n{'<a/>' * (count - 1)}</r>", xml_tree.MAX_ELEMENTS),
    ("depth", lambda count: "<a>\n" + "<a>" * (count - 1) + "</a>" * count, xml_tree.MAX_DEPTH),
    (
        "attributes",
        lambda count: "<r>\n<a" + "".join(f' a{number}="1"' for number in range(count)) + "/></r>",
        xml_tree.MAX_ATTRIBUTES,
    ),
    ("namespace", lambda count: f'<r>\n<a xmlns="{"u" * count}"/></r>', xml_tree.MAX_NAMESPACE),
]


@pytest.mark.requirement("RSL-3", "SEC-1")
@pytest.mark.parametrize(
    ("make", "limit"), [case[1:] for case in LIMITS], ids=[case[0] for case in LIMITS]
)
def test_what_is_one_more_than_the_limit_refuses_the_document(
    make: Callable[[int], str], limit: int
) -> None:
    assert local_name(read(make(limit).encode()).root) in "ra"
    for broken in ("", "<", "&a;"):  # the rest does not matter
        with pytest.raises(XmlError) as raised:
            read((make(limit + 1) + broken).encode())
        assert (raised.value.line, raised.value.is_limit) == (2, True)


@pytest.mark.requirement("RSL-3", "SEC-1")
def test_a_long_namespace_is_not_copied_for_each_element() -> None:
    """20,000 elements would have 5 GB of copies."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(XmlError):
        read(f'<a xmlns="{"u" * 250_000}">{"<b/>" * 19_000}</a>'.encode())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


NO_XML = {
    "nothing": b"",
    "no-element": b"<!-- a -->",
    "text": b"a",
    "unfinished": b"<a><b/>",
    "two-roots": b"<a/><b/>",
    "unbound": b"<x:a/>",
    # lxml forgets an error if a warning follows.
    "unbound-then-warning": b'<x:a><b xmlns="relative"/></x:a>',
    "unbound-attribute": b'<a x:b=""/>',
    "twice": b'<a b="" b=""/>',
    "twice-by-namespace": b'<a xmlns:x="urn:u" xmlns:y="urn:u" x:b="" y:b=""/>',
    "entity": b"<a>&b;</a>",
    "html-entity": b"<a>&nbsp;</a>",
    "character": b"<a>\0</a>",
    "reference": b"<a>&#0;</a>",
    "utf-8": b"<a>\xff</a>",
    "second-dtd": b"<a/><!DOCTYPE a>",
    "behind-a-namespace": b'<a xmlns="a b"/><b/>',
    "utf-7": b'<?xml version="1.0" encoding="utf-7"?><a/>',
    "utf-32": "<a/>".encode("utf-32"),
    "shift-jis": b'<?xml version="1.0" encoding="shift_jis"?><a/>',
    "no-charset": b'<?xml version="1.0" encoding="hex"?><a/>',
}


@pytest.mark.requirement("RSL-3")
@pytest.mark.parametrize("name", one_in(2, NO_XML))
def test_what_is_not_well_formed_is_not_read(name: str) -> None:
    with pytest.raises(XmlError) as raised:
        read(NO_XML[name])
    assert not raised.value.is_limit


@pytest.mark.requirement("RSL-3")
def test_a_namespace_need_be_no_uri() -> None:
    assert [line[:2] for line in facts_of('<a xmlns="é ü" xmlns:b="&lt;"/>'.encode())] == [
        ("é ü", "a")
    ]


@pytest.mark.requirement("RSL-3", "SEC-1")
@given(st.binary(max_size=200))
def test_any_octets_are_read_or_refused(octets: bytes) -> None:
    for body in (octets, b"<a>" + octets + b"</a>", b"<!DOCTYPE a" + octets):
        with suppress(XmlError):
            assert read(body).lines
