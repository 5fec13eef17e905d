"""The text and the XML form of ai.txt: reading either returns the written rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it ships no types

import comity.policies
from comity.policies.formats.ai_txt import AiTxt, from_xml, parse, to_text, to_xml
from tests.selection import one_in

TEXT = """\
User-agent: GPTBot ClaudeBot
  Path: /blog/ html
    Element: p > a[title="a & b"]
      Disallow: Summarize Train
      Guide: Cite
        Lang: en-US
        Guideline: Name <the> author & "the" site.
        Lang: de
        Guideline: Nenne\tden Autor.
    Element: *
      Disallow: *
  Path: /api json
    Element: user.email
      Disallow: Crop

User-agent: *
  Path: /a%20b
    Element: *
      Guide: Clip
"""
XML = """\
<?xml version='1.0' encoding='utf-8'?>
<ai-txt>
  <user-agent names="GPTBot ClaudeBot">
    <path value="/blog/" file-type="html">
      <element name="p &gt; a[title=&quot;a &amp; b&quot;]">
        <disallow actions="Summarize Train" />
        <guide actions="Cite">
          <guideline lang="en-US">Name &lt;the&gt; author &amp; "the" site.</guideline>
          <guideline lang="de">Nenne\tden Autor.</guideline>
        </guide>
      </element>
      <element name="*">
        <disallow actions="*" />
      </element>
    </path>
    <path value="/api" file-type="json">
      <element name="user.email">
        <disallow actions="Crop" />
      </element>
    </path>
  </user-agent>
  <user-agent names="*">
    <path value="/a%20b">
      <element name="*">
        <guide actions="Clip" />
      </element>
    </path>
  </user-agent>
</ai-txt>
"""


def schema() -> Any:
    return etree.XMLSchema(etree.parse(Path(comity.policies.__file__).parent / "ai_txt.xsd"))


@pytest.mark.requirement("AIT-10", "AIT-12")
def test_the_two_forms_of_one_file() -> None:
    read = parse(TEXT.encode())
    assert to_text(read) == TEXT
    assert to_xml(read).decode() == XML
    back = from_xml(XML.encode())
    assert back.rules == read.rules
    assert [rule.line for rule in back.rules] == [6, 7, 13, 18, 25]
    assert back.rules[1].guidelines[1].line == 9
    assert [(finding.rule, finding.line, finding.column) for finding in back.findings] == [
        ("ait.action", 18, 0),
        ("ait.file-type", 23, 0),
    ]
    assert to_text(back) == TEXT
    assert schema().validate(etree.fromstring(XML.encode()))


@pytest.mark.requirement("AIT-10")
@pytest.mark.parametrize(
    "text", ["\u00a0a\u00a0", "a\u2028b\u0085", "a]]>&amp;", "\ufeffa", "a \t b"]
)
def test_texts_stay_as_they_are(text: str) -> None:
    element = text.strip("\u00a0\ufeff")  # trailing white space is not read
    body = (
        f"User-agent: *\n  Path: / html\n    Element: {element}\n      Guide: Cite\n"
        f"        Lang: en\n        Guideline: {text}\n"
    )
    read = parse(body.encode())
    assert (read.rules[0].element, read.rules[0].guidelines[0].text) == (element, text)
    assert from_xml(to_xml(read)).rules == read.rules
    assert to_text(read) == body


@pytest.mark.requirement("AIT-10")
def test_no_rules_in_both_forms() -> None:
    nothing = AiTxt(rules=())
    assert to_text(nothing) == ""
    assert from_xml(to_xml(nothing)) == nothing
    assert schema().validate(etree.fromstring(to_xml(nothing)))


@pytest.mark.requirement("AIT-12")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('names="*"', ""),
        ('names="*"', 'names=""'),
        ('names="*"', 'names="a b/1"'),
        ('value="/api"', 'value="api"'),
        ('value="/api"', 'value="/a b"'),
        ('file-type="json"', 'file-type="pdf"'),
        ('<element name="*">', "<element>"),
        ('<disallow actions="*" />', "<disallow />"),
        ('<disallow actions="*" />', '<disallow actions="" />'),
        ('<disallow actions="*" />', '<allow actions="*" />'),
        (
            '<disallow actions="*" />',
            '<disallow actions="*"><guideline lang="en">x</guideline></disallow>',
        ),
        ('<disallow actions="*" />', ""),
        ('lang="de"', ""),
        ('lang="de"', 'lang="d e"'),
        ("ai-txt", "rules"),
    ],
)
def test_what_the_schema_refuses(before: str, after: str) -> None:
    assert before in XML
    assert not schema().validate(etree.fromstring(XML.replace(before, after).encode()))


READ_ANYWAY = [
    ('names="*"', "", 4, ["ait.action 18", "ait.agent 22"]),
    ('value="/api"', "", 4, ["ait.path 16", "ait.file-type 23"]),
    ('value="/api"', 'value="api/"', 5, ["ait.path 16", "ait.action 18", "ait.file-type 23"]),
    (
        'file-type="json"',
        'file-type="pdf"',
        5,
        ["ait.file-type 16", "ait.action 18", "ait.file-type 23"],
    ),
    (
        '<disallow actions="*" />',
        '<allow actions="*" />',
        4,
        ["ait.keyword 13", "ait.action 18", "ait.file-type 23"],
    ),
    (
        '<disallow actions="*" />',
        "<disallow/>",
        4,
        ["ait.empty 13", "ait.action 18", "ait.file-type 23"],
    ),
    ("Nenne\tden Autor.", " ", 5, ["ait.empty 9", "ait.action 18", "ait.file-type 23"]),
    ('lang="de"', 'lang="!"', 5, ["ait.language 9", "ait.action 18", "ait.file-type 23"]),
    (
        "<ai-txt>",
        '<ai-txt version="2"><meta/>',
        5,
        ["ait.keyword 2", "ait.action 18", "ait.file-type 23"],
    ),
]


@pytest.mark.requirement("AIT-10", "AIT-14")
@pytest.mark.parametrize(("before", "after", "rules", "findings"), one_in(2, READ_ANYWAY))
def test_xml_that_is_not_valid_is_read_as_far_as_it_goes(
    before: str, after: str, rules: int, findings: list[str]
) -> None:
    read = from_xml(XML.replace(before, after, 1).encode())
    assert len(read.rules) == rules
    assert sorted(f"{one.rule} {one.line}" for one in read.findings) == sorted(findings)


@pytest.mark.requirement("AIT-13")
def test_an_element_without_a_name_is_the_whole_document() -> None:
    read = from_xml(XML.replace('name="user.email"', "").encode())
    assert (read.rules[3].element, read.findings[0].rule) == ("*", "ait.empty")


@pytest.mark.requirement("AIT-10", "SEC-1")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"User-agent: *\n",
        b"<ai-txt>",
        b"<rules/>",
        b"<!DOCTYPE ai-txt [<!ENTITY a 'b'>]><ai-txt>&a;</ai-txt>",
        b"<?xml version='1.0' encoding='x'?><ai-txt/>",
        b"<a>" * 100,
    ],
)
def test_what_is_no_such_document_has_no_rules(body: bytes) -> None:
    read = from_xml(body, url="u")
    assert read.rules == ()
    assert [(finding.rule, finding.url) for finding in read.findings] == [("ait.format", "u")]
