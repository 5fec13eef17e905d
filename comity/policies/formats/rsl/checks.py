"""Checks of RSL beyond its syntax: licenses without effect, and contradictions.

    check_rsl(body, url)            a document: the findings of reading it, and other mistakes
    check_site(files)               the documents of a site, and the lines that name them
    check_document(content, url)    the links of a page

The time is linear in the octets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from comity.policies.answers.decision import Finding
from comity.policies.document.document import Content
from comity.policies.formats.authoring import Remarks, literal
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.robots.file import lines_of, robots_of
from comity.policies.formats.rsl.grammar import GENERAL, NAMESPACE, PROHIBITED, VOCABULARY, host_of
from comity.policies.formats.rsl.licensing import read
from comity.policies.formats.rsl.references import MEDIA_TYPE, is_address
from comity.policies.syntax import xml_tree
from comity.policies.syntax.lines import line_ends
from comity.policies.syntax.suspicions import nearest, oddity
from comity.policies.syntax.xml_tree import (
    XmlError,
    XmlTree,
    local_name,
    namespace,
    own_text,
    root_name,
)

# The codes of ISO 3166 and ISO 4217 have these forms. The codes themselves change.
_PLACE = re.compile(r"[A-Za-z]{2}(?:-[A-Za-z0-9]{1,3})?")
_CURRENCY = re.compile(r"[A-Za-z]{3}")
_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_NAMES = frozenset(VOCABULARY) | VOCABULARY["content"][0] | VOCABULARY["license"][0]


def check_rsl(body: bytes, url: str) -> tuple[Finding, ...]:
    """Return the findings of checking an RSL document, and those of reading it."""
    document = read(body, url)
    return (*document.findings, *_check(body, url)) if document.is_valid else document.findings


def check_site(files: SiteFiles) -> tuple[Finding, ...]:
    """Return findings about a site's RSL documents, and the lines of robots.txt that name them.

    Documents that were not fetched are not checked.
    """
    remarks = Remarks(robots_of(files).url)
    for line in () if robots_of(files).is_marked_up else lines_of(files):
        if line.name == "license":
            address = line.value.decode("utf-8", "replace")
            if is_address(address) and len(address.split()) > 1:
                message = (
                    "There is text after the address, so the line licenses nothing. Write "
                    "the address only."
                )
                remarks.report("rsl.reference", message, line=line.line)
            elif is_address(address) and "://" not in address:
                message = (
                    "The address is not absolute, so other readers may ignore it. Write it "
                    "with https:// and the host."
                )
                remarks.report("rsl.reference", message, line=line.line)
    findings = [*remarks.findings]
    for url, fetched in files.fetched.items():
        if (
            root_name(fetched.body) == "rsl"
            and files.file(url)
            and read(fetched.body, url).is_valid
        ):
            findings += _check(fetched.body, url)
    return tuple(findings)


def check_document(content: Content, url: str) -> tuple[Finding, ...]:
    """Return findings about the links of a page."""
    remarks = Remarks(url)
    if content.is_markup and content.mentions(b"application/rsl"):
        for tag in content.markup.tags("link"):
            relations = tag.attributes.get("rel", "").lower().split()
            if (
                tag.attributes.get("type", "").partition(";")[0].strip().lower() == MEDIA_TYPE
                and "license" not in relations
            ):
                message = (
                    "This link to an RSL document has no relation, so no reader follows it. "
                    'Write `rel="license"`.'
                )
                remarks.report("rsl.reference", message, line=tag.line)
    return remarks.findings


def _check(body: bytes, url: str) -> tuple[Finding, ...]:
    text = body.lstrip(b" \t\r\n")  # as licensing reads it
    try:
        tree = xml_tree.read(text)
    except XmlError:
        return ()
    remarks = Remarks(url)
    _Checker(remarks, tree, line_ends(body, 0, len(body) - len(text))).check()
    return remarks.findings


class _Checker:
    """Checks one document."""

    def __init__(self, remarks: Remarks, tree: XmlTree, before: int) -> None:
        """Store the document. `before` is the number of empty lines before it in the file."""
        self._remarks = remarks
        self._root, self._lines = tree
        self._before = before

    def _report(self, rule: str, message: str, element: Any, *quoted: str) -> None:
        line = self._lines[element] + self._before
        self._remarks.report(
            rule, message, *(text[:1000].encode("utf-8", "replace") for text in quoted), line=line
        )

    def check(self) -> None:
        if namespace(self._root) == NAMESPACE:
            for element in self._root.iter("*"):
                if (
                    namespace(element) != NAMESPACE
                    and local_name(element) in _NAMES
                    and self._is_within(element)
                ):
                    message = (
                        f"`{{}}` is in another namespace, so it is ignored. Put it into "
                        f"`{NAMESPACE}`."
                    )
                    self._report("rsl.namespace", message, element, local_name(element))
        contents = list(self._children(self._root, "content"))
        by_url: dict[str, Any] = {}
        for content in contents:
            self._check_content(content)
            address = content.get("url", "").strip()
            first = by_url.setdefault(address, content)
            if first is not content:
                line = self._lines[first] + self._before
                message = (
                    f"The content in line {line} has the same url. Both apply, and a "
                    "refusal by either refuses."
                )
                self._report("rsl.repeated", message, content)
        self._check_hosts(contents)

    def _is_within(self, element: Any) -> bool:
        """Return True if the element is a child of an element of RSL."""
        parent = element.getparent()
        return parent is not None and namespace(parent) == NAMESPACE

    def _children(self, element: Any, *names: str) -> Iterator[Any]:
        return (
            child
            for child in element
            if namespace(child) == namespace(self._root) and local_name(child) in names
        )

    def _check_hosts(self, contents: list[Any]) -> None:
        hosts = [host_of(content.get("url", "").strip()) for content in contents]
        first = next(filter(None, hosts), "")
        for content, host in zip(contents, hosts, strict=True):
            if host and host != first:
                message = (
                    "The url is at another host than {}, so this content does not apply to "
                    "that host."
                )
                self._report("rsl.other-host", message, content, first)

    def _check_content(self, content: Any) -> None:
        address = content.get("url", "").strip()
        if odd := oddity(address.encode("utf-8", "replace")):
            self._report(
                "rsl.pattern",
                f"The url `{{}}` probably matches nothing. {literal(odd)}",
                content,
                address,
            )
        if content.get("server", "").strip():
            message = (
                "The license must be requested from the server. Crawlers that do not "
                "request it have no license."
            )
            self._report("rsl.server", message, content)
        for license_ in self._children(content, "license"):
            self._check_license(license_)

    def _check_license(self, license_: Any) -> None:
        permitted: set[str] = set()
        for permits in self._children(license_, "permits"):
            if permits.get("type", "").strip().lower() == "usage":
                permitted.update(words := own_text(permits).replace(",", " ").split())
                self._check_words(permits, words)
        if not permitted:
            message = (
                "The license permits no usage. Name usages, such as `<permits "
                'type="usage">search</permits>`.'
            )
            prohibits = next(self._children(license_, "prohibits", "prohibit"), None)
            if prohibits is None:
                self._report("rsl.no-permits", message, license_)
        for prohibits in self._children(license_, "prohibits", "prohibit"):
            words = own_text(prohibits).replace(",", " ").split()
            for word in words if prohibits.get("type", "usage").strip().lower() == "usage" else ():
                if word in permitted and word in GENERAL:
                    message = (
                        "The license both permits and prohibits `{}`, so it is not "
                        "licensed. Delete one of the two."
                    )
                    self._report("rsl.contradiction", message, prohibits, word)

        for party in self._children(license_, "permits", "prohibits", "prohibit"):
            if party.get("type", "").strip().lower() == "geo":
                self._check_places(party)
        for payment in self._children(license_, "payment"):
            for amount in self._children(payment, "amount"):
                self._check_amount(amount)

    def _check_places(self, party: Any) -> None:
        for word in own_text(party).replace(",", " ").split():
            if word.lower() != "all" and not _PLACE.fullmatch(word):
                message = "`{}` is not the code of a country. Write its two letters, as in `DE`."
                self._report("rsl.value", message, party, word)

    def _check_amount(self, amount: Any) -> None:
        """Check a price and its currency (section-3.10)."""
        text, currency = own_text(amount).strip(), amount.get("currency", "").strip()
        if not _AMOUNT.fullmatch(text):
            point = text.replace(",", ".")
            advice = f"Write `{point}`" if _AMOUNT.fullmatch(point) else "Write digits and a point"
            self._report("rsl.value", f"`{{}}` is not an amount. {literal(advice)}.", amount, text)
        if not _CURRENCY.fullmatch(currency):
            message = "`{}` is not the code of a currency. Write its three letters, as in `EUR`."
            self._report("rsl.value", message, amount, currency)

    def _check_words(self, permits: Any, words: list[str]) -> None:
        for word in dict.fromkeys(words):
            if word not in GENERAL and (
                near := PROHIBITED.get(word.lower()) or nearest(word, GENERAL)
            ):
                self._report("rsl.usage", f"`{{}}` permits nothing. Write `{near}`.", permits, word)
