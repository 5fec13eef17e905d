"""The parser of tinyhtml5, with the rules of today's HTML Standard.

tinyhtml5 2.1 has the rules of about 2016: it knows neither `template` nor the content of `select`.
Here each phase (an insertion mode of section-13.2.6) has the rules that differ. A `template` is
parsed as a fragment of its own: its start puts a new stack of open elements in place of the old
one, and its end puts the old one back (`Parser.enter_template`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tinyhtml5 import parser as tiny
from tinyhtml5.constants import (
    Token,
    adjust_svg_attributes,
    ascii_upper_to_lower,
    html_integration_point_elements,
    mathml_text_integration_point_elements,
    namespaces,
    space_characters,
    special_elements,
    table_insert_mode_elements,
)
from tinyhtml5.parser import implied_tag_token
from tinyhtml5.treebuilder import Marker

from comity.policies.document.html.tinyhtml5_nodes import HTML, Builder, Node
from comity.policies.document.html.tinyhtml5_tokens import Tokenizer

AnyToken = dict[str, Any]
Handler = Callable[[Any, AnyToken], AnyToken | None]
Process = Callable[[AnyToken], AnyToken | None]

SVG: str = namespaces["svg"]
MATHML: str = namespaces["mathml"]

_SPECIAL = (
    special_elements
    | {(HTML, name) for name in ("keygen", "main", "search", "source", "summary", "template")}
    | {(HTML, "track"), (SVG, "desc"), (SVG, "title")}
) - {(HTML, "command"), (HTML, "isindex"), (HTML, "image")}
_SVG_ATTRIBUTES = {
    name: written
    for name, written in adjust_svg_attributes.items()
    if name
    not in ("contentscripttype", "contentstyletype", "externalresourcesrequired", "filterres")
}
_IN_TEMPLATE_TABLES = {
    **dict.fromkeys(("caption", "colgroup", "tbody", "tfoot", "thead"), "in table"),
    "col": "in column group",
    "tr": "in table body",
    **dict.fromkeys(("td", "th"), "in row"),
}
_MODES = {
    **dict.fromkeys(("td", "th"), "in cell"),
    "tr": "in row",
    **dict.fromkeys(("tbody", "thead", "tfoot"), "in table body"),
    "caption": "in caption",
    "colgroup": "in column group",
    "table": "in table",
    "head": "in head",
    "body": "in body",
    "frameset": "in frameset",
}
# Nodes in which the text of a table waits for its end. `html` is the start of a template.
_TABLES = table_insert_mode_elements | {"html"}


class Parser(tiny.HTMLParser):
    """The parser of one text. `fragment`: it is the content of an element of this name."""

    def __init__(self, text: str, fragment: str = "") -> None:
        self.tree = Builder(namespace_html_elements=True)
        self.phases = {name: phase(self, self.tree) for name, phase in _PHASES.items()}
        self.tokenizer = Tokenizer(text, self)
        self.container = fragment
        self.scripting = not fragment
        self.compatibility_mode = "no quirks"
        self.first_start_tag = False
        self.frameset_ok = True
        self.original_phase: Any = None
        self.template_mode = "in template"
        self._outside: list[tuple[Any, ...]] = []  # what `enter_template` put aside
        if fragment:
            self.tree.insert_root(implied_tag_token("html", "START_TAG"))
        self.phase = self.phases["in body" if fragment else "initial"]

    def read(self) -> Node:
        """Return the document, or the `html` around the fragment.

        UnreadError: the text costs too much."""
        for token in self.tokenizer:
            pending = token
            while pending is not None:
                pending = _STEPS[pending["type"]](self._phase_for(pending), pending)
        while True:
            while self.phase.process_eof():
                pass
            if not self._outside:
                break
            self.leave_template()
        document: Node = self.tree.document
        return document

    def _phase_for(self, token: AnyToken) -> Any:
        """Return the phase for a token (section-13.2.6)."""
        stack = self.tree.open_elements
        if not stack or stack[-1].namespace == HTML:
            return self.phase
        node, kind, name = stack[-1], token["type"], token.get("name")
        is_start = kind is Token.START_TAG
        if is_start or kind is Token.CHARACTERS or kind is Token.SPACE_CHARACTERS:
            if self.is_html_integration_point(node):
                return self.phase
            if self.is_mathml_text_integration_point(node) and (
                not is_start or name not in ("mglyph", "malignmark")
            ):
                return self.phase
            if is_start and name == "svg" and node.name_tuple == (MATHML, "annotation-xml"):
                return self.phase
        return self.phases["in foreign content"]

    def parse_error(self, errorcode: str, datavars: object = None) -> None:
        """Do nothing: errors of a page are of no interest here."""

    def is_html_integration_point(self, node: Node) -> bool:
        if node.name_tuple == (MATHML, "annotation-xml"):
            encoding = node.attributes.get("encoding", "").translate(ascii_upper_to_lower)
            return encoding in ("text/html", "application/xhtml+xml")
        return node.name_tuple in html_integration_point_elements

    def is_mathml_text_integration_point(self, node: Node) -> bool:
        return node.name_tuple in mathml_text_integration_point_elements

    def adjust_svg_attributes(self, token: AnyToken) -> None:
        tiny.adjust_attributes(token, _SVG_ATTRIBUTES)

    def reset_insertion_mode(self) -> None:
        stack = self.tree.open_elements
        for node in reversed(stack[1:]):
            if node.name in _MODES:
                self.phase = self.phases[_MODES[node.name]]
                return
        if self._outside:
            mode = self.template_mode
        else:
            mode = "in body" if self.container or not self.tree.head_element else "after head"
        self.phase = self.phases[mode]

    @property
    def is_in_template(self) -> bool:
        return bool(self._outside)

    def enter_template(self, token: AnyToken) -> None:
        """Insert a `template`, and go on in its content (section-13.2.6.4.4)."""
        tree = self.tree
        template = tree.insert_element(token)
        tree.open_elements.pop()
        self._outside.append(
            (
                *(template, tree.open_elements, tree.active_formatting_elements),
                *(self.container, self.phase, self.template_mode),
            )
        )
        self.frameset_ok = False
        self.container = "template"
        tree.open_elements = [Node("html")]
        tree.active_formatting_elements = type(tree.active_formatting_elements)()
        self.template_mode = "in template"
        self.phase = self.phases["in template"]

    def leave_template(self) -> None:
        """End the innermost `template`, if there is one."""
        tree = self.tree
        if not self._outside:
            return
        content, active = tree.open_elements[0], [*tree.active_formatting_elements]
        template, tree.open_elements, tree.active_formatting_elements, *rest = self._outside.pop()
        self.container, self.phase, self.template_mode = rest
        content.move_children(template)
        if Marker in active:
            # "Clear the list of active formatting elements up to the last marker": that of an
            # open cell or caption. The marker of the template, and all before, are left.
            last = len(active) - 1 - active[::-1].index(Marker)
            list.extend(tree.active_formatting_elements, (Marker, *active[:last]))


def _in_head(phase: Any, token: AnyToken) -> AnyToken | None:
    tag: AnyToken | None = phase.parser.phases["in head"].process_start_tag(token)
    return tag


def _template_end(phase: Any, token: AnyToken) -> None:
    phase.parser.leave_template()


def _without(handlers: dict[str, Handler], *names: str) -> dict[str, Handler]:
    return {name: handler for name, handler in handlers.items() if name not in names}


def _insert_spaces(phase: Any, token: AnyToken) -> None:
    """Insert the white space of a text, and leave out the rest."""
    if spaces := "".join(filter(space_characters.__contains__, token["data"])):
        phase.tree.insert_text(spaces)


_TEMPLATE: dict[str, Handler] = {"template": _in_head}
_TEMPLATE_END: dict[str, Handler] = {"template": _template_end}


class InHead(tiny.InHeadPhase):
    def start_tag_template(self, token: AnyToken) -> None:
        self.parser.enter_template(token)

    start_tag_handler = _without(tiny.InHeadPhase.start_tag_handler, "command") | {
        "template": start_tag_template
    }
    end_tag_handler = tiny.InHeadPhase.end_tag_handler | _TEMPLATE_END


class AfterHead(tiny.AfterHeadPhase):
    def start_tag_template(self, token: AnyToken) -> None:
        stack, head = self.tree.open_elements, self.tree.head_element
        stack.append(head)
        self.parser.enter_template(token)
        stack.remove(head)

    start_tag_handler = tiny.AfterHeadPhase.start_tag_handler | {"template": start_tag_template}
    end_tag_handler = tiny.AfterHeadPhase.end_tag_handler | _TEMPLATE_END


class InTemplate(tiny.Phase):
    """Section-13.2.6.4.18."""

    def process_characters(self, token: AnyToken) -> Any:
        return self.parser.phases["in body"].process_characters(token)

    def process_space_characters(self, token: AnyToken) -> Any:
        return self.parser.phases["in body"].process_space_characters(token)

    def process_eof(self) -> None:
        """Do nothing: `Parser.read` ends the template."""

    def start_tag_other(self, token: AnyToken) -> AnyToken:
        self.parser.template_mode = _IN_TEMPLATE_TABLES.get(token["name"], "in body")
        self.parser.phase = self.parser.phases[self.parser.template_mode]
        return token

    def end_tag_other(self, token: AnyToken) -> None:
        """Ignore the end tag."""

    start_tag_handler = dict.fromkeys(
        (
            *("base", "basefont", "bgsound", "link", "meta", "noframes", "script", "style"),
            *("template", "title"),
        ),
        _in_head,
    )
    end_tag_handler = _TEMPLATE_END


class InBody(tiny.InBodyPhase):
    def _close_p(self) -> None:
        if self.tree.element_in_scope("p", "button"):
            self.end_tag_p(implied_tag_token("p"))

    def _pop_to(self, name: str) -> None:
        while self.tree.open_elements.pop().name != name:
            pass

    def start_tag_pre_listing(self, token: AnyToken) -> None:
        self._close_p()
        self.tree.insert_element(token)
        self.parser.tokenizer.skip_newline()
        self.parser.frameset_ok = False

    def start_tag_textarea(self, token: AnyToken) -> None:
        self.parser.frameset_ok = False
        self.parser.parse_rcdata_rawtext(token, "RCDATA")
        self.parser.tokenizer.skip_newline()

    def start_tag_form(self, token: AnyToken) -> None:
        if self.parser.is_in_template:
            self.start_tag_close_p(token)
        else:
            super().start_tag_form(token)

    def end_tag_form(self, token: AnyToken) -> None:
        if self.parser.is_in_template:
            self.end_tag_block(token)
        else:
            super().end_tag_form(token)

    def start_tag_list_item(self, token: AnyToken) -> None:
        self.parser.frameset_ok = False
        stops = ("li",) if token["name"] == "li" else ("dd", "dt")
        for node in reversed(self.tree.open_elements):
            if node.name in stops:
                self.end_tag_list_item(implied_tag_token(node.name))
                break
            if node.name_tuple in _SPECIAL and node.name not in ("address", "div", "p"):
                break
        self._close_p()
        self.tree.insert_element(token)

    def end_tag_br(self, token: AnyToken) -> None:
        super().end_tag_br(token)
        self.parser.frameset_ok = False

    def start_tag_ruby_base(self, token: AnyToken) -> None:
        if self.tree.element_in_scope("ruby"):
            self.tree.generate_implied_end_tags()
        self.tree.insert_element(token)

    def start_tag_ruby_text(self, token: AnyToken) -> None:
        if self.tree.element_in_scope("ruby"):
            self.tree.generate_implied_end_tags("rtc")
        self.tree.insert_element(token)

    # A `select` may contain anything but another one and `input`.

    def start_tag_select(self, token: AnyToken) -> None:
        if self.tree.element_in_scope("select"):
            self._pop_to("select")
            return
        self.tree.reconstruct_active_formatting_elements()
        self.tree.insert_element(token)
        self.parser.frameset_ok = False

    def start_tag_input(self, token: AnyToken) -> None:
        if self.tree.element_in_scope("select"):
            self._pop_to("select")
        super().start_tag_input(token)

    def start_tag_hr(self, token: AnyToken) -> None:
        self._close_p()
        if self.tree.element_in_scope("select"):
            self.tree.generate_implied_end_tags()
        super().start_tag_hr(token)

    def start_tag_opt(self, token: AnyToken) -> None:
        if self.tree.element_in_scope("select"):
            self.tree.generate_implied_end_tags("optgroup" if token["name"] == "option" else None)
        elif self.tree.open_elements[-1].name == "option":
            self.tree.open_elements.pop()
        self.tree.reconstruct_active_formatting_elements()
        self.tree.insert_element(token)

    def end_tag_other(self, token: AnyToken) -> None:
        stack = self.tree.open_elements
        for node in reversed(stack):
            if node.name == token["name"]:
                self.tree.generate_implied_end_tags(token["name"])
                del stack[stack.index(node) :]
                break
            if node.name_tuple in _SPECIAL:
                break

    def end_tag_formatting(self, token: AnyToken) -> None:
        """Run the adoption agency algorithm (section-13.2.6.4.7)."""
        stack, active = self.tree.open_elements, self.tree.active_formatting_elements
        name = token["name"]
        if stack[-1].name == name and stack[-1] not in active:
            stack.pop()
            return
        for _ in range(8):
            formatting = self.tree.element_in_active_formatting_elements(name)
            if not formatting:
                self.end_tag_other(token)
                return
            if formatting not in stack:
                active.remove(formatting)
                return
            if not self.tree.element_in_scope(formatting):
                return
            at = stack.index(formatting)
            furthest = next((node for node in stack[at:] if node.name_tuple in _SPECIAL), None)
            if furthest is None:
                del stack[at:]
                active.remove(formatting)
                return
            last, bookmark = self._clone_between(formatting, furthest)
            self._adopt(stack[at - 1], last)
            clone = formatting.clone()
            furthest.move_children(clone)
            furthest.append_child(clone)
            old = active.index(formatting)
            del active[old]
            list.insert(active, bookmark - (old < bookmark), clone)
            stack.remove(formatting)
            stack.insert(stack.index(furthest) + 1, clone)

    def _clone_between(self, formatting: Node, furthest: Node) -> tuple[Node, int]:
        """Clone the formatting elements between the two (step 13 of the algorithm).

        Return the last node, and the place in the active list for the clone of `formatting`."""
        stack, active = self.tree.open_elements, self.tree.active_formatting_elements
        bookmark = active.index(formatting)
        last, at = furthest, stack.index(furthest)
        counter = 0
        while True:
            counter += 1
            at -= 1
            node = stack[at]
            if node is formatting:
                return last, bookmark
            if node in active and counter > 3:
                old = active.index(node)
                del active[old]
                bookmark -= old < bookmark
            if node not in active:
                del stack[at]
                continue
            clone = node.clone()
            active[active.index(node)] = stack[at] = clone
            if last is furthest:
                bookmark = active.index(clone) + 1
            last.detach()
            clone.append_child(last)
            last = clone

    def _adopt(self, ancestor: Node, node: Node) -> None:
        """Insert a node at the appropriate place in the ancestor."""
        node.detach()
        if ancestor.name in table_insert_mode_elements:
            parent, before = self.tree.get_table_misnested_node_position()
            parent.insert_before(node, before)
        else:
            ancestor.append_child(node)

    start_tag_handler = (
        _without(tiny.InBodyPhase.start_tag_handler, "command", "isindex")
        | _TEMPLATE
        | dict.fromkeys(("dialog", "search"), tiny.InBodyPhase.start_tag_close_p)
        | dict.fromkeys(("pre", "listing"), start_tag_pre_listing)
        | dict.fromkeys(("li", "dd", "dt"), start_tag_list_item)
        | dict.fromkeys(("rb", "rtc"), start_tag_ruby_base)
        | dict.fromkeys(("rp", "rt"), start_tag_ruby_text)
        | dict.fromkeys(("option", "optgroup"), start_tag_opt)
        | {
            "textarea": start_tag_textarea,
            "form": start_tag_form,
            "select": start_tag_select,
            "input": start_tag_input,
            "hr": start_tag_hr,
        }
    )
    end_tag_handler = (
        tiny.InBodyPhase.end_tag_handler
        | _TEMPLATE_END
        | {"form": end_tag_form, "br": end_tag_br}
        | dict.fromkeys(("search", "select"), tiny.InBodyPhase.end_tag_block)
        | dict.fromkeys(
            (
                *("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike"),
                *("strong", "tt", "u"),
            ),
            end_tag_formatting,
        )
    )


class InTable(tiny.InTablePhase):
    def _foster(self, process: Process, token: AnyToken) -> AnyToken | None:
        """Process a token by the rules of `in body`, with foster parenting."""
        tree = self.tree
        before, tree.insert_from_table = tree.insert_from_table, True
        following = process(token)
        tree.insert_from_table = before
        return following

    def process_characters(self, token: AnyToken) -> AnyToken | None:
        if self.tree.open_elements[-1].name in _TABLES:
            super().process_characters(token)
            return None
        return self._foster(self.parser.phases["in body"].process_characters, token)

    def process_space_characters(self, token: AnyToken) -> AnyToken | None:
        if self.tree.open_elements[-1].name in _TABLES:
            super().process_space_characters(token)
            return None
        return self._foster(self.parser.phases["in body"].process_space_characters, token)

    def insert_text(self, token: AnyToken) -> None:
        self._foster(self.parser.phases["in body"].process_characters, token)

    def start_tag_other(self, token: AnyToken) -> AnyToken | None:
        return self._foster(self.parser.phases["in body"].process_start_tag, token)

    def end_tag_other(self, token: AnyToken) -> AnyToken | None:
        return self._foster(self.parser.phases["in body"].process_end_tag, token)

    def start_tag_input(self, token: AnyToken) -> AnyToken | None:
        if token["data"].get("type", "").translate(ascii_upper_to_lower) != "hidden":
            return self.start_tag_other(token)
        self.tree.insert_element(token)
        self.tree.open_elements.pop()
        return None

    def start_tag_form(self, token: AnyToken) -> None:
        if not self.parser.is_in_template:
            super().start_tag_form(token)

    def start_tag_table(self, token: AnyToken) -> AnyToken | None:
        if not self.tree.element_in_scope("table", "table"):
            return None
        while self.tree.open_elements.pop().name != "table":
            pass
        self.parser.reset_insertion_mode()
        return token

    start_tag_handler = (
        tiny.InTablePhase.start_tag_handler
        | _TEMPLATE
        | {"input": start_tag_input, "form": start_tag_form, "table": start_tag_table}
    )
    end_tag_handler = tiny.InTablePhase.end_tag_handler | _TEMPLATE_END


class InColumnGroup(tiny.InColumnGroupPhase):
    def ignore_end_tag_colgroup(self) -> bool:
        return bool(self.tree.open_elements[-1].name != "colgroup")

    def process_characters(self, token: AnyToken) -> AnyToken | None:
        if not self.ignore_end_tag_colgroup():
            return cast("AnyToken | None", super().process_characters(token))
        _insert_spaces(self, token)
        return None

    start_tag_handler = tiny.InColumnGroupPhase.start_tag_handler | _TEMPLATE
    end_tag_handler = tiny.InColumnGroupPhase.end_tag_handler | _TEMPLATE_END


class InForeignContent(tiny.InForeignContentPhase):
    def adjust_svg_tag_names(self, token: AnyToken) -> None:
        super().adjust_svg_tag_names(token)
        if token["name"] == "fedropshadow":
            token["name"] = "feDropShadow"

    def process_end_tag(self, token: AnyToken) -> AnyToken | None:
        stack, name = self.tree.open_elements, token["name"]
        if name in ("br", "p"):
            while not (
                stack[-1].namespace == HTML
                or self.parser.is_html_integration_point(stack[-1])
                or self.parser.is_mathml_text_integration_point(stack[-1])
            ):
                stack.pop()
            return cast("AnyToken | None", self.parser.phase.process_end_tag(token))
        for at in range(len(stack) - 1, -1, -1):
            node = stack[at]
            if node.namespace == HTML:
                return cast("AnyToken | None", self.parser.phase.process_end_tag(token))
            if node.local.translate(ascii_upper_to_lower) == name:
                del stack[at:]
                break
        return None


class AfterBody(tiny.AfterBodyPhase):
    def process_space_characters(self, token: AnyToken) -> Any:
        return self.parser.phases["in body"].process_space_characters(token)


class InFrameset(tiny.InFramesetPhase):
    process_characters = _insert_spaces


class AfterFrameset(tiny.AfterFramesetPhase):
    process_characters = _insert_spaces


class AfterAfterFrameset(tiny.AfterAfterFramesetPhase):
    process_characters = _insert_spaces


_PHASES = tiny._phases | {
    "in head": InHead,
    "after head": AfterHead,
    "in template": InTemplate,
    "in body": InBody,
    "in table": InTable,
    "in column group": InColumnGroup,
    "in foreign content": InForeignContent,
    "after body": AfterBody,
    "in frameset": InFrameset,
    "after frameset": AfterFrameset,
    "after after frameset": AfterAfterFrameset,
}
_STEPS: dict[Token, Handler] = {
    Token.CHARACTERS: lambda phase, token: phase.process_characters(token),
    Token.SPACE_CHARACTERS: lambda phase, token: phase.process_space_characters(token),
    Token.START_TAG: lambda phase, token: phase.process_start_tag(token),
    Token.END_TAG: lambda phase, token: phase.process_end_tag(token),
    Token.COMMENT: lambda phase, token: phase.process_comment(token),
    Token.DOCTYPE: lambda phase, token: phase.process_doctype(token),
}
