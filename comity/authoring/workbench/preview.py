"""Show a sample page as harmless HTML, with outlines around the elements that rules cover.

The HTML is written anew, from the tree that the rules see. It has no scripts, styles or addresses
of the page, and only the elements of ALLOWED and a few attributes, so the page can run, load and
hide nothing. In addition, the HTML has a Content-Security-Policy, and the workbench shows it in a
sandboxed frame: the browser would refuse scripts and loads, too."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple

from lxml import etree  # type: ignore[import-untyped]  # it ships no types

from comity.policies import Fetched, Page, Reason
from comity.policies.answers.element_rule import ACTION_SPELLINGS, display_names, of_action
from comity.policies.document.document import Content
from comity.policies.elements.coverage import refused_for
from comity.policies.elements.rules import Element
from comity.policies.syntax.printable import printable, unhidden
from comity.policies.syntax.xml_tree import attributes

MAX_NODES = 20_000  # the maximum number of elements of a page; further elements are left out
MAX_TEXT = 256 * 1024  # the maximum characters of JSON and XML; the rest is left out

POLICY = "default-src 'none'; style-src 'unsafe-inline'"

# Elements that keep their name, because they only affect layout. Others become a `div` or a `span`.
_ALLOWED = """
    main header footer nav section article aside h1 h2 h3 h4 h5 h6 hgroup address p hr pre
    blockquote ol ul menu li dl dt dd figure figcaption div a em strong small s cite q dfn abbr
    ruby rt rp data time code var samp kbd sub sup i b u mark bdi bdo span br wbr ins del table
    caption colgroup col tbody thead tfoot tr td th"""
ALLOWED = frozenset(_ALLOWED.split())
_HTML_BLOCKS = (
    "html body form fieldset details summary dialog center template noscript search legend"
)
_LOADING = (
    "head script style iframe frame frameset noframes object embed applet base link meta title "
    "param source track"
)
_BLOCKS = frozenset(_HTML_BLOCKS.split())
_DROPPED = frozenset(_LOADING.split())
_KEPT_ATTRIBUTES = frozenset(("lang", "dir", "colspan", "rowspan", "start", "span"))
_EMPTY = frozenset(("hr", "br", "wbr", "col"))

_STYLE = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { margin: .75rem; overflow-wrap: anywhere; }
[data-part] { outline: 3px solid; outline-offset: 1px; }
[data-part=deny] {
  outline-color: light-dark(#b00020, #ff8a9b); background: light-dark(#fde7ea, #4a1620);
}
[data-part=guide] { outline-style: dashed; outline-color: light-dark(#0a4fa3, #8cbcff); }
[data-part]::before {
  content: attr(data-label); display: block; font: bold .75rem/1.4 system-ui, sans-serif;
}
.replaced { border: 1px dotted; padding: 0 .25rem; }
"""


class PreviewPart(NamedTuple):
    """An element of rules, and their verdict on an action.

    Attributes:
        selector: The selector, in printable characters.
        verdict: "deny", "guide", or "" if no rule is about the action.
        denied: The refused actions, by their display names.
        guided: The actions with instructions, by their display names.
        guidelines: The instructions for the action.
        covered: The number of elements in the page. 0 if the rules cover the whole document.
        is_whole: True if the rules cover the whole document.
        reasons: The lines that decide.
    """

    selector: str
    verdict: str
    denied: tuple[str, ...]
    guided: tuple[str, ...]
    guidelines: tuple[str, ...]
    covered: int
    is_whole: bool
    reasons: tuple[Reason, ...]


class Preview(NamedTuple):
    """A sample page, and the elements that rules cover.

    Attributes:
        html: A document for a sandboxed frame.
        parts: The elements of rules.
        note: The reason why the page is incomplete, or "".
    """

    html: str
    parts: tuple[PreviewPart, ...]
    note: str


