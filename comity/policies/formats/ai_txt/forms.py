"""The two written forms of the element-level language: text, and XML.

    to_text(ai_txt)      the text form of rules
    to_xml(ai_txt)       the XML form of rules
    from_xml(body)       the rules of an XML form

By section-4 of the paper, programs enforce the XML form. Its schema is ai_txt.xsd in
comity/policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from comity.policies.answers.decision import Verdict
from comity.policies.answers.element_rule import ElementRule, Guideline, display_names
from comity.policies.formats.ai_txt.reading import (
    MAX_RULES,
    MAX_SIZE,
    SELECTOR,
    Position,
    RuleList,
    Values,
)
from comity.policies.formats.ai_txt.values import AiTxt
from comity.policies.syntax import xml_tree
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.xml_tree import XmlError, XmlTree, local_name, own_text

MAX_XML = 8 * MAX_SIZE  # maximum octets. Escapes and markup make XML longer than text
MAX_XML_ELEMENTS = 8 * MAX_RULES

ROOT = "ai-txt"  # name of the root element
_INDENTATION = "  "

Blocks = Iterator[
    tuple[tuple[str, ...], Iterator[tuple[str, str, Iterator[tuple[str, Iterator[ElementRule]]]]]]
]


def _blocks(rules: Iterable[ElementRule]) -> Blocks:
    """Return the User-agent blocks, with the path blocks, element blocks and rules inside them."""
    for agents, of_agents in groupby(rules, lambda rule: rule.agents):
        yield agents, _path_blocks(of_agents)


def _path_blocks(
    rules: Iterable[ElementRule],
) -> Iterator[tuple[str, str, Iterator[tuple[str, Iterator[ElementRule]]]]]:
    for (path, file_type), of_path in groupby(rules, lambda rule: (rule.path, rule.file_type)):
        yield path, file_type, groupby(of_path, lambda rule: rule.element)


def to_text(ai_txt: AiTxt) -> str:
    """Return the rules as text, or "" if there are none. Parsing the text gives equal rules."""
    lines: list[str] = []
    for agents, paths in _blocks(ai_txt.rules):
        lines += [""] * bool(lines) + [f"User-agent: {' '.join(agents)}"]
        for path, file_type, of_path in paths:
            lines.append(f"{_INDENTATION}Path: {path} {file_type}".rstrip())
            for element, rules in of_path:
                lines.append(f"{_INDENTATION * 2}Element: {element}")
                for rule in rules:
                    keyword = "Disallow" if rule.verdict is Verdict.DENY else "Guide"
                    lines.append(
                        f"{_INDENTATION * 3}{keyword}: {' '.join(display_names(rule.actions))}"
                    )
                    for guideline in rule.guidelines:
                        lines.append(f"{_INDENTATION * 4}Lang: {guideline.lang}")
                        lines.append(f"{_INDENTATION * 4}Guideline: {guideline.text}")
    return "".join(f"{line}\n" for line in lines)


def to_xml(ai_txt: AiTxt) -> bytes:
    """Return the rules as an XML document in UTF-8."""
    root = ET.Element(ROOT)
    for agents, paths in _blocks(ai_txt.rules):
        block = ET.SubElement(root, "user-agent", {"names": " ".join(agents)})
        for path, file_type, of_path in paths:
            typed = {"file-type": file_type} if file_type else {}
            path_block = ET.SubElement(block, "path", {"value": path} | typed)
            for element, rules in of_path:
                element_block = ET.SubElement(path_block, "element", {"name": element})
                for rule in rules:
                    name = "disallow" if rule.verdict is Verdict.DENY else "guide"
                    action_block = ET.SubElement(
                        element_block, name, {"actions": " ".join(display_names(rule.actions))}
                    )
                    for guideline in rule.guidelines:
                        ET.SubElement(
                            action_block, "guideline", {"lang": guideline.lang}
                        ).text = guideline.text
    ET.indent(root, _INDENTATION)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def from_xml(body: bytes, *, url: str = "") -> AiTxt:
    """Return the rules of an XML document, with the line numbers of the document. Never raises.

    If the document is not an ai.txt in XML, there are no rules. Attributes are read in the same way
    as values of lines. Unknown elements are ignored.
    """
    findings = Findings(url)
    try:
        tree = xml_tree.read(body, max_bytes=MAX_XML, max_elements=MAX_XML_ELEMENTS)
    except XmlError as error:
        findings.report("ait.format", "{}", str(error).encode(), line=error.line)
        return AiTxt(rules=(), findings=tuple(findings))
    root = tree.root
    if (name := local_name(root)) != ROOT:
        findings.report(
            "ait.format",
            f"The root is `{{}}`. Write `{ROOT}`.",
            name.encode(),
            line=tree.lines[root],
        )
        return AiTxt(rules=(), findings=tuple(findings))
    rules = RuleList(findings)
    _XmlReader(findings, tree).read(rules)
    return AiTxt(rules=rules.close(), findings=tuple(findings))


class _XmlReader:
    """Reads the rules of an XML document."""

    def __init__(self, findings: Findings, tree: XmlTree) -> None:
        self._findings = findings
        self._root, self._lines = tree
        self._values = Values(findings)

    def read(self, rules: RuleList) -> None:
        for block in self._children(self._root, "user-agent"):
            agents = self._values.agents(_attribute(block, "names"), Position(self._lines[block]))
            for path_block in self._children(block, "path") if agents else ():
                position = Position(self._lines[path_block])
                path = self._values.path(_attribute(path_block, "value"), position)
                file_type = self._values.file_type(_attribute(path_block, "file-type"), position)
                for element_block in self._children(path_block, "element") if path else ():
                    position = Position(self._lines[element_block])
                    element = self._values.element(
                        _attribute(element_block, "name"), position, {file_type}
                    )
                    for rule in self._rules(element_block, agents, path, file_type, element):
                        rules.add((rule,))

    def _rules(
        self, parent: Any, agents: tuple[str, ...], path: str, file_type: str, element: str
    ) -> Iterator[ElementRule]:
        for block in self._children(parent, "disallow", "guide"):
            is_guide = local_name(block) == "guide"
            position = Position(self._lines[block])
            actions = self._values.actions(
                _attribute(block, "actions"), position, are_prohibited=not is_guide
            )
            if actions:
                yield ElementRule(
                    agents=agents,
                    path=path,
                    file_type=file_type,
                    element=element,
                    verdict=None if is_guide else Verdict.DENY,
                    actions=actions,
                    guidelines=tuple(self._guidelines(block)) if is_guide else (),
                    line=self._lines[block],
                    finding=SELECTOR,
                )

    def _guidelines(self, guide: Any) -> Iterator[Guideline]:
        for guideline in self._children(guide, "guideline"):
            line = self._lines[guideline]
            if text := self._values.guideline(_strip(own_text(guideline)), Position(line)):
                yield Guideline(
                    self._values.lang(_attribute(guideline, "lang"), Position(line)), text, line
                )

    def _children(self, element: Any, *names: str) -> Iterator[Any]:
        for child in element:
            if (name := local_name(child)) in names:
                yield child
            else:
                self._findings.report(
                    "ait.keyword",
                    "There is no element `{}` here.",
                    name.encode(),
                    line=self._lines[child],
                )


def _attribute(element: Any, name: str) -> bytes:
    return _strip(element.get(name, ""))


def _strip(text: str) -> bytes:
    return text.strip(" \t\r\n").encode()