def preview_of(page: Page, fetched: Fetched, action: str) -> Preview:
    """Return the preview of a page for an action.

    `action`: the name of the action, such as "Train", in upper or lower case."""
    use = ACTION_SPELLINGS.get(action.lower(), action.lower())
    parts = tuple(_part(page, element, use) for element in page.elements)
    content = Content(fetched.headers, fetched.body)
    if content.kind != "html":
        text = (content.text or fetched.body.decode("utf-8", "replace"))[:MAX_TEXT]
        return Preview(
            _document(f"<pre>{_visible(text)}</pre>"),
            parts,
            "Parts of JSON and XML are listed, and not outlined.",
        )
    marks: dict[Any, tuple[str, str]] = {}
    for element, part in zip(page.elements, parts, strict=True):
        for node in element.nodes if part.verdict else ():
            if marks.get(node, ("",))[0] != "deny":
                marks[node] = part.verdict, _label(part, action)
    root = next(
        (node.getroottree().getroot() for element in page.elements for node in element.nodes),
        content.markup.root,
    )
    writer = _Writer(marks)
    whole_part = next((part for part in parts if part.is_whole and part.verdict), None)
    body = writer.html(root)
    if whole_part:
        label = _visible(_label(whole_part, action))
        body = f'<div data-part="{whole_part.verdict}" data-label="{label}">{body}</div>'
    return Preview(
        _document(body),
        parts,
        "" if writer.is_complete else f"Only the first {MAX_NODES} elements are shown.",
    )


def _part(page: Page, element: Element, use: str) -> PreviewPart:
    uses = page.refusable((use,))
    is_refused = any(refused_for(rule, uses, page.agent.vocabulary) for rule in element.rules)
    guiding = () if is_refused else of_action(element.guides, use)
    return PreviewPart(
        printable(element.selector),
        "deny" if is_refused else "guide" if guiding else "",
        tuple(map(printable, display_names(element.deny))),
        tuple(
            map(
                printable,
                display_names({action for rule in element.guides for action in rule.actions}),
            )
        ),
        tuple(printable(guideline.text) for rule in guiding for guideline in rule.guidelines),
        len(element.nodes),
        element.is_whole,
        element.reasons,
    )


def _label(part: PreviewPart, action: str) -> str:
    return f"{'No ' if part.verdict == 'deny' else 'Guide: '}{action} ({part.selector})"


def _document(body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>Sample page</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>"
    )


def _visible(text: str) -> str:
    return escape(unhidden(text))


class _Writer:
    """Write a tree as harmless HTML, without recursion, because pages may nest without limit."""

    def __init__(self, marks: dict[Any, tuple[str, str]]) -> None:
        self._marks = marks
        self.is_complete = True

    def html(self, root: Any) -> str:
        pieces: list[str] = []
        count = 0
        stack: list[Any] = [root]  # nodes and texts to write, the next one last
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                pieces.append(node)
                continue
            tail = _visible(node.tail) if node.tail and node is not root else ""
            count += 1
            # The tags of comments and processing instructions are no strings.
            if not isinstance(node.tag, str) or _local(node) in _DROPPED:
                pieces.append(tail)
                continue
            if count > MAX_NODES:
                self.is_complete = False
                break
            start, end = self._tags(node)
            pieces.append(start + (_visible(node.text) if node.text else ""))
            stack.append(end + tail)
            stack.extend(reversed(node))
        pieces.extend(piece for piece in reversed(stack) if isinstance(piece, str))
        return "".join(pieces)

    def _tags(self, node: Any) -> tuple[str, str]:
        tag = _local(node)
        name = tag if tag in ALLOWED else "div" if tag in _BLOCKS else "span"
        attribute_pairs = [
            (key, value) for key, value in attributes(node) if key in _KEPT_ATTRIBUTES
        ]
        replacement = _replacement(node, tag)
        if node in self._marks:
            verdict, label = self._marks[node]
            attribute_pairs += [("data-part", verdict), ("data-label", label)]
        if replacement:
            attribute_pairs.append(("class", "replaced"))
        attribute_text = "".join(f' {key}="{_visible(value)}"' for key, value in attribute_pairs)
        if name in _EMPTY:
            return f"<{name}{attribute_text}>", ""
        return f"<{name}{attribute_text}>{_visible(replacement)}", f"</{name}>"


def _replacement(node: Any, tag: str) -> str:
    """Return the text to show for an element that is a control or would load something.

    "" for all other elements."""
    if tag == "img":
        return f"Image: {node.get('alt') or 'no text'}"
    if tag in ("video", "audio", "picture", "canvas", "svg"):
        return tag.capitalize()
    if tag == "input":
        return (
            f"Field: {node.get('value') or node.get('placeholder') or node.get('type') or 'text'}"
        )
    return ""


def _local(node: Any) -> str:
    return str(etree.QName(node).localname).lower()


def reasons_of(parts: Iterable[PreviewPart]) -> tuple[Reason, ...]:
    """Return the reasons of all parts with a verdict on the action, each once."""
    return tuple(dict.fromkeys(reason for part in parts if part.verdict for reason in part.reasons))
